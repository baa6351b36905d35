//! What leaves, and what the server says of it: frames put together within its windows and limits.

use super::super::frame::{Header, LARGEST, PAYLOAD_LIMIT, code, flag, kind, push_number, setting};
use super::super::{ANSWER_LIMIT, OUT_ENOUGH};
use super::receiving::none_unless;
use super::{Connection, Fault, Place, fault, number, wrong};

impl Connection {
    /// What is to be sent now: bodies as far as the server takes them, and all else. `body` tells a place's body. To be
    /// called until nothing comes; what came has to be taken out.
    #[inline]
    pub(crate) fn outgoing<'a>(&mut self, body: impl Fn(usize) -> &'a [u8]) -> &mut Vec<u8> {
        if !self.sending.is_empty() {
            self.put_bodies(body);
        }
        self.answers = 0;
        self.introduction = 0;
        &mut self.out
    }

    /// Places whose request was among what came, now that it has left.
    #[inline]
    pub(crate) fn left(&mut self) -> impl Iterator<Item = usize> {
        let Self { leaving, ids, .. } = self;
        leaving.drain(..).filter(|&(place, id)| ids.of(place) == Some(id)).map(|(place, _)| place)
    }

    /// A frame of each body in turn.
    fn put_bodies<'a>(&mut self, body: impl Fn(usize) -> &'a [u8]) {
        let mut blocked = 0;
        while blocked < self.sending.len() && self.out.len() < OUT_ENOUGH && self.send_window > 0 {
            let Some((place, id)) = self.sending.pop_front() else { return };
            if self.ids.of(place) != Some(id) {
                continue;
            }
            let Place { send_window, body_at, body_length, .. } = &mut self.places[place];
            let of_stream = self.peer.initial_window + *send_window;
            let room = self.send_window.min(of_stream).clamp(0, self.peer.max_frame.min(PAYLOAD_LIMIT) as i64);
            let length = (*body_length - *body_at).min(room as usize);
            if length == 0 {
                blocked += 1;
                self.sending.push_back((place, id));
                continue;
            }
            blocked = 0;
            let piece = &body(place)[*body_at..*body_at + length];
            *body_at += length;
            *send_window -= length as i64;
            self.send_window -= length as i64;
            let is_last = *body_at == *body_length;
            let flags = if is_last { flag::END_STREAM } else { 0 };
            Header { length, kind: kind::DATA, flags, stream: id }.push(&mut self.out);
            self.out.extend_from_slice(piece);
            if is_last {
                self.leaving.push((place, id));
            } else {
                self.sending.push_back((place, id));
            }
        }
    }

    pub(super) fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), Fault> {
        let is_ack = header.has(flag::ACK);
        let has_length = if is_ack { payload.is_empty() } else { payload.len().is_multiple_of(6) };
        none_unless(has_length, header.stream == 0, "SETTINGS")?;
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
                setting::INITIAL_WINDOW_SIZE if value > LARGEST => {
                    return Err(fault(code::FLOW_CONTROL_ERROR, "a window is too large"));
                }
                // It counts for streams under way as well (RFC 9113, 6.9.2).
                setting::INITIAL_WINDOW_SIZE => self.peer.initial_window = i64::from(value),
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

    pub(super) fn window_update(&mut self, header: Header, payload: &[u8]) -> Result<(), Fault> {
        none_unless(payload.len() == 4, true, "WINDOW_UPDATE")?;
        let increment = number(payload).unwrap_or_default() & LARGEST;
        let check = |window: i64| match increment {
            0 => Err((code::PROTOCOL_ERROR, "a window is opened by nothing")),
            _ if window + i64::from(increment) > i64::from(LARGEST) => {
                Err((code::FLOW_CONTROL_ERROR, "a window is opened too far"))
            }
            _ => Ok(()),
        };
        if header.stream == 0 {
            check(self.send_window).map_err(|(reason, what)| fault(reason, what))?;
            self.send_window += i64::from(increment);
        } else if let Some(place) = self.place_of(header.stream)? {
            match check(self.peer.initial_window + self.places[place].send_window) {
                Err((reason, what)) => self.break_stream(place, reason, fault(reason, what).error),
                Ok(()) => self.places[place].send_window += i64::from(increment),
            }
        }
        Ok(())
    }

    /// The server may send so many octets more, on a stream or, with 0, on the connection.
    pub(super) fn open_window(&mut self, stream: u32, octets: u32) -> Result<(), Fault> {
        push_number(kind::WINDOW_UPDATE, stream, octets, &mut self.out);
        self.answer()
    }

    /// One more answer waits for the socket. A server that keeps to a stream's window makes us open it twice at most until it has
    /// read that.
    pub(super) fn answer(&mut self) -> Result<(), Fault> {
        self.answers += 1;
        if self.answers as usize > ANSWER_LIMIT + 2 * self.places.len() {
            return Err(fault(code::ENHANCE_YOUR_CALM, "the server asks for answers faster than it takes them"));
        }
        Ok(())
    }
}
