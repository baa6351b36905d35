//! A connection's way through connect, handshake, request and response, driven by readiness.

use super::cookies::{Jar, path_of};
use super::picker::{Draft, Picker};
use super::proxy_protocol;
use super::request::{Outgoing, Request};
use super::resolve::Way;
use super::response::{ProtocolError, ResponseReader, Truncated, field};
use super::source;
use super::tls::{TlsError, TlsStream};
use super::{Requests, Shared};
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    monotonic_ns,
};
use duel_model::{FailureKind, Nanos, Negotiated, Phase, sanitize_line};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use std::sync::Arc;

/// One worker's connections to one target.
#[derive(Debug)]
pub struct Http {
    shared: Arc<Shared>,
    connections: Vec<Connection>,
    /// Chooses requests, where there is more than one.
    picker: Option<Box<Picker>>,
    /// What is read from any connection goes here first; only unfinished TLS records are kept per connection, so that
    /// a thousand idle connections cost next to nothing.
    scratch: Vec<u8>,
    counters: Counters,
    statuses: Box<[u64; STATUSES]>,
    /// The next response's head and session are to be written down; once per slot.
    wants_details: bool,
    unreported_lookup_ns: Option<Nanos>,
    /// Number of the next connection, by which its addresses are chosen.
    turn: usize,
}

/// Read at a time. Large enough that a bulk transfer's cost is copying and decrypting, not calling the kernel; small
/// enough to stay in a core's second-level cache.
const SCRATCH_BYTES: usize = 128 * 1024;
/// Reads of full buffers in a row before other connections get their turn.
const READS_IN_A_ROW: usize = 4;
/// Plain text encrypted at a time when a request is longer: four full records.
const ENCRYPT_BYTES: usize = 64 * 1024;
/// Statuses are three digits.
const STATUSES: usize = 1000;
/// What fails where a local address that was asked for cannot be used.
const CONNECT_FROM_SOURCE: &str = "connect from a local address that --source gives";

#[derive(Debug)]
struct Connection {
    socket: Option<OwnedFd>,
    tls: Option<TlsStream>,
    stage: Stage,
    /// When it began to be established.
    connecting_since_ns: Nanos,
    /// The descriptor is watched for room to write, too.
    watches_writing: bool,
    reader: ResponseReader,
    /// TLS records that the socket has not taken yet, and how many of their bytes it has taken.
    out: Vec<u8>,
    out_at: usize,
    /// How much of the request is on its way (encrypted or written).
    request_at: usize,
    /// Responses that this connection has carried.
    served: u64,
    op: Op,
    /// What is sent instead of the target's request, where a redirect led here.
    detour: Option<Arc<Request>>,
    /// What was chosen, where there is more than one request.
    draft: Draft,
    /// Cookies, where they are kept.
    jar: Option<Box<Jar>>,
    /// Reads what a proxy says of the tunnel that it was asked for.
    tunnel: Option<Box<ResponseReader>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No op under way; connected or not.
    Idle,
    Connecting,
    /// Connected to a proxy that has not opened the tunnel yet.
    Tunnelling,
    Handshaking,
    Sending,
    Receiving,
}

/// Time stamps of the op under way.
#[derive(Debug, Clone, Copy)]
struct Op {
    /// Where the phase that comes next begins.
    phase_start_ns: Nanos,
    phases: PhaseTimes,
    first_byte_ns: Option<Nanos>,
    bytes_in: u64,
    retried: bool,
}

impl Op {
    const NONE: Self =
        Self { phase_start_ns: 0, phases: PhaseTimes::NONE, first_byte_ns: None, bytes_in: 0, retried: false };

    /// A phase ends now and the next one begins.
    #[inline]
    fn phase_ended(&mut self, phase: Phase, now: Nanos) {
        self.phases.set(phase, now.saturating_sub(self.phase_start_ns));
        self.phase_start_ns = now;
    }
}

/// Whether something was sent as far as it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    All,
    Blocked,
}

