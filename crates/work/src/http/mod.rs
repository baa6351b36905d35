//! HTTP/1.1 and HTTP/2 over TCP, Unix sockets and TLS.
//!
//! The way of an op: `resolve` has found where to, `link` connects, `tls` shakes hands; then `lane` sends the `request` and
//! reads the `response` as HTTP/1.1 has them, or `streams` as `h2` has them; both keep their books at a `desk`. `following` goes on where a redirect leads.
//! Where ops differ in what they send, `repertoire` has all requests and `picker` chooses.

mod address;
mod arrival;
mod broken;
mod certificate;
mod cookies;
mod desk;
mod following;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod h2;
mod handshake;
mod inflate;
mod lane;
mod leg;
mod link;
mod manner;
mod network;
mod op;
mod origins;
mod picker;
mod proxy;
mod proxy_protocol;
mod repertoire;
mod request;
mod resolve;
mod response;
mod search;
mod source;
mod streams;
mod tls;
mod trust;

pub use following::{Following, FollowingFactory};
pub use handshake::chooses_http2;
pub use lane::Http;
pub use manner::{Manner, Trail, leads_elsewhere};
pub use network::Network;
pub use proxy::unknown_to_proxy;
pub use source::other_sources;
pub use streams::Http2;
pub use tls::{LIBRARY as TLS_LIBRARY, check_names as check_tls_names};

pub(crate) use request::read_body;

use address::Address;
use duel_load::{Session, SessionError, WorkerId, WorkloadError, WorkloadFactory};
use duel_model::web::settings;
use duel_model::{HttpPlan, Nanos, ProxyProtocol, Schema};
use picker::Draft;
use proxy::Tunnel;
use repertoire::Repertoire;
use request::{Outgoing, Request};
use resolve::{Proof, Resolved};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tls::TlsClient;

/// Prepares load on one target: everything that can be wrong with a plan or an address is found here. It makes [`Http`]
/// workloads; where the plan wants HTTP/2, [`HttpFactory::session`] has [`Http2`] ones.
#[derive(Debug, Clone)]
pub struct HttpFactory {
    shared: Arc<Shared>,
}

/// What all connections to one target have in common.
#[derive(Debug)]
struct Shared {
    resolved: Resolved,
    tls: Option<TlsClient>,
    requests: Requests,
    /// Connections keep cookies.
    cookies: bool,
    /// Bodies are decompressed for counting.
    decompress: bool,
    keepalive: bool,
    quick_ack: bool,
    segment_bytes: Option<u16>,
    /// Where connections are made from, where that is not our own network.
    network: Option<Network>,
    accepts_any_status: bool,
    /// What the proxy is asked for before TLS begins, if there is one.
    tunnel: Option<Tunnel>,
    /// What HTTP/2 needs, where it is spoken.
    http2: Option<Http2Shared>,
    /// The header that connections begin with, if any.
    proxy_protocol: Option<ProxyProtocol>,
    /// Number of the next worker's first connection: all connections together go over all addresses in turn, and workers
    /// share nothing for that while they run.
    next_turn: AtomicUsize,
    /// Time of the name's look-up, until an op has reported it; 0 when there is nothing to report.
    unreported_lookup_ns: AtomicU64,
}

/// What connections to a target have in common where HTTP/2 is spoken.
#[derive(Debug)]
struct Http2Shared {
    /// Streams of a connection.
    streams: usize,
    /// Octets that a server may send before it needs our leave.
    window: u32,
    /// The target's one request, or each one of the repertoire that stays as it is.
    translated: Vec<Option<Translated>>,
}

/// A request whose head was translated beforehand.
#[derive(Debug)]
struct Translated {
    fields: Vec<u8>,
    /// Length of the head as HTTP/1.1 has it; the body is behind it.
    head_bytes: usize,
}

