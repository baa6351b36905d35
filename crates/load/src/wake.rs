//! What it costs to sleep and be woken on this machine.

use crate::clock::monotonic_ns;
use crate::poller::Poller;
use duel_model::{MICROSECOND_NS, Nanos};
use std::sync::OnceLock;

/// Sleeps that are timed: some of them meet a disturbance, and their median does not.
const SLEEPS: usize = 15;
/// How long each is meant to be: long enough for a CPU to halt.
const SLEEP_NS: Nanos = 100 * MICROSECOND_NS;
/// Where it cannot be measured: the middle of what virtual CPUs were seen to take (20 to 60 µs).
const USUAL_NS: Nanos = 40 * MICROSECOND_NS;

/// What a sleep costs, ns: by how much a thread that wanted to sleep for a short while woke up too late, median. It is
/// measured once for each process, within some 3 ms.
///
/// The timer that wakes the thread stands for the sender that would: both interrupt a halted CPU, which then has to come
/// back. What waking costs the sender itself comes on top, so this is the least that a sleep costs.
pub fn wake_cost_ns() -> Nanos {
    static COST: OnceLock<Nanos> = OnceLock::new();
    *COST.get_or_init(|| {
        // A poller sets its thread's timers to be precise: a thread of its own leaves the caller's as they are.
        let measured = std::thread::Builder::new().name("duel-wake".to_owned()).spawn(median_lateness_ns);
        measured.ok().and_then(|thread| thread.join().ok().flatten()).unwrap_or(USUAL_NS)
    })
}

fn median_lateness_ns() -> Option<Nanos> {
    let mut poller = Poller::new().ok()?;
    let mut late_ns = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let before_ns = monotonic_ns();
        poller.wait(Some(SLEEP_NS)).ok()?;
        late_ns.push((monotonic_ns() - before_ns).saturating_sub(SLEEP_NS));
    }
    late_ns.sort_unstable();
    Some(late_ns[SLEEPS / 2].max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_costs_something_and_is_measured_once() {
        let cost_ns = wake_cost_ns();
        assert!(cost_ns > 0);
        assert_eq!(wake_cost_ns(), cost_ns);
    }
}
