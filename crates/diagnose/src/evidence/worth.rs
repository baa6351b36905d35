//! What counted quantities are worth of a gap, and what several causes ask of one first.

use crate::cause::Standing;
use crate::evidence::machines::{QUOTA, allowed_cpus};
use crate::gap::{DemandLook, Demands, Flip, FlipLook, Gap, Look, Reference, View, percent};
use crate::probes::{ALONE, Kind, Mode};
use duel_model::{Evidence, HostDemand, TargetObservation, format_duration_ns, web};
use duel_stats::Estimate;

/// Share of the log of the gap that goes away when each op of the slow side is spared this much time.
pub(crate) fn share_of_log(view: &View<'_>, saved_ns: f64) -> Option<f64> {
    let left = (view.ratio - saved_ns.max(0.0) / view.fast_ns()?).max(1.0);
    (view.log.mid > 0.0 && left.is_finite()).then(|| (1.0 - left.ln() / view.log.mid).clamp(0.0, 1.0))
}

/// The same for time of a resource of the slow side, such as its CPU: `saved_ns` of the `all_ns` that an op needs there.
///
/// Over one connection an op waits for the resource once. Under load it waits for the ops before it as well, and where
/// the resource is what limits the rate, the time of an op is in proportion to what an op needs of it.
pub(crate) fn share_of_resource(gap: &Gap<'_>, view: &View<'_>, saved_ns: f64, all_ns: f64) -> Option<f64> {
    let saved_ns = match gap.mode {
        Mode::Alone => saved_ns,
        Mode::Loaded if all_ns > 0.0 => view.slow_ns()? * (saved_ns / all_ns).min(1.0),
        Mode::Loaded => return None,
    };
    share_of_log(view, saved_ns)
}

/// Further CPU time of the slow side's processes per op, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FurtherCpu {
    /// What nothing but the cause explains: by this somebody may be accused.
    pub(crate) least_ns: f64,
    /// All that the cause may have taken: by this it may be acquitted.
    pub(crate) most_ns: f64,
}

/// What further CPU time is worth of a gap.
///
/// An op takes as long as it computes only where nobody else wants its CPU. Where others do, whoever computes longer is put
/// aside oftener, and 20 ms of CPU take 150 ms. So what was computed is the least that it is worth; the most is that and all
/// the time that threads waited. Between the two nobody is acquitted. Nobody is either whose requests take as many times the
/// CPU time as they take longer: then something stretches all of it, whether or not that is counted.
pub(crate) struct CpuWorth {
    /// Share of the log of the gap, by which the cause may be named. `None` where it is not known.
    share: Option<f64>,
    /// What it may be at most, or why that is not known.
    most: Result<f64, String>,
    /// What the slow side's threads waited for the CPU because they needed more of it, ns per op: a part of the share.
    waited_ns: f64,
}

impl CpuWorth {
    /// Of CPU time in which a request's processes of both sides, `by_slow` and `by_fast`, were counted.
    pub(crate) fn of(
        gap: &Gap<'_>,
        view: &View<'_>,
        demands: &Demands<'_>,
        [by_slow, by_fast]: [&Cpu; 2],
        further: FurtherCpu,
    ) -> Self {
        let all_ns = by_slow.all_ns();
        if gap.mode == Mode::Loaded {
            // By proportion, which holds for what ops wait as well.
            let share = |ns| share_of_resource(gap, view, ns, all_ns);
            let most = share(further.most_ns).ok_or_else(|| "what that is worth is not known".to_owned());
            return Self { share: share(further.least_ns), most, waited_ns: 0.0 };
        }
        let waited_ns = put_aside_ns(demands, by_slow, by_fast, further.least_ns);
        Self {
            share: share_of_log(view, further.least_ns + waited_ns),
            most: most_share_alone(gap, view, demands.slow, [all_ns, by_fast.all_ns()], further.most_ns),
            waited_ns,
        }
    }

    /// What a sentence about the further CPU time says of waiting.
    pub(crate) fn and_waiting(&self) -> String {
        if self.waited_ns <= 0.0 {
            return String::new();
        }
        format!(", with the {} that threads waited oftener to get it,", format_duration_ns(self.waited_ns))
    }

    /// The share, where it is worth a name. Else the cause is ruled out, if it cannot be worth one by what was `counted`.
    pub(crate) fn noteworthy(&self, counted: Evidence) -> Result<f64, Standing> {
        match self.share {
            Some(share) if share >= Flip::NOTEWORTHY => Ok(share),
            None => Err(Standing::Undecided(with(counted, "what that is worth is not known"))),
            Some(_) => Err(acquit(&self.most, counted)),
        }
    }
}

