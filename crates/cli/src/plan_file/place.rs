//! Places in a plan file, and errors that point at them.

use crate::outcome;
use duel_model::{is_secret_name, sanitize_line, without_secrets};
use std::io::Write;
use std::ops::Range;

/// Longest part of a line that is shown, in characters.
const LONGEST_LINE: usize = 100;

/// What is wrong with a plan, as a sentence, and the line that it is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlanError {
    pub(crate) sentence: String,
    /// Whether the options of the plan, as far as they could be read, ask for a document.
    pub(crate) wants_document: bool,
    pub(super) excerpt: Option<String>,
}

impl PlanError {
    /// An error that no line can be blamed for.
    pub(crate) fn nowhere(sentence: &str) -> Self {
        Self { sentence: sentence.to_owned(), wants_document: false, excerpt: None }
    }

    /// An error in `text`, the content of the file called `name`; `hides` keeps the line itself from being shown.
    pub(super) fn at(name: &str, text: &str, span: &Range<usize>, hides: bool, sentence: &str) -> Self {
        let place = Place::of(text, span.start);
        let sentence = format!("{}:{}:{}: {sentence}", sanitize_line(name), place.line, place.column);
        let hides = hides || may_hold_a_secret(place.text);
        let excerpt = if hides { None } else { place.excerpt(text, span) };
        Self { sentence, wants_document: false, excerpt }
    }

    /// Prints it: the sentence, and below it the line with a caret.
    pub(crate) fn say(&self) {
        outcome::say(&self.sentence);
        if let Some(excerpt) = &self.excerpt {
            let _ = write!(std::io::stderr(), "{excerpt}");
        }
    }
}

/// A character's line and column, both from 1, as editors count.
#[derive(Debug)]
struct Place<'t> {
    line: usize,
    column: usize,
    text: &'t str,
}

impl<'t> Place<'t> {
    fn of(text: &'t str, byte: usize) -> Self {
        let byte = (0..=byte.min(text.len())).rev().find(|&byte| text.is_char_boundary(byte)).unwrap_or(0);
        let before = &text[..byte];
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let end = text[begin..].find('\n').map_or(text.len(), |length| begin + length);
        let shown = text[begin..end].trim_end_matches('\r');
        // The end of a line stands right behind it, however it is written.
        let column = text[begin..byte.min(begin + shown.len())].chars().count() + 1;
        Self { line, column, text: shown }
    }

    /// The line, and carets under what the span covers of it; `None` where a secret would have to be taken out of it, and the
    /// carets would stand elsewhere.
    fn excerpt(&self, text: &str, span: &Range<usize>) -> Option<String> {
        let gutter = format!("  {} | ", self.line);
        let shown: String = self.text.chars().take(LONGEST_LINE).collect();
        if [self.text, &shown].iter().any(|line| without_secrets(line) != **line) {
            return None;
        }
        let column = self.column.min(LONGEST_LINE);
        let covered = text.get(span.clone()).map_or(1, |part| part.lines().next().unwrap_or_default().chars().count());
        let room = shown.chars().count().saturating_sub(column - 1).max(1);
        let carets = "^".repeat(covered.clamp(1, room));
        let width = gutter.chars().count() + column - 1;
        Some(format!("{gutter}{}\n{:width$}{carets}\n", sanitize_line(&shown), ""))
    }
}

/// Whether a line of a plan is better not shown: standard error ends up in the logs of CI servers.
fn may_hold_a_secret(line: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = || line.split(|c: char| !is_word(c));
    (line.contains("://") && line.contains(['@', '?']))
        || words().any(|word| is_secret_name(word) || ["bearer", "basic"].contains(&word.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let text = "a = 1\nbär = \"ö\"\r\nc = 3";
        let byte = text.find('"').unwrap();
        let error = PlanError::at("p.toml", text, &(byte..byte + 4), false, "wrong");
        assert_eq!(error.sentence, "p.toml:2:7: wrong");
        assert_eq!(error.excerpt.unwrap(), "  2 | bär = \"ö\"\n            ^^^\n");
        // The end of the file, and places that no file has.
        for byte in [text.len(), text.len() + 9] {
            assert_eq!(PlanError::at("p", text, &(byte..byte), false, "x").sentence, "p:3:6: x");
        }
        assert_eq!(PlanError::at("p", "", &(0..0), false, "x").excerpt.unwrap(), "  1 | \n      ^\n");
    }

    #[test]
    fn the_end_of_a_line_stands_right_behind_it() {
        let text = "a = 'x\r\r\nb = 1";
        for byte in [6, 7, 8] {
            let error = PlanError::at("p", text, &(byte..byte), false, "x");
            assert_eq!(error.sentence, "p:1:7: x");
            assert_eq!(error.excerpt.unwrap(), "  1 | a = 'x\n            ^\n");
        }
    }

    #[test]
    fn lines_with_secrets_are_not_shown() {
        for line in [
            "header = [\"Authorization: Bearer abc\"",
            "header = \"X-Api-Key: 1\"",
            "  \"bearer abc\",",
            "targets = [\"http://u:pw@h/\"]",
        ] {
            assert!(may_hold_a_secret(line), "{line}");
        }
        // What would be taken out of a line leaves the carets in the wrong place.
        let text = "rate = \"//user:s3cr3t@h 200";
        assert!(!may_hold_a_secret(text) && without_secrets(text) != text, "{}", without_secrets(text));
        assert!(PlanError::at("p", text, &(text.len()..text.len()), false, "x").excerpt.is_none());
        assert!(!may_hold_a_secret("targets = [\"http://h/\"]"));
        assert!(PlanError::at("p", "x = 1", &(0..1), true, "x").excerpt.is_none());
    }

    #[test]
    fn long_lines_and_escapes_do_not_reach_the_terminal() {
        let text = format!("a = \"\u{1b}[2J{}\"", "x".repeat(5000));
        let excerpt = PlanError::at("p", &text, &(4..5000), false, "x").excerpt.unwrap();
        assert!(!excerpt.contains('\u{1b}') && excerpt.lines().all(|line| line.chars().count() < 120), "{excerpt}");
    }
}
