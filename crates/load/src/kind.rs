//! A kind of work, as whoever makes experiments with it sees it.

use crate::network::Network;
use crate::session::{Session, SessionError};
use crate::workload::{WorkloadError, WorkloadFactory};
use duel_model::{CopyPlan, Facts, KindPlan, Plan, Schema, Tally, Threads, TwinReading, WorkloadPlan};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A kind of work that brings all that it needs: what it declares of itself, which targets are its own, and how one of them is
/// made ready for load. One whose settings are all of its plan is a [`PlainKind`].
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

    /// Checks an address without doing anything with the target.
    fn check_address(&self, address: &str) -> Result<(), WorkloadError>;

    /// Checks an address, and what is to be done there, without doing anything with the target.
    fn check(&self, workload: &WorkloadPlan, address: &str) -> Result<(), WorkloadError>;

    /// Makes sure that the target does what is asked for, and tells what it is.
    fn contact(&self, asked: &Asked<'_>) -> Result<Contact, WorkloadError>;

    /// The same without sending anything, where the kind can do that: a target that does not answer is loaded all the same.
    fn assume(&self, asked: &Asked<'_>) -> Result<Contact, WorkloadError> {
        self.contact(asked)
    }

    /// Holds what is asked of targets in an earlier run, which is to be repeated or asked further, to the files that it has read, as
    /// the facts of one of its targets tell them: by now they may be others, and would be taken for them.
    fn hold(&self, workload: &mut WorkloadPlan, facts: &Facts) {
        let _ = (workload, facts);
    }

    /// The work as it is sent to all targets, from what [`Contact::sent`] tells of each of them. It is the same for all of them, or
    /// they could not be compared.
    ///
    /// # Errors
    ///
    /// It is not: a sentence for the user.
    fn settled(&self, plan: &Plan, sent: &[Option<&WorkloadPlan>]) -> Result<WorkloadPlan, WorkloadError> {
        let _ = sent;
        Ok(plan.workload.clone())
    }

    /// Whether a target that was started anew does what it did before, from what was known of it and what is now; if not, what
    /// is different.
    fn has_returned(&self, before: Option<&Facts>, now: Option<&Facts>) -> Result<(), String> {
        let _ = (before, now);
        Ok(())
    }

    /// What connections to targets lead to.
    fn leads_to(&self, workload: &WorkloadPlan) -> LeadsTo {
        let _ = workload;
        LeadsTo::Unknown
    }

    /// The port that the server of a target with this address listens on, as far as the address tells.
    fn server_port(&self, address: &str) -> Option<u16> {
        let _ = address;
        None
    }

    /// The Unix socket of this machine by which a target with this address is reached.
    fn socket(&self, address: &str) -> Option<PathBuf> {
        let _ = address;
        None
    }

    /// The process that serves a target which is reached by a Unix socket.
    ///
    /// # Errors
    ///
    /// It is not known which one that is: a sentence for the user, without the target's name.
    fn listener(&self, plan: &Plan, address: &str) -> Result<u32, String> {
        let _ = (plan, address);
        Err("who listens on a Unix socket is not asked".to_owned())
    }

    /// Other addresses of this machine from which all of these can be reached; why there is none, otherwise.
    fn other_sources(&self, peers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
        let _ = peers;
        Err("not available here: where connections come from cannot be set".to_owned())
    }

    /// Makes a private copy of a target on this machine and waits until it serves, or until `stop` is set. The caller has asked the
    /// user for leave, and is told some times per second how far it is.
    ///
    /// # Errors
    ///
    /// Why there is none: a sentence for the user.
    fn copy(
        &self,
        plan: &Plan,
        address: &str,
        order: &CopyPlan,
        stop: &AtomicBool,
        tells: &dyn Fn(Copying),
    ) -> Result<Box<dyn PrivateCopy>, WorkloadError> {
        let _ = (plan, address, order, stop, tells);
        Err(no_copies())
    }

    /// Whether what carries ops outlives them: connections, or processes that work.
    fn keeps_lanes(&self, workload: &WorkloadPlan) -> bool {
        let _ = workload;
        matches!(self.schema().threads, Threads::Beside | Threads::Connections)
    }

    /// Whether a slot may be run in many short turns: nothing is done around a turn, and a lane that rests for some milliseconds
    /// goes on as if it had not.
    fn takes_turns(&self) -> bool {
        false
    }

    /// Whether ops differ in what they ask for.
    fn ops_differ(&self, workload: &WorkloadPlan) -> bool {
        let _ = workload;
        false
    }

    /// Ops after which what they ask for in turn is gone through; `None` where they do not go through anything in turn.
    fn round_ops(&self, workload: &WorkloadPlan, address: &str) -> Option<u64> {
        let _ = (workload, address);
        None
    }

    /// Descriptors that each lane has open for each place that it is connected to.
    fn descriptors_per_lane(&self) -> u64 {
        // Pipes to the child process of each lane; a connection, and a socket for what goes beside it.
        if self.schema().lanes_are_threads() || self.schema().threads == Threads::Connections { 2 } else { 0 }
    }

    /// Descriptors that each worker has open beside its event loop.
    fn descriptors_per_worker(&self, workload: &WorkloadPlan) -> u64 {
        let _ = workload;
        0
    }
}

