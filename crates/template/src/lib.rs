//! Variables in what is sent, requests and statements alike: `{n}`, `{uuid}`, `{rand:1..1000}` and the columns of a CSV file.
//!
//! Braces around what can be no name stay as they are, so that JSON needs no care: `{"id": {n}}` has one variable. `{{` is a
//! brace in any case.

mod rows;
mod text;

pub use rows::{Columns, Rows};
pub use text::{FILE_LIMIT_BYTES, read_text};

use duel_model::sanitize_line;

/// Something that differs from op to op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Counts ops.
    Number,
    /// Random, the same wherever it stands in a request.
    Uuid,
    /// A whole number from the first to the second, both included; each one is drawn by itself.
    Random(i64, i64),
    /// A column of the CSV file, by its position.
    Column(usize),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// As it stands.
    Text(String),
    /// What stands there differs from op to op.
    Variable(Variable),
}

/// Takes a text apart.
///
/// # Errors
///
/// There is no such variable: a sentence that names those that there are.
pub fn parse(text: &str, columns: &Columns) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        if let Some(behind) = from.strip_prefix("{{") {
            plain.push('{');
            rest = behind;
            continue;
        }
        // No name has a brace in it. Looking behind the next one that opens, each of them would look through all the rest.
        let end = from[1..].find(['{', '}']).filter(|&end| from[1 + end..].starts_with('}'));
        let name = end.map_or("", |end| &from[1..1 + end]);
        match variable(name, columns)? {
            Some(variable) => {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Variable(variable));
                rest = &from[name.len() + 2..];
            }
            None => {
                plain.push('{');
                rest = &from[1..];
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(parts)
}

/// The variable of a name; `None`: it can be no name.
fn variable(name: &str, columns: &Columns) -> Result<Option<Variable>, String> {
    if let Some(column) = columns.position(name) {
        return Ok(Some(Variable::Column(column)));
    }
    let (word, range) = name.split_once(':').map_or((name, None), |(word, range)| (word, Some(range)));
    match (word, range) {
        ("n", None) => return Ok(Some(Variable::Number)),
        ("uuid", None) => return Ok(Some(Variable::Uuid)),
        ("rand", Some(range)) => return random(range).map(Some),
        _ => {}
    }
    // Where columns have spaces in their names, a misspelt one has them as well; elsewhere braces around words are a text.
    let is_name = word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c) || (c == ' ' && columns.has_spaces));
    if !is_name {
        return Ok(None);
    }
    let known: Vec<String> = ["n", "uuid", "rand:LOW..HIGH"]
        .into_iter()
        .map(str::to_owned)
        .chain(columns.names().iter().map(|column| sanitize_line(column)))
        .map(|name| format!("{{{name}}}"))
        .collect();
    let braced = sanitize_line(name);
    Err(format!("{{{braced}}} is no variable; there is {}, and {{{{ for a brace", known.join(", ")))
}

fn random(range: &str) -> Result<Variable, String> {
    let bounds = range.split_once("..").and_then(|(low, high)| {
        Some((low.trim().parse::<i64>().ok()?, high.trim_start_matches('=').trim().parse::<i64>().ok()?))
    });
    match bounds {
        Some((low, high)) if low <= high => Ok(Variable::Random(low, high)),
        _ => Err(format!("{{rand:{}}} needs two whole numbers, such as {{rand:1..1000}}", sanitize_line(range))),
    }
}

/// Appends 128 random bits as a UUID of version 4 (RFC 9562, 5.4).
pub fn push_uuid(out: &mut Vec<u8>, random: u128) {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let bits = random & !VERSION & !VARIANT | 0x4 << 76 | 0b10 << 62;
    for digit in 0..32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        let nibble = (bits >> (124 - 4 * digit)) as u8 & 15;
        out.push(b"0123456789abcdef"[usize::from(nibble)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_corpus::growth;
    use proptest::prelude::*;

    fn none() -> Columns {
        Columns::default()
    }

    fn named(names: &[&str]) -> Columns {
        Columns::of(names.iter().map(|name| (*name).to_owned()).collect()).unwrap()
    }

    fn columns() -> Columns {
        named(&["id", "first name"])
    }

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    #[test]
    fn variables_are_told_from_json() {
        let parts = parse(r#"{"id": {n}, "x": {"u": "{uuid}"}}"#, &columns()).unwrap();
        let (n, uuid) = (Part::Variable(Variable::Number), Part::Variable(Variable::Uuid));
        assert_eq!(parts, [text(r#"{"id": "#), n, text(r#", "x": {"u": ""#), uuid, text(r#""}}"#)]);
        assert_eq!(parse("{first name}{id}", &columns()).unwrap(), [1, 0].map(|c| Part::Variable(Variable::Column(c))));
        assert_eq!(parse("{rand:-5..=5}{", &none()).unwrap(), [Part::Variable(Variable::Random(-5, 5)), text("{")]);
        assert_eq!(parse("{{n} {}} { n}", &none()).unwrap(), [text("{n} {}} { n}")]);
        assert_eq!(parse("", &none()).unwrap(), []);
    }

    #[test]
    fn unknown_variables_are_refused_with_those_there_are() {
        let error = parse("/{usr}", &columns()).unwrap_err();
        assert_eq!(
            error,
            "{usr} is no variable; there is {n}, {uuid}, {rand:LOW..HIGH}, {id}, {first name}, and {{ for a brace"
        );
        for wrong in ["{rand:5..1}", "{rand:1}", "{rand:a..b}", "{rand:1..99999999999999999999}"] {
            assert!(parse(wrong, &none()).unwrap_err().contains("two whole numbers"), "{wrong}");
        }
        assert!(parse("{rand}", &none()).is_err() && parse("{n:1}", &none()).is_err());
        // Where a column's name has a space, words in braces are meant as one; elsewhere they may be a text.
        assert!(parse("{frist name}", &columns()).unwrap_err().starts_with("{frist name} is no variable"));
        assert_eq!(parse("{any words}", &named(&["id"])).unwrap().len(), 1);
    }

    #[test]
    fn a_uuid_tells_its_version_and_variant() {
        let uuid = |random| {
            let mut out = Vec::new();
            push_uuid(&mut out, random);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef), "01234567-89ab-4def-8123-456789abcdef");
    }

    #[test]
    fn reading_takes_time_in_proportion_to_the_text() {
        for what in ["{ ", "{a", "{\"a\":", "{:", "{n}"] {
            growth::is_linear(|bytes| {
                let text = what.repeat(bytes / what.len());
                move || assert!(parse(&text, &none()).is_ok())
            });
        }
        growth::is_linear(|count| {
            let names: Vec<String> = (0..count / 10).map(|n| format!("c{n}")).collect();
            let text: String = names.iter().map(|name| format!("{{{name}}}{{-")).collect();
            let columns = Columns::of(names).unwrap();
            move || assert!(parse(&text, &columns).is_ok())
        });
    }

    proptest! {
        /// Whatever the text: nothing of it is lost, and it is read without a panic.
        #[test]
        fn any_text_is_taken_apart_or_refused(typed in "[{}n:a-d. \u{e9}1\"]{0,40}") {
            if let Ok(parts) = parse(&typed, &none()) {
                let again: String = parts.iter().map(|part| match part {
                    Part::Text(text) => text.replace('{', "{{"),
                    Part::Variable(Variable::Number) => "{n}".to_owned(),
                    Part::Variable(_) => unreachable!(),
                }).collect();
                prop_assert_eq!(parse(&again, &none()).unwrap(), parts);
            }
        }
    }
}
