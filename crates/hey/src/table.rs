//! The table of hey's flags. From it come the reading of a command line ([`crate::flags`]), the help, and, as clap describes
//! commands, what `duel man` and `duel completions` tell of `duel hey`.

use crate::flags::{CSV, CURRENT, Flags, HISTORIC, Place};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};

/// A flag that may be typed.
struct Entry {
    name: &'static str,
    /// What its value is called; `None`: it takes none.
    value: Option<&'static str>,
    /// With the line breaks of the help.
    text: &'static str,
    place: fn(&mut Flags) -> Place<'_>,
}

const fn entry(
    name: &'static str,
    value: Option<&'static str>,
    text: &'static str,
    place: fn(&mut Flags) -> Place<'_>,
) -> Entry {
    Entry { name, value, text, place }
}

/// Flags that stand together in the help, where their texts begin in one column. Neighbours with one text share its line.
struct Group {
    heading: Option<&'static str>,
    column: usize,
    entries: &'static [Entry],
}

#[rustfmt::skip]
const GROUPS: &[Group] = &[
    Group { heading: Some("Options:"), column: 6, entries: &[
        entry("n", Some("NUMBER"),
            "Number of requests, 200 unless given. All of them are made, also where -c does not divide them.",
            |flags| Place::Whole(&mut flags.requests)),
        entry("c", Some("NUMBER"),
            "Number of connections that request at a time, 50 unless given; at most -n.",
            |flags| Place::Whole(&mut flags.workers)),
        entry("q", Some("RATE"),
            "Requests per second of each connection. The rate is kept while the server is slow: latency counts from when a\n\
             request was due.",
            |flags| Place::Number(&mut flags.rate_per_worker)),
        entry("z", Some("DURATION"),
            "How long, such as 10s, 3m or 1h30m; -n is ignored then.",
            |flags| Place::Duration(&mut flags.duration_ns)),
        entry("o", Some("TYPE"),
            "\"csv\" prints a line for each response instead of the summary, while it goes on.",
            |flags| Place::Text(&mut flags.output)),
    ] },
    Group { heading: None, column: 6, entries: &[
        entry("m", Some("METHOD"),
            "Method, GET unless given.",
            |flags| Place::Text(&mut flags.method)),
        entry("H", Some("FIELD"),
            "Header field, such as -H \"Accept: text/html\"; repeatable.",
            |flags| Place::Texts(&mut flags.headers)),
        entry("t", Some("SECONDS"),
            "Seconds until a request is given up, 20 unless given; 0 for never.",
            |flags| Place::Whole(&mut flags.timeout_s)),
        entry("A", Some("TYPES"),
            "Accept header field.",
            |flags| Place::Text(&mut flags.accept)),
        entry("d", Some("TEXT"),
            "Request body.",
            |flags| Place::Text(&mut flags.body)),
        entry("D", Some("FILE"),
            "Request body from a file; wins over -d.",
            |flags| Place::Text(&mut flags.body_file)),
        entry("T", Some("TYPE"),
            "Content-Type header field, text/html unless given.",
            |flags| Place::Text(&mut flags.content_type)),
        entry("U", Some("TEXT"),
            "User-Agent header field; duel's own is appended.",
            |flags| Place::Text(&mut flags.user_agent)),
        entry("a", Some("USER:PASSWORD"),
            "Basic authentication, user:password.",
            |flags| Place::Text(&mut flags.authorization)),
        entry("x", Some("PROXY"),
            "Proxy, host:port or http://user:password@host:port. The environment's http_proxy is not read.",
            |flags| Place::Text(&mut flags.proxy)),
        entry("h2", None,
            "HTTP/2, if the server chooses it when it is offered over https; if not, HTTP/1.1 is used and standard error says so.\n\
             All -c requests are streams of one connection; if the server takes fewer at a time, the others wait. With\n\
             -disable-keepalive each request has a connection of its own.",
            |flags| Place::Boolean(&mut flags.http2)),
    ] },
    Group { heading: None, column: 24, entries: &[
        entry("host", Some("NAME"),
            "Host header field.",
            |flags| Place::Text(&mut flags.host)),
        entry("disable-compression", None,
            "Do not offer gzip.",
            |flags| Place::Boolean(&mut flags.disable_compression)),
        entry("disable-keepalive", None,
            "A new connection for each request.",
            |flags| Place::Boolean(&mut flags.disable_keepalive)),
        entry("disable-redirects", None,
            "Do not follow redirects (10 are followed otherwise).",
            |flags| Place::Boolean(&mut flags.disable_redirects)),
        entry("cpus", Some("NUMBER"),
            "Number of threads, half of the CPUs unless given.",
            |flags| Place::Whole(&mut flags.cpus)),
    ] },
    Group { heading: None, column: 37, entries: &[
        entry("more", None, OF_OLD_VERSIONS, |flags| Place::Boolean(&mut flags.more)),
        // Bodies are always read, certificates never verified.
        entry("readall", None, OF_OLD_VERSIONS, |_| Place::AlwaysSo),
        entry("allow-insecure", None, OF_OLD_VERSIONS, |_| Place::AlwaysSo),
    ] },
    Group { heading: Some("duel's own:"), column: 12, entries: &[
        entry("style", Some("STYLE"),
            "\"current\", or \"2017\" for the historic output: the number of requests done twice a second, then the summary.",
            |flags| Place::Text(&mut flags.style)),
        entry("archive", Some("FILE"),
            "Keeps the run in this file, for duel show, duel export and the like. Without, nothing is kept.",
            |flags| Place::Path(&mut flags.archive)),
    ] },
];