impl Workload for Http {
    #[inline]
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        self.start_request(lane, None, now_ns, io)
    }

    #[inline]
    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        let connection = &mut self.connections[lane];
        if connection.socket.is_none() {
            return Progress::Pending;
        }
        let result = match connection.stage {
            Stage::Idle => {
                self.idle_event(lane);
                Ok(Step::Wait)
            }
            Stage::Connecting => self.finish_connect(lane, io),
            Stage::Receiving if !connection.watches_writing => self.receive(lane, io),
            Stage::Handshaking | Stage::Sending | Stage::Receiving => self.continue_sending(lane, event, io),
            Stage::Tunnelling => self.continue_tunnel(lane, event, io),
        };
        self.settle(lane, result, io)
    }

    fn cancel(&mut self, lane: LaneId) {
        self.connections[lane].close();
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let Connection { stage, op, .. } = &self.connections[lane];
        let mut op = *op;
        match (stage, op.first_byte_ns) {
            (Stage::Idle, _) => {}
            (Stage::Connecting | Stage::Tunnelling, _) => op.phase_ended(Phase::Connect, now_ns),
            (Stage::Handshaking, _) => op.phase_ended(Phase::Tls, now_ns),
            (Stage::Sending, _) => op.phase_ended(Phase::Send, now_ns),
            (Stage::Receiving, None) => op.phase_ended(Phase::Wait, now_ns),
            (Stage::Receiving, Some(since_ns)) => op.phases.set(Phase::Receive, now_ns.saturating_sub(since_ns)),
        }
        op.phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        let Connection { stage, connecting_since_ns, .. } = self.connections[lane];
        matches!(stage, Stage::Connecting | Stage::Tunnelling | Stage::Handshaking).then_some(connecting_since_ns)
    }

    fn traffic(&self) -> Traffic {
        let Counters { bytes_in, bytes_out, connections, .. } = self.counters;
        Traffic { bytes_in, bytes_out, connections }
    }

    fn take_counters(&mut self) -> Counters {
        self.wants_details = true;
        if let (Some(picker), Requests::Many(repertoire)) = (&mut self.picker, &self.shared.requests) {
            picker.leave_word(repertoire);
        }
        let inflated_bytes = self.shared.decompress.then_some(0);
        let mut counters = std::mem::replace(&mut self.counters, Counters { inflated_bytes, ..Counters::default() });
        for (status, count) in self.statuses.iter_mut().enumerate() {
            if *count > 0 {
                counters.statuses.insert(status as u16, std::mem::take(count));
            }
        }
        counters
    }
}

/// Where an op stands after something was done for it.
enum Step {
    /// It goes on when the socket is ready.
    Wait,
    /// The response is complete.
    Complete { now: Nanos },
}

/// Why an op cannot go on.
enum Broken {
    System(&'static str, Errno),
    Tls(TlsError),
    Protocol(ProtocolError),
    Cut {
        when: Stage,
        how: Option<Truncated>,
    },
    ConnectionEndedUnannounced,
    /// The kernel cannot queue another connection to this Unix socket.
    UnixQueueFull,
    /// A proxy does not lead to the target.
    NoTunnel(String),
}

type StepResult = Result<Step, Broken>;

impl Http {
    pub(super) fn new(shared: Arc<Shared>, worker: WorkerId, lanes: usize) -> Self {
        let unreported_lookup_ns = shared.take_lookup_ns();
        let picker = match &shared.requests {
            Requests::One(_) => None,
            Requests::Many(repertoire) => Some(Box::new(Picker::new(repertoire, worker))),
        };
        Self {
            connections: (0..lanes).map(|_| Connection::new(&shared)).collect(),
            picker,
            scratch: vec![0; SCRATCH_BYTES],
            counters: Counters { inflated_bytes: shared.decompress.then_some(0), ..Counters::default() },
            statuses: Box::new([0; STATUSES]),
            wants_details: true,
            unreported_lookup_ns,
            turn: shared.next_turn.fetch_add(lanes, std::sync::atomic::Ordering::Relaxed),
            shared,
        }
    }

