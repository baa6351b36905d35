//! The clocks: one monotonic for all that is measured, CPU time for the audit, the wall only for labels.

use duel_model::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in ns on the monotonic clock. Its zero means nothing; only differences do.
#[inline]
pub fn monotonic_ns() -> Nanos {
    to_nanos(clock_gettime(ClockId::Monotonic))
}

/// CPU time (user and system) that the calling thread has used, in ns; `None` where the system does not tell.
pub fn thread_cpu_ns() -> Option<Nanos> {
    // macOS and the BSDs that rustix covers have this clock too.
    Some(to_nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// How often the calling thread has gone to sleep until now, because it waited; `None` where the system does not tell.
pub(crate) fn sleeps() -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
        u64::try_from(usage.voluntary_context_switches()).ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
    None
}

/// For how long the calling thread has been ready to run until now while others had its CPU, ns; `None` where the system does not
/// tell. The second figure of Linux's `schedstat`, whose whole line has three of at most 20 digits.
pub(crate) fn waited_for_cpu_ns() -> Option<Nanos> {
    #[cfg(target_os = "linux")]
    {
        use std::io::Read;
        let mut line = [0; 64];
        let count = std::fs::File::open("/proc/thread-self/schedstat").ok()?.read(&mut line).ok()?;
        std::str::from_utf8(&line[..count]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Wall clock in ms since 1970; 64 bits, so that 2038 passes unnoticed.
pub fn unix_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

#[inline]
fn to_nanos(time: Timespec) -> Nanos {
    // The monotonic and CPU clocks are never negative.
    time.tv_sec as u64 * duel_model::SECOND_NS + time.tv_nsec as u64
}
