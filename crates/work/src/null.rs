//! Ops that do nothing: what the generator itself costs.

use duel_load::{
    Counters, Event, Io, LaneId, OpEnd, Progress, Traffic, Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Nanos, Schema};

/// Makes [`Null`] workloads.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullFactory;

/// The simplest workload: every op is over as soon as it is started.
#[derive(Debug)]
pub struct Null;

impl WorkloadFactory for NullFactory {
    type Workload = Null;

    fn schema(&self) -> &'static Schema {
        &duel_model::null::SCHEMA
    }

    fn make(&self, _lanes: usize) -> Result<Null, WorkloadError> {
        Ok(Null)
    }
}

impl Workload for Null {
    #[inline]
    fn start(&mut self, _lane: LaneId, _now_ns: Nanos, _io: &Io<'_>) -> Progress {
        Progress::Done(OpEnd::noticed(monotonic_ns(), Ok(())))
    }

    #[inline]
    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }

    fn cancel(&mut self, _lane: LaneId) {}

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}
