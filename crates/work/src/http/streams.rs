//! HTTP/2 on connections that carry several requests at a time; driven by readiness.
//!
//! A lane is a stream. So many lanes in a row share a connection: a *group*. A connection that takes no more streams goes
//! on until its last one has ended, while the group already has a new one; so there are never more connections than
//! lanes, and a connection's place is numbered like a lane of its group.

use super::broken::{Broken, status_failure};
use super::cookies::{Jar, path_of};
use super::h2::{self, End};
use super::link::{Link, READS_IN_A_ROW, SCRATCH_BYTES, Sent, Traveller};
use super::op::Op;
use super::picker::{Draft, Picker};
use super::request::{Outgoing, Request};
use super::response::field;
use super::{Requests, Shared};
use duel_load::{
    Counters, Event, Failure, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload, monotonic_ns,
};
use duel_model::{FailureKind, Nanos, Phase};
use memchr::memmem;
use std::collections::VecDeque;
use std::sync::Arc;

/// Statuses are three digits.
const STATUSES: usize = 1000;
/// How often a request is sent again because servers have not looked at it: one that sends each connection away after
/// some requests, fewer than its streams, refuses the others each time, in turn.
const MOST_REFUSALS: u32 = 100;

/// One worker's connections to one target, and their streams.
#[derive(Debug)]
pub struct Http2 {
    shared: Arc<Shared>,
    /// Streams of a connection, and lanes of a group.
    streams: usize,
    lanes: Vec<Lane>,
    connections: Vec<Option<Box<Connection>>>,
    /// For each group the connection that new streams go to.
    current: Vec<Option<usize>>,
    /// Connections that have something to send.
    unsent: Vec<usize>,
    /// Lanes whose op needs a connection, again.
    homeless: VecDeque<LaneId>,
    ended: VecDeque<(LaneId, OpEnd)>,
    /// Chooses requests, where there is more than one.
    picker: Option<Box<Picker>>,
    /// Header block of a request that was not translated beforehand.
    block: Vec<u8>,
    /// What is read from any connection goes here first.
    scratch: Vec<u8>,
    counters: Counters,
    statuses: Box<[u64; STATUSES]>,
    /// The next response's head and session are to be written down; once per slot.
    wants_details: bool,
    unreported_lookup_ns: Option<Nanos>,
    /// Number of the next connection, by which its addresses are chosen.
    turn: usize,
}

#[derive(Debug)]
struct Connection {
    link: Link,
    frames: h2::Connection,
    /// Requests may be sent.
    is_open: bool,
    /// Whose op pays for connecting.
    opener: LaneId,
    /// Lanes whose requests wait until it is open, or has room for one more stream.
    waiting: VecDeque<LaneId>,
    /// Lanes whose request has not left yet.
    sending: Vec<LaneId>,
    /// It is among those that have something to send.
    is_listed: bool,
    /// No further stream goes to it.
    is_retired: bool,
    /// Streams that were opened on it, and when anything was heard of it last.
    opened: u64,
    heard_ns: Nanos,
    /// Cookies, where they are kept.
    jar: Option<Box<Jar>>,
}

#[derive(Debug)]
struct Lane {
    place: Place,
    op: Op,
    start_ns: Nanos,
    refusals: u32,
    /// Its stream was not the first of its connection, and its request is the op's first: it was counted as reuse.
    is_reuse: bool,
    /// What is sent instead of the target's request, where a redirect led here.
    detour: Option<Arc<Request>>,
    /// What was chosen, where there is more than one request.
    draft: Draft,
    to_head_request: bool,
    /// Where the body begins behind the head of what is sent.
    body_at: usize,
    /// Status and, where it was kept, the head of the last response.
    status: u16,
    head: Vec<u8>,
}

/// Where a lane's op is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Idle,
    /// Waits for this connection, or for none yet.
    Waiting(Option<usize>),
    /// Has a stream of this connection.
    Open(usize),
}

