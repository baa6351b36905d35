//! Stages and deadlines: every op that becomes due is accounted for, in its stage.

use crate::common;
use duel_load::{
    Counters, Event, Io, LaneId, LanesPerWorker, OpEnd, PhaseTimes, Progress, Session, SlotOrder, SlotRecord, Traffic,
    WorkerId, Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Arrival, LoopKind, MILLISECOND_NS, Nanos, SECOND_NS, Schema, Stage};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

fn order(kind: LoopKind, stages: &str) -> SlotOrder {
    let stages = Stage::parse_all(stages).unwrap();
    let duration_ns = Stage::total_ns(&stages);
    SlotOrder { stages, ..common::order(kind, Some(duration_ns), None) }
}

fn open(arrival: Arrival) -> LoopKind {
    LoopKind::Open { rate_per_s: 1.0, arrival }
}

/// Blocks for a set time in each op, and notes which lanes worked when.
#[derive(Clone, Default)]
struct Blocking {
    op_ns: Nanos,
    /// The first op's, where that is longer.
    first_op_ns: Nanos,
    lanes_per_worker_is_one: bool,
    worked: Arc<Mutex<Vec<(Nanos, LaneId)>>>,
}

impl WorkloadFactory for Blocking {
    type Workload = Self;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Self, WorkloadError> {
        Ok(self.clone())
    }
    fn lanes_per_worker(&self) -> LanesPerWorker {
        if self.lanes_per_worker_is_one { LanesPerWorker::One } else { LanesPerWorker::Many }
    }
}

