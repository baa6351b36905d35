//! One worker's memory of a slot: bounded, however many ops there are.

use crate::clock::monotonic_ns;
use crate::log::{OpLog, OpRecord};
use crate::session::{InRunUp, Live};
use crate::stages::StageRecorder;
use crate::workload::{Counters, OpEnd, PhaseTimes, Traffic};
use duel_model::{
    Distribution, Id, Interval, MOST_FAILURES, Meaning, Nanos, SECOND_NS, Schema, Series, Stage, Standstill, Tally,
    sanitize_line,
};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Smallest time told apart from its neighbours, 1 µs (in fact 512 ns, the next power of two below).
const LOWEST_NS: Nanos = 1_000;
/// Largest time told apart, one hour; what is longer counts as this (its exact sum and maximum are kept beside).
const HIGHEST_NS: Nanos = 3_600 * SECOND_NS;
/// Significant decimal digits.
const DIGITS: u8 = 3;
/// Length of a series' interval at first; it doubles when [`MOST_INTERVALS`] are full.
const INTERVAL_NS: Nanos = 100_000_000;
/// Most intervals kept: four minutes at the first length.
const MOST_INTERVALS: usize = 2_400;

/// Counts and times of one slot on one worker.
#[derive(Debug)]
pub(crate) struct Recorder {
    schema: &'static Schema,
    pub(crate) started: u64,
    pub(crate) ok: u64,
    shed: u64,
    failed_body_bytes: u64,
    /// By the places of the schema's kinds of failure.
    failed: [u64; MOST_FAILURES],
    failure_examples: Vec<String>,
    response: Recording,
    service: Recording,
    /// How long ops of an open loop waited for a free lane.
    pub(crate) queue: Recording,
    /// By the places of the schema's phases.
    phases: Vec<Recording>,
    pub(crate) schedule_lag: Recording,
    pub(crate) loop_lag: Recording,
    /// By how much ends were noticed late, of ops of which that is known.
    pub(crate) notice_lag: Recording,
    pub(crate) standstill: Standstill,
    pub(crate) signs: Signs,
    /// What is recorded is load before the slot's time.
    pub(crate) is_in_run_up: bool,
    /// What the run-up showed, when it is over: its ops that have ended, those that ended well, and those that failed, by the places of
    /// the schema's kinds.
    in_run_up: InRunUp,
    ok_in_run_up: u64,
    failed_in_run_up: [u64; MOST_FAILURES],
    slot_start_ns: Nanos,
    series: Series,
    stages: StageRecorder,
    /// Records of ops that nobody has fetched yet; `None`: nobody will.
    records: Option<Vec<OpRecord>>,
}

impl Recorder {
    pub(crate) fn new(schema: &'static Schema) -> Self {
        Self {
            schema,
            started: 0,
            ok: 0,
            shed: 0,
            failed_body_bytes: 0,
            failed: [0; MOST_FAILURES],
            failure_examples: Vec::new(),
            response: Recording::from(lowest_ns(schema)),
            service: Recording::from(lowest_ns(schema)),
            queue: Recording::new(),
            phases: schema.phases.iter().map(|_| Recording::new()).collect(),
            schedule_lag: Recording::new(),
            loop_lag: Recording::new(),
            notice_lag: Recording::new(),
            standstill: Standstill::default(),
            signs: Signs::default(),
            is_in_run_up: false,
            in_run_up: InRunUp::default(),
            ok_in_run_up: 0,
            failed_in_run_up: [0; MOST_FAILURES],
            slot_start_ns: monotonic_ns(),
            series: Series { interval_ns: INTERVAL_NS, intervals: Vec::new() },
            stages: StageRecorder::default(),
            records: None,
        }
    }

    /// Forgets everything; a slot of these stages begins, of whose every op a record is kept where that is wanted.
    pub(crate) fn reset(&mut self, slot_start_ns: Nanos, stages: &[Stage], keeps_records: bool) {
        self.is_in_run_up = false;
        (self.in_run_up, self.ok_in_run_up, self.failed_in_run_up) = (InRunUp::default(), 0, [0; MOST_FAILURES]);
        self.failure_examples.clear();
        self.signs = Signs::default();
        self.begin(slot_start_ns, stages, keeps_records);
    }

