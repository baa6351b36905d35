//! Reading HTTP/1.1 responses, however their bytes are split (RFC 9112).
//!
//! A state machine without I/O. The common case, a head that arrives whole, is read where it lies: one pass over its
//! lines, looking at the few fields that decide where the body ends. Bodies are counted, not kept.
//!
//! # Rules
//!
//! What ordinary clients read is read, wherever RFC 9110 and RFC 9112 leave the choice: a server that curl can use is not
//! called broken here. Where two readings would put the end of a response at different places, there is one rule, and the
//! connection is closed behind it.
//!
//! | what comes | what is made of it | RFC |
//! |---|---|---|
//! | LF alone as the end of a line | ends the line | 9112, 2.2 |
//! | CR within a line, NUL | stand for a space | 9112, 2.2; 9110, 5.5 |
//! | a line that begins with a space or a tab | goes on with the field before it, with one space in between | 9112, 5.2 |
//! | such a line right behind the status line | is passed over | 9112, 2.2 |
//! | a status line with tabs, or with more spaces than one | is read word by word; no reason is needed | 9112, 4 |
//! | a space or a tab before a field's colon | is passed over | 9112, 5.1 |
//! | a line without a colon, a field without a name | the response is refused | 9112, 5 |
//! | empty elements of a list (`chunked,`) | are passed over | 9110, 5.6.1.2 |
//! | several fields of one name | are one list, in their order | 9110, 5.3 |
//! | HEAD, 1xx, 204, 304 | no body, whatever the fields say; they may even be wrong | 9112, 6.3 (1) |
//! | Transfer-Encoding and Content-Length | the first one counts, the second may hold anything; the connection is closed | 9112, 6.3 (3) |
//! | chunked as the last coding, once or oftener | chunks | 9112, 6.3 (4), 7.1 |
//! | another coding as the last one | the end of the connection ends the body | 9112, 6.3 (4) |
//! | `identity` before any other transfer coding | none: nobody has done anything to the body | 2616, 3.6 |
//! | a parameter of chunked | the response is refused | 9112, 7.1 |
//! | Transfer-Encoding in HTTP/1.0 | as above; the connection is closed | 9112, 6.1 |
//! | the same Content-Length several times, as fields or as a list | that length | 9112, 6.3 (5); 9110, 8.6 |
//! | different ones, one that is empty, no number or too large | the response is refused | 9112, 6.3 (5) |
//! | neither of the two fields | the end of the connection ends the body | 9112, 6.3 (8) |
//! | blanks behind a chunk's size, an extension | are passed over | 9112, 7.1.1 |
//! | blanks before a chunk's size | the response is refused | 9112, 7.1 |
//! | trailers | are read over, folded ones too | 9112, 7.1.2 |
//! | the option `close` | the connection is closed, also where `keep-alive` stands beside it | 9112, 9.3 |
//! | bytes behind the end of a response | are nobody's, and are counted: see [`crate::http1::lane`] | 9112, 6.3 |

use crate::inflate::{Asked, Inflate};
use crate::protocol_error::ProtocolError;
use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// Longest head, and longest trailer section, that is read. Go's client allows 1 MiB, curl 300 kB.
pub(crate) const HEAD_LIMIT: usize = 256 * 1024;
/// Longest chunk-size line, extensions included.
const CHUNK_LINE_LIMIT: usize = 16 * 1024;
/// Most interim (1xx) responses before the final one.
const INTERIM_LIMIT: u32 = 100;

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
    /// The connection will be closed after this response.
    pub(crate) closes: bool,
}

/// What the fields of a head say of the end of the body, and of the connection.
#[derive(Debug, Clone, Copy)]
struct Framing {
    length: ContentLength,
    /// There is a Transfer-Encoding, whatever it says.
    is_coded: bool,
    coding: Coding,
    says_close: bool,
    says_keep_alive: bool,
}

/// The last transfer coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    Chunked,
    /// One that does not tell where it ends.
    Other,
    Wrong,
}

