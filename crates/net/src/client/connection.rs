//! A connection from its first packet until the server has said that it does what is asked for.

use crate::protocol::{HELLO_BYTES, Hello, Welcome};
use crate::schema::failure;
use crate::socket::{self, Options, Refused};
use duel_load::{Failure, Interest, Io, LaneId};
use duel_model::{FailureKind, Nanos};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::net::{SocketAddr, TcpStream};

/// A failure as an op ends with it.
pub(crate) fn failed(kind: FailureKind, text: impl Into<String>) -> Box<Failure> {
    Box::new(Failure { kind, text: text.into() })
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// TCP is connecting.
    Connecting,
    /// The hello is sent, and the welcome awaited.
    Greeting,
    /// The server does what is asked for.
    Open,
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    stage: Stage,
    /// What is watched on it, so that nothing is changed that is as it should be.
    interest: Interest,
    pub(crate) since_ns: Nanos,
    pub(crate) connected_ns: Nanos,
    pub(crate) opened_ns: Nanos,
    heard: [u8; HELLO_BYTES],
    heard_bytes: usize,
    pub(crate) welcome: Option<Welcome>,
}

impl Connection {
    /// Begins to connect, and watches it for a lane.
    pub(crate) fn begin(
        to: &SocketAddr,
        options: &Options,
        lane: LaneId,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Result<Self, Box<Failure>> {
        let socket = socket::tcp(to, options).map_err(|error| unconnected(to, &error))?;
        let socket = socket.map_err(|refused: Refused| failed(failure::EXHAUSTED, refused.to_string()))?;
        let begun = socket.set_nonblocking(true).and_then(|()| match socket.connect(&(*to).into()) {
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => Ok(()),
            other => other,
        });
        begun.map_err(|error| unconnected(to, &error))?;
        let stream = TcpStream::from(socket);
        io.watch(&stream, lane, Interest::ReadWrite).map_err(|error| unconnected(to, &error))?;
        Ok(Self {
            stream,
            stage: Stage::Connecting,
            interest: Interest::ReadWrite,
            since_ns: now_ns,
            connected_ns: 0,
            opened_ns: 0,
            heard: [0; HELLO_BYTES],
            heard_bytes: 0,
            welcome: None,
        })
    }

    /// One that is open already.
    #[cfg(test)]
    pub(crate) fn made(stream: TcpStream) -> Self {
        Self {
            stream,
            stage: Stage::Open,
            interest: Interest::Read,
            since_ns: 0,
            connected_ns: 0,
            opened_ns: 0,
            heard: [0; HELLO_BYTES],
            heard_bytes: 0,
            welcome: None,
        }
    }

    /// Whether the server does what is asked for.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether TCP has a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.stage != Stage::Connecting
    }

    /// Goes on until it is open, or has to wait.
    pub(crate) fn proceed(
        &mut self,
        hello: &Hello,
        to: &SocketAddr,
        lane: LaneId,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Result<bool, Box<Failure>> {
        if self.stage == Stage::Connecting {
            match self.stream.take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return Err(unconnected(to, &error)),
            }
            // Not connected yet: the event was another one's.
            if self.stream.peer_addr().is_err() {
                return Ok(false);
            }
            self.connected_ns = now_ns;
            self.stage = Stage::Greeting;
            match send(&self.stream, &hello.bytes(), SendFlags::NOSIGNAL) {
                Ok(HELLO_BYTES) => {}
                Ok(_) => return Err(failed(failure::LOST, "a new connection takes no data")),
                Err(error) => return Err(lost(error)),
            }
            self.watch(lane, Interest::Read, io)?;
        }
        if self.stage == Stage::Greeting {
            // What the server sends beyond its welcome is left to whoever reads on.
            while self.heard_bytes < HELLO_BYTES {
                match recv(&self.stream, &mut self.heard[self.heard_bytes..], RecvFlags::empty()) {
                    Ok((_, 0)) => return Err(self.closed_early(to)),
                    Ok((_, n)) => self.heard_bytes += n,
                    Err(Errno::AGAIN) => return Ok(false),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(lost(error)),
                }
            }
            let welcome = Welcome::read(&self.heard)
                .map_err(|what| failed(failure::NONSENSE, format!("the program at {to} {what}")))?;
            if let Err(refusal) = welcome.answer {
                return Err(failed(
                    failure::NOT_OFFERED,
                    format!("the server at {to} refuses: {}", refusal.words(welcome.version)),
                ));
            }
            self.welcome = Some(welcome);
            self.opened_ns = duel_load::monotonic_ns();
            self.stage = Stage::Open;
        }
        Ok(true)
    }

    fn closed_early(&self, to: &SocketAddr) -> Box<Failure> {
        let heard = &self.heard[..self.heard_bytes];
        if heard.is_empty() {
            return failed(
                failure::LOST,
                format!("the program at {to} closed the connection without a word; is it duel net serve?"),
            );
        }
        failed(failure::NONSENSE, format!("the program at {to} {}", crate::protocol::foreign(heard)))
    }

    /// Changes what it is watched for.
    #[inline]
    pub(crate) fn watch(&mut self, lane: LaneId, interest: Interest, io: &Io<'_>) -> Result<(), Box<Failure>> {
        if self.interest == interest {
            return Ok(());
        }
        self.interest = interest;
        io.rewatch(&self.stream, lane, interest)
            .map_err(|error| failed(failure::EXHAUSTED, format!("a socket cannot be watched: {error}")))
    }
}

/// Why there is no connection.
pub(crate) fn unconnected(to: &SocketAddr, error: &io::Error) -> Box<Failure> {
    use io::ErrorKind::{
        AddrInUse, AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable,
        PermissionDenied, TimedOut,
    };
    let (kind, why) = match error.kind() {
        ConnectionRefused => (failure::REFUSED, format!("nobody listens at {to}; start `duel net serve` there")),
        HostUnreachable | NetworkUnreachable | NetworkDown => {
            (failure::UNREACHABLE, format!("no way leads to {to}: {error}"))
        }
        TimedOut => (failure::CONNECT_TIMEOUT, format!("{to} does not answer")),
        AddrInUse | AddrNotAvailable => {
            (failure::EXHAUSTED, format!("no local port is left for connections to {to}; use fewer, or wait a minute"))
        }
        PermissionDenied => {
            (failure::UNREACHABLE, format!("connecting to {to} is not permitted here; a firewall may forbid it"))
        }
        _ => match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE) => (failure::EXHAUSTED, "no descriptor is left for a connection".into()),
            _ => (failure::LOST, format!("connecting to {to} failed: {error}")),
        },
    };
    failed(kind, why)
}

/// A connection that is no more.
#[cold]
pub(crate) fn lost(error: Errno) -> Box<Failure> {
    failed(failure::LOST, format!("the connection was lost: {error}"))
}

/// The peer closed the connection where more was to come.
#[cold]
pub(crate) fn closed() -> Box<Failure> {
    failed(failure::LOST, "the server closed the connection")
}
