//! FreeBSD: what `sysctl`, `vmstat`, `netstat`, `iostat` and `procstat` print.
//!
//! Written from their manual pages and sources (sysctl(8), vmstat(8), netstat(1), iostat(8), procstat(1)) and tested on
//! samples in that form, not yet on a running FreeBSD.

use super::lines::{Lines, number};
use super::os;
use super::sheet::Sheet;
use super::{Context, Readings};
use std::collections::BTreeMap;

/// Facts whose name on FreeBSD differs from ours.
const NAMES: [(&str, &str); 16] = [
    ("hw.model", "cpu.model"),
    ("hw.ncpu", "cpu.cpus"),
    ("kern.smp.cores", "cpu.cores"),
    ("hw.physmem", "memory.total_bytes"),
    ("vm.swap_total", "memory.swap_bytes"),
    ("kern.timecounter.hardware", "clock.source"),
    ("kern.timecounter.choice", "clock.sources"),
    ("kern.vm_guest", "machine.hypervisor"),
    ("dev.cpu.0.freq", "cpu.fastest_mhz"),
    ("dev.cpu.0.freq_levels", "cpu.frequency_levels"),
    ("dev.cpu.0.temperature", "temperature.cpu.0_celsius"),
    ("kern.ipc.soacceptqueue", "net.core.somaxconn"),
    ("vm.pmap.pti", "cpu.mitigations.pti"),
    ("hw.ibrs_active", "cpu.mitigations.ibrs"),
    ("hw.mds_disable_state", "cpu.mitigations.mds"),
    ("net.inet.tcp.cc.algorithm", "tcp.tcp_congestion_control"),
];

/// Everything that is told.
pub(super) fn facts(sheet: &mut Sheet<'_>, context: &mut Context) {
    os::names(sheet);
    let mut flags = Vec::new();
    for line in sheet.lines("sysctl") {
        if line.trim_start().starts_with("Features") || line.trim_start().starts_with("Structured") {
            // Features=0x...<FPU,VME,...>
            flags.extend(line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(names, _)| names.replace(',', " ").to_lowercase()));
            continue;
        }
        let Some((name, value)) = line.split_once(": ") else { continue };
        let value = value.trim_end_matches('C').trim();
        if name == "kern.clockrate" {
            stat_clock(value, context);
        } else if let Some((_, key)) = NAMES.iter().find(|(theirs, _)| *theirs == name) {
            sheet.set(key, value);
        } else if let Some(rest) = name.strip_prefix("net.inet.tcp.") {
            sheet.set(format!("tcp.{rest}"), value);
        } else {
            sheet.set(name, value);
        }
    }
    sheet.set("cpu.flags", flags.join(" "));
    sheet.promised("sysctl", &["cpu.model", "cpu.cpus", "memory.total_bytes", "clock.source", "machine.hypervisor", "cpu.flags"]);
    if let Some(disks) = sheet.lines("disks").next() {
        context.disks = disks.split_ascii_whitespace().map(str::to_owned).collect();
    }
    for line in sheet.lines("mounts").take(64) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [device, place, kind, options, ..] = words.as_slice()
            && place.starts_with('/')
            && !matches!(*kind, "devfs" | "procfs" | "fdescfs" | "linprocfs" | "linsysfs")
        {
            sheet.set(format!("mount.{place}"), format!("{kind} {options} {device}"));
        }
    }
    listening(sheet);
    link_states(sheet);
    if let Some(binary) = sheet.lines("binary").last().and_then(|line| line.split_once('/')) {
        sheet.set("process.exe", format!("/{}", binary.1));
    }
}

/// `{ hz = 1000, tick = 1000, profhz = 8128, stathz = 127 }`: times are counted by the last.
fn stat_clock(value: &str, context: &mut Context) {
    let hz = value.split_once("stathz = ").and_then(|(_, rest)| rest.split([',', ' ', '}']).next()?.parse::<u64>().ok());
    if let Some(hz) = hz.filter(|hz| (1..=1_000_000).contains(hz)) {
        context.tick_ns = 1_000_000_000 / hz;
    }
}