/// What all Content-Length fields of a message say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ContentLength {
    #[default]
    Absent,
    /// There is one, without a value.
    Empty,
    Bytes(u64),
    /// Nobody can tell how long the body is; why. It does not matter where something else ends the body.
    Wrong(&'static str),
}

impl ContentLength {
    /// Together with one more field: they are one list (RFC 9110, 5.3 and 8.6).
    #[inline]
    pub(crate) fn and(self, value: &[u8]) -> Self {
        let value = trim(value);
        match (self, digits(value)) {
            (Self::Absent, Some(length)) => Self::Bytes(length),
            _ => self.and_list(value),
        }
    }

    #[cold]
    fn and_list(self, value: &[u8]) -> Self {
        let start = if self == Self::Absent { Self::Empty } else { self };
        elements(value).fold(start, |before, element| match (before, digits(element)) {
            (Self::Wrong(_), _) => before,
            (_, None) if !element.is_empty() && element.iter().all(u8::is_ascii_digit) => {
                Self::Wrong("the Content-Length is larger than any body")
            }
            (_, None) => Self::Wrong("the Content-Length is no number"),
            (Self::Bytes(one), Some(other)) if one != other => {
                Self::Wrong("two Content-Length values contradict each other")
            }
            (_, Some(length)) => Self::Bytes(length),
        })
    }

