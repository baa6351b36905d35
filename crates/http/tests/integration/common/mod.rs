//! What the truth tests share: running a load, the sums that always hold, and a server made of a closure.

pub(crate) mod peer;

use duel_http::HttpFactory;
use duel_load::{Session, SlotOrder, SlotRecord};
use duel_model::web::{failure, phase};
use duel_model::{Arrival, Distribution, FailureKind, HttpPlan, LoopKind, Nanos, Phase, SECOND_NS, Tally, web};
use duel_ruler::{Config, Ruler, Truth};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bounds a test that would hang; it says nothing about speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const PATIENCE_NS: Nanos = 30 * SECOND_NS;
pub(crate) const CLOSED: LoopKind = LoopKind::Closed { think_ns: 0 };

/// A closed loop of this many ops.
pub(crate) fn ops(ops: u64) -> SlotOrder {
    order(CLOSED, None, Some(ops))
}

pub(crate) fn open_loop(rate_per_s: f64, duration_ns: Nanos) -> SlotOrder {
    order(LoopKind::Open { rate_per_s, arrival: Arrival::Constant }, Some(duration_ns), None)
}

pub(crate) fn order(kind: LoopKind, duration_ns: Option<Nanos>, ops: Option<u64>) -> SlotOrder {
    SlotOrder { duration_ns, ops, seed: 7, ..SlotOrder::of(kind, PATIENCE_NS) }
}

pub(crate) fn plain() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

pub(crate) fn no_keepalive() -> HttpPlan {
    HttpPlan { keepalive: false, ..HttpPlan::default() }
}

pub(crate) fn open(plan: &HttpPlan, url: &str, connections: u32, threads: u32) -> Session {
    let factory = HttpFactory::prepare(plan, url, PATIENCE_NS).unwrap();
    Session::open(factory, connections, threads, Arc::default()).unwrap()
}

pub(crate) fn slot(session: &mut Session, order: &SlotOrder) -> SlotRecord {
    let record = session.run_slot(order, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_accounts(&record);
    record
}

/// One slot: a closed loop of so many ops, over so many connections, on two threads where there are two connections.
pub(crate) fn run(plan: &HttpPlan, url: &str, connections: u32, count: u64) -> SlotRecord {
    run_order(plan, url, connections, &ops(count))
}

pub(crate) fn run_order(plan: &HttpPlan, url: &str, connections: u32, order: &SlotOrder) -> SlotRecord {
    slot(&mut open(plan, url, connections, 2), order)
}

pub(crate) fn failed(tally: &Tally, kind: FailureKind) -> u64 {
    tally.failed.get(&kind.id()).copied().unwrap_or(0)
}

/// The first failure in words.
pub(crate) fn sentence(record: &SlotRecord) -> &str {
    record.tally.failure_examples.first().map_or("", String::as_str)
}

pub(crate) fn sum_ns(tally: &Tally, phase: Phase) -> u128 {
    tally.phases.get(&phase.id()).map_or(0, |distribution| distribution.sum_ns)
}

/// What holds for every slot whatever the server did: each op is somewhere, and all books agree.
pub(crate) fn assert_accounts(record: &SlotRecord) {
    let tally = &record.tally;
    assert!(!record.interrupted);
    assert_eq!(tally.started, tally.ok + tally.failed_total() + tally.in_flight, "{tally:?}");
    let intervals = &record.series.intervals;
    assert_eq!(intervals.iter().map(|interval| interval.ok).sum::<u64>(), tally.ok);
    assert_eq!(intervals.iter().map(|interval| interval.failed).sum::<u64>(), tally.failed_total());
    assert!(intervals.iter().map(|interval| interval.bytes_in).sum::<u64>() <= tally.bytes_in);
    // Statuses are those of complete responses, and the only way to be ok is one below 400.
    let (good, bad): (Vec<_>, Vec<_>) = tally.statuses.iter().partition(|&(&status, _)| status < 400);
    assert_eq!(good.iter().map(|&(_, count)| count).sum::<u64>(), tally.ok, "{tally:?}");
    assert_eq!(bad.iter().map(|&(_, count)| count).sum::<u64>(), failed(tally, failure::STATUS), "{tally:?}");
    // Who was answered or waited in vain is in the distributions, nobody else.
    let timeouts = failed(tally, failure::TIMEOUT) + failed(tally, failure::CONNECT_TIMEOUT);
    assert_eq!(tally.service.count(), tally.ok + timeouts + tally.in_flight);
    assert_eq!(tally.response.count(), tally.service.count() + tally.unstarted);
    assert!(tally.response.sum_ns >= tally.service.sum_ns, "no op starts before it is due");
    // Parts of those that were answered, and of others as far as they came.
    let given_up = timeouts + tally.in_flight;
    let of = |phase: Phase| tally.phases.get(&phase.id()).map_or(0, Distribution::count);
    for phase in [phase::WAIT, phase::RECEIVE] {
        assert!((tally.ok..=tally.ok + given_up).contains(&of(phase)), "{phase:?}: {tally:?}");
    }
    assert!(of(phase::RECEIVE) <= of(phase::WAIT), "nothing is received that was not waited for");
    assert!(of(phase::CONNECT) <= tally.connections + given_up, "{tally:?}");
    assert!(tally.resumed <= tally.connections && tally.reused <= tally.started);
    // The look-up was made before the first op; it is no part of its time.
    let parts: u128 = phase::ALL.iter().copied().filter(|&phase| phase != phase::DNS).map(|p| sum_ns(tally, p)).sum();
    assert!(parts <= tally.service.sum_ns, "parts of {parts} ns in {:?}", tally.service);
    assert!(tally.failure_examples.len() <= Tally::FAILURE_EXAMPLES);
    assert_eq!(tally.failure_examples.is_empty(), tally.failed_total() == 0);
    for example in &tally.failure_examples {
        assert_safe(example);
    }
    // Where a redirect leads is followed as it was sent.
    let facts = record.negotiated.iter().flat_map(|facts| &facts.0).filter(|(name, _)| *name != web::LOCATION);
    facts.filter_map(|(_, known)| known.text()).for_each(assert_safe);
}

/// Nothing that a terminal would act on.
pub(crate) fn assert_safe(text: &str) {
    assert!(!text.chars().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)), "{text:?}");
    assert!(text.chars().count() <= 301, "{} characters", text.chars().count());
}

