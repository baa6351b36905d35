//! A page over HTTP, for scrapers: one thread that listens, and few, short-lived ones that answer.

use super::prometheus;
use super::shared::{Shared, step_back};
use crate::aside;
use crate::outcome::Usage;
use anyhow::Context;
use duel_model::sanitize_line;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Answers at a time: a scraper or two, and somebody who looks.
const MOST_ANSWERS: usize = 8;
/// Longest request head.
const LONGEST_HEAD_BYTES: usize = 8 << 10;
/// Time for a whole request, and then for each part of the answer; a scraper that stalls is given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves the page until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// What was typed for `--metrics`: `HOST:PORT`, or a port on this machine's own address.
pub(super) fn address(typed: &str) -> Result<(String, u16), Usage> {
    let wrong = || {
        Usage(format!("--metrics takes HOST:PORT or a PORT, such as 127.0.0.1:9464; got '{}'", sanitize_line(typed)))
    };
    let (host, port) = typed.rsplit_once(':').unwrap_or(("127.0.0.1", typed));
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().map_err(|_| wrong())?;
    if host.is_empty() || typed.contains('/') { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

impl Listener {
    /// Listens from now on.
    pub(super) fn open(typed: &str, figures: Shared) -> anyhow::Result<Self> {
        let (host, port) = address(typed)?;
        let cannot = || format!("cannot serve metrics on {}", sanitize_line(typed));
        let addresses: Vec<SocketAddr> = (host.as_str(), port).to_socket_addrs().with_context(cannot)?.collect();
        let listener = TcpListener::bind(addresses.as_slice()).with_context(cannot)?;
        let address = listener.local_addr().with_context(cannot)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread =
            aside::spawn("metrics", || (), move || listen(&listener, &figures, &stopped)).with_context(cannot)?;
        Ok(Self { address, stop, thread })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread waits for a connection: here is one. It cannot be interrupted otherwise without waking up all the time.
        let own = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let woken = TcpStream::connect_timeout(&SocketAddr::new(own, self.address.port()), PATIENCE);
        // If it could not be woken, or was set aside, it ends with the process.
        let until = Instant::now() + PATIENCE;
        while woken.is_ok() && !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn listen(listener: &TcpListener, figures: &Shared, stop: &AtomicBool) {
    step_back();
    let answering = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(connection) = connection else {
            // Out of descriptors, perhaps: trying at once again would be busy waiting.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        // Whoever comes while so many are served finds the connection closed, and comes again.
        if answering.fetch_add(1, Ordering::Relaxed) >= MOST_ANSWERS {
            answering.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (figures, done, broke_down) = (figures.clone(), Arc::clone(&answering), Arc::clone(&answering));
        let answer = move || {
            step_back();
            let _ = answer(connection, &figures);
            done.fetch_sub(1, Ordering::Relaxed);
        };
        let farewell = move || {
            broke_down.fetch_sub(1, Ordering::Relaxed);
        };
        if aside::spawn("scrape", farewell, answer).is_err() {
            answering.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Reads one request and answers it.
fn answer(mut connection: TcpStream, figures: &Shared) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE;
    connection.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = head(&mut connection, until)? else {
        return reply(&mut connection, "400 Bad Request", "text/plain", "no request\n", true);
    };
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let with_body = method != "HEAD";
    // Proxies ask in absolute form.
    let path = path.strip_prefix("http://").map_or(path, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => {
            let page = prometheus::page(&figures.copied());
            reply(&mut connection, "200 OK", prometheus::CONTENT_TYPE, &page, with_body)
        }
        ("GET" | "HEAD", _) => reply(&mut connection, "404 Not Found", "text/plain", "see /metrics\n", with_body),
        _ => reply(&mut connection, "405 Method Not Allowed", "text/plain", "GET only\n", true),
    }
}

/// The first line of a request, once its whole head is there.
fn head(connection: &mut TcpStream, until: Instant) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() > LONGEST_HEAD_BYTES {
            return Ok(None);
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut part)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    Ok(std::str::from_utf8(line).ok().filter(|line| line.contains(" HTTP/1.")).map(str::to_owned))
}

fn reply(connection: &mut TcpStream, status: &str, kind: &str, body: &str, with_body: bool) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    if with_body {
        connection.write_all(body.as_bytes())?;
    }
    connection.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(address: SocketAddr, request: &[u8]) -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(request).unwrap();
        let mut text = String::new();
        let _ = connection.read_to_string(&mut text);
        text
    }

    #[test]
    fn addresses() {
        for (typed, host, port) in [
            ("9464", "127.0.0.1", 9464),
            ("0.0.0.0:1", "0.0.0.0", 1),
            ("[::1]:80", "::1", 80),
            ("localhost:0", "localhost", 0),
        ] {
            assert_eq!(address(typed).unwrap(), (host.to_owned(), port));
        }
        for typed in ["", ":", "x", "x:", "x:y", ":9464", "1:70000", "http://x:1/"] {
            assert!(address(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_scraper_is_answered_and_nonsense_is_not() {
        let listener = Listener::open("0", Shared::default()).unwrap();
        let at = listener.address();
        let page = asked(at, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("\r\n\r\n# HELP duel_info "), "{page}");
        let page = asked(at, b"GET http://h:1/metrics?x HTTP/1.1\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && !page.contains("duel_info{run=\"\""), "{page}");
        let head = asked(at, b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\r\n\r\n", "400"),
            (b"nonsense\r\n\r\n", "400"),
        ] {
            let said = asked(at, request);
            assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
        }
    }

    #[test]
    fn those_who_stall_hold_up_neither_others_nor_the_end() {
        let listener = Listener::open("127.0.0.1:0", Shared::default()).unwrap();
        let at = listener.address();
        let stalling: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        assert!(asked(at, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        // A head without an end is cut off.
        let mut endless = TcpStream::connect(at).unwrap();
        let _ = endless.write_all(&vec![b'x'; 64 << 10]);
        drop(listener);
        assert!(TcpStream::connect(at).is_err(), "nobody listens any more");
        drop(stalling);
    }

    #[test]
    fn a_port_that_is_taken_is_an_error() {
        let taken = Listener::open("0", Shared::default()).unwrap();
        let error = Listener::open(&taken.address().to_string(), Shared::default()).unwrap_err();
        assert!(error.to_string().starts_with("cannot serve metrics on 127.0.0.1:"), "{error}");
    }
}
