//! `duel run URL`: load one target.

use super::execute;
use crate::flags::{LoadFlags, OutputFlags, RunFlags};
use crate::outcome::Outcome;
use crate::{hosts, meaning};

/// Loads one target and shows its figures.
pub(crate) fn run(run: &RunFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let mut plan = meaning::single(&run.target, run.requests, run.seed, load)?;
    hosts::assign(&mut plan.targets, &run.hosts)?;
    execute(&plan, None, output)
}
