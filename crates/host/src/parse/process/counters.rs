//! What the server's processes and threads spend.

use super::{MOST_WORKERS, Stat};
use crate::parse::lines::{Lines, named};
use crate::parse::{Context, Readings};

/// CPU, faults and I/O of all the server's processes together, and CPU of each process and thread.
///
/// `process.` holds what goes on when a worker ends, because its parent inherits it; `workers.` is known only between
/// samples with the same processes.
pub(in crate::parse) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
    let ids = |name: &str| lines.first(name).unwrap_or_default().split_ascii_whitespace().collect::<Vec<_>>();
    let (roots, members) = (ids("roots"), ids("members"));
    if members.is_empty() {
        return;
    }
    let stats: Vec<Stat<'_>> =
        members.iter().filter_map(|pid| Stat::of(lines.first(&format!("/{pid}/stat"))?)).collect();
    readings.gauge("process.count", Some(stats.len() as f64));
    let identity = |stat: &Stat<'_>| format!("{}@{}", stat.pid, stat.start_ticks);
    let is_root = |stat: &&Stat<'_>| roots.iter().any(|root| root.parse() == Ok(stat.pid));
    let rooted: Vec<String> = stats.iter().filter(is_root).map(identity).collect();
    // Without one of them the sums would be those of others.
    if rooted.len() == roots.len() && stats.len() == members.len() {
        readings.counted_by("process.", &rooted.join(" "));
        readings.counted_by("workers.", &stats.iter().map(identity).collect::<Vec<_>>().join(" "));
        let sum = |value: fn(&Stat<'_>) -> u64, unit: u64| {
            stats.iter().try_fold(0_u64, |sum, stat| sum.checked_add(value(stat).checked_mul(unit)?))
        };
        readings.count("process.user_ns", sum(|stat| stat.user_ticks, context.tick_ns));
        readings.count("process.system_ns", sum(|stat| stat.system_ticks, context.tick_ns));
        readings
            .count("process.cpu_ns", sum(|stat| stat.user_ticks.saturating_add(stat.system_ticks), context.tick_ns));
        readings.count("process.minor_faults", sum(|stat| stat.minor_faults, 1));
        readings.count("process.major_faults", sum(|stat| stat.major_faults, 1));
        readings.gauge("process.threads", sum(|stat| stat.threads, 1).map(|count| count as f64));
        inputs_and_outputs(lines, &members, readings);
        threads(lines, &members, readings);
    }
    for stat in stats.iter().take(MOST_WORKERS) {
        let ticks = stat.user_ticks.checked_add(stat.system_ticks);
        readings
            .count(format!("worker.{}.cpu_ns", stat.pid), ticks.and_then(|ticks| ticks.checked_mul(context.tick_ns)));
        readings.counted_by(format!("worker.{}.", stat.pid), &stat.start_ticks.to_string());
    }
}

/// Sums over all members, or nothing where one of them does not tell.
fn inputs_and_outputs(lines: &Lines<'_>, members: &[&str], readings: &mut Readings) {
    let sum = |file: &str, name: &str| {
        let value = |pid: &&str| named(lines.file(&format!("/{pid}/{file}")), name);
        members.iter().try_fold(0_u64, |sum, pid| sum.checked_add(value(pid)?))
    };
    for (name, key) in [
        ("rchar", "workers.read_chars_bytes"),
        ("wchar", "workers.written_chars_bytes"),
        ("syscr", "workers.read_calls"),
        ("syscw", "workers.write_calls"),
        ("read_bytes", "workers.disk_read_bytes"),
        ("write_bytes", "workers.disk_written_bytes"),
    ] {
        readings.count(key, sum("io", name));
    }
    // Linux tells these of a process's first thread alone, so they are sums only where there are no others.
    if sum("status", "Threads") == Some(members.len() as u64) {
        readings.count("workers.voluntary_switches", sum("status", "voluntary_ctxt_switches"));
        readings.count("workers.involuntary_switches", sum("status", "nonvoluntary_ctxt_switches"));
    }
    let resident = sum("status", "VmRSS").map(|kib| kib as f64 * 1024.0);
    readings.gauge("process.resident_bytes", resident);
}

