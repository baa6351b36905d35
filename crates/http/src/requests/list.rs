//! Lists of addresses: one on each line, after its weight where that is not 1.
//!
//! ```text
//! # three quarters of the requests
//! 3 /search?q=a
//! https://example.org/help
//! ```

use super::{Entry, EntryBody, Flaw, MOST_WEIGHT};

/// Reads such a list, as far as `most` requests. Empty lines and lines that begin with `#` say nothing.
pub(super) fn read(text: &str, most: usize) -> Result<Vec<Entry>, Flaw> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if entries.len() == most {
            return Err(Flaw::too_many(number, most));
        }
        let (weight, address) = match line.split_once(char::is_whitespace) {
            Some((first, rest)) if first.bytes().all(|b| b.is_ascii_digit()) => (Some(first), rest.trim_start()),
            _ => (None, line),
        };
        if address.contains(char::is_whitespace) {
            return Err(Flaw::new(
                number,
                "more than a weight and an address; a space within an address is written %20",
            ));
        }
        entries.push(entry(number, weight.map_or(Ok(1), |weight| parse_weight(number, weight))?, address.to_owned()));
    }
    Ok(entries)
}

/// A listed address that is asked for as the plan says.
pub(super) fn entry(line: usize, weight: u32, address: String) -> Entry {
    Entry { line, weight, method: None, address, headers: Vec::new(), body: EntryBody::OfPlan }
}

fn parse_weight(line: usize, typed: &str) -> Result<u32, Flaw> {
    match typed.parse() {
        Ok(0) => Err(Flaw::new(line, "a weight of 0 means never; leave the line out")),
        Ok(weight) if weight <= MOST_WEIGHT => Ok(weight),
        _ => Err(Flaw::new(line, format!("the weight {typed} is more than {MOST_WEIGHT}, which is the most"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weights_comments_and_addresses() {
        let entries = read("# list\n\n3 /a?b=c d\n", 9).unwrap_err();
        assert_eq!(entries.line, 3);
        let entries = read("\r\n# x\r\n 7\t/a?b=c \r\nhttp://h/\r\n12/x\r\n", 9).unwrap();
        let seen: Vec<_> = entries.iter().map(|e| (e.line, e.weight, e.address.as_str())).collect();
        assert_eq!(seen, [(3, 7, "/a?b=c"), (4, 1, "http://h/"), (5, 1, "12/x")]);
    }

    #[test]
    fn weights_have_bounds() {
        assert!(read("0 /", 9).unwrap_err().what.contains("never"));
        assert!(read("/\n1000001 /", 9).unwrap_err().what.contains("most"));
        assert!(read("99999999999999999999 /", 9).unwrap_err().what.contains("most"));
    }

    #[test]
    fn reading_stops_at_the_most() {
        assert_eq!(read("/a\n#\n/b\n", 2).unwrap().len(), 2);
        assert_eq!(read("/a\n#\n/b\n/c\nno address at all", 2), Err(Flaw::too_many(4, 2)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9 a-z/#\n\t\u{e9}]{0,80}") {
            match read(&text, 99) {
                Ok(entries) => prop_assert!(entries.iter().all(|entry| !entry.address.contains(char::is_whitespace))),
                Err(flaw) => prop_assert!(flaw.line >= 1 && flaw.line <= text.lines().count()),
            }
        }
    }
}