impl Http2Shared {
    fn build(plan: &HttpPlan, requests: &Requests, is_tls: bool) -> Self {
        let translate = |request: &[u8]| {
            let head_bytes = streams::head_bytes(request);
            let mut fields = Vec::new();
            h2::push_fields(&request[..head_bytes], is_tls, &mut fields);
            Translated { fields, head_bytes }
        };
        let translated = match requests {
            Requests::One(request) => vec![Some(translate(&request.bytes))],
            Requests::Many(repertoire) => repertoire.fixed_heads().map(|head| head.map(translate)).collect(),
        };
        Self { streams: plan.streams() as usize, window: plan.number(&settings::H2_WINDOW) as u32, translated }
    }
}

/// What ops send.
#[derive(Debug)]
enum Requests {
    /// All the same.
    One(Request),
    /// Each what it chooses.
    Many(Box<Repertoire>),
}

impl Requests {
    /// `address` is the target's as it was typed.
    fn build(plan: &HttpPlan, url: &url::Url, address: &str) -> Result<Self, WorkloadError> {
        if Repertoire::is_needed(plan) {
            Repertoire::build(plan, url, address).map(Box::new).map(Self::Many)
        } else {
            Request::build(plan, url).map(Self::One)
        }
    }
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
pub fn round_ops(plan: &HttpPlan, address: &str) -> Result<Option<u64>, WorkloadError> {
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
        let resolved = network.map_or_else(resolve, |network| network.within(resolve)?)?;
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

impl Shared {
    /// Streams of a connection.
    fn streams(&self) -> usize {
        self.http2.as_ref().map_or(1, |http2| http2.streams)
    }

    /// Octets that a server may send before it needs our leave.
    fn window(&self) -> u32 {
        self.http2.as_ref().map_or(0, |http2| http2.window)
    }

    /// What is sent: what a redirect led to, the target's one request, or what was chosen.
    #[inline]
    fn outgoing<'a>(&'a self, detour: Option<&'a Request>, draft: &'a Draft) -> Outgoing<'a> {
        match (detour, &self.requests) {
            (Some(detour), _) => detour.outgoing(),
            (None, Requests::One(request)) => request.outgoing(),
            (None, Requests::Many(repertoire)) => draft.outgoing(repertoire),
        }
    }

    /// What a draft has chosen, translated beforehand; `None`: it has to be translated now.
    #[inline]
    fn translated(&self, draft: &Draft) -> Option<&Translated> {
        let index = match self.requests {
            Requests::One(_) => 0,
            Requests::Many(_) => draft.fixed()?,
        };
        self.http2.as_ref()?.translated.get(index)?.as_ref()
    }

    /// On the worker's own thread, which makes all connections.
    fn enter_network(&self) -> Result<(), WorkloadError> {
        self.network.as_ref().map_or(Ok(()), Network::enter)
    }

    /// Where the plan asks for it: acknowledges what has arrived and what comes next at once. The system forgets it as
    /// soon as it takes the connection for an interactive one, so that it is said again after each read.
    #[inline]
    fn acknowledge_soon(&self, socket: &rustix::fd::OwnedFd) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.quick_ack {
            // Linux refuses it on sockets that are no TCP sockets, which delay no acknowledgements either.
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = socket;
    }

    fn take_lookup_ns(&self) -> Option<Nanos> {
        // Looked at once per session and worker, not per op: see `Http::new`.
        let lookup_ns = self.unreported_lookup_ns.swap(0, Ordering::Relaxed);
        (lookup_ns > 0).then_some(lookup_ns)
    }
}

impl WorkloadFactory for HttpFactory {
    type Workload = Http;

    fn schema(&self) -> &'static Schema {
        &duel_model::web::SCHEMA
    }

    fn make(&self, lanes: usize) -> Result<Http, WorkloadError> {
        self.make_for(WorkerId::ONLY, lanes)
    }

    fn make_for(&self, worker: WorkerId, lanes: usize) -> Result<Http, WorkloadError> {
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

    fn make(&self, lanes: usize) -> Result<Http2, WorkloadError> {
        self.make_for(WorkerId::ONLY, lanes)
    }

    fn make_for(&self, worker: WorkerId, lanes: usize) -> Result<Http2, WorkloadError> {
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
