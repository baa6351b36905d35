//! Servers of HTTP/1 that lie. Spoken without TLS.

/// An entry of this family: what it is called and does, what comes of it, its acts, and options if it needs any.
macro_rules! lie {
    ($name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?] $(, $ask:literal)*) => {
        Lie {
            name: concat!("http1/", $name),
            family: Family::Http1,
            does: $does,
            speaks: Speaks::Http,
            asks: &[$($ask),*],
            acts: &[$($act),*],
            expected: Expected::$expected,
        }
    };
}

mod codings;
mod framing;
mod heads;
mod redirects;
mod turns;

pub(super) use codings::CODINGS;
pub(super) use framing::FRAMING;
pub(super) use heads::HEADS;
pub(super) use redirects::REDIRECTS;
pub(super) use turns::TURNS;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
