//! How often duel errs, by simulation: seeded, so that every run of the tests sees the same numbers.
//!
//! Each simulated run goes on block by block until [`duel_stats::early_stop`] says enough or 15 blocks (30 pairs) are done, and is
//! then judged, as the lab does it. `cargo test -p duel-stats --test integration error_rates -- --nocapture` prints the rates that
//! method/error-rates.md gives.

use crate::synthetic::*;
use duel_model::{Call, Distribution, Metric, Plan, Slot, Turn};
use duel_stats::{Stop, WholeGap, judge_probe, judge_slots, observe};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Noise of one slot, in logarithms.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Normal with this standard deviation.
    Normal(f64),
    /// Student's t with 3 degrees of freedom times this scale: one slot of 70 is off by more than 5 scales.
    Heavy(f64),
    /// As normal noise; and one slot of ten takes up to half as long again (another tenant, a pause).
    Skewed(f64),
    /// Normal, each slot's noise correlated with that of the slot before at 0.7, whatever its target.
    Wandering(f64),
    /// Normal, of which 70 % of the variance is common to both slots of a target in a block, and of it alone: the pairs
    /// of a block say nearly the same thing.
    Sticky(f64),
    /// Normal, a target's own, each time correlated at 0.9 with what it was a slot's time before, whichever target was loaded.
    Lasting(f64),
    /// A target's own, too: it is either fast or slow, by so much, and changes in one slot's time of ten; and a little normal noise.
    Regimes(f64),
}

struct Simulation {
    noise: Noise,
    /// Logarithm of B's time over A's.
    gap: f64,
    runs: u32,
    /// Most blocks.
    blocks: u32,
    plan: Plan,
}

#[derive(Debug, Clone, Copy)]
struct Rates {
    faster: f64,
    slower: f64,
    equivalent: f64,
    pairs: f64,
}

impl Rates {
    fn wrong(self) -> f64 {
        self.faster + self.slower
    }
}

fn simulate(noise: Noise, gap: f64) -> Rates {
    simulate_blocks(noise, gap, 15)
}

