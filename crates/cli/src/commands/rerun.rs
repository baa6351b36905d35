//! `duel rerun RUN`: the same plan again.

use super::{demo, execute};
use crate::keep;
use crate::keep::RunName;
use crate::load::request;
use crate::load::restart::RestartFlags;
use crate::outcome::{Outcome, say};
use crate::output::OutputFlags;
use crate::secrets::{self, SecretFlags};
use crate::telemetry::TelemetryFlags;
use crate::trust::{self, TrustFlags};
use crate::watching::Shown;
use clap::Args;
use duel_model::{Plan, WorkloadPlan};

/// Options of repeating a run.
#[derive(Args, Clone)]
pub(crate) struct RerunFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
    /// Start target NAME anew by this command in the place of the kept one, which is not whole where there were secrets in it
    #[arg(long, value_name = "NAME=COMMAND")]
    pub(crate) restart: Vec<String>,
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
    duel_lab::kinds::hold(&mut plan, &run.first_contact);
    for (_, why) in duel_lab::forget_unproven_ids(&mut plan) {
        say(&why);
    }
    let typed = RestartFlags { restart: rerun.restart.clone(), restart_timeout: None }.replace(&mut plan)?;
    secrets::refuse_missing_commands(&plan)?;
    // Whoever has typed a command wants it, and it may hold a secret: neither is it asked for, nor shown.
    restore_secrets(&mut plan, &rerun.secrets, &rerun.trust, output)?;
    plan.compare.restart.iter_mut().for_each(|restart| restart.commands.extend(typed.iter().cloned()));
    execute(&plan, None, Shown::Progress, &rerun.telemetry, output)
}

/// Puts header values that were not kept back from `-H`, if the user wants what the plan names; an error names those that
/// are missing.
pub(super) fn restore_secrets(
    plan: &mut Plan,
    typed: &SecretFlags,
    trust: &TrustFlags,
    output: &OutputFlags,
) -> anyhow::Result<()> {
    let given = request::headers(&typed.headers)?;
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
    Ok(secrets::refuse_missing_secrets(plan)?)
}
