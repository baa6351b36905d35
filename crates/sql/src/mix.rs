//! What an op consists of: the statements of sysbench's OLTP tests, in its order.

use crate::address::System;
use crate::failure;
use crate::keys::Keys;
use crate::ledger::LastRows;
use crate::wire::{SqlFailure, Value};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Names of the ops.
pub(crate) const OPS: &[&str] = &[
    "point-select",
    "read-only",
    "read-write",
    "write-only",
    "update-index",
    "update-non-index",
    "insert",
    "delete",
    "bulk-insert",
    "select-random-points",
    "select-random-ranges",
];

/// Point selects of a transaction of `read-only` and `read-write`; of all else there is one.
const POINT_SELECTS: usize = 10;
/// Points and ranges of a statement of `select-random-points` and `select-random-ranges`, and the width of a range.
const RANDOM_POINTS: usize = 10;
const RANDOM_RANGES: usize = 10;
const RANDOM_RANGE_DELTA: i64 = 5;

/// A statement, of which each table has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statement {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    InsertBack,
    InsertNew,
    RandomPoints,
    RandomRanges,
    BulkInsert,
}

/// All of them.
pub(crate) const STATEMENTS: [Statement; 13] = [
    Statement::PointSelect,
    Statement::SimpleRange,
    Statement::SumRange,
    Statement::OrderRange,
    Statement::DistinctRange,
    Statement::IndexUpdate,
    Statement::NonIndexUpdate,
    Statement::Delete,
    Statement::InsertBack,
    Statement::InsertNew,
    Statement::RandomPoints,
    Statement::RandomRanges,
    Statement::BulkInsert,
];

/// How long a statement of `bulk-insert` gets before it is sent: sysbench's `BULK_PACKET_SIZE`.
const BULK_BYTES: usize = 512 * 1024;

/// A part of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begin,
    /// A statement on a table that is drawn for it, or on the one of the statement before.
    Run(Statement, On),
    Commit,
}

/// Which table and row a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// Another table, another row.
    Drawn,
    /// The table of the step before, another row.
    SameTable,
    /// The table and the row of the step before.
    SameRow,
    /// The table of the lane, and rows behind its last one.
    OwnTable,
}

/// All that ops are made by.
#[derive(Debug)]
pub(crate) struct Mix {
    pub(crate) steps: Vec<Step>,
    pub(crate) system: System,
    pub(crate) keys: Keys,
    pub(crate) tables: u32,
    pub(crate) table_size: i64,
    pub(crate) range_size: i64,
    /// Whether statements are prepared, as far as sysbench does it.
    pub(crate) is_prepared: bool,
    pub(crate) writes: bool,
    /// Rows of the tables may be missing: some treatment deletes them, or they were not counted.
    pub(crate) may_lack_rows: Arc<AtomicBool>,
    /// What stands around the values of statements that are sent as texts, by their numbers.
    pub(crate) parts: Box<[OnceLock<Box<[String]>>]>,
    /// The last row of each table that bulk inserts have written.
    pub(crate) last_rows: LastRows,
}

/// The table and the row that an op is at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) table: u32,
    pub(crate) row: i64,
    /// How many rows from there on a bulk insert writes.
    pub(crate) rows: i64,
    /// The part of the rows that this lane's random points and ranges are from, so that lanes have rows of their own.
    pub(crate) segment: Segment,
}

/// A part of several equal ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    /// How many there are, less one.
    pub(crate) others: u32,
}

/// The steps of an op.
pub(crate) fn steps(op: &str, transactions: bool) -> Vec<Step> {
    use Statement::*;
    let run = |statement| Step::Run(statement, On::Drawn);
    let reads = || {
        let mut reads = vec![run(PointSelect)];
        reads.extend([Step::Run(PointSelect, On::SameTable)].repeat(POINT_SELECTS - 1));
        reads.extend([SimpleRange, SumRange, OrderRange, DistinctRange].map(run));
        reads
    };
    let writes = || vec![run(IndexUpdate), run(NonIndexUpdate), run(Delete), Step::Run(InsertBack, On::SameRow)];
    let in_transaction = |steps: Vec<Step>| {
        let ends = |step| if transactions { vec![step] } else { Vec::new() };
        [ends(Step::Begin), steps, ends(Step::Commit)].concat()
    };
    match op {
        "read-only" => in_transaction(reads()),
        "read-write" => in_transaction([reads(), writes()].concat()),
        "write-only" => in_transaction(writes()),
        "update-index" => vec![run(IndexUpdate)],
        "update-non-index" => vec![run(NonIndexUpdate)],
        "insert" => vec![run(InsertNew)],
        "delete" => vec![run(Delete)],
        "bulk-insert" => vec![Step::Run(BulkInsert, On::OwnTable)],
        "select-random-points" => vec![run(RandomPoints)],
        "select-random-ranges" => vec![run(RandomRanges)],
        _ => vec![run(PointSelect)],
    }
}

