//! A connection's life: begun for a lane, left when it takes no more streams, gone when the last one has ended; and where
//! the requests go that it did not answer.

use super::super::broken::Broken;
use super::super::link::Traveller;
use super::connection::Connection;
use super::lane::Place;
use super::{Http2, Reverse};
use crate::link::arrival::Heard;
use duel_load::{Event, Failure, Io, LaneId, monotonic_ns};
use duel_model::web::failure;
use duel_model::{MILLISECOND_NS, Nanos};

/// How often a request is sent again that was refused alone (`REFUSED_STREAM`), or on a connection that took no request at
/// all. Clients give up sooner (Go's after 7 times); a server that makes room meets one of them.
const MOST_REFUSALS: u32 = 10;
/// How often a request looks for another connection because servers send it away unread while they take others: one that
/// takes fewer requests on each connection than it has streams sends the others away each time, in turn. Each connection
/// answers somebody, so that there are no more connections than requests.
const MOST_MOVES: u32 = 100;
/// Refused a second time, a request waits so long, then twice as long each time: who refuses has too much to do, and would
/// be asked, or connected to, as fast as the network carries it.
const FIRST_PAUSE_NS: Nanos = MILLISECOND_NS;

impl Http2 {
    /// Begins a new connection for a lane's group; answers its number.
    #[cold]
    pub(super) fn connect(&mut self, lane: LaneId, io: &Io<'_>) -> Result<usize, Broken> {
        let group = lane / self.streams;
        let first = group * self.streams;
        let free = (first..first + self.streams).find(|&number| self.connections[number].is_none());
        #[expect(clippy::expect_used, reason = "a connection that is not its group's current one has a stream")]
        let number = free.expect("each of the group's connections carries a stream of another lane");
        let mut connection = Box::new(Connection::new(&self.shared, self.streams, lane));
        let turn = self.desk.next_turn();
        let op = &mut self.lanes[lane].op;
        if op.connecting_since_ns > op.phase_start_ns {
            // It did not begin with this connection.
            op.waited_to_send(monotonic_ns());
        }
        let mut who = Traveller { shared: &self.shared, op, counters: &mut self.desk.counters };
        connection.is_open = connection.link.connect(turn, number, &mut who, io)?;
        self.connections[number] = Some(connection);
        self.current[group] = Some(number);
        Ok(number)
    }

