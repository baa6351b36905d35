//! Response times over the levels of a factor: the median and the 99th percentile of each target.

use super::factors::{label, levels_axis, means_of_levels};
use super::latency::time_axis;
use super::{Chart, Subject, sentences};
use crate::experiment::{figure, metrics, shown_figure};
use crate::figures::{TimeUnit, duration, exact_percent};
use crate::plot::{Drawing, Pen, Point, PointSeries, Points};
use crate::table::{Align, Row, Table};
use crate::text::clean;
use duel_model::{Experiment, FactorVerdict, LevelVerdict, Metric, Ranged, Target};

/// What is drawn of each target, and how.
const QUANTILES: [(Metric, Pen, &str); 2] =
    [(Metric::ResponseP50, Pen::Broad, "median"), (Metric::ResponseP99, Pen::Fine, "99th percentile")];

/// `None` where there is nothing to draw that the factor's chart of the main metric does not show.
pub(super) fn chart(
    subject: &Subject<'_>,
    experiment: &Experiment,
    verdict: &FactorVerdict,
    id: String,
) -> Option<Chart> {
    let there = metrics(&verdict.levels);
    let main = there.first()?;
    let drawn: Vec<(Metric, Pen, &str)> = QUANTILES.into_iter().filter(|(metric, ..)| there.contains(metric)).collect();
    if drawn.iter().all(|(metric, ..)| metric == main) {
        return None;
    }
    let all = || {
        let figures = verdict.levels.iter().flat_map(|level| &level.figures);
        figures.filter(|figure| figure.metric != Metric::Rate).map(|figure| figure.figure)
    };
    let ends_ns = || all().flat_map(|f| [Some(f.value), f.low, f.high]).flatten().filter(|ns| ns.is_finite());
    let highest_ns = ends_ns().fold(0.0, f64::max);
    let lowest_ns = ends_ns().fold(f64::INFINITY, f64::min);
    if highest_ns <= 0.0 {
        return None;
    }
    let unit = TimeUnit::suiting(all().map(|figure| figure.value));
    let (x, places) = levels_axis(verdict);
    let are_numbers = verdict.levels.iter().all(|level| level.number.is_some());
    let point = |x: f64, found: &Ranged| Point {
        x,
        y: unit.value(found.value),
        interval: found.low.zip(found.high).map(|(low, high)| (unit.value(low), unit.value(high))),
        is_left_out: false,
    };
    let targets = &subject.run.plan.targets;
    let of_target = |(number, target): (usize, &Target)| {
        let series = |&(metric, pen, what): &(Metric, Pen, &str)| {
            let found = verdict
                .levels
                .iter()
                .zip(&places)
                .filter_map(|(level, &x)| Some(point(x, figure(level, &target.name, metric)?)));
            let points: Vec<Point> = found.collect();
            let line = if are_numbers { PointSeries::joined(&points) } else { Vec::new() };
            PointSeries { name: name(targets, target, what), number, pen, points, line, band: Vec::new() }
        };
        drawn.iter().map(series).collect::<Vec<_>>()
    };
    Some(Chart {
        id,
        title: format!("Response time by {}", clean(&verdict.name)),
        description: sentences(targets.iter().flat_map(|target| {
            drawn.iter().filter_map(|(metric, _, what)| {
                let ends = ends_of(&verdict.levels, &target.name, *metric)?;
                Some(format!("{} {ends}", name(targets, target, what)))
            })
        })),
        drawing: Drawing::Points(Points {
            x,
            y: time_axis(format!("response time ({})", unit.name), unit.value(lowest_ns), unit.value(highest_ns)),
            series: targets.iter().enumerate().flat_map(of_target).collect(),
            note: format!(
                "Filled marks: medians; hollow marks: 99th percentiles, where slots had enough {}s. Bars: {} intervals, each for \
                 its mark alone.{}",
                subject.noun,
                exact_percent(experiment.confidence),
                means_of_levels(experiment)
            ),
        }),
        table: table(targets, verdict, &drawn),
    })
}

/// What a series is called; a single target needs no name.
fn name(targets: &[Target], target: &Target, what: &str) -> String {
    if targets.len() > 1 { format!("{}: {what}", clean(&target.name)) } else { what.to_owned() }
}

/// `2.1 ms at 1, 9.4 ms at 32`.
fn ends_of(levels: &[LevelVerdict], target: &str, metric: Metric) -> Option<String> {
    let known = |level| Some((level, figure(level, target, metric)?.value));
    let mut known = levels.iter().filter_map(known);
    let say = |(level, ns): (&LevelVerdict, f64)| format!("{} at {}", duration(ns), label(level));
    let first = known.next()?;
    Some(known.next_back().map_or_else(|| say(first), |last| format!("{}, {}", say(first), say(last))))
}

fn table(targets: &[Target], verdict: &FactorVerdict, drawn: &[(Metric, Pen, &str)]) -> Table {
    let columns =
        || targets.iter().flat_map(|target| drawn.iter().map(move |(metric, _, what)| (target, metric, what)));
    let rows = verdict.levels.iter().map(|level| {
        let cells = columns().map(|(target, metric, _)| shown_figure(figure(level, &target.name, *metric), duration));
        Row::new(label(level), cells.collect())
    });
    Table {
        corner: clean(&verdict.name),
        heads: columns().map(|(target, _, what)| name(targets, target, what)).collect(),
        rows: rows.collect(),
        align: Align::Right,
    }
}