impl Workload for Http2 {
    #[inline]
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        self.start_request(lane, None, now_ns, io)
    }

    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        // The number of a connection is that of a lane; ends of ops are handed over by `further`.
        let number = lane;
        let Some(connection) = &self.connections[number] else { return Progress::Pending };
        if !connection.is_open {
            self.approach(number, event, io);
            return Progress::Pending;
        }
        if event.writable && connection.link.watches_writing {
            self.list(number);
        }
        if event.readable {
            self.receive(number);
        }
        Progress::Pending
    }

    #[inline]
    fn further(&mut self, io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        loop {
            if let Some(end) = self.ended.pop_front() {
                return Some(end);
            }
            if let Some(lane) = self.homeless.pop_front() {
                if let Err(broken) = self.join(lane, io) {
                    self.fail(lane, broken.into_failure());
                }
            } else if let Some(number) = self.unsent.pop() {
                self.send(number, io);
            } else {
                return None;
            }
        }
    }

    fn cancel(&mut self, lane: LaneId) {
        self.homeless.retain(|&homeless| homeless != lane);
        self.ended.retain(|&(ended, _)| ended != lane);
        match std::mem::replace(&mut self.lanes[lane].place, Place::Idle) {
            Place::Open(number) => {
                let streams = self.streams;
                let started_ns = self.lanes[lane].start_ns;
                let Some(connection) = &mut self.connections[number] else { return };
                connection.frames.cancel(lane % streams);
                // Nothing was heard of it in all this time: it may be dead, and would hold up op after op.
                connection.is_retired |= connection.heard_ns < started_ns || !self.shared.keepalive;
                if connection.is_retired || connection.frames.is_spent() {
                    self.part_with(number);
                }
                self.list(number);
            }
            Place::Waiting(Some(number)) => {
                let Some(connection) = &mut self.connections[number] else { return };
                connection.waiting.retain(|&waiting| waiting != lane);
                if !connection.is_open && (connection.opener == lane || connection.waiting.is_empty()) {
                    self.close(number);
                }
            }
            Place::Waiting(None) | Place::Idle => {}
        }
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let Lane { place, mut op, .. } = self.lanes[lane];
        let connection = match place {
            Place::Open(number) | Place::Waiting(Some(number)) => self.connections[number].as_deref(),
            Place::Waiting(None) | Place::Idle => None,
        };
        match (place, connection) {
            (Place::Idle, _) => {}
            (_, Some(connection)) if !connection.is_open && connection.opener == lane => {
                op.phase_ended(connection.link.phase(), now_ns);
            }
            _ if op.phases.get(Phase::Send).is_none() => op.phase_ended(Phase::Send, now_ns),
            (_, Some(connection)) => match connection.frames.response(lane % self.streams).first_byte_ns() {
                None => op.phase_ended(Phase::Wait, now_ns),
                Some(since_ns) => {
                    op.first_byte(since_ns);
                    op.phases.set(Phase::Receive, now_ns.saturating_sub(since_ns));
                }
            },
            (_, None) => {}
        }
        op.phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        let Lane { place, op, .. } = &self.lanes[lane];
        let is_connecting = match *place {
            Place::Waiting(Some(number)) => self.connections[number].as_ref().is_some_and(|known| !known.is_open),
            Place::Waiting(None) => true,
            Place::Open(_) | Place::Idle => false,
        };
        is_connecting.then_some(op.connecting_since_ns)
    }

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
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

