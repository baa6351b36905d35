//! `duel check` as a monitoring plugin: thresholds, their outcome, one line and an exit code.
//!
//! The convention is that of the Monitoring Plugins Development Guidelines: one line on standard output that begins with
//! the state, performance data behind a bar, and the exit code of the state.

mod junit;
mod line;
mod report;

pub(crate) use junit::{junit, junit_of_nothing};
pub(crate) use line::{bare_line, line};
pub(crate) use report::{Report, of_run};

use crate::outcome::Usage;
use clap::Args;
use duel_model::Threshold;
use std::path::PathBuf;

/// The state of a service, as monitoring systems know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl State {
    /// The word that the line begins with.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    /// The state of both together: what is known to be wrong comes first, and nothing is well while something is not
    /// known.
    pub(crate) fn and(self, other: Self) -> Self {
        let weight = |state: Self| match state {
            Self::Ok => 0,
            Self::Unknown => 1,
            Self::Warning => 2,
            Self::Critical => 3,
        };
        if weight(other) > weight(self) { other } else { self }
    }
}

/// What a run is held against.
#[derive(Args, Clone)]
#[command(next_help_heading = "Check")]
pub(crate) struct ThresholdFlags {
    /// CRITICAL (exit code 2) unless this holds, repeatable: p99<200ms (any percentile, mean, max), errors<0.1%,
    /// rate>500/s. Or if this holds: 'slower than A by 5%' ('p99 slower than A by 5%'), where A is the first of several
    /// targets
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) critical: Vec<String>,
    /// WARNING (exit code 1), likewise
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) warning: Vec<String>,
    /// Write JUnit XML to this file, which is replaced, with a case for each threshold and target; - is standard output, in
    /// place of the line
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// A threshold and the state that it makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    pub(crate) state: State,
    pub(crate) threshold: Threshold,
}

impl ThresholdFlags {
    /// All of them, the critical ones first.
    pub(crate) fn limits(&self) -> Result<Vec<Limit>, Usage> {
        let of = |typed: &[String], option: &str, state: State| -> Result<Vec<Limit>, Usage> {
            typed
                .iter()
                .map(|typed| {
                    let threshold = typed.parse().map_err(|error| Usage(format!("{option}: {error}")))?;
                    Ok(Limit { state, threshold })
                })
                .collect()
        };
        let mut limits = of(&self.critical, "--critical", State::Critical)?;
        limits.extend(of(&self.warning, "--warning", State::Warning)?);
        if limits.is_empty() {
            return Err(Usage(
                "there is nothing to check: --critical 'p99<200ms' or --warning 'errors<0.1%' or the like is needed"
                    .into(),
            ));
        }
        Ok(limits)
    }
}

/// Refuses what cannot be held against such a plan.
pub(crate) fn fits(limits: &[Limit], plan: &duel_model::Plan) -> Result<(), Usage> {
    for limit in limits {
        let Threshold::Slower { than, .. } = &limit.threshold else { continue };
        let [baseline, _, ..] = plan.targets.as_slice() else {
            return Err(Usage(format!("'{}' needs two targets to compare", limit.threshold)));
        };
        if baseline.name != *than {
            return Err(Usage(format!(
                "'{}': targets are compared with the first one, which is called '{}'",
                limit.threshold,
                duel_model::sanitize_line(&baseline.name)
            )));
        }
        if !plan.factors.is_empty() {
            return Err(Usage(format!(
                "'{}' is about one load, and this has factors: check each of their levels by itself",
                limit.threshold
            )));
        }
    }
    Ok(())
}
