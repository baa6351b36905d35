//! How long transactions wait until the log is written and flushed, by what the server's threads were seen in.
//!
//! At an instant under load, the mean number of connections that wait for the log is the rate of transactions times what each of them
//! waits for it (Little, *A Proof for the Queuing Formula: L = λW*, 1961). With one connection whoever writes or flushes is all that waits.
//! With several, one thread does so for all that come meanwhile, and these sleep until it wakes them. So of a look at which a thread is in
//! the log, there count that thread and those that sleep until another thread wakes them, beyond as many as do so without load; never
//! more than there are connections. Most that it can be is that all of them wait whenever a thread is in the log.
//!
//! Writes count as flushes do: past the page cache, and with `O_DSYNC`, it is they that wait for the disk. Only logs of the database count.
//! Data is written and flushed as well, by threads that no transaction waits for.

use duel_model::{HostDemand, Sleepers};
use duel_stats::Estimate;

/// Connections that wait for the log at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Held {
    /// As many as were seen, with an interval of 95 %.
    pub(crate) seen: Estimate,
    /// The most that it may be: all of them, whenever a thread may have been in the log.
    pub(crate) most: f64,
    /// The share of the time in which anybody is in the log, with an interval of 95 %.
    pub(crate) busy: Estimate,
}

/// Looks under load that tell a share of them: those of three slots; and those before one slot, without load.
const LEAST_LOOKS: [u32; 2] = [9, 3];
/// Of a normal distribution, for intervals of 95 %.
const Z: f64 = 1.96;

impl Held {
    /// `None`: too few looks told of system calls.
    pub(crate) fn of(demand: &HostDemand, connections: f64) -> Option<Self> {
        let (loaded, quiet) = (&demand.sleepers, &demand.quiet_sleepers);
        if loaded.looks_at_calls < LEAST_LOOKS[0] || quiet.looks < LEAST_LOOKS[1] || connections < 1.0 {
            return None;
        }
        let (looks, in_log) = (f64::from(loaded.looks_at_calls), f64::from(loaded.looks_at_logs));
        let idle = in_log * quiet.mean_without_timeout()?;
        let beside = (loaded.without_timeout_beside_logs as f64 - idle).max(0.0);
        let mid = ((loaded.in_logs as f64 + beside) / looks).min(connections * in_log / looks);
        // A number between none and all of them scatters most where it is either none or all (Bhatia and Davis, 2000): as a share does.
        let busy = wilson(in_log / looks, looks);
        let seen = times(wilson(mid / connections, looks), connections);
        Some(Self { seen, most: connections * busy.high(), busy })
    }
}

/// Whether a thread was ever seen in a log: where none was, it may be where nobody looks.
pub(crate) fn are_seen(demand: &HostDemand) -> bool {
    let Sleepers { looks_at_logs, .. } = demand.sleepers;
    looks_at_logs > 0
}

/// A share that was seen in so many looks, with its interval (Wilson, 1927).
fn wilson(share: f64, looks: f64) -> Estimate {
    let z2 = Z * Z / looks;
    let mid = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z * (share * (1.0 - share) / looks + z2 / (4.0 * looks)).max(0.0).sqrt() / (1.0 + z2);
    Estimate { mid: share, below: share - (mid - half).max(0.0), above: (mid + half).min(1.0) - share }
}

/// So many times an estimate.
pub(crate) fn times(of: Estimate, factor: f64) -> Estimate {
    Estimate { mid: factor * of.mid, below: factor * of.below, above: factor * of.above }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many looks under load, in so many of which one thread was in the log, with so many others that slept then.
    fn demand(looks: u32, in_log: u32, beside: u64, idle: u64) -> HostDemand {
        let sleepers = Sleepers {
            looks,
            looks_at_calls: looks,
            looks_at_logs: in_log,
            in_logs: u64::from(in_log),
            without_timeout_beside_logs: beside,
            ..Sleepers::default()
        };
        let quiet_sleepers = Sleepers { looks: 6, without_timeout: 6 * idle, ..Sleepers::default() };
        HostDemand { sleepers, quiet_sleepers, ..HostDemand::default() }
    }

    #[test]
    fn with_one_connection_whoever_is_in_the_log_is_all_that_waits() {
        let held = Held::of(&demand(20, 10, 80, 7), 1.0).unwrap();
        assert_eq!(held.seen.mid, 0.5, "{held:?}");
        // R: prop.test(10, 20, correct = FALSE)
        assert!((held.seen.low() - 0.2993).abs() < 1e-3 && (held.most - 0.7007).abs() < 1e-3, "{held:?}");
        let all = Held::of(&demand(20, 20, 300, 7), 1.0).unwrap();
        assert!(all.seen.mid == 1.0 && all.seen.low() < 0.9 && all.most > 0.999, "{all:?}");
    }

    #[test]
    fn with_several_those_who_wait_for_whoever_is_in_the_log_count_as_well() {
        // Of 7 idle threads and 2 sessions that sleep beside one that is in the log.
        let held = Held::of(&demand(20, 20, 180, 7), 4.0).unwrap();
        assert_eq!(held.seen.mid, 3.0, "{held:?}");
        assert!(held.seen.low() > 2.0 && held.seen.high() < 3.7 && held.most > 3.999, "{held:?}");
        // More than there are connections is no session's.
        assert_eq!(Held::of(&demand(20, 10, 100, 0), 4.0).unwrap().seen.mid, 2.0);
        // Fewer sleep than without load: they have got work.
        assert_eq!(Held::of(&demand(20, 10, 50, 7), 4.0).unwrap().seen.mid, 0.5);
    }

    #[test]
    fn where_nobody_looked_at_system_calls_nothing_is_known() {
        let untold = |change: fn(&mut HostDemand)| {
            let mut demand = demand(20, 10, 80, 7);
            change(&mut demand);
            Held::of(&demand, 1.0)
        };
        assert_eq!(untold(|demand| demand.sleepers.looks_at_calls = 8), None);
        assert_eq!(untold(|demand| demand.sleepers.looks_at_calls = 0), None);
        assert_eq!(untold(|demand| demand.quiet_sleepers.looks = 0), None);
        assert!(untold(|_| {}).is_some());
    }
}