    /// Begins an op whose request may be another one than the target's.
    #[inline]
    pub(super) fn start_request(
        &mut self,
        lane: LaneId,
        detour: Option<Arc<Request>>,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Progress {
        let connection = &mut self.connections[lane];
        connection.detour = detour;
        connection.op = Op { phase_start_ns: now_ns, ..Op::NONE };
        if let Some(picker) = &mut self.picker {
            connection.choose(picker, &self.shared);
        }
        let result = if connection.socket.is_some() {
            // Once for an op, however many redirects it follows.
            self.counters.reused += u64::from(connection.detour.is_none());
            self.send_request(lane, io)
        } else {
            self.connect(lane, io)
        };
        self.settle(lane, result, io)
    }

    /// Where the response that has just ended on `lane` leads; only a redirect's head is kept for this.
    pub(super) fn location(&self, lane: LaneId) -> Option<&[u8]> {
        field(self.connections[lane].reader.head_bytes(), "location")
    }

    /// Status of the response that has just ended on `lane`; 0 where there is none.
    pub(super) fn status(&self, lane: LaneId) -> u16 {
        self.connections[lane].reader.head().map_or(0, |head| head.status)
    }

    /// Turns what came of a step into progress; may begin the op again on a new connection.
    #[inline]
    fn settle(&mut self, lane: LaneId, result: StepResult, io: &Io<'_>) -> Progress {
        match result {
            Ok(Step::Wait) => Progress::Pending,
            Ok(Step::Complete { now }) => self.complete(lane, now),
            Err(broken) => self.give_up(lane, broken, io),
        }
    }

    /// The response is complete: judge it and make the connection ready for the next op, or close it.
    #[inline]
    fn complete(&mut self, lane: LaneId, now: Nanos) -> Progress {
        let connection = &mut self.connections[lane];
        let first_byte_ns = connection.op.first_byte_ns.unwrap_or(now);
        connection.op.phases.set(Phase::Receive, now.saturating_sub(first_byte_ns));
        if let Some(lookup_ns) = self.unreported_lookup_ns.take() {
            connection.op.phases.set(Phase::Dns, lookup_ns);
        }
        let (status, closes) = connection.reader.head().map_or((0, true), |head| (head.status, head.closes));
        self.counters.body_bytes += connection.reader.body_bytes();
        if self.shared.decompress
            && let Err(error) = connection.count_inflated(&mut self.counters)
        {
            return self.end_in_failure(lane, Broken::Protocol(error));
        }
        connection.take_cookies(&self.shared);
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
        connection.served += 1;
        let is_ok = status < 400 || self.shared.accepts_any_status;
        let op = OpEnd {
            end_ns: now,
            outcome: if is_ok { Ok(()) } else { Err(status_failure(status)) },
            phases: connection.op.phases,
            bytes_in: connection.op.bytes_in,
            status: Some(status),
            body_bytes: connection.reader.body_bytes(),
        };
        if self.wants_details {
            self.wants_details = false;
            self.counters.negotiated = Some(connection.describe(&self.shared));
        }
        let connection = &mut self.connections[lane];
        if closes || !self.shared.keepalive || connection.is_spent(connection.request(&self.shared).len()) {
            connection.close();
        } else {
            connection.stage = Stage::Idle;
        }
        Progress::Done(op)
    }

    /// The op cannot go on. A request on a kept connection that the server closed before any answer is sent once more
    /// on a new one, as ordinary clients do (RFC 9112, 9.3.1), if sending it twice does no harm.
    #[cold]
    fn give_up(&mut self, lane: LaneId, broken: Broken, io: &Io<'_>) -> Progress {
        // A server may answer and hang up before it has the whole request (413): sending meets the reset first, while
        // the answer waits in the socket.
        if broken.is_lost_while_sending()
            && self.connections[lane].stage != Stage::Tunnelling
            && let Ok(Step::Complete { now }) = self.receive(lane, io)
        {
            self.connections[lane].request_at = 0;
            return self.complete(lane, now);
        }
        let connection = &mut self.connections[lane];
        let was_kept = connection.served > 0 && connection.reader.is_untouched() && !connection.op.retried;
        if was_kept && connection.request(&self.shared).is_idempotent && broken.is_lost_connection() {
            connection.close();
            connection.op = Op { retried: true, ..connection.op };
            // It goes over a new connection after all.
            let was_counted = u64::from(connection.detour.is_none());
            self.counters.reused = self.counters.reused.saturating_sub(was_counted);
            let result = self.connect(lane, io);
            return self.settle(lane, result, io);
        }
        self.end_in_failure(lane, broken)
    }

    fn end_in_failure(&mut self, lane: LaneId, broken: Broken) -> Progress {
        let connection = &mut self.connections[lane];
        let failure = broken.into_failure(&connection.reader);
        connection.close();
        Progress::Done(OpEnd {
            end_ns: monotonic_ns(),
            outcome: Err(Box::new(failure)),
            phases: connection.op.phases,
            bytes_in: connection.op.bytes_in,
            status: None,
            body_bytes: 0,
        })
    }

    fn connect(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let connection = &mut self.connections[lane];
        let way = self.shared.resolved.ends.way(self.turn);
        self.turn = self.turn.wrapping_add(1);
        let socket = open_socket(way.family()).map_err(|errno| Broken::System("open a socket", errno))?;
        if let Way::Tcp { source, .. } = way {
            // Where it cannot be switched off, small requests may wait for an acknowledgement; nothing else changes.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
            if let Some(bytes) = self.shared.segment_bytes {
                socket2::SockRef::from(&socket)
                    .set_tcp_mss(u32::from(bytes))
                    .map_err(|error| Broken::System("announce a segment size", errno_of(&error)))?;
            }
            self.shared.acknowledge_soon(&socket);
            if let Some(source) = source {
                source::bind(&socket, source).map_err(|errno| Broken::System(CONNECT_FROM_SOURCE, errno))?;
            }
        }
        let connected = way.connect(&socket);
        let is_connected = match connected {
            Ok(()) => true,
            // On loopback the handshake is over when connect returns: asking is cheaper than a turn of the loop.
            Err(Errno::INPROGRESS) => rustix::net::getpeername(&socket).is_ok_and(|peer| peer.is_some()),
            Err(Errno::AGAIN) if !way.is_tcp() => return Err(Broken::UnixQueueFull),
            Err(errno) => return Err(Broken::System("connect", errno)),
        };
        connection.watches_writing = !is_connected;
        let interest = if is_connected { Interest::Read } else { Interest::ReadWrite };
        io.watch(&socket, lane, interest).map_err(|error| Broken::System("watch a socket", errno_of(&error)))?;
        connection.socket = Some(socket);
        connection.stage = Stage::Connecting;
        let is_first = !connection.op.retried;
        connection.connecting_since_ns = if is_first { connection.op.phase_start_ns } else { monotonic_ns() };
        if is_connected { self.connected(lane, io) } else { Ok(Step::Wait) }
    }

    fn finish_connect(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let Some(socket) = &self.connections[lane].socket else { return Ok(Step::Wait) };
        let error = rustix::net::sockopt::socket_error(socket).unwrap_or_else(Err);
        if let Err(errno) = error {
            return Err(Broken::System("connect", errno));
        }
        // No error is not yet success: the event may be a stale one of an earlier socket.
        match rustix::net::getpeername(socket) {
            Ok(Some(_)) => self.connected(lane, io),
            _ => Ok(Step::Wait),
        }
    }

    fn connected(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        if let Some(version) = self.shared.proxy_protocol {
            // It leaves with what is sent first, or just before it.
            let Connection { socket: Some(socket), out, .. } = &mut self.connections[lane] else {
                return Ok(Step::Wait);
            };
            proxy_protocol::append(version, socket, out);
        }
        if self.shared.tunnel.is_some() { self.open_tunnel(lane, io) } else { self.reached(lane, io) }
    }

    /// Asks the proxy for a tunnel to the target; connecting goes on until it is open.
    #[cold]
    fn open_tunnel(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let connection = &mut self.connections[lane];
        connection.stage = Stage::Tunnelling;
        connection.tunnel = Some(Box::new(ResponseReader::new(true)));
        let request = self.shared.tunnel.as_ref().map_or(&[][..], |tunnel| &tunnel.request);
        connection.out.extend_from_slice(request);
        self.flush(lane, io)?;
        Ok(Step::Wait)
    }

    #[cold]
    fn continue_tunnel(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> StepResult {
        if event.writable && self.connections[lane].watches_writing {
            self.flush(lane, io)?;
        }
        let connection = &mut self.connections[lane];
        let (Some(socket), Some(reader), Some(tunnel)) =
            (&connection.socket, &mut connection.tunnel, &self.shared.tunnel)
        else {
            return Ok(Step::Wait);
        };
        let count = match rustix::io::read(socket, &mut self.scratch[..]) {
            Ok(0) => {
                return Err(Broken::NoTunnel(tunnel.broken("closed the connection instead of opening a tunnel")));
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Step::Wait),
            Err(Errno::CONNRESET) => {
                return Err(Broken::NoTunnel(tunnel.broken("reset the connection instead of opening a tunnel")));
            }
            Err(errno) => return Err(Broken::System("receive", errno)),
        };
        self.counters.bytes_in += count as u64;
        let garbled = |error: ProtocolError| {
            Broken::Protocol(ProtocolError(tunnel.broken(&format!("gave no usable answer: {}", error.0))))
        };
        let fed = reader.feed(&self.scratch[..count]).map_err(garbled)?;
        match reader.head().map(|head| head.status) {
            None => Ok(Step::Wait),
            // TLS begins with us: nothing may follow yet.
            Some(200..300) if fed.consumed < count => Err(garbled(surplus())),
            Some(200..300) => {
                connection.tunnel = None;
                self.reached(lane, io)
            }
            Some(status) => Err(Broken::NoTunnel(tunnel.refused(status))),
        }
    }

    /// There is a connection to the target.
    #[inline]
    fn reached(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let connection = &mut self.connections[lane];
        connection.op.phase_ended(Phase::Connect, monotonic_ns());
        self.counters.connections += 1;
        connection.served = 0;
        let Some(tls) = &self.shared.tls else { return self.send_request(lane, io) };
        let mut stream = tls.connect().map_err(|error| Broken::Tls(TlsError::Tls(error)))?;
        connection.stage = Stage::Handshaking;
        stream.drive(&mut [], &mut connection.out, &mut |_| Ok(())).map_err(Broken::Tls)?;
        connection.tls = Some(stream);
        self.flush(lane, io)?;
        Ok(Step::Wait)
    }

    /// Begins sending the request on an established connection.
    #[inline]
    fn send_request(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let connection = &mut self.connections[lane];
        connection.reader.begin(self.wants_details || connection.jar.is_some());
        connection.request_at = 0;
        connection.stage = Stage::Sending;
        self.flush(lane, io)?;
        Ok(Step::Wait)
    }

    fn continue_sending(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> StepResult {
        if event.writable && self.connections[lane].watches_writing {
            self.flush(lane, io)?;
        }
        // A server may answer before it has the whole request.
        if event.readable { self.receive(lane, io) } else { Ok(Step::Wait) }
    }

    /// Sends what is to be sent as far as the socket takes it, and watches for room if it does not take all.
    #[inline]
    fn flush(&mut self, lane: LaneId, io: &Io<'_>) -> Result<(), Broken> {
        let connection = &mut self.connections[lane];
        let sent = connection.write_out(&self.shared, &mut self.counters.bytes_out)?;
        let Some(socket) = &connection.socket else { return Ok(()) };
        let blocked = sent == Sent::Blocked;
        if blocked != connection.watches_writing {
            let interest = if blocked { Interest::ReadWrite } else { Interest::Read };
            io.rewatch(socket, lane, interest).map_err(|error| Broken::System("watch a socket", errno_of(&error)))?;
            connection.watches_writing = blocked;
        }
        if sent == Sent::All && connection.stage == Stage::Sending {
            connection.op.phase_ended(Phase::Send, monotonic_ns());
            connection.stage = Stage::Receiving;
        }
        Ok(())
    }

    /// Reads what has arrived, as long as it comes in full buffers.
    #[inline]
    fn receive(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        for _ in 0..READS_IN_A_ROW {
            let connection = &mut self.connections[lane];
            let Some(socket) = &connection.socket else { return Ok(Step::Wait) };
            let kept = connection.tls.as_ref().map_or(0, |tls| tls.incoming.len());
            let room = self.scratch.len() - kept;
            let count = match rustix::io::read(socket, &mut self.scratch[kept..]) {
                Ok(count) => count,
                Err(Errno::AGAIN) => return Ok(Step::Wait),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Broken::System("receive", errno)),
            };
            let now = monotonic_ns();
            if count == 0 {
                return connection.ended(now);
            }
            self.shared.acknowledge_soon(socket);
            connection.op.bytes_in += count as u64;
            self.counters.bytes_in += count as u64;
            let complete = if connection.tls.is_some() {
                let complete = connection.take_records(&mut self.scratch, kept + count, now)?;
                self.resume_after_records(lane, io)?;
                complete
            } else {
                connection.take_plain(&self.scratch[..count], now)?
            };
            if complete {
                return Ok(Step::Complete { now });
            }
            if count < room {
                return Ok(Step::Wait);
            }
        }
        Ok(Step::Wait)
    }

    /// After TLS has handled what arrived: the handshake may be over, or there may be something to answer.
    #[inline]
    fn resume_after_records(&mut self, lane: LaneId, io: &Io<'_>) -> Result<(), Broken> {
        let connection = &mut self.connections[lane];
        if connection.stage == Stage::Handshaking && connection.tls.as_ref().is_some_and(TlsStream::is_established) {
            connection.op.phase_ended(Phase::Tls, monotonic_ns());
            self.counters.resumed += u64::from(connection.tls.as_ref().is_some_and(TlsStream::is_resumed));
            self.send_request(lane, io)?;
        } else if connection.out_at < connection.out.len() {
            self.flush(lane, io)?;
        }
        Ok(())
    }

    /// Something happened on a connection that carries no op: its end, session tickets, or what nobody asked for.
    #[cold]
    fn idle_event(&mut self, lane: LaneId) {
        let connection = &mut self.connections[lane];
        let Some(socket) = &connection.socket else { return };
        let kept = connection.tls.as_ref().map_or(0, |tls| tls.incoming.len());
        let keep = match rustix::io::read(socket, &mut self.scratch[kept..]) {
            Err(Errno::AGAIN | Errno::INTR) => true,
            Ok(count) if count > 0 && connection.tls.is_some() => {
                self.counters.bytes_in += count as u64;
                connection.take_tickets(&mut self.scratch, kept + count)
            }
            Ok(_) | Err(_) => false,
        };
        if !keep {
            connection.close();
        }
    }
}

impl Connection {
    fn new(shared: &Shared) -> Self {
        let is_head = matches!(&shared.requests, Requests::One(request) if request.is_head);
        let mut reader = ResponseReader::new(is_head);
        if shared.decompress {
            reader.inflate_bodies();
        }
        Self {
            socket: None,
            tls: None,
            stage: Stage::Idle,
            connecting_since_ns: 0,
            watches_writing: false,
            reader,
            out: Vec::new(),
            out_at: 0,
            request_at: 0,
            served: 0,
            op: Op::NONE,
            detour: None,
            draft: Draft::default(),
            jar: shared.cookies.then(Box::default),
            tunnel: None,
        }
    }

    /// What is sent for the op under way.
    #[inline]
    fn request<'a>(&'a self, shared: &'a Shared) -> Outgoing<'a> {
        request(self.detour.as_deref(), &self.draft, shared)
    }

    /// Chooses what the op sends; where a redirect led here, that is known, and it takes its cookies along.
    fn choose(&mut self, picker: &mut Picker, shared: &Shared) {
        let Requests::Many(repertoire) = &shared.requests else { return };
        if let Some(detour) = &mut self.detour {
            self.reader.expect_head_only(detour.is_head);
            if let Some(jar) = self.jar.as_ref().filter(|jar| !jar.is_empty()) {
                let mut field = Vec::new();
                jar.push_field(path_of(&detour.bytes), &mut field);
                *detour = Arc::new(detour.with_field(&field));
            }
            return;
        }
        let to_head_request = picker.pick(repertoire, &mut self.draft, self.jar.as_deref());
        self.reader.expect_head_only(to_head_request);
    }

    /// Counts the complete body's size after decompression.
    #[cold]
    fn count_inflated(&mut self, counters: &mut Counters) -> Result<(), ProtocolError> {
        if let Some(bytes) = self.reader.inflated_bytes()? {
            *counters.inflated_bytes.get_or_insert(0) += bytes;
        }
        Ok(())
    }

    /// Keeps the cookies that the response has set.
    #[inline]
    fn take_cookies(&mut self, shared: &Shared) {
        if let Some(jar) = &mut self.jar {
            let sent = request(self.detour.as_deref(), &self.draft, shared);
            jar.take(self.reader.head_bytes(), path_of(sent.head), shared.tls.is_some());
        }
    }

    /// Closes the socket; the next op connects anew.
    fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.stage = Stage::Idle;
        self.tunnel = None;
        self.out.clear();
        self.out_at = 0;
        self.served = 0;
        if let Some(jar) = &mut self.jar {
            jar.clear();
        }
    }

    /// Whether no other request may follow on this connection, whatever the response's head says: a part of the
    /// request has not left (the server answered early), or TLS has announced the end.
    #[inline]
    fn is_spent(&self, request_bytes: usize) -> bool {
        self.request_at < request_bytes
            || self.out_at < self.out.len()
            || self.tls.as_ref().is_some_and(TlsStream::is_closed)
    }

    #[inline]
    fn write_out(&mut self, shared: &Shared, bytes_out: &mut u64) -> Result<Sent, Broken> {
        let Some(socket) = &self.socket else { return Ok(Sent::All) };
        let request = request(self.detour.as_deref(), &self.draft, shared);
        loop {
            let wants_more = self.stage == Stage::Sending && self.request_at == 0 && request.len() > 0;
            if let (Some(tls), true) = (&mut self.tls, wants_more) {
                // The handshake's last flight and the request leave in one call, and in one segment if they fit.
                let piece = request.from(0);
                let piece = &piece[..piece.len().min(ENCRYPT_BYTES)];
                tls.encrypt(piece, &mut self.out).map_err(Broken::Tls)?;
                self.request_at = piece.len();
            }
            let (pending, is_plain) = if self.out_at < self.out.len() {
                (&self.out[self.out_at..], false)
            } else if self.stage != Stage::Sending || self.request_at == request.len() {
                return Ok(Sent::All);
            } else if let Some(tls) = &mut self.tls {
                self.out.clear();
                self.out_at = 0;
                let piece = request.from(self.request_at);
                let piece = &piece[..piece.len().min(ENCRYPT_BYTES)];
                tls.encrypt(piece, &mut self.out).map_err(Broken::Tls)?;
                self.request_at += piece.len();
                (&self.out[..], false)
            } else {
                (request.from(self.request_at), true)
            };
            // Rust programs ignore SIGPIPE, so that a plain write is enough, and there is one on every system.
            match rustix::io::write(socket, pending) {
                Ok(count) => {
                    *bytes_out += count as u64;
                    if is_plain {
                        self.request_at += count;
                    } else {
                        self.out_at += count;
                        if self.out_at == self.out.len() {
                            self.out.clear();
                            self.out_at = 0;
                        }
                    }
                }
                Err(Errno::AGAIN) => return Ok(Sent::Blocked),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Broken::System("send", errno)),
            }
        }
    }

