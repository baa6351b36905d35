//! What a comparison is about: programs over several starts of them, or processes as they run.

use crate::text::{clean, plural};
use duel_model::{Call, Run, RunKind, Verdict, WorkloadPlan};

/// In one sentence without a full stop; `None` where nothing could have been started anew, and where nothing is said of the targets
/// that would have to be limited. `ends_with_run`: the targets are none that could be reached later.
pub(crate) fn about(run: &Run, verdict: &Verdict, ends_with_run: bool) -> Option<String> {
    let targets = &run.plan.targets;
    if run.plan.kind() != RunKind::Compare || !matches!(run.plan.workload, WorkloadPlan::Http(_)) {
        return None;
    }
    if let (Some(restart), Some(starts)) = (&run.plan.compare.restart, verdict.starts) {
        let (anew, same): (Vec<_>, Vec<_>) = targets.iter().partition(|target| restart.of(&target.name).is_some());
        let names =
            |of: &[&duel_model::Target]| of.iter().map(|target| clean(&target.name)).collect::<Vec<_>>().join(" and ");
        let over = format!("This is over {} of {}", plural(u64::from(starts), "start"), names(&anew));
        // From too few of them there is no interval.
        let has_intervals = verdict.pairs.iter().any(|pair| pair.low.is_some());
        return Some(match same.len() {
            0 if has_intervals => format!("{over}: how these differ from each other is in the intervals"),
            0 => over,
            1 => format!("{over}; {} is one process as it runs", names(&same)),
            _ => format!("{over}; {} are processes as they run", names(&same)),
        });
    }
    let is_called = verdict.pairs.iter().any(|pair| pair.call != Call::Unknown);
    let these = if targets.len() == 2 { "two".to_owned() } else { targets.len().to_string() };
    (is_called && !ends_with_run && run.plan.load.shape.stages.is_empty())
        .then(|| format!("This is about {these} processes as they run, not about {these} programs: see --restart"))
}
