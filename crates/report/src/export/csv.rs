//! Comma-separated values (RFC 4180): a row for each slot.

use super::columns::{Cell, columns, rows};
use duel_model::Run;

/// A header with the names of the columns, then the slots. Lines end with CR LF, as the RFC has it.
pub(super) fn csv(run: &Run, only: Option<usize>) -> String {
    let columns = columns(run.plan.schema());
    let mut text = columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(",");
    text.push_str("\r\n");
    for slot in rows(run, only) {
        for (i, column) in columns.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            match column.cell(run, slot) {
                Cell::Text(value) => text.push_str(&field(&value)),
                Cell::Whole(value) => text.push_str(&value.to_string()),
                Cell::Signed(value) => text.push_str(&value.to_string()),
                // The shortest text that reads back as the same number.
                Cell::Figure(value) => text.push_str(&value.to_string()),
                Cell::Unknown => {}
            }
        }
        text.push_str("\r\n");
    }
    text
}

/// A text as a field.
///
/// Spreadsheets run what begins like a formula, and names of targets come from elsewhere: such a text gets a single quote
/// in front, which spreadsheets take for "this is text" (OWASP, CSV injection).
fn field(value: &str) -> String {
    let guard = if value.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if guard.is_empty() && !value.contains([',', '"', '\r', '\n', ' ']) {
        return value.to_owned();
    }
    format!("\"{guard}{}\"", value.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_run_nothing() {
        for (value, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("-2+3", "\"'-2+3\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
        ] {
            assert_eq!(field(value), expected);
        }
    }
}
