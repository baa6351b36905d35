//! Sockets with the options that a plan asks for.

use duel_model::sanitize_line;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// What is set on each socket of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Send and receive buffers in bytes; 0: as the system has them.
    pub window: u32,
    /// Longest segment; 0: as the system has it.
    pub segment: u16,
    /// Small segments wait for acknowledgements of those before (Nagle).
    pub delays: bool,
    /// Name of the congestion control; empty: as the system has it.
    pub congestion: String,
}

/// An option that could not be set, with what the system said.
#[derive(Debug)]
pub(crate) struct Refused(pub &'static str, pub io::Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cannot be set: {}", self.0, sanitize_line(&self.1.to_string()))
    }
}

impl Options {
    /// Sets them. Segment size and window have to be set before the connection is made: both are told in its first packets.
    pub(crate) fn set(&self, socket: &Socket) -> Result<(), Refused> {
        self.set_on(SockRef::from(socket))
    }

    /// The same on a connection that there is.
    pub(crate) fn set_on(&self, socket: SockRef<'_>) -> Result<(), Refused> {
        socket.set_tcp_nodelay(!self.delays).map_err(|error| Refused("TCP_NODELAY", error))?;
        if self.window > 0 {
            socket.set_send_buffer_size(self.window as usize).map_err(|error| Refused("the send buffer", error))?;
            socket.set_recv_buffer_size(self.window as usize).map_err(|error| Refused("the receive buffer", error))?;
        }
        #[cfg(target_os = "linux")]
        {
            if self.segment > 0 {
                socket.set_tcp_mss(u32::from(self.segment)).map_err(|error| Refused("the segment size", error))?;
            }
            if !self.congestion.is_empty() {
                socket
                    .set_tcp_congestion(self.congestion.as_bytes())
                    .map_err(|error| Refused("the congestion control", error))?;
            }
        }
        Ok(())
    }
}

/// A TCP socket that connects without waiting.
pub(crate) fn tcp(to: &SocketAddr, options: &Options) -> io::Result<Result<Socket, Refused>> {
    let socket = Socket::new(Domain::for_address(*to), Type::STREAM, Some(Protocol::TCP))?;
    Ok(options.set(&socket).map(|()| socket))
}

/// Resets the connection when it is closed: what is under way on it is forgotten at once, at both ends, and no port is kept.
pub(crate) fn forget_when_closed(socket: SockRef<'_>) {
    // Where that is refused, it is closed as usual.
    let _ = socket.set_linger(Some(std::time::Duration::ZERO));
}
