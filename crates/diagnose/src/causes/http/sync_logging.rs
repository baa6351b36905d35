//! `http.sync-logging`: each request to the slow side waits until something is written to a disk, such as its log line.
//!
//! Seen on the machine: for each request its processes write to a disk, the disk does writes and flushes, and the time
//! that these take is worth the gap; on the fast side they are not. A log that is written without waiting leaves the
//! disk's time out of the request: its writes are few, large and late. Writes that a request asks for (POST, PUT) are
//! the service itself, and nobody is accused for them.
//!
//! What looks alike: somebody else who writes to the same disk. A slower server has more of that in the time of each request. Where both
//! sides are on one machine, the disk is as busy with it while the other one is under load; of a machine by itself it is
//! known without load.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::evidence::by_hand;
use crate::evidence::machines::{is_same_fact, pid};
use crate::evidence::through_files::may_be_answers;
use crate::evidence::worth::{acquit, demands, reference, share_of_log, waiting_ns};
use crate::gap::{Demands, Flip, Gap};
use crate::probes::Mode;
use duel_model::{Confidence, HostDemand, format_bytes, format_duration_ns, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.sync-logging",
    description: "each request waits for a write to a disk, as where a log is written synchronously",
    signature: "hosts: writes and flushes per request whose time is worth the gap",
    at_most: "likely",
    needs_machine: true,
};

