//! The driver's promises, held against workloads whose truth is known.

use crate::common::{self, order};
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, LanesPerWorker, OpEnd, PhaseTimes, Progress, Session, SlotOrder,
    SlotRecord, Traffic, WorkerId, Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Arrival, FailureKind, LoopKind, MILLISECOND_NS, Nanos, SECOND_NS, Schema};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CLOSED: LoopKind = LoopKind::Closed { think_ns: 0 };

fn done(outcome: Result<(), FailureKind>) -> Progress {
    let outcome = outcome.map_err(|kind| Box::new(Failure { kind, text: "as told".into() }));
    Progress::Done(OpEnd::noticed(monotonic_ns(), outcome))
}

/// Blocks for a set time in each op, and fails every `fail_every`-th.
#[derive(Clone, Copy)]
struct Blocking {
    op_ns: Nanos,
    fail_every: Option<u64>,
    lanes: LanesPerWorker,
    count: u64,
}

impl WorkloadFactory for Blocking {
    type Workload = Self;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Self, WorkloadError> {
        Ok(*self)
    }
    fn lanes_per_worker(&self) -> LanesPerWorker {
        self.lanes
    }
}

impl Workload for Blocking {
    fn start(&mut self, _lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        while monotonic_ns() < now_ns + self.op_ns {
            std::thread::sleep(std::time::Duration::from_nanos(self.op_ns / 10));
        }
        self.count += 1;
        let fails = self.fail_every.is_some_and(|every| self.count.is_multiple_of(every));
        done(if fails { Err(common::LOST) } else { Ok(()) })
    }
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

/// Event-driven: each lane is a socket pair that answers at once, or never.
struct Paired {
    lanes: Vec<(UnixStream, UnixStream, bool, bool)>,
    answers: bool,
}

struct PairedFactory {
    answers: bool,
}

impl WorkloadFactory for PairedFactory {
    type Workload = Paired;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<Paired, WorkloadError> {
        Ok(Paired { lanes: (0..lanes).map(|_| Paired::lane()).collect(), answers: self.answers })
    }
}

impl Paired {
    fn lane() -> (UnixStream, UnixStream, bool, bool) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, theirs, false, false)
    }
}

