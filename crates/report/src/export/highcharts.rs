//! Requests done per half second as points of a Highcharts series, `[seconds, requests],`, to be pasted between the
//! brackets of `data: [...]`.

use super::ExportError;
use crate::text::clean;
use duel_model::{MILLISECOND_NS, Nanos, Run, Slot, SlotRole};
use std::fmt::Write;

/// Time between two points, where slots were recorded that finely.
const STEP_NS: Nanos = 500 * MILLISECOND_NS;

/// A series for each target, or for one; with its name as a comment in front where there are several.
///
/// Time is load time on the target, its measured slots one behind the other: of a run on one target the time since its
/// start. A point counts the requests that ended since the point before, well or not.
///
/// A target without a measured slot, as in a search for a rate, has no series; a run without any is refused.
pub(super) fn highcharts(run: &Run, only: Option<usize>) -> Result<String, ExportError> {
    let mut text = String::new();
    let mut unmeasured: Vec<String> = Vec::new();
    for (index, target) in run.plan.targets.iter().enumerate() {
        if only.is_some_and(|only| only != index) {
            continue;
        }
        let slots: Vec<&Slot> =
            run.slots.iter().filter(|slot| slot.target == index && slot.role == SlotRole::Measured).collect();
        if slots.is_empty() {
            unmeasured.push(clean(&target.name));
            continue;
        }
        if run.plan.targets.len() > 1 {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}// {}", clean(&target.name));
        }
        text += &series(&points(&slots));
    }
    if text.is_empty() { Err(ExportError::NotMeasured(unmeasured.join(", "))) } else { Ok(text) }
}

/// Points as the progress of hey is converted to them: seconds with four decimals, and what was done since the one before.
fn series(points: &[(Nanos, u64)]) -> String {
    points.iter().fold(String::new(), |mut text, (at_ns, requests)| {
        let _ = writeln!(text, "[{:.4}, {requests}],", *at_ns as f64 / 1e9);
        text
    })
}

/// Most points of a target: eleven hours in half seconds, and what a browser can still draw. Of longer runs points stand
/// further apart, so that a time that no run ever took asks for no memory either.
const MOST_STEPS: Nanos = 80_000;

