//! How the program ends: the exit code, and the one sentence of an error.

use std::process::ExitCode;

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what was asked.
    Done,
    /// It could not.
    CouldNotRun,
    /// It was asked in a way that makes no sense.
    BadUsage,
    /// The user ended it.
    Interrupted,
}

/// An error of the command line: what was typed cannot be meant.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl Outcome {
    /// The outcome of a command's result; an error is printed, as one line and safe to show.
    pub(crate) fn of(result: anyhow::Result<Self>) -> Self {
        let error = match result {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        let text = duel_model::sanitize(&format!("{error:#}"));
        eprintln!("duel: {}", text.replace('\n', " "));
        if error.downcast_ref::<Usage>().is_some() {
            Self::BadUsage
        } else if matches!(error.downcast_ref::<duel_lab::LabError>(), Some(duel_lab::LabError::Interrupted)) {
            Self::Interrupted
        } else {
            Self::CouldNotRun
        }
    }

    /// The process's exit code.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::CouldNotRun => 1,
            Self::BadUsage => 2,
            Self::Interrupted => 130,
        })
    }
}
