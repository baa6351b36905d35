//! `duel net serve`: the other end of network work.
//!
//! A thread for each connection, since what they do is copy bytes. Everything is bounded: how many connections there are, how long
//! each may say nothing, how long it may last, what it may ask for. Nothing is sent to anybody who has not asked for it on a
//! connection of its own, so that nobody can have others flooded: datagrams are counted, and sent back only where a link is
//! watched, to the address that the connection came from.

mod blocks;
mod datagrams;
mod exchange;
#[cfg(test)]
mod tests;

use crate::protocol::{CONGESTION_BYTES, HELLO_BYTES, Hello, Op, Refusal, VERSION, Welcome};
use crate::socket::Options;
use duel_load::WorkloadError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a server lets others do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most connections at a time.
    pub connections: u32,
    /// Longest time in which a connection says nothing, or takes nothing.
    pub idle: Duration,
    /// Longest time that a connection may last.
    pub lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, idle: Duration::from_secs(120), lifetime: Duration::from_secs(3600) }
    }
}

/// How long whoever connects may take to say what it wants.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// So many more connections are told that there is no room, at a time; those beyond are closed without a word.
const REFUSED_AT_A_TIME: u32 = 16;
/// How often the loop that takes connections looks whether it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// What is sent: so that neither compression on the way nor pages of zeros help. One for the process.
const PAYLOAD_BYTES: usize = 256 << 10;

/// Counts since the server began.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections under way.
    open: AtomicU32,
    /// Connections that were served.
    pub served: AtomicU64,
    /// Those that spoke something else, or said nothing in time.
    pub strangers: AtomicU64,
    /// Those that there was no room for.
    pub refused: AtomicU64,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    limits: Limits,
    counts: Arc<Counts>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn listen(at: SocketAddr, limits: Limits) -> Result<Self, WorkloadError> {
        let listener = listener(at).map_err(|error| {
            WorkloadError(match error.kind() {
                io::ErrorKind::AddrInUse => {
                    format!("{at} is in use; name another port with --listen, or end what listens there")
                }
                io::ErrorKind::AddrNotAvailable => format!("{at} is no address of this machine"),
                io::ErrorKind::PermissionDenied => {
                    format!("listening on {at} is not permitted; ports below 1024 need root")
                }
                _ => format!("cannot listen on {at}: {error}"),
            })
        })?;
        Ok(Self { listener, limits, counts: Arc::default() })
    }

    /// Listens at all addresses of this machine, of both families where it has both.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn listen_everywhere(port: u16, limits: Limits) -> Result<Self, WorkloadError> {
        let [v6, v4] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()].map(|ip| SocketAddr::new(ip, port));
        // Without IPv6 there is no such socket, or no such address.
        let has_v6 = !matches!(
            listener(SocketAddr::new(v6.ip(), 0)).map_err(|error| rustix::io::Errno::from_io_error(&error)),
            Err(Some(rustix::io::Errno::AFNOSUPPORT | rustix::io::Errno::ADDRNOTAVAIL))
        );
        Self::listen(if has_v6 { v6 } else { v4 }, limits)
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it has counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Serves until it is to stop. Connections under way end with the process, or when their clients end them.
    ///
    /// # Errors
    ///
    /// The system refuses to wait for connections.
    pub fn serve(&self, stop: &AtomicBool) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let payload: Arc<[u8]> = payload(PAYLOAD_BYTES).into();
        while !stop.load(Ordering::Relaxed) {
            match poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.take(stream, &payload),
                // Nobody is there any more, or there are no descriptors left: then a pause lets some be closed.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    fn take(&self, stream: TcpStream, payload: &Arc<[u8]>) {
        let open = self.counts.open.fetch_add(1, Ordering::Relaxed);
        let guest = Guest { counts: Arc::clone(&self.counts) };
        let has_room = open < self.limits.connections;
        if open >= self.limits.connections.saturating_add(REFUSED_AT_A_TIME) {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (limits, payload) = (self.limits, Arc::clone(payload));
        let serve = move || {
            // How a connection ends is its client's to tell: there is nobody here to hear of it.
            let _ = serve(stream, has_room, &limits, &payload, &guest.counts);
        };
        // Without a thread, the connection is closed: both are dropped with what could not be started.
        let _ = std::thread::Builder::new().name("net-serve".into()).stack_size(256 << 10).spawn(serve);
    }
}

/// Counts a connection as long as it lasts.
struct Guest {
    counts: Arc<Counts>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is served, and the clock that bounds it.
struct Served<'a> {
    stream: TcpStream,
    hello: Hello,
    payload: &'a [u8],
    idle: Duration,
    until: Instant,
}

