//! Which processes are the server's, and how they run.

use super::found::Arrival;
use super::{Found, MOST_WORKERS, Stat};
use crate::mask;
use crate::parse::lines::{base, number};
use crate::parse::sheet::{Sheet, complaint};
use crate::parse::{Context, Sought, network};
use std::collections::{BTreeMap, BTreeSet};

/// Everything about the server's processes.
pub(in crate::parse) fn facts(sheet: &mut Sheet<'_>, sought: &Sought<'_>, context: &Context) {
    if !which(sheet, sought) {
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
            sheet.set(format!("process.{}", base(path)), value);
        } else if let Some((name, value)) = line.split_once(":\t") {
            status(sheet, name, value.trim());
        } else if let Some(stat) = Stat::of(line) {
            sheet.set("process.nice", stat.nice.to_string());
            sheet.set("process.policy", policy(stat.policy));
        }
    }
    sheet.promised(
        "process",
        &["process.exe", "process.descriptors", "process.cpus_allowed", "process.user_id", "process.nice"],
    );
    tracers(sheet);
    filters(sheet);
    network::own_network(sheet);
    workers(sheet);
    for (name, value) in sheet.lines("limits").filter_map(limit) {
        sheet.set(format!("process.limit.{name}"), value);
    }
    sheet.promised("limits", &["process.limit.open_files"]);
    other_limits(sheet);
}

