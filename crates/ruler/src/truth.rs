//! What the server really did.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::behaviour::Kind;
use crate::clock::hold;
use crate::stall::Stall;

/// A snapshot of what the server really did since its start.
///
/// `requests == responses + broken + abandoned + in_flight`, exactly when nothing is under way (see
/// [`Ruler::settled`](crate::Ruler::settled)). A client can hold a response in its hands a few microseconds before the
/// server has noted it down.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// TLS handshakes completed with the whole exchange.
    pub handshakes_full: u64,
    /// TLS handshakes completed by resuming a session.
    pub handshakes_resumed: u64,
    /// TLS handshakes begun and not completed, for whatever reason.
    pub handshakes_failed: u64,
    /// Well-formed requests received as a whole, with their bodies.
    pub requests: u64,
    /// Requests received and not yet ended.
    pub in_flight: u64,
    /// Responses handed to the kernel as a whole, as they were meant to be.
    pub responses: u64,
    /// Requests answered wrongly on purpose, as their path asks (`/reset`, `/short-body`, ...).
    pub broken: u64,
    /// Requests whose answer was cut by the client or by the server's end.
    pub abandoned: u64,
    /// Requests that were no HTTP or not allowed: answered 400, 411 or 431. Not among `requests`.
    pub malformed: u64,
    /// Bytes of HTTP sent: heads, bodies and framing, before encryption.
    pub http_bytes_sent: u64,
    /// Bytes handed to the sockets: with TLS, its handshakes and records included.
    pub wire_bytes_sent: u64,
    /// CPU time burnt on purpose.
    pub burnt: Duration,
    /// `requests` by behaviour; those never asked for are absent.
    pub requests_by_kind: BTreeMap<Kind, u64>,
    /// `responses` by behaviour.
    pub responses_by_kind: BTreeMap<Kind, u64>,
    /// `responses` by status.
    pub responses_by_status: BTreeMap<u16, u64>,
    /// Each stall that `/stall-once` began.
    pub stalls: Vec<Stalled>,
    /// The latest requests one by one, in the order in which they ended; at most
    /// [`Config::remember`](crate::Config::remember).
    pub served: Vec<Served>,
    /// How many requests ended before those in `served`, and are no longer remembered.
    pub forgotten: u64,
}

/// One request as the server saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When it was fully read, body included.
    pub arrived: Instant,
    /// From then until the last byte of the answer was handed to the kernel.
    pub service: Duration,
    /// What was asked for.
    pub kind: Kind,
    /// How it ended.
    pub ending: Ending,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Fully sent, with this status.
    Sent(u16),
    /// Broken on purpose.
    Broken,
    /// Cut by the client or by the server's end.
    Abandoned,
}

/// One stall of the whole server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// When it began.
    pub began: Instant,
    /// When every held request was let go.
    pub ended: Instant,
    /// Requests held so far, the one that began it included.
    pub held: u64,
}

impl Truth {
    /// The counters as one line of JSON, as `/truth` sends them; without what is told in instants.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{");
        for (name, value) in [
            ("connections", self.connections),
            ("connections_open", self.connections_open),
            ("handshakes_full", self.handshakes_full),
            ("handshakes_resumed", self.handshakes_resumed),
            ("handshakes_failed", self.handshakes_failed),
            ("requests", self.requests),
            ("in_flight", self.in_flight),
            ("responses", self.responses),
            ("broken", self.broken),
            ("abandoned", self.abandoned),
            ("malformed", self.malformed),
            ("http_bytes_sent", self.http_bytes_sent),
            ("wire_bytes_sent", self.wire_bytes_sent),
            ("burnt_us", self.burnt.as_micros().try_into().unwrap_or(u64::MAX)),
            ("stalls", self.stalls.len() as u64),
        ] {
            let _ = write!(json, "\"{name}\":{value},");
        }
        let kinds = |counts: &BTreeMap<Kind, u64>| {
            counts.iter().map(|(kind, count)| format!("\"{}\":{count}", kind.name())).collect::<Vec<_>>().join(",")
        };
        let statuses = self.responses_by_status.iter().map(|(status, count)| format!("\"{status}\":{count}"));
        let _ = write!(
            json,
            "\"requests_by_kind\":{{{}}},\"responses_by_kind\":{{{}}},\"responses_by_status\":{{{}}}}}",
            kinds(&self.requests_by_kind),
            kinds(&self.responses_by_kind),
            statuses.collect::<Vec<_>>().join(",")
        );
        json
    }
}

