//! What became of each op, for who wants more than counts and distributions.

use crate::workload::{Failure, OpEnd, PhaseTimes};
use duel_model::Nanos;
use std::sync::mpsc::Sender;

/// One op that ended. Times count from the slot's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpRecord {
    /// When it should have started.
    pub due_ns: Nanos,
    /// When it did.
    pub start_ns: Nanos,
    /// When it was over.
    pub end_ns: Nanos,
    /// Where the time went.
    pub phases: PhaseTimes,
    /// Status of its complete response.
    pub status: Option<u16>,
    /// Bytes of its complete response's body.
    pub body_bytes: u64,
    /// Why it failed, if it did.
    pub failure: Option<Box<Failure>>,
}

/// Where workers send their records, in batches several times per second. It has no bound: a worker that waited for its
/// reader would not measure the server.
pub(crate) type OpLog = Sender<Vec<OpRecord>>;

impl OpRecord {
    pub(crate) fn new(slot_start_ns: Nanos, due_ns: Nanos, start_ns: Nanos, op: &OpEnd) -> Self {
        Self {
            due_ns: due_ns.saturating_sub(slot_start_ns),
            start_ns: start_ns.saturating_sub(slot_start_ns),
            end_ns: op.over_ns().saturating_sub(slot_start_ns),
            phases: op.phases,
            status: op.status,
            body_bytes: op.body_bytes,
            failure: op.outcome.as_ref().err().cloned(),
        }
    }

    /// End minus due time.
    pub fn response_ns(&self) -> Nanos {
        self.end_ns.saturating_sub(self.due_ns)
    }
}