/// The standing of what was seen and is too small to be named: a `share` of the log of the gap. It is ruled out where that is less than the
/// margin. Beside a larger cause what makes ops 1.2 times as long is a small share, too.
pub(crate) fn too_little(gap: &Gap<'_>, reference: &View<'_>, share: f64, seen: Evidence) -> Standing {
    if share * reference.log.mid >= gap.case.margin_log() { minor(share, seen) } else { Standing::RuledOut(seen) }
}

/// The standing of what is felt, and too small to be named.
pub(crate) fn minor(share: f64, seen: Evidence) -> Standing {
    let text = format!("{}: that is worth about {} of the gap", seen.text, percent(share));
    Standing::Minor(Evidence { text, ..seen })
}

/// Rules out what is not worth a name even at most; else leaves it open, and tells why.
pub(crate) fn acquit(most: &Result<f64, String>, counted: Evidence) -> Standing {
    match most {
        Ok(most) if *most < Flip::NOTEWORTHY => Standing::RuledOut(counted),
        Ok(most) => {
            let why = format!(
                "with waiting for a CPU, and whatever slows it, that may be up to {} of the gap",
                percent(*most)
            );
            Standing::Undecided(with(counted, &why))
        }
        Err(why) => Standing::Undecided(with(counted, why)),
    }
}

/// The standing of what is not worth a name, unless it may be worth one at `most`.
pub(crate) fn unless_more(most: f64, settled: Standing) -> Standing {
    match settled {
        Standing::RuledOut(line) | Standing::Minor(line) if most >= Flip::NOTEWORTHY => acquit(&Ok(most), line),
        settled => settled,
    }
}

fn with(counted: Evidence, why: &str) -> Evidence {
    Evidence { text: format!("{}; {why}", counted.text), ..counted }
}

/// The most that `further_ns` of the slow side's CPU time can be of the log of the gap over one connection, where requests
/// take so much CPU time of either side; else why that is not known.
pub(crate) fn most_share_alone(
    gap: &Gap<'_>,
    view: &View<'_>,
    demand: &HostDemand,
    [slow_ns, fast_ns]: [f64; 2],
    further_ns: f64,
) -> Result<f64, String> {
    if further_ns <= 0.0 {
        return Ok(0.0);
    }
    let unknown = || "what that is worth is not known".to_owned();
    let waiting_ns = waiting_ns(gap, demand).ok_or_else(|| {
        format!(
            "that may be worth more than it is long, for how long {}'s threads waited for a CPU is not known",
            gap.slow_name()
        )
    })?;
    let most = share_of_log(view, further_ns + waiting_ns).ok_or_else(unknown)?;
    if slow_ns < view.low * fast_ns {
        return Ok(most);
    }
    // All of a request may be as long as its CPU time has it.
    let by_proportion = view.slow_ns().and_then(|ns| share_of_log(view, ns * (further_ns / slow_ns).min(1.0)));
    by_proportion.map(|share| share.max(most)).ok_or_else(unknown)
}

/// The longest that an op, of which there is one at a time, can have waited for CPUs on the slow side's machine, ns. `None`
/// where that is not known.
///
/// Others keep it waiting whether or not they work for our load, so nothing is taken away that goes on without.
pub(crate) fn waiting_ns(gap: &Gap<'_>, demand: &HostDemand) -> Option<f64> {
    let of = |key: &str| counted_per_op(demand, key);
    // Whom a quota keeps waiting is counted in the queue as well, or is not: that depends on the kernel's version.
    let held_back_ns = match of("cgroup.throttled_ns") {
        Some(ns) => ns,
        None if gap.host_fact(gap.slow, QUOTA) == Some("none") => 0.0,
        None => return None,
    };
    // Nobody waits for a CPU that nobody else has.
    let in_queue_ns = of("workers.wait_ns").or_else(|| by_others_ns(demand))?;
    Some(in_queue_ns + held_back_ns + withheld_ns(gap, demand)?)
}

/// CPU time of a machine per op that was not its server's, ns.
pub(crate) fn by_others_ns(demand: &HostDemand) -> Option<f64> {
    Some((counted_per_op(demand, "cpu.busy_ns")? - counted_per_op(demand, "process.cpu_ns")?).max(0.0))
}

/// What the hypervisor withheld of that CPU of the slow side's from which it withheld the most, ns per op.
fn withheld_ns(gap: &Gap<'_>, demand: &HostDemand) -> Option<f64> {
    let of_cpus = || {
        let of_each = allowed_cpus(gap, gap.slow)?.into_iter();
        of_each.filter_map(|cpu| counted_per_op(demand, &format!("cpu.{cpu}.steal_ns"))).reduce(f64::max)
    };
    of_cpus().or_else(|| counted_per_op(demand, "cpu.steal_ns"))
}

/// Growth of a counter per op, with what grows without load.
fn counted_per_op(demand: &HostDemand, key: &str) -> Option<f64> {
    let growth = *demand.growth.get(key)? as f64;
    (demand.ops > 0).then(|| growth / demand.ops as f64)
}

