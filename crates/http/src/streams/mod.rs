//! HTTP/2 on connections that carry several requests at a time; driven by readiness.
//!
//! A lane is a stream. So many lanes in a row share a connection: a *group*. A connection that takes no more streams goes
//! on until its last one has ended, while the group already has a new one; so there are never more connections than
//! lanes, and a connection's place is numbered like a lane of its group.
//!
//! Here ops begin and end; `life` is that of connections, from the first segment to the last stream; `connection` sends
//! and receives on one; `lane` is what is known of an op.

mod connection;
mod lane;
mod life;

use super::broken::Broken;
use super::desk::Desk;
use super::h2::{self, End};
use super::inflate::{Asked, ration};
use super::link::Sent;
use super::op::Op;
use super::shared::{Shared, head_bytes};
use crate::http1::response::field;
use crate::link::arrival::Heard;
use crate::requests::cookies::path_of;
use crate::requests::request::Request;
use connection::Connection;
use duel_load::{
    Counters, Event, Failure, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload, monotonic_ns,
};
use duel_model::Nanos;
use duel_model::web::{failure, phase};
use lane::{Lane, Place};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

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
    /// Lanes whose op needs a connection, again. Who has been given up since is passed over: see [`Place`].
    homeless: VecDeque<LaneId>,
    /// Lanes whose request was refused, and when it is sent again; passed over likewise.
    paused: BinaryHeap<Reverse<(Nanos, LaneId)>>,
    ended: VecDeque<(LaneId, OpEnd)>,
    /// Header block of a request that was not translated beforehand.
    block: Vec<u8>,
    desk: Desk,
}

impl Workload for Http2 {
    #[inline]
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        self.start_request(lane, None, now_ns, io)
    }

    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        self.desk.ready_after_ns = io.ready_after_ns();
        // The number of a connection is that of a lane; ends of ops are handed over by `further`.
        let number = lane;
        let Some(connection) = &mut self.connections[number] else { return Progress::Pending };
        if self.shared.decompress && !ration::admits(&mut connection.link.served_in) {
            return Progress::Pending;
        }
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
                if self.lanes[lane].place == Place::Homeless
                    && let Err(broken) = self.join(lane, io)
                {
                    self.fail(lane, broken.into_failure());
                }
            } else if let Some(number) = self.unsent.pop() {
                self.send(number, io);
            } else if !self.resume() {
                return None;
            }
        }
    }

    fn turn_begins(&mut self) {
        if self.shared.decompress {
            ration::turn_begins();
        }
    }

    fn wakes_at(&self) -> Option<Nanos> {
        self.paused.peek().map(|&Reverse((at_ns, _))| at_ns)
    }

    fn cancel(&mut self, lane: LaneId) {
        match std::mem::replace(&mut self.lanes[lane].place, Place::Idle) {
            Place::Open(number) => {
                let started_ns = self.lanes[lane].start_ns;
                let Some(connection) = &mut self.connections[number] else { return };
                connection.frames.cancel(lane % self.streams);
                // Silent for most of this time, it may be dead, and would hold up op after op.
                let now = monotonic_ns();
                let silent_ns = now.saturating_sub(connection.heard_ns);
                connection.is_retired |= 2 * silent_ns >= now.saturating_sub(started_ns) || !self.shared.keepalive;
                self.list(number);
                self.part_if_spent(number);
            }
            Place::Waiting(number) => {
                let Some(connection) = &mut self.connections[number] else { return };
                connection.waiting.retain(|&waiting| waiting != lane);
                if !connection.is_open && (connection.opener == lane || connection.waiting.is_empty()) {
                    self.close(number);
                }
            }
            Place::Idle => self.ended.retain(|&(ended, _)| ended != lane),
            Place::Homeless | Place::Paused(_) => {}
        }
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let Lane { place, mut op, .. } = self.lanes[lane];
        let connection = match place {
            Place::Open(number) | Place::Waiting(number) => self.connections[number].as_deref(),
            Place::Idle => return op.phases,
            Place::Homeless | Place::Paused(_) => None,
        };
        match (place, connection) {
            (Place::Waiting(_), Some(connection)) if !connection.is_open && connection.opener == lane => {
                op.phase_ended(connection.link.phase(), now_ns);
            }
            (Place::Open(_), Some(connection)) if op.has_left => {
                match connection.frames.response(lane % self.streams).first_byte_ns() {
                    None => op.phase_ended(phase::WAIT, now_ns),
                    Some(since_ns) => op.received(since_ns, now_ns),
                }
            }
            _ => op.left(now_ns),
        }
        op.phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        let Lane { place, op, .. } = &self.lanes[lane];
        let is_connecting = match *place {
            Place::Waiting(number) => self.connections[number].as_ref().is_some_and(|known| !known.is_open),
            Place::Homeless => true,
            Place::Open(_) | Place::Paused(_) | Place::Idle => false,
        };
        is_connecting.then_some(op.connecting_since_ns)
    }

    fn traffic(&self) -> Traffic {
        self.desk.counters.traffic()
    }

    fn take_counters(&mut self) -> Counters {
        self.desk.take_counters(&self.shared)
    }
}