/// The highest status counted by itself.
const STATUSES: usize = 600;

/// Where the server's threads write the truth down: counters and a ring, without locks.
///
/// Shared atomics cost a few nanoseconds each; that is well below the system calls of even the smallest request.
pub(crate) struct Ledger {
    started: Instant,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_closed: AtomicU64,
    pub(crate) handshakes_full: AtomicU64,
    pub(crate) handshakes_resumed: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) http_bytes_sent: AtomicU64,
    pub(crate) wire_bytes_sent: AtomicU64,
    pub(crate) burnt_ns: AtomicU64,
    received: AtomicU64,
    responses: AtomicU64,
    broken: AtomicU64,
    abandoned: AtomicU64,
    requests_by_kind: Vec<AtomicU64>,
    responses_by_kind: Vec<AtomicU64>,
    responses_by_status: Vec<AtomicU64>,
    ended: AtomicU64,
    ring: Vec<Slot>,
    pub(crate) stalls: Mutex<Vec<Arc<Stall>>>,
}

/// One remembered request. `stamp` is its number plus one, written last, and zero while the rest is being written.
#[derive(Default)]
struct Slot {
    stamp: AtomicU64,
    arrived_ns: AtomicU64,
    service_ns: AtomicU64,
    what: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(remember: usize) -> Ledger {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Ledger {
            started: Instant::now(),
            connections: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            handshakes_full: AtomicU64::new(0),
            handshakes_resumed: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            http_bytes_sent: AtomicU64::new(0),
            wire_bytes_sent: AtomicU64::new(0),
            burnt_ns: AtomicU64::new(0),
            received: AtomicU64::new(0),
            responses: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            requests_by_kind: zeros(Kind::ALL.len()),
            responses_by_kind: zeros(Kind::ALL.len()),
            responses_by_status: zeros(STATUSES),
            ended: AtomicU64::new(0),
            ring: (0..remember).map(|_| Slot::default()).collect(),
            stalls: Mutex::default(),
        }
    }

