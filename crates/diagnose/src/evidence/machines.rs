//! What the machines of both sides did for each op, held against how fast ops ended in the same slots.
//!
//! Counters of time become *CPUs*: 1 is one CPU (or one queue) all the time under load. A loss that was counted is worth
//! what an op would save without it, as a log, and that is held against the gap in those very slots.

use crate::cause::Standing;
use crate::evidence::worth::{acquit, minor, most_share_alone};
use crate::gap::{DemandLook, Demands, Flip, Gap, Look, View, percent};
use crate::probes::ALONE;
use duel_model::{Confidence, Evidence, HostDemand};
use duel_stats::Estimate;
use std::collections::BTreeSet;

/// From this share of its time on what serves requests is what they wait for: in a closed loop the bottleneck is never idle
/// for long. Interrupts take a part of a busy CPU that is not counted for the server.
pub(crate) const FULL: f64 = 0.8;

/// Linux counts modes by ticks, and each of them is this long at most.
const TICK_S: f64 = 0.01;

/// A loss beyond the gap means that the slow side would be the faster one without it. It may be, but that all of what was
/// counted kept requests waiting is inferred, and then rather not so.
pub(crate) const MOST_OF_THE_GAP: f64 = 1.5;

/// The fact that tells a control group's quota of CPU time.
pub(crate) const QUOTA: &str = "cgroup.cpu_quota_cpus";

/// Modes in which processes run, and those that interrupt them.
const RUNNING: [&str; 3] = ["user", "nice", "system"];
const INTERRUPTS: [&str; 2] = ["irq", "softirq"];

/// What was read of both machines.
pub(crate) struct Machines<'a> {
    pub(crate) slow: Side<'a>,
    /// `None` where only the slow side's machine is read.
    pub(crate) fast: Option<Side<'a>>,
    /// The gap in the slots around which the machines were read.
    pub(crate) view: View<'a>,
    /// The log of the gap that shares are told of: that in those slots, or that at the reference, if it is larger. Over one
    /// connection a gap may be larger than load lets it be, and what was counted under load makes no more of it.
    whole_log: Estimate,
    /// Log of the ratio that is called a difference.
    margin_log: f64,
}

/// One side's machine while that side was under load.
pub(crate) struct Side<'a> {
    demand: &'a HostDemand,
    rate_per_s: f64,
    /// The kernel counts for a process what interrupts took while it ran, see [`Side::shows_charged_interrupts`].
    interrupts_are_charged: bool,
}

impl<'a> Machines<'a> {
    /// What was read; the probe that reads is wanted where it was not made, and what it cannot tell is left open.
    pub(crate) fn read(gap: &Gap<'a>) -> Result<Self, Standing> {
        let open = |why: String| Standing::Undecided(gap.on_host(why, None));
        if !gap.has_host(gap.slow) {
            return Err(open(format!("the machine of {} is not read", gap.slow_name())));
        }
        let Demands { slow, fast } = match gap.demands() {
            DemandLook::Shown(demands) => demands,
            DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            DemandLook::Missing(why) => return Err(open(why)),
        };
        let view = match gap.look(gap.hosts()) {
            Look::Shown(view) => view,
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Missing(why) => return Err(open(why)),
        };
        if view.log.low() <= 0.0 {
            return Err(open(format!("while the machines were read: {}", gap.tell(&view))));
        }
        let rate = |rate: Option<f64>| rate.filter(|rate| rate.is_finite() && *rate > 0.0);
        let side = |index: usize, demand, rate_per_s: Option<f64>| {
            let side = Side { demand, rate_per_s: rate(rate_per_s)?, interrupts_are_charged: false };
            let charged = allowed_cpus(gap, index).is_some_and(|cpus| side.shows_charged_interrupts(&cpus));
            Some(Side { interrupts_are_charged: charged, ..side })
        };
        let Some(mut slow) = side(gap.slow, slow, view.slow.rate_per_s) else {
            return Err(open("the rate while the machines were read is not known".to_owned()));
        };
        let mut fast = fast.and_then(|demand| side(gap.fast, demand, view.fast.rate_per_s));
        // Beside a neighbour it does not show; what shows on one side holds for the other, if that has the same kernel.
        if let Some(fast) = fast.as_mut().filter(|_| same_kernel(gap)) {
            let charged = slow.interrupts_are_charged || fast.interrupts_are_charged;
            (slow.interrupts_are_charged, fast.interrupts_are_charged) = (charged, charged);
        }
        let at_reference = gap.known_reference().map(|reference| reference.log);
        let whole_log = at_reference.filter(|log| log.mid > view.log.mid).unwrap_or(view.log);
        Ok(Self { slow, fast, view, whole_log, margin_log: gap.case.margin_log() })
    }

