//! Header blocks, and what they say.

use super::super::act::Act::{Forever, Frame, FrameOf, HearStream, Pause, Times};
use super::super::act::On::{Asked, Next};
use super::super::{Expected, Family, Lie, Speaks};
use super::{CONTINUATION, DATA, END_HEADERS, END_STREAM, GREETING, HEADERS, STATUS_200, plain_fields};

pub(in super::super) const BLOCKS: &[Lie] = &[
    // Header blocks.
    lie!(
        "block-of-garbage",
        "a header block that cannot be decoded",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")]
    ),
    lie!(
        "block-with-index-zero",
        "the entry 0 of the table",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\x80")]
    ),
    lie!(
        "block-beyond-the-table",
        "an entry that the table does not have",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\x88\xff\x00")]
    ),
    lie!(
        "block-cut-in-a-text",
        "a text that is longer than the header block",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\x88\x00\x7fx")]
    ),
    lie!(
        "block-with-bad-huffman",
        "a text with a code that stands for no character",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\x88\x00\x01x\x84\xff\xff\xff\xff")]
    ),
    lie!(
        "block-with-a-huge-table",
        "a table that is larger than the client allows",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\x3f\xff\xff\xff\x7f\x88")]
    ),
    lie!(
        "block-with-late-table-size",
        "another size of the table behind the first field",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x20")]
    ),
    lie!(
        "block-that-is-a-bomb",
        "one entry of 4 kB in the table, named thousands of times",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, 0, Asked, STATUS_200),
            FrameOf(CONTINUATION, 0, Asked, bomb_entry),
            Times(8, &[FrameOf(CONTINUATION, 0, Asked, bomb_names)]),
            Frame(CONTINUATION, END_HEADERS | END_STREAM, Asked, b"")
        ]
    ),
    lie!(
        "block-of-ten-thousand-fields",
        "ten thousand fields that are not compressed",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, 0, Asked, STATUS_200),
            Times(6, &[FrameOf(CONTINUATION, 0, Asked, plain_fields)]),
            Frame(CONTINUATION, END_HEADERS | END_STREAM, Asked, b"")
        ]
    ),
    lie!(
        "block-that-forgets-all",
        "entries are added and forgotten without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(HEADERS, END_HEADERS, Next, b"\x20\x3f\xe1\x1f\x40\x01x\x01y")])]
    ),
    lie!(
        "status-missing",
        "a head without a status",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x00\x01x\x01y")]
    ),
    lie!(
        "status-twice",
        "a head with two",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x8d")]
    ),
    lie!(
        "status-of-letters",
        "a status that is no number",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x08\x032x0")]
    ),
    lie!(
        "status-101",
        "101, which HTTP/2 does not have",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Asked, b"\x08\x03101")]
    ),
    lie!(
        "status-behind-fields",
        "a status behind ordinary fields",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x00\x01x\x01y\x88")]
    ),
    lie!(
        "pseudo-field-unknown",
        "a field with a colon before its name that nobody knows",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x00\x02:x\x01y")]
    ),
    lie!(
        "pseudo-field-of-requests",
        "a path in an answer",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x84")]
    ),
    lie!(
        "field-with-capitals",
        "a name with capital letters",
        Either,
        [GREETING, Forever(&[HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x00\x01X\x01y")])]
    ),
    lie!(
        "field-of-connections",
        "a field that only HTTP/1 has",
        Either,
        [
            GREETING,
            Forever(&[HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x00\x0aconnection\x05close")])
        ]
    ),
    lie!(
        "field-with-escapes",
        "escape sequences, line ends and a NUL in a field",
        Either,
        [
            GREETING,
            Forever(&[
                HearStream,
                Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x00\x06server\x0e\x1b[2J\x1b]0;x\x07\r\n\0\x9b"),
                Pause(1)
            ])
        ]
    ),
    lie!(
        "field-without-a-name",
        "a field whose name is empty",
        Either,
        [GREETING, Forever(&[HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Asked, b"\x88\x00\x00\x01y")])]
    ),
    lie!(
        "length-too-large",
        "a content-length that is larger than the body",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, END_HEADERS, Asked, b"\x88\x0f\x0d\x015"),
            Frame(DATA, END_STREAM, Asked, b"ok")
        ]
    ),
    lie!(
        "length-too-small",
        "a content-length that is smaller than the body",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, END_HEADERS, Asked, b"\x88\x0f\x0d\x011"),
            Frame(DATA, END_STREAM, Asked, b"ok")
        ]
    ),
    lie!(
        "length-twice",
        "two that contradict each other",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, END_HEADERS, Asked, b"\x88\x0f\x0d\x011\x0f\x0d\x012"),
            Frame(DATA, END_STREAM, Asked, b"ok")
        ]
    ),
    lie!(
        "length-of-no-number",
        "a content-length that is no number",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, END_HEADERS, Asked, b"\x88\x0f\x0d\x03-1x"),
            Frame(DATA, END_STREAM, Asked, b"ok")
        ]
    ),
];

/// A field of 4,000 bytes that goes into the table (RFC 7541, 6.2.1); the length is 127 and 3,873 more.
fn bomb_entry() -> Vec<u8> {
    [&b"\x40\x01x\x7f\xa1\x1e"[..], &[b'y'; 4000]].concat()
}

/// The newest entry of the table, 16,000 times: 64 MB of fields.
fn bomb_names() -> Vec<u8> {
    vec![0xbe; 16_000]
}
