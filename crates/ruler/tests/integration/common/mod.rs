//! A client as plain as can be: what it sees is what was sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use duel_ruler::{Config, Ruler, Truth};

/// Bounds a test that would hang; it says nothing about speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn plain() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

pub(crate) fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub(crate) fn settled(ruler: &Ruler) -> Truth {
    let truth = ruler.settled(PATIENCE);
    assert_eq!(truth.in_flight, 0);
    assert_eq!(truth.requests, truth.responses + truth.broken + truth.abandoned);
    truth
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Sends `head` (without its empty line) and reads until the server closes.
pub(crate) fn raw(addr: SocketAddr, head: &str) -> Vec<u8> {
    let mut stream = connect(addr);
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

pub(crate) fn ask(addr: SocketAddr, head: &str) -> Answer {
    taken_apart(&raw(addr, head))
}

pub(crate) fn get(addr: SocketAddr, path: &str) -> Answer {
    ask(addr, &format!("GET {path} HTTP/1.1\r\nHost: ruler"))
}

pub(crate) fn taken_apart(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).expect("a status").parse().unwrap();
    Answer { status, head, body: bytes[end..].to_vec() }
}

/// Reads one answer with a Content-Length from a connection that stays open.
pub(crate) fn read_one(stream: &mut impl Read) -> Answer {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    let mut answer = taken_apart(&bytes);
    let len = answer.header("Content-Length").map_or(0, |len| len.parse().unwrap());
    answer.body = vec![0; len];
    stream.read_exact(&mut answer.body).unwrap();
    answer
}
