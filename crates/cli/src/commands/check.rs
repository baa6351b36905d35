//! `duel check`: targets or an earlier run, held against thresholds.

use super::{CarriedOut, carry_out, lens};
use crate::check::{self, Report, State, ThresholdFlags};
use crate::deliver::{Destination, write};
use crate::load::LoadFlags;
use crate::load::meaning::{self, JudgingFlags};
use crate::measuring::MeasuringFlags;
use crate::outcome::{Outcome, Usage, say, told};
use crate::output::OutputFlags;
use crate::watching::Shown;
use crate::{keep, signals, terminal};
use anyhow::Context;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args};
use duel_lab::{Lab, LabError};
use duel_model::{Plan, Run, sanitize_line};
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
    /// An option that was typed and is for loading only. A plan has such options for those who load.
    #[arg(skip)]
    pub(crate) load_option: Option<String>,
}

impl CheckFlags {
    /// With what of `matches`, those of the command, is for loading only.
    pub(crate) fn with_load_option(mut self, command: &clap::Command, matches: &ArgMatches) -> Self {
        let thresholds = ThresholdFlags::augment_args(clap::Command::new("check"));
        let is_for_loading = |arg: &&Arg| {
            !arg.is_positional()
                && !arg.is_global_set()
                && thresholds.get_arguments().all(|threshold| threshold.get_id() != arg.get_id())
        };
        let is_typed = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let option = command.get_arguments().filter(is_for_loading).find(is_typed);
        self.load_option = option.map(|arg| match (arg.get_short(), arg.get_long()) {
            (Some(short), _) => format!("-{short}"),
            (None, long) => format!("--{}", long.unwrap_or_default()),
        });
        self
    }
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
        Ok(()) => Outcome::Checked(state.code()),
        Err(error) => {
            let (text, state) = (told(&error), state.and(State::Unknown));
            say(&text);
            // The line and the exit code are to say the same.
            let _ = terminal::print(&check::bare_line(state, &duel_model::sanitize(&text)));
            Outcome::Checked(state.code())
        }
    }
}

/// A check that cannot be made because of how it was asked for.
pub(crate) fn unknown(sentence: &str) -> Outcome {
    let _ = terminal::print(&check::bare_line(State::Unknown, &duel_model::sanitize(sentence)));
    Outcome::Checked(State::Unknown.code())
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
    let (run, is_kept) = match plan(flags, load)? {
        Some(plan) => {
            let lab = lens::equip(Lab::new(signals::stop_flag()?));
            // That it cannot be kept says nothing about the targets.
            let archive = match keep::open(output) {
                Err(error) if !error.is::<Usage>() => {
                    say(&format!("the check goes on and is not kept: {}", told(&error)));
                    None
                }
                opened => opened?,
            };
            let done = carry_out(&lab, &plan, None, Shown::OnTerminals, &flags.measuring.telemetry, archive, output)?;
            let CarriedOut { run, is_kept, kept } = done;
            if let Err(error) = kept {
                say(&told(&error));
            }
            (run, is_kept)
        }
        None => {
            let name = &flags.subjects[0];
            let run = keep::open_to_read(output)?.load(name).with_context(|| {
                format!("'{}' is taken for a run, since addresses begin with http:// or the like", sanitize_line(name))
            })?;
            check::fits(&limits, &run.plan)?;
            (run, true)
        }
    };
    let run = run.shown();
    let report = check::of_run(&run, &duel_lab::judge(&run), &limits, is_kept);
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
            let option = flags.load_option.as_ref().filter(|_| !flags.measuring.has_plan());
            return match option {
                Some(option) => Err(Usage(format!("{option} has no meaning with a run: nothing is loaded"))),
                None => Ok(None),
            };
        }
        [target] => {
            if judging.slot.is_some() || judging.no_early_stop {
                return Err(Usage("--slot and --no-early-stop have a meaning with two targets only".into()));
            }
            if judging.restart.is_given() {
                return Err(Usage("--restart has a meaning with two targets only".into()));
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
    flags.measuring.apply(&mut plan, false)?;
    check::fits(&limits, &plan)?;
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
            // CI servers run the same check again and again.
            write(&path, xml.as_bytes(), true)?;
            terminal::print(line)
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