    /// The fast side's machine, where a judgement cannot do without.
    pub(crate) fn both(&self, gap: &Gap<'_>) -> Result<(&Side<'a>, &Side<'a>), Standing> {
        let unread =
            || Standing::Undecided(gap.on_host(format!("the machine of {} is not read", gap.fast_name()), None));
        Ok((&self.slow, self.fast.as_ref().ok_or_else(unread)?))
    }

    /// How firmly a loss that was counted stands: where the other machine is not read, it may lose as much.
    pub(crate) fn at_most(&self) -> Confidence {
        if self.fast.is_some() { Confidence::Likely } else { Confidence::Possible }
    }

    /// What `lost` CPUs' worth of time is worth to a side's requests, which run on `run` CPUs, as a log.
    pub(crate) fn loss_log(&self, gap: &Gap<'_>, index: usize, run: f64, lost: f64) -> f64 {
        self.loss_log_of_wanted(gap, index, run, lost, run + lost)
    }

    /// The same where it is known how much its threads ran or were ready to run: `wanted` CPUs, which is more than they ran
    /// and lost where interrupts take a part of them.
    ///
    /// Where what is wanted fills the CPUs that its threads can use, everybody waits for that: see [`worth_log`]. Where it
    /// does not, something else is the bottleneck, and a request is longer by its own part alone: `lost` of as many
    /// requests as there are connections.
    pub(crate) fn loss_log_of_wanted(&self, gap: &Gap<'_>, index: usize, run: f64, lost: f64, wanted: f64) -> f64 {
        let together = self.view.connections().map_or(1.0, |count| f64::from(count).max(1.0));
        let side = if index == gap.slow { Some(&self.slow) } else { self.fast.as_ref() };
        let threads = side.and_then(Side::busy_threads).unwrap_or(f64::INFINITY);
        let cpus = allowed_cpus(gap, index).map_or(1.0, |cpus| cpus.len() as f64);
        let usable = cpus.min(threads).min(together);
        if wanted >= FULL * usable { worth_log(run, lost) } else { worth_log(0.0, lost / together) }
    }

    /// The share of the log of the gap that so much of it is.
    pub(crate) fn share(&self, worth_log: f64) -> f64 {
        worth_log / self.whole_log.mid
    }

    /// The share of what load leaves of the gap, where the machines were read: more than that of the gap over one connection,
    /// if load hides a part of it.
    pub(crate) fn share_under_load(&self, worth_log: f64) -> f64 {
        worth_log / self.view.log.mid
    }

    /// Whether that share is worth a name, where the share of the whole gap is not.
    pub(crate) fn matters_under_load(&self, worth_log: f64) -> bool {
        self.share_under_load(worth_log) >= Flip::NOTEWORTHY && worth_log >= self.margin_log
    }

    /// `about 40 % of the gap (35 to 47 %)`: the ends are those of the gap.
    pub(crate) fn about(&self, share: f64) -> String {
        let whole = self.whole_log;
        let at = |log: f64| percent(if log > 0.0 { share * whole.mid / log } else { 1.0 });
        let (low, high) = (at(whole.high()), at(whole.low()));
        let about = format!("about {} of the gap", percent(share));
        if low == high { about } else { format!("{about} ({} to {high})", low.trim_end_matches(" %")) }
    }

