//! Values from a CSV file (RFC 4180): its first line names the columns, each further one is a row.

use crate::read_text;
use duel_load::WorkloadError;
use duel_model::sanitize_line;
use std::collections::HashMap;
use std::path::Path;

/// Most values of a file, rows times columns: each takes four bytes beside its text.
const MOST_VALUES: usize = 64 << 20;

/// All rows of a file, in one piece of memory.
#[derive(Debug, Default)]
pub struct Rows {
    /// The file's name, safe to show.
    name: String,
    columns: Columns,
    values: Vec<u8>,
    /// Where each value ends, row by row; files are smaller than 4 GiB.
    ends: Vec<u32>,
    /// Line on which each row begins.
    lines: Vec<u32>,
}

/// Names of columns, each of which stands once.
#[derive(Debug, Default)]
pub struct Columns {
    names: Vec<String>,
    /// A file may have a million columns, and a request as many variables.
    positions: HashMap<String, usize>,
    /// One of them has a space in its name.
    pub(crate) has_spaces: bool,
}

impl Columns {
    /// Columns of these names.
    ///
    /// # Errors
    ///
    /// A name that stands twice.
    pub fn of(names: Vec<String>) -> Result<Self, String> {
        let mut positions = HashMap::with_capacity(names.len());
        for (position, name) in names.iter().enumerate() {
            if positions.insert(name.clone(), position).is_some() {
                return Err(name.clone());
            }
        }
        let has_spaces = names.iter().any(|name| name.contains(' '));
        Ok(Self { names, positions, has_spaces })
    }

    /// Their names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of the one of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }
}

impl Rows {
    /// Reads a file of rows.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with its name and the line.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let (name, text) = read_text(path)?;
        Self::parse(name, &text, MOST_VALUES)
    }

    fn parse(name: String, text: &str, most_values: usize) -> Result<Self, WorkloadError> {
        let error = |what: String| WorkloadError(format!("{name}{what}"));
        let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let told = |flaw: &csv::Error| match (flaw.position(), flaw.kind()) {
            (Some(at), csv::ErrorKind::UnequalLengths { expected_len, len, .. }) => {
                error(format!(", line {}: {len} values, where there are {expected_len} columns", at.line()))
            }
            (Some(at), _) => error(format!(", line {}: {flaw}", at.line())),
            (None, _) => error(format!(": {flaw}")),
        };
        let columns: Vec<String> =
            reader.headers().map_err(|flaw| told(&flaw))?.iter().map(|column| column.trim().to_owned()).collect();
        let columns = Columns::of(columns)
            .map_err(|twice| error(format!(", line 1: two columns are called '{}'", sanitize_line(&twice))))?;
        if let Some(unnamed) = columns.names.iter().position(|column| column.is_empty() || column.contains(['{', '}']))
        {
            return Err(error(format!(
                ", line 1: column {} has no usable name; the first line names the columns",
                unnamed + 1
            )));
        }
        let mut rows = Self { name: name.clone(), columns, ..Self::default() };
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(|flaw| told(&flaw))? {
            let line = record.position().map_or(0, csv::Position::line);
            if rows.ends.len() + record.len() > most_values {
                return Err(error(format!(
                    ", line {line}: there are more than {most_values} values, which is the most"
                )));
            }
            rows.lines.push(line as u32);
            for value in &record {
                rows.values.extend_from_slice(value.as_bytes());
                rows.ends.push(rows.values.len() as u32);
            }
        }
        if rows.lines.is_empty() {
            return Err(error(" has no rows; its first line names the columns, and each further one is a row".into()));
        }
        Ok(rows)
    }

    /// Names of the columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "a file without rows is refused")]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// A value.
    pub fn value(&self, row: usize, column: usize) -> &[u8] {
        let at = row * self.columns.names.len() + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.values[start..self.ends[at] as usize]
    }

    /// Checks that no value of a column breaks out of a header field.
    ///
    /// # Errors
    ///
    /// The line of one that does.
    pub fn check_for_field(&self, column: usize) -> Result<(), WorkloadError> {
        let breaks_out = |row: &usize| self.value(*row, column).iter().any(|&b| (b < 32 && b != b'\t') || b == 127);
        match (0..self.len()).find(breaks_out) {
            None => Ok(()),
            Some(row) => Err(WorkloadError(format!(
                "{}, line {}: the value of '{}' has a line end or another control character in it, and cannot stand in \
                 a header field",
                self.name,
                self.lines[row],
                sanitize_line(&self.columns.names[column])
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_corpus::growth;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Rows, String> {
        Rows::parse("d.csv".to_owned(), text, 9).map_err(|error| error.0)
    }

    #[test]
    fn values_by_row_and_column() {
        let rows = parse("id, name\n1,\"a, \"\"b\"\"\"\r\n,\n3,x\n").unwrap();
        assert_eq!((rows.columns().names(), rows.len()), (&["id".to_owned(), "name".to_owned()][..], 3));
        assert_eq!((rows.value(0, 0), rows.value(0, 1)), (&b"1"[..], &b"a, \"b\""[..]));
        assert_eq!((rows.value(1, 0), rows.value(1, 1), rows.value(2, 1)), (&b""[..], &b""[..], &b"x"[..]));
    }

    #[test]
    fn reading_stops_at_the_most() {
        let error = parse("a\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n").unwrap_err();
        assert_eq!(error, "d.csv, line 11: there are more than 9 values, which is the most");
        assert_eq!(parse("a,b,c\n1,2,3\n1,2,3\n1,2,3\n").unwrap().len(), 3);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, error) in [
            ("", "d.csv has no rows"),
            ("a,b\n", "d.csv has no rows"),
            ("a,b\n1,2\n3\n", "d.csv, line 3: 1 values, where there are 2 columns"),
            ("a,a\n1,2\n", "d.csv, line 1: two columns are called 'a'"),
            ("a,\n1,2\n", "d.csv, line 1: column 2 has no usable name"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(error), "{text:?}: {said}");
        }
        let rows = parse("a,b\n1,2\n\"x\ny\",3\n").unwrap();
        assert!(rows.check_for_field(0).unwrap_err().0.starts_with("d.csv, line 3: the value of 'a' has a line end"));
        assert!(rows.check_for_field(1).is_ok());
    }

    #[test]
    fn reading_takes_time_in_proportion_to_the_columns() {
        growth::is_linear(|columns| {
            let line = (0..columns).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
            let text = format!("{line}\n{line}\n");
            move || assert!(Rows::parse("d.csv".to_owned(), &text, usize::MAX).is_ok())
        });
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c,\"\n\r {}]{0,60}") {
            if let Ok(rows) = parse(&text) {
                for row in 0..rows.len() {
                    for column in 0..rows.columns().names().len() {
                        let _ = rows.value(row, column);
                    }
                }
            }
        }
    }
}
