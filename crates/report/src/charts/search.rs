//! The promised figure over the rate, all targets overlaid.

use super::latency::time_axis;
use super::{Chart, Subject, sentences};
use crate::contest::promised;
use crate::figures::{TimeUnit, rate};
use crate::plot::{Axis, Drawing, Line, Lines};
use crate::search::{answer, promises, table_of_all};
use duel_model::{Attempt, AttemptOutcome, PromiseMetric, RateSearch};

/// All attempts at one rate as they are drawn.
#[derive(Clone, Copy)]
struct Point {
    per_s: f64,
    /// Geometric mean, lowest and highest of the attempts.
    ns: f64,
    range_ns: (f64, f64),
    is_kept: bool,
}

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let searches = &subject.verdict.searches;
    // The first time that was promised; where none was, the 99th percentile.
    let metric = promises(subject.verdict).iter().map(|promise| promise.metric).find(|metric| metric.is_time());
    let each: Vec<Vec<Point>> = searches.iter().map(|search| points(subject, search, metric)).collect();
    let all = || each.iter().flatten();
    let (lowest, highest) = range(all().flat_map(|point| [point.range_ns.0.max(1.0), point.range_ns.1]))?;
    let (slowest, fastest) = range(all().map(|point| point.per_s))?;
    let unit = TimeUnit::suiting(all().map(|point| point.ns));
    let what = metric.map_or_else(|| "p99".to_owned(), |metric| metric.to_string());
    let names = subject.names();
    let name = |search: &RateSearch| names.get(search.target).cloned().unwrap_or_default();
    let said = searches.iter().map(|search| match searches.len() {
        1 => answer(search),
        _ => format!("{}: {}", name(search), answer(search)),
    });
    let crosses = each.iter().enumerate().flat_map(|(series, points)| {
        points.iter().filter(|point| !point.is_kept).map(move |point| (series, point.per_s))
    });
    Some(Chart {
        id: "search".into(),
        title: format!("Response time ({what}) by offered rate"),
        description: sentences(said.chain([format!("The highest rate tried was {}", rate(fastest))])),
        drawing: Drawing::Lines(Lines {
            x: Axis::log(format!("{}s offered per second, log scale", subject.noun), slowest, fastest)?,
            y: time_axis(format!("{what} ({})", unit.name), unit.value(lowest), unit.value(highest)),
            lines: searches
                .iter()
                .zip(&each)
                .map(|(search, points)| Line {
                    name: name(search),
                    pieces: vec![points.iter().map(|point| (point.per_s, unit.value(point.ns))).collect()],
                    band: vec![
                        points
                            .iter()
                            .map(|point| (point.per_s, unit.value(point.range_ns.0), unit.value(point.range_ns.1)))
                            .collect(),
                    ],
                })
                .collect(),
            crosses: crosses.collect(),
            note: format!(
                "A point is a rate; bands reach from its lowest attempt to its highest. Promised: {}. Crosses: some attempt \
                 did not keep it.",
                promised(promises(subject.verdict))
            ),
        }),
        table: table_of_all(subject.run, searches),
    })
}

/// The rates of one search, rising.
fn points(subject: &Subject<'_>, search: &RateSearch, metric: Option<PromiseMetric>) -> Vec<Point> {
    let quantile = metric.map_or(Some(0.99), PromiseMetric::quantile);
    let seen = |attempt: &Attempt| {
        let response = &subject.run.slots.iter().find(|slot| slot.index == attempt.slot)?.tally.response;
        let ns = match (quantile, metric) {
            (Some(q), _) => response.quantile_ns(q)? as f64,
            (None, Some(PromiseMetric::Max)) => response.max_ns()? as f64,
            (None, _) => response.mean_ns()?,
        };
        Some((attempt.rate_per_s, ns, attempt.outcome == AttemptOutcome::Kept))
    };
    let mut attempts: Vec<(f64, f64, bool)> = search.attempts.iter().filter_map(seen).collect();
    attempts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let point = |attempts: &[(f64, f64, bool)]| {
        let logs: f64 = attempts.iter().map(|(_, ns, _)| ns.max(1.0).ln()).sum();
        Some(Point {
            per_s: attempts.first()?.0,
            ns: (logs / attempts.len() as f64).exp(),
            range_ns: range(attempts.iter().map(|(_, ns, _)| *ns))?,
            is_kept: attempts.iter().all(|(.., is_kept)| *is_kept),
        })
    };
    attempts.chunk_by(|a, b| a.0 == b.0).filter_map(point).collect()
}

/// The smallest and the largest; `None` of nothing, and where nothing is above 0.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    (high > 0.0).then_some((low, high))
}
