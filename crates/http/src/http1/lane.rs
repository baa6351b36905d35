//! HTTP/1.1 on a connection: a request, its response, the next one; driven by readiness.
//!
//! # Surplus bytes
//!
//! Bytes behind the end of a response belong to nobody, and may never be taken for the next response (RFC 9112, 6.3). There
//! is one rule, whenever they come: the response before them stands, they are counted, and the connection is closed. They
//! may come
//!
//! * together with the response, or before the next request: then they are seen there and then;
//! * when the next request has left: what does not even begin like a response was no answer to it. It goes over a new
//!   connection, if sending it twice does no harm, as if the connection had been closed;
//! * after the slot's last response: idle connections are looked at once more at its end, and heard before the next one.
//!
//! What begins like a response when a request is under way cannot be told from its answer. To look into the socket before
//! each request would find no more of it, since what is late enough to be missed comes later than that, and would cost each
//! op a call of the kernel. So a server that answers twice may be out of step for some ops; at the end of the slot at the
//! latest an answer is left over, and counted.

use crate::broken::Broken;
use crate::desk::Desk;
use crate::http1::response::{ResponseReader, field};
use crate::inflate::{Asked, ration};
use crate::link::arrival::Heard;
use crate::link::tls::TlsStream;
use crate::link::{Link, Sent, Traveller};
use crate::op::Op;
use crate::protocol_error::ProtocolError;
use crate::requests::cookies::{Jar, path_of};
use crate::requests::picker::{Draft, Picker};
use crate::requests::request::{Outgoing, Request};
use crate::shared::{Requests, Shared};
use duel_load::{Counters, Event, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload, monotonic_ns};
use duel_model::web::phase;
use duel_model::{Facts, Nanos, web};
use rustix::io::Errno;
use std::sync::Arc;

/// One worker's connections to one target.
#[derive(Debug)]
pub struct Http {
    shared: Arc<Shared>,
    connections: Vec<Connection>,
    desk: Desk,
}

/// Plain text encrypted at a time when a request is longer: four full records.
const ENCRYPT_BYTES: usize = 64 * 1024;

#[derive(Debug)]
struct Connection {
    link: Link,
    stage: Stage,
    reader: ResponseReader,
    /// How much of the request is on its way (encrypted or written).
    request_at: usize,
    /// More came on it than the response.
    is_over: bool,
    /// Responses that this connection has carried.
    served: u64,
    op: Op,
    /// What is sent instead of the target's request, where a redirect led here.
    detour: Option<Arc<Request>>,
    /// What was chosen, where there is more than one request.
    draft: Draft,
    /// Cookies, where they are kept.
    jar: Option<Box<Jar>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No op under way; connected or not.
    Idle,
    /// The connection is being made.
    Reaching,
    Sending,
    Receiving,
}

impl Workload for Http {
    #[inline]
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        self.start_request(lane, None, now_ns, io)
    }

    #[inline]
    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        self.desk.ready_after_ns = io.ready_after_ns();
        let connection = &mut self.connections[lane];
        if connection.link.socket.is_none() {
            return Progress::Pending;
        }
        if self.shared.decompress && !ration::admits(&mut connection.link.served_in) {
            return Progress::Pending;
        }
        let result = match connection.stage {
            Stage::Idle => {
                self.idle_event(lane);
                Ok(Step::Wait)
            }
            Stage::Receiving if !connection.link.watches_writing => self.receive(lane, io),
            Stage::Sending | Stage::Receiving => self.continue_sending(lane, event, io),
            Stage::Reaching => self.approach(lane, event, io),
        };
        self.settle(lane, result, io)
    }

    fn turn_begins(&mut self) {
        if self.shared.decompress {
            ration::turn_begins();
        }
    }

    fn cancel(&mut self, lane: LaneId) {
        self.connections[lane].close();
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let Connection { stage, op, link, .. } = &self.connections[lane];
        let mut op = *op;
        match (stage, op.first_byte_ns) {
            (Stage::Idle, _) => {}
            (Stage::Reaching, _) => op.phase_ended(link.phase(), now_ns),
            (Stage::Sending, _) => op.phase_ended(phase::SEND, now_ns),
            (Stage::Receiving, None) => op.phase_ended(phase::WAIT, now_ns),
            (Stage::Receiving, Some(since_ns)) => op.phases.set(phase::RECEIVE, now_ns.saturating_sub(since_ns)),
        }
        op.phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        let Connection { stage, op, .. } = &self.connections[lane];
        (*stage == Stage::Reaching).then_some(op.connecting_since_ns)
    }

    fn slot_ended(&mut self) {
        for lane in 0..self.connections.len() {
            if self.connections[lane].stage == Stage::Idle {
                self.idle_event(lane);
            }
        }
    }

    fn traffic(&self) -> Traffic {
        self.desk.counters.traffic()
    }

    fn take_counters(&mut self) -> Counters {
        self.desk.take_counters(&self.shared)
    }
}

