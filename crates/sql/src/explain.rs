//! How a server goes about the statements of load: its plans, as it tells them itself, by their shape.

use crate::address::System;
use crate::client::Rows;
use crate::database::Database;
use crate::mix::{self, Mix, Place, Statement, Step};
use duel_model::sanitize_line;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Indexes and statistics are a table's own, so that each has plans of its own. Each costs a round trip for each statement: of a
/// mix of ten statements over 20 ms these are 3 s. Of more tables nothing is told.
const MOST_TABLES: u32 = 16;

/// A plan for each of the statements on each of the tables, as `statement: plan`; `None` where the server tells none. Statements are
/// not executed.
pub(crate) fn plans(database: &mut Database, mix: &Mix) -> Option<Vec<String>> {
    let mut statements: Vec<Statement> = Vec::new();
    for step in &mix.steps {
        if let Step::Run(statement, _) = step
            && !matches!(statement, Statement::InsertBack | Statement::InsertNew)
            && !statements.contains(statement)
        {
            statements.push(*statement);
        }
    }
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut plans = Vec::new();
    let tables = 0..mix.tables.min(MOST_TABLES);
    for (table, statement) in tables.flat_map(|table| statements.iter().map(move |statement| (table, *statement))) {
        // A row in the middle, as good as any other.
        let place = Place { table, row: mix.table_size / 2, ..Place::default() };
        let (mut values, mut text) = (Vec::new(), String::new());
        mix.values(statement, place, &mut rng, &mut values);
        mix::literal(&statement.parts(table), &values, mix.system, &mut text);
        let shape = match mix.system {
            System::Postgres => of_postgres(&database.rows(&format!("EXPLAIN (COSTS OFF) {text}")).ok()?),
            System::Mysql => of_mysql(&database.rows(&format!("EXPLAIN {text}")).ok()?),
            System::Sqlite => return None,
        };
        let statement = statement.parts(table).join("?");
        plans.push(sanitize_line(&format!("{statement}: {}", shape?)));
    }
    Some(plans)
}

/// Its nodes from the outermost one on, without what they compare with.
fn of_postgres(rows: &Rows) -> Option<String> {
    let mut nodes: Vec<&str> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let line = row.first()?.as_deref()?;
        let node = match line.split_once("->") {
            Some((before, node)) if before.trim().is_empty() => node.trim(),
            _ if place == 0 => line.trim(),
            _ => continue,
        };
        if nodes.last() != Some(&node) {
            nodes.push(node);
        }
    }
    (!nodes.is_empty()).then(|| nodes.join(" > "))
}

/// How each table is read: the way, the index, and what is put aside for it.
fn of_mysql(rows: &Rows) -> Option<String> {
    let table = |row: &Vec<Option<String>>| {
        // MySQL has two columns more, for partitions and for what filters leave.
        let ahead = usize::from(row.len() > 10);
        let at = |place: usize| row.get(place).and_then(Option::as_deref);
        let way = at(3 + ahead)?;
        let index = at(5 + ahead).map_or("no index".to_owned(), |index| format!("index {index}"));
        let aside = at(row.len() - 1).unwrap_or_default();
        let aside = ["Using temporary", "Using filesort"].into_iter().filter(|what| aside.contains(what));
        Some(
            [format!("{way} by {index}")]
                .into_iter()
                .chain(aside.map(str::to_lowercase))
                .collect::<Vec<_>>()
                .join(", "),
        )
    };
    let tables: Option<Vec<String>> = rows.iter().map(table).collect();
    tables.filter(|tables| !tables.is_empty()).map(|tables| tables.join(" > "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_told_by_shape() {
        let line = |text: &str| vec![Some(text.to_owned())];
        let rows = vec![
            line("Aggregate"),
            line("  ->  Bitmap Heap Scan on sbtest1"),
            line("        Recheck Cond: ((k >= 5) OR (k -> 3))"),
            line("        ->  BitmapOr"),
            line("              ->  Bitmap Index Scan on k_1"),
            line("                    Index Cond: (k = 5)"),
            line("              ->  Bitmap Index Scan on k_1"),
        ];
        let shape = "Aggregate > Bitmap Heap Scan on sbtest1 > BitmapOr > Bitmap Index Scan on k_1";
        assert_eq!(of_postgres(&rows).as_deref(), Some(shape));
        assert_eq!(of_postgres(&Vec::new()), None);
        let row = |values: &[&str]| {
            values.iter().map(|value| (*value != "NULL").then(|| (*value).to_owned())).collect::<Vec<_>>()
        };
        let maria =
            row(&["1", "SIMPLE", "sbtest1", "ALL", "NULL", "NULL", "NULL", "NULL", "9", "Using where; Using filesort"]);
        assert_eq!(of_mysql(&vec![maria]).as_deref(), Some("ALL by no index, using filesort"));
        let mysql = row(&[
            "1", "SIMPLE", "sbtest1", "NULL", "const", "PRIMARY", "PRIMARY", "4", "const", "1", "100.00", "NULL",
        ]);
        assert_eq!(of_mysql(&vec![mysql]).as_deref(), Some("const by index PRIMARY"));
        assert_eq!(of_mysql(&vec![vec![]]), None);
    }
}