/// What the slow side's threads waited for a CPU per op because of `further_ns` that they needed of it, over one connection:
/// no more than they waited longer than the fast side's, than either side's wait for as much CPU time, and than it takes to be
/// put aside as many times oftener. Threads that wait when they are woken up wait whatever they need then. Zero where it was
/// not counted: it is the least.
fn put_aside_ns(demands: &Demands<'_>, by_slow: &Cpu, by_fast: &Cpu, further_ns: f64) -> f64 {
    let known = || {
        let fast = demands.fast?;
        let both = |key: &str| Some([demands.slow.per_op(key)?, fast.per_op(key)?]);
        let [waited, fast_waited] = both("workers.wait_ns")?;
        let [put_aside, fast_put_aside] = both("workers.involuntary_switches")?;
        let turns = demands.slow.per_op("workers.turns").filter(|turns| *turns > 0.0)?;
        let (need, fast_need) = (by_slow.all_ns(), by_fast.all_ns());
        if further_ns <= 0.0 || need <= fast_need || fast_need <= 0.0 {
            return None;
        }
        let part = (further_ns / (need - fast_need)).min(1.0);
        let for_as_much = further_ns * (waited / need).min(fast_waited / fast_need);
        Some((part * (waited - fast_waited)).min(part * (put_aside - fast_put_aside) * waited / turns).min(for_as_much))
    };
    known().unwrap_or(0.0).max(0.0)
}

/// What the kernels of the slow and of the fast side spend on each request, in words.
pub(crate) fn told_kernel_time(gap: &Gap<'_>, demands: &Demands<'_>, [slow, fast]: [&Cpu; 2]) -> String {
    format!(
        "the kernel spends {} of CPU on each request to {}, {} on each to {}{}",
        format_duration_ns(slow.system_ns),
        gap.slow_name(),
        format_duration_ns(fast.system_ns),
        gap.fast_name(),
        told_waiting(gap, demands)
    )
}

/// Leaves open what CPU time alone would rule out, where waiting that nobody counts may go with it.
pub(crate) fn acquits_nobody(settled: Standing) -> Standing {
    match settled {
        Standing::RuledOut(line) => {
            Standing::Undecided(Evidence { text: format!("{}: that is not worth the gap", line.text), ..line })
        }
        settled => settled,
    }
}

/// `; its threads waited 122 ms for a CPU meanwhile, A's 14.6 ms`, where that is known of both.
pub(crate) fn told_waiting(gap: &Gap<'_>, demands: &Demands<'_>) -> String {
    let waited = |demand: &HostDemand| demand.per_op("workers.wait_ns").map(format_duration_ns);
    match waited(demands.slow).zip(demands.fast.and_then(waited)) {
        Some((slow, fast)) => {
            format!("; {}'s threads waited {slow} for a CPU meanwhile, {}'s {fast}", gap.slow_name(), gap.fast_name())
        }
        None => String::new(),
    }
}

/// The reference that flips and counts are held against; the probe that tells it is wanted where it is not known yet.
pub(crate) fn reference<'g, 'a>(gap: &'g Gap<'a>) -> Result<&'g View<'a>, Standing> {
    match &gap.reference {
        Reference::Known(view) => Ok(view),
        Reference::Wanted(probe) => Err(Standing::Wants(vec![probe.clone()])),
        Reference::Missing(why) => Err(Standing::Undecided(gap.not_measured(why.clone()))),
    }
}

