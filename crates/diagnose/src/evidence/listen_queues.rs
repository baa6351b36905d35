//! Connections that wait until somebody accepts them, at what listens beside a server: at what it asks in turn, mostly.
//!
//! A server that works on one connection at a time in each of its workers (a pool of processes) leaves the others in the queue of its socket, and
//! the kernel tells how many these are. Whoever accepts all and lets them wait within, for a lock or for a thread, has an empty one.

use super::sleepers::LEAST_LOOKS;
use crate::evidence::machines::Machines;
use crate::gap::Gap;
use duel_model::{HostDemand, ListenQueues as Looks, format_figure, sanitize_line};

/// Fewer at a time are those that arrive while somebody looks.
const LEAST_WAITING: f64 = 1.0;

/// Looks that have to agree about how many wait, give or take one, as a part of all: what is left for the ends of slots is less than half of it.
const MOST_LOOKS: f64 = 2.0 / 3.0;

/// What waits on either side, under load and beyond what does without.
pub(crate) struct ListenQueues {
    pub(crate) slow: Queued,
    pub(crate) fast: Queued,
}

/// What waits beside one of them.
pub(crate) struct Queued {
    /// Connections at a time, all sockets together: the mean of the looks.
    pub(crate) waiting: f64,
    /// How many wait in most looks, where these agree. Looks at the end of a slot lower the mean: nobody comes then after those that
    /// are served.
    pub(crate) in_most_looks: Option<f64>,
    /// The socket at which most of them wait, and how many do, where any do.
    longest: Option<(String, f64)>,
}

impl ListenQueues {
    /// `None` where it is not known of both, or too few looks tell it, and where the servers themselves are reached by a Unix socket: what waits
    /// there waits for them, and which one it is is not known.
    pub(crate) fn of(gap: &Gap<'_>, slow: &HostDemand, fast: &HostDemand) -> Option<Self> {
        gap.case.http().filter(|http| http.unix_socket.is_none())?;
        Self::seen(slow, fast)
    }

    fn seen(slow: &HostDemand, fast: &HostDemand) -> Option<Self> {
        Some(Self { slow: Queued::of(slow)?, fast: Queued::of(fast)? })
    }

    pub(crate) fn of_machines(gap: &Gap<'_>, machines: &Machines<'_>) -> Option<Self> {
        Self::of(gap, machines.slow.demand(), machines.fast.as_ref()?.demand())
    }

    /// The socket at which more wait beside the slow server than beside the fast one, all sockets together, if any do.
    pub(crate) fn where_more_wait(&self) -> Option<&str> {
        let (socket, _) = self.slow.longest.as_ref()?;
        (self.slow.waiting - self.fast.waiting >= LEAST_WAITING).then_some(socket)
    }

    /// `10.9 connections at a time wait to be accepted beside B, 10.9 of them at /run/php.sock, and beside A 0 do`.
    pub(crate) fn tell(&self, gap: &Gap<'_>) -> String {
        let [slow, fast] = [&self.slow, &self.fast].map(|queued| format_figure(queued.waiting));
        let (of_slow, of_fast) = (gap.slow_name(), gap.fast_name());
        let at = self.slow.longest.as_ref().map_or_else(String::new, |(socket, waiting)| {
            format!(", {} of them at {}", format_figure(*waiting), sanitize_line(socket))
        });
        format!("{slow} connections at a time wait to be accepted beside {of_slow}{at}, and beside {of_fast} {fast} do")
    }
}

impl Queued {
    fn of(demand: &HostDemand) -> Option<Self> {
        let (loaded, quiet) = (&demand.queues, &demand.quiet_queues);
        let is_enough = [loaded.looks, quiet.looks].iter().zip(LEAST_LOOKS).all(|(looks, least)| *looks >= least);
        if !is_enough {
            return None;
        }
        let more = |socket: &String| Some((loaded.mean(socket)? - quiet.mean(socket)?).max(0.0));
        let sockets: Option<Vec<(&String, f64)>> =
            loaded.waiting.keys().map(|socket| Some((socket, more(socket)?))).collect();
        let sockets = sockets?;
        let longest = sockets.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, waiting)| *waiting > 0.0);
        Some(Self {
            waiting: sockets.iter().map(|(_, waiting)| waiting).sum(),
            in_most_looks: in_most_looks(loaded, quiet, longest.map(|(_, waiting)| *waiting)),
            longest: longest.map(|(socket, waiting)| ((*socket).clone(), *waiting)),
        })
    }
}