/// All ops are ok, and one connection for each lane carried them all.
pub(crate) fn assert_all_ok(record: &SlotRecord, started: u64) {
    let tally = &record.tally;
    assert_eq!((tally.started, tally.ok), (started, started), "{:?}", tally.failure_examples);
    assert_eq!(tally.connections + tally.reused, started, "each op went over a new or a used connection");
}

/// All ops failed in this way.
pub(crate) fn assert_all_failed(record: &SlotRecord, started: u64, kind: FailureKind, part_of_sentence: &str) {
    let tally = &record.tally;
    assert_eq!((tally.started, failed(tally, kind)), (started, started), "{:?}", tally.failure_examples);
    let example = sentence(record);
    assert!(example.contains(part_of_sentence), "{example}");
}

/// The server's truth is what the tally says: for loads whose every request was answered in full.
pub(crate) fn assert_agrees(ruler: &Ruler, record: &SlotRecord) -> Truth {
    let (truth, tally) = (ruler.settled(PATIENCE), &record.tally);
    assert_eq!(truth.requests, tally.started);
    assert_eq!(truth.responses, tally.ok + failed(tally, failure::STATUS));
    assert_eq!(truth.responses_by_status, tally.statuses);
    // One more connection found the address that answers.
    assert_eq!(truth.connections, tally.connections + 1);
    assert!(tally.bytes_in <= truth.wire_bytes_sent);
    assert!(tally.bytes_in >= truth.http_bytes_sent);
    if ruler.config().tls.is_none() {
        assert_eq!(tally.bytes_in, truth.wire_bytes_sent, "every byte was read");
    }
    truth
}

/// A server that does with each connection what a closure says.
///
/// The closure gets the connection's number from 1 on: the first connection of all, number 0, is the one by which
/// `prepare` finds the address that answers, and is left alone.
#[derive(Debug)]
pub(crate) struct Tiny {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Tiny {
    pub(crate) fn start(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", serve)
    }

    /// At another address than any port of 127.0.0.1.
    pub(crate) fn start_at(address: &str, serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let acceptor = {
            let (accepted, ends, serve) = (Arc::clone(&accepted), Arc::clone(&ends), Arc::new(serve));
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if ends.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    let number = accepted.fetch_add(1, Ordering::SeqCst);
                    if number > 0 {
                        stream.set_read_timeout(Some(PATIENCE)).unwrap();
                        stream.set_write_timeout(Some(PATIENCE)).unwrap();
                        stream.set_nodelay(true).unwrap();
                        let serve = Arc::clone(&serve);
                        std::thread::spawn(move || serve(number, stream));
                    }
                }
            })
        };
        Self { address, accepted, ends, acceptor: Some(acceptor) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Connections accepted, without that of `prepare`.
    pub(crate) fn connections(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst).saturating_sub(1) as u64
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Reads a request's head, byte by byte so that nothing behind it is taken; `None` at the client's end.
pub(crate) fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}

/// Reads a whole request, body included.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<(String, Vec<u8>)> {
    let head = read_head(stream)?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Reads one request and answers it.
pub(crate) fn answer(stream: &mut (impl Read + Write)) -> bool {
    read_request(stream).is_some() && stream.write_all(OK).is_ok()
}

/// A TLS server's configuration with a certificate that nobody vouches for.
pub(crate) fn tls_config() -> Arc<rustls::ServerConfig> {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    Arc::new(config)
}

/// Closes a connection so that its peer sees a reset instead of an end.
pub(crate) fn reset(stream: &TcpStream) {
    let zero = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(stream, zero).unwrap();
}

/// Ends the sending side and waits for the client's end, so that the client has read everything before.
pub(crate) fn end_in_order(stream: &mut TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
}
