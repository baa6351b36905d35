//! What it costs to sleep and be woken on this machine.

use crate::clock::monotonic_ns;
use crate::limits::{allowed_cpus, cpus_online};
use crate::poller::{Interest, Poller};
use duel_model::{MICROSECOND_NS, Nanos};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

/// Sleeps that are timed: some of them meet a disturbance, and their median does not.
const SLEEPS: usize = 15;
/// How long each is meant to be: long enough for a CPU to halt.
const SLEEP_NS: Nanos = 100 * MICROSECOND_NS;
/// Wake-ups that are timed from the sender's side.
const WAKE_UPS: usize = 31;
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

/// What it costs to wake a sleeping thread that is on another CPU, ns of the sender's time: by how much longer a `write` takes to
/// somebody who sleeps than one to the same who is awake, median. `None` where there is no other CPU, or where threads cannot be
/// put on one. It is measured once for each process, within some 10 ms.
///
/// The sender stands for a server, so it may be put on a CPU that this process was not given, for that time.
pub fn waking_cost_ns() -> Option<Nanos> {
    static COST: OnceLock<Option<Nanos>> = OnceLock::new();
    *COST.get_or_init(|| {
        let measured = std::thread::Builder::new().name("duel-wakes".to_owned()).spawn(median_waking_ns);
        measured.ok().and_then(|thread| thread.join().ok().flatten())
    })
}

/// Called on a thread of its own, which becomes the sender.
fn median_waking_ns() -> Option<Nanos> {
    let allowed = allowed_cpus();
    let sleepers = *allowed.last()?;
    let elsewhere = allowed.iter().copied().chain(0..cpus_online()?).find(|&cpu| cpu != sleepers)?;
    move_to(elsewhere)?;
    let (mut ours, theirs) = UnixStream::pair().ok()?;
    let sleeper = std::thread::Builder::new().name("duel-sleeps".to_owned()).spawn(move || {
        move_to(sleepers)?;
        sleep_until_closed(theirs).ok()
    });
    let mut waking_ns = Vec::with_capacity(WAKE_UPS);
    for _ in 0..WAKE_UPS {
        // By then the other one sleeps.
        std::thread::sleep(Duration::from_nanos(2 * SLEEP_NS));
        let [before_ns, woken_ns, awake_ns] = [false, true, true].map(|writes| {
            if writes && ours.write_all(b"x").is_err() {
                return 0;
            }
            monotonic_ns()
        });
        waking_ns.push(woken_ns.saturating_sub(before_ns).saturating_sub(awake_ns.saturating_sub(woken_ns)));
    }
    drop(ours);
    // Whoever could not be put there, or has ended early, was not woken there.
    sleeper.ok()?.join().ok()??;
    waking_ns.sort_unstable();
    Some(waking_ns[WAKE_UPS / 2])
}

/// Sleeps until there is something, reads it, and sleeps again, until the other end is gone.
fn sleep_until_closed(mut end: UnixStream) -> std::io::Result<()> {
    end.set_nonblocking(true)?;
    let mut poller = Poller::new()?;
    poller.add(&end, 0, Interest::Read)?;
    loop {
        poller.wait(None)?;
        if matches!(end.read(&mut [0; 8]), Ok(0)) {
            return Ok(());
        }
    }
}

/// Puts the calling thread on one CPU; `None` where that cannot be.
fn move_to(cpu: u32) -> Option<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::thread::{CpuSet, sched_setaffinity};
        let mut set = CpuSet::new();
        set.set(usize::try_from(cpu).ok().filter(|&cpu| cpu < CpuSet::MAX_CPU)?);
        sched_setaffinity(None, &set).ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = cpu;
        None
    }
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

    #[test]
    fn waking_is_measured_where_there_is_another_cpu_and_moves_no_other_thread() {
        let before = allowed_cpus();
        let cost_ns = waking_cost_ns();
        assert_eq!(allowed_cpus(), before);
        assert_eq!(waking_cost_ns(), cost_ns);
        if cfg!(target_os = "linux") && before.len() > 1 {
            assert!(cost_ns.is_some());
        }
    }
}
