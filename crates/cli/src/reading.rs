//! How words become a command: the words of a plan file come among those that were typed, then all are sorted. Help and errors
//! of usage end here.

use crate::command_line::{self, Command, Flags};
use crate::outcome::{self, Outcome};
use crate::{commands, plan_file, terminal, usage};
use std::ffi::OsString;

/// The words of a command line, the program's name first, where `duel help VERB` is `duel VERB --help`, and `duel version` is
/// `duel --version`: other programs have such commands.
pub(crate) fn with_options_for_words(typed: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| typed.get(at).and_then(|word| word.to_str());
    let program = || typed.iter().take(1).cloned();
    match (word(1), word(2), typed.len()) {
        (Some("version"), None, 2) => program().chain(["--version".into()]).collect(),
        (Some("help"), None, 2) => program().chain(["--help".into()]).collect(),
        (Some("help"), Some(verb), 3) if command_line::command().find_subcommand(verb).is_some() => {
            program().chain([verb.into(), "--help".into()]).collect()
        }
        _ => typed,
    }
}

/// Reads the command line; help and usage errors are printed and become an outcome.
pub(crate) fn parse(typed: Vec<OsString>) -> Result<Flags, Outcome> {
    let verb = first_verb(&typed);
    // A check prints its line, whatever becomes of it; to `plan` all words are those of another command line.
    let is_check = verb.as_deref() == Some("check");
    let may_have_document = !is_check && verb.as_deref() != Some("plan");
    let bad_usage = |wants_document: bool, sentence: &str| {
        if is_check {
            return commands::check::unknown(sentence);
        }
        if may_have_document && wants_document {
            outcome::print_failure(sentence);
        }
        Outcome::BadUsage
    };
    let words = plan_file::filled_in(typed.clone()).map_err(|error| {
        error.say();
        bad_usage(error.wants_document || command_line::asks_for_document(&typed), &error.sentence)
    })?;
    let flags = command_line::read(&words).map_err(|error| {
        if error.use_stderr() {
            let sentence = usage::sentence(&error, &words);
            outcome::say(&sentence);
            return bad_usage(command_line::asks_for_document(&words), &sentence);
        }
        // Help.
        let printed = Outcome::of(terminal::print_styled(&error.render()).map(|()| Outcome::Done));
        // By the guidelines for plugins: nobody watches a service by asking for help.
        if is_check { Outcome::Checked(crate::check::State::Unknown.code()) } else { printed }
    })?;
    if let Command::Compare(compare) = &flags.command
        && compare.targets.is_empty()
    {
        if flags.output.json {
            let sentence = "there is nothing to compare; give two targets: duel URL URL (see duel --help)";
            outcome::say(sentence);
            return Err(bad_usage(true, sentence));
        }
        // Who typed nothing wants to know what this is; the help has hundreds of lines.
        return Err(Outcome::of(terminal::print(command_line::FIRST_STEPS).map(|()| Outcome::BadUsage)));
    }
    Ok(flags)
}

/// The first command on a command line.
fn first_verb(typed: &[OsString]) -> Option<String> {
    let cli = command_line::command();
    let verb = typed.iter().skip(1).find(|word| cli.get_subcommands().any(|command| *word == command.get_name()));
    verb.and_then(|verb| verb.to_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Vec<OsString> {
        std::iter::once("duel").chain(typed.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn help_and_version_may_be_words() {
        for (typed, meant) in [
            ("help", "--help"),
            ("help run", "run --help"),
            ("help hey", "hey --help"),
            ("version", "--version"),
            // Neither takes anything else, and a name is no command.
            ("help nothing", "help nothing"),
            ("help run now", "help run now"),
            ("version 2", "version 2"),
            ("run help", "run help"),
            ("", ""),
        ] {
            assert_eq!(with_options_for_words(words(typed)), words(meant), "{typed}");
        }
    }
}
