//! `duel why RUN`: go on from an archived run until the cause is found.

use super::rerun::restore_secrets;
use super::{demo, lens, print_run};
use crate::diagnosis::DiagnosisFlags;
use crate::hosts;
use crate::keep::RunName;
use crate::keep::{self, Keeper};
use crate::outcome::{Outcome, Usage, say, told};
use crate::output::OutputFlags;
use crate::secrets::SecretFlags;
use crate::signals;
use crate::telemetry::{Telemetry, TelemetryFlags};
use crate::trust::TrustFlags;
use crate::watching::{Shown, Watching};
use anyhow::Context;
use clap::Args;
use duel_lab::Lab;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Options of finding out why.
#[derive(Args, Clone)]
pub(crate) struct WhyFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
    /// Read no machine that the run did not read. Without it, targets on localhost, on an address of this machine or behind a Unix socket of their address are read
    #[arg(long)]
    pub(crate) no_local: bool,
    #[command(flatten)]
    pub(crate) diagnosis: DiagnosisFlags,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
}

/// Explains an earlier comparison by probes that are made now, and keeps them with it.
pub(crate) fn why(why: &WhyFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    why.telemetry.checked()?;
    // Read first: where nothing is kept, nothing is made.
    let mut run = keep::open_to_read(output)?.load(&why.run.name)?;
    let mut archive = keep::open(output)?.context("'duel why' needs the archive that the run is kept in")?;
    if run.plan.targets.len() < 2 {
        return Err(Usage(format!("run {} has a single target; there is no difference to explain", run.id)).into());
    }
    if !run.plan.factors.is_empty() {
        let id = &run.id;
        return Err(
            Usage(format!("run {id} varied factors; compare at one level of each, and ask why of that run")).into()
        );
    }
    if !run.plan.load.shape.stages.is_empty() || run.plan.load.shape.search.is_some() {
        let id = &run.id;
        return Err(
            Usage(format!("the load of run {id} changed; compare under one load, and ask why of that run")).into()
        );
    }
    if run.plan.compare.restart.is_some() {
        let id = &run.id;
        return Err(Usage(format!(
            "run {id} started its targets anew, and probes start none; compare without --restart, and ask why of that run"
        ))
        .into());
    }
    demo::refuse_if_made(&run)?;
    let mut plan = run.plan.clone();
    duel_lab::kinds::hold(&mut plan, &run.first_contact);
    if !why.no_local {
        hosts::read_unasked(&mut plan);
    }
    let diagnosis = why.diagnosis.plan(&plan)?;
    restore_secrets(&mut plan, &why.secrets, &why.trust, output)?;
    let stop = signals::stop_flag()?;
    let lab = lens::equip(Lab::new(Arc::clone(&stop)));
    lab.ensure_net_servers(&plan, &diagnosis)?;
    let telemetry = Telemetry::open(&why.telemetry, output)?;
    if let Some(telemetry) = &telemetry {
        telemetry.begun(&run);
    }
    let mut watching = Watching::new(Keeper::Nowhere, Shown::Progress, telemetry.as_ref(), output);
    let result = lab.explain(&mut run, &plan, diagnosis, &mut watching);
    watching.end();
    result?;
    // What was found is in the archive before anybody outside is waited for, and before it is shown.
    let mut kept = archive.extend(&run);
    if let Some(doubt) = telemetry.and_then(|telemetry| telemetry.finish(&duel_lab::judge(&run))) {
        say(&doubt.text);
        run.doubts.push(doubt);
        if kept.is_ok() {
            kept = archive.extend(&run);
        }
    }
    let shown = run.shown();
    print_run(&shown, kept.is_ok(), output).map_err(|error| match &kept {
        Ok(()) => anyhow::anyhow!("{}; what was found is kept, and shown by: duel show {}", told(&error), shown.id),
        Err(_) => error,
    })?;
    kept?;
    // The run itself may have been interrupted long ago; what counts is whether this diagnosis was.
    Ok(if stop.load(Ordering::Relaxed) { Outcome::Interrupted } else { Outcome::Done })
}
