//! How often a verdict errs where each start of a program is a little faster or slower than the next, by simulation: without starting
//! targets anew, and with it. Seeded. `cargo test -p duel-stats --test integration starts -- --nocapture` prints the rates that
//! method/error-rates.md gives; `DUEL_SIMULATED_RUNS` asks for more runs.

use crate::synthetic::*;
use duel_model::{Call, DoubtId, Metric, RestartCommand, RestartPlan, Slot};
use duel_stats::{FEWEST_STARTS, Stop, judge_slots};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Standard deviation of what a start is worth, in logarithms: 2 %.
const OF_STARTS: f64 = 0.02;
/// Standard deviation of a slot, in logarithms.
const OF_SLOTS: f64 = 0.01;
const BLOCKS_OF_START: u32 = 2;

/// How starts of a program scatter.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Normal,
    /// A start is laid out well or badly.
    Coin,
    /// Nine of ten are alike, and one is worse by so much that the standard deviation is the same.
    Unlucky,
}

#[derive(Debug, Clone, Copy)]
struct Rates {
    wrong: f64,
    equivalent: f64,
    covered: f64,
    starts: f64,
}

/// Which programs have starts that differ, and are started anew; A stays one process otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Anew {
    Both,
    B,
}

/// Rates over runs of so many starts at most; with one, all slots are of one pair of processes, in as many blocks as `blocks` says.
fn simulate(shape: Shape, anew: Anew, starts: u32, blocks: u32, gap: f64) -> Rates {
    let runs = std::env::var("DUEL_SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300u32);
    let (mut wrong, mut equivalent, mut covered, mut made) = (0, 0, 0, 0);
    for seed in 0..runs {
        let mut plan = plan(2);
        plan.compare.seed = u64::from(seed);
        if starts > 1 {
            plan.compare.restart = Some(restart(if anew == Anew::Both { &["A", "B"] } else { &["B"] }));
        }
        let mut rng = Pcg64::seed_from_u64(u64::from(seed) ^ 0x57a7_0000_0000);
        let mut slots: Vec<Slot> = Vec::new();
        for start in 0..starts {
            let mut worth = [start_is_worth(shape, &mut rng), start_is_worth(shape, &mut rng)];
            if anew == Anew::B {
                worth[0] = 0.0;
            }
            for block in start * blocks..(start + 1) * blocks {
                for (repeat, target) in [(0, 0), (0, 1), (1, 1), (1, 0)] {
                    let gap = if target == 1 { gap } else { 0.0 };
                    let elapsed_s = (worth[target] + OF_SLOTS * normal(&mut rng) + gap).exp();
                    let mut slot = slot(block, repeat, target, elapsed_s);
                    slot.start = (starts > 1).then_some(start);
                    slots.push(slot);
                }
                if starts == 1 && stop(&slots, &plan) != Stop::Go {
                    break;
                }
            }
            made += 1;
            if starts > 1 && stop(&slots, &plan) != Stop::Go {
                break;
            }
        }
        let verdict = judge_slots(&slots, &plan);
        let pair = &verdict.pairs[0];
        match call(&verdict, "B", Metric::Rate) {
            Call::Faster | Call::Slower => wrong += 1,
            Call::Equivalent => equivalent += 1,
            Call::Unknown => {}
        }
        let truth = (-gap).exp();
        covered += u32::from(pair.low.is_some_and(|low| low <= truth) && pair.high.is_some_and(|high| truth <= high));
    }
    let share = |count: u32| f64::from(count) / f64::from(runs);
    let rates =
        Rates { wrong: share(wrong), equivalent: share(equivalent), covered: share(covered), starts: share(made) };
    println!(
        "{shape:?}, {anew:?}, at most {starts:2} starts, gap {gap:+.4}: called {:5.2} % equivalent {:6.2} % covered {:6.2} % after {:4.1} starts",
        rates.wrong * 100.0,
        rates.equivalent * 100.0,
        rates.covered * 100.0,
        rates.starts
    );
    rates
}

fn restart(targets: &[&str]) -> RestartPlan {
    let command = |target: &&str| RestartCommand { target: (*target).into(), command: "true".into() };
    RestartPlan { commands: targets.iter().map(command).collect(), timeout_ns: 1 }
}

/// What a start is worth, with a mean of 0 and a standard deviation of [`OF_STARTS`].
fn start_is_worth(shape: Shape, rng: &mut Pcg64) -> f64 {
    OF_STARTS
        * match shape {
            Shape::Normal => normal(rng),
            Shape::Coin => f64::from(rng.random_range(0..2) * 2 - 1),
            // -1/3 in nine of ten, 3 in the tenth.
            Shape::Unlucky => {
                if rng.random_range(0..10) == 0 {
                    3.0
                } else {
                    -1.0 / 3.0
                }
            }
        }
}

/// Box and Muller 1958.
fn normal(rng: &mut Pcg64) -> f64 {
    let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

const SHAPES: [Shape; 3] = [Shape::Normal, Shape::Coin, Shape::Unlucky];

#[test]
fn two_processes_of_one_program_are_often_called_different_as_they_are() {
    for shape in SHAPES {
        // Called, and not without a reason: these two processes do differ.
        let rates = simulate(shape, Anew::Both, 1, 16 * BLOCKS_OF_START, 0.0);
        assert!(rates.wrong > 0.15, "{shape:?}: {rates:?}");
    }
}

#[test]
fn one_program_started_anew_is_called_no_more_often_than_claimed() {
    for anew in [Anew::Both, Anew::B] {
        for (shape, starts) in SHAPES.into_iter().flat_map(|shape| [(shape, FEWEST_STARTS as u32), (shape, 16)]) {
            let rates = simulate(shape, anew, starts, BLOCKS_OF_START, 0.0);
            // What is claimed is 1 %; 300 runs at that have a standard error of 0.6 points.
            assert!(rates.wrong <= 0.025, "{shape:?}, {anew:?}: {rates:?}");
        }
    }
}

#[test]
fn intervals_over_starts_cover_the_programs() {
    for starts in [FEWEST_STARTS as u32, 16] {
        let rates = simulate(Shape::Normal, Anew::Both, starts, BLOCKS_OF_START, 0.01);
        assert!(rates.covered >= 0.92, "{rates:?}");
    }
}

#[test]
fn programs_apart_by_the_margin_are_not_called_equivalent() {
    for shape in SHAPES {
        let rates = simulate(shape, Anew::Both, 16, BLOCKS_OF_START, 0.02f64.ln_1p());
        assert!(rates.equivalent <= 0.05, "{shape:?}: {rates:?}");
    }
}

/// What method/error-rates.md says that starts do not show: a start in ten that is bad on one side alone is often not met.
#[test]
fn a_start_that_is_seldom_bad_is_often_not_met() {
    let rates = simulate(Shape::Unlucky, Anew::B, 16, BLOCKS_OF_START, 0.02f64.ln_1p());
    assert!(rates.equivalent > 0.1, "the document has to say something better: {rates:?}");
}

/// A gap is found over starts, too, and what is told is that it rests on them.
#[test]
fn programs_that_differ_are_told_apart() {
    let mut plan = plan(2);
    plan.compare.restart = Some(restart(&["A", "B"]));
    let mut slots = blocks(18, 2, |block, repeat, target| {
        ripple(block, repeat, target) * if target == 1 { 1.3 + 0.01 * f64::from(block / 2) } else { 1.0 }
    });
    slots.iter_mut().for_each(|slot| slot.start = Some(slot.block / 2));
    let verdict = judge_slots(&slots, &plan);
    assert_eq!((call(&verdict, "B", Metric::Rate), verdict.starts), (Call::Slower, Some(9)));
    let few: Vec<Slot> = slots.iter().filter(|slot| slot.block < 8).cloned().collect();
    let verdict = judge_slots(&few, &plan);
    assert_eq!((call(&verdict, "B", Metric::Rate), verdict.starts), (Call::Unknown, Some(4)));
    let doubt = verdict.doubts.iter().find(|doubt| doubt.id == DoubtId::TooFewSlots).unwrap();
    assert!(doubt.text.contains("4 starts; a verdict at 95 % takes 8"), "{doubt:?}");
    // One level alone would call them after as many slots.
    plan.compare.restart = None;
    assert_eq!(call(&judge_slots(&few, &plan), "B", Metric::Rate), Call::Slower);
}

#[test]
fn the_99th_percentile_is_that_of_all_ops_of_a_start() {
    let mut plan = plan(2);
    plan.compare.restart = Some(restart(&["A", "B"]));
    let judged = |ops: u64| {
        let mut slots = blocks(16, 2, |_, _, _| 1.0);
        for slot in &mut slots {
            slot.start = Some(slot.block / 2);
            let of = if slot.target == 1 { 1.5 } else { 1.0 };
            respond(slot, ops, 1e6 * of * (1.0 + 0.001 * f64::from(slot.block / 2 % 3)));
        }
        call(&judge_slots(&slots, &plan), "B", Metric::ResponseP99)
    };
    assert_eq!((judged(30), judged(20)), (Call::Slower, Call::Unknown), "four slots of a start hold 120 ops, or 80");
}
