//! Collectors of figures that lie.

use super::act::Act::{Close, Drip, Fill, Forever, Hear, Pause, Reset, Say, Tell};
use super::{Expected, Family, Lie, Speaks};

/// An entry of this family: what it is called and does, what comes of it, and its acts.
macro_rules! lie {
    ($name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?]) => {
        Lie {
            name: concat!("otlp/", $name),
            family: Family::Otlp,
            does: $does,
            speaks: Speaks::Http,
            asks: &[],
            acts: &[$($act),*],
            expected: Expected::$expected,
        }
    };
}

pub(super) const LIES: &[Lie] = &[
    lie!("silent", "no answer", Doubt, [Hear]),
    lie!("deaf", "it reads nothing", Doubt, [super::act::Act::Deaf]),
    lie!("closes-at-once", "the end before the request", Doubt, [Close]),
    lie!("resets", "a reset in place of an answer", Doubt, [Hear, Reset]),
    lie!("garbage", "escape sequences in place of HTTP", Doubt, [Hear, Say(b"\x1b[2J\x1b]0;owned\x07\r\n\r\n"), Close]),
    lie!(
        "retry-after-for-ever",
        "503, to be tried again after 2^64-1 seconds",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 503 No\r\nRetry-After: 18446744073709551615\r\nContent-Length: 0\r\n\r\n")])]
    ),
    lie!(
        "retry-after-below-zero",
        "429, to be tried again after -5 seconds",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 429 No\r\nRetry-After: -5\r\nContent-Length: 0\r\n\r\n")])]
    ),
    lie!(
        "retry-after-at-once",
        "503 without end, to be tried again at once",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")])]
    ),
    lie!(
        "error-with-escapes",
        "an error with escape sequences in its reason",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 400 \x1b[2J\x1b]0;owned\x07\r\nContent-Length: 0\r\n\r\n")])]
    ),
    lie!(
        "error-at-length",
        "an error with a body without end",
        Doubt,
        [Hear, Say(b"HTTP/1.1 500 No\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "redirects",
        "a redirect to another host",
        Doubt,
        [Forever(&[
            Hear,
            Tell(
                "HTTP/1.1 307 No\r\nLocation: http://127.0.0.2:{port}/v1/metrics\r\nContent-Length: \
     0\r\n\r\n"
            )
        ])]
    ),
    lie!(
        "body-endless",
        "taken, with a body without end",
        Doubt,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Fill(b' ', 65_536)])]
    ),
    lie!(
        "body-dripped",
        "taken, with a byte of a body each 20 ms",
        Doubt,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Drip(b" ", 20)])]
    ),
    lie!(
        "body-deep",
        "taken, with brackets in each other",
        Doubt,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"), Fill(b'[', 60_000), Pause(100), Close]
    ),
    lie!(
        "refuses-with-escapes",
        "it refuses figures, for a reason of escape sequences",
        Doubt,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Length: 98\r\n\r\n\
     {\"partialSuccess\":{\"rejectedDataPoints\":\"9223372036854775807\",\"errorMessage\":\"\\u001b[2J\\u009b1m\"}}")
        ])]
    ),
    lie!(
        "head-endless",
        "fields without end",
        Doubt,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n"), Forever(&[Say(b"X-Field: and one more\r\n")])]
    ),
    lie!(
        "interim-endless",
        "100 Continue without end",
        Doubt,
        [Hear, Forever(&[Say(b"HTTP/1.1 100 Continue\r\n\r\n")])]
    ),
];
