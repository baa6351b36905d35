//! Courses of stages of several targets, one over the other: figures over the time since a course began.

use super::latency::time_axis;
use super::{Chart, Subject, sentences};
use crate::figures::{TimeUnit, UNKNOWN, duration, maybe, rate as shown_rate, three_digits};
use crate::plot::{Axis, Drawing, Line, Lines};
use crate::stages::label;
use crate::table::{Align, Row, Table};
use crate::totals::Totals;
use duel_model::{Metric, Slot, Stage, StageTally};

/// Steps that a course is drawn in at most.
const MOST_STEPS: u64 = 160;

/// A stretch of time of all courses of one target.
struct Step {
    /// Its middle, in s since the course began.
    at_s: f64,
    /// Ops per second: over all courses, in the course with the fewest, and in the one with the most.
    rate_per_s: (f64, f64, f64),
    /// Response time of ops that ended in it, ns: mean, shortest mean of a course, longest; `None` where none ended well.
    response_ns: Option<(f64, f64, f64)>,
    failed: bool,
}

/// Whether the run is made of courses of several targets.
pub(super) fn is_drawn(subject: &Subject<'_>) -> bool {
    subject.targets.len() > 1 && !subject.run.plan.load.shape.stages.is_empty()
}

/// Requests done over the course.
pub(super) fn rate(subject: &Subject<'_>) -> Option<Chart> {
    let all = steps(subject);
    let highest = all.iter().flatten().map(|step| step.rate_per_s.2).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let noun = subject.noun;
    let lines = subject.names().into_iter().zip(&all).map(|(name, steps)| Line {
        name,
        pieces: vec![steps.iter().map(|step| (step.at_s, step.rate_per_s.0)).collect()],
        band: vec![steps.iter().map(|step| (step.at_s, step.rate_per_s.1, step.rate_per_s.2)).collect()],
    });
    let ended = |stage: &Stage, tally: &StageTally, target: &Totals<'_>| {
        let seconds = stage.duration_ns as f64 / 1e9 * target.slots.len().max(1) as f64;
        shown_rate(tally.ended_ok as f64 / seconds)
    };
    Some(Chart {
        id: "rate".into(),
        title: "Rate through all stages".to_owned(),
        description: sentences(
            subject.names().into_iter().zip(&subject.targets).map(|(name, target)| {
                format!("{name}: {} over the whole course", maybe(target.rate_per_s(), shown_rate))
            }),
        ),
        drawing: Drawing::Lines(Lines {
            x: time(subject),
            y: Axis::from_zero(format!("{noun}s per second"), highest).with_headroom(),
            lines: lines.collect(),
            crosses: crosses(&all),
            note: noted("rate", &all),
        }),
        table: table(subject, "done", Metric::Rate, &ended),
    })
}

/// Seconds of the course; mean, least and most response time there, ns.
type Point = (f64, (f64, f64, f64));

/// Response times over the course.
pub(super) fn latency(subject: &Subject<'_>) -> Option<Chart> {
    let all = steps(subject);
    let times = || all.iter().flatten().filter_map(|step| step.response_ns);
    let highest = times().map(|(_, _, high)| high).fold(0.0, f64::max);
    let lowest = times().map(|(_, low, _)| low).fold(f64::INFINITY, f64::min);
    if highest <= 0.0 {
        return None;
    }
    let unit = TimeUnit::suiting(times().map(|(mean, ..)| mean));
    let lines = subject.names().into_iter().zip(&all).map(|(name, steps)| {
        let drawn = |step: &Step| step.response_ns.map(|ns| (step.at_s, ns));
        // Where nothing ended, the line has a gap.
        let pieces: Vec<Vec<Point>> = steps
            .split(|step| step.response_ns.is_none())
            .map(|piece| piece.iter().filter_map(drawn).collect())
            .collect();
        let value = |ns: f64| unit.value(ns);
        Line {
            name,
            pieces: pieces
                .iter()
                .map(|piece| piece.iter().map(|&(s, (mean, ..))| (s, value(mean))).collect())
                .collect(),
            band: pieces
                .iter()
                .map(|piece| piece.iter().map(|&(s, (_, low, high))| (s, value(low), value(high))).collect())
                .collect(),
        }
    });
    let median = |_: &Stage, tally: &StageTally, _: &Totals<'_>| {
        maybe(tally.response.quantile_ns(0.5).map(|ns| ns as f64), duration)
    };
    Some(Chart {
        id: "latency".into(),
        title: "Response time through all stages".to_owned(),
        description: sentences(subject.names().into_iter().zip(&subject.targets).map(|(name, target)| {
            let all = target.tally.response.quantile_ns(0.5).map(|ns| ns as f64);
            format!("{name}: median {} over the whole course", maybe(all, duration))
        })),
        drawing: Drawing::Lines(Lines {
            x: time(subject),
            y: time_axis(format!("response time, mean ({})", unit.name), unit.value(lowest), unit.value(highest)),
            lines: lines.collect(),
            crosses: crosses(&all),
            note: noted("mean", &all),
        }),
        table: table(subject, "median", Metric::ResponseP50, &median),
    })
}