    /// The share of the log of the gap that a loss is worth, if that is worth a name; `text` tells the loss.
    ///
    /// It is ruled out only where it is worth less than the margin, too: what was counted did happen, and beside a larger cause a
    /// loss that makes ops 1.2 times as long is a small share of the gap.
    pub(crate) fn noteworthy(&self, worth_log: f64, text: &Evidence) -> Result<f64, Standing> {
        match self.worth_a_name(worth_log, text) {
            Err(Standing::RuledOut(line)) if worth_log >= self.margin_log => Err(minor(self.share(worth_log), line)),
            settled => settled,
        }
    }

    /// The same where what was counted is no loss by itself.
    ///
    /// The interval is that of the gap: what is counted over some seconds is exact beside it. But it is never as small as the
    /// margin: of a gap of 3 %, a quarter is what a clock that ticks a hundred times a second makes of nothing.
    pub(crate) fn worth_a_name(&self, worth_log: f64, text: &Evidence) -> Result<f64, Standing> {
        let (share, most) = (self.share(worth_log), worth_log / self.view.log.low());
        if share >= Flip::NOTEWORTHY && worth_log >= self.margin_log {
            Ok(share)
        } else if most < Flip::NOTEWORTHY {
            Err(Standing::RuledOut(text.clone()))
        } else {
            let left_open = format!("{}: that leaves open whether it matters", text.text);
            Err(Standing::Undecided(Evidence { text: left_open, ..text.clone() }))
        }
    }

    /// The same of `extra_ns` of CPU time per op, of the CPU time that requests of either side take: where the CPU is waited
    /// for, it is worth more than it is long, and is ruled out only if it cannot be worth a name even so.
    pub(crate) fn noteworthy_of_cpu(
        &self,
        gap: &Gap<'_>,
        worth_log: f64,
        extra_ns: f64,
        both_ns: [f64; 2],
        text: &Evidence,
    ) -> Result<f64, Standing> {
        match self.worth_a_name(worth_log, text) {
            Err(Standing::RuledOut(line)) => Err(acquit(&self.most_of_cpu(gap, extra_ns, both_ns), line)),
            settled => settled,
        }
    }

    fn most_of_cpu(&self, gap: &Gap<'_>, extra_ns: f64, both_ns: [f64; 2]) -> Result<f64, String> {
        let [slow_ns, _] = both_ns;
        if self.view.connections() == Some(1) {
            return most_share_alone(gap, &self.view, self.slow.demand, both_ns, extra_ns);
        }
        // Of many at a time each waits for those before it: by proportion at most.
        let share = if slow_ns > 0.0 { (extra_ns / slow_ns).max(0.0) } else { f64::NAN };
        let most = worth_log(0.0, share) / self.view.log.low();
        if most.is_finite() { Ok(most) } else { Err("what that is worth is not known".to_owned()) }
    }
}

