//! Reading HTTP/1.1 responses, however their bytes are split (RFC 9112).
//!
//! A state machine without I/O. The common case, a head that arrives whole, is read where it lies: one pass over its
//! lines, looking at the few fields that decide where the body ends. Bodies are counted, not kept.

use super::inflate::{Asked, Inflate};
use memchr::memchr;
use std::borrow::Cow;

/// Longest head, and longest trailer section, that is read. Go's client allows 1 MiB, curl 300 kB.
pub(crate) const HEAD_LIMIT: usize = 256 * 1024;
/// Longest chunk-size line, extensions included.
const CHUNK_LINE_LIMIT: usize = 16 * 1024;
/// Most interim (1xx) responses before the final one.
const INTERIM_LIMIT: u32 = 100;

/// A response breaks the rules of HTTP/1.1, or limits stated here; the text says which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ProtocolError(pub(crate) String);

/// What [`ResponseReader::feed`] made of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Bytes that belong to this response; fewer than given only when it is complete.
    pub(crate) consumed: usize,
    /// The response has ended.
    pub(crate) complete: bool,
}

/// What a head says about its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Minor version: 0 or 1.
    pub(crate) minor_version: u8,
    content_length: Option<u64>,
    transfer_encoded: bool,
    chunked: bool,
    /// The connection will be closed after this response.
    pub(crate) closes: bool,
}

/// Reads one response after the other on a connection.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: State,
    head: Option<Head>,
    /// A head, chunk line or trailer line that has not arrived whole.
    partial: Vec<u8>,
    /// Bytes of the trailer section, or interim responses, so far: limits against endless ones.
    trailer_bytes: usize,
    interim: u32,
    body_bytes: u64,
    to_head_request: bool,
    keep_heads: bool,
    kept_head: Vec<u8>,
    /// Where bodies are decompressed for counting.
    inflate: Option<Box<Inflate>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length {
        left: u64,
    },
    ChunkLine,
    ChunkData {
        left: u64,
    },
    /// The line end after a chunk's data.
    ChunkEnd,
    Trailer,
    UntilClose,
    Complete,
}

impl ResponseReader {
    /// A reader at the start of a connection. Responses to HEAD have no body whatever their head says.
    pub(crate) fn new(to_head_request: bool) -> Self {
        Self {
            state: State::Head,
            head: None,
            partial: Vec::new(),
            trailer_bytes: 0,
            interim: 0,
            body_bytes: 0,
            to_head_request,
            keep_heads: false,
            kept_head: Vec::new(),
            inflate: None,
        }
    }

    /// Bodies are decompressed from now on.
    pub(crate) fn inflate_bodies(&mut self) {
        self.inflate = Some(Box::new(Inflate::new()));
    }

    /// What comes next answers requests that ask for these codings.
    pub(crate) fn expect_codings(&mut self, asked: Asked) {
        if let Some(inflate) = &mut self.inflate {
            inflate.expect(asked);
        }
    }

    /// The body under way will not end.
    pub(crate) fn give_up_body(&mut self) {
        if let Some(inflate) = &mut self.inflate {
            inflate.give_up();
        }
    }

    /// What comes next answers a HEAD request, or another one.
    #[inline]
    pub(crate) fn expect_head_only(&mut self, to_head_request: bool) {
        self.to_head_request = to_head_request;
    }

    /// The complete body's size after decompression, where bodies are decompressed.
    #[inline]
    pub(crate) fn inflated_bytes(&mut self) -> Result<Option<u64>, ProtocolError> {
        self.inflate.as_mut().map(|inflate| inflate.finish()).transpose()
    }

    /// Gets ready for the next response on the same connection. `keep_head`: its head will be asked for.
    #[inline]
    pub(crate) fn begin(&mut self, keep_head: bool) {
        self.state = State::Head;
        self.head = None;
        self.partial.clear();
        self.trailer_bytes = 0;
        self.interim = 0;
        self.body_bytes = 0;
        self.keep_heads = keep_head;
    }

