//! `disk.metadata-misses`: to find where a block lies, the slow side's file system has to read from its device, op for op.
//!
//! Its device is called more often for each op, in small calls. In a smaller file what tells where blocks lie stays in memory: calls
//! fall to one an op, and the gap goes away. What looks like it: a file in many pieces (calls stay as many), a unit that is larger than the
//! block (calls move more bytes), and a slow device (as many calls on both sides).

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, shown_flip};
use crate::evidence::device::{of_view, setting};
use crate::gap::Gap;
use crate::probes::SMALLER_FILE;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.metadata-misses",
    description: "where blocks lie does not fit into memory: the device is called more than once for each op",
    signature: "the slow side's device reads at least a quarter more often for each op at a random place; within a \
                sixteenth of the size half of that and the gap are gone",
    at_most: "told as a suspicion only",
    needs_machine: false,
};

/// From here on the device is called more often than ops and journals explain: a quarter of the ops, as for any share worth a name,
/// on top of what the fast side needs.
const MORE_CALLS: f64 = 1.25;
/// So much of the further calls is gone in a smaller file.
const GONE: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if !matches!(setting(gap, "op"), Some("randread" | "randwrite" | "randrw")) {
        let text = "what tells where blocks lie is read once for many ops in order";
        return Err(Standing::RuledOut(gap.not_measured(text.to_owned())));
    }
    let missing = || Standing::Undecided(gap.not_measured("there is no reference".to_owned()));
    let reference = gap.known_reference().ok_or_else(missing)?;
    let [of_slow, of_fast] = of_view(gap, reference)?;
    let told = format!(
        "{slow}'s device reads {:.2} times for each op, and {fast}'s {:.2} times",
        of_slow.reads, of_fast.reads
    );
    if of_slow.reads < MORE_CALLS * of_fast.reads || of_slow.reads - of_fast.reads < MORE_CALLS - 1.0 {
        return Err(Standing::RuledOut(gap.at_reference(told)));
    }
    let flip = shown_flip(gap, SMALLER_FILE)?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    let [slow_then, fast_then] = of_view(gap, &flip.view)?;
    let told_then = format!(
        "{}: {slow}'s device reads {:.2} times for each op, and {fast}'s {:.2} times",
        SMALLER_FILE.phrase(),
        slow_then.reads,
        fast_then.reads
    );
    if slow_then.reads - fast_then.reads > (1.0 - GONE) * (of_slow.reads - of_fast.reads) {
        return Err(Standing::Undecided(gap.evidence(&flip.view, told_then)));
    }
    let summary = format!(
        "{slow}'s file system reads from its device to find where blocks lie: {told}. In a smaller file {} of the gap is gone.",
        flip.percent()
    );
    let remedy = format!(
        "Give {slow} more memory for its cache (`echo 50 >/proc/sys/vm/vfs_cache_pressure` keeps metadata longer; a control group's limit \
         counts it, too), or a file system that tells it in less: extents instead of block lists (ext4 instead of ext3), larger blocks."
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let (facts, further) = (vec![gap.at_reference(told)], vec![gap.evidence(&flip.view, told_then)]);
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further }))
}
