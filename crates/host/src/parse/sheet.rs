//! Where parsers put what they find, safe to show and bounded.

use crate::frames::Frame;
use duel_model::{Facts, Known, sanitize_line};
use std::collections::BTreeMap;

/// More facts than a host with hundreds of links and disks has.
const MOST_FACTS: usize = 4096;
/// More readings than a host with 128 CPUs and as many threads has.
const MOST_READINGS: usize = 8192;
/// Longest key; parts of it may come from the host.
const LONGEST_KEY: usize = 160;
/// Longest value that is not cut: the flags of a CPU have 2,000 characters.
const LONGEST_VALUE: usize = 4096;

/// Facts while they are found, and the sections that they are found in.
pub(super) struct Sheet<'a> {
    frames: BTreeMap<&'a str, &'a Frame>,
    facts: BTreeMap<String, Known>,
    doubts: Vec<String>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(frames: &'a [Frame]) -> Self {
        let frames = frames.iter().map(|frame| (frame.name.as_str(), frame)).collect();
        Self { frames, facts: BTreeMap::new(), doubts: Vec::new() }
    }

    /// What a section printed.
    pub(super) fn text(&self, section: &str) -> Option<&'a str> {
        self.frames.get(section).map(|frame| frame.text.as_str())
    }

    /// The lines of a section; none where it is missing.
    pub(super) fn lines(&self, section: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.text(section).unwrap_or_default().lines()
    }

    /// Names and texts of the sections whose name begins so.
    pub(super) fn sections(&self, prefix: &str) -> Vec<(&'a str, &'a str)> {
        let found =
            self.frames.iter().filter_map(|(name, frame)| Some((name.strip_prefix(prefix)?, frame.text.as_str())));
        found.collect()
    }

    /// Notes a fact. An empty value is none. The first one stands.
    pub(super) fn set(&mut self, key: impl AsRef<str>, value: impl AsRef<str>) {
        let value = value.as_ref().trim();
        if !value.is_empty() {
            self.note(key.as_ref(), Known::from(shown(value)));
        }
    }

    /// Notes that a fact was asked for in vain, unless it is known.
    pub(super) fn unavailable(&mut self, key: impl AsRef<str>, why: impl AsRef<str>) {
        self.note(key.as_ref(), Known::Unavailable(sanitize_line(why.as_ref())));
    }

    /// Notes for each of these facts that has not been found why: what the section complained of.
    pub(super) fn promised(&mut self, section: &str, keys: &[&str]) {
        let why = match self.text(section) {
            None => "the host did not answer this".to_owned(),
            Some(text) => complaint(text).unwrap_or_else(|| "the host does not tell".to_owned()),
        };
        for key in keys {
            self.unavailable(key, &why);
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.facts.get(key)?.text()
    }

    /// Notes what weakens the record.
    pub(super) fn doubt(&mut self, doubt: String) {
        if self.doubts.len() < 32 {
            self.doubts.push(sanitize_line(&doubt));
        }
    }

    pub(super) fn finish(self) -> (Facts, Vec<String>) {
        (Facts(self.facts), self.doubts)
    }

    fn note(&mut self, key: &str, known: Known) {
        if self.facts.len() < MOST_FACTS {
            self.facts.entry(key_of(key)).or_insert(known);
        }
    }
}

/// The first line in which a section tells why it has nothing.
pub(super) fn complaint(text: &str) -> Option<String> {
    let line = text.lines().find(|line| {
        line.starts_with("duel: ")
            || ["Permission denied", "not permitted", "not found", "No such file", "cannot open"]
                .iter()
                .any(|word| line.contains(word))
    })?;
    Some(sanitize_line(line.strip_prefix("duel: ").unwrap_or(line)))
}

/// Counters and gauges of a sample.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    pub(crate) uptime_ns: Option<u64>,
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) gauges: BTreeMap<String, f64>,
    pub(crate) counted_by: BTreeMap<String, String>,
}

impl Readings {
    /// Notes a counter, if it was read.
    pub(super) fn count(&mut self, key: impl AsRef<str>, value: Option<u64>) {
        if let Some(value) = value
            && self.counters.len() < MOST_READINGS
        {
            self.counters.insert(key_of(key.as_ref()), value);
        }
    }

    /// Notes a gauge, if it was read and is a number.
    pub(super) fn gauge(&mut self, key: impl AsRef<str>, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite())
            && self.gauges.len() < MOST_READINGS
        {
            self.gauges.insert(key_of(key.as_ref()), value);
        }
    }

    /// Notes who counts what begins with `prefix`. A long list is kept as a digest.
    pub(super) fn counted_by(&mut self, prefix: impl AsRef<str>, who: &str) {
        const LONGEST: usize = 120;
        let who = if who.len() <= LONGEST { sanitize_line(who) } else { format!("{:016x}", fnv1a(who.as_bytes())) };
        if self.counted_by.len() < MOST_READINGS {
            self.counted_by.insert(key_of(prefix.as_ref()), who);
        }
    }
}

/// Fowler, Noll and Vo's hash: the same in every process, so that a kept record can be read by another.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A key with nothing in it that would part it from its value, or harm a terminal.
fn key_of(key: &str) -> String {
    let safe = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    key.chars().take(LONGEST_KEY).map(safe).collect()
}

fn shown(value: &str) -> String {
    let mut chars = value.chars();
    // As `sanitize_line`, with more room.
    let mut shown =
        duel_model::sanitize(&chars.by_ref().take(LONGEST_VALUE).collect::<String>()).replace(['\n', '\t'], " ");
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}