    /// Whether no byte of a response has been read since [`ResponseReader::begin`].
    pub(crate) fn is_untouched(&self) -> bool {
        self.state == State::Head && self.partial.is_empty() && self.interim == 0
    }

    /// The final head, once it has been read.
    pub(crate) fn head(&self) -> Option<Head> {
        self.head
    }

    /// The bytes of the final head, if they were to be kept or it is a redirect's.
    pub(crate) fn head_bytes(&self) -> &[u8] {
        &self.kept_head
    }

    /// Body bytes so far, without chunk framing.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Takes the next bytes of the connection.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Fed, ProtocolError> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match self.state {
                State::Complete => return Ok(Fed { consumed: at, complete: true }),
                _ if rest.is_empty() => return Ok(Fed { consumed: at, complete: false }),
                State::Head => at += self.feed_head(rest)?,
                State::Length { left } => {
                    let taken = left.min(rest.len() as u64);
                    self.count_body(&rest[..taken as usize])?;
                    at += taken as usize;
                    self.state = if taken == left { State::Complete } else { State::Length { left: left - taken } };
                }
                State::ChunkLine => at += self.feed_chunk_line(rest)?,
                State::ChunkData { left } => {
                    let taken = left.min(rest.len() as u64);
                    self.count_body(&rest[..taken as usize])?;
                    at += taken as usize;
                    self.state = if taken == left { State::ChunkEnd } else { State::ChunkData { left: left - taken } };
                }
                State::ChunkEnd => at += self.feed_chunk_end(rest)?,
                State::Trailer => at += self.feed_trailer(rest)?,
                State::UntilClose => {
                    self.count_body(rest)?;
                    at = bytes.len();
                }
            }
        }
    }

    #[inline]
    fn count_body(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.body_bytes += bytes.len() as u64;
        match &mut self.inflate {
            None => Ok(()),
            Some(inflate) => inflate.take(bytes),
        }
    }

    /// The connection has ended. `Ok` if that is how this response ends; otherwise what is missing.
    pub(crate) fn closed(&mut self) -> Result<(), Truncated> {
        match self.state {
            State::UntilClose | State::Complete => {
                self.state = State::Complete;
                Ok(())
            }
            State::Head if self.is_untouched() => Err(Truncated::Nothing),
            State::Head => Err(Truncated::Head),
            State::Length { left } => {
                Err(Truncated::Body { got: self.body_bytes, announced: Some(self.body_bytes + left) })
            }
            _ => Err(Truncated::Body { got: self.body_bytes, announced: None }),
        }
    }

    fn feed_head(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        if self.partial.is_empty() {
            if let Some(length) = head_length(bytes, 0) {
                self.take_head(&bytes[..length])?;
                return Ok(length);
            }
            check_start(bytes)?;
            if bytes.len() > HEAD_LIMIT {
                return Err(head_too_long());
            }
            self.partial.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let before = self.partial.len();
        let room = (HEAD_LIMIT + 1).saturating_sub(before);
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
        check_start(&self.partial)?;
        // The end may have begun up to three bytes earlier.
        if let Some(length) = head_length(&self.partial, before.saturating_sub(3)) {
            let head = std::mem::take(&mut self.partial);
            self.take_head(&head[..length])?;
            return Ok(length - before);
        }
        if self.partial.len() > HEAD_LIMIT {
            return Err(head_too_long());
        }
        Ok(bytes.len())
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let head = parse_head(bytes)?;
        if (100..200).contains(&head.status) {
            if head.status == 101 {
                return Err(ProtocolError("the server switched protocols without being asked (101)".into()));
            }
            self.interim += 1;
            if self.interim > INTERIM_LIMIT {
                return Err(ProtocolError(format!("more than {INTERIM_LIMIT} interim (1xx) responses")));
            }
            return Ok(());
        }
        // That of a redirect also unasked: where it leads is only known from it.
        if self.keep_heads || (300..400).contains(&head.status) {
            self.kept_head.clear();
            self.kept_head.extend_from_slice(bytes);
        }
        self.head = Some(head);
        if let Some(inflate) = &mut self.inflate {
            inflate.begin(field(bytes, "content-encoding"));
        }
        self.state = if self.to_head_request || matches!(head.status, 204 | 304) {
            State::Complete
        } else if head.chunked {
            State::ChunkLine
        } else if head.transfer_encoded {
            // No coding that tells where it ends: then the connection's end is that of the body (6.3).
            State::UntilClose
        } else {
            match head.content_length {
                Some(0) => State::Complete,
                Some(left) => State::Length { left },
                None => State::UntilClose,
            }
        };
        if self.state == State::UntilClose {
            self.head = Some(Head { closes: true, ..head });
        }
        Ok(())
    }

    fn feed_chunk_line(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let Some(Line { text: line, consumed }) =
            take_line(&mut self.partial, bytes, CHUNK_LINE_LIMIT, "chunk-size line")?
        else {
            return Ok(bytes.len());
        };
        let size = parse_chunk_size(&line)?;
        self.trailer_bytes = 0;
        self.state = if size == 0 { State::Trailer } else { State::ChunkData { left: size } };
        Ok(consumed)
    }

    fn feed_chunk_end(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        // A CR may arrive alone; it is remembered in `partial`.
        match (self.partial.as_slice(), bytes[0]) {
            (b"", b'\r') => {
                self.partial.push(b'\r');
                Ok(1)
            }
            (b"" | b"\r", b'\n') => {
                self.partial.clear();
                self.state = State::ChunkLine;
                Ok(1)
            }
            _ => Err(ProtocolError("a chunk is longer than its announced size".into())),
        }
    }

    fn feed_trailer(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let Some(Line { text: line, consumed }) = take_line(&mut self.partial, bytes, HEAD_LIMIT, "trailer field")?
        else {
            return Ok(bytes.len());
        };
        self.trailer_bytes += line.len();
        if self.trailer_bytes > HEAD_LIMIT {
            return Err(ProtocolError(format!("the trailer section is longer than {HEAD_LIMIT} bytes")));
        }
        if line.is_empty() {
            self.state = State::Complete;
        } else if memchr(b':', &line).is_none_or(|colon| colon == 0) {
            return Err(ProtocolError("a trailer field has no name".into()));
        }
        Ok(consumed)
    }
}

