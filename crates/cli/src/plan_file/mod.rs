//! Plan files: TOML for all that flags can say.
//!
//! The keys of a plan are the long names of the options, so both have one definition, and an option that is added is one
//! more key. A plan is turned into the words of a command line; clap and [`crate::load::meaning`] understand them as they do
//! those that are typed. The rejected alternative is a structure of its own for the file: each option would be written
//! down, checked and explained twice.
//!
//! Tables order a file for its readers. A key means the same in each of them, so that an option may change its place in
//! the help without making older plans unreadable.

mod blame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod place;
mod read;
mod words;
mod write;

pub(crate) use place::PlanError;

use crate::commands::plan::{self, PlanWords};
use crate::outcome::{Outcome, Usage};
use crate::{command_line, terminal, usage};
use clap::{Arg, ArgAction, ArgMatches, Command};
use read::PlanFile;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The key under which the targets stand.
const TARGETS: &str = "targets";
/// The table that a comparison or a run leaves to `duel check`.
const CHECK: &str = "check";
/// The commands that take a plan; the first is a comparison.
const COMMANDS: [Option<&str>; 3] = [None, Some("run"), Some(CHECK)];

/// Prints the plan of the command line given; nothing is done.
pub(crate) fn plan(plan: &PlanWords) -> anyhow::Result<Outcome> {
    if matches!(plan.words.first(), Some(word) if word == "-h" || word == "--help") {
        terminal::print(&plan::described().render_help().to_string())?;
        return Ok(Outcome::Done);
    }
    let typed: Vec<OsString> = std::iter::once("duel".into()).chain(plan.words.iter().cloned()).collect();
    let words = match filled_in(typed) {
        Ok(words) => words,
        Err(error) => {
            error.say();
            return Ok(Outcome::BadUsage);
        }
    };
    let flags = command_line::read(&words).map_err(|error| Usage(usage::sentence(&error, &words)))?;
    flags.checked()?;
    terminal::print(&of_words(&words)?)?;
    Ok(Outcome::Done)
}

/// The words of a command line with those of its plan file among them, if it names one.
///
/// What is typed goes before what the file says, option by option: a list that is typed replaces the file's. An error is
/// told with the place in the file that it comes from.
pub(crate) fn filled_in(typed: Vec<OsString>) -> Result<Vec<OsString>, PlanError> {
    // Of a command line that makes no sense by itself, the ordinary reading tells what is wrong.
    let Ok(matches) = indulgent(command_line::readable()).try_get_matches_from(&typed) else { return Ok(typed) };
    let (verb, matches) = match matches.subcommand() {
        Some((verb, matches)) => (Some(verb), matches),
        None => (None, &matches),
    };
    let Some(command) = command_of(verb) else { return Ok(typed) };
    let Some(path) = matches.get_one::<PathBuf>("plan") else { return Ok(typed) };
    let mut file = PlanFile::read(path)?;
    file.keep_known(command, verb)?;
    file.entries.retain(|entry| !words::is_overruled(entry, command, matches));
    understood_with(&file, &typed)
}

/// What was typed and a plan's entries, as the words of a command line that has a meaning.
fn understood_with(file: &PlanFile, typed: &[OsString]) -> Result<Vec<OsString>, PlanError> {
    let words = words::joined(typed, &file.entries);
    match understood(&words) {
        Ok(()) => Ok(words),
        Err(sentence) => {
            let span = blame::culprit(&file.entries, &sentence, |left| understood(&words::joined(typed, left)).err());
            let mut error = span.map_or_else(|| PlanError::nowhere(&sentence), |span| file.error_at(span, &sentence));
            error.wants_document = command_line::asks_for_document(&words);
            Err(error)
        }
    }
}

/// The plan file of a command line.
pub(crate) fn of_words(words: &[OsString]) -> anyhow::Result<String> {
    let matches = command_line::matched(words).map_err(|error| Usage(usage::sentence(&error, words)))?;
    let (verb, matches) = match matches.subcommand() {
        Some((verb, matches)) => (Some(verb), matches),
        None => (None, &matches),
    };
    let command = command_of(verb).ok_or_else(|| {
        Usage(format!("'{}' takes no plan; a comparison, 'run' and 'check' do", verb.unwrap_or_default()))
    })?;
    Ok(write::written(command, verb, matches)?)
}

/// Whether a command line has a meaning; otherwise why not.
fn understood(words: &[OsString]) -> Result<(), String> {
    let flags = command_line::read(words).map_err(|error| usage::sentence(&error, words))?;
    flags.checked().map_err(|Usage(sentence)| sentence)
}

/// The command that a verb stands for, none is a comparison; `None` if it takes no plan.
fn command_of(verb: Option<&str>) -> Option<&'static Command> {
    // Putting a hundred options together takes milliseconds.
    static PLANNED: OnceLock<Vec<(Option<&str>, Command)>> = OnceLock::new();
    let planned = PLANNED.get_or_init(|| {
        let mut all = command_line::command();
        // Global options become those of each command.
        all.build();
        let of = |verb: Option<&'static str>| match verb {
            Some(verb) => all.find_subcommand(verb).cloned().map(|command| (Some(verb), command)),
            None => Some((None, all.clone())),
        };
        COMMANDS.into_iter().filter_map(of).collect()
    });
    planned.iter().find(|(known, _)| *known == verb).map(|(_, command)| command)
}

/// The commands that take a plan, with their verbs.
fn commands() -> impl Iterator<Item = (Option<&'static str>, &'static Command)> {
    COMMANDS.into_iter().filter_map(|verb| Some((verb, command_of(verb)?)))
}

/// The same, where nothing is required: the file may have it.
fn indulgent(command: Command) -> Command {
    command.mut_args(|arg| arg.required(false)).mut_subcommands(indulgent)
}

/// Whether an option can stand in a plan file.
fn is_planned(arg: &Arg) -> bool {
    let acts = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue);
    acts && arg.get_long().is_some_and(|long| long != "plan")
}

/// The name of the table that an option is written to; `None`: above all tables.
fn table_of(arg: &Arg) -> Option<String> {
    // Such a name needs no quotes.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == ' ';
    let name = |heading: &str| heading.to_ascii_lowercase().replace(|c| !plain(c), "").replace(' ', "-");
    arg.get_help_heading().map(name)
}

/// Whether an option was typed, and not left to its default.
fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

#[cfg(test)]
mod tests;
