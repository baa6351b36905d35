//! How much right to its CPUs a server has against whoever else wants them.

use crate::gap::Gap;

/// The weight of a control group that nobody has changed (cpu.weight; 1024 shares of version 1).
const USUAL_WEIGHT: f64 = 100.0;

/// What the kernel's scheduler is told of a server's processes.
#[derive(Debug, PartialEq)]
pub(crate) struct Rights {
    /// Of that process that has the least right by it.
    nice: f64,
    /// Whether any of them has the policy that runs when nobody else wants to (SCHED_IDLE).
    is_idle: bool,
    /// Whether any of them goes before all others (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE).
    is_real_time: bool,
    /// Of its control group or that above it which has the least.
    weight: f64,
}

impl Rights {
    /// `None` where one of them is not known.
    pub(crate) fn of(gap: &Gap<'_>, side: usize) -> Option<Self> {
        let policies: Vec<&str> = gap.host_fact(side, "process.policies")?.split_ascii_whitespace().collect();
        // Of others nobody knows how they compete.
        let known = ["normal", "batch", "idle", "fifo", "round-robin", "deadline"];
        let of_real_time = ["fifo", "round-robin", "deadline"];
        policies.iter().all(|policy| known.contains(policy)).then_some(())?;
        Some(Self {
            nice: gap.host_number(side, "process.highest_nice")?,
            is_idle: policies.contains(&"idle"),
            is_real_time: policies.iter().any(|policy| of_real_time.contains(policy)),
            weight: gap.host_number(side, "cgroup.least_cpu_weight")?,
        })
    }

    /// Whether it has less than what nobody has changed, by anything, and more by nothing.
    pub(crate) fn is_low(&self) -> bool {
        self.is_below(&Self { nice: 0.0, is_idle: false, is_real_time: false, weight: USUAL_WEIGHT })
    }

    /// Whether it has less right than another one by anything, and more by nothing: a weight of the group and a nice value
    /// within it compete with different others, and cannot be weighed against each other.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        let no_more = self.nice >= other.nice
            && self.is_idle >= other.is_idle
            && self.is_real_time <= other.is_real_time
            && self.weight <= other.weight;
        no_more && self != other
    }

    /// `nice 19, weight 100`.
    pub(crate) fn tell(&self) -> String {
        let policy = match (self.is_idle, self.is_real_time) {
            (true, _) => ", policy idle",
            (false, true) => ", real time",
            (false, false) => "",
        };
        format!("nice {:.0}{policy}, weight {}", self.nice, self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_by_one_and_more_by_another_is_not_less() {
        let usual = || Rights { nice: 0.0, is_idle: false, is_real_time: false, weight: 100.0 };
        let nice = Rights { nice: 10.0, ..usual() };
        let idle = Rights { is_idle: true, ..usual() };
        let little = Rights { weight: 2.0, ..usual() };
        assert!([&nice, &idle, &little].into_iter().all(|rights| rights.is_low() && rights.is_below(&usual())));
        let before_all = Rights { is_real_time: true, ..usual() };
        let rich = Rights { nice: -5.0, weight: 200.0, ..usual() };
        assert!([&usual(), &before_all, &rich].into_iter().all(|rights| !rights.is_low()));
        assert!(usual().is_below(&rich) && usual().is_below(&before_all));
        // A nice server of a rich group.
        let mixed = Rights { nice: 10.0, weight: 200.0, ..usual() };
        assert!(!mixed.is_low() && !mixed.is_below(&usual()) && !usual().is_below(&mixed));
    }
}