    /// The run-up is over, and so many of its ops are still under way, which are the slot's. What ended in it is in no figure; what failed is
    /// told for itself, and signs of life are what they were.
    pub(crate) fn run_up_ended(&mut self, under_way: u64, stages: &[Stage], keeps_records: bool) {
        let (in_run_up, failed) = (self.seen_in_run_up(), self.failed);
        self.in_run_up = InRunUp { started: in_run_up.started.saturating_sub(under_way), ..in_run_up };
        (self.ok_in_run_up, self.failed_in_run_up) = (self.ok, failed);
        self.is_in_run_up = false;
        self.begin(self.slot_start_ns, stages, keeps_records);
        self.started = under_way;
    }

    fn seen_in_run_up(&self) -> InRunUp {
        let silent = self.schema.failed(&self.by_kind(&self.failed), Meaning::is_silence);
        let failed: u64 = self.failed.iter().sum();
        InRunUp { started: self.started, answered: self.ok + failed - silent, silent }
    }

    /// Begins to count anew.
    fn begin(&mut self, slot_start_ns: Nanos, stages: &[Stage], keeps_records: bool) {
        self.stages.reset(slot_start_ns, stages);
        self.records = keeps_records.then(Vec::new);
        self.started = 0;
        self.ok = 0;
        self.shed = 0;
        self.failed_body_bytes = 0;
        self.failed = [0; MOST_FAILURES];
        self.standstill = Standstill::default();
        for recording in self.recordings() {
            recording.reset();
        }
        self.slot_start_ns = slot_start_ns;
        self.series = Series { interval_ns: INTERVAL_NS, intervals: Vec::new() };
    }

    /// Records the end of an op that was due and started at these times.
    #[inline]
    pub(crate) fn op_ended(&mut self, due_ns: Nanos, start_ns: Nanos, op: &OpEnd) {
        if let Some(records) = &mut self.records {
            records.push(OpRecord::new(self.slot_start_ns, due_ns, start_ns, op));
        }
        let over_ns = op.over_ns();
        if let Some(arrived_ns) = op.arrived_ns {
            self.notice_lag.record(op.end_ns.saturating_sub(arrived_ns));
        }
        let response_ns = over_ns.saturating_sub(due_ns);
        let interval = self.interval_at(op.end_ns);
        interval.bytes_in += op.bytes_in;
        match &op.outcome {
            Ok(()) => {
                interval.ok += 1;
                interval.response_sum_ns += response_ns;
                let each_ns = if op.ops == 1 { response_ns } else { response_ns / u64::from(op.ops.max(1)) };
                interval.response_max_ns = interval.response_max_ns.max(each_ns);
                self.ok += 1;
                self.signs.answered_ns = op.end_ns;
                self.stages.ok(due_ns, over_ns);
                if op.ops == 1 {
                    self.took(due_ns, start_ns, over_ns, &op.phases);
                } else {
                    self.batch_took(start_ns, over_ns, op);
                }
            }
            Err(failure) => {
                // Of a batch that failed no op is known to have ended well.
                let ops = u64::from(op.ops.max(1));
                interval.failed += ops;
                self.failed_body_bytes += op.body_bytes;
                self.failed[failure.kind.place()] += ops;
                self.started += ops - 1;
                if failure.kind.means.is_silence() {
                    self.signs.unanswered(start_ns);
                } else {
                    self.signs.answered_ns = op.end_ns;
                }
                self.stages.failed(due_ns);
                if failure.kind.means.is_waiting() {
                    self.given_up(due_ns, start_ns, op.end_ns, &op.phases);
                }
                if self.failure_examples.len() < Tally::FAILURE_EXAMPLES {
                    let example = sanitize_line(&failure.text);
                    if !self.failure_examples.contains(&example) {
                        self.failure_examples.push(example);
                    }
                }
            }
        }
    }

    /// Ops of a batch that ended well, of which the first is counted already. Their bytes come with the batch.
    #[cold]
    fn batch_took(&mut self, start_ns: Nanos, over_ns: Nanos, op: &OpEnd) {
        let (ops, took_ns) = (u64::from(op.ops), over_ns.saturating_sub(start_ns));
        self.ok += ops - 1;
        self.started += ops - 1;
        let interval = self.interval_at(op.end_ns);
        interval.ok += ops - 1;
        for recording in [&mut self.response, &mut self.service] {
            recording.record_shared(took_ns, ops);
        }
    }

    /// Gives away the records kept so far.
    pub(crate) fn hand_over(&mut self, log: Option<&OpLog>) {
        if let (Some(log), Some(records)) = (log, &mut self.records)
            && !records.is_empty()
        {
            // As much room again: the next batch is about as large.
            let next = Vec::with_capacity(records.len());
            // Where the reader is gone, nobody minds.
            let _ = log.send(std::mem::replace(records, next));
        }
    }

