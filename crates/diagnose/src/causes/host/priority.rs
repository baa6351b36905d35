//! `cpu.priority`: the slow side has less right to its CPUs than others who want them.
//!
//! Its threads wait for CPUs on which others run, as with `cpu.noisy-neighbour`, and longer for each CPU second than the fast
//! side's. The kernel tells why: a nice value, the policy `idle` or a small weight of its control group. This needs both
//! facts: a low priority costs nothing where nobody else wants the CPU, and where only the slow side has somebody beside it,
//! equal rights would leave it half of what it has lost, so that the neighbour is to be told. So it is this cause where the slow
//! side has less right than usual and than the fast side, and the fast side has somebody beside it, too; then the neighbour's own
//! cause gives way. A slow side with the usual rights beside a fast one with more keeps its neighbour: it was not put behind
//! anybody.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, of_both};
use crate::evidence::by_hand;
use crate::evidence::machines::{MOST_OF_THE_GAP, Machines, QUOTA, allowed_cpus, is_same_fact, worth_log};
use crate::evidence::others::{Loss, SOMEBODY_RUNS, TOP, Taken};
use crate::evidence::rights::Rights;
use crate::evidence::worth::unless_more;
use crate::gap::Gap;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.priority",
    description: "the server has less right to its CPUs than others who want them: nice, policy or weight",
    signature: "hosts: a nice value, policy or weight below the usual and below the fast side's; the server's threads wait for \
                CPUs on which others run, longer for each CPU second than on the fast side, where others run as well",
    at_most: "told as a suspicion only",
    needs_machine: true,
};

/// Of what others run on the slow side's CPUs, how much they have to run on the fast side's. Beside a busy server with equal rights a
/// neighbour has half of a CPU, and nearly all of it beside one that it goes before; beside two threads of a server it has a third.
const LEAST_BESIDE: f64 = 0.25;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let machines = Machines::read(gap)?;
    let (slow_side, fast_side) = machines.both(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let Some(Taken { of_slow, of_fast: Some(of_fast), worth_log: worth }) = Taken::read(gap, &machines) else {
        return Err(open("how long both servers' threads waited for a CPU, and for whom, is not known".to_owned()));
    };
    let counted = gap.on_host(Loss::tell(gap, &of_slow, Some(&of_fast)), Some(TOP.to_owned()));
    let somebody_runs = |gauge: Option<f64>| gauge.map(|running| running >= SOMEBODY_RUNS);
    let beside_slow = somebody_runs(slow_side.gauge("cpu.running"));
    let share = match machines.noteworthy(worth, &counted) {
        // Whoever serves the same requests behind it may have waited there, and nobody counts for how long.
        Err(settled) if beside_slow.is_none_or(|seen| seen) => {
            return Err(unless_more(worth_log(of_slow.run, of_slow.others) / machines.view.log.low(), settled));
        }
        share => share?,
    };
    let unknown = "nice values, policies and weights of both servers are not all known";
    let [rights, of_other] = of_both(gap, unknown, |side| Rights::of(gap, side))?;
    let fact = gap.on_host(
        format!("{slow} runs with {}, {fast} with {}", rights.tell(), of_other.tell()),
        Some(by_hand::priority(gap, gap.slow)),
    );
    if !rights.is_low() || !rights.is_below(&of_other) {
        return Err(open(format!("{}; {}: {slow} was not put behind others", counted.text, fact.text)));
    }
    if share > MOST_OF_THE_GAP {
        let more = "more than the whole gap, so that not all of it can have mattered";
        return Err(open(format!("{}; {}: {more}", fact.text, counted.text)));
    }
    if slow_side.is_held_back(&machines.view) || gap.host_fact(gap.slow, QUOTA).is_none() {
        return Err(open(format!("{}; {}; but a quota may have held it back", fact.text, counted.text)));
    }
    let is_one_machine = is_same_fact(gap, "os.boot_id") && allowed_cpus(gap, gap.slow) == allowed_cpus(gap, gap.fast);
    if beside_slow != Some(true) || somebody_runs(fast_side.gauge("cpu.running")) != Some(true) {
        let text = format!(
            "{}; but others were not seen to run beside both without load: where nobody else wants a CPU, a priority \
             changes nothing",
            fact.text
        );
        return Err(open(text));
    }
    // Those that run without load may run on other CPUs of the machine.
    if of_fast.others < LEAST_BESIDE * of_slow.others {
        let text = format!(
            "{}; {}; but others run less on {fast}'s CPUs: with equal rights {slow} would have lost some of it, too",
            fact.text, counted.text
        );
        return Err(open(text));
    }
    let confidence = if is_one_machine { machines.at_most() } else { Confidence::Possible };
    let told = Told {
        summary: format!(
            "{slow} runs with {}, {fast} with {}: others who want its CPUs go before it. That is worth {}.",
            rights.tell(),
            of_other.tell(),
            machines.about(share)
        ),
        remedy: format!(
            "Give {slow} the usual rights: `Nice=0`, `CPUSchedulingPolicy=other` and `CPUWeight=100` of its service, \
             `--cpu-shares 1024` of a container (`worker_priority` of nginx); or put the others behind it. `ps -eo \
             pid,cls,ni,psr,pcpu,args --sort=-pcpu | head` tells who they are."
        ),
        facts: vec![fact],
        further: vec![counted],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}
