//! `mem.limit`: what the slow side works on does not fit into the memory that it may use, and is read again and again.
//!
//! Counted: pages that come back soon after they were thrown out (refaults; reading something for the first time is
//! none), pages that come back from swap, and faults that waited for a disk. What that costs is counted in three ways,
//! each of which leaves something out, so the largest is a lower bound: time in which everybody waited for memory, time in
//! which a disk was busy with such pages, and CPU time in the kernel.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::by_hand;
use crate::evidence::machines::{FULL, Machines, Side, allowed_cpus, worth_log};
use crate::gap::{Flip, Gap, percent};
use duel_model::{Confidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "mem.limit",
    description: "what the server works on does not fit into its memory, and is read again and again",
    signature: "hosts: pages read again, swap or waiting faults, whose time is worth the gap (of a disk's, that of \
                as many reads), and a limit that was hit or as many pages taken away",
    at_most: "likely",
    needs_machine: true,
};

/// Longest that one page can take: a slow disk turns once and moves its arm across (7,200 per minute: 8 ms and some
/// 10 ms).
const LONGEST_PAGE_NS: f64 = 2e7;
/// Most CPU time that one page takes: it is evicted, allocated, read and mapped, by some thousands of instructions each.
const MOST_CPU_PER_PAGE_NS: f64 = 5e3;
/// The smallest page of any system that Linux runs on; sums of pages in bytes are no less than by this.
const PAGE_BYTES: f64 = 4096.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let machines = Machines::read(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let Some(of_slow) = Again::of(&machines.slow) else {
        return Err(open(format!("how often {slow}'s machine reads pages again is not known")));
    };
    let of_fast = machines.fast.as_ref().and_then(Again::of);
    let extra_pages = of_slow.pages - of_fast.as_ref().map_or(0.0, |again| again.pages);
    let tell = |name: &str, again: &Again| {
        format!("for each request {name}'s machine read {:.2} pages again ({})", again.pages, again.told())
    };
    let mut text = tell(&slow, &of_slow);
    if let Some(of_fast) = &of_fast {
        text.push_str(&format!("; {}", tell(&fast, of_fast)));
    }
    let counted = gap.on_host(text, Some(by_hand::PAGES_AGAIN.to_owned()));
    // Beyond that the pages cannot matter, whatever the disk.
    let wall_ns = machines.slow.wall_ns();
    let most = worth_log(0.0, extra_pages * LONGEST_PAGE_NS / wall_ns);
    if extra_pages <= 0.0 || most < Flip::NOTEWORTHY * machines.view.log.low() {
        return Err(Standing::RuledOut(counted));
    }

    let difference = |of: &dyn Fn(&Side<'_>) -> Option<f64>| {
        Some(of(&machines.slow)? - machines.fast.as_ref().and_then(of).unwrap_or(0.0))
    };
    // Shares of the time of the slow side: what the fast one loses is counted per op.
    let lost = |ns: Option<f64>| ns.map_or(0.0, |ns| (ns / wall_ns).max(0.0));
    let stalled = lost(difference(&|side| {
        side.per_op("cgroup.pressure.memory.full_ns").or_else(|| side.per_op("pressure.memory.full_ns"))
    }));
    // A disk that works while the CPUs are busy anyway keeps nobody waiting.
    let disk = lost(difference(&reading_again_ns)).min(idle_share(gap, &machines.slow));
    let kernel_ns = difference(&|side| side.per_op("process.system_ns"));
    let kernel = lost(kernel_ns.map(|ns| ns.min(extra_pages * MOST_CPU_PER_PAGE_NS)));
    let (loss, how) = [
        (stalled, "everybody waited for memory"),
        (disk, "its disk was busy"),
        (kernel, "the kernel was busy with it"),
    ]
    .into_iter()
    .fold((0.0, ""), |most, next| if next.0 > most.0 { next } else { most });
    let run = machines.slow.cpus("process.cpu_ns").unwrap_or(0.0);
    // A disk that is busy all the time is what everybody waits for, whatever CPUs there are.
    let by_cpus = machines.loss_log(gap, gap.slow, run, loss);
    let worth = if loss >= FULL { by_cpus.max(worth_log(0.0, loss)) } else { by_cpus };
    let share = machines.share(worth);
    let short = shortage(gap, &machines.slow, of_slow.pages);
    if share < Flip::NOTEWORTHY {
        return Err(open(format!(
            "{}; what that costs was not shown to be a noteworthy part of the gap",
            counted.text
        )));
    }
    let Some(short) = short else {
        return Err(open(format!("{}; but no limit was seen that memory ran into", counted.text)));
    };
    if machines.slow.is_held_back(&machines.view) {
        return Err(open(format!("{}; but a quota holds {slow} back as well", counted.text)));
    }
    let confidence = if of_fast.is_some() { machines.at_most() } else { Confidence::Possible };
    let told = Told {
        summary: format!(
            "What {slow} works on does not fit into its memory ({short}): for {} of the time under load {how}. That \
             is worth {}.",
            percent(loss),
            machines.about(share)
        ),
        remedy: format!(
            "On {slow}'s host: `free -m`, `vmstat 1` (si, so, bi) and `systemd-cgtop -m` tell who uses how much. \
             Raise the limit (`MemoryMax=`, `--memory` of a container), add memory, or make what is served smaller \
             (caches, workers, buffers)."
        ),
        facts: vec![gap.on_host(short, Some(format!("{}; free -b", by_hand::memory_limit(gap, gap.slow))))],
        further: vec![counted],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// Pages per op that were read although they had been in memory before.
struct Again {
    pages: f64,
    refaults: Option<f64>,
    swapped_bytes: Option<f64>,
    major_faults: Option<f64>,
}

impl Again {
    /// `None` where nothing of it is counted.
    fn of(side: &Side<'_>) -> Option<Self> {
        let of_files = side.per_op("memory.refaults_file");
        let refaults = match (of_files, side.per_op("memory.refaults_anon")) {
            (None, None) => None,
            (files, anon) => Some(files.unwrap_or(0.0) + anon.unwrap_or(0.0)),
        };
        let swapped_bytes = side.per_op("memory.swapped_in_bytes");
        let major_faults = side.per_op("process.major_faults");
        if refaults.is_none() && swapped_bytes.is_none() && major_faults.is_none() {
            return None;
        }
        // A page that comes back may be counted as all three.
        let pages = [refaults, swapped_bytes.map(|bytes| bytes / PAGE_BYTES), major_faults];
        let pages = pages.into_iter().flatten().fold(0.0, f64::max);
        Some(Self { pages, refaults, swapped_bytes, major_faults })
    }

    fn told(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let swapped = self.swapped_bytes.map_or_else(|| "-".to_owned(), format_bytes);
        let (refaults, faults) = (number(self.refaults), number(self.major_faults));
        format!("refaults {refaults}, from swap {swapped}, faults that waited {faults}")
    }
}

/// Share of the time in which the CPUs that the slow side's server may use are not in use; all of it, where that is not
/// known.
fn idle_share(gap: &Gap<'_>, side: &Side<'_>) -> f64 {
    let busy = || {
        let cpus = allowed_cpus(gap, gap.slow)?;
        Some(side.modes_on(&cpus, &["user", "nice", "system"])? / cpus.len() as f64)
    };
    (1.0 - busy().unwrap_or(0.0)).clamp(0.0, 1.0)
}

/// Time per op in which the disk was busy that was so the longest with reading pages again: no longer than it was busy, than
/// its reads took, and than that many reads take there. Most that a disk does is not for want of memory. `None` where
/// reads are not counted.
fn reading_again_ns(side: &Side<'_>) -> Option<f64> {
    let pages = Again::of(side)?.pages;
    side.disks()
        .filter_map(|disk| {
            let of = |what: &str| side.per_op(&format!("{disk}.{what}"));
            let (busy_ns, read_ns, reads) = (of("busy_ns")?, of("read_ns")?, of("reads")?);
            let each_ns = if reads > 0.0 { read_ns / reads } else { 0.0 };
            Some(busy_ns.min(read_ns).min(pages * each_ns))
        })
        .reduce(f64::max)
}

/// What memory ran into, as far as it was seen. Any machine whose cache is full takes a page away now and then, so where no
/// limit was hit it has to be about as many as are read again.
fn shortage(gap: &Gap<'_>, side: &Side<'_>, pages: f64) -> Option<String> {
    let limit = gap.host_number(gap.slow, "cgroup.memory_limit_bytes");
    let grew = |key: &str| side.per_op(key).is_some_and(|per_op| per_op > 0.0);
    let hit = grew("cgroup.memory_limit_hits") || grew("cgroup.memory_high_events");
    match limit {
        Some(bytes) if hit => {
            return Some(format!("its control group may use {} and ran into that", format_bytes(bytes)));
        }
        _ if hit => return Some("its control group ran into its limit".to_owned()),
        _ => {}
    }
    let reclaimed = side.per_op("memory.reclaimed_directly_pages").unwrap_or(0.0);
    let swapped = side.per_op("memory.swapped_in_bytes").unwrap_or(0.0) / PAGE_BYTES;
    let reclaims = reclaimed.max(swapped) >= 0.5 * pages;
    let total = gap.host_number(gap.slow, "memory.total_bytes");
    reclaims.then(|| match total {
        Some(bytes) => {
            format!("the machine has {}, and pages were taken away or swapped to get some", format_bytes(bytes))
        }
        None => "pages were taken away or swapped to get some".to_owned(),
    })
}
