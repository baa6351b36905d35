//! How load on one target is prepared: all that can be wrong with a plan or an address is found before any load.

use crate::link::tls::TlsClient;
use crate::reach::address::Address;
use crate::reach::proxy::Tunnel;
use crate::reach::resolve::Proof;
use crate::shared::{Http2Shared, Requests, Shared};
use crate::{Http, Http2};
use duel_load::{Network, Session, SessionError, WorkerId, WorkloadError, WorkloadFactory};
use duel_model::{HttpPlan, Nanos, Schema};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Prepares load on one target: everything that can be wrong with a plan or an address is found here. It makes [`Http`]
/// workloads; where the plan wants HTTP/2, [`HttpFactory::session`] has [`Http2`] ones.
#[derive(Debug, Clone)]
pub struct HttpFactory {
    pub(crate) shared: Arc<Shared>,
}

/// What is to be known of a plan's requests before any is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestsSeen {
    /// What is worth a word to the user about the files that they are made of.
    pub note: Option<String>,
    /// One of them may change something on the server.
    pub may_write: bool,
}

/// Reads what a plan's requests are made of and checks it, without touching the network. `address` is that of a target.
pub fn check_requests(plan: &HttpPlan, address: &str) -> Result<RequestsSeen, WorkloadError> {
    Ok(match Requests::build(plan, &Address::parse(address)?.url, address)? {
        Requests::One(_) => RequestsSeen { note: None, may_write: plan.may_write() },
        Requests::Many(repertoire) => {
            RequestsSeen { note: repertoire.note().map(str::to_owned), may_write: repertoire.may_write() }
        }
    })
}

/// Ops after which a plan's list of requests, and its rows of values, are gone through; `None` where ops do not go through
/// any in turn. `address` is that of a target.
pub(crate) fn round_ops(plan: &HttpPlan, address: &str) -> Result<Option<u64>, WorkloadError> {
    Ok(match Requests::build(plan, &Address::parse(address)?.url, address)? {
        Requests::One(_) => None,
        Requests::Many(repertoire) => repertoire.round_ops(),
    })
}

impl HttpFactory {
    /// Prepares load on one address: parses and resolves it, connects to choose among its addresses, loads certificates
    /// and the request's body. Errors are sentences for the user.
    pub fn prepare(plan: &HttpPlan, address: &str, connect_timeout_ns: Nanos) -> Result<Self, WorkloadError> {
        Self::build(plan, address, connect_timeout_ns, Proof::Needed, None)
    }

    /// The same, with all connections made in another network.
    pub fn prepare_in(
        plan: &HttpPlan,
        address: &str,
        connect_timeout_ns: Nanos,
        network: Option<&Network>,
    ) -> Result<Self, WorkloadError> {
        Self::build(plan, address, connect_timeout_ns, Proof::Needed, network)
    }

    /// As [`HttpFactory::prepare`], but that nobody accepts connections is left for the load to find out; a name that
    /// leads to one address gets no connection before.
    pub fn assume(plan: &HttpPlan, address: &str, connect_timeout_ns: Nanos) -> Result<Self, WorkloadError> {
        Self::build(plan, address, connect_timeout_ns, Proof::Unneeded, None)
    }

    fn build(
        plan: &HttpPlan,
        address: &str,
        connect_timeout_ns: Nanos,
        proof: Proof,
        network: Option<&Network>,
    ) -> Result<Self, WorkloadError> {
        check_quick_ack(plan)?;
        let typed = address;
        let address = Address::parse(address)?;
        let requests = Requests::build(plan, &address.url, typed)?;
        let only_http2 = plan.http2.is_some();
        let tls = address.is_tls.then(|| TlsClient::build(&plan.tls, &address.host, only_http2)).transpose()?;
        if only_http2 && plan.proxy.is_some() && !address.is_tls {
            return Err(WorkloadError(
                "HTTP/2 goes through a proxy to https:// only; use https://, or leave --http2 or --proxy out".into(),
            ));
        }
        if !plan.keepalive && plan.streams() > 1 {
            return Err(WorkloadError(
                "a connection that is closed after its first request carries one at a time: leave --streams out, or keep \
                 connections"
                    .into(),
            ));
        }
        let http2 = only_http2.then(|| Http2Shared::build(plan, &requests, address.is_tls));
        let resolve = || address.resolve(plan, connect_timeout_ns, proof);
        let resolved = Network::within(network, resolve)?;
        let tunnel = Tunnel::to(&address, plan)?;
        let unreported_lookup_ns = AtomicU64::new(resolved.lookup_ns.unwrap_or(0));
        Ok(Self {
            shared: Arc::new(Shared {
                resolved,
                tls,
                requests,
                cookies: plan.requests.cookies,
                decompress: plan.requests.decompress,
                keepalive: plan.keepalive,
                quick_ack: plan.quick_ack,
                segment_bytes: plan.segment_bytes,
                network: network.cloned(),
                accepts_any_status: plan.accepts_any_status,
                tunnel,
                http2,
                proxy_protocol: plan.reach.proxy_protocol,
                next_turn: AtomicUsize::new(0),
                unreported_lookup_ns,
            }),
        })
    }

