//! `cpu.noisy-neighbour`: somebody else's work takes the CPU from the slow side.
//!
//! Counted: for how long the server's threads waited in the run queue, and for how long others ran on the CPUs that it
//! may use. Neither is enough alone. Threads wait for their own kind too, and somebody who runs at a low priority takes
//! what is idle. What others took is no more than either. On a virtual machine another one is not to be seen: what the
//! hypervisor withholds is a cause of its own.
//!
//! What looks alike: a quota, which holds threads back while others run (left open where a quota bites); a proxy's
//! server or a database on the same CPUs, which run for the requests. Those sleep without load, a neighbour does not.
//! And a neighbour that both sides have, on one machine or by chance: who needs more CPU time waits for it longer. That
//! makes a gap larger, and it is not what makes it. Only what the slow side waits beyond that counts. Where the slow side has
//! less right to the CPUs than usual, and than the fast one beside the same or another neighbour, that is `cpu.priority`.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::causes::likes::held_against;
use crate::evidence::machines::{MOST_OF_THE_GAP, Machines, QUOTA, allowed_cpus, is_same_fact, worth_log};
use crate::evidence::others::{Loss, SOMEBODY_RUNS, TOP, Taken};
use crate::evidence::worth::unless_more;
use crate::gap::{Flip, Gap, percent};
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.noisy-neighbour",
    description: "somebody else's work on the same CPUs keeps the server waiting for them",
    signature: "hosts: the server's threads wait for CPUs on which others run (also without load); longer for each \
                CPU second than on the fast side, and not on the same CPUs in the same control group. Threads that \
                run or wait nearly all the time wait for the CPU, whatever interrupts take of it",
    at_most: "likely; possible where it is worth a name only of what load leaves of the gap",
    needs_machine: true,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let machines = Machines::read(gap)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let Some(Taken { of_slow, of_fast, worth_log: worth }) = Taken::read(gap, &machines) else {
        return Err(open(format!("how long {slow}'s threads waited for a CPU, and for whom, is not known")));
    };
    let counted = gap.on_host(Loss::tell(gap, &of_slow, of_fast.as_ref()), Some(TOP.to_owned()));
    let running = machines.slow.gauge("cpu.running");
    let somebody_runs = running.map(|running| running >= SOMEBODY_RUNS);
    let share = match machines.noteworthy(worth, &counted) {
        // Many threads together get more of a CPU beside somebody else than one does that has to wake up there for each
        // request. So load hides much of the gap over one connection, where nobody counts for how long it waits.
        Err(Standing::Undecided(_)) if machines.matters_under_load(worth) => machines.share(worth),
        // A server behind this one may have waited on the same CPUs for the same requests, and nobody counts for how long: no
        // longer than others ran there. A neighbour runs without load, too.
        Err(settled) if somebody_runs.is_none_or(|seen| seen) => {
            return Err(unless_more(worth_log(of_slow.run, of_slow.others) / machines.view.log.low(), settled));
        }
        share => share?,
    };
    if share > MOST_OF_THE_GAP {
        return Err(open(format!(
            "{}: more than the whole gap, so that not all of it can have mattered",
            counted.text
        )));
    }

    if share_neighbours(gap) {
        return Err(open(format!(
            "{}; but {slow} and {fast} run on the same CPUs of one machine, in one control group: whoever else works \
             there keeps both waiting",
            counted.text
        )));
    }
    if machines.slow.is_held_back(&machines.view) {
        return Err(open(format!(
            "{slow}'s threads waited while a quota held them back, too: the two cannot be told apart"
        )));
    }
    if gap.host_fact(gap.slow, QUOTA).is_none() {
        return Err(open(format!("{}; but whether a quota held {slow} back is not known", counted.text)));
    }
    if somebody_runs != Some(true) {
        return Err(open(format!(
            "{}; but without load nobody was seen to run there, so they may work for the same requests",
            counted.text
        )));
    }
    for other in held_against(gap, &ENTRY) {
        other.map_err(|against| {
            against.settles(|id| {
                open(format!("{}; but {fast} has somebody beside it as well, and the difference is {id}", counted.text))
            })
        })?;
    }
    let mut further = vec![counted];
    if let Some(running) = running {
        let text =
            format!("without load {running:.1} tasks were ready to run on {slow}'s machine, the reader among them");
        further.push(gap.on_host(text, Some("grep procs_running /proc/stat".to_owned())));
    }
    let is_noteworthy = share >= Flip::NOTEWORTHY;
    let confidence = if of_fast.is_some() && is_noteworthy { machines.at_most() } else { Confidence::Possible };
    let under_load = if is_noteworthy {
        String::new()
    } else {
        format!(", and {} of what load leaves of it", percent(machines.share_under_load(worth)))
    };
    let told = Told {
        summary: format!(
            "Somebody else's work takes {} of the CPU time that {slow} could use under load. That is worth {}{under_load}.",
            percent(of_slow.taken / of_slow.in_use()),
            machines.about(share)
        ),
        remedy: format!(
            "On {slow}'s host `ps -eo pid,psr,pcpu,ni,args --sort=-pcpu | head` tells who runs on which CPU. Move or end \
             that work, give it a lower weight (`CPUWeight=`, `nice`), or give the server CPUs of its own \
             (`AllowedCPUs=`)."
        ),
        facts: vec![],
        further,
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

/// Whether both servers have the same neighbours, and the same rights beside them: who needs more of the CPUs then waits
/// longer, and may also be put behind one who needs little.
fn share_neighbours(gap: &Gap<'_>) -> bool {
    // Control groups may have different weights. Where they are not known, nothing tells that they do.
    let groups = [gap.slow, gap.fast].map(|side| gap.host_fact(side, "cgroup.path"));
    let same_rights = groups[0].zip(groups[1]).is_none_or(|(slow, fast)| slow == fast);
    let same_cpus = allowed_cpus(gap, gap.slow) == allowed_cpus(gap, gap.fast);
    is_same_fact(gap, "os.boot_id") && same_cpus && same_rights
}
