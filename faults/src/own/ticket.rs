//! A lock that gets slower the more want it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A ticket lock: fair, and whoever waits keeps asking. With more threads than CPUs the one whose turn it is has to wait
/// until all others have asked in vain, so that more threads do less work. Databases and kernels have had such locks.
#[derive(Debug, Default)]
pub(crate) struct TicketLock {
    next: AtomicU64,
    served: AtomicU64,
}

impl TicketLock {
    /// Waits for its turn.
    pub(crate) fn lock(&self) -> Held<'_> {
        /// About as long as a short critical section takes; then others may have the CPU.
        const SPINS: u32 = 100;
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        let mut asked = 0;
        while self.served.load(Ordering::Acquire) != mine {
            asked += 1;
            if asked % SPINS == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Held(self)
    }
}

/// The lock is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a TicketLock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.served.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_at_a_time() {
        let lock = TicketLock::default();
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mine = Cell::new(0);
                    for _ in 0..500 {
                        let _held = lock.lock();
                        mine.set(inside.fetch_add(1, Ordering::Relaxed));
                        assert_eq!(mine.get(), 0);
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
    }
}
