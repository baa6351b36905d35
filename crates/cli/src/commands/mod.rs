//! One file for each command.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod crypto;
pub(crate) mod demo;
#[cfg(target_os = "linux")]
pub(crate) mod disk;
pub(crate) mod export;
pub(crate) mod facts;
pub(crate) mod lens;
pub(crate) mod manual;
pub(crate) mod net;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod rerun;
pub(crate) mod ruler;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod tables;
pub(crate) mod why;

use crate::keep::{self, Keeper};
use crate::load::{factors, requests};
use crate::outcome::{Outcome, say, told};
use crate::output::OutputFlags;
use crate::telemetry::{Telemetry, TelemetryFlags};
use crate::watching::{Shown, Watching};
use crate::{signals, terminal};
use duel_archive::Archive;
use duel_lab::{DiagnosisPlan, Lab};
use duel_model::{Interruption, Plan, Run, RunStatus, SlotRole, Verdict, sanitize_line};
use duel_report::Again;
use std::io::IsTerminal;

/// Runs a plan, explains it if that is asked for, keeps it and prints it.
fn execute(
    plan: &Plan,
    why: Option<DiagnosisPlan>,
    shown: Shown,
    telemetry: &TelemetryFlags,
    output: &OutputFlags,
) -> anyhow::Result<Outcome> {
    let lab = lens::equip(Lab::new(signals::stop_flag()?));
    let archive = keep::open(output)?;
    let done = carry_out(&lab, plan, why, shown, telemetry, archive, output)?;
    let run = done.run.shown();
    print_run(&run, done.is_kept, output).map_err(|error| match done.is_kept {
        true => anyhow::anyhow!("{}; the run is kept, and shown by: duel show {}", told(&error), run.id),
        false => error,
    })?;
    done.kept?;
    let verdict = duel_lab::judge(&run);
    let outcome = outcome_of(&run, &verdict, &lab);
    if matches!(outcome, Outcome::Done | Outcome::NotAsAsked)
        && let Some(sentence) = all_failed(&run)
    {
        anyhow::bail!(sentence);
    }
    // On a terminal it stands above, at the beginning of the report; elsewhere the exit code is all that is seen.
    if !std::io::stdout().is_terminal()
        && matches!(outcome, Outcome::NotAsAsked | Outcome::CouldNotRun)
        && let Some(headline) = verdict.headlines.first()
    {
        say(&headline.text);
    }
    Ok(outcome)
}

/// A run that was made.
struct CarriedOut {
    run: Run,
    /// Whether it is in the archive.
    is_kept: bool,
    /// What went wrong with keeping it.
    kept: anyhow::Result<()>,
}

/// Runs a plan, explains it if that is asked for, and keeps it where there is an archive.
fn carry_out(
    lab: &Lab,
    plan: &Plan,
    why: Option<DiagnosisPlan>,
    shown: Shown,
    telemetry: &TelemetryFlags,
    mut archive: Option<Archive>,
    output: &OutputFlags,
) -> anyhow::Result<CarriedOut> {
    let notes = requests::check(plan)?;
    if !output.quiet {
        notes.iter().for_each(|note| say(note));
    }
    if !plan.factors.is_empty() && !output.quiet {
        terminal::note(&factors::announcement(plan));
    }
    if let Some(diagnosis) = &why {
        lab.ensure_net_servers(plan, diagnosis)?;
    }
    let telemetry = Telemetry::open(telemetry, output)?;
    let mut watching = Watching::new(Keeper::new(archive.as_mut()), shown, telemetry.as_ref(), output);
    let result = lab.run(plan, &mut watching).and_then(|mut run| {
        if let Some(diagnosis) = why
            && run.status == RunStatus::Complete
        {
            lab.explain(&mut run, plan, diagnosis, &mut watching)?;
        }
        Ok(run)
    });
    let keeper = watching.end();
    let mut run = result?;
    // The run is whole in the archive before anybody outside is waited for.
    let mut kept = keeper.finish(&run);
    if let Some(doubt) = telemetry.and_then(|telemetry| telemetry.finish(&duel_lab::judge(&run))) {
        say(&doubt.text);
        run.doubts.push(doubt);
        if let (Ok(()), Some(archive)) = (&kept, &mut archive) {
            kept = archive.extend(&run).map_err(Into::into);
        }
    }
    Ok(CarriedOut { run, is_kept: kept.is_ok() && archive.is_some(), kept })
}

/// Prints a run that may be shown, with its verdict and its explanation, as the output flags say.
fn print_run(run: &Run, is_kept: bool, output: &OutputFlags) -> anyhow::Result<()> {
    let verdict = duel_lab::judge(run);
    if output.json {
        return terminal::print(&duel_report::json_text(run, &verdict, run.explanation.as_ref()));
    }
    let style = terminal::result_style();
    let again = match (is_kept, demo::made(&run.plan)) {
        (false, _) => Again::Not,
        (true, true) => Again::Shown,
        (true, false) => Again::ShownAndRepeated,
    };
    let mut text = duel_report::summary(run, &verdict, again, style);
    if let Some(explanation) = &run.explanation {
        text.push('\n');
        text.push_str(&duel_report::explanation(explanation, style));
    }
    terminal::print(&text)
}

/// The outcome of what the lab did on a run. A comparison can be complete and its explanation interrupted. Where a target did
/// not do what was asked of it, the run is not what was asked for either.
fn outcome_of(run: &Run, verdict: &Verdict, lab: &Lab) -> Outcome {
    match &run.status {
        RunStatus::Complete if lab.is_stopped() => Outcome::Interrupted,
        RunStatus::Complete if !verdict.headlines.is_empty() => Outcome::NotAsAsked,
        RunStatus::Complete => Outcome::Done,
        RunStatus::Interrupted(Interruption::User) => Outcome::Interrupted,
        RunStatus::Interrupted(Interruption::TargetDied { .. } | Interruption::Unfinished) => Outcome::CouldNotRun,
    }
}

/// What to say of a run on one target of which no request ended well: there is a report, and no result in it. A
/// comparison ends by itself when a target stops answering.
fn all_failed(run: &Run) -> Option<String> {
    let [target] = run.plan.targets.as_slice() else {
        return None;
    };
    let tallies = || run.slots.iter().filter(|slot| slot.role == SlotRole::Measured).map(|slot| &slot.tally);
    let total = tallies().map(duel_model::Tally::due).sum::<u64>();
    if total == 0 || tallies().any(|tally| tally.ok > 0) {
        return None;
    }
    let example = tallies().find_map(|tally| tally.failure_examples.first());
    let example =
        example.map_or_else(String::new, |example| format!("; the first failure: {}", sanitize_line(example)));
    let ops = run.plan.schema().op.many;
    Some(format!("{}: none of {total} {ops} ended well{example}", sanitize_line(&target.name)))
}
