//! Experiments over factors: what is found where it is known what there is to be found.

use crate::synthetic::{busy, plan, slot};
use duel_model::web::settings::KEEPALIVE;
use duel_model::{
    Call, Costs, DependenceAnswer, DoubtId, Experiment, Factor, KindPlan, Metric, Param, Parts, Plan, Ranged, Run,
    RunStatus, Schema, SettingLevels, Slot, Sort, Verdict, Versions, WorkloadPlan, web,
};
use duel_stats::judge;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use statrs::distribution::{ContinuousCDF, Normal};

fn varied(targets: usize, factors: Vec<Factor>) -> Plan {
    Plan { factors, ..plan(targets) }
}

fn connections(levels: &[u32]) -> Vec<Factor> {
    vec![Factor::Connections(levels.to_vec())]
}

/// Complete blocks; `rate(block, repeat, treatment, target)`. A single target has one slot of each treatment.
fn blocks(plan: &Plan, count: u32, mut rate: impl FnMut(u32, u32, usize, usize) -> f64) -> Vec<Slot> {
    let repeats = if plan.targets.len() > 1 { 2 } else { 1 };
    let mut slots = Vec::new();
    for block in 0..count {
        for treatment in 0..plan.treatments() {
            for repeat in 0..repeats {
                for target in 0..plan.targets.len() {
                    // A million ops in each slot.
                    let elapsed_s = 1e6 / rate(block, repeat, treatment, target);
                    let slot = slot(block, repeat, target, elapsed_s);
                    slots.push(Slot { treatment: Some(treatment as u32), ..slot });
                }
            }
        }
    }
    slots
}

fn judged(plan: &Plan, slots: Vec<Slot>) -> Verdict {
    judge(&Run {
        id: "x".into(),
        started_unix_ms: 0,
        plan: plan.clone(),
        versions: Versions::default(),
        slots,
        first_contact: vec![],
        hosts: vec![],
        status: RunStatus::Complete,
        doubts: vec![],
        explanation: None,
        waiting: None,
    })
}

fn experiment(plan: &Plan, slots: Vec<Slot>) -> Experiment {
    judged(plan, slots).experiment.unwrap()
}

/// Normal noise: a factor around 1.
struct Noise(Pcg64);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    fn factor(&mut self, deviation: f64) -> f64 {
        (deviation * Normal::standard().inverse_cdf(self.0.random_range(1e-9..1.0))).exp()
    }
}

fn ratio(experiment: &Experiment, factor: usize, level: usize) -> f64 {
    let pairs = &experiment.factors[factor].levels[level].pairs;
    pairs.iter().find(|pair| pair.metric == Metric::Rate).unwrap().ratio.unwrap()
}

fn covers(figure: &Ranged, truth: f64) -> bool {
    figure.low.unwrap() <= truth && truth <= figure.high.unwrap()
}

#[test]
fn each_level_is_judged_over_the_means_of_all_others() {
    let keepalive = SettingLevels { schema: &web::SCHEMA, param: &KEEPALIVE, levels: vec!["on".into(), "off".into()] };
    let plan = varied(2, vec![Factor::Connections(vec![1, 8]), Factor::Setting(keepalive)]);
    // B is half as fast where connections are kept, and a quarter as fast at 8 connections beside that.
    let mut noise = Noise::new(1);
    let slots = blocks(&plan, 6, |_, _, treatment, target| {
        let (eight, closed) = (treatment / 2, treatment % 2);
        let slower = if target == 0 { 1.0 } else { [2.0, 1.0][closed] * [1.0, 4.0][eight] };
        1000.0 * [1.0, 5.0][eight] / slower * noise.factor(0.003)
    });
    let found = experiment(&plan, slots);
    assert_eq!((found.blocks, found.treatments.len(), found.factors.len()), (6, 4, 2));
    // Geometric means over the other factor.
    for (factor, level, truth) in [
        (0, 0, (1.0 / 2.0_f64).sqrt()),
        (0, 1, (1.0 / 8.0 * 1.0 / 4.0_f64).sqrt()),
        (1, 0, (1.0 / 2.0 * 1.0 / 8.0_f64).sqrt()),
        (1, 1, (1.0 / 4.0_f64).sqrt()),
    ] {
        assert!((ratio(&found, factor, level) / truth - 1.0).abs() < 0.01, "{factor} {level}");
    }
    assert_eq!(found.treatments[2].label, "connections 8, keepalive on");
    assert!(found.treatments.iter().map(|t| t.pairs[0].call).eq([
        Call::Slower,
        Call::Equivalent,
        Call::Slower,
        Call::Slower
    ]));
    let dependence = &found.factors[0].dependences[0];
    assert_eq!(
        (dependence.answer, dependence.from.as_str(), dependence.to.as_str()),
        (DependenceAnswer::Depends, "8", "1")
    );
    assert!((dependence.change.value / 4.0 - 1.0).abs() < 0.02, "{dependence:?}");
    assert!(found.scaling.is_none(), "means of several laws follow none");
}

