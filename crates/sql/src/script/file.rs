//! Files of own SQL: transactions with names and weights, and their statements.
//!
//! ```text
//! -- name: pay
//! -- weight: 3
//! -- set: account = {rand:1..100000}
//! BEGIN;
//! UPDATE accounts SET balance = balance - 5 WHERE id = {account};
//! INSERT INTO history (account, note) VALUES ({account}, 'payment {n}');
//! COMMIT;
//!
//! -- name: look
//! -- weight: 7
//! SELECT balance FROM accounts WHERE id = {rand:1..100000};
//! ```
//!
//! The heads are those of other tools that name statements in files (`-- name:`). To a database they are comments, so that its own
//! shell takes the file, too, but for the variables.

use super::pieces::{self, Piece};
use crate::address::System;
use aws_lc_rs::digest::{SHA256, digest};
use duel_load::WorkloadError;
use duel_model::{Id, sanitize_line};
use duel_template::{Columns, Part, Rows, read_text};
use std::path::Path;

/// Largest file. Statements are written by hand, or by a program from a page of them.
const MOST_BYTES: usize = 16 << 20;
/// Statements of a file, at most: each is prepared on each connection, and has a number of 16 bits there.
pub(super) const MOST_STATEMENTS: usize = 4096;
/// Transactions of a file, at most: each has figures of its own in each slot.
const MOST_TRANSACTIONS: usize = 100;
/// Values of a statement, at most: SQLite takes 32,766, and the others 65,535.
const MOST_VALUES: usize = 32_766;
/// Names that a transaction may use, of columns and of values that it sets: each is looked up for each statement.
const MOST_NAMES: usize = 1000;
/// Largest weight: shares of a millionth.
const MOST_WEIGHT: u32 = 1_000_000;
/// What a transaction's time is counted under: its name with this behind it.
pub(super) const TIME: &str = "_ns";
/// Longest name of a transaction: with what stands behind it, it is one of a counter.
const LONGEST_NAME: usize = 24 - TIME.len();

/// What is wrong with a file, and on which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) what: String,
}

impl Flaw {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Read {
    /// Its name, safe to show.
    pub(super) name: String,
    /// SHA-256 of its bytes.
    pub(super) digest: String,
    pub(super) transactions: Vec<Transaction>,
}

/// What one op does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transaction {
    pub(super) line: usize,
    /// Where it has one: what its ops are counted under.
    pub(super) name: Option<Name>,
    pub(super) weight: u32,
    /// Values that stay the same within an op, in order; each may use those before it.
    pub(super) sets: Vec<(String, Vec<Part>)>,
    pub(super) statements: Vec<Statement>,
}

/// What the ops of a transaction are counted under, and their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) ops: Id,
    pub(super) time: Id,
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) pieces: Vec<Piece>,
    pub(super) sort: Sort,
}

/// What a statement does, as far as its first word tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Begin,
    /// COMMIT and its synonym END.
    Commit,
    Rollback,
    /// It reads rows.
    Reads,
    /// It changes rows, or may do so.
    Writes,
    /// It may make what others name: it defines, calls, sets.
    Defines,
    /// Something else: it locks, shows, tidies up.
    Other,
    /// Its first word begins no statement that we know of: one of a system like these, or a slip of the pen.
    Unknown,
}

/// Of these what makes nothing that another statement may name, and changes not which names are found.
const HARMLESS_WORDS: &str = "ANALYZE BINLOG CACHE CHECK CHECKPOINT CHECKSUM CLOSE CLUSTER COMMENT DEALLOCATE DESC DESCRIBE EXPLAIN \
    FETCH FLUSH GET GRANT HANDLER HELP KILL LISTEN LOCK MOVE NOTIFY OPEN OPTIMIZE PURGE REASSIGN REINDEX RELEASE REPAIR REVOKE \
    SAVEPOINT SECURITY SHOW SIGNAL TRUNCATE UNLISTEN UNLOCK VACUUM XA";

