//! What each factor does: the main metric of all targets at each level, their response times, and their ratio; and the
//! scaling law.

use super::ratios::{TURNED, axis, margin_of, row, time_over};
use super::{Chart, Subject, level_latency, sentences};
use crate::experiment::{dependence, figure, levels_table, metrics, title};
use crate::figures::{TimeUnit, exact_percent, rate, three_digits};
use crate::plot::{Axis, Drawing, Intervals, Pen, Point, PointSeries, Points};
use crate::table::{Align, Row, Table};
use crate::text::clean;
use duel_model::{
    Experiment, Factor, FactorVerdict, LevelVerdict, Metric, PairVerdict, Ranged, Scaling, ScalingLaw, ScalingPoint,
    without_secrets,
};

/// Points of a fitted curve.
const CURVE_POINTS: u32 = 100;
/// From this ratio of the largest to the smallest level on, levels are drawn on a logarithmic axis: they are given by
/// doubling, usually.
const LOG_FROM: f64 = 4.0;

/// Three charts for each factor, without a ratio or without times fewer; and one for the scaling law.
pub(super) fn charts(subject: &Subject<'_>, experiment: &Experiment) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (factor, verdict) in subject.run.plan.factors.iter().zip(&experiment.factors) {
        let [of_figures, of_ratios, of_latencies] = ids(factor);
        charts.extend(values(subject, experiment, of_figures, verdict));
        charts.extend(level_latency::chart(subject, experiment, verdict, of_latencies));
        charts.extend(ratios(subject, experiment, of_ratios, verdict));
    }
    charts.extend(experiment.scaling.as_ref().and_then(|law| scaling(subject, experiment, law)));
    charts
}

/// Names of the files of a factor's charts: of figures, of ratios, of latencies.
fn ids(factor: &Factor) -> [String; 3] {
    // Beside it stands the chart of the rate that was served.
    let name = if matches!(factor, Factor::Rate(_)) { "offered-rate" } else { factor.name() };
    [name.to_owned(), format!("{name}-ratio"), format!("{name}-latency")]
}

pub(super) fn label(level: &LevelVerdict) -> String {
    without_secrets(&clean(&level.label))
}

/// The x axis of a factor and where its levels lie: numbers by their size, everything else side by side.
pub(super) fn levels_axis(factor: &FactorVerdict) -> (Axis, Vec<f64>) {
    let numbers: Option<Vec<f64>> = factor.levels.iter().map(|level| level.number).collect();
    let name = if factor.name == "rate" { "requests per second offered".to_owned() } else { clean(&factor.name) };
    let drawn = numbers.filter(|numbers| numbers.iter().all(|n| n.is_finite())).and_then(|numbers| {
        let (smallest, largest) = ends(numbers.iter().copied())?;
        let axis = if largest >= LOG_FROM * smallest && smallest > 0.0 {
            Axis::log(format!("{name}, log scale"), smallest, largest)?
        } else {
            Axis::from_zero(name.clone(), largest).with_headroom()
        };
        let ticks = numbers.iter().copied().zip(factor.levels.iter().map(label)).collect();
        Some((axis.with_ticks_at(ticks), numbers))
    });
    drawn.unwrap_or_else(|| {
        let places = (0..factor.levels.len()).map(|place| place as f64).collect();
        (Axis::categories(name, factor.levels.iter().map(label).collect()), places)
    })
}

fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
}

