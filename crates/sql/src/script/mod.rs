//! Own SQL: ops are the transactions of a file, chosen by their weights, with values that differ from op to op.
//!
//! A value is a parameter of a prepared statement where it can be one, so that it needs no quotes and breaks out of none. It goes as
//! the text or whole number that it is; of what type it is, the server knows from the statement.

mod file;
mod pieces;
#[cfg(test)]
mod tests;

use crate::address::System;
use crate::mix::push_literal;
use crate::schema::phase;
use crate::wire::Value;
use duel_load::WorkloadError;
use duel_model::{Id, Phase, sanitize_line};
use duel_template::{Part, Rows, Variable, push_uuid, read_text};
use file::{Name, Sort};
use pieces::Piece;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest statement with its values: MySQL takes 16 MiB where nothing else is set, and hostile files make much of little.
const LONGEST_STATEMENT_BYTES: usize = 16 << 20;
/// Longest values of variables: a number of 64 bits, and a UUID.
const NUMBER_BYTES: usize = 20;
const UUID_BYTES: usize = 36;

/// The transactions of a file.
#[derive(Debug)]
pub(crate) struct Script {
    system: System,
    /// The file's name, safe to show.
    file: String,
    /// SHA-256 of what was read.
    digest: String,
    transactions: Vec<Transaction>,
    statements: Vec<Statement>,
    /// Sums of weights up to and with each transaction.
    cumulative: Vec<u64>,
    rows: Option<Rows>,
    /// Which columns hold whole numbers and nothing else.
    is_whole: Vec<bool>,
    /// Which hold numbers, some of them with a point.
    is_decimal: Vec<bool>,
    /// Ops that have begun, over all workers and sessions.
    begun: AtomicU64,
}

#[derive(Debug)]
struct Transaction {
    name: Option<Name>,
    statements: Range<usize>,
    sets: Vec<Vec<Part>>,
}

#[derive(Debug)]
struct Statement {
    line: usize,
    pieces: Vec<Piece>,
    sort: Sort,
    /// With places for its values, where it is prepared.
    prepared: Option<String>,
}

/// What was drawn for an op.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    transaction: usize,
    number: u64,
    uuid: Option<u128>,
    sets: Vec<Value>,
}

/// A statement that an op is at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Its place among all.
    pub(crate) number: usize,
    pub(crate) is_prepared: bool,
    /// Where the time goes until its first row.
    pub(crate) phase: Phase,
}

impl Script {
    /// Reads the file of statements, and the one of values if there is one.
    pub(crate) fn read(
        path: &Path,
        values: Option<&Path>,
        system: System,
        prepares: bool,
    ) -> Result<Self, WorkloadError> {
        let rows = values.map(Rows::read).transpose()?;
        let read = file::read(path, system, rows.as_ref())?;
        let of_values = |path| Ok::<_, WorkloadError>(format!("+{}", file::digest_of(&read_text(path)?.1)));
        let digest = format!("{}{}", read.digest, values.map(of_values).transpose()?.unwrap_or_default());
        Ok(Self { digest, ..Self::build(read, rows, system, prepares)? })
    }