/// What begins a statement of PostgreSQL, MariaDB, MySQL or SQLite, by their manuals, beside what [`Sort::of`] knows by itself.
const OTHER_WORDS: &str = "ALTER ANALYZE ATTACH BACKUP BINLOG CACHE CALL CHANGE CHECK CHECKPOINT CHECKSUM CLONE CLOSE CLUSTER \
    COMMENT COPY CREATE DEALLOCATE DECLARE DESC DESCRIBE DETACH DISCARD DO DROP EXECUTE EXPLAIN FETCH FLUSH GET GRANT HANDLER HELP \
    IMPORT INSTALL KILL LISTEN LOAD LOCK MOVE NOTIFY OPEN OPTIMIZE PRAGMA PREPARE PURGE REASSIGN REFRESH REINDEX RELEASE RENAME \
    REPAIR RESET RESIGNAL RESTART REVOKE SAVEPOINT SECURITY SET SHOW SHUTDOWN SIGNAL START STOP TRUNCATE UNINSTALL UNLISTEN UNLOCK \
    USE VACUUM XA";

impl Sort {
    /// Whether statements of this sort can be prepared in every system; what is unknown has to be, for that is how a slip of the pen
    /// is found before load.
    pub(super) fn is_preparable(self) -> bool {
        matches!(self, Self::Reads | Self::Writes | Self::Unknown)
    }

    /// Whether it may change something.
    pub(super) fn may_write(self) -> bool {
        matches!(self, Self::Writes | Self::Defines | Self::Other | Self::Unknown)
    }

    fn of(pieces: &[Piece]) -> Self {
        let Some(Piece::Text(text)) = pieces.first() else { return Self::Defines };
        let mut text = text.as_str();
        while let Some((_, behind)) = text.strip_prefix("/*").and_then(|comment| comment.split_once("*/")) {
            text = behind.trim_start();
        }
        let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        let mut word = || words.next().unwrap_or_default().to_ascii_uppercase();
        let first = word();
        match first.as_str() {
            "BEGIN" => Self::Begin,
            "START" if word() == "TRANSACTION" => Self::Begin,
            "COMMIT" | "END" => Self::Commit,
            "ROLLBACK" if word() == "TO" => Self::Other,
            "ROLLBACK" | "ABORT" => Self::Rollback,
            // What writes behind WITH is not looked for.
            "SELECT" | "VALUES" | "TABLE" => Self::Reads,
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" | "WITH" => Self::Writes,
            // A bracket, say.
            "" => Self::Defines,
            first if is_one_of(first, HARMLESS_WORDS) => Self::Other,
            first if is_one_of(first, OTHER_WORDS) => Self::Defines,
            _ => Self::Unknown,
        }
    }
}

