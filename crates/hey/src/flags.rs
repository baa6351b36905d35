//! What was typed behind `duel hey`: hey's flags, with hey's syntax. Which there are says [`crate::table`].

use crate::go::{self, Word};
use crate::table;
use duel_model::{Nanos, sanitize_line};
use std::ffi::OsString;
use std::path::PathBuf;

/// hey's command line, with hey's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Flags {
    /// `-n`: how many requests are made.
    pub requests: i64,
    /// `-c`: how many are made at a time.
    pub workers: i64,
    /// `-q`: requests per second of each worker; 0: as fast as they go.
    pub rate_per_worker: f64,
    /// `-z`; 0: `requests` ends it.
    pub duration_ns: Nanos,
    /// `-o`.
    pub(crate) output: String,
    /// `-m`.
    pub method: String,
    /// `-H`: `Name: value`, in the order given.
    pub headers: Vec<String>,
    /// `-t`; 0: never.
    pub timeout_s: i64,
    /// `-A`.
    pub accept: String,
    /// `-d`.
    pub body: String,
    /// `-D`, a path; wins over `body`.
    pub body_file: String,
    /// `-T`.
    pub content_type: String,
    /// `-U`, without duel's own.
    pub user_agent: String,
    /// `-a`: `user:password`, a secret.
    pub authorization: String,
    /// `-x`, which may hold a secret.
    pub proxy: String,
    /// `-host`.
    pub host: String,
    /// `-h2`.
    pub http2: bool,
    /// `-disable-compression`.
    pub disable_compression: bool,
    /// `-disable-keepalive`.
    pub disable_keepalive: bool,
    /// `-disable-redirects`.
    pub disable_redirects: bool,
    /// `-cpus`; 0: not given.
    pub cpus: i64,
    /// `-more` of old versions: details in the historic style.
    pub(crate) more: bool,
    /// duel's own: which version of hey the output looks like.
    pub(crate) style: String,
    /// duel's own: keeps the run.
    pub archive: Option<PathBuf>,
    /// Where the requests go, as typed.
    pub url: String,
    /// What stood behind the URL, where hey ignores everything.
    pub ignored: Vec<String>,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The summary at the end.
    Summary(Style),
    /// A line for each response.
    Csv,
}

/// Which version of hey the summary looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Its present form.
    Current,
    /// That of 2017, with a line twice a second.
    Historic {
        /// As its flag `-more` asked for them.
        details: bool,
    },
}

/// Why there is nothing to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// Help was asked for.
    Help,
    /// A flag that is none, or a value that it cannot take.
    Flags(String),
    /// Flags that are understood, and cannot be meant.
    Meaning(String),
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            requests: 200,
            workers: 50,
            rate_per_worker: 0.0,
            duration_ns: 0,
            output: String::new(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            timeout_s: 20,
            accept: String::new(),
            body: String::new(),
            body_file: String::new(),
            content_type: "text/html".to_owned(),
            user_agent: String::new(),
            authorization: String::new(),
            proxy: String::new(),
            host: String::new(),
            http2: false,
            disable_compression: false,
            disable_keepalive: false,
            disable_redirects: false,
            cpus: 0,
            more: false,
            style: CURRENT.to_owned(),
            archive: None,
            url: String::new(),
            ignored: Vec::new(),
        }
    }
}

/// What `-style` takes; the first is its default.
pub(crate) const CURRENT: &str = "current";
pub(crate) const HISTORIC: &str = "2017";
/// What `-o` takes.
pub(crate) const CSV: &str = "csv";

