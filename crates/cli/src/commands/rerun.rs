//! `duel rerun RUN`: the same plan again.

use super::{demo, execute};
use crate::flags::{OutputFlags, RunName, SecretFlags};
use crate::outcome::{Outcome, Usage, say};
use crate::telemetry::TelemetryFlags;
use crate::trust::{self, TrustFlags};
use crate::watching::Shown;
use crate::{keep, request};
use clap::Args;
use duel_model::{Plan, WorkloadPlan};

/// Options of repeating a run.
#[derive(Args, Clone)]
pub(crate) struct RerunFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
}

/// Repeats an earlier run with its plan and seed. Only secrets have to be given again.
pub(crate) fn rerun(rerun: &RerunFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    rerun.telemetry.checked()?;
    let run = keep::open_to_read(output)?.load(&rerun.run.name)?;
    demo::refuse_if_made(&run)?;
    let mut plan = run.plan;
    for (_, why) in duel_lab::forget_unproven_ids(&mut plan) {
        say(&why);
    }
    restore_secrets(&mut plan, &rerun.secrets, &rerun.trust, output)?;
    execute(&plan, None, Shown::Progress, &rerun.telemetry, output)
}

/// Puts header values that were not kept back from `-H`, if the user wants what the plan names; an error names those that
/// are missing.
pub(super) fn restore_secrets(
    plan: &mut Plan,
    secrets: &SecretFlags,
    trust: &TrustFlags,
    output: &OutputFlags,
) -> anyhow::Result<()> {
    let given = request::headers(&secrets.headers)?;
    let is_given = |name: &&str| given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let restored: Vec<String> = plan.missing_secrets().into_iter().filter(is_given).map(str::to_owned).collect();
    trust::ensure(plan, &restored, trust, output)?;
    if let WorkloadPlan::Http(http) = &mut plan.workload {
        for (name, value) in &mut http.headers {
            if value == Plan::REDACTED
                && let Some((_, secret)) = given.iter().find(|(given, _)| given.eq_ignore_ascii_case(name))
            {
                value.clone_from(secret);
            }
        }
    }
    Ok(refuse_missing_secrets(plan)?)
}

/// Refuses a plan in which something is missing that was not kept, or was left out of what was shown.
pub(crate) fn refuse_missing_secrets(plan: &Plan) -> Result<(), Usage> {
    match plan.missing_secrets().as_slice() {
        [] => refuse_left_out(plan.left_out()),
        missing => Err(Usage(format!(
            "the values of {} were not kept, because they are secrets; give them again with -H 'Name: value' or -H @FILE",
            missing.join(", ")
        ))),
    }
}

/// Refuses what was copied from an output that left a secret out of this place.
pub(crate) fn refuse_left_out(place: Option<String>) -> Result<(), Usage> {
    place.map_or(Ok(()), |place| {
        let mark = Plan::LEFT_OUT;
        Err(Usage(format!("a secret was left out of {place} when it was shown; write it in the place of '{mark}'")))
    })
}
