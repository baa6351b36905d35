//! One stall of the whole server: a known moment from which nobody is answered, and a known end.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::clock::{Stop, hold};
use crate::truth::{Ledger, Stalled};

/// The state of one `/stall-once/MS/AFTER`, shared by all connections.
pub(crate) struct Stall {
    length: Duration,
    after: u64,
    asked: AtomicU64,
    window: OnceLock<(Instant, Instant)>,
    held: AtomicU64,
}

impl Stall {
    /// The one stall of these parameters on this server.
    pub(crate) fn of(ledger: &Ledger, length: Duration, after: u64) -> Arc<Stall> {
        let mut stalls = hold(&ledger.stalls);
        match stalls.iter().find(|stall| stall.is(length, after)) {
            Some(stall) => Arc::clone(stall),
            None => {
                let stall = Arc::new(Stall {
                    length,
                    after,
                    asked: AtomicU64::new(0),
                    window: OnceLock::new(),
                    held: AtomicU64::new(0),
                });
                stalls.push(Arc::clone(&stall));
                stall
            }
        }
    }

    pub(crate) fn is(&self, length: Duration, after: u64) -> bool {
        (self.length, self.after) == (length, after)
    }

    /// Returns at once, or at the end of the stall.
    ///
    /// Requests are told apart by their number, not by a look at the clock: those before the AFTER-th are never held,
    /// the AFTER-th begins the stall, and those behind it are held if they come before its end. So no request can slip
    /// through between the decision and the window.
    pub(crate) fn pass(&self, stop: &Stop) -> io::Result<()> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if number < self.after {
            return Ok(());
        }
        if number == self.after {
            let now = Instant::now();
            let _ = self.window.set((now, now + self.length));
        }
        let (_, ended) = *self.window.wait();
        if Instant::now() >= ended {
            return Ok(());
        }
        self.held.fetch_add(1, Ordering::Relaxed);
        stop.wait_until(ended, Duration::ZERO)
    }

    /// `None` until it has begun.
    pub(crate) fn truth(&self) -> Option<Stalled> {
        let (began, ended) = *self.window.get()?;
        Some(Stalled { began, ended, held: self.held.load(Ordering::Relaxed) })
    }
}
