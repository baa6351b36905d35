//! A connection's streams: opened, given up, ended. `receiving` takes apart what arrives, `sending` puts together what
//! leaves, `ids` knows streams by their identifiers.

mod ids;
mod receiving;
mod sending;

use super::super::protocol_error::ProtocolError;
use super::frame::{
    Header, LARGEST, PAYLOAD_LIMIT, PREFACE, code, flag, kind, push_goaway, push_number, push_settings, setting,
};
use super::hpack::Decoder;
use super::stream::Stream;
use super::{HEADER_LIST_LIMIT, OUT_ENOUGH};
use ids::Ids;
use std::collections::VecDeque;

/// One connection. Streams have *places*, numbered from 0; a place carries one stream at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    reading: Reading,
    /// A frame that has not arrived whole; never DATA.
    partial: Vec<u8>,
    decoder: Decoder,
    /// The header block under way, and what has arrived of it.
    block: Option<Block>,
    block_bytes: Vec<u8>,
    places: Vec<Place>,
    ids: Ids,
    next_id: u32,
    peer: Peer,
    /// What the server still takes of all bodies.
    send_window: i64,
    /// A window of a stream, and that of the connection, is opened again when more than so many of its octets are used up: so the
    /// server does not wait for us while the other half is under way.
    open_after: [u32; 2],
    /// Octets of DATA since we last opened the connection's window.
    taken: u32,
    /// Places with a body of which something is left to send, in turn, and their streams: one that has ended is passed over.
    sending: VecDeque<(usize, u32)>,
    /// What is to be sent.
    out: Vec<u8>,
    /// So much of it is our introduction, which comes before anything else.
    introduction: usize,
    /// The server was told that this connection ends because of what it has sent.
    has_parted: bool,
    /// Places and streams whose request ends in `out`.
    leaving: Vec<(usize, u32)>,
    /// Answers in `out`.
    answers: u32,
    ends: VecDeque<(usize, End)>,
    /// The last stream that the server has or will look at, and why it wants no more.
    goaway: Option<(u32, u32)>,
}

/// A stream's place.
#[derive(Debug)]
struct Place {
    stream: Stream,
    /// What the server takes of its body beyond the initial window, which may change while it is sent.
    send_window: i64,
    taken: u32,
    body_at: usize,
    body_length: usize,
}

/// What the server has said of itself.
#[derive(Debug)]
struct Peer {
    /// It has said it.
    is_known: bool,
    max_frame: usize,
    initial_window: i64,
    max_streams: u32,
    /// Our header blocks have to say that they use no table.
    wants_table_size: bool,
}

/// What the next octets are.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// A frame, whose beginning may be in `partial`.
    Frame,
    /// The rest of a DATA frame: its padding's length if that is to come, its data, its padding.
    Data { place: Option<usize>, to_come: bool, left: usize, padding: usize, ends: bool },
}