impl Statement {
    /// Whether it changes rows.
    pub(crate) fn writes(self) -> bool {
        use Statement::*;
        matches!(self, IndexUpdate | NonIndexUpdate | Delete | InsertBack | InsertNew | BulkInsert)
    }

    /// What stands around its values, for a table.
    pub(crate) fn parts(self, table: u32) -> Vec<String> {
        let t = format!("sbtest{}", table + 1);
        let parts = |texts: &[&str]| texts.iter().map(|text| text.replace("{t}", &t)).collect::<Vec<_>>();
        match self {
            Self::PointSelect => parts(&["SELECT c FROM {t} WHERE id=", ""]),
            Self::SimpleRange => parts(&["SELECT c FROM {t} WHERE id BETWEEN ", " AND ", ""]),
            Self::SumRange => parts(&["SELECT SUM(k) FROM {t} WHERE id BETWEEN ", " AND ", ""]),
            Self::OrderRange => parts(&["SELECT c FROM {t} WHERE id BETWEEN ", " AND ", " ORDER BY c"]),
            Self::DistinctRange => parts(&["SELECT DISTINCT c FROM {t} WHERE id BETWEEN ", " AND ", " ORDER BY c"]),
            Self::IndexUpdate => parts(&["UPDATE {t} SET k=k+1 WHERE id=", ""]),
            Self::NonIndexUpdate => parts(&["UPDATE {t} SET c=", " WHERE id=", ""]),
            Self::Delete => parts(&["DELETE FROM {t} WHERE id=", ""]),
            Self::InsertBack => parts(&["INSERT INTO {t} (id, k, c, pad) VALUES (", ", ", ", ", ", ", ")"]),
            Self::InsertNew => parts(&["INSERT INTO {t} (k, c, pad) VALUES (", ", ", ", ", ")"]),
            Self::BulkInsert => parts(&["INSERT INTO {t} VALUES"]),
            Self::RandomPoints => {
                let mut all = parts(&["SELECT id, k, c, pad FROM {t} WHERE k IN ("]);
                all.resize(RANDOM_POINTS, ", ".to_owned());
                all.push(")".to_owned());
                all
            }
            Self::RandomRanges => {
                let mut all = parts(&["SELECT count(k) FROM {t} WHERE k BETWEEN "]);
                for _ in 1..RANDOM_RANGES {
                    all.extend([" AND ".to_owned(), " OR k BETWEEN ".to_owned()]);
                }
                all.extend([" AND ".to_owned(), String::new()]);
                all
            }
        }
    }

    /// Its text with places for values.
    pub(crate) fn prepared(self, table: u32, system: System) -> String {
        let parts = self.parts(table);
        let mut text = parts[0].clone();
        for (place, part) in parts[1..].iter().enumerate() {
            match system {
                System::Postgres => text.push_str(&format!("${}", place + 1)),
                System::Mysql | System::Sqlite => text.push('?'),
            }
            text.push_str(part);
        }
        text
    }

    /// Most rows that it can rightly answer; `None`: that depends on the data.
    fn most_rows(self, mix: &Mix) -> Option<u64> {
        match self {
            Self::PointSelect | Self::SumRange | Self::RandomRanges => Some(1),
            Self::SimpleRange | Self::OrderRange | Self::DistinctRange => Some(mix.range_size as u64),
            Self::RandomPoints => None,
            _ => Some(0),
        }
    }

    /// Fewest rows that it can rightly answer.
    fn fewest_rows(self, mix: &Mix) -> u64 {
        match self {
            Self::PointSelect => u64::from(!mix.may_lack_rows.load(Ordering::Relaxed)),
            Self::SumRange | Self::RandomRanges => 1,
            _ => 0,
        }
    }

    /// Fewest rows that it can rightly change.
    fn fewest_changed(self, mix: &Mix, place: Place) -> u64 {
        match self {
            Self::IndexUpdate | Self::NonIndexUpdate => u64::from(!mix.may_lack_rows.load(Ordering::Relaxed)),
            Self::InsertBack | Self::InsertNew => 1,
            Self::BulkInsert => place.rows as u64,
            _ => 0,
        }
    }

