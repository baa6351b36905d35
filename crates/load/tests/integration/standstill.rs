//! When the loop does not run although it had to, the audit says so; when it works or waits, it does not.

use crate::common::{self, order};
use duel_load::{
    Counters, Event, Interest, Io, LaneId, OpEnd, Progress, Session, SlotRecord, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns, thread_cpu_ns,
};
use duel_model::{LoopKind, MILLISECOND_NS, Nanos, Schema, Standstill};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Far beyond what a loop that runs takes for a turn.
const LONG_NS: Nanos = 400 * MILLISECOND_NS;

/// What happens for [`LONG_NS`] in the third op.
#[derive(Clone, Copy, PartialEq)]
enum Event3 {
    /// The thread does not run: all that it sees of being stopped.
    Stopped,
    /// The thread uses its CPU.
    Works,
    /// The other side lets the loop wait.
    ServerStalls,
    /// The op blocks, as that of a workload which is made that way.
    Blocks,
}

/// One lane: a socket pair of which the other end answers at once, but for the third time.
struct Pair {
    third: Event3,
    ours: UnixStream,
    theirs: UnixStream,
    ops: u32,
    /// For how long the thread did not run while it worked.
    interrupted_ns: Arc<AtomicU64>,
}

struct Factory(Event3, Arc<AtomicU64>);

impl WorkloadFactory for Factory {
    type Workload = Pair;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Pair, WorkloadError> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        Ok(Pair { third: self.0, ours, theirs, ops: 0, interrupted_ns: Arc::clone(&self.1) })
    }
}

fn done() -> Progress {
    Progress::Done(OpEnd::noticed(monotonic_ns(), Ok(())))
}

impl Workload for Pair {
    fn start(&mut self, lane: LaneId, _now_ns: Nanos, io: &Io<'_>) -> Progress {
        self.ops += 1;
        if self.ops == 1 {
            io.watch(&self.ours, lane, Interest::Read).unwrap();
        }
        match self.third {
            Event3::Blocks if self.ops == 3 => {
                std::thread::sleep(Duration::from_nanos(LONG_NS));
                return done();
            }
            Event3::ServerStalls if self.ops == 3 => {
                let mut theirs = self.theirs.try_clone().unwrap();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_nanos(LONG_NS));
                    theirs.write_all(b"x").unwrap();
                });
            }
            _ => self.theirs.write_all(b"x").unwrap(),
        }
        Progress::Pending
    }
    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        self.ours.read_exact(&mut [0]).unwrap();
        match self.third {
            Event3::Stopped if self.ops == 3 => std::thread::sleep(Duration::from_nanos(LONG_NS)),
            Event3::Works if self.ops == 3 => {
                let (began_ns, until_ns) = (monotonic_ns(), thread_cpu_ns().unwrap() + LONG_NS);
                while thread_cpu_ns().unwrap() < until_ns {}
                self.interrupted_ns.store((monotonic_ns() - began_ns).saturating_sub(LONG_NS), Ordering::Relaxed);
            }
            _ => {}
        }
        done()
    }
    fn cancel(&mut self, _lane: LaneId) {}
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

/// What was seen of it; and for how long the thread was really interrupted in its work.
fn standstill(third: Event3) -> (Standstill, Nanos) {
    let interrupted_ns = Arc::new(AtomicU64::new(0));
    let mut session =
        Session::open(Factory(third, Arc::clone(&interrupted_ns)), 1, 1, Arc::new(AtomicBool::new(false))).unwrap();
    let order = order(LoopKind::Closed { think_ns: 0 }, None, Some(6));
    let record: SlotRecord = session.run_slot(&order, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(record.tally.ok, 6);
    (record.audit.workers[0].standstill, interrupted_ns.load(Ordering::Relaxed))
}

#[test]
fn a_loop_that_was_stopped_says_for_how_long() {
    let (seen, _) = standstill(Event3::Stopped);
    assert!(seen.count > 0 && seen.longest_ns >= LONG_NS / 2, "{seen:?}");
    assert!(seen.total_ns >= seen.longest_ns);
}

#[test]
fn a_server_that_stalls_and_a_workload_that_blocks_are_no_standstill() {
    for third in [Event3::ServerStalls, Event3::Blocks] {
        // A busy machine may add some of its own, but hardly each time.
        let least_ns = (0..4).map(|_| standstill(third).0.longest_ns).min();
        assert!(least_ns < Some(LONG_NS / 2), "{least_ns:?}");
    }
}

#[test]
fn a_loop_that_works_does_not_stand_still() {
    // A busy machine interrupts the work, which is a standstill: the work itself is none.
    let (seen, interrupted_ns) = standstill(Event3::Works);
    assert!(seen.longest_ns < interrupted_ns + LONG_NS / 2, "{seen:?}, interrupted for {interrupted_ns} ns");
}
