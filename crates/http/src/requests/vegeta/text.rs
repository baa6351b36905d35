//! vegeta's targets as text: a line with method and address, then its header fields, then its body's file.
//!
//! ```text
//! # a comment
//! POST http://h/things
//! Content-Type: application/json
//! @/path/to/thing.json
//!
//! GET http://h/things
//! GET http://h/help
//! ```
//!
//! An empty line, or the body, ends a target that has fields; one without may be followed by the next at once.

use super::super::{Entry, EntryBody, Flaw};
use std::path::PathBuf;

/// Reads such targets, as far as `most`. A body's file is looked for from the working folder on, as vegeta does, and read
/// when the run starts.
pub(super) fn read(text: &str, most: usize) -> Result<Vec<Entry>, Flaw> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.starts_with('#')).peekable();
    let mut entries = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        if entries.len() == most {
            return Err(Flaw::too_many(number, most));
        }
        let mut entry = target(number, line)?;
        // The next target, or nothing more to say of this one.
        if lines.peek().is_some_and(|(_, line)| method_and_rest(line).is_none()) {
            for (number, line) in lines.by_ref().take_while(|(_, line)| !line.is_empty()) {
                if let Some(file) = line.strip_prefix('@') {
                    entry.body = EntryBody::File(body_file(number, file)?);
                    break;
                }
                entry.headers.push(field(number, line)?);
            }
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn target(number: usize, line: &str) -> Result<Entry, Flaw> {
    let wrong =
        || Flaw::new(number, "a target of vegeta begins with its method and its address, such as GET http://host/");
    let (method, address) = method_and_rest(line).ok_or_else(wrong)?;
    if address.is_empty() || address.contains(char::is_whitespace) {
        return Err(wrong());
    }
    Ok(Entry {
        line: number,
        weight: 1,
        method: Some(method.to_owned()),
        address: address.to_owned(),
        headers: Vec::new(),
        body: EntryBody::Bytes(Vec::new()),
    })
}

/// The method that a target begins with, in capitals, and what stands behind it.
fn method_and_rest(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.split_once(char::is_whitespace)?;
    (!method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase())).then(|| (method, rest.trim()))
}

fn body_file(number: usize, file: &str) -> Result<PathBuf, Flaw> {
    if file.is_empty() { Err(Flaw::new(number, "a body is @ and the name of a file")) } else { Ok(PathBuf::from(file)) }
}

fn field(number: usize, line: &str) -> Result<(String, String), Flaw> {
    if method_and_rest(line).is_some() {
        return Err(Flaw::new(
            number,
            "a target begins among the header fields of another; put an empty line between them",
        ));
    }
    let parts = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let Some((name, value)) = parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()) else {
        return Err(Flaw::new(number, "what follows a target is 'Name: value', @ and a body's file, or an empty line"));
    };
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name_and_value(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn targets_as_vegeta_reads_them() {
        let text = "# all\nGET http://h/small\n\nPOST http://h/post\nX-A: two\n# not sent\nx-a: 3:4\n@/tmp/body\nGET /next\n\
                    DELETE /now\r\n\r\n\n  PURGE /last  \n  Host: other\n";
        let entries = read(text, 9).unwrap();
        let seen: Vec<_> = entries.iter().map(|e| (e.line, e.method.as_deref().unwrap(), e.address.as_str())).collect();
        let expected = [
            (2, "GET", "http://h/small"),
            (4, "POST", "http://h/post"),
            (9, "GET", "/next"),
            (10, "DELETE", "/now"),
            (13, "PURGE", "/last"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(entries[1].headers, [name_and_value("X-A", "two"), name_and_value("x-a", "3:4")]);
        assert_eq!(entries[1].body, EntryBody::File("/tmp/body".into()));
        assert_eq!(entries[4].headers, [name_and_value("Host", "other")]);
        for entry in [&entries[0], &entries[2], &entries[3]] {
            assert_eq!((&entry.headers[..], &entry.body), (&[][..], &EntryBody::Bytes(Vec::new())));
        }
    }

    #[test]
    fn reading_stops_at_the_most() {
        let text = "GET /a\nGET /b\n\n# c\nGET /c\n";
        assert_eq!(read(text, 3).unwrap().len(), 3);
        assert_eq!(read(text, 2), Err(Flaw::too_many(5, 2)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, words) in [
            ("GET", 1, "begins with its method"),
            ("GET /a b", 1, "begins with its method"),
            ("get /a", 1, "begins with its method"),
            ("GET /a\n\n{\"x\": 1}", 3, "begins with its method"),
            ("POST /a\nno colon", 2, "'Name: value'"),
            ("POST /a\nEmpty:", 2, "'Name: value'"),
            ("POST /a\n@", 2, "name of a file"),
            // vegeta itself takes this for a field of the name "GET http".
            ("POST /a\nX: 1\nGET http://h/", 3, "empty line between"),
        ] {
            let flaw = read(text, 9).unwrap_err();
            assert!(flaw.line == line && flaw.what.contains(words), "{text}: {flaw:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[GETPOS/ :a@#\r\n]{0,80}") {
            match read(&text, 9) {
                Ok(entries) => prop_assert!(entries.iter().all(|entry| !entry.address.is_empty())),
                Err(flaw) => prop_assert!(flaw.line >= 1 && flaw.line <= text.lines().count()),
            }
        }
    }
}
