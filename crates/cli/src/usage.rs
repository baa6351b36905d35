//! What is said of a command line that cannot be understood: one sentence, which tells what an option wants.

use clap::error::{ContextKind, ContextValue, ErrorKind};

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

/// A usage error in one line: what is wrong and the tip, where there is one, without the usage that follows.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let what = wrong_number(error).or_else(|| unknown(error)).unwrap_or_else(|| in_claps_words(error));
    format!("{what} (see duel --help)")
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
fn unknown(error: &clap::Error) -> Option<String> {
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
    use std::ffi::OsString;

    fn words(typed: &str) -> Vec<OsString> {
        std::iter::once("duel").chain(typed.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn options_of_other_programs_are_told_by_their_name_here() {
        for (typed, told) in [
            ("run http://h/ -z 3s", "unexpected argument '-z' found; how long is -d, such as -d 10s (see duel --help)"),
            (
                "http://a/ http://b/ -X POST",
                "unexpected argument '-X' found; the method is -m, such as -m POST (see duel --help)",
            ),
            ("run http://h/ -!", "unexpected argument '-!' found (see duel --help)"),
            (
                "run http://a/ http://b/",
                "unexpected argument 'http://b/' found; run loads one target, to compare two: duel URL URL (see duel --help)",
            ),
            ("show last last", "unexpected argument 'last' found (see duel --help)"),
        ] {
            let error = crate::command_line::matched(&words(typed)).unwrap_err();
            assert_eq!(sentence(&error), told, "{typed}");
        }
        // A misspelt option is still told what it is near to.
        let error = crate::command_line::matched(&words("run http://h/ --conections 3")).unwrap_err();
        assert!(sentence(&error).contains("'--connections'"), "{}", sentence(&error));
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
