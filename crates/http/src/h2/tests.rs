//! A connection against servers that are made of bytes.

use super::connection::{Connection, End};
use super::frame::{Header, LARGEST, PAYLOAD_LIMIT, PREFACE, code, flag, kind, push_number, push_settings, setting};
use super::hpack;
use proptest::prelude::*;

/// What a server sends.
#[derive(Default, Clone)]
struct Server(Vec<u8>);

impl Server {
    /// One that has introduced itself.
    fn new(settings: &[(u16, u32)]) -> Self {
        let mut bytes = Vec::new();
        push_settings(settings, &mut bytes);
        Self(bytes)
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        Header { length: payload.len(), kind, flags, stream }.push(&mut self.0);
        self.0.extend_from_slice(payload);
        self
    }

    fn head(self, stream: u32, ends: bool, fields: &[(&str, &str)]) -> Self {
        let ends = if ends { flag::END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flag::END_HEADERS | ends, stream, &block(fields))
    }

    fn data(self, stream: u32, ends: bool, bytes: &[u8]) -> Self {
        self.frame(kind::DATA, if ends { flag::END_STREAM } else { 0 }, stream, bytes)
    }

    fn number(mut self, kind: u8, stream: u32, number: u32) -> Self {
        push_number(kind, stream, number, &mut self.0);
        self
    }

    fn goaway(self, last: u32, code: u32) -> Self {
        self.frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
    }
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields.iter().for_each(|(name, value)| hpack::encode(name.as_bytes(), value.as_bytes(), &mut block));
    block
}

/// What a server may send before it needs our leave.
const WINDOW: u32 = 1 << 30;
const OK: &[(&str, &str)] = &[(":status", "200")];

/// A connection that knows what its server is like, with so many requests under way.
fn with_streams(streams: usize) -> Connection {
    let mut connection = Connection::new(streams, WINDOW, false);
    connection.feed(&Server::new(&[]).0, 1).unwrap();
    for place in 0..streams {
        connection.open(place, &block(&[(":method", "GET")]), 0, false, true);
    }
    connection
}

/// How all ended, and what their bodies had.
fn ends(connection: &mut Connection) -> Vec<(usize, End, u16, u64)> {
    let mut ends = Vec::new();
    while let Some((place, end)) = connection.next_end() {
        let response = connection.response(place);
        ends.push((place, end, response.status(), response.body_bytes()));
    }
    ends
}

fn after(server: &Server, streams: usize) -> Vec<(usize, End, u16, u64)> {
    let mut connection = with_streams(streams);
    connection.feed(&server.0, 5).unwrap();
    ends(&mut connection)
}

/// The text with which the only stream broke.
fn broken(server: Server) -> String {
    match after(&server, 1).pop() {
        Some((0, End::Broken(error), ..)) => error.0,
        other => panic!("{other:?}"),
    }
}

/// The text with which the connection broke.
fn fatal(server: &Server) -> String {
    broken_with(server).0
}

/// The same, and the code that the server is told.
fn broken_with(server: &Server) -> (String, u32) {
    let mut connection = with_streams(1);
    let error = connection.feed(&server.0, 5).unwrap_err();
    assert!(connection.has_parted());
    let frames = sent(connection.outgoing(|_| &[]));
    // The request that has not left stays here.
    let [(kind::SETTINGS, ..), (kind::WINDOW_UPDATE, ..), (kind::GOAWAY, 0, 0, payload)] = &frames[..] else {
        panic!("{frames:?}")
    };
    assert_eq!(payload[..4], [0; 4], "the server has opened no stream");
    (error.0, u32::from_be_bytes(payload[4..].try_into().unwrap()))
}

/// Frames that a client sent: type, flags, stream, payload.
fn sent(out: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut rest = out.strip_prefix(PREFACE).unwrap_or(out);
    let mut frames = Vec::new();
    while let Some((header, behind)) = rest.split_first_chunk() {
        let header = Header::read(header);
        let (payload, behind) = behind.split_at(header.length);
        frames.push((header.kind, header.flags, header.stream, payload.to_vec()));
        rest = behind;
    }
    assert!(rest.is_empty());
    frames
}

