//! Reading requests: one head, one pass, no allocation.

use std::ops::Range;

/// A head longer than this is answered 431.
pub(crate) const LONGEST_HEAD: usize = 64 * 1024;

/// What the start of a buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The head is not complete.
    Partial,
    /// No request; to be answered with this status.
    Malformed(u16),
    Complete(Request),
}

/// A request's head. Its texts are ranges of the buffer that it was parsed from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) head_only: bool,
    /// Without query, without scheme and host.
    pub(crate) path: Range<usize>,
    /// The length of the head, including the empty line.
    pub(crate) head_len: usize,
    pub(crate) body_len: u64,
    pub(crate) http10: bool,
    /// What the client wants, by version and `Connection`.
    pub(crate) keepalive: bool,
    pub(crate) accepts_gzip: bool,
    pub(crate) range: Option<ByteRange>,
}

/// A single `Range: bytes=...`; others are ignored, as RFC 9110 allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// `a-b`, both included.
    Between(u64, u64),
    /// `a-`
    From(u64),
    /// `-n`: the last n bytes.
    Last(u64),
}

impl ByteRange {
    /// The half-open range of a body of `len` bytes, or `None` if it cannot be satisfied.
    pub(crate) fn within(self, len: u64) -> Option<Range<u64>> {
        let range = match self {
            ByteRange::Between(first, last) => first..last.saturating_add(1).min(len),
            ByteRange::From(first) => first..len,
            ByteRange::Last(count) => len.saturating_sub(count)..len,
        };
        (!range.is_empty()).then_some(range)
    }
}

pub(crate) fn parse(buffer: &[u8]) -> Parsed {
    // An empty line before a request is tolerated, as RFC 9112 asks.
    let skipped = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    if skipped > 4 {
        return Parsed::Malformed(400);
    }
    let mut lines = Lines { buffer, at: skipped };
    let Some(first) = lines.next() else { return incomplete(buffer) };
    let mut request = match request_line(buffer, first) {
        Some(request) => request,
        None => return Parsed::Malformed(400),
    };
    let mut lengths: Option<u64> = None;
    loop {
        let Some(line) = lines.next() else { return incomplete(buffer) };
        if line.is_empty() {
            break;
        }
        let line = &buffer[line];
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return Parsed::Malformed(400) };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || name.iter().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
            return Parsed::Malformed(400);
        }
        // The length tells nearly all headers apart from the few that matter.
        match name.len() {
            5 if name.eq_ignore_ascii_case(b"range") => request.range = byte_range(value),
            10 if name.eq_ignore_ascii_case(b"connection") => {
                if has_token(value, b"close") {
                    request.keepalive = false;
                } else if has_token(value, b"keep-alive") {
                    request.keepalive = true;
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => match (number(value), lengths) {
                (Some(len), None) => lengths = Some(len),
                (Some(len), Some(before)) if len == before => {}
                _ => return Parsed::Malformed(400),
            },
            15 if name.eq_ignore_ascii_case(b"accept-encoding") => request.accepts_gzip = accepts_gzip(value),
            // A body whose length is not told beforehand is not read: no generator of ours sends one.
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => return Parsed::Malformed(411),
            _ => {}
        }
    }
    request.body_len = lengths.unwrap_or(0);
    request.head_len = lines.at;
    if request.head_len > LONGEST_HEAD { Parsed::Malformed(431) } else { Parsed::Complete(request) }
}

/// Digits only: no sign, no space, no overflow.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, &digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Lines without their ends; `at` stands behind the last line told.
struct Lines<'b> {
    buffer: &'b [u8],
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let len = self.buffer[start..].iter().position(|&byte| byte == b'\n')?;
        self.at = start + len + 1;
        let end = start + len;
        Some(start..if end > start && self.buffer[end - 1] == b'\r' { end - 1 } else { end })
    }
}

fn incomplete(buffer: &[u8]) -> Parsed {
    // Garbage must not be waited on for more of it: no method starts like a TLS record, and none is this long.
    let start = &buffer[..buffer.len().min(16)];
    if start.iter().any(|&byte| byte >= 0x80 || (byte < 0x20 && !matches!(byte, b'\r' | b'\n'))) {
        return Parsed::Malformed(400);
    }
    if buffer.len() > LONGEST_HEAD { Parsed::Malformed(431) } else { Parsed::Partial }
}

