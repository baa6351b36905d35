//! How the program ends: the exit code, and the one sentence of an error.

use crate::terminal;
use std::io::Write;
use std::process::ExitCode;

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what was asked.
    Done,
    /// It could not.
    CouldNotRun,
    /// It was done, and a target did not do what was asked of it: the report begins with that.
    NotAsAsked,
    /// It was asked in a way that makes no sense.
    BadUsage,
    /// The user ended it.
    Interrupted,
    /// A check came to a state, of which this is the code.
    Checked(u8),
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

/// Prints an error as one line, safe to show, and without the secrets of addresses in it.
pub(crate) fn say(sentence: &str) {
    // Where standard error is closed, the exit code has to do.
    let _ = writeln!(std::io::stderr(), "duel: {}", said(sentence));
}

/// The line that [`say`] makes of a sentence.
pub(crate) fn said(sentence: &str) -> String {
    without_error_numbers(&duel_model::sanitize(&duel_model::without_secrets(sentence)).replace('\n', " "))
}

/// Without the numbers that the standard library puts behind the system's own words.
pub(crate) fn without_error_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    plain
}

/// The document of what did not come about, where no other was printed. That it cannot be printed either is not told: the
/// sentence that is in it is.
pub(crate) fn print_failure(sentence: &str) {
    if !terminal::has_printed() {
        let _ = terminal::print(&duel_report::json_failure(&without_error_numbers(sentence)));
    }
}

/// An error and its causes. Many errors tell their cause themselves; it is not told twice.
pub(crate) fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        told if told.contains(&cause) => told.to_owned(),
        told => format!("{told}: {cause}"),
    })
}

impl Outcome {
    /// The outcome of a command's result; an error is printed.
    pub(crate) fn of(result: anyhow::Result<Self>) -> Self {
        let error = match result {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        say(&told(&error));
        if error.downcast_ref::<Usage>().is_some() {
            Self::BadUsage
        } else if matches!(error.downcast_ref::<duel_lab::LabError>(), Some(duel_lab::LabError::Interrupted)) {
            Self::Interrupted
        } else {
            Self::CouldNotRun
        }
    }

    /// As [`Outcome::of`]. Who reads documents (`is_json`) gets one of an error, too, unless one is printed already.
    pub(crate) fn documented(result: anyhow::Result<Self>, is_json: bool) -> Self {
        if let Err(error) = &result
            && is_json
        {
            print_failure(&told(error));
        }
        Self::of(result)
    }

    /// The process's exit code.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::CouldNotRun | Self::NotAsAsked => 1,
            Self::BadUsage => 2,
            Self::Interrupted => 130,
            Self::Checked(code) => code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_left_out() {
        let text = "cannot read x: Is a directory (os error 21); give a file";
        assert_eq!(without_error_numbers(text), "cannot read x: Is a directory; give a file");
        assert_eq!(without_error_numbers("all well"), "all well");
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("no such file").context("cannot read x: no such file; check the path");
        assert_eq!(told(&error), "cannot read x: no such file; check the path");
        assert_eq!(told(&anyhow::anyhow!("no such file").context("cannot read x")), "cannot read x: no such file");
    }
}
