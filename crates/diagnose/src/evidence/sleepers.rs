//! What the threads of a server sleep in under load, beyond what they sleep in when there is nothing to do.
//!
//! The kernel tells the function in which a thread sleeps (`wchan`). Threads that wait for work sleep without load, too, so only what
//! is more under load is about requests. Whoever waits for another thread of its program sleeps in a futex (Franke, Russell and
//! Kirkwood, *Fuss, Futexes and Furwocks*, 2002): for a lock, a place in a pool, or work that a thread does for all. Some runtimes sleep
//! for timers in a futex as well; these have a time-out, which the arguments of the system call tell.

use crate::cause::Standing;
use crate::evidence::machines::{Machines, pid};
use crate::evidence::scaling::{ONE_AT_A_TIME, in_hand_at_a_time, served_at_a_time};
use crate::gap::{Flip, Gap, View};
use duel_model::{HostDemand, Sleepers, format_figure};

/// Fewer threads at a time are not worth a word.
const LEAST_THREADS: f64 = 0.5;
/// Most kinds of sleep that are told.
const MOST_TOLD: usize = 3;

/// What is slept for, by parts of the names of kernel functions.
const SLEEPS: &[(&str, &[&str])] = &[
    ("for another thread of the server, or for a timer of its runtime", &["futex"]),
    ("for a timer", &["nanosleep"]),
    ("for any of several connections", &["ep_poll", "epoll", "poll_schedule", "do_poll", "do_select"]),
    ("for what arrives at a socket", SOCKETS),
    ("for a disk", DISK),
    ("for a pipe", &["pipe"]),
];

const SOCKETS: &[&str] = &["sk_wait", "wait_woken", "unix_stream", "inet_csk", "skb_recv", "tcp_recv"];

const DISK: &[&str] =
    &["io_schedule", "folio_wait", "jbd2", "xlog", "xfs_log", "btrfs", "blk_", "bio_wait", "bit_wait_io"];

/// Looks that tell who waits at a server: those of three slots under load, and those before one slot without.
pub(super) const LEAST_LOOKS: [u32; 2] = [9, 3];

/// Threads of the server that sleep until another one wakes them, at a time, more under load than without; `None` where that is not
/// known, or too few looks tell it.
pub(crate) fn for_each_other(demand: &HostDemand) -> Option<f64> {
    let [loaded, quiet] = [&demand.sleepers, &demand.quiet_sleepers].map(Sleepers::mean_without_timeout);
    Some(loaded? - quiet?).filter(|_| looked_enough(demand))
}

/// Threads of the server that sleep for a disk, at a time, more under load than without; `None` in the same way.
pub(crate) fn for_disks(demand: &HostDemand) -> Option<f64> {
    looked_enough(demand).then(|| more_under_load(demand, |function| is_of(DISK, function)))?
}

/// The same of those that sleep until something arrives at a socket.
pub(crate) fn for_sockets(demand: &HostDemand) -> Option<f64> {
    looked_enough(demand).then(|| more_under_load(demand, |function| is_of(SOCKETS, function)))?
}

/// Requests that wait for each other within the slow side's server: for a lock, or for a place in a pool.
pub(crate) struct WaitingWithin {
    connections: f64,
    /// Requests that each side serves at a time (Little's law).
    by_slow: f64,
    /// The same of the slow side, without those that travel.
    pub(crate) in_hand: f64,
    by_fast: f64,
    /// Threads of each side that sleep until another one of the server wakes them, at a time, more than without load.
    asleep_on_slow: f64,
    asleep_on_fast: f64,
    /// What is not there over one connection, as a share of the gap under `many`.
    pub(crate) share: f64,
}

impl WaitingWithin {
    /// `None` where it does not show. Those who sleep so have to be nearly all requests beyond those that are served at a time, more than
    /// without load, and more than on the fast side; and a quarter of the gap must not be there over one connection.
    pub(crate) fn of(
        gap: &Gap<'_>,
        machines: &Machines<'_>,
        many: &View<'_>,
        alone: &View<'_>,
    ) -> Result<Option<Self>, Standing> {
        let on_fast = machines.fast.as_ref().and_then(|fast| for_each_other(fast.demand()));
        let (Some(asleep_on_slow), Some(on_fast)) = (for_each_other(machines.slow.demand()), on_fast) else {
            return Ok(None);
        };
        let Some([by_slow, by_fast]) = served_at_a_time(many, alone) else { return Ok(None) };
        let asleep_on_fast = on_fast.max(0.0);
        let connections = f64::from(machines.view.connections().unwrap_or(gap.case.plan.lanes()));
        let waiting = connections - by_slow.max(1.0);
        // Of fewer than two nobody can tell a lock from a thread that hands its work to another one.
        let is_so = waiting >= 2.0 && asleep_on_slow - asleep_on_fast >= Flip::EXPLAINS * waiting;
        let more_log = many.log.mid - alone.log.mid;
        let least = (more_log - many.log.half().hypot(alone.log.half())) / many.log.mid;
        if !is_so || least < Flip::NOTEWORTHY {
            return Ok(None);
        }
        let in_hand = in_hand_at_a_time(gap, alone, by_slow)?;
        let share = more_log / many.log.mid;
        Ok(Some(Self { connections, by_slow, in_hand, by_fast, asleep_on_slow, asleep_on_fast, share }))
    }

    /// `of 9 requests at a time A serves 3.0, and 5.7 more of its threads ...`
    pub(crate) fn tell(&self, gap: &Gap<'_>) -> String {
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        let travel = self.by_slow - self.in_hand;
        let travelling = if travel >= 0.1 { format!(" ({travel:.1} of them travel)") } else { String::new() };
        format!(
            "of {:.0} requests at a time {slow} serves {:.1}{travelling}, and {:.1} more of its threads than without load sleep until \
             another one of them wakes them; {fast} serves {:.1}, and there it is {:.1}",
            self.connections, self.by_slow, self.asleep_on_slow, self.by_fast, self.asleep_on_fast
        )
    }

