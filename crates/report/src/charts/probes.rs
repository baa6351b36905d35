//! What became of the gap under each probe.

use super::ratios::{TURNED, axis, margin_of, row, time_over};
use super::{Chart, Subject, sentences};
use crate::plot::{Drawing, Intervals};
use crate::table::{Align, Row, Table};
use crate::text::clean;
use duel_model::{PairVerdict, ProbeOutcome};

/// More rows than this are no longer looked at.
const MOST_ROWS: usize = 40;

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let explanation = subject.run.explanation.as_ref()?;
    let one_target = subject.targets.len() == 2;
    let mut shown: Vec<(String, String, &PairVerdict)> = Vec::new();
    for pair in main_pairs(&subject.verdict.pairs) {
        shown.push(("as compared".to_owned(), "the plan as it is".to_owned(), pair));
    }
    for outcome in &explanation.probes {
        let ProbeOutcome { probe, pairs, .. } = outcome;
        for pair in main_pairs(pairs) {
            shown.push((clean(&probe.id), clean(&probe.question), pair));
        }
    }
    shown.truncate(MOST_ROWS);
    // A gap by itself is drawn with the verdict.
    if shown.len() < 2 || explanation.probes.iter().all(|outcome| outcome.pairs.is_empty()) {
        return None;
    }
    let label = |id: &str, pair: &PairVerdict| {
        if one_target { id.to_owned() } else { format!("{}: {id}", clean(&pair.target)) }
    };
    let baseline = clean(&subject.verdict.pairs.first()?.baseline);
    let margin = subject.run.plan.compare.margin;
    let axis = axis(shown.iter().map(|(_, _, pair)| *pair), margin, time_over(&baseline))?;
    let rows: Vec<_> =
        shown.iter().map(|(id, _, pair)| row(pair, label(id, pair), subject.index(&pair.target))).collect();
    let table_rows = shown
        .iter()
        .zip(&rows)
        .map(|((id, question, pair), row)| Row::new(label(id, pair), vec![row.text.clone(), question.clone()]))
        .collect();
    Some(Chart {
        id: "probes".into(),
        title: "What is left of the gap in each probe".to_owned(),
        description: sentences(rows.iter().map(|row| format!("{}: {}", row.label, row.text))),
        drawing: Drawing::Intervals(Intervals {
            axis,
            margin: Some(margin_of(margin)),
            rows,
            note: format!(
                "Each probe changes one thing on all targets. Where the gap goes away, that thing has to do with it. {TURNED}"
            ),
        }),
        table: Table {
            corner: "probe".to_owned(),
            heads: vec!["over the baseline".to_owned(), "question".to_owned()],
            rows: table_rows,
            align: Align::Left,
        },
    })
}

/// The first pair of each target, which is the one of its main metric.
fn main_pairs(pairs: &[PairVerdict]) -> impl Iterator<Item = &PairVerdict> {
    pairs
        .iter()
        .enumerate()
        .filter(|(i, pair)| pairs[..*i].iter().all(|p| p.target != pair.target))
        .map(|(_, pair)| pair)
}
