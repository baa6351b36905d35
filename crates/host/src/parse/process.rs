//! The server's processes: which they are, how they run, and what they spend.

use super::lines::{Lines, named};
use super::network;
use super::sheet::{Sheet, complaint};
use super::{Context, Readings};
use crate::access::Server;
use crate::mask;

/// Processes and threads that are kept one by one.
const MOST_WORKERS: usize = 128;

/// Everything about the server's processes.
pub(super) fn facts(sheet: &mut Sheet<'_>, server: &Server, context: &Context) {
    if !which(sheet, server) {
        return;
    }
    for line in sheet.lines("process") {
        if let Some(rest) = line.strip_prefix("exe ") {
            sheet.set("process.exe", rest);
        } else if let Some(count) = line.strip_prefix("descriptors ") {
            // A folder that may not be read has none, and no server has none.
            if count.trim() != "0" {
                sheet.set("process.descriptors", count);
            }
        } else if let Some((path, value)) = line.split_once(':')
            && path.starts_with(&context.proc_root)
        {
            sheet.set(format!("process.{}", super::lines::base(path)), value);
        } else if let Some((name, value)) = line.split_once(":\t") {
            status(sheet, name, value.trim());
        } else if let Some(stat) = Stat::of(line) {
            sheet.set("process.nice", stat.nice.to_string());
            sheet.set("process.policy", policy(stat.policy));
        }
    }
    sheet.promised(
        "process",
        &["process.exe", "process.descriptors", "process.tracer", "process.cpus_allowed", "process.user_id", "process.nice"],
    );
    network::own_network(sheet);
    workers(sheet);
    for line in sheet.lines("limits") {
        limit(sheet, line);
    }
    sheet.promised("limits", &["process.limit.open_files"]);
}

/// Which processes, their command line and environment; false where there are none. FreeBSD has the same sections.
pub(super) fn which(sheet: &mut Sheet<'_>, server: &Server) -> bool {
    if *server == Server::Unknown {
        sheet.unavailable("process", server.described());
        return false;
    }
    let find = |name: &str| sheet.lines("server").find_map(|line| line.strip_prefix(name)).map(str::trim);
    let (roots, members) = (find("roots ").unwrap_or_default(), find("members ").unwrap_or_default());
    if members.is_empty() {
        let why = nobody(sheet, server);
        sheet.doubt(why.clone());
        sheet.unavailable("process", why);
        return false;
    }
    sheet.set("process.roots", roots);
    sheet.set("process.members", members);
    sheet.set("process.count", members.split_ascii_whitespace().count().to_string());
    sheet.set("process.pid", roots.split_ascii_whitespace().next().unwrap_or_default());
    let arguments = sheet.lines("arguments").filter(|line| !line.is_empty());
    sheet.set("process.command_line", mask::command_line(arguments));
    sheet.promised("arguments", &["process.command_line"]);
    let mut any = false;
    for line in sheet.lines("environment") {
        if let Some((name, value)) = line.split_once('=') {
            any = true;
            sheet.set(format!("process.environment.{name}"), mask::text(value));
        }
    }
    match sheet.text("environment").and_then(complaint) {
        Some(why) => sheet.unavailable("process.environment", why),
        None if sheet.text("environment").is_some() && !any => {
            sheet.set("process.environment", "nothing that is known to change speed");
        }
        None => sheet.promised("environment", if any { &[] } else { &["process.environment"] }),
    }
    true
}

