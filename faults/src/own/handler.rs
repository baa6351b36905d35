//! What an application does for each request: faults that no cause of duel's stands for.

use super::burn;
use crate::twin::Handler;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A [`Handler`] at work, for all connections together.
#[derive(Debug)]
pub(super) struct Worker {
    handler: Handler,
    shared_lock: Mutex<()>,
    requests: AtomicU64,
    window: Mutex<Window>,
    since: Instant,
}

/// How many requests were let through in the latest window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    number: u64,
    let_through: u32,
}

impl Window {
    /// Lets a request through at this time, or tells for how long it has to wait before it asks again.
    fn ask(&mut self, now_us: u64, per_window: u32, window_us: u64) -> Result<(), u64> {
        let number = now_us / window_us;
        if number != self.number {
            *self = Window { number, let_through: 0 };
        }
        if self.let_through == per_window {
            return Err((number + 1) * window_us - now_us);
        }
        self.let_through += 1;
        Ok(())
    }
}

impl Worker {
    pub(super) fn new(handler: Handler) -> Worker {
        Worker {
            handler,
            shared_lock: Mutex::default(),
            requests: AtomicU64::new(0),
            window: Mutex::default(),
            since: Instant::now(),
        }
    }

    /// What is done for one request. `own_lock` is the connection's.
    pub(super) fn work(&self, own_lock: &Mutex<()>) {
        match self.handler {
            Handler::Plain => {}
            Handler::Sleeps { us } => sleep(us),
            Handler::Burns { us } => burn(Duration::from_micros(us)),
            Handler::Locks { us, shared } => {
                let lock = if shared { &self.shared_lock } else { own_lock };
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                sleep(us);
            }
            Handler::SlowShare { every, us } => {
                let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
                if number.is_multiple_of(u64::from(every)) {
                    sleep(us);
                }
            }
            Handler::Limits { per_window, window_us } => {
                let ask = || {
                    let now_us = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
                    self.window.lock().unwrap_or_else(PoisonError::into_inner).ask(now_us, per_window, window_us)
                };
                while let Err(wait_us) = ask() {
                    sleep(wait_us);
                }
            }
        }
    }
}

fn sleep(us: u64) {
    std::thread::sleep(Duration::from_micros(us));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lets_through_what_it_has_room_for_and_the_next_one_begins_anew() {
        let mut window = Window::default();
        let mut ask = |now_us| window.ask(now_us, 2, 1000);
        assert_eq!([ask(10), ask(20), ask(300), ask(999)], [Ok(()), Ok(()), Err(700), Err(1)]);
        assert_eq!([ask(1000), ask(1001), ask(1002)], [Ok(()), Ok(()), Err(998)]);
        assert_eq!(ask(7_500), Ok(()), "windows in which nobody asked are not saved up");
    }

    #[test]
    fn each_so_manyth_request_waits_and_the_others_do_not() {
        let worker = Worker::new(Handler::SlowShare { every: 3, us: 20_000 });
        let own = Mutex::new(());
        let slept = |worker: &Worker| {
            let before = Instant::now();
            worker.work(&own);
            before.elapsed() >= Duration::from_millis(20)
        };
        // The third and the sixth sleep; that the others do not cannot be told from their time on a busy machine.
        let slow: Vec<bool> = (1..=6).map(|_| slept(&worker)).collect();
        assert!(slow[2] && slow[5], "{slow:?}");
    }

    #[test]
    fn handlers_pass_through_a_command_line() {
        for handler in [
            Handler::Plain,
            Handler::Sleeps { us: 5 },
            Handler::Burns { us: 6 },
            Handler::Locks { us: 7, shared: true },
            Handler::Locks { us: 7, shared: false },
            Handler::SlowShare { every: 20, us: 50_000 },
            Handler::Limits { per_window: 8, window_us: 100_000 },
        ] {
            assert_eq!(Handler::parse(&handler.word()), Ok(handler));
        }
        for wrong in
            ["", "plain:1", "sleeps", "sleeps:-1", "locks:1:2", "slow-share:0:5", "limits:5:0", "limits:99999999999:5"]
        {
            assert!(Handler::parse(wrong).is_err(), "{wrong}");
        }
    }
}