fn time(subject: &Subject<'_>) -> Axis {
    Axis::from_zero("time since the course began (s)", course_ns(subject) as f64 / 1e9)
}

fn course_ns(subject: &Subject<'_>) -> u64 {
    Stage::total_ns(&subject.run.plan.load.shape.stages)
}

fn noted(what: &str, all: &[Vec<Step>]) -> String {
    let failed = if all.iter().flatten().any(|step| step.failed) { " Crosses: something failed." } else { "" };
    format!(
        "The {what} over all courses; bands reach from the course with the lowest to that with the highest.{failed}"
    )
}

fn crosses(all: &[Vec<Step>]) -> Vec<(usize, f64)> {
    let failed = |(series, steps): (usize, &Vec<Step>)| {
        let at: Vec<f64> = steps.iter().filter(|step| step.failed).map(|step| step.at_s).collect();
        at.into_iter().map(move |at_s| (series, at_s)).collect::<Vec<_>>()
    };
    all.iter().enumerate().flat_map(failed).collect()
}

/// What was counted in one step of one course.
#[derive(Default, Clone, Copy)]
struct Counted {
    ok: u64,
    failed: u64,
    response_sum_ns: u64,
}

fn steps(subject: &Subject<'_>) -> Vec<Vec<Step>> {
    let total_ns = course_ns(subject);
    // The intervals of a course that was longer than others may be longer, too.
    let slots = || subject.targets.iter().flat_map(|target| &target.slots);
    let interval_ns = slots().map(|slot| slot.series.interval_ns).max().unwrap_or(0).max(1);
    let step_ns = interval_ns * (total_ns / interval_ns).div_ceil(MOST_STEPS).max(1);
    let count = total_ns.div_ceil(step_ns) as usize;
    subject.targets.iter().map(|target| of_target(target, step_ns, total_ns, count)).collect()
}

fn of_target(target: &Totals<'_>, step_ns: u64, total_ns: u64, count: usize) -> Vec<Step> {
    let courses: Vec<Vec<Counted>> = target.slots.iter().map(|slot| of_course(slot, step_ns, count)).collect();
    let step = |place: usize| {
        let from_ns = place as u64 * step_ns;
        let length_ns = step_ns.min(total_ns - from_ns).max(1) as f64;
        let each = || courses.iter().map(|course| course[place]);
        let rates = || each().map(|counted| counted.ok as f64 * 1e9 / length_ns);
        let means = || {
            let timed = each().filter(|counted| counted.ok > 0);
            timed.map(|counted| counted.response_sum_ns as f64 / counted.ok as f64)
        };
        let ok: u64 = each().map(|counted| counted.ok).sum();
        let sum_ns: f64 = each().map(|counted| counted.response_sum_ns as f64).sum();
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        Step {
            at_s: (from_ns as f64 + length_ns / 2.0) / 1e9,
            rate_per_s: (
                rates().sum::<f64>() / courses.len().max(1) as f64,
                least(&mut rates()).min(most(&mut rates())),
                most(&mut rates()),
            ),
            response_ns: (ok > 0).then(|| (sum_ns / ok as f64, least(&mut means()), most(&mut means()))),
            failed: each().any(|counted| counted.failed > 0),
        }
    };
    (0..count).map(step).collect()
}

/// What ended after the course's time is in none of its steps, as it is in none of its stages.
fn of_course(slot: &Slot, step_ns: u64, count: usize) -> Vec<Counted> {
    let mut steps = vec![Counted::default(); count];
    for (place, interval) in slot.series.intervals.iter().enumerate() {
        let at_ns = place as u64 * slot.series.interval_ns;
        if let Some(step) = steps.get_mut((at_ns / step_ns) as usize) {
            step.ok += interval.ok;
            step.failed += interval.failed;
            step.response_sum_ns = step.response_sum_ns.saturating_add(interval.response_sum_ns);
        }
    }
    steps
}

/// A row for each stage: the figure of each target, and the ratio to the baseline.
fn table(
    subject: &Subject<'_>,
    corner: &str,
    metric: Metric,
    figure: &dyn Fn(&Stage, &StageTally, &Totals<'_>) -> String,
) -> Table {
    let names = subject.names();
    let mut heads = names.clone();
    heads.extend(names.iter().skip(1).map(|name| format!("{name}/{}", names[0])));
    let stages = &subject.run.plan.load.shape.stages;
    let rows = stages.iter().enumerate().map(|(place, stage)| {
        let mut cells: Vec<String> = subject
            .targets
            .iter()
            .map(|target| {
                let tally = target.tally.stages.get(place);
                tally.map_or_else(|| UNKNOWN.to_owned(), |tally| figure(stage, tally, target))
            })
            .collect();
        for target in &subject.run.plan.targets[1..] {
            let contrast = subject
                .verdict
                .stages
                .iter()
                .find(|it| it.target == target.name && it.stage == place && it.metric == metric);
            cells.push(maybe(contrast.and_then(|it| it.ratio), three_digits));
        }
        Row::new(label(stage), cells)
    });
    Table { corner: corner.to_owned(), heads, rows: rows.collect(), align: Align::Right }
}
