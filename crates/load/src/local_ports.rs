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

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
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

/// Connects a TCP socket, by `connect`, from one of the next ports in turn; where these are all taken, from any.
///
/// Where the kernel cannot be told (before Linux 6.3, and elsewhere), from the port that it finds.
pub fn connect_from_next(socket: BorrowedFd<'_>, connect: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    let Some(range) = RANGE.as_ref() else { return connect() };
    for retry in 0..MOST_PARTS {
        let number = NEXT_PART.fetch_add(1, Ordering::Relaxed).wrapping_add(retry * FAR_PARTS);
        if !narrowing::look_in(socket, range.part(number)) {
            return connect();
        }
        match connect() {
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => {}
            connected => return connected,
        }
    }
    // A range that is given is searched from a place of chance on, and not every second port first (since Linux 6.8).
    narrowing::look_in(socket, *range);
    connect()
}

/// The range of this process's network.
static RANGE: LazyLock<Option<Range>> = LazyLock::new(Range::read);

/// Runs that follow one another begin at different places.
static NEXT_PART: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(std::process::id().wrapping_mul(7_919)));

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
mod tests {
    use super::*;

    #[test]
    fn all_parts_together_are_the_range() {
        for (first, last) in [(32_768, 60_999), (1_024, 65_535), (40_000, 40_063), (40_000, 40_064), (1, 2), (7, 7)] {
            let range = Range { first, last };
            let parts = range.ports().div_ceil(PART_PORTS);
            let mut taken = std::collections::BTreeSet::new();
            for number in 0..parts {
                let part = range.part(number);
                assert!(part.first < part.last || range.ports() == 1, "{part:?}");
                assert!(part.ports() <= PART_PORTS && first <= part.first && part.last <= last, "{part:?}");
                taken.extend(part.first..=part.last);
            }
            assert_eq!(taken.len(), range.ports() as usize);
            assert_eq!(range.part(parts), range.part(0));
            range.part(u32::MAX);
        }
    }

    #[test]
    fn what_is_no_range_is_unknown() {
        assert_eq!(Range::parse("32768\t60999\n"), Some(Range { first: 32_768, last: 60_999 }));
        for text in ["", "1", "9 8", "-1 5", "1 70000", "a b"] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }
}
