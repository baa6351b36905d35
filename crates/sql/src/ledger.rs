//! What load has changed in the tables, so that they can be held against it afterwards: a fast database that loses rows is not
//! a fast one.

use crate::mix::{Place, Statement};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Tables, at most: what the setting takes.
const MOST_TABLES: usize = 4096;

/// What statements have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Rows more than before.
    pub(crate) rows: i64,
    /// By how much the sum of all `k` grew by updates and new rows.
    pub(crate) k: i64,
    /// Rows went and came with another `k`.
    pub(crate) has_other_k: bool,
}

impl Change {
    /// A statement has changed so many rows; the row of `place` is what was drawn for it: the `k` of a new row.
    pub(crate) fn note(&mut self, statement: Statement, affected: u64, place: Place) {
        let affected = i64::try_from(affected).unwrap_or(i64::MAX);
        match statement {
            Statement::IndexUpdate => self.k = self.k.saturating_add(affected),
            Statement::Delete => self.rows = self.rows.saturating_sub(affected),
            Statement::InsertBack => self.rows = self.rows.saturating_add(affected),
            Statement::InsertNew => {
                self.rows = self.rows.saturating_add(affected);
                self.k = self.k.saturating_add(affected.saturating_mul(place.row));
            }
            Statement::BulkInsert => {
                self.rows = self.rows.saturating_add(affected);
                // The k of a row is its number, and the numbers are those from the first on.
                let sum = i128::from(affected) * i128::from(place.row)
                    + i128::from(affected) * (i128::from(affected) - 1) / 2;
                self.k = self.k.saturating_add(i64::try_from(sum).unwrap_or(i64::MAX));
            }
            _ => return,
        }
        self.has_other_k |= matches!(statement, Statement::Delete | Statement::InsertBack);
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What the tables hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) rows: i64,
    pub(crate) sum_of_k: i64,
}

/// The changes of all load on some tables, by this process.
#[derive(Debug)]
pub(crate) struct Ledger {
    before: Content,
    rows: AtomicI64,
    k: AtomicI64,
    has_other_k: AtomicBool,
    /// Rows of which nobody knows whether they were written.
    uncertain: AtomicU64,
}

/// What all treatments on one database have in common.
#[derive(Debug, Default)]
pub(crate) struct Common {
    /// By number and size of the tables.
    ledgers: Mutex<BTreeMap<(u32, u64), Arc<Ledger>>>,
    /// Some treatment writes and has no ledger.
    has_other_writers: AtomicBool,
    /// Some treatment deletes rows: another one may not find them.
    deletes: Arc<AtomicBool>,
    /// The last row of each table that bulk inserts have written, whichever treatment did so.
    last_rows: OnceLock<LastRows>,
}

/// The last row of each table.
pub(crate) type LastRows = Arc<[AtomicI64]>;

/// By the identity of the database: two targets may be the same database under two names.
static DATABASES: Mutex<BTreeMap<String, Arc<Common>>> = Mutex::new(BTreeMap::new());

impl Common {
    pub(crate) fn of(identity: &str) -> Arc<Self> {
        let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(databases.entry(identity.to_owned()).or_default())
    }

    /// The ledger of these tables; a new one where no load was on them, and what they hold is as given.
    pub(crate) fn ledger(&self, tables: (u32, u64), content: Content) -> Arc<Ledger> {
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(ledgers.entry(tables).or_insert_with(|| Arc::new(Ledger::new(content))))
    }

    /// The last row of each table.
    pub(crate) fn last_rows(&self) -> LastRows {
        let none = || (0..MOST_TABLES).map(|_| AtomicI64::new(0)).collect();
        Arc::clone(self.last_rows.get_or_init(none))
    }

    pub(crate) fn note_other_writer(&self) {
        self.has_other_writers.store(true, Ordering::Relaxed);
    }

    /// Whether one ledger has all that this process has written. Tables of other numbers and sizes are partly the same tables,
    /// and a ledger does not see what is done under another one.
    pub(crate) fn has_one_ledger(&self) -> bool {
        let ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers.len() == 1 && !self.has_other_writers.load(Ordering::Relaxed)
    }

    /// Whether some treatment deletes rows, now or from some time on.
    pub(crate) fn deletes(&self) -> &Arc<AtomicBool> {
        &self.deletes
    }
}