/// How a response was cut off by the end of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncated {
    /// Before its first byte.
    Nothing,
    /// Within its head.
    Head,
    /// Within its body.
    Body { got: u64, announced: Option<u64> },
}

/// More came than the response that was asked for.
pub(crate) fn surplus() -> ProtocolError {
    ProtocolError("the server sent more bytes than its response announced".into())
}

fn head_too_long() -> ProtocolError {
    ProtocolError(format!("the response's head is longer than {HEAD_LIMIT} bytes"))
}

/// Refuses early what cannot become a response, so that garbage without line ends is not collected up to the limit.
fn check_start(bytes: &[u8]) -> Result<(), ProtocolError> {
    const START: &[u8] = b"HTTP/1.";
    let seen = bytes.len().min(START.len());
    if bytes[..seen] == START[..seen] {
        return Ok(());
    }
    // TLS records begin with their type (21 alert, 22 handshake) and the major version 3.
    if bytes.len() >= 2 && matches!(bytes[0], 21 | 22) && bytes[1] == 3 {
        return Err(ProtocolError("the answer is TLS, not HTTP: this port speaks https".into()));
    }
    if bytes.starts_with(b"PRI") || bytes.starts_with(&[0, 0]) {
        return Err(ProtocolError("the answer looks like HTTP/2, which was not asked for".into()));
    }
    let shown: String = bytes.iter().take(16).map(|&b| if (32..127).contains(&b) { b as char } else { '.' }).collect();
    Err(ProtocolError(format!("the answer is not HTTP/1.x; it begins with \"{shown}\"")))
}

