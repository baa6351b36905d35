//! `disk.iops-cap`: the slow side's device does so many calls per second, however large they are and however many wait.
//!
//! Larger blocks move more bytes then, by as many calls; more ops in flight change nothing. What looks like it: a cap on bytes (calls
//! fall as blocks grow); a device whose every call takes long (more in flight are more per second); a slow flush; and a disk with mechanics,
//! which does more where ops lie close together. What the device would do without the cap is hidden behind it, so no share of the gap is
//! told. Where a control group's limit is known, and the device keeps to it, the cap has a name.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::device::{Answers, Change, without_seeks};
use crate::gap::Gap;
use duel_model::{Confidence, format_count};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.iops-cap",
    description: "the device does no more than so many calls per second, whatever their size and however many wait",
    signature: "the slow side's device does as many calls per second with blocks 16 times as large, which move \
                more bytes then, and with 8 times as many ops in flight",
    at_most: "likely; confirmed where a control group's limit is known that the device keeps to",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let answers = Answers::of(gap)?;
    answers.ios.makes_gap(gap, "calls")?;
    let [by_blocks, by_depth] = answers.told(gap);
    // Calls in flight that lie next to each other become one on their way to the device, behind what counts them.
    let in_flight = match (answers.ios.by_depth(), answers.bytes.by_depth()) {
        (Change::Less, Change::Same) => Change::Same,
        (calls, _) => calls,
    };
    match (answers.ios.by_blocks(), in_flight, answers.bytes.by_blocks()) {
        (Change::Same, Change::Same, Change::More) => {}
        (Change::More, ..) => return Err(Standing::RuledOut(by_blocks)),
        (_, Change::More, _) => return Err(Standing::RuledOut(by_depth)),
        // As many bytes by fewer calls: they are what is limited.
        (Change::Less, _, Change::Same) => return Err(Standing::RuledOut(by_blocks)),
        (Change::Less, ..) => return Err(Standing::Undecided(by_blocks)),
        _ => return Err(Standing::Undecided(by_depth)),
    }
    let limit = answers.limit(gap, answers.ios, ["disk.limit_reads_per_s", "disk.limit_writes_per_s"]);
    if limit.is_none() {
        without_seeks(gap)?;
    }
    let slow = gap.slow_name();
    let by_group = limit.map_or_else(String::new, |limit| {
        format!(" The control group that duel works in may make {} per second there.", format_count(limit))
    });
    let calls = format_count(answers.ios.at_reference.round() as u64);
    let summary = format!(
        "{slow}'s device does {calls} calls per second and no more, whatever their size and however many are in \
         flight.{by_group}"
    );
    let remedy = format!(
        "Look for a limit on {slow}'s device: `cat /sys/fs/cgroup/blkio/*/blkio.throttle.*_iops_device` or `io.max` of control groups, \
         the volume's limit where a provider rents it out, QEMU's `iops`. Without one it is the device's own: fewer and larger calls \
         move more through it."
    );
    let told = Told { summary, remedy, facts: vec![by_blocks, by_depth], further: Vec::new() };
    Ok(fit_by_host(gap, &ENTRY, None, Confidence::Likely, told).with(|fit| {
        fit.hides_rest = true;
        // What the kernel was told to do and what the device does agree at both sizes of blocks, and the other side does more.
        if limit.is_some() {
            fit.finding.confidence = Confidence::Confirmed;
        }
    }))
}
