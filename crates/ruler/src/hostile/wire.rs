//! A liar's end of a connection: bytes, requests, frames and TLS, none of which has to be in order.

use super::act::On;
use super::guise::Guise;
use rustls::ServerConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a liar that waits looks whether it is to end.
const TICK: Duration = Duration::from_millis(50);
/// What is said is gathered up to this, so that a flood of small things is a flood.
pub(super) const ENOUGH_BYTES: usize = 64 << 10;
/// Longest head that it listens to.
const LONGEST_HEARD_BYTES: usize = 1 << 20;
/// What a client of HTTP/2 begins with (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;

pub(super) struct Wire {
    socket: TcpStream,
    tls: Option<ServerConnection>,
    /// Said, and not sent yet.
    out: Vec<u8>,
    /// Received, and not listened to yet.
    heard: Vec<u8>,
    /// The last request.
    last: Vec<u8>,
    has_preface: bool,
    stream: u32,
    next_stream: u32,
    sent_bytes: u64,
    paused_at_bytes: u64,
    numbers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Wire {
    pub(super) fn new(socket: TcpStream, numbers: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TICK))?;
        socket.set_write_timeout(Some(TICK))?;
        Ok(Self {
            socket,
            tls: None,
            out: Vec::new(),
            heard: Vec::new(),
            last: Vec::new(),
            has_preface: false,
            stream: 1,
            next_stream: 0,
            sent_bytes: 0,
            paused_at_bytes: 0,
            numbers,
            stop,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.socket.local_addr().map_or(0, |address| address.port())
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Pauses once for each piece that was sent since the last pause.
    pub(super) fn slow_down(&mut self, pause: Duration) -> io::Result<()> {
        if self.sent_bytes < self.paused_at_bytes + ENOUGH_BYTES as u64 {
            return Ok(());
        }
        self.paused_at_bytes = self.sent_bytes;
        self.pause(pause)
    }

    pub(super) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        if self.out.len() >= ENOUGH_BYTES { self.flush() } else { self.goes_on() }
    }

    /// Sends what was said.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        if self.tls.is_none() {
            return self.send(&out);
        }
        let mut left = &out[..];
        while !left.is_empty() {
            let Some(tls) = &mut self.tls else { return Ok(()) };
            let taken = tls.writer().write(left)?;
            left = &left[taken..];
            self.send_records()?;
        }
        self.send_records()
    }

    /// Sends bytes as they are, behind what was said.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.send(bytes)
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.sent_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) => self.has_time(error)?,
            }
        }
        Ok(())
    }

    fn send_records(&mut self) -> io::Result<()> {
        loop {
            let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) else { return Ok(()) };
            match tls.write_tls(&mut self.socket) {
                Ok(written) => self.sent_bytes += written as u64,
                Err(error) => self.has_time(error)?,
            }
        }
    }

    /// Says something in a record of its own, with which something is done on its way.
    pub(super) fn record(&mut self, bytes: &[u8], spoil: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.flush()?;
        let mut record = Vec::new();
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            while tls.wants_write() {
                tls.write_tls(&mut record)?;
            }
        }
        spoil(&mut record);
        self.raw(&record)
    }

    pub(super) fn secure(&mut self, guise: Guise) -> io::Result<()> {
        self.flush()?;
        self.tls = Some(ServerConnection::new(guise.config()?).map_err(io::Error::other)?);
        while self.is_handshaking() {
            self.send_records()?;
            if self.is_handshaking() {
                self.receive()?;
            }
        }
        self.send_records()
    }

    fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Hears the client's hello and answers half of what there is to answer.
    pub(super) fn half_secure(&mut self, guise: Guise) -> io::Result<()> {
        let mut tls = ServerConnection::new(guise.config()?).map_err(io::Error::other)?;
        while !tls.wants_write() {
            match tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => tls.process_new_packets().map(|_| ()).map_err(io::Error::other)?,
                Err(error) => self.has_time(error)?,
            }
        }
        let mut flight = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut flight)?;
        }
        flight.truncate(flight.len() / 2);
        self.raw(&flight)
    }

    pub(super) fn new_keys(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.refresh_traffic_keys().map_err(io::Error::other)?;
        }
        self.send_records()
    }

    pub(super) fn farewell(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.send_records()
    }

    /// Waits for bytes, and adds them to what was heard.
    fn receive(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 << 10];
        loop {
            let read = match &mut self.tls {
                None => self.socket.read(&mut piece),
                Some(tls) => match tls.read_tls(&mut self.socket) {
                    Ok(0) => Ok(0),
                    Ok(_) => {
                        if let Err(error) = tls.process_new_packets() {
                            let _ = self.send_records();
                            return Err(io::Error::other(error));
                        }
                        let mut all = Vec::new();
                        // That nothing is there now is no error here.
                        let _ = tls.reader().read_to_end(&mut all);
                        self.heard.extend_from_slice(&all);
                        return self.send_records();
                    }
                    Err(error) => Err(error),
                },
            };
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.heard.extend_from_slice(&piece[..read]);
                    return Ok(());
                }
                Err(error) => self.has_time(error)?,
            }
        }
    }

    /// A request's head, which is taken away.
    pub(super) fn hear(&mut self) -> io::Result<&[u8]> {
        self.flush()?;
        let end = loop {
            if let Some(at) = self.heard.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if self.heard.len() > LONGEST_HEARD_BYTES {
                return Err(ErrorKind::InvalidData.into());
            }
            self.receive()?;
        };
        self.last = self.heard.drain(..end).collect();
        Ok(&self.last)
    }

    /// Whether the next that the client says is the beginning of TLS.
    pub(super) fn hears_tls(&mut self) -> io::Result<bool> {
        self.flush()?;
        while self.heard.is_empty() {
            let mut first = [0];
            match self.socket.peek(&mut first) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(first[0] == 22),
                Err(error) => self.has_time(error)?,
            }
        }
        Ok(false)
    }

    pub(super) fn echo(&mut self) -> io::Result<()> {
        let last = self.last.clone();
        self.say(&last)
    }

    pub(super) fn hear_stream(&mut self) -> io::Result<()> {
        self.flush()?;
        if !self.has_preface {
            while self.heard.len() < PREFACE.len() {
                self.receive()?;
            }
            if !self.heard.starts_with(PREFACE) {
                return Err(ErrorKind::InvalidData.into());
            }
            self.heard.drain(..PREFACE.len());
            self.has_preface = true;
        }
        loop {
            while self.heard.len() < 9 {
                self.receive()?;
            }
            let length =
                usize::from(self.heard[0]) << 16 | usize::from(self.heard[1]) << 8 | usize::from(self.heard[2]);
            while self.heard.len() < 9 + length {
                self.receive()?;
            }
            let frame: Vec<u8> = self.heard.drain(..9 + length).collect();
            match (frame[3], frame[4] & ACK) {
                (SETTINGS, 0) => {
                    self.frame(SETTINGS, ACK, On::Connection, 0, b"")?;
                    self.flush()?;
                }
                (HEADERS, _) => {
                    self.stream = u32::from_be_bytes([frame[5] & 0x7f, frame[6], frame[7], frame[8]]);
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    pub(super) fn frame(&mut self, kind: u8, flags: u8, on: On, length: u32, payload: &[u8]) -> io::Result<()> {
        let stream = match on {
            On::Connection => 0,
            On::Asked => self.stream,
            On::Stream(stream) => stream,
            On::Next => {
                self.next_stream += 2;
                self.next_stream
            }
        };
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.say(&frame)
    }

    pub(super) fn pause(&mut self, time: Duration) -> io::Result<()> {
        self.flush()?;
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            std::thread::sleep(left.min(TICK));
            self.goes_on()?;
        }
        Ok(())
    }

    pub(super) fn deaf(&mut self) -> io::Result<()> {
        self.flush()?;
        loop {
            std::thread::sleep(TICK);
            self.goes_on()?;
        }
    }

    /// Reads, and says nothing, until the client goes.
    pub(super) fn hold(&mut self) -> io::Result<()> {
        self.flush()?;
        self.tls = None;
        loop {
            self.heard.clear();
            self.receive()?;
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.socket.shutdown(Shutdown::Write)
    }

    pub(super) fn close(&mut self) -> io::Result<()> {
        self.flush()?;
        // What was not read would make the end a reset.
        self.socket.shutdown(Shutdown::Write)?;
        let mut piece = [0; 4096];
        let until = Instant::now() + TICK;
        while Instant::now() < until && self.socket.read(&mut piece).is_ok_and(|read| read > 0) {}
        Err(ErrorKind::ConnectionAborted.into())
    }

    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.flush()?;
        rustix::net::sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO))?;
        Err(ErrorKind::ConnectionAborted.into())
    }

    fn goes_on(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Whether an error only says that it is time to look at the stop.
    fn has_time(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => self.goes_on(),
            _ => Err(error),
        }
    }
}