    /// Whether several seem to be served at a time, as long as those that travel are counted.
    pub(crate) fn seems_several(&self) -> bool {
        self.by_slow >= ONE_AT_A_TIME
    }
}

/// How to find out what they wait for.
pub(crate) fn thread_dump(gap: &Gap<'_>) -> String {
    let (slow, pid) = (gap.slow_name(), pid(gap, gap.slow));
    format!(
        "A thread dump of {slow}'s server under load (`gdb -p {pid} -batch -ex 'thread apply all bt'`, `jstack {pid}`, `py-spy dump \
         --pid {pid}`) shows where most of its threads wait: for which lock or pool, and who holds it."
    )
}

fn is_of(parts: &[&str], function: &str) -> bool {
    parts.iter().any(|part| function.contains(part))
}

fn looked_enough(demand: &HostDemand) -> bool {
    let looks = [demand.sleepers.looks, demand.quiet_sleepers.looks];
    looks.iter().zip(LEAST_LOOKS).all(|(looks, least)| *looks >= least)
}

fn more_under_load(demand: &HostDemand, is_such: impl Fn(&str) -> bool + Copy) -> Option<f64> {
    Some(demand.sleepers.mean(is_such)? - demand.quiet_sleepers.mean(is_such)?)
}

/// What more threads of the slow side's server sleep for under load than without, and how many of the fast side's do, the most first:
/// `12.6 threads at a time for another thread of the server (futex_wait_queue; A: 0.1)`. `None` where that is not known of both, or
/// there is nothing to tell.
pub(crate) fn told(slow: &HostDemand, fast: &HostDemand, fast_name: &str) -> Option<String> {
    let mut found: Vec<(f64, String)> = Vec::new();
    let functions = slow.sleepers.threads.keys();
    for function in functions {
        let [of_slow, of_fast] = [slow, fast].map(|demand| more_under_load(demand, |name| name == function));
        let (of_slow, of_fast) = (of_slow?, of_fast?);
        if of_slow < LEAST_THREADS {
            continue;
        }
        let of = SLEEPS.iter().find(|(_, parts)| is_of(parts, function));
        let told = of.map_or("in the kernel", |(told, _)| told);
        let (threads, others) = (format_figure(of_slow), format_figure(of_fast.max(0.0)));
        found.push((of_slow, format!("{threads} threads at a time {told} ({function}; {fast_name}: {others})")));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let told: Vec<String> = found.into_iter().take(MOST_TOLD).map(|(_, told)| told).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asleep(looks: u32, untimed: u64, threads: &[(&str, u64)]) -> Sleepers {
        let threads = threads.iter().map(|(function, count)| ((*function).to_owned(), *count)).collect();
        Sleepers { looks, threads, without_timeout: untimed, ..Sleepers::default() }
    }

    fn demand(loaded: (u64, &[(&str, u64)]), quiet: (u64, &[(&str, u64)])) -> HostDemand {
        HostDemand {
            sleepers: asleep(10, loaded.0, loaded.1),
            quiet_sleepers: asleep(5, quiet.0, quiet.1),
            ..HostDemand::default()
        }
    }

    #[test]
    fn who_waits_for_a_disk_is_told_from_who_waits_for_a_connection() {
        let (loaded, quiet): (&[_], &[_]) =
            (&[("folio_wait_bit_common", 12), ("io_schedule", 8), ("ep_poll", 30)], &[("ep_poll", 20)]);
        assert_eq!(for_disks(&demand((0, loaded), (0, quiet))), Some(2.0));
        let few = HostDemand { sleepers: asleep(8, 0, loaded), ..demand((0, loaded), (0, quiet)) };
        assert_eq!(for_disks(&few), None);
    }

    #[test]
    fn who_waits_for_work_or_for_a_timer_does_not_wait_for_others() {
        // A pool of 16: all wait for work without load, and six still do under load.
        let pool =
            demand((60, &[("futex_wait_queue", 60), ("hrtimer_nanosleep", 100)]), (80, &[("futex_wait_queue", 80)]));
        assert_eq!(for_each_other(&pool), Some(-10.0));
        let timers = demand((0, &[("futex_wait_queue", 130)]), (0, &[("wait_woken", 70)]));
        assert_eq!(for_each_other(&timers), Some(0.0));
        let lock = demand((130, &[("futex_wait_queue", 130), ("hrtimer_nanosleep", 10)]), (0, &[("wait_woken", 70)]));
        assert_eq!(for_each_other(&lock), Some(13.0));
        let told = told(&lock, &pool, "A").unwrap();
        assert_eq!(
            told,
            "13.0 threads at a time for another thread of the server, or for a timer of its runtime (futex_wait_queue; A: 0), 1.00 \
             threads at a time for a timer (hrtimer_nanosleep; A: 10.0)"
        );
    }

    #[test]
    fn where_nobody_looked_or_hardly_anybody_nothing_is_known() {
        let seen = demand((130, &[("futex_wait_queue", 130)]), (0, &[("wait_woken", 70)]));
        assert_eq!(for_each_other(&HostDemand::default()), None);
        assert_eq!(for_each_other(&HostDemand { quiet_sleepers: Sleepers::default(), ..seen.clone() }), None);
        let once = HostDemand { sleepers: asleep(3, 39, &[("futex_wait_queue", 39)]), ..seen.clone() };
        assert_eq!(for_each_other(&once), None);
        assert_eq!(told(&seen, &HostDemand::default(), "A"), None);
    }
}
