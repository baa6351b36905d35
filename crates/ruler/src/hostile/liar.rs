//! A liar at work.

use super::act::{On, perform};
use super::guise::Guise;
use super::wire::Wire;
use super::{Family, Lie, Speaks};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// A server that lies on a port of 127.0.0.1 until it is dropped.
#[derive(Debug)]
pub struct Liar {
    address: SocketAddr,
    lie: &'static Lie,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

/// What all connections of a liar share.
struct Shared {
    lie: &'static Lie,
    /// Connections that are still to be served honestly.
    honest: AtomicU32,
    numbers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Liar {
    /// Starts it. The first `honest` connections on which something is asked are served as they ought to be: by them a
    /// client comes to trust it.
    pub fn start(lie: &'static Lie, honest: u32) -> io::Result<Liar> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let shared =
            Arc::new(Shared { lie, honest: AtomicU32::new(honest), numbers: Arc::default(), stop: Arc::clone(&stop) });
        let acceptor = thread::Builder::new().name("liar".into()).spawn(move || accept(&listener, &shared))?;
        Ok(Liar { address, lie, stop, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Its address, as a client is told it.
    pub fn url(&self) -> String {
        let scheme = match self.lie.speaks {
            Speaks::Http => "http",
            Speaks::Https => "https",
        };
        format!("{scheme}://{}/", self.address)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes whoever accepts. Connections look at the stop by themselves.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok((socket, _)) = accepted else { continue };
        let shared = Arc::clone(shared);
        // Where no thread is to be had the connection ends, which is a lie as good as others.
        let _ = thread::Builder::new().name("liar-connection".into()).spawn(move || {
            // An error is a client that has gone, or an end that was one of the acts.
            let _ = serve(socket, &shared);
        });
    }
}

fn serve(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut wire = Wire::new(socket, Arc::clone(&shared.numbers), Arc::clone(&shared.stop))?;
    if take_one(&shared.honest) {
        let mut has_answered = false;
        let ended = honest(shared.lie, &mut wire, &mut has_answered);
        if !has_answered {
            // A connection that only tried whether somebody is there.
            shared.honest.fetch_add(1, Ordering::Relaxed);
        }
        return ended;
    }
    perform(shared.lie.acts, &mut wire)?;
    wire.hold()
}

/// Takes one away where there is one.
fn take_one(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Serves as it ought to be, until the client goes.
fn honest(lie: &Lie, wire: &mut Wire, has_answered: &mut bool) -> io::Result<()> {
    const HEADERS: u8 = 1;
    const DATA: u8 = 0;
    const SETTINGS: u8 = 4;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    let is_http2 = lie.asks.contains(&"--http2");
    let over_tls = lie.speaks == Speaks::Https && lie.family != Family::Proxy;
    if over_tls {
        wire.secure(if is_http2 { Guise::Http2 } else { Guise::Plain })?;
    }
    if is_http2 {
        wire.frame(SETTINGS, 0, On::Connection, 0, b"")?;
        loop {
            wire.hear_stream()?;
            // `:status: 200`, the eighth entry of the static table (RFC 7541, appendix A).
            wire.frame(HEADERS, END_HEADERS, On::Asked, 1, b"\x88")?;
            wire.frame(DATA, END_STREAM, On::Asked, 2, b"ok")?;
            wire.flush()?;
            *has_answered = true;
        }
    }
    loop {
        let request = wire.hear()?;
        if request.starts_with(b"CONNECT ") {
            wire.say(b"HTTP/1.1 200 Go on\r\n\r\n")?;
            if wire.hears_tls()? {
                wire.secure(Guise::Plain)?;
            }
            continue;
        }
        let is_head = request.starts_with(b"HEAD ");
        wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")?;
        if !is_head {
            wire.say(b"ok")?;
        }
        wire.flush()?;
        *has_answered = true;
    }
}