impl Http2 {
    /// `lanes` is a multiple of the streams of a connection.
    pub(super) fn new(shared: Arc<Shared>, worker: WorkerId, lanes: usize) -> Self {
        let unreported_lookup_ns = shared.take_lookup_ns();
        let picker = match &shared.requests {
            Requests::One(_) => None,
            Requests::Many(repertoire) => Some(Box::new(Picker::new(repertoire, worker))),
        };
        let streams = shared.streams();
        let groups = lanes.div_ceil(streams);
        Self {
            streams,
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
            connections: (0..groups * streams).map(|_| None).collect(),
            current: vec![None; groups],
            unsent: Vec::new(),
            homeless: VecDeque::new(),
            ended: VecDeque::new(),
            picker,
            block: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            counters: Counters { inflated_bytes: shared.decompress.then_some(0), ..Counters::default() },
            statuses: Box::new([0; STATUSES]),
            wants_details: true,
            unreported_lookup_ns,
            turn: shared.next_turn.fetch_add(groups, std::sync::atomic::Ordering::Relaxed),
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
        let state = &mut self.lanes[lane];
        state.op = Op::begin(now_ns);
        (state.start_ns, state.refusals, state.status) = (now_ns, 0, 0);
        state.detour = detour;
        match (&mut self.picker, &self.shared.requests) {
            (Some(picker), Requests::Many(repertoire)) => {
                let current = self.current[lane / self.streams].and_then(|number| self.connections[number].as_ref());
                let jar = current.and_then(|connection| connection.jar.as_deref());
                state.choose(picker, repertoire, jar);
            }
            (_, Requests::One(request)) => {
                state.to_head_request = state.detour.as_ref().map_or(request.is_head, |detour| detour.is_head);
            }
            _ => {}
        }
        match self.join(lane, io) {
            Ok(()) => Progress::Pending,
            Err(broken) => Progress::Done(self.failed(lane, broken.into_failure())),
        }
    }

    /// Where the response that has just ended on `lane` leads; only a redirect's head is kept for this.
    pub(super) fn location(&self, lane: LaneId) -> Option<&[u8]> {
        field(&self.lanes[lane].head, "location")
    }

    /// Status of the response that has just ended on `lane`; 0 where there is none.
    pub(super) fn status(&self, lane: LaneId) -> u16 {
        self.lanes[lane].status
    }

    /// Sends a lane's request on its group's connection, or lets it wait for one, which is made if need be.
    #[inline]
    fn join(&mut self, lane: LaneId, io: &Io<'_>) -> Result<(), Broken> {
        let group = lane / self.streams;
        let number = match self.current[group] {
            Some(number) => number,
            None => self.connect(lane, io)?,
        };
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        if connection.takes_one_more() && connection.waiting.is_empty() {
            self.open(number, lane);
        } else {
            connection.waiting.push_back(lane);
            self.lanes[lane].place = Place::Waiting(Some(number));
        }
        Ok(())
    }

    /// Begins a new connection for a lane's group; answers its number.
    #[cold]
    fn connect(&mut self, lane: LaneId, io: &Io<'_>) -> Result<usize, Broken> {
        let group = lane / self.streams;
        let first = group * self.streams;
        let free = (first..first + self.streams).find(|&number| self.connections[number].is_none());
        // Each of the others carries a stream of another lane.
        let number = free.unwrap_or(lane);
        let mut connection = Box::new(Connection {
            link: Link::default(),
            frames: h2::Connection::new(self.streams, self.shared.decompress),
            is_open: false,
            opener: lane,
            waiting: VecDeque::new(),
            sending: Vec::new(),
            is_listed: false,
            is_retired: false,
            opened: 0,
            heard_ns: 0,
            jar: self.shared.cookies.then(Box::default),
        });
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        let op = &mut self.lanes[lane].op;
        let mut who = Traveller { shared: &self.shared, op, counters: &mut self.counters };
        connection.is_open = connection.link.connect(turn, number, &mut who, io)?;
        self.connections[number] = Some(connection);
        self.current[group] = Some(number);
        Ok(number)
    }

    /// Goes on with a connection that is not open yet.
    #[cold]
    fn approach(&mut self, number: usize, event: Event, io: &Io<'_>) {
        let Self { connections, lanes, shared, counters, scratch, .. } = self;
        let Some(connection) = &mut connections[number] else { return };
        let Connection { link, frames, opener, .. } = &mut **connection;
        let mut who = Traveller { shared, op: &mut lanes[*opener].op, counters };
        // A server may introduce itself together with its last flight of the handshake.
        let sink = &mut |plain: &[u8]| frames.feed(plain, monotonic_ns());
        let is_there = link.approach(number, event, &mut who, scratch, sink, io).and_then(|is_there| {
            let speaks = link.tls.as_ref().is_none_or(|tls| !is_there || tls.chose_http2());
            if speaks { Ok(is_there) } else { Err(Broken::NotHttp2) }
        });
        // Some servers choose nothing where nothing fits, others refuse the handshake.
        let is_there = is_there.map_err(|broken| match broken {
            Broken::Tls(error) if error.is_no_protocol() => Broken::NotHttp2,
            other => other,
        });
        match is_there {
            Ok(false) => {}
            Ok(true) => {
                connection.is_open = true;
                connection.heard_ns = monotonic_ns();
                self.list(number);
            }
            Err(broken) => self.lost(number, broken),
        }
    }

    /// Opens a stream for a lane's request.
    #[inline]
    fn open(&mut self, number: usize, lane: LaneId) {
        let Self { connections, lanes, shared, counters, block, .. } = self;
        let Some(connection) = &mut connections[number] else { return };
        let state = &mut lanes[lane];
        let request = request(state.detour.as_deref(), &state.draft, shared);
        let translated = match &state.detour {
            Some(_) => None,
            None => shared.translated(&state.draft),
        };
        let fields = match translated {
            Some(translated) => {
                state.body_at = translated.head_bytes;
                &translated.fields[..]
            }
            None => {
                state.body_at = head_bytes(request.head);
                block.clear();
                h2::push_fields(&request.head[..state.body_at], shared.tls.is_some(), block);
                block
            }
        };
        let body_bytes = request.len() - state.body_at;
        let keeps_head = self.wants_details || connection.jar.is_some();
        connection.frames.open(lane % self.streams, fields, body_bytes, state.to_head_request, keeps_head);
        state.place = Place::Open(number);
        // Once for an op, however many redirects it follows.
        state.is_reuse = connection.opened > 0 && state.detour.is_none();
        counters.reused += u64::from(state.is_reuse);
        connection.opened += 1;
        connection.sending.push(lane);
        self.list(number);
    }

    /// A connection has something to send, or may have.
    #[inline]
    fn list(&mut self, number: usize) {
        if let Some(connection) = &mut self.connections[number]
            && !connection.is_listed
        {
            connection.is_listed = true;
            self.unsent.push(number);
        }
    }

    /// Sends what a connection has to send, as far as the socket takes it.
    #[inline]
    fn send(&mut self, number: usize, io: &Io<'_>) {
        self.settle(number);
        let Some(connection) = &mut self.connections[number] else { return };
        connection.is_listed = false;
        if !connection.is_open {
            return;
        }
        match connection.send(number, self.streams, &self.lanes, &self.shared, &mut self.counters.bytes_out, io) {
            Ok(Sent::Blocked) => {}
            Ok(Sent::All) => {
                let now = monotonic_ns();
                let Self { connections, lanes, streams, .. } = self;
                let Some(connection) = &mut connections[number] else { return };
                let frames = &connection.frames;
                connection.sending.retain(|&lane| {
                    let is_here = lanes[lane].place == Place::Open(number);
                    if is_here && !frames.has_put_all(lane % *streams) {
                        return true;
                    }
                    if is_here {
                        lanes[lane].op.phase_ended(Phase::Send, now);
                    }
                    false
                });
            }
            Err(broken) => {
                // A server may answer and hang up before it has the whole request: sending meets the reset first, while
                // the answer waits in the socket.
                if broken.is_lost_while_sending() {
                    self.receive(number);
                }
                self.lost(number, broken);
            }
        }
    }

    /// Reads what has arrived, as long as it comes in full buffers.
    #[inline]
    fn receive(&mut self, number: usize) {
        for _ in 0..READS_IN_A_ROW {
            let Some(connection) = &mut self.connections[number] else { return };
            let kept = connection.link.tls.as_ref().map_or(0, |tls| tls.incoming.len());
            let room = self.scratch.len() - kept;
            let (count, now) = match connection.link.read(&self.shared, &mut self.scratch) {
                Ok(Some((0, _))) => return self.lost(number, Broken::Cut(None)),
                Ok(Some(read)) => read,
                Ok(None) => return,
                Err(broken) => return self.lost(number, broken),
            };
            self.counters.bytes_in += count as u64;
            connection.heard_ns = now;
            let result = connection.take(&mut self.scratch, kept + count, now);
            self.take_ends(number, now);
            match result {
                Ok(false) => {}
                Ok(true) => return self.lost(number, Broken::Cut(None)),
                Err(broken) => return self.lost(number, broken),
            }
            self.list(number);
            if count < room {
                return;
            }
        }
    }

    /// Streams that have ended.
    #[inline]
    fn take_ends(&mut self, number: usize, now: Nanos) {
        let first = number - number % self.streams;
        while let Some(connection) = &mut self.connections[number]
            && let Some((place, end)) = connection.frames.next_end()
        {
            let lane = first + place;
            if !self.shared.keepalive {
                connection.is_retired = true;
            }
            match end {
                End::Complete => self.complete(number, lane, now),
                End::Refused => {
                    let state = &mut self.lanes[lane];
                    state.refusals += 1;
                    if state.refusals <= MOST_REFUSALS {
                        self.send_again(lane);
                    } else {
                        self.fail(lane, refused());
                    }
                }
                End::Reset(name) => {
                    let text = format!("the server gave up the stream ({name})");
                    self.fail(lane, Failure { kind: FailureKind::Reset, text });
                }
                End::Broken(error) => self.fail(lane, Broken::Protocol(error).into_failure()),
            }
        }
    }

    /// A response is complete: judge it.
    #[inline]
    fn complete(&mut self, number: usize, lane: LaneId, now: Nanos) {
        let Some(connection) = &mut self.connections[number] else { return };
        let state = &mut self.lanes[lane];
        let stream = connection.frames.response_mut(lane % self.streams);
        let first_byte_ns = stream.first_byte_ns().unwrap_or(now);
        state.op.first_byte(first_byte_ns);
        state.op.phases.set(Phase::Receive, now.saturating_sub(first_byte_ns));
        if let Some(lookup_ns) = self.unreported_lookup_ns.take() {
            state.op.phases.set(Phase::Dns, lookup_ns);
        }
        let (status, body_bytes) = (stream.status(), stream.body_bytes());
        self.counters.body_bytes += body_bytes;
        if self.shared.decompress {
            match stream.inflated_bytes() {
                Ok(bytes) => *self.counters.inflated_bytes.get_or_insert(0) += bytes.unwrap_or(0),
                Err(error) => return self.fail(lane, Broken::Protocol(error).into_failure()),
            }
        }
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
        let is_ok = status < 400 || self.shared.accepts_any_status;
        let op = OpEnd {
            end_ns: now,
            outcome: if is_ok { Ok(()) } else { Err(status_failure(status)) },
            phases: state.op.phases,
            bytes_in: state.op.bytes_in + stream.bytes_in(),
            status: Some(status),
            body_bytes,
        };
        (state.place, state.status) = (Place::Idle, status);
        state.head.clear();
        state.head.extend_from_slice(stream.head_bytes());
        if let Some(jar) = &mut connection.jar {
            let sent = request(state.detour.as_deref(), &state.draft, &self.shared);
            jar.take(&state.head, path_of(sent.head), self.shared.tls.is_some());
        }
        if self.wants_details && !state.head.is_empty() {
            self.wants_details = false;
            let mut seen = connection.link.describe(&self.shared, &state.head);
            seen.http = Some("HTTP/2".to_owned());
            seen.keeps_alive = self.shared.keepalive.then(|| !connection.frames.is_spent());
            (seen.status, seen.body_bytes) = (Some(status), Some(body_bytes));
            seen.max_streams = connection.frames.max_streams();
            self.counters.negotiated = Some(seen);
        }
        self.ended.push_back((lane, op));
    }

    /// Lets waiting requests have their streams, or move on where a connection takes no more; closes it when nothing is
    /// left on it.
    #[inline]
    fn settle(&mut self, number: usize) {
        while let Some(connection) = &mut self.connections[number] {
            if connection.is_retired || connection.frames.is_spent() {
                return self.part_with(number);
            }
            if !connection.takes_one_more() {
                return;
            }
            let Some(lane) = connection.waiting.pop_front() else { return };
            self.open(number, lane);
        }
    }

    /// No further stream goes to a connection.
    #[cold]
    fn part_with(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        for lane in connection.waiting.drain(..) {
            let state = &mut self.lanes[lane];
            state.place = Place::Waiting(None);
            // Those that waited for it to be established wait on.
            if connection.is_open {
                state.op.needs_another_connection();
            }
            self.homeless.push_back(lane);
        }
        let current = &mut self.current[number / self.streams];
        if *current == Some(number) {
            *current = None;
        }
        if connection.frames.active() == 0 {
            self.connections[number] = None;
        }
    }

    /// Closes a connection that is not open yet; who waits for it needs another one.
    #[cold]
    fn close(&mut self, number: usize) {
        if let Some(connection) = &mut self.connections[number] {
            connection.is_retired = true;
        }
        self.part_with(number);
    }

    /// A connection is gone, or has to go.
    #[cold]
    fn lost(&mut self, number: usize, broken: Broken) {
        let now = monotonic_ns();
        self.take_ends(number, now);
        let Some(mut connection) = self.connections[number].take() else { return };
        let current = &mut self.current[number / self.streams];
        if *current == Some(number) {
            *current = None;
        }
        let is_lost = broken.is_lost_connection() || matches!(broken, Broken::Cut(_));
        let complaint = connection.frames.complaint();
        let first = number - number % self.streams;
        let failure = broken.into_failure();
        for lane in connection.waiting.drain(..) {
            // A connection that was never open has failed for all that waited for it; another one may do for those that
            // only waited for room.
            if connection.is_open {
                let state = &mut self.lanes[lane];
                state.place = Place::Waiting(None);
                state.op.needs_another_connection();
                self.homeless.push_back(lane);
            } else {
                self.fail(lane, failure.clone());
            }
        }
        for place in 0..self.streams {
            if !connection.frames.is_active(place) {
                continue;
            }
            let lane = first + place;
            let stream = connection.frames.response(place);
            let is_untouched = stream.first_byte_ns().is_none();
            let got = stream.body_bytes();
            let state = &mut self.lanes[lane];
            let is_idempotent = request(state.detour.as_deref(), &state.draft, &self.shared).is_idempotent;
            // As on a kept connection of HTTP/1.1 (RFC 9112, 9.3.1).
            if is_lost && is_untouched && is_idempotent && connection.opened > 1 && !state.op.retried {
                state.op.retried = true;
                self.send_again(lane);
                continue;
            }
            let failure = match complaint {
                Some(name) => Failure {
                    kind: FailureKind::Protocol,
                    text: format!("the server closed the connection with a complaint ({name})"),
                },
                None if is_lost && !is_untouched => Failure {
                    kind: FailureKind::ShortBody,
                    text: format!("the connection ended after {got} bytes of the response's body"),
                },
                None => failure.clone(),
            };
            self.fail(lane, failure);
        }
    }

    /// The op begins again on a connection that takes it.
    #[cold]
    fn send_again(&mut self, lane: LaneId) {
        let state = &mut self.lanes[lane];
        state.place = Place::Waiting(None);
        state.op.needs_another_connection();
        if std::mem::take(&mut state.is_reuse) {
            self.counters.reused = self.counters.reused.saturating_sub(1);
        }
        self.homeless.push_back(lane);
    }

    #[cold]
    fn fail(&mut self, lane: LaneId, failure: Failure) {
        let end = self.failed(lane, failure);
        self.ended.push_back((lane, end));
    }

    fn failed(&mut self, lane: LaneId, failure: Failure) -> OpEnd {
        let state = &mut self.lanes[lane];
        state.place = Place::Idle;
        OpEnd {
            end_ns: monotonic_ns(),
            outcome: Err(Box::new(failure)),
            phases: state.op.phases,
            bytes_in: state.op.bytes_in,
            status: None,
            body_bytes: 0,
        }
    }
}

impl Connection {
    /// Whether a stream may be opened now.
    #[inline]
    fn takes_one_more(&self) -> bool {
        self.is_open && !self.is_retired && self.frames.has_room()
    }