    /// Whether it can rightly have answered and changed so many rows. All that write name one row, but bulk inserts.
    #[inline]
    pub(crate) fn check(self, mix: &Mix, place: Place, rows: u64, changed: u64) -> Result<(), SqlFailure> {
        let wrong = |text: String| Err(SqlFailure::new(failure::WRONG, text));
        if self.most_rows(mix).is_some_and(|most| rows > most) {
            return wrong(format!("a statement answered {rows} rows, more than there can be"));
        }
        if rows < self.fewest_rows(mix) {
            return wrong("a statement answered no row where there is one".to_owned());
        }
        let most = if self == Self::BulkInsert { place.rows as u64 } else { u64::from(self.writes()) };
        if changed > most {
            return wrong(format!("a statement changed {changed} rows, more than it can"));
        }
        if changed < self.fewest_changed(mix, place) {
            return wrong(format!("a statement was done and changed {changed} rows, fewer than it has to"));
        }
        Ok(())
    }
}

impl Mix {
    /// Whether rows come or go with a `k` of their own.
    pub(crate) fn moves_k(&self) -> bool {
        use Statement::*;
        self.steps.iter().any(|step| matches!(step, Step::Run(Delete | InsertBack | InsertNew | BulkInsert, _)))
    }

    /// Whether rows are deleted.
    pub(crate) fn deletes(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Run(Statement::Delete, _)))
    }

    /// Whether rows are inserted in bulk, into tables of their own layout.
    pub(crate) fn is_bulk(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Run(Statement::BulkInsert, _)))
    }

    /// Draws table and row for a step.
    pub(crate) fn place(&self, on: On, place: &mut Place, rng: &mut Pcg64Mcg) {
        if on == On::OwnTable {
            place.table = place.segment.number % self.tables;
            return;
        }
        if on == On::Drawn {
            place.table = if self.tables == 1 { 0 } else { rng.random_range(0..self.tables) };
        }
        if on != On::SameRow {
            place.row = self.keys.draw(rng, 1, self.table_size);
        }
    }

    /// The rows of a segment.
    fn part(&self, segment: Segment) -> (i64, i64) {
        let length = (self.table_size / (i64::from(segment.others) + 1)).max(1);
        let least = length * i64::from(segment.number);
        (least, least + length)
    }

    /// The values of a statement.
    pub(crate) fn values(&self, statement: Statement, place: Place, rng: &mut Pcg64Mcg, values: &mut Vec<Value>) {
        use Statement::*;
        values.clear();
        let row = Value::Int(place.row);
        match statement {
            PointSelect | IndexUpdate | Delete => values.push(row),
            SimpleRange | SumRange | OrderRange | DistinctRange => {
                values.extend([row, Value::Int(place.row + self.range_size - 1)]);
            }
            NonIndexUpdate => values.extend([Value::Text(digits(rng, 10)), row]),
            InsertBack => {
                let k = self.keys.draw(rng, 1, self.table_size);
                values.extend([row, Value::Int(k), Value::Text(digits(rng, 10)), Value::Text(digits(rng, 5))]);
            }
            InsertNew => values.extend([row, Value::Text(digits(rng, 10)), Value::Text(digits(rng, 5))]),
            RandomPoints => {
                let (least, most) = self.part(place.segment);
                values.extend((0..RANDOM_POINTS).map(|_| Value::Int(self.keys.draw(rng, least, most))));
            }
            RandomRanges => {
                let (least, most) = self.part(place.segment);
                values.extend((0..RANDOM_RANGES).flat_map(|_| {
                    let from = self.keys.draw(rng, least, most);
                    [Value::Int(from), Value::Int(from + RANDOM_RANGE_DELTA)]
                }));
            }
            BulkInsert => {}
        }
    }

    /// The number of a table's statement.
    #[inline]
    pub(crate) fn number(&self, statement: Statement, table: u32) -> u16 {
        (statement as u32 * self.tables + table) as u16
    }

    /// The statement of a number, and its table.
    #[inline]
    pub(crate) fn numbered(&self, number: u16) -> (Statement, u32) {
        let (statement, table) = (u32::from(number) / self.tables, u32::from(number) % self.tables);
        (STATEMENTS[statement as usize], table)
    }

    /// What stands around the values of a statement.
    pub(crate) fn parts(&self, number: u16, statement: Statement, table: u32) -> &[String] {
        self.parts[usize::from(number)].get_or_init(|| statement.parts(table).into())
    }

    /// The text of a bulk insert: as many rows as there is room for behind the last one, so that they get fewer as the numbers
    /// get longer, as those of sysbench do.
    pub(crate) fn bulk(&self, place: &mut Place, text: &mut String) {
        text.clear();
        text.push_str(&Statement::BulkInsert.parts(place.table)[0]);
        // What a row of the longest number takes, so that the room for rows is known before their numbers are.
        let last = &self.last_rows[place.table as usize];
        let mut room = BULK_BYTES - text.len() - 1;
        let mut rows = 0;
        let before = last.load(Ordering::Relaxed);
        loop {
            // (N,N) and a comma; numbers of several connections on one table may be one digit longer by then.
            let bytes = 2 * digits_of(before + rows + 1) + 4;
            if bytes > room {
                break;
            }
            room -= bytes;
            rows += 1;
        }
        place.rows = rows;
        place.row = last.fetch_add(rows, Ordering::Relaxed) + 1;
        for row in place.row..place.row + rows {
            if row > place.row {
                text.push(',');
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "({row},{row})");
        }
    }

    /// Whether a statement goes out as a prepared one. sysbench never prepares that of `insert`.
    pub(crate) fn prepares(&self, statement: Statement) -> bool {
        self.is_prepared && !matches!(statement, Statement::InsertNew | Statement::BulkInsert)
    }

    /// All that ops prepare, for each table; none where that is more than so many.
    pub(crate) fn prepared_ahead(&self, most: usize) -> Vec<u16> {
        let mut statements = Vec::new();
        for step in &self.steps {
            if let Step::Run(statement, _) = step
                && self.prepares(*statement)
                && !statements.contains(statement)
            {
                statements.push(*statement);
            }
        }
        if statements.len().saturating_mul(self.tables as usize) > most {
            return Vec::new();
        }
        (0..self.tables).flat_map(|table| statements.iter().map(move |one| self.number(*one, table))).collect()
    }

    /// What begins a transaction.
    pub(crate) fn begin(&self) -> &'static str {
        match self.system {
            // A transaction of SQLite that reads first and writes later fails where another one writes.
            System::Sqlite if self.writes => "BEGIN IMMEDIATE",
            _ => "BEGIN",
        }
    }
}