/// Where the value of a flag goes.
pub(crate) enum Place<'a> {
    Text(&'a mut String),
    Texts(&'a mut Vec<String>),
    Whole(&'a mut i64),
    Number(&'a mut f64),
    Duration(&'a mut Nanos),
    Boolean(&'a mut bool),
    Path(&'a mut Option<PathBuf>),
    /// Accepted, and without a meaning: what it asked for is always so.
    AlwaysSo,
    /// `-h`, which was for header fields once.
    Deprecated,
}

impl Flags {
    /// Reads what stands behind `duel hey`.
    pub fn parse(arguments: &[OsString]) -> Result<Self, Unusable> {
        let arguments = texts(arguments)?;
        let mut flags = Self::default();
        let mut at = 0;
        loop {
            match go::word(&arguments, at).map_err(Unusable::Flags)? {
                Word::Rest(rest) => {
                    let mut rest = arguments[rest..].iter().cloned();
                    flags.url = rest.next().ok_or_else(|| {
                        Unusable::Meaning("the URL is missing: duel hey [options...] <url>".to_owned())
                    })?;
                    flags.ignored = rest.collect();
                    return Ok(flags);
                }
                Word::Flag { name, value } => {
                    let behind = arguments.get(at + 1).map(String::as_str);
                    let took_next = flags.take(&name, value.as_deref(), behind)?;
                    at += 1 + usize::from(took_next);
                }
            }
        }
    }

    /// What `-o`, `-style` and `-more` ask for.
    pub fn output(&self) -> Result<Output, Unusable> {
        let style = match self.style.as_str() {
            CURRENT => Style::Current,
            HISTORIC => Style::Historic { details: self.more },
            other => {
                let other = sanitize_line(other);
                return Err(Unusable::Flags(format!(
                    "invalid value \"{other}\" for flag -style: it is either {CURRENT} or {HISTORIC}"
                )));
            }
        };
        match self.output.as_str() {
            "" => Ok(Output::Summary(style)),
            CSV => Ok(Output::Csv),
            other => Err(Unusable::Meaning(format!("-o {}: {CSV} is the only other output", sanitize_line(other)))),
        }
    }

    /// Puts a flag's value where it belongs; whether it was the next argument.
    fn take(&mut self, name: &str, value: Option<&str>, behind: Option<&str>) -> Result<bool, Unusable> {
        let shown = sanitize_line(name);
        let place = match name {
            "help" => return Err(Unusable::Help),
            "h" => Place::Deprecated,
            _ => table::place(name, self)
                .ok_or_else(|| Unusable::Flags(format!("flag provided but not defined: -{shown}")))?,
        };
        let invalid = |typed: &str, wanted: &str| {
            Unusable::Flags(format!("invalid value \"{}\" for flag -{shown}: {wanted}", sanitize_line(typed)))
        };
        let as_boolean = |typed: &str| go::boolean(typed).ok_or_else(|| invalid(typed, "it is either true or false"));
        match place {
            Place::Boolean(place) => {
                *place = value.map_or(Ok(true), as_boolean)?;
                return Ok(false);
            }
            Place::AlwaysSo => {
                value.map_or(Ok(true), as_boolean)?;
                return Ok(false);
            }
            // Who types it alone wants what it means elsewhere.
            Place::Deprecated if value.or(behind).is_none() => return Err(Unusable::Help),
            _ => {}
        }
        let typed = value.or(behind).ok_or_else(|| Unusable::Flags(format!("flag needs an argument: -{shown}")))?;
        match place {
            Place::Text(place) => typed.clone_into(place),
            Place::Texts(place) => place.push(typed.to_owned()),
            Place::Whole(place) => {
                *place = go::whole(typed).ok_or_else(|| invalid(typed, "it takes a whole number"))?;
            }
            Place::Number(place) => *place = go::number(typed).ok_or_else(|| invalid(typed, "it takes a number"))?,
            Place::Duration(place) => {
                *place =
                    go::duration_ns(typed).ok_or_else(|| invalid(typed, "it takes a duration such as 10s or 3m"))?;
            }
            Place::Path(place) => *place = Some(typed.into()),
            Place::Deprecated => {
                return Err(Unusable::Meaning(
                    "flag -h is deprecated; use -H for header fields, -help for help".into(),
                ));
            }
            Place::Boolean(_) | Place::AlwaysSo => {}
        }
        Ok(value.is_none())
    }
}

fn texts(arguments: &[OsString]) -> Result<Vec<String>, Unusable> {
    let text = |argument: &OsString| {
        let text = argument.to_str().map(str::to_owned);
        text.ok_or_else(|| Unusable::Flags("an argument is not UTF-8".to_owned()))
    };
    arguments.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(typed: &[&str]) -> Result<Flags, Unusable> {
        Flags::parse(&typed.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn wrong(typed: &[&str]) -> String {
        match parse(typed).unwrap_err() {
            Unusable::Flags(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_flags_there_are_heys_defaults() {
        let flags = parse(&["http://h/"]).unwrap();
        assert_eq!(flags, Flags { url: "http://h/".into(), ..Flags::default() });
        assert_eq!((flags.requests, flags.workers, flags.timeout_s), (200, 50, 20));
    }

    #[test]
    fn the_authors_command_line() {
        let typed = "-n 3000 -c 300 -m GET -disable-keepalive https://h/f".split(' ').collect::<Vec<_>>();
        let flags = parse(&typed).unwrap();
        assert_eq!((flags.requests, flags.workers, flags.disable_keepalive), (3000, 300, true));
        assert_eq!((flags.method.as_str(), flags.url.as_str()), ("GET", "https://h/f"));
    }

    #[test]
    fn values_stand_behind_a_space_or_an_equals_sign() {
        for typed in [["-n", "5"].as_slice(), &["--n", "5"], &["-n=5"], &["--n=5"]] {
            assert_eq!(parse(&[typed, &["u"]].concat()).unwrap().requests, 5, "{typed:?}");
        }
        assert_eq!(parse(&["-H", "-a: b", "-H=c: d", "u"]).unwrap().headers, ["-a: b", "c: d"]);
        assert_eq!(parse(&["-z", "1m30s", "-q=0.5", "u"]).unwrap().duration_ns, 90_000_000_000);
        assert_eq!(parse(&["-d", "", "u"]).unwrap().body, "");
    }

    #[test]
    fn booleans_take_no_argument_but_may_be_switched_off() {
        let flags = parse(&["-h2=false", "-disable-redirects", "-disable-compression=F", "u"]).unwrap();
        assert_eq!((flags.http2, flags.disable_redirects, flags.disable_compression), (false, true, false));
        assert!(parse(&["-more", "-readall", "-allow-insecure", "u"]).unwrap().more);
        // The word behind a boolean is the URL, whatever it says.
        assert_eq!(parse(&["-disable-redirects", "false"]).unwrap().url, "false");
    }

    #[test]
    fn what_stands_behind_the_url_is_no_flag() {
        let flags = parse(&["-n", "5", "u", "-c", "2"]).unwrap();
        assert_eq!((flags.workers, flags.ignored.as_slice()), (50, ["-c".to_owned(), "2".to_owned()].as_slice()));
        assert_eq!(parse(&["--", "-n"]).unwrap().url, "-n");
    }

    #[test]
    fn wrong_flags_are_told_in_gos_words() {
        assert_eq!(wrong(&["-zz", "u"]), "flag provided but not defined: -zz");
        assert_eq!(wrong(&["-n"]), "flag needs an argument: -n");
        assert_eq!(wrong(&["-n", "x", "u"]), "invalid value \"x\" for flag -n: it takes a whole number");
        assert_eq!(wrong(&["-h2=maybe", "u"]), "invalid value \"maybe\" for flag -h2: it is either true or false");
        assert_eq!(
            wrong(&["-readall=maybe", "u"]),
            "invalid value \"maybe\" for flag -readall: it is either true or false"
        );
        assert!(wrong(&["-z", "10", "u"]).contains("a duration such as 10s"));
        assert_eq!(wrong(&["---n", "u"]), "bad flag syntax: ---n");
        assert_eq!(wrong(&["-\x1b[2J", "u"]), "flag provided but not defined: -\u{fffd}[2J");
        assert_eq!((parse(&["-help"]), parse(&["-h"])), (Err(Unusable::Help), Err(Unusable::Help)));
        assert!(matches!(parse(&["-n", "5"]), Err(Unusable::Meaning(text)) if text.contains("URL is missing")));
        assert!(matches!(parse(&["-h", "a: b", "u"]), Err(Unusable::Meaning(text)) if text.contains("-H")));
    }
}
