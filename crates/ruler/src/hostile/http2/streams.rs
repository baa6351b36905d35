//! How connections and streams begin, stop and end.

use super::super::act::Act::{Close, Drip, Forever, Frame, FrameLying, Hear, HearStream, Pause, Reset, Say};
use super::super::act::On::{Asked, Connection, Stream};
use super::super::{Expected, Family, Lie, Speaks};
use super::{ACK, DATA, END_HEADERS, GOAWAY, GREETING, HEAD, HEADERS, PING, RST_STREAM, SETTINGS, STATUS_200};

pub(in super::super) const STREAMS: &[Lie] = &[
    // How it begins.
    lie!(
        "is-http1",
        "HTTP/1.1 in place of HTTP/2",
        Failed,
        [Say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), Close]
    ),
    lie!("is-garbage", "bytes that are no frames", Failed, [Say(b"\x1b[2J\x1b]0;owned\x07 garbage of some length")]),
    lie!("is-tls", "an alert of TLS in place of HTTP/2", Failed, [Say(b"\x15\x03\x03\x00\x02\x02\x46"), Close]),
    lie!(
        "echoes-the-preface",
        "the client's preface in place of settings",
        Failed,
        [Say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")]
    ),
    lie!(
        "begins-with-ping",
        "another frame before its settings",
        Failed,
        [Frame(PING, 0, Connection, b"12345678"), GREETING]
    ),
    lie!(
        "begins-with-an-acknowledgement",
        "it acknowledges settings before it tells its own",
        Failed,
        [Frame(SETTINGS, ACK, Connection, b"")]
    ),
    lie!("silent", "it hears, and says nothing", Failed, []),
    lie!("silent-after-settings", "settings, and nothing more", Failed, [GREETING, HearStream]),
    lie!(
        "silent-in-a-frame",
        "it stops within a frame",
        Failed,
        [GREETING, HearStream, FrameLying(HEADERS, END_HEADERS, Asked, 100, b"\x88")]
    ),
    lie!(
        "silent-in-a-header-block",
        "a header block that is never ended",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, 0, Asked, STATUS_200)]
    ),
    lie!(
        "silent-in-the-body",
        "a body that is never ended",
        Failed,
        [GREETING, HearStream, HEAD, Frame(DATA, 0, Asked, b"ok")]
    ),
    lie!(
        "drips",
        "a byte of a frame each 30 ms",
        Failed,
        [GREETING, HearStream, HEAD, Forever(&[Drip(b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x", 30)])]
    ),
    lie!("closes-at-once", "the end before a word", Failed, [Close]),
    lie!("closes-after-the-request", "the end in place of an answer", Failed, [GREETING, HearStream, Close]),
    lie!(
        "closes-in-the-body",
        "the end within a body",
        Failed,
        [GREETING, HearStream, HEAD, Frame(DATA, 0, Asked, b"ok"), Close]
    ),
    lie!(
        "resets-the-connection",
        "the connection is reset in place of an answer",
        Failed,
        [GREETING, HearStream, Reset]
    ),
    lie!("hears-http1", "it waits for a request of HTTP/1", Failed, [Hear, Hear, Hear, Hear]),
    // Streams given up.
    lie!(
        "refuses-each-stream",
        "it refuses each stream, so that it may be sent again",
        Failed,
        [GREETING, Forever(&[HearStream, Frame(RST_STREAM, 0, Asked, b"\x00\x00\x00\x07")])]
    ),
    lie!(
        "resets-each-stream",
        "it resets each stream within its body",
        Failed,
        [GREETING, Forever(&[HearStream, HEAD, Frame(RST_STREAM, 0, Asked, b"\x00\x00\x00\x02")])]
    ),
    lie!(
        "resets-with-an-unknown-reason",
        "it resets each stream for a reason that nobody knows",
        Failed,
        [GREETING, Forever(&[HearStream, Frame(RST_STREAM, 0, Asked, b"\xde\xad\xbe\xef")])]
    ),
    lie!(
        "resets-an-idle-stream",
        "it resets a stream that nobody has opened",
        Failed,
        [GREETING, HearStream, Frame(RST_STREAM, 0, Stream(0x7fff_ffff), b"\x00\x00\x00\x08")]
    ),
    lie!(
        "wants-http1",
        "it resets each stream and wants HTTP/1.1",
        Failed,
        [GREETING, Forever(&[HearStream, Frame(RST_STREAM, 0, Asked, b"\x00\x00\x00\x0d")])]
    ),
    lie!(
        "goes-away-at-once",
        "a farewell before any stream, on each connection",
        Failed,
        [GREETING, HearStream, Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x00\x00\x00\x00\x00"), Close]
    ),
    lie!(
        "goes-away-and-stays",
        "a farewell before any stream, and the connection stays",
        Failed,
        [GREETING, HearStream, Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x00\x00\x00\x00\x00")]
    ),
    lie!(
        "goes-away-with-an-even-stream",
        "a farewell that names a stream of its own as the last",
        Failed,
        [GREETING, HearStream, Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x02\x00\x00\x00\x00"), Pause(50), Close]
    ),
    lie!(
        "goes-away-and-takes-it-back",
        "a second farewell that names a later stream",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x01\x00\x00\x00\x00"),
            Frame(GOAWAY, 0, Connection, b"\x7f\xff\xff\xff\x00\x00\x00\x00")
        ]
    ),
    lie!(
        "goes-away-with-escapes",
        "a farewell with escape sequences in its reason",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x01\x00\x00\x00\x0b\x1b]0;owned\x07\x1b[2J"),
            Close
        ]
    ),
    lie!(
        "goes-away-of-a-stream",
        "a farewell of a stream",
        Failed,
        [GREETING, HearStream, Frame(GOAWAY, 0, Asked, b"\x00\x00\x00\x01\x00\x00\x00\x00")]
    ),
];
