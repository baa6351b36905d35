//! How response times are distributed: percentiles, the axis stretched towards the tail.

use super::latency::time_axis;
use super::{Chart, Subject, sentences};
use crate::figures::{TimeUnit, UNKNOWN, count, duration, maybe};
use crate::plot::{Axis, Band, Drawing, Line, Lines};
use crate::table::{Align, Row, Table};
use crate::totals::Totals;
use duel_model::Distribution;

/// Steps of the curve for each nine.
const STEPS_PER_NINE: f64 = 20.0;
/// Steps of the band for each nine; it is smoother than the curve.
const BAND_STEPS_PER_NINE: f64 = 8.0;
/// A slot's quantile says something only if so many of its values lie beyond it.
const BEYOND: f64 = 5.0;
/// From so many slots on, their quartiles are worth a band.
const FEWEST_SLOTS: usize = 4;

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let response = |target: &Totals<'_>| nines_of(&target.tally.response);
    let most_nines = subject.targets.iter().map(response).fold(0.0, f64::max);
    let all = subject.targets.iter().map(|target| &target.tally.response).filter(|times| !times.is_empty());
    let (lowest, highest) = all.fold((f64::INFINITY, 0.0_f64), |(lowest, highest), times| {
        let (min, max) = (times.min_ns().unwrap_or(0) as f64, times.max_ns().unwrap_or(0) as f64);
        (lowest.min(min.max(1.0)), highest.max(max))
    });
    if highest <= 0.0 {
        return None;
    }
    let medians = subject.targets.iter().filter_map(|t| t.tally.response.quantile_ns(0.5)).map(|ns| ns as f64);
    let unit = TimeUnit::suiting(medians);
    let names = subject.names();
    let lines: Vec<Line> = names
        .iter()
        .zip(&subject.targets)
        .map(|(name, target)| Line {
            name: name.clone(),
            pieces: vec![curve(&target.tally.response, unit)],
            band: vec![band(target, unit)],
        })
        .collect();
    let has_band = lines.iter().any(|line| line.band.iter().any(|piece| piece.len() > 1));
    let note = if has_band {
        "All measured response times together. Bands: the middle half of the slots, where slots have enough of them."
    } else {
        "All measured response times together."
    };
    let unanswered = crate::summary::unanswered(subject.noun, &subject.targets).join(" ");
    let note = if unanswered.is_empty() { note.to_owned() } else { format!("{note} {unanswered}") };
    Some(Chart {
        id: "percentiles".into(),
        title: "Distribution of response times".to_owned(),
        description: sentences(names.iter().zip(&subject.targets).map(|(name, target)| said(name, target))),
        drawing: Drawing::Lines(Lines {
            x: Axis::nines("percentile (%), log scale towards 100", most_nines),
            y: time_axis(format!("response time ({})", unit.name), unit.value(lowest), unit.value(highest)),
            lines,
            crosses: Vec::new(),
            note,
        }),
        table: table(subject, names),
    })
}

/// How many nines a distribution can tell of: with 1,000 values, 99.9 % is the last but the largest.
fn nines_of(times: &Distribution) -> f64 {
    (times.count().max(1) as f64).log10()
}

/// The share of values below a number of nines.
fn share(nines: f64) -> f64 {
    1.0 - 10.0_f64.powf(-nines)
}

/// Quantiles of a distribution, found in one pass each; up to the largest value.
fn curve(times: &Distribution, unit: TimeUnit) -> Vec<(f64, f64)> {
    let last = nines_of(times);
    let steps = (last * STEPS_PER_NINE).floor() as u32;
    let mut points: Vec<(f64, f64)> = (0..=steps)
        .map(|step| f64::from(step) / STEPS_PER_NINE)
        .filter_map(|nines| Some((nines, unit.value(times.quantile_ns(share(nines))? as f64))))
        .collect();
    points.extend(times.max_ns().map(|max| (last, unit.value(max as f64))));
    points
}

/// The middle half of the slots' quantiles.
fn band(target: &Totals<'_>, unit: TimeUnit) -> Band {
    let slots: Vec<&Distribution> = target.slots.iter().map(|slot| &slot.tally.response).collect();
    let mut band = Band::new();
    for step in 0.. {
        let nines = f64::from(step) / BAND_STEPS_PER_NINE;
        let enough = |times: &&&Distribution| times.count() as f64 >= BEYOND * 10.0_f64.powf(nines);
        let mut values: Vec<u64> =
            slots.iter().filter(enough).filter_map(|times| times.quantile_ns(share(nines))).collect();
        // With slots missing it would be a band of those with the most values.
        if values.len() < slots.len().max(FEWEST_SLOTS) {
            break;
        }
        values.sort_unstable();
        let at = |q: f64| values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1] as f64;
        band.push((nines, unit.value(at(0.25)), unit.value(at(0.75))));
    }
    band
}

fn said(name: &str, target: &Totals<'_>) -> String {
    let times = &target.tally.response;
    let at = |q| maybe(times.quantile_ns(q).map(|ns| ns as f64), duration);
    format!("{name}: half of the response times within {}, 99 % within {}, all within {}", at(0.5), at(0.99), at(1.0))
}

fn table(subject: &Subject<'_>, heads: Vec<String>) -> Table {
    let times = || subject.targets.iter().map(|target| &target.tally.response);
    let unit = TimeUnit::suiting(times().filter_map(|t| t.quantile_ns(0.5)).map(|ns| ns as f64));
    let most = times().map(nines_of).fold(0.0, f64::max);
    let levels = [(0.0, "min"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (0.9, "90 %"), (0.95, "95 %")];
    let tails = [
        (2.0, 0.99, "99 %"),
        (3.0, 0.999, "99.9 %"),
        (4.0, 0.9999, "99.99 %"),
        (5.0, 0.99999, "99.999 %"),
        (6.0, 0.999_999, "99.9999 %"),
    ];
    let row = |label: &str, q: f64, nines: f64| {
        let cells = times().map(|times| match times.quantile_ns(q) {
            // Beyond what so many values tell, a quantile is only the largest of them.
            Some(_) if nines_of(times) < nines => UNKNOWN.to_owned(),
            Some(_) if q == 0.0 => maybe(times.min_ns().map(|ns| ns as f64), |ns| unit.show(ns)),
            Some(ns) => unit.show(ns as f64),
            None => UNKNOWN.to_owned(),
        });
        Row::new(label, cells.collect())
    };
    let mut rows: Vec<Row> = levels.iter().map(|&(q, label)| row(label, q, 0.0)).collect();
    rows.extend(tails.iter().filter(|(nines, ..)| *nines <= most).map(|&(nines, q, label)| row(label, q, nines)));
    rows.push(row("max", 1.0, 0.0));
    rows.push(Row::new("mean", times().map(|t| maybe(t.mean_ns(), |ns| unit.show(ns))).collect()));
    rows.push(Row::new("values", times().map(|t| count(t.count())).collect()));
    Table { corner: "response time".to_owned(), heads, rows, align: Align::Right }
}