/// `/proc/PID/task/TID/schedstat`: ns on a CPU, ns in the run queue, turns (Documentation/scheduler/sched-stats.rst).
fn threads(lines: &Lines<'_>, members: &[&str], readings: &mut Readings) {
    let tasks = lines.first("tasks").and_then(|line| line.parse::<usize>().ok());
    let (mut run, mut wait, mut turns, mut count) = (0_u64, 0_u64, 0_u64, 0);
    for (path, values) in lines.ending("/schedstat") {
        let mut parts = path.rsplit('/');
        let (Some(thread), Some("task"), Some(pid)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let numbers: Option<Vec<u64>> =
            values.first().and_then(|line| line.split_ascii_whitespace().map(|word| word.parse().ok()).collect());
        let Some([ran, waited, turned]) = numbers.as_deref() else { continue };
        if !members.contains(&pid) {
            continue;
        }
        (run, wait, turns) = (run.saturating_add(*ran), wait.saturating_add(*waited), turns.saturating_add(*turned));
        count += 1;
        if count <= MOST_WORKERS {
            readings.count(format!("thread.{thread}.run_ns"), Some(*ran));
            readings.count(format!("thread.{thread}.wait_ns"), Some(*waited));
        }
    }
    // Threads that came or went between listing and reading, or are too many: then the sums are not known.
    if Some(count) == tasks && count > 0 {
        readings.count("workers.run_ns", Some(run));
        readings.count("workers.wait_ns", Some(wait));
        readings.count("workers.turns", Some(turns));
    }
}

#[cfg(test)]
mod tests {
    use super::super::stat_line as stat;
    use crate::parse::Readings;
    use crate::parse::tests_support::readings;

    fn sampled(second_start: u64) -> Readings {
        readings(&format!(
            "members:10 11\nroots:10\ntasks:2\n/proc/10/stat:{}/proc/11/stat:{}/proc/10/io:rchar: 5\n/proc/11/io:rchar: 6\n\
             /proc/10/io:wchar: 5\n/proc/10/status:Threads:\t1\n/proc/11/status:Threads:\t1\n\
             /proc/10/status:voluntary_ctxt_switches:\t3\n/proc/11/status:voluntary_ctxt_switches:\t4\n\
             /proc/10/task/10/schedstat:100 20 3\n/proc/11/task/11/schedstat:200 30 4\n",
            stat(10, 1, 10, 500),
            stat(11, 10, 10, second_start)
        ))
    }

    #[test]
    fn sums_over_master_and_workers() {
        let readings = sampled(600);
        assert_eq!(readings.counters["process.user_ns"], 2 * (10 + 30) * 10_000_000);
        assert_eq!(readings.counters["process.cpu_ns"], 2 * (10 + 20 + 30 + 40) * 10_000_000);
        assert_eq!(readings.counters["process.major_faults"], 30);
        assert_eq!(
            (readings.counters["workers.read_chars_bytes"], readings.counters.get("workers.written_chars_bytes")),
            (11, None)
        );
        assert_eq!((readings.counters["workers.voluntary_switches"], readings.counters["workers.wait_ns"]), (7, 50));
        assert_eq!(
            (readings.counters["thread.11.run_ns"], readings.counters["worker.11.cpu_ns"]),
            (200, 1_000_000_000)
        );
    }

    #[test]
    fn another_worker_is_another_identity_but_the_same_server() {
        let (one, other) = (sampled(600), sampled(700));
        assert_eq!(one.counted_by["process."], other.counted_by["process."]);
        assert_ne!(one.counted_by["workers."], other.counted_by["workers."]);
        assert_ne!(one.counted_by["worker.11."], other.counted_by["worker.11."]);
    }

    #[test]
    fn a_member_that_cannot_be_read_leaves_no_sum() {
        let readings = readings(&format!("members:10 11\nroots:10\ntasks:2\n/proc/10/stat:{}", stat(10, 1, 10, 500)));
        assert!(!readings.counters.contains_key("process.cpu_ns"));
        assert!(readings.counters.contains_key("worker.10.cpu_ns"));
    }
}
