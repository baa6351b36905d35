//! Limits, priority and rights of a server as words of a command that takes them over.

use duel_process::{ProcessFiles, Status};

/// Names in `/proc/PID/limits`, and the options of `prlimit` (util-linux) for them.
const LIMITS: [(&str, &str); 16] = [
    ("Max cpu time", "cpu"),
    ("Max file size", "fsize"),
    ("Max data size", "data"),
    ("Max stack size", "stack"),
    ("Max core file size", "core"),
    ("Max resident set", "rss"),
    ("Max processes", "nproc"),
    ("Max open files", "nofile"),
    ("Max locked memory", "memlock"),
    ("Max address space", "as"),
    ("Max file locks", "locks"),
    ("Max pending signals", "sigpending"),
    ("Max msgqueue size", "msgqueue"),
    ("Max nice priority", "nice"),
    ("Max realtime priority", "rtprio"),
    ("Max realtime timeout", "rttime"),
];

/// The command before a program that gives it a process's limits, priority, user and groups. Whoever is not root gets no
/// capabilities, and nothing that it starts ever gets further rights.
///
/// Not taken over: the control group, whose other members would have to share what they may use with a twin; the policy of
/// the scheduler; the rank among those that the kernel ends when memory runs out.
pub(crate) fn rights(files: &ProcessFiles, status: &Status) -> Vec<String> {
    let limits = files.bytes("limits").unwrap_or_default();
    let mut words = vec!["prlimit".to_owned()];
    words.extend(options(&String::from_utf8_lossy(&limits)));
    let own = ProcessFiles::of(std::process::id());
    if let (Some(theirs), Some(ours)) = (niceness(files), niceness(&own))
        && theirs != ours
    {
        words.extend(["nice".to_owned(), "-n".to_owned(), (theirs - ours).to_string()]);
    }
    match &status.user {
        Some(user) if user.uid != 0 => {
            let groups: Vec<String> = user.groups.iter().map(u32::to_string).collect();
            words.extend(["setpriv".to_owned(), format!("--reuid={}", user.uid), format!("--regid={}", user.gid)]);
            words.push(if groups.is_empty() {
                "--clear-groups".to_owned()
            } else {
                format!("--groups={}", groups.join(","))
            });
            words.extend(["--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"].map(str::to_owned));
        }
        _ if status.has_no_new_privileges => words.extend(["setpriv", "--no-new-privs"].map(str::to_owned)),
        _ => {}
    }
    words
}

/// `--NAME=SOFT:HARD` for each limit that the kernel tells.
fn options(limits: &str) -> impl Iterator<Item = String> {
    LIMITS.iter().filter_map(move |(name, option)| {
        let mut values = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        let is_limit = |value: &&str| *value == "unlimited" || value.parse::<u64>().is_ok();
        let (soft, hard) = (values.next().filter(is_limit)?, values.next().filter(is_limit)?);
        Some(format!("--{option}={soft}:{hard}"))
    })
}

/// Field 19 of `/proc/PID/stat`; the name before it, in brackets, may hold anything.
fn niceness(files: &ProcessFiles) -> Option<i32> {
    let stat = String::from_utf8_lossy(&files.bytes("stat").ok()?).into_owned();
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_process::User;

    #[test]
    fn every_limit_of_a_process_is_taken_over() {
        let own = ProcessFiles::of(std::process::id());
        let limits = String::from_utf8_lossy(&own.bytes("limits").unwrap()).into_owned();
        assert_eq!(options(&limits).count(), LIMITS.len(), "{limits}");
        let one =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 unlimited  files\n";
        assert_eq!(options(one).collect::<Vec<_>>(), ["--nofile=1024:unlimited"]);
        assert_eq!(options("Max open files 1; 2\n").count(), 0);
    }

    #[test]
    fn who_is_not_root_is_given_no_rights_of_root() {
        let own = ProcessFiles::of(std::process::id());
        let user = |uid, groups| Some(User { uid, gid: 34, groups });
        let of = |user| rights(&own, &Status { user, ..Status::default() }).join(" ");
        let words = of(user(33, vec![4, 5]));
        assert!(words.contains("--reuid=33 --regid=34 --groups=4,5") && words.ends_with("--no-new-privs"), "{words}");
        assert!(of(user(33, Vec::new())).contains("--clear-groups"));
        assert!(!of(user(0, Vec::new())).contains("setpriv"));
    }
}
