//! A connection's bytes, encrypted or not.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustls::{HandshakeKind, ServerConnection};

use crate::clock::Stop;
use crate::socket::Socket;
use crate::truth::Ledger;

/// How many bytes of plaintext TLS may hold before they go out: sixteen full records in one system call.
const TLS_BATCH: usize = 256 * 1024;

pub(crate) struct Wire<'s> {
    pub(crate) socket: &'s Socket,
    tls: Option<Tls>,
    pub(crate) ledger: &'s Ledger,
}

struct Tls {
    connection: Box<ServerConnection>,
    handshake: Handshake,
}

#[derive(PartialEq, Eq)]
enum Handshake {
    Begun,
    /// A full one, whose handicap is already paid.
    Burnt,
    Done,
}

impl<'s> Wire<'s> {
    pub(crate) fn new(
        socket: &'s Socket,
        tls: Option<&Arc<rustls::ServerConfig>>,
        ledger: &'s Ledger,
    ) -> io::Result<Wire<'s>> {
        let tls = match tls {
            None => None,
            Some(config) => {
                let mut connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                connection.set_buffer_limit(Some(TLS_BATCH));
                Some(Tls { connection: Box::new(connection), handshake: Handshake::Begun })
            }
        };
        Ok(Wire { socket, tls, ledger })
    }

    /// Completes the TLS handshake, burning `burn` for a full one. An end before it is an error.
    pub(crate) fn shake(&mut self, stop: &Stop, burn: Duration) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.connection.is_handshaking() {
            if tls.connection.read_tls(&mut &*self.socket)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let processed = tls.connection.process_new_packets();
            let full = matches!(
                tls.connection.handshake_kind(),
                Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest)
            );
            // Before the server's flight goes out, so that the client waits for it.
            if full && tls.handshake == Handshake::Begun && !burn.is_zero() && processed.is_ok() {
                stop.burn(burn)?;
                self.ledger.burnt_ns.fetch_add(burn.as_nanos() as u64, Relaxed);
                tls.handshake = Handshake::Burnt;
            }
            // Also after an error: it holds the alert.
            flush(&mut tls.connection, self.socket, self.ledger)?;
            processed.map_err(io::Error::other)?;
        }
        tls.handshake = Handshake::Done;
        match tls.connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => self.ledger.handshakes_resumed.fetch_add(1, Relaxed),
            _ => self.ledger.handshakes_full.fetch_add(1, Relaxed),
        };
        Ok(())
    }

    /// As `Read::read`: 0 is the client's end, orderly or not.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(Tls { connection, .. }) = &mut self.tls else { return (&mut &*self.socket).read(buffer) };
        loop {
            match connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            connection.read_tls(&mut &*self.socket)?;
            let processed = connection.process_new_packets();
            // An alert, or the answer to a key update.
            if connection.wants_write() {
                flush(connection, self.socket, self.ledger)?;
            }
            processed.map_err(io::Error::other)?;
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send_all(&mut [IoSlice::new(bytes)])
    }

    /// Sends all of the slices; they count as sent piece by piece, as the socket takes them.
    pub(crate) fn send_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let written = match &mut self.tls {
                None => {
                    // One slice goes by the cheaper system call.
                    let written = match &*slices {
                        [only] => (&mut &*self.socket).write(only),
                        many => (&mut &*self.socket).write_vectored(many),
                    };
                    let written = match written {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                        written => written?,
                    };
                    self.ledger.wire_bytes_sent.fetch_add(written as u64, Relaxed);
                    written
                }
                Some(Tls { connection, .. }) => {
                    let written = connection.writer().write_vectored(slices)?;
                    flush(connection, self.socket, self.ledger)?;
                    written
                }
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.ledger.http_bytes_sent.fetch_add(written as u64, Relaxed);
            IoSlice::advance_slices(&mut slices, written);
        }
        Ok(())
    }

    /// Says, with TLS, that the end which follows is meant.
    pub(crate) fn finish(&mut self) {
        if let Some(Tls { connection, handshake: Handshake::Done }) = &mut self.tls {
            connection.send_close_notify();
            let _ = flush(connection, self.socket, self.ledger);
        }
    }

    /// Ends the sending side and reads away what still comes, for a bounded time: to close with unread bytes would be a reset, and could
    /// destroy an answer on its way.
    pub(crate) fn linger(&mut self) {
        self.socket.shutdown(Shutdown::Write);
        if self.socket.set_read_timeout(Duration::from_millis(200)).is_err() {
            return;
        }
        let mut scratch = [0; 4096];
        for _ in 0..64 {
            if !matches!((&mut &*self.socket).read(&mut scratch), Ok(read) if read > 0) {
                return;
            }
        }
    }
}

fn flush(connection: &mut ServerConnection, socket: &Socket, ledger: &Ledger) -> io::Result<()> {
    while connection.wants_write() {
        match connection.write_tls(&mut &*socket) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => ledger.wire_bytes_sent.fetch_add(written as u64, Relaxed),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
    }
    Ok(())
}
