//! Disk work as a kind, on systems that it is not made for: it knows its targets, and says so.

use crate::schema::SCHEMA;
use duel_load::{PlainKind, Prepared, WorkloadError};
use duel_model::{KindPlan, Plan, Schema};

/// The kind.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl PlainKind for Disk {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn claims(&self, address: &str) -> bool {
        ["/", "./", "../", "file:"].iter().any(|begin| address.starts_with(begin))
    }

    fn check(&self, _kind: &KindPlan, _address: &str) -> Result<(), WorkloadError> {
        Err(WorkloadError("work on files and devices needs Linux: not available here".into()))
    }

    fn prepare(&self, _plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError> {
        self.check(kind, address)?;
        Err(WorkloadError("work on files and devices needs Linux: not available here".into()))
    }
}