    /// SHA-256 of the file that was read, and behind a `+` that of the values.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    fn build(read: file::Read, rows: Option<Rows>, system: System, prepares: bool) -> Result<Self, WorkloadError> {
        let columns: Vec<ColumnOf> = rows.as_ref().map_or_else(Vec::new, ColumnOf::all);
        let (mut statements, mut transactions, mut cumulative, mut total) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for transaction in read.transactions {
            let told =
                |line: usize, what: &str| WorkloadError(format!("{}, line {line}: {}", read.name, sanitize_line(what)));
            let mut known = columns.clone();
            for (name, parts) in &transaction.sets {
                let of = ColumnOf::set(parts, &known);
                if of.longest > LONGEST_STATEMENT_BYTES {
                    return Err(told(transaction.line, &format!("the value '{name}' can be longer than 16 MiB")));
                }
                known.push(of);
            }
            let first = statements.len();
            for statement in transaction.statements {
                check(&statement, &known).map_err(|what| told(statement.line, &what))?;
                let file::Statement { line, pieces, sort } = statement;
                let prepared = if prepares && sort.is_preparable() { with_places(&pieces, system) } else { None };
                statements.push(Statement { line, pieces, sort, prepared });
            }
            total += u64::from(transaction.weight);
            cumulative.push(total);
            let sets = transaction.sets.into_iter().map(|(_, parts)| parts).collect();
            transactions.push(Transaction { name: transaction.name, statements: first..statements.len(), sets });
        }
        let is_whole = columns.iter().map(|column| column.is_whole).collect();
        let is_decimal = columns.iter().map(|column| column.is_decimal).collect();
        let (file, digest, begun) = (read.name, read.digest, AtomicU64::new(0));
        Ok(Self { system, file, digest, transactions, statements, cumulative, rows, is_whole, is_decimal, begun })
    }

    /// How many statements there are.
    pub(crate) fn statements(&self) -> usize {
        self.statements.len()
    }

    /// Chooses the transaction of the next op, and draws its values.
    pub(crate) fn begin(&self, drawn: &mut Drawn, rng: &mut Pcg64Mcg) {
        let total = self.cumulative.last().copied().unwrap_or(1);
        let point = if self.cumulative.len() > 1 { rng.random_range(0..total) } else { 0 };
        drawn.transaction = self.cumulative.partition_point(|&sum| sum <= point);
        drawn.number = self.begun.fetch_add(1, Ordering::Relaxed);
        drawn.uuid = None;
        drawn.sets.clear();
        for set in &self.transactions[drawn.transaction].sets {
            let value = self.value(set, false, drawn, rng);
            drawn.sets.push(value);
        }
    }

    /// Statements of the op.
    pub(crate) fn steps(&self, drawn: &Drawn) -> usize {
        self.transactions[drawn.transaction].statements.len()
    }

    /// The statement that an op is at.
    pub(crate) fn step(&self, drawn: &Drawn, at: usize) -> Step {
        let number = self.transactions[drawn.transaction].statements.start + at;
        let statement = &self.statements[number];
        let phase = if statement.sort == Sort::Commit { phase::COMMIT } else { phase::FIRST_ROW };
        Step { number, is_prepared: statement.prepared.is_some(), phase }
    }

    /// Whether nothing stays of an op that fails at a statement: there is none before it, or they all stand behind one BEGIN. Some
    /// that are neither reads nor writes end a transaction unasked (those that define, in MySQL).
    pub(crate) fn is_undone(&self, drawn: &Drawn, at: usize) -> bool {
        let first = self.transactions[drawn.transaction].statements.start;
        match &self.statements[first..first + at] {
            [] => true,
            [begin, behind @ ..] => {
                begin.sort == Sort::Begin && behind.iter().all(|one| matches!(one.sort, Sort::Reads | Sort::Writes))
            }
        }
    }

    /// What ops of a transaction are counted under, and their time; `None`: it has no name.
    pub(crate) fn names(&self, transaction: usize) -> Option<(Id, Id)> {
        self.transactions.get(transaction)?.name.map(|name| (name.ops, name.time))
    }

    /// Which transaction was chosen.
    pub(crate) fn chosen(drawn: &Drawn) -> usize {
        drawn.transaction
    }

    /// How many transactions there are.
    pub(crate) fn transactions(&self) -> usize {
        self.transactions.len()
    }

    /// Transactions of the database that each op is, where that is the same for all: a statement, or what stands between BEGIN and
    /// COMMIT.
    pub(crate) fn transactions_each(&self) -> Option<u64> {
        let count = |transaction: &Transaction| {
            let (mut count, mut is_open) = (0, false);
            for statement in &self.statements[transaction.statements.clone()] {
                match statement.sort {
                    Sort::Begin => is_open = true,
                    Sort::Commit | Sort::Rollback => (is_open, count) = (false, count + 1),
                    _ if is_open => {}
                    _ => count += 1,
                }
            }
            count
        };
        let mut counts = self.transactions.iter().map(count);
        let first = counts.next()?;
        counts.all(|count| count == first).then_some(first)
    }

    /// Whether some statement may change something.
    pub(crate) fn writes(&self) -> bool {
        self.statements.iter().any(|statement| statement.sort.may_write())
    }

    /// What can be prepared before anything of the file was executed: where something in it may make tables, only what may be a
    /// slip of the pen.
    pub(crate) fn prepared_ahead(&self) -> Vec<u16> {
        let may_define = self.may_define();
        let is_ahead = |number: &u16| !may_define || self.statements[usize::from(*number)].sort == Sort::Unknown;
        self.to_check().into_iter().filter(is_ahead).collect()
    }

    /// What the server is asked about before load.
    pub(crate) fn to_check(&self) -> Vec<u16> {
        let numbered = self.statements.iter().enumerate();
        numbered.filter(|(_, one)| one.prepared.is_some()).map(|(number, _)| number as u16).collect()
    }

    /// Whether a statement that the server refused now may be right when its turn comes: another one of the file may make what it
    /// lacks. What is no SQL stays none.
    pub(crate) fn may_mend(&self, refused: &str) -> bool {
        let refused = refused.to_ascii_lowercase();
        let is_no_sql = ["(42601)", "(42000)", "error 1064", "syntax error"].iter().any(|sign| refused.contains(sign));
        self.may_define() && !is_no_sql
    }

    fn may_define(&self) -> bool {
        self.statements.iter().any(|statement| statement.sort == Sort::Defines)
    }

    /// The text of a statement that is prepared.
    pub(crate) fn prepared(&self, number: usize) -> Option<&str> {
        self.statements.get(number)?.prepared.as_deref()
    }

    /// Something is wrong with a statement.
    pub(crate) fn told(&self, number: usize, what: &str) -> String {
        format!("{}, line {}: {what}", self.file, self.line(number))
    }

    /// Where a statement stands in its file.
    pub(crate) fn line(&self, number: usize) -> usize {
        self.statements.get(number).map_or(0, |statement| statement.line)
    }

    /// The values of a statement that is prepared.
    pub(crate) fn values(&self, number: usize, drawn: &mut Drawn, rng: &mut Pcg64Mcg, values: &mut Vec<Value>) {
        values.clear();
        for piece in &self.statements[number].pieces {
            if let Piece::Value { parts, is_text } = piece {
                values.push(self.value(parts, *is_text, drawn, rng));
            }
        }
    }

    /// The text of a statement with its values in it.
    pub(crate) fn text(&self, number: usize, drawn: &mut Drawn, rng: &mut Pcg64Mcg, text: &mut String) {
        text.clear();
        for piece in &self.statements[number].pieces {
            match piece {
                Piece::Text(more) => text.push_str(more),
                Piece::Value { parts, is_text } => {
                    push_literal(self.system, &self.value(parts, *is_text, drawn, rng), text);
                }
                Piece::OfName(parts) => parts.iter().for_each(|part| self.push(part, drawn, rng, text)),
            }
        }
    }

    fn value(&self, parts: &[Part], is_text: bool, drawn: &mut Drawn, rng: &mut Pcg64Mcg) -> Value {
        if let [Part::Variable(variable)] = parts
            && !is_text
        {
            match *variable {
                Variable::Number => return Value::Int(i64::try_from(drawn.number).unwrap_or(i64::MAX)),
                Variable::Random(low, high) => return Value::Int(rng.random_range(low..=high)),
                Variable::Uuid => {}
                Variable::Column(column) => match column.checked_sub(self.is_whole.len()) {
                    Some(set) => return drawn.sets.get(set).cloned().unwrap_or_else(|| Value::Text(String::new())),
                    None if self.is_whole[column] => {
                        if let Ok(number) = self.cell(column, drawn).parse() {
                            return Value::Int(number);
                        }
                    }
                    // To SQLite a text is greater than all numbers; the others take the type from the statement.
                    None if self.is_decimal[column] && self.system == System::Sqlite => {
                        return Value::Decimal(self.cell(column, drawn).to_owned());
                    }
                    None => {}
                },
            }
        }
        let mut text = String::new();
        parts.iter().for_each(|part| self.push(part, drawn, rng, &mut text));
        Value::Text(text)
    }

    fn push(&self, part: &Part, drawn: &mut Drawn, rng: &mut Pcg64Mcg, out: &mut String) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Variable(Variable::Number) => out.push_str(&drawn.number.to_string()),
            Part::Variable(Variable::Random(low, high)) => out.push_str(&rng.random_range(*low..=*high).to_string()),
            Part::Variable(Variable::Uuid) => {
                let mut digits = Vec::with_capacity(UUID_BYTES);
                push_uuid(&mut digits, *drawn.uuid.get_or_insert_with(|| rng.random()));
                digits.iter().for_each(|&digit| out.push(char::from(digit)));
            }
            Part::Variable(Variable::Column(column)) => match column.checked_sub(self.is_whole.len()) {
                None => out.push_str(self.cell(*column, drawn)),
                Some(set) => match drawn.sets.get(set) {
                    Some(Value::Int(number)) => out.push_str(&number.to_string()),
                    Some(Value::Text(text) | Value::Decimal(text)) => out.push_str(text),
                    None => {}
                },
            },
        }
    }

    /// A value of the op's row.
    fn cell(&self, column: usize, drawn: &Drawn) -> &str {
        let Some(rows) = &self.rows else { return "" };
        let row = (drawn.number % rows.len() as u64) as usize;
        str::from_utf8(rows.value(row, column)).unwrap_or_default()
    }
}