    /// Plain bytes of a response; whether it is complete.
    #[inline]
    fn take_plain(&mut self, bytes: &[u8], now: Nanos) -> Result<bool, Broken> {
        self.op.first_byte(now);
        let fed = self.reader.feed(bytes).map_err(Broken::Protocol)?;
        if fed.consumed < bytes.len() {
            return Err(Broken::Protocol(surplus()));
        }
        Ok(fed.complete)
    }

    /// The first `filled` bytes of `scratch` are TLS records; whether the response is complete.
    #[inline]
    fn take_records(&mut self, scratch: &mut [u8], filled: usize, now: Nanos) -> Result<bool, Broken> {
        let Self { tls: Some(tls), reader, op, out, stage, .. } = self else { return Ok(false) };
        scratch[..tls.incoming.len()].copy_from_slice(&tls.incoming);
        let mut complete = false;
        let mut sink = |plain: &[u8]| {
            if !matches!(stage, Stage::Receiving | Stage::Sending) {
                return Err(ProtocolError("the server sent data before it was asked".into()));
            }
            op.first_byte(now);
            let fed = reader.feed(plain)?;
            complete = fed.complete;
            if fed.consumed < plain.len() { Err(surplus()) } else { Ok(()) }
        };
        let driven = tls.drive(&mut scratch[..filled], out, &mut sink).map_err(Broken::Tls)?;
        tls.keep(&scratch[driven.consumed..filled]);
        if driven.closed && !complete {
            if *stage == Stage::Handshaking {
                // The reader still holds the response of an earlier connection.
                return Err(Broken::Cut { when: *stage, how: None });
            }
            return match reader.closed() {
                Ok(()) => Ok(true),
                Err(how) => Err(Broken::Cut { when: *stage, how: Some(how) }),
            };
        }
        Ok(complete)
    }

