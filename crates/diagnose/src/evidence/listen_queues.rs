//! Connections that wait until somebody accepts them, at what listens beside a server: at what it asks in turn, mostly.
//!
//! A server that works on one connection at a time in each of its workers (a pool of processes) leaves the others in the queue of its socket, and
//! the kernel tells how many these are. Whoever accepts all and lets them wait within, for a lock or for a thread, has an empty one.

use super::sleepers::LEAST_LOOKS;
use crate::evidence::machines::Machines;
use crate::gap::Gap;
use duel_model::{HostDemand, format_figure, sanitize_line};

/// Fewer at a time are those that arrive while somebody looks.
const LEAST_WAITING: f64 = 1.0;

/// What waits on either side, under load and beyond what does without.
pub(crate) struct ListenQueues {
    pub(crate) slow: Queued,
    pub(crate) fast: Queued,
}

/// What waits beside one of them.
pub(crate) struct Queued {
    /// Connections at a time, all sockets together.
    pub(crate) waiting: f64,
    /// The socket at which most of them wait, where any do.
    longest: Option<String>,
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
        let socket = self.slow.longest.as_deref()?;
        (self.slow.waiting - self.fast.waiting >= LEAST_WAITING).then_some(socket)
    }

    /// `11.0 connections at a time wait to be accepted beside B, most of them at /run/php.sock, and beside A 0 do`.
    pub(crate) fn tell(&self, gap: &Gap<'_>) -> String {
        let [slow, fast] = [&self.slow, &self.fast].map(|queued| format_figure(queued.waiting));
        let (of_slow, of_fast) = (gap.slow_name(), gap.fast_name());
        let at = self
            .slow
            .longest
            .as_ref()
            .map_or_else(String::new, |socket| format!(", most of them at {}", sanitize_line(socket)));
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
        let means = sockets.iter().map(|(_, waiting)| waiting).sum();
        let quiet_sum: u64 = quiet.waiting.values().sum();
        let by_median = loaded.median().map(|median| median as f64 - quiet_sum as f64 / f64::from(quiet.looks));
        Some(Self {
            waiting: by_median.map_or(means, |waiting| waiting.max(0.0)),
            longest: longest.map(|(socket, _)| (*socket).clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(looks: u32, waiting: &[(&str, u64)]) -> duel_model::ListenQueues {
        let waiting = waiting.iter().map(|(socket, count)| ((*socket).to_owned(), *count)).collect();
        duel_model::ListenQueues { looks, waiting, ..duel_model::ListenQueues::default() }
    }

    fn demand(loaded: duel_model::ListenQueues, quiet: duel_model::ListenQueues) -> HostDemand {
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

    #[test]
    fn looks_at_the_end_of_a_slot_do_not_lower_it() {
        let looks = [(24, 7), (10, 1), (3, 2)].into();
        let loaded = duel_model::ListenQueues { looks_by_waiting: looks, ..queues(10, &[("/run/a", 184)]) };
        let slow = demand(loaded, queues(4, &[]));
        let both = ListenQueues::seen(&slow, &demand(queues(10, &[]), queues(4, &[]))).unwrap();
        assert_eq!(both.slow.waiting, 24.0);
        assert_eq!(both.where_more_wait(), Some("/run/a"));
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
