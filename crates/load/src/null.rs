//! Ops that do nothing: what the generator itself costs.

use crate::{
    Counters, Event, Io, LaneId, OpEnd, PlainKind, Prepared, Progress, Traffic, WorkerId, Workload, WorkloadError,
    WorkloadFactory, monotonic_ns,
};
use duel_model::{Facts, KindPlan, Nanos, Plan, Schema};
use std::sync::Arc;

/// The kind. Its targets have no address of their own: who asks for it says so.
#[derive(Debug, Clone, Copy)]
pub struct NullKind;

impl PlainKind for NullKind {
    fn schema(&self) -> &'static Schema {
        &duel_model::null::SCHEMA
    }

    fn claims(&self, _address: &str) -> bool {
        false
    }

    fn check(&self, _kind: &KindPlan, _address: &str) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn prepare(&self, _plan: &Plan, _kind: &KindPlan, _address: &str) -> Result<Prepared, WorkloadError> {
        Ok(Prepared { facts: Facts::default(), opens: Arc::new(NullFactory) })
    }
}

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

    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Null, WorkloadError> {
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