    /// Records on an idle connection: session tickets are welcome; whether the connection is still good.
    fn take_tickets(&mut self, scratch: &mut [u8], filled: usize) -> bool {
        let Self { tls: Some(tls), out, .. } = self else { return false };
        scratch[..tls.incoming.len()].copy_from_slice(&tls.incoming);
        let refuse = &mut |_: &[u8]| Err(ProtocolError("data that was not asked for".into()));
        match tls.drive(&mut scratch[..filled], out, refuse) {
            Ok(driven) if !driven.closed => {
                tls.keep(&scratch[driven.consumed..filled]);
                true
            }
            _ => false,
        }
    }

    /// The peer will send no more.
    #[cold]
    fn ended(&mut self, now: Nanos) -> StepResult {
        if matches!(self.stage, Stage::Handshaking | Stage::Connecting) {
            return Err(Broken::Cut { when: self.stage, how: None });
        }
        match self.reader.closed() {
            // Over TLS the end has to be announced, or anybody on the way could cut the response short.
            Ok(()) if self.tls.is_some() => Err(Broken::ConnectionEndedUnannounced),
            Ok(()) => Ok(Step::Complete { now }),
            Err(how) => Err(Broken::Cut { when: self.stage, how: Some(how) }),
        }
    }

    /// What the connection and its last response show.
    #[cold]
    fn describe(&self, shared: &Shared) -> Negotiated {
        let head = self.reader.head_bytes();
        let text = |name| field(head, name).map(|value| sanitize_line(&String::from_utf8_lossy(value)));
        let mut negotiated = Negotiated {
            http: self.reader.head().map(|head| format!("HTTP/1.{}", head.minor_version)),
            server: text("server"),
            via: text("via"),
            content_encoding: text("content-encoding"),
            content_type: text("content-type"),
            location: field(head, "location").and_then(|value| String::from_utf8(value.to_vec()).ok()),
            keeps_alive: self.reader.head().filter(|_| shared.keepalive).map(|head| !head.closes),
            status: self.reader.head().map(|head| head.status),
            body_bytes: Some(self.reader.body_bytes()),
            peer: Some(shared.resolved.shown.clone()),
            segment_bytes: self.socket.as_ref().and_then(|socket| socket2::SockRef::from(socket).tcp_mss().ok()),
            dead_addresses: shared.resolved.dead.clone(),
            dead_addresses_ns: shared.resolved.dead_ns,
            lookup_ns: shared.resolved.lookup_ns,
            ..Negotiated::default()
        };
        if let Some(tls) = &self.tls {
            tls.describe(&mut negotiated);
        }
        negotiated
    }
}

/// What is sent: what a redirect led to, the target's one request, or what was chosen.
#[inline]
fn request<'a>(detour: Option<&'a Request>, draft: &'a Draft, shared: &'a Shared) -> Outgoing<'a> {
    match (detour, &shared.requests) {
        (Some(detour), _) => detour.outgoing(),
        (None, Requests::One(request)) => request.outgoing(),
        (None, Requests::Many(repertoire)) => draft.outgoing(repertoire),
    }
}

