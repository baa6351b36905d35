//! `duel list`, `show` and `diff`: earlier runs.

use super::print_run;
use crate::keep::RunName;
use crate::load::targets::default_name;
use crate::outcome::Outcome;
use crate::output::OutputFlags;
use crate::{keep, terminal};
use clap::Args;
use duel_model::Target;
use duel_report::RunRow;

/// Options of listing runs.
#[derive(Args, Clone)]
pub(crate) struct ListFlags {
    /// How many
    #[arg(short = 'n', long, allow_negative_numbers = true, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
}

/// Two earlier runs.
#[derive(Args, Clone)]
pub(crate) struct DiffFlags {
    /// The run to compare with
    #[arg(value_name = "RUN")]
    pub(crate) before: String,
    /// The other run
    #[arg(value_name = "RUN")]
    pub(crate) after: String,
}

/// Lists runs, the latest first.
pub(crate) fn list(list: &ListFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let mut runs = keep::open_to_read(output)?.list(list.limit, 0)?;
    for run in &mut runs {
        run.targets.iter_mut().for_each(|target| *target = target.shown());
        run.status = run.status.clone().shown();
    }
    if output.json {
        let rows: Vec<_> = runs
            .iter()
            .map(|run| {
                let (status, interruption) = duel_report::json_status(&run.status);
                serde_json::json!({
                    "run": run.id, "kind": run.kind.name(), "started_unix_ms": run.started_unix_ms, "targets": run.targets,
                    "status": status, "interruption": interruption, "workload": run.workload, "slots": run.slots,
                    "explained": run.has_explanation, "bytes": run.bytes,
                })
            })
            .collect();
        terminal::print(&duel_report::safe_json(&rows))?;
    } else {
        let rows: Vec<RunRow> = runs
            .into_iter()
            .map(|run| RunRow {
                id: run.id,
                started_unix_ms: run.started_unix_ms,
                kind: run.kind,
                targets: run.targets.iter().enumerate().map(|(index, target)| as_typed(index, target)).collect(),
                status: run.status,
                slots: u32::try_from(run.slots).unwrap_or(u32::MAX),
                has_explanation: run.has_explanation,
            })
            .collect();
        terminal::print(&duel_report::list(&rows, terminal::result_style()))?;
    }
    Ok(Outcome::Done)
}

/// A target's address, after its name where that was given.
fn as_typed(index: usize, target: &Target) -> String {
    if target.name == default_name(index) {
        target.address.clone()
    } else {
        format!("{}={}", target.name, target.address)
    }
}

/// Judges an earlier run again from its raw slots and shows it.
pub(crate) fn show(run: &RunName, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let run = keep::load_to_show(&run.name, output)?;
    print_run(&run, true, output)?;
    Ok(Outcome::Done)
}

/// Shows what differs between two runs.
pub(crate) fn diff(diff: &DiffFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let archive = keep::open_to_read(output)?;
    let (before, after) = (archive.load(&diff.before)?.shown(), archive.load(&diff.after)?.shown());
    let (verdict_before, verdict_after) = (duel_lab::judge(&before), duel_lab::judge(&after));
    if output.json {
        let documents = [
            duel_report::json(&before, &verdict_before, before.explanation.as_ref()),
            duel_report::json(&after, &verdict_after, after.explanation.as_ref()),
        ];
        terminal::print(&duel_report::safe_json(&documents))?;
    } else {
        let style = terminal::result_style();
        terminal::print(&duel_report::diff((&before, &verdict_before), (&after, &verdict_after), style))?;
    }
    Ok(Outcome::Done)
}
