//! A run-up is in none of the slot's figures: not in its counts, its time, its audit of itself, nor in what is shown meanwhile.

use crate::common::{self, order};
use duel_load::{
    Counters, Event, Failure, Io, LaneId, Live, OpEnd, Progress, Session, SlotOrder, SlotRecord, Traffic, WorkerId,
    Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Id, LoopKind, MILLISECOND_NS, Nanos, Schema};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

const CLOSED: LoopKind = LoopKind::Closed { think_ns: 0 };
const BYTES: u64 = 10;
const SENT: Id = Id::new("sent");

/// Ops that end by a timer, as long as each other, of two parts each.
#[derive(Clone, Copy)]
struct Timed {
    op_ns: Nanos,
    /// So many of the first ops fail.
    fails: u64,
    /// As many have ended when the loop stands still for [`STILL`].
    stops_after: u64,
    /// As many of them are answered, and the later ones never.
    hangs_after: u64,
}

const STILL: Duration = Duration::from_millis(300);
const STEADY: Timed = Timed { op_ns: 7 * MILLISECOND_NS, fails: 0, stops_after: u64::MAX, hangs_after: u64::MAX };

struct TimedWork {
    of: Timed,
    started_ns: Vec<Option<Nanos>>,
    ended: u64,
    counters: Counters,
}

impl WorkloadFactory for Timed {
    type Workload = TimedWork;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<TimedWork, WorkloadError> {
        Ok(TimedWork { of: *self, started_ns: vec![None; lanes], ended: 0, counters: Counters::default() })
    }
}

fn lost() -> Box<Failure> {
    Box::new(Failure { kind: common::LOST, text: "lost".to_owned() })
}

impl TimedWork {
    fn due_ns(&self, lane: LaneId) -> Option<Nanos> {
        self.started_ns[lane].filter(|_| self.ended < self.of.hangs_after).map(|at_ns| at_ns + self.of.op_ns)
    }
}

impl Workload for TimedWork {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        self.started_ns[lane] = Some(now_ns);
        self.counters.reused += 1;
        Progress::Pending
    }
    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }
    fn further(&mut self, _io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        let now_ns = monotonic_ns();
        let lane = (0..self.started_ns.len()).find(|&lane| self.due_ns(lane).is_some_and(|due_ns| due_ns <= now_ns))?;
        self.started_ns[lane] = None;
        self.ended += 1;
        if self.ended == self.of.stops_after {
            std::thread::sleep(STILL);
        }
        if self.ended <= self.of.fails {
            return Some((lane, OpEnd::noticed(monotonic_ns(), Err(lost()))));
        }
        self.counters.bytes_in += 2 * BYTES;
        self.counters.bytes_out += 2 * BYTES;
        self.counters.reused += 1;
        *self.counters.counted.entry(SENT).or_default() += 2;
        Some((lane, OpEnd { ops: 2, bytes_in: 2 * BYTES, ..OpEnd::noticed(monotonic_ns(), Ok(())) }))
    }
    fn wakes_at(&self) -> Option<Nanos> {
        (0..self.started_ns.len()).filter_map(|lane| self.due_ns(lane)).min()
    }
    fn cancel(&mut self, lane: LaneId) {
        self.started_ns[lane] = None;
    }
    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }
    fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}

/// Behind a run-up that lasts several times as long as the slot.
fn behind_run_up(run_up_ms: Nanos, slot_ms: Nanos) -> SlotOrder {
    let order = order(CLOSED, Some(slot_ms * MILLISECOND_NS), None);
    SlotOrder { run_up_ns: run_up_ms * MILLISECOND_NS, ..order }
}

