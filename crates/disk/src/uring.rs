//! Ops through an io_uring: a worker has as many in flight as it has lanes, and hands them over in batches.

use crate::calls::{ended, name_of, phase_of};
use crate::errors;
use crate::ring::Ring;
use crate::schema::SCHEMA;
use crate::target::Target;
use crate::walk::{Call, Step, Walk};
use crate::watch::Watch;
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Nanos, Schema};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// How often a turn hears of ops that have ended. What is in the page cache ends at once, and could go on for ever.
const BATCHES_PER_TURN: u32 = 16;

/// Slots for each lane. One more than each needs: ops go on while those that were given up are still with the kernel. No more than
/// that, for a device that hangs keeps memory and work for ever.
const SLOTS_PER_LANE: usize = 2;

/// Makes the workers of a session.
#[derive(Debug, Clone)]
pub(crate) struct Factory {
    pub(crate) target: Arc<Target>,
}

impl WorkloadFactory for Factory {
    type Workload = Rings;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, worker: WorkerId, lanes: usize) -> Result<Rings, WorkloadError> {
        let target = Arc::clone(&self.target);
        let ring = Ring::new(Arc::clone(&target.file), lanes, target.work.block as usize)
            .map_err(|error| errors::cannot(format!("an io_uring cannot be made: {}", errors::why(&error))))?;
        Ok(Rings {
            lanes: (0..lanes).map(|slot| Lane::new(Some(slot))).collect(),
            slots: (0..lanes).map(Some).collect(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            walk: Walk::new(&target.work, target.bytes, (worker.number, worker.of), target.seed),
            watch: Watch::new(Arc::clone(&target), worker),
            is_watched: false,
            left: 0,
            noticed_ns: 0,
            batches: 0,
            round: 0,
            ring,
            target,
        })
    }

    fn lanes_per_connection(&self) -> usize {
        self.target.work.depth as usize
    }
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Rings {
    target: Arc<Target>,
    ring: Ring,
    lanes: Vec<Lane>,
    /// Which lane a slot of the ring carries an op for; `None`: it was given up, or the slot is free.
    slots: Vec<Option<LaneId>>,
    /// Slots that no lane has.
    free: Vec<usize>,
    /// Lanes whose op has begun and waits for a slot: a device that hangs is given no more work than it has.
    waiting: VecDeque<LaneId>,
    walk: Walk,
    watch: Watch,
    is_watched: bool,
    /// So many calls are left of those that were told of when `noticed_ns` was looked at: they had all ended by then. What is told
    /// of later may have begun after it.
    left: usize,
    noticed_ns: Nanos,
    batches: u32,
    round: u64,
}

/// A place for an op.
#[derive(Debug)]
struct Lane {
    /// `None`: the kernel has kept the one that it had.
    slot: Option<usize>,
    step: Step,
    call: Option<Call>,
    /// When the call under way began.
    since_ns: Nanos,
    phases: PhaseTimes,
    bytes_read: u64,
}

impl Lane {
    fn new(slot: Option<usize>) -> Self {
        Self { slot, step: Step::default(), call: None, since_ns: 0, phases: PhaseTimes::NONE, bytes_read: 0 }
    }
}

impl Rings {
    /// Begins the op's next call; `None`: there is none.
    #[inline]
    fn next_call(&mut self, lane: LaneId, now_ns: Nanos) -> Option<Result<(), Box<Failure>>> {
        let Lane { slot, step, call, since_ns, .. } = &mut self.lanes[lane];
        *call = step.take();
        let (call, slot, offset) = ((*call)?, (*slot)?, step.offset);
        *since_ns = now_ns;
        let begun = self.hand_over(call, slot, offset);
        Some(begun.map_err(|error| Box::new(errors::failed(name_of(call), &error))))
    }

    fn hand_over(&mut self, call: Call, slot: usize, offset: u64) -> io::Result<()> {
        if call == Call::Write
            && let (Some(content), Some(block)) = (self.target.content(), self.ring.buffer(slot))
        {
            self.round += 1;
            content.fill(block, offset, self.round);
        }
        match call {
            Call::Read => self.ring.read(slot, offset),
            Call::Write => self.ring.write(slot, offset),
            Call::Flush => self.ring.flush(slot),
        }
    }

    /// A slot for a lane that has none; `None`: the kernel has all that there may be.
    fn slot_for(&mut self, lane: LaneId) -> Option<usize> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < SLOTS_PER_LANE * self.lanes.len() => {
                self.slots.push(None);
                self.ring.add_buffer(self.target.work.block as usize)
            }
            None => return None,
        };
        self.slots[slot] = Some(lane);
        Some(slot)
    }

    /// A slot whose op was given up long ago is free: who waits for one begins.
    fn slot_came_back(&mut self, slot: usize) -> Option<(LaneId, OpEnd)> {
        self.free.push(slot);
        let lane = self.waiting.pop_front()?;
        self.lanes[lane].slot = self.slot_for(lane);
        // The op has waited since it began.
        match self.next_call(lane, self.lanes[lane].since_ns)? {
            Ok(()) => None,
            Err(failure) => Some((lane, OpEnd::noticed(self.noticed_ns, Err(failure)))),
        }
    }

    /// A call has ended; answers the end of its op, if that was its last.
    fn call_ended(&mut self, slot: usize, said: io::Result<usize>) -> Option<(LaneId, OpEnd)> {
        let Some(lane) = self.slots[slot] else {
            return self.slot_came_back(slot);
        };
        let passing = |error: &io::Error| {
            [Errno::AGAIN, Errno::INTR].map(|errno| Some(errno.raw_os_error())).contains(&error.raw_os_error())
        };
        let (said, again) = match said {
            Err(error) if passing(&error) => (Err(error), self.lanes[lane].call),
            said => (said, None),
        };
        let said = match again {
            // The system could not do it just now: no answer to the op.
            Some(call) => match self.hand_over(call, slot, self.lanes[lane].step.offset) {
                Ok(()) => return None,
                Err(_) => said,
            },
            None => said,
        };
        let now = self.noticed_ns;
        let Lane { step, call, since_ns, phases, bytes_read, .. } = &mut self.lanes[lane];
        let call = (*call)?;
        phases.set(phase_of(call), now.saturating_sub(*since_ns));
        let said = match said {
            Ok(bytes) => {
                let bytes = bytes as u64;
                match call {
                    Call::Read => {
                        *bytes_read += bytes;
                        self.watch.read(bytes);
                    }
                    Call::Write => self.watch.wrote(bytes),
                    Call::Flush => {}
                }
                let block = self.ring.buffer(slot).map_or(&[][..], |block| &*block);
                ended(&self.target, call, bytes, step.offset, block)
            }
            Err(error) => Err(Box::new(errors::failed(name_of(call), &error))),
        };
        let outcome = match said {
            Ok(()) => match self.next_call(lane, now) {
                Some(Ok(())) => return None,
                Some(Err(failure)) => Err(failure),
                None => Ok(()),
            },
            Err(failure) => Err(failure),
        };
        let Lane { phases, bytes_read, .. } = &self.lanes[lane];
        Some((lane, OpEnd { phases: *phases, bytes_in: *bytes_read, ..OpEnd::noticed(now, outcome) }))
    }

    /// The next op that has ended; lets what was begun leave.
    fn next_end(&mut self) -> Option<(LaneId, OpEnd)> {
        let mut attempts = 0;
        loop {
            while self.left > 0 {
                self.left -= 1;
                if let Some((slot, said)) = self.ring.ended()
                    && let Some(end) = self.call_ended(slot, said)
                {
                    return Some(end);
                }
            }
            // When a turn has had its share, the rest is heard of in the next one: the ring stays readable.
            let is_over = self.batches >= BATCHES_PER_TURN;
            if !is_over {
                self.left = self.ring.told();
                if self.left > 0 {
                    self.noticed_ns = monotonic_ns();
                    self.batches += 1;
                    continue;
                }
            }
            if !self.ring.has_unsent() && !self.ring.is_pending() {
                return None;
            }
            // What was begun leaves in any case: nothing would wake us otherwise. The kernel may take several attempts.
            attempts += 1;
            if self.ring.enter().is_err() || is_over || attempts >= BATCHES_PER_TURN {
                return None;
            }
        }
    }

    fn begin(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Result<(), Box<Failure>> {
        if !self.is_watched {
            io.watch(self.ring.fd(), 0, Interest::Read).map_err(|error| errors::failed("wait", &error))?;
            self.is_watched = true;
        }
        self.begin_op(lane, now_ns)
    }

    fn begin_op(&mut self, lane: LaneId, now_ns: Nanos) -> Result<(), Box<Failure>> {
        if let Some(gone) = self.watch.gone(now_ns) {
            return Err(gone);
        }
        let slot = self.lanes[lane].slot.or_else(|| self.slot_for(lane));
        let fresh = Lane { step: self.walk.next(), since_ns: now_ns, ..Lane::new(slot) };
        if self.walk.begins_anew() {
            self.watch.pass_begins(self.walk.part());
        }
        if self.walk.reads_in_order() {
            self.watch.read_ahead(fresh.step.offset);
        }
        self.lanes[lane] = fresh;
        if slot.is_none() {
            self.waiting.push_back(lane);
            return Ok(());
        }
        self.next_call(lane, now_ns).unwrap_or(Ok(()))
    }
}

