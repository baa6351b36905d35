//! What is said of a command line that cannot be understood: one sentence, which tells what an option wants.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::borrow::Cow;
use std::ffi::OsString;

/// What options that take a number want. Those that take a time, a share or a list are read in [`crate::load::meaning`].
const NUMBERS: [(&str, &str); 6] = [
    ("--requests", "a number of requests, such as 10000"),
    ("--threads", "a number of threads, such as 2"),
    ("--follow", "a number of redirects, such as 5"),
    ("--follow-each", "a number of redirects, such as 5"),
    ("--limit", "a number of runs, such as 20"),
    ("--seed", "a whole number, such as 42"),
];
/// Options of other programs that are something else here, and what they are.
const OF_OTHERS: [(&str, &str); 6] = [
    ("-z", "how long is -d, such as -d 10s"),
    ("-X", "the method is -m, such as -m POST"),
    ("-T", "a content type is a header field: -H 'Content-Type: ...'"),
    ("-D", "a body from a file is --body-file FILE"),
    ("-p", "a body from a file is --body-file FILE, several requests on a connection are --http2 --streams N"),
    ("-L", "redirects are followed with --follow N"),
];
pub(crate) const CONNECTIONS: &str = "a number of connections, such as 100";
pub(crate) const THREADS: &str = "a number of threads, such as 2";
pub(crate) const RATE: &str = "requests per second, such as 500 or 0.5";
pub(crate) const TIME: &str = "a time such as 500ms, 10s or 2m";
pub(crate) const SHARE: &str = "a share such as 2% or 0.02";

/// `--rate takes requests per second, such as 500 or 0.5; got 'fast'`.
pub(crate) fn takes(option: &str, wanted: &str, typed: &str) -> String {
    format!("{option} takes {wanted}; got '{}'", duel_model::sanitize_line(typed))
}

/// A usage error in one line: what is wrong and the tip, where there is one, without the usage that follows; and where the help of
/// the command is that `words`, the program's name first, were to call.
pub(crate) fn sentence(error: &clap::Error, words: &[OsString]) -> String {
    let (name, command) = called(words);
    let what = wrong_number(error).or_else(|| unknown(error, &command)).unwrap_or_else(|| in_claps_words(error));
    format!("{what} (see {name} --help)")
}

/// The command that words call, such as `duel disk files`, as far as there is one. What follows a target, or stands behind an option
/// as its value, calls none, though it may be spelt like one.
fn called(words: &[OsString]) -> (String, clap::Command) {
    let mut all = crate::command_line::command();
    // Options of all commands reach each of them by that.
    all.build();
    let mut called = ("duel".to_owned(), all);
    let mut words = words.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(verb) = first_word(&called.1, &mut words).and_then(|word| called.1.find_subcommand(&*word)).cloned()
    {
        called = (format!("{} {}", called.0, verb.get_name()), verb);
    }
    called
}

/// The first word that is neither an option of this command nor the value of one. `None` also behind an option that the command
/// does not have: there reading ends.
fn first_word<'a>(command: &clap::Command, words: &mut impl Iterator<Item = Cow<'a, str>>) -> Option<Cow<'a, str>> {
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            return Some(word);
        }
        if is_followed_by_its_value(command, &word)? {
            words.next();
        }
    }
    None
}

/// Whether an option, or the last of several letters, has its value in the next word; `None`: the command has no such option.
fn is_followed_by_its_value(command: &clap::Command, word: &str) -> Option<bool> {
    let takes_value = |option: &clap::Arg| option.get_num_args().is_some_and(|count| count.min_values() > 0);
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let option = command.get_arguments().find(|option| option.get_long() == Some(name))?;
        return Some(value.is_none() && takes_value(option));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    while let Some(letter) = letters.next() {
        let option = command.get_arguments().find(|option| option.get_short() == Some(letter))?;
        if takes_value(option) {
            // Such as `-c100`.
            return Some(letters.as_str().is_empty());
        }
    }
    Some(false)
}

/// The option of a command that is nearest to one that is misspelt. Less than two letters in three are another word.
fn nearest(argument: &str, command: &clap::Command) -> Option<String> {
    let typed = argument.strip_prefix("--")?;
    let slips = |name: &&str| strsim::damerau_levenshtein(typed, name);
    let is_alike = |name: &&str| slips(name) <= (name.len().min(typed.len()) / 3).max(1);
    let names = command.get_arguments().filter(|argument| !argument.is_hide_set()).filter_map(clap::Arg::get_long);
    names.filter(is_alike).min_by_key(slips).map(|name| format!("--{name}"))
}