/// How many wait in most looks under load, beyond those that wait at the same sockets without. `None` where looks do not agree, or not
/// about one socket: a queue that is long now and short then has no usual length.
fn in_most_looks(loaded: &Looks, quiet: &Looks, at_longest: Option<f64>) -> Option<f64> {
    let median = loaded.median()?;
    let close = loaded.looks_by_waiting.range(median.saturating_sub(1)..=median.saturating_add(1));
    let agree: u32 = close.map(|(_, looks)| looks).sum();
    if f64::from(agree) < MOST_LOOKS * f64::from(loaded.looks) {
        return None;
    }
    let usual = |socket: &String| Some(quiet.mean(socket)?.min(loaded.mean(socket)?));
    let usual: Option<Vec<f64>> = loaded.waiting.keys().map(usual).collect();
    let waiting = (median as f64 - usual?.iter().sum::<f64>()).max(0.0);
    // What lowers a mean leaves half of it at least; what is more than is usual is another socket's.
    at_longest.is_some_and(|mean| (0.5 * waiting..=waiting).contains(&mean)).then_some(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(looks: u32, waiting: &[(&str, u64)]) -> Looks {
        let waiting = waiting.iter().map(|(socket, count)| ((*socket).to_owned(), *count)).collect();
        Looks { looks, waiting, ..Looks::default() }
    }

    fn demand(loaded: Looks, quiet: Looks) -> HostDemand {
        HostDemand { queues: loaded, quiet_queues: quiet, ..HostDemand::default() }
    }

    #[test]
    fn what_waits_without_load_is_none_of_it() {
        let slow = demand(queues(10, &[("/run/a", 110), ("port 25", 40)]), queues(5, &[("port 25", 20)]));
        let fast = demand(queues(10, &[]), queues(5, &[("port 25", 20)]));
        let both = ListenQueues::seen(&slow, &fast).unwrap();
        assert_eq!((both.slow.waiting, both.fast.waiting), (11.0, 0.0));
        assert_eq!(both.where_more_wait(), Some("/run/a"));
        assert_eq!(ListenQueues::seen(&fast, &slow).unwrap().where_more_wait(), None);
        // As many wait beside the other one.
        assert_eq!(ListenQueues::seen(&slow, &slow).unwrap().where_more_wait(), None);
    }

    /// What is told of a queue beside which `quiet` connections wait at port 25 without load, of 5 looks together.
    fn usual(looks: &[(u64, u32)], waiting: &[(&str, u64)], quiet: u64) -> Option<f64> {
        let by_waiting: std::collections::BTreeMap<u64, u32> = looks.iter().copied().collect();
        let loaded =
            Looks { looks_by_waiting: by_waiting, ..queues(looks.iter().map(|(_, looks)| looks).sum(), waiting) };
        Queued::of(&demand(loaded, queues(5, &[("port 25", quiet)]))).unwrap().in_most_looks
    }

    #[test]
    fn looks_at_the_end_of_a_slot_lower_the_mean_and_not_what_is_usual() {
        assert_eq!(usual(&[(24, 6), (23, 1), (10, 1), (3, 2)], &[("/run/a", 183)], 0), Some(24.0));
        // What waits without load at another socket is none of it, and what waits at the same one is.
        assert_eq!(usual(&[(24, 8), (3, 2)], &[("/run/a", 198)], 30), Some(24.0));
        assert_eq!(usual(&[(24, 8), (23, 2)], &[("port 25", 238)], 20), Some(20.0));
    }

    #[test]
    fn a_queue_that_is_long_now_and_short_then_has_no_usual_length() {
        // A database behind the pool stands still for 62 % of the time.
        assert_eq!(usual(&[(24, 13), (2, 8)], &[("/run/a", 328)], 0), None);
        // Some looks see another socket's.
        assert_eq!(usual(&[(24, 17), (224, 3)], &[("/run/a", 480), ("port 25", 600)], 0), None);
        // Older archives do not tell of single looks.
        let old = demand(queues(10, &[("/run/a", 240)]), queues(5, &[]));
        assert_eq!(Queued::of(&old).unwrap().in_most_looks, None);
    }

    #[test]
    fn where_nobody_looked_or_hardly_anybody_nothing_is_known() {
        let seen = demand(queues(10, &[("/run/a", 110)]), queues(5, &[]));
        let hardly = demand(queues(3, &[("/run/a", 33)]), queues(5, &[]));
        for unknown in [HostDemand::default(), hardly, demand(queues(10, &[]), queues(0, &[]))] {
            assert!(ListenQueues::seen(&seen, &unknown).is_none() && ListenQueues::seen(&unknown, &seen).is_none());
        }
    }
}