/// A statement's text with values in it, from what stands around them.
pub(crate) fn literal(parts: &[String], values: &[Value], system: System, text: &mut String) {
    text.clear();
    text.push_str(&parts[0]);
    for (value, part) in values.iter().zip(&parts[1..]) {
        push_literal(system, value, text);
        text.push_str(part);
    }
}

/// A value as it is written in a statement.
pub(crate) fn push_literal(system: System, value: &Value, text: &mut String) {
    let value = match value {
        // Writing to a String cannot fail.
        Value::Int(number) => return write!(text, "{number}").unwrap_or_default(),
        Value::Decimal(number) => return text.push_str(number),
        Value::Text(value) => value,
    };
    let has_backslash = value.contains('\\') && system != System::Sqlite;
    if has_backslash && system == System::Postgres {
        text.push('E');
    }
    text.push('\'');
    if has_backslash || value.contains('\'') {
        for c in value.chars() {
            if c == '\'' || (c == '\\' && has_backslash) {
                text.push(c);
            }
            text.push(c);
        }
    } else {
        text.push_str(value);
    }
    text.push('\'');
}

fn digits_of(number: i64) -> usize {
    number.max(1).ilog10() as usize + 1
}

/// Groups of eleven random digits with dashes between: ten of them are a `c`, five a `pad`.
pub(crate) fn digits(rng: &mut Pcg64Mcg, groups: usize) -> String {
    let mut text = String::with_capacity(groups * 12);
    append_digits(rng, groups, &mut text);
    text
}

