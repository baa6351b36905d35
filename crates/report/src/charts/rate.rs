//! The rate over the run's time.

use super::over_time::{Step, crosses, end_s, step_name, steps};
use super::{Chart, Subject, sentences};
use crate::figures::{maybe, rate};
use crate::plot::{Axis, Drawing, Line, Lines};
use crate::table::{Align, Row, Table};
use duel_model::Slot;

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let noun = subject.noun;
    let all = steps(&subject.targets);
    let highest = all.iter().flat_map(|s| s.pieces.iter().flatten()).map(|s| s.rate_range_per_s.1).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let names = subject.names();
    let lines = names
        .iter()
        .zip(&all)
        .map(|(name, steps)| Line {
            name: name.clone(),
            pieces: steps.pieces.iter().map(|p| p.iter().map(|s| (s.at_s, s.rate_per_s)).collect()).collect(),
            band: steps.pieces.iter().map(|piece| piece.iter().map(band).collect()).collect(),
        })
        .collect();
    let crosses = crosses(&all);
    let what = step_name(&all);
    let failed = if crosses.is_empty() { "" } else { " Crosses: something failed." };
    // A stretch of a single interval has no other within it.
    let has_bands = all.iter().any(|steps| steps.are_slots || steps.joined > 1);
    let bands = if has_bands { "; bands reach from its slowest to its fastest interval" } else { "" };
    let said = names.iter().zip(&subject.targets).map(|(name, t)| format!("{name}: {}", maybe(t.rate_per_s(), rate)));
    Some(Chart {
        id: "rate".into(),
        title: "Rate over the run".to_owned(),
        description: sentences(said),
        drawing: Drawing::Lines(Lines {
            x: Axis::from_zero("time since the run began (s)", end_s(&subject.targets)),
            y: Axis::from_zero(format!("{noun}s per second"), highest).with_headroom(),
            lines,
            crosses,
            note: format!("A point is a {what}{bands}.{failed}"),
        }),
        table: table(subject, names),
    })
}

fn band(step: &Step<'_>) -> (f64, f64, f64) {
    (step.at_s, step.rate_range_per_s.0, step.rate_range_per_s.1)
}

/// How the rates of slots are spread.
fn table(subject: &Subject<'_>, heads: Vec<String>) -> Table {
    let sorted: Vec<Vec<f64>> = subject
        .targets
        .iter()
        .map(|target| {
            let mut rates: Vec<f64> = target.slots.iter().filter_map(|slot| Slot::rate_per_s(slot)).collect();
            rates.sort_by(f64::total_cmp);
            rates
        })
        .collect();
    let quantile = |rates: &[f64], q: f64| {
        let place = (q * rates.len() as f64).ceil().max(1.0) as usize - 1;
        rates.get(place).copied()
    };
    let row =
        |label: &str, q: f64| Row::new(label, sorted.iter().map(|rates| maybe(quantile(rates, q), rate)).collect());
    let mut rows = vec![Row::new("overall", subject.targets.iter().map(|t| maybe(t.rate_per_s(), rate)).collect())];
    if sorted.iter().any(|rates| rates.len() > 1) {
        rows.extend([
            row("slowest slot", 0.0),
            row("a quarter of slots below", 0.25),
            row("median slot", 0.5),
            row("a quarter of slots above", 0.75),
            row("fastest slot", 1.0),
        ]);
    }
    rows.push(Row::new("slots", subject.targets.iter().map(|t| t.slots.len().to_string()).collect()));
    Table { corner: String::new(), heads, rows, align: Align::Right }
}