impl Side<'_> {
    /// Growth of a counter per op.
    pub(crate) fn per_op(&self, key: &str) -> Option<f64> {
        self.demand.per_op(key)
    }

    /// Growth of a counter over all slots.
    pub(crate) fn total(&self, key: &str) -> Option<f64> {
        self.demand.growth.get(key).map(|growth| *growth as f64)
    }

    /// CPUs that a counter of ns stands for, while ops were under way.
    ///
    /// By ops and their rate. The time between two samples is longer: it holds the reading, and silence around the load.
    pub(crate) fn cpus(&self, key: &str) -> Option<f64> {
        Some(self.per_op(key)? * self.rate_per_s / 1e9)
    }

    /// The same for what goes on without load too, by the whole time between samples.
    pub(crate) fn cpus_all_the_time(&self, key: &str) -> Option<f64> {
        self.demand.share_of_time(key)
    }

    /// CPUs that all the time went on in these modes on these CPUs.
    pub(crate) fn modes_on(&self, cpus: &BTreeSet<u32>, modes: &[&str]) -> Option<f64> {
        counters_of(cpus, modes).map(|key| self.cpus_all_the_time(&key)).sum()
    }

    /// CPUs that all the time went on other processes than the server's among these CPUs.
    ///
    /// Interrupts are left out: most of them are packets of the server's own. The load generator's time is left out as
    /// well, for its work is that of the comparison: as if all of it were on these CPUs, unless it may run on none of them.
    pub(crate) fn others_on(&self, cpus: &BTreeSet<u32>) -> Option<f64> {
        let all = self.modes_on(cpus, &RUNNING)?;
        let mut process = self.cpus_all_the_time("process.cpu_ns")?;
        if self.interrupts_are_charged {
            // They hit whoever runs: as large a part of its time as of all time on these CPUs.
            process *= all / (all + self.modes_on(cpus, &INTERRUPTS)?).max(f64::MIN_POSITIVE);
        }
        Some((all - process - self.generator_on(cpus)).max(0.0))
    }

    /// Whether the server shows, on CPUs that are full, more time than was spent on them outside of interrupts: then the
    /// kernel counts for a process what interrupts took while it ran. Linux does, built without
    /// `CONFIG_IRQ_TIME_ACCOUNTING` (`update_rq_clock_task` in kernel/sched/core.c), and it counts them as a mode as well.
    ///
    /// Of a CPU that is idle in between ticks see too little or too much, so that full ones are asked for, and an excess
    /// that is neither chance nor more than interrupts can be.
    fn shows_charged_interrupts(&self, cpus: &BTreeSet<u32>) -> bool {
        /// What the time between readings of one sample, and rounding, may be mistaken for.
        const ROUNDING: f64 = 0.02;
        let in_modes = |modes: &[&str]| -> Option<f64> { counters_of(cpus, modes).map(|key| self.cpus(&key)).sum() };
        let known = || Some((self.cpus("process.cpu_ns")?, in_modes(&RUNNING)?, in_modes(&INTERRUPTS)?));
        let Some((process, running, interrupts)) = known() else { return false };
        let load_s = self.demand.ops as f64 / self.rate_per_s;
        let has = cpus.len() as f64;
        // Of so many ticks as a CPU has, each falls into one of these modes or not.
        let by_chance = 3.0 * (running * (1.0 - running / has).max(0.0) * TICK_S / load_s).sqrt();
        let least = by_chance.max(ROUNDING * has);
        let excess = process - running;
        running + interrupts >= FULL * has && least < excess && excess <= interrupts + least
    }

    /// CPUs that all the time went on the load generator, wherever on the machine.
    pub(crate) fn generator_cpus(&self) -> f64 {
        self.demand.generator_cpu_ns as f64 / self.demand.elapsed_ns.max(1) as f64
    }

    /// The most of it that can have gone on these CPUs: nobody counts on which of those that it may use.
    pub(crate) fn generator_on(&self, cpus: &BTreeSet<u32>) -> f64 {
        let allowed = &self.demand.generator_allowed;
        let elsewhere = !allowed.is_empty() && allowed.iter().all(|cpu| !cpus.contains(cpu));
        if elsewhere { 0.0 } else { self.generator_cpus() }
    }

    /// CPU time of the load generator per op, ns.
    pub(crate) fn generator_ns(&self) -> f64 {
        self.demand.generator_cpu_ns as f64 / self.demand.ops.max(1) as f64
    }

    /// All that was read of it.
    pub(crate) fn demand(&self) -> &HostDemand {
        self.demand
    }

    /// Mean of a gauge over both ends of all slots: read while there is no load.
    pub(crate) fn gauge(&self, key: &str) -> Option<f64> {
        self.demand.gauges.get(key).copied()
    }

    /// Share of the time under load in which the disk was busy that was so the longest.
    pub(crate) fn busiest_disk(&self) -> Option<f64> {
        Some(self.busiest_disk_ns()? / self.wall_ns())
    }

    /// Busy time of that disk per op, ns. Disks upon disks count the same request twice.
    fn busiest_disk_ns(&self) -> Option<f64> {
        self.disks().filter_map(|disk| self.per_op(&format!("{disk}.busy_ns"))).reduce(f64::max)
    }

    /// The disks that are counted, as their counters begin: `disk.sda`.
    pub(crate) fn disks(&self) -> impl Iterator<Item = &str> {
        let keys = self.demand.growth.keys().filter(|key| key.starts_with("disk."));
        keys.filter_map(|key| key.strip_suffix(".busy_ns"))
    }

    /// Time of one op, all connections together, ns.
    pub(crate) fn wall_ns(&self) -> f64 {
        1e9 / self.rate_per_s
    }

    /// Whether a quota costs this side what is worth a name in this gap: then its CPUs are idle for that.
    pub(crate) fn is_held_back(&self, view: &View<'_>) -> bool {
        HeldBack::of(self).is_some_and(|held_back| held_back.worth_log() >= Flip::NOTEWORTHY * view.log.mid)
    }

    /// How many threads share the work: of n equally busy ones n, whatever others do little. (Kish 1965 counts
    /// observations of unequal weight like that.) `None` where threads are not counted one by one.
    pub(crate) fn busy_threads(&self) -> Option<f64> {
        let runs = self.demand.growth.iter().filter(|(key, _)| key.starts_with("thread.") && key.ends_with(".run_ns"));
        let (sum, squares) = runs.fold((0.0, 0.0), |(sum, squares), (_, ns)| {
            let ns = *ns as f64;
            (sum + ns, squares + ns * ns)
        });
        (squares > 0.0).then(|| sum * sum / squares)
    }
}