    /// Goes on with a connection that is not open yet.
    #[cold]
    pub(super) fn approach(&mut self, number: usize, event: Event, io: &Io<'_>) {
        let Self { connections, lanes, shared, desk, .. } = self;
        let Some(connection) = &mut connections[number] else { return };
        let Connection { link, frames, opener, .. } = &mut **connection;
        let mut who = Traveller { shared, op: &mut lanes[*opener].op, counters: &mut desk.counters };
        // A server may introduce itself together with its last flight of the handshake.
        let sink = &mut |plain: &[u8]| frames.feed(plain, monotonic_ns());
        let is_there = link.approach(number, event, &mut who, &mut desk.scratch, sink, io).and_then(|is_there| {
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

    /// Lets waiting requests have their streams, or move on where a connection takes no more.
    #[inline]
    pub(super) fn settle(&mut self, number: usize) {
        loop {
            self.part_if_spent(number);
            let Some(connection) = &mut self.connections[number] else { return };
            if !connection.takes_one_more() {
                return;
            }
            let Some(lane) = connection.waiting.pop_front() else { return };
            self.open(number, lane);
        }
    }

    /// Leaves a connection that takes no further stream. To be asked whenever a stream may have ended: so a connection that
    /// is not its group's current one always carries a stream.
    #[inline]
    pub(super) fn part_if_spent(&mut self, number: usize) {
        if let Some(connection) = &self.connections[number]
            && (connection.is_retired || connection.frames.is_spent())
        {
            self.part_with(number);
        }
    }

    /// Closes a connection that is not open yet; who waits for it needs another one.
    #[cold]
    pub(super) fn close(&mut self, number: usize) {
        self.part_with(number);
    }

    /// No further stream goes to a connection; without one it is closed.
    #[cold]
    fn part_with(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        let waiting = std::mem::take(&mut connection.waiting);
        let (is_open, took_any, complaint) = (connection.is_open, connection.took_any(), connection.frames.complaint());
        if connection.frames.active() == 0 {
            self.connections[number] = None;
        }
        self.leave(number);
        for lane in waiting {
            if is_open {
                self.move_on(lane, took_any, complaint);
            } else {
                // Who waited for it to be established waits on.
                self.find_home(lane);
            }
        }
    }

    /// A connection is not its group's current one any more.
    fn leave(&mut self, number: usize) {
        let current = &mut self.current[number / self.streams];
        if *current == Some(number) {
            *current = None;
        }
    }

    /// A connection is gone, or has to go.
    #[cold]
    pub(super) fn lost(&mut self, number: usize, broken: Broken) {
        self.take_ends(number, Heard::now());
        let Some(mut connection) = self.connections[number].take() else { return };
        self.leave(number);
        connection.part(&mut self.desk.counters.bytes_out);
        let is_lost = broken.is_lost_connection() || matches!(broken, Broken::Cut(_));
        let complaint = connection.frames.complaint();
        let failure = broken.into_failure();
        for lane in std::mem::take(&mut connection.waiting) {
            // A connection that was never open has failed for all that waited for it; another one may do for those that
            // only waited for room.
            if connection.is_open {
                self.move_on(lane, connection.took_any(), complaint);
            } else {
                self.fail(lane, failure.clone());
            }
        }
        let first = number - number % self.streams;
        for place in 0..self.streams {
            if !connection.frames.is_active(place) {
                continue;
            }
            let lane = first + place;
            let stream = connection.frames.response(place);
            let is_untouched = stream.first_byte_ns().is_none();
            let got = stream.body_bytes();
            let state = &mut self.lanes[lane];
            state.op.bytes_in += stream.bytes_in();
            let is_idempotent = self.shared.outgoing(state.detour.as_deref(), &state.draft).is_idempotent;
            // As on a kept connection of HTTP/1.1 (RFC 9112, 9.3.1).
            if is_lost && is_untouched && is_idempotent && state.is_on_kept && !state.op.retried {
                state.op.retried = true;
                self.send_again(lane);
                continue;
            }
            let failure = match complaint {
                Some(name) => Failure {
                    kind: failure::PROTOCOL,
                    text: format!("the server closed the connection with a complaint ({name})"),
                },
                None if is_lost && !is_untouched => Failure {
                    kind: failure::SHORT_BODY,
                    text: format!("the connection ended after {got} bytes of the response's body"),
                },
                None => failure.clone(),
            };
            self.fail(lane, failure);
        }
    }

    /// The server has not looked at a lane's request: alone, or because it takes no more on this connection.
    #[cold]
    pub(super) fn refused(&mut self, number: usize, lane: LaneId) {
        let Some(connection) = &self.connections[number] else { return };
        let state = &mut self.lanes[lane];
        let complaint = connection.frames.complaint();
        match (connection.frames.is_spent(), connection.took_any()) {
            (true, true) => {
                state.moves += 1;
                match state.moves {
                    0..=MOST_MOVES => self.send_again(lane),
                    times => self.fail(lane, sent_away(times, complaint)),
                }
            }
            (is_spent, _) => {
                state.refusals += 1;
                match state.refusals {
                    0..=1 => self.send_again(lane),
                    2..=MOST_REFUSALS => {
                        self.take_back(lane);
                        self.pause(lane);
                    }
                    times if is_spent => self.fail(lane, sent_away(times, complaint)),
                    times => {
                        let text = format!("the server refused the request {times} times unread (REFUSED_STREAM)");
                        self.fail(lane, Failure { kind: failure::RESET, text });
                    }
                }
            }
        }
    }

    /// A request that was refused more than once is left alone for a while.
    fn pause(&mut self, lane: LaneId) {
        let state = &mut self.lanes[lane];
        let until_ns = monotonic_ns() + (FIRST_PAUSE_NS << (state.refusals - 2));
        state.place = Place::Paused(until_ns);
        self.paused.push(Reverse((until_ns, lane)));
    }

    /// Sends the next request again whose pause is over; whether there was one.
    pub(super) fn resume(&mut self) -> bool {
        while let Some(&Reverse((until_ns, lane))) = self.paused.peek() {
            if until_ns > monotonic_ns() {
                return false;
            }
            self.paused.pop();
            if self.lanes[lane].place == Place::Paused(until_ns) {
                self.lanes[lane].op.needs_another_connection();
                self.find_home(lane);
                return true;
            }
        }
        false
    }

    /// A request that waited for room on a connection looks for another one. `took_any`: the server took others there.
    #[cold]
    fn move_on(&mut self, lane: LaneId, took_any: bool, complaint: Option<&str>) {
        let state = &mut self.lanes[lane];
        state.refusals += u32::from(!took_any);
        match state.refusals {
            2..=MOST_REFUSALS if !took_any => self.pause(lane),
            times if times > MOST_REFUSALS => self.fail(lane, sent_away(times, complaint)),
            _ => {
                state.op.needs_another_connection();
                self.find_home(lane);
            }
        }
    }

    /// The op begins again on a connection that takes it.
    #[cold]
    fn send_again(&mut self, lane: LaneId) {
        self.take_back(lane);
        self.lanes[lane].op.needs_another_connection();
        self.find_home(lane);
    }

    /// It gets a connection when its turn comes.
    pub(super) fn find_home(&mut self, lane: LaneId) {
        self.lanes[lane].place = Place::Homeless;
        self.homeless.push_back(lane);
    }

    /// A request that was sent is to be sent again.
    fn take_back(&mut self, lane: LaneId) {
        let state = &mut self.lanes[lane];
        state.op.has_left = false;
        let counters = &mut self.desk.counters;
        counters.resent += 1;
        if std::mem::take(&mut state.is_reuse) {
            counters.reused = counters.reused.saturating_sub(1);
        }
    }
}

#[cold]
fn sent_away(times: u32, complaint: Option<&str>) -> Failure {
    let why = complaint.map(|name| format!(" ({name})")).unwrap_or_default();
    let text = format!("the server closed {times} connections in a row with the request unread{why}");
    Failure { kind: failure::CLOSED, text }
}
