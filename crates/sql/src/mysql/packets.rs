//! Packets: how messages are framed, read from what has come so far, and written.
//!
//! A packet is three bytes of length, one byte that counts the packets of an exchange, and the payload. A payload of
//! [`LARGEST_PAYLOAD`] bytes says that the message goes on in the next packet.

use crate::failure::BROKEN;
use crate::wire::SqlFailure;
use std::ops::Range;

/// What a length of three bytes can say.
pub(super) const LARGEST_PAYLOAD: usize = 0xFF_FFFF;
/// Length, and the number in the exchange.
pub(super) const HEADER_BYTES: usize = 4;
/// The first byte of an answer that is an error.
pub(super) const ERROR_MARK: u8 = 0xFF;
/// The longest row: what `max_allowed_packet` can be set to. One that goes on behind it is a lie.
const LONGEST_ROW_BYTES: usize = 1 << 30;
/// What may lie here unread when more comes: only a caller that does not read gets there.
const MOST_UNREAD_BYTES: usize = 4 << 20;

/// What was received and is not read yet.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    buffer: Vec<u8>,
    /// What lies before it has been read.
    at: usize,
    /// The number that the next packet has to have.
    expected: u8,
    /// A row that is passed over while it comes.
    passing: Option<Passing>,
}

#[derive(Debug)]
struct Passing {
    /// Bytes of the present packet that are still to come.
    left: usize,
    /// Whether another packet of this row follows.
    goes_on: bool,
    /// How long the row is, as far as its packets have told.
    row_bytes: usize,
}

/// The head of a packet that has begun to arrive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// Bytes of its payload.
    pub(super) length: usize,
    /// Its number in the exchange.
    number: u8,
    /// The first byte of its payload.
    pub(super) first: u8,
}

impl Incoming {
    /// Takes received bytes.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(), SqlFailure> {
        let unread = self.buffer.len() - self.at;
        if unread > MOST_UNREAD_BYTES {
            return Err(broken("more bytes came than were read"));
        }
        // What is left is a part of one message, or nothing: this moves few bytes, and those of a long message only once.
        if self.at > 0 {
            self.buffer.copy_within(self.at.., 0);
            self.buffer.truncate(unread);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether all that was received has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.buffer.len()
    }

    /// What came and is not read yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// The next packet has to have this number.
    pub(super) fn expect(&mut self, number: u8) {
        self.expected = number;
    }

    /// The number for a packet of ours that answers the last one; the other side's next one comes after it.
    pub(super) fn answer_number(&mut self) -> u8 {
        let number = self.expected;
        self.expected = number.wrapping_add(1);
        number
    }

    /// Nothing was asked: all that may come is an error, outside any exchange.
    #[inline]
    pub(super) fn check_unasked(&mut self) -> Result<(), SqlFailure> {
        self.expected = 0;
        match self.unread() {
            [0, 0, 0, _, ..] | [_, _, _, _, ERROR_MARK, ..] => Ok(()),
            [_, _, _, _, _, ..] => Err(broken("the server speaks without having been asked")),
            _ => Ok(()),
        }
    }

    /// The head of the next packet, once its first byte is there. No message of this protocol is empty.
    #[inline]
    pub(super) fn head(&self) -> Result<Option<Head>, SqlFailure> {
        let Some((&[a, b, c, number], payload)) = self.buffer[self.at..].split_first_chunk() else { return Ok(None) };
        let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        if length == 0 {
            return Err(broken("a packet of the server is empty"));
        }
        let Some(&first) = payload.first() else { return Ok(None) };
        // A server that ends a connection by itself says so outside any exchange, which may cross with a statement of ours.
        if number != self.expected && !(first == ERROR_MARK && number == 0) {
            return Err(broken(format!("a packet of the server has the number {number}, not {}", self.expected)));
        }
        Ok(Some(Head { length, number, first }))
    }

    /// Takes a message of at most `most` bytes, once it is whole: where its payload lies.
    #[inline]
    pub(super) fn whole(&mut self, head: Head, most: usize) -> Result<Option<Range<usize>>, SqlFailure> {
        if head.length > most {
            return Err(broken(format!("a message of the server says that it has {} bytes", head.length)));
        }
        let start = self.at + HEADER_BYTES;
        let end = start + head.length;
        if end > self.buffer.len() {
            return Ok(None);
        }
        self.at = end;
        self.expected = head.number.wrapping_add(1);
        Ok(Some(start..end))
    }

    /// What lies there; until more is received.
    #[inline]
    pub(super) fn payload(&self, place: Range<usize>) -> &[u8] {
        &self.buffer[place]
    }

