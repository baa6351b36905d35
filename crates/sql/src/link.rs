//! A socket to a database server, with or without TLS. It never blocks.

use crate::failure;
use crate::tls::TlsClient;
use crate::wire::SqlFailure;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustls::ClientConnection;
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

/// Whether something was sent as far as it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    Blocked,
}

/// A connection of bytes.
pub(crate) struct Link {
    socket: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    /// Bytes as they go over the wire that the socket has not taken yet.
    encrypted: Vec<u8>,
    /// Decrypted bytes of the last read.
    plain: Vec<u8>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("socket", &self.socket).field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl Link {
    /// Begins to connect; whether it is connected already.
    pub(crate) fn open(end: &End) -> Result<(Self, bool), SqlFailure> {
        let family = match end {
            End::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            End::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            End::Unix(_) => AddressFamily::UNIX,
        };
        let open = || socket(family).map_err(|errno| failed("open a socket", errno));
        let (socket, connected) = match end {
            End::Tcp(peer) => duel_load::connect_from_next(
                || {
                    let socket = open()?;
                    // A statement is one small write, and must not wait for the acknowledgement of the one before.
                    let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
                    Ok(socket)
                },
                |socket| rustix::net::connect(socket, peer),
            )?,
            End::Unix(path) => {
                let socket = open()?;
                let connected = rustix::net::connect(&socket, path);
                (socket, connected)
            }
        };
        let is_connected = match connected {
            Ok(()) => true,
            // On loopback the handshake is over when connect returns.
            Err(Errno::INPROGRESS) => rustix::net::getpeername(&socket).is_ok_and(|peer| peer.is_some()),
            Err(errno) => return Err(failed("connect", errno)),
        };
        let (encrypted, plain) = (Vec::new(), Vec::new());
        Ok((Self { socket, tls: None, encrypted, plain, bytes_in: 0, bytes_out: 0 }, is_connected))
    }

    /// Whether it is connected by now.
    pub(crate) fn is_connected(&self) -> Result<bool, SqlFailure> {
        if let Err(errno) = rustix::net::sockopt::socket_error(&self.socket).unwrap_or_else(Err) {
            return Err(failed("connect", errno));
        }
        Ok(matches!(rustix::net::getpeername(&self.socket), Ok(Some(_))))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The port of this machine that it comes from; `None`: a Unix socket has none.
    pub(crate) fn local_port(&self) -> Option<u16> {
        let address = rustix::net::getsockname(&self.socket).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.port())
    }

    /// From here on everything goes through TLS; the first flight leaves with the next [`Link::send`], behind what is still to
    /// be sent in clear: MySQL's request for TLS.
    pub(crate) fn begin_tls(&mut self, client: &TlsClient, clear: &mut Vec<u8>) -> Result<(), SqlFailure> {
        self.encrypted.append(clear);
        self.tls = Some(Box::new(client.connect().map_err(|error| tls_failed(&error))?));
        Ok(())
    }

    pub(crate) fn is_shaking_hands(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Version and cipher suite of the connection.
    pub(crate) fn tls_facts(&self) -> Option<(String, String)> {
        let tls = self.tls.as_ref()?;
        let version = match tls.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_3 => "1.3",
            rustls::ProtocolVersion::TLSv1_2 => "1.2",
            _ => "other",
        };
        let suite = tls.negotiated_cipher_suite()?.suite();
        Some((version.to_owned(), suite.as_str().unwrap_or("other").to_owned()))
    }

    /// Sends plain bytes as far as the socket takes them, and removes what it took.
    pub(crate) fn send(&mut self, plain: &mut Vec<u8>) -> Result<Sent, SqlFailure> {
        let Some(tls) = &mut self.tls else {
            return write(&self.socket, plain, &mut self.bytes_out);
        };
        if !tls.is_handshaking() && !plain.is_empty() {
            tls.writer().write_all(plain).map_err(|_| SqlFailure::new(failure::TLS, "TLS takes no more bytes"))?;
            plain.clear();
        }
        while tls.wants_write() {
            let wrote = tls.write_tls(&mut self.encrypted);
            wrote.map_err(|_| SqlFailure::new(failure::TLS, "a record of TLS could not be written"))?;
        }
        write(&self.socket, &mut self.encrypted, &mut self.bytes_out)
    }

    /// Whether bytes wait for room in the socket, beside those of the caller.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.encrypted.is_empty()
    }

    /// Reads once; `None`: nothing is there. The end of the connection is a failure, since none of these protocols ends so.
    pub(crate) fn receive<'a>(&'a mut self, scratch: &'a mut [u8]) -> Result<Option<&'a [u8]>, SqlFailure> {
        let count = loop {
            match rustix::io::read(&self.socket, &mut *scratch) {
                Ok(0) => return Err(SqlFailure::new(failure::LOST, "the server closed the connection")),
                Ok(count) => break count,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("receive", errno)),
            }
        };
        self.bytes_in += count as u64;
        let Some(tls) = &mut self.tls else { return Ok(Some(&scratch[..count])) };
        let mut received = &scratch[..count];
        self.plain.clear();
        while !received.is_empty() {
            tls.read_tls(&mut received)
                .map_err(|_| SqlFailure::new(failure::TLS, "the server sent a record that is too long"))?;
            let state = tls.process_new_packets().map_err(|error| tls_failed(&error))?;
            let (begin, more) = (self.plain.len(), state.plaintext_bytes_to_read());
            self.plain.resize(begin + more, 0);
            tls.reader()
                .read_exact(&mut self.plain[begin..])
                .map_err(|_| SqlFailure::new(failure::TLS, "TLS gave fewer bytes than it said"))?;
            if state.peer_has_closed() && self.plain.is_empty() {
                return Err(SqlFailure::new(failure::LOST, "the server closed the connection"));
            }
        }
        Ok(Some(&self.plain))
    }
}

fn socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        use rustix::net::SocketFlags;
        rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    {
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        Ok(socket)
    }
}

fn write(socket: &OwnedFd, bytes: &mut Vec<u8>, bytes_out: &mut u64) -> Result<Sent, SqlFailure> {
    let mut at = 0;
    let sent = loop {
        if at == bytes.len() {
            bytes.clear();
            return Ok(Sent::All);
        }
        match rustix::io::write(socket, &bytes[at..]) {
            Ok(count) => {
                *bytes_out += count as u64;
                at += count;
            }
            Err(Errno::AGAIN) => break Ok(Sent::Blocked),
            Err(Errno::INTR) => {}
            Err(errno) => break Err(failed("send", errno)),
        }
    };
    bytes.drain(..at);
    sent
}

/// A call of the system that failed, as a failure of an op.
fn failed(what: &str, errno: Errno) -> SqlFailure {
    let kind = match errno {
        Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM => failure::OURS,
        _ if what == "connect" => failure::REFUSED,
        _ => failure::LOST,
    };
    let why = match errno {
        Errno::CONNREFUSED => "nobody listens there".to_owned(),
        Errno::NOENT => "there is no such socket".to_owned(),
        Errno::AGAIN => "the socket's queue of connections is full".to_owned(),
        Errno::CONNRESET | Errno::PIPE => "the server closed the connection".to_owned(),
        errno => std::io::Error::from(errno).to_string(),
    };
    SqlFailure::new(kind, format!("cannot {what}: {why}"))
}

fn tls_failed(error: &rustls::Error) -> SqlFailure {
    SqlFailure::new(failure::TLS, format!("TLS went wrong: {error}"))
}
