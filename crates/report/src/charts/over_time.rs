//! A target's figures over the run's time, in so many steps that they can be drawn and read.

use crate::spans::{Span, spans_of};
use crate::totals::Totals;
use duel_model::{Distribution, Slot};

/// From so many slots of a target on a slot is a step; fewer are looked into.
const FEW_SLOTS: usize = 8;
/// Steps of a target at most; neighbours are joined.
const MOST_STEPS: usize = 160;

/// A stretch of time of one target.
pub(super) struct Step<'a> {
    /// Its middle, in s since the run began.
    pub(super) at_s: f64,
    /// The slots that it is made of; empty where it is a part of one.
    pub(super) slots: Vec<&'a Slot>,
    /// Ops per second over the whole step.
    pub(super) rate_per_s: f64,
    /// The lowest and the highest rate within it, by the intervals that were recorded.
    pub(super) rate_range_per_s: (f64, f64),
    /// Mean and longest response time in ns, where the step is a part of a slot.
    pub(super) response_ns: Option<(f64, f64)>,
    pub(super) failed: bool,
}

impl Step<'_> {
    /// Response times of its slots.
    pub(super) fn response(&self) -> Distribution {
        let mut all = Distribution::default();
        self.slots.iter().for_each(|slot| all.merge(&slot.tally.response));
        all
    }
}

/// Steps of a target in pieces: between pieces there is a gap in time that no line should bridge.
pub(super) struct Steps<'a> {
    pub(super) pieces: Vec<Vec<Step<'a>>>,
    /// Whether each step is a slot or several, not a part of one.
    pub(super) are_slots: bool,
    /// So many slots, or so many intervals of a slot, are one step.
    pub(super) joined: usize,
}

/// What a step of any of the targets is: `slot`, `group of up to 3 slots`, `stretch of time`.
pub(super) fn step_name(all: &[Steps<'_>]) -> String {
    let joined = all.iter().map(|steps| steps.joined).max().unwrap_or(1);
    match all.iter().any(|steps| steps.are_slots) {
        true if joined > 1 => format!("group of up to {joined} slots"),
        true => "slot".to_owned(),
        false => "stretch of time".to_owned(),
    }
}

/// The steps of each target; all of the same kind.
pub(super) fn steps<'a>(targets: &[Totals<'a>]) -> Vec<Steps<'a>> {
    let are_slots = targets.iter().map(|target| target.slots.len()).max().unwrap_or(0) >= FEW_SLOTS;
    targets.iter().map(|target| if are_slots { of_slots(target) } else { within_slots(target) }).collect()
}

fn of_slots<'a>(target: &Totals<'a>) -> Steps<'a> {
    let joined = target.slots.len().div_ceil(MOST_STEPS).max(1);
    let steps = target.slots.chunks(joined).filter_map(|slots| {
        let spans: Vec<Span> = slots.iter().flat_map(|slot| spans_of(slot, slot.offset_ns as f64)).collect();
        let (rate_per_s, rate_range_per_s) = rates(&spans)?;
        let (first, last) = (slots.first()?, slots.last()?);
        let middle_ns = (first.offset_ns as f64 + last.end_ns() as f64) / 2.0;
        Some(Step {
            at_s: middle_ns / 1e9,
            slots: slots.to_vec(),
            rate_per_s,
            rate_range_per_s,
            response_ns: None,
            failed: slots.iter().any(|slot| slot.tally.failed_total() > 0),
        })
    });
    Steps { pieces: vec![steps.collect()], are_slots: true, joined }
}

fn within_slots<'a>(target: &Totals<'a>) -> Steps<'a> {
    let intervals: usize = target.slots.iter().map(|slot| slot.series.intervals.len()).sum();
    let joined = intervals.div_ceil(MOST_STEPS).max(1);
    let pieces = target.slots.iter().map(|slot| {
        let spans = spans_of(slot, slot.offset_ns as f64);
        let steps = spans.chunks(joined).enumerate().filter_map(|(i, spans)| {
            let (rate_per_s, rate_range_per_s) = rates(spans)?;
            let (first, last) = (spans.first()?, spans.last()?);
            // Spans and intervals run side by side, but for the last one, into which a rest was joined.
            let intervals = slot.series.intervals.iter().skip(i * joined).take(joined);
            let (ok, sum_ns, max_ns) = intervals.fold((0, 0_u128, 0), |(ok, sum, max), interval| {
                (ok + interval.ok, sum + u128::from(interval.response_sum_ns), max.max(interval.response_max_ns))
            });
            Some(Step {
                at_s: (first.from_ns + last.to_ns) / 2e9,
                slots: Vec::new(),
                rate_per_s,
                rate_range_per_s,
                response_ns: (ok > 0 && sum_ns > 0).then(|| (sum_ns as f64 / ok as f64, max_ns as f64)),
                failed: spans.iter().any(|span| span.failed),
            })
        });
        steps.collect()
    });
    Steps { pieces: pieces.collect(), are_slots: false, joined }
}

/// The rate over all spans, the lowest and the highest, in ops per second; `None` where they take no time.
fn rates(spans: &[Span]) -> Option<(f64, (f64, f64))> {
    let (ok, ns) = spans.iter().fold((0.0, 0.0), |(ok, ns), span| (ok + span.ok, ns + span.to_ns - span.from_ns));
    let each = || spans.iter().map(|span| span.rate_per_ns() * 1e9);
    (ns > 0.0).then(|| (ok * 1e9 / ns, (each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max))))
}

/// Where steps failed: series and time.
pub(super) fn crosses(all: &[Steps<'_>]) -> Vec<(usize, f64)> {
    let failed = |(series, steps): (usize, &Steps<'_>)| {
        let at: Vec<f64> = steps.pieces.iter().flatten().filter(|step| step.failed).map(|step| step.at_s).collect();
        at.into_iter().map(move |at_s| (series, at_s))
    };
    all.iter().enumerate().flat_map(|steps| failed(steps).collect::<Vec<_>>()).collect()
}

/// The end of the last slot, in s since the run began.
pub(super) fn end_s(targets: &[Totals<'_>]) -> f64 {
    let ends = targets.iter().flat_map(|target| &target.slots).map(|slot| slot.end_ns());
    ends.max().unwrap_or(0) as f64 / 1e9
}
