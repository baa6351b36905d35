//! What all connections to one target have in common.

use super::h2;
use crate::link::tls::TlsClient;
use crate::reach::proxy::Tunnel;
use crate::reach::resolve::Resolved;
use crate::requests::picker::Draft;
use crate::requests::repertoire::Repertoire;
use crate::requests::request::{Outgoing, Request};
use duel_load::{Network, WorkloadError};
use duel_model::web::settings;
use duel_model::{HttpPlan, Nanos, ProxyProtocol};
use memchr::memmem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What all connections to one target have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) resolved: Resolved,
    pub(super) tls: Option<TlsClient>,
    pub(super) requests: Requests,
    /// Connections keep cookies.
    pub(super) cookies: bool,
    /// Bodies are decompressed for counting.
    pub(super) decompress: bool,
    pub(super) keepalive: bool,
    pub(super) quick_ack: bool,
    pub(super) segment_bytes: Option<u16>,
    /// Where connections are made from, where that is not our own network.
    pub(super) network: Option<Network>,
    pub(super) accepts_any_status: bool,
    /// What the proxy is asked for before TLS begins, if there is one.
    pub(super) tunnel: Option<Tunnel>,
    /// What HTTP/2 needs, where it is spoken.
    pub(super) http2: Option<Http2Shared>,
    /// The header that connections begin with, if any.
    pub(super) proxy_protocol: Option<ProxyProtocol>,
    /// Number of the next worker's first connection: all connections together go over all addresses in turn, and workers
    /// share nothing for that while they run.
    pub(super) next_turn: AtomicUsize,
    /// Time of the name's look-up, until an op has reported it; 0 when there is nothing to report.
    pub(super) unreported_lookup_ns: AtomicU64,
}

/// What connections to a target have in common where HTTP/2 is spoken.
#[derive(Debug)]
pub(super) struct Http2Shared {
    /// Streams of a connection.
    pub(super) streams: usize,
    /// Octets that a server may send before it needs our leave.
    pub(super) window: u32,
    /// The target's one request, or each one of the repertoire that stays as it is.
    pub(super) translated: Vec<Option<Translated>>,
}

/// A request whose head was translated beforehand.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) fields: Vec<u8>,
    /// Length of the head as HTTP/1.1 has it; the body is behind it.
    pub(super) head_bytes: usize,
}

impl Http2Shared {
    pub(super) fn build(plan: &HttpPlan, requests: &Requests, is_tls: bool) -> Self {
        let translate = |request: &[u8]| {
            let head_bytes = head_bytes(request);
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
pub(super) enum Requests {
    /// All the same.
    One(Request),
    /// Each what it chooses.
    Many(Box<Repertoire>),
}

impl Requests {
    /// `address` is the target's as it was typed.
    pub(super) fn build(plan: &HttpPlan, url: &url::Url, address: &str) -> Result<Self, WorkloadError> {
        if Repertoire::is_needed(plan) {
            Repertoire::build(plan, url, address).map(Box::new).map(Self::Many)
        } else {
            Request::build(plan, url).map(Self::One)
        }
    }
}

impl Shared {
    /// Streams of a connection.
    pub(super) fn streams(&self) -> usize {
        self.http2.as_ref().map_or(1, |http2| http2.streams)
    }

    /// Octets that a server may send before it needs our leave.
    pub(super) fn window(&self) -> u32 {
        self.http2.as_ref().map_or(0, |http2| http2.window)
    }

    /// What is sent: what a redirect led to, the target's one request, or what was chosen.
    #[inline]
    pub(super) fn outgoing<'a>(&'a self, detour: Option<&'a Request>, draft: &'a Draft) -> Outgoing<'a> {
        match (detour, &self.requests) {
            (Some(detour), _) => detour.outgoing(),
            (None, Requests::One(request)) => request.outgoing(),
            (None, Requests::Many(repertoire)) => draft.outgoing(repertoire),
        }
    }

    /// What a draft has chosen, translated beforehand; `None`: it has to be translated now.
    #[inline]
    pub(super) fn translated(&self, draft: &Draft) -> Option<&Translated> {
        let index = match self.requests {
            Requests::One(_) => 0,
            Requests::Many(_) => draft.fixed()?,
        };
        self.http2.as_ref()?.translated.get(index)?.as_ref()
    }

    /// On the worker's own thread, which makes all connections.
    pub(super) fn enter_network(&self) -> Result<(), WorkloadError> {
        self.network.as_ref().map_or(Ok(()), Network::enter)
    }

    /// Where the plan asks for it: acknowledges what has arrived and what comes next at once. The system forgets it as
    /// soon as it takes the connection for an interactive one, so that it is said again after each read.
    #[inline]
    pub(super) fn acknowledge_soon(&self, socket: &rustix::fd::OwnedFd) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.quick_ack {
            // Linux refuses it on sockets that are no TCP sockets, which delay no acknowledgements either.
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = socket;
    }

    pub(super) fn take_lookup_ns(&self) -> Option<Nanos> {
        // Looked at once per session and worker, not per op: see `Http::new`.
        let lookup_ns = self.unreported_lookup_ns.swap(0, Ordering::Relaxed);
        (lookup_ns > 0).then_some(lookup_ns)
    }
}

/// Length of a request's head.
pub(super) fn head_bytes(request: &[u8]) -> usize {
    memmem::find(request, b"\r\n\r\n").map_or(request.len(), |end| end + 4)
}
