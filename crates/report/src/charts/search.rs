//! The promised figure over the rate, attempt by attempt.

use super::latency::time_axis;
use super::{Chart, Subject, sentences};
use crate::figures::{TimeUnit, rate};
use crate::plot::{Axis, Drawing, Line, Lines};
use crate::search::{answer, table};
use duel_model::{AttemptOutcome, PromiseMetric};

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let search = subject.verdict.search.as_ref()?;
    // The first time that was promised; where none was, the 99th percentile.
    let metric = search.promises.iter().map(|promise| promise.metric).find(|metric| metric.is_time());
    let quantile = metric.map_or(Some(0.99), PromiseMetric::quantile);
    let mut points: Vec<(f64, f64, bool)> = search
        .attempts
        .iter()
        .filter_map(|attempt| {
            let response = &subject.run.slots.iter().find(|slot| slot.index == attempt.slot)?.tally.response;
            let ns = match (quantile, metric) {
                (Some(q), _) => response.quantile_ns(q)? as f64,
                (None, Some(PromiseMetric::Max)) => response.max_ns()? as f64,
                (None, _) => response.mean_ns()?,
            };
            Some((attempt.rate_per_s, ns, attempt.outcome == AttemptOutcome::Kept))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (lowest, highest) =
        points.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &(_, ns, _)| (low.min(ns.max(1.0)), high.max(ns)));
    if highest <= 0.0 {
        return None;
    }
    let unit = TimeUnit::suiting(points.iter().map(|&(_, ns, _)| ns));
    let what = metric.map_or_else(|| "p99".to_owned(), |metric| metric.to_string());
    let (slowest, fastest) = (points.first()?.0, points.last()?.0);
    Some(Chart {
        id: "search",
        title: format!("Response time ({what}) by offered rate"),
        description: sentences([answer(search), format!("The highest rate tried was {}", rate(fastest))]),
        drawing: Drawing::Lines(Lines {
            x: Axis::log(format!("{}s offered per second, log scale", subject.noun), slowest, fastest)?,
            y: time_axis(format!("{what} ({})", unit.name), unit.value(lowest), unit.value(highest)),
            lines: vec![Line {
                name: subject.names().into_iter().next().unwrap_or_default(),
                pieces: vec![points.iter().map(|&(per_s, ns, _)| (per_s, unit.value(ns))).collect()],
                band: Vec::new(),
            }],
            crosses: points.iter().filter(|point| !point.2).map(|point| (0, point.0)).collect(),
            note: "A point is an attempt. Crosses: attempts that were not kept.".to_owned(),
        }),
        table: table(subject.run, search),
    })
}
