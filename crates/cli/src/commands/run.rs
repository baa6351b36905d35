//! `duel run URL`: load one target.

use super::execute;
use crate::load::LoadFlags;
use crate::load::meaning;
use crate::measuring::MeasuringFlags;
use crate::outcome::{Outcome, Usage};
use crate::output::OutputFlags;
use crate::watching::Shown;
use clap::Args;
use duel_model::Plan;

/// Options of a run on one target.
#[derive(Args, Clone)]
pub(crate) struct RunFlags {
    /// The target as [NAME=]URL, or null: to measure the generator itself
    #[arg(value_name = "[NAME=]URL")]
    pub(crate) target: String,
    /// Number of requests instead of a duration; one more goes before, to see that the target answers
    #[arg(short = 'n', long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Seed of Poisson arrivals
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Progress as lines for programs: seconds, and how many requests are done, twice a second on standard error
    #[arg(long)]
    pub(crate) progress_log: bool,
    #[command(flatten)]
    pub(crate) measuring: MeasuringFlags,
}

/// Loads one target and shows its figures.
pub(crate) fn run(run: &RunFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let plan = plan(run, load)?;
    let show = if run.progress_log { Shown::Log } else { Shown::Progress };
    execute(&plan, None, show, &run.measuring.telemetry, output)
}

/// What the flags mean.
pub(crate) fn plan(run: &RunFlags, load: &LoadFlags) -> Result<Plan, Usage> {
    let mut plan = meaning::single(&run.target, run.requests, run.seed, load)?;
    run.measuring.apply(&mut plan, false)?;
    if run.progress_log && (!plan.factors.is_empty() || plan.load.shape.search.is_some()) {
        return Err(Usage(
            "--progress-log tells the progress of one load; a run with factors and a search for a rate have many"
                .into(),
        ));
    }
    Ok(plan)
}
