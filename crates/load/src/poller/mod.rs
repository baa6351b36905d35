//! Readiness of descriptors, with nanosecond timeouts: epoll on Linux, kqueue on the BSDs and macOS.
//!
//! Level-triggered, because after a response of known length no second read is needed to arm anything. Timeouts are
//! nanoseconds all the way (`epoll_pwait2`, `kevent`): rounding up to milliseconds would send ops late and blame the
//! server. An io_uring back end would implement the same interface with completions instead of readiness.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use epoll::Poller;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod kqueue;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use kqueue::Poller;

/// Name of the mechanism in use.
pub const MECHANISM: &str = if cfg!(any(target_os = "linux", target_os = "android")) { "epoll" } else { "kqueue" };

/// What to be told about a descriptor. Readability is always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, end of stream, or an error.
    Read,
    /// As `Read`, and room to write.
    ReadWrite,
}

/// A descriptor became ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The token that the descriptor was registered with.
    pub token: usize,
    /// Reading will not block: there is data, the end of the stream, or an error.
    pub readable: bool,
    /// Writing will not block.
    pub writable: bool,
}

/// Most events that one wait returns. Enough to amortise the call; small enough that the last of a batch does not
/// wait long behind the others (the audit's loop lag shows how long).
pub(crate) const BATCH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_wait_lasts_at_least_its_timeout_and_is_not_rounded_to_milliseconds() {
        let mut poller = Poller::new().unwrap();
        let mut shortest = u64::MAX;
        for _ in 0..50 {
            let before = monotonic_ns();
            assert!(poller.wait(Some(150_000)).unwrap().is_empty());
            let waited = monotonic_ns() - before;
            assert!(waited >= 150_000, "woke after {waited} ns");
            shortest = shortest.min(waited);
        }
        // The best of 50 shows the resolution, however busy the machine: a millisecond timer could never do it.
        assert!(shortest < 900_000, "{shortest}");
    }

    #[test]
    fn readiness_is_level_triggered_and_carries_the_token() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&ours, 7, Interest::Read).unwrap();
        assert!(poller.wait(Some(0)).unwrap().is_empty());
        theirs.write_all(b"x").unwrap();
        for _ in 0..2 {
            let events = poller.wait(Some(1_000_000_000)).unwrap().to_vec();
            assert_eq!(events, [Event { token: 7, readable: true, writable: false }]);
        }
        poller.modify(&ours, 7, Interest::ReadWrite).unwrap();
        let events = poller.wait(Some(1_000_000_000)).unwrap().to_vec();
        // kqueue reports the two filters as two events.
        assert!(events.iter().any(|event| event.writable) && events.iter().any(|event| event.readable));
        poller.modify(&ours, 7, Interest::Read).unwrap();
        drop(theirs);
        assert!(poller.wait(Some(1_000_000_000)).unwrap()[0].readable, "end of stream is readable");
    }
}