#[test]
fn responses_end_in_the_order_in_which_they_are_complete() {
    let server = Server::default()
        .head(3, false, &[(":status", "200"), ("content-length", "5")])
        .head(1, false, OK)
        .data(3, true, b"three")
        .data(1, false, b"o")
        .data(1, true, b"ne");
    assert_eq!(after(&server, 2), [(1, End::Complete, 200, 5), (0, End::Complete, 200, 3)]);
}

#[test]
fn a_response_may_be_padded_continued_and_have_interim_heads_and_trailers() {
    let fields = block(&[(":status", "404"), ("server", "x")]);
    let server = Server::default()
        .head(1, false, &[(":status", "103"), ("link", "</a>")])
        .frame(kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, &[&[2, 0, 0, 0, 0, 9], &fields[..1], &[0; 2]].concat())
        .frame(kind::CONTINUATION, 0, 1, &fields[1..3])
        .frame(kind::CONTINUATION, flag::END_HEADERS, 1, &fields[3..])
        .frame(kind::DATA, flag::PADDED, 1, b"\x03abc\0\0\0")
        .frame(kind::DATA, flag::PADDED, 1, b"\x00")
        .frame(0xfa, 0xff, 1, b"what nobody knows")
        .data(1, false, b"")
        .head(1, true, &[("checksum", "1")]);
    let mut connection = with_streams(1);
    connection.feed(&server.0, 5).unwrap();
    assert_eq!(connection.response(0).head_bytes(), b"HTTP/2 404\r\nserver: x\r\n\r\n");
    assert_eq!(ends(&mut connection), [(0, End::Complete, 404, 3)]);
}

#[test]
fn responses_without_a_body_announce_what_they_like() {
    for (status, to_head_request) in [("200", true), ("304", false), ("204", false)] {
        let mut connection = Connection::new(1, WINDOW, false);
        connection.open(0, &block(OK), 0, to_head_request, false);
        let server = Server::new(&[]).head(1, true, &[(":status", status), ("content-length", "77")]);
        connection.feed(&server.0, 1).unwrap();
        assert_eq!(connection.next_end(), Some((0, End::Complete)), "{status}");
        for (number, wrong) in ["", "x", "5, 6"].into_iter().enumerate() {
            connection.open(0, &block(OK), 0, to_head_request, false);
            let id = 2 * number as u32 + 3;
            let server = Server(Vec::new()).head(id, true, &[(":status", status), ("content-length", wrong)]);
            connection.feed(&server.0, 1).unwrap();
            assert_eq!(connection.next_end(), Some((0, End::Complete)), "{status} with '{wrong}'");
        }
    }
    let server = Server::default().head(1, true, &[(":status", "200"), ("content-length", "77")]);
    assert!(broken(server).contains("0 bytes where 77"));
}

#[test]
fn what_is_no_response_breaks_its_stream_alone() {
    let head = |fields: &[(&str, &str)]| Server::default().head(1, true, fields);
    let body = |length: &str, bytes: &[u8]| {
        Server::default().head(1, false, &[(":status", "200"), ("content-length", length)]).data(1, true, bytes)
    };
    for (server, part) in [
        (body("4", b"123"), "3 bytes where 4"),
        (body("2", b"123"), "3 bytes where 2"),
        (body("x", b""), "no number"),
        (body("", b""), "empty"),
        (body("2, 3", b"123"), "contradict"),
        (head(&[("server", "x")]), "no status"),
        (head(&[(":status", "2000")]), "three digits"),
        (head(&[("server", "x"), (":status", "200")]), "pseudo-header"),
        (head(&[(":status", "200"), (":status", "200")]), "pseudo-header"),
        (head(&[(":status", "200"), ("Server", "x")]), "whose name is none"),
        (head(&[(":status", "200"), ("connection", "close")]), "does not allow"),
        (head(&[(":status", "200"), ("a", "b\r\nc: d")]), "line end"),
        (head(&[(":status", "101")]), "switched protocols"),
        (head(&[(":status", "100")]), "interim"),
        (Server::default().data(1, true, b"x"), "before its head"),
        (Server::default().data(1, true, b""), "without a final response"),
        (Server::default().head(1, false, OK).head(1, false, &[("a", "b")]), "trailers"),
        (Server::default().head(1, false, OK).head(1, true, &[(":status", "200")]), "pseudo-header"),
        (Server::default().head(1, false, OK).number(kind::WINDOW_UPDATE, 1, 0), "opened by nothing"),
        (Server::default().head(1, false, OK).number(kind::WINDOW_UPDATE, 1, LARGEST), "too far"),
    ] {
        let text = broken(server.clone());
        assert!(text.contains(part), "{text}");
        // The other stream goes on.
        let mut connection = with_streams(2);
        connection.feed(&server.head(3, true, OK).0, 1).unwrap();
        assert_eq!(ends(&mut connection).last().map(|end| (end.0, end.2)), Some((1, 200)), "{part}");
    }
    let many = (0..=100).fold(Server::default(), |server, _| server.head(1, false, &[(":status", "103")]));
    assert!(broken(many).contains("more than 100 interim"));
    assert!(broken_after_many_fields().contains("longer than 262144"));
}

