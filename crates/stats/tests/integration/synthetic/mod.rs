//! Plans and slots made up for tests: whatever a test does not say is unremarkable.

use duel_model::{
    Arrival, Bound, Call, ComparePlan, Distribution, LoadPlan, LoopKind, Metric, Plan, Slot, SlotRole, Tally, Target,
    Verdict, WorkerAudit, WorkloadPlan,
};
use duel_stats::{SlotFigure, Stop, Wanted, early_stop};

/// A closed loop of 4 connections on targets named A, B, C, ...
pub(crate) fn plan(targets: usize) -> Plan {
    Plan {
        targets: ('A'..='Z')
            .take(targets)
            .map(|name| Target { name: name.into(), address: "null:".into(), host: None })
            .collect(),
        workload: WorkloadPlan::Http(Box::default()),
        load: LoadPlan {
            connections: 4,
            bound: Bound::Ops(1),
            connect_timeout_ns: 1,
            op_timeout_ns: 1,
            busy_poll: duel_model::BusyPoll::Never,
            ..LoadPlan::default()
        },
        compare: ComparePlan::default(),
        factors: vec![],
    }
}

/// The same as an open loop of 1000 ops/s.
pub(crate) fn open_plan(targets: usize) -> Plan {
    let mut plan = plan(targets);
    plan.load.kind = LoopKind::Open { rate_per_s: 1000.0, arrival: Arrival::Poisson };
    plan
}

/// A slot of a million ok ops in `elapsed_s`: its rate is known to 9 digits. No latencies.
pub(crate) fn slot(block: u32, repeat: u32, target: usize, elapsed_s: f64) -> Slot {
    Slot {
        index: block * 100 + repeat * 10 + target as u32,
        block,
        repeat,
        elapsed_ns: (elapsed_s * 1e9).round() as u64,
        tally: Tally { started: 1_000_000, ok: 1_000_000, ..Tally::default() },
        ..Slot::empty(target, SlotRole::Measured)
    }
}

/// Whether these slots suffice.
pub(crate) fn stop(slots: &[Slot], plan: &Plan) -> Stop {
    early_stop(slots.iter().map(|slot| SlotFigure::of(slot, plan)), plan, Wanted::Verdict)
}

/// Blocks of two slots for each target; `elapsed_s(block, repeat, target)`.
pub(crate) fn blocks(count: u32, targets: usize, mut elapsed_s: impl FnMut(u32, u32, usize) -> f64) -> Vec<Slot> {
    let mut slots = Vec::new();
    for block in 0..count {
        for repeat in 0..2 {
            for target in 0..targets {
                slots.push(slot(block, repeat, target, elapsed_s(block, repeat, target)));
            }
        }
    }
    slots
}

/// Fixed noise of about 1 %, different for each slot.
pub(crate) fn ripple(block: u32, repeat: u32, target: usize) -> f64 {
    let mixed = (block * 37 + repeat * 11 + target as u32 * 17 + 5) % 23;
    1.0 + (f64::from(mixed) - 11.0) / 1100.0
}

/// Gives the slot this many equally spaced response times around `median_ns`, from half of it to half more.
pub(crate) fn respond(slot: &mut Slot, ops: u64, median_ns: f64) {
    let values = (0..ops).map(|i| (median_ns * (0.5 + (i as f64 + 0.5) / ops as f64)) as u64);
    slot.tally.response = Distribution::from_values(values);
    slot.tally.service = slot.tally.response.clone();
    slot.tally.started = ops;
    slot.tally.ok = ops;
}

/// Makes the generator this busy in the slot.
pub(crate) fn busy(slot: &mut Slot, share: f64) {
    slot.audit.workers =
        vec![WorkerAudit { cpu_ns: Some((share * 1e9) as u64), wall_ns: 1_000_000_000, ..WorkerAudit::default() }];
}

/// The call on a target in a metric.
pub(crate) fn call(verdict: &Verdict, target: &str, metric: Metric) -> Call {
    verdict.pairs.iter().find(|pair| pair.target == target && pair.metric == metric).expect("judged").call
}