/// The main metric of each target at each level.
fn values(subject: &Subject<'_>, experiment: &Experiment, id: String, verdict: &FactorVerdict) -> Option<Chart> {
    let metric = *metrics(&verdict.levels).first()?;
    let all =
        || verdict.levels.iter().flat_map(|level| &level.figures).filter(|f| f.metric == metric).map(|f| f.figure);
    let unit = TimeUnit::suiting(all().map(|figure| figure.value));
    let value = |value: f64| if metric == Metric::Rate { value } else { unit.value(value) };
    let highest = all().flat_map(|f| [Some(f.value), f.high]).flatten().fold(0.0, f64::max);
    if !(highest > 0.0 && highest.is_finite()) {
        return None;
    }
    let (x, places) = levels_axis(verdict);
    let is_number = verdict.levels.iter().all(|level| level.number.is_some());
    let point = |(level, &x): (&LevelVerdict, &f64), target: &str| {
        let found = figure(level, target, metric)?;
        Some(Point {
            x,
            y: value(found.value),
            interval: found.low.zip(found.high).map(|(low, high)| (value(low), value(high))),
            is_left_out: false,
        })
    };
    let targets = subject.run.plan.targets.iter();
    let series = targets.enumerate().map(|(number, target)| {
        let points: Vec<Point> =
            verdict.levels.iter().zip(&places).filter_map(|level| point(level, &target.name)).collect();
        let line = if is_number { PointSeries::joined(&points) } else { Vec::new() };
        PointSeries { name: clean(&target.name), number, pen: Pen::Broad, points, line, band: Vec::new() }
    });
    let y = match metric {
        Metric::Rate => format!("{}s per second", subject.noun),
        Metric::ResponseP50 | Metric::ResponseP99 => format!("{} ({})", metric.name(), unit.name),
    };
    let said = verdict
        .dependences
        .iter()
        .map(|found| without_secrets(&dependence(subject.run, &verdict.name, found, experiment.confidence)));
    Some(Chart {
        id,
        title: format!("{} by {}", title(metric), verdict.name),
        description: sentences(
            [format!("{} at {} levels of {}", title(metric), verdict.levels.len(), verdict.name)]
                .into_iter()
                .chain(said.map(|said| said.trim_end_matches('.').to_owned())),
        ),
        drawing: Drawing::Points(Points {
            x,
            y: Axis::from_zero(y, value(highest)).with_headroom(),
            series: series.collect(),
            note: format!(
                "Bars: {} intervals, each for its mark alone.{}",
                exact_percent(experiment.confidence),
                means_of_levels(experiment)
            ),
        }),
        table: levels_table(subject.run, &verdict.name, &verdict.levels, metric),
    })
}

/// What a level is a mean of.
pub(super) fn means_of_levels(experiment: &Experiment) -> &'static str {
    if experiment.factors.len() > 1 { " Each level is the geometric mean over all other factors." } else { "" }
}

/// How many times slower each target is at each level.
fn ratios(subject: &Subject<'_>, experiment: &Experiment, id: String, verdict: &FactorVerdict) -> Option<Chart> {
    let metric = *metrics(&verdict.levels).first()?;
    let of_metric = || {
        let of_level = |level| move |pair| (level, pair);
        let pairs = verdict.levels.iter().flat_map(move |level| level.pairs.iter().map(of_level(level)));
        pairs.filter(|(_, pair): &(&LevelVerdict, &PairVerdict)| pair.metric == metric)
    };
    let baseline = clean(&of_metric().next()?.1.baseline);
    let margin = subject.run.plan.compare.margin;
    let text = time_over(&baseline);
    let axis = axis(of_metric().map(|(_, pair)| pair), margin, text)?;
    let many = subject.run.plan.targets.len() > 2;
    let name = |level: &LevelVerdict, target: &str| {
        if many { format!("{}: {}", label(level), clean(target)) } else { label(level) }
    };
    let rows =
        of_metric().map(|(level, pair)| row(pair, name(level, &pair.target), subject.index(&pair.target))).collect();
    Some(Chart {
        id,
        title: format!("How many times slower than {baseline}, by {}", verdict.name),
        description: sentences([format!(
            "Ratios of {} at {} levels of {}",
            metric.name(),
            verdict.levels.len(),
            verdict.name
        )]),
        drawing: Drawing::Intervals(Intervals {
            axis,
            margin: Some(margin_of(margin)),
            rows,
            note: format!(
                "Marks: estimates. {TURNED} Coloured bands: {} intervals, each for its mark alone. Grey zone: differences \
                 within {}, which do not matter in practice.{}",
                exact_percent(experiment.confidence),
                exact_percent(margin),
                means_of_levels(experiment)
            ),
        }),
        table: levels_table(subject.run, &verdict.name, &verdict.levels, metric),
    })
}

