//! `duel run URL`: load one target.

use super::execute;
use crate::flags::{LoadFlags, OutputFlags, RunFlags};
use crate::meaning;
use crate::outcome::Outcome;

/// Loads one target and shows its figures.
pub(crate) fn run(run: &RunFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let plan = meaning::single(&run.target, run.requests, run.seed, load)?;
    execute(&plan, None, output)
}