    /// The next op that ends reports the time of the name's look-up as its dns phase.
    pub fn report_lookup(&self) {
        self.shared.unreported_lookup_ns.store(self.shared.resolved.lookup_ns.unwrap_or(0), Ordering::Relaxed);
    }

    /// The load to come goes on in a list of requests behind what the first contact took of it.
    pub fn leave_contact_behind(&self) {
        if let Requests::Many(repertoire) = &self.shared.requests {
            repertoire.leave_contact_behind();
        }
    }

    /// The load to come goes on where an earlier one ended, of which each of so many workers began that many ops at most.
    pub fn go_on_after(&self, begun: u64, workers: u32) {
        if let Requests::Many(repertoire) = &self.shared.requests {
            repertoire.go_on_after(begun, u64::from(workers));
        }
    }

    /// The load to come sends the first so many requests of each worker, again and again.
    pub fn go_round_in(&self, ops: u64) {
        if let Requests::Many(repertoire) = &self.shared.requests {
            repertoire.go_round_in(ops);
        }
    }

    /// Opens a session of load on the target.
    pub fn session(&self, connections: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
        match self.shared.http2 {
            None => Session::open(self.clone(), connections, threads, stop),
            Some(_) => Session::open(Http2Factory { shared: Arc::clone(&self.shared) }, connections, threads, stop),
        }
    }

    /// Whether this is among the addresses that the target's name led to when it was looked up.
    pub fn leads_to(&self, peer: &SocketAddr) -> bool {
        self.shared.resolved.candidates.contains(peer)
    }

    /// Host, IPv6 without brackets, and port of an address; `None`: it is no usable one.
    pub fn host_and_port(address: &str) -> Option<(String, u16)> {
        Address::parse(address).ok().map(|Address { host, port, .. }| (host, port))
    }

    /// Checks an address without touching the network.
    pub fn check_address(address: &str) -> Result<(), WorkloadError> {
        Address::parse(address).map(|_| ())
    }
}

/// Refuses what this system cannot do, rather than measure something else.
fn check_quick_ack(plan: &HttpPlan) -> Result<(), WorkloadError> {
    if plan.quick_ack && cfg!(not(any(target_os = "linux", target_os = "android"))) {
        let why = "this system cannot acknowledge at once (TCP_QUICKACK): leave --quick-ack out, or run duel on Linux";
        return Err(WorkloadError(why.to_owned()));
    }
    Ok(())
}

/// Makes [`Http2`] workloads.
#[derive(Debug)]
struct Http2Factory {
    shared: Arc<Shared>,
}

impl WorkloadFactory for HttpFactory {
    type Workload = Http;

    fn schema(&self) -> &'static Schema {
        &duel_model::web::SCHEMA
    }

    fn make(&self, worker: WorkerId, lanes: usize) -> Result<Http, WorkloadError> {
        self.shared.enter_network()?;
        Ok(Http::new(Arc::clone(&self.shared), worker, lanes))
    }

    fn address_pairs(&self) -> usize {
        self.shared.resolved.ends.pairs()
    }
}

impl WorkloadFactory for Http2Factory {
    type Workload = Http2;

    fn schema(&self) -> &'static Schema {
        &duel_model::web::SCHEMA
    }

    fn make(&self, worker: WorkerId, lanes: usize) -> Result<Http2, WorkloadError> {
        self.shared.enter_network()?;
        Ok(Http2::new(Arc::clone(&self.shared), worker, lanes))
    }

    fn lanes_per_connection(&self) -> usize {
        self.shared.streams()
    }

    fn address_pairs(&self) -> usize {
        self.shared.resolved.ends.pairs()
    }
}
