//! `cpu.slower` of crypto libraries: they work on this machine in turns, so its CPU is not what differs.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing};
use crate::gap::Gap;

static ENTRY: CauseEntry = CauseEntry {
    id: "cpu.slower",
    description: "the CPU is slower, or clocked down by heat or by a limit",
    signature: "is never named: the libraries work on one machine in turn, so it is ruled out. It is left open \
                where a target is an `exec:` command, which may work anywhere",
    at_most: "never",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    // A command may work anywhere.
    let elsewhere =
        [gap.slow, gap.fast].into_iter().find(|&side| gap.case.plan.targets[side].address.starts_with("exec:"));
    Ok(match elsewhere {
        Some(side) => {
            Standing::Undecided(gap.not_measured(format!("where the command of {} works is not known", gap.name(side))))
        }
        None => {
            Standing::RuledOut(gap.not_measured("both work on this machine, in turns, on the same CPUs".to_owned()))
        }
    })
}