/// Where an op stands after something was done for it.
enum Step {
    /// It goes on when the socket is ready.
    Wait,
    /// The response is complete.
    Complete(Heard),
}

type StepResult = Result<Step, Broken>;

/// What bytes have made of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It is not whole.
    Part,
    Whole,
    /// More than it came; whether that was surplus, or says why the connection is closed.
    WholeAndMore {
        surplus: bool,
    },
}

impl Http {
    pub(crate) fn new(shared: Arc<Shared>, worker: WorkerId, lanes: usize) -> Self {
        Self {
            connections: (0..lanes).map(|_| Connection::new(&shared)).collect(),
            desk: Desk::new(&shared, worker, lanes),
            shared,
        }
    }

    /// Begins an op whose request may be another one than the target's.
    #[inline]
    pub(crate) fn start_request(
        &mut self,
        lane: LaneId,
        detour: Option<Arc<Request>>,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Progress {
        let connection = &mut self.connections[lane];
        connection.detour = detour;
        connection.op = Op::begin(now_ns);
        if let Some(picker) = &mut self.desk.picker {
            connection.choose(picker, &self.shared);
        }
        let result = if connection.link.socket.is_some() {
            // Once for an op, however many redirects it follows.
            self.desk.counters.reused += u64::from(connection.detour.is_none());
            self.send_request(lane, io)
        } else {
            self.connect(lane, io)
        };
        self.settle(lane, result, io)
    }

    /// Where the response that has just ended on `lane` leads; only a redirect's head is kept for this.
    pub(crate) fn location(&self, lane: LaneId) -> Option<&[u8]> {
        field(self.connections[lane].reader.head_bytes(), "location")
    }

    /// Status of the response that has just ended on `lane`; 0 where there is none.
    pub(crate) fn status(&self, lane: LaneId) -> u16 {
        self.connections[lane].reader.head().map_or(0, |head| head.status)
    }

    /// Turns what came of a step into progress; may begin the op again on a new connection.
    #[inline]
    fn settle(&mut self, lane: LaneId, result: StepResult, io: &Io<'_>) -> Progress {
        match result {
            Ok(Step::Wait) => Progress::Pending,
            Ok(Step::Complete(heard)) => self.complete(lane, heard),
            Err(broken) => self.give_up(lane, broken, io),
        }
    }

    /// The response is complete: judge it and make the connection ready for the next op, or close it.
    #[inline]
    fn complete(&mut self, lane: LaneId, heard: Heard) -> Progress {
        let connection = &mut self.connections[lane];
        let now = heard.at_ns();
        let first_byte_ns = connection.op.first_byte_ns.unwrap_or(now);
        connection.op.phases.set(phase::RECEIVE, now.saturating_sub(first_byte_ns));
        self.desk.report_lookup(&mut connection.op);
        self.desk.ask_why_late(&connection.op, &mut connection.link);
        let (status, closes) = connection.reader.head().map_or((0, true), |head| (head.status, head.closes));
        self.desk.counters.body_bytes += connection.reader.body_bytes();
        if self.shared.decompress
            && let Err(error) = connection.count_inflated(&mut self.desk.counters)
        {
            return self.end_in_failure(lane, Broken::Protocol(error));
        }
        connection.take_cookies(&self.shared);
        connection.served += 1;
        let op = OpEnd {
            ops: 1,
            end_ns: heard.noticed_ns,
            arrived_ns: heard.arrived_ns,
            outcome: self.desk.judge(status, &self.shared),
            phases: connection.op.phases,
            bytes_in: connection.op.bytes_in,
            status: Some(status),
            body_bytes: connection.reader.body_bytes(),
        };
        if self.desk.wants_details {
            self.desk.wants_details = false;
            self.desk.counters.negotiated = Some(connection.describe(&self.shared));
        }
        let connection = &mut self.connections[lane];
        if closes || !self.shared.keepalive || connection.is_spent(connection.request(&self.shared).len()) {
            connection.close();
        } else {
            connection.stage = Stage::Idle;
        }
        Progress::Done(op)
    }

    /// The op cannot go on. A request on a kept connection that the server closed before any answer, or on which it met
    /// surplus bytes, is sent once more on a new one, as ordinary clients do (RFC 9112, 9.3.1), if sending it twice does no
    /// harm.
    #[cold]
    fn give_up(&mut self, lane: LaneId, mut broken: Broken, io: &Io<'_>) -> Progress {
        // A server may answer and hang up before it has the whole request (413): sending meets the reset first, while
        // the answer waits in the socket.
        if broken.is_lost_while_sending()
            && self.connections[lane].stage != Stage::Reaching
            && let Ok(Step::Complete(heard)) = self.receive(lane, io)
        {
            self.connections[lane].request_at = 0;
            return self.complete(lane, heard);
        }
        let connection = &mut self.connections[lane];
        let met_surplus = connection.served > 0 && connection.reader.is_stray();
        self.desk.counters.surplus += u64::from(met_surplus);
        let is_unanswered = met_surplus || (connection.reader.is_untouched() && broken.is_lost_connection());
        let was_kept = connection.served > 0 && is_unanswered && !connection.op.retried;
        if was_kept && connection.request(&self.shared).is_idempotent {
            connection.close();
            connection.op.heard_nothing();
            connection.op.retried = true;
            connection.op.needs_another_connection();
            // It goes over a new connection after all.
            let was_counted = u64::from(connection.detour.is_none());
            let counters = &mut self.desk.counters;
            counters.reused = counters.reused.saturating_sub(was_counted);
            counters.resent += 1;
            let result = self.connect(lane, io);
            return self.settle(lane, result, io);
        }
        if met_surplus {
            broken = Broken::MetSurplus;
        }
        self.end_in_failure(lane, broken)
    }

    fn end_in_failure(&mut self, lane: LaneId, broken: Broken) -> Progress {
        let connection = &mut self.connections[lane];
        let failure = broken.into_failure();
        connection.close();
        let Op { phases, bytes_in, .. } = connection.op;
        Progress::Done(OpEnd { phases, bytes_in, ..OpEnd::noticed(monotonic_ns(), Err(Box::new(failure))) })
    }

    fn connect(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let Self { connections, shared, desk } = self;
        let Connection { link, op, stage, served, .. } = &mut connections[lane];
        *stage = Stage::Reaching;
        *served = 0;
        let turn = desk.next_turn();
        let is_there = link.connect(turn, lane, &mut Traveller { shared, op, counters: &mut desk.counters }, io)?;
        if is_there { self.send_request(lane, io) } else { Ok(Step::Wait) }
    }

    fn approach(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> StepResult {
        let Self { connections, shared, desk: Desk { counters, scratch, .. } } = self;
        let Connection { link, op, .. } = &mut connections[lane];
        let refuse = &mut |_: &[u8]| Err(ProtocolError("the server sent data before it was asked".into()));
        let mut who = Traveller { shared, op, counters };
        let is_there = link.approach(lane, event, &mut who, scratch, refuse, io)?;
        if is_there { self.send_request(lane, io) } else { Ok(Step::Wait) }
    }

    /// Begins sending the request on an established connection.
    #[inline]
    fn send_request(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        let connection = &mut self.connections[lane];
        connection.reader.begin(self.desk.wants_details || connection.jar.is_some());
        connection.request_at = 0;
        connection.stage = Stage::Sending;
        self.flush(lane, io)?;
        Ok(Step::Wait)
    }

    fn continue_sending(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> StepResult {
        if event.writable && self.connections[lane].link.watches_writing {
            self.flush(lane, io)?;
        }
        // A server may answer before it has the whole request.
        if event.readable { self.receive(lane, io) } else { Ok(Step::Wait) }
    }

    /// Sends what is to be sent as far as the socket takes it, and watches for room if it does not take all.
    #[inline]
    fn flush(&mut self, lane: LaneId, io: &Io<'_>) -> Result<(), Broken> {
        let connection = &mut self.connections[lane];
        let sent = connection.write_out(&self.shared, &mut self.desk.counters.bytes_out)?;
        connection.link.watch_writing(sent == Sent::Blocked, lane, io)?;
        if sent == Sent::All && connection.stage == Stage::Sending {
            connection.op.phase_ended(phase::SEND, monotonic_ns());
            connection.stage = Stage::Receiving;
        }
        Ok(())
    }

    /// Reads what has arrived, as long as it comes in full buffers.
    #[inline]
    fn receive(&mut self, lane: LaneId, io: &Io<'_>) -> StepResult {
        for _ in 0..self.desk.reads_in_a_row {
            let connection = &mut self.connections[lane];
            let kept = connection.link.kept();
            let end = self.desk.read_end(kept);
            let room = end - kept;
            let Some((count, heard)) = connection.link.read(&self.shared, &mut self.desk.scratch[..end])? else {
                return Ok(Step::Wait);
            };
            let heard = heard.ready_after(self.desk.ready_after_ns).not_before(connection.op.heard_after_ns());
            if count == 0 {
                return connection.ended(heard);
            }
            let now = heard.at_ns();
            connection.op.bytes_in += count as u64;
            self.desk.counters.bytes_in += count as u64;
            let taken = if connection.link.tls.is_some() {
                let taken = connection.take_records(&mut self.desk.scratch, kept + count, now)?;
                // A key update or the like has to be answered.
                if connection.link.has_unsent() {
                    self.flush(lane, io)?;
                }
                taken
            } else {
                connection.take_plain(&self.desk.scratch[..count], now)?
            };
            if taken != Taken::Part {
                if let Taken::WholeAndMore { surplus } = taken {
                    self.connections[lane].is_over = true;
                    self.desk.counters.surplus += u64::from(surplus);
                }
                return Ok(Step::Complete(heard));
            }
            if count < room {
                return Ok(Step::Wait);
            }
        }
        Ok(Step::Wait)
    }

    /// Something happened on a connection that carries no op: its end, session tickets, or what nobody asked for.
    #[cold]
    fn idle_event(&mut self, lane: LaneId) {
        let connection = &mut self.connections[lane];
        let Some(socket) = &connection.link.socket else { return };
        let kept = connection.link.kept();
        let heard = match rustix::io::read(socket, &mut self.desk.scratch[kept..]) {
            Err(Errno::AGAIN | Errno::INTR) => Idle::Good,
            Ok(count) if count > 0 => {
                self.desk.counters.bytes_in += count as u64;
                match connection.link.tls {
                    Some(_) => connection.take_tickets(&mut self.desk.scratch, kept + count),
                    None => Idle::Over { surplus: is_surplus(&self.desk.scratch[..count]) },
                }
            }
            Ok(_) | Err(_) => Idle::Over { surplus: false },
        };
        if let Idle::Over { surplus } = heard {
            self.desk.counters.surplus += u64::from(surplus);
            connection.close();
        }
    }
}

/// What became of a connection that carries no op.
enum Idle {
    Good,
    Over { surplus: bool },
}

/// Whether bytes that nobody has asked for are surplus ones. Some servers say why they close an idle connection, with the
/// status 408 (RFC 9110, 15.5.9).
fn is_surplus(bytes: &[u8]) -> bool {
    let says_why = bytes.starts_with(b"HTTP/1.") && bytes.get(8..12) == Some(b" 408");
    !bytes.is_empty() && !says_why
}

impl Connection {
    fn new(shared: &Shared) -> Self {
        let is_head = matches!(&shared.requests, Requests::One(request) if request.is_head);
        let mut reader = ResponseReader::new(is_head);
        if shared.decompress {
            reader.inflate_bodies();
            if let Requests::One(request) = &shared.requests {
                reader.expect_codings(Asked::of(&request.bytes));
            }
        }
        Self {
            link: Link::default(),
            stage: Stage::Idle,
            reader,
            request_at: 0,
            is_over: false,
            served: 0,
            op: Op::NONE,
            detour: None,
            draft: Draft::default(),
            jar: shared.cookies.then(Box::default),
        }
    }

    /// What is sent for the op under way.
    #[inline]
    fn request<'a>(&'a self, shared: &'a Shared) -> Outgoing<'a> {
        shared.outgoing(self.detour.as_deref(), &self.draft)
    }

    /// Chooses what the op sends; where a redirect led here, that is known, and it takes its cookies along.
    fn choose(&mut self, picker: &mut Picker, shared: &Shared) {
        self.choose_request(picker, shared);
        if shared.decompress {
            let asked = Asked::of(self.request(shared).head);
            self.reader.expect_codings(asked);
        }
    }

    fn choose_request(&mut self, picker: &mut Picker, shared: &Shared) {
        let Requests::Many(repertoire) = &shared.requests else { return };
        if let Some(detour) = &mut self.detour {
            self.reader.expect_head_only(detour.is_head);
            if let Some(jar) = &self.jar {
                jar.go_along(detour);
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
            let sent = shared.outgoing(self.detour.as_deref(), &self.draft);
            jar.take(self.reader.head_bytes(), path_of(sent.head), shared.tls.is_some());
        }
    }

    /// Closes the socket; the next op connects anew.
    fn close(&mut self) {
        self.link.close();
        self.stage = Stage::Idle;
        self.served = 0;
        self.is_over = false;
        self.reader.give_up_body();
        if let Some(jar) = &mut self.jar {
            jar.clear();
        }
    }

    /// Whether no other request may follow on this connection, whatever the response's head says: a part of the
    /// request has not left (the server answered early), more came than the response, or TLS has announced the end.
    #[inline]
    fn is_spent(&self, request_bytes: usize) -> bool {
        self.request_at < request_bytes
            || self.is_over
            || self.link.has_unsent()
            || self.link.tls.as_ref().is_some_and(TlsStream::is_closed)
    }

    #[inline]
    fn write_out(&mut self, shared: &Shared, bytes_out: &mut u64) -> Result<Sent, Broken> {
        let Link { socket: Some(socket), tls, out, out_at, .. } = &mut self.link else { return Ok(Sent::All) };
        let request = shared.outgoing(self.detour.as_deref(), &self.draft);
        loop {
            let wants_more = self.stage == Stage::Sending && self.request_at == 0 && request.len() > 0;
            if let (Some(tls), true) = (tls.as_mut(), wants_more) {
                // The handshake's last flight and the request leave in one call, and in one segment if they fit.
                let piece = request.from(0);
                let piece = &piece[..piece.len().min(ENCRYPT_BYTES)];
                tls.encrypt(piece, out).map_err(Broken::Tls)?;
                self.request_at = piece.len();
            }
            let (pending, is_plain) = if *out_at < out.len() {
                (&out[*out_at..], false)
            } else if self.stage != Stage::Sending || self.request_at == request.len() {
                return Ok(Sent::All);
            } else if let Some(tls) = tls {
                out.clear();
                *out_at = 0;
                let piece = request.from(self.request_at);
                let piece = &piece[..piece.len().min(ENCRYPT_BYTES)];
                tls.encrypt(piece, out).map_err(Broken::Tls)?;
                self.request_at += piece.len();
                (&out[..], false)
            } else {
                (request.from(self.request_at), true)
            };
            // Rust programs ignore SIGPIPE, so that a plain write is enough, and there is one on every system.
            match rustix::io::write(&*socket, pending) {
                Ok(count) => {
                    *bytes_out += count as u64;
                    if is_plain {
                        self.request_at += count;
                    } else {
                        *out_at += count;
                        if *out_at == out.len() {
                            out.clear();
                            *out_at = 0;
                        }
                    }
                }
                Err(Errno::AGAIN) => return Ok(Sent::Blocked),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Broken::System("send", errno)),
            }
        }
    }

    /// Plain bytes of a response.
    #[inline]
    fn take_plain(&mut self, bytes: &[u8], now: Nanos) -> Result<Taken, Broken> {
        self.op.first_byte(now);
        let fed = self.reader.feed(bytes).map_err(Broken::Protocol)?;
        Ok(match fed.complete {
            false => Taken::Part,
            true if fed.consumed < bytes.len() => Taken::WholeAndMore { surplus: is_surplus(&bytes[fed.consumed..]) },
            true => Taken::Whole,
        })
    }

    /// The first `filled` bytes of `scratch` are TLS records with a response.
    #[inline]
    fn take_records(&mut self, scratch: &mut [u8], filled: usize, now: Nanos) -> Result<Taken, Broken> {
        let Self { link: Link { tls: Some(tls), out, .. }, reader, op, .. } = self else { return Ok(Taken::Part) };
        let mut taken = Taken::Part;
        let mut sink = |plain: &[u8]| {
            op.first_byte(now);
            let fed = reader.feed(plain)?;
            taken = match (taken, fed.complete) {
                // What more it is, its first bytes have told.
                (Taken::WholeAndMore { .. }, _) => taken,
                (_, false) => Taken::Part,
                (_, true) if fed.consumed < plain.len() => {
                    Taken::WholeAndMore { surplus: is_surplus(&plain[fed.consumed..]) }
                }
                (_, true) => Taken::Whole,
            };
            Ok(())
        };
        let closed = tls.take(scratch, filled, out, &mut sink).map_err(Broken::Tls)?;
        if closed && taken == Taken::Part {
            return match reader.closed() {
                Ok(()) => Ok(Taken::Whole),
                Err(how) => Err(Broken::Cut(Some(how))),
            };
        }
        Ok(taken)
    }

    /// Records on an idle connection: session tickets are welcome.
    fn take_tickets(&mut self, scratch: &mut [u8], filled: usize) -> Idle {
        let Link { tls: Some(tls), out, .. } = &mut self.link else { return Idle::Over { surplus: false } };
        let (mut has_data, mut surplus) = (false, false);
        let mut sink = |plain: &[u8]| {
            surplus = if has_data { surplus } else { is_surplus(plain) };
            has_data |= !plain.is_empty();
            Ok(())
        };
        match tls.take(scratch, filled, out, &mut sink) {
            Ok(false) if !has_data => Idle::Good,
            _ => Idle::Over { surplus },
        }
    }

    /// The peer will send no more.
    #[cold]
    fn ended(&mut self, heard: Heard) -> StepResult {
        match self.reader.closed() {
            // Over TLS the end has to be announced, or anybody on the way could cut the response short.
            Ok(()) if self.link.tls.is_some() => Err(Broken::EndedUnannounced(self.reader.body_bytes())),
            Ok(()) => Ok(Step::Complete(heard)),
            Err(how) => Err(Broken::Cut(Some(how))),
        }
    }

    /// What the connection and its last response show.
    #[cold]
    fn describe(&self, shared: &Shared) -> Facts {
        let mut facts = self.link.describe(shared, self.reader.head_bytes());
        let head = self.reader.head();
        facts.note(web::HTTP_VERSION, head.map(|head| format!("HTTP/1.{}", head.minor_version)));
        facts.note(web::KEEPS_ALIVE, head.filter(|_| shared.keepalive).map(|head| !head.closes));
        facts.note(web::STATUS, head.map(|head| u64::from(head.status)));
        facts.with(web::BODY_BYTES, self.reader.body_bytes())
    }
}
