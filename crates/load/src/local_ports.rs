//! The local ports that connections are made from.
//!
//! Whoever closes a TCP connection keeps its port for a minute, for this pair of addresses (TIME_WAIT). The kernel looks for a free one from a
//! place of chance on, first among every second port of its range, and only then among the others (`__inet_hash_connect` of Linux). So
//! once half of the range is taken, each further connection walks through all of that half: over 14,116 ports that takes 3 to 17 ms of our
//! own CPU, and looks like a server that is slow to accept. First seen on a server with 1,250 new connections a second, which served
//! a sixth of that as soon as half of the ports were taken.
//!
//! So each connection gets a small part of the range to look in, one part after the other. The part that was used longest ago comes first,
//! and a search is no longer than it, unless several parts have no free port.
//!
//! A Linux that cannot be told where to look (before 6.3) is given the very port, one after the other. A port that was given is nobody else's in
//! that network as long as it is kept, whomever they connect to. So it is every second one: those in between are the ones that `connect` tries first,
//! for others, and for ours once all that are given are taken.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports of a part. To look through all of them takes some 50 µs.
const PART_PORTS: u32 = 64;
/// Parts that are tried where all ports of a part are taken, perhaps by another program that took many in order.
const MOST_PARTS: u32 = 4;
/// From one that is tried in vain to the next: neighbours may be taken, or reserved, together.
const FAR_PARTS: u32 = 97;

/// Local ports for connections over so many pairs of a local and a remote address, where the system tells.
pub fn local_ports_of(address_pairs: usize) -> Option<u32> {
    Some(RANGE.as_ref()?.ports().saturating_mul(u32::try_from(address_pairs).unwrap_or(u32::MAX)))
}

/// Connects a TCP socket that `open` makes, by `connect`, from one of the next ports in turn; where these are all taken, from any. Tells the socket,
/// and what connecting said.
///
/// Systems other than Linux look for a port as they do.
pub fn connect_from_next<S: AsFd, E>(
    open: impl Fn() -> Result<S, E>,
    connect: impl Fn(&S) -> Result<(), Errno>,
) -> Result<(S, Result<(), Errno>), E> {
    let socket = open()?;
    let connected = match RANGE.as_ref() {
        None => connect(&socket),
        Some(range) => match from_parts(socket.as_fd(), *range, || connect(&socket)) {
            Some(connected) => connected,
            None => return from_ports(socket, &PORTS, open, connect),
        },
    };
    Ok((socket, connected))
}

/// Lets the kernel look in one part after the other; `None`: it cannot be told.
fn from_parts(
    socket: BorrowedFd<'_>,
    range: Range,
    connect: impl Fn() -> Result<(), Errno>,
) -> Option<Result<(), Errno>> {
    for retry in 0..MOST_PARTS {
        if !narrowing::look_in(socket, range.part(next(retry * FAR_PARTS))) {
            return None;
        }
        match connect() {
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => {}
            connected => return Some(connected),
        }
    }
    // A range that is given is searched from a place of chance on, and not every second port first (since Linux 6.8).
    narrowing::look_in(socket, range);
    Some(connect())
}

/// Takes one port after the other. Whether it is free for these two addresses is known once it is connected, and a socket does not give its port
/// back: then the next one is another socket's. The last is left to the kernel.
fn from_ports<S: AsFd, E>(
    mut socket: S,
    ports: &[u16],
    open: impl Fn() -> Result<S, E>,
    connect: impl Fn(&S) -> Result<(), Errno>,
) -> Result<(S, Result<(), Errno>), E> {
    for retry in 0..MOST_PARTS {
        if take_port(socket.as_fd(), ports, retry * FAR_PARTS * PART_PORTS).is_none() {
            break;
        }
        match connect(&socket) {
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => socket = open()?,
            connected => return Ok((socket, connected)),
        }
    }
    let connected = connect(&socket);
    Ok((socket, connected))
}