const OF_OLD_VERSIONS: &str = "Of old versions. -more adds details to -style 2017; the others are always so.";

const USAGE: &str = "duel hey [options...] <url>";
const ABOUT: &str = "Takes the command lines of hey (github.com/rakyll/hey) and prints what it prints.";
const NOTES: &str = "\
Otherwise than in hey: Accept: */* is sent where -A gives nothing else, errors are told in duel's words, and what is not
known is \"-\" and not NaN or 0.

Flags have one dash or two, and stand before the URL; -n 5 and -n=5 are the same. Certificates are not verified.
Exit codes: 0 it ran, whatever came of it; 1 it could not run; 2 wrong flags.
";

fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|group| group.entries)
}

/// Where the value of a flag goes; `None`: there is no such flag.
pub(crate) fn place<'a>(name: &str, flags: &'a mut Flags) -> Option<Place<'a>> {
    entries().find(|entry| entry.name == name).map(|entry| (entry.place)(flags))
}

/// What `-help` prints.
pub fn help() -> String {
    let mut help = format!("Usage: {USAGE}\n\n{ABOUT}\n");
    for group in GROUPS {
        help.push('\n');
        if let Some(heading) = group.heading {
            help += &format!("{heading}\n");
        }
        let line_break = format!("\n{:1$}", "", group.column);
        for together in group.entries.chunk_by(|entry, next| entry.text == next.text) {
            let names: Vec<String> = together.iter().map(|entry| format!("-{}", entry.name)).collect();
            let (begin, text) = (format!("  {}", names.join(", ")), together[0].text.replace('\n', &line_break));
            help += &format!("{begin:0$}{text}\n", group.column);
        }
    }
    help + "\n" + NOTES
}

/// What clap's generators make a manual page and completions of. It is not what a command line is read by, which clap could
/// not: hey has flags such as `-h2`.
pub fn command() -> Command {
    let help = Arg::new("help").long("help").action(ArgAction::SetTrue).help("Print help");
    Command::new("hey")
        .bin_name("duel hey")
        .display_name("duel-hey")
        .about("Take hey's command line and print what hey prints")
        .long_about(ABOUT)
        .override_usage(USAGE)
        .after_help(NOTES)
        .disable_help_flag(true)
        .args(entries().map(described))
        .arg(help)
        .arg(Arg::new("url").value_name("URL").value_hint(ValueHint::Url))
}

fn described(entry: &Entry) -> Arg {
    let mut letters = entry.name.chars();
    let arg = Arg::new(entry.name).help(entry.text.replace('\n', " "));
    let arg = match (letters.next(), letters.next()) {
        (Some(letter), None) => arg.short(letter),
        _ => arg.long(entry.name),
    };
    let Some(value) = entry.value else { return arg.action(ArgAction::SetTrue) };
    let arg = arg.value_name(value).action(ArgAction::Set);
    match (entry.name, value) {
        ("H", _) => arg.action(ArgAction::Append),
        ("o", _) => arg.value_parser(PossibleValuesParser::new([CSV])).hide_possible_values(true),
        ("style", _) => arg.value_parser(PossibleValuesParser::new([CURRENT, HISTORIC])).hide_possible_values(true),
        (_, "FILE") => arg.value_hint(ValueHint::FilePath),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_stands_once_and_takes_a_value_where_it_says_so() {
        let mut names: Vec<&str> = entries().map(|entry| entry.name).collect();
        for entry in entries() {
            let mut flags = Flags::default();
            let takes_none = matches!((entry.place)(&mut flags), Place::Boolean(_) | Place::AlwaysSo);
            assert_eq!(entry.value.is_none(), takes_none, "-{}", entry.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((count, names.len()), (26, 26), "{names:?}");
    }

    #[test]
    fn the_help_tells_each_flag() {
        let help = help();
        for entry in entries() {
            assert!(help.contains(&format!("-{}", entry.name)), "-{}", entry.name);
        }
        command().debug_assert();
    }
}
