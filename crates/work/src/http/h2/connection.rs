//! A connection's frames: what arrives is taken apart, what is to be sent is put together.

use super::super::response::ProtocolError;
use super::frame::{
    HEADER_BYTES, Header, LARGEST, PAYLOAD_LIMIT, PREFACE, code, flag, kind, push_number, push_settings, setting,
};
use super::hpack::Decoder;
use super::stream::Stream;
use super::{ANSWER_LIMIT, CONTINUATION_LIMIT, HEADER_LIST_LIMIT, OUT_ENOUGH, RECEIVE_WINDOW};
use duel_model::Nanos;
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
    /// For each place the identifier of its stream; 0: none. Apart from the places, because it is searched.
    ids: Vec<u32>,
    active: usize,
    next_id: u32,
    peer: Peer,
    /// What the server still takes of all bodies.
    send_window: i64,
    /// Octets of DATA since we last opened the connection's window.
    taken: u32,
    /// Places with a body of which something is left to send, in turn.
    sending: VecDeque<usize>,
    /// What is to be sent.
    out: Vec<u8>,
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
    /// A new connection with so many places. `decompress`: bodies are decompressed for counting.
    pub(crate) fn new(places: usize, decompress: bool) -> Self {
        let place = || Place { stream: Stream::new(decompress), send_window: 0, taken: 0, body_at: 0, body_length: 0 };
        let mut out = PREFACE.to_vec();
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, RECEIVE_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, HEADER_LIST_LIMIT as u32),
        ];
        push_settings(&settings, &mut out);
        push_number(kind::WINDOW_UPDATE, 0, RECEIVE_WINDOW - INITIAL_WINDOW as u32, &mut out);
        Self {
            reading: Reading::Frame,
            partial: Vec::new(),
            decoder: Decoder::new(),
            block: None,
            block_bytes: Vec::new(),
            places: (0..places).map(|_| place()).collect(),
            ids: vec![0; places],
            active: 0,
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
            taken: 0,
            sending: VecDeque::new(),
            out,
            answers: 0,
            ends: VecDeque::new(),
            goaway: None,
        }
    }

    /// Whether the server takes one more stream now.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.is_spent() && self.active < self.peer.max_streams as usize
    }

    /// Whether no stream may be opened any more: the server says so, or all identifiers are used.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.goaway.is_some() || self.next_id > LARGEST
    }

    /// Streams under way.
    #[inline]
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Whether a stream is under way in a place.
    #[inline]
    pub(crate) fn is_active(&self, place: usize) -> bool {
        self.ids[place] != 0
    }

    /// Streams that the server takes at a time, once it has said so.
    pub(crate) fn max_streams(&self) -> Option<u32> {
        self.peer.is_known.then_some(self.peer.max_streams)
    }

    /// Why the server said that it takes no more streams, if it did and had a complaint.
    pub(crate) fn complaint(&self) -> Option<&'static str> {
        self.goaway.filter(|&(_, why)| why != code::NO_ERROR).map(|(_, why)| code::name(why))
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
        debug_assert!(self.has_room() && self.ids[place] == 0, "no stream may be opened here");
        let id = self.next_id;
        self.next_id += 2;
        self.ids[place] = id;
        self.active += 1;
        let Place { stream, send_window, taken, body_at, body_length: length } = &mut self.places[place];
        stream.begin(to_head_request, keep_head);
        (*send_window, *taken, *body_at, *length) = (self.peer.initial_window, 0, 0, body_length);
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
        if body_length > 0 {
            self.sending.push_back(place);
        }
    }

    /// Gives up the stream in a place, if there is one.
    pub(crate) fn cancel(&mut self, place: usize) {
        if self.ids[place] != 0 {
            self.reset(place, code::CANCEL);
        }
        self.ends.retain(|(ended, _)| *ended != place);
    }

    /// What is to be sent now: bodies as far as the server takes them, and all else. `body` tells a place's body. To be
    /// called until nothing comes; what came has to be taken out.
    #[inline]
    pub(crate) fn outgoing<'a>(&mut self, body: impl Fn(usize) -> &'a [u8]) -> &mut Vec<u8> {
        if !self.sending.is_empty() {
            self.put_bodies(body);
        }
        self.answers = 0;
        &mut self.out
    }

    /// Whether all of a place's request has been put into what is to be sent.
    #[inline]
    pub(crate) fn has_put_all(&self, place: usize) -> bool {
        self.places[place].body_at == self.places[place].body_length
    }

    /// A frame of each body in turn.
    fn put_bodies<'a>(&mut self, body: impl Fn(usize) -> &'a [u8]) {
        let mut blocked = 0;
        while blocked < self.sending.len() && self.out.len() < OUT_ENOUGH {
            let Some(place) = self.sending.pop_front() else { return };
            let Place { send_window, body_at, body_length, .. } = &mut self.places[place];
            let room = self.send_window.min(*send_window).clamp(0, self.peer.max_frame.min(PAYLOAD_LIMIT) as i64);
            let length = (*body_length - *body_at).min(room as usize);
            if length == 0 {
                blocked += 1;
                self.sending.push_back(place);
                continue;
            }
            blocked = 0;
            let piece = &body(place)[*body_at..*body_at + length];
            *body_at += length;
            *send_window -= length as i64;
            self.send_window -= length as i64;
            let is_last = *body_at == *body_length;
            let flags = if is_last { flag::END_STREAM } else { 0 };
            Header { length, kind: kind::DATA, flags, stream: self.ids[place] }.push(&mut self.out);
            self.out.extend_from_slice(piece);
            if !is_last {
                self.sending.push_back(place);
            }
        }
    }

    /// Takes the next octets of the connection, which came at `now`. An error ends the connection.
    #[inline]
    pub(crate) fn feed(&mut self, mut octets: &[u8], now: Nanos) -> Result<(), ProtocolError> {
        while !octets.is_empty() {
            octets = match self.reading {
                Reading::Data { .. } => self.feed_data(octets)?,
                Reading::Frame => self.feed_frame(octets, now)?,
            };
        }
        Ok(())
    }

    /// Takes a frame, or what has arrived of it; answers what is left.
    #[inline]
    fn feed_frame<'a>(&mut self, octets: &'a [u8], now: Nanos) -> Result<&'a [u8], ProtocolError> {
        if self.partial.is_empty()
            && let Some((header, rest)) = octets.split_first_chunk()
        {
            let header = self.checked(header)?;
            if header.kind == kind::DATA {
                self.begin_data(header, now)?;
                return Ok(rest);
            }
            if let Some((payload, rest)) = rest.split_at_checked(header.length) {
                self.frame(header, payload, now)?;
                return Ok(rest);
            }
        }
        self.collect(octets, now)
    }

    /// The same where it did not arrive whole.
    #[cold]
    fn collect<'a>(&mut self, octets: &'a [u8], now: Nanos) -> Result<&'a [u8], ProtocolError> {
        let (piece, rest) = octets.split_at(octets.len().min(HEADER_BYTES.saturating_sub(self.partial.len())));
        self.partial.extend_from_slice(piece);
        let Some(header) = self.partial.first_chunk().copied() else { return Ok(rest) };
        let header = self.checked(&header)?;
        if header.kind == kind::DATA {
            self.partial.clear();
            self.begin_data(header, now)?;
            return Ok(rest);
        }
        let missing = HEADER_BYTES + header.length - self.partial.len();
        let (piece, rest) = rest.split_at(rest.len().min(missing));
        self.partial.extend_from_slice(piece);
        if piece.len() == missing {
            let frame = std::mem::take(&mut self.partial);
            self.frame(header, &frame[HEADER_BYTES..], now)?;
        }
        Ok(rest)
    }

    /// A frame's header, if it may stand here.
    #[inline]
    fn checked(&self, octets: &[u8; HEADER_BYTES]) -> Result<Header, ProtocolError> {
        let header = Header::read(octets);
        if !self.peer.is_known && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(not_http2(octets));
        }
        if header.length > PAYLOAD_LIMIT {
            return Err(wrong(format!(
                "the server sent a frame of {} bytes, {PAYLOAD_LIMIT} are allowed",
                header.length
            )));
        }
        if let Some(block) = self.block
            && (header.kind != kind::CONTINUATION || header.stream != block.stream)
        {
            return Err(wrong("another frame stands within a header block"));
        }
        Ok(header)
    }

    #[inline]
    fn begin_data(&mut self, header: Header, now: Nanos) -> Result<(), ProtocolError> {
        let place = self.place_of(header.stream)?;
        let length = header.length as u32;
        self.taken += length;
        if self.taken > RECEIVE_WINDOW / 2 {
            push_number(kind::WINDOW_UPDATE, 0, self.taken, &mut self.out);
            self.taken = 0;
        }
        let ends = header.has(flag::END_STREAM);
        if let Some(place) = place {
            let Place { stream, taken, .. } = &mut self.places[place];
            stream.frame(HEADER_BYTES + header.length, now);
            *taken += length;
            if *taken > RECEIVE_WINDOW / 2 && !ends {
                push_number(kind::WINDOW_UPDATE, header.stream, *taken, &mut self.out);
                *taken = 0;
            }
        }
        let to_come = header.has(flag::PADDED);
        if to_come && header.length == 0 {
            return Err(wrong("a frame is shorter than its padding"));
        }
        self.reading = Reading::Data { place, to_come, left: header.length, padding: 0, ends };
        if header.length == 0 { self.end_data(place, ends) } else { Ok(()) }
    }

    #[inline]
    fn feed_data<'a>(&mut self, octets: &'a [u8]) -> Result<&'a [u8], ProtocolError> {
        let Reading::Data { mut place, to_come, mut left, mut padding, ends } = self.reading else { return Ok(octets) };
        let mut rest = octets;
        if to_come && let Some((&length, behind)) = rest.split_first() {
            (rest, padding, left) = (behind, usize::from(length), left - 1);
            left = left.checked_sub(padding).ok_or_else(|| wrong("a frame is shorter than its padding"))?;
        }
        let (data, behind) = rest.split_at(rest.len().min(left));
        left -= data.len();
        if let Some(of) = place
            && !data.is_empty()
            && let Err(error) = self.places[of].stream.data(data)
        {
            self.break_stream(of, error);
            place = None;
        }
        let (padded, rest) = behind.split_at(behind.len().min(padding));
        padding -= padded.len();
        self.reading = Reading::Data { place, to_come: false, left, padding, ends };
        if left + padding == 0 {
            self.end_data(place, ends)?;
        }
        Ok(rest)
    }

    #[inline]
    fn end_data(&mut self, place: Option<usize>, ends: bool) -> Result<(), ProtocolError> {
        self.reading = Reading::Frame;
        if let Some(place) = place.filter(|_| ends) {
            self.end_stream(place);
        }
        Ok(())
    }

    /// Takes a whole frame that is not DATA.
    fn frame(&mut self, header: Header, payload: &[u8], now: Nanos) -> Result<(), ProtocolError> {
        match header.kind {
            kind::HEADERS => {
                let fragment = without_padding(header, payload)?;
                let fragment = match header.has(flag::PRIORITY) {
                    false => fragment,
                    true => fragment.get(5..).ok_or_else(|| wrong("a HEADERS frame is too short"))?,
                };
                let block =
                    Block { stream: header.stream, ends_stream: header.has(flag::END_STREAM), continuations: 0 };
                if let Some(place) = self.place_of(header.stream)? {
                    self.places[place].stream.frame(HEADER_BYTES + payload.len(), now);
                }
                if header.has(flag::END_HEADERS) {
                    return self.block_ended(block, fragment);
                }
                self.block_bytes.clear();
                self.block_bytes.extend_from_slice(fragment);
                self.block = Some(block);
                Ok(())
            }
            kind::CONTINUATION => self.continuation(header, payload),
            kind::SETTINGS => self.settings(header, payload),
            kind::WINDOW_UPDATE => self.window_update(header, payload),
            kind::PING => {
                if payload.len() != 8 || header.stream != 0 {
                    return Err(wrong("a PING frame is none"));
                }
                if !header.has(flag::ACK) {
                    self.answer()?;
                    Header { flags: flag::ACK, ..header }.push(&mut self.out);
                    self.out.extend_from_slice(payload);
                }
                Ok(())
            }
            kind::GOAWAY => self.goaway(header, payload),
            kind::RST_STREAM => {
                let reason = number(payload).ok_or_else(|| wrong("a RST_STREAM frame is none"))?;
                if let Some(place) = self.place_of(header.stream)? {
                    self.free(place);
                    let is_refused = reason == code::REFUSED_STREAM;
                    let end = if is_refused { End::Refused } else { End::Reset(code::name(reason)) };
                    self.ends.push_back((place, end));
                }
                Ok(())
            }
            kind::PRIORITY if payload.len() != 5 || header.stream == 0 => Err(wrong("a PRIORITY frame is none")),
            kind::PUSH_PROMISE => Err(wrong("the server pushed a response, which was forbidden")),
            // What is not known is to be passed over (RFC 9113, 5.5).
            _ => Ok(()),
        }
    }

    fn continuation(&mut self, header: Header, payload: &[u8]) -> Result<(), ProtocolError> {
        let Some(block) = &mut self.block else { return Err(wrong("a header block is continued that is not open")) };
        block.continuations += 1;
        if block.continuations > CONTINUATION_LIMIT || self.block_bytes.len() + payload.len() > HEADER_LIST_LIMIT {
            return Err(wrong(format!(
                "a header block is longer than {HEADER_LIST_LIMIT} bytes, or in too many pieces"
            )));
        }
        self.block_bytes.extend_from_slice(payload);
        let block = *block;
        if let Some(place) = self.place_of(header.stream)? {
            let stream = &mut self.places[place].stream;
            let began_ns = stream.first_byte_ns().unwrap_or(0);
            stream.frame(HEADER_BYTES + payload.len(), began_ns);
        }
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        self.block = None;
        let bytes = std::mem::take(&mut self.block_bytes);
        self.block_ended(block, &bytes)
    }

    /// A header block is whole. It is decoded also where nobody waits for it: those behind it refer to it.
    fn block_ended(&mut self, block: Block, bytes: &[u8]) -> Result<(), ProtocolError> {
        let decoding =
            |error: super::hpack::HpackError| wrong(format!("a header block cannot be decoded: {}", error.0));
        let Some(place) = self.place_of(block.stream)? else {
            return self.decoder.decode(bytes, |_, _| {}).map_err(decoding);
        };
        let mut section = self.places[place].stream.section();
        self.decoder.decode(bytes, |name, value| section.field(name, value)).map_err(decoding)?;
        match section.ended(block.ends_stream) {
            Err(error) => self.break_stream(place, error),
            Ok(()) if block.ends_stream => self.end_stream(place),
            Ok(()) => {}
        }
        Ok(())
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), ProtocolError> {
        let is_ack = header.has(flag::ACK);
        if header.stream != 0 || payload.len() % 6 != 0 || (is_ack && !payload.is_empty()) {
            return Err(wrong("a SETTINGS frame is none"));
        }
        if is_ack {
            return Ok(());
        }
        if !self.peer.is_known {
            self.peer.is_known = true;
            // Who says nothing takes any number.
            self.peer.max_streams = LARGEST;
        }
        for entry in payload.chunks_exact(6) {
            let (identifier, value) = (u16::from_be_bytes([entry[0], entry[1]]), number(&entry[2..]).unwrap_or(0));
            match identifier {
                setting::HEADER_TABLE_SIZE => self.peer.wants_table_size |= value < 4096,
                setting::MAX_CONCURRENT_STREAMS => self.peer.max_streams = value,
                setting::INITIAL_WINDOW_SIZE if value > LARGEST => return Err(wrong("a window is too large")),
                setting::INITIAL_WINDOW_SIZE => {
                    let change = i64::from(value) - self.peer.initial_window;
                    self.peer.initial_window = i64::from(value);
                    // It counts for streams under way as well (RFC 9113, 6.9.2).
                    self.places.iter_mut().for_each(|place| place.send_window += change);
                }
                setting::MAX_FRAME_SIZE if !(PAYLOAD_LIMIT as u32..1 << 24).contains(&value) => {
                    return Err(wrong("a largest frame size is out of bounds"));
                }
                setting::MAX_FRAME_SIZE => self.peer.max_frame = value as usize,
                setting::ENABLE_PUSH if value != 0 => return Err(wrong("a server cannot ask for pushes")),
                _ => {}
            }
        }
        self.answer()?;
        Header { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.push(&mut self.out);
        Ok(())
    }

    fn window_update(&mut self, header: Header, payload: &[u8]) -> Result<(), ProtocolError> {
        let increment = number(payload).ok_or_else(|| wrong("a WINDOW_UPDATE frame is none"))? & LARGEST;
        let fault = |window: i64| match increment {
            0 => Some(wrong("a window is opened by nothing")),
            _ if window + i64::from(increment) > i64::from(LARGEST) => Some(wrong("a window is opened too far")),
            _ => None,
        };
        if header.stream == 0 {
            if let Some(fault) = fault(self.send_window) {
                return Err(fault);
            }
            self.send_window += i64::from(increment);
        } else if let Some(place) = self.place_of(header.stream)? {
            match fault(self.places[place].send_window) {
                Some(fault) => self.break_stream(place, fault),
                None => self.places[place].send_window += i64::from(increment),
            }
        }
        Ok(())
    }

    /// The server takes no more streams, and has not looked at those above the one that it names (RFC 9113, 6.8).
    fn goaway(&mut self, header: Header, payload: &[u8]) -> Result<(), ProtocolError> {
        let (Some(last), Some(reason)) = (payload.get(..4).and_then(number), payload.get(4..8).and_then(number)) else {
            return Err(wrong("a GOAWAY frame is none"));
        };
        let last = last & LARGEST;
        if header.stream != 0 || self.goaway.is_some_and(|(before, _)| last > before) {
            return Err(wrong("a GOAWAY frame takes another one back"));
        }
        self.goaway = Some((last, reason));
        for place in 0..self.ids.len() {
            if self.ids[place] > last {
                self.free(place);
                self.ends.push_back((place, End::Refused));
            }
        }
        Ok(())
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

    /// A stream cannot go on, the others can.
    fn break_stream(&mut self, place: usize, error: ProtocolError) {
        self.reset(place, code::PROTOCOL_ERROR);
        self.ends.push_back((place, End::Broken(error)));
    }

    fn reset(&mut self, place: usize, reason: u32) {
        push_number(kind::RST_STREAM, self.ids[place], reason, &mut self.out);
        self.free(place);
    }

    fn free(&mut self, place: usize) {
        self.ids[place] = 0;
        self.active -= 1;
        // What is left of its frame is nobody's: the place may have another stream by then.
        if let Reading::Data { place: reading, .. } = &mut self.reading
            && *reading == Some(place)
        {
            *reading = None;
        }
        if self.places[place].body_length > 0 {
            self.sending.retain(|&sending| sending != place);
        }
    }

    /// The place of a stream; `None` for one that has ended. One that was never opened is an error.
    #[inline]
    fn place_of(&self, stream: u32) -> Result<Option<usize>, ProtocolError> {
        if stream % 2 == 0 || stream >= self.next_id {
            return Err(wrong("a frame belongs to a stream that was never opened"));
        }
        Ok(self.ids.iter().position(|&id| id == stream))
    }

    /// One more answer waits for the socket.
    fn answer(&mut self) -> Result<(), ProtocolError> {
        self.answers += 1;
        if self.answers > ANSWER_LIMIT {
            return Err(wrong("the server asks for answers faster than it takes them"));
        }
        Ok(())
    }
}

/// Initial windows of both sides, until something else is said (RFC 9113, 6.9.2).
const INITIAL_WINDOW: i64 = 65_535;

fn without_padding(header: Header, payload: &[u8]) -> Result<&[u8], ProtocolError> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let content = payload.split_first().and_then(|(&padding, rest)| {
        let length = rest.len().checked_sub(usize::from(padding))?;
        rest.get(..length)
    });
    content.ok_or_else(|| wrong("a frame is shorter than its padding"))
}

fn number(octets: &[u8]) -> Option<u32> {
    octets.try_into().ok().map(u32::from_be_bytes)
}

fn wrong(what: impl Into<String>) -> ProtocolError {
    ProtocolError(format!("HTTP/2: {}", what.into()))
}

/// The first octets are not those of HTTP/2.
#[cold]
fn not_http2(octets: &[u8; HEADER_BYTES]) -> ProtocolError {
    if octets.starts_with(b"HTTP/1.") {
        return ProtocolError(
            "the server answers in HTTP/1.x where HTTP/2 was spoken; leave --http2 out, or use https:// if it speaks \
             HTTP/2 over TLS only"
                .into(),
        );
    }
    if matches!(octets, [21 | 22, 3, ..]) {
        return ProtocolError("the answer is TLS, not HTTP/2: this port speaks https".into());
    }
    ProtocolError("the answer is not HTTP/2: it does not begin with SETTINGS".into())
}
