//! Listening and connected sockets, TCP or Unix alike.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Listen;

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Bound, listening, and non-blocking: it is polled together with the stop.
    pub(crate) fn bind(listen: &Listen, backlog: u32) -> io::Result<Listener> {
        let listener = match listen {
            Listen::Tcp(address) => {
                let listener = TcpListener::bind(address).map_err(|error| told(&format!("bind {address}"), &error))?;
                listener.set_nonblocking(true)?;
                Listener::Tcp(listener)
            }
            Listen::Unix(path) => {
                let doing = || format!("bind the Unix socket {}", path.display());
                let listener = UnixListener::bind(path).map_err(|error| told(&doing(), &error))?;
                listener.set_nonblocking(true)?;
                Listener::Unix(listener, path.clone())
            }
        };
        // std listens with a backlog of its own choice; to listen again only changes it.
        rustix::net::listen(&listener, backlog.try_into().unwrap_or(i32::MAX))?;
        Ok(listener)
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix(..) => None,
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Socket> {
        Ok(match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Some systems hand the listener's non-blocking state down; Linux does not.
                #[cfg(not(target_os = "linux"))]
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                #[cfg(not(target_os = "linux"))]
                stream.set_nonblocking(false)?;
                Socket::Unix(stream)
            }
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection. Read and written through a shared reference, so that the server's end can shut it down meanwhile.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Makes the close a reset (RST) that drops what was not sent. A Unix socket has no such thing.
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        if let Socket::Tcp(stream) = self {
            rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        }
        Ok(())
    }

    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Socket::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Socket::Tcp(stream) => (&mut &*stream).read(buffer),
                Socket::Unix(stream) => (&mut &*stream).read(buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write_vectored(slices),
            Socket::Unix(stream) => (&mut &*stream).write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn told(doing: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("could not {doing}: {error}"))
}