    /// Begins to pass over a row.
    #[inline]
    pub(super) fn pass_row(&mut self, head: Head) {
        self.at += HEADER_BYTES;
        self.expected = head.number.wrapping_add(1);
        self.passing =
            Some(Passing { left: head.length, goes_on: head.length == LARGEST_PAYLOAD, row_bytes: head.length });
    }

    /// Goes on passing over a row. Whether there is none, or it is over now.
    #[inline]
    pub(super) fn row_is_passed(&mut self) -> Result<bool, SqlFailure> {
        while let Some(passing) = &mut self.passing {
            let step = passing.left.min(self.buffer.len() - self.at);
            passing.left -= step;
            self.at += step;
            if passing.left > 0 {
                return Ok(false);
            }
            if !passing.goes_on {
                self.passing = None;
                return Ok(true);
            }
            // The last packet of a row may be empty, so that this head has no first byte.
            let Some(&[a, b, c, number]) = self.buffer[self.at..].first_chunk() else { return Ok(false) };
            if number != self.expected {
                return Err(broken(format!("a packet of the server has the number {number}, not {}", self.expected)));
            }
            self.at += HEADER_BYTES;
            self.expected = number.wrapping_add(1);
            passing.left = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            passing.goes_on = passing.left == LARGEST_PAYLOAD;
            passing.row_bytes += passing.left;
            if passing.row_bytes > LONGEST_ROW_BYTES {
                return Err(broken("a row of the server does not end"));
            }
        }
        Ok(true)
    }
}

/// Appends one message to `out`: what `fill` writes, in as many packets as it takes, from `number` on. Answers with the number of
/// the packet after them.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, number: u8, fill: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let head = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    fill(out);
    let length = out.len() - head - HEADER_BYTES;
    if length < LARGEST_PAYLOAD {
        out[head..head + 3].copy_from_slice(&three_bytes(length));
        return number.wrapping_add(1);
    }
    write_in_parts(out, head, number)
}

/// As [`write`], for what takes several packets. A message whose length is a multiple of [`LARGEST_PAYLOAD`] ends with an empty one.
#[cold]
fn write_in_parts(out: &mut Vec<u8>, head: usize, mut number: u8) -> u8 {
    let payload = out.split_off(head + HEADER_BYTES);
    out.truncate(head);
    let mut parts = payload.chunks(LARGEST_PAYLOAD);
    loop {
        let part = parts.next().unwrap_or_default();
        out.extend_from_slice(&three_bytes(part.len()));
        out.push(number);
        out.extend_from_slice(part);
        number = number.wrapping_add(1);
        if part.len() < LARGEST_PAYLOAD {
            return number;
        }
    }
}

fn three_bytes(length: usize) -> [u8; 3] {
    let [a, b, c, ..] = length.to_le_bytes();
    [a, b, c]
}

/// Appends a text behind its length.
pub(super) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = text.len() as u64;
    let bytes = length.to_le_bytes();
    match length {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
    out.extend_from_slice(text);
}

/// The fields of a message, one after the other. A message that is shorter than its fields breaks the protocol.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlFailure> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// So many bytes, as many as the array has.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlFailure> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// One byte.
    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, SqlFailure> {
        self.array().map(|[byte]| byte)
    }

    /// A number of two bytes.
    #[inline]
    pub(super) fn two(&mut self) -> Result<u16, SqlFailure> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number of four bytes.
    #[inline]
    pub(super) fn four(&mut self) -> Result<u32, SqlFailure> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of as many bytes as its first byte says.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, SqlFailure> {
        match self.byte()? {
            small @ 0..=0xFA => Ok(u64::from(small)),
            0xFC => self.two().map(u64::from),
            0xFD => self.array().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xFE => self.array().map(u64::from_le_bytes),
            other => Err(broken(format!("a length of the server begins with {other:#04x}"))),
        }
    }

    /// A text behind its length.
    #[inline]
    pub(super) fn text(&mut self) -> Result<&'a [u8], SqlFailure> {
        let length = usize::try_from(self.number()?).map_err(|_| cut_short())?;
        self.bytes(length)
    }

    /// A text before a zero byte.
    pub(super) fn before_zero(&mut self) -> Result<&'a [u8], SqlFailure> {
        let length = self.0.iter().position(|&byte| byte == 0).ok_or_else(cut_short)?;
        let text = self.bytes(length)?;
        self.byte()?;
        Ok(text)
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// A breach of the protocol, in words.
#[cold]
pub(super) fn broken(text: impl AsRef<str>) -> SqlFailure {
    SqlFailure::new(BROKEN, text)
}

#[cold]
fn cut_short() -> SqlFailure {
    broken("a message of the server is shorter than what it says it holds")
}
