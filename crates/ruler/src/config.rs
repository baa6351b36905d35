//! What the server is told to be.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::tls::Tls;

/// Everything a server can be told. The default is plain HTTP on a free port of 127.0.0.1, kept alive, unhandicapped.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: Listen,
    /// The length of the queue of connections not yet accepted, cut by the kernel's `somaxconn`.
    pub backlog: u32,
    /// HTTPS instead of HTTP.
    pub tls: Option<Tls>,
    /// Whether a connection may carry more than one request; if not, every answer says `Connection: close` and does.
    pub keepalive: bool,
    /// Accepts every connection and closes it at once, without a byte.
    pub accept_then_close: bool,
    /// Dies once it has answered this many requests: the listener and all connections close, and it never comes back.
    pub refuse_after: Option<u64>,
    /// What makes it slower than it need be.
    pub handicap: Handicap,
    /// The last part of a wait that is spent spinning (`/delay`, `/drip`, `/slow-head`), so that it ends on time.
    pub spin: Duration,
    /// How many of the latest requests are remembered one by one in [`Truth::served`](crate::Truth::served); 0: none.
    pub remember: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: Listen::default(),
            backlog: 4096,
            tls: None,
            keepalive: true,
            accept_then_close: false,
            refuse_after: None,
            handicap: Handicap::default(),
            spin: Duration::from_micros(60),
            remember: 100_000,
        }
    }
}

impl Config {
    /// The default, with TLS.
    pub fn https(tls: Tls) -> Config {
        Config { tls: Some(tls), ..Config::default() }
    }
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address; port 0 takes a free port.
    Tcp(SocketAddr),
    /// A Unix socket, which must not exist yet and is removed at the end.
    Unix(PathBuf),
}

impl Default for Listen {
    fn default() -> Listen {
        Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

/// Costs added on purpose, to every path and before what the path itself costs, so that a slower server with a known cause is at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handicap {
    /// CPU time burnt for each request, before it is answered.
    pub burn_per_request: Duration,
    /// CPU time burnt for each 1024 bytes of a body from the payload (`/size`, `/file`, ...), before they are sent.
    pub burn_per_kib: Duration,
    /// CPU time burnt for each full TLS handshake; a resumed one goes without.
    pub burn_per_handshake: Duration,
    /// Time slept before each request is answered: latency without CPU.
    pub sleep_per_request: Duration,
}