/// `DUEL_SIMULATED_RUNS` asks for more than the tests have time for.
fn simulate_blocks(noise: Noise, gap: f64, blocks: u32) -> Rates {
    let runs = std::env::var("DUEL_SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300);
    Simulation { noise, gap, runs, blocks, plan: plan(2) }.rates()
}

impl Simulation {
    fn rates(&self) -> Rates {
        // Counted, not summed up in shares: all of them are then exactly 1.
        let (mut calls, mut pairs) = (Vec::new(), 0.0);
        for seed in 0..self.runs {
            let (call, judged) = self.run(u64::from(seed));
            calls.push(call);
            pairs += judged;
        }
        let runs = f64::from(self.runs);
        let share = |wanted: Call| calls.iter().filter(|&&call| call == wanted).count() as f64 / runs;
        let rates = Rates {
            faster: share(Call::Faster),
            slower: share(Call::Slower),
            equivalent: share(Call::Equivalent),
            pairs: pairs / runs,
        };
        println!(
            "{:<18} gap {:+.4}: faster {:5.2} % slower {:6.2} % equivalent {:6.2} % after {:4.1} pairs",
            format!("{:?}", self.noise),
            self.gap,
            rates.faster * 100.0,
            rates.slower * 100.0,
            rates.equivalent * 100.0,
            rates.pairs
        );
        rates
    }

    fn run(&self, seed: u64) -> (Call, f64) {
        let mut plan = self.plan.clone();
        plan.compare.seed = seed;
        let mut rng = Pcg64::seed_from_u64(seed ^ 0x5eed_0000_0000);
        let mut slots: Vec<Slot> = Vec::new();
        let mut wander = normal(&mut rng);
        let mut lasting = [normal(&mut rng), normal(&mut rng)];
        let mut is_slow = [rng.random(), rng.random()];
        for block in 0..self.blocks {
            let sticky = [normal(&mut rng), normal(&mut rng)];
            let first = rng.random_range(0..2usize);
            for (repeat, target) in [(0, first), (0, 1 - first), (1, 1 - first), (1, first)] {
                lasting = lasting.map(|before| 0.9 * before + (1.0f64 - 0.81).sqrt() * normal(&mut rng));
                is_slow = is_slow.map(|before: bool| before ^ (rng.random_range(0..10) == 0));
                let noise = match self.noise {
                    Noise::Normal(scale) => scale * normal(&mut rng),
                    Noise::Heavy(scale) => scale * student3(&mut rng),
                    Noise::Skewed(scale) => {
                        let disturbed = rng.random_range(0..10) == 0;
                        scale * normal(&mut rng) + if disturbed { 0.4 * rng.random::<f64>() } else { 0.0 }
                    }
                    Noise::Wandering(scale) => {
                        wander = 0.7 * wander + (1.0f64 - 0.49).sqrt() * normal(&mut rng);
                        scale * wander
                    }
                    Noise::Lasting(scale) => scale * lasting[target],
                    Noise::Regimes(apart) => apart * (f64::from(is_slow[target]) - 0.5) + 0.005 * normal(&mut rng),
                    Noise::Sticky(scale) => scale * (0.7f64.sqrt() * sticky[target] + 0.3f64.sqrt() * normal(&mut rng)),
                };
                let gap = if target == 1 { self.gap } else { 0.0 };
                slots.push(slot(block, repeat, target, (noise + gap).exp()));
            }
            if stop(&slots, &plan) != Stop::Go {
                break;
            }
        }
        let verdict = judge_slots(&slots, &plan);
        (call(&verdict, "B", Metric::Rate), slots.len() as f64 / 2.0)
    }
}

/// Runs whose slots take turns, five to a slot, each with 1 % of normal noise.
#[derive(Clone, Copy)]
struct InTurns {
    /// Probability that somebody begins to take the machine in a turn; each later turn frees it at 0.4. A turn so disturbed takes 1.2 to
    /// 2.5 times as long, whichever target's it is.
    bursts: f64,
    /// Probability that B stands still for as long as a turn takes.
    pauses: f64,
    /// Logarithm of B's time over A's in each turn.
    gap: f64,
}

impl InTurns {
    /// The slots of a block.
    fn block(&self, block: u32, is_taken: &mut bool, rng: &mut Pcg64) -> Vec<Slot> {
        const TURNS: u32 = 5;
        let mut slots: Vec<Slot> =
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(repeat, target)| slot(block, repeat, target, 0.0)).into();
        let first = rng.random_range(0..2usize);
        for round in 0..2 * TURNS {
            let order = if round % 2 == 0 { [first, 1 - first] } else { [1 - first, first] };
            for target in order {
                *is_taken = if *is_taken { rng.random_bool(0.6) } else { rng.random_bool(self.bursts) };
                let disturbed = if *is_taken { 0.2 + 1.3 * rng.random::<f64>() } else { 0.0 };
                let paused = f64::from(u8::from(target == 1 && rng.random_bool(self.pauses)));
                let gap = if target == 1 { self.gap } else { 0.0 };
                let takes_s = 0.02 * (0.01 * normal(rng) + gap).exp() * (1.0 + disturbed + paused);
                let slot = &mut slots[(round / TURNS * 2) as usize + target];
                let (ok, elapsed_ns) = (slot.tally.ok / u64::from(TURNS), (takes_s * 1e9) as u64);
                slot.turns.push(Turn { offset_ns: 0, ok, elapsed_ns });
                slot.elapsed_ns += elapsed_ns;
            }
        }
        slots
    }

    fn blocks(&self, count: u32, rng: &mut Pcg64) -> Vec<Slot> {
        let mut is_taken = false;
        (0..count).flat_map(|block| self.block(block, &mut is_taken, rng)).collect()
    }

    /// Of comparisons of 35 blocks that went by all of the time, how often probes of the same servers, of 14 blocks each, say so and
    /// so of the gap: that it is another one than it truly is, and that most of it is gone.
    fn probes(&self) -> [f64; 2] {
        let runs = std::env::var("DUEL_SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300u32);
        let (mut by_whole, mut other, mut gone) = (0u32, 0u32, 0u32);
        let truth = (1.0 / (1.0 + self.pauses)).ln();
        for seed in 0..runs {
            let plan = plan(2);
            let mut rng = Pcg64::seed_from_u64(u64::from(seed) ^ 0x9b0b_0000_0000);
            let slots = self.blocks(35, &mut rng);
            let verdict = judge_slots(&slots, &plan);
            let gaps = WholeGap::of(&verdict, &observe(&slots, &plan.targets));
            if gaps.is_empty() || call(&verdict, "B", Metric::Rate) != Call::Slower {
                continue;
            }
            by_whole += 1;
            let told = judge_probe(&self.blocks(14, &mut rng), &plan, &gaps).pairs[0].clone();
            let (low, high) = (told.low.unwrap().ln(), told.high.unwrap().ln());
            other += u32::from(truth < low || high < truth);
            // As diagnosis calls a cause confirmed: more than half of it is gone beyond the interval.
            gone += u32::from(low > 0.5 * verdict.pairs[0].ratio.unwrap().ln());
        }
        let shares = [other, gone].map(|count| f64::from(count) / f64::from(by_whole.max(1)));
        println!(
            "probes in turns, bursts {:.2}, pauses {:.2}: of {by_whole} by the whole {shares:?}",
            self.bursts, self.pauses
        );
        shares
    }

    /// Shares of runs of 35 blocks at most: those of 16 s.
    fn rates(&self) -> Rates {
        let runs = std::env::var("DUEL_SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300u32);
        let (mut counts, mut pairs) = ([0u32; 3], 0);
        for seed in 0..runs {
            let mut plan = plan(2);
            plan.compare.seed = u64::from(seed);
            let mut rng = Pcg64::seed_from_u64(u64::from(seed) ^ 0x5eed_0000_0000);
            let (mut slots, mut is_taken) = (Vec::new(), false);
            for block in 0..35 {
                slots.extend(self.block(block, &mut is_taken, &mut rng));
                if stop(&slots, &plan) != Stop::Go {
                    break;
                }
            }
            pairs += slots.len() / 2;
            let found = call(&judge_slots(&slots, &plan), "B", Metric::Rate);
            for (count, wanted) in counts.iter_mut().zip([Call::Faster, Call::Slower, Call::Equivalent]) {
                *count += u32::from(found == wanted);
            }
        }
        let [faster, slower, equivalent] = counts.map(|count| f64::from(count) / f64::from(runs));
        let rates = Rates { faster, slower, equivalent, pairs: pairs as f64 / f64::from(runs) };
        println!("in turns, bursts {:.2}, pauses {:.2}, gap {:.2}: {rates:?}", self.bursts, self.pauses, self.gap);
        rates
    }
}

/// Box and Muller 1958.
fn normal(rng: &mut Pcg64) -> f64 {
    let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn student3(rng: &mut Pcg64) -> f64 {
    let chi_squared: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / (chi_squared / 3.0).sqrt()
}

#[test]
fn the_same_target_twice_is_not_called_faster_or_slower() {
    for noise in [
        Noise::Normal(0.003),
        Noise::Normal(0.01),
        Noise::Normal(0.03),
        Noise::Normal(0.10),
        Noise::Heavy(0.003),
        Noise::Heavy(0.01),
        Noise::Heavy(0.03),
        Noise::Skewed(0.01),
        Noise::Wandering(0.01),
        Noise::Wandering(0.03),
        Noise::Wandering(0.10),
        Noise::Sticky(0.01),
        Noise::Sticky(0.03),
        Noise::Sticky(0.10),
    ] {
        let rates = simulate(noise, 0.0);
        assert!(rates.wrong() <= 0.05, "{noise:?}: {rates:?}");
    }
}

/// What lasts for seconds cannot be told from a difference in a short run. These are the rates in runs as long as those by default
/// (50 blocks of slots of 0.15 s): before intervals went by batches of blocks, 13 % and 9 %.
#[test]
fn noise_that_lasts_is_seldom_called() {
    for (noise, most) in [(Noise::Lasting(0.015), 0.06), (Noise::Regimes(0.04), 0.05)] {
        let rates = simulate_blocks(noise, 0.0, 50);
        assert!(rates.wrong() <= most, "{noise:?}: {rates:?}");
        print!("15 blocks: ");
        simulate_blocks(noise, 0.0, 15);
        print!("at the margin: ");
        simulate_blocks(noise, 0.02f64.ln_1p(), 50);
    }
}

#[test]
fn short_runs_do_not_err_more_often() {
    for blocks in [3, 4, 5, 6, 8] {
        for noise in [Noise::Normal(0.10), Noise::Heavy(0.10), Noise::Wandering(0.10), Noise::Sticky(0.10)] {
            print!("{blocks} blocks: ");
            let rates = simulate_blocks(noise, 0.0, blocks);
            // The fewer blocks, the more the chance of the simulation shows: 300 runs at 5 % have a standard error of 1.3 %.
            assert!(rates.wrong() <= 0.06, "{blocks} blocks of {noise:?}: {rates:?}");
        }
    }
}

/// How the times of single ops scatter, as multiples of what is usual.
#[derive(Clone, Copy, Debug)]
enum OpTimes {
    /// One in ten takes ten times as long.
    OneInTen,
    /// Half of them take five times as long.
    Halves,
    Exponential,
    /// The standard deviation of the logarithm is 1.
    LogNormal,
    /// 5 % of normal noise: a transfer at a steady rate.
    Steady,
}

impl OpTimes {
    fn draw(self, rng: &mut Pcg64) -> f64 {
        match self {
            Self::OneInTen => [1.0, 10.0][usize::from(rng.random_bool(0.1))],
            Self::Halves => [1.0, 5.0][usize::from(rng.random_bool(0.5))],
            Self::Exponential => -(1.0 - rng.random::<f64>()).ln(),
            Self::LogNormal => normal(rng).exp(),
            Self::Steady => 1.0 + 0.05 * normal(rng),
        }
    }
}

/// Shares of runs of two blocks that are called faster and slower, where each of so many lanes carries so many ops in a slot, which is
/// over when the last one is, and B takes so many times as long.
fn called_of_few_ops(times: OpTimes, lanes: u64, ops: u64, factor: f64) -> [f64; 2] {
    let runs = std::env::var("DUEL_SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300u32);
    let mut called = [0u32; 2];
    for seed in 0..runs {
        let mut rng = Pcg64::seed_from_u64(u64::from(seed) ^ 0x0f0f_0000_0000);
        let mut slots = blocks(2, 2, |_, _, _| 1.0);
        for slot in &mut slots {
            let scale = if slot.target == 1 { 1e9 * factor } else { 1e9 };
            let lanes: Vec<Vec<u64>> = (0..lanes)
                .map(|_| (0..ops).map(|_| (scale * times.draw(&mut rng)).max(1.0) as u64).collect())
                .collect();
            slot.elapsed_ns = lanes.iter().map(|lane| lane.iter().sum()).max().unwrap();
            slot.tally.service = Distribution::from_values(lanes.into_iter().flatten());
            slot.tally.response = slot.tally.service.clone();
            (slot.tally.started, slot.tally.ok) = (slot.tally.service.count(), slot.tally.service.count());
        }
        match call(&judge_slots(&slots, &plan(2)), "B", Metric::Rate) {
            Call::Faster => called[0] += 1,
            Call::Slower => called[1] += 1,
            Call::Equivalent | Call::Unknown => {}
        }
    }
    let shares = called.map(|count| f64::from(count) / f64::from(runs));
    println!(
        "two blocks, {times:?}, {lanes} lanes of {ops}, {factor}x: faster {:.2} %, slower {:.2} %",
        100.0 * shares[0],
        100.0 * shares[1]
    );
    shares
}

#[test]
fn two_blocks_of_few_ops_call_plain_gaps_and_no_others() {
    for times in [OpTimes::OneInTen, OpTimes::Halves, OpTimes::Exponential, OpTimes::LogNormal, OpTimes::Steady] {
        for (lanes, ops) in [(1, 1), (1, 3), (4, 1), (8, 1), (20, 1)] {
            let [faster, slower] = called_of_few_ops(times, lanes, ops, 1.0);
            assert!(faster + slower <= 0.005, "{times:?}, {lanes} lanes: {faster} {slower}");
        }
    }
    let [faster, slower] = called_of_few_ops(OpTimes::Steady, 20, 1, 30.0);
    assert!(faster == 0.0 && slower >= 0.95, "{faster} {slower}");
    let [faster, slower] = called_of_few_ops(OpTimes::Steady, 20, 1, 1.5);
    assert!(faster + slower == 0.0, "{faster} {slower}: a gap that is not plain takes more pairs");
    let [faster, _] = called_of_few_ops(OpTimes::Exponential, 20, 1, 100.0);
    assert!(faster == 0.0);
}

#[test]
fn a_gap_of_the_margin_is_not_called_equivalent() {
    for noise in
        [Noise::Normal(0.003), Noise::Normal(0.01), Noise::Normal(0.02), Noise::Heavy(0.003), Noise::Heavy(0.01)]
    {
        let rates = simulate(noise, 0.02f64.ln_1p());
        assert!(rates.equivalent <= 0.05, "{noise:?}: {rates:?}");
    }
}

#[test]
fn gaps_are_found() {
    for (noise, gap, share) in [
        (Noise::Normal(0.03), 1.05f64, 0.9),
        (Noise::Normal(0.01), 1.03, 0.9),
        (Noise::Heavy(0.03), 1.10, 0.9),
        (Noise::Normal(0.03), 3.0, 1.0),
    ] {
        let rates = simulate(noise, gap.ln());
        assert!(rates.slower >= share, "{noise:?} {gap}: {rates:?}");
        assert!(rates.faster == 0.0, "{noise:?} {gap}: {rates:?}");
    }
    let rates = simulate(Noise::Normal(0.01), 0.0);
    assert!(rates.equivalent >= 0.9, "{rates:?}");
}

#[test]
fn turns_err_no_more_often() {
    for bursts in [0.0, 0.02] {
        let equal = InTurns { bursts, pauses: 0.0, gap: 0.0 };
        let rates = equal.rates();
        assert!(rates.wrong() <= 0.05, "{bursts}: {rates:?}");
        assert!(bursts > 0.0 || rates.equivalent >= 0.9, "{bursts}: {rates:?}");
        // What bursts do to the rates over all of the time takes nothing of what turns know.
        let rates = InTurns { gap: 0.03, ..equal }.rates();
        assert!(rates.slower >= 0.8 && rates.faster + rates.equivalent == 0.0, "{bursts}: {rates:?}");
        // A fifth of B's time, in pauses that come by chance: mostly found, whatever turns leave out.
        let rates = InTurns { pauses: 0.25, ..equal }.rates();
        assert!(rates.slower >= 0.65 && rates.faster == 0.0, "{bursts}: {rates:?}");
        // As much as the margin, and twice as much.
        for (pauses, most) in [(0.02, 0.2), (0.04, 0.05)] {
            let rates = InTurns { pauses, ..equal }.rates();
            assert!(rates.equivalent <= most, "{bursts}: {rates:?}");
        }
    }
}

#[test]
fn a_gap_by_pauses_does_not_seem_to_be_gone_in_probes() {
    for (bursts, pauses) in [(0.0, 0.05), (0.0, 0.1), (0.02, 0.1)] {
        let [other, gone] = InTurns { bursts, pauses, gap: 0.0 }.probes();
        assert!(other <= 0.08 && gone <= 0.02, "bursts {bursts}, pauses {pauses}: {other}, {gone}");
    }
}
