//! `duel run URL`: load one target.

use super::execute_shown;
use crate::flags::{LoadFlags, OutputFlags, RunFlags};
use crate::outcome::Outcome;
use crate::watching::Shown;
use crate::{hosts, meaning};

/// Loads one target and shows its figures.
pub(crate) fn run(run: &RunFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let mut plan = meaning::single(&run.target, run.requests, run.seed, load)?;
    hosts::assign(&mut plan.targets, &run.hosts)?;
    let show = if run.progress_log { Shown::Log } else { Shown::Progress };
    execute_shown(&plan, None, show, output)
}
