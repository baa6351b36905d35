//! `cpu.fewer-cores`: the slow side's server may run on fewer CPUs than the fast side's, and they are all busy.
//!
//! With u CPUs used and D of CPU time per op a server ends u/D ops per second. So the log of the gap is that of the CPUs
//! used and that of the time per op, and the first is what more CPUs would give back.
//!
//! What looks alike: too few workers, where allowed CPUs are idle; a quota, which is counted; a neighbour on its CPUs,
//! whose time counts for the CPUs in use here.

use crate::cause::{Cause, CauseEntry, Cure, Standing, Told, fit_by_host, of_both};
use crate::evidence::machines::{Machines, allowed_cpus, needs_concurrency, pid};
use crate::gap::{Gap, percent};
use duel_model::{Confidence, TwinChange};

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.fewer-cores",
    description: "the server may run on fewer CPUs, and has no idle one under load",
    signature: "hosts: fewer CPUs allowed, all of them busy; worth the ratio of CPUs used",
    at_most: "likely",
    needs_machine: true,
};

/// Above this share of their time CPUs are what requests wait for: in the simplest queue (M/M/1) they wait there for nine
/// times as long as they run. What is left may be idle between samples.
const ALL_BUSY: f64 = 0.9;

pub(super) static CAUSE: Cause = Cause {
    cure: Some(Cure { change: TwinChange::AllCpus, may_lie_outside: false }),
    reads_server_alone: true,
    ..Cause::of(&ENTRY, weigh)
};

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    needs_concurrency(gap)?;
    let [of_slow, of_fast] =
        of_both(gap, "on how many CPUs both servers may run is not known", |side| allowed_cpus(gap, side))?;
    let fact = gap.on_host(
        format!("{slow} may run on {}, {fast} on {}", cpus(of_slow.len()), cpus(of_fast.len())),
        Some(format!("grep Cpus_allowed_list /proc/{}/status", pid(gap, gap.slow))),
    );
    if of_slow.len() >= of_fast.len() {
        return Err(Standing::RuledOut(fact));
    }
    let machines = Machines::read(gap)?;
    let (slow_side, fast_side) = machines.both(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let known = || {
        let busy = of_slow.iter().map(|cpu| slow_side.cpus(&format!("cpu.{cpu}.busy_ns"))).sum::<Option<f64>>()?;
        let by_others = slow_side.others_on(&of_slow)?;
        Some((busy, by_others, slow_side.cpus("process.cpu_ns")?, fast_side.cpus("process.cpu_ns")?))
    };
    let Some((busy, by_others, used, used_by_fast)) = known() else {
        return Err(open("how busy the CPUs are is not known".to_owned()));
    };
    let has = of_slow.len() as f64;
    let text = format!(
        "under load {slow} used {used:.2} CPUs, {fast} {used_by_fast:.2}; {slow}'s CPUs were busy for {} of the time",
        percent(busy / has)
    );
    let counted = gap.on_host(text, Some("mpstat -P ALL 1 5".to_owned()));
    if busy < ALL_BUSY * has {
        return Err(Standing::RuledOut(counted));
    }
    // What a neighbour takes is not for want of CPUs. A load generator on the same machine takes its part of more CPUs,
    // too, so it is left out on both sides.
    let worth = (used_by_fast / (used + by_others).min(has)).ln();
    let share = machines.noteworthy(worth, &counted)?;
    if slow_side.is_held_back(&machines.view) {
        return Err(open(format!("{}; but a quota holds {slow} back as well", fact.text)));
    }
    let told = Told {
        summary: format!(
            "{slow} may run on {}, {fast} on {}, and under load {slow} has none idle. That is worth {}.",
            cpus(of_slow.len()),
            cpus(of_fast.len()),
            machines.about(share)
        ),
        remedy: format!(
            "On {slow}'s host: `taskset -cp {pid}` tells the CPUs that it may use, `nproc --all` what the machine \
             has. Allow it more (`AllowedCPUs=`, `CPUAffinity=`, `--cpuset-cpus` of a container) and give it a \
             worker for each, or give the machine more CPUs.",
            pid = pid(gap, gap.slow)
        ),
        facts: vec![fact],
        further: vec![counted],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

fn cpus(count: usize) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}