/// Why no process was found: nobody listens, or those who do cannot be seen.
fn nobody(sheet: &Sheet<'_>, server: &Server) -> String {
    let lines: Vec<&str> = sheet.lines("server").collect();
    let socket = lines.iter().find_map(|line| line.strip_prefix("socket ")?.split_once(' '));
    let us = lines.iter().find_map(|line| line.strip_prefix("user ")).unwrap_or("?");
    match (server, socket) {
        (Server::Port(port), Some((_, user))) if us != "0" => {
            format!("TCP port {port} is listened on by user {user}, but which process it is cannot be seen by user {us}: read the host as root or as the server's user")
        }
        (Server::Port(port), Some(_)) => {
            format!("TCP port {port} is listened on, but by no process that can be seen here: systemd keeps it for a service that has not started, or it is in another container")
        }
        (Server::Port(_), None) if !lines.iter().any(|line| line.starts_with("tables ")) => {
            "the host's table of TCP sockets cannot be read".to_owned()
        }
        (Server::Port(port), None) => {
            format!("no process here listens on TCP port {port}; if the server is in a container, name its process")
        }
        _ => server.described(),
    }
}

/// A line of `/proc/PID/status` that matters.
fn status(sheet: &mut Sheet<'_>, name: &str, value: &str) {
    let key = match name {
        // 0 is nobody, as the kernel tells it.
        "TracerPid" if value == "0" => return sheet.set("process.tracer", "none"),
        "TracerPid" => {
            sheet.doubt(format!("process {value} traces the server"));
            "process.tracer"
        }
        "Uid" => return sheet.set("process.user_id", value.split('\t').nth(1).unwrap_or(value)),
        "Threads" => "process.threads",
        "Cpus_allowed_list" => "process.cpus_allowed",
        "Mems_allowed_list" => "process.memory_nodes_allowed",
        "Seccomp" => "process.seccomp",
        "NoNewPrivs" => "process.no_new_privileges",
        "THP_enabled" => "process.transparent_huge_pages",
        "Speculation_Store_Bypass" => "process.speculation_store_bypass",
        "VmRSS" => {
            if let Some(bytes) = super::lines::number(value, 0).and_then(|kib| kib.checked_mul(1024)) {
                sheet.set("process.resident_bytes", bytes.to_string());
            }
            return;
        }
        _ => return,
    };
    sheet.set(key, value);
}

fn workers(sheet: &mut Sheet<'_>) {
    let stats: Vec<Stat<'_>> = sheet.lines("workers").filter_map(Stat::of).collect();
    let threads = stats.iter().map(|stat| stat.threads).sum::<u64>();
    if !stats.is_empty() {
        sheet.set("process.all_threads", threads.to_string());
    }
    for stat in stats.iter().take(MOST_WORKERS) {
        let what = format!("{}, child of {}, {} threads, last on CPU {}", stat.name, stat.parent, stat.threads, stat.processor);
        sheet.set(format!("process.worker.{}", stat.pid), what);
    }
}

/// `Max open files            1024                 524288               files`: two numbers (or `unlimited`) end the name.
fn limit(sheet: &mut Sheet<'_>, line: &str) {
    let Some(rest) = line.strip_prefix("Max ") else { return };
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let is_value = |word: &str| word == "unlimited" || word.parse::<u64>().is_ok();
    if let Some(at) = words.iter().position(|word| is_value(word))
        && let Some(hard) = words.get(at + 1).filter(|word| is_value(word))
    {
        sheet.set(format!("process.limit.{}", words[..at].join("_")), format!("{} (at most {hard})", words[at]));
    }
}

/// Scheduling policies by number (sched(7)).
fn policy(number: u64) -> &'static str {
    match number {
        0 => "normal",
        1 => "fifo",
        2 => "round-robin",
        3 => "batch",
        5 => "idle",
        6 => "deadline",
        _ => "unknown",
    }
}

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

