//! What a FreeBSD host does.

use crate::parse::lines::{Lines, number};
use crate::parse::{Context, Readings};
use std::collections::BTreeMap;

/// Sums that `vmstat -s` prints, each a number and its name.
const VMSTAT: [(&str, &str); 7] = [
    ("cpu context switches", "cpu.switches"),
    ("device interrupts", "cpu.interrupts"),
    ("system calls", "cpu.system_calls"),
    ("total VM faults taken", "memory.faults"),
    ("page ins", "memory.page_ins"),
    ("swap pager pages paged in", "memory.swapped_in_pages"),
    ("swap pager pages paged out", "memory.swapped_out_pages"),
];

/// Sums that `netstat -s -p tcp` prints.
const TCP: [(&str, &str); 8] = [
    ("packets sent", "tcp.sent_segments"),
    ("packets received", "tcp.received_segments"),
    ("connection requests", "tcp.opened"),
    ("connection accepts", "tcp.accepted"),
    ("listen queue overflows", "tcp.listen_overflows"),
    ("retransmit timeouts", "tcp.timeouts"),
    ("delayed acks sent", "tcp.delayed_acknowledgements"),
    ("embryonic connections dropped", "tcp.failed_attempts"),
];

/// All counters of a sample.
pub(in crate::parse) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
    for line in lines.file("sysctl") {
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name {
            "kern.cp_time" => cpu_times(value, "cpu.", context, readings),
            "kern.cp_times" => {
                let words: Vec<&str> = value.split_ascii_whitespace().collect();
                for (cpu, times) in words.chunks_exact(5).take(128).enumerate() {
                    cpu_times(&times.join(" "), &format!("cpu.{cpu}."), context, readings);
                }
                uptime(&words, context, readings);
            }
            // { 0.10 0.20 0.30 }
            "vm.loadavg" => {
                readings.gauge("load.1m", value.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()));
            }
            "vm.stats.vm.v_free_count" => {
                readings
                    .gauge("memory.free_bytes", number(value, 0).map(|pages| pages as f64 * context.page_bytes as f64));
            }
            "dev.cpu.0.freq" => readings.gauge("cpu.0.mhz", value.trim().parse().ok()),
            "dev.cpu.0.temperature" => {
                readings.gauge("cpu.hottest_celsius", value.trim().trim_end_matches('C').parse().ok());
            }
            _ => {}
        }
    }
    for (tool, names) in [("vmstat", &VMSTAT[..]), ("tcp", &TCP[..])] {
        for line in lines.file(tool) {
            let Some((count, name)) = line.trim().split_once(' ') else { continue };
            if let Some((_, key)) = names.iter().find(|(theirs, _)| *theirs == name.trim()) {
                readings.count(key, count.parse().ok());
            }
            // `5 data packets (1234 bytes) retransmitted`
            if tool == "tcp" && name.starts_with("data packet") && name.ends_with("retransmitted") {
                readings.count("tcp.retransmitted_segments", count.parse().ok());
            }
        }
    }
    links(lines, readings);
    disks(lines, context, readings);
    processes(lines, readings);
}

/// user, nice, system, interrupt, idle, in ticks of the statistics clock.
fn cpu_times(value: &str, prefix: &str, context: &Context, readings: &mut Readings) {
    let times: Option<Vec<u64>> =
        value.split_ascii_whitespace().map(|word| word.parse::<u64>().ok()?.checked_mul(context.tick_ns)).collect();
    if let Some([user, nice, system, irq, idle]) = times.as_deref() {
        for (mode, time) in [("user", user), ("nice", nice), ("system", system), ("irq", irq), ("idle", idle)] {
            readings.count(format!("{prefix}{mode}_ns"), Some(*time));
        }
        let busy = [user, nice, system, irq].into_iter().try_fold(0_u64, |sum, time| sum.checked_add(*time));
        readings.count(format!("{prefix}busy_ns"), busy);
    }
}

/// Every tick of the statistics clock is counted for some mode on every CPU, so their sum on one of them is a monotonic
/// clock; FreeBSD tells no other one without a program of our own. The first CPU's is used.
fn uptime(words: &[&str], context: &Context, readings: &mut Readings) {
    let ticks =
        words.get(..5).and_then(|times| times.iter().try_fold(0_u64, |sum, word| sum.checked_add(word.parse().ok()?)));
    readings.uptime_ns = ticks.and_then(|ticks| ticks.checked_mul(context.tick_ns));
}

