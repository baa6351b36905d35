//! `disk.iops-cap`: the slow side's device does so many calls per second, however large they are and however many wait.
//!
//! Larger blocks move more bytes then, by as many calls; more ops in flight change nothing. What looks like it: a cap on bytes (calls
//! fall as blocks grow); a device whose every call takes long (more in flight are more per second); and a slow flush. What the device
//! would do without the cap is hidden behind it, so no share of the gap is told.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::device::{Answers, Change};
use crate::gap::Gap;
use duel_model::{Confidence, format_count};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.iops-cap",
    description: "the device does no more than so many calls per second, whatever their size and however many wait",
    signature: "the slow side's device does as many calls per second with blocks 16 times as large, which move \
                more bytes then, and with 8 times as many ops in flight",
    at_most: "told as a suspicion only",
    needs_machine: false,
};

pub(super) struct IopsCap;

impl Cause for IopsCap {
    fn entry(&self) -> &'static CauseEntry {
        &ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        let answers = Answers::of(gap)?;
        answers.ios.makes_gap(gap, "calls")?;
        let [by_blocks, by_depth] = answers.told(gap);
        match (answers.ios.by_blocks(), answers.ios.by_depth(), answers.bytes.by_blocks()) {
            (Change::Same, Change::Same, Change::More) => {}
            (Change::More, ..) => return Err(Standing::RuledOut(by_blocks)),
            (_, Change::More, _) => return Err(Standing::RuledOut(by_depth)),
            // As many bytes by fewer calls: they are what is limited.
            (Change::Less, _, Change::Same) => return Err(Standing::RuledOut(by_blocks)),
            (Change::Less, ..) => return Err(Standing::Undecided(by_blocks)),
            _ => return Err(Standing::Undecided(by_depth)),
        }
        let slow = gap.slow_name();
        let calls = format_count(answers.ios.at_reference.round() as u64);
        let summary = format!(
            "{slow}'s device does {calls} calls per second and no more, whatever their size and however many are in flight."
        );
        let remedy = format!(
            "Look for a limit on {slow}'s device: `cat /sys/fs/cgroup/blkio/*/blkio.throttle.*_iops_device` or `io.max` of control groups, \
             the volume's limit where a provider rents it out, QEMU's `iops`. Without one it is the device's own: fewer and larger calls \
             move more through it."
        );
        let told = Told { summary, remedy, facts: vec![by_blocks, by_depth], further: Vec::new() };
        let mut standing = fit_by_host(gap, &ENTRY, None, Confidence::Likely, told);
        if let Standing::Fits(fit) = &mut standing {
            fit.hides_rest = true;
        }
        Ok(standing)
    }
}
