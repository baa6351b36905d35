//! The counters of machines that are leads: what each counts, how long one of its events can keep an op waiting, and how to
//! look at it by hand.
//!
//! A list of what is known rather than of what is not: sums that hold each other, counters of single threads and of single
//! CPUs, and what the load generator itself makes grow would differ without telling anything.

use crate::evidence::by_hand;
use crate::evidence::machines::pid;
use crate::gap::Gap;

/// A counter, or all of one kind.
pub(super) struct Counted {
    /// Its key; of several devices a part of it may be any text: `*`, once.
    pub(super) key: &'static str,
    /// What it counts, per op.
    pub(super) noun: &'static str,
    /// The shortest and the longest time that one event, or one byte, usually takes, ns. `None`: it counts time itself.
    pub(super) event_ns: Option<[f64; 2]>,
    /// How to look at it on the side's machine.
    pub(super) look: fn(&Gap<'_>, usize) -> String,
}

impl Counted {
    pub(super) fn of(key: &str) -> Option<&'static Self> {
        COUNTED.iter().find(|counted| match counted.key.split_once('*') {
            None => counted.key == key,
            Some((begin, end)) => key.len() >= begin.len() + end.len() && key.starts_with(begin) && key.ends_with(end),
        })
    }

    /// Whether the server's own processes, or those of its group, make it grow, and nobody else's.
    pub(super) fn is_of_server(key: &str) -> bool {
        ["process.", "workers.", "cgroup."].iter().any(|begin| key.starts_with(begin))
    }
}

/// Copying a byte takes 0.02 ns where memory moves 50 GB/s; at 1 us a byte a path of 1 MB/s is the limit.
const COPIED: Option<[f64; 2]> = Some([0.02, 1e3]);
/// From a fast NVMe drive (10 GB/s) to one that is held back to 1 MB/s.
const STORED: Option<[f64; 2]> = Some([0.1, 1e3]);
/// From a fast NVMe drive to a disk that seeks behind a queue.
const DISK: Option<[f64; 2]> = Some([1e4, 1e8]);
/// A call takes 0.1 us at least; it may wait for a disk.
const CALL: Option<[f64; 2]> = Some([100.0, 1e8]);
/// Going to sleep and waking up takes a microsecond at least; what is waited for may be anything.
const SWITCH: Option<[f64; 2]> = Some([1e3, 1e9]);
/// Whoever is put aside waits for a slice of somebody else's time.
const PUT_ASIDE: Option<[f64; 2]> = Some([1e3, 1e8]);
/// A page that is there needs a microsecond; a huge one has to be cleared (2 MiB at 10 GB/s).
const FAULT: Option<[f64; 2]> = Some([100.0, 2e5]);
/// From a fast retransmit on a near path to the third timeout in a row (RFC 6298: 1 s, 2 s, 4 s; Linux begins with 0.2 s).
const SENT_AGAIN: Option<[f64; 2]> = Some([1e5, 4e9]);
/// Linux waits for 200 ms at least, and for a lost SYN 1 s.
const TIMEOUT: Option<[f64; 2]> = Some([2e8, 4e9]);
/// A near handshake of TCP, and a far one with TLS.
const CONNECTED: Option<[f64; 2]> = Some([2e4, 1e9]);
/// What a kernel does for a segment, and a round trip for each.
const SEGMENT: Option<[f64; 2]> = Some([300.0, 3e8]);
/// Making a process takes 0.1 ms; a program that starts up may take a second.
const FORKED: Option<[f64; 2]> = Some([5e4, 1e9]);
/// The kernel looks for memory before it gives any.
const RECLAIMED: Option<[f64; 2]> = Some([100.0, 1e8]);