/// `netstat -i -b -n -W`: for each link the line with `<Link#N>`. A link without a hardware address has a column less, so
/// columns are counted from the end: ... Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll.
fn links(lines: &Lines<'_>, readings: &mut Readings) {
    for line in lines.file("links").iter().filter(|line| line.contains("<Link#")).take(64) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let from_end = |n: usize| words.get(words.len().checked_sub(n)?)?.parse::<u64>().ok();
        let Some(link) = words.first() else { continue };
        for (n, key) in [
            (8, "received_packets"),
            (7, "receive_errors"),
            (6, "receive_drops"),
            (5, "received_bytes"),
            (4, "sent_packets"),
            (3, "send_errors"),
            (2, "sent_bytes"),
        ] {
            readings.count(format!("link.{link}.{key}"), from_end(n));
        }
    }
}

/// `iostat -I -x`: totals since start: device, reads, writes, KiB read, KiB written, queue, time, busy time in s.
fn disks(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
    for line in lines.file("disks") {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some(disk) = words.first().filter(|disk| context.disks.contains(**disk)) else { continue };
        let value = |n: usize, unit: f64| {
            let value = words.get(n)?.parse::<f64>().ok()? * unit;
            (0.0..1.8e19).contains(&value).then_some(value as u64)
        };
        for (n, key, unit) in [
            (1, "reads", 1.0),
            (2, "writes", 1.0),
            (3, "read_bytes", 1024.0),
            (4, "written_bytes", 1024.0),
            (7, "busy_ns", 1e9),
        ] {
            readings.count(format!("disk.{disk}.{key}"), value(n, unit));
        }
    }
}

/// `procstat -r`: `PID COMM RESOURCE VALUE`, where the command may hold blanks and the resource does.
fn processes(lines: &Lines<'_>, readings: &mut Readings) {
    let ids = |name: &str| lines.first(name).unwrap_or_default().split_ascii_whitespace().collect::<Vec<_>>();
    let (roots, members) = (ids("roots"), ids("members"));
    if members.is_empty() {
        return;
    }
    let started: BTreeMap<&str, String> = lines
        .file("started")
        .iter()
        .filter_map(|line| {
            let (pid, when) = line.trim().split_once(' ')?;
            Some((pid, when.split_ascii_whitespace().collect::<Vec<_>>().join("_")))
        })
        .collect();
    let identity = |pids: &[&str]| {
        let found: Option<Vec<String>> = pids.iter().map(|pid| Some(format!("{pid}@{}", started.get(pid)?))).collect();
        found.map(|found| found.join(" "))
    };
    let (Some(root_identity), Some(member_identity)) = (identity(&roots), identity(&members)) else { return };
    readings.counted_by("workers.", &member_identity);
    // Without what ended workers used: FreeBSD does not tell it here. So the sums hold for the same processes only.
    readings.counted_by("process.", &format!("{root_identity} {member_identity}"));
    let mut sums: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for line in lines.file("procstat") {
        let Some((pid, rest)) = line.trim_start().split_once(' ') else { continue };
        if !members.contains(&pid) {
            continue;
        }
        for (name, key) in [
            (" user time ", "process.user_ns"),
            (" system time ", "process.system_ns"),
            (" page reclaims ", "process.minor_faults"),
            (" page faults ", "process.major_faults"),
            (" involuntary context switches ", "workers.involuntary_switches"),
            (" voluntary context switches ", "workers.voluntary_switches"),
        ] {
            let Some((_, value)) = rest.rsplit_once(name) else { continue };
            let value = value.trim();
            let parsed = if name.ends_with("time ") { clock_time_ns(value) } else { value.parse().ok() };
            if let Some(value) = parsed {
                let sum = sums.entry(key).or_default();
                *sum = (sum.0.saturating_add(value), sum.1 + 1);
            }
            break;
        }
    }
    let whole = |key: &str| sums.get(key).filter(|(_, count)| *count == members.len()).map(|(sum, _)| *sum);
    for key in sums.keys() {
        readings.count(key, whole(key));
    }
    let cpu = whole("process.user_ns").zip(whole("process.system_ns"));
    readings.count("process.cpu_ns", cpu.and_then(|(user, system)| user.checked_add(system)));
    readings.gauge("process.count", Some(members.len() as f64));
}

/// `HH:MM:SS.microseconds`.
fn clock_time_ns(text: &str) -> Option<u64> {
    let (whole, micros) = text.split_once('.')?;
    let seconds = whole.split(':').try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))?;
    if micros.len() != 6 {
        return None;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(micros.parse::<u64>().ok()?.checked_mul(1000)?)
}

#[cfg(test)]
mod tests {
    use super::clock_time_ns;

    #[test]
    fn times() {
        assert_eq!(clock_time_ns("01:00:01.000002"), Some(3_601_000_002_000));
        assert_eq!((clock_time_ns("1"), clock_time_ns("a:b.000000"), clock_time_ns("1.5")), (None, None, None));
    }
}