fn request_line(buffer: &[u8], line: Range<usize>) -> Option<Request> {
    let text = &buffer[line.clone()];
    let mut parts = text.split(|&byte| byte == b' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || method.is_empty() || !method.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let http10 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return None,
    };
    if target.iter().any(u8::is_ascii_control) {
        return None;
    }
    let target_at = line.start + method.len() + 1;
    // The absolute form, as sent to a proxy: the path starts at the first slash behind the host.
    let skip = match target.windows(3).position(|three| three == b"://") {
        _ if target.starts_with(b"/") => 0,
        Some(scheme) => {
            let host = scheme + 3;
            host + target[host..].iter().position(|&byte| byte == b'/')?
        }
        None if target == b"*" => 0,
        None => return None,
    };
    let len = target[skip..].iter().position(|&byte| byte == b'?').unwrap_or(target.len() - skip);
    Some(Request {
        head_only: method == b"HEAD",
        path: target_at + skip..target_at + skip + len,
        head_len: 0,
        body_len: 0,
        http10,
        keepalive: !http10,
        accepts_gzip: false,
        range: None,
    })
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|&byte| byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

fn accepts_gzip(value: &[u8]) -> bool {
    value.split(|&byte| byte == b',').any(|part| {
        let mut pieces = part.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let gzip = pieces.next().is_some_and(|name| name.eq_ignore_ascii_case(b"gzip") || name == b"*");
        // `q=0`, `q=0.0`, `q=0.000` refuse.
        let refused = pieces.any(|piece| match piece.strip_prefix(b"q=").or(piece.strip_prefix(b"Q=")) {
            Some(quality) => quality.iter().all(|byte| matches!(byte, b'0' | b'.')),
            None => false,
        });
        gzip && !refused
    })
}

fn byte_range(value: &[u8]) -> Option<ByteRange> {
    let spec = value.strip_prefix(b"bytes=")?.trim_ascii();
    let dash = spec.iter().position(|&byte| byte == b'-')?;
    match (&spec[..dash], &spec[dash + 1..]) {
        (b"", count) => Some(ByteRange::Last(number(count)?)),
        (first, b"") => Some(ByteRange::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(ByteRange::Between(first, last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Complete(request) => request,
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    #[test]
    fn a_plain_request() {
        let text = "GET /size/5?x=1 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br, gzip\r\nRange: bytes=3-4\r\n\r\nGET";
        let request = complete(text);
        assert_eq!(&text[request.path.clone()], "/size/5");
        assert_eq!(request.head_len, text.len() - 3);
        assert_eq!(request.range, Some(ByteRange::Between(3, 4)));
        assert!(request.keepalive && request.accepts_gzip && !request.head_only);
    }

    #[test]
    fn versions_and_connection() {
        assert!(!complete("GET / HTTP/1.0\r\n\r\n").keepalive);
        assert!(complete("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n").keepalive);
        assert!(!complete("GET / HTTP/1.1\r\nConnection: foo, close\r\n\r\n").keepalive);
    }

    #[test]
    fn the_absolute_form() {
        let text = "GET http://h:80/a?b HTTP/1.1\r\n\r\n";
        assert_eq!(&text[complete(text).path], "/a");
    }

    #[test]
    fn every_prefix_is_partial() {
        let text = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..end]), Parsed::Partial, "{:?}", &text[..end]);
        }
        assert_eq!(complete(text).body_len, 3);
    }

    #[test]
    fn malformed() {
        for (text, status) in [
            ("get / HTTP/1.1\r\n\r\n", 400),
            ("GET /\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nName : x\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            ("\u{16}\u{3}\u{1}", 400),
        ] {
            assert_eq!(parse(text.as_bytes()), Parsed::Malformed(status), "{text:?}");
        }
        assert_eq!(parse(&vec![b'A'; LONGEST_HEAD + 1]), Parsed::Malformed(431));
    }

    #[test]
    fn ranges() {
        assert_eq!(ByteRange::Between(0, 9).within(5), Some(0..5));
        assert_eq!(ByteRange::From(4).within(5), Some(4..5));
        assert_eq!(ByteRange::Last(2).within(5), Some(3..5));
        assert_eq!(ByteRange::Last(9).within(5), Some(0..5));
        assert_eq!(ByteRange::From(5).within(5), None);
        assert_eq!(ByteRange::Last(0).within(5), None);
        assert_eq!(byte_range(b"bytes=0-1,3-4"), None);
        assert_eq!(byte_range(b"lines=0-1"), None);
    }

    #[test]
    fn gzip_by_quality() {
        assert!(accepts_gzip(b"deflate, gzip;q=0.5"));
        assert!(!accepts_gzip(b"gzip;q=0, br"));
        assert!(!accepts_gzip(b"identity"));
    }
}