/// A small block that refers to a large field again and again.
fn broken_after_many_fields() -> String {
    let mut bomb = block(OK);
    bomb.extend([0x40, 1, b'a', 0x7f, 0x80 | 0x11, 0x1e]);
    bomb.extend(vec![b'x'; 127 + 0x11 + (0x1e << 7)]);
    bomb.extend(vec![0x80 | 62; 80]);
    broken(Server::default().frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &bomb))
}

#[test]
fn what_breaks_the_rules_of_frames_ends_the_connection() {
    let frame =
        |kind: u8, flags: u8, stream: u32, payload: &[u8]| Server::default().frame(kind, flags, stream, payload);
    for (server, part) in [
        (frame(kind::DATA, 0, 5, b""), "never opened"),
        (frame(kind::DATA, 0, 2, b""), "never opened"),
        (frame(kind::DATA, 0, 0, b""), "never opened"),
        (frame(kind::DATA, flag::PADDED, 1, b""), "shorter than its padding"),
        (frame(kind::DATA, flag::PADDED, 1, b"\x05ab"), "shorter than its padding"),
        (frame(kind::HEADERS, flag::PADDED | flag::END_HEADERS, 1, b"\x05ab"), "shorter than its padding"),
        (frame(kind::HEADERS, flag::PRIORITY | flag::END_HEADERS, 1, b"ab"), "too short"),
        (frame(kind::HEADERS, flag::END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), "cannot be decoded"),
        (frame(kind::HEADERS, flag::END_HEADERS, 3, b""), "never opened"),
        (frame(kind::HEADERS, 0, 1, b"").data(1, true, b""), "within a header block"),
        (frame(kind::CONTINUATION, 0, 1, b""), "not open"),
        (frame(kind::PUSH_PROMISE, 0, 1, b""), "pushed"),
        (frame(kind::PING, 0, 0, b"1234567"), "PING"),
        (frame(kind::RST_STREAM, 0, 1, b"123"), "RST_STREAM"),
        (frame(kind::SETTINGS, 0, 0, b"12345"), "SETTINGS"),
        (frame(kind::SETTINGS, flag::ACK, 0, b"123456"), "SETTINGS"),
        (frame(kind::SETTINGS, 0, 1, b""), "SETTINGS"),
        (Server::new(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]), "too large"),
        (Server::new(&[(setting::MAX_FRAME_SIZE, 100)]), "out of bounds"),
        (Server::new(&[(setting::ENABLE_PUSH, 1)]), "pushes"),
        (Server::default().number(kind::WINDOW_UPDATE, 0, 0), "opened by nothing"),
        (Server::default().number(kind::WINDOW_UPDATE, 0, LARGEST), "too far"),
        (Server::default().goaway(1, 0).goaway(3, 0), "takes another one back"),
        (frame(kind::GOAWAY, 0, 0, b"1234567"), "GOAWAY"),
        (frame(kind::PRIORITY, 0, 1, b"1"), "PRIORITY"),
    ] {
        let text = fatal(&server);
        assert!(text.contains(part), "{text} has no '{part}'");
    }
    let mut too_long = Vec::new();
    Header { length: PAYLOAD_LIMIT + 1, kind: kind::PING, flags: 0, stream: 0 }.push(&mut too_long);
    assert!(fatal(&Server(too_long)).contains("16385 bytes"));
}

