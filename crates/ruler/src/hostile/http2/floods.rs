//! Frames without end, each of them in order or nearly so.

use super::super::act::Act::{Forever, Frame, FrameOf, HearStream};
use super::super::act::On::{Asked, Connection};
use super::super::{Expected, Family, Lie, Speaks};
use super::{
    ACK, CONTINUATION, DATA, END_HEADERS, GOAWAY, GREETING, HEAD, HEADERS, PADDED, PING, PRIORITY, PUSH_PROMISE,
    SETTINGS, STATUS_200, WINDOW_UPDATE, plain_fields,
};

pub(in super::super) const FLOODS: &[Lie] = &[
    // Floods.
    lie!(
        "flood-of-settings",
        "settings without end, each to be acknowledged",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(SETTINGS, 0, Connection, b"\x00\x03\x00\x00\x00\x64")])]
    ),
    lie!(
        "flood-of-settings-in-one",
        "thousands of settings in one frame, again and again",
        Failed,
        [GREETING, HearStream, Forever(&[FrameOf(SETTINGS, 0, Connection, many_settings)])]
    ),
    lie!(
        "flood-of-acknowledgements",
        "it acknowledges settings that nobody sent, without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(SETTINGS, ACK, Connection, b"")])]
    ),
    lie!(
        "flood-of-pings",
        "pings without end, each to be answered",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(PING, 0, Connection, b"12345678")])]
    ),
    lie!(
        "flood-of-priorities",
        "priorities of streams without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(PRIORITY, 0, Asked, b"\x00\x00\x00\x00\x10")])]
    ),
    lie!(
        "flood-of-continuations",
        "a header block that goes on without end",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(HEADERS, 0, Asked, STATUS_200),
            Forever(&[FrameOf(CONTINUATION, 0, Asked, plain_fields)])
        ]
    ),
    lie!(
        "flood-of-empty-continuations",
        "a header block that goes on without end, and says nothing",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, 0, Asked, STATUS_200), Forever(&[Frame(CONTINUATION, 0, Asked, b"")])]
    ),
    lie!(
        "flood-of-empty-data",
        "frames of no bytes without end",
        Failed,
        [GREETING, HearStream, HEAD, Forever(&[Frame(DATA, 0, Asked, b"")])]
    ),
    lie!(
        "flood-of-padding",
        "a body of padding without end",
        Failed,
        [GREETING, HearStream, HEAD, Forever(&[FrameOf(DATA, PADDED, Asked, only_padding)])]
    ),
    lie!(
        "flood-of-windows",
        "windows opened by one byte without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(WINDOW_UPDATE, 0, Asked, b"\x00\x00\x00\x01")])]
    ),
    lie!(
        "flood-of-unknown-frames",
        "frames that nobody knows, without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(0xfe, 0xff, Connection, b"?")])]
    ),
    lie!(
        "flood-of-interim-responses",
        "103 Early Hints without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(HEADERS, END_HEADERS, Asked, b"\x08\x03103")])]
    ),
    lie!(
        "flood-of-data-beyond-the-window",
        "more body than the client's windows take",
        Failed,
        [GREETING, HearStream, HEAD, Forever(&[FrameOf(DATA, 0, Asked, sixteen_kib)])]
    ),
    lie!(
        "flood-of-pushes",
        "streams that the client has forbidden, without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(PUSH_PROMISE, END_HEADERS, Asked, b"\x00\x00\x00\x02\x82\x84\x86")])]
    ),
    lie!(
        "flood-of-farewells",
        "GOAWAY without end",
        Failed,
        [GREETING, HearStream, Forever(&[Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x01\x00\x00\x00\x00")])]
    ),
];

/// 2,500 settings that nobody knows: the most that fits into a frame of 16,384 bytes is 2,730.
fn many_settings() -> Vec<u8> {
    b"\xff\x00\x00\x00\x00\x01".repeat(2500)
}

/// 64 frames' worth would be 1 MiB: a body of which nothing is content.
fn only_padding() -> Vec<u8> {
    [&[255_u8][..], &[0; 255]].concat()
}

fn sixteen_kib() -> Vec<u8> {
    vec![b'x'; 16_384]
}
