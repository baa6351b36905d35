//! The design of an experiment: what is run in which order. Ops do nothing, so that no server is needed.

use duel_lab::{Lab, LabError, Watcher};
use duel_model::{
    Bound, ComparePlan, Factor, LoadPlan, MILLISECOND_NS, Plan, Run, RunStatus, SECOND_NS, Slot, SlotRole, Target,
    WorkloadPlan,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Nobody watches.
struct Unwatched;

impl Watcher for Unwatched {}

/// Ends the experiment once so many slots are there.
struct Impatient {
    slots_left: u32,
    stop: Arc<AtomicBool>,
}

impl Watcher for Impatient {
    fn slot(&mut self, _: &Slot) {
        self.slots_left = self.slots_left.saturating_sub(1);
        if self.slots_left == 0 {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn plan(targets: usize, seed: u64, factors: Vec<Factor>) -> Plan {
    let target = |index: usize| Target { name: format!("T{index}"), address: "null:".into(), host: None };
    Plan {
        targets: (0..targets).map(target).collect(),
        workload: WorkloadPlan::NULL,
        load: LoadPlan {
            threads: 2,
            bound: Bound::Duration(2 * SECOND_NS),
            connect_timeout_ns: SECOND_NS,
            op_timeout_ns: SECOND_NS,
            busy_poll: duel_model::BusyPoll::Never,
            ..LoadPlan::default()
        },
        compare: ComparePlan {
            seed,
            max_load_ns: 2 * SECOND_NS,
            slot_ns: Some(5 * MILLISECOND_NS),
            ..ComparePlan::default()
        },
        factors,
    }
}

fn run(plan: &Plan) -> Run {
    Lab::new(Arc::default()).run(plan, &mut Unwatched).unwrap()
}

/// Treatment, target and repeat of each measured slot in the order in which they ran, by block.
fn measured(run: &Run) -> BTreeMap<u32, Vec<(u32, usize, u32)>> {
    let mut blocks: BTreeMap<u32, Vec<(u32, usize, u32)>> = BTreeMap::new();
    for slot in run.slots.iter().filter(|slot| slot.role == SlotRole::Measured) {
        blocks.entry(slot.block).or_default().push((slot.treatment.unwrap(), slot.target, slot.repeat));
    }
    blocks
}

/// The order of treatments in a block.
fn treatments(block: &[(u32, usize, u32)]) -> Vec<u32> {
    let mut order: Vec<u32> = block.iter().map(|(treatment, ..)| *treatment).collect();
    order.dedup();
    order
}

#[test]
fn blocks_are_complete_mirrored_and_in_random_order() {
    let factors = vec![Factor::Connections(vec![1, 2, 3]), Factor::Rate(vec![2000.0, 4000.0])];
    let mut plan = plan(3, 7, factors);
    // For three blocks on a machine that has ten times as little time for us as they take.
    plan.compare.max_load_ns = 6 * SECOND_NS;
    let run = run(&plan);
    assert_eq!(run.status, RunStatus::Complete);
    let blocks = measured(&run);
    assert!(blocks.len() >= 3, "{} blocks", blocks.len());
    for block in blocks.values() {
        let order = treatments(block);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..6).collect::<Vec<_>>(), "each treatment once: {order:?}");
        for group in block.chunks(6) {
            let there: Vec<usize> = group[..3].iter().map(|(_, target, _)| *target).collect();
            let back: Vec<usize> = group[3..].iter().rev().map(|(_, target, _)| *target).collect();
            assert_eq!(there, back, "the second half is the first one mirrored");
            assert!(group[..3].iter().all(|slot| slot.2 == 0) && group[3..].iter().all(|slot| slot.2 == 1));
        }
    }
    let orders: BTreeSet<Vec<u32>> = blocks.values().map(|block| treatments(block)).collect();
    assert!(orders.len() > 1, "not always the same order");
    // Every treatment was warmed up, and its slots had its workers: no more than it has connections.
    for treatment in 0..6 {
        let of = |role: &SlotRole| {
            run.slots.iter().filter(|s| s.treatment == Some(treatment) && s.role == *role).collect::<Vec<_>>()
        };
        assert!(!of(&SlotRole::Warmup).is_empty());
        let workers = if treatment < 2 { 1 } else { 2 };
        assert!(of(&SlotRole::Measured).iter().all(|slot| slot.audit.workers.len() == workers));
    }
}

#[test]
fn the_seed_makes_the_order() {
    let orders = |seed| {
        let run = run(&plan(2, seed, vec![Factor::Connections(vec![1, 2, 3, 4])]));
        // How many blocks fit depends on the machine.
        measured(&run).into_values().take(2).collect::<Vec<_>>()
    };
    assert_eq!(orders(1), orders(1));
    assert_ne!(orders(1), orders(2));
}

#[test]
fn a_single_target_has_one_slot_of_each_treatment_in_a_block() {
    let run = run(&plan(1, 1, vec![Factor::Connections(vec![1, 2])]));
    assert!(measured(&run).values().all(|block| block.len() == 2));
    let experiment = duel_lab::judge(&run).experiment.unwrap();
    assert!(experiment.blocks >= 3 && experiment.factors[0].levels.len() == 2);
}

#[test]
fn an_interrupted_experiment_keeps_its_complete_blocks() {
    let stop: Arc<AtomicBool> = Arc::default();
    let mut watcher = Impatient { slots_left: 60, stop: Arc::clone(&stop) };
    let plan = plan(2, 1, vec![Factor::Connections(vec![1, 2])]);
    let mut run = Lab::new(stop).run(&plan, &mut watcher).unwrap();
    assert_eq!(run.status, RunStatus::Interrupted(duel_model::Interruption::User));
    // Blocks in which a busy machine kept the generator from working are left out as well; here it is about interruption alone.
    for worker in run.slots.iter_mut().flat_map(|slot| &mut slot.audit.workers) {
        worker.standstill = duel_model::Standstill::default();
    }
    let blocks = measured(&run);
    let complete = blocks.values().filter(|block| block.len() == 8).count() as u32;
    assert!(complete >= 1 && complete + 1 >= blocks.len() as u32, "{blocks:?}");
    assert_eq!(duel_lab::judge(&run).experiment.unwrap().blocks, complete);
}

#[test]
fn what_multiplies_to_nothing_or_beyond_reason_is_refused() {
    for levels in [vec![], (1..=201).collect()] {
        let error = Lab::new(Arc::default()).run(&plan(1, 1, vec![Factor::Connections(levels)]), &mut Unwatched);
        assert!(matches!(error, Err(LabError::Plan(_))));
    }
}
