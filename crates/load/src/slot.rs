//! What workers are told to do in a slot, and what they bring back.

use crate::recorder::Signs;
use duel_model::{Facts, LoopKind, Nanos, Series, Stage, Tally, WorkerAudit};

/// What all workers of a session are to do in one slot.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotOrder {
    /// Closed or open loop.
    pub kind: LoopKind,
    /// No op becomes due after this time from the slot's start; `None`: `ops` bounds it.
    pub duration_ns: Option<Nanos>,
    /// Closed loop: for so long lanes are under load before the slot's time begins. What ends by then is in no figure.
    pub run_up_ns: Nanos,
    /// No more than this many ops, over all workers.
    pub ops: Option<u64>,
    /// Longest time to establish a connection.
    pub connect_timeout_ns: Nanos,
    /// Longest time of a whole op from its start.
    pub op_timeout_ns: Nanos,
    /// After the slot's time, how long ops that are due are still waited for.
    pub grace_ns: Nanos,
    /// Seed of this slot's Poisson arrivals.
    pub seed: u64,
    /// How rate or connections change within the slot, whose `duration_ns` is then theirs; empty: they do not.
    pub stages: Vec<Stage>,
    /// Open loop: an op that could only start later than this after its due time is not sent.
    pub deadline_ns: Option<Nanos>,
    /// Closed loop: each worker has one op under way at a time, on its lanes in turn.
    pub one_at_a_time: bool,
    /// How many of the workers may stay awake for a while when they wait for answers; the others sleep at once.
    pub polling_workers: u32,
    /// They sleep for the rest of the slot where others want their CPUs.
    pub polling_gives_way: bool,
}

impl SlotOrder {
    /// One in which connections, ops, and what is still under way after it may take as long. What bounds it has to be set.
    pub fn of(kind: LoopKind, timeout_ns: Nanos) -> Self {
        Self {
            kind,
            duration_ns: None,
            run_up_ns: 0,
            ops: None,
            connect_timeout_ns: timeout_ns,
            op_timeout_ns: timeout_ns,
            grace_ns: timeout_ns,
            seed: 0,
            stages: Vec::new(),
            deadline_ns: None,
            one_at_a_time: false,
            polling_workers: 0,
            polling_gives_way: true,
        }
    }

    /// When the schedule or the slot's time ends, from the slot's start; `None` where that depends on how fast ops end.
    pub fn planned_ns(&self) -> Option<Nanos> {
        let scheduled_ns = match (self.kind, self.ops) {
            (LoopKind::Open { rate_per_s, .. }, Some(ops)) => Some((ops as f64 * 1e9 / rate_per_s) as Nanos),
            _ => None,
        };
        scheduled_ns.into_iter().chain(self.duration_ns).min()
    }
}

/// What one worker brings back from a slot; nothing where it only reports that it is there.
#[derive(Debug, Default)]
pub(crate) struct WorkerSlot {
    pub(crate) tally: Tally,
    pub(crate) series: Series,
    pub(crate) audit: WorkerAudit,
    /// When the last op ended; `None` if none did.
    pub(crate) last_end_ns: Option<Nanos>,
    /// How long before the slot's time its first ops began, summed over lanes: they are counted whole, so their time is, too. Less than
    /// nothing where the worker ended the run-up late.
    pub(crate) led_ns: i64,
    /// What a closed loop of a set time lost by waiting for stragglers; `None` of other loops.
    pub(crate) drain: Option<Drain>,
    /// Ops waited for a free connection when the slot's time was over.
    pub(crate) had_backlog: bool,
    pub(crate) negotiated: Option<Facts>,
    pub(crate) signs: Signs,
}

/// How the lanes of a worker came to rest after a slot's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drain {
    /// By then lanes have usually come to rest: ops that end later are stragglers.
    pub(crate) usual_end_ns: Nanos,
    /// Time beyond that which lanes spent on stragglers, summed over them.
    pub(crate) straggling_ns: Nanos,
    pub(crate) lanes: u64,
}

/// Lanes that share a busy server come to rest within one response time of each other, lanes whose ops end at random
/// (exponentially) within ln(n) of them. Four medians is what thirty of the latter take.
pub(crate) const USUAL_DRAIN_MEDIANS: Nanos = 4;
