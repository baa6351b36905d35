//! Proxies that lie, to plain requests and to CONNECT.

use super::act::Act::{Close, Drip, Fill, Forever, Hear, Pause, Reset, Say, Secure, Tell};
use super::guise::Guise;
use super::{Expected, Family, Lie, Speaks};

/// An entry of this family: how it is asked for, what it is called and does, what comes of it, and its acts.
macro_rules! lie {
    ($speaks:ident, $name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?]) => {
        Lie {
            name: concat!("proxy/", $name),
            family: Family::Proxy,
            does: $does,
            speaks: Speaks::$speaks,
            asks: &["-k"],
            acts: &[$($act),*],
            expected: Expected::$expected,
        }
    };
}

const OPEN: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

pub(super) const LIES: &[Lie] = &[
    lie!(
        Https,
        "tunnel-in-order",
        "a tunnel as it ought to be, so that the others fail for what is wrong with them",
        Ok,
        [Hear, Say(OPEN), Secure(Guise::Plain), Forever(&[Hear, Say(OK)])]
    ),
    lie!(Https, "tunnel-silent", "no answer to CONNECT", Failed, [Hear]),
    lie!(Https, "tunnel-closed", "the end in place of an answer to CONNECT", Failed, [Hear, Close]),
    lie!(Https, "tunnel-reset", "a reset in place of an answer to CONNECT", Failed, [Hear, Reset]),
    lie!(
        Https,
        "tunnel-head-endless",
        "an answer to CONNECT with fields without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n"), Forever(&[Say(b"X-Field: and one more\r\n")])]
    ),
    lie!(
        Https,
        "tunnel-reason-endless",
        "an answer to CONNECT with a reason without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 "), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        Https,
        "tunnel-head-dripped",
        "a byte of the answer to CONNECT each 40 ms",
        Failed,
        [
            Hear,
            Drip(b"HTTP/1.1 200 Connection established\r\nVia: a very slow proxy, as you can see by now\r\n\r\n", 40)
        ]
    ),
    lie!(
        Https,
        "tunnel-interim-endless",
        "100 Continue to CONNECT without end",
        Failed,
        [Hear, Forever(&[Say(b"HTTP/1.1 100 Continue\r\n\r\n")])]
    ),
    lie!(
        Https,
        "tunnel-garbage",
        "an answer to CONNECT that is no HTTP, with escape sequences",
        Failed,
        [Hear, Say(b"\x1b[2J\x1b]0;owned\x07 no proxy here\r\n\r\n")]
    ),
    lie!(
        Https,
        "tunnel-version-9",
        "an answer to CONNECT in HTTP/9.9",
        Failed,
        [Hear, Say(b"HTTP/9.9 200 OK\r\n\r\n")]
    ),
    lie!(
        Https,
        "tunnel-status-zero",
        "an answer to CONNECT with status 000",
        Failed,
        [Hear, Say(b"HTTP/1.1 000 OK\r\n\r\n")]
    ),
    lie!(
        Https,
        "tunnel-refused-with-escapes",
        "CONNECT refused, with escape sequences in the reason",
        Failed,
        [Hear, Say(b"HTTP/1.1 403 \x1b[2J\x1b]0;owned\x07\x1b[31mNo\r\nContent-Length: 0\r\n\r\n")]
    ),
    lie!(
        Https,
        "tunnel-refused-at-length",
        "CONNECT refused, with a body without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 503 No\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        Https,
        "tunnel-407-for-ever",
        "a password is asked for again and again",
        Failed,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"\x1b[2J\"\r\nContent-Length: 0\r\n\r\n")
        ])]
    ),
    lie!(
        Https,
        "tunnel-redirected",
        "CONNECT redirected to itself",
        Failed,
        [Forever(&[
            Hear,
            Tell("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/{n}\r\nContent-Length: 0\r\n\r\n")
        ])]
    ),
    lie!(
        Https,
        "tunnel-with-a-length",
        "a tunnel whose answer says that it has a body, which RFC 9110 (9.3.6) has a client ignore",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), Secure(Guise::Plain), Forever(&[Hear, Say(OK)])]
    ),
    lie!(
        Https,
        "tunnel-with-a-body",
        "a body behind the answer to CONNECT",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")]
    ),
    lie!(
        Https,
        "tunnel-that-speaks-first",
        "bytes without end out of the tunnel, before the handshake",
        Failed,
        [Hear, Say(OPEN), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        Https,
        "tunnel-to-http",
        "a tunnel to a server without TLS",
        Failed,
        [Hear, Say(OPEN), Pause(20), Say(b"HTTP/1.1 400 Bad Request\r\n\r\n")]
    ),
    lie!(Https, "tunnel-that-leads-nowhere", "a tunnel, and silence", Failed, [Hear, Say(OPEN)]),
    lie!(Https, "tunnel-that-closes", "a tunnel, and its end", Failed, [Hear, Say(OPEN), Close]),
    lie!(
        Https,
        "tunnel-with-204",
        "a tunnel opened by 204",
        Either,
        [Hear, Say(b"HTTP/1.1 204 No Content\r\n\r\n"), Secure(Guise::Plain), Forever(&[Hear, Say(OK)])]
    ),
    lie!(
        Http,
        "plain-407-for-ever",
        "a password is asked for with each answer to a plain request",
        Failed,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 2\r\n\r\nno")
        ])]
    ),
    lie!(
        Http,
        "plain-407-without-end",
        "a password is asked for, with a body without end",
        Failed,
        [Hear, Say(b"HTTP/1.1 407 No\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(Http, "plain-silent", "no answer to a plain request", Failed, [Hear]),
    lie!(
        Http,
        "plain-502",
        "an error with escape sequences for each plain request",
        Failed,
        [Forever(&[Hear, Say(b"HTTP/1.1 502 \x1b[2J\r\nVia: \x1b]0;owned\x07\r\nContent-Length: 0\r\n\r\n")])]
    ),
];
