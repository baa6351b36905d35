//! `mem.cold-cache`: the slow side reads from disk what it is asked for the first time, and the fast side has it in memory already.
//!
//! Requests that differ go on from probe to probe, so what they ask for was not read before. The machines tell how many bytes each of them
//! has the server read, and for how long reads kept somebody waiting. Then the same few requests are sent again and again: what they ask for
//! is in memory by now, and nothing else changes. With the reads the gap has to go away, and the time of the reads has to be worth what goes.
//!
//! What looks like it: memory that is too small for what is served (pages are taken away again, and come back; then a few requests fit as
//! well, so this is left open), files that are read past the page cache or thrown out of it at once (the few are read again and again), a
//! slower device under a server whose twin is as cold (both read as much), larger files on one side (answers differ in size), and a cache of
//! the server's own that has to be filled (nothing is read from disks). Where all requests ask for the same, the first of them ends a cold
//! cache: then what is not read does not matter.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::causes::likes;
use crate::evidence::fronts::Fronts;
use crate::evidence::{by_hand, sleepers};
use crate::gap::{DemandLook, Demands, Flip, Gap, Look, View, percent};
use crate::probes::{AGAIN, Kind, SAME_FEW};
use duel_model::{Confidence, Evidence, HostDemand, format_bytes, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "mem.cold-cache",
    description: "what the server is asked for the first time is read from disk, and the other side has it in memory",
    signature: "hosts, requests that differ: its processes read from disks for each of them, and the fast side's a third of that at most; \
                with the same few requests again and again reads and gap go away; the time of the reads is worth what goes away, and no \
                memory was short",
    at_most: "likely, by the few requests and where the gap is there again with further ones; else possible",
    needs_machine: true,
};

/// At fewer bytes for each request a page is read once in 4,096 requests: that is not what a request waits for.
const LEAST_BYTES: f64 = 1.0;
/// So many times what the fast side reads is clearly more, however files differ in size.
const CLEARLY_MORE: f64 = 3.0;
/// Answers as large as each other, or nearly: what a further tenth takes is less than a noteworthy part of a gap that is worth a name.
const AS_LARGE: f64 = 1.1;
/// What is read costs more than the reading: pages are found, mapped and copied, and threads go to sleep and wake up. But when less than
/// half of what goes away is waiting for reads, something else goes away with them.
const LEAST_PART: f64 = 0.5;
/// The smallest page of any system that Linux runs on.
const PAGE_BYTES: f64 = 4096.0;
/// The bytes that a server's processes had read from disks.
const READ: &str = "workers.disk_read_bytes";