impl Http2 {
    /// `lanes` is a multiple of the streams of a connection.
    pub(super) fn new(shared: Arc<Shared>, worker: WorkerId, lanes: usize) -> Self {
        let streams = shared.streams();
        let groups = lanes.div_ceil(streams);
        Self {
            streams,
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
            connections: (0..groups * streams).map(|_| None).collect(),
            current: vec![None; groups],
            unsent: Vec::new(),
            homeless: VecDeque::new(),
            paused: BinaryHeap::new(),
            ended: VecDeque::new(),
            block: Vec::new(),
            desk: Desk::new(&shared, worker, groups),
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
        (state.start_ns, state.refusals, state.moves, state.status) = (now_ns, 0, 0, 0);
        state.detour = detour;
        let current = self.current[lane / self.streams].and_then(|number| self.connections[number].as_ref());
        let jar = current.and_then(|connection| connection.jar.as_deref());
        state.choose(self.desk.picker.as_deref_mut(), &self.shared, jar);
        if !self.homeless.is_empty() {
            // Those that were sent away go first, or a server that takes few requests on a connection starves them.
            self.find_home(lane);
            return Progress::Pending;
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
            self.lanes[lane].place = Place::Waiting(number);
            // It may have room again once it was written to.
            self.list(number);
        }
        Ok(())
    }

    /// Opens a stream for a lane's request.
    #[inline]
    fn open(&mut self, number: usize, lane: LaneId) {
        let Self { connections, lanes, shared, desk, block, .. } = self;
        let Some(connection) = &mut connections[number] else { return };
        let state = &mut lanes[lane];
        let request = shared.outgoing(state.detour.as_deref(), &state.draft);
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
        let keeps_head = desk.wants_details || connection.jar.is_some();
        connection.frames.open(lane % self.streams, fields, body_bytes, state.to_head_request, keeps_head);
        if shared.decompress {
            connection.frames.response_mut(lane % self.streams).expect_codings(Asked::of(request.head));
        }
        state.place = Place::Open(number);
        state.is_on_kept = connection.answered > 0;
        // Once for an op, however many redirects it follows.
        state.is_reuse = connection.opened > 0 && state.detour.is_none();
        desk.counters.reused += u64::from(state.is_reuse);
        connection.opened += 1;
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
        loop {
            self.settle(number);
            let Self { connections, lanes, shared, desk, streams, .. } = self;
            let Some(connection) = &mut connections[number] else { return };
            connection.is_listed = false;
            if !connection.is_open {
                return;
            }
            let first = number - number % *streams;
            let lanes = &mut lanes[first..first + *streams];
            match connection.send(number, lanes, shared, &mut desk.counters.bytes_out, io) {
                Ok(Sent::All) if connection.takes_one_more() && !connection.waiting.is_empty() => {}
                Ok(_) => return,
                Err(broken) => {
                    // A server may answer and hang up before it has the whole request: sending meets the reset first,
                    // while the answer waits in the socket.
                    if broken.is_lost_while_sending() {
                        self.receive(number);
                    }
                    return self.lost(number, broken);
                }
            }
        }
    }

    /// Reads what has arrived, as long as it comes in full buffers.
    #[inline]
    fn receive(&mut self, number: usize) {
        for _ in 0..self.desk.reads_in_a_row {
            let Some(connection) = &mut self.connections[number] else { return };
            let kept = connection.link.kept();
            let end = self.desk.read_end(kept);
            let room = end - kept;
            let (count, heard) = match connection.link.read(&self.shared, &mut self.desk.scratch[..end]) {
                Ok(Some((0, _))) => return self.lost(number, Broken::Cut(None)),
                Ok(Some(read)) => read,
                Ok(None) => return,
                Err(broken) => return self.lost(number, broken),
            };
            self.desk.counters.bytes_in += count as u64;
            let heard = heard.ready_after(self.desk.ready_after_ns);
            connection.heard_ns = heard.noticed_ns;
            let result = connection.take(&mut self.desk.scratch, kept + count, heard.at_ns());
            self.list(number);
            self.take_ends(number, heard);
            match result {
                Ok(false) => {}
                Ok(true) => return self.lost(number, Broken::Cut(None)),
                Err(broken) => return self.lost(number, broken),
            }
            if count < room {
                return;
            }
        }
    }

    /// Streams that have ended.
    #[inline]
    fn take_ends(&mut self, number: usize, heard: Heard) {
        let first = number - number % self.streams;
        while let Some(connection) = &mut self.connections[number]
            && let Some((place, end)) = connection.frames.next_end()
        {
            let lane = first + place;
            connection.is_retired |= !self.shared.keepalive;
            if end == End::Complete {
                connection.answered += 1;
                self.complete(number, lane, heard);
                continue;
            }
            self.lanes[lane].op.bytes_in += connection.frames.response(place).bytes_in();
            match end {
                End::Complete => {}
                End::Refused => self.refused(number, lane),
                End::Reset(name) => {
                    let text = format!("the server gave up the stream ({name})");
                    self.fail(lane, Failure { kind: failure::RESET, text });
                }
                End::Broken(error) => self.fail(lane, Broken::Protocol(error).into_failure()),
            }
        }
        // Before any lane goes on: an op that begins next finds a place for its connection.
        self.part_if_spent(number);
    }

    /// A response is complete: judge it.
    #[inline]
    fn complete(&mut self, number: usize, lane: LaneId, heard: Heard) {
        let Some(connection) = &mut self.connections[number] else { return };
        let state = &mut self.lanes[lane];
        let stream = connection.frames.response_mut(lane % self.streams);
        let began_ns = state.op.heard_after_ns().max(stream.first_byte_ns().unwrap_or(0));
        let heard = heard.not_before(began_ns);
        let now = heard.at_ns();
        state.op.received(stream.first_byte_ns().unwrap_or(now), now);
        state.op.bytes_in += stream.bytes_in();
        self.desk.report_lookup(&mut state.op);
        self.desk.ask_why_late(&state.op, &mut connection.link);
        let (status, body_bytes) = (stream.status(), stream.body_bytes());
        self.desk.counters.body_bytes += body_bytes;
        if self.shared.decompress {
            match stream.inflated_bytes() {
                Ok(bytes) => *self.desk.counters.inflated_bytes.get_or_insert(0) += bytes.unwrap_or(0),
                Err(error) => return self.fail(lane, Broken::Protocol(error).into_failure()),
            }
        }
        let op = OpEnd {
            ops: 1,
            end_ns: heard.noticed_ns,
            arrived_ns: heard.arrived_ns,
            outcome: self.desk.judge(status, &self.shared),
            phases: state.op.phases,
            bytes_in: state.op.bytes_in,
            status: Some(status),
            body_bytes,
        };
        (state.place, state.status) = (Place::Idle, status);
        state.head.clear();
        state.head.extend_from_slice(stream.head_bytes());
        if let Some(jar) = &mut connection.jar {
            let sent = self.shared.outgoing(state.detour.as_deref(), &state.draft);
            jar.take(&state.head, path_of(sent.head), self.shared.tls.is_some());
        }
        if self.desk.wants_details && !state.head.is_empty() {
            self.desk.wants_details = false;
            let seen = connection.describe(&self.shared, &state.head, status, body_bytes);
            self.desk.counters.negotiated = Some(seen);
        }
        self.ended.push_back((lane, op));
    }

    #[cold]
    fn fail(&mut self, lane: LaneId, failure: Failure) {
        let end = self.failed(lane, failure);
        self.ended.push_back((lane, end));
    }

    fn failed(&mut self, lane: LaneId, failure: Failure) -> OpEnd {
        let state = &mut self.lanes[lane];
        state.place = Place::Idle;
        let Op { phases, bytes_in, .. } = state.op;
        OpEnd { phases, bytes_in, ..OpEnd::noticed(monotonic_ns(), Err(Box::new(failure))) }
    }
}
