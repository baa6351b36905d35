//! A kind of work, as whoever makes experiments with it sees it.

use crate::session::{Session, SessionError};
use crate::workload::{WorkloadError, WorkloadFactory};
use duel_model::{Facts, KindPlan, Plan, Schema, Tally};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A kind of work that brings all that it needs: what it declares of itself, which targets are its own, and how one of them is
/// made ready for load.
pub trait Kind: Sync {
    /// What it declares of itself.
    fn schema(&self) -> &'static Schema;

    /// Whether a target with this address is one of its own.
    fn claims(&self, address: &str) -> bool;

    /// The address as it may be kept and shown, from what was typed: a password in it is taken out, and remembered by the
    /// kind for this process alone.
    ///
    /// # Errors
    ///
    /// The address cannot be understood: a sentence for the user.
    fn without_secrets(&self, typed: &str) -> Result<String, WorkloadError> {
        Ok(typed.to_owned())
    }

    /// Checks an address and settings without doing anything with the target.
    fn check(&self, kind: &KindPlan, address: &str) -> Result<(), WorkloadError>;

    /// Makes sure that the target does what is asked for, and tells what it is.
    fn prepare(&self, plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError>;

    /// The same, which ends early once `stop` is set: for kinds whose targets take long to be made ready.
    ///
    /// # Errors
    ///
    /// As [`Kind::prepare`].
    fn prepare_unless(
        &self,
        plan: &Plan,
        kind: &KindPlan,
        address: &str,
        stop: &AtomicBool,
    ) -> Result<Prepared, WorkloadError> {
        let _ = stop;
        self.prepare(plan, kind, address)
    }

    /// Holds the settings of an earlier run, which is to be repeated or asked further, to the files that it has read, as the facts of
    /// one of its targets tell them: by now they may be others, and would be taken for them.
    fn hold(&self, kind: &mut KindPlan, facts: &Facts) {
        let _ = (kind, facts);
    }
}

/// A target that is ready for load.
#[derive(Debug)]
pub struct Prepared {
    /// What is known of it.
    pub facts: Facts,
    /// What opens sessions on it.
    pub opens: Arc<dyn Opens>,
}

/// Opens sessions on one target.
pub trait Opens: fmt::Debug + Send + Sync {
    /// Opens one with so many lanes and threads.
    fn session(&self, lanes: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError>;

    /// A slot is about to begin on it.
    fn slot_begins(&self) {}

    /// A slot is over, in which its load was this. What the target itself counted meanwhile is added; what it does not tell is
    /// left out.
    fn slot_ended(&self, tally: &mut Tally) {
        let _ = tally;
    }

    /// What the target tells of load when all of it is over, while sessions are still open.
    fn told_after(&self) -> Facts {
        Facts::default()
    }

    /// What of the target does not agree with what load has done to it, in one sentence without the target's name; asked when
    /// all load is over and its sessions are closed. `Err`: why that could not be found out.
    fn contradiction(&self) -> Result<Option<String>, String> {
        Ok(None)
    }
}

impl<F: WorkloadFactory + Clone + fmt::Debug> Opens for F {
    fn session(&self, lanes: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
        Session::open(self.clone(), lanes, threads, stop)
    }
}