impl Workload for Paired {
    fn start(&mut self, lane: LaneId, _now_ns: Nanos, io: &Io<'_>) -> Progress {
        use std::io::Write;
        let (ours, theirs, watched, busy) = &mut self.lanes[lane];
        if !std::mem::replace(watched, true) {
            io.watch(&*ours, lane, Interest::Read).unwrap();
        }
        *busy = true;
        if self.answers {
            theirs.write_all(b"x").unwrap();
        }
        Progress::Pending
    }
    fn ready(&mut self, lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        use std::io::Read;
        let (ours, _, _, busy) = &mut self.lanes[lane];
        assert!(std::mem::replace(busy, false));
        ours.read_exact(&mut [0]).unwrap();
        done(Ok(()))
    }
    fn phases_so_far(&self, lane: LaneId, _now_ns: Nanos) -> PhaseTimes {
        assert!(self.lanes[lane].3, "asked before the op is given up");
        let mut phases = PhaseTimes::NONE;
        phases.set(common::WAIT, 7);
        phases
    }
    fn cancel(&mut self, lane: LaneId) {
        // An answer under way must not reach a later op.
        self.lanes[lane] = Self::lane();
    }
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

fn run<F: WorkloadFactory>(factory: F, connections: u32, threads: u32, order: &SlotOrder) -> SlotRecord {
    let mut session = Session::open(factory, connections, threads, Arc::default()).unwrap();
    let record = session.run_slot(order, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_sums(&record);
    record
}

fn assert_sums(record: &SlotRecord) {
    let tally = &record.tally;
    assert_eq!(tally.started, tally.ok + tally.failed_total() + tally.in_flight);
    assert_eq!(record.series.intervals.iter().map(|i| i.ok).sum::<u64>(), tally.ok);
    assert_eq!(record.series.intervals.iter().map(|i| i.failed).sum::<u64>(), tally.failed_total());
}

#[test]
fn a_number_of_ops_is_exact_whatever_the_number_of_workers() {
    for (connections, threads) in [(1, 1), (7, 3), (10, 4)] {
        let record = run(PairedFactory { answers: true }, connections, threads, &order(CLOSED, None, Some(1_001)));
        assert_eq!((record.tally.started, record.tally.ok, record.tally.in_flight), (1_001, 1_001, 0));
        assert_eq!(record.tally.response.count(), 1_001);
    }
}

/// Slots of some microseconds, of which reading the clocks is a good part.
#[test]
fn no_worker_uses_more_than_all_of_its_cpu() {
    let instant = Blocking { op_ns: 0, fail_every: None, lanes: LanesPerWorker::Many, count: 0 };
    let mut session = Session::open(instant, 1, 1, Arc::new(AtomicBool::new(false))).unwrap();
    for _ in 0..300 {
        let record = session.run_slot(&order(CLOSED, None, Some(1)), &mut |_| ControlFlow::Continue(())).unwrap();
        let worker = &record.audit.workers[0];
        let cpu_ns = worker.cpu_ns.unwrap();
        assert!(cpu_ns <= worker.wall_ns, "{cpu_ns} of {} ns", worker.wall_ns);
    }
}

#[test]
fn a_number_of_ops_that_falls_behind_its_schedule_takes_as_long_as_it_took() {
    let blocking = Blocking { op_ns: 5 * MILLISECOND_NS, fail_every: None, lanes: LanesPerWorker::One, count: 0 };
    let open = LoopKind::Open { rate_per_s: 1_000.0, arrival: Arrival::Constant };
    let record = run(blocking, 1, 1, &order(open, None, Some(40)));
    // By the schedule it would be 40 ms.
    assert_eq!(record.tally.ok, 40);
    assert!(record.elapsed_ns >= 200 * MILLISECOND_NS, "{}", record.elapsed_ns);
}

#[test]
fn an_open_loop_starts_exactly_the_scheduled_ops() {
    for arrival in [Arrival::Constant, Arrival::Poisson] {
        let kind = LoopKind::Open { rate_per_s: 5_000.0, arrival };
        let record = run(PairedFactory { answers: true }, 16, 2, &order(kind, Some(SECOND_NS / 2), None));
        assert_eq!(record.tally.unstarted, 0);
        if arrival == Arrival::Constant {
            assert_eq!(record.tally.started, 2_500);
        }
        assert_eq!(record.tally.ok, record.tally.started);
    }
}

#[test]
fn an_op_that_finds_no_free_connection_waits_and_its_due_time_stands() {
    // One lane, 20 ms per op, an op due each 10 ms for 200 ms: the n-th op waits n x 10 ms for its predecessors.
    let blocking = Blocking { op_ns: 20 * MILLISECOND_NS, fail_every: None, lanes: LanesPerWorker::One, count: 0 };
    let kind = LoopKind::Open { rate_per_s: 100.0, arrival: Arrival::Constant };
    let record = run(blocking, 1, 1, &order(kind, Some(200 * MILLISECOND_NS), None));
    assert_eq!((record.tally.ok, record.tally.unstarted), (20, 0));
    let (response, service) = (&record.tally.response, &record.tally.service);
    assert!(service.min_ns().unwrap() >= 20 * MILLISECOND_NS);
    assert!(response.max_ns().unwrap() >= (20 + 19 * 10) * MILLISECOND_NS, "{response:?}");
    assert!(response.sum_ns >= (0..20).map(|n| (20 + n * 10) * u128::from(MILLISECOND_NS)).sum::<u128>());
    // What lies between the two is the wait for the lane, and our own lateness, which is told as that.
    let queue = &record.tally.queue;
    assert!(queue.count() == 20 && queue.sum_ns >= (0..20).map(|n| n * 10 * u128::from(MILLISECOND_NS)).sum::<u128>());
    let lag_ns: u128 = record.audit.workers.iter().map(|worker| worker.schedule_lag.sum_ns).sum();
    assert_eq!(response.sum_ns - service.sum_ns, queue.sum_ns + lag_ns);
    assert!(record.elapsed_ns >= 400 * MILLISECOND_NS, "working off the backlog belongs to the slot");
}

#[test]
fn ops_that_never_start_are_counted_with_the_time_they_waited() {
    // 100 ms per op and 100 due within 100 ms: with a grace of 150 ms most are never started.
    let blocking = Blocking { op_ns: 100 * MILLISECOND_NS, fail_every: None, lanes: LanesPerWorker::One, count: 0 };
    let kind = LoopKind::Open { rate_per_s: 1_000.0, arrival: Arrival::Constant };
    let mut order = order(kind, Some(100 * MILLISECOND_NS), None);
    order.grace_ns = 150 * MILLISECOND_NS;
    let record = run(blocking, 1, 1, &order);
    assert_eq!(record.tally.started + record.tally.unstarted, 100);
    assert!(record.tally.unstarted >= 90);
    assert_eq!(record.tally.response.count(), 100);
    assert!(record.tally.response.quantile_ns(0.5).unwrap() >= 150 * MILLISECOND_NS);
}

#[test]
fn ops_in_flight_at_the_end_are_counted_and_weigh_what_they_waited() {
    let mut order = order(CLOSED, Some(50 * MILLISECOND_NS), None);
    order.grace_ns = 100 * MILLISECOND_NS;
    let record = run(PairedFactory { answers: false }, 5, 2, &order);
    assert_eq!((record.tally.started, record.tally.in_flight), (5, 5));
    assert_eq!(record.audit.workers.iter().map(|worker| worker.silent_lanes).sum::<Option<u32>>(), Some(5));
    assert_eq!(record.tally.response.count(), 5);
    // A full grace; of the slot's own time less, where the machine was late to start them.
    assert!(record.tally.response.min_ns().unwrap() >= 100 * MILLISECOND_NS);
    // Where they got stuck counts as well, of all of them and of nothing else.
    let phases: Vec<_> =
        record.tally.phases.iter().map(|(&phase, spent)| (phase, spent.count(), spent.sum_ns)).collect();
    assert_eq!(phases, [(common::WAIT.id(), 5, 5 * 7)]);
}

#[test]
fn a_timeout_ends_the_op_at_no_less_than_its_limit() {
    let mut order = order(CLOSED, Some(200 * MILLISECOND_NS), None);
    order.op_timeout_ns = 50 * MILLISECOND_NS;
    let record = run(PairedFactory { answers: false }, 4, 1, &order);
    assert_eq!(record.tally.ok, 0);
    let timeouts = record.tally.failed[&common::TIMEOUT.id()];
    assert!(timeouts >= 4);
    assert!(record.tally.response.min_ns().unwrap() >= 50 * MILLISECOND_NS);
    assert_eq!(record.tally.response.count(), timeouts + record.tally.in_flight);
}

#[test]
fn think_time_separates_ops_of_a_connection() {
    let record = run(
        PairedFactory { answers: true },
        3,
        1,
        &order(LoopKind::Closed { think_ns: 20 * MILLISECOND_NS }, Some(100 * MILLISECOND_NS), None),
    );
    // Due at 0, 20, 40, 60, 80 ms at the earliest.
    assert!((3..=15).contains(&record.tally.started), "{}", record.tally.started);
}

#[test]
fn blocking_workloads_get_a_thread_for_each_connection() {
    let blocking = Blocking { op_ns: 5 * MILLISECOND_NS, fail_every: Some(2), lanes: LanesPerWorker::One, count: 0 };
    let record = run(blocking, 6, 1, &order(CLOSED, None, Some(24)));
    assert_eq!(record.audit.workers.len(), 6);
    assert_eq!((record.tally.ok, record.tally.failed[&common::LOST.id()]), (12, 12));
    assert_eq!(record.tally.failure_examples, ["as told"]);
}

#[test]
fn many_blocking_lanes_on_one_worker_take_turns() {
    let blocking = Blocking { op_ns: 1_000, fail_every: None, lanes: LanesPerWorker::Many, count: 0 };
    let record = run(blocking, 4, 1, &order(CLOSED, Some(20 * MILLISECOND_NS), None));
    assert!(record.tally.ok > 0);
}

#[test]
fn a_stop_ends_the_slot_and_keeps_what_there_is() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut session = Session::open(PairedFactory { answers: true }, 2, 1, Arc::clone(&stop)).unwrap();
    let mut ticks = 0;
    let record = session
        .run_slot(&order(CLOSED, Some(3_600 * SECOND_NS), None), &mut |live| {
            ticks += 1;
            if live.ok > 0 {
                stop.store(true, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_sums(&record);
    assert!(record.interrupted && record.tally.ok > 0 && ticks > 0);
}

#[test]
fn what_is_told_while_a_slot_runs_is_a_part_of_what_is_told_when_it_is_over() {
    let factory = Blocking { op_ns: 5 * MILLISECOND_NS, fail_every: Some(4), lanes: LanesPerWorker::One, count: 0 };
    let mut session = Session::open(factory, 2, 2, Arc::default()).unwrap();
    let mut seen = Vec::new();
    let record = session
        .run_slot(&order(CLOSED, Some(SECOND_NS), None), &mut |live| {
            seen.push(live.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    let last = seen.last().unwrap();
    assert!(last.ok > 0 && last.failed_total() > 0 && !last.response.is_empty(), "{last:?}");
    for live in &seen {
        assert!(live.ok <= record.tally.ok && live.failed_total() <= record.tally.failed_total());
        assert_eq!(live.response.count(), live.ok, "failures that are no time-outs have no response time");
        for (bound, _) in live.response.buckets() {
            let below =
                |all: &[(Nanos, u64)]| all.iter().filter(|(value, _)| value <= bound).map(|(_, n)| n).sum::<u64>();
            assert!(below(live.response.buckets()) <= below(record.tally.response.buckets()));
        }
    }
}

#[test]
fn who_watches_can_end_a_slot_and_the_next_one_runs_whole() {
    let mut session = Session::open(PairedFactory { answers: true }, 2, 2, Arc::default()).unwrap();
    let for_ever = order(CLOSED, Some(3_600 * SECOND_NS), None);
    let record = session
        .run_slot(&for_ever, &mut |live| if live.ok > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        .unwrap();
    assert_sums(&record);
    assert!(record.interrupted && record.tally.ok > 0);
    let next = session.run_slot(&order(CLOSED, None, Some(30)), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(!next.interrupted);
    assert_eq!(next.tally.ok, 30);
}

#[test]
fn lanes_are_parked_between_slots_and_used_again() {
    let mut session = Session::open(PairedFactory { answers: true }, 3, 2, Arc::default()).unwrap();
    for _ in 0..3 {
        let record = session.run_slot(&order(CLOSED, None, Some(30)), &mut |_| ControlFlow::Continue(())).unwrap();
        assert_sums(&record);
        assert_eq!(record.tally.ok, 30);
    }
}

/// Its ops end at once, and its lane is readable for ever, whether it has an op or not.
struct NeverSilent(UnixStream, UnixStream);

impl Workload for NeverSilent {
    fn start(&mut self, lane: LaneId, _now_ns: Nanos, io: &Io<'_>) -> Progress {
        use std::io::Write;
        // It is watched already from the second op on.
        let _ = io.watch(&self.0, lane, Interest::Read);
        self.1.write_all(b"x").unwrap();
        done(Ok(()))
    }
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

struct NeverSilentFactory;

impl WorkloadFactory for NeverSilentFactory {
    type Workload = NeverSilent;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<NeverSilent, WorkloadError> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        Ok(NeverSilent(ours, theirs))
    }
}

#[test]
fn a_parked_lane_that_never_falls_silent_does_not_hold_up_the_next_slot() {
    let mut session = Session::open(NeverSilentFactory, 1, 1, Arc::default()).unwrap();
    for _ in 0..3 {
        let record = session.run_slot(&order(CLOSED, None, Some(3)), &mut |_| ControlFlow::Continue(())).unwrap();
        assert_sums(&record);
        assert_eq!(record.tally.ok, 3);
    }
}

/// Finds surplus bytes when it looks at the end of a slot, and one more each time that nobody has asked for a while.
#[derive(Default)]
struct FindsLate(u64);

impl Workload for FindsLate {
    fn start(&mut self, _lane: LaneId, _now_ns: Nanos, _io: &Io<'_>) -> Progress {
        done(Ok(()))
    }
    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }
    fn slot_ended(&mut self) {
        self.0 += 10;
    }
    fn cancel(&mut self, _lane: LaneId) {}
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    fn take_counters(&mut self) -> Counters {
        Counters { surplus: std::mem::replace(&mut self.0, 1), ..Counters::default() }
    }
}

struct FindsLateFactory;

impl WorkloadFactory for FindsLateFactory {
    type Workload = FindsLate;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<FindsLate, WorkloadError> {
        Ok(FindsLate::default())
    }
}

#[test]
fn surplus_bytes_of_idle_lanes_are_counted_at_the_slots_end_and_in_the_next_slot() {
    let mut session = Session::open(FindsLateFactory, 1, 1, Arc::default()).unwrap();
    let surplus: Vec<u64> = (0..3)
        .map(|_| {
            let record = session.run_slot(&order(CLOSED, None, Some(3)), &mut |_| ControlFlow::Continue(())).unwrap();
            record.tally.surplus
        })
        .collect();
    assert_eq!(surplus, [11, 12, 12]);
}

#[test]
fn a_workload_that_cannot_be_made_is_an_error() {
    struct Broken;
    impl WorkloadFactory for Broken {
        type Workload = Blocking;
        fn schema(&self) -> &'static Schema {
            &common::TRIED
        }
        fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Blocking, WorkloadError> {
            Err(WorkloadError("no such thing".into()))
        }
    }
    let error = Session::open(Broken, 2, 2, Arc::default()).unwrap_err();
    assert_eq!(error.to_string(), "no such thing");
}
