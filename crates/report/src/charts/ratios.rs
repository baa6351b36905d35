//! The verdict drawn: how many times slower each target is, with the interval and the margin.

use super::{Chart, Subject, sentences};
use crate::figures::{exact_percent, maybe, near_one};
use crate::plot::{Axis, Drawing, IntervalRow, Intervals};
use crate::sentence::{pair_sentence, ratio_of};
use crate::table::{Align, Row, Table};
use crate::text::clean;
use crate::totals::all_doubts;
use duel_model::{Call, Doubt, Metric, PairVerdict};

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let pairs = &subject.verdict.pairs;
    let baseline = clean(&pairs.first()?.baseline);
    let margin = subject.run.plan.compare.margin;
    let confidence = exact_percent(pairs[0].confidence);
    let axis = axis(pairs.iter(), margin, time_over(&baseline))?;
    let rows = pairs
        .iter()
        .map(|pair| row(pair, format!("{}: {}", clean(&pair.target), pair.metric.name()), subject.index(&pair.target)))
        .collect();
    let doubts: Vec<Doubt> = all_doubts(subject.run, subject.verdict).into_iter().cloned().collect();
    Some(Chart {
        id: "verdict".into(),
        title: match subject.verdict.experiment {
            Some(_) => format!("How many times slower than {baseline}, over all treatments"),
            None => format!("How many times slower than {baseline}"),
        },
        description: sentences(pairs.iter().map(|pair| pair_sentence(subject.verdict, pair, margin, &doubts))),
        drawing: Drawing::Intervals(Intervals {
            axis,
            margin: Some(margin_of(margin)),
            rows,
            note: format!(
                "Marks: estimates. {TURNED} Coloured bands: {confidence} intervals. Grey zone: differences within {}, which do \
                 not matter in practice.",
                exact_percent(margin)
            ),
        }),
        table: table(pairs),
    })
}

/// What is drawn along the axis. Short: on a telephone it has to be whole.
pub(super) fn time_over(baseline: &str) -> String {
    format!("time over that of {baseline}; right is slower")
}

/// Said below: or left and right would mean another thing in each row.
pub(super) const TURNED: &str = "Of rates the inverse is drawn, so that right is slower in every row.";

/// Ratios that make no difference in practice.
pub(super) fn margin_of(margin: f64) -> (f64, f64) {
    (1.0 / (1.0 + margin), 1.0 + margin)
}

/// An axis that holds all ratios and intervals, 1 and the margin; `None` if nothing is known.
pub(super) fn axis<'a>(pairs: impl Iterator<Item = &'a PairVerdict>, margin: f64, label: String) -> Option<Axis> {
    let known: Vec<f64> = pairs.filter_map(slowdown).flat_map(|(ratio, low, high)| [ratio, low, high]).collect();
    if known.is_empty() {
        return None;
    }
    let (low, high) = margin_of(margin);
    let smallest = known.iter().copied().fold(low, f64::min);
    let largest = known.iter().copied().fold(high, f64::max);
    Axis::log(label, smallest, largest)
}

/// A row of a pair; where only the ratio is known, without an interval.
pub(super) fn row(pair: &PairVerdict, label: String, series: usize) -> IntervalRow {
    let known = slowdown(pair);
    IntervalRow {
        label,
        series,
        value: known.map(|(ratio, _, _)| ratio),
        interval: known.map(|(_, low, high)| (low, high)),
        text: known.map_or_else(
            || "not known".to_owned(),
            |_| match (pair.ratio, pair.low, pair.high) {
                // The figures of the verdict's sentences: of a rate those of the rate, though the mark stands by the time.
                (Some(ratio), Some(low), Some(high)) => {
                    let of = if pair.metric == Metric::Rate { "rate" } else { "time" };
                    format!("{of} {}x ({} to {})", near_one(ratio), near_one(low), near_one(high))
                }
                _ => "not known".to_owned(),
            },
        ),
    }
}

/// The slowdown with its interval where all three can be drawn.
fn slowdown(pair: &PairVerdict) -> Option<(f64, f64, f64)> {
    pair.slowdown().filter(|(ratio, low, high)| [ratio, low, high].iter().all(|v| v.is_finite() && **v > 0.0))
}

fn table(pairs: &[PairVerdict]) -> Table {
    let rows = pairs
        .iter()
        .map(|pair| {
            let call = match pair.call {
                Call::Slower => "slower",
                Call::Faster => "faster",
                Call::Equivalent => "equivalent",
                Call::Unknown => "unknown",
            };
            let cells = vec![
                call.to_owned(),
                maybe(pair.ratio, near_one),
                maybe(pair.low, near_one),
                maybe(pair.high, near_one),
                pair.slots.to_string(),
            ];
            Row::new(ratio_of(pair), cells)
        })
        .collect();
    let heads = ["call", "ratio", "from", "to", "slots"].map(str::to_owned).to_vec();
    Table { corner: String::new(), heads, rows, align: Align::Right }
}
