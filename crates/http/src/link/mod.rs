//! A connection to a target, from its first segment until requests may be sent: connect, tunnel, TLS handshake.
//!
//! What is said on it afterwards is the affair of its owner, [`crate::http1::lane`] or [`crate::streams`].

pub(crate) mod arrival;
mod certificate;
pub(crate) mod handshake;
pub(crate) mod tls;
mod trust;

use crate::broken::{Broken, CONNECT_FROM_SOURCE, errno_of};
use crate::http1::response::{ResponseReader, field, surplus};
use crate::link::tls::{TlsError, TlsStream};
use crate::op::Op;
use crate::protocol_error::ProtocolError;
use crate::reach::proxy_protocol;
use crate::reach::resolve::Way;
use crate::reach::source;
use crate::redirects::manner::location_text;
use crate::shared::Shared;
use arrival::Heard;
use duel_load::{Counters, Event, Interest, Io, TcpInfo, monotonic_ns};
use duel_model::web::phase;
use duel_model::{Facts, MILLISECOND_NS, Nanos, Phase, sanitize_line, web};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

/// Read at a time. Large enough that a bulk transfer's cost is copying and decrypting, not calling the kernel; small
/// enough to stay in a core's second-level cache.
pub(crate) const SCRATCH_BYTES: usize = 128 * 1024;
/// Reads of full buffers in a row before other connections get their turn.
pub(crate) const READS_IN_A_ROW: usize = 4;

/// A connection, or the place for one.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) tls: Option<TlsStream>,
    stage: Stage,
    /// The descriptor is watched for room to write, too.
    pub(crate) watches_writing: bool,
    /// What the socket has not taken yet, and how many of its bytes it has taken.
    pub(crate) out: Vec<u8>,
    pub(crate) out_at: usize,
    /// Where bodies are decompressed: when it had its turn last (see [`crate::inflate::ration`]).
    pub(crate) served_in: u32,
    /// Segments of it that our own system has sent again, as far as was asked.
    sent_again: u32,
    /// Reads what a proxy says of the tunnel that it was asked for.
    tunnel: Option<Box<ResponseReader>>,
}

/// How far the way to the target is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Closed,
    Connecting,
    /// Connected to a proxy that has not opened the tunnel yet.
    Tunnelling,
    Handshaking,
    Open,
}

/// Whether something was sent as far as it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    Blocked,
}

/// Who goes the way: what all connections share, the op that pays for this one, and where it is counted.
pub(crate) struct Traveller<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) op: &'a mut Op,
    pub(crate) counters: &'a mut Counters,
}

/// What takes plain text that came with the handshake's end.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), ProtocolError>;

impl Link {
    /// Begins to connect, to the addresses of this turn; whether requests may be sent at once.
    pub(crate) fn connect(
        &mut self,
        turn: usize,
        token: usize,
        who: &mut Traveller<'_>,
        io: &Io<'_>,
    ) -> Result<bool, Broken> {
        let way = who.shared.resolved.ends.way(turn);
        let (socket, connected) = way.connect(|| open_for(&way, who.shared))?;
        let is_connected = match connected {
            Ok(()) => true,
            // On loopback the handshake is over when connect returns: asking is cheaper than a turn of the loop.
            Err(Errno::INPROGRESS) => rustix::net::getpeername(&socket).is_ok_and(|peer| peer.is_some()),
            Err(Errno::AGAIN) if !way.is_tcp() => return Err(Broken::UnixQueueFull),
            Err(errno) => return Err(Broken::System("connect", errno)),
        };
        self.watches_writing = !is_connected;
        let interest = if is_connected { Interest::Read } else { Interest::ReadWrite };
        io.watch(&socket, token, interest).map_err(|error| Broken::System("watch a socket", errno_of(&error)))?;
        self.socket = Some(socket);
        self.sent_again = 0;
        self.stage = Stage::Connecting;
        if is_connected { self.connected(token, who, io) } else { Ok(false) }
    }

