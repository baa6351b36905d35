//! For how long a server's threads waited for CPUs on which others ran, and what that is worth.

use crate::evidence::machines::{Machines, Side, allowed_cpus};
use crate::gap::Gap;
use duel_model::format_duration_ns;
use std::collections::BTreeSet;

/// Tasks that are ready to run while there is no load: the one that reads the machine is always one of them. Half of
/// the readings have to find another one.
pub(crate) const SOMEBODY_RUNS: f64 = 1.5;

/// Who runs there.
pub(crate) const TOP: &str = "top -b -n 1 | head -n 20";

/// What others took from both sides.
pub(crate) struct Taken {
    pub(crate) of_slow: Loss,
    /// `None` where it is not known.
    pub(crate) of_fast: Option<Loss>,
    /// Log of what the slow side lost by that, beyond what it would have lost as the fast one did: by its own need, or by as
    /// much of its time.
    pub(crate) worth_log: f64,
}

impl Taken {
    /// `None` where it is not known of the slow side.
    pub(crate) fn read(gap: &Gap<'_>, machines: &Machines<'_>) -> Option<Self> {
        let loss = |index: usize, side: &Side<'_>| Loss::of(side, &allowed_cpus(gap, index)?);
        let of_slow = loss(gap.slow, &machines.slow)?;
        let of_fast = machines.fast.as_ref().and_then(|side| loss(gap.fast, side));
        let log_of = |side: usize, loss: &Loss, taken: f64| {
            machines.loss_log_of_wanted(gap, side, loss.run, taken, loss.run + loss.wait)
        };
        let anyhow = of_fast.as_ref().map_or(0.0, |loss| {
            let by_own_need = log_of(gap.slow, &of_slow, loss.for_each_cpu() * of_slow.run);
            log_of(gap.fast, loss, loss.taken).max(by_own_need)
        });
        let worth_log = log_of(gap.slow, &of_slow, of_slow.taken) - anyhow;
        Some(Self { of_slow, of_fast, worth_log })
    }
}

/// What others than the load generator took from a server, in CPUs and per op.
pub(crate) struct Loss {
    pub(crate) run: f64,
    /// Its threads were ready to run, and neither ran nor were held back by a quota.
    wait: f64,
    /// By others, while its threads waited. What interrupts took then is not in it, although much of that is work for the
    /// server's packets that it would have done in its own time: it is the least that others took.
    pub(crate) taken: f64,
    /// They ran so much, whether its threads waited or not.
    pub(crate) others: f64,
    wait_ns: f64,
    others_ns: f64,
}

impl Loss {
    /// What was counted of the slow side, and of the fast one where that is known.
    pub(crate) fn tell(gap: &Gap<'_>, of_slow: &Self, of_fast: Option<&Self>) -> String {
        let tell = |name: &str, loss: &Self| {
            format!(
                "for each request to {name} its threads waited {} for a CPU, and others ran {} on its CPUs",
                format_duration_ns(loss.wait_ns),
                format_duration_ns(loss.others_ns)
            )
        };
        let slow = tell(&gap.slow_name(), of_slow);
        of_fast.map_or_else(|| slow.clone(), |of_fast| format!("{slow}; {}", tell(&gap.fast_name(), of_fast)))
    }

    /// `None` where one of them is not known: of servers of very many threads nobody counts for how long they waited.
    fn of(side: &Side<'_>, cpus: &BTreeSet<u32>) -> Option<Self> {
        let run = side.cpus("process.cpu_ns")?;
        let others = side.others_on(cpus)?;
        let wait = side.cpus("workers.wait_ns")?;
        // A quota keeps threads in the queue as well: all that there are, at most, for as long as a CPU is held back.
        let held_back = side.cpus("cgroup.throttled_ns").unwrap_or(0.0);
        let by_quota = if held_back > 0.0 { held_back * side.gauge("process.threads")?.max(1.0) } else { 0.0 };
        // Threads wait for the load generator as well, if it runs there: in proportion to what either runs.
        let for_others = if others > 0.0 { others / (others + side.generator_on(cpus)) } else { 0.0 };
        let [wait_ns, others_ns] = [wait, others].map(|cpus| cpus * side.wall_ns());
        let wait = (wait - by_quota).max(0.0);
        let taken = (wait * for_others).min(others);
        Some(Self { run, wait, taken, others, wait_ns, others_ns })
    }

    /// What was taken for each CPU's worth of time that it ran.
    fn for_each_cpu(&self) -> f64 {
        if self.run > 0.0 { self.taken / self.run } else { 0.0 }
    }

    pub(crate) fn in_use(&self) -> f64 {
        (self.run + self.taken).max(1.0)
    }
}
