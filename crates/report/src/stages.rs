//! The figures of each stage of a run whose load changed.

use crate::figures::{Lengths, UNKNOWN, count, exact_percent, maybe, rate, set_duration, three_digits};
use crate::table::{Align, Row, Table};
use crate::text::plural;
use crate::totals::Totals;
use duel_model::{Metric, Run, Stage, StageContrast, StageLevel, StageTally, Verdict, typed_duration};

/// What the table of stages holds.
pub(crate) const TITLE: &str = "Stages: requests belong to the stage in which they were due";

/// The table of stages of a single target; `None` where there are none.
pub(crate) fn table(run: &Run, target: &Totals<'_>) -> Option<Table> {
    let one = std::slice::from_ref(target);
    let columns = Columns::of(run, one)?;
    let rows = run.plan.load.shape.stages.iter().zip(&target.tally.stages);
    let rows = rows.map(|(stage, tally)| Row::new(label(stage), columns.cells(stage, tally, target))).collect();
    Some(columns.table(rows))
}

/// The stages of several targets side by side, and their ratios target by target, each table with its title; empty where there
/// are no stages.
pub(crate) fn compared(run: &Run, verdict: &Verdict, targets: &[Totals<'_>]) -> Vec<(String, Table)> {
    let Some(columns) = Columns::of(run, targets) else { return Vec::new() };
    let mut rows = Vec::new();
    for (place, stage) in run.plan.load.shape.stages.iter().enumerate() {
        rows.push(Row::new(label(stage), Vec::new()));
        for target in targets {
            if let Some(tally) = target.tally.stages.get(place) {
                rows.push(Row::new(format!("  {}", target.name), columns.cells(stage, tally, target)));
            }
        }
    }
    let mut tables = vec![(TITLE.to_owned(), columns.table(rows))];
    if let [baseline, others @ ..] = targets {
        for (target, plan) in others.iter().zip(&run.plan.targets[1..]) {
            let of_target = |contrast: &&StageContrast| contrast.target == plan.name;
            let contrasts: Vec<&StageContrast> = verdict.stages.iter().filter(of_target).collect();
            tables.push((format!("{} over {}, stage by stage", target.name, baseline.name), ratios(run, &contrasts)));
        }
    }
    tables
}

/// What the ratios are, and are not.
pub(crate) fn note(run: &Run, verdict: &Verdict) -> String {
    let pairs = verdict.stages.iter().map(|contrast| contrast.pairs).max().unwrap_or(0);
    let courses = plural(u64::from(pairs), "pair");
    if let Some(contrast) = verdict.stages.iter().find(|contrast| contrast.low.is_some()) {
        let confidence = exact_percent(contrast.confidence);
        return format!(
            "Ratios of {courses} of courses; in brackets the {confidence} interval of each figure for itself."
        );
    }
    let block_ns = Stage::total_ns(&run.plan.load.shape.stages).saturating_mul(2 * run.plan.targets.len() as u64);
    let blocks = u64::from(run.plan.compare.min_pairs.div_ceil(2));
    format!(
        "Ratios of {courses} of courses, without an interval: that takes {} (-d {}).",
        plural(u64::from(run.plan.compare.min_pairs), "pair"),
        typed_duration(block_ns.saturating_mul(blocks))
    )
}

/// The ratios of one target, a row for each stage.
fn ratios(run: &Run, contrasts: &[&StageContrast]) -> Table {
    let metrics = [("done", Metric::Rate), ("p50", Metric::ResponseP50), ("p99", Metric::ResponseP99)];
    let cell = |place: usize, metric: Metric| {
        let contrast = contrasts.iter().find(|it| it.stage == place && it.metric == metric);
        match contrast.map(|it| (it.ratio, it.low.zip(it.high))) {
            Some((Some(ratio), Some((low, high)))) => {
                format!("{} ({} to {})", three_digits(ratio), three_digits(low), three_digits(high))
            }
            Some((Some(ratio), None)) => three_digits(ratio),
            _ => UNKNOWN.to_owned(),
        }
    };
    let stages = run.plan.load.shape.stages.iter().enumerate();
    let rows = stages
        .map(|(place, stage)| Row::new(label(stage), metrics.map(|(_, metric)| cell(place, metric)).to_vec()))
        .collect();
    let heads = metrics.map(|(name, _)| name.to_owned()).to_vec();
    Table { corner: String::new(), heads, rows, align: Align::Right }
}

/// Which columns the tables of stages have, and in which units quantiles are shown.
struct Columns {
    times: [(f64, Lengths); 2],
    has_unanswered: bool,
    has_shed: bool,
}

impl Columns {
    /// `None` where there are no stages.
    fn of(run: &Run, targets: &[Totals<'_>]) -> Option<Self> {
        let all = || targets.iter().flat_map(|target| &target.tally.stages);
        if run.plan.load.shape.stages.is_empty() || all().next().is_none() {
            return None;
        }
        Some(Self {
            times: [0.5, 0.99].map(|q| (q, Lengths::beside(all().filter_map(|tally| quantile(tally, q))))),
            // Columns of what did not happen would only push the others off the line.
            has_unanswered: all().any(|tally| tally.unstarted + tally.in_flight > 0),
            has_shed: all().any(|tally| tally.shed > 0),
        })
    }

    fn heads(&self) -> Vec<String> {
        let mut heads = vec!["due", "done", "failed"];
        heads.extend(self.has_unanswered.then_some("unanswered"));
        heads.extend(self.has_shed.then_some("shed"));
        heads.extend(["p50", "p99"]);
        heads.into_iter().map(str::to_owned).collect()
    }

    /// One stage of one target, over all its courses.
    fn cells(&self, stage: &Stage, tally: &StageTally, target: &Totals<'_>) -> Vec<String> {
        let seconds = stage.duration_ns as f64 / 1e9 * target.slots.len().max(1) as f64;
        let per_s = |ops: u64| rate(ops as f64 / seconds);
        let mut cells = vec![per_s(tally.due), per_s(tally.ended_ok), count(tally.failed)];
        cells.extend(self.has_unanswered.then(|| count(tally.unstarted + tally.in_flight)));
        cells.extend(self.has_shed.then(|| count(tally.shed)));
        cells.extend(self.times.map(|(q, lengths)| maybe(quantile(tally, q), |ns| lengths.show(ns))));
        cells
    }

    fn table(&self, rows: Vec<Row>) -> Table {
        Table { corner: String::new(), heads: self.heads(), rows, align: Align::Right }
    }
}

fn quantile(tally: &StageTally, q: f64) -> Option<f64> {
    tally.response.quantile_ns(q).map(|ns| ns as f64)
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