/// `netstat -L -a -n`: `tcp4  0/0/128  *.80`, what waits, what waits incompletely, and how much may wait.
fn listening(sheet: &mut Sheet<'_>) {
    for line in sheet.lines("listening").filter(|line| line.starts_with("tcp")).take(100) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, queue, address, ..] = words.as_slice() else { continue };
        let numbers: Vec<u64> = queue.split('/').filter_map(|part| part.parse().ok()).collect();
        if let ([waiting, _, backlog], Some((_, port))) = (numbers.as_slice(), address.rsplit_once('.')) {
            sheet.set(format!("listen.{port}.backlog"), backlog.to_string());
            sheet.set(format!("listen.{port}.waiting"), waiting.to_string());
        }
    }
}

/// `ifconfig -a`: a line for each link, and lines with a tab below it.
fn link_states(sheet: &mut Sheet<'_>) {
    let mut link = "";
    for line in sheet.lines("link_states") {
        if !line.starts_with(['\t', ' ']) {
            link = line.split(':').next().unwrap_or_default();
            if let Some((_, mtu)) = line.rsplit_once(" mtu ") {
                sheet.set(format!("link.{link}.mtu_bytes"), mtu);
            }
        } else if let Some(state) = line.trim().strip_prefix("status: ") {
            sheet.set(format!("link.{link}.state"), state);
        } else if let Some(media) = line.trim().strip_prefix("media: ") {
            sheet.set(format!("link.{link}.media"), media);
        } else if let Some(options) = line.trim().strip_prefix("options=") {
            sheet.set(format!("link.{link}.offloads"), options);
        }
    }
}

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
pub(super) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
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
            "vm.loadavg" => readings.gauge("load.1m", value.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok())),
            "vm.stats.vm.v_free_count" => {
                readings.gauge("memory.free_bytes", number(value, 0).map(|pages| pages as f64 * context.page_bytes as f64));
            }
            "dev.cpu.0.freq" => readings.gauge("cpu.0.mhz", value.trim().parse().ok()),
            "dev.cpu.0.temperature" => readings.gauge("cpu.hottest_celsius", value.trim().trim_end_matches('C').parse().ok()),
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
    let ticks = words.get(..5).and_then(|times| times.iter().try_fold(0_u64, |sum, word| sum.checked_add(word.parse().ok()?)));
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
        for (n, key, unit) in
            [(1, "reads", 1.0), (2, "writes", 1.0), (3, "read_bytes", 1024.0), (4, "written_bytes", 1024.0), (7, "busy_ns", 1e9)]
        {
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
    use super::super::{facts, sample};
    use super::clock_time_ns;
    use crate::access::Server;
    use crate::frames::Frame;
    use duel_model::HostSample;

    /// In the form that the manual pages of FreeBSD 14 show; not recorded from a running one.
    fn frames() -> Vec<Frame> {
        [
            ("system", "FreeBSD\n"),
            ("clocks", "clk_tck 128\npage_bytes 4096\nunix_s 1763600000\n"),
            ("os", "14.1-RELEASE\nFreeBSD 14.1-RELEASE releng/14.1 GENERIC\namd64\nweb1.example\nID=freebsd\nPRETTY_NAME=\"FreeBSD 14.1-RELEASE\"\n"),
            ("sysctl", include_str!("../../tests/freebsd/sysctl.txt")),
            ("disks", "ada0 nda0\n"),
            ("mounts", "/dev/ada0p2\t\t/\t\tufs\trw\t\t1 1\ndevfs\t\t\t/dev\t\tdevfs\trw\t\t0 0\n"),
            ("listening", "Current listen queue sizes (qlen/incqlen/maxqlen)\nProto Listen                           Local Address         \ntcp4  2/0/511                          *.80                  \n"),
            ("link_states", "em0: flags=8863<UP,BROADCAST> metric 0 mtu 1500\n\toptions=4e504bb<RXCSUM,TXCSUM,TSO4>\n\tmedia: Ethernet autoselect (1000baseT <full-duplex>)\n\tstatus: active\n"),
            ("firewall", "pf 12\nipfw 0\nipl 0\n"),
            ("server", "roots 812\nmembers 812 813\n"),
            ("binary", "  PID COMM                OSREL PATH\n  812 nginx             1401000 /usr/local/sbin/nginx\n"),
            ("arguments", "nginx:\nmaster\nprocess\n/usr/local/sbin/nginx\n"),
            ("environment", ""),
            ("maps", include_str!("../../tests/freebsd/procstat-v.txt")),
            ("library /usr/lib/libcrypto.so.30", "bytes 5000000\nstring OpenSSL 3.0.13 30 Jan 2024\n"),
        ]
        .into_iter()
        .map(|(name, text)| Frame { name: name.to_owned(), status: Some(0), text: text.to_owned(), truncated: false })
        .collect()
    }

    #[test]
    fn facts_of_a_host() {
        let found = facts(&frames(), &Server::Port(80), "/proc", "/sys");
        let value = |key: &str| found.facts.value(key);
        assert_eq!(value("os.kernel"), Some("FreeBSD 14.1-RELEASE"));
        assert_eq!((value("cpu.cpus"), value("clock.source"), value("machine.hypervisor")), (Some("2"), Some("TSC-low"), Some("kvm")));
        assert!(value("cpu.flags").unwrap().contains("aesni"));
        assert_eq!((value("listen.80.backlog"), value("listen.80.waiting")), (Some("511"), Some("2")));
        assert_eq!((value("link.em0.state"), value("firewall.pf_rules")), (Some("active"), Some("12")));
        assert_eq!((value("process.exe"), value("process.count")), (Some("/usr/local/sbin/nginx"), Some("2")));
        assert_eq!(value("process.library.libcrypto.path"), Some("/usr/lib/libcrypto.so.30"));
        assert_eq!(value("process.library.libcrypto.version"), Some("OpenSSL 3.0.13 30 Jan 2024"));
        assert_eq!((value("mount./"), value("tcp.recvspace")), (Some("ufs rw /dev/ada0p2"), Some("65536")));
        assert_eq!(found.doubts, [] as [String; 0]);
        assert_eq!(found.context.tick_ns, 1_000_000_000 / 127);
    }

    #[test]
    fn counters_of_a_host() {
        let context = facts(&frames(), &Server::Port(80), "/proc", "/sys").context;
        let readings = sample(include_str!("../../tests/freebsd/sample.txt"), &context);
        let tick = 1_000_000_000 / 127;
        assert_eq!(readings.counters["cpu.user_ns"], 12_345 * tick);
        assert_eq!(readings.counters["cpu.1.idle_ns"], 900_500 * tick);
        assert_eq!(readings.counters["cpu.switches"], 987_654);
        assert_eq!((readings.counters["tcp.retransmitted_segments"], readings.counters["tcp.listen_overflows"]), (17, 3));
        assert_eq!((readings.counters["link.em0.received_bytes"], readings.counters["link.lo0.sent_bytes"]), (123_456_789, 5000));
        assert_eq!((readings.counters["disk.ada0.reads"], readings.counters["disk.ada0.busy_ns"]), (1000, 12_500_000_000));
        assert_eq!(readings.counters["process.user_ns"], 1_234_567_000 + 2_000_000_000);
        assert_eq!(readings.counters["workers.voluntary_switches"], 300);
        assert_eq!(readings.gauges["load.1m"], 0.1);
        let kept = HostSample { counters: readings.counters, ..HostSample::default() };
        assert!(kept.counters.len() > 30);
    }

    #[test]
    fn times() {
        assert_eq!(clock_time_ns("01:00:01.000002"), Some(3_601_000_002_000));
        assert_eq!((clock_time_ns("1"), clock_time_ns("a:b.000000"), clock_time_ns("1.5")), (None, None, None));
    }
}
