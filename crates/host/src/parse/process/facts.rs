//! Which processes are the server's, and how they run.

use super::{MOST_WORKERS, Stat};
use crate::access::Server;
use crate::mask;
use crate::parse::lines::{base, number};
use crate::parse::sheet::{Sheet, complaint};
use crate::parse::{Context, network};

/// Everything about the server's processes.
pub(in crate::parse) fn facts(sheet: &mut Sheet<'_>, server: &Server, context: &Context) {
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
        &[
            "process.exe",
            "process.descriptors",
            "process.tracer",
            "process.cpus_allowed",
            "process.user_id",
            "process.nice",
        ],
    );
    network::own_network(sheet);
    workers(sheet);
    for line in sheet.lines("limits") {
        limit(sheet, line);
    }
    sheet.promised("limits", &["process.limit.open_files"]);
}

/// Which processes, their command line and environment; false where there are none. FreeBSD has the same sections.
pub(in crate::parse) fn which(sheet: &mut Sheet<'_>, server: &Server) -> bool {
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
            format!(
                "TCP port {port} is listened on by user {user}, but which process it is cannot be seen by user {us}: read the host as root or as the server's user"
            )
        }
        (Server::Port(port), Some(_)) => {
            format!(
                "TCP port {port} is listened on, but by no process that can be seen here: systemd keeps it for a service that has not started, or it is in another container"
            )
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
            if let Some(bytes) = number(value, 0).and_then(|kib| kib.checked_mul(1024)) {
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
        let what = format!(
            "{}, child of {}, {} threads, last on CPU {}",
            stat.name, stat.parent, stat.threads, stat.processor
        );
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

#[cfg(test)]
mod tests {
    use crate::parse::tests_support::facts_of;

    #[test]
    fn why_nobody_was_found_is_told() {
        let why = |server: &str| match &facts_of(&[("server", server)]).0["process"] {
            duel_model::Known::Unavailable(why) => why.clone(),
            known => panic!("{known:?}"),
        };
        assert!(
            why("roots \nmembers \nsocket 123 33\ntables tcp\nuser 65534").contains("cannot be seen by user 65534")
        );
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
            (
                "process",
                "pid 10\nexe /usr/sbin/nginx (deleted)\ndescriptors 17\nnet net:[1]\nour_net net:[1]\nTracerPid:\t77\nUid:\t0\t33\t0\t0\n/proc/10/oom_score_adj:-500\n",
            ),
            (
                "limits",
                "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 524288               files     \nMax cpu time              unlimited            unlimited            seconds   \n",
            ),
        ]);
        assert_eq!(facts.value("process.limit.open_files"), Some("1024 (at most 524288)"));
        assert_eq!(facts.value("process.limit.cpu_time"), Some("unlimited (at most unlimited)"));
        assert_eq!((facts.value("process.tracer"), facts.value("process.user_id")), (Some("77"), Some("33")));
        assert_eq!(facts.value("process.environment.OPENSSL_ia32cap"), Some("~0x200000200000000"));
        assert_eq!(
            facts.value("process.command_line"),
            Some("nginx: master process /usr/sbin/nginx --token=[not kept]")
        );
        assert_eq!(facts.value("process.oom_score_adj"), Some("-500"));
    }
}
