//! Which part of a plan an error comes from.
//!
//! Errors are sentences of clap and of [`crate::load::meaning`], which know of no file. The one to blame is found by trying: each
//! value is left out in turn. The rejected alternative, that each check carries the name of its option, would have to be
//! thought of in each new check.

use super::read::{Entry, Given};
use std::ops::Range;

/// Values that are tried. An attempt takes a millisecond, and nobody writes so many by hand.
const MOST_ATTEMPTS: usize = 1000;
/// Values that are read in all attempts together, as each reads all but one of them: a file of 1 MiB may have a hundred thousand,
/// whose attempts would take hours. By that, files of up to 300 values are tried through.
const MOST_READ: usize = 100_000;

/// The place of the value that a sentence is about; `why` tells what is wrong with a plan of the entries given.
///
/// Without the culprit all is well, or something else is said because there is a second error; then the sentence has to
/// name the option or the value. `None` where nothing in the file is to blame.
pub(super) fn culprit(
    entries: &[Entry],
    sentence: &str,
    why: impl Fn(&[Entry]) -> Option<String>,
) -> Option<Range<usize>> {
    let parts = entries.iter().enumerate().flat_map(|(place, entry)| parts(place, entry));
    // Those that the sentence names come first: of a long file not all are tried.
    let (named, others): (Vec<_>, Vec<_>) =
        parts.partition(|part| names(sentence, &entries[part.place].key, part.typed));
    let attempts = (MOST_READ / (named.len() + others.len()).max(1)).clamp(1, MOST_ATTEMPTS);
    let named = named.into_iter().map(|part| (2, part));
    let mut best: Option<(u8, Range<usize>)> = None;
    for (named, part) in named.chain(others.into_iter().map(|part| (0, part))).take(attempts) {
        let weight = match why(&part.left_of(entries)) {
            Some(same) if same == sentence => continue,
            after => u8::from(after.is_none()) + named,
        };
        // Of two that exclude each other, the later one.
        if weight > 0 && best.as_ref().is_none_or(|(most, _)| weight >= *most) {
            best = Some((weight, part.span));
        }
    }
    best.map(|(_, span)| span)
}

/// What can be left out: a switch, or one of an entry's values.
struct Part<'e> {
    /// Which entry.
    place: usize,
    /// Which of its values, and what it is.
    value: Option<usize>,
    typed: Option<&'e str>,
    span: Range<usize>,
}

fn parts(place: usize, entry: &Entry) -> Vec<Part<'_>> {
    match &entry.given {
        Given::Switch(_) => vec![Part { place, value: None, typed: None, span: entry.key_span.clone() }],
        Given::Values { values, .. } => (0..)
            .zip(values)
            .map(|(index, value)| Part {
                place,
                value: Some(index),
                typed: Some(&value.typed),
                span: value.span.clone(),
            })
            .collect(),
    }
}

impl Part<'_> {
    /// The entries without it.
    fn left_of(&self, entries: &[Entry]) -> Vec<Entry> {
        let mut left = entries.to_vec();
        match (&mut left[self.place].given, self.value) {
            (Given::Values { values, .. }, Some(index)) if values.len() > 1 => drop(values.remove(index)),
            _ => drop(left.remove(self.place)),
        }
        left
    }
}

/// Whether a sentence speaks of an option, or of its value in quotes.
fn names(sentence: &str, key: &str, typed: Option<&str>) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let option = format!("--{key}");
    let speaks = sentence.split(|c: char| !is_part(c)).any(|word| word == option)
        || short(key).is_some_and(|short| sentence.starts_with(&format!("-{short} ")));
    let quotes = typed.is_some_and(|typed| sentence.contains(&format!("'{}'", duel_model::sanitize_line(typed))));
    speaks || quotes
}

fn short(key: &str) -> Option<char> {
    super::commands().find_map(|(_, command)| super::read::option(command, key).and_then(clap::Arg::get_short))
}
