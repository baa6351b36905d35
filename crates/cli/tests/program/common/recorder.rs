//! A server that remembers what it was asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Answers every request in the same way, until the test's process ends.
#[derive(Debug)]
pub(crate) struct Recorder {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request as it came, and the number of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// Method and target.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1")).unwrap()
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Recorder {
    /// `answer` is a whole response.
    pub(crate) fn start(answer: impl Into<Vec<u8>>) -> Self {
        Self::in_writes(vec![answer.into()])
    }

    /// The parts of a response are written one after the other, on a socket that delays small segments (Nagle).
    pub(crate) fn in_writes(answer: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, answer) = (Arc::default(), Arc::new(answer));
        let all: Arc<Mutex<Vec<Asked>>> = Arc::clone(&asked);
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, connection, &all, &answer));
            }
        });
        Self { address, asked }
    }

    /// One that says nothing but 200.
    pub(crate) fn plain() -> Self {
        Self::start("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What was asked since the last call.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn serve(mut stream: TcpStream, connection: usize, all: &Mutex<Vec<Asked>>, answer: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let mut asked = Asked { connection, head, body: Vec::new() };
            let length: usize = asked.field("Content-Length").map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                asked.body = bytes[end + 4..end + 4 + length].to_vec();
                bytes.drain(..end + 4 + length);
                all.lock().unwrap().push(asked);
                if answer.iter().any(|part| stream.write_all(part).is_err()) {
                    return;
                }
                continue;
            }
        }
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}
