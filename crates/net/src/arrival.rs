//! When a datagram came, by the kernel's own time stamp, and how many the system dropped because they were not read in time.
//!
//! What lies between arrival and reading is the reader's lateness, and no part of how evenly a path carries. What is dropped in the
//! receiver's buffer has come over the path.

use std::io;
use std::net::SocketAddr;

#[cfg(target_os = "linux")]
pub(crate) use linux::{ask_for, dropped, receive};

/// A datagram that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) bytes: usize,
    pub(crate) from: SocketAddr,
    /// When it came, by a clock of this machine; differences alone mean something. By the wall clock where the kernel stamps: one that
    /// is set meanwhile makes one difference wrong.
    pub(crate) at_ns: u64,
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::Arrival;
    use std::io;
    use std::net::UdpSocket;

    pub(crate) fn ask_for(_socket: &UdpSocket) {}

    /// Stamped when it was read: how the system stamps is not asked for here.
    pub(crate) fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Arrival> {
        let (bytes, from) = socket.recv_from(into)?;
        Ok(Arrival { bytes, from, at_ns: duel_load::monotonic_ns() })
    }

    pub(crate) fn dropped(_socket: &UdpSocket) -> Option<u64> {
        None
    }
}
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{ask_for, dropped, receive};

#[cfg(target_os = "linux")]
mod linux {
    use super::{Arrival, SocketAddr, io};
    use nix::sys::socket::{
        ControlMessageOwned, GetSockOpt, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt, sockopt::GetStruct,
    };
    use nix::sys::time::TimeSpec;
    use rustix::fd::AsRawFd;
    use std::io::IoSliceMut;
    use std::net::UdpSocket;
    use std::time::{SystemTime, UNIX_EPOCH};

    /// Place of the drops among the numbers of `SO_MEMINFO` (`SK_MEMINFO_DROPS` of linux/sock_diag.h).
    const DROPS: usize = 8;

    #[derive(Debug, Clone, Copy)]
    struct Memory;

    nix::getsockopt_impl!(Memory, libc::SOL_SOCKET, libc::SO_MEMINFO, [u32; DROPS + 1], GetStruct<[u32; DROPS + 1]>);

    /// Has the kernel stamp what arrives. Without stamps, datagrams are stamped when they are read.
    pub(crate) fn ask_for(socket: &UdpSocket) {
        let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
    }

    /// Waits for a datagram, for no longer than the socket's time.
    pub(crate) fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Arrival> {
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(into)];
        let message =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        let stamp = message.cmsgs().ok().into_iter().flatten().find_map(|part| match part {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
            _ => None,
        });
        let at_ns = stamp.and_then(|stamp| {
            let (seconds, ns) = (u64::try_from(stamp.tv_sec()).ok()?, u64::try_from(stamp.tv_nsec()).ok()?);
            seconds.checked_mul(duel_model::SECOND_NS)?.checked_add(ns)
        });
        let from = message.address.and_then(|from| {
            let v4 = from.as_sockaddr_in().map(|from| SocketAddr::V4((*from).into()));
            v4.or_else(|| from.as_sockaddr_in6().map(|from| SocketAddr::V6((*from).into())))
        });
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        // Of the same clock as stamps are: the first datagrams come before the kernel has begun to stamp.
        let read_ns = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Ok(Arrival { bytes: message.bytes, from, at_ns: at_ns.unwrap_or_else(read_ns) })
    }

    /// How many the system has dropped since the socket was made, for want of room in its buffer; those of others who know its port
    /// are among them. `None` where it does not tell.
    pub(crate) fn dropped(socket: &UdpSocket) -> Option<u64> {
        Memory.get(socket).ok().map(|memory| u64::from(memory[DROPS]))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn arrival_is_stamped_when_it_comes_and_drops_are_counted() {
        let [ours, theirs] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        ask_for(&theirs);
        socket2::SockRef::from(&theirs).set_recv_buffer_size(1).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let to = theirs.local_addr().unwrap();
        let mut buffer = [0; 1200];
        let mut apart_ns = |wait: Duration| {
            ours.send_to(&[1; 100], to).unwrap();
            std::thread::sleep(wait);
            ours.send_to(&[2; 100], to).unwrap();
            // Both are read at once: only stamps tell that one came later.
            let [first, second] = [(); 2].map(|()| receive(&theirs, &mut buffer).unwrap());
            assert_eq!((first.bytes, first.from), (100, ours.local_addr().unwrap()));
            second.at_ns.saturating_sub(first.at_ns)
        };
        // The kernel begins to stamp a little after it was asked to; until then what is read is stamped when it is read.
        let wait = Duration::from_millis(20);
        let apart_ns = (0..500).map(|_| apart_ns(wait)).find(|&apart_ns| apart_ns > 0);
        assert!(apart_ns.is_some_and(|ns| u128::from(ns) >= wait.as_nanos()), "{apart_ns:?}");
        assert_eq!(dropped(&theirs), Some(0));
        for _ in 0..100 {
            ours.send_to(&[3; 1000], to).unwrap();
        }
        theirs.set_nonblocking(true).unwrap();
        let came = std::iter::from_fn(|| receive(&theirs, &mut buffer).ok()).count() as u64;
        assert!(came < 100, "the smallest buffer holds a few");
        assert_eq!(dropped(&theirs), Some(100 - came));
    }
}