#[test]
fn a_block_that_was_cut_short_is_not_judged() {
    let plan = varied(2, connections(&[1, 2]));
    let mut slots = blocks(&plan, 4, |_, _, _, target| [100.0, 80.0][target]);
    let whole = judged(&plan, slots.clone());
    slots.extend(blocks(&plan, 5, |_, _, _, _| 1.0).into_iter().filter(|slot| slot.block == 4).take(5));
    // Nor does the order matter in which slots come, nor warm-up.
    slots.reverse();
    let warmup = Slot { role: duel_model::SlotRole::Warmup, ..slots[0].clone() };
    slots.push(warmup);
    assert_eq!(judged(&plan, slots), whole);
    assert_eq!(whole.experiment.unwrap().blocks, 4);
}

#[test]
fn a_ratio_that_is_the_same_everywhere_does_not_depend_on_the_level() {
    let plan = varied(2, connections(&[1, 2, 4]));
    let mut noise = Noise::new(2);
    let slots = blocks(&plan, 8, |_, _, treatment, target| {
        100.0 * [1.0, 2.0, 3.0][treatment] * [1.0, 0.5][target] * noise.factor(0.002)
    });
    let found = experiment(&plan, slots);
    assert_eq!(found.factors[0].dependences[0].answer, DependenceAnswer::Same);
    assert!(found.factors[0].levels.iter().all(|level| level.pairs[0].call == Call::Slower));
}

#[test]
fn slots_without_a_value_make_no_figure_of_zero() {
    let plan = varied(2, connections(&[1, 2]));
    let mut slots = blocks(&plan, 6, |_, _, _, _| 100.0);
    for slot in slots.iter_mut().filter(|slot| slot.treatment == Some(1) && slot.target == 1) {
        slot.tally = duel_model::Tally { started: 10, in_flight: 10, ..Default::default() };
    }
    let found = experiment(&plan, slots);
    let level = &found.factors[0].levels[1];
    assert!(level.pairs.iter().all(|pair| pair.ratio.is_none() && pair.call == Call::Unknown));
    assert!(!level.figures.iter().any(|figure| figure.target == "B"));
    assert!(found.factors[0].dependences.is_empty(), "nothing can be said of it");
}

/// B's ratio to A is 0.5 or 0.4, and drifts by a factor of e from block to block. Each level lacks a value in another block.
#[test]
fn levels_are_held_against_each_other_in_the_rounds_that_both_have() {
    let plan = varied(2, connections(&[1, 2]));
    let mut slots =
        blocks(
            &plan,
            10,
            |block, _, treatment, target| {
                if target == 0 { 100.0 } else { 100.0 * [0.5, 0.4][treatment] * f64::from(block).exp() }
            },
        );
    for slot in slots.iter_mut().filter(|slot| slot.target == 1 && slot.repeat == 0) {
        if (slot.block, slot.treatment) == (2, Some(0)) || (slot.block, slot.treatment) == (6, Some(1)) {
            slot.tally = duel_model::Tally { started: 10, in_flight: 10, ..Default::default() };
        }
    }
    let found = experiment(&plan, slots);
    let dependence = found.factors[0].dependences.iter().find(|d| d.metric == Metric::Rate).unwrap();
    assert!((dependence.change.value / 1.25 - 1.0).abs() < 1e-6, "{dependence:?}");
    assert_eq!(dependence.answer, DependenceAnswer::Depends);
}