impl Workload for Rings {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        match self.begin(lane, now_ns, io) {
            Ok(()) => Progress::Pending,
            Err(failure) => Progress::Done(OpEnd::noticed(monotonic_ns(), Err(failure))),
        }
    }

    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        // What has ended is told by `further`, whichever lane it is of.
        Progress::Pending
    }

    fn turn_begins(&mut self) {
        self.batches = 0;
    }

    fn further(&mut self, _io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        self.next_end()
    }

    fn cancel(&mut self, lane: LaneId) {
        self.waiting.retain(|waiting| *waiting != lane);
        let mut slot = self.lanes[lane].slot;
        // The kernel has the buffer until the call ends: the lane goes on with another one.
        if let Some(kept) = slot.filter(|slot| self.ring.buffer(*slot).is_none()) {
            self.slots[kept] = None;
            slot = None;
        }
        self.lanes[lane] = Lane::new(slot);
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let Lane { call, since_ns, phases, .. } = &self.lanes[lane];
        let mut phases = *phases;
        if let Some(call) = call {
            phases.set(phase_of(*call), now_ns.saturating_sub(*since_ns));
        }
        phases
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::settings::Work;
    use duel_model::{Id, KindPlan, SECOND_NS};
    use std::sync::atomic::AtomicBool;

    /// One worker on a work file; `None`: no io_uring here.
    fn rings(folder: &std::path::Path, lanes: usize) -> Option<Rings> {
        if let Err(error) = crate::ring::is_allowed() {
            println!("skipped: no io_uring here: {error}");
            return None;
        }
        let settings = [("size", "65536"), ("engine", "uring")];
        let settings = settings.into_iter().map(|(name, value)| (Id::new(name), value.to_owned())).collect();
        let work = Work::of(&KindPlan { settings, ..KindPlan::of(&SCHEMA) }).unwrap();
        let place = Place::of(folder.to_str().unwrap()).unwrap();
        let target = Target::ready(work, place, 1, 1, &AtomicBool::new(false)).unwrap();
        Some(Factory { target: Arc::new(target) }.make(WorkerId::ONLY, lanes).unwrap())
    }

    fn start(rings: &mut Rings, lane: LaneId) {
        rings.begin_op(lane, monotonic_ns()).unwrap();
    }

    /// Hands over what was begun, and waits until so many calls have ended.
    fn until_told(rings: &mut Rings, calls: usize) {
        let until_ns = monotonic_ns() + 20 * SECOND_NS;
        while rings.ring.told() < calls {
            rings.ring.enter().unwrap();
            assert!(monotonic_ns() < until_ns, "no call ends");
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_op_that_was_begun_after_others_were_told_of_does_not_end_when_they_did() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut rings) = rings(folder.path(), 2) else { return };
        rings.turn_begins();
        start(&mut rings, 0);
        until_told(&mut rings, 1);
        let (lane, first) = rings.next_end().unwrap();
        let begun_ns = monotonic_ns();
        start(&mut rings, 1);
        until_told(&mut rings, 1);
        let (other, second) = rings.next_end().unwrap();
        assert_eq!((lane, other), (0, 1));
        assert!(second.end_ns >= begun_ns, "{} {begun_ns} {}", first.end_ns, second.end_ns);
        assert!(rings.next_end().is_none());
    }

    #[test]
    fn a_turn_ends_however_fast_the_device_is() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut rings) = rings(folder.path(), 1) else { return };
        rings.turn_begins();
        let mut ends = 0;
        start(&mut rings, 0);
        while rings.next_end().is_some() {
            ends += 1;
            start(&mut rings, 0);
            // As if it had ended at once.
            until_told(&mut rings, 1);
            assert!(ends <= BATCHES_PER_TURN, "the turn has no end");
        }
    }

    #[test]
    fn a_device_that_hangs_is_given_no_more_work_with_each_op_that_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut rings) = rings(folder.path(), 1) else { return };
        rings.turn_begins();
        // Nothing is handed over yet: so it is as if the device hung.
        for _ in 0..5 {
            start(&mut rings, 0);
            rings.cancel(0);
        }
        start(&mut rings, 0);
        assert_eq!((rings.slots.len(), rings.waiting.len()), (SLOTS_PER_LANE, 1));
        let until_ns = monotonic_ns() + 20 * SECOND_NS;
        let (lane, end) = loop {
            rings.turn_begins();
            if let Some(end) = rings.next_end() {
                break end;
            }
            assert!(monotonic_ns() < until_ns, "who waits never begins");
        };
        assert_eq!((lane, end.outcome.is_ok(), rings.waiting.len()), (0, true, 0));
        start(&mut rings, 0);
        assert!(rings.lanes[0].call.is_some() && rings.waiting.is_empty(), "what came back is used");
    }

    #[test]
    fn a_call_that_the_system_could_not_do_just_now_is_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut rings) = rings(folder.path(), 1) else { return };
        for errno in [Errno::AGAIN, Errno::INTR] {
            rings.turn_begins();
            start(&mut rings, 0);
            until_told(&mut rings, 1);
            let (slot, _) = rings.ring.ended().unwrap();
            assert!(rings.call_ended(slot, Err(errno.into())).is_none());
            until_told(&mut rings, 1);
            assert!(rings.next_end().unwrap().1.outcome.is_ok());
        }
    }
}