    /// Goes on after something became ready; whether requests may be sent from now on. `sink` takes what the server says
    /// of itself before.
    pub(crate) fn approach(
        &mut self,
        token: usize,
        event: Event,
        who: &mut Traveller<'_>,
        scratch: &mut [u8],
        sink: Sink<'_>,
        io: &Io<'_>,
    ) -> Result<bool, Broken> {
        match self.stage {
            Stage::Closed | Stage::Open => Ok(false),
            Stage::Connecting => self.finish_connect(token, who, io),
            Stage::Tunnelling => self.continue_tunnel(token, event, who, scratch, io),
            Stage::Handshaking => self.shake_hands(token, event, who, scratch, sink, io),
        }
    }

    /// The phase that an op is in which waits for the connection.
    pub(crate) fn phase(&self) -> Phase {
        if self.stage == Stage::Handshaking { phase::TLS } else { phase::CONNECT }
    }

    /// Closes the socket.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.stage = Stage::Closed;
        self.tunnel = None;
        self.out.clear();
        self.out_at = 0;
    }

    /// Whether an answer was late by `late_ns` because our own system had to send a segment again; `None`: it does not tell.
    ///
    /// What was sent again was the last that went out before the answer came, and long after the request had left. Where a server
    /// just takes its time, nothing has left since.
    #[cold]
    pub(crate) fn was_late_for_sending_again(&mut self, late_ns: Nanos) -> Option<bool> {
        let info = self.socket.as_ref().and_then(TcpInfo::of)?;
        let before = std::mem::replace(&mut self.sent_again, info.retransmits);
        Some(info.retransmits > before && u64::from(info.silent_ms) * MILLISECOND_NS < late_ns / 2)
    }

    /// Whether something is left that the socket has not taken.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.out_at < self.out.len()
    }

    /// Writes what is left as far as the socket takes it, and watches for room if it does not take all.
    pub(crate) fn flush(&mut self, token: usize, bytes_out: &mut u64, io: &Io<'_>) -> Result<Sent, Broken> {
        if self.socket.is_none() {
            return Ok(Sent::All);
        }
        let sent = self.write(bytes_out)?;
        self.watch_writing(sent == Sent::Blocked, token, io)?;
        Ok(sent)
    }

    /// Writes what is left as far as the socket takes it at once.
    pub(crate) fn write(&mut self, bytes_out: &mut u64) -> Result<Sent, Broken> {
        let Some(socket) = &self.socket else { return Ok(Sent::All) };
        loop {
            if self.out_at == self.out.len() {
                self.out.clear();
                self.out_at = 0;
                return Ok(Sent::All);
            }
            // Rust programs ignore SIGPIPE, so that a plain write is enough, and there is one on every system.
            match rustix::io::write(socket, &self.out[self.out_at..]) {
                Ok(count) => {
                    *bytes_out += count as u64;
                    self.out_at += count;
                }
                Err(Errno::AGAIN) => return Ok(Sent::Blocked),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Broken::System("send", errno)),
            }
        }
    }

    /// Watches for room to write, or no longer.
    #[inline]
    pub(crate) fn watch_writing(&mut self, wanted: bool, token: usize, io: &Io<'_>) -> Result<(), Broken> {
        let Some(socket) = &self.socket else { return Ok(()) };
        if wanted != self.watches_writing {
            let interest = if wanted { Interest::ReadWrite } else { Interest::Read };
            io.rewatch(socket, token, interest).map_err(|error| Broken::System("watch a socket", errno_of(&error)))?;
            self.watches_writing = wanted;
        }
        Ok(())
    }

    fn finish_connect(&mut self, token: usize, who: &mut Traveller<'_>, io: &Io<'_>) -> Result<bool, Broken> {
        let Some(socket) = &self.socket else { return Ok(false) };
        let error = rustix::net::sockopt::socket_error(socket).unwrap_or_else(Err);
        if let Err(errno) = error {
            return Err(Broken::System("connect", errno));
        }
        // No error is not yet success: the event may be a stale one of an earlier socket.
        match rustix::net::getpeername(socket) {
            Ok(Some(_)) => self.connected(token, who, io),
            _ => Ok(false),
        }
    }

    fn connected(&mut self, token: usize, who: &mut Traveller<'_>, io: &Io<'_>) -> Result<bool, Broken> {
        if let (Some(version), Some(socket)) = (who.shared.proxy_protocol, &self.socket) {
            // It leaves with what is sent first, or just before it.
            proxy_protocol::append(version, socket, &mut self.out);
        }
        if who.shared.tunnel.is_some() { self.open_tunnel(token, who, io) } else { self.reached(token, who, io) }
    }

    /// Asks the proxy for a tunnel to the target; connecting goes on until it is open.
    #[cold]
    fn open_tunnel(&mut self, token: usize, who: &mut Traveller<'_>, io: &Io<'_>) -> Result<bool, Broken> {
        self.stage = Stage::Tunnelling;
        self.tunnel = Some(Box::new(ResponseReader::new(true)));
        let request = who.shared.tunnel.as_ref().map_or(&[][..], |tunnel| &tunnel.request);
        self.out.extend_from_slice(request);
        self.flush(token, &mut who.counters.bytes_out, io)?;
        Ok(false)
    }

    #[cold]
    fn continue_tunnel(
        &mut self,
        token: usize,
        event: Event,
        who: &mut Traveller<'_>,
        scratch: &mut [u8],
        io: &Io<'_>,
    ) -> Result<bool, Broken> {
        if event.writable && self.watches_writing {
            self.flush(token, &mut who.counters.bytes_out, io)?;
        }
        let (Some(socket), Some(reader), Some(tunnel)) = (&self.socket, &mut self.tunnel, &who.shared.tunnel) else {
            return Ok(false);
        };
        let count = match rustix::io::read(socket, &mut *scratch) {
            Ok(0) => {
                return Err(Broken::NoTunnel(tunnel.broken("closed the connection instead of opening a tunnel")));
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(Errno::CONNRESET) => {
                return Err(Broken::NoTunnel(tunnel.broken("reset the connection instead of opening a tunnel")));
            }
            Err(errno) => return Err(Broken::System("receive", errno)),
        };
        who.counters.bytes_in += count as u64;
        let garbled = |error: ProtocolError| {
            Broken::Protocol(ProtocolError(tunnel.broken(&format!("gave no usable answer: {}", error.0))))
        };
        let fed = reader.feed(&scratch[..count]).map_err(garbled)?;
        match reader.head().map(|head| head.status) {
            None => Ok(false),
            // TLS begins with us: nothing may follow yet.
            Some(200..300) if fed.consumed < count => Err(garbled(surplus())),
            Some(200..300) => {
                self.tunnel = None;
                self.reached(token, who, io)
            }
            Some(status) => Err(Broken::NoTunnel(tunnel.refused(status))),
        }
    }

    /// There is a connection to the target.
    #[inline]
    fn reached(&mut self, token: usize, who: &mut Traveller<'_>, io: &Io<'_>) -> Result<bool, Broken> {
        who.op.phase_ended(phase::CONNECT, monotonic_ns());
        who.counters.connections += 1;
        let Some(tls) = &who.shared.tls else {
            self.stage = Stage::Open;
            return Ok(true);
        };
        let mut stream = tls.connect().map_err(|error| Broken::Tls(TlsError::Tls(error)))?;
        self.stage = Stage::Handshaking;
        stream.drive(&mut [], &mut self.out, &mut |_| Ok(())).map_err(Broken::Tls)?;
        self.tls = Some(stream);
        self.flush(token, &mut who.counters.bytes_out, io)?;
        Ok(false)
    }

    fn shake_hands(
        &mut self,
        token: usize,
        event: Event,
        who: &mut Traveller<'_>,
        scratch: &mut [u8],
        sink: Sink<'_>,
        io: &Io<'_>,
    ) -> Result<bool, Broken> {
        if event.writable && self.watches_writing {
            self.flush(token, &mut who.counters.bytes_out, io)?;
        }
        let (true, Some(socket), Some(tls)) = (event.readable, &self.socket, &mut self.tls) else { return Ok(false) };
        let kept = tls.incoming.len();
        let count = match rustix::io::read(socket, &mut scratch[kept..]) {
            Ok(0) => return Err(Broken::CutInHandshake),
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(errno) => return Err(Broken::System("receive", errno)),
        };
        who.shared.acknowledge_soon(socket);
        who.op.bytes_in += count as u64;
        who.counters.bytes_in += count as u64;
        if tls.take(scratch, kept + count, &mut self.out, sink).map_err(Broken::Tls)? {
            return Err(Broken::CutInHandshake);
        }
        if !tls.is_established() {
            self.flush(token, &mut who.counters.bytes_out, io)?;
            return Ok(false);
        }
        who.op.phase_ended(phase::TLS, monotonic_ns());
        who.counters.resumed += u64::from(tls.is_resumed());
        self.stage = Stage::Open;
        Ok(true)
    }

    /// What the connection shows, and the head of a response on it.
    #[cold]
    pub(crate) fn describe(&self, shared: &Shared, head: &[u8]) -> Facts {
        let mut facts = Facts::default();
        for (name, of) in [
            (web::SERVER, "server"),
            (web::VIA, "via"),
            (web::CONTENT_ENCODING, "content-encoding"),
            (web::CONTENT_TYPE, "content-type"),
        ] {
            facts.note(name, field(head, of).map(|value| sanitize_line(&String::from_utf8_lossy(value))));
        }
        facts.note(web::LOCATION, field(head, "location").map(location_text));
        let mss = self.socket.as_ref().and_then(|socket| socket2::SockRef::from(socket).tcp_mss().ok());
        facts.note(web::SEGMENT_BYTES, mss.map(u64::from));
        let resolved = &shared.resolved;
        facts.note(web::PEER, Some(&*resolved.shown));
        facts.note(web::DEAD_ADDRESSES, Some(resolved.dead.clone()));
        facts.note(web::DEAD_ADDRESSES_NS, resolved.dead_ns);
        facts.note(web::OTHER_FAMILY, resolved.of_other_family().map(|address| address.to_string()));
        facts.note(web::ONLY_FAMILY, resolved.only_family.map(|family| family.to_string()));
        facts.note(web::LOOKUP_NS, resolved.lookup_ns);
        if let Some(tls) = &self.tls {
            tls.describe(&mut facts);
        }
        facts
    }

    /// Bytes kept of an unfinished record, which come before what is read next.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        self.tls.as_ref().map_or(0, |tls| tls.incoming.len())
    }

    /// Reads what has arrived into `scratch`, behind what is kept of an unfinished record; `Ok(None)`: nothing more is
    /// there. Answers how many bytes came, and when.
    #[inline]
    pub(crate) fn read(&mut self, shared: &Shared, scratch: &mut [u8]) -> Result<Option<(usize, Heard)>, Broken> {
        let Some(socket) = &self.socket else { return Ok(None) };
        let kept = self.kept();
        loop {
            match arrival::read(socket, &mut scratch[kept..]) {
                Ok((count, heard)) => {
                    if count > 0 {
                        shared.acknowledge_soon(socket);
                    }
                    return Ok(Some((count, heard)));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Broken::System("receive", errno)),
            }
        }
    }
}

/// A socket to connect this way by, with what is set before that.
fn open_for(way: &Way<'_>, shared: &Shared) -> Result<OwnedFd, Broken> {
    let socket = open_socket(way.family()).map_err(|errno| Broken::System("open a socket", errno))?;
    if let Way::Tcp { source, .. } = way {
        // Where it cannot be switched off, small requests may wait for an acknowledgement; nothing else changes.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        if let Some(bytes) = shared.segment_bytes {
            socket2::SockRef::from(&socket)
                .set_tcp_mss(u32::from(bytes))
                .map_err(|error| Broken::System("announce a segment size", errno_of(&error)))?;
        }
        shared.acknowledge_soon(&socket);
        arrival::ask_for(&socket);
        if let Some(source) = *source {
            source::bind(&socket, source).map_err(|errno| Broken::System(CONNECT_FROM_SOURCE, errno))?;
        }
    }
    Ok(socket)
}

/// A stream socket that does not block and that child processes do not inherit.
#[cfg(not(target_vendor = "apple"))]
fn open_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    use rustix::net::SocketFlags;
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

/// As above, in several steps: macOS cannot do it in one.
#[cfg(target_vendor = "apple")]
fn open_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}
