//! Ops as calls that block: pread, pwrite, fsync. Each worker has one op under way.

use crate::buffer::Buffer;
use crate::errors;
use crate::schema::{SCHEMA, failure, phase};
use crate::target::Target;
use crate::walk::{Call, Walk};
use crate::watch::Watch;
use duel_load::{
    Counters, Event, Failure, Io, LaneId, LanesPerWorker, OpEnd, PhaseTimes, Progress, Session, SessionError, Traffic,
    WorkerId, Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Nanos, Schema};
use rustix::io::Errno;
use rustix::io::{pread, pwrite};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes the workers of a session.
#[derive(Debug, Clone)]
struct Factory {
    target: Arc<Target>,
    /// The way of each thread that the user asked for; the threads for its ops in flight share it, as those of a ring do.
    walks: Arc<Vec<Mutex<Walk>>>,
}

/// Opens a session: a thread of ours for each op in flight of each thread.
pub(crate) fn session(target: &Arc<Target>, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
    let walk = |number| Mutex::new(Walk::new(&target.work, target.bytes, (number, threads), target.seed));
    let walks = Arc::new((0..threads).map(walk).collect::<Vec<_>>());
    let factory = Factory { target: Arc::clone(target), walks };
    let ops = threads.saturating_mul(target.work.depth);
    Session::open(factory, ops, ops, stop)
}

impl WorkloadFactory for Factory {
    type Workload = Calls;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, worker: WorkerId, _lanes: usize) -> Result<Calls, WorkloadError> {
        let target = Arc::clone(&self.target);
        Ok(Calls {
            buffer: Buffer::new(target.work.block as usize),
            walks: Arc::clone(&self.walks),
            walk: worker.number as usize / target.work.depth.max(1) as usize,
            watch: Watch::new(Arc::clone(&target), worker),
            round: 0,
            target,
        })
    }

    fn lanes_per_worker(&self) -> LanesPerWorker {
        LanesPerWorker::One
    }
}

/// One worker.
#[derive(Debug)]
struct Calls {
    target: Arc<Target>,
    buffer: Buffer,
    walks: Arc<Vec<Mutex<Walk>>>,
    walk: usize,
    watch: Watch,
    round: u64,
}

impl Calls {
    fn op(&mut self, now_ns: Nanos) -> (Nanos, PhaseTimes, Result<u64, Box<Failure>>) {
        let mut phases = PhaseTimes::NONE;
        if let Some(gone) = self.watch.gone(now_ns) {
            return (monotonic_ns(), phases, Err(gone));
        }
        let (mut step, begins_anew, in_order, part) = {
            let mut walk = self.walks[self.walk].lock().unwrap_or_else(PoisonError::into_inner);
            (walk.next(), walk.begins_anew(), walk.reads_in_order(), walk.part())
        };
        if begins_anew {
            self.watch.pass_begins(part);
        }
        if in_order {
            self.watch.read_ahead(step.offset);
        }
        let (mut since_ns, mut bytes_read) = (now_ns, 0);
        while let Some(call) = step.take() {
            let said = self.call(call, step.offset);
            let end_ns = monotonic_ns();
            phases.set(phase_of(call), end_ns.saturating_sub(since_ns));
            since_ns = end_ns;
            let bytes = match said {
                Ok(bytes) => bytes as u64,
                Err(error) => return (end_ns, phases, Err(Box::new(errors::failed(name_of(call), &error.into())))),
            };
            if let Err(failure) = ended(&self.target, call, bytes, step.offset, self.buffer.get()) {
                return (end_ns, phases, Err(failure));
            }
            match call {
                Call::Read => {
                    bytes_read += bytes;
                    self.watch.read(bytes);
                }
                Call::Write => self.watch.wrote(bytes),
                Call::Flush => {}
            }
        }
        (since_ns, phases, Ok(bytes_read))
    }

    fn call(&mut self, call: Call, offset: u64) -> rustix::io::Result<usize> {
        let target = &self.target;
        if call == Call::Write
            && let Some(content) = target.content()
        {
            self.round += 1;
            content.fill(self.buffer.get_mut(), offset, self.round);
        }
        loop {
            let said = match call {
                Call::Read => pread(&target.file, self.buffer.get_mut(), offset),
                Call::Write => pwrite(&target.file, self.buffer.get(), offset),
                Call::Flush => rustix::fs::fsync(&target.file).map(|()| 0),
            };
            if said != Err(Errno::INTR) {
                return said;
            }
        }
    }
}

/// The phase that a call is counted in.
pub(crate) fn phase_of(call: Call) -> duel_model::Phase {
    match call {
        Call::Read => phase::READ,
        Call::Write => phase::WRITE,
        Call::Flush => phase::FLUSH,
    }
}

/// What a call is named in sentences.
pub(crate) fn name_of(call: Call) -> &'static str {
    match call {
        Call::Read => "read",
        Call::Write => "write",
        Call::Flush => "flush",
    }
}

/// Whether a call did all that it was asked to.
#[inline]
pub(crate) fn ended(target: &Target, call: Call, bytes: u64, offset: u64, block: &[u8]) -> Result<(), Box<Failure>> {
    let wanted = target.work.block;
    if call == Call::Flush {
        return Ok(());
    }
    if bytes < wanted {
        let text = format!("a {} at byte {offset} did {bytes} of {wanted} bytes", name_of(call));
        return Err(Box::new(Failure { kind: failure::SHORT, text }));
    }
    if call == Call::Read {
        return target.check(block, offset).map_err(|text| Box::new(Failure { kind: failure::WRONG_DATA, text }));
    }
    Ok(())
}

impl Workload for Calls {
    fn start(&mut self, _lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        let (end_ns, phases, said) = self.op(now_ns);
        // A call that blocks cannot be given up: whether it was in time is told when it is over.
        let said = said.and_then(|bytes| match end_ns.saturating_sub(now_ns) > self.target.op_timeout_ns {
            true => {
                Err(Box::new(Failure { kind: failure::TIMEOUT, text: "an op took longer than --timeout".to_owned() }))
            }
            false => Ok(bytes),
        });
        let bytes_in = said.as_ref().map_or(0, |bytes| *bytes);
        Progress::Done(OpEnd { phases, bytes_in, ..OpEnd::noticed(end_ns, said.map(drop)) })
    }

    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }

    fn cancel(&mut self, _lane: LaneId) {}

    fn slot_ended(&mut self) {
        self.watch.slot_ended();
    }

    fn traffic(&self) -> Traffic {
        self.watch.traffic
    }

    fn take_counters(&mut self) -> Counters {
        self.watch.take()
    }
}