/// A kind of work whose settings are all of its plan.
pub trait PlainKind: Sync {
    /// See [`Kind::schema`].
    fn schema(&self) -> &'static Schema;

    /// See [`Kind::claims`].
    fn claims(&self, address: &str) -> bool;

    /// See [`Kind::without_secrets`].
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
    /// As [`PlainKind::prepare`].
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

    /// See [`Kind::server_port`].
    fn server_port(&self, address: &str) -> Option<u16> {
        let _ = address;
        None
    }

    /// See [`Kind::socket`].
    fn socket(&self, address: &str) -> Option<PathBuf> {
        let _ = address;
        None
    }

    /// See [`Kind::listener`].
    ///
    /// # Errors
    ///
    /// As there.
    fn listener(&self, plan: &Plan, address: &str) -> Result<u32, String> {
        let _ = (plan, address);
        Err("who listens on a Unix socket is not asked".to_owned())
    }

    /// See [`Kind::hold`].
    fn hold(&self, kind: &mut KindPlan, facts: &Facts) {
        let _ = (kind, facts);
    }

    /// See [`Kind::copy`].
    fn copy(
        &self,
        plan: &Plan,
        address: &str,
        order: &CopyPlan,
        stop: &AtomicBool,
        tells: &dyn Fn(Copying),
    ) -> Result<Box<dyn PrivateCopy>, WorkloadError> {
        let _ = (plan, address, order, stop, tells);
        Err(no_copies())
    }
}

/// How far the making of a private copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copying {
    /// What is done now, as a sentence without a full stop.
    pub step: &'static str,
    /// Bytes that it has by now, and about how many it will have; `None`: this step adds none.
    pub bytes: Option<(u64, u64)>,
}

/// A private copy of a target. It ends, and all that it wrote is removed, when this is dropped and when this process ends.
pub trait PrivateCopy: fmt::Debug + Send {
    /// Where it is reached.
    fn address(&self) -> &str;

    /// What it was made as.
    fn reading(&self) -> &TwinReading;
}

