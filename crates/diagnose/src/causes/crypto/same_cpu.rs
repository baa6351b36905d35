//! `cpu.slower` of crypto libraries: they work on this machine in turns, so its CPU is not what differs.

use super::KINDS;
use crate::causes::{Cause, CauseEntry, Standing, slower};
use crate::gap::Gap;

pub(in crate::causes) struct SameCpu;

impl Cause for SameCpu {
    fn entry(&self) -> &'static CauseEntry {
        &slower::ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        // A command may work anywhere.
        let elsewhere =
            [gap.slow, gap.fast].into_iter().find(|&side| gap.case.plan.targets[side].address.starts_with("exec:"));
        Ok(match elsewhere {
            Some(side) => Standing::Undecided(
                gap.not_measured(format!("where the command of {} works is not known", gap.name(side))),
            ),
            None => {
                Standing::RuledOut(gap.not_measured("both work on this machine, in turns, on the same CPUs".to_owned()))
            }
        })
    }
}