/// Length of the head that starts at 0 and ends with an empty line; the search begins at `from`.
#[inline]
fn head_length(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let newline = at + memchr(b'\n', &bytes[at..])?;
        match bytes[newline + 1..] {
            [b'\n', ..] => return Some(newline + 2),
            [b'\r', b'\n', ..] => return Some(newline + 3),
            [b'\r'] | [] => return None,
            _ => at = newline + 1,
        }
    }
}

/// Reads the status line and the fields that frame the message.
#[inline]
fn parse_head(bytes: &[u8]) -> Result<Head, ProtocolError> {
    check_start(bytes)?;
    let (line, mut at) = line_at(bytes, 0);
    let [_, _, _, _, _, _, _, minor @ b'0'..=b'9', b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] =
        line
    else {
        return Err(ProtocolError("the response's status line is malformed".into()));
    };
    if !matches!(rest, [] | [b' ', ..]) {
        return Err(ProtocolError("the response's status line is malformed".into()));
    }
    let status = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
    let minor_version = u8::from(*minor != b'0');
    let mut head = Head {
        status,
        minor_version,
        content_length: None,
        transfer_encoded: false,
        chunked: false,
        closes: minor_version == 0,
    };
    loop {
        let (line, next) = line_at(bytes, at);
        if line.is_empty() {
            // HTTP/1.0 knows no such coding: whoever sends it may not know where a response ends (6.1).
            head.closes |= head.transfer_encoded && minor_version == 0;
            return Ok(head);
        }
        at = next;
        read_field(&mut head, line)?;
    }
}