static COUNTED: &[Counted] = &[
    time("process.user_ns", "CPU time in the server's own code", profile),
    time("process.system_ns", "CPU time in the kernel for the server", calls_by_time),
    time("workers.wait_ns", "time in which the server's threads wait for a CPU", waiting),
    time("cgroup.throttled_ns", "time in which a CPU quota holds the server back", by_hand::quota),
    time("cgroup.pressure.memory.some_ns", "time in which the server's group waits for memory", pressure),
    time("cgroup.pressure.io.some_ns", "time in which the server's group waits for disks", pressure),
    time("pressure.memory.some_ns", "time in which the machine waits for memory", pressure),
    time("pressure.io.some_ns", "time in which the machine waits for disks", pressure),
    time("disk.*.busy_ns", "time in which the disk is busy", disks),
    time("cpu.iowait_ns", "CPU time in which only disks are waited for", disks),
    time("cpu.softirq_ns", "CPU time in soft interrupts", interrupts),
    time("cpu.irq_ns", "CPU time in interrupts", interrupts),
    time("cpu.steal_ns", "CPU time that the hypervisor withholds", machine),
    count("process.minor_faults", "page faults without a disk", FAULT, faults),
    count("process.major_faults", "page faults that read a disk", DISK, faults),
    count("workers.read_calls", "calls that read", CALL, calls_by_time),
    count("workers.write_calls", "calls that write", CALL, calls_by_time),
    count("workers.read_chars_bytes", "bytes read by calls", COPIED, by_hand::calls),
    count("workers.written_chars_bytes", "bytes written by calls", COPIED, by_hand::calls),
    count("workers.disk_read_bytes", "bytes read from disks", STORED, by_hand::calls),
    count("workers.disk_written_bytes", "bytes to be written to disks", STORED, by_hand::calls),
    count("workers.voluntary_switches", "times that the server went to sleep", SWITCH, calls_by_time),
    count("workers.involuntary_switches", "times that the server was put aside", PUT_ASIDE, by_hand::switches),
    count("workers.turns", "turns of the server's threads on a CPU", SWITCH, calls_by_time),
    count("cgroup.memory_limit_hits", "hits of the group's memory limit", RECLAIMED, by_hand::memory_limit),
    count("cpu.forks", "processes and threads that are made", FORKED, forks),
    count("disk.*.reads", "reads of the disk", DISK, disks),
    count("disk.*.writes", "writes of the disk", DISK, disks),
    count("memory.refaults_file", "pages of files that come back", DISK, pages),
    count("memory.swapped_in_bytes", "bytes swapped in", STORED, pages),
    count("memory.reclaimed_directly_pages", "pages reclaimed by who needs one", RECLAIMED, pages),
    count("memory.compaction_stalls", "stalls for memory to be compacted", RECLAIMED, pages),
    count("tcp.retransmitted_segments", "segments sent again", SENT_AGAIN, segments),
    count("tcp.timeouts", "timeouts of TCP", TIMEOUT, segments),
    count("tcp.listen_overflows", "overflows of listen queues", TIMEOUT, listening),
    count("tcp.windows_closed", "receive windows that closed", SEGMENT, segments),
    count("tcp.receive_prunes", "receive buffers that were pruned", SEGMENT, segments),
    count("tcp.delayed_acknowledgements", "acknowledgements that were delayed", SEGMENT, segments),
    count("tcp.opened", "connections that are opened from there", CONNECTED, connections),
    count("tcp.accepted", "connections that are accepted there", CONNECTED, connections),
    count("tcp.sent_segments", "segments sent", SEGMENT, segments),
];

const fn time(key: &'static str, noun: &'static str, look: fn(&Gap<'_>, usize) -> String) -> Counted {
    Counted { key, noun, event_ns: None, look }
}

const fn count(
    key: &'static str,
    noun: &'static str,
    event_ns: Option<[f64; 2]>,
    look: fn(&Gap<'_>, usize) -> String,
) -> Counted {
    Counted { key, noun, event_ns, look }
}

/// Where the server's own code spends its time.
fn profile(gap: &Gap<'_>, side: usize) -> String {
    format!("perf top -p {}", pid(gap, side))
}

/// Which calls take how long, waiting included.
pub(super) fn calls_by_time(gap: &Gap<'_>, side: usize) -> String {
    format!("timeout 10 strace -c -f -w -p {}", pid(gap, side))
}

fn waiting(gap: &Gap<'_>, side: usize) -> String {
    format!("grep . /proc/{}/task/*/schedstat", pid(gap, side))
}

fn pressure(_: &Gap<'_>, _: usize) -> String {
    "grep . /proc/pressure/*".to_owned()
}

fn disks(_: &Gap<'_>, _: usize) -> String {
    "iostat -x 1".to_owned()
}

fn interrupts(_: &Gap<'_>, _: usize) -> String {
    "mpstat -I SUM -P ALL 1; cat /proc/softirqs".to_owned()
}

fn machine(_: &Gap<'_>, _: usize) -> String {
    by_hand::MACHINE_CPU_TIME.to_owned()
}

fn faults(gap: &Gap<'_>, side: usize) -> String {
    format!("perf trace -F all --no-syscalls -p {}", pid(gap, side))
}

fn forks(_: &Gap<'_>, _: usize) -> String {
    "perf trace -a -e clone,clone3,execve".to_owned()
}

fn pages(_: &Gap<'_>, _: usize) -> String {
    by_hand::PAGES_AGAIN.to_owned()
}

fn segments(_: &Gap<'_>, _: usize) -> String {
    "nstat; ss -ti".to_owned()
}

fn listening(_: &Gap<'_>, _: usize) -> String {
    "ss -lnt".to_owned()
}

fn connections(gap: &Gap<'_>, side: usize) -> String {
    format!("ss -tnp | grep pid={}", pid(gap, side))
}
