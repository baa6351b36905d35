//! vegeta's targets, in either of the formats that it reads: `-format=json` and `-format=http`.
//!
//! Which one a file has follows from its first character that says something: objects begin with a brace, and in the text
//! there is a method or a comment.

mod json;
mod text;

use super::{Entry, Flaw};

/// Reads targets, as far as `most`.
pub(super) fn read(text: &str, most: usize) -> Result<Vec<Entry>, Flaw> {
    match text.trim_start().chars().next() {
        Some(first) if first.is_ascii_uppercase() || first == '#' => text::read(text, most),
        _ => json::read(text, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_told_apart_by_how_they_begin() {
        for text in ["\n GET /a\n", "# {\n\nGET /a", "{\"method\":\"GET\",\"url\":\"/a\"}"] {
            assert_eq!(read(text, 9).unwrap()[0].address, "/a", "{text}");
        }
        assert_eq!(read(" \n", 9), Ok(Vec::new()));
        assert!(read("get /a", 9).unwrap_err().what.contains("no target of vegeta"));
    }
}
