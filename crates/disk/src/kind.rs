//! Disk work as a kind: which targets it has, and how one is made ready.

use crate::place::{Place, is_path, path};
use crate::schema::SCHEMA;
use crate::settings::{Engine, Work};
use crate::target::Target;
use crate::{calls, errors, facts, file_ops, uring};
use duel_load::{Opens, PlainKind, Prepared, Session, SessionError, WorkloadError};
use duel_model::{KindPlan, Plan, Schema};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The kind.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl PlainKind for Disk {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn claims(&self, address: &str) -> bool {
        is_path(address)
    }

    fn check(&self, kind: &KindPlan, address: &str) -> Result<(), WorkloadError> {
        let path = path(address);
        if path.as_os_str().is_empty() || address.chars().any(char::is_control) {
            return Err(errors::cannot("file: needs the path of a folder, a file or a device".to_owned()));
        }
        Work::of(kind).map(drop)
    }

    fn prepare(&self, plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError> {
        self.prepare_unless(plan, kind, address, &AtomicBool::new(false))
    }

    fn prepare_unless(
        &self,
        plan: &Plan,
        kind: &KindPlan,
        address: &str,
        stop: &AtomicBool,
    ) -> Result<Prepared, WorkloadError> {
        self.check(kind, address)?;
        let work = Work::of(kind)?;
        let place = Place::of(address)?;
        let mut target = Target::ready(work, place, plan.load.connections.max(1), plan.compare.seed, stop)?;
        target.op_timeout_ns = plan.load.op_timeout_ns;
        let target = Arc::new(target);
        Ok(Prepared { facts: facts::of(&target), opens: Arc::new(Ready { target }) })
    }
}

/// What opens sessions.
#[derive(Debug)]
struct Ready {
    target: Arc<Target>,
}

impl Opens for Ready {
    fn slot_begins(&self) {
        self.target.slot_begins();
    }

    fn session(&self, threads: u32, _of_duel: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
        let threads = threads.max(1);
        if self.target.files.is_some() {
            return file_ops::session(&self.target, threads, stop);
        }
        match self.target.engine {
            Engine::Pread => calls::session(&self.target, threads, stop),
            Engine::Uring | Engine::Auto => {
                Session::open(uring::Factory { target: Arc::clone(&self.target) }, threads, threads, stop)
            }
        }
    }
}