#[test]
fn too_few_blocks_are_a_doubt_and_no_call() {
    let plan = varied(2, connections(&[1, 2]));
    let verdict = judged(&plan, blocks(&plan, 2, |_, _, _, target| [100.0, 50.0][target]));
    assert!(verdict.doubts.iter().any(|doubt| doubt.id == DoubtId::TooFewSlots), "{:?}", verdict.doubts);
    assert_eq!(verdict.pairs[0].call, Call::Unknown);
    let nothing = judged(&plan, vec![]);
    assert_eq!(nothing.experiment.unwrap().blocks, 0);
    let absurd = varied(2, connections(&(1..=1000).collect::<Vec<_>>()));
    assert!(judged(&absurd, vec![]).experiment.is_none());
}

#[test]
fn doubts_of_treatments_are_told_once_and_say_where() {
    let plan = varied(2, connections(&[1, 2, 4, 8, 16]));
    let mut slots = blocks(&plan, 6, |_, _, _, _| 100.0);
    slots.iter_mut().filter(|slot| slot.treatment >= Some(3) && slot.target == 0).for_each(|slot| busy(slot, 0.99));
    let verdict = judged(&plan, slots);
    let saturated: Vec<_> = verdict.doubts.iter().filter(|d| d.id == DoubtId::GeneratorSaturated).collect();
    assert_eq!(saturated.len(), 1, "{:?}", verdict.doubts);
    assert!(saturated[0].text.starts_with("at connections 8 and at connections 16: "), "{saturated:?}");
    let found = verdict.experiment.unwrap();
    assert_eq!(found.factors[0].levels[0].pairs[0].call, Call::Equivalent);
    assert_eq!(found.factors[0].levels[3].pairs[0].call, Call::Unknown, "A may do better than was seen");
    // The law does not rest on them, so there are too few left for it.
    let curve = &found.scaling.unwrap().curves[0];
    assert_eq!(curve.points.iter().filter(|point| point.left_out.is_some()).count(), 2);
    assert!(curve.law.is_none() && curve.unfitted.as_ref().unwrap().contains("there are 3"), "{curve:?}");
}

