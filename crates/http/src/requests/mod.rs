//! What is asked for, where that is more than one fixed request: files of requests, variables, forms, credentials.
//!
//! Everything here is text and bytes; nothing knows of connections. Files come from anywhere: their size is bounded, and
//! what is wrong in one is told with its name and the line.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod cookies;
pub(crate) mod form;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod har;
mod http_file;
mod list;
pub(crate) mod picker;
pub(crate) mod place;
pub(crate) mod repertoire;
pub(crate) mod request;
pub(crate) mod sigv4;
mod vegeta;

use duel_load::WorkloadError;
use duel_model::{RequestFormat, RequestSource, sanitize_line};
use duel_template::read_text;
use std::path::{Path, PathBuf};
use url::Url;

/// Most requests of a file.
const MOST_ENTRIES: usize = 1_000_000;
/// Largest weight: shares of a millionth, and sums of a million of them that cannot overflow.
pub(crate) const MOST_WEIGHT: u32 = 1_000_000;

/// A request as a file lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it begins, counted from 1: a line, or for recordings the number of the request.
    pub(crate) line: usize,
    /// How often it is sent in relation to others.
    pub(crate) weight: u32,
    /// `None`: the plan's.
    pub(crate) method: Option<String>,
    /// A path with its query, or a whole address.
    pub(crate) address: String,
    /// Beside the plan's, instead of those of the same name.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: EntryBody,
}

/// The body of a listed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryBody {
    /// The plan's.
    OfPlan,
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// 0: with the file as a whole.
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Flaw {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }

    /// The request that begins here is one too many.
    pub(crate) fn too_many(line: usize, most: usize) -> Self {
        Self::new(line, format!("there are more than {most} requests, which is the most"))
    }
}

/// The requests of a file.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<Entry>,
    /// The file's name, safe to show.
    pub(crate) name: String,
    /// What a line is called in it.
    unit: &'static str,
    /// Requests of a recording that go to other hosts than its first one, and are left out.
    pub(crate) left_out: usize,
    /// The one origin of all whole addresses, where there are any.
    pub(crate) origin: Option<String>,
}

impl Listed {
    /// Reads a file of requests.
    pub(crate) fn read(source: &RequestSource) -> Result<Self, WorkloadError> {
        let (name, text) = read_text(&source.file)?;
        let folder = source.file.parent().unwrap_or(Path::new(""));
        let (read, unit) = match source.format {
            RequestFormat::Urls => (list::read(&text, MOST_ENTRIES), "line"),
            RequestFormat::Vegeta => (vegeta::read(&text, MOST_ENTRIES), "line"),
            RequestFormat::Http => (http_file::read(&text, folder, MOST_ENTRIES), "line"),
            RequestFormat::Har => (har::read(&text, MOST_ENTRIES), "request"),
        };
        let told = |flaw: Flaw| {
            let place = if flaw.line == 0 { String::new() } else { format!(", {unit} {}", flaw.line) };
            WorkloadError(format!("{name}{place}: {}", sanitize_line(&flaw.what)))
        };
        let mut entries = read.map_err(told)?;
        let is_recording = source.format == RequestFormat::Har;
        let (origin, left_out) = one_origin(&mut entries, is_recording).map_err(told)?;
        if entries.is_empty() {
            return Err(WorkloadError(format!("there is no request in {name}")));
        }
        Ok(Self { entries, name, unit, left_out, origin })
    }

    /// Something is wrong with one of its requests.
    pub(crate) fn flaw(&self, entry: &Entry, what: &str) -> WorkloadError {
        WorkloadError(format!("{}, {} {}: {}", self.name, self.unit, entry.line, sanitize_line(what)))
    }
}