/// How much longer the load generator itself works for each op on the slow side than on the fast one, ns, because of what it receives there.
/// `None` under load, where it is not known, or where it does something else for either side: connects or shakes hands more often,
/// decrypts otherwise, or speaks another version of HTTP. Where connections are not kept, their handshakes have to be alike.
pub(crate) fn our_further_work_ns(gap: &Gap<'_>, reference: &View<'_>) -> Option<f64> {
    /// Shares of connections that are as good as the same.
    const SAME_SHARE: f64 = 0.1;
    let of = |seen: &TargetObservation| seen.generator_work_ns_per_op;
    let is_alike = |share: fn(&TargetObservation) -> Option<f64>| {
        let [slow, fast] = [reference.slow, reference.fast].map(|seen| share(seen).unwrap_or(0.0));
        (slow - fast).abs() <= SAME_SHARE
    };
    let are_same =
        |facts: &[&'static str]| facts.iter().all(|fact| gap.text(gap.slow, fact) == gap.text(gap.fast, fact));
    let chains = || gap.count(gap.slow, web::CHAIN_BYTES) == gap.count(gap.fast, web::CHAIN_BYTES);
    let are_kept = reference.slow.reused_share.is_some_and(|share| share >= 1.0 - SAME_SHARE);
    let does_the_same = is_alike(|seen| seen.reused_share)
        && is_alike(|seen| seen.resumed_share)
        && are_same(&[web::TLS_CIPHER, web::HTTP_VERSION, web::CONTENT_ENCODING])
        && (are_kept || are_same(&[web::TLS_VERSION, web::TLS_GROUP, web::CERTIFICATE_KEY]) && chains());
    let both = of(reference.slow).zip(of(reference.fast)).filter(|_| gap.mode == Mode::Alone && does_the_same);
    both.map(|(slow_ns, fast_ns)| (slow_ns - fast_ns).max(0.0))
}

/// The gap under the plan's load, whether or not it shows over one connection.
pub(crate) fn reference_under_load<'a>(gap: &Gap<'a>) -> Result<View<'a>, Standing> {
    match gap.reference_under_load() {
        Reference::Known(view) => Ok(view),
        Reference::Wanted(probe) => Err(Standing::Wants(vec![probe])),
        Reference::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// A flip under the plan's load, held against `before`, the gap there.
pub(crate) fn shown_under_load<'a>(gap: &Gap<'a>, kind: Kind, before: &View<'a>) -> Result<Box<Flip<'a>>, Standing> {
    match gap.flip_against(kind, before, Mode::Loaded) {
        FlipLook::Shown(flip) => Ok(flip),
        FlipLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// The standing of a cause whose flip under the plan's load was made and did not move the gap beyond doubt.
pub(crate) fn did_not_move_under_load(gap: &Gap<'_>, flip: &Flip<'_>, before: &View<'_>) -> Standing {
    let text = gap.tell_flip_against(flip, Some(before));
    if flip.is_negligible() {
        Standing::RuledOut(gap.evidence(&flip.view, text))
    } else {
        Standing::Undecided(gap.evidence(&flip.view, format!("{text}: that leaves open whether it matters")))
    }
}

/// What the gap's own reference would lose, ns per op, if it lost the same share as the gap under the plan's load does by a flip.
pub(crate) fn moved_under_load_ns(gap: &Gap<'_>, flip: &Flip<'_>) -> Option<f64> {
    let reference = gap.known_reference()?;
    if gap.mode == Mode::Loaded {
        return Some(flip.moved_ns);
    }
    let left = ((1.0 - flip.gone.share()) * reference.log.mid).exp();
    Some(reference.fast_ns()? * (reference.ratio - left))
}

/// What shows over one connection as much as over many makes no gap that does not show there. `known` is told with it.
///
/// Where a part of the gap shows there that is worth a name, it may be that part, beside a cause that takes many connections.
pub(crate) fn needs_gap_alone(gap: &Gap<'_>, known: Option<&str>) -> Result<(), Standing> {
    if gap.mode == Mode::Alone {
        return Ok(());
    }
    let known = known.map_or_else(String::new, |known| format!("{known}, and "));
    match gap.look(ALONE) {
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => {
            let text = format!("{known}whether the gap shows over one connection is not known: {why}");
            Err(Standing::Undecided(gap.not_measured(text)))
        }
        Look::Shown(alone) => {
            let most = alone.log.over(gap.comparison.log).map_or(1.0, Estimate::high);
            let text = format!("{known}over one connection most of the gap does not show");
            let told = |text: String| gap.evidence(&alone, text);
            Err(match most < Flip::NOTEWORTHY {
                true => Standing::RuledOut(told(text)),
                false => Standing::Undecided(told(format!("{text}; up to {} of it does", percent(most)))),
            })
        }
    }
}

/// What the machines do for each request. Where the slow side's is not read, the cause is left open.
pub(crate) fn demands<'a>(gap: &Gap<'a>) -> Result<Demands<'a>, Standing> {
    if !gap.has_host(gap.slow) {
        let text = format!("the machine of {} is not read", gap.slow_name());
        return Err(Standing::Undecided(gap.not_measured(text)));
    }
    match gap.demands() {
        DemandLook::Shown(demands) => Ok(demands),
        DemandLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// CPU time of a server's processes for each op.
pub(crate) struct Cpu {
    /// In their own code and their libraries'.
    pub(crate) user_ns: f64,
    /// In the kernel.
    pub(crate) system_ns: f64,
}

impl Cpu {
    /// `None` where either is not known.
    pub(crate) fn of(demand: &HostDemand) -> Option<Self> {
        Some(Self { user_ns: demand.per_op("process.user_ns")?, system_ns: demand.per_op("process.system_ns")? })
    }

    pub(crate) fn all_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// Whether the gap is smaller under the plan's load, beyond both intervals: what is waited for, others can use.
pub(crate) fn is_hidden_by_load(gap: &Gap<'_>, reference: &View<'_>) -> bool {
    let closed = gap.comparison.connections().is_some_and(|connections| connections > 1);
    closed && reference.connections() == Some(1) && gap.comparison.log.high() < reference.log.low()
}
