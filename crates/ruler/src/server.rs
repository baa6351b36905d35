//! The server: accepting, ending, and telling the truth.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::clerk::Clerk;
use crate::clock::{Stop, hold};
use crate::config::{Config, Listen};
use crate::connection;
use crate::socket::{Listener, Socket};
use crate::truth::{Ledger, Truth};

/// Five times what a TLS handshake with any of our keys was seen to need, little enough for thousands of connections.
const STACK: usize = 256 * 1024;

/// A running server. It ends when dropped: no connection, thread or socket is left.
pub struct Ruler {
    shared: Arc<Shared>,
    address: Option<SocketAddr>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the server's threads share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) ledger: Ledger,
    pub(crate) stop: Stop,
    /// How often each `/errors/PERCENT` was asked for.
    pub(crate) asked_for_errors: Vec<AtomicU64>,
    /// Serves `/serial/US`.
    pub(crate) clerk: Clerk,
    /// The connections open, so that the end can reach threads that wait for their clients.
    open: Mutex<HashMap<u64, Arc<Socket>>>,
    closed: Condvar,
    /// A byte into it wakes the acceptor.
    wake: UnixStream,
}

impl Ruler {
    /// Binds and starts serving; connections are accepted from the moment that this returns.
    pub fn start(config: Config) -> io::Result<Ruler> {
        let tls = config.tls.as_ref().map(crate::tls::Tls::server_config).transpose()?;
        let listener = Listener::bind(&config.listen, config.backlog)?;
        let address = listener.address();
        let (wake, woken) = UnixStream::pair()?;
        let shared = Arc::new(Shared {
            ledger: Ledger::new(config.remember),
            config,
            tls,
            stop: Stop::default(),
            asked_for_errors: (0..=100).map(|_| AtomicU64::new(0)).collect(),
            clerk: Clerk::default(),
            open: Mutex::default(),
            closed: Condvar::new(),
            wake,
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("ruler-accept".into()).spawn(move || accept(&shared, listener, &woken))?
        };
        Ok(Ruler { shared, address, acceptor: Some(acceptor) })
    }

    /// The TCP address.
    ///
    /// # Panics
    ///
    /// When the server listens on a Unix socket, which has none.
    pub fn addr(&self) -> SocketAddr {
        self.address.expect("a server on a Unix socket has no TCP address")
    }

    /// The path of the Unix socket, if it listens on one.
    pub fn socket_path(&self) -> Option<&Path> {
        match &self.shared.config.listen {
            Listen::Unix(path) => Some(path),
            Listen::Tcp(_) => None,
        }
    }

    /// The URL of a path such as `/size/100`; for a Unix socket, with the host `localhost`.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        match self.address {
            Some(address) => format!("{scheme}://{address}{path}"),
            None => format!("{scheme}://localhost{path}"),
        }
    }

    /// What it was told to be.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// What it really did so far.
    pub fn truth(&self) -> Truth {
        self.shared.ledger.snapshot(true)
    }

    /// Waits until no request is under way, at most for `patience`, then tells the truth. A client has its response a
    /// moment before the server has noted it down; after this, all that was answered is counted.
    pub fn settled(&self, patience: Duration) -> Truth {
        let until = Instant::now() + patience;
        while !self.shared.ledger.is_settled() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        self.truth()
    }

    /// Ends the server and tells the whole truth: what was cut by the end counts as abandoned.
    pub fn stop(mut self) -> Truth {
        self.end();
        self.truth()
    }

    fn end(&mut self) {
        /// No thread waits for anything but a socket that is shut down, or the stop; this is for a machine in agony.
        const PATIENCE: Duration = Duration::from_secs(10);
        self.shared.die();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let open = hold(&self.shared.open);
        let waited =
            self.shared.closed.wait_timeout_while(open, PATIENCE, |_| self.shared.ledger.connections_open() > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for Ruler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ruler").field("url", &self.url("/")).finish_non_exhaustive()
    }
}

impl Drop for Ruler {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Begins the end: the acceptor closes the listener, then all connections.
    pub(crate) fn die(&self) {
        self.stop.stop();
        let _ = (&mut &self.wake).write_all(b".");
    }
}

fn accept(shared: &Arc<Shared>, listener: Listener, woken: &UnixStream) {
    while !shared.stop.stopped() {
        let mut polled = [PollFd::new(&listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        if poll(&mut polled, None).is_err() {
            continue;
        }
        while !shared.stop.stopped() {
            match listener.accept() {
                Ok(socket) => welcome(shared, socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The client has already gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors or memory: only waiting for connections to close can help.
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
    drop(listener);
    for socket in hold(&shared.open).values() {
        socket.shutdown(Shutdown::Both);
    }
}

/// Gives the connection a thread of its own: a behaviour may then simply sleep, burn or block.
fn welcome(shared: &Arc<Shared>, socket: Socket) {
    let number = shared.ledger.connections.fetch_add(1, Ordering::Relaxed);
    if shared.config.accept_then_close {
        shared.ledger.connections_closed.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let socket = Arc::new(socket);
    hold(&shared.open).insert(number, Arc::clone(&socket));
    let spawned = {
        let shared = Arc::clone(shared);
        thread::Builder::new().name("ruler".into()).stack_size(STACK).spawn(move || {
            connection::serve(&shared, &socket);
            // Closed first and counted then, so that the end waits for the close itself.
            hold(&shared.open).remove(&number);
            drop(socket);
            shared.ledger.connections_closed.fetch_add(1, Ordering::Relaxed);
            // Under the lock, or the notice could come between the look and the wait.
            let _guard = hold(&shared.open);
            shared.closed.notify_all();
        })
    };
    if spawned.is_err() {
        hold(&shared.open).remove(&number);
        shared.ledger.connections_closed.fetch_add(1, Ordering::Relaxed);
    }
}