pub(super) static CAUSE: Cause = Cause { needs_no_reference: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let differ = needs_http(gap)?.requests.differ();
    if !gap.has_host(gap.slow) {
        return Err(Standing::Undecided(gap.on_host(format!("the machine of {slow} is not read"), None)));
    }
    let on_host = |text: String| gap.on_host(text, Some(by_hand::calls(gap, gap.slow)));
    let open = |text: String| Standing::Undecided(on_host(text));
    let further = Asked::of(gap, gap.hosts())?;
    if further.view.log.low() <= 0.0 {
        return Err(open(format!("while the machines were read: {}", gap.tell(&further.view))));
    }
    let Some(bytes) = further.slow.per_op(READ) else {
        return Err(open(format!("what {slow} reads from disks is not known")));
    };
    if bytes < LEAST_BYTES {
        let text = format!("for each request {slow} reads {} from disks", format_bytes(bytes));
        // What is read for it by others, such as a server behind it, is read by its machine.
        return Err(match disks_read_ns(further.slow) {
            Some(ns) if ns < Flip::NOTEWORTHY * further.longer_ns() => {
                match (further.answers_itself(gap), has_files_of_others(gap)) {
                    (true, false) => Standing::RuledOut(on_host(text)),
                    (false, _) => {
                        open(format!("{text}, but it may ask another server, which may read on another machine"))
                    }
                    (true, true) => {
                        open(format!("{text}, but file systems are mounted there whose reads are not counted so"))
                    }
                }
            }
            Some(ns) => open(format!(
                "{text}, but its machine's disks read for {} meanwhile, for others",
                format_duration_ns(ns)
            )),
            None => open(format!("{text}, and what its machine's disks do is not known")),
        });
    }
    let Some(fast_bytes) = further.fast.and_then(|fast| fast.per_op(READ)) else {
        return Err(open(format!("what {fast} reads from disks is not known")));
    };
    let read = format!(
        "for each request {slow} reads {} from disks, {fast} {}",
        format_bytes(bytes),
        format_bytes(fast_bytes)
    );
    if let Some(why) = further.other_size(gap) {
        return Err(open(format!("{read}; but {why}")));
    }
    if bytes <= fast_bytes {
        return Err(Standing::RuledOut(on_host(read)));
    }
    if bytes < CLEARLY_MORE * fast_bytes {
        return Err(open(format!("{read}: neither has it in memory")));
    }
    if !differ {
        return Err(open(format!("{read}, although all ask for the same: it does not stay in memory")));
    }

    let few = Asked::of(gap, SAME_FEW)?;
    let Some(few_bytes) = few.slow.per_op(READ) else {
        return Err(open(format!("{read}; what it reads {} is not known", SAME_FEW.phrase())));
    };
    let phrase = SAME_FEW.phrase();
    let again = format!("{phrase} {slow} reads {} for each", format_bytes(few_bytes));
    let told = format!("{read}; {again}");
    if let Some(why) = few.other_size(gap).or_else(|| few.other_size_than(gap, &further)) {
        return Err(open(format!("{told}; but {phrase} {why}")));
    }
    let Some(flip) = Flip::new(SAME_FEW, &further.view, few.view.clone()) else {
        return Err(open(format!("{told}; what that does to the gap is not known")));
    };
    let on_flip = |text: String| gap.evidence(&flip.view, text);
    let became = format!("{phrase}: {} instead of {:.2}x", gap.tell(&flip.view), further.view.ratio);
    if few_bytes > Flip::NOTEWORTHY * bytes {
        return Err(open(format!("{told}: what was read before is read again, it does not stay in memory")));
    }
    if flip.is_negligible() {
        return Err(Standing::RuledOut(on_flip(format!("{became}, and {again}"))));
    }
    // The few may be shorter work for both, so that both wait for something else.
    if !flip.moved() || few.may_hide_the_gap(&further) {
        return Err(Standing::Undecided(on_flip(format!("{became}: that leaves open whether it matters"))));
    }
    if let Some(why) = taken_away(further.slow, bytes) {
        return Err(open(format!("{told}; but {why}: what is read may not stay for long")));
    }
    let Some((waited_ns, how)) = waited_for_reads(&further) else {
        return Err(open(format!("{told}; for how long reads keep anybody waiting is not known")));
    };
    let connections = f64::from(further.view.connections().unwrap_or(1));
    let gone_ns = flip.moved_ns / connections;
    let worth = format!(
        "for each request {how} for {} longer on {slow}'s machine; {phrase} a request takes {} less of the server's time",
        format_duration_ns(waited_ns),
        format_duration_ns(gone_ns)
    );
    if waited_ns < LEAST_PART * gone_ns {
        return Err(open(format!("{told}; {worth}: something else goes away with the reads")));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|id| open(format!("{told}; {id} would look the same"))))?;
    }
    let back = comes_back(gap)?;
    let firmly = back.is_there && flip.confirms();
    let share = flip.gone.share();
    let summary = format!(
        "{slow} reads from disk what it is asked for the first time ({} for each request), and {fast} has it in memory: {phrase} {} of the \
         gap goes away.",
        format_bytes(bytes),
        percent(share)
    );
    let remedy = format!(
        "Compare {slow} when it is warm: ask for all of it once before (a longer `--warmup`), or read its files once (`vmtouch -t DIRECTORY`, \
         `cat FILES > /dev/null`). Where the first requests count, have it read its files before it serves, keep them small enough to stay in \
         memory, or on a faster disk."
    );
    let facts = vec![on_host(read), on_flip(format!("{became}; {again}"))];
    let told = Told { summary, remedy, facts, further: vec![on_host(worth), back.told] };
    let confidence = if firmly { Confidence::Likely } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// What a probe showed that reads the machines, whichever requests were sent.
