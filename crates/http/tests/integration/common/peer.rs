//! One end of an HTTP/2 connection that does what a test says, frame by frame.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A server's end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    /// Body bytes so far of the streams that were opened.
    bodies: HashMap<u32, u64>,
}

/// What a client may do that a test may want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A request's head; whether no body follows.
    Opened(u32, bool),
    /// A piece of a body; whether it was the last one.
    Body(u32, bool),
    Reset(u32, u32),
    /// The client closes the connection for this reason.
    GoAway(u32),
}

impl Peer {
    /// Reads the client's preface and introduces itself.
    pub(crate) fn meet(mut stream: TcpStream, settings: &[(u16, u32)]) -> Option<Self> {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).ok()?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut peer = Self { stream, bodies: HashMap::new() };
        let payload: Vec<u8> =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        peer.frame(SETTINGS, 0, 0, &payload).then_some(peer)
    }

    /// The next thing that the client does; `None`: it has closed the connection, or was silent for too long.
    pub(crate) fn hear(&mut self) -> Option<Heard> {
        loop {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header).ok()?;
            let [a, b, c, kind, flags, id @ ..] = header;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload).ok()?;
            let id = u32::from_be_bytes(id);
            match kind {
                HEADERS => {
                    assert_ne!(flags & END_HEADERS, 0, "small requests have one frame");
                    self.bodies.insert(id, 0);
                    return Some(Heard::Opened(id, flags & END_STREAM != 0));
                }
                DATA => {
                    *self.bodies.get_mut(&id).unwrap() += payload.len() as u64;
                    return Some(Heard::Body(id, flags & END_STREAM != 0));
                }
                RST_STREAM => return Some(Heard::Reset(id, u32::from_be_bytes(payload.try_into().unwrap()))),
                GOAWAY => return Some(Heard::GoAway(u32::from_be_bytes(payload[4..8].try_into().unwrap()))),
                _ => {}
            }
        }
    }

    /// The next request's stream, once its body is there.
    pub(crate) fn request(&mut self) -> Option<u32> {
        loop {
            if let Heard::Opened(id, true) | Heard::Body(id, true) = self.hear()? {
                return Some(id);
            }
        }
    }

    /// So many requests.
    pub(crate) fn requests(&mut self, count: usize) -> Option<Vec<u32>> {
        (0..count).map(|_| self.request()).collect()
    }

    pub(crate) fn body_bytes(&self, id: u32) -> u64 {
        self.bodies[&id]
    }

    /// Answers 200 and two bytes.
    pub(crate) fn answer(&mut self, id: u32) -> bool {
        self.head(id, 200) && self.frame(DATA, END_STREAM, id, b"ok")
    }

    /// Answers with a status and nothing else.
    pub(crate) fn answer_bare(&mut self, id: u32, status: u16) -> bool {
        self.frame(HEADERS, END_HEADERS | END_STREAM, id, &status_field(status))
    }

    pub(crate) fn head(&mut self, id: u32, status: u16) -> bool {
        self.frame(HEADERS, END_HEADERS, id, &status_field(status))
    }

    pub(crate) fn data(&mut self, id: u32, bytes: &[u8]) -> bool {
        self.frame(DATA, 0, id, bytes)
    }

    pub(crate) fn reset(&mut self, id: u32, why: u32) -> bool {
        self.frame(RST_STREAM, 0, id, &why.to_be_bytes())
    }

    pub(crate) fn goaway(&mut self, last: u32, why: u32) -> bool {
        self.frame(GOAWAY, 0, 0, &[last.to_be_bytes(), why.to_be_bytes()].concat())
    }

    /// Lets the client send so much more, on a stream or (0) on the connection.
    pub(crate) fn open_window(&mut self, id: u32, bytes: u32) -> bool {
        self.frame(WINDOW_UPDATE, 0, id, &bytes.to_be_bytes())
    }

    /// The same end for another thread, which may only speak.
    pub(crate) fn second(&self) -> Self {
        Self { stream: self.stream.try_clone().unwrap(), bodies: HashMap::new() }
    }

    /// The connection below.
    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Whether the client may still have got it.
    fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> bool {
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        let [s, t, u, v] = id.to_be_bytes();
        let frame = [&[a, b, c, kind, flags, s, t, u, v], payload].concat();
        self.stream.write_all(&frame).is_ok()
    }
}

/// `:status` as a literal that enters no table (RFC 7541, 6.2.2), its name that of the static table's entry 8.
fn status_field(status: u16) -> Vec<u8> {
    [&[0x08, 3], status.to_string().as_bytes()].concat()
}