/// Which processes, their command line and environment; false where there is none, or none that is the only one. FreeBSD has
/// the same sections.
pub(in crate::parse) fn which(sheet: &mut Sheet<'_>, sought: &Sought<'_>) -> bool {
    if sought.is_nobody() {
        sheet.unavailable("process", sought.described());
        return false;
    }
    let found = Found::of(sheet.text("server").unwrap_or_default());
    sheet.set("os.boot_id", found.boot());
    if found.members.is_empty() {
        let why = nobody(&found, sought);
        sheet.doubt(why.clone());
        sheet.unavailable("process", why);
        return false;
    }
    sheet.set("process.roots", found.roots.join(" "));
    sheet.set("process.members", found.members.join(" "));
    sheet.set("process.count", found.members.len().to_string());
    if let Some(doubt) = wrong_place(&found, sought) {
        sheet.unavailable("process.listens_on", &doubt);
        sheet.doubt(doubt);
    } else if found.serves == Some(true) {
        sheet.set("process.listens_on", sought.place());
    } else {
        sheet.unavailable("process.listens_on", "its sockets cannot be seen");
    }
    if found.pid().is_none() {
        let why = format!(
            "{} processes of one program share the connections to {}: {}; --pid names one of them",
            found.roots.len(),
            sought.place(),
            list(found.roots.iter().copied())
        );
        for key in ["process.pid", "process.started"] {
            sheet.unavailable(key, &why);
        }
        sheet.doubt(why);
        return false;
    }
    sheet.set("process.pid", found.roots.concat());
    sheet.set("process.started", found.started());
    sheet.unavailable("process.started", "the host does not tell");
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

/// Why no process was found: nobody listens, those who do cannot be seen, or there are too many.
fn nobody(found: &Found<'_>, sought: &Sought<'_>) -> String {
    let place = sought.place();
    if !found.strangers.is_empty() {
        let strangers = found.strangers.iter().map(|(pid, name)| format!("{pid} ({name})"));
        return format!(
            "{}: {}; which of them is the server cannot be told from here: --pid or --service names it",
            if sought.port().is_some() {
                format!("{} processes that are not one server listen on {place}", found.strangers.len())
            } else {
                format!("{} processes that are not one server go by the name", found.strangers.len())
            },
            list(strangers)
        );
    }
    if sought.port().is_none() {
        return sought.described();
    }
    if found.arrival == Arrival::Elsewhere {
        return format!(
            "{place} is on no network of this machine that can be seen, so who answers there is not known; --pid or \
             --service names the server, and for containers it takes root"
        );
    }
    let us = found.user.unwrap_or("?");
    match found.socket_user {
        Some(user) if us != "0" => format!(
            "{place} is listened on by user {user}, but which process it is cannot be seen by user {us}: read the host as \
             root or as the server's user"
        ),
        Some(_) => format!(
            "{place} is listened on, but by no process that can be seen here: systemd keeps it for a service that has not \
             started, or it is in another container"
        ),
        None if !found.reads_tables => "the host's table of TCP sockets cannot be read".to_owned(),
        None => format!("no process here listens on {place}; if the server is in a container, name its process"),
    }
}

/// What speaks against these processes, or against how they were found.
fn wrong_place(found: &Found<'_>, sought: &Sought<'_>) -> Option<String> {
    let place = sought.place();
    match (sought.port(), found.serves, found.arrival) {
        (None, Some(false), Arrival::Address) => Some(format!(
            "process {} does not listen on {place}, where connections go",
            list(found.roots.iter().copied())
        )),
        (None, Some(false), _) => Some(format!("process {} listens nowhere", list(found.roots.iter().copied()))),
        (Some(port), _, Arrival::Translated) => Some(format!(
            "{place} is no address of the machine, so its server was found by port {port} alone; --pid or --service names it"
        )),
        _ => None,
    }
}

/// The first ones, and that there are more.
fn list<T: AsRef<str>>(items: impl ExactSizeIterator<Item = T>) -> String {
    const MOST: usize = 8;
    let more = items.len().saturating_sub(MOST);
    let first: Vec<String> = items.take(MOST).map(|item| item.as_ref().to_owned()).collect();
    let first = first.join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// A line of `/proc/PID/status` that matters.
fn status(sheet: &mut Sheet<'_>, name: &str, value: &str) {
    let key = match name {
        "Uid" => return sheet.set("process.user_id", value.split('\t').nth(1).unwrap_or(value)),
        "Threads" => "process.threads",
        "Cpus_allowed_list" => "process.cpus_allowed",
        "Mems_allowed_list" => "process.memory_nodes_allowed",
        "Seccomp" => "process.seccomp",
        "NoNewPrivs" => "process.no_new_privileges",
        "THP_enabled" => "process.transparent_huge_pages",
        "Speculation_Store_Bypass" => "process.speculation_store_bypass",
        "VmRSS" => {
            if let Some(bytes) = number(value, 0).and_then(|kib| kib.checked_mul(1024)) {
                sheet.set("process.resident_bytes", bytes.to_string());
            }
            return;
        }
        _ => return,
    };
    sheet.set(key, value);
}

/// Who traces any of the server's processes (`process.tracer`), and which of them are traced (`process.traced`). Nobody
/// does only where all of them were looked at.
fn tracers(sheet: &mut Sheet<'_>) {
    let members = sheet.value("process.members").map_or(0, |members| members.split_ascii_whitespace().count());
    let told: Vec<(u32, u32)> = sheet.lines("tracers").filter_map(tracer).collect();
    let (mut tracers, mut traced): (Vec<u32>, Vec<u32>) =
        told.iter().filter(|(_, tracer)| *tracer > 0).map(|(pid, tracer)| (*tracer, *pid)).unzip();
    tracers.sort_unstable();
    tracers.dedup();
    traced.sort_unstable();
    traced.dedup();
    let list = |pids: &[u32]| pids.iter().take(16).map(u32::to_string).collect::<Vec<_>>().join(" ");
    if !tracers.is_empty() {
        sheet.doubt(format!("process {} traces {} of the server's {members} processes", list(&tracers), traced.len()));
        sheet.set("process.tracer", list(&tracers));
        sheet.set("process.traced", list(&traced));
    } else if told.len() == members && members > 0 {
        sheet.set("process.tracer", "none");
        sheet.set("process.traced", "none");
    } else if told.is_empty() {
        sheet.promised("tracers", &["process.tracer", "process.traced"]);
    } else {
        let why = format!("only {} of the server's {members} processes could be looked at", told.len());
        sheet.unavailable("process.tracer", &why);
        sheet.unavailable("process.traced", &why);
    }
}

/// Process and tracer in `/proc/PID/status:TracerPid: N` (a tab before the number); 0 is nobody.
fn tracer(line: &str) -> Option<(u32, u32)> {
    let (path, tracer) = line.split_once(":TracerPid:")?;
    let pid = path.strip_suffix("/status")?.rsplit('/').next()?;
    Some((pid.parse().ok()?, tracer.trim().parse().ok()?))
}

/// How many filters of system calls that process has that has the most. Workers may add some to those of their master; where one
/// does not tell, it may have more.
fn filters(sheet: &mut Sheet<'_>) {
    const KEY: &str = "process.seccomp_filters";
    let members = sheet.value("process.members").map_or(0, |members| members.split_ascii_whitespace().count());
    let told: Vec<u32> = sheet
        .lines("tracers")
        .filter_map(|line| line.split_once("/status:Seccomp_filters:")?.1.trim().parse().ok())
        .collect();
    match told.iter().max() {
        Some(most) if told.len() == members => sheet.set(KEY, most.to_string()),
        _ => sheet.unavailable(KEY, "not all of the server's processes tell how many they have (Linux does since 5.9)"),
    }
}

/// Limits that the master gives to its workers and has not itself, such as nginx's `worker_rlimit_nofile`: each value
/// once, since workers come and go.
fn other_limits(sheet: &mut Sheet<'_>) {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, value) in sheet.lines("other_limits").filter_map(limit) {
        values.entry(name).or_default().insert(value);
    }
    for (name, values) in values {
        let values: Vec<String> = values.into_iter().take(8).collect();
        sheet.set(format!("process.workers_limit.{name}"), values.join("; "));
    }
}

fn workers(sheet: &mut Sheet<'_>) {
    let stats: Vec<Stat<'_>> = sheet.lines("workers").filter_map(Stat::of).collect();
    let threads = stats.iter().map(|stat| stat.threads).sum::<u64>();
    if !stats.is_empty() {
        sheet.set("process.all_threads", threads.to_string());
    }
    // A master may run its workers at another priority than its own, as nginx's `worker_priority` says.
    if let Some(nice) = stats.iter().map(|stat| stat.nice).max() {
        sheet.set("process.highest_nice", nice.to_string());
    }
    let policies: BTreeSet<&str> = stats.iter().map(|stat| policy(stat.policy)).collect();
    sheet.set("process.policies", policies.into_iter().collect::<Vec<_>>().join(" "));
    for stat in stats.iter().take(MOST_WORKERS) {
        let what = format!(
            "{}, child of {}, {} threads, last on CPU {}",
            stat.name, stat.parent, stat.threads, stat.processor
        );
        sheet.set(format!("process.worker.{}", stat.pid), what);
    }
}

/// Name and value in `Max open files            1024                 524288               files`: two numbers (or
/// `unlimited`) end the name.
fn limit(line: &str) -> Option<(String, String)> {
    let words: Vec<&str> = line.strip_prefix("Max ")?.split_ascii_whitespace().collect();
    let is_value = |word: &str| word == "unlimited" || word.parse::<u64>().is_ok();
    let at = words.iter().position(|word| is_value(word))?;
    let hard = words.get(at + 1).filter(|word| is_value(word))?;
    Some((words[..at].join("_"), format!("{} (at most {hard})", words[at])))
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

#[cfg(test)]
mod tests {
    use super::super::stat_line;
    use crate::parse::tests_support::facts_of;
    use duel_model::Known;

    #[test]
    fn several_servers_are_none() {
        let found = facts_of(&[("server", "roots \nmembers \nstranger 10 nginx\nstranger 20 a b\narrival port\n")]);
        let why = format!("{:?}", found.0["process"]);
        assert!(
            why.contains("2 processes that are not one server listen on TCP port 80: 10 (nginx), 20 (a b)"),
            "{why}"
        );
        assert!(!found.0.contains_key("process.pid") && !found.0.contains_key("process.members"));

        let found = facts_of(&[
            ("server", "roots 10 20\nmembers 10 11 20\narrival address\nserves yes\n"),
            ("arguments", "nginx\n-c\na.conf\n"),
        ]);
        assert!(format!("{:?}", found.0["process.pid"]).contains("2 processes of one program share"), "{found:?}");
        assert_eq!((found.text("process.count"), found.text("process.command_line")), (Some("3"), None));
    }

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_id() {
        let found = facts_of(&[("server", "roots 10\nmembers 10\nserves yes\nboot 5f-a\nstarted 777\n")]);
        assert_eq!((found.text("process.started"), found.text("os.boot_id")), (Some("777"), Some("5f-a")));
        let found = facts_of(&[("server", "roots 10\nmembers 10\n")]);
        assert!(found.0["process.started"].text().is_none() && found.0["process.listens_on"].text().is_none());
    }

    #[test]
    fn why_nobody_was_found_is_told() {
        let why = |server: &str| match &facts_of(&[("server", server)]).0["process"] {
            Known::Unavailable(why) => why.clone(),
            known => panic!("{known:?}"),
        };
        assert!(
            why("roots \nmembers \nsocket 123 33\ntables tcp\nuser 65534").contains("cannot be seen by user 65534")
        );
        assert!(why("roots \nmembers \nsocket 123 33\ntables tcp\nuser 0").contains("another container"));
        assert!(why("roots \nmembers \ntables tcp\nuser 0").contains("no process here listens on TCP port 80"));
        assert!(why("roots \nmembers \nuser 0").contains("cannot be read"));
        assert!(why("roots \nmembers \narrival elsewhere\ntables tcp\nuser 0").contains("no network of this machine"));
    }

    #[test]
    fn limits_and_status() {
        let facts = facts_of(&[
            ("server", "roots 10\nmembers 10 11"),
            ("arguments", "nginx: master process /usr/sbin/nginx\n--token=abc\n"),
            ("environment", "OPENSSL_ia32cap=~0x200000200000000\n"),
            (
                "process",
                "pid 10\nexe /usr/sbin/nginx (deleted)\ndescriptors 17\nnet net:[1]\nour_net net:[1]\nUid:\t0\t33\t0\t0\n/proc/10/oom_score_adj:-500\n",
            ),
            (
                "limits",
                "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 524288               files     \nMax cpu time              unlimited            unlimited            seconds   \n",
            ),
        ]);
        assert_eq!(facts.text("process.limit.open_files"), Some("1024 (at most 524288)"));
        assert_eq!(facts.text("process.limit.cpu_time"), Some("unlimited (at most unlimited)"));
        assert_eq!(facts.text("process.user_id"), Some("33"));
        assert_eq!(facts.text("process.environment.OPENSSL_ia32cap"), Some("~0x200000200000000"));
        assert_eq!(
            facts.text("process.command_line"),
            Some("nginx: master process /usr/sbin/nginx --token=[not kept]")
        );
        assert_eq!(facts.text("process.oom_score_adj"), Some("-500"));
    }

    #[test]
    fn every_process_is_asked_who_traces_it() {
        let known = |tracers: &str| {
            let facts = facts_of(&[("server", "roots 10\nmembers 10 11"), ("tracers", tracers)]);
            (facts.0["process.tracer"].clone(), facts.0["process.traced"].clone())
        };
        let value = |text: &str| Known::from(text.to_owned());
        let nobody = "/proc/10/status:TracerPid:\t0\n/proc/11/status:TracerPid:\t0\n";
        assert_eq!(known(nobody), (value("none"), value("none")));
        let a_worker = "/proc/10/status:TracerPid:\t0\n/proc/11/status:TracerPid:\t77\n";
        assert_eq!(known(a_worker), (value("77"), value("11")));
        let both = "/proc/10/status:TracerPid:\t77\n/proc/11/status:TracerPid:\t77\n";
        assert_eq!(known(both), (value("77"), value("10 11")));
        let one_is_missing = known("/proc/10/status:TracerPid:\t0\n");
        assert!(format!("{one_is_missing:?}").contains("only 1 of the server's 2 processes"), "{one_is_missing:?}");
        assert!(known("").0.text().is_none() && known("x:TracerPid:y\n/status:TracerPid:\t0").0.text().is_none());
    }

    #[test]
    fn the_most_filters_of_any_process_are_told() {
        let filters = |status: &str| {
            let facts = facts_of(&[("server", "roots 10\nmembers 10 11"), ("tracers", status)]);
            facts.text("process.seccomp_filters").map(str::to_owned)
        };
        let master = "/proc/10/status:TracerPid:\t0\n/proc/10/status:Seccomp_filters:\t1\n";
        let both = format!("{master}/proc/11/status:TracerPid:\t0\n/proc/11/status:Seccomp_filters:\t8\n");
        assert_eq!(filters(&both).as_deref(), Some("8"));
        assert_eq!(filters(master), None, "the other one may have more");
        assert_eq!(filters("/proc/10/status:TracerPid:\t0\n/proc/11/status:TracerPid:\t0\n"), None, "before Linux 5.9");
    }

    #[test]
    fn workers_have_priorities_of_their_own() {
        let line = |pid: u64, nice: &str, policy: &str| {
            let line = stat_line(pid, 1, 10, 500);
            line.replace(" 40 20 0 1 0 ", &format!(" 40 20 {nice} 1 0 "))
                .replace(" 17 1 0 0 0", &format!(" 17 1 0 {policy} 0"))
        };
        let workers = format!("{}{}", line(10, "0", "0"), line(11, "15", "3"));
        let facts = facts_of(&[("server", "roots 10\nmembers 10 11"), ("workers", &workers)]);
        let told = ["process.highest_nice", "process.policies"].map(|key| facts.text(key));
        assert_eq!(told, [Some("15"), Some("batch normal")]);
        let none = facts_of(&[("server", "roots 10\nmembers 10"), ("workers", "")]);
        assert_eq!(none.text("process.highest_nice"), None);
    }

    #[test]
    fn limits_of_workers_are_told_where_they_differ() {
        let facts = facts_of(&[
            ("server", "roots 10\nmembers 10 11 12 13"),
            ("limits", "Max open files            1024                 524288               files     \n"),
            (
                "other_limits",
                "Max open files  4096 4096 files\nMax open files  4096 4096 files\nMax open files  512 512 files\nMax\n",
            ),
        ]);
        assert_eq!(facts.text("process.workers_limit.open_files"), Some("4096 (at most 4096); 512 (at most 512)"));
        assert_eq!(facts.under("process.workers_limit.").count(), 1);
    }
}