#[test]
fn the_server_is_told_what_it_did() {
    let frame =
        |kind: u8, flags: u8, stream: u32, payload: &[u8]| Server::default().frame(kind, flags, stream, payload);
    // A thousand, and two for the stream.
    let many_pings = (0..=1002).fold(Server::default(), |server, _| server.frame(kind::PING, 0, 0, b"12345678"));
    for (server, reason) in [
        (frame(kind::DATA, 0, 5, b""), code::PROTOCOL_ERROR),
        (Server::default().number(kind::WINDOW_UPDATE, 0, LARGEST), code::FLOW_CONTROL_ERROR),
        (Server::new(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]), code::FLOW_CONTROL_ERROR),
        (frame(kind::PING, 0, 0, b"1234567"), code::FRAME_SIZE_ERROR),
        (frame(kind::PING, 0, 1, b"12345678"), code::PROTOCOL_ERROR),
        (frame(kind::HEADERS, flag::END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), code::COMPRESSION_ERROR),
        (many_pings, code::ENHANCE_YOUR_CALM),
    ] {
        let (text, told) = broken_with(&server);
        assert_eq!(told, reason, "{text}");
    }
    // Who speaks another protocol would not understand it.
    let mut connection = Connection::new(1, WINDOW, false);
    assert!(connection.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", 1).is_err());
    assert!(!connection.has_parted());
}

#[test]
fn floods_are_bounded() {
    let endless = |piece: &[u8]| {
        let start = Server::default().frame(kind::HEADERS, 0, 1, b"");
        (0..100).fold(start, |server, _| server.frame(kind::CONTINUATION, 0, 1, piece))
    };
    assert!(fatal(&endless(b"")).contains("too many pieces"));
    assert!(fatal(&endless(&[0x82; PAYLOAD_LIMIT])).contains("longer than 262144"));
    let pings = (0..2000).fold(Server::default(), |server, _| server.frame(kind::PING, 0, 0, b"12345678"));
    assert!(fatal(&pings).contains("faster than it takes them"));
    let settings = (0..2000).fold(Server::default(), |server, _| server.frame(kind::SETTINGS, 0, 0, b""));
    assert!(fatal(&settings).contains("faster than it takes them"));
    // Who reads the answers may go on.
    let mut connection = with_streams(1);
    for ping in pings.0.chunks(17 * 500) {
        connection.feed(ping, 1).unwrap();
        connection.outgoing(|_| &[]).clear();
    }
}