impl Workload for Blocking {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        self.worked.lock().unwrap().push((now_ns, lane));
        let op_ns = self.op_ns.max(std::mem::take(&mut self.first_op_ns));
        while monotonic_ns() < now_ns + op_ns {
            std::thread::sleep(std::time::Duration::from_nanos(op_ns / 10));
        }
        Progress::Done(OpEnd::noticed(monotonic_ns(), Ok(())))
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

fn run(factory: Blocking, connections: u32, threads: u32, order: &SlotOrder) -> SlotRecord {
    let mut session = Session::open(factory, connections, threads, Arc::default()).unwrap();
    let record = session.run_slot(order, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_sums(&record);
    record
}

/// No op is lost, none counted twice: over the slot and in its stages.
fn assert_sums(record: &SlotRecord) {
    let tally = &record.tally;
    assert_eq!(tally.started, tally.ok + tally.failed_total() + tally.in_flight);
    assert_eq!(tally.due(), tally.started + tally.unstarted + tally.shed);
    assert_eq!(tally.response.count(), tally.service.count() + tally.unstarted + tally.shed);
    if tally.stages.is_empty() {
        return;
    }
    for stage in &tally.stages {
        assert_eq!(stage.due, stage.ok + stage.failed + stage.in_flight + stage.unstarted + stage.shed, "{stage:?}");
    }
    let sum = |of: fn(&duel_model::StageTally) -> u64| tally.stages.iter().map(of).sum::<u64>();
    assert_eq!(sum(|stage| stage.due), tally.due());
    assert_eq!(sum(|stage| stage.ok), tally.ok);
    assert_eq!(sum(|stage| stage.shed), tally.shed);
    assert_eq!(sum(|stage| stage.unstarted), tally.unstarted);
    assert_eq!(sum(|stage| stage.in_flight), tally.in_flight);
    assert_eq!(sum(|stage| stage.response.count()), tally.response.count());
    assert!(sum(|stage| stage.ended_ok) <= tally.ok);
}

#[test]
fn each_stage_gets_the_ops_that_its_rate_makes_due() {
    for (threads, connections) in [(1, 4), (3, 7)] {
        let order = order(open(Arrival::Constant), "100ms@1000,100ms@0,200ms@0..2000,100ms@500");
        let record = run(Blocking::default(), connections, threads, &order);
        let due: Vec<u64> = record.tally.stages.iter().map(|stage| stage.due).collect();
        assert_eq!(due, [100, 0, 200, 50]);
        assert_eq!((record.tally.unstarted, record.tally.shed), (0, 0));
    }
}

#[test]
fn poisson_arrivals_are_counted_in_their_stages_as_well() {
    let record = run(Blocking::default(), 4, 2, &order(open(Arrival::Poisson), "200ms@2000,100ms@0,200ms@2000..4000"));
    let due: Vec<u64> = record.tally.stages.iter().map(|stage| stage.due).collect();
    // Five standard deviations of a Poisson number.
    assert!(due[0].abs_diff(400) < 100 && due[1] == 0 && due[2].abs_diff(600) < 123, "{due:?}");
}

/// One connection that takes 20 ms gets 50 per second; 200 are due.
#[test]
fn ops_past_their_deadline_are_shed_and_their_wait_is_the_deadline() {
    let mut order = order(open(Arrival::Constant), "1s@200");
    order.stages.clear();
    order.kind = LoopKind::Open { rate_per_s: 200.0, arrival: Arrival::Constant };
    order.deadline_ns = Some(50 * MILLISECOND_NS);
    let blocking = Blocking { op_ns: 20 * MILLISECOND_NS, lanes_per_worker_is_one: true, ..Blocking::default() };
    let record = run(blocking, 1, 1, &order);
    let tally = &record.tally;
    assert_eq!(tally.due(), 200, "{tally:?}");
    assert!(tally.shed >= 120 && tally.ok > 0, "{} shed, {} ok", tally.shed, tally.ok);
    // Whoever waits longer than the deadline is not served any more, so that no queue grows.
    let waits = tally.response.count() - tally.ok;
    assert_eq!(waits, tally.shed + tally.unstarted);
    let longest_service_ns = tally.service.max_ns().unwrap();
    assert!(tally.response.max_ns().unwrap() <= 50 * MILLISECOND_NS + longest_service_ns);
}

#[test]
fn without_a_deadline_nothing_is_shed_and_with_a_long_one_neither() {
    for deadline_ns in [None, Some(3_600 * SECOND_NS)] {
        let mut order = order(open(Arrival::Constant), "200ms@100");
        order.deadline_ns = deadline_ns;
        let blocking = Blocking { op_ns: 20 * MILLISECOND_NS, lanes_per_worker_is_one: true, ..Blocking::default() };
        let record = run(blocking, 1, 1, &order);
        assert_eq!((record.tally.shed, record.tally.ok), (0, 20));
    }
}

#[test]
fn a_number_of_ops_counts_those_that_were_shed() {
    let mut order = order(open(Arrival::Constant), "1s@1000");
    order.stages.clear();
    order.kind = LoopKind::Open { rate_per_s: 1_000.0, arrival: Arrival::Constant };
    (order.duration_ns, order.ops, order.deadline_ns) = (None, Some(100), Some(10 * MILLISECOND_NS));
    let blocking = Blocking { op_ns: 20 * MILLISECOND_NS, lanes_per_worker_is_one: true, ..Blocking::default() };
    let record = run(blocking, 1, 1, &order);
    assert_eq!(record.tally.due(), 100);
    assert!(record.tally.shed > 0);
}

/// The first op stalls, the others take no time: at the end nothing waits, and yet not all ops that were due were started.
#[test]
fn ops_that_were_shed_are_part_of_the_schedule_that_they_were_due_in() {
    let stall_ns = 100 * MILLISECOND_NS;
    for (duration_ns, schedule_ns) in [(None, 400), (Some(SECOND_NS), 400), (Some(300 * MILLISECOND_NS), 300)] {
        let mut order = order(open(Arrival::Constant), "1s@1000");
        order.stages.clear();
        order.kind = LoopKind::Open { rate_per_s: 1_000.0, arrival: Arrival::Constant };
        (order.duration_ns, order.ops, order.deadline_ns) = (duration_ns, Some(400), Some(10 * MILLISECOND_NS));
        let blocking = Blocking { first_op_ns: stall_ns, lanes_per_worker_is_one: true, ..Blocking::default() };
        let record = run(blocking, 1, 1, &order);
        assert!(record.tally.shed > 0, "{:?}", record.tally);
        // Longer only where this machine stalled at the schedule's end.
        assert!(record.elapsed_ns >= schedule_ns * MILLISECOND_NS, "{} ns", record.elapsed_ns);
        assert!(record.elapsed_ns < SECOND_NS, "the bound that ended it counts: {} ns", record.elapsed_ns);
    }
}

#[test]
fn no_more_connections_work_than_a_stage_allows() {
    let order = order(LoopKind::Closed { think_ns: MILLISECOND_NS }, "200ms@1c,200ms@1c..4c,200ms@2c");
    let blocking = Blocking::default();
    let began_ns = monotonic_ns();
    let record = run(blocking.clone(), 4, 1, &order);
    let worked = blocking.worked.lock().unwrap().clone();
    let lanes = |from_ms: u64, to_ms: u64| -> BTreeSet<LaneId> {
        let within = |ns: Nanos| (from_ms * MILLISECOND_NS..to_ms * MILLISECOND_NS).contains(&(ns - began_ns));
        worked.iter().filter(|(ns, _)| within(*ns)).map(|&(_, lane)| lane).collect()
    };
    assert_eq!(lanes(0, 190).len(), 1, "{worked:?}");
    // The last of the four begins half way through the last of the three steps: at 366 ms, if the machine is quick.
    assert_eq!(lanes(200, 400).len(), 4);
    // A lane that was waiting when its stage ended rests from its next op on.
    let last = worked.iter().filter(|(ns, _)| ns - began_ns > 450 * MILLISECOND_NS).map(|&(_, lane)| lane);
    assert!(last.collect::<BTreeSet<_>>().len() <= 2);
    assert!(record.tally.stages.iter().all(|stage| stage.ok > 0));
}

#[test]
fn blocking_lanes_come_and_go_as_well() {
    let order = order(LoopKind::Closed { think_ns: 0 }, "50ms@0c,100ms@2c,50ms@0c");
    let record = run(Blocking { op_ns: MILLISECOND_NS, ..Blocking::default() }, 2, 2, &order);
    let due: Vec<u64> = record.tally.stages.iter().map(|stage| stage.due).collect();
    assert!(due[0] == 0 && due[1] > 0 && due[2] <= 2, "{due:?}");
}

/// Ops end by themselves after 1 ms; one that begins this long after the first takes `long_ns`.
#[derive(Clone, Default)]
struct Timed {
    long_after_ns: Nanos,
    long_ns: Nanos,
    first_ns: Option<Nanos>,
    under_way: BTreeSet<(Nanos, LaneId)>,
}

impl WorkloadFactory for Timed {
    type Workload = Self;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Self, WorkloadError> {
        Ok(self.clone())
    }
}

impl Workload for Timed {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        let is_long = now_ns - *self.first_ns.get_or_insert(now_ns) >= self.long_after_ns;
        let op_ns = if is_long { std::mem::take(&mut self.long_ns).max(MILLISECOND_NS) } else { MILLISECOND_NS };
        self.under_way.insert((now_ns + op_ns, lane));
        Progress::Pending
    }
    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        unreachable!("nothing is watched")
    }
    fn further(&mut self, _io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        let (_, lane) = self.under_way.first().copied().filter(|&(end_ns, _)| end_ns <= monotonic_ns())?;
        self.under_way.pop_first();
        let (end_ns, outcome, phases) = (monotonic_ns(), Ok(()), PhaseTimes::NONE);
        Some((lane, OpEnd { phases, ..OpEnd::noticed(end_ns, outcome) }))
    }
    fn wakes_at(&self) -> Option<Nanos> {
        self.under_way.first().map(|&(end_ns, _)| end_ns)
    }
    fn cancel(&mut self, lane: LaneId) {
        self.under_way.retain(|&(_, other)| other != lane);
    }
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

#[test]
fn a_straggler_of_the_only_lane_that_is_left_costs_all_of_its_time() {
    let work = Timed { long_after_ns: 150 * MILLISECOND_NS, long_ns: 800 * MILLISECOND_NS, ..Timed::default() };
    let mut session = Session::open(work, 8, 1, Arc::default()).unwrap();
    let closed = LoopKind::Closed { think_ns: 0 };
    let record = session.run_slot(&order(closed, "100ms@8c,400ms@1c"), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_sums(&record);
    assert_eq!(record.tally.in_flight, 0);
    assert!(record.tally.ok > 8, "the loop is woken for what ends by itself: {}", record.tally.ok);
    assert!(record.elapsed_ns >= 900 * MILLISECOND_NS, "{} ns", record.elapsed_ns);
}