/// A number that is none. Of a value that is missing altogether, clap speaks well enough.
fn wrong_number(error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    // Such as `--rate <PER_SECOND>`.
    let option = context(ContextKind::InvalidArg)?.split_whitespace().next()?;
    let (_, wanted) = NUMBERS.iter().find(|(name, _)| *name == option)?;
    Some(takes(option, wanted, context(ContextKind::InvalidValue)?))
}

/// An option that does not exist, or a target too many. Clap's tip is left out where it only says how to pass the option as a
/// value, which nobody means.
fn unknown(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let shown = duel_model::sanitize_line(argument);
    let found = format!("unexpected argument '{shown}' found");
    if !argument.starts_with('-') {
        let in_run = error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains(" run ["));
        return in_run.then(|| format!("{found}; run loads one target, to compare two: duel URL URL"));
    }
    if let Some(nearest) = nearest(argument, command) {
        return Some(format!("{found}; did you mean {nearest}?"));
    }
    if error.get(ContextKind::SuggestedArg).is_some() {
        return None;
    }
    let meant = OF_OTHERS.iter().find(|(option, _)| *option == argument);
    Some(meant.map_or_else(|| found.clone(), |(_, meant)| format!("{found}; {meant}")))
}

fn in_claps_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n").map(|lines| {
        let words: Vec<&str> = lines.split_whitespace().collect();
        words.join(" ")
    });
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let tip = paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: ").map(|tip| format!("; {tip}")));
    format!("{what}{}", tip.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Vec<OsString> {
        std::iter::once("duel").chain(typed.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn options_of_other_programs_are_told_by_their_name_here() {
        for (typed, told) in [
            (
                "run http://h/ -z 3s",
                "unexpected argument '-z' found; how long is -d, such as -d 10s (see duel run --help)",
            ),
            (
                "http://a/ http://b/ -X POST",
                "unexpected argument '-X' found; the method is -m, such as -m POST (see duel --help)",
            ),
            ("run http://h/ -!", "unexpected argument '-!' found (see duel run --help)"),
            (
                "run http://a/ http://b/",
                "unexpected argument 'http://b/' found; run loads one target, to compare two: duel URL URL (see duel run --help)",
            ),
            ("show last last", "unexpected argument 'last' found (see duel show --help)"),
        ] {
            assert_eq!(told_of(typed), told, "{typed}");
        }
    }

    fn told_of(typed: &str) -> String {
        let words = words(typed);
        sentence(&crate::command_line::matched(&words).unwrap_err(), &words)
    }

    #[test]
    fn a_misspelt_option_is_told_with_the_nearest_one_and_the_help_of_its_command() {
        for (typed, told) in [
            (
                "run --theads 4 http://h/",
                "unexpected argument '--theads' found; did you mean --threads? (see duel run --help)",
            ),
            ("http://a/ http://b/ --wy", "unexpected argument '--wy' found; did you mean --why? (see duel --help)"),
            ("net serve --adress x", "unexpected argument '--adress' found (see duel net serve --help)"),
            ("-q run http://h/ --seed x", "--seed takes a whole number, such as 42; got 'x' (see duel run --help)"),
            ("run http://h/ --nothing-like-it", "unexpected argument '--nothing-like-it' found (see duel run --help)"),
        ] {
            assert_eq!(told_of(typed), told, "{typed}");
        }
    }

    #[test]
    fn values_and_targets_that_are_spelt_like_a_command_call_none() {
        for (typed, command) in [
            ("http://a/ http://b/ --host check --wy", "duel"),
            ("--host check http://a/ http://b/ --wy", "duel"),
            ("--host=check run http://a/ --wy", "duel run"),
            ("-m run http://a/ --wy", "duel"),
            ("-km check http://a/ --wy", "duel"),
            ("-kmPOST check http://a/ --wy", "duel check"),
            ("http://a/ run --wy", "duel"),
            ("--wy run http://a/", "duel"),
            ("-- run http://a/", "duel"),
            ("-q --json net -q serve --adress x", "duel net serve"),
            ("run --host check http://a/ --wy", "duel run"),
        ] {
            assert_eq!(called(&words(typed)).0, command, "{typed}");
        }
        let told = told_of("http://a/ http://b/ --host check --wy");
        assert_eq!(told, "unexpected argument '--wy' found; did you mean --why? (see duel --help)");
    }

    #[test]
    fn no_option_of_other_programs_is_one_here() {
        let run = crate::command_line::command();
        let run = run.find_subcommand("run").unwrap();
        for (option, _) in OF_OTHERS {
            let letter = option.chars().nth(1);
            assert!(run.get_arguments().all(|argument| argument.get_short() != letter), "{option}");
        }
    }
}