    /// Counts a request in and returns its number, from 1.
    pub(crate) fn request(&self, kind: Kind) -> u64 {
        bump(&self.requests_by_kind[kind as usize]);
        self.received.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Counts a request out. Everything else is written first, so that whoever sees it ended sees all of it.
    pub(crate) fn end(&self, kind: Kind, arrived: Instant, service: Duration, ending: Ending) {
        match ending {
            Ending::Sent(status) => {
                bump(&self.responses);
                bump(&self.responses_by_kind[kind as usize]);
                if let Some(count) = self.responses_by_status.get(usize::from(status)) {
                    bump(count);
                }
            }
            Ending::Broken => bump(&self.broken),
            Ending::Abandoned => bump(&self.abandoned),
        }
        if self.ring.is_empty() {
            self.ended.fetch_add(1, Ordering::AcqRel);
            return;
        }
        // The number is claimed here and published through the slot's stamp: `ended` alone would announce a record
        // that is not written yet. `settled` therefore waits for the stamps too.
        let number = self.ended.fetch_add(1, Ordering::AcqRel);
        let slot = &self.ring[(number % self.ring.len() as u64) as usize];
        slot.stamp.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.arrived_ns.store(nanos(arrived.saturating_duration_since(self.started)), Ordering::Relaxed);
        slot.service_ns.store(nanos(service), Ordering::Relaxed);
        slot.what.store((kind as u64) << 16 | u64::from(code(ending)), Ordering::Relaxed);
        slot.stamp.store(number + 1, Ordering::Release);
    }

    /// Whether no request is under way and the last one is fully written down.
    pub(crate) fn is_settled(&self) -> bool {
        // `ended` first: it can only have grown since, as `received`, so equality means that nothing was in flight.
        let ended = self.ended.load(Ordering::Acquire);
        let written = |number: u64| match self.ring.len() as u64 {
            0 => true,
            len => self.ring[(number % len) as usize].stamp.load(Ordering::Acquire) > number,
        };
        let remembered = ended.saturating_sub(self.ring.len() as u64)..ended;
        // A thread is in `end` for nanoseconds: only the last few numbers can still be unwritten.
        let recent = remembered.start.max(ended.saturating_sub(4096))..ended;
        recent.into_iter().all(written) && self.received.load(Ordering::Acquire) == ended
    }

    pub(crate) fn connections_open(&self) -> u64 {
        // In this order: a connection is counted out after it was counted in, so the difference is never negative.
        let closed = self.connections_closed.load(Ordering::Acquire);
        self.connections.load(Ordering::Acquire) - closed
    }

    /// `one_by_one`: with the requests remembered, not only the counters.
    pub(crate) fn snapshot(&self, one_by_one: bool) -> Truth {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let by_kind = |counters: &[AtomicU64]| {
            Kind::ALL.iter().zip(counters).map(|(&kind, count)| (kind, load(count))).filter(|(_, n)| *n > 0).collect()
        };
        let ended = self.ended.load(Ordering::Acquire);
        let oldest = ended.saturating_sub(self.ring.len() as u64);
        Truth {
            connections: load(&self.connections),
            connections_open: self.connections_open(),
            handshakes_full: load(&self.handshakes_full),
            handshakes_resumed: load(&self.handshakes_resumed),
            handshakes_failed: load(&self.handshakes_failed),
            requests: load(&self.received),
            in_flight: self.received.load(Ordering::Acquire).saturating_sub(ended),
            responses: load(&self.responses),
            broken: load(&self.broken),
            abandoned: load(&self.abandoned),
            malformed: load(&self.malformed),
            http_bytes_sent: load(&self.http_bytes_sent),
            wire_bytes_sent: load(&self.wire_bytes_sent),
            burnt: Duration::from_nanos(load(&self.burnt_ns)),
            requests_by_kind: by_kind(&self.requests_by_kind),
            responses_by_kind: by_kind(&self.responses_by_kind),
            responses_by_status: (0u16..)
                .zip(&self.responses_by_status)
                .map(|(status, count)| (status, load(count)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            stalls: hold(&self.stalls).iter().filter_map(|stall| stall.truth()).collect(),
            served: (if one_by_one { oldest } else { ended }..ended)
                .filter_map(|number| self.remembered(number))
                .collect(),
            forgotten: oldest,
        }
    }

    /// `None` for a record that is being written or was overwritten meanwhile.
    fn remembered(&self, number: u64) -> Option<Served> {
        let slot = &self.ring[(number % self.ring.len() as u64) as usize];
        if slot.stamp.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        let arrived_ns = slot.arrived_ns.load(Ordering::Relaxed);
        let service_ns = slot.service_ns.load(Ordering::Relaxed);
        let what = slot.what.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        (slot.stamp.load(Ordering::Relaxed) == number + 1).then(|| Served {
            arrived: self.started + Duration::from_nanos(arrived_ns),
            service: Duration::from_nanos(service_ns),
            kind: Kind::ALL[(what >> 16) as usize],
            ending: match what as u16 {
                BROKEN => Ending::Broken,
                ABANDONED => Ending::Abandoned,
                status => Ending::Sent(status),
            },
        })
    }
}

const BROKEN: u16 = 0;
const ABANDONED: u16 = 1;

fn code(ending: Ending) -> u16 {
    match ending {
        Ending::Broken => BROKEN,
        Ending::Abandoned => ABANDONED,
        Ending::Sent(status) => status,
    }
}

fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_latest() {
        let ledger = Ledger::new(3);
        for micros in 0..5 {
            ledger.request(Kind::Page);
            ledger.end(Kind::Page, Instant::now(), Duration::from_micros(micros), Ending::Sent(200));
        }
        ledger.request(Kind::Reset);
        assert!(!ledger.is_settled());
        ledger.end(Kind::Reset, Instant::now(), Duration::from_micros(5), Ending::Broken);
        assert!(ledger.is_settled());
        let truth = ledger.snapshot(true);
        assert_eq!(truth.served.iter().map(|served| served.service.as_micros()).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!((truth.forgotten, truth.requests, truth.responses, truth.broken), (3, 6, 5, 1));
        assert_eq!(truth.served[2].ending, Ending::Broken);
        assert_eq!(truth.responses_by_status, BTreeMap::from([(200, 5)]));
    }

    #[test]
    fn nothing_remembered_is_still_counted() {
        let ledger = Ledger::new(0);
        ledger.request(Kind::Page);
        ledger.end(Kind::Page, Instant::now(), Duration::ZERO, Ending::Sent(200));
        assert!(ledger.is_settled());
        let truth = ledger.snapshot(true);
        assert_eq!((truth.responses, truth.served.len(), truth.forgotten), (1, 0, 1));
        assert!(truth.to_json().starts_with("{\"connections\":0,") && truth.to_json().ends_with("{\"200\":1}}"));
    }
}
