//! The figures of each stage of a run whose load changed.

use crate::figures::{TimeUnit, count, maybe, rate, set_duration};
use crate::table::{Align, Row, Table};
use crate::totals::Totals;
use duel_model::{Run, Stage, StageLevel, StageTally};

/// What the table of stages holds.
pub(crate) const TITLE: &str = "Stages: requests belong to the stage in which they were due";

/// The table of stages; `None` where there are none.
pub(crate) fn table(run: &Run, target: &Totals<'_>) -> Option<Table> {
    let rows: Vec<(&Stage, &StageTally)> = run.plan.load.shape.stages.iter().zip(&target.tally.stages).collect();
    if rows.is_empty() {
        return None;
    }
    let quantile = |tally: &StageTally, q| tally.response.quantile_ns(q).map(|ns| ns as f64);
    let unit = TimeUnit::suiting(rows.iter().filter_map(|(_, tally)| quantile(tally, 0.5)));
    let per_s = |ops: u64, stage: &Stage| rate(ops as f64 * 1e9 / stage.duration_ns as f64);
    // Columns of what did not happen would only push the others off the line.
    let has_unanswered = rows.iter().any(|(_, tally)| tally.unstarted + tally.in_flight > 0);
    let has_shed = rows.iter().any(|(_, tally)| tally.shed > 0);
    let table_rows = rows
        .iter()
        .map(|(stage, tally)| {
            let mut cells = vec![per_s(tally.due, stage), per_s(tally.ended_ok, stage), count(tally.failed)];
            cells.extend(has_unanswered.then(|| count(tally.unstarted + tally.in_flight)));
            cells.extend(has_shed.then(|| count(tally.shed)));
            cells.extend([0.5, 0.99].map(|q| maybe(quantile(tally, q), |ns| unit.show(ns))));
            Row::new(label(stage), cells)
        })
        .collect();
    let mut heads = vec!["due", "done", "failed"];
    heads.extend(has_unanswered.then_some("unanswered"));
    heads.extend(has_shed.then_some("shed"));
    heads.extend(["p50", "p99"]);
    let heads = heads.into_iter().map(str::to_owned).collect();
    Some(Table { corner: String::new(), heads, rows: table_rows, align: Align::Right })
}

/// A stage in words: `30 s at 100 to 5,000/s`.
pub(crate) fn label(stage: &Stage) -> String {
    let level = match stage.level {
        StageLevel::Rate { from_per_s, to_per_s } if from_per_s == to_per_s => rate(from_per_s),
        StageLevel::Rate { from_per_s, to_per_s } => format!("{} to {}", rate(from_per_s), rate(to_per_s)),
        StageLevel::Connections { from, to } if from == to => format!("{} conn.", count(u64::from(from))),
        StageLevel::Connections { from, to } => {
            format!("{} to {} conn.", count(u64::from(from)), count(u64::from(to)))
        }
    };
    format!("{} at {level}", set_duration(stage.duration_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_in_words() {
        let stages = Stage::parse_all("30s@100..5000,1500ms@0").unwrap_or_default();
        assert_eq!(stages.iter().map(label).collect::<Vec<_>>(), ["30 s at 100/s to 5,000/s", "1.5 s at 0/s"]);
        let stages = Stage::parse_all("10s@1c,1m@10c..1000c").unwrap_or_default();
        assert_eq!(stages.iter().map(label).collect::<Vec<_>>(), ["10 s at 1 conn.", "60 s at 10 to 1,000 conn."]);
    }
}