    /// The length, where it is what ends the body; `None`: something else has to.
    #[inline]
    pub(crate) fn known(self) -> Result<Option<u64>, &'static str> {
        match self {
            Self::Absent => Ok(None),
            Self::Bytes(length) => Ok(Some(length)),
            Self::Empty => Err("the Content-Length is empty"),
            Self::Wrong(why) => Err(why),
        }
    }
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
    /// What came is not even the beginning of a response.
    is_stray: bool,
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
            is_stray: false,
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
        self.is_stray = false;
        self.body_bytes = 0;
        self.keep_heads = keep_head;
    }

    /// Whether no byte of a response has been read since [`ResponseReader::begin`].
    pub(crate) fn is_untouched(&self) -> bool {
        self.state == State::Head && self.partial.is_empty() && self.interim == 0
    }

    /// Whether what came, instead of a response, is not even the beginning of one.
    pub(crate) fn is_stray(&self) -> bool {
        self.is_stray
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

    #[inline]
    fn feed_head(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        if self.partial.is_empty()
            && let Ok(Some((head, framing, length))) = read_head(bytes)
            && length <= HEAD_LIMIT
        {
            self.take_head(head, &framing, &bytes[..length])?;
            return Ok(length);
        }
        self.collect_head(bytes)
    }

    /// The same where the head did not arrive whole, or is an unusual one. What is wrong with it is told when it is whole,
    /// so that the verdict does not depend on how it was cut.
    #[cold]
    fn collect_head(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let before = self.partial.len();
        let room = (HEAD_LIMIT + 1).saturating_sub(before);
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if let Err(error) = check_start(&self.partial) {
            self.is_stray = self.interim == 0;
            return Err(error);
        }
        // The end may have begun up to three bytes earlier.
        let length = head_length(&self.partial, before.saturating_sub(3));
        if length.unwrap_or(self.partial.len()) > HEAD_LIMIT {
            return Err(ProtocolError(format!("the response's head is longer than {HEAD_LIMIT} bytes")));
        }
        let Some(length) = length else { return Ok(bytes.len()) };
        let mut head = std::mem::take(&mut self.partial);
        head.truncate(length);
        let read = match read_head(&head) {
            Err(Irregular::Folded) => {
                head = unfolded(&head);
                read_head(&head)
            }
            read => read,
        };
        match read {
            Ok(Some((parsed, framing, _))) => self.take_head(parsed, &framing, &head)?,
            Err(Irregular::Wrong(what)) => return Err(ProtocolError(what.into())),
            // Neither can be: its end was found, and nothing in it is folded any more.
            Ok(None) | Err(Irregular::Folded) => return Err(ProtocolError("the response's head is malformed".into())),
        }
        Ok(length - before)
    }

    #[inline]
    fn take_head(&mut self, head: Head, framing: &Framing, bytes: &[u8]) -> Result<(), ProtocolError> {
        if (100..200).contains(&head.status) {
            return self.take_interim(head.status);
        }
        // That of a redirect also unasked: where it leads is only known from it.
        if self.keep_heads || (300..400).contains(&head.status) {
            self.keep(bytes);
        }
        if let Some(inflate) = &mut self.inflate {
            inflate.begin(joined(bytes, "content-encoding").as_deref());
        }
        let wrong = |what: &'static str| ProtocolError(what.into());
        self.state = if self.to_head_request || matches!(head.status, 204 | 304) {
            State::Complete
        } else {
            match framing.coding {
                Coding::Chunked => State::ChunkLine,
                Coding::Other => State::UntilClose,
                Coding::Wrong => return Err(wrong("the transfer coding chunked has a parameter")),
                Coding::None => match framing.length.known().map_err(wrong)? {
                    Some(0) => State::Complete,
                    Some(left) => State::Length { left },
                    None => State::UntilClose,
                },
            }
        };
        self.head = Some(Head { closes: head.closes || self.state == State::UntilClose, ..head });
        Ok(())
    }

    /// Nothing follows the head of an interim response but the next head.
    #[cold]
    fn take_interim(&mut self, status: u16) -> Result<(), ProtocolError> {
        if status == 101 {
            return Err(ProtocolError("the server switched protocols without being asked (101)".into()));
        }
        self.interim += 1;
        if self.interim > INTERIM_LIMIT {
            return Err(ProtocolError(format!("more than {INTERIM_LIMIT} interim (1xx) responses")));
        }
        Ok(())
    }

    /// Keeps a head, with a space for each octet that may not stand in a field.
    #[inline(never)]
    fn keep(&mut self, bytes: &[u8]) {
        self.kept_head.clear();
        self.kept_head.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(found) = memchr2(b'\r', 0, &self.kept_head[at..]) {
            at += found;
            if self.kept_head[at] == 0 || self.kept_head.get(at + 1) != Some(&b'\n') {
                self.kept_head[at] = b' ';
            }
            at += 1;
        }
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
        } else if !is_blank(line[0]) && memchr(b':', &line).is_none_or(|colon| colon == 0) {
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

/// Why a head cannot be read in one pass where it lies.
#[derive(Debug)]
enum Irregular {
    /// A line goes on with the one before it.
    Folded,
    Wrong(&'static str),
}

/// Reads the head that `bytes` begin with: the status line and the fields that frame the message. Answers its length, too;
/// `None`: it is not whole.
#[inline]
fn read_head(bytes: &[u8]) -> Result<Option<(Head, Framing, usize)>, Irregular> {
    let Some((line, mut at)) = line_at(bytes, 0) else { return Ok(None) };
    let (status, minor_version) = match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9', b' ', a, b, c, rest @ ..]
            if a.wrapping_sub(b'1') < 9
                && b.is_ascii_digit()
                && c.is_ascii_digit()
                && matches!(rest, [] | [b' ', ..]) =>
        {
            (number(*a, *b, *c), u8::from(*minor != b'0'))
        }
        _ => words_of_status_line(line).ok_or(Irregular::Wrong("the response's status line is malformed"))?,
    };
    let mut framing = Framing {
        length: ContentLength::Absent,
        is_coded: false,
        coding: Coding::None,
        says_close: false,
        says_keep_alive: false,
    };
    loop {
        let Some((line, next)) = line_at(bytes, at) else { return Ok(None) };
        at = next;
        match line {
            [] => break,
            [first, ..] if is_blank(*first) => return Err(Irregular::Folded),
            line => read_field(&mut framing, line).map_err(Irregular::Wrong)?,
        }
    }
    let Framing { length, is_coded, says_close, says_keep_alive, .. } = framing;
    let closes = says_close
        || (minor_version == 0 && (!says_keep_alive || is_coded))
        // Who sends both may disagree with somebody on the way about where the response ends (6.3).
        || (is_coded && length != ContentLength::Absent);
    Ok(Some((Head { status, minor_version, closes }, framing, at)))
}

fn number(a: u8, b: u8, c: u8) -> u16 {
    u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
}

/// Status and minor version, however the words of the line are kept apart.
#[cold]
fn words_of_status_line(line: &[u8]) -> Option<(u16, u8)> {
    check_start(line).ok()?;
    let mut words = line.split(|&b| is_blank(b) || matches!(b, b'\r' | 11 | 12)).filter(|word| !word.is_empty());
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9'] = words.next()? else { return None };
    let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = words.next()? else { return None };
    Some((number(*a, *b, *c), u8::from(*minor != b'0')))
}

/// A head without folded lines, for the few that have some.
#[cold]
fn unfolded(bytes: &[u8]) -> Vec<u8> {
    let mut head: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut lines = 0;
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        if !line.first().copied().is_some_and(is_blank) {
            head.extend_from_slice(line);
            lines += 1;
        } else if lines > 1 {
            // There is a field that it goes on with.
            while head.last().is_some_and(u8::is_ascii_whitespace) {
                head.pop();
            }
            head.push(b' ');
            head.extend_from_slice(line.trim_ascii_start());
            if head.last() != Some(&b'\n') {
                head.extend_from_slice(b"\r\n");
            }
        }
    }
    head
}

#[inline]
fn read_field(framing: &mut Framing, line: &[u8]) -> Result<(), &'static str> {
    let Some(colon) = memchr(b':', line).filter(|&colon| colon > 0) else {
        return Err("a line of the response's head is no field");
    };
    let (mut name, value) = (&line[..colon], &line[colon + 1..]);
    if is_blank(line[colon - 1]) {
        name = name.trim_ascii_end();
    }
    // Three names matter; their lengths differ from most others, so that the comparison is rarely made.
    match name.len() {
        14 if name.eq_ignore_ascii_case(b"content-length") => framing.length = framing.length.and(value),
        17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
            framing.is_coded = true;
            framing.coding = elements(value).fold(framing.coding, Coding::then);
        }
        10 if name.eq_ignore_ascii_case(b"connection") => {
            for option in elements(value) {
                framing.says_close |= option.eq_ignore_ascii_case(b"close");
                framing.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        _ => {}
    }
    Ok(())
}

impl Coding {
    /// The last coding, where this one comes behind the others.
    fn then(self, coding: &[u8]) -> Self {
        let name = trim(coding.split(|&b| b == b';').next().unwrap_or_default());
        match (self, name) {
            (Self::Wrong, _) => self,
            (Self::None, name) if name.eq_ignore_ascii_case(b"identity") => self,
            (_, name) if !name.eq_ignore_ascii_case(b"chunked") => Self::Other,
            _ if name.len() < coding.len() => Self::Wrong,
            _ => Self::Chunked,
        }
    }
}

/// The elements of a list (RFC 9110, 5.6.1), the empty ones left out. A comma within quotes separates nothing.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value
        .split(move |&b| {
            let was_escaped = std::mem::take(&mut is_escaped);
            match b {
                b'\\' => is_escaped = is_quoted && !was_escaped,
                b'"' if !was_escaped => is_quoted = !is_quoted,
                _ => {}
            }
            b == b',' && !is_quoted
        })
        .map(trim)
        .filter(|element| !element.is_empty())
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

fn parse_chunk_size(line: &[u8]) -> Result<u64, ProtocolError> {
    let error = || ProtocolError("a chunk size is no hexadecimal number".into());
    let size = line.split(|&b| b == b';').next().unwrap_or_default().trim_ascii_end();
    if size.is_empty() {
        return Err(error());
    }
    size.iter().try_fold(0u64, |number, &digit| {
        let digit = (digit as char).to_digit(16).ok_or_else(error)?;
        let shifted = number.checked_mul(16).ok_or_else(error)?;
        Ok(shifted + u64::from(digit))
    })
}

/// The line that starts at `at`, without its end, and where the next one starts; `None`: it is not whole.
#[inline]
fn line_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &bytes[at..];
    let newline = memchr(b'\n', rest)?;
    Some((without_cr(&rest[..newline]), at + newline + 1))
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

/// Without blanks around it, and what stands for a blank.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b'\0' | b'\t' | b'\r' | b' ', rest @ ..] | [rest @ .., b'\0' | b'\t' | b'\r' | b' '] = text {
        text = rest;
    }
    text
}

