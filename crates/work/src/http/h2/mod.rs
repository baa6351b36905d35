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

use super::response::HEAD_LIMIT;

/// Largest header list, counted as RFC 9113, 6.5.2 has it, and largest block that is collected for one: what HTTP/1.1 may
/// have in a head. It is announced.
const HEADER_LIST_LIMIT: usize = HEAD_LIMIT;
/// Most CONTINUATION frames of a block. Sixteen full ones carry the largest block; empty ones would never end.
const CONTINUATION_LIMIT: u32 = 64;
/// Most answers to PING and SETTINGS that wait for the socket: who sends more than it reads means no good.
const ANSWER_LIMIT: u32 = 1000;
/// Most interim (1xx) responses before the final one, as in HTTP/1.1.
const INTERIM_LIMIT: u32 = 100;
/// Octets that a server may send on a connection, and on each stream, before it needs our leave: as many as h2load gives by
/// default. A window is opened again when half of it is used up, so that a server never waits for us: to fill the rest
/// within a round trip of 100 ms it would have to send 40 Gbit/s.
const RECEIVE_WINDOW: u32 = (1 << 30) - 1;
/// Plain bytes that are made at a time of request bodies: four full TLS records.
const OUT_ENOUGH: usize = 64 * 1024;