pub(crate) fn append_digits(rng: &mut Pcg64Mcg, groups: usize, text: &mut String) {
    for group in 0..groups {
        if group > 0 {
            text.push('-');
        }
        let mut number = rng.random_range(0..100_000_000_000_u64);
        let mut place = 10_000_000_000;
        while place > 0 {
            text.push(char::from(b'0' + (number / place) as u8));
            number %= place;
            place /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::sync::atomic::AtomicI64;

    #[test]
    fn ops_have_the_statements_that_sysbench_counts() {
        for (op, queries) in
            [("point-select", 1), ("read-only", 16), ("read-write", 20), ("write-only", 6), ("insert", 1)]
        {
            assert_eq!(steps(op, true).len(), queries, "{op}");
        }
        assert_eq!(steps("read-only", false).len(), 14);
        assert!(OPS.iter().all(|op| !steps(op, true).is_empty()));
    }

    #[test]
    fn a_statement_has_a_place_for_each_value() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mix = |steps: Vec<Step>, is_prepared| Mix {
            steps,
            system: System::Postgres,
            keys: Keys::Uniform,
            tables: 2,
            table_size: 100,
            range_size: 100,
            is_prepared,
            writes: false,
            may_lack_rows: Arc::default(),
            parts: (0..2 * STATEMENTS.len()).map(|_| OnceLock::new()).collect(),
            last_rows: (0..2).map(|_| AtomicI64::new(0)).collect(),
        };
        let mut values = Vec::new();
        use Statement::*;
        let ahead = mix(steps("read-write", true), true);
        assert_eq!(ahead.prepared_ahead(100).len(), 2 * 9);
        let unprepared = mix(steps("read-write", true), false);
        assert!(ahead.prepared_ahead(17).is_empty() && unprepared.prepared_ahead(100).is_empty());
        let mix = mix(Vec::new(), true);
        for statement in STATEMENTS.into_iter().filter(|statement| *statement != BulkInsert) {
            mix.values(statement, Place { table: 1, row: 7, ..Place::default() }, &mut rng, &mut values);
            let text = statement.prepared(1, System::Postgres);
            assert!(text.contains("sbtest2") && text.contains(&format!("${}", values.len())), "{text}");
            assert!(!text.contains(&format!("${}", values.len() + 1)), "{text}");
            let (mut text, number) = (String::new(), mix.number(statement, 1));
            literal(mix.parts(number, statement, 1), &values, System::Postgres, &mut text);
            assert!(!text.contains('$') && statement.parts(1).len() == values.len() + 1, "{text}");
            assert_eq!(mix.numbered(number), (statement, 1));
        }
        let mut text = String::new();
        literal(&PointSelect.parts(0), &[Value::Int(5)], System::Mysql, &mut text);
        assert_eq!(text, "SELECT c FROM sbtest1 WHERE id=5");
        assert_eq!(digits(&mut rng, 10).len(), 119);
        assert_eq!(digits(&mut rng, 5).len(), 59);

        let at = Place { rows: 3, ..Place::default() };
        assert!(SimpleRange.check(&mix, at, 100, 0).is_ok() && SimpleRange.check(&mix, at, 101, 0).is_err());
        assert!(PointSelect.check(&mix, at, 1, 0).is_ok() && PointSelect.check(&mix, at, 0, 0).is_err());
        assert!(SumRange.check(&mix, at, 0, 0).is_err() && RandomRanges.check(&mix, at, 0, 0).is_err());
        assert!(IndexUpdate.check(&mix, at, 0, 1).is_ok() && IndexUpdate.check(&mix, at, 0, u64::MAX).is_err());
        assert!(BulkInsert.check(&mix, at, 0, 3).is_ok() && BulkInsert.check(&mix, at, 0, 4).is_err());
        for (statement, changed) in
            [(IndexUpdate, 0), (NonIndexUpdate, 0), (InsertNew, 0), (InsertBack, 0), (BulkInsert, 2)]
        {
            let why = statement.check(&mix, at, 0, changed).unwrap_err();
            assert!(why.text.contains("fewer than it has to"), "{statement:?}: {}", why.text);
        }
        assert!(Delete.check(&mix, at, 0, 0).is_ok(), "somebody else may have deleted it before");
        assert!(PointSelect.check(&mix, at, 1, 1).unwrap_err().text.contains("more than it can"));
        mix.may_lack_rows.store(true, Ordering::Relaxed);
        assert!(PointSelect.check(&mix, at, 0, 0).is_ok() && SumRange.check(&mix, at, 0, 0).is_err());
        assert!(IndexUpdate.check(&mix, at, 0, 0).is_ok() && InsertNew.check(&mix, at, 0, 0).is_err());
    }

    #[test]
    fn a_bulk_insert_is_as_long_as_sysbenchs_and_goes_on_behind_its_last_row() {
        let mix = crate::kind::mix_of(&duel_model::KindPlan::of(&crate::schema::SCHEMA), System::Postgres);
        let (mut place, mut text) = (Place::default(), String::new());
        mix.bulk(&mut place, &mut text);
        assert!(text.starts_with("INSERT INTO sbtest1 VALUES(1,1),(2,2),") && text.ends_with(')'), "{}", &text[..40]);
        assert!((BULK_BYTES - 20..BULK_BYTES).contains(&text.len()), "{}", text.len());
        assert_eq!(text.matches('(').count() as i64, place.rows);
        let first = place.rows;
        mix.bulk(&mut place, &mut text);
        assert!(text.contains(&format!("VALUES({0},{0}),", first + 1)) && place.rows < first);
        assert_eq!(place.row, first + 1);
    }
}