/// Sees to it that whole addresses are those of one host: they are sent to the targets, and what was meant for several
/// hosts would all go to one. A recording's requests to other hosts than its first are left out and counted.
fn one_origin(entries: &mut Vec<Entry>, is_recording: bool) -> Result<(Option<String>, usize), Flaw> {
    let mut first: Option<(String, usize)> = None;
    let mut flaw = None;
    let before = entries.len();
    entries.retain(|entry| {
        if flaw.is_some() || entry.address.starts_with('/') {
            return true;
        }
        let origin = match origin_of(&entry.address) {
            Ok(origin) => origin,
            // Browsers record `data:` and `blob:`, which never went over the wire.
            Err(_) if is_recording => return false,
            Err(what) => {
                flaw = Some(Flaw::new(entry.line, what));
                return true;
            }
        };
        let (known, line) = first.get_or_insert((origin.clone(), entry.line));
        if *known == origin {
            return true;
        }
        if !is_recording {
            flaw = Some(Flaw::new(
                entry.line,
                format!(
                    "{origin} is another host than {known} of line {line}; the requests of a list go to the target's \
                     host, so that a list can name one host only, or paths"
                ),
            ));
        }
        !is_recording
    });
    match flaw {
        Some(flaw) => Err(flaw),
        None => Ok((first.map(|(origin, _)| origin), before - entries.len())),
    }
}

/// Scheme, host and port of a whole address.
fn origin_of(address: &str) -> Result<String, String> {
    let shown = sanitize_line(address);
    let authority = authority_and_target(address).map(|(authority, _)| authority);
    let Some(authority) = authority else {
        return Err(format!("'{shown}' is neither a path (/...) nor an address (http://...)"));
    };
    if authority.contains('{') {
        return Err("variables can stand in the path and query of an address, not in its host".to_owned());
    }
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    let url = Url::parse(&format!("{scheme}://{authority}/"))
        .map_err(|error| format!("'{shown}' is no usable address: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a password in it; use --user".to_owned());
    }
    Ok(url.origin().ascii_serialization())
}

/// What stands between `://` and the path of a whole http address, and path and query without the fragment.
pub(crate) fn authority_and_target(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    Some((&rest[..end], without_fragment(&rest[end..])))
}

/// Path and query of a listed address.
pub(crate) fn target_of(address: &str) -> &str {
    authority_and_target(address).map_or_else(|| without_fragment(address), |(_, target)| target)
}

fn without_fragment(target: &str) -> &str {
    target.split('#').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(addresses: &[&str]) -> Vec<Entry> {
        let of = |(index, address): (usize, &&str)| list::entry(index + 1, 1, (*address).to_owned());
        addresses.iter().enumerate().map(of).collect()
    }

    #[test]
    fn whole_addresses_of_one_host_and_paths_go_together() {
        let mut list = entries(&["/a", "http://h:80/b?c", "HTTP://H/d#e"]);
        assert_eq!(one_origin(&mut list, false), Ok((Some("http://h".to_owned()), 0)));
        assert_eq!(list.iter().map(|entry| target_of(&entry.address)).collect::<Vec<_>>(), ["/a", "/b?c", "/d"]);
        let flaw = one_origin(&mut entries(&["/a", "http://h/", "https://h/"]), false).unwrap_err();
        assert_eq!(flaw.line, 3);
        assert!(flaw.what.contains("https://h is another host than http://h of line 2"), "{}", flaw.what);
    }

    #[test]
    fn a_recording_keeps_the_requests_to_its_first_host() {
        let mut list = entries(&["data:text/plain,x", "https://a/", "https://b/", "https://a/2", "wss://a/"]);
        assert_eq!(one_origin(&mut list, true), Ok((Some("https://a".to_owned()), 3)));
        assert_eq!(list.iter().map(|entry| entry.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn what_is_no_address_is_told() {
        for (address, words) in [
            ("ftp://h/", "neither a path"),
            ("www.example.org", "neither a path"),
            ("http://u:p@h/", "password"),
            ("http://{host}/", "not in its host"),
            ("http:///x", "no usable address"),
        ] {
            let flaw = one_origin(&mut entries(&[address]), false).unwrap_err();
            assert!(flaw.what.contains(words), "{address}: {}", flaw.what);
        }
    }
}
