//! Causes that no injection can prove here, and why: duel tells them as suspicions.

/// The ids, as duel has them, and the reasons.
pub(crate) const UNPROVEN: [(&str, &str); 13] = [
    ("cpu.priority", "one of its four faults was named, and three left the verdict open"),
    ("cpu.security-hooks", "of its four faults one did not bite, and none was named"),
    ("cpu.slower", "no CPU is slowed here but by a quota, which is found as that"),
    ("cpu.slow-clock", "the clock source belongs to the whole machine"),
    ("cpu.stolen", "only a hypervisor can withhold CPU time"),
    ("disk.group-limit", "its faults have not been run often enough"),
    ("disk.metadata-misses", "file systems here keep where blocks lie in memory"),
    ("disk.slow-spindle", "no disk here turns"),
    ("http.h2-window", "two of its four faults left the verdict open, and none was named as it"),
    ("http.slow-upstream", "over one connection it was named, and over several in none of three faults"),
    ("mem.cold-cache", "its faults have not been run often enough"),
    ("net.congestion-control of web", "its faults have not been run often enough"),
    ("net.idle-restart", "its faults have not been run often enough"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_that_duel_does_not_name() {
        let ours = UNPROVEN.map(|(cause, _)| cause);
        assert_eq!(ours, duel_diagnose::unproven());
    }
}