    /// Records time that an op took which was given up without an answer: the distribution must not look better than what
    /// the caller of such an op would have seen. The phase that it got stuck in counts for as long as it lasted: stalls would
    /// otherwise be missing where they happened.
    pub(crate) fn given_up(&mut self, due_ns: Nanos, start_ns: Nanos, until_ns: Nanos, phases: &PhaseTimes) {
        self.stages.waited(due_ns, until_ns.saturating_sub(due_ns));
        self.took(due_ns, start_ns, until_ns, phases);
    }

    #[inline]
    fn took(&mut self, due_ns: Nanos, start_ns: Nanos, until_ns: Nanos, phases: &PhaseTimes) {
        self.response.record(until_ns.saturating_sub(due_ns));
        self.service.record(until_ns.saturating_sub(start_ns));
        for (spent_ns, recording) in phases.each().zip(&mut self.phases) {
            if let Some(spent_ns) = spent_ns {
                recording.record(spent_ns);
            }
        }
    }

    /// Records time that an op waited which was never started.
    pub(crate) fn waited_without_start(&mut self, due_ns: Nanos, waited_ns: Nanos) {
        self.response.record(waited_ns);
        self.stages.waited(due_ns, waited_ns);
    }

    /// Counts an op that is not sent, because it could only start after its deadline. Whoever asks with a deadline has
    /// waited until then and gone away: that long is what the distribution gets, and no answer could have come sooner.
    pub(crate) fn shed(&mut self, due_ns: Nanos, deadline_ns: Nanos) {
        self.shed += 1;
        self.stages.shed(due_ns);
        self.waited_without_start(due_ns, deadline_ns);
    }

    /// Counts an op, by its stage, that was started and has not ended.
    pub(crate) fn left_in_flight(&mut self, due_ns: Nanos) {
        self.stages.in_flight(due_ns);
    }

    /// Counts an op, by its stage, that became due and was never started.
    pub(crate) fn left_unstarted(&mut self, due_ns: Nanos) {
        self.stages.unstarted(due_ns);
    }

    /// What was recorded so far, for whoever watches.
    pub(crate) fn live(&self, traffic: Traffic) -> Live {
        if self.is_in_run_up {
            return Live { in_run_up: self.seen_in_run_up(), ..Live::default() };
        }
        Live {
            in_run_up: self.in_run_up,
            started: self.started,
            ok: self.ok,
            failed: self.by_kind(&self.failed),
            silent: self.schema.failed(&self.by_kind(&self.failed), Meaning::is_silence),
            traffic,
            response: self.response.sketch(),
            standstill: self.standstill,
        }
    }

    fn by_kind(&self, failed: &[u64; MOST_FAILURES]) -> BTreeMap<Id, u64> {
        let kinds = self.schema.failures.iter().map(|kind| kind.id());
        kinds.zip(*failed).filter(|&(_, count)| count > 0).collect()
    }

    /// Median of the service times so far, ns.
    pub(crate) fn median_service_ns(&self) -> Option<Nanos> {
        (!self.service.histogram.is_empty()).then(|| self.service.histogram.value_at_quantile(0.5))
    }

    /// What was recorded, with the ops that are still in flight or were never started, and what the workload counted.
    pub(crate) fn tally(&self, in_flight: u64, unstarted: u64, counters: Counters) -> Tally {
        Tally {
            bytes_in: counters.bytes_in,
            bytes_out: counters.bytes_out,
            body_bytes: counters.body_bytes,
            inflated_bytes: counters.inflated_bytes,
            connections: counters.connections,
            resumed: counters.resumed,
            reused: counters.reused,
            resent: counters.resent,
            surplus: counters.surplus,
            counted: counters.counted,
            statuses: counters.statuses,
            started: self.started,
            ok: self.ok,
            failed: self.by_kind(&self.failed),
            ok_in_run_up: self.ok_in_run_up,
            failed_in_run_up: self.by_kind(&self.failed_in_run_up),
            in_flight,
            unstarted,
            shed: self.shed,
            failed_body_bytes: self.failed_body_bytes,
            queue: self.queue.snapshot(),
            stages: self.stages.tallies(),
            response: self.response.snapshot(),
            service: self.service.snapshot(),
            phases: (self.schema.phases.iter())
                .zip(&self.phases)
                .map(|(phase, recording)| (phase.id(), recording.snapshot()))
                .filter(|(_, distribution)| !distribution.is_empty())
                .collect(),
            failure_examples: self.failure_examples.clone(),
        }
    }

