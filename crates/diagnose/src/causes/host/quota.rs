//! `cpu.quota`: the slow side's control group may use the CPU for a part of each period only.
//!
//! The kernel counts for how long it held back threads that wanted to run. What that is worth follows: without the quota
//! they would have run. What looks alike from outside: a slower CPU (each op uses more CPU time, and nobody is held
//! back) and a neighbour (threads wait in the run queue, and nobody is held back either).
//!
//! A server that exhausts the same quota as the other side's does so because it uses more CPU time for each op: then
//! the quota is not what differs.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::by_hand;
use crate::evidence::machines::{HeldBack, MOST_OF_THE_GAP, Machines, QUOTA, Side, pid};
use crate::gap::{Flip, Gap, percent};

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.quota",
    description: "a CPU quota of the server's control group holds it back for a part of each period",
    signature: "hosts: time held back by the control group is worth the gap, and where it is more than that, so \
                are the CPUs that the fast side uses more; the quota is smaller than the fast side's",
    at_most: "likely",
    needs_machine: true,
};

pub(super) static CAUSE: Cause = Cause { reads_server_alone: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if gap.host_fact(gap.slow, QUOTA) == Some("none") {
        let text = format!("no control group of {slow} has a CPU quota");
        return Err(Standing::RuledOut(gap.on_host(text, Some(by_hand::quota(gap, gap.slow)))));
    }
    let machines = Machines::read(gap)?;
    let Some(held_back) = HeldBack::of(&machines.slow) else {
        let text = format!("for how long {slow} was held back by a quota is not known");
        return Err(Standing::Undecided(gap.on_host(text, None)));
    };
    let of_fast = machines.fast.as_ref().and_then(HeldBack::of);
    let worth = held_back.worth_log() - of_fast.as_ref().map_or(0.0, HeldBack::worth_log);

    let mut text = format!("{slow} was held back by its control group for {} of the time under load", held_back.told());
    if let Some(of_fast) = &of_fast {
        text.push_str(&format!(", {fast} for {}", of_fast.told()));
    }
    if let Some(periods) = share_of_periods(&machines.slow) {
        text.push_str(&format!("; the quota was exhausted in {} of the periods", percent(periods)));
    }
    // All groups that were ever held back, in either version.
    let repeat = "grep -rs nr_throttled /sys/fs/cgroup | grep -v ' 0$'".to_owned();
    let counted = gap.on_host(text, Some(repeat));
    // Groups that are not shown do not tell how long they held it back.
    let is_shown = gap.host_fact(gap.slow, QUOTA).is_some();
    let share = machines.noteworthy(worth, &counted).map_err(|settled| match settled {
        Standing::RuledOut(counted) | Standing::Minor(counted) if !is_shown => {
            let text = format!("{}, as far as its groups are shown", counted.text);
            Standing::Undecided(gap.on_host(text, None))
        }
        settled => settled,
    })?;

    // Time is added up over all CPUs on which threads were held back, and there may have been less to do on them. What
    // the fast side gets more of tells how much the requests use.
    let by_use = of_fast.as_ref().map(|of_fast| machines.share((of_fast.run / held_back.run).ln()));
    let share = match by_use {
        _ if share <= MOST_OF_THE_GAP => share,
        Some(by_use) if by_use >= Flip::NOTEWORTHY => by_use,
        _ => {
            let text = format!("{}: more than the whole gap, so that not all of it can have mattered", counted.text);
            return Err(Standing::Undecided(gap.on_host(text, None)));
        }
    };

    let [of_slow, of_other] = [gap.slow, gap.fast].map(|side| gap.host_number(side, QUOTA));
    if let Some((of_slow, of_other)) = of_slow.zip(of_other)
        && (of_slow / of_other).ln() >= -gap.case.margin_log()
    {
        let text = format!(
            "{}, but {fast} may use no more ({of_slow:.2} and {of_other:.2} CPUs): what exhausts it is the CPU time \
             that each request takes",
            counted.text
        );
        return Err(Standing::Undecided(gap.on_host(text, None)));
    }
    let may_use = |side: usize, name: &str| match gap.host_fact(side, QUOTA) {
        Some("none") => Some(format!("no quota limits {name}")),
        _ => gap.host_number(side, QUOTA).map(|cpus| format!("{name} may use {cpus:.2} CPUs")),
    };
    let facts: Vec<_> = [may_use(gap.slow, &slow), may_use(gap.fast, &fast)].into_iter().flatten().collect();
    let limit = of_slow.map_or_else(String::new, |cpus| format!(" of {cpus:.2} CPUs"));
    let told = Told {
        summary: format!(
            "{slow}'s control group has a CPU quota{limit}, and the kernel stopped it for {} of the time under load. \
             That is worth {}.",
            held_back.told(),
            machines.about(share)
        ),
        remedy: format!(
            "On {slow}'s host: `cat /proc/{}/cgroup` tells the control group. Raise or lift its limit (`cpu.max`, or \
             `cpu.cfs_quota_us` in version 1): `CPUQuota=` of a systemd unit, `--cpus` of a container, `limits.cpu` \
             in Kubernetes. Then compare again.",
            pid(gap, gap.slow)
        ),
        facts: if facts.is_empty() {
            vec![]
        } else {
            vec![gap.on_host(facts.join("; "), Some(by_hand::quota(gap, gap.slow)))]
        },
        further: vec![counted],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), machines.at_most(), told))
}

fn share_of_periods(side: &Side<'_>) -> Option<f64> {
    let periods = side.per_op("cgroup.cpu_periods").filter(|periods| *periods > 0.0)?;
    Some(side.per_op("cgroup.throttled_periods")? / periods)
}
