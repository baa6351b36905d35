//! `disk.bandwidth-cap`: the slow side's device moves so many bytes per second, however large its calls are and however many wait.
//!
//! Larger blocks are fewer calls then, of as many bytes; more ops in flight change nothing. What looks like it: a cap on calls (bytes
//! grow with the blocks); a device whose every call takes long (more in flight move more); a file system that works on each byte, where
//! the gap goes with the content. What the device would do without the cap is hidden behind it, so no share of the gap is told. Where a
//! control group's limit is known, and the device keeps to it, the cap has a name.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, shown_flip};
use crate::evidence::device::{Answers, Change, without_seeks};
use crate::gap::Gap;
use crate::probes::COMPRESSIBLE;
use duel_model::{Confidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.bandwidth-cap",
    description: "the device moves no more than so many bytes per second, whatever the size of calls and however many wait",
    signature: "the same of bytes: with larger blocks as many bytes by fewer calls, with more ops in flight no \
                more",
    at_most: "likely; confirmed where a control group's limit is known that the device keeps to",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let answers = Answers::of(gap)?;
    answers.bytes.makes_gap(gap, "bytes")?;
    let [by_blocks, by_depth] = answers.told(gap);
    match (answers.bytes.by_blocks(), answers.bytes.by_depth()) {
        (Change::Same, Change::Same) => {}
        (Change::More, _) => return Err(Standing::RuledOut(by_blocks)),
        (_, Change::More) => return Err(Standing::RuledOut(by_depth)),
        (Change::Less, _) => return Err(Standing::Undecided(by_blocks)),
        (_, Change::Less) => return Err(Standing::Undecided(by_depth)),
    }
    let limit = answers.limit(gap, answers.bytes, ["disk.limit_read_bytes_per_s", "disk.limit_written_bytes_per_s"]);
    if limit.is_none() {
        without_seeks(gap)?;
        let by_content = shown_flip(gap, COMPRESSIBLE)?;
        if !by_content.is_negligible() {
            let text = format!("{}: it may be work on the data that takes the time", gap.tell_flip(&by_content));
            return Err(Standing::Undecided(gap.evidence(&by_content.view, text)));
        }
    }
    let slow = gap.slow_name();
    let by_group = limit.map_or_else(String::new, |limit| {
        format!(" The control group that duel works in may move {} per second there.", format_bytes(limit as f64))
    });
    let bytes = format_bytes(answers.bytes.at_reference);
    let summary = format!(
        "{slow}'s device moves {bytes} per second and no more, whatever the size of its calls and however many are in \
         flight.{by_group}"
    );
    let remedy = format!(
        "Look for a limit on {slow}'s device: `cat /sys/fs/cgroup/blkio/*/blkio.throttle.*_bps_device` or `io.max` of control groups, \
         the volume's limit where a provider rents it out, QEMU's `bps`, the link that the device hangs on. Without one it is the \
         device's own."
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
