//! Simulated servers whose truth is known: a queue, and what an attempt at a rate sees of it.

use crate::synthetic;
use duel_model::web::failure;
use duel_model::{
    Arrival, Bound, Distribution, Interval, LoopKind, Nanos, Plan, Promise, Run, RunStatus, SECOND_NS, SearchPlan,
    Series, Slot, SlotRole, Versions, WorkerAudit,
};
use duel_stats::attempt_ns;

const INTERVAL_NS: Nanos = 100_000_000;

/// One server behind a queue, and what disturbs it.
pub(crate) struct Queue {
    /// Time that a request takes, ns.
    pub(crate) service_ns: f64,
    /// Its scatter: 0 for none, 1 for exponential service times.
    pub(crate) scatter: f64,
    /// Standard deviation of the server's own speed from attempt to attempt, as a share.
    pub(crate) wander: f64,
    /// Share of requests that fail.
    pub(crate) errors: f64,
    /// Attempts of these numbers meet a stall of 300 ms in their middle.
    pub(crate) stalled: &'static [usize],
    /// The generator has no CPU time left above this rate.
    pub(crate) generator_per_s: f64,
    /// It is no queue of the server's, but for one of so many connections, each of which takes as long for an op.
    pub(crate) connections: Option<u32>,
    pub(crate) dice: u64,
}

impl Queue {
    pub(crate) fn of(per_s: f64) -> Self {
        Self {
            service_ns: 1e9 / per_s,
            scatter: 0.0,
            wander: 0.0,
            errors: 0.0,
            stalled: &[],
            generator_per_s: f64::INFINITY,
            connections: None,
            dice: 42,
        }
    }

    /// Uniform in [0, 1): SplitMix64 (Steele et al. 2014).
    pub(crate) fn random(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// What an attempt at a rate sees of it: Lindley's recursion, one op after the other.
    pub(crate) fn slot(&mut self, plan: &Plan, rate_per_s: f64, number: usize) -> Slot {
        let length_ns = attempt_ns(plan, rate_per_s) as f64;
        let is_poisson = matches!(plan.load.kind, LoopKind::Open { arrival: Arrival::Poisson, .. });
        let grace_ns = 2.0 * SECOND_NS as f64;
        let mut slot = synthetic::slot(0, 0, 0, length_ns / 1e9);
        (slot.index, slot.role, slot.offered_per_s) = (number as u32, SlotRole::Search, Some(rate_per_s));
        slot.tally = duel_model::Tally::default();
        let (mut due_ns, mut free_ns, mut responses, mut failed) = (0.0, 0.0_f64, Vec::new(), 0);
        let mut intervals = vec![Interval::default(); (length_ns as u64 / INTERVAL_NS) as usize + 200];
        // Box and Muller 1958.
        let normal = (-2.0 * (1.0 - self.random()).ln()).sqrt() * (std::f64::consts::TAU * self.random()).cos();
        let mean_ns = self.service_ns * if self.wander > 0.0 { (self.wander * normal).exp() } else { 1.0 };
        let mut stall_left_ns = if self.stalled.contains(&number) { 300e6 } else { 0.0 };
        while due_ns < length_ns {
            let service_ns = mean_ns * (1.0 - self.scatter - self.scatter * (1.0 - self.random()).ln());
            if due_ns > length_ns / 2.0 {
                free_ns += std::mem::take(&mut stall_left_ns);
            }
            free_ns = free_ns.max(due_ns) + service_ns;
            if free_ns > length_ns + grace_ns {
                slot.tally.unstarted += 1;
                responses.push((length_ns + grace_ns - due_ns) as u64);
            } else {
                slot.tally.started += 1;
                let interval = &mut intervals[(free_ns as u64 / INTERVAL_NS) as usize];
                if self.random() < self.errors {
                    failed += 1;
                    interval.failed += 1;
                } else {
                    slot.tally.ok += 1;
                    interval.ok += 1;
                    interval.response_sum_ns += (free_ns - due_ns) as u64;
                    responses.push((free_ns - due_ns) as u64);
                }
            }
            let gap = if is_poisson { -(1.0 - self.random()).ln() } else { 1.0 };
            due_ns += gap * 1e9 / rate_per_s;
        }
        if failed > 0 {
            slot.tally.failed.insert(failure::STATUS.id(), failed);
        }
        slot.tally.response = Distribution::from_values(responses);
        if let Some(connections) = self.connections {
            let op_ns = (self.service_ns * f64::from(connections)) as u64;
            slot.tally.service = Distribution::from_values((0..slot.tally.ok).map(|_| op_ns));
            slot.elapsed_ns = slot.elapsed_ns.max((self.service_ns * slot.tally.ok as f64) as u64);
        }
        slot.series = Series { interval_ns: INTERVAL_NS, intervals };
        let busy = (rate_per_s / self.generator_per_s).min(1.0);
        slot.audit.workers =
            vec![WorkerAudit { cpu_ns: Some((busy * 1e9) as u64), wall_ns: SECOND_NS, ..WorkerAudit::default() }];
        slot
    }
}

pub(crate) fn plan(promises: &str, arrival: Arrival) -> Plan {
    let mut plan = synthetic::plan(1);
    plan.load.kind = LoopKind::Open { rate_per_s: 0.0, arrival };
    plan.load.bound = Bound::Duration(60 * SECOND_NS);
    plan.load.shape.search =
        Some(SearchPlan { promises: Promise::parse_all(promises).unwrap(), precision: SearchPlan::PRECISION });
    plan
}

/// A run of this plan without any slot.
pub(crate) fn empty_run(plan: &Plan) -> Run {
    Run {
        id: "r".into(),
        started_unix_ms: 0,
        plan: plan.clone(),
        versions: Versions::default(),
        slots: Vec::new(),
        first_contact: vec![None; plan.targets.len()],
        hosts: Vec::new(),
        status: RunStatus::Complete,
        doubts: Vec::new(),
        explanation: None,
        waiting: None,
    }
}