/// Fuzzers' entry: a file is read or refused with a line of its own, and what was read can be sent.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(text: &str, system: System) {
    use rand::SeedableRng;
    match file::parse(text, system, &duel_template::Columns::default()) {
        Err(flaw) => assert!(flaw.line >= 1 && flaw.line <= text.matches('\n').count() + 2, "{flaw:?}"),
        Ok(transactions) => {
            let read = file::Read { name: "own.sql".to_owned(), digest: String::new(), transactions };
            let Ok(script) = Script::build(read, None, system, true) else { return };
            let (mut drawn, mut rng) = (Drawn::default(), Pcg64Mcg::seed_from_u64(1));
            script.begin(&mut drawn, &mut rng);
            let (mut values, mut text) = (Vec::new(), String::new());
            for at in 0..script.steps(&drawn) {
                let step = script.step(&drawn, at);
                if let Some(prepared) = script.prepared(step.number) {
                    script.values(step.number, &mut drawn, &mut rng, &mut values);
                    assert!(prepared.matches(['$', '?']).count() >= values.len(), "a place for each value");
                }
                script.text(step.number, &mut drawn, &mut rng, &mut text);
            }
        }
    }
}

/// What is known of all values of a column, or of a value that is set.
#[derive(Debug, Clone, Copy)]
struct ColumnOf {
    /// Whole numbers as they are written: no sign before them but a minus, no zeros, within 64 bits.
    is_whole: bool,
    /// Numbers as SQLite writes them, with a point or without.
    is_decimal: bool,
    /// Letters, digits and `_`: they can be a part of a name.
    is_name: bool,
    longest: usize,
}