/// Binds the socket to the next of these ports that can be taken; `None`: to none, and it can still be connected from any.
fn take_port(socket: BorrowedFd<'_>, ports: &[u16], skip: u32) -> Option<()> {
    let count = u32::try_from(ports.len()).ok().filter(|&count| count > 0)?;
    let mut local =
        SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok().filter(|local| local.port() == 0)?;
    // Else a port that is kept for another peer could not be taken, though it is free for this one.
    rustix::net::sockopt::set_socket_reuseaddr(socket, true).ok()?;
    for _ in 0..PART_PORTS.min(count) {
        local.set_port(ports[(next(skip) % count) as usize]);
        match rustix::net::bind(socket, &local) {
            Ok(()) => return Some(()),
            // Somebody listens there, or has taken it for all addresses.
            Err(Errno::ADDRINUSE | Errno::ACCESS) => {}
            Err(_) => return None,
        }
    }
    None
}

/// The next part, or port, in turn, and so many beyond it.
fn next(skip: u32) -> u32 {
    TURN.fetch_add(1, Ordering::Relaxed).wrapping_add(skip)
}

/// The range of this process's network.
static RANGE: LazyLock<Option<Range>> = LazyLock::new(Range::read);

/// Those of its ports that sockets are given.
static PORTS: LazyLock<Vec<u16>> = LazyLock::new(|| RANGE.map_or_else(Vec::new, Range::given));

/// Runs that follow one another begin at different places.
static TURN: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(std::process::id().wrapping_mul(7_919)));

/// A range of ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
}

impl Range {
    /// What local ports are taken from, where the system tells.
    fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut ends = text.split_whitespace().map(str::parse::<u16>);
        let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
        (first <= last).then_some(Self { first, last })
    }

    /// Its ports that the kernel tries last, without those that nobody gets who does not ask for them.
    fn given(self) -> Vec<u16> {
        let reserved = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
        self.given_without(&reserved)
    }

    /// The same where these are reserved, such as `8080,9000-9100`.
    fn given_without(self, reserved: &str) -> Vec<u16> {
        let ends = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?)
        };
        let reserved: Vec<_> = reserved.trim().split(',').filter_map(ends).collect();
        (self.first..=self.last)
            .skip(1)
            .step_by(2)
            .filter(|port| reserved.iter().all(|part| !part.contains(port)))
            .collect()
    }

    fn ports(self) -> u32 {
        u32::from(self.last - self.first) + 1
    }

    /// One of its parts, by a number of any size. All of them together are the range.
    fn part(self, number: u32) -> Self {
        let parts = self.ports().div_ceil(PART_PORTS);
        let first = u32::from(self.first) + number % parts * PART_PORTS;
        let last = (first + PART_PORTS - 1).min(u32::from(self.last));
        // The kernel wants two ports at least.
        let first = if first == last && last > u32::from(self.first) { last - 1 } else { first };
        Self { first: first as u16, last: last as u16 }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod narrowing {
    use super::Range;
    use nix::libc;
    use nix::sys::socket::{SetSockOpt, sockopt::SetUsize};
    use rustix::fd::BorrowedFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// `IP_LOCAL_PORT_RANGE` of `linux/in.h`: the last port in the upper 16 bits, the first one in the lower.
    const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

    #[derive(Debug, Clone, Copy)]
    struct LocalPortRange;

    nix::setsockopt_impl!(LocalPortRange, libc::IPPROTO_IP, self::IP_LOCAL_PORT_RANGE, usize, SetUsize);

    static IS_UNKNOWN: AtomicBool = AtomicBool::new(false);

    /// Whether the kernel will look for a port in this part only.
    pub(super) fn look_in(socket: BorrowedFd<'_>, part: Range) -> bool {
        if IS_UNKNOWN.load(Ordering::Relaxed) {
            return false;
        }
        let is_set = LocalPortRange.set(&socket, &(usize::from(part.last) << 16 | usize::from(part.first))).is_ok();
        IS_UNKNOWN.store(!is_set, Ordering::Relaxed);
        is_set
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod narrowing {
    use super::Range;
    use rustix::fd::BorrowedFd;

    /// Not available here: only Linux lets a socket say where to look.
    pub(super) fn look_in(_socket: BorrowedFd<'_>, _part: Range) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