impl Op {
    /// The first byte of the response is there: waiting is over.
    #[inline]
    fn first_byte(&mut self, now: Nanos) {
        if self.first_byte_ns.is_none() {
            self.first_byte_ns = Some(now);
            self.phases.set(Phase::Wait, now.saturating_sub(self.phase_start_ns));
        }
    }
}

impl Broken {
    /// The connection is gone, which on a kept one may only mean that it was idle for too long.
    fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            Self::System("send" | "receive", Errno::CONNRESET | Errno::PIPE)
                | Self::Cut { how: Some(Truncated::Nothing), .. }
        )
    }

    fn is_lost_while_sending(&self) -> bool {
        matches!(self, Self::System("send", Errno::CONNRESET | Errno::PIPE))
    }

    fn into_failure(self, reader: &ResponseReader) -> Failure {
        let (kind, text) = match self {
            Self::System(what, errno) => (kind_of(what, errno), system_problem(what, errno)),
            Self::Tls(error) => error.describe(),
            Self::Protocol(error) => (FailureKind::Protocol, error.0),
            Self::Cut { when: Stage::Handshaking, .. } => {
                (FailureKind::Tls, "the server closed the connection during the TLS handshake".to_owned())
            }
            Self::Cut { how: Some(Truncated::Head), .. } => {
                (FailureKind::ShortBody, "the server closed the connection within the response's head".to_owned())
            }
            Self::Cut { how: Some(Truncated::Body { got, announced }), .. } => {
                let of = announced.map_or_else(|| "without its last chunk".to_owned(), |all| format!("of {all}"));
                (FailureKind::ShortBody, format!("the response's body ended after {got} bytes {of}"))
            }
            Self::Cut { .. } => (FailureKind::Closed, "the server closed the connection without an answer".to_owned()),
            Self::ConnectionEndedUnannounced => {
                let got = reader.body_bytes();
                (
                    FailureKind::ShortBody,
                    format!("the connection ended after {got} body bytes without a TLS closure alert"),
                )
            }
            Self::NoTunnel(why) => (FailureKind::Unreachable, why),
            Self::UnixQueueFull => (FailureKind::Refused, "the Unix socket's listen queue is full".to_owned()),
        };
        Failure { kind, text }
    }
}

