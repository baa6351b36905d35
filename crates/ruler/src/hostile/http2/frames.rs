//! Frames, windows and settings that are not as they ought to be.

use super::super::act::Act::{Fill, Forever, Frame, FrameLying, HearStream, Pause, Times};
use super::super::act::On::{Asked, Connection, Next, Stream};
use super::super::{Expected, Family, Lie, Speaks};
use super::{
    ACK, ANSWER, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, GREETING, HEAD, HEADERS, PADDED, PING, PRIORITY,
    RST_STREAM, SETTINGS, STATUS_200, WINDOW_UPDATE,
};

pub(in super::super) const FRAMES: &[Lie] = &[
    // Sizes and streams.
    lie!(
        "frame-beyond-its-limit",
        "a frame that is longer than the client allows",
        Failed,
        [GREETING, HearStream, HEAD, FrameLying(DATA, 0, Asked, 0xff_ffff, b""), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "frame-of-settings-that-is-odd",
        "settings of five bytes",
        Failed,
        [Frame(SETTINGS, 0, Connection, b"\x00\x03\x00\x00\x00")]
    ),
    lie!(
        "frame-of-settings-on-a-stream",
        "settings of a stream",
        Failed,
        [GREETING, HearStream, Frame(SETTINGS, 0, Asked, b"")]
    ),
    lie!(
        "frame-of-an-acknowledgement-with-content",
        "an acknowledgement that says something",
        Failed,
        [GREETING, HearStream, Frame(SETTINGS, ACK, Connection, b"\x00\x03\x00\x00\x00\x64")]
    ),
    lie!(
        "frame-of-ping-that-is-odd",
        "a ping of seven bytes",
        Failed,
        [GREETING, HearStream, Frame(PING, 0, Connection, b"1234567")]
    ),
    lie!(
        "frame-of-ping-on-a-stream",
        "a ping of a stream",
        Failed,
        [GREETING, HearStream, Frame(PING, 0, Asked, b"12345678")]
    ),
    lie!(
        "frame-of-priority-that-is-odd",
        "a priority of four bytes",
        Failed,
        [GREETING, HearStream, Frame(PRIORITY, 0, Asked, b"\x00\x00\x00\x00"), ANSWER]
    ),
    lie!(
        "frame-of-reset-that-is-odd",
        "a reset of three bytes",
        Failed,
        [GREETING, HearStream, Frame(RST_STREAM, 0, Asked, b"\x00\x00\x08")]
    ),
    lie!(
        "frame-of-window-that-is-odd",
        "a window of five bytes",
        Failed,
        [GREETING, HearStream, Frame(WINDOW_UPDATE, 0, Asked, b"\x00\x00\x00\x01\x00")]
    ),
    lie!(
        "frame-of-goaway-that-is-short",
        "a farewell of seven bytes",
        Failed,
        [GREETING, HearStream, Frame(GOAWAY, 0, Connection, b"\x00\x00\x00\x01\x00\x00\x00")]
    ),
    lie!(
        "data-on-the-connection",
        "a body of no stream",
        Failed,
        [GREETING, HearStream, HEAD, Frame(DATA, 0, Connection, b"ok")]
    ),
    lie!(
        "headers-on-the-connection",
        "a head of no stream",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Connection, STATUS_200)]
    ),
    lie!(
        "headers-on-an-idle-stream",
        "an answer to what was not asked yet",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS | END_STREAM, Stream(0x7fff_ffff), STATUS_200)]
    ),
    lie!(
        "headers-on-an-even-stream",
        "an answer on a stream that the server would have to open",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, END_HEADERS, Next, STATUS_200)]
    ),
    lie!(
        "data-before-the-head",
        "a body before its head",
        Failed,
        [GREETING, HearStream, Frame(DATA, END_STREAM, Asked, b"ok")]
    ),
    lie!(
        "data-after-the-end",
        "a body behind its end",
        Either,
        [GREETING, Forever(&[HearStream, ANSWER, Frame(DATA, 0, Asked, b"more")])]
    ),
    lie!(
        "headers-after-the-end",
        "a second answer behind the first",
        Either,
        [GREETING, Forever(&[HearStream, ANSWER, ANSWER])]
    ),
    lie!(
        "reset-after-the-end",
        "a reset behind the end, which is allowed",
        Either,
        [GREETING, Forever(&[HearStream, ANSWER, Frame(RST_STREAM, 0, Asked, b"\x00\x00\x00\x00")])]
    ),
    lie!(
        "trailers-without-an-end",
        "trailers that do not end the stream",
        Failed,
        [
            GREETING,
            HearStream,
            HEAD,
            Frame(DATA, 0, Asked, b"ok"),
            Frame(HEADERS, END_HEADERS, Asked, b"\x00\x01x\x01y")
        ]
    ),
    lie!(
        "trailers-with-a-status",
        "trailers with another status",
        Failed,
        [
            GREETING,
            HearStream,
            HEAD,
            Frame(DATA, 0, Asked, b"ok"),
            Frame(HEADERS, END_HEADERS | END_STREAM, Asked, STATUS_200)
        ]
    ),
    lie!(
        "another-frame-in-a-header-block",
        "a ping within a header block",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, 0, Asked, STATUS_200), Frame(PING, 0, Connection, b"12345678")]
    ),
    lie!(
        "continuation-of-nothing",
        "it goes on with a header block that has not begun",
        Failed,
        [GREETING, HearStream, Frame(CONTINUATION, END_HEADERS, Asked, STATUS_200)]
    ),
    lie!(
        "continuation-of-another-stream",
        "it goes on with the header block of another stream",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, 0, Asked, STATUS_200), Frame(CONTINUATION, END_HEADERS, Next, b"")]
    ),
    lie!(
        "padding-longer-than-its-frame",
        "more padding than the frame has bytes",
        Failed,
        [GREETING, HearStream, HEAD, Frame(DATA, PADDED | END_STREAM, Asked, b"\xffok")]
    ),
    lie!(
        "padding-in-an-empty-frame",
        "padding in a frame without a byte",
        Failed,
        [GREETING, HearStream, HEAD, Frame(DATA, PADDED, Asked, b"")]
    ),
    lie!(
        "padding-of-a-head-that-is-too-long",
        "more padding than the head has bytes",
        Failed,
        [GREETING, HearStream, Frame(HEADERS, PADDED | END_HEADERS, Asked, b"\x09\x88")]
    ),
    // Windows and settings.
    lie!(
        "window-of-nothing-for-ever",
        "no window for the request's body, ever",
        Failed,
        [Frame(SETTINGS, 0, Connection, b"\x00\x04\x00\x00\x00\x00"), HearStream, Pause(5)],
        "-m",
        "POST",
        "--body-size",
        "100k"
    ),
    lie!(
        "window-below-zero",
        "the window of a stream is taken back while it is in use",
        Failed,
        [
            GREETING,
            HearStream,
            Frame(SETTINGS, 0, Connection, b"\x00\x04\x00\x00\x00\x00"),
            Frame(WINDOW_UPDATE, 0, Asked, b"\x00\x00\x00\x01")
        ],
        "-m",
        "POST",
        "--body-size",
        "200k"
    ),
    lie!(
        "window-overflows",
        "the connection's window beyond 2^31-1",
        Failed,
        [GREETING, HearStream, Times(2, &[Frame(WINDOW_UPDATE, 0, Connection, b"\x7f\xff\xff\xff")])]
    ),
    lie!(
        "window-of-a-stream-overflows",
        "a stream's window beyond 2^31-1",
        Failed,
        [GREETING, HearStream, Times(2, &[Frame(WINDOW_UPDATE, 0, Asked, b"\x7f\xff\xff\xff")])],
        "-m",
        "POST",
        "--body-size",
        "1MiB"
    ),
    lie!(
        "window-opened-by-nothing",
        "a window opened by 0",
        Failed,
        [GREETING, HearStream, Frame(WINDOW_UPDATE, 0, Connection, b"\x00\x00\x00\x00")]
    ),
    lie!(
        "window-of-an-idle-stream",
        "a window of a stream that nobody has opened",
        Failed,
        [GREETING, HearStream, Frame(WINDOW_UPDATE, 0, Stream(0x7fff_ffff), b"\x00\x00\x00\x01")]
    ),
    lie!(
        "setting-of-a-window-beyond-its-limit",
        "an initial window of 2^32-1",
        Failed,
        [Frame(SETTINGS, 0, Connection, b"\x00\x04\xff\xff\xff\xff")]
    ),
    lie!(
        "setting-of-a-frame-beyond-its-limit",
        "frames of 2^32-1 bytes are allowed",
        Failed,
        [Frame(SETTINGS, 0, Connection, b"\x00\x05\xff\xff\xff\xff")]
    ),
    lie!(
        "setting-of-no-frames",
        "frames of 0 bytes are allowed",
        Failed,
        [Frame(SETTINGS, 0, Connection, b"\x00\x05\x00\x00\x00\x00")]
    ),
    lie!(
        "setting-of-no-streams",
        "no stream is allowed, ever",
        Failed,
        [Frame(SETTINGS, 0, Connection, b"\x00\x03\x00\x00\x00\x00")]
    ),
    lie!(
        "setting-of-push",
        "a server that says it takes pushes",
        Either,
        [Frame(SETTINGS, 0, Connection, b"\x00\x02\x00\x00\x00\x02"), Forever(&[HearStream, ANSWER])]
    ),
    lie!(
        "setting-of-a-huge-table",
        "a table for headers of 4 GB is allowed",
        Either,
        [Frame(SETTINGS, 0, Connection, b"\x00\x01\xff\xff\xff\xff"), Forever(&[HearStream, ANSWER])]
    ),
    lie!(
        "setting-of-short-lists",
        "no header list is allowed",
        Either,
        [Frame(SETTINGS, 0, Connection, b"\x00\x06\x00\x00\x00\x00"), Forever(&[HearStream, ANSWER])]
    ),
];