impl ColumnOf {
    fn all(rows: &Rows) -> Vec<Self> {
        let of = |column: usize| {
            let mut of = Self { is_whole: true, is_decimal: true, is_name: true, longest: 0 };
            for row in 0..rows.len() {
                let value = str::from_utf8(rows.value(row, column)).unwrap_or_default();
                of.is_whole = of.is_whole && value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
                of.is_decimal = of.is_decimal && value.parse::<f64>().is_ok_and(|number| number.to_string() == value);
                of.is_name = of.is_name && !value.is_empty() && is_name(value);
                of.longest = of.longest.max(value.len());
            }
            of
        };
        (0..rows.columns().names().len()).map(of).collect()
    }

    fn set(parts: &[Part], known: &[Self]) -> Self {
        let each = || parts.iter().map(|part| Self::of(part, known));
        let longest = each().fold(0_usize, |sum, of| sum.saturating_add(of.longest));
        Self {
            is_whole: matches!(parts, [_]) && each().all(|of| of.is_whole),
            is_decimal: matches!(parts, [_]) && each().all(|of| of.is_decimal),
            is_name: each().all(|of| of.is_name),
            longest,
        }
    }

    fn of(part: &Part, known: &[Self]) -> Self {
        const OTHER: ColumnOf = ColumnOf { is_whole: false, is_decimal: false, is_name: false, longest: 0 };
        match part {
            Part::Text(text) => Self { is_name: is_name(text), longest: text.len(), ..OTHER },
            Part::Variable(Variable::Number) => Self { is_whole: true, is_name: true, longest: NUMBER_BYTES, ..OTHER },
            Part::Variable(Variable::Random(low, _)) => {
                Self { is_whole: true, is_name: *low >= 0, longest: NUMBER_BYTES, ..OTHER }
            }
            Part::Variable(Variable::Uuid) => Self { longest: UUID_BYTES, ..OTHER },
            Part::Variable(Variable::Column(column)) => known.get(*column).copied().unwrap_or(OTHER),
        }
    }
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Looks whether all values of a statement can stand where they stand.
fn check(statement: &file::Statement, known: &[ColumnOf]) -> Result<(), String> {
    let mut longest = 0_usize;
    for piece in &statement.pieces {
        let (parts, is_name) = match piece {
            Piece::Text(text) => {
                longest = longest.saturating_add(text.len());
                continue;
            }
            Piece::Value { parts, .. } => (parts, false),
            Piece::OfName(parts) => (parts, true),
        };
        let of = ColumnOf::set(parts, known);
        // Each byte may have to be doubled.
        longest = longest.saturating_add(of.longest.saturating_mul(2));
        let names = parts.iter().filter(|part| matches!(part, Part::Variable(_)));
        if is_name && !names.map(|part| ColumnOf::of(part, known)).all(|of| of.is_name) {
            return Err("a variable within a name takes values of letters, digits and '_' only; elsewhere, put spaces around it".into());
        }
    }
    if longest > LONGEST_STATEMENT_BYTES {
        return Err(format!(
            "the statement can be longer than {} MiB, which is the most",
            LONGEST_STATEMENT_BYTES >> 20
        ));
    }
    Ok(())
}

/// The text with places for values; `None`: a name in it differs from op to op.
fn with_places(pieces: &[Piece], system: System) -> Option<String> {
    let (mut text, mut places) = (String::new(), 0);
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Value { .. } => {
                places += 1;
                match system {
                    System::Postgres => text.push_str(&format!("${places}")),
                    System::Mysql | System::Sqlite => text.push('?'),
                }
            }
            Piece::OfName(_) => return None,
        }
    }
    Some(text)
}
