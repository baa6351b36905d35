//! The server's processes: which they are, how they run, and what they spend.

mod counters;
mod facts;
mod found;

pub(super) use counters::sample;
pub(super) use facts::{facts, which};
pub(super) use found::Found;

/// Processes and threads that are kept one by one.
const MOST_WORKERS: usize = 128;

/// Fields of `/proc/PID/stat` (proc_pid_stat(5)).
struct Stat<'a> {
    pid: u64,
    name: &'a str,
    parent: u64,
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
    nice: i64,
    threads: u64,
    start_ticks: u64,
    processor: u64,
    policy: u64,
}

impl<'a> Stat<'a> {
    /// `None` for any line that is not one in full. The name, in brackets, may hold brackets and blanks.
    fn of(line: &'a str) -> Option<Self> {
        let (pid, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Fields are counted from 1, and the third comes after the name.
        let field = |n: usize| words.get(n - 3)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            name,
            parent: field(4)?,
            // With those of children that have ended and were waited for: they were workers.
            minor_faults: field(10)?.checked_add(field(11)?)?,
            major_faults: field(12)?.checked_add(field(13)?)?,
            user_ticks: field(14)?.checked_add(field(16)?)?,
            system_ticks: field(15)?.checked_add(field(17)?)?,
            nice: words.get(16)?.parse().ok()?,
            threads: field(20)?,
            start_ticks: field(22)?,
            processor: field(39)?,
            policy: field(41)?,
        })
    }
}

/// A line of `/proc/PID/stat` for tests.
#[cfg(test)]
fn stat_line(pid: u64, parent: u64, user: u64, start: u64) -> String {
    format!(
        "{pid} (a) (b) S {parent} 1 1 0 -1 4194560 5 6 7 8 {user} 20 30 40 20 0 1 0 {start} 1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_newline_forges_nothing() {
        assert!(Stat::of("10 (evil").is_none());
        assert!(Stat::of("x) S 1 1").is_none());
        assert_eq!(
            Stat::of(&stat_line(10, 1, 10, 500)).map(|stat| (stat.name.to_owned(), stat.start_ticks)),
            Some(("a) (b".to_owned(), 500))
        );
    }
}