/// The counters of these modes on these CPUs.
fn counters_of(cpus: &BTreeSet<u32>, modes: &[&str]) -> impl Iterator<Item = String> {
    cpus.iter().flat_map(|cpu| modes.iter().map(move |mode| format!("cpu.{cpu}.{mode}_ns")))
}

/// Log of how many times longer ops take because `lost` CPUs' worth of time is taken from a server that runs on `run`.
///
/// With u = run + lost CPUs in use (one at least: on less than one CPU the rest of the time is spent elsewhere), a share
/// of lost/u of the time stands still, and the rest would do the same work: -ln(1 - lost/u). Where the CPU is what ops
/// wait for that is ln((run + lost)/run).
pub(crate) fn worth_log(run: f64, lost: f64) -> f64 {
    // A server that is held back all the time would end no op.
    const LONGEST: f64 = 0.999;
    let in_use = (run + lost).max(1.0);
    -(-(lost / in_use).clamp(0.0, LONGEST)).ln_1p()
}

/// Rules out what makes ops wait for each other, where (nearly) all of the gap shows over one connection; leaves it open where
/// that is within chance.
pub(crate) fn needs_concurrency(gap: &Gap<'_>) -> Result<(), Standing> {
    if gap.comparison.connections() == Some(1) {
        let text = "with one connection no request waits for another one".to_owned();
        return Err(Standing::RuledOut(gap.evidence(&gap.comparison, text)));
    }
    match gap.look(ALONE) {
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Shown(alone) => {
            let not_there = alone.log.over(gap.comparison.log).map(Estimate::complement);
            if not_there.is_some_and(|share| share.mid >= Flip::NOTEWORTHY) {
                return Ok(());
            }
            let told =
                gap.evidence(&alone, format!("{}: {}, without others to wait for", ALONE.phrase(), gap.tell(&alone)));
            let negligible = not_there.is_some_and(|share| share.high() < Flip::NOTEWORTHY);
            Err(if negligible { Standing::RuledOut(told) } else { Standing::Undecided(told) })
        }
        Look::Missing(_) => Ok(()),
    }
}

/// Whether both servers run on one machine, or on machines with the same kernel.
fn same_kernel(gap: &Gap<'_>) -> bool {
    let of_build = ["os.kernel", "os.version", "os.arch"];
    is_same_fact(gap, "os.boot_id") || of_build.iter().all(|key| is_same_fact(gap, key))
}

