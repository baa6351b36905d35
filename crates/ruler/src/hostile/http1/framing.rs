//! Lengths and chunks that are not what they say.

use super::super::act::Act::{Close, Fill, Forever, Hear, Pause, Reset, Say};
use super::super::{Expected, Family, Lie, Speaks};
use super::{CHUNKED, OK};

pub(in super::super) const FRAMING: &[Lie] = &[
    // Lengths.
    lie!(
        "length-negative",
        "Content-Length below 0",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello")]
    ),
    lie!(
        "length-plus",
        "Content-Length with a plus sign",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok")]
    ),
    lie!(
        "length-hex",
        "Content-Length in hexadecimal",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok")]
    ),
    lie!(
        "length-beyond-64-bits",
        "Content-Length that no 64 bits hold",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok")]
    ),
    lie!(
        "length-largest",
        "the largest Content-Length of 64 bits, and two bytes",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nok")]
    ),
    lie!(
        "length-two-that-differ",
        "two Content-Length fields that contradict each other",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!")]
    ),
    lie!(
        "length-list-that-differs",
        "a list of lengths that contradict each other",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok!")]
    ),
    lie!(
        "length-list-of-the-same",
        "a list of the same length twice, which RFC 9110 (8.6) lets a client take or refuse",
        Either,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok")])]
    ),
    lie!(
        "length-empty",
        "an empty Content-Length",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok")]
    ),
    lie!(
        "length-with-a-blank",
        "a blank within Content-Length",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 1 2\r\n\r\nok")]
    ),
    lie!(
        "length-fraction",
        "a fraction as Content-Length",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2.0\r\n\r\nok")]
    ),
    lie!(
        "length-wide-digits",
        "digits of another alphabet as Content-Length",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: \xef\xbc\x92\r\n\r\nok")]
    ),
    lie!(
        "length-and-chunked",
        "a length and chunks, which RFC 9112 (6.3) takes for an attack or for chunks",
        Either,
        [
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\
     hello\r\n0\r\n\r\n"),
            Close
        ]
    ),
    lie!(
        "length-of-many-zeros",
        "hundred thousand zeros before the length",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: "), Fill(b'0', 100_000), Say(b"2\r\n\r\nok"), Close]
    ),
    // Behind a whole response there may be what costs the connection and not the response (RFC 9112, 6.3 and 9.2).
    lie!(
        "body-too-long",
        "more bytes than its length",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more")]
    ),
    lie!(
        "body-too-short",
        "fewer bytes than its length, and its end",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nok"), Close]
    ),
    lie!(
        "body-cut-by-reset",
        "fewer bytes than its length, and a reset",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nok"), Pause(20), Reset]
    ),
    lie!(
        "body-of-nothing",
        "length 0 and a body",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nnothing")]
    ),
    lie!("body-of-204", "a body where there is none", Either, [Hear, Say(b"HTTP/1.1 204 No Content\r\n\r\nhello")]),
    lie!(
        "body-of-304",
        "a body behind 304",
        Either,
        [Hear, Say(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello")]
    ),
    lie!("body-of-head", "a body to HEAD", Either, [Hear, Say(OK)], "-m", "HEAD"),
    lie!(
        "body-endless",
        "a body without a length that never ends",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "body-endless-of-a-length",
        "a body as long as 64 bits allow, at full speed",
        Failed,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    // Chunks.
    lie!("chunk-negative", "a chunk's size below 0", Failed, [Hear, Say(CHUNKED), Say(b"-2\r\nok\r\n0\r\n\r\n")]),
    lie!(
        "chunk-beyond-64-bits",
        "a chunk's size that no 64 bits hold",
        Failed,
        [Hear, Say(CHUNKED), Say(b"10000000000000002\r\nok\r\n0\r\n\r\n")]
    ),
    lie!(
        "chunk-largest",
        "the largest size of a chunk, and two bytes",
        Failed,
        [Hear, Say(CHUNKED), Say(b"ffffffffffffffff\r\nok")]
    ),
    lie!("chunk-0x", "a chunk's size with 0x before it", Failed, [Hear, Say(CHUNKED), Say(b"0x2\r\nok\r\n0\r\n\r\n")]),
    lie!("chunk-plus", "a chunk's size with a plus sign", Failed, [Hear, Say(CHUNKED), Say(b"+2\r\nok\r\n0\r\n\r\n")]),
    lie!(
        "chunk-no-number",
        "a chunk's size that is no number",
        Failed,
        [Hear, Say(CHUNKED), Say(b"zz\r\nok\r\n0\r\n\r\n")]
    ),
    lie!(
        "chunk-empty-size",
        "an empty line where a chunk's size ought to be",
        Failed,
        [Hear, Say(CHUNKED), Say(b"\r\nok\r\n0\r\n\r\n")]
    ),
    lie!(
        "chunk-nul-in-size",
        "a NUL behind a chunk's size",
        Failed,
        [Hear, Say(CHUNKED), Say(b"2\0\r\nok\r\n0\r\n\r\n")]
    ),
    lie!(
        "chunk-longer-than-said",
        "a chunk that is longer than its size",
        Failed,
        [Hear, Say(CHUNKED), Say(b"2\r\nokay\r\n0\r\n\r\n")]
    ),
    lie!(
        "chunk-extension-of-megabytes",
        "an extension of a chunk that never ends",
        Failed,
        [Hear, Say(CHUNKED), Say(b"2;x="), Forever(&[Fill(b'y', 65_536)])]
    ),
    lie!(
        "chunk-extensions-without-end",
        "one byte of body for 15 kB of extension, for ever",
        Failed,
        [Hear, Say(CHUNKED), Forever(&[Say(b"1;x="), Fill(b'y', 15_000), Say(b"\r\nz\r\n")])]
    ),
    lie!(
        "chunk-extension-with-bare-cr",
        "a bare CR within a chunk's extension",
        Either,
        [Hear, Say(CHUNKED), Say(b"2;x=\ry\r\nok\r\n0\r\n\r\n"), Close]
    ),
    lie!(
        "chunk-size-of-endless-zeros",
        "a chunk's size of zeros without end",
        Failed,
        [Hear, Say(CHUNKED), Forever(&[Fill(b'0', 65_536)])]
    ),
    lie!(
        "chunk-of-one-byte-for-ever",
        "chunks of one byte without end",
        Failed,
        [Hear, Say(CHUNKED), Forever(&[Say(b"1\r\nx\r\n")])]
    ),
    lie!(
        "chunk-without-the-last",
        "no last chunk, and the end",
        Failed,
        [Hear, Say(CHUNKED), Say(b"2\r\nok\r\n"), Close]
    ),
    lie!(
        "chunk-with-bare-lf",
        "bare LF at the ends of a chunk's lines",
        Either,
        [Hear, Say(CHUNKED), Say(b"2\nok\n0\n\n"), Close]
    ),
    lie!(
        "trailer-endless",
        "trailer fields without end",
        Failed,
        [Hear, Say(CHUNKED), Say(b"0\r\n"), Forever(&[Say(b"X-Trailer: and one more\r\n")])]
    ),
    lie!(
        "trailer-of-one-endless-line",
        "a trailer field without end",
        Failed,
        [Hear, Say(CHUNKED), Say(b"0\r\nX: "), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "trailer-without-a-name",
        "a trailer line that is no field",
        Failed,
        [Hear, Say(CHUNKED), Say(b"0\r\nno field\r\n\r\n")]
    ),
    lie!(
        "trailer-with-a-length",
        "a trailer that says another length",
        Either,
        [Forever(&[Hear, Say(CHUNKED), Say(b"2\r\nok\r\n0\r\nContent-Length: 7\r\nTransfer-Encoding: gzip\r\n\r\n")])]
    ),
    lie!(
        "coding-unknown",
        "a transfer coding that nobody knows",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"), Close]
    ),
    lie!(
        "coding-chunked-twice",
        "chunks within chunks",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"), Close]
    ),
    lie!(
        "coding-chunked-first",
        "chunked is not the last coding",
        Either,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n"), Close]
    ),
    lie!(
        "coding-in-http-1-0",
        "chunks of a server that says HTTP/1.0",
        Either,
        [Hear, Say(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"), Close]
    ),
];
