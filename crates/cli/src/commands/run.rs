//! `duel run URL`: load one target.

use super::execute;
use crate::flags::{LoadFlags, OutputFlags, RunFlags};
use crate::outcome::{Outcome, Usage};
use crate::watching::Shown;
use crate::{hosts, meaning};
use duel_model::Plan;

/// Loads one target and shows its figures.
pub(crate) fn run(run: &RunFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let plan = plan(run, load)?;
    let show = if run.progress_log { Shown::Log } else { Shown::Progress };
    execute(&plan, None, show, &run.telemetry, output)
}

/// What the flags mean.
pub(crate) fn plan(run: &RunFlags, load: &LoadFlags) -> Result<Plan, Usage> {
    let mut plan = meaning::single(&run.target, run.requests, run.seed, load)?;
    hosts::assign(&mut plan.targets, &run.hosts)?;
    run.telemetry.checked()?;
    Ok(plan)
}