/// Fewest writes of the disk for each request. Who waits for the disk with each request writes once each; workers that
/// wait together may share a write, and a quarter is what such a group commit of four leaves. Writing back at leisure
/// gathers hundreds of lines in a write.
const LEAST_WRITES: f64 = 0.25;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let http = needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    if !matches!(&*http.method, "GET" | "HEAD" | "OPTIONS") {
        return Err(open(format!("a {} may be there to write", sanitize_line(&http.method))));
    }
    if http.requests.may_write() {
        return Err(open("the requests may be there to write".to_owned()));
    }
    let reference = reference(gap)?;
    let demands = demands(gap)?;
    let Some(on_slow) = Writing::of(demands.slow) else {
        return Err(open(format!("what the disks of {slow} do is not known")));
    };
    let told_slow = on_slow.told(&slow);
    let writes = format!("{} /proc/diskstats", by_hand::calls(gap, gap.slow));
    if on_slow.writes < LEAST_WRITES {
        return Err(Standing::RuledOut(gap.on_host(told_slow, Some(writes))));
    }
    // Somebody else's writing goes on without the server's.
    if on_slow.by_server_bytes.is_some_and(|bytes| bytes < 1.0) {
        return Err(open(format!("{told_slow}, but its server writes nothing: somebody else does")));
    }
    if let Some(text) = may_be_answers(gap, &demands) {
        return Err(open(format!("{told_slow}; {text}")));
    }
    let Some(on_fast) = demands.fast.and_then(Writing::of) else {
        return Err(open(format!("{told_slow}; what the disks of {fast} do is not known")));
    };
    let facts = format!("{told_slow}; {}", on_fast.told(&fast));
    let waited_ns = on_slow.waited_ns - on_fast.waited_ns;
    let worth = |waited_ns: f64| match gap.mode {
        Mode::Alone => share_of_log(reference, waited_ns),
        Mode::Loaded => {
            // Each connection waits for the writes of all that are before it: as many as there are connections, of
            // which those that go on side by side are over together, one in each 1/rate.
            let between_ns = demands.slow.elapsed_ns as f64 / demands.slow.ops.max(1) as f64;
            let queued = |connections: u32| f64::from(connections) * waited_ns.min(between_ns);
            reference.connections().and_then(|connections| share_of_log(reference, queued(connections)))
        }
    };
    let share_of = |waited_ns: f64| match gap.mode {
        Mode::Alone => Ok(worth(waited_ns)),
        Mode::Loaded => {
            // Where the CPU is what limits the rate, it is by what a request takes of it, and writes are hidden.
            let cpu_ns = |demand: &HostDemand| demand.per_op("process.cpu_ns").filter(|ns| *ns > 0.0);
            let by_cpu = cpu_ns(demands.slow).zip(demands.fast.and_then(cpu_ns));
            let left = by_cpu.map(|(slow, fast)| 1.0 - (slow / fast).ln().max(0.0) / reference.log.mid);
            match (worth(waited_ns), left) {
                (Some(waiting), Some(left)) if left >= Flip::NOTEWORTHY => Ok(Some(waiting.min(left))),
                _ => Err(format!("{facts}, but under load its CPU may be what limits {slow}")),
            }
        }
    };
    let Some(share) = share_of(waited_ns).map_err(open)? else {
        return Err(open(format!("{facts}, and what that is worth is not known")));
    };
    if share < Flip::NOTEWORTHY {
        // Who has waited for a disk has to get a CPU again.
        let most = waiting_ns(gap, demands.slow).and_then(|for_cpu_ns| worth(waited_ns.max(0.0) + for_cpu_ns));
        let most = if waited_ns > 0.0 { most } else { Some(0.0) };
        let most = most.ok_or_else(|| format!("how long {slow}'s threads waited for a CPU then is not known"));
        return Err(acquit(&most, gap.on_host(format!("{facts}: not worth the gap"), Some(writes))));
    }
    // More than half by others leaves as much to chance as to the requests.
    let by_others_ns = by_others_ns(gap, &demands, &on_slow);
    let own_ns = by_others_ns.map(|ns| on_slow.waited_ns - on_fast.waited_ns.max(ns));
    let own_share = match own_ns.filter(|ns| *ns >= 0.5 * on_slow.waited_ns) {
        Some(ns) => share_of(ns).map_err(open)?,
        None => None,
    };
    let Some(share) = own_share.filter(|share| *share >= Flip::NOTEWORTHY) else {
        let busy = by_others_ns.map_or_else(
            || "is not known".to_owned(),
            |ns| format!("is {} in the time of a request to {slow}", format_duration_ns(ns)),
        );
        return Err(open(format!(
            "{facts}; what the disk takes while {fast} is under load {busy}: others may write to it"
        )));
    };
    let mount = synchronous_mount(gap);
    let told = Told {
        summary: format!(
            "Each request to {slow} waits for a disk: {facts}. That is worth {:.0} % of the gap{}.",
            100.0 * share,
            mount.as_ref().map_or_else(String::new, |mount| format!("; {mount} is mounted with `sync`"))
        ),
        remedy: format!(
            "Let {slow} log without waiting: nginx `access_log ... buffer=64k flush=5s`, Apache `BufferedLogs On`, rsyslog \
             with `-` before the file name; no `sync` among the mount options (`findmnt -o TARGET,OPTIONS`). `strace -f -T \
             -e trace=write,fsync,fdatasync -p {}` for a second tells which file it is.",
            pid(gap, gap.slow)
        ),
        facts: vec![gap.on_host(facts, Some(writes))],
        further: Vec::new(),
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// What the disk that takes the longest for it writes for each op. Disks may stand on each other (a logical volume on a
/// real one), so sums would count a write twice.
struct Writing {
    /// Its counters begin so: `disk.sda`.
    disk: String,
    /// Bytes that the server's processes caused to be written; `None` where that is not told.
    by_server_bytes: Option<f64>,
    /// Writes and flushes.
    writes: f64,
    /// Time that these took.
    waited_ns: f64,
}

impl Writing {
    fn of(demand: &HostDemand) -> Option<Self> {
        let by_server_bytes = demand.per_op("workers.disk_written_bytes");
        let disks = demand.growth.keys().filter_map(|key| key.strip_suffix(".write_ns"));
        let of_disk = |disk: &str| {
            let per_op = |what: &str| demand.per_op(&format!("{disk}.{what}"));
            // Flushes are told by kernels since 5.5; without them the writes are what is known.
            Some(Self {
                disk: disk.to_owned(),
                by_server_bytes,
                writes: per_op("writes")? + per_op("flushes").unwrap_or(0.0),
                waited_ns: per_op("write_ns")? + per_op("flush_ns").unwrap_or(0.0),
            })
        };
        let disks = disks.filter(|key| key.starts_with("disk.")).filter_map(of_disk);
        disks.max_by(|one, other| one.waited_ns.total_cmp(&other.waited_ns))
    }

    fn told(&self, name: &str) -> String {
        let by_server = self
            .by_server_bytes
            .map_or_else(String::new, |bytes| format!(" ({} by the server's processes)", format_bytes(bytes)));
        format!(
            "for each request to {name} its disk does {:.2} writes and flushes{by_server}, which take {}",
            self.writes,
            format_duration_ns(self.waited_ns)
        )
    }
}

/// Time for writing that the slow side's disk would take in the time of one of its requests without them: as it does while the fast side
/// of the same machine is under load. Of two machines it is 0, for what they count is without that; `None` where it is not known.
fn by_others_ns(gap: &Gap<'_>, demands: &Demands<'_>, on_slow: &Writing) -> Option<f64> {
    if !is_same_fact(gap, "os.boot_id") {
        return Some(0.0);
    }
    let of_time = |what: &str| demands.fast?.share_of_time(&format!("{}.{what}", on_slow.disk));
    let share = of_time("write_ns")? + of_time("flush_ns").unwrap_or(0.0);
    Some(share * demands.slow.elapsed_ns as f64 / demands.slow.ops.max(1) as f64)
}

/// A file system of the slow side's machine that is mounted with `sync`.
fn synchronous_mount(gap: &Gap<'_>) -> Option<String> {
    let mounts = gap.case.hosts.get(gap.slow)?.as_ref()?.under("mount.");
    let synchronous = |text: &str| text.split([' ', ',']).any(|option| option == "sync");
    let mut found = mounts.filter(|(_, known)| known.text().is_some_and(synchronous));
    found.next().map(|(key, _)| sanitize_line(key.trim_start_matches("mount.")))
}