/// A stream socket that does not block and that child processes do not inherit.
#[cfg(not(target_vendor = "apple"))]
fn open_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    use rustix::net::SocketFlags;
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

/// As above, in several steps: macOS cannot do it in one.
#[cfg(target_vendor = "apple")]
fn open_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

#[cold]
fn status_failure(status: u16) -> Box<Failure> {
    Box::new(Failure { kind: FailureKind::Status, text: format!("the server answered with status {status}") })
}

fn surplus() -> ProtocolError {
    ProtocolError("the server sent more bytes than its response announced".into())
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn kind_of(what: &str, errno: Errno) -> FailureKind {
    match errno {
        Errno::CONNREFUSED | Errno::NOENT => FailureKind::Refused,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => FailureKind::Unreachable,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => FailureKind::Reset,
        // The kernel gave up: on an established connection because nothing was acknowledged any more.
        Errno::TIMEDOUT if what == "connect" => FailureKind::ConnectTimeout,
        Errno::TIMEDOUT => FailureKind::Timeout,
        // A local address that was there when load began.
        Errno::ADDRNOTAVAIL if what == CONNECT_FROM_SOURCE => FailureKind::Io,
        // Where a port is taken by binding, that is what finds none.
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => FailureKind::PortsExhausted,
        Errno::MFILE | Errno::NFILE => FailureKind::DescriptorsExhausted,
        _ => FailureKind::Io,
    }
}

fn system_problem(what: &str, errno: Errno) -> String {
    match kind_of(what, errno) {
        FailureKind::Refused => "connection refused".to_owned(),
        FailureKind::Reset => "the server reset the connection".to_owned(),
        FailureKind::PortsExhausted => "no local port is free to connect from; keep connections alive, use fewer \
             requests, give more local addresses (--source), or widen net.ipv4.ip_local_port_range"
            .to_owned(),
        FailureKind::DescriptorsExhausted => {
            "no descriptor is free to connect with; raise the limit (ulimit -n) or use fewer connections".to_owned()
        }
        _ => {
            let error = std::io::Error::from(errno).to_string();
            format!("cannot {what}: {}", error.split(" (os error").next().unwrap_or_default().to_lowercase())
        }
    }
}