/// CPU, faults and I/O of all the server's processes together, and CPU of each process and thread.
///
/// `process.` holds what goes on when a worker ends, because its parent inherits it; `workers.` is known only between
/// samples with the same processes.
pub(super) fn sample(lines: &Lines<'_>, context: &Context, readings: &mut Readings) {
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
        readings.count("process.cpu_ns", sum(|stat| stat.user_ticks.saturating_add(stat.system_ticks), context.tick_ns));
        readings.count("process.minor_faults", sum(|stat| stat.minor_faults, 1));
        readings.count("process.major_faults", sum(|stat| stat.major_faults, 1));
        readings.gauge("process.threads", sum(|stat| stat.threads, 1).map(|count| count as f64));
        inputs_and_outputs(lines, &members, readings);
        threads(lines, &members, readings);
    }
    for stat in stats.iter().take(MOST_WORKERS) {
        let ticks = stat.user_ticks.checked_add(stat.system_ticks);
        readings.count(format!("worker.{}.cpu_ns", stat.pid), ticks.and_then(|ticks| ticks.checked_mul(context.tick_ns)));
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
    use super::super::tests_support::{facts_of, readings};
    use super::*;

    fn stat(pid: u64, parent: u64, user: u64, start: u64) -> String {
        format!("{pid} (a) (b) S {parent} 1 1 0 -1 4194560 5 6 7 8 {user} 20 30 40 20 0 1 0 {start} 1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n")
    }

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
        assert_eq!((readings.counters["workers.read_chars_bytes"], readings.counters.get("workers.written_chars_bytes")), (11, None));
        assert_eq!((readings.counters["workers.voluntary_switches"], readings.counters["workers.wait_ns"]), (7, 50));
        assert_eq!((readings.counters["thread.11.run_ns"], readings.counters["worker.11.cpu_ns"]), (200, 1_000_000_000));
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

    #[test]
    fn a_name_with_a_newline_forges_nothing() {
        assert!(Stat::of("10 (evil").is_none());
        assert!(Stat::of("x) S 1 1").is_none());
        assert_eq!(Stat::of(&stat(10, 1, 10, 500)).map(|stat| (stat.name.to_owned(), stat.start_ticks)), Some(("a) (b".to_owned(), 500)));
    }

    #[test]
    fn why_nobody_was_found_is_told() {
        let why = |server: &str| match &facts_of(&[("server", server)]).0["process"] {
            duel_model::Known::Unavailable(why) => why.clone(),
            known => panic!("{known:?}"),
        };
        assert!(why("roots \nmembers \nsocket 123 33\ntables tcp\nuser 65534").contains("cannot be seen by user 65534"));
        assert!(why("roots \nmembers \nsocket 123 33\ntables tcp\nuser 0").contains("another container"));
        assert!(why("roots \nmembers \ntables tcp\nuser 0").contains("no process here listens on TCP port 80"));
        assert!(why("roots \nmembers \nuser 0").contains("cannot be read"));
    }

    #[test]
    fn limits_and_status() {
        let facts = facts_of(&[
            ("server", "roots 10\nmembers 10 11"),
            ("arguments", "nginx: master process /usr/sbin/nginx\n--token=abc\n"),
            ("environment", "OPENSSL_ia32cap=~0x200000200000000\n"),
            ("process", "pid 10\nexe /usr/sbin/nginx (deleted)\ndescriptors 17\nnet net:[1]\nour_net net:[1]\nTracerPid:\t77\nUid:\t0\t33\t0\t0\n/proc/10/oom_score_adj:-500\n"),
            ("limits", "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 524288               files     \nMax cpu time              unlimited            unlimited            seconds   \n"),
        ]);
        assert_eq!(facts.value("process.limit.open_files"), Some("1024 (at most 524288)"));
        assert_eq!(facts.value("process.limit.cpu_time"), Some("unlimited (at most unlimited)"));
        assert_eq!((facts.value("process.tracer"), facts.value("process.user_id")), (Some("77"), Some("33")));
        assert_eq!(facts.value("process.environment.OPENSSL_ia32cap"), Some("~0x200000200000000"));
        assert_eq!(facts.value("process.command_line"), Some("nginx: master process /usr/sbin/nginx --token=[not kept]"));
        assert_eq!(facts.value("process.oom_score_adj"), Some("-500"));
    }
}
