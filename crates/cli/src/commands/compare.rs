//! `duel A B ...`: compare targets.

use super::execute;
use crate::flags::{CompareFlags, LoadFlags, OutputFlags};
use crate::outcome::{Outcome, Usage};
use crate::watching::Shown;
use crate::{hosts, meaning};
use duel_lab::DiagnosisPlan;
use duel_model::Plan;

/// Compares the targets given, and explains the difference if asked to.
pub(crate) fn compare(compare: &CompareFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let (plan, diagnosis) = plan(compare, load)?;
    execute(&plan, compare.why.then_some(diagnosis), Shown::Progress, &compare.telemetry, output)
}

/// What the flags mean.
pub(crate) fn plan(compare: &CompareFlags, load: &LoadFlags) -> Result<(Plan, DiagnosisPlan), Usage> {
    let mut plan = meaning::comparison(&compare.targets, &compare.judging, load)?;
    hosts::assign(&mut plan.targets, &compare.hosts)?;
    let diagnosis = meaning::diagnosis(&compare.diagnosis, &plan.targets)?;
    if !compare.why && !diagnosis.may_start_twin.is_empty() {
        return Err(Usage("--may-start-twin has a meaning with --why only".into()));
    }
    if compare.why && !plan.factors.is_empty() {
        return Err(Usage("--why looks for the cause of one difference; leave the factors out, or --why".into()));
    }
    compare.telemetry.checked()?;
    Ok((plan, diagnosis))
}