/// Ends of steps, and the requests within each; the first point is 0 at 0. What it reads may be of a damaged archive: sums stop
/// at the largest number.
fn points(slots: &[&Slot]) -> Vec<(Nanos, u64)> {
    let total_ns = slots.iter().fold(0, |sum: Nanos, slot| sum.saturating_add(slot.elapsed_ns));
    // A slot of many minutes is recorded in longer intervals: as many whole ones as it takes.
    let interval_ns = slots.iter().map(|slot| slot.series.interval_ns).max().unwrap_or(0).max(1);
    let wanted_ns = STEP_NS.max(total_ns.div_ceil(MOST_STEPS));
    let step_ns = interval_ns.saturating_mul(wanted_ns.div_ceil(interval_ns));
    let steps = total_ns.div_ceil(step_ns).max(1);
    let end_ns = |step: u64| step.saturating_mul(step_ns).min(total_ns);
    let mut points: Vec<(Nanos, u64)> = (0..=steps).map(|step| (end_ns(step), 0)).collect();
    let mut begin_ns: Nanos = 0;
    for slot in slots {
        for (number, interval) in (1u64..).zip(&slot.series.intervals) {
            // Its end: by then they were done. What ended within the grace counts at the very end.
            let within_ns = number.saturating_mul(slot.series.interval_ns).min(slot.elapsed_ns);
            let step = begin_ns.saturating_add(within_ns).div_ceil(step_ns).clamp(1, steps);
            let requests = interval.ok.saturating_add(interval.failed);
            let point = &mut points[step as usize].1;
            *point = point.saturating_add(requests);
        }
        begin_ns = begin_ns.saturating_add(slot.elapsed_ns);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{Interval, Series};

    fn slot(interval_ns: Nanos, elapsed_ns: Nanos, oks: &[u64]) -> Slot {
        let intervals = oks.iter().map(|&ok| Interval { ok, failed: 1, ..Interval::default() }).collect();
        Slot { elapsed_ns, series: Series { interval_ns, intervals }, ..Slot::empty(0, SlotRole::Measured) }
    }

    const MS: Nanos = MILLISECOND_NS;

    /// The increments of hey's progress in the story of the twin web servers.
    #[test]
    fn points_are_written_as_the_story_has_them() {
        let points = [(0, 0), (5_026 * MS / 10, 51), (10_026 * MS / 10, 184), (7_765 * MS, 126)];
        assert_eq!(series(&points), "[0.0000, 0],\n[0.5026, 51],\n[1.0026, 184],\n[7.7650, 126],\n");
    }

    /// The same 3,000 requests in 7.7650 s, as the generator records them: what the story leaves out is spread evenly.
    #[test]
    fn a_run_like_that_of_the_story_has_its_series() {
        let per_half_second = [vec![51, 184], vec![203; 13], vec![126]].concat();
        let intervals = per_half_second.iter().enumerate().flat_map(|(step, &requests)| {
            // All in the step's third tenth of a second, of which the last step has no more.
            (0..if step == 15 { 3 } else { 5 }).map(move |tenth| if tenth == 2 { requests } else { 0 })
        });
        let mut one = slot(100 * MS, 7_765 * MS, &intervals.collect::<Vec<u64>>());
        one.series.intervals.iter_mut().for_each(|interval| interval.failed = 0);
        assert_eq!(one.series.intervals.iter().map(|interval| interval.ok).sum::<u64>(), 3_000);
        let expected = "\
[0.0000, 0],
[0.5000, 51],
[1.0000, 184],
[1.5000, 203],
[2.0000, 203],
[2.5000, 203],
[3.0000, 203],
[3.5000, 203],
[4.0000, 203],
[4.5000, 203],
[5.0000, 203],
[5.5000, 203],
[6.0000, 203],
[6.5000, 203],
[7.0000, 203],
[7.5000, 203],
[7.7650, 126],
";
        assert_eq!(series(&points(&[&one])), expected);
    }

    #[test]
    fn points_are_half_seconds_apart_and_the_last_is_the_end() {
        let one = slot(100 * MS, 1_130 * MS, &[10; 12]);
        assert_eq!(points(&[&one]), [(0, 0), (500 * MS, 55), (1_000 * MS, 55), (1_130 * MS, 22)]);
    }

    #[test]
    fn times_that_no_run_took_ask_for_no_memory() {
        let huge = slot(1, Nanos::MAX, &[u64::MAX - 1; 3]);
        let points = points(&[&huge, &huge, &slot(Nanos::MAX, Nanos::MAX, &[1; 3])]);
        assert!(points.len() <= MOST_STEPS as usize + 1, "{}", points.len());
        assert!(points.iter().any(|(_, requests)| *requests == u64::MAX));
        assert_eq!(points.last().unwrap().0, Nanos::MAX);
        let long = slot(1_000 * MS, 100_000 * 1_000 * MS, &[1; 10]);
        assert!(super::points(&[&long]).len() <= MOST_STEPS as usize + 1);
    }

    #[test]
    fn slots_stand_one_behind_the_other() {
        let (one, two) = (slot(100 * MS, 300 * MS, &[10; 3]), slot(100 * MS, 400 * MS, &[20; 4]));
        // The fifth interval lies between 400 and 500 ms.
        assert_eq!(points(&[&one, &two]), [(0, 0), (500 * MS, 33 + 42), (700 * MS, 42)]);
    }

    #[test]
    fn long_slots_have_points_as_far_apart_as_their_intervals_allow() {
        let long = slot(400 * MS, 1_700 * MS, &[1; 5]);
        assert_eq!(points(&[&long]), [(0, 0), (800 * MS, 4), (1_600 * MS, 4), (1_700 * MS, 2)]);
    }

    #[test]
    fn no_request_is_lost() {
        // More intervals than the slot's time: what ended within the grace.
        let late = slot(100 * MS, 200 * MS, &[1; 9]);
        assert_eq!(points(&[&late]), [(0, 0), (200 * MS, 18)]);
    }
}
