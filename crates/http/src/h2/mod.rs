//! HTTP/2 as a client (RFC 9113), without I/O: bytes in, bytes and ends of streams out.
//!
//! A subset that lacks nothing a server may do to a client that wants no pushes: `connection` reads and writes frames and
//! knows the limits of both sides, `stream` reads a response from its fields and data, `hpack` and `huffman` decompress
//! fields, `request` makes a request's fields from its HTTP/1.1 head. Bodies are counted, not kept.

pub(crate) mod connection;
mod frame;
pub(crate) mod hpack;
mod huffman;
mod request;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use connection::{Connection, End};
pub(crate) use request::push_fields;

use crate::http1::response::HEAD_LIMIT;

/// Largest header list, counted as RFC 9113, 6.5.2 has it, and largest block that is collected for one: what HTTP/1.1 may
/// have in a head. It is announced.
const HEADER_LIST_LIMIT: usize = HEAD_LIMIT;
/// Most CONTINUATION frames of a block. Sixteen full ones carry the largest block; empty ones would never end.
const CONTINUATION_LIMIT: u32 = 64;
/// Most answers to PING, SETTINGS and DATA that wait for the socket, beside what the streams may need: a server that sends more
/// than it reads means no good.
const ANSWER_LIMIT: usize = 1000;
/// Most interim (1xx) responses before the final one, as in HTTP/1.1.
const INTERIM_LIMIT: u32 = 100;
/// Plain bytes that are made at a time of request bodies: four full TLS records.
const OUT_ENOUGH: usize = 64 * 1024;
