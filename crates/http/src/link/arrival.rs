//! When bytes arrived: the kernel's own time stamp of the last segment that a read took from, where there is one.
//!
//! What lies between a segment's arrival and the read is our own lateness: the worker slept, or was busy with other
//! connections. Without the stamp it would be a part of the response time.

use duel_load::monotonic_ns;
use duel_model::Nanos;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// When something was heard from a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    /// When it was read.
    pub(crate) noticed_ns: Nanos,
    /// When it had arrived, where the system tells.
    pub(crate) arrived_ns: Option<Nanos>,
}

impl Heard {
    /// Heard now, from no segment in particular.
    pub(crate) fn now() -> Self {
        Self { noticed_ns: monotonic_ns(), arrived_ns: None }
    }

    /// When it was there: the arrival, or what is known of it.
    #[inline]
    pub(crate) fn at_ns(self) -> Nanos {
        self.arrived_ns.unwrap_or(self.noticed_ns)
    }

    /// The same, where nothing of it could be read at this time. An older stamp is that of a segment that came before another
    /// one which was lost: what came first was of no use, and when the lost one came is not told.
    #[inline]
    pub(crate) fn ready_after(self, since_ns: Nanos) -> Self {
        Self { arrived_ns: self.arrived_ns.filter(|&at_ns| at_ns >= since_ns), ..self }
    }

    /// The same, which cannot have been before this time on our clock: an answer may arrive while the call that sent the
    /// request still returns.
    #[inline]
    pub(crate) fn not_before(self, since_ns: Nanos) -> Self {
        Self { arrived_ns: self.arrived_ns.map(|at_ns| at_ns.max(since_ns).min(self.noticed_ns)), ..self }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::{ask_for, read};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn ask_for(_socket: &OwnedFd) {}

/// Reads what has arrived. When it did is not available here: only Linux stamps segments of TCP.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn read(socket: &OwnedFd, into: &mut [u8]) -> Result<(usize, Heard), Errno> {
    let count = rustix::io::read(socket, into)?;
    Ok((count, Heard::now()))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use super::{Errno, Heard, Nanos, OwnedFd, monotonic_ns};
    use duel_model::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt, sockopt};
    use rustix::fd::AsRawFd;
    use rustix::time::{ClockId, clock_gettime};
    use std::cell::Cell;
    use std::io::IoSliceMut;

    /// Room for the one message that is asked for: a header and three times of 16 bytes each.
    const CONTROL_BYTES: usize = 128;
    /// How old what is known of the two clocks may be. Between two looks they part by what somebody sets the wall clock by;
    /// a rate that is corrected (NTP, 500 ppm at most) is corrected on both.
    const CLOCKS_STAY_NS: Nanos = 10 * MILLISECOND_NS;
    /// Both are read within some 100 ns; a reading that takes longer was interrupted, and says nothing.
    const CLOCKS_READ_NS: Nanos = 2 * MICROSECOND_NS;
    /// How often that is tried.
    const READINGS: usize = 5;
    /// What no correction of a clock makes within [`CLOCKS_STAY_NS`], which is 5 µs at 500 ppm.
    const CLOCK_WAS_SET_NS: Nanos = 100 * MICROSECOND_NS;
    /// A stamp that is older than the read by more than this is one of a wall clock that was set meanwhile.
    const OLDEST_NS: Nanos = SECOND_NS;

    /// Has the kernel stamp what arrives on a socket. A socket that refuses (one of the Unix domain) gets no stamps.
    pub(crate) fn ask_for(socket: &OwnedFd) {
        let software = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE;
        let _ = setsockopt(socket, sockopt::Timestamping, &software);
    }