struct Asked<'a> {
    view: View<'a>,
    slow: &'a HostDemand,
    fast: Option<&'a HostDemand>,
}

impl<'a> Asked<'a> {
    fn of(gap: &Gap<'a>, kind: Kind) -> Result<Self, Standing> {
        let open = |why: String| Standing::Undecided(gap.on_host(why, None));
        let demands = match gap.demands_whatever_is_asked(kind) {
            DemandLook::Shown(demands) => demands,
            DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            DemandLook::Missing(why) => return Err(open(why)),
        };
        match gap.look_whatever_is_asked(kind) {
            Look::Shown(view) => Ok(Self { view, slow: demands.slow, fast: demands.fast }),
            Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
            Look::Missing(why) => Err(open(why)),
        }
    }

    /// Whether the slow side's server is seen to hand no requests on.
    fn answers_itself(&self, gap: &Gap<'_>) -> bool {
        let demands = Demands { slow: self.slow, fast: self.fast };
        Fronts::beside(gap, &demands, &self.view).is_ok_and(|fronts| fronts.slow.answers_alone)
    }

    /// How much longer the slow side takes from one request's end to the next one's, all connections together, ns.
    fn longer_ns(&self) -> f64 {
        let both = self.view.slow_ns().zip(self.view.fast_ns());
        both.map_or(0.0, |(slow, fast)| (slow - fast) / f64::from(self.view.connections().unwrap_or(1)))
    }

    /// That the sides' answers are not as large as each other's, where that is so, or not known.
    fn other_size(&self, gap: &Gap<'_>) -> Option<String> {
        other_size(
            [&gap.slow_name(), &gap.fast_name()],
            [self.view.slow.body_bytes_per_op, self.view.fast.body_bytes_per_op],
        )
    }

    /// The same of the slow side's answers in two probes.
    fn other_size_than(&self, gap: &Gap<'_>, other: &Self) -> Option<String> {
        let slow = gap.slow_name();
        other_size(
            [&slow, &format!("{slow} before")],
            [self.view.slow.body_bytes_per_op, other.view.slow.body_bytes_per_op],
        )
    }

    /// Whether the fast side's requests are clearly shorter than before, so that both sides may wait for something else that they share:
    /// that hides no more than all of the time that the slow side's requests take by now, which may be little of the gap.
    fn may_hide_the_gap(&self, before: &Self) -> bool {
        /// As under any load: see `Gap::flip_against`.
        const RELIEVED: f64 = 0.8;
        let times = || Some((before.view.fast_ns()?, self.view.fast_ns()?, self.view.slow_ns()?));
        times().is_none_or(|(then, now, slow_now)| {
            let most_left = (slow_now / then).ln_1p() / before.view.log.mid;
            now < RELIEVED * then && most_left > 1.0 - Flip::EXPLAINS
        })
    }
}

fn other_size(names: [&str; 2], bytes: [Option<f64>; 2]) -> Option<String> {
    let [Some(one), Some(other)] = bytes else { return Some("how large answers are is not known".to_owned()) };
    let is_as_large = one <= AS_LARGE * other && other <= AS_LARGE * one;
    (!is_as_large)
        .then(|| format!("{} answers with {}, {} with {}", names[0], format_bytes(one), names[1], format_bytes(other)))
}

/// Time of reads of the disk that reads for longest, per request, ns. `None` where none is counted. Not of all of them: what a volume reads
/// is counted of the disks below it once more.
fn disks_read_ns(demand: &HostDemand) -> Option<f64> {
    let keys = demand.growth.keys().filter(|key| key.starts_with("disk.") && key.ends_with(".read_ns"));
    keys.filter_map(|key| demand.per_op(key)).reduce(f64::max)
}

/// Whether the slow side's machine has mounted a file system whose reads are made by another program, or on another machine: neither its
/// disks nor its server's count of bytes has them. Or that is not known.
fn has_files_of_others(gap: &Gap<'_>) -> bool {
    /// `fuse` is also `fuse.sshfs` and so on.
    const OTHERS: [&str; 8] = ["fuse", "virtiofs", "9p", "nfs", "cifs", "smb", "ceph", "lustre"];
    let Some(facts) = gap.case.hosts.get(gap.slow).and_then(Option::as_ref) else { return true };
    let mut mounts = facts.under("mount.").peekable();
    mounts.peek().is_none()
        || mounts.any(|(_, known)| known.text().is_none_or(|text| OTHERS.iter().any(|kind| text.starts_with(kind))))
}

