//! The workload: each lane is a child process that does batches of ops.

use crate::child_process::{Said, Silence, Start, Worker};
use crate::schema::{SCHEMA, counter, failure};
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, OpEnd, Progress, Traffic, WorkerId, Workload, WorkloadError,
    WorkloadFactory, monotonic_ns,
};
use duel_model::{FailureKind, Nanos, SECOND_NS, Schema};

/// How long a child may take until it is ready: it loads a library and makes a key.
pub(crate) const READY_NS: Nanos = 10 * SECOND_NS;

/// What all lanes of a target do.
#[derive(Debug, Clone)]
pub(crate) struct Factory {
    pub(crate) start: Start,
    /// The order that names the work.
    pub(crate) work: String,
    /// Ops that a child does in one go. One op of some nanoseconds cannot be ordered and timed by itself; many can.
    pub(crate) batch: u32,
    /// Bytes that an op works on; 0 where it does not work on bytes.
    pub(crate) bytes_per_op: u64,
}

/// Names and texts that a child told of itself.
pub(crate) type ToldFacts = Vec<(String, String)>;

impl Factory {
    /// A child that is ready to work, and what it told of itself.
    pub(crate) fn ready(&self) -> Result<(Worker, ToldFacts), (FailureKind, String)> {
        let mut child = Worker::start(&self.start)
            .map_err(|error| (failure::NOT_STARTED, format!("its child process cannot be started: {error}")))?;
        let deadline_ns = monotonic_ns() + READY_NS;
        let mut facts = Vec::new();
        child.tell(&self.work).map_err(told)?;
        loop {
            match child.hear_until(deadline_ns).map_err(told)? {
                Said::Ready => return Ok((child, facts)),
                // A program that tells facts without end tells nothing.
                Said::Fact(name, text) if facts.len() < 32 => facts.push((name, text)),
                Said::Cannot(why) | Said::Failed(why) => return Err((failure::REFUSED, why)),
                other => return Err((failure::NONSENSE, format!("its child process said {other:?} too early"))),
            }
        }
    }
}

/// A silence as a failure.
pub(crate) fn told(silence: Silence) -> (FailureKind, String) {
    match silence {
        Silence::Ended(how) => (failure::CRASHED, format!("its child process {how}")),
        Silence::Nonsense(what) => (failure::NONSENSE, format!("its child process {what}")),
        Silence::TimedOut => (failure::TIMEOUT, "its child process did not answer in time".to_owned()),
    }
}

impl WorkloadFactory for Factory {
    type Workload = Batches;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<Batches, WorkloadError> {
        let lane = |_| {
            let (child, _) = self.ready().map_err(|(_, text)| WorkloadError(text))?;
            Ok(Lane { child: Some(child), is_watched: false })
        };
        let lanes = (0..lanes).map(lane).collect::<Result<_, _>>()?;
        Ok(Batches { factory: self.clone(), lanes, bytes: 0, cpu_ns: 0 })
    }
}

/// One worker's children.
#[derive(Debug)]
pub(crate) struct Batches {
    factory: Factory,
    lanes: Vec<Lane>,
    bytes: u64,
    /// CPU time of what was done well.
    cpu_ns: u64,
}

#[derive(Debug)]
struct Lane {
    /// `None`: it was lost; the next op starts another one.
    child: Option<Worker>,
    is_watched: bool,
}

impl Batches {
    fn failed(&mut self, lane: LaneId, (kind, text): (FailureKind, String)) -> Progress {
        self.cancel(lane);
        let ops = self.factory.batch;
        Progress::Done(OpEnd { ops, ..OpEnd::noticed(monotonic_ns(), Err(Box::new(Failure { kind, text }))) })
    }

    fn begin(&mut self, lane: LaneId, io: &Io<'_>) -> Result<(), (FailureKind, String)> {
        let Lane { child, is_watched } = &mut self.lanes[lane];
        let child = match child {
            Some(child) => child,
            None => child.insert(self.factory.ready()?.0),
        };
        if !*is_watched {
            io.watch(child.stdout(), lane, Interest::Read)
                .map_err(|error| (failure::NOT_STARTED, format!("its pipe cannot be watched: {error}")))?;
            *is_watched = true;
        }
        child.tell(&format!("run {}", self.factory.batch)).map_err(told)
    }
}

impl Workload for Batches {
    fn start(&mut self, lane: LaneId, _now_ns: Nanos, io: &Io<'_>) -> Progress {
        match self.begin(lane, io) {
            Ok(()) => Progress::Pending,
            Err(why) => self.failed(lane, why),
        }
    }

    fn ready(&mut self, lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        let Some(child) = &mut self.lanes[lane].child else { return Progress::Pending };
        match child.heard() {
            Ok(None) => Progress::Pending,
            // Its own stamp: when we hear of it is no part of the op.
            Ok(Some(Said::Done { end_ns, cpu_ns, .. })) if end_ns <= monotonic_ns() => {
                let ops = self.factory.batch;
                let bytes_in = u64::from(ops) * self.factory.bytes_per_op;
                self.bytes += bytes_in;
                self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
                let arrived_ns = Some(end_ns);
                Progress::Done(OpEnd { ops, bytes_in, arrived_ns, ..OpEnd::noticed(monotonic_ns(), Ok(())) })
            }
            Ok(Some(Said::Failed(why) | Said::Cannot(why))) => self.failed(lane, (failure::REFUSED, why)),
            Ok(Some(_)) => {
                self.failed(lane, (failure::NONSENSE, "its child process said something else than an end".into()))
            }
            Err(silence) => self.failed(lane, told(silence)),
        }
    }

    fn cancel(&mut self, lane: LaneId) {
        // What hangs in a library is ended with its process; dropping the pipe ends that it is watched.
        self.lanes[lane] = Lane { child: None, is_watched: false };
    }

    fn traffic(&self) -> Traffic {
        Traffic { bytes_in: self.bytes, ..Traffic::default() }
    }

    fn take_counters(&mut self) -> Counters {
        let cpu_ns = std::mem::take(&mut self.cpu_ns);
        // A program that tells none does not take none.
        let counted = (cpu_ns > 0).then(|| (counter::CPU.id(), cpu_ns)).into_iter().collect();
        Counters { bytes_in: std::mem::take(&mut self.bytes), counted, ..Counters::default() }
    }
}
