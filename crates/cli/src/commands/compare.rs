//! `duel A B ...`: compare targets.

use super::execute;
use crate::diagnosis::DiagnosisFlags;
use crate::load::LoadFlags;
use crate::load::meaning::{self, JudgingFlags};
use crate::measuring::MeasuringFlags;
use crate::outcome::{Outcome, Usage};
use crate::output::OutputFlags;
use crate::watching::Shown;
use clap::Args;
use duel_lab::DiagnosisPlan;
use duel_model::Plan;

/// Options of a comparison.
#[derive(Args, Clone)]
pub(crate) struct CompareFlags {
    /// Targets as [NAME=]URL; the first is the baseline
    #[arg(value_name = "[NAME=]URL")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) judging: JudgingFlags,
    /// Go on until the cause of a difference is found
    #[arg(long)]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) diagnosis: DiagnosisFlags,
    #[command(flatten)]
    pub(crate) measuring: MeasuringFlags,
}

/// Compares the targets given, and explains the difference if asked to.
pub(crate) fn compare(compare: &CompareFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let (plan, diagnosis) = plan(compare, load)?;
    execute(&plan, compare.why.then_some(diagnosis), Shown::Progress, &compare.measuring.telemetry, output)
}

/// What the flags mean.
pub(crate) fn plan(compare: &CompareFlags, load: &LoadFlags) -> Result<(Plan, DiagnosisPlan), Usage> {
    let mut plan = meaning::comparison(&compare.targets, &compare.judging, load)?;
    compare.measuring.apply(&mut plan, compare.why)?;
    let diagnosis = compare.diagnosis.plan(&plan)?;
    for (is_given, option) in [
        (!diagnosis.may_start_twin.is_empty(), "--may-start-twin"),
        (diagnosis.most_copied_bytes.is_some(), "--may-copy-database"),
        (!diagnosis.net_servers.is_empty(), "--net-server"),
    ] {
        if !compare.why && is_given {
            return Err(Usage(format!("{option} has a meaning with --why only")));
        }
    }
    if compare.why && !plan.factors.is_empty() {
        return Err(Usage("--why looks for the cause of one difference; leave the factors out, or --why".into()));
    }
    if compare.why && plan.compare.restart.is_some() {
        return Err(Usage(
            "--why probes processes as they run, and starts none anew; leave --restart out, or --why".into(),
        ));
    }
    let shape = &plan.load.shape;
    if compare.why && (!shape.stages.is_empty() || shape.search.is_some()) {
        return Err(Usage(
            "--why looks for the cause of a difference under one load; leave --stages and --find-rate out, or --why"
                .into(),
        ));
    }
    Ok((plan, diagnosis))
}
