//! Waiting until an instant and no shorter; burning CPU and no less.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The server's end, as seen by a thread that waits: a long wait must not outlive the server.
#[derive(Default)]
pub(crate) struct Stop {
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    pub(crate) fn stop(&self) {
        let _guard = hold(&self.lock);
        self.stopped.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns at `deadline` or later, never earlier; an error when the server stops meanwhile.
    ///
    /// The last `spin` before the deadline is spent spinning: the kernel wakes a sleeper some tens of microseconds
    /// late, and a delay that is told exactly must be kept exactly. Zero where many waiters share a deadline, whose
    /// spinning would only delay each other.
    pub(crate) fn wait_until(&self, deadline: Instant, spin: Duration) -> io::Result<()> {
        /// A condition variable can be woken by the stop but is coarse; a plain sleep is the opposite.
        const COARSE: Duration = Duration::from_millis(20);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.stopped() {
                return Err(stopping());
            } else if left.is_zero() {
                return Ok(());
            } else if left > 2 * COARSE {
                let guard = hold(&self.lock);
                if !self.stopped() {
                    drop(self.changed.wait_timeout(guard, left - COARSE));
                }
            } else if left > spin {
                std::thread::sleep(left - spin);
            } else {
                while Instant::now() < deadline {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Burns `amount` of this thread's CPU time, mostly in user mode, however often the thread is preempted.
    pub(crate) fn burn(&self, amount: Duration) -> io::Result<()> {
        let end = thread_cpu() + amount;
        loop {
            let left = end.saturating_sub(thread_cpu());
            if left.is_zero() {
                return Ok(());
            }
            if self.stopped() {
                return Err(stopping());
            }
            // Spinning on the wall clock stays in user mode (the CPU clock is a system call), and can only burn less
            // than its length, never more.
            let until = Instant::now() + left.min(Duration::from_millis(1));
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
}

/// The CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Asks the kernel to wake this thread's sleeps without its usual 50 µs of slack.
pub(crate) fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Locks; a panic elsewhere while holding the lock leaves data that is still whole enough to count.
pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stopping() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the server is stopping")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_early() {
        let stop = Stop::default();
        for (micros, spin) in [(0, 60), (30, 60), (500, 60), (500, 0), (50_000, 60)] {
            let deadline = Instant::now() + Duration::from_micros(micros);
            stop.wait_until(deadline, Duration::from_micros(spin)).unwrap();
            assert!(Instant::now() >= deadline);
        }
    }

    #[test]
    fn burning_takes_cpu_not_just_time() {
        let before = thread_cpu();
        Stop::default().burn(Duration::from_millis(5)).unwrap();
        assert!(thread_cpu() - before >= Duration::from_millis(5));
    }

    #[test]
    fn a_stop_ends_a_long_wait() {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stop.wait_until(Instant::now() + Duration::from_secs(3600), Duration::ZERO));
            stop.stop();
            assert!(waiter.join().unwrap().is_err());
        });
    }
}