#[inline]
fn read_field(head: &mut Head, line: &[u8]) -> Result<(), ProtocolError> {
    let colon = memchr(b':', line).filter(|&colon| colon > 0);
    let Some(colon) = colon else {
        return Err(ProtocolError("a line of the response's head is no field".into()));
    };
    let name = &line[..colon];
    // Three names matter; their lengths differ from most others, so that the comparison is rarely made.
    match name.len() {
        14 if name.eq_ignore_ascii_case(b"content-length") => {
            let length = parse_content_length(trim(&line[colon + 1..]))?;
            if head.content_length.is_some_and(|before| before != length) {
                return Err(ProtocolError("two Content-Length fields contradict each other".into()));
            }
            head.content_length = Some(length);
        }
        17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
            // Several such fields are one list (RFC 9110, 5.3): the last coding of the last one counts.
            let value = trim(&line[colon + 1..]);
            let last = value.rsplit(|&b| b == b',').next().map(trim).unwrap_or_default();
            head.transfer_encoded = true;
            head.chunked = last.eq_ignore_ascii_case(b"chunked");
        }
        10 if name.eq_ignore_ascii_case(b"connection") => {
            for option in line[colon + 1..].split(|&b| b == b',').map(trim) {
                if option.eq_ignore_ascii_case(b"close") {
                    head.closes = true;
                } else if option.eq_ignore_ascii_case(b"keep-alive") && head.minor_version == 0 {
                    head.closes = false;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// `12`, or `12, 12` as some proxies join equal fields (RFC 9110, 8.6).
fn parse_content_length(value: &[u8]) -> Result<u64, ProtocolError> {
    let mut length = None;
    for part in value.split(|&b| b == b',').map(trim) {
        let part = digits(part).ok_or_else(|| ProtocolError("the Content-Length is no number".into()))?;
        if length.is_some_and(|before| before != part) {
            return Err(ProtocolError("two Content-Length values contradict each other".into()));
        }
        length = Some(part);
    }
    length.ok_or_else(|| ProtocolError("the Content-Length is no number".into()))
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

fn parse_chunk_size(line: &[u8]) -> Result<u64, ProtocolError> {
    let error = || ProtocolError("a chunk size is no hexadecimal number".into());
    let size = trim(line.split(|&b| b == b';').next().unwrap_or_default());
    if size.is_empty() {
        return Err(error());
    }
    size.iter().try_fold(0u64, |number, &digit| {
        let digit = (digit as char).to_digit(16).ok_or_else(error)?;
        let shifted = number.checked_mul(16).ok_or_else(error)?;
        Ok(shifted + u64::from(digit))
    })
}

/// The line that starts at `at`, without its end, and where the next one starts.
#[inline]
fn line_at(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let rest = &bytes[at..];
    let (end, next) = memchr(b'\n', rest).map_or((rest.len(), rest.len()), |newline| (newline, newline + 1));
    (without_cr(&rest[..end]), at + next)
}

/// A whole line without its end.
struct Line<'a> {
    text: Cow<'a, [u8]>,
    /// Bytes of the latest input that it took, its end included.
    consumed: usize,
}

/// A whole line from `bytes`, together with what `partial` has kept of it; `None`: not whole yet, all bytes are kept.
fn take_line<'a>(
    partial: &mut Vec<u8>,
    bytes: &'a [u8],
    limit: usize,
    what: &str,
) -> Result<Option<Line<'a>>, ProtocolError> {
    let newline = memchr(b'\n', bytes);
    if partial.len() + newline.unwrap_or(bytes.len()) > limit {
        return Err(ProtocolError(format!("a {what} is longer than {limit} bytes")));
    }
    let Some(newline) = newline else {
        partial.extend_from_slice(bytes);
        return Ok(None);
    };
    let consumed = newline + 1;
    if partial.is_empty() {
        return Ok(Some(Line { text: without_cr(&bytes[..newline]).into(), consumed }));
    }
    let mut line = std::mem::take(partial);
    line.extend_from_slice(&bytes[..newline]);
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(Line { text: line.into(), consumed }))
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// The value of a field in a head that was kept, for showing; the first one of that name.
pub(crate) fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|&b| b == b'\n').skip(1).find_map(|line| {
        let colon = memchr(b':', line)?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| trim(&line[colon + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], step: usize) -> Result<(Head, u64, usize, bool), ProtocolError> {
        let mut reader = ResponseReader::new(false);
        reader.begin(true);
        let mut consumed = 0;
        for piece in bytes.chunks(step.max(1)) {
            let fed = reader.feed(piece)?;
            consumed += fed.consumed;
            if fed.complete {
                return Ok((reader.head().unwrap(), reader.body_bytes(), consumed, true));
            }
        }
        let complete = reader.closed().is_ok();
        Ok((reader.head().ok_or(ProtocolError("cut".into()))?, reader.body_bytes(), consumed, complete))
    }

    fn check(bytes: &[u8], status: u16, body: u64, consumed: usize) {
        for step in 1..=bytes.len() {
            let (head, got, taken, complete) = read(bytes, step).unwrap();
            assert_eq!((head.status, got, taken, complete), (status, body, consumed, true), "in pieces of {step}");
        }
    }

    #[test]
    fn length_chunks_interim_and_close_in_pieces_of_any_size() {
        let with_length = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  5 \r\n\r\nhello";
        check(with_length, 200, 5, with_length.len());
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n00A\r\n0123456789\r\n0;last\r\nX: y\r\n\r\n";
        check(chunked, 200, 15, chunked.len());
        let two_fields = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        check(two_fields, 200, 0, two_fields.len());
        let interim =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        check(interim, 204, 0, interim.len());
        let until_close = b"HTTP/1.0 200 OK\r\n\r\nwhatever";
        check(until_close, 200, 8, until_close.len());
        let bare_newlines = b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok";
        check(bare_newlines, 200, 2, bare_newlines.len());
        // Codings that do not tell where they end: then the connection does (RFC 9112, 6.3).
        let coded = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nwhatever";
        check(coded, 200, 8, coded.len());
        let identity = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nwhatever";
        check(identity, 200, 8, identity.len());
        let not_modified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n";
        check(not_modified, 304, 0, not_modified.len());
    }

    #[test]
    fn bytes_after_a_response_are_not_taken() {
        let mut reader = ResponseReader::new(false);
        let fed = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP").unwrap();
        assert_eq!(fed, Fed { consumed: 40, complete: true });
    }

    #[test]
    fn a_response_to_head_has_no_body() {
        let mut reader = ResponseReader::new(true);
        let fed = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").unwrap();
        assert!(fed.complete);
    }

    #[test]
    fn keep_alive_follows_version_and_connection_field() {
        for (text, closes) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\n\r\n", true),
        ] {
            let mut reader = ResponseReader::new(false);
            reader.feed(text.as_bytes()).unwrap();
            assert_eq!(reader.head().unwrap().closes, closes, "{text}");
        }
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        for bytes in [
            &b"\x15\x03\x01\x00\x02\x02\x46"[..],
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"HTTP/2 200\r\n\r\n",
            b"HTTP/1.1 20 OK\r\n\r\n",
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n: empty\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n",
        ] {
            for step in [1, 3, bytes.len()] {
                assert!(read(bytes, step).is_err(), "{:?} in pieces of {step}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn endless_heads_and_interims_meet_their_limits() {
        let mut reader = ResponseReader::new(false);
        reader.feed(b"HTTP/1.1 200 OK\r\n").unwrap();
        let mut fed = 0;
        while reader.feed(b"X-More: and more\r\n").is_ok() {
            fed += 18;
            assert!(fed <= HEAD_LIMIT + 18);
        }
        let mut reader = ResponseReader::new(false);
        let interims = (0..200).take_while(|_| reader.feed(b"HTTP/1.1 102 Processing\r\n\r\n").is_ok()).count();
        assert_eq!(interims, INTERIM_LIMIT as usize);
    }

    #[test]
    fn a_cut_says_what_is_missing() {
        let cut = |bytes: &[u8]| {
            let mut reader = ResponseReader::new(false);
            reader.feed(bytes).unwrap();
            reader.closed()
        };
        assert_eq!(cut(b""), Err(Truncated::Nothing));
        assert_eq!(cut(b"HTTP/1.1 2"), Err(Truncated::Head));
        assert_eq!(
            cut(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
            Err(Truncated::Body { got: 3, announced: Some(9) })
        );
        assert_eq!(
            cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n"),
            Err(Truncated::Body { got: 4, announced: None })
        );
    }

    proptest! {
        /// Whatever a server sends, and however it is split: no panic, and the split changes nothing.
        #[test]
        fn garbage_is_read_the_same_in_any_pieces(
            prefix in prop::sample::select(vec![
                "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 ",
            ]),
            noise in prop::collection::vec(
                prop::sample::select(b"\r\n:;0a5 fHTP/1.,x\x00\xff".to_vec()), 0..60),
            step in 1usize..20,
        ) {
            let mut bytes = prefix.as_bytes().to_vec();
            bytes.extend(noise);
            let whole = read(&bytes, bytes.len().max(1));
            let split = read(&bytes, step);
            prop_assert_eq!(whole.is_ok(), split.is_ok(), "{:?} {:?}", whole, split);
            if let (Ok(whole), Ok(split)) = (whole, split) {
                prop_assert_eq!(whole, split);
            }
        }

        #[test]
        fn chunked_bodies_of_any_split_have_their_length(
            sizes in prop::collection::vec(1usize..400, 0..12), step in 1usize..700,
        ) {
            let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for size in &sizes {
                bytes.extend(format!("{size:X} ;x\r\n").into_bytes());
                bytes.extend(vec![b'\n'; *size]);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let (_, body, consumed, complete) = read(&bytes, step).unwrap();
            prop_assert!(complete);
            prop_assert_eq!(body, sizes.iter().sum::<usize>() as u64);
            prop_assert_eq!(consumed, bytes.len());
        }
    }
}
