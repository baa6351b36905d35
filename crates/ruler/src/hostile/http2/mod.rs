//! Servers of HTTP/2 that lie. Spoken without TLS.

/// An entry of this family: what it is called and does, what comes of it, its acts, and options if it needs more.
macro_rules! lie {
    ($name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?] $(, $ask:literal)*) => {
        Lie {
            name: concat!("http2/", $name),
            family: Family::Http2,
            does: $does,
            speaks: Speaks::Http,
            asks: &["--http2" $(, $ask)*],
            acts: &[$($act),*],
            expected: Expected::$expected,
        }
    };
}

mod blocks;
mod floods;
mod frames;
mod streams;

pub(super) use blocks::BLOCKS;
pub(super) use floods::FLOODS;
pub(super) use frames::FRAMES;
pub(super) use streams::STREAMS;

use super::act::Act::{self, Frame};
use super::act::On::{Asked, Connection};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// `:status: 200`, the eighth entry of the static table (RFC 7541, appendix A).
const STATUS_200: &[u8] = b"\x88";
/// How a server begins.
const GREETING: Act = Frame(SETTINGS, 0, Connection, b"");
/// The head of an answer, and a whole answer without a body.
const HEAD: Act = Frame(HEADERS, END_HEADERS, Asked, STATUS_200);
const ANSWER: Act = Frame(HEADERS, END_HEADERS | END_STREAM, Asked, STATUS_200);

/// 1,800 fields of nine bytes.
fn plain_fields() -> Vec<u8> {
    b"\x00\x03abc\x03xyz".repeat(1800)
}