fn is_one_of(word: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// Reads a file of statements.
pub(super) fn read(path: &Path, system: System, rows: Option<&Rows>) -> Result<Read, WorkloadError> {
    let (name, text) = read_text(path)?;
    if text.len() > MOST_BYTES {
        return Err(WorkloadError(format!("{name} has more than {} MiB, which is the most", MOST_BYTES >> 20)));
    }
    let columns = rows.map_or(0, |rows| rows.columns().names().len());
    if columns > MOST_NAMES {
        return Err(WorkloadError(format!(
            "the file of values has {columns} columns; at most {MOST_NAMES} can be used"
        )));
    }
    let none = Columns::default();
    match parse(&text, system, rows.map_or(&none, Rows::columns)) {
        Ok(transactions) => Ok(Read { name, digest: digest_of(&text), transactions }),
        Err(flaw) => Err(WorkloadError(format!("{name}, line {}: {}", flaw.line, sanitize_line(&flaw.what)))),
    }
}

/// SHA-256 of a text, in hexadecimal digits.
pub(super) fn digest_of(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the text of one.
pub(super) fn parse(text: &str, system: System, columns: &Columns) -> Result<Vec<Transaction>, Flaw> {
    let mut reader = Reader { system, columns, transactions: Vec::new(), statements: 0 };
    let mut rest = text;
    let mut line = 1;
    loop {
        // Between statements: empty lines, comments, heads.
        let begin = rest.trim_start();
        line += rest[..rest.len() - begin.len()].matches('\n').count();
        rest = begin;
        if rest.is_empty() {
            break;
        }
        if let Some(comment) = rest.strip_prefix("--") {
            let (comment, behind) = comment.split_once('\n').unwrap_or((comment, ""));
            reader.head(comment.trim(), line)?;
            (rest, line) = (behind, line + 1);
            continue;
        }
        let statement = pieces::cut(rest, system, line)?;
        reader.statement(statement.text, statement.line)?;
        line += rest[..statement.end].matches('\n').count();
        rest = &rest[statement.end..];
    }
    reader.end(line)
}

struct Reader<'a> {
    system: System,
    columns: &'a Columns,
    transactions: Vec<Transaction>,
    statements: usize,
}

impl Reader<'_> {
    /// Takes a comment, which may be a head.
    fn head(&mut self, comment: &str, line: usize) -> Result<(), Flaw> {
        let word_end = comment.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(comment.len());
        let (word, rest) = comment.split_at(word_end);
        if !matches!(word, "name" | "weight" | "set") {
            return Ok(());
        }
        let Some(value) = rest.trim_start().strip_prefix(':') else {
            // A sentence may begin so.
            return match rest.split_whitespace().count() {
                0 | 1 => Err(Flaw::new(line, format!("a head is written '-- {word}: ...'"))),
                _ => Ok(()),
            };
        };
        let value = value.trim();
        match word {
            "name" => self.name(value, line),
            "weight" => self.weight(value, line),
            _ => self.set(value, line),
        }
    }

    fn name(&mut self, name: &str, line: usize) -> Result<(), Flaw> {
        let ids = || Some(Name { ops: name.parse().ok()?, time: format!("{name}{TIME}").parse().ok()? });
        let Some(ids) = ids().filter(|_| name.len() <= LONGEST_NAME) else {
            return Err(Flaw::new(
                line,
                format!(
                    "a name has up to {LONGEST_NAME} lower-case letters, digits, '-' and '_', and '{name}' is none"
                ),
            ));
        };
        let is_taken = crate::schema::counter::ALL.iter().any(|counter| [ids.ops, ids.time].contains(&counter.id()));
        if is_taken || name.ends_with(TIME) {
            return Err(Flaw::new(line, format!("'{name}' is the name of a counter of duel's own")));
        }
        if let Some(former) = self.transactions.iter().find(|one| one.name == Some(ids)) {
            return Err(Flaw::new(
                line,
                format!("'{name}' is the name of the transaction of line {}, too", former.line),
            ));
        }
        match self.transactions.last() {
            Some(last) if last.name.is_none() => Err(Flaw::new(
                line,
                format!(
                    "what begins on line {} has no name; where one transaction has a name, all have one",
                    last.line
                ),
            )),
            _ => self.begin(Some(ids), line),
        }
    }

    fn weight(&mut self, typed: &str, line: usize) -> Result<(), Flaw> {
        let weight = match typed.parse::<u32>() {
            Ok(0) => return Err(Flaw::new(line, "a weight of 0 means never; leave the transaction out")),
            Ok(weight) if weight <= MOST_WEIGHT => weight,
            _ => {
                return Err(Flaw::new(
                    line,
                    format!("a weight is a whole number from 1 to {MOST_WEIGHT}, not '{typed}'"),
                ));
            }
        };
        self.headed(line)?.weight = weight;
        Ok(())
    }

    fn set(&mut self, typed: &str, line: usize) -> Result<(), Flaw> {
        let Some((name, value)) = typed.split_once('=') else {
            return Err(Flaw::new(
                line,
                "a value is set by '-- set: NAME = VALUE', such as '-- set: id = {rand:1..1000}'",
            ));
        };
        let (name, value) = (name.trim().to_owned(), value.trim());
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !matches!(name.as_str(), "n" | "uuid" | "rand");
        if !is_name {
            return Err(Flaw::new(
                line,
                format!("'{name}' is no name for a value of its own: letters, digits and '_'"),
            ));
        }
        self.headed(line)?;
        let known = self.names(line)?;
        if known.names().len() >= MOST_NAMES {
            return Err(Flaw::new(
                line,
                format!("there are more than {MOST_NAMES} columns and values, which is the most"),
            ));
        }
        if known.position(&name).is_some() {
            return Err(Flaw::new(line, format!("there is a value of the name '{name}' already")));
        }
        let parts = duel_template::parse(value, &known).map_err(|what| Flaw::new(line, what))?;
        self.headed(line)?.sets.push((name, parts));
        Ok(())
    }

    /// The transaction that heads are for; they stand before its statements.
    fn headed(&mut self, line: usize) -> Result<&mut Transaction, Flaw> {
        if self.transactions.is_empty() {
            self.begin(None, line)?;
        }
        match self.transactions.last_mut() {
            Some(last) if last.statements.is_empty() => Ok(last),
            _ => Err(Flaw::new(
                line,
                "a weight or a value is set before the statements that it is for, behind '-- name: ...'",
            )),
        }
    }

    fn begin(&mut self, name: Option<Name>, line: usize) -> Result<(), Flaw> {
        self.check_last()?;
        if self.transactions.len() == MOST_TRANSACTIONS {
            return Err(Flaw::new(
                line,
                format!("there are more than {MOST_TRANSACTIONS} transactions, which is the most"),
            ));
        }
        let (sets, statements) = (Vec::new(), Vec::new());
        self.transactions.push(Transaction { line, name, weight: 1, sets, statements });
        Ok(())
    }

    /// The columns of the rows, and behind them the values that the transaction has set.
    fn names(&self, line: usize) -> Result<Columns, Flaw> {
        let sets = self.transactions.last().map_or(&[][..], |last| &last.sets);
        let names = self.columns.names().iter().cloned().chain(sets.iter().map(|(name, _)| name.clone()));
        Columns::of(names.collect()).map_err(|twice| Flaw::new(line, format!("two values are called '{twice}'")))
    }

    fn statement(&mut self, text: Vec<pieces::Cut<'_>>, line: usize) -> Result<(), Flaw> {
        if self.statements == MOST_STATEMENTS {
            return Err(Flaw::new(
                line,
                format!("there are more than {MOST_STATEMENTS} statements, which is the most"),
            ));
        }
        if self.transactions.is_empty() {
            self.begin(None, line)?;
        }
        let pieces = pieces::read(text, self.system, &self.names(line)?)?;
        if pieces.is_empty() {
            // A comment alone.
            return Ok(());
        }
        let values = pieces.iter().filter(|piece| !matches!(piece, Piece::Text(_))).count();
        if values > MOST_VALUES {
            return Err(Flaw::new(line, format!("a statement has more than {MOST_VALUES} values, which is the most")));
        }
        let sort = Sort::of(&pieces);
        self.statements += 1;
        if let Some(last) = self.transactions.last_mut() {
            last.statements.push(Statement { line, pieces, sort });
        }
        Ok(())
    }

    /// What ends here has statements, and leaves no transaction of the database open.
    fn check_last(&self) -> Result<(), Flaw> {
        let Some(last) = self.transactions.last() else { return Ok(()) };
        let mut open = None;
        for statement in &last.statements {
            match statement.sort {
                Sort::Begin => open = Some(statement.line),
                Sort::Commit | Sort::Rollback => open = None,
                Sort::Reads | Sort::Writes | Sort::Defines | Sort::Other | Sort::Unknown => {}
            }
        }
        match open {
            Some(line) => Err(Flaw::new(line, "the transaction that begins here is not ended by COMMIT or ROLLBACK")),
            None if last.statements.is_empty() => Err(Flaw::new(last.line, "there is no statement behind this head")),
            None => Ok(()),
        }
    }

    fn end(self, line: usize) -> Result<Vec<Transaction>, Flaw> {
        self.check_last()?;
        if self.transactions.is_empty() {
            return Err(Flaw::new(line, "there is no statement in the file"));
        }
        Ok(self.transactions)
    }
}