    pub(crate) fn series(&self) -> &Series {
        &self.series
    }

    #[inline]
    fn interval_at(&mut self, end_ns: Nanos) -> &mut Interval {
        let mut index = (end_ns.saturating_sub(self.slot_start_ns) / self.series.interval_ns) as usize;
        while index >= MOST_INTERVALS {
            self.series.coarsen();
            index /= 2;
        }
        if index >= self.series.intervals.len() {
            self.series.intervals.resize(index + 1, Interval::default());
        }
        &mut self.series.intervals[index]
    }

    fn recordings(&mut self) -> impl Iterator<Item = &mut Recording> {
        let of_ops = [&mut self.response, &mut self.service, &mut self.queue];
        let of_ours = [&mut self.schedule_lag, &mut self.loop_lag, &mut self.notice_lag];
        of_ops.into_iter().chain(of_ours).chain(&mut self.phases)
    }
}

/// Signs of life of the target, as far as they tell whether it was still there at the end of the slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signs {
    /// When it last answered, well or not; 0: never.
    pub(crate) answered_ns: Nanos,
    /// When the op was started that was started last of all that got no answer; 0: there is none.
    pub(crate) unanswered_since_ns: Nanos,
}

impl Signs {
    /// An op that was started then got no answer.
    pub(crate) fn unanswered(&mut self, start_ns: Nanos) {
        self.unanswered_since_ns = self.unanswered_since_ns.max(start_ns);
    }

    /// Those of several workers together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            answered_ns: self.answered_ns.max(other.answered_ns),
            unanswered_since_ns: self.unanswered_since_ns.max(other.unanswered_since_ns),
        }
    }

    /// Whether the last that was seen of the target is that it did not answer: an op was started when it last answered or
    /// later, and got no answer. An op that was started before and is still waited for is only a slow one.
    pub(crate) fn end_in_silence(self) -> bool {
        self.unanswered_since_ns > 0 && self.unanswered_since_ns >= self.answered_ns
    }
}

/// Nothing of a network takes less than a microsecond. What a thread does by itself may take some nanoseconds.
fn lowest_ns(schema: &Schema) -> Nanos {
    if schema.lanes_are_threads() { 1 } else { LOWEST_NS }
}

/// One distribution while it is recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    /// 24 k buckets of 8 bytes.
    histogram: Histogram<u64>,
    sum_ns: u128,
    min_ns: Nanos,
    max_ns: Nanos,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self::from(LOWEST_NS)
    }

    /// With three digits from this value on.
    fn from(lowest_ns: Nanos) -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants that the histogram accepts")]
        let histogram = Histogram::new_with_bounds(lowest_ns, HIGHEST_NS, DIGITS).expect("valid bounds");
        Self { histogram, sum_ns: 0, min_ns: Nanos::MAX, max_ns: 0 }
    }

    #[inline]
    pub(crate) fn record(&mut self, value_ns: Nanos) {
        self.histogram.saturating_record(value_ns);
        self.sum_ns += u128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Records so many values that come to this sum, each an equal share of it.
    fn record_shared(&mut self, sum_ns: Nanos, count: u64) {
        let share_ns = sum_ns / count.max(1);
        self.histogram.saturating_record_n(share_ns, count);
        self.sum_ns += u128::from(sum_ns);
        self.min_ns = self.min_ns.min(share_ns);
        self.max_ns = self.max_ns.max(share_ns);
    }

    fn reset(&mut self) {
        // An untouched histogram needs no 200 kB of memory written again.
        if !self.histogram.is_empty() {
            self.histogram.reset();
        }
        (self.sum_ns, self.min_ns, self.max_ns) = (0, Nanos::MAX, 0);
    }

    /// The distribution so far, to 2 %. A tenth of the cost of a snapshot, some µs: it is asked for while ops go on.
    ///
    /// Of any limit of two digits, such as 1, 2.5 or 5 ms, as many values lie below as in a snapshot.
    fn sketch(&self) -> Distribution {
        let (mut buckets, mut from_ns, mut seen) = (Vec::new(), 0, 0);
        for edge_ns in edges_ns(self.min_ns) {
            if seen >= self.histogram.len() {
                break;
            }
            // What the histogram cannot tell from the edge counts as above it, as in a snapshot.
            let is_last_of_its_bucket = self.histogram.highest_equivalent(edge_ns) == edge_ns;
            let to_ns = if is_last_of_its_bucket { edge_ns } else { self.histogram.lowest_equivalent(edge_ns) - 1 };
            if to_ns >= from_ns {
                let count = self.histogram.count_between(from_ns, to_ns);
                buckets.push((to_ns, count));
                (from_ns, seen) = (to_ns + 1, seen + count);
            }
        }
        Distribution::from_buckets(buckets, self.sum_ns, self.min_ns, self.max_ns)
    }

    pub(crate) fn snapshot(&self) -> Distribution {
        let buckets = self.histogram.iter_recorded().map(|bucket| {
            let value = bucket.value_iterated_to();
            (self.histogram.highest_equivalent(value), bucket.count_at_value())
        });
        Distribution::from_buckets(buckets, self.sum_ns, self.min_ns, self.max_ns)
    }
}

