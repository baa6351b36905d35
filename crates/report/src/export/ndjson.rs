//! Newline-delimited JSON: a line for each slot, the columns of CSV as fields, `null` where not known.

use super::columns::{Cell, columns, rows};
use duel_model::Run;
use serde_json::{Map, Value};

/// A line for each slot.
pub(super) fn ndjson(run: &Run, only: Option<usize>) -> String {
    let columns = columns(run.plan.schema());
    rows(run, only)
        .map(|slot| {
            let fields: Map<String, Value> =
                columns.iter().map(|column| (column.name.clone(), value(column.cell(run, slot)))).collect();
            // Texts have been made safe, so nothing in the line has to be escaped beyond what JSON asks for.
            format!("{}\n", Value::Object(fields))
        })
        .collect()
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Text(value) => value.into(),
        Cell::Whole(value) => value.into(),
        Cell::Signed(value) => value.into(),
        Cell::Figure(value) => value.into(),
        Cell::Unknown => Value::Null,
    }
}