#[test]
fn what_is_not_http2_is_named() {
    let mut connection = Connection::new(1, WINDOW, false);
    assert!(connection.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", 1).unwrap_err().0.contains("HTTP/1.x"));
    assert!(Connection::new(1, WINDOW, false).feed(b"\x15\x03\x03\0\x02\x02\x46___", 1).unwrap_err().0.contains("TLS"));
    assert!(Connection::new(1, WINDOW, false).feed(b"SSH-2.0-OpenSSH\r\n", 1).unwrap_err().0.contains("SETTINGS"));
}

#[test]
fn settings_and_pings_are_answered() {
    let mut connection = Connection::new(1, WINDOW, false);
    assert_eq!((connection.max_streams(), connection.stream_window_bytes()), (None, None), "it has said nothing yet");
    let server = Server::new(&[(setting::MAX_CONCURRENT_STREAMS, 7), (setting::INITIAL_WINDOW_SIZE, 9)])
        .frame(kind::SETTINGS, flag::ACK, 0, b"")
        .frame(kind::PING, 0, 0, b"12345678")
        .frame(kind::PING, flag::ACK, 0, b"12345678");
    connection.feed(&server.0, 1).unwrap();
    assert_eq!((connection.max_streams(), connection.stream_window_bytes()), (Some(7), Some(9)));
    let frames = sent(connection.outgoing(|_| &[]));
    assert_eq!((frames[0].0, frames[1].0, frames[1].2), (kind::SETTINGS, kind::WINDOW_UPDATE, 0));
    assert_eq!(frames[2], (kind::SETTINGS, flag::ACK, 0, vec![]));
    assert_eq!(frames[3], (kind::PING, flag::ACK, 0, b"12345678".to_vec()));
    assert_eq!(frames.len(), 4);
}

#[test]
fn no_more_streams_are_opened_than_the_server_takes() {
    let mut connection = Connection::new(4, WINDOW, false);
    assert!(connection.has_room(), "the first one does not wait");
    connection.open(0, &block(OK), 0, false, false);
    assert!(!connection.has_room(), "how many there may be is not known");
    connection.feed(&Server::new(&[(setting::MAX_CONCURRENT_STREAMS, 2)]).0, 1).unwrap();
    connection.open(1, &block(OK), 0, false, false);
    assert!(!connection.has_room());
    connection.feed(&Server::default().head(1, true, OK).0, 1).unwrap();
    assert!(connection.has_room());
    connection.feed(&Server::new(&[(setting::MAX_CONCURRENT_STREAMS, 0)]).0, 1).unwrap();
    assert!(!connection.has_room() && !connection.is_spent());
}

#[test]
fn a_server_that_answers_but_does_not_read_is_sent_no_more_than_it_may() {
    let mut connection = Connection::new(1, WINDOW, false);
    connection.feed(&Server::new(&[]).0, 1).unwrap();
    let fields = block(&[(":method", "GET"), ("a", &"v".repeat(1000))]);
    let mut opened = 0;
    while connection.has_room() {
        connection.open(0, &fields, 0, false, false);
        opened += 1;
        let answer = Server::default().head(2 * opened - 1, true, OK);
        connection.feed(&answer.0, 1).unwrap();
        assert_eq!(ends(&mut connection).len(), 1);
        assert!(opened < 1000, "requests pile up");
    }
    let out = connection.outgoing(|_| &[]);
    assert!((super::OUT_ENOUGH..super::OUT_ENOUGH + 2000).contains(&out.len()), "{}", out.len());
    out.clear();
    assert!(connection.has_room() && connection.left().next().is_none(), "they had ended before they left");
}

#[test]
fn bodies_that_nobody_takes_are_forgotten_with_their_streams() {
    let mut connection = Connection::new(2, WINDOW, false);
    connection.feed(&Server::new(&[(setting::INITIAL_WINDOW_SIZE, 0)]).0, 1).unwrap();
    for opened in 0..1000 {
        connection.open(0, &block(OK), 100, false, false);
        connection.outgoing(|_| &[1; 100]).clear();
        connection.feed(&Server::default().head(2 * opened + 1, true, &[(":status", "413")]).0, 1).unwrap();
        assert_eq!(ends(&mut connection).len(), 1);
        connection.outgoing(|_| &[1; 100]).clear();
    }
    connection.open(1, &block(OK), 100, false, false);
    connection.feed(&Server::default().number(kind::WINDOW_UPDATE, 2001, 100).0, 1).unwrap();
    let frames = sent(connection.outgoing(|_| &[1; 100]));
    let data: Vec<u32> = frames.iter().filter(|frame| frame.0 == kind::DATA).map(|frame| frame.2).collect();
    assert_eq!(data, [2001], "one body, once");
    assert_eq!(connection.left().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_server_that_goes_away_finishes_what_it_has_begun() {
    let mut connection = with_streams(3);
    connection.feed(&Server::default().goaway(3, 0).0, 1).unwrap();
    assert!(connection.is_spent() && !connection.has_room());
    assert_eq!((ends(&mut connection).as_slice(), connection.active()), (&[(2, End::Refused, 0, 0)][..], 2));
    connection.feed(&Server::default().head(1, true, OK).head(3, true, OK).0, 1).unwrap();
    assert_eq!((ends(&mut connection).len(), connection.active()), (2, 0));
    assert_eq!(connection.complaint(), None);
    connection.feed(&Server::default().goaway(3, 11).0, 1).unwrap();
    assert_eq!(connection.complaint(), Some("ENHANCE_YOUR_CALM"));
}

#[test]
fn streams_that_the_server_gives_up_are_told_apart() {
    let server = Server::default().number(kind::RST_STREAM, 1, 7).number(kind::RST_STREAM, 3, 2);
    assert_eq!(after(&server, 2), [(0, End::Refused, 0, 0), (1, End::Reset("INTERNAL_ERROR"), 0, 0)]);
    // That it needs no more of a request whose response is complete changes nothing.
    let server = Server::default().head(1, true, OK).number(kind::RST_STREAM, 1, 0);
    assert_eq!(after(&server, 1), [(0, End::Complete, 200, 0)]);
}

#[test]
fn nothing_of_a_cancelled_stream_reaches_the_next_one_in_its_place() {
    let mut connection = with_streams(1);
    let server = Server::default().head(1, false, OK).data(1, true, b"of the first one");
    let (before, behind) = server.0.split_at(server.0.len() - 5);
    connection.feed(before, 1).unwrap();
    connection.cancel(0);
    connection.open(0, &block(OK), 0, false, false);
    connection.feed(behind, 1).unwrap();
    assert_eq!((ends(&mut connection).len(), connection.active()), (0, 1));
    connection.feed(&Server::default().head(3, false, OK).data(3, true, b"x").0, 1).unwrap();
    assert_eq!(ends(&mut connection), [(0, End::Complete, 200, 1)]);
}

#[test]
fn bodies_keep_to_the_windows_and_frames_of_the_server() {
    let body = vec![7; 100_000];
    let mut connection = Connection::new(2, WINDOW, false);
    let settings = [(setting::INITIAL_WINDOW_SIZE, 20_000), (setting::MAX_FRAME_SIZE, 20_000)];
    connection.feed(&Server::new(&settings).0, 1).unwrap();
    connection.open(0, &block(OK), body.len(), false, false);
    connection.open(1, &block(OK), body.len(), false, false);
    let take = |connection: &mut Connection| {
        let mut lengths = [0, 0];
        let mut ended = 0;
        loop {
            let out = connection.outgoing(|_| &body);
            if out.is_empty() {
                return (lengths, ended);
            }
            for (kind, flags, stream, payload) in sent(out) {
                if kind == kind::DATA {
                    assert!(payload.len() <= PAYLOAD_LIMIT);
                    lengths[(stream / 2) as usize] += payload.len();
                    ended += usize::from(flags & flag::END_STREAM != 0);
                }
            }
            out.clear();
        }
    };
    assert_eq!(take(&mut connection), ([20_000, 20_000], 0), "the streams' windows");
    connection.feed(&Server::new(&[(setting::INITIAL_WINDOW_SIZE, 40_000)]).0, 1).unwrap();
    let (more, _) = take(&mut connection);
    assert_eq!(more[0] + more[1], 65_535 - 40_000, "the connection's window: {more:?}");
    let open = Server::default().number(kind::WINDOW_UPDATE, 0, 1 << 20).number(kind::WINDOW_UPDATE, 3, 1 << 20);
    connection.feed(&open.0, 1).unwrap();
    let (rest, ended) = take(&mut connection);
    assert_eq!((20_000 + more[1] + rest[1], ended), (100_000, 1));
    assert_eq!(20_000 + more[0] + rest[0], 40_000);
    assert_eq!(connection.left().collect::<Vec<_>>(), [1]);
    // A window may become negative (RFC 9113, 6.9.2).
    let less = Server::new(&[(setting::INITIAL_WINDOW_SIZE, 0)]).number(kind::WINDOW_UPDATE, 1, 40_000);
    connection.feed(&less.0, 1).unwrap();
    assert_eq!(take(&mut connection), ([0, 0], 0));
    connection.feed(&Server::default().number(kind::WINDOW_UPDATE, 1, 60_000).0, 1).unwrap();
    assert_eq!(take(&mut connection), ([60_000, 0], 1));
}

#[test]
fn an_early_answer_ends_a_request_that_is_not_all_sent() {
    let mut connection = Connection::new(1, WINDOW, false);
    connection.feed(&Server::new(&[(setting::INITIAL_WINDOW_SIZE, 10)]).0, 1).unwrap();
    connection.open(0, &block(OK), 100, false, false);
    connection.outgoing(|_| &[1; 100]).clear();
    connection.feed(&Server::default().head(1, true, &[(":status", "413")]).0, 1).unwrap();
    assert_eq!(ends(&mut connection), [(0, End::Complete, 413, 0)]);
    let frames = sent(connection.outgoing(|_| &[]));
    assert_eq!(frames.last().map(|frame| frame.0), Some(kind::RST_STREAM));
}

#[test]
fn long_header_blocks_are_sent_in_pieces_and_tables_are_not_used() {
    let mut connection = Connection::new(1, WINDOW, false);
    connection.feed(&Server::new(&[(setting::HEADER_TABLE_SIZE, 0)]).0, 1).unwrap();
    connection.outgoing(|_| &[]).clear();
    let value = "v".repeat(40_000);
    let fields = block(&[(":method", "GET"), ("a", &value)]);
    connection.open(0, &fields, 0, false, false);
    let frames = sent(connection.outgoing(|_| &[]));
    assert_eq!(
        frames.iter().map(|frame| frame.0).collect::<Vec<_>>(),
        [kind::HEADERS, kind::CONTINUATION, kind::CONTINUATION]
    );
    assert_eq!(frames.iter().map(|frame| frame.1).collect::<Vec<_>>(), [flag::END_STREAM, 0, flag::END_HEADERS]);
    let sent: Vec<u8> = frames.into_iter().flat_map(|frame| frame.3).collect();
    assert_eq!((sent[0], &sent[1..]), (0x20, &fields[..]));
}

/// Plays a server that sends a body of so many octets as far as the windows let it; answers what was announced for streams,
/// and how often windows were opened, that of the stream and that of the connection.
fn sent_within(window: u32, body: usize) -> (u32, [usize; 2]) {
    let mut connection = Connection::new(1, window, false);
    let introduction = sent(connection.outgoing(|_| &[]));
    connection.outgoing(|_| &[]).clear();
    connection.feed(&Server::new(&[]).0, 1).unwrap();
    connection.open(0, &block(&[(":method", "GET")]), 0, false, true);
    connection.feed(&Server::default().head(1, false, OK).0, 1).unwrap();
    let number = |at: &[u8]| u32::from_be_bytes(at.try_into().unwrap());
    let (kind::SETTINGS, _, 0, settings) = &introduction[0] else { panic!("{introduction:?}") };
    let announced = settings.chunks(6).find(|one| one[..2] == setting::INITIAL_WINDOW_SIZE.to_be_bytes()).unwrap();
    let announced = number(&announced[2..]);
    let mut windows = [announced as usize, 65_535];
    windows[1] += introduction[1..].iter().map(|frame| number(&frame.3) as usize).sum::<usize>();
    let (mut left, mut opened) = (body, [0; 2]);
    while left > 0 {
        let length = left.min(PAYLOAD_LIMIT).min(windows[0]).min(windows[1]);
        assert!(length > 0, "the server waits for ever");
        left -= length;
        connection.feed(&Server::default().data(1, left == 0, &vec![0; length]).0, 1).unwrap();
        windows = windows.map(|window| window - length);
        for (kind, _, stream, payload) in sent(connection.outgoing(|_| &[])) {
            if kind == kind::WINDOW_UPDATE {
                let which = usize::from(stream == 0);
                windows[which] += number(&payload) as usize;
                opened[which] += 1;
            }
        }
        connection.outgoing(|_| &[]).clear();
    }
    assert_eq!(ends(&mut connection), [(0, End::Complete, 200, body as u64)]);
    (announced, opened)
}

#[test]
fn a_server_has_the_window_that_was_asked_for_and_needs_leave_the_more_often_the_smaller_it_is() {
    assert_eq!(sent_within(WINDOW, 1 << 20), (WINDOW, [0, 0]));
    // Half of it at a time, and the last octets end the stream. Frames of 16 KiB do not divide 32 KiB and an octet.
    assert_eq!(sent_within(1 << 16, 1 << 20), (1 << 16, [21, 21]));
    assert_eq!(sent_within(1 << 20, 1 << 20), (1 << 20, [1, 1]));
    let (announced, [of_stream, of_connection]) = sent_within(1, 1000);
    assert_eq!((announced, of_stream, of_connection), (1, 999, 0), "no connection has less than 65535");
    assert!(
        Connection::new(1, 65_535, false).outgoing(|_| &[]).len()
            < Connection::new(1, 65_536, false).outgoing(|_| &[]).len()
    );
}

#[test]
fn a_server_that_has_windows_opened_and_does_not_read_is_given_up() {
    let mut connection = Connection::new(1, 1, false);
    connection.feed(&Server::new(&[]).0, 1).unwrap();
    connection.open(0, &block(&[(":method", "GET")]), 0, false, true);
    connection.feed(&Server::default().head(1, false, OK).0, 1).unwrap();
    let one = Server::default().data(1, false, &[0]);
    let taken = (0..10_000).take_while(|_| connection.feed(&one.0, 1).is_ok()).count();
    assert!((1000..1100).contains(&taken), "{taken}");
}

#[test]
fn windows_are_opened_again_before_they_are_used_up() {
    let mut connection = with_streams(1);
    connection.outgoing(|_| &[]).clear();
    connection.feed(&Server::default().head(1, false, OK).0, 1).unwrap();
    let frame = Server::default().data(1, false, &[0; PAYLOAD_LIMIT]);
    // A little more than half of 2^30 octets.
    for _ in 0..(1 << 29) / PAYLOAD_LIMIT + 1 {
        connection.feed(&frame.0, 1).unwrap();
    }
    let updates: Vec<_> = sent(connection.outgoing(|_| &[])).into_iter().map(|frame| (frame.0, frame.2)).collect();
    assert_eq!(updates, [(kind::WINDOW_UPDATE, 0), (kind::WINDOW_UPDATE, 1)]);
}

/// Whether the connection goes on, which streams ended how, and what was answered.
type Outcome = (Result<(), String>, Vec<(usize, End, u16, u64)>, Vec<u8>);

/// What came of some bytes that arrived in these pieces.
fn outcome(bytes: &[u8], cuts: &[usize]) -> Outcome {
    let mut connection = with_streams(3);
    let mut at = 0;
    let mut result = Ok(());
    for end in cuts.iter().copied().chain([bytes.len()]) {
        if end > at && result.is_ok() {
            result = connection.feed(&bytes[at..end], 5).map_err(|error| error.0);
            at = end;
        }
    }
    let ends = ends(&mut connection);
    (result, ends, connection.outgoing(|_| &[]).clone())
}

fn cuts(length: usize) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..=length, 0..20).prop_map(|mut cuts| {
        cuts.sort_unstable();
        cuts
    })
}

/// Frames that are often right.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![Just(0u32), Just(1), Just(3), Just(5), Just(7)];
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..30),
        Just(block(OK)),
        Just(block(&[(":status", "200"), ("content-length", "4")])),
        Just(b"data".to_vec()),
        Just(0u32.to_be_bytes().to_vec()),
        Just(9u32.to_be_bytes().to_vec()),
        Just(vec![0; 8]),
    ];
    let frame = (0u8..11, prop_oneof![Just(0u8), Just(1), Just(4), Just(5), any::<u8>()], stream, payload);
    proptest::collection::vec(frame, 0..12).prop_map(|frames| {
        let server = Server::default();
        frames.iter().fold(server, |server, (kind, flags, id, payload)| server.frame(*kind, *flags, *id, payload)).0
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn it_does_not_matter_how_bytes_are_cut(
        (bytes, cuts) in frames().prop_flat_map(|bytes| { let cuts = cuts(bytes.len()); (Just(bytes), cuts) })
    ) {
        prop_assert_eq!(outcome(&bytes, &cuts), outcome(&bytes, &[]));
    }

    #[test]
    fn arbitrary_bytes_never_panic_however_they_are_cut(
        (bytes, cuts) in proptest::collection::vec(any::<u8>(), 0..300)
            .prop_flat_map(|bytes| { let cuts = cuts(bytes.len()); (Just(bytes), cuts) })
    ) {
        prop_assert_eq!(outcome(&bytes, &cuts), outcome(&bytes, &[]));
        let _ = Connection::new(1, WINDOW, true).feed(&bytes, 1);
    }
}