#[derive(Debug, Clone, Copy)]
struct Block {
    stream: u32,
    ends_stream: bool,
    continuations: u32,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The response is complete.
    Complete,
    /// The server has not looked at the request, so that it may be sent again.
    Refused,
    /// The server gave it up, with a code of this name.
    Reset(&'static str),
    /// What came is no response.
    Broken(ProtocolError),
}

impl Connection {
    /// A new connection with so many places. `window`: octets that the server may send on each stream, and on the connection,
    /// before it needs our leave. `decompress`: bodies are decompressed for counting.
    pub(crate) fn new(places: usize, window: u32, decompress: bool) -> Self {
        let place = || Place { stream: Stream::new(decompress), send_window: 0, taken: 0, body_at: 0, body_length: 0 };
        let mut out = PREFACE.to_vec();
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, window),
            (setting::MAX_HEADER_LIST_SIZE, HEADER_LIST_LIMIT as u32),
        ];
        push_settings(&settings, &mut out);
        // That of a connection can only be made larger (RFC 9113, 6.9.2).
        let windows @ [_, of_connection] = [window, window.max(INITIAL_WINDOW as u32)];
        if of_connection > INITIAL_WINDOW as u32 {
            push_number(kind::WINDOW_UPDATE, 0, of_connection - INITIAL_WINDOW as u32, &mut out);
        }
        let introduction = out.len();
        Self {
            reading: Reading::Frame,
            partial: Vec::new(),
            decoder: Decoder::new(),
            block: None,
            block_bytes: Vec::new(),
            places: (0..places).map(|_| place()).collect(),
            ids: Ids::new(places),
            next_id: 1,
            peer: Peer {
                is_known: false,
                max_frame: PAYLOAD_LIMIT,
                initial_window: INITIAL_WINDOW,
                // One stream tells what a server is like; how many it takes it says with its first frame.
                max_streams: 1,
                wants_table_size: false,
            },
            send_window: INITIAL_WINDOW,
            open_after: windows.map(|window| window / 2),
            taken: 0,
            sending: VecDeque::new(),
            out,
            introduction,
            has_parted: false,
            leaving: Vec::new(),
            answers: 0,
            ends: VecDeque::new(),
            goaway: None,
        }
    }

    /// Whether one more stream may be opened now: the server takes it, and the socket has taken most of what there was to
    /// send. A server that answers but does not read would else have us keep a request for each of its answers.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.is_spent() && self.ids.active() < self.peer.max_streams as usize && self.out.len() <= OUT_ENOUGH
    }

    /// Whether no stream may be opened any more: the server says so, or all identifiers are used.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.goaway.is_some() || self.next_id > LARGEST
    }

    /// Streams under way.
    #[inline]
    pub(crate) fn active(&self) -> usize {
        self.ids.active()
    }

    /// Whether a stream is under way in a place.
    #[inline]
    pub(crate) fn is_active(&self, place: usize) -> bool {
        self.ids.of(place).is_some()
    }

    /// Streams that the server takes at a time, once it has said so.
    pub(crate) fn max_streams(&self) -> Option<u32> {
        self.peer.is_known.then_some(self.peer.max_streams)
    }

    /// Octets of a body that the server takes ahead of its leave, once it has said so; or said nothing of it.
    pub(crate) fn stream_window_bytes(&self) -> Option<u64> {
        self.peer.is_known.then_some(self.peer.initial_window).and_then(|octets| octets.try_into().ok())
    }

    /// Why the server said that it takes no more streams, if it did and had a complaint.
    pub(crate) fn complaint(&self) -> Option<&'static str> {
        self.goaway.filter(|&(_, why)| why != code::NO_ERROR).map(|(_, why)| code::name(why))
    }

    /// Whether the server said that it has looked at no request at all.
    pub(crate) fn refuses_all(&self) -> bool {
        self.goaway.is_some_and(|(last, _)| last == 0)
    }

    /// Whether the server broke the rules of the connection, and what is to be sent tells it so.
    pub(crate) fn has_parted(&self) -> bool {
        self.has_parted
    }

    /// The response in a place.
    #[inline]
    pub(crate) fn response(&self, place: usize) -> &Stream {
        &self.places[place].stream
    }

    /// The same, to finish it.
    #[inline]
    pub(crate) fn response_mut(&mut self, place: usize) -> &mut Stream {
        &mut self.places[place].stream
    }

    /// The next stream that has ended, and how; its place is free.
    #[inline]
    pub(crate) fn next_end(&mut self) -> Option<(usize, End)> {
        self.ends.pop_front()
    }

    /// Opens a stream in a free place for a request with this header block and a body of this length. Only where there is
    /// room.
    #[inline]
    pub(crate) fn open(
        &mut self,
        place: usize,
        block: &[u8],
        body_length: usize,
        to_head_request: bool,
        keep_head: bool,
    ) {
        debug_assert!(self.has_room() && !self.is_active(place), "no stream may be opened here");
        let id = self.next_id;
        self.next_id += 2;
        self.ids.set(place, id);
        let Place { stream, send_window, taken, body_at, body_length: length } = &mut self.places[place];
        stream.begin(to_head_request, keep_head);
        (*send_window, *taken, *body_at, *length) = (0, 0, 0, body_length);
        let ends = if body_length == 0 { flag::END_STREAM } else { 0 };
        let table_size = usize::from(std::mem::take(&mut self.peer.wants_table_size));
        let first = block.len().min(self.peer.max_frame - table_size);
        let is_whole = if first == block.len() { flag::END_HEADERS } else { 0 };
        let length = first + table_size;
        Header { length, kind: kind::HEADERS, flags: ends | is_whole, stream: id }.push(&mut self.out);
        // A dynamic table of size 0 (RFC 7541, 6.3).
        self.out.extend_from_slice(&[0x20][..table_size]);
        self.out.extend_from_slice(&block[..first]);
        if first < block.len() {
            let mut pieces = block[first..].chunks(self.peer.max_frame).peekable();
            while let Some(piece) = pieces.next() {
                let flags = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
                Header { length: piece.len(), kind: kind::CONTINUATION, flags, stream: id }.push(&mut self.out);
                self.out.extend_from_slice(piece);
            }
        }
        if body_length == 0 {
            self.leaving.push((place, id));
            return;
        }
        // Streams that have ended since stay until then, for as many as there are places at most.
        if self.sending.len() >= 2 * self.places.len() {
            self.sending.retain(|&(place, id)| self.ids.of(place) == Some(id));
        }
        self.sending.push_back((place, id));
    }

    /// Gives up the stream in a place, if there is one.
    pub(crate) fn cancel(&mut self, place: usize) {
        if self.is_active(place) {
            self.reset(place, code::CANCEL);
            self.places[place].stream.give_up_body();
        } else {
            self.ends.retain(|(ended, _)| *ended != place);
        }
    }

    /// Whether all of a place's request has been put into what is to be sent.
    #[inline]
    pub(super) fn has_put_all(&self, place: usize) -> bool {
        self.places[place].body_at == self.places[place].body_length
    }

    /// The server has no more to say on a stream.
    fn end_stream(&mut self, place: usize) {
        let end = match self.places[place].stream.ended() {
            Ok(()) => End::Complete,
            Err(error) => End::Broken(error),
        };
        if self.has_put_all(place) {
            self.free(place);
        } else {
            // It answered before it had all of the request, and needs no more of it.
            self.reset(place, code::CANCEL);
        }
        self.ends.push_back((place, end));
    }

    /// The connection cannot go on. The server is told so before it is closed (RFC 9113, 5.4.1); requests that have not left
    /// stay here.
    #[cold]
    fn part(&mut self, fault: Fault) -> ProtocolError {
        if let Some(reason) = fault.reason {
            self.out.truncate(self.introduction);
            self.sending.clear();
            self.leaving.clear();
            push_goaway(reason, &mut self.out);
            self.has_parted = true;
        }
        fault.error
    }

    /// A stream cannot go on, the others can.
    fn break_stream(&mut self, place: usize, reason: u32, error: ProtocolError) {
        self.reset(place, reason);
        self.places[place].stream.give_up_body();
        self.ends.push_back((place, End::Broken(error)));
    }

    fn reset(&mut self, place: usize, reason: u32) {
        if let Some(id) = self.ids.of(place) {
            push_number(kind::RST_STREAM, id, reason, &mut self.out);
            self.free(place);
        }
    }

    fn free(&mut self, place: usize) {
        self.ids.clear(place);
        // What is left of its frame is nobody's: the place may have another stream by then.
        if let Reading::Data { place: reading, .. } = &mut self.reading
            && *reading == Some(place)
        {
            *reading = None;
        }
    }

    /// The place of a stream; `None` for one that has ended. One that was never opened is an error.
    #[inline]
    fn place_of(&self, stream: u32) -> Result<Option<usize>, Fault> {
        if stream.is_multiple_of(2) || stream >= self.next_id {
            return Err(wrong("a frame belongs to a stream that was never opened"));
        }
        Ok(self.ids.place(stream))
    }
}

/// Initial windows of both sides, until something else is said (RFC 9113, 6.9.2).
const INITIAL_WINDOW: i64 = 65_535;

/// Why a connection cannot go on.
#[derive(Debug)]
struct Fault {
    /// The code that the server is told; `None`: it does not speak HTTP/2, and would not understand it (RFC 9113, 3.4).
    reason: Option<u32>,
    error: ProtocolError,
}

fn wrong(what: impl Into<String>) -> Fault {
    fault(code::PROTOCOL_ERROR, what)
}

fn fault(reason: u32, what: impl Into<String>) -> Fault {
    Fault { reason: Some(reason), error: ProtocolError(format!("HTTP/2: {}", what.into())) }
}

fn number(octets: &[u8]) -> Option<u32> {
    octets.try_into().ok().map(u32::from_be_bytes)
}
