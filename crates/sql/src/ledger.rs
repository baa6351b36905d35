//! What load has changed in the tables, so that they can be held against it afterwards: a fast database that loses rows is not
//! a fast one.

use crate::mix::Statement;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What statements have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Rows more than before.
    pub(crate) rows: i64,
    /// By how much the sum of all `k` grew by updates.
    pub(crate) k: i64,
    /// Rows went and came with another `k`.
    pub(crate) has_other_k: bool,
}

impl Change {
    /// A statement has changed so many rows.
    pub(crate) fn note(&mut self, statement: Statement, affected: u64) {
        let affected = affected as i64;
        match statement {
            Statement::IndexUpdate => self.k += affected,
            Statement::Delete => self.rows -= affected,
            Statement::InsertBack | Statement::InsertNew => self.rows += affected,
            _ => return,
        }
        self.has_other_k |= statement != Statement::IndexUpdate;
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
    /// Ops of which nobody knows whether they have written.
    uncertain: AtomicU64,
}

/// By the identity of database and tables: two targets may be the same database under two names.
static LEDGERS: Mutex<BTreeMap<String, Arc<Ledger>>> = Mutex::new(BTreeMap::new());

impl Ledger {
    fn new(before: Content) -> Self {
        let (rows, k) = (AtomicI64::new(0), AtomicI64::new(0));
        Self { before, rows, k, has_other_k: AtomicBool::new(false), uncertain: AtomicU64::new(0) }
    }

    /// The one of these tables; a new one where no load was on them, and what they hold is as given.
    pub(crate) fn of(identity: &str, content: Content) -> Arc<Self> {
        let mut ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(ledgers.entry(identity.to_owned()).or_insert_with(|| Arc::new(Self::new(content))))
    }

    pub(crate) fn add(&self, change: Change) {
        self.rows.fetch_add(change.rows, Ordering::Relaxed);
        self.k.fetch_add(change.k, Ordering::Relaxed);
        self.has_other_k.fetch_or(change.has_other_k, Ordering::Relaxed);
    }

    pub(crate) fn add_uncertain(&self) {
        self.uncertain.fetch_add(1, Ordering::Relaxed);
    }

    /// What of the tables' content does not agree with what was done; none where all does.
    pub(crate) fn disagreement(&self, now: Content) -> Option<String> {
        let slack = self.uncertain.load(Ordering::Relaxed) as i64;
        let expected = self.before.rows + self.rows.load(Ordering::Relaxed);
        if (now.rows - expected).abs() > slack {
            return Some(format!(
                "the tables have {} rows where {expected} must be after what was inserted and deleted{}",
                now.rows,
                within(slack)
            ));
        }
        let expected = self.before.sum_of_k + self.k.load(Ordering::Relaxed);
        if !self.has_other_k.load(Ordering::Relaxed) && (now.sum_of_k - expected).abs() > slack {
            return Some(format!(
                "the sum of all k is {} where {expected} must be after what was updated{}",
                now.sum_of_k,
                within(slack)
            ));
        }
        None
    }
}

fn within(slack: i64) -> String {
    if slack == 0 { String::new() } else { format!(", give or take {slack} that ended without an answer") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_has_to_be_there_and_nothing_else() {
        let ledger = Ledger::new(Content { rows: 100, sum_of_k: 5_000 });
        let mut change = Change::default();
        change.note(Statement::IndexUpdate, 1);
        change.note(Statement::PointSelect, 0);
        ledger.add(change);
        assert_eq!(ledger.disagreement(Content { rows: 100, sum_of_k: 5_001 }), None);
        assert!(ledger.disagreement(Content { rows: 100, sum_of_k: 5_000 }).unwrap().contains("sum of all k"));
        ledger.add_uncertain();
        assert_eq!(ledger.disagreement(Content { rows: 100, sum_of_k: 5_000 }), None);
        assert!(ledger.disagreement(Content { rows: 98, sum_of_k: 5_001 }).unwrap().contains("98 rows where 100"));
        let mut change = Change::default();
        change.note(Statement::Delete, 1);
        ledger.add(change);
        assert_eq!(ledger.disagreement(Content { rows: 99, sum_of_k: 7 }), None, "another k left with the row");
    }
}
