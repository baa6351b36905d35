//! vegeta's targets as JSON: an object on each line, its body in base64.
//!
//! ```text
//! {"method": "POST", "url": "http://h/x", "header": {"X-Id": ["1"]}, "body": "eyJhIjoxfQ=="}
//! ```

use super::super::{Entry, EntryBody, Flaw};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Target {
    method: String,
    url: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<BTreeMap<String, Vec<String>>>,
}

/// Reads such targets, as far as `most`. Empty lines say nothing.
pub(super) fn read(text: &str, most: usize) -> Result<Vec<Entry>, Flaw> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let targets = lines.filter(|(_, line)| !line.is_empty()).enumerate();
    let read = |(index, (number, line)): (usize, (usize, &str))| {
        if index < most { entry(number, line) } else { Err(Flaw::too_many(number, most)) }
    };
    targets.map(read).collect()
}

fn entry(number: usize, line: &str) -> Result<Entry, Flaw> {
    let target: Target = serde_json::from_str(line).map_err(|error| {
        // The column counts within the line; "line 1" would be taken for the file's.
        let what = error.to_string().replace(" at line 1 column", ", at column");
        Flaw::new(number, format!("it is no target of vegeta: {what}"))
    })?;
    let body = STANDARD
        .decode(target.body.unwrap_or_default())
        .map_err(|error| Flaw::new(number, format!("its body is no base64: {error}")))?;
    let fields = target.header.unwrap_or_default();
    let headers = fields.into_iter().flat_map(|(name, values)| values.into_iter().map(move |v| (name.clone(), v)));
    Ok(Entry {
        line: number,
        weight: 1,
        method: Some(target.method),
        address: target.url,
        headers: headers.collect(),
        body: EntryBody::Bytes(body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_target_with_all_it_can_have() {
        let text = r#"
{"method":"POST","url":"http://h/x","header":{"A":["1","2"]},"body":"aGk="}

{"method":"GET","url":"/y","other":1}"#;
        let entries = read(text, 9).unwrap();
        assert_eq!(
            (entries[0].line, entries[0].method.as_deref(), entries[0].address.as_str()),
            (2, Some("POST"), "http://h/x")
        );
        assert_eq!(entries[0].headers, [("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())]);
        assert_eq!(entries[0].body, EntryBody::Bytes(b"hi".to_vec()));
        assert_eq!((entries[1].line, &entries[1].body), (4, &EntryBody::Bytes(Vec::new())));
    }

    #[test]
    fn reading_stops_at_the_most() {
        let text = "{\"method\":\"GET\",\"url\":\"/y\"}\n\n".repeat(3);
        assert_eq!(read(&text, 3).unwrap().len(), 3);
        assert_eq!(read(&text, 2), Err(Flaw::too_many(5, 2)));
    }

    #[test]
    fn what_is_missing_or_malformed_is_told_with_its_line() {
        for (line, words) in [
            ("{", "at column"),
            ("[]", "no target of vegeta"),
            (r#"{"url":"/"}"#, "method"),
            (r#"{"method":"GET"}"#, "url"),
            (r#"{"method":"GET","url":"/","body":"%"}"#, "base64"),
        ] {
            let flaw = read(&format!("\n{line}\n"), 9).unwrap_err();
            assert!(flaw.line == 2 && flaw.what.contains(words), "{line}: {flaw:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[{}\\[\\]\":,a-z\n]{0,60}") {
            let _ = read(&text, 9);
        }
    }
}