/// The slot, and what was shown of it meanwhile.
fn run(work: Timed, lanes: u32, order: &SlotOrder) -> (SlotRecord, Vec<Live>) {
    let mut session = Session::open(work, lanes, 1, Arc::default()).unwrap();
    let mut shown = Vec::new();
    let record = session
        .run_slot(order, &mut |live| {
            shown.push(live.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    let tally = &record.tally;
    assert_eq!(tally.started, tally.ok + tally.failed_total() + tally.in_flight, "{tally:?}");
    assert_eq!(record.series.intervals.iter().map(|i| i.ok).sum::<u64>(), tally.ok);
    (record, shown)
}

#[test]
fn what_is_counted_in_a_run_up_is_in_no_figure_of_the_slot() {
    for lanes in [1, 3] {
        let (record, _) = run(STEADY, lanes, &behind_run_up(800, 100));
        let (tally, audit) = (&record.tally, &record.audit.workers[0]);
        assert!(tally.ok > 0 && tally.failed_in_run_up.is_empty() && tally.ok_in_run_up > 0, "{tally:?}");
        assert_eq!(
            [tally.bytes_in, tally.bytes_out, tally.counted[&SENT]],
            [BYTES * tally.ok, BYTES * tally.ok, tally.ok]
        );
        assert_eq!(tally.reused, tally.ok, "the first ops of a slot go over connections that there were, too");
        assert!(audit.run_up_ns >= 800 * MILLISECOND_NS, "{audit:?}");
        // It sleeps a few times in each op, however long those are: of the run-up's, there are eight times as many.
        let ended = tally.ok / 2;
        assert!(audit.sleeps.is_none_or(|sleeps| sleeps <= 3 * ended + 20), "{audit:?}, {ended} ops");
        assert!(audit.cpu_ns.is_none_or(|cpu_ns| cpu_ns <= audit.wall_ns), "{audit:?}");
    }
}

#[test]
fn ops_under_way_when_the_run_up_ends_count_whole_and_so_does_their_time() {
    // Over one lane ops follow each other, so they cannot have taken longer than the slot did; nor it than they and some pauses.
    let (record, _) = run(Timed { op_ns: 90 * MILLISECOND_NS, ..STEADY }, 1, &behind_run_up(220, 100));
    let service_ns = record.tally.service.sum_ns;
    assert!(u128::from(record.elapsed_ns) >= service_ns, "{record:?}");
    assert!(
        u128::from(record.elapsed_ns) <= service_ns + u128::from(record.audit.workers[0].wall_ns) / 2,
        "{record:?}"
    );
}

#[test]
fn failures_of_a_run_up_are_told_for_themselves_and_cost_no_time() {
    let (record, shown) = run(Timed { fails: 40, ..STEADY }, 1, &behind_run_up(400, 100));
    let (tally, audit) = (&record.tally, &record.audit.workers[0]);
    let failed = tally.failed_in_run_up[&common::LOST.id()] + tally.failed_total();
    assert_eq!(failed, 40);
    // Forty of them that began 200 ms before the slot's time, on average, were 8 s of it.
    // A part has half of its op.
    let longest_ns = 2 * tally.service.max_ns().unwrap();
    assert!(record.elapsed_ns <= audit.wall_ns + longest_ns + MILLISECOND_NS, "{record:?}");
    assert!(shown.iter().all(|live| live.failed_total() <= tally.failed_total()));
}

#[test]
fn what_is_shown_meanwhile_never_holds_the_run_up_nor_falls_back() {
    let (record, shown) = run(STEADY, 2, &behind_run_up(500, 250));
    for live in &shown {
        assert!(live.traffic.bytes_in <= record.tally.bytes_in && live.ok <= record.tally.ok, "{live:?}");
    }
    assert!(shown.last().unwrap().in_run_up.answered > 0, "they are signs of life");
    let falls = |pair: &[Live]| pair[1].traffic.bytes_in < pair[0].traffic.bytes_in || pair[1].ok < pair[0].ok;
    assert!(!shown.windows(2).any(falls), "{shown:?}");
    let signs = |live: &Live| live.in_run_up.started + live.started;
    assert!(shown.is_sorted_by_key(signs), "{shown:?}");
}

#[test]
fn a_standstill_is_the_slots_where_it_is_in_its_time() {
    // The tenth op ends after 70 ms, far from the end of the run-up.
    let longest_ns = || {
        let (record, _) = run(Timed { stops_after: 10, ..STEADY }, 1, &behind_run_up(700, 100));
        record.audit.workers[0].standstill.longest_ns
    };
    // A busy machine may add some of its own, but hardly each time.
    let least_ns = (0..4).map(|_| longest_ns()).min();
    assert!(least_ns < Some(STILL.as_nanos() as Nanos / 2), "{least_ns:?}");
    // It begins in the run-up and ends in the slot.
    let (record, _) = run(Timed { stops_after: 14, ..STEADY }, 1, &behind_run_up(200, 400));
    let still = record.audit.workers[0].standstill;
    assert!(still.longest_ns >= STILL.as_nanos() as Nanos / 3, "{still:?}");
}

#[test]
fn a_run_up_that_is_broken_off_leaves_a_slot_without_figures() {
    let hangs = Timed { hangs_after: 5, ..STEADY };
    let mut session = Session::open(hangs, 1, 1, Arc::default()).unwrap();
    let record = session.run_slot(&behind_run_up(20_000, 100), &mut |live| {
        // Each op has two parts.
        if live.in_run_up.answered == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let record = record.unwrap();
    let tally = &record.tally;
    assert!(record.interrupted && record.answered_ns.is_some());
    assert_eq!((tally.ok, tally.started, tally.in_flight, tally.bytes_in), (0, 1, 1, 0), "{tally:?}");
    assert_eq!(record.elapsed_ns, 0);
    assert!(record.audit.workers[0].run_up_ns > 0 && record.ends_in_silence);
}