/// Whether a fact is known of both sides, and the same.
pub(crate) fn is_same_fact(gap: &Gap<'_>, key: &str) -> bool {
    let of = |side| gap.host_fact(side, key);
    of(gap.slow).is_some() && of(gap.slow) == of(gap.fast)
}

/// The CPUs that a side's server may run on; `None` where that is not known.
///
/// In containers the process's own list may hold CPUs that the machine does not have.
pub(crate) fn allowed_cpus(gap: &Gap<'_>, side: usize) -> Option<BTreeSet<u32>> {
    let list = |key: &str| gap.host_fact(side, key).and_then(cpu_list);
    let mut allowed = list("process.cpus_allowed")?;
    for key in ["cgroup.cpus", "cpu.online"] {
        if let Some(others) = list(key) {
            allowed.retain(|cpu| others.contains(cpu));
        }
    }
    (!allowed.is_empty()).then_some(allowed)
}

/// CPUs as the kernel lists them: `0-3,8` (Documentation/admin-guide/cputopology.rst).
fn cpu_list(list: &str) -> Option<BTreeSet<u32>> {
    // No kernel is built for more (NR_CPUS), and a list that says otherwise comes from nobody honest.
    const MOST_CPUS: u32 = 8192;
    let mut cpus = BTreeSet::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if first > last || last >= MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Share of the time in which the CPUs that a side's server may use were busy, by whomever.
pub(crate) fn busy_share_of_cpus(gap: &Gap<'_>, index: usize, side: &Side<'_>) -> Option<f64> {
    let cpus = allowed_cpus(gap, index)?;
    // The list may name CPUs that could be plugged in and are not; those have never counted anything.
    let busy: Vec<f64> = cpus.iter().filter_map(|cpu| side.cpus_all_the_time(&format!("cpu.{cpu}.busy_ns"))).collect();
    (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64)
}

/// The server's process as a word for a command: its number, or what to put there.
pub(crate) fn pid(gap: &Gap<'_>, side: usize) -> String {
    let known = gap.host_fact(side, "process.pid").and_then(|pid| pid.parse::<u32>().ok());
    known.map_or_else(|| "PID".to_owned(), |pid| pid.to_string())
}

/// Share of the time that each worker spent on a CPU: threads, where they are told, else processes.
pub(crate) fn workers(demand: &HostDemand) -> Option<Vec<f64>> {
    let shares = |prefix: &str, suffix: &str| -> Vec<f64> {
        let keys = demand.growth.keys().filter(|key| key.starts_with(prefix) && key.ends_with(suffix));
        keys.filter_map(|key| demand.share_of_time(key)).collect()
    };
    let threads = shares("thread.", ".run_ns");
    let workers = if threads.is_empty() { shares("worker.", ".cpu_ns") } else { threads };
    (!workers.is_empty()).then_some(workers)
}

/// CPUs that a server ran on, and those on which it was held back.
pub(crate) struct HeldBack {
    pub(crate) run: f64,
    pub(crate) lost: f64,
}

impl HeldBack {
    /// `None` where the kernel does not count it.
    pub(crate) fn of(side: &Side<'_>) -> Option<Self> {
        // The kernel adds the time up over the CPUs on which threads were ready to run.
        let lost = side.cpus("cgroup.throttled_ns")?;
        // The quota is that of the group, whoever else is in it.
        let run = side.cpus("cgroup.cpu_ns").or_else(|| side.cpus("process.cpu_ns"))?;
        Some(Self { run, lost })
    }

    pub(crate) fn worth_log(&self) -> f64 {
        worth_log(self.run, self.lost)
    }

    pub(crate) fn told(&self) -> String {
        percent(self.lost / (self.run + self.lost).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_a_loss_is_worth() {
        // A CPU of which a third is left: ops take three times as long.
        assert!((worth_log(1.0 / 3.0, 2.0 / 3.0) - 3f64.ln()).abs() < 1e-12);
        // Two CPUs, of which one is taken away.
        assert!((worth_log(1.0, 1.0) - 2f64.ln()).abs() < 1e-12);
        // Half of the time it waits for something else; a quarter is taken away.
        assert!((worth_log(0.25, 0.25) - (4.0f64 / 3.0).ln()).abs() < 1e-12);
        assert_eq!((worth_log(0.5, 0.0), worth_log(0.5, -1.0)), (0.0, 0.0));
        assert!(worth_log(0.0, 1e9).is_finite());
    }

    /// What is counted on one CPU under 10 s of load, in shares of it: `run` for the process, and by mode.
    fn counted(run: f64, running: f64, softirq: f64) -> HostDemand {
        let ns = |share: f64| (share * 1e10) as u64;
        let modes =
            [("user", 0.6 * running), ("nice", 0.0), ("system", 0.4 * running), ("irq", 0.0), ("softirq", softirq)];
        let mut growth: BTreeMap<_, _> =
            modes.into_iter().map(|(mode, share)| (format!("cpu.0.{mode}_ns"), ns(share))).collect();
        growth.insert("process.cpu_ns".to_owned(), ns(run));
        HostDemand { ops: 10_000, elapsed_ns: 10_000_000_000, growth, ..HostDemand::default() }
    }

    #[test]
    fn interrupts_are_charged_only_where_nothing_else_can_be() {
        let shows = |run, running, softirq| {
            let demand = counted(run, running, softirq);
            let side = Side { demand: &demand, rate_per_s: 1_000.0, interrupts_are_charged: false };
            side.shows_charged_interrupts(&BTreeSet::from([0]))
        };
        // As seen on a full CPU: 1.07 times as much as outside of interrupts.
        assert!(shows(0.98, 0.915, 0.085));
        assert!(shows(1.0, 0.7, 0.3));
        // Interrupts counted apart, on a full CPU and on one that others use.
        assert!(!shows(0.7, 0.7, 0.3) && !shows(0.5, 0.7, 0.3));
        // By chance, or by rounding.
        assert!(!shows(0.715, 0.7, 0.3) && !shows(0.995, 0.99, 0.01));
        // More than interrupts can be: threads on further CPUs.
        assert!(!shows(1.6, 0.7, 0.3));
        // Ticks see little of a CPU that is idle in between.
        assert!(!shows(0.5, 0.3, 0.3));
    }

    #[test]
    fn what_others_run_where_interrupts_are_charged() {
        let others = |run, running, softirq, interrupts_are_charged| {
            let demand = counted(run, running, softirq);
            Side { demand: &demand, rate_per_s: 1_000.0, interrupts_are_charged }
                .others_on(&BTreeSet::from([0]))
                .unwrap()
        };
        let near = |is: f64, expected: f64| assert!((is - expected).abs() < 1e-6, "{is} instead of {expected}");
        // Interrupts apart: what is left of the modes.
        near(others(0.5, 0.7, 0.3, false), 0.2);
        // A third of the CPU is interrupts, and so is a third of what is counted for the process.
        near(others(0.75, 0.6, 0.3, true), 0.6 - 0.5);
        // Alone on its CPU.
        near(others(0.9, 0.6, 0.3, true), 0.0);
        near(others(0.0, 0.0, 0.0, true), 0.0);
    }

    #[test]
    fn lists_of_cpus() {
        let of = |list: &str| cpu_list(list).map(|cpus| cpus.into_iter().collect::<Vec<_>>());
        assert_eq!(of("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(of("7\n"), Some(vec![7]));
        for broken in ["", "-", "3-1", "a", "0-4000000000", "1,", "0-8192"] {
            assert_eq!(of(broken), None, "{broken}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_list_is_read_or_refused(list in "[0-9,\\- ]{0,24}") {
            if let Some(cpus) = cpu_list(&list) {
                proptest::prop_assert!(!cpus.is_empty() && cpus.len() <= 8192);
            }
        }
    }
}