#[inline]
fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t')
}

/// The value of a field in a head that was kept, for showing; the first one of that name.
pub(crate) fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(head, name).next()
}

/// The values of all fields of a name.
fn fields<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    head.split(|&b| b == b'\n').skip(1).filter_map(move |line| {
        let colon = memchr(b':', line)?;
        trim(&line[..colon]).eq_ignore_ascii_case(name.as_bytes()).then(|| trim(&line[colon + 1..]))
    })
}

/// The same as one list (RFC 9110, 5.3).
#[inline(never)]
fn joined(head: &[u8], name: &str) -> Option<Vec<u8>> {
    fields(head, name).map(<[u8]>::to_vec).reduce(|list, value| [&list[..], b", ", &value].concat())
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
        let identity = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nokwhatever";
        check(&identity[..identity.len() - 8], 200, 2, identity.len() - 8);
        let not_modified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n";
        check(not_modified, 304, 0, not_modified.len());
    }

    /// A response to GET in the form of fields and what follows them.
    fn response(fields: &str, rest: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\n{fields}\r\n{rest}").into_bytes()
    }

    #[test]
    fn folded_fields_are_read_as_one_line() {
        for (fields, rest, body) in [
            ("Content-Length:\r\n 5\r\n", "hello", 5),
            ("Content-Length:\r\n \r\n\t5\r\n \r\n", "hello", 5),
            ("Transfer-Encoding: gzip,\n\tchunked\n", "2\r\nab\r\n0\r\n\r\n", 2),
            ("X: Content-Length: 3\r\n Content-Length: 4\r\nContent-Length: 5\r\n", "hello", 5),
            // Behind the status line there is nothing that such a line could go on with.
            (" Content-Length: 3\r\n\t\r\nContent-Length: 5\r\n", "hello", 5),
            ("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\nX: a\r\n\tb\r\n  c\r\n\r\n", 1),
        ] {
            let bytes = response(fields, rest);
            check(&bytes, 200, body, bytes.len());
        }
        let mut reader = ResponseReader::new(false);
        reader.begin(true);
        reader.feed(&response("A: b \r\n\r\n  c\r\n\td\r\nB: e\0f\rg\r\n", "")).unwrap();
        assert_eq!(reader.head_bytes(), b"HTTP/1.1 200 OK\r\nA: b \r\n\r\n", "a line without anything ends the head");
        reader.begin(true);
        reader.feed(&response("A: b \r\n  c\r\n\td\r\nB : e\0f\rg\r\n", "")).unwrap();
        let head = reader.head_bytes();
        assert_eq!((field(head, "a"), field(head, "b")), (Some(&b"b c d"[..]), Some(&b"e f g"[..])));
        let closes = response("Content-Length: 0\r\nConnection: keep-alive,\r\n close\r\n", "");
        assert!(read(&closes, closes.len()).unwrap().0.closes);
    }

    #[test]
    fn what_frames_a_body_is_read_as_the_table_has_it() {
        const CHUNKS: &str = "2\r\nab\r\n0\r\n\r\n";
        for (fields, rest, body, closes) in [
            ("Transfer-Encoding: chunked,\r\n", CHUNKS, 2, false),
            ("Transfer-Encoding: , ,Chunked ,, \r\n", CHUNKS, 2, false),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNKS, 2, false),
            ("Transfer-Encoding: identity, chunked\r\n", CHUNKS, 2, false),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", CHUNKS, 12, true),
            ("Transfer-Encoding: x;y=\"a,b\\\",gzip\", chunked\r\n", CHUNKS, 2, false),
            ("Transfer-Encoding : chunked\r\n", CHUNKS, 2, false),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6\r\n", CHUNKS, 2, true),
            ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", CHUNKS, 2, true),
            ("Content-Length: many\r\nTransfer-Encoding: chunked\r\n", CHUNKS, 2, true),
            ("Transfer-Encoding: chunked, gzip\r\nContent-Length: 1\r\n", CHUNKS, 12, true),
            ("Transfer-Encoding: x;y=\", chunked\"\r\n", CHUNKS, 12, true),
            ("Transfer-Encoding:\r\nContent-Length: 12\r\n", CHUNKS, 12, true),
            ("Content-Length: 12,\r\n", CHUNKS, 12, false),
            ("Content-Length: 12, 12\r\nContent-Length: 0012\r\n", CHUNKS, 12, false),
            ("Content-Length:\r\nContent-Length: 12\r\n", CHUNKS, 12, false),
            ("Content-Length\t: 12\r\n", CHUNKS, 12, false),
            ("Content-Length: 12\0\r\r\n", CHUNKS, 12, false),
            ("", CHUNKS, 12, true),
        ] {
            let bytes = response(fields, rest);
            check(&bytes, 200, body, bytes.len());
            assert_eq!(read(&bytes, bytes.len()).unwrap().0.closes, closes, "{fields}");
        }
        for line in ["HTTP/1.1\t204", "HTTP/1.1  204  No Content", "HTTP/1.1 204\r No Content", "HTTP/1.1 204 "] {
            let bytes = format!("{line}\r\n\r\n");
            check(bytes.as_bytes(), 204, 0, bytes.len());
        }
    }

    #[test]
    fn fields_are_not_asked_where_there_is_no_body() {
        for fields in ["Content-Length:\r\n", "Content-Length: 5, 6\r\n", "Transfer-Encoding: chunked;x\r\n"] {
            for line in ["HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified"] {
                let bytes = format!("{line}\r\n{fields}\r\n");
                check(bytes.as_bytes(), bytes[9..12].parse().unwrap(), 0, bytes.len());
            }
            let bytes = format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\nHTTP/1.1 204 No Content\r\n\r\n");
            check(bytes.as_bytes(), 204, 0, bytes.len());
            let mut reader = ResponseReader::new(true);
            assert!(reader.feed(&response(fields, "")).unwrap().complete, "{fields}");
        }
    }

    #[test]
    fn only_what_cannot_become_a_response_is_stray() {
        for (bytes, is_stray) in [
            (&b"HTTP"[..], false),
            (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", false),
            (b"HTTPS", true),
            (b"\r\nHTTP/1.1 200 OK\r\n\r\n", true),
            (b"\rHTTP/1.1\t200 OK\r\n\r\n", true),
            (b"HTTP/1.1 100 Continue\r\n\r\nwhat", false),
        ] {
            for step in 1..=bytes.len() {
                let mut reader = ResponseReader::new(false);
                let _ = bytes.chunks(step).try_for_each(|piece| reader.feed(piece).map(|_| ()));
                assert_eq!(reader.is_stray(), is_stray, "{:?} in pieces of {step}", String::from_utf8_lossy(bytes));
            }
        }
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
            ("HTTP/1.0 200 OK\r\nConnection: close, keep-alive\r\nContent-Length: 0\r\n\r\n", true),
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
            b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\nhello world!",
            b"HTTP/1.1 200 OK\r\nFolded\r\n : name\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;x=y\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 0\r\n\r\n",
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
                "HTTP/1.1 200 OK\r\nContent-Length:", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked",
            ]),
            noise in prop::collection::vec(
                prop::sample::select(b"\r\n\r\n:;0a5 \tfHTP/1.,x\x00\xff".to_vec()), 0..60),
            step in 1usize..20,
        ) {
            let mut bytes = prefix.as_bytes().to_vec();
            bytes.extend(noise);
            let whole = read(&bytes, bytes.len().max(1));
            let split = read(&bytes, step);
            // A sentence may quote what had come until then.
            let comparable = |read: Result<_, ProtocolError>| read.map_err(|error| error.0.split(';').next().map(str::to_owned));
            prop_assert_eq!(comparable(whole), comparable(split));
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