    /// Reads what has arrived, and when the last segment of it did.
    #[inline]
    pub(crate) fn read(socket: &OwnedFd, into: &mut [u8]) -> Result<(usize, Heard), Errno> {
        let mut control = [0; CONTROL_BYTES];
        let mut parts = [IoSliceMut::new(into)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())
            .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        let noticed_ns = monotonic_ns();
        let stamp = message.cmsgs().ok().into_iter().flatten().find_map(|part| match part {
            ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps.system),
            _ => None,
        });
        let arrived_ns = stamp.and_then(|stamp| {
            let seconds = u64::try_from(stamp.tv_sec()).ok().filter(|&seconds| seconds > 0)?;
            let wall_ns = seconds.checked_mul(SECOND_NS)?.checked_add(u64::try_from(stamp.tv_nsec()).ok()?)?;
            on_our_clock(wall_ns, noticed_ns)
        });
        Ok((message.bytes, Heard { noticed_ns, arrived_ns }))
    }

    /// A time of the wall clock on the monotonic one, where it makes sense as the arrival of what was read at `noticed_ns`.
    #[inline]
    fn on_our_clock(wall_ns: Nanos, noticed_ns: Nanos) -> Option<Nanos> {
        thread_local!(static AHEAD: Cell<(Nanos, Nanos)> = const { Cell::new((0, 0)) });
        let (mut read_ns, mut ahead_ns) = AHEAD.get();
        if read_ns == 0 || noticed_ns.saturating_sub(read_ns) > CLOCKS_STAY_NS {
            let before_ns = ahead_ns;
            (read_ns, ahead_ns) = (noticed_ns, wall_is_ahead_ns()?);
            AHEAD.set((read_ns, ahead_ns));
            // The clock was set: what was stamped before that cannot be told from what was stamped after.
            if before_ns > 0 && before_ns.abs_diff(ahead_ns) > CLOCK_WAS_SET_NS {
                return None;
            }
        }
        plausible(wall_ns.checked_sub(ahead_ns)?, noticed_ns)
    }

    /// By how much the wall clock is ahead of the monotonic one; `None` where somebody else had the CPU between the readings.
    fn wall_is_ahead_ns() -> Option<Nanos> {
        (0..READINGS).find_map(|_| {
            let before_ns = monotonic_ns();
            let wall = clock_gettime(ClockId::Realtime);
            let took_ns = monotonic_ns() - before_ns;
            let wall_ns = u64::try_from(wall.tv_sec).ok()? * SECOND_NS + u64::try_from(wall.tv_nsec).ok()?;
            wall_ns.checked_sub(before_ns + took_ns / 2).filter(|_| took_ns < CLOCKS_READ_NS)
        })
    }

    /// An arrival that was not after the read, but for the clocks' own error, nor absurdly long before it.
    fn plausible(arrived_ns: Nanos, noticed_ns: Nanos) -> Option<Nanos> {
        let is_plausible =
            arrived_ns <= noticed_ns + MILLISECOND_NS && noticed_ns.saturating_sub(arrived_ns) < OLDEST_NS;
        is_plausible.then(|| arrived_ns.min(noticed_ns))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use rustix::net::{AddressFamily, SocketType};
        use std::io::Write;
        use std::net::{TcpListener, TcpStream};
        use std::time::Duration;

        #[test]
        fn bytes_that_wait_to_be_read_have_arrived_when_they_came() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let ours: OwnedFd = TcpStream::connect(listener.local_addr().unwrap()).unwrap().into();
            ask_for(&ours);
            let (mut theirs, _) = listener.accept().unwrap();
            let mut into = [0; 64];
            // The kernel begins to stamp some time after it was first asked to.
            let mut stamped = None;
            for _ in 0..100 {
                let before_ns = monotonic_ns();
                theirs.write_all(b"hello").unwrap();
                let sent_ns = monotonic_ns();
                std::thread::sleep(Duration::from_millis(20));
                let (count, heard) = read(&ours, &mut into).unwrap();
                assert_eq!(&into[..count], b"hello");
                let Some(arrived_ns) = heard.arrived_ns else { continue };
                // It came while it was sent, but for the error of the clocks.
                assert!(arrived_ns + MILLISECOND_NS > before_ns, "{arrived_ns} {before_ns}");
                assert!(arrived_ns < sent_ns + MILLISECOND_NS, "{arrived_ns} {sent_ns}");
                assert!(heard.noticed_ns >= sent_ns + 20 * MILLISECOND_NS);
                stamped = Some(heard);
                break;
            }
            let heard = stamped.expect("Linux stamps what arrives over loopback");
            assert_eq!(heard.at_ns(), heard.arrived_ns.unwrap());
            assert_eq!(heard.ready_after(heard.arrived_ns.unwrap()).arrived_ns, heard.arrived_ns);
            assert_eq!(heard.ready_after(heard.noticed_ns).arrived_ns, None, "it was not there then");
            // It cannot have come before it was asked for, nor after it was read.
            assert_eq!(heard.not_before(heard.noticed_ns - 1).at_ns(), heard.noticed_ns - 1);
            assert_eq!(heard.not_before(Nanos::MAX).at_ns(), heard.noticed_ns);
            drop(theirs);
            assert_eq!(read(&ours, &mut into).unwrap().0, 0, "the end has no stamp, and is one");
        }

        #[test]
        fn a_socket_without_stamps_is_read_all_the_same() {
            let (ours, theirs) = rustix::net::socketpair(
                AddressFamily::UNIX,
                SocketType::STREAM,
                rustix::net::SocketFlags::NONBLOCK,
                None,
            )
            .unwrap();
            ask_for(&ours);
            assert!(matches!(read(&ours, &mut [0; 8]), Err(Errno::AGAIN)));
            rustix::io::write(&theirs, b"x").unwrap();
            let (count, heard) = read(&ours, &mut [0; 8]).unwrap();
            assert_eq!((count, heard.at_ns()), (1, heard.noticed_ns));
        }

        #[test]
        fn a_stamp_of_a_clock_that_was_set_is_none() {
            let now = 10 * SECOND_NS;
            assert_eq!(plausible(now - 5, now), Some(now - 5));
            assert_eq!(plausible(now + 5, now), Some(now), "the clocks' own error");
            assert_eq!(plausible(now + 2 * MILLISECOND_NS, now), None);
            assert_eq!(plausible(now - 3 * SECOND_NS, now), None);
        }
    }
}
