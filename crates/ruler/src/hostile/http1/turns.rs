//! Silence, slowness, ends, answers out of turn, and what is no HTTP/1 at all.

use super::super::act::Act::{Close, Deaf, Drip, Echo, Fill, Finish, Forever, Hear, Pause, Reset, Say};
use super::super::{Expected, Family, Lie, Speaks};
use super::{CHUNKED, OK};

pub(in super::super) const TURNS: &[Lie] = &[
    // Silence and slowness.
    lie!("silent", "it hears nothing and says nothing", Failed, [Deaf]),
    lie!("silent-after-the-request", "it hears, and says nothing", Failed, [Hear]),
    lie!("silent-in-the-status-line", "it stops within the status line", Failed, [Hear, Say(b"HTTP/1.1 2")]),
    lie!("silent-in-a-field", "it stops within a field", Failed, [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Le")]),
    lie!(
        "silent-after-the-head",
        "it stops behind the head",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")]
    ),
    lie!(
        "silent-in-the-body",
        "it stops within the body",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok")]
    ),
    lie!("silent-in-a-chunks-size", "it stops within a chunk's size", Failed, [Hear, Say(CHUNKED), Say(b"2")]),
    lie!(
        "silent-before-the-last-chunk",
        "it stops before the last chunk",
        Failed,
        [Hear, Say(CHUNKED), Say(b"2\r\nok\r\n")]
    ),
    lie!(
        "silent-in-the-trailer",
        "it stops before the last line end",
        Failed,
        [Hear, Say(CHUNKED), Say(b"2\r\nok\r\n0\r\n")]
    ),
    lie!(
        "drips-its-head",
        "a byte of the head each 30 ms",
        Failed,
        [
            Hear,
            Drip(
                b"HTTP/1.1 200 OK\r\nServer: a very slow one indeed, as you can see by now\r\n\
     Content-Length: 2\r\n\r\nok",
                30
            )
        ]
    ),
    lie!(
        "drips-its-body",
        "a byte of the body each 30 ms, without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Drip(b"x", 30)])]
    ),
    lie!(
        "drips-its-chunks",
        "a chunk of one byte each 30 ms, without end",
        Failed,
        [Hear, Say(CHUNKED), Forever(&[Pause(30), Say(b"1\r\nx\r\n")])]
    ),
    lie!(
        "drips-interim-responses",
        "an interim response each 30 ms",
        Failed,
        [Hear, Forever(&[Pause(30), Say(b"HTTP/1.1 103 Early Hints\r\n\r\n")])]
    ),
    // Ends.
    lie!("closes-at-once", "the end before the request", Failed, [Close]),
    lie!("closes-after-the-request", "the end in place of an answer", Failed, [Hear, Close]),
    lie!("closes-in-the-status-line", "the end within the status line", Failed, [Hear, Say(b"HTTP/1.1 2"), Close]),
    lie!(
        "closes-in-the-head",
        "the end within the head",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), Close]
    ),
    lie!("resets-at-once", "a reset before the request", Failed, [Reset]),
    lie!("resets-after-the-request", "a reset in place of an answer", Failed, [Hear, Reset]),
    lie!(
        "resets-in-the-head",
        "a reset within the head",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Le"), Pause(20), Reset]
    ),
    lie!(
        "half-closes-and-listens",
        "its direction ends before the answer, and it goes on to listen",
        Failed,
        [Hear, Finish]
    ),
    lie!(
        "closes-each-kept-connection",
        "it says that it keeps the connection, and ends it after each answer",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"), Pause(5), Close]
    ),
    // Out of turn.
    lie!("answers-before-it-is-asked", "an answer before the request", Either, [Say(OK), Forever(&[Hear, Say(OK)])]),
    lie!("answers-twice", "two answers to each request", Either, [Forever(&[Hear, Say(OK), Say(OK)])]),
    lie!("answers-without-end", "answers that nobody asked for, without end", Either, [Hear, Forever(&[Say(OK)])]),
    lie!(
        "answers-again-later",
        "one more answer, a while after the first",
        Either,
        [Forever(&[Hear, Say(OK), Pause(10), Say(OK)])]
    ),
    lie!("echoes", "the request as the answer", Failed, [Forever(&[Hear, Echo])]),
    // What it is at all.
    lie!("is-tls", "an alert of TLS in place of HTTP", Failed, [Hear, Say(b"\x15\x03\x03\x00\x02\x02\x46"), Close]),
    lie!("is-ssh", "the greeting of an ssh server", Failed, [Say(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), Hear, Close]),
    lie!(
        "is-mail",
        "the greeting of a mail server, before it is asked",
        Failed,
        [Say(b"220 mail.example ESMTP\r\n"), Hear, Say(b"500 what?\r\n")]
    ),
    lie!(
        "is-http2",
        "settings of HTTP/2 in place of HTTP/1",
        Failed,
        [Hear, Say(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")]
    ),
    lie!("is-zeros", "zeros without end", Failed, [Hear, Forever(&[Fill(0, 65_536)])]),
];
