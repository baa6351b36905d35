//! From entries to the words of a command line.

use super::read::{Entry, Given, option};
use super::{TARGETS, is_typed};
use clap::{Arg, ArgMatches, Command};
use std::ffi::OsString;

/// Options of which one at most has a meaning, though clap does not know: [`crate::load::meaning`] refuses them together.
const ALTERNATIVES: [(&str, &str); 1] = [("requests", "duration")];

/// Whether something that was typed takes the place of an entry: the option itself, or one that excludes it.
pub(super) fn is_overruled(entry: &Entry, command: &Command, matches: &ArgMatches) -> bool {
    if entry.key == TARGETS {
        return command.get_positionals().any(|arg| is_typed(matches, arg.get_id().as_str()));
    }
    let Some(arg) = option(command, &entry.key) else { return false };
    let is_typed = |id: &str| is_typed(matches, id);
    let excludes = |other: &&Arg| {
        let (excluded_by_it, excluded_by_this) =
            (command.get_arg_conflicts_with(other), command.get_arg_conflicts_with(arg));
        let pair = (arg.get_long().unwrap_or_default(), other.get_long().unwrap_or_default());
        excluded_by_it.iter().any(|excluded| excluded.get_id() == arg.get_id())
            || excluded_by_this.iter().any(|excluded| excluded.get_id() == other.get_id())
            || are_of_one_group(command, arg, other)
            || ALTERNATIVES.iter().any(|&(one, two)| pair == (one, two) || pair == (two, one))
    };
    is_typed(arg.get_id().as_str())
        || command.get_arguments().filter(|other| is_typed(other.get_id().as_str())).any(|other| excludes(&other))
}

/// Whether both are in a group of which one member at most may be given.
fn are_of_one_group(command: &Command, one: &Arg, other: &Arg) -> bool {
    command.get_groups().any(|group| {
        let has = |arg: &Arg| group.get_args().any(|id| id == arg.get_id());
        // The question takes a group that could be changed.
        has(one) && has(other) && !group.clone().is_multiple()
    })
}

/// What was typed, with the entries' options and targets behind it.
pub(super) fn joined(typed: &[OsString], entries: &[Entry]) -> Vec<OsString> {
    // Behind a bare `--` there are no options.
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (options, rest) = typed.split_at(end);
    let mut words = options.to_vec();
    words.extend(entries.iter().filter(|entry| entry.key != TARGETS).flat_map(options_of));
    words.extend_from_slice(rest);
    let mut targets = entries.iter().filter(|entry| entry.key == TARGETS).flat_map(values_of).peekable();
    if rest.is_empty() && targets.peek().is_some() {
        words.push("--".into());
    }
    words.extend(targets.map(OsString::from));
    words
}

/// A value is bound to its option: it may begin like one.
fn options_of(entry: &Entry) -> Vec<OsString> {
    let key = &entry.key;
    match &entry.given {
        Given::Switch(false) => Vec::new(),
        Given::Switch(true) => vec![format!("--{key}").into()],
        Given::Values { values, .. } => values.iter().map(|value| format!("--{key}={}", value.typed).into()).collect(),
    }
}

fn values_of(entry: &Entry) -> Vec<&str> {
    match &entry.given {
        Given::Switch(_) => Vec::new(),
        Given::Values { values, .. } => values.iter().map(|value| value.typed.as_str()).collect(),
    }
}