impl Served<'_> {
    /// Whether it has lasted for as long as it may.
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Sends all of it, unless its time is over before: then it is `false`. A peer that takes a little now and then would hold us for
    /// ever otherwise, since each write may take as long as a connection may be silent.
    fn send(&self, mut bytes: &[u8]) -> io::Result<bool> {
        loop {
            match (&self.stream).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if bytes.is_empty() {
                return Ok(true);
            }
            if self.is_over() {
                return Ok(false);
            }
        }
    }

    /// Sends so many bytes, which begin with these and go on with the payload, unless its time is over before.
    fn send_block(&self, first: &[u8], length: usize) -> io::Result<bool> {
        let mut left = length - first.len();
        let mut is_whole = self.send(first)?;
        while is_whole && left > 0 {
            let part = left.min(self.payload.len());
            is_whole = !self.is_over() && self.send(&self.payload[..part])?;
            left -= part;
        }
        Ok(is_whole)
    }
}

fn serve(mut stream: TcpStream, has_room: bool, limits: &Limits, payload: &[u8], counts: &Counts) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let hello = match read_hello(&mut stream) {
        Ok(hello) => hello,
        Err(refusal) => {
            counts.strangers.fetch_add(1, Ordering::Relaxed);
            if refusal != Refusal::Foreign {
                answer(&mut stream, Err(refusal), 0)?;
            }
            return Ok(());
        }
    };
    if !has_room {
        counts.refused.fetch_add(1, Ordering::Relaxed);
        return answer(&mut stream, Err(Refusal::Full), 0);
    }
    let options = Options {
        window: hello.window,
        segment: 0,
        delays: hello.delays,
        congestion: hello.congestion_name().unwrap_or_default().to_owned(),
    };
    if !may_set(&stream, &options.congestion) || options.set_on(SockRef::from(&stream)).is_err() {
        return answer(&mut stream, Err(Refusal::Option), 0);
    }
    // Whether its time is over is asked when something has come or was taken: that is waited for no longer than it may last.
    let longest = limits.idle.min(limits.lifetime);
    stream.set_read_timeout(Some(longest))?;
    stream.set_write_timeout(Some(longest))?;
    let until = Instant::now() + limits.lifetime;
    counts.served.fetch_add(1, Ordering::Relaxed);
    if hello.op.has_datagrams() {
        return datagrams::serve(Served { stream, hello, payload, idle: limits.idle, until });
    }
    answer(&mut stream, Ok(()), 0)?;
    let served = Served { stream, hello, payload, idle: limits.idle, until };
    match hello.op {
        Op::Bulk => blocks::take(served),
        Op::BulkReverse => blocks::give(served),
        Op::Rr => exchange::serve(served),
        // Who closes first keeps the port for a minute: that is to be the server, which has one for all.
        Op::Connect => served.stream.shutdown(std::net::Shutdown::Write),
        Op::Udp | Op::Watch => Ok(()),
    }
}

/// Whether a stranger may choose this congestion control: the one that the connection has, or one that the system lets everybody
/// choose. The kernel itself does not ask of root, for whom it even loads modules.
fn may_set(stream: &TcpStream, congestion: &str) -> bool {
    #[cfg(target_os = "linux")]
    {
        let has = SockRef::from(stream).tcp_congestion().unwrap_or_default();
        let has = has.split(|byte| *byte == 0).next().unwrap_or_default();
        let allowed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
        congestion.is_empty()
            || has == congestion.as_bytes()
            || allowed.split_whitespace().any(|name| name == congestion)
    }
    #[cfg(not(target_os = "linux"))]
    {
        // It is not set there.
        let _ = (stream, congestion);
        true
    }
}

/// What the client says first, within the time that it has for that.
fn read_hello(stream: &mut TcpStream) -> Result<Hello, Refusal> {
    let until = Instant::now() + HELLO_TIME;
    let (mut bytes, mut have) = ([0; HELLO_BYTES], 0);
    while have < HELLO_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Refusal::Foreign);
        }
        match stream.read(&mut bytes[have..]) {
            Ok(0) | Err(_) => return Err(Refusal::Foreign),
            Ok(n) => have += n,
        }
        // A line of another protocol may be shorter than a hello: its sender need not wait.
        let begun = have.min(crate::protocol::MAGIC.len());
        if bytes[..begun] != crate::protocol::MAGIC[..begun] {
            return Err(Refusal::Foreign);
        }
    }
    Hello::read(&bytes)
}

/// The connection's congestion control, filled with zeros.
fn congestion_of(stream: &TcpStream) -> [u8; CONGESTION_BYTES] {
    let mut name = [0; CONGESTION_BYTES];
    #[cfg(target_os = "linux")]
    if let Ok(has) = SockRef::from(stream).tcp_congestion() {
        let length = has.len().min(name.len());
        name[..length].copy_from_slice(&has[..length]);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
    name
}

fn answer(stream: &mut TcpStream, answer: Result<(), Refusal>, udp_port: u16) -> io::Result<()> {
    let congestion = congestion_of(stream);
    stream.write_all(&Welcome { answer, version: VERSION, udp_port, congestion }.bytes())?;
    if answer.is_err() {
        stream.shutdown(std::net::Shutdown::Write)?;
    }
    Ok(())
}

/// An IPv6 wildcard takes IPv4 as well, whatever the system's default is.
fn listener(at: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if at.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&at.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Bytes that do not compress, the same each time.
pub(crate) fn payload(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        // xorshift64 (Marsaglia 2003): enough to be no pattern for a compressor.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(bytes).collect()
}