/// Edges of buckets of at most 2 %, from about `least_ns` to far beyond [`HIGHEST_NS`].
fn edges_ns(least_ns: Nanos) -> impl Iterator<Item = Nanos> {
    let first = least_ns.clamp(LOWEST_NS, HIGHEST_NS).ilog10();
    (first..=HIGHEST_NS.ilog10() + 1).map(|digits| 10u64.pow(digits)).flat_map(|one| {
        let steps = [(one, one / 50, 75), (one / 2 * 5, one / 20, 50), (5 * one, one / 10, 50)];
        steps.into_iter().flat_map(|(begin, step, count)| (0..count).map(move |n| begin + n * step))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::workload::Failure;
    use duel_model::{FailureKind, Noun};
    use proptest::prelude::*;

    /// A kind of work that fails in all ways.
    pub(crate) const TRIED: Schema = Schema {
        kind: "tried",
        targets: "Hats",
        op: Noun { one: "try", many: "tries" },
        lane: Noun { one: "lane", many: "lanes" },
        shared_lane: Noun { one: "lane", many: "lanes" },
        failures: ALL,
        ..duel_model::null::SCHEMA
    }
    .sound();

    duel_model::in_order! { FailureKind:
        TIMEOUT = "timeout", Meaning::UnansweredInTime;
        LOST = "lost", Meaning::Lost;
        BROKEN = "broken", Meaning::Broken;
    }

    fn end(end_ns: Nanos, outcome: Result<(), FailureKind>) -> OpEnd {
        let outcome = outcome.map_err(|kind| Box::new(Failure { kind, text: kind.name.to_owned() }));
        OpEnd { bytes_in: 10, ..OpEnd::noticed(end_ns, outcome) }
    }

    #[test]
    fn every_failure_kind_is_counted_under_its_own_name() {
        for &kind in TRIED.failures {
            let mut recorder = Recorder::new(&TRIED);
            recorder.reset(0, &[], false);
            recorder.op_ended(0, 0, &end(5, Err(kind)));
            let tally = recorder.tally(0, 0, Counters::default());
            assert_eq!(tally.failed, BTreeMap::from([(kind.id(), 1)]));
            assert_eq!(tally.failure_examples, [kind.name]);
        }
    }

    #[test]
    fn the_body_of_an_error_is_no_part_of_what_ok_ops_brought() {
        let mut recorder = Recorder::new(&TRIED);
        recorder.reset(0, &[], false);
        recorder.op_ended(0, 0, &OpEnd { body_bytes: 612, ..end(5, Ok(())) });
        recorder.op_ended(0, 0, &OpEnd { body_bytes: 197, ..end(6, Err(BROKEN)) });
        let tally = Tally { body_bytes: 612 + 197, ..recorder.tally(0, 0, Counters::default()) };
        assert_eq!((tally.failed_body_bytes, tally.body_bytes_per_ok()), (197, Some(612.0)));
    }

    #[test]
    fn a_timeout_enters_the_distribution_and_a_reset_does_not() {
        let mut recorder = Recorder::new(&TRIED);
        recorder.reset(0, &[], false);
        recorder.op_ended(0, 1_000, &end(30_000_000, Err(TIMEOUT)));
        recorder.op_ended(0, 1_000, &end(5_000, Err(LOST)));
        let tally = recorder.tally(0, 0, Counters::default());
        assert_eq!(tally.response.count(), 1);
        assert_eq!(tally.response.max_ns(), Some(30_000_000));
        assert_eq!(tally.service.max_ns(), Some(29_999_000));
    }

    #[test]
    fn records_are_kept_where_they_are_wanted_and_given_away_once() {
        let (log, fetched) = std::sync::mpsc::channel();
        let mut recorder = Recorder::new(&TRIED);
        recorder.reset(100, &[], true);
        recorder.op_ended(110, 120, &end(150, Ok(())));
        recorder.op_ended(110, 130, &end(160, Err(LOST)));
        recorder.hand_over(Some(&log));
        recorder.hand_over(Some(&log));
        let batches: Vec<_> = fetched.try_iter().collect();
        let [batch] = batches.as_slice() else { panic!("one batch: {batches:?}") };
        assert_eq!((batch[0].due_ns, batch[0].start_ns, batch[0].end_ns), (10, 20, 50));
        assert_eq!((batch[0].response_ns(), &batch[0].failure), (40, &None));
        assert_eq!(batch[1].failure.as_ref().map(|failure| failure.kind), Some(LOST));
        recorder.reset(0, &[], false);
        recorder.op_ended(0, 0, &end(5, Ok(())));
        recorder.hand_over(Some(&log));
        assert!(fetched.try_recv().is_err(), "nobody wanted them");
    }

    #[test]
    fn a_long_slot_keeps_a_bounded_series_and_loses_no_op() {
        let mut recorder = Recorder::new(&TRIED);
        recorder.reset(0, &[], false);
        for minute in 0..600 {
            recorder.op_ended(0, 0, &end(minute * 60 * SECOND_NS, Ok(())));
        }
        let series = recorder.series();
        assert!(series.intervals.len() <= MOST_INTERVALS);
        assert_eq!(series.intervals.iter().map(|interval| interval.ok).sum::<u64>(), 600);
    }

    #[test]
    fn a_sketch_has_what_is_short_and_what_is_longer_than_can_be_told() {
        let mut recording = Recording::new();
        assert!(recording.sketch().is_empty());
        [0, 1, 700, 2 * HIGHEST_NS].into_iter().for_each(|value_ns| recording.record(value_ns));
        let sketch = recording.sketch();
        assert_eq!((sketch.count(), sketch.min_ns(), sketch.max_ns()), (4, Some(0), Some(2 * HIGHEST_NS)));
    }

    proptest! {
        #[test]
        fn a_sketch_lies_on_the_same_side_of_plain_limits(
            values in prop::collection::vec((0u32..12, 1.0f64..10.0), 1..300), q in 0.0..1.0,
        ) {
            let mut recording = Recording::new();
            for &(digits, lead) in &values {
                recording.record((lead * 10f64.powi(digits as i32)) as Nanos);
            }
            // On the limits themselves too.
            [100_000, 250_000, 5_000_000].into_iter().for_each(|value_ns| recording.record(value_ns));
            let (sketch, kept) = (recording.sketch(), recording.snapshot());
            prop_assert_eq!((sketch.count(), sketch.sum_ns), (kept.count(), kept.sum_ns));
            for digits in 3..12 {
                for limit in [1.0, 1.5, 2.5, 5.0].map(|lead| (lead * 10f64.powi(digits)) as Nanos) {
                    let below = |all: &Distribution| {
                        all.buckets().iter().filter(|(value, _)| *value <= limit).map(|(_, count)| count).sum::<u64>()
                    };
                    prop_assert_eq!(below(&sketch), below(&kept), "{}", limit);
                }
            }
            let (rough, exact) = (sketch.quantile_ns(q).unwrap() as f64, kept.quantile_ns(q).unwrap() as f64);
            prop_assert!((rough - exact).abs() <= (exact * 0.021).max(1024.0), "{} {}", rough, exact);
        }

        #[test]
        fn a_snapshot_keeps_three_digits(values in prop::collection::vec(1_000u64..HIGHEST_NS, 1..200), q in 0.0..1.0) {
            let mut recording = Recording::new();
            for &value in &values {
                recording.record(value);
            }
            let (kept, exact) = (recording.snapshot(), Distribution::from_values(values.iter().copied()));
            prop_assert_eq!(kept.count(), exact.count());
            prop_assert_eq!(kept.sum_ns, exact.sum_ns);
            prop_assert_eq!(kept.min_ns(), exact.min_ns());
            prop_assert_eq!(kept.max_ns(), exact.max_ns());
            let (kept, exact) = (kept.quantile_ns(q).unwrap() as f64, exact.quantile_ns(q).unwrap() as f64);
            // Half a unit of resolution below 1 ms, one part in a thousand above.
            prop_assert!((kept - exact).abs() <= (exact / 1000.0).max(512.0), "{} {}", kept, exact);
        }
    }
}
