//! What is said of a command line that cannot be understood: one sentence, which tells what an option wants.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What options that take a number want. Those that take a time, a share or a list are read in [`crate::meaning`].
const NUMBERS: [(&str, &str); 6] = [
    ("--requests", "a number of requests, such as 10000"),
    ("--threads", "a number of threads, such as 2"),
    ("--follow", "a number of redirects, such as 5"),
    ("--follow-each", "a number of redirects, such as 5"),
    ("--limit", "a number of runs, such as 20"),
    ("--seed", "a whole number, such as 42"),
];
pub(crate) const CONNECTIONS: &str = "a number of connections, such as 100";
pub(crate) const RATE: &str = "requests per second, such as 500 or 0.5";
pub(crate) const TIME: &str = "a time such as 500ms, 10s or 2m";
pub(crate) const SHARE: &str = "a share such as 2% or 0.02";

/// `--rate takes requests per second, such as 500 or 0.5; got 'fast'`.
pub(crate) fn takes(option: &str, wanted: &str, typed: &str) -> String {
    format!("{option} takes {wanted}; got '{}'", duel_model::sanitize_line(typed))
}

/// A usage error in one line: what is wrong and the tip, where there is one, without the usage that follows.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let what = wrong_number(error).unwrap_or_else(|| in_claps_words(error));
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
