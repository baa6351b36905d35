//! Heads, interim responses, and what a terminal would do something with.

use super::super::act::Act::{Close, Fill, Forever, Hear, Say};
use super::super::{Expected, Family, Lie, Speaks};
use super::OK;

pub(in super::super) const HEADS: &[Lie] = &[
    // Heads.
    lie!(
        "head-endless",
        "fields without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n"), Forever(&[Say(b"X-Field: and one more\r\n")])]
    ),
    lie!(
        "head-of-one-endless-field",
        "a field without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nX: "), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "head-of-an-endless-reason",
        "a reason without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 "), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "head-of-an-endless-name",
        "a field's name without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "head-of-empty-lines",
        "line ends before the status line, without end",
        Failed,
        [Hear, Forever(&[Fill(b'\n', 65_536)])]
    ),
    lie!(
        "head-nul",
        "a NUL within a field",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "head-nul-in-name",
        "a NUL within a field's name",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nX\0Y: a\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "head-bare-cr",
        "a bare CR within a field, behind it what would be another one",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 7\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "head-cr-for-line-ends",
        "CR alone at the ends of all lines",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\rContent-Length: 2\r\rok")]
    ),
    lie!(
        "head-lf-for-line-ends",
        "LF alone at the ends of all lines",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")])]
    ),
    lie!(
        "head-blank-before-colon",
        "a blank between a field's name and its colon",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length : 7\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "head-line-without-colon",
        "a line of the head that is no field",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nno field\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!(
        "head-field-without-name",
        "a field without a name",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n: 7\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!(
        "head-folded",
        "a field that goes on in the next line, which RFC 9112 (5.2) has forbidden",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "head-folded-length",
        "a length that is said in the next line",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok"), Close]
    ),
    lie!(
        "head-folded-first",
        "a line that goes on before the first field",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n Content-Length: 7\r\nContent-Length: 2\r\n\r\nok"), Close]
    ),
    lie!("status-zero", "status 000", Failed, [Hear, Say(b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok")]),
    lie!(
        "status-of-two-digits",
        "a status of two digits",
        Failed,
        [Hear, Say(b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!(
        "status-of-four-digits",
        "a status of four digits",
        Failed,
        [Hear, Say(b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!("status-negative", "a status below 0", Failed, [Hear, Say(b"HTTP/1.1 -20 OK\r\nContent-Length: 2\r\n\r\nok")]),
    lie!(
        "status-999",
        "a status beyond all that are known",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "status-without-reason",
        "no reason behind the status, and no blank",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!("version-9-9", "HTTP/9.9", Failed, [Hear, Say(b"HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\nok")]),
    lie!("version-1-10", "HTTP/1.10", Failed, [Hear, Say(b"HTTP/1.10 200 OK\r\nContent-Length: 2\r\n\r\nok")]),
    lie!(
        "version-in-small-letters",
        "http/1.1",
        Failed,
        [Hear, Say(b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!(
        "version-without-blank",
        "no blank behind the version",
        Failed,
        [Hear, Say(b"HTTP/1.1200 OK\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!(
        "version-2",
        "HTTP/2 in a line of HTTP/1",
        Failed,
        [Hear, Say(b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok")]
    ),
    lie!("version-0-9", "a page without a head, as in HTTP/0.9", Failed, [Hear, Say(b"<html>hello</html>"), Close]),
    lie!("version-icy", "ICY in place of HTTP", Failed, [Hear, Say(b"ICY 200 OK\r\n\r\nok"), Close]),
    lie!(
        "interim-endless",
        "100 Continue without end",
        Failed,
        [Hear, Forever(&[Say(b"HTTP/1.1 100 Continue\r\n\r\n")])]
    ),
    lie!(
        "interim-of-megabytes",
        "early hints of 200 kB each",
        Failed,
        [Hear, Forever(&[Say(b"HTTP/1.1 103 Early Hints\r\nLink: "), Fill(b'x', 200_000), Say(b"\r\n\r\n")])]
    ),
    lie!(
        "interim-and-the-end",
        "100 Continue and the end",
        Failed,
        [Hear, Say(b"HTTP/1.1 100 Continue\r\n\r\n"), Close]
    ),
    lie!(
        "interim-with-a-length",
        "an interim response with a body, which is none",
        Failed,
        [Hear, Say(b"HTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\nhello"), Say(OK)]
    ),
    lie!(
        "switches-protocols",
        "101 without being asked",
        Failed,
        [Hear, Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")]
    ),
    // What a terminal would do something with.
    lie!(
        "escape-in-reason",
        "escape sequences of terminals in the reason of an error",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 500 \x1b]0;owned\x07\x1b[2J\x1b[31mNo\r\nContent-Length: 2\r\n\r\nok")])]
    ),
    lie!(
        "escape-in-garbage",
        "escape sequences in place of HTTP",
        Failed,
        [Hear, Say(b"\x1b]0;owned\x07\x1b[2J\x1b[31m"), Close]
    ),
    lie!(
        "escape-in-server",
        "escape sequences in the field Server",
        Either,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nServer: \x1b]0;owned\x07\x1b[2J\x1b[31mx\r\nContent-Length: \
     2\r\n\r\nok")
        ])]
    ),
    lie!(
        "escape-in-content-type",
        "escape sequences in the type and the coding of the body",
        Either,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Type: \x1b[2J\r\nContent-Encoding: \x1b[5m\r\n\
     Content-Length: 2\r\n\r\nok")
        ])]
    ),
    lie!(
        "escape-of-eight-bits",
        "control characters of C1, as UTF-8 and alone, in the field Server",
        Either,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nServer: \xc2\x9b31m\x9b2J\xc2\x85x\r\nContent-Length: 2\r\n\r\nok")
        ])]
    ),
    lie!(
        "escape-of-direction",
        "characters that turn the direction of text, in the field Server",
        Either,
        [Forever(&[
            Hear,
            Say("HTTP/1.1 200 OK\r\nServer: nginx\u{202e}\u{2066}\r\nContent-Length: 2\r\n\r\nok".as_bytes())
        ])]
    ),
    lie!(
        "escape-in-location",
        "escape sequences in the address of a redirect",
        Failed,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 302 Found\r\nLocation: /\x1b]0;owned\x07\x1b[2J\r\nContent-Length: 0\r\n\r\n")
        ])],
        "--follow",
        "3"
    ),
    lie!(
        "escape-in-cookies",
        "escape sequences in cookies, which come back",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=\x1b[2J\x07; Path=/\r\nContent-Length: 2\r\n\r\nok")])],
        "--cookies"
    ),
    lie!(
        "escape-in-coding",
        "escape sequences in the name of a coding that cannot be undone",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Encoding: \x1b[2J\x1b[31m\r\nContent-Length: 2\r\n\r\nok")])],
        "--decompress"
    ),
];