/// X(N) = λN / (1 + σ(N - 1) + κN(N - 1)).
fn usl(lambda: f64, sigma: f64, kappa: f64, n: u32) -> f64 {
    let n = f64::from(n);
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

const LEVELS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Two targets that follow laws, with noise of slots and of whole blocks.
fn scaling_run(
    seed: u64,
    laws: [(f64, f64, f64); 2],
    blocks_count: u32,
    slots_off: f64,
    blocks_off: f64,
) -> Experiment {
    let plan = varied(2, connections(&LEVELS));
    let mut noise = Noise::new(seed);
    let of_blocks: Vec<f64> = (0..blocks_count).map(|_| noise.factor(blocks_off)).collect();
    let slots = blocks(&plan, blocks_count, |block, _, treatment, target| {
        let (lambda, sigma, kappa) = laws[target];
        usl(lambda, sigma, kappa, LEVELS[treatment]) * of_blocks[block as usize] * noise.factor(slots_off)
    });
    experiment(&plan, slots)
}

#[test]
fn the_law_of_each_target_is_found_and_their_difference() {
    let found = scaling_run(3, [(1000.0, 0.02, 0.0005), (500.0, 0.2, 0.0005)], 8, 0.005, 0.01).scaling.unwrap();
    let law = |target: usize| found.curves[target].law.clone().unwrap();
    assert!((law(0).lambda_per_s.value / 1000.0 - 1.0).abs() < 0.03 && (law(0).sigma.value - 0.02).abs() < 0.005);
    assert!((law(1).sigma.value - 0.2).abs() < 0.02 && law(1).misfit.is_none(), "{:?}", law(1));
    let peak = law(0).peak_connections.unwrap();
    assert!((peak.value / (0.98_f64 / 0.0005).sqrt() - 1.0).abs() < 0.1, "{peak:?}");
    let difference = &found.differences[0];
    let band = &found.curves[0].band;
    assert_eq!((band[0].connections, band[band.len() - 1].connections), (1.0, f64::from(LEVELS[LEVELS.len() - 1])));
    for at in band {
        let truth = at.connections * 1000.0
            / (1.0 + 0.02 * (at.connections - 1.0) + 0.0005 * at.connections * (at.connections - 1.0));
        assert!(at.low_per_s < truth * 1.02 && at.high_per_s > truth * 0.98, "{at:?} {truth}");
        assert!(at.high_per_s / at.low_per_s < 1.1, "{at:?}");
    }
    assert!((difference.lambda_ratio.value - 0.5).abs() < 0.01, "{difference:?}");
    assert!(
        difference.sigma_difference.low.unwrap() > 0.1,
        "B does more of its work one after the other: {difference:?}"
    );
}

#[test]
fn that_the_rate_falls_is_said_where_it_does_and_only_there() {
    let laws = [(1000.0, 0.02, 0.0), (900.0, 0.1, 0.02)];
    let found = scaling_run(7, laws, 8, 0.005, 0.01).scaling.unwrap();
    let shape = |target: usize| found.curves[target].shape.clone().unwrap();
    assert_eq!((shape(0).falls, shape(0).peak, shape(0).missing), (Some(false), 64, None));
    assert_eq!((shape(1).falls, shape(1).peak, shape(1).last), (Some(true), 8, 64));
    let truth = usl(900.0, 0.1, 0.02, 64) / usl(900.0, 0.1, 0.02, 8);
    assert!(covers(&shape(1).last_over_peak, truth), "{:?} {truth}", shape(1));
    assert!(found.differences[0].kappa_difference.low.unwrap() > 0.0);
    // Few blocks tell nothing.
    let few = scaling_run(7, laws, 3, 0.005, 0.01).scaling.unwrap();
    assert_eq!(few.curves[1].shape.clone().unwrap().falls, None);
}

#[test]
fn a_knee_is_no_scaling_law() {
    // Eight workers: linear to eight connections, then flat.
    let plan = varied(1, connections(&LEVELS));
    let mut noise = Noise::new(4);
    let slots =
        blocks(&plan, 12, |_, _, treatment, _| 100.0 * f64::from(LEVELS[treatment].min(8)) * noise.factor(0.005));
    let found = experiment(&plan, slots);
    let law = found.scaling.unwrap().curves[0].law.clone().unwrap();
    let misfit = law.misfit.unwrap();
    assert!((misfit.ratio - 1.0).abs() > 0.05, "{misfit:?}");
    assert!(found.factors[0].levels[3].pairs.is_empty(), "a single target is compared with nothing");
}

#[test]
fn few_blocks_give_a_law_without_intervals() {
    let found = scaling_run(5, [(100.0, 0.1, 0.001); 2], 4, 0.01, 0.01).scaling.unwrap();
    let law = found.curves[0].law.clone().unwrap();
    assert_eq!((law.sigma.low, law.sigma.high), (None, None));
    assert_eq!(found.curves[0].band, []);
    assert!((law.sigma.value - 0.1).abs() < 0.05);
}

/// Runs of a simulation: few by default, as many as `DUEL_SIMULATED_RUNS` asks for.
fn runs() -> u64 {
    std::env::var("DUEL_SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(80)
}

/// Intervals are to hold the truth in 95 of 100 runs. Of 80 at a true 95 %, less than 87 % are seen in one of 500
/// simulations; the seeds are fixed. `DUEL_SIMULATED_RUNS=1000` finds 93.4 to 96.4 % in
/// these two worlds, 95.4 % in the mean.
#[test]
fn intervals_of_the_law_cover_as_often_as_they_say() {
    for (a, b, blocks, slots_off, blocks_off) in [
        ((1000.0, 0.05, 0.001), (800.0, 0.08, 0.0015), 7, 0.02, 0.03),
        ((50_000.0, 0.4, 0.01), (70_000.0, 0.02, 0.0002), 12, 0.05, 0.01),
    ] {
        covers_in_a_world(a, b, blocks, slots_off, blocks_off);
    }
}

fn covers_in_a_world(a: (f64, f64, f64), b: (f64, f64, f64), blocks: u32, slots_off: f64, blocks_off: f64) {
    let count = runs();
    let mut held = [0_u64; 7];
    for seed in 0..count {
        let found = scaling_run(1000 + seed, [a, b], blocks, slots_off, blocks_off).scaling.unwrap();
        let law = found.curves[0].law.clone().unwrap();
        let difference = &found.differences[0];
        let each = [
            covers(&law.lambda_per_s, a.0),
            covers(&law.sigma, a.1),
            covers(&law.kappa, a.2),
            found.curves[0].band.last().is_some_and(|at| {
                let most = LEVELS[LEVELS.len() - 1];
                (at.low_per_s..=at.high_per_s).contains(&usl(a.0, a.1, a.2, most))
            }),
            covers(&difference.lambda_ratio, b.0 / a.0),
            covers(&difference.sigma_difference, b.1 - a.1),
            covers(&difference.kappa_difference, b.2 - a.2),
        ];
        held.iter_mut().zip(each).for_each(|(count, holds)| *count += u64::from(holds));
    }
    println!("{held:?} of {count} intervals hold the truth");
    assert!(held.iter().all(|&held| held * 100 >= count * 87), "{held:?} of {count}");
}

/// The same server twice: any call of faster or slower in a whole table is an error, and there are to be no more of them
/// than of a single comparison: 1 in 100.
#[test]
fn a_table_of_levels_errs_no_more_often_than_one_comparison() {
    let count = runs();
    let plan = varied(2, connections(&[1, 2, 4, 8, 16, 32]));
    let mut wrong = 0;
    for seed in 0..count {
        let mut noise = Noise::new(5000 + seed);
        let found = experiment(&plan, blocks(&plan, 6, |_, _, _, _| 100.0 * noise.factor(0.05)));
        let calls = found.factors[0].levels.iter().flat_map(|level| &level.pairs);
        wrong += u64::from(calls.into_iter().any(|pair| matches!(pair.call, Call::Slower | Call::Faster)));
    }
    println!("{wrong} of {count} tables make a wrong call");
    // Of 80 at a true 1 %, more than 5 are seen in 1 of 5000 simulations. `DUEL_SIMULATED_RUNS=200` finds none.
    assert!(wrong * 16 <= count, "{wrong} of {count}");
}

const WHOLE: Param = Param {
    name: "whole",
    value_name: "BYTES",
    help: "",
    sort: Sort::Bytes { least: 1, most: 1 << 20, zero: "" },
    default: "16",
};
const PART: Param =
    Param { name: "part", sort: Sort::Bytes { least: 0, most: 1 << 20, zero: "" }, default: "0", ..WHOLE };
static BY_PARTS: Schema = Schema {
    params: &[WHOLE, PART],
    parts: Some(Parts { whole: &WHOLE, part: &PART, whole_noun: "block", part_noun: "call" }),
    ..duel_model::null::SCHEMA
};

fn levels(param: &'static Param, levels: &[u32]) -> Factor {
    Factor::Setting(SettingLevels { schema: &BY_PARTS, param, levels: levels.iter().map(u32::to_string).collect() })
}

/// The costs found where ops of each target cost so many ns: itself, each call, each byte.
fn costs(seed: u64, factors: Vec<Factor>, ns: &[[f64; 3]], count: u32) -> Costs {
    let workload = WorkloadPlan::Plain(KindPlan::of(&BY_PARTS));
    let plan = Plan { workload, ..varied(ns.len(), factors) };
    let lanes = f64::from(plan.load.connections);
    let row = |treatment: usize| {
        let WorkloadPlan::Plain(kind) = plan.treated(treatment).workload else { panic!() };
        let number = |param| kind.get(param).parse::<u32>().unwrap();
        let (whole, part) = (number(&WHOLE), number(&PART));
        [1.0, f64::from(if part == 0 { 1 } else { whole.div_ceil(part) }), f64::from(whole)]
    };
    let mut noise = Noise::new(seed);
    let mut of_block = std::collections::BTreeMap::new();
    let slots = blocks(&plan, count, |block, _, treatment, target| {
        // A block's own disturbance is common to its targets.
        let common = *of_block.entry(block).or_insert_with(|| noise.factor(0.01));
        let op_ns: f64 = row(treatment).iter().zip(ns[target]).map(|(x, cost)| x * cost).sum();
        lanes * 1e9 / op_ns * common * noise.factor(0.01)
    });
    experiment(&plan, slots).costs.unwrap()
}

#[test]
fn a_planted_cost_is_found_where_it_was_planted() {
    let factors = || vec![levels(&WHOLE, &[64, 1024, 16_384]), levels(&PART, &[16, 64, 0])];
    let honest = [90.0, 25.0, 0.3];
    for (place, planted) in [(0, 300.0), (1, 40.0), (2, 0.2)] {
        let mut slow = honest;
        slow[place] += planted;
        let found = costs(7 + place as u64, factors(), &[honest, slow], 8);
        assert_eq!(found.paid_for, ["a block", "a call", "a byte"]);
        let difference = &found.differences[0];
        for (at, ns) in difference.ns.iter().enumerate() {
            let truth = if at == place { planted } else { 0.0 };
            assert!(covers(ns, truth), "{at}: {ns:?} {truth}");
            assert_eq!(covers(ns, 0.0), at != place, "{at}: {ns:?}");
        }
        assert!((difference.ns[place].value / planted - 1.0).abs() < 0.1, "{difference:?}");
        assert!(found.targets.iter().all(|of| of.misfit.is_none()), "{found:?}");
    }
}

#[test]
fn intervals_of_costs_hold_what_is_true() {
    let truths = [90.0, 25.0, 0.3];
    let (mut held, mut of) = (0, 0);
    for seed in 0..40 {
        let factors = vec![levels(&WHOLE, &[64, 1024, 16_384]), levels(&PART, &[16, 64, 0])];
        let found = costs(100 + seed, factors, &[truths], 8);
        for (ns, truth) in found.targets[0].ns.iter().zip(truths) {
            of += 1;
            held += u32::from(covers(ns, truth));
        }
    }
    // 95 % are claimed; of 120 fewer than 106 are found once in a thousand times if they were independent.
    assert!(held >= 106, "{held} of {of}");
}

#[test]
fn what_does_not_vary_is_not_told_apart() {
    let sizes = || levels(&WHOLE, &[16, 256, 4096, 65_536]);
    let found = costs(1, vec![sizes()], &[[90.0, 25.0, 0.3]], 8);
    assert_eq!(found.paid_for, ["a block and its call", "a byte"]);
    assert!(covers(&found.targets[0].ns[0], 115.0), "{found:?}");
    let found = costs(2, vec![levels(&PART, &[16, 64, 256, 0])], &[[90.0, 25.0, 0.3]], 8);
    // One call of 16 bytes in all of them: a part is no smaller than the whole.
    assert_eq!(found.paid_for, ["a block with its bytes"]);
    let found = costs(3, vec![levels(&WHOLE, &[16, 4096])], &[[90.0, 25.0, 0.3]], 8);
    assert!(found.unfitted.as_ref().unwrap().contains("it takes 3"), "{found:?}");
}

#[test]
fn costs_are_told_where_nothing_else_is_varied() {
    let workload = WorkloadPlan::Plain(KindPlan::of(&BY_PARTS));
    let factors = vec![levels(&WHOLE, &[16, 256, 4096]), Factor::Connections(vec![1, 2])];
    let plan = Plan { workload, ..varied(1, factors) };
    let found = experiment(&plan, blocks(&plan, 8, |_, _, _, _| 1000.0));
    assert_eq!(found.costs, None);
}
