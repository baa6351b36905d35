//! What arrives, taken apart: octets to frames, frames to what they mean.

use super::super::super::protocol_error::ProtocolError;
use super::super::frame::{HEADER_BYTES, Header, LARGEST, PAYLOAD_LIMIT, code, flag, kind};
use super::super::hpack::HpackError;
use super::super::{CONTINUATION_LIMIT, HEADER_LIST_LIMIT};
use super::{Block, Connection, End, Fault, Place, Reading, fault, number, wrong};
use duel_model::Nanos;

impl Connection {
    /// Takes the next octets of the connection, which came at `now`. An error ends the connection; what is to be sent then
    /// may tell the server why.
    #[inline]
    pub(crate) fn feed(&mut self, octets: &[u8], now: Nanos) -> Result<(), ProtocolError> {
        self.take_apart(octets, now).map_err(|fault| self.part(fault))
    }

    #[inline]
    fn take_apart(&mut self, mut octets: &[u8], now: Nanos) -> Result<(), Fault> {
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
    fn feed_frame<'a>(&mut self, octets: &'a [u8], now: Nanos) -> Result<&'a [u8], Fault> {
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
    fn collect<'a>(&mut self, octets: &'a [u8], now: Nanos) -> Result<&'a [u8], Fault> {
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
    fn checked(&self, octets: &[u8; HEADER_BYTES]) -> Result<Header, Fault> {
        let header = Header::read(octets);
        if !self.peer.is_known && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(not_http2(octets));
        }
        if header.length > PAYLOAD_LIMIT {
            return Err(fault(
                code::FRAME_SIZE_ERROR,
                format!("the server sent a frame of {} bytes, {PAYLOAD_LIMIT} are allowed", header.length),
            ));
        }
        if let Some(block) = self.block
            && (header.kind != kind::CONTINUATION || header.stream != block.stream)
        {
            return Err(wrong("another frame stands within a header block"));
        }
        Ok(header)
    }

    #[inline]
    fn begin_data(&mut self, header: Header, now: Nanos) -> Result<(), Fault> {
        let place = self.place_of(header.stream)?;
        let length = header.length as u32;
        let [of_stream, of_connection] = self.open_after;
        self.taken += length;
        if self.taken > of_connection {
            let octets = std::mem::take(&mut self.taken);
            self.open_window(0, octets)?;
        }
        let ends = header.has(flag::END_STREAM);
        if let Some(place) = place {
            let Place { stream, taken, .. } = &mut self.places[place];
            stream.frame(HEADER_BYTES + header.length, now);
            *taken += length;
            if *taken > of_stream && !ends {
                let octets = std::mem::take(taken);
                self.open_window(header.stream, octets)?;
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
    fn feed_data<'a>(&mut self, octets: &'a [u8]) -> Result<&'a [u8], Fault> {
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
            self.break_stream(of, code::PROTOCOL_ERROR, error);
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
    fn end_data(&mut self, place: Option<usize>, ends: bool) -> Result<(), Fault> {
        self.reading = Reading::Frame;
        if let Some(place) = place.filter(|_| ends) {
            self.end_stream(place);
        }
        Ok(())
    }

    /// Takes a whole frame that is not DATA.
    fn frame(&mut self, header: Header, payload: &[u8], now: Nanos) -> Result<(), Fault> {
        match header.kind {
            kind::HEADERS => {
                let fragment = without_padding(header, payload)?;
                let fragment = match header.has(flag::PRIORITY) {
                    false => fragment,
                    true => fragment
                        .get(5..)
                        .ok_or_else(|| fault(code::FRAME_SIZE_ERROR, "a HEADERS frame is too short"))?,
                };
                let block =
                    Block { stream: header.stream, ends_stream: header.has(flag::END_STREAM), continuations: 0 };
                let place = self.place_of(header.stream)?;
                if let Some(place) = place {
                    self.places[place].stream.frame(HEADER_BYTES + payload.len(), now);
                }
                if header.has(flag::END_HEADERS) {
                    return self.block_ended(block, place, fragment);
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
                none_unless(payload.len() == 8, header.stream == 0, "PING")?;
                if !header.has(flag::ACK) {
                    self.answer()?;
                    Header { flags: flag::ACK, ..header }.push(&mut self.out);
                    self.out.extend_from_slice(payload);
                }
                Ok(())
            }
            kind::GOAWAY => self.goaway(header, payload),
            kind::RST_STREAM => {
                none_unless(payload.len() == 4, true, "RST_STREAM")?;
                let reason = number(payload).unwrap_or_default();
                if let Some(place) = self.place_of(header.stream)? {
                    self.free(place);
                    self.places[place].stream.give_up_body();
                    let is_refused = reason == code::REFUSED_STREAM;
                    let end = if is_refused { End::Refused } else { End::Reset(code::name(reason)) };
                    self.ends.push_back((place, end));
                }
                Ok(())
            }
            kind::PRIORITY => none_unless(payload.len() == 5, header.stream != 0, "PRIORITY"),
            kind::PUSH_PROMISE => Err(wrong("the server pushed a response, which was forbidden")),
            // What is not known is to be passed over (RFC 9113, 5.5).
            _ => Ok(()),
        }
    }

    fn continuation(&mut self, header: Header, payload: &[u8]) -> Result<(), Fault> {
        let Some(block) = &mut self.block else { return Err(wrong("a header block is continued that is not open")) };
        block.continuations += 1;
        if block.continuations > CONTINUATION_LIMIT || self.block_bytes.len() + payload.len() > HEADER_LIST_LIMIT {
            return Err(fault(
                code::ENHANCE_YOUR_CALM,
                format!("a header block is longer than {HEADER_LIST_LIMIT} bytes, or in too many pieces"),
            ));
        }
        self.block_bytes.extend_from_slice(payload);
        let block = *block;
        let place = self.place_of(header.stream)?;
        if let Some(place) = place {
            let stream = &mut self.places[place].stream;
            let began_ns = stream.first_byte_ns().unwrap_or(0);
            stream.frame(HEADER_BYTES + payload.len(), began_ns);
        }
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        self.block = None;
        let bytes = std::mem::take(&mut self.block_bytes);
        self.block_ended(block, place, &bytes)
    }

    /// A header block is whole. It is decoded also where nobody waits for it: those behind it refer to it.
    fn block_ended(&mut self, block: Block, place: Option<usize>, bytes: &[u8]) -> Result<(), Fault> {
        let decoding = |error: HpackError| {
            fault(code::COMPRESSION_ERROR, format!("a header block cannot be decoded: {}", error.0))
        };
        let Some(place) = place else {
            return self.decoder.decode(bytes, |_, _| {}).map_err(decoding);
        };
        let mut section = self.places[place].stream.section();
        self.decoder.decode(bytes, |name, value| section.field(name, value)).map_err(decoding)?;
        match section.ended(block.ends_stream) {
            Err(error) => self.break_stream(place, code::PROTOCOL_ERROR, error),
            Ok(()) if block.ends_stream => self.end_stream(place),
            Ok(()) => {}
        }
        Ok(())
    }

    /// The server takes no more streams, and has not looked at those above the one that it names (RFC 9113, 6.8).
    fn goaway(&mut self, header: Header, payload: &[u8]) -> Result<(), Fault> {
        let (Some(last), Some(reason)) = (payload.get(..4).and_then(number), payload.get(4..8).and_then(number)) else {
            return Err(fault(code::FRAME_SIZE_ERROR, "a GOAWAY frame is none"));
        };
        let last = last & LARGEST;
        if header.stream != 0 || self.goaway.is_some_and(|(before, _)| last > before) {
            return Err(wrong("a GOAWAY frame takes another one back"));
        }
        let is_news = self.goaway.is_none_or(|(before, _)| last < before);
        self.goaway = Some((last, reason));
        if is_news {
            // In the order in which they were sent: who has waited longest is sent again first.
            let above = (0..self.places.len()).filter_map(|place| Some((self.ids.of(place)?, place)));
            let mut refused: Vec<(u32, usize)> = above.filter(|&(id, _)| id > last).collect();
            refused.sort_unstable();
            for (_, place) in refused {
                self.free(place);
                self.ends.push_back((place, End::Refused));
            }
        }
        Ok(())
    }
}

fn without_padding(header: Header, payload: &[u8]) -> Result<&[u8], Fault> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let content = payload.split_first().and_then(|(&padding, rest)| {
        let length = rest.len().checked_sub(usize::from(padding))?;
        rest.get(..length)
    });
    content.ok_or_else(|| wrong("a frame is shorter than its padding"))
}

/// An error unless a frame has the length that it has to have, and belongs where it came.
pub(super) fn none_unless(has_length: bool, is_in_place: bool, name: &str) -> Result<(), Fault> {
    let what = || format!("a {name} frame is none");
    match (has_length, is_in_place) {
        (true, true) => Ok(()),
        (false, _) => Err(fault(code::FRAME_SIZE_ERROR, what())),
        (true, false) => Err(wrong(what())),
    }
}

/// The first octets are not those of HTTP/2.
#[cold]
fn not_http2(octets: &[u8; HEADER_BYTES]) -> Fault {
    Fault { reason: None, error: what_else(octets) }
}

fn what_else(octets: &[u8; HEADER_BYTES]) -> ProtocolError {
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