/// Rates over connections with the law that was fitted to them.
fn scaling(subject: &Subject<'_>, experiment: &Experiment, scaling: &Scaling) -> Option<Chart> {
    scaling.curves.iter().find(|curve| curve.law.is_some())?;
    let points = || scaling.curves.iter().flat_map(|curve| &curve.points);
    let (smallest, largest) = ends(points().map(|point| f64::from(point.connections)))?;
    let mut levels: Vec<u32> = points().map(|point| point.connections).collect();
    levels.sort_unstable();
    levels.dedup();
    let ticks = levels.into_iter().map(|n| (f64::from(n), n.to_string())).collect();
    let series: Vec<PointSeries> = scaling
        .curves
        .iter()
        .enumerate()
        .map(|(number, curve)| PointSeries {
            name: clean(&curve.target),
            number,
            pen: Pen::Broad,
            points: curve.points.iter().map(point).collect(),
            line: curve.law.as_ref().map(|law| curve_of(law, smallest, largest)).unwrap_or_default(),
            band: curve.band.iter().map(|at| (at.connections, at.low_per_s, at.high_per_s)).collect(),
        })
        .collect();
    let drawn = series.iter().flat_map(|s| {
        let ends = s.points.iter().flat_map(|point| [Some(point.y), point.interval.map(|(_, high)| high)]).flatten();
        ends.chain(s.line.iter().map(|(_, y)| *y)).chain(s.band.iter().map(|(_, _, high)| *high))
    });
    let highest = drawn.filter(|y| y.is_finite()).fold(0.0, f64::max);
    let (has_band, confidence) =
        (series.iter().any(|series| !series.band.is_empty()), exact_percent(experiment.confidence));
    let said = scaling.curves.iter().filter_map(|curve| {
        let law = curve.law.as_ref()?;
        Some(format!(
            "{}: lambda {}, sigma {}, kappa {}",
            clean(&curve.target),
            rate(law.lambda_per_s.value),
            three_digits(law.sigma.value),
            three_digits(law.kappa.value)
        ))
    });
    Some(Chart {
        id: "scaling".into(),
        title: "Scaling law".to_owned(),
        description: sentences(said),
        drawing: Drawing::Points(Points {
            x: Axis::log("connections, log scale", smallest, largest)?.with_ticks_at(ticks),
            y: Axis::from_zero(format!("{}s per second", subject.noun), highest).with_headroom(),
            series,
            note: format!(
                "Marks: what was measured, with {confidence} intervals. Crosses: left out of the fit. Lines: the fitted law{}.",
                if has_band {
                    format!(", with its {confidence} interval at each number by itself")
                } else {
                    String::new()
                }
            ),
        }),
        table: table(scaling),
    })
}

fn point(point: &ScalingPoint) -> Point {
    let Ranged { value, low, high } = point.rate;
    Point { x: f64::from(point.connections), y: value, interval: low.zip(high), is_left_out: point.left_out.is_some() }
}

fn curve_of(law: &ScalingLaw, smallest: f64, largest: f64) -> Vec<(f64, f64)> {
    let at = |step: u32| smallest * (largest / smallest).powf(f64::from(step) / f64::from(CURVE_POINTS));
    let rate =
        |n: f64| law.lambda_per_s.value * n / (1.0 + law.sigma.value * (n - 1.0) + law.kappa.value * n * (n - 1.0));
    (0..=CURVE_POINTS).map(at).map(|n| (n, rate(n))).collect()
}

/// Measured and fitted rates.
fn table(scaling: &Scaling) -> Table {
    let heads = scaling
        .curves
        .iter()
        .flat_map(|curve| [clean(&curve.target), format!("{} by the law", clean(&curve.target))])
        .collect();
    let mut connections: Vec<u32> = scaling.curves.iter().flat_map(|c| &c.points).map(|p| p.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let rows = connections
        .into_iter()
        .map(|n| {
            let cells = scaling.curves.iter().flat_map(|curve| {
                let found = curve.points.iter().find(|point| point.connections == n);
                [found.map(|point| point.rate.value), found.and_then(|point| point.fitted_per_s)]
            });
            Row::new(n.to_string(), cells.map(|value| crate::figures::maybe(value, rate)).collect())
        })
        .collect();
    Table { corner: "connections".to_owned(), heads, rows, align: Align::Right }
}