    /// Sends requests and all else that there is, as far as the socket takes it.
    #[inline]
    fn send(
        &mut self,
        number: usize,
        streams: usize,
        lanes: &[Lane],
        shared: &Shared,
        bytes_out: &mut u64,
        io: &Io<'_>,
    ) -> Result<Sent, Broken> {
        let Self { link, frames, .. } = self;
        let first = number - number % streams;
        loop {
            if (link.has_unsent() || link.watches_writing) && link.flush(number, bytes_out, io)? == Sent::Blocked {
                return Ok(Sent::Blocked);
            }
            let plain = frames.outgoing(|place| lanes[first + place].body(shared));
            if plain.is_empty() {
                return Ok(Sent::All);
            }
            match &mut link.tls {
                None => std::mem::swap(plain, &mut link.out),
                Some(tls) => {
                    tls.encrypt(plain, &mut link.out).map_err(Broken::Tls)?;
                    plain.clear();
                }
            }
        }
    }

    /// The first `filled` bytes of `scratch` have arrived; whether the server will send no more.
    #[inline]
    fn take(&mut self, scratch: &mut [u8], filled: usize, now: Nanos) -> Result<bool, Broken> {
        let Self { link, frames, .. } = self;
        let Link { tls: Some(tls), out, .. } = link else {
            return frames.feed(&scratch[..filled], now).map(|()| false).map_err(Broken::Protocol);
        };
        scratch[..tls.incoming.len()].copy_from_slice(&tls.incoming);
        let sink = &mut |plain: &[u8]| frames.feed(plain, now);
        let driven = tls.drive(&mut scratch[..filled], out, sink).map_err(Broken::Tls)?;
        tls.keep(&scratch[driven.consumed..filled]);
        Ok(driven.closed)
    }
}

impl Lane {
    fn new() -> Self {
        Self {
            place: Place::Idle,
            op: Op::NONE,
            start_ns: 0,
            refusals: 0,
            is_reuse: false,
            detour: None,
            draft: Draft::default(),
            to_head_request: false,
            body_at: 0,
            status: 0,
            head: Vec::new(),
        }
    }

    /// Chooses what the op sends; where a redirect led here, that is known, and it takes the cookies along.
    fn choose(&mut self, picker: &mut Picker, repertoire: &super::repertoire::Repertoire, jar: Option<&Jar>) {
        let Some(detour) = &mut self.detour else {
            self.to_head_request = picker.pick(repertoire, &mut self.draft, jar);
            return;
        };
        self.to_head_request = detour.is_head;
        if let Some(jar) = jar.filter(|jar| !jar.is_empty()) {
            let mut field = Vec::new();
            jar.push_field(path_of(&detour.bytes), &mut field);
            *detour = Arc::new(detour.with_field(&field));
        }
    }

    /// The request's body.
    fn body<'a>(&'a self, shared: &'a Shared) -> &'a [u8] {
        request(self.detour.as_deref(), &self.draft, shared).from(self.body_at)
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

/// Length of a request's head.
pub(super) fn head_bytes(request: &[u8]) -> usize {
    memmem::find(request, b"\r\n\r\n").map_or(request.len(), |end| end + 4)
}

#[cold]
fn refused() -> Failure {
    Failure { kind: FailureKind::Closed, text: format!("the server refused the request {MOST_REFUSALS} times unread") }
}
