//! Response times over the run's time.

use super::over_time::{Step, Steps, crosses, end_s, step_name, steps};
use super::{Chart, Subject, sentences};
use crate::figures::{TimeUnit, duration, maybe};
use crate::plot::{Axis, Drawing, Line, Lines};
use crate::table::{Align, Row, Table};

/// Below this factor between the largest and the smallest time nothing is hidden on a linear axis, which is easier to
/// read and begins at zero.
pub(super) const LOG_FROM: f64 = 5.0;

/// Middle and band of one step, ns.
struct Times {
    at_s: f64,
    middle_ns: f64,
    low_ns: f64,
    high_ns: f64,
}

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let all = steps(&subject.targets);
    let are_slots = all.first().is_some_and(|steps| steps.are_slots);
    let times: Vec<Vec<Vec<Times>>> = all.iter().map(of_target).collect();
    let flat = || times.iter().flatten().flatten();
    let highest = flat().map(|t| t.high_ns).fold(0.0, f64::max);
    let lowest = flat().map(|t| t.low_ns).fold(f64::INFINITY, f64::min);
    if highest <= 0.0 {
        return None;
    }
    let unit = TimeUnit::suiting(flat().map(|t| t.middle_ns));
    let (middle, band) = if are_slots {
        (format!("median of a {}", step_name(&all)), "bands hold the middle 80 % of its response times")
    } else {
        (format!("mean of a {}", step_name(&all)), "bands reach up to the longest")
    };
    let names = subject.names();
    let lines = names
        .iter()
        .zip(&times)
        .map(|(name, pieces)| Line {
            name: name.clone(),
            pieces: pieces.iter().map(|p| p.iter().map(|t| (t.at_s, unit.value(t.middle_ns))).collect()).collect(),
            band: pieces
                .iter()
                .map(|p| p.iter().map(|t| (t.at_s, unit.value(t.low_ns), unit.value(t.high_ns))).collect())
                .collect(),
        })
        .collect();
    let crosses = crosses(&all);
    let failed = if crosses.is_empty() { "" } else { " Crosses: something failed." };
    let label = format!("response time, {middle} ({})", unit.name);
    let medians = subject.targets.iter().map(|t| t.tally.response.quantile_ns(0.5).map(|ns| ns as f64));
    let said = names.iter().zip(medians).map(|(name, median)| format!("{name}: median {}", maybe(median, duration)));
    Some(Chart {
        id: "latency".into(),
        title: "Response time over the run".to_owned(),
        description: sentences(said),
        drawing: Drawing::Lines(Lines {
            x: Axis::from_zero("time since the run began (s)", end_s(&subject.targets)),
            y: time_axis(label, unit.value(lowest), unit.value(highest)),
            lines,
            crosses,
            note: format!("A point is the {middle}; {band}.{failed}"),
        }),
        table: table(&times, names, &middle),
    })
}

/// An axis of times: logarithmic where it has to be.
pub(super) fn time_axis(label: String, lowest: f64, highest: f64) -> Axis {
    if highest < LOG_FROM * lowest {
        return Axis::from_zero(label, highest).with_headroom();
    }
    let logarithmic = Axis::log(format!("{label}, log scale"), lowest, highest);
    logarithmic.unwrap_or_else(|| Axis::from_zero(label, highest).with_headroom())
}

fn of_target(steps: &Steps<'_>) -> Vec<Vec<Times>> {
    steps.pieces.iter().map(|piece| piece.iter().filter_map(of_step).collect()).collect()
}

fn of_step(step: &Step<'_>) -> Option<Times> {
    if let Some((mean_ns, max_ns)) = step.response_ns {
        return Some(Times { at_s: step.at_s, middle_ns: mean_ns, low_ns: mean_ns, high_ns: max_ns });
    }
    let response = step.response();
    let quantile = |q| response.quantile_ns(q).map(|ns| ns as f64);
    Some(Times { at_s: step.at_s, middle_ns: quantile(0.5)?, low_ns: quantile(0.1)?, high_ns: quantile(0.9)? })
}

/// How what is drawn moved: its lowest and highest value, and its first and last.
fn table(times: &[Vec<Vec<Times>>], heads: Vec<String>, middle: &str) -> Table {
    let row = |label: &str, of: &dyn Fn(&[f64]) -> Option<f64>| {
        let cells = times.iter().map(|pieces| {
            let middles: Vec<f64> = pieces.iter().flatten().map(|t| t.middle_ns).collect();
            maybe(of(&middles), duration)
        });
        Row::new(label, cells.collect())
    };
    let rows = vec![
        row("first", &|m| m.first().copied()),
        row("lowest", &|m| m.iter().copied().reduce(f64::min)),
        row("highest", &|m| m.iter().copied().reduce(f64::max)),
        row("last", &|m| m.last().copied()),
    ];
    Table { corner: middle.to_owned(), heads, rows, align: Align::Right }
}
