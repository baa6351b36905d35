//! Commands that show on a side's machine what was read of it: counters to be read before and after some requests, and
//! facts.
//!
//! They are made of what that machine told, and it may be a hostile one: numbers are parsed, paths become one word of the
//! shell, and what is no plain path is left out.

use crate::evidence::machines::pid;
use crate::gap::Gap;
use duel_model::{sanitize_line, shell_word};

/// CPU time of the server's processes in their own code and in the kernel, in hundredths of a second.
pub(crate) fn cpu_time(gap: &Gap<'_>, side: usize) -> String {
    // Fields 14 and 15 of proc_pid_stat(5); the name before them may hold blanks.
    format!("sed 's/.*) //' {} | cut -d ' ' -f 12,13", of_processes(gap, side, "stat"))
}

/// CPU time of the server's processes, and of all of its machine.
pub(crate) fn all_cpu_time(gap: &Gap<'_>, side: usize) -> String {
    format!("{}; {MACHINE_CPU_TIME}", cpu_time(gap, side))
}

/// CPU time of a machine by mode, in hundredths of a second.
pub(crate) const MACHINE_CPU_TIME: &str = "grep '^cpu' /proc/stat";

/// Calls that read and write, and their bytes.
pub(crate) fn calls(gap: &Gap<'_>, side: usize) -> String {
    format!("cat {}", of_processes(gap, side, "io"))
}

/// How often the server's processes left their CPUs.
pub(crate) fn switches(gap: &Gap<'_>, side: usize) -> String {
    format!("grep ctxt {} /proc/stat", of_processes(gap, side, "status"))
}

/// What the threads of the server's processes sleep in.
pub(crate) fn sleepers(gap: &Gap<'_>, side: usize) -> String {
    format!("grep -h . {} | sort | uniq -c", of_processes(gap, side, "task/*/wchan"))
}

/// Sockets that listen, how many connections wait in their queues, and whose they are.
pub(crate) const LISTEN_QUEUES: &str = "ss -l -x -t -p -n";

/// Who traces the server's processes.
pub(crate) fn tracers(gap: &Gap<'_>, side: usize) -> String {
    format!("grep TracerPid {}", of_processes(gap, side, "status"))
}

/// What is attached to the system calls of the server's processes.
pub(crate) fn hooks(gap: &Gap<'_>, side: usize) -> String {
    format!("grep Seccomp {}; auditctl -l", of_processes(gap, side, "status"))
}

/// How the server's threads are scheduled against others, and the weights of their control groups.
pub(crate) fn priority(gap: &Gap<'_>, side: usize) -> String {
    let weight = limits(gap, side, "cpu.weight", "cpu.shares");
    format!("ps -L -o pid,tid,cls,ni,comm -p {}; {weight}", pid(gap, side))
}

/// Segments that were sent again.
pub(crate) const SENT_AGAIN: &str = "nstat -az TcpRetransSegs TcpOutSegs";

/// Pages that come back.
pub(crate) const PAGES_AGAIN: &str = "grep -E 'refault|pgmajfault|pswpin|allocstall' /proc/vmstat";

/// The CPU quota of the server's control group and of those above it.
pub(crate) fn quota(gap: &Gap<'_>, side: usize) -> String {
    limits(gap, side, "cpu.max", "'cpu.cfs_*_us'")
}

/// The memory that the server's control group may use, and those above it.
pub(crate) fn memory_limit(gap: &Gap<'_>, side: usize) -> String {
    limits(gap, side, "memory.max", "memory.limit_in_bytes")
}

/// How much the server's control group and those above it may read and write.
pub(crate) fn io_limits(gap: &Gap<'_>, side: usize) -> String {
    limits(gap, side, "io.max", "'blkio.throttle.*_device'")
}

/// The authors' line in the modules of the libcrypto that the server maps; `None` where its path is not known.
pub(crate) fn assembly(gap: &Gap<'_>, side: usize) -> Option<String> {
    let path = plain_path(gap.host_fact(side, "process.library.libcrypto.path")?)?;
    Some(format!("strings -n 8 {} | grep -c CRYPTOGAMS", shell_word(path)))
}

/// A file of a control group in version 2, else that of all groups, in either version.
fn limits(gap: &Gap<'_>, side: usize, file: &str, of_version_1: &str) -> String {
    // More groups above each other are hardly ever made.
    const MOST_GROUPS: usize = 16;
    let path = || match gap.host_fact(side, "cgroup.version")? {
        "2" => plain_path(gap.host_fact(side, "cgroup.path")?).filter(|path| !path.contains("/..")),
        _ => None,
    };
    let Some(path) = path() else {
        return format!("grep -rs . /sys/fs/cgroup --include={file} --include={of_version_1}");
    };
    let mut group = path.trim_end_matches('/');
    let mut files = Vec::new();
    while files.len() < MOST_GROUPS {
        files.push(shell_word(&format!("/sys/fs/cgroup{group}/{file}")));
        let Some((above, _)) = group.rsplit_once('/') else { break };
        group = above;
    }
    // The root has no such file.
    format!("grep -s . {}", files.join(" "))
}

/// A file below `/proc` of each of the server's processes; of `PID`, where none is known.
fn of_processes(gap: &Gap<'_>, side: usize, file: &str) -> String {
    // So many fit in a line that is still read.
    const MOST_PROCESSES: usize = 16;
    let members = gap.host_fact(side, "process.members").unwrap_or_default();
    let pids: Vec<u32> =
        members.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).take(MOST_PROCESSES).collect();
    match &pids[..] {
        [] => format!("/proc/{}/{file}", pid(gap, side)),
        pids => pids.iter().map(|pid| format!("/proc/{pid}/{file}")).collect::<Vec<_>>().join(" "),
    }
}

/// A path from the root that can be shown whole.
fn plain_path(path: &str) -> Option<&str> {
    (path.starts_with('/') && sanitize_line(path) == path).then_some(path)
}
