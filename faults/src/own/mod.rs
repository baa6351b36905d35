//! The bench's own server: a thread for each connection, and faults that no packaged server can be talked into.
//!
//! Paths, each for a healthy and a faulty twin that differ in one flag:
//!
//! | path | what it does | fault |
//! |---|---|---|
//! | `/two-writes/N` | head and N bytes of body in two writes | `--nagle`: the second waits for the client's delayed ACK |
//! | `/pause/N` | the same with a millisecond between, so that a proxy passes the writes on one by one | `tcp_nodelay` of the proxy |
//! | `/sleep/US` | waits as for a slow backend | `--at-a-time K`: the others queue |
//! | `/page/N` | N bytes of body in one write | `--handler`: what an application does before, see [`handler`] |
//! | `/critical/US` | short work that needs a lock, in which it blocks for US | `--shared-lock`: one lock for all connections |

mod handler;
mod ticket;

use crate::twin::Handler;
use anyhow::Context;
use clap::Args;
use handler::Worker;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ticket::TicketLock;

/// What the server's process is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct OwnFlags {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    /// Leave Nagle's algorithm on
    #[arg(long)]
    pub(crate) nagle: bool,
    /// Requests served at a time
    #[arg(long)]
    pub(crate) at_a_time: Option<u32>,
    /// One lock for all connections, instead of one for each
    #[arg(long)]
    pub(crate) shared_lock: bool,
    /// What is done for each page
    #[arg(long, value_parser = Handler::parse, default_value = "plain")]
    pub(crate) handler: Handler,
}

/// Serves until it is killed.
pub(crate) fn main(flags: &OwnFlags) -> anyhow::Result<()> {
    let listener = TcpListener::bind(flags.listen).with_context(|| format!("could not listen on {}", flags.listen))?;
    let places = flags.at_a_time.map(|count| Arc::new(Places::new(count)));
    let lock = Arc::new(TicketLock::default());
    let worker = Arc::new(Worker::new(flags.handler));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        stream.set_nodelay(!flags.nagle)?;
        let lock = if flags.shared_lock { Arc::clone(&lock) } else { Arc::default() };
        let (places, worker) = (places.clone(), Arc::clone(&worker));
        // A connection without a thread is closed; the others go on.
        let _ = std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || serve(stream, places.as_deref(), &lock, &worker));
    }
    Ok(())
}

/// Requests are without bodies, and come one after the other: that is what load generators send.
fn serve(mut stream: TcpStream, places: Option<&Places>, lock: &TicketLock, worker: &Worker) -> std::io::Result<()> {
    const HEAD_LIMIT: usize = 16 << 10;
    let own_lock = Mutex::new(());
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 || head.len() > HEAD_LIMIT {
                return Ok(());
            }
            head.extend_from_slice(&buffer[..bytes]);
        }
        let closes = head.windows(17).any(|window| window.eq_ignore_ascii_case(b"connection: close"));
        let path = head.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let answer = Answer::parse(&String::from_utf8_lossy(path));
        head.clear();
        {
            let _place = places.map(Places::take);
            if matches!(answer, Answer::Page { .. }) {
                worker.work(&own_lock);
            }
            answer.give(&mut stream, lock)?;
        }
        if closes {
            return Ok(());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    TwoWrites { bytes: usize, pause: Duration },
    Page { bytes: usize },
    Sleep { us: u64 },
    Critical { us: u64 },
    NotFound,
}

impl Answer {
    fn parse(path: &str) -> Answer {
        // A query is ignored.
        let path = path.split('?').next().unwrap_or_default();
        let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
        let (name, number) = (parts.next(), parts.next().and_then(|number| number.parse().ok()));
        match (name, number) {
            (Some("two-writes"), Some(bytes @ 1..=0xf_ffff)) => {
                Answer::TwoWrites { bytes: bytes as usize, pause: Duration::ZERO }
            }
            (Some("pause"), Some(bytes @ 1..=0xf_ffff)) => {
                Answer::TwoWrites { bytes: bytes as usize, pause: Duration::from_millis(1) }
            }
            (Some("page"), Some(bytes @ 1..=0xff_ffff)) => Answer::Page { bytes: bytes as usize },
            (Some("sleep"), Some(us)) => Answer::Sleep { us },
            (Some("critical"), Some(us)) => Answer::Critical { us },
            _ => Answer::NotFound,
        }
    }

    fn give(self, stream: &mut TcpStream, lock: &TicketLock) -> std::io::Result<()> {
        match self {
            Answer::TwoWrites { bytes, pause } => {
                stream.write_all(head("200 OK", bytes).as_bytes())?;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                stream.write_all(&vec![b'x'; bytes])
            }
            Answer::Page { bytes } => page(stream, bytes),
            Answer::Sleep { us } => {
                std::thread::sleep(Duration::from_micros(us));
                page(stream, USUAL_BYTES)
            }
            Answer::Critical { us } => {
                {
                    let _held = lock.lock();
                    burn(Duration::from_micros(20));
                    std::thread::sleep(Duration::from_micros(us));
                }
                page(stream, USUAL_BYTES)
            }
            Answer::NotFound => stream.write_all(head("404 Not Found", 0).as_bytes()),
        }
    }
}

const USUAL_BYTES: usize = 612;

fn page(stream: &mut TcpStream, bytes: usize) -> std::io::Result<()> {
    let mut answer = head("200 OK", bytes).into_bytes();
    answer.resize(answer.len() + bytes, b'x');
    stream.write_all(&answer)
}

fn head(status: &str, bytes: usize) -> String {
    format!("HTTP/1.1 {status}\r\nServer: own\r\nContent-Type: text/plain\r\nContent-Length: {bytes}\r\n\r\n")
}

fn burn(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// A counted number of places; who finds none waits asleep.
struct Places {
    free: Mutex<u32>,
    one_is_free: Condvar,
}

impl Places {
    fn new(count: u32) -> Places {
        Places { free: Mutex::new(count), one_is_free: Condvar::new() }
    }

    fn take(&self) -> Place<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.one_is_free.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Place(self)
    }
}

struct Place<'a>(&'a Places);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.one_is_free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(Answer::parse("/two-writes/300?n=1"), Answer::TwoWrites { bytes: 300, pause: Duration::ZERO });
        assert_eq!(Answer::parse("/page/2000000"), Answer::Page { bytes: 2_000_000 });
        assert_eq!(Answer::parse("/sleep/5000"), Answer::Sleep { us: 5000 });
        assert_eq!(Answer::parse("/critical/50"), Answer::Critical { us: 50 });
        for wrong in ["", "/", "/sleep", "/sleep/x", "/two-writes/0", "/two-writes/99999999", "*"] {
            assert_eq!(Answer::parse(wrong), Answer::NotFound, "{wrong}");
        }
    }

    #[test]
    fn no_more_than_the_places_there_are() {
        let places = Places::new(2);
        let (one, _two) = (places.take(), places.take());
        assert_eq!(*places.free.lock().unwrap(), 0);
        drop(one);
        assert_eq!(*places.free.lock().unwrap(), 1);
    }
}