impl<K: PlainKind> Kind for K {
    fn schema(&self) -> &'static Schema {
        PlainKind::schema(self)
    }

    fn claims(&self, address: &str) -> bool {
        PlainKind::claims(self, address)
    }

    fn without_secrets(&self, typed: &str) -> Result<String, WorkloadError> {
        PlainKind::without_secrets(self, typed)
    }

    fn check_address(&self, address: &str) -> Result<(), WorkloadError> {
        PlainKind::check(self, &KindPlan::of(PlainKind::schema(self)), address)
    }

    fn check(&self, workload: &WorkloadPlan, address: &str) -> Result<(), WorkloadError> {
        PlainKind::check(self, plain(workload)?, address)
    }

    fn contact(&self, asked: &Asked<'_>) -> Result<Contact, WorkloadError> {
        let kind = plain(&asked.plan.workload)?;
        let Prepared { facts, opens } = self.prepare_unless(asked.plan, kind, asked.address, asked.stop)?;
        let facts = Some(facts).filter(|facts| !facts.0.is_empty());
        Ok(Contact { opens, address: asked.address.to_owned(), sent: None, facts })
    }

    fn server_port(&self, address: &str) -> Option<u16> {
        PlainKind::server_port(self, address)
    }

    fn socket(&self, address: &str) -> Option<PathBuf> {
        PlainKind::socket(self, address)
    }

    fn listener(&self, plan: &Plan, address: &str) -> Result<u32, String> {
        PlainKind::listener(self, plan, address)
    }

    fn hold(&self, workload: &mut WorkloadPlan, facts: &Facts) {
        if let WorkloadPlan::Plain(kind) = workload {
            PlainKind::hold(self, kind, facts);
        }
    }

    fn copy(
        &self,
        plan: &Plan,
        address: &str,
        order: &CopyPlan,
        stop: &AtomicBool,
        tells: &dyn Fn(Copying),
    ) -> Result<Box<dyn PrivateCopy>, WorkloadError> {
        PlainKind::copy(self, plan, address, order, stop, tells)
    }
}

fn no_copies() -> WorkloadError {
    WorkloadError("targets of this kind have no private copies".to_owned())
}

fn plain(workload: &WorkloadPlan) -> Result<&KindPlan, WorkloadError> {
    match workload {
        WorkloadPlan::Plain(kind) => Ok(kind),
        WorkloadPlan::Http(_) => Err(WorkloadError("these settings are of another kind of work".to_owned())),
    }
}

/// Which target is to be made ready, and for what.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The plan whose work it is; of one with factors, a treatment of it.
    pub plan: &'a Plan,
    /// The work without any treatment: what [`Contact::sent`] is told of.
    pub untreated: &'a WorkloadPlan,
    /// The target's address.
    pub address: &'a str,
    /// What connections are made to in place of what the address's name leads to, where that is known from before.
    pub pin: Option<SocketAddr>,
    /// The network that they are made in, where that is not our own.
    pub network: Option<&'a Network>,
    /// Ends it early once it is set.
    pub stop: &'a Arc<AtomicBool>,
}

/// A target that is ready for load.
#[derive(Debug, Clone)]
pub struct Contact {
    /// What opens sessions on it.
    pub opens: Arc<dyn Opens>,
    /// Its address: where load is sent, which may be elsewhere than what was asked for.
    pub address: String,
    /// The untreated work as it is sent there, where that need not be what was asked for.
    pub sent: Option<WorkloadPlan>,
    /// What is known of it; `None`: it was not asked.
    pub facts: Option<Facts>,
}

/// A target of a [`PlainKind`] that is ready for load.
#[derive(Debug)]
pub struct Prepared {
    /// What is known of it.
    pub facts: Facts,
    /// What opens sessions on it.
    pub opens: Arc<dyn Opens>,
}

/// What connections to targets lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadsTo {
    /// The target's own server, at the address that its facts tell.
    Server,
    /// The target's own server, by a Unix socket.
    UnixSocket,
    /// Somebody between.
    Proxy,
    /// Not known.
    Unknown,
}

/// Opens sessions on one target.
pub trait Opens: fmt::Debug + Send + Sync {
    /// Opens one with so many lanes and threads.
    fn session(&self, lanes: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError>;

    /// Whether this is among the addresses that the target's name led to.
    fn leads_to(&self, peer: &SocketAddr) -> bool {
        let _ = peer;
        false
    }

    /// Ops that differ go on behind those of earlier load, of which each worker began so many at most.
    fn go_on_after(&self, begun: u64, workers: u32) {
        let _ = (begun, workers);
    }

    /// Ops that differ are the first so many of each worker, again and again, in place of further ones.
    fn go_round_in(&self, ops: u64) {
        let _ = ops;
    }

    /// To how many places each lane is connected, as far as that is known.
    fn places(&self) -> u64 {
        1
    }

    /// Pairs of a local and a remote address that connections are spread over.
    fn address_pairs(&self) -> usize {
        1
    }

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

    fn address_pairs(&self) -> usize {
        WorkloadFactory::address_pairs(self)
    }
}
