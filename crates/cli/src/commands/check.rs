//! `duel check`: targets or an earlier run, held against thresholds.

use super::{CarriedOut, carry_out, lens};
use crate::check::{self, Report, State, ThresholdFlags};
use crate::deliver::{Destination, write};
use crate::flags::{LoadFlags, MeasuringFlags, OutputFlags};
use crate::meaning::{self, JudgingFlags};
use crate::outcome::{Outcome, Usage, say, told};
use crate::watching::Shown;
use crate::{keep, signals, terminal};
use clap::Args;
use duel_lab::{Lab, LabError};
use duel_model::{Plan, Run};
use std::time::{SystemTime, UNIX_EPOCH};

/// Options of a check.
#[derive(Args, Clone)]
pub(crate) struct CheckFlags {
    /// Targets as [NAME=]URL, the first is the baseline; or an earlier run: its id, or 'last'
    #[arg(value_name = "[NAME=]URL|RUN", required = true)]
    pub(crate) subjects: Vec<String>,
    #[command(flatten)]
    pub(crate) thresholds: ThresholdFlags,
    /// Number of requests instead of a duration, of a single target
    #[arg(short = 'n', long, allow_negative_numbers = true, value_name = "N", help_heading = "Load")]
    pub(crate) requests: Option<u64>,
    #[command(flatten)]
    pub(crate) judging: JudgingFlags,
    #[command(flatten)]
    pub(crate) measuring: MeasuringFlags,
}

/// Measures what was given, or takes the run, and prints one line. Everything that goes wrong becomes a state.
pub(crate) fn check(flags: &CheckFlags, load: &LoadFlags, output: &OutputFlags) -> Outcome {
    let (line, xml, state) = match checked(flags, load, output) {
        Ok((run, report)) => (check::line(&report), check::junit(&run.id, run.started_unix_ms, &report), report.state),
        Err(error) => {
            let (state, text) = (state_of(&error), told(&error));
            let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
            let text = duel_model::sanitize(&text);
            (check::bare_line(state, &text), check::junit_of_nothing(now_ms, &text), state)
        }
    };
    match delivered(flags, &line, &xml) {
        Ok(()) => Outcome::Checked(state),
        Err(error) => {
            say(&told(&error));
            Outcome::Checked(state.and(State::Unknown))
        }
    }
}

/// A check that cannot be made because of how it was asked for.
pub(crate) fn unknown(sentence: &str) -> Outcome {
    let _ = terminal::print(&check::bare_line(State::Unknown, &duel_model::sanitize(sentence)));
    Outcome::Checked(State::Unknown)
}

/// The state of a check that came to no run.
///
/// A target that cannot be reached is CRITICAL: by the guidelines for plugins, what lies outside of the plugin, as names
/// that cannot be looked up and time-outs, is no UNKNOWN.
fn state_of(error: &anyhow::Error) -> State {
    match error.downcast_ref::<LabError>() {
        Some(LabError::Target { .. }) => State::Critical,
        _ => State::Unknown,
    }
}

fn checked(flags: &CheckFlags, load: &LoadFlags, output: &OutputFlags) -> anyhow::Result<(Run, Report)> {
    if output.json {
        return Err(Usage("a check prints one line; for the run as JSON: duel show last --json".into()).into());
    }
    let limits = flags.thresholds.limits()?;
    let run = match plan(flags, load)? {
        Some(plan) => {
            let lab = lens::equip(Lab::new(signals::stop_flag()?));
            let done = carry_out(&lab, &plan, None, Shown::OnTerminals, &flags.measuring.telemetry, output)?;
            let CarriedOut { run, kept, .. } = done;
            // That it could not be kept says nothing about the targets.
            if let Err(error) = kept {
                say(&told(&error));
            }
            run
        }
        None => {
            let run = keep::open_to_read(output)?.load(&flags.subjects[0])?;
            check::fits(&limits, &run.plan.targets)?;
            run
        }
    };
    let report = check::of_run(&run, &duel_lab::judge(&run), &limits);
    Ok((run, report))
}

/// What is to be measured; `None`: an earlier run is looked at.
pub(crate) fn plan(flags: &CheckFlags, load: &LoadFlags) -> Result<Option<Plan>, Usage> {
    let limits = flags.thresholds.limits()?;
    flags.thresholds.junit.as_deref().map(Destination::of).transpose()?;
    let judging = &flags.judging;
    let mut plan = match flags.subjects.as_slice() {
        [only] if is_run(only) => {
            flags.measuring.telemetry.checked()?;
            return Ok(None);
        }
        [target] => {
            if judging.slot.is_some() || judging.no_early_stop {
                return Err(Usage("--slot and --no-early-stop have a meaning with two targets only".into()));
            }
            meaning::single(target, flags.requests, judging.seed.unwrap_or(1), load)?
        }
        several => {
            if flags.requests.is_some() {
                return Err(Usage("-n has a meaning with a single target only; a comparison takes -d".into()));
            }
            meaning::comparison(several, judging, load)?
        }
    };
    flags.measuring.apply(&mut plan)?;
    check::fits(&limits, &plan.targets)?;
    Ok(Some(plan))
}

/// Whether a word is the name of an earlier run and not a target.
fn is_run(word: &str) -> bool {
    !word.contains(['/', '=', ':']) && word != "null"
}

fn delivered(flags: &CheckFlags, line: &str, xml: &str) -> anyhow::Result<()> {
    match flags.thresholds.junit.as_deref().map(Destination::of).transpose()? {
        Some(Destination::Output) => terminal::print(xml),
        Some(Destination::File(path)) => {
            terminal::print(line)?;
            // CI servers run the same check again and again.
            write(&path, xml.as_bytes(), true)
        }
        None => terminal::print(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_told_from_targets() {
        for run in ["last", "last~1", "20261120-233200-7f3a"] {
            assert!(is_run(run), "{run}");
        }
        for target in ["http://h/", "a=http://h/", "null:", "null"] {
            assert!(!is_run(target), "{target}");
        }
    }

    #[test]
    fn what_lies_outside_is_critical_and_what_lies_here_is_unknown() {
        let outside = LabError::Target { name: "A".into(), text: "connection refused".into() };
        assert_eq!(state_of(&outside.into()), State::Critical);
        assert_eq!(state_of(&LabError::Interrupted.into()), State::Unknown);
        assert_eq!(state_of(&Usage("x".into()).into()), State::Unknown);
    }
}