impl Ledger {
    fn new(before: Content) -> Self {
        let (rows, k) = (AtomicI64::new(0), AtomicI64::new(0));
        Self { before, rows, k, has_other_k: AtomicBool::new(false), uncertain: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, change: Change) {
        self.rows.fetch_add(change.rows, Ordering::Relaxed);
        self.k.fetch_add(change.k, Ordering::Relaxed);
        self.has_other_k.fetch_or(change.has_other_k, Ordering::Relaxed);
    }

    /// Of an op nobody knows whether it has written up to so many rows; `moves_k`: it may have taken a `k` away, or brought one.
    pub(crate) fn add_uncertain(&self, moves_k: bool, rows: u64) {
        self.has_other_k.fetch_or(moves_k, Ordering::Relaxed);
        self.uncertain.fetch_add(rows, Ordering::Relaxed);
    }

    /// What of the tables' content does not agree with what was done; none where all does.
    pub(crate) fn disagreement(&self, now: Content) -> Option<String> {
        let slack = self.uncertain.load(Ordering::Relaxed);
        let expected = self.before.rows.saturating_add(self.rows.load(Ordering::Relaxed));
        if now.rows.abs_diff(expected) > slack {
            return Some(format!(
                "the tables have {} rows where {expected} must be after what was inserted and deleted{}; rows were lost or made \
                 up, or somebody else wrote to the tables",
                now.rows,
                within(slack)
            ));
        }
        let expected = self.before.sum_of_k.saturating_add(self.k.load(Ordering::Relaxed));
        if !self.has_other_k.load(Ordering::Relaxed) && now.sum_of_k.abs_diff(expected) > slack {
            return Some(format!(
                "the sum of all k is {} where {expected} must be after what was updated{}; updates were lost or made up, or \
                 somebody else wrote to the tables",
                now.sum_of_k,
                within(slack)
            ));
        }
        None
    }
}

fn within(slack: u64) -> String {
    if slack == 0 { String::new() } else { format!(", give or take {slack} that ended without an answer") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(row: i64) -> Place {
        Place { row, ..Place::default() }
    }

    #[test]
    fn what_was_done_has_to_be_there_and_nothing_else() {
        let ledger = Ledger::new(Content { rows: 100, sum_of_k: 5_000 });
        let mut change = Change::default();
        change.note(Statement::IndexUpdate, 1, at(9));
        change.note(Statement::PointSelect, 0, at(9));
        ledger.add(change);
        assert_eq!(ledger.disagreement(Content { rows: 100, sum_of_k: 5_001 }), None);
        assert!(ledger.disagreement(Content { rows: 100, sum_of_k: 5_000 }).unwrap().contains("sum of all k"));
        ledger.add_uncertain(false, 1);
        assert_eq!(ledger.disagreement(Content { rows: 100, sum_of_k: 5_000 }), None);
        assert!(ledger.disagreement(Content { rows: 98, sum_of_k: 5_001 }).unwrap().contains("98 rows where 100"));
        let mut change = Change::default();
        change.note(Statement::Delete, 1, at(9));
        ledger.add(change);
        assert_eq!(ledger.disagreement(Content { rows: 99, sum_of_k: 7 }), None, "another k left with the row");
    }

    #[test]
    fn a_new_row_brings_the_k_that_was_drawn_and_one_that_may_be_there_any() {
        let ledger = Ledger::new(Content { rows: 100, sum_of_k: 5_000 });
        let mut change = Change::default();
        change.note(Statement::InsertNew, 1, at(70));
        ledger.add(change);
        assert_eq!(ledger.disagreement(Content { rows: 101, sum_of_k: 5_070 }), None);
        assert!(ledger.disagreement(Content { rows: 101, sum_of_k: 5_069 }).unwrap().contains("somebody else"));
        ledger.add_uncertain(true, 1);
        assert_eq!(ledger.disagreement(Content { rows: 102, sum_of_k: 5_120 }), None);
        change.note(Statement::IndexUpdate, u64::MAX, at(1));
        change.note(Statement::InsertNew, u64::MAX, at(i64::MAX));
        assert_eq!((change.rows, change.k), (i64::MAX, i64::MAX), "no number ends the process");
        let mut change = Change::default();
        change.note(Statement::BulkInsert, 3, at(5));
        assert_eq!((change.rows, change.k), (3, 5 + 6 + 7));
        change.note(Statement::BulkInsert, u64::MAX, at(i64::MAX));
        assert_eq!((change.rows, change.k), (i64::MAX, i64::MAX));
    }

    #[test]
    fn only_a_ledger_that_is_alone_knows_all() {
        let common = Common::default();
        let content = Content { rows: 1, sum_of_k: 1 };
        let one = common.ledger((1, 100), content);
        assert!(Arc::ptr_eq(&one, &common.ledger((1, 100), content)) && common.has_one_ledger());
        common.ledger((4, 100), content);
        assert!(!common.has_one_ledger());
        let other = Common::default();
        other.ledger((1, 100), content);
        other.note_other_writer();
        assert!(!other.has_one_ledger());
    }
}