/// For how much longer reads kept somebody waiting per request on the slow side's machine than on the fast side's, ns, and what tells
/// it. Each of these leaves something out, so the largest counts: what a throttle of the control group holds back is not in the disk's time;
/// pressure is weighed by how busy each CPU is, so that others' work makes it seem less; and in what threads sleep is seen only now and
/// then. `None` where nothing of it is known of both.
fn waited_for_reads(asked: &Asked<'_>) -> Option<(f64, &'static str)> {
    let fast = asked.fast?;
    let more = |key: &str| Some(asked.slow.per_op(key)? - fast.per_op(key)?);
    let of_disks = disks_read_ns(asked.slow).map(|ns| ns - disks_read_ns(fast).unwrap_or(0.0));
    // So many threads all the time.
    let asleep_ns = |demand: &HostDemand, op_ns: Option<f64>| Some(sleepers::for_disks(demand)? * op_ns?);
    let connections = f64::from(asked.view.connections().unwrap_or(1));
    let of_threads = asleep_ns(asked.slow, asked.view.slow_ns())
        .zip(asleep_ns(fast, asked.view.fast_ns()))
        .map(|(slow_ns, fast_ns)| (slow_ns - fast_ns) / connections);
    [
        (of_threads, "the server's threads slept for a disk"),
        (of_disks, "disks read"),
        (more("cgroup.pressure.io.some_ns"), "the server's group waited for disks"),
        (more("pressure.io.some_ns"), "somebody waited for disks"),
    ]
    .into_iter()
    .filter_map(|(ns, how)| Some((ns?, how)))
    .max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// That memory was short while so many bytes were read for each request, where it was or may have been: pages came back that had been in
/// memory before, and pages were taken away. One of the two alone is no lack of memory: a machine that fills the rest of its
/// memory takes old pages away, and pages that were taken away last night come back.
fn taken_away(demand: &HostDemand, bytes: f64) -> Option<&'static str> {
    let noteworthy = Flip::NOTEWORTHY * bytes / PAGE_BYTES;
    let is_low = |key: &str, most: f64| demand.per_op(key).map(|per_op| per_op <= most);
    let none_come_back = is_low("memory.refaults_file", noteworthy);
    if none_come_back == Some(true) {
        return None;
    }
    let hits_limit = ["cgroup.memory_limit_hits", "cgroup.memory_high_events"].map(|key| is_low(key, 0.0));
    let is_reclaimed = is_low("memory.reclaimed_directly_pages", noteworthy);
    if hits_limit.contains(&Some(false)) {
        return Some("its control group runs into its memory limit");
    }
    match (none_come_back, hits_limit[0], is_reclaimed) {
        (_, _, Some(false)) => Some("pages are taken away to make room"),
        (_, Some(true), Some(true)) => None,
        _ => Some("whether memory is short is not known"),
    }
}

/// Whether the gap was there again, once further requests were sent.
struct Back {
    is_there: bool,
    told: Evidence,
}

fn comes_back(gap: &Gap<'_>) -> Result<Back, Standing> {
    match gap.look_whatever_is_asked(AGAIN) {
        Look::NotAsked(probe) if probe.budget_ns <= gap.case.budget_left_ns => Err(Standing::Wants(vec![probe])),
        Look::Shown(view) => {
            let is_there = view.log.low() > 0.0;
            let so =
                if is_there { "with further requests the gap is there again" } else { "by now all may have been read" };
            Ok(Back { is_there, told: gap.evidence(&view, format!("{so}: {}", gap.tell(&view))) })
        }
        Look::NotAsked(_) | Look::Missing(_) => {
            let text = "not shown: that the gap comes back with further requests".to_owned();
            Ok(Back { is_there: false, told: Evidence::new("comparison", text, None) })
        }
    }
}
