//! `disk.block-size`: the slow side's file system works in units that are larger than what is read or written, so that each op moves
//! more than it was asked for.
//!
//! The device's counters tell: it moves several times as many bytes for each op as the fast side's does. With blocks of several such
//! units neither moves more than the other, and the gap goes away. What looks like it: metadata that is read beside (small calls, and
//! no larger unit), and whatever makes larger blocks cheaper on both sides, where no more is moved.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, of_both, shown_flip};
use crate::evidence::device::{of_view, setting};
use crate::gap::Gap;
use crate::probes::LARGER_BLOCK;
use duel_model::{Confidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.block-size",
    description: "the file system's unit is larger than what is read or written: each op moves more than it asks for",
    signature: "the slow side's smallest file takes more than a block and more than the fast side's, its device \
                moves at least twice as many bytes for each op, and with blocks 16 times as large neither is so \
                any more",
    at_most: "confirmed",
    needs_machine: false,
};

/// The slow side's device moves so many times what the fast side's does: less is made by journals and by whoever else uses it.
const AMPLIFIED: f64 = 2.0;
/// So much more is no more: a unit that is as long as the block has nothing to read first. Units of twice a block come to nearly
/// [`AMPLIFIED`], so what lies between is left open.
const NO_MORE: f64 = 1.1;
/// With larger blocks it is gone.
const GONE: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |why: &str| Standing::Undecided(gap.not_measured(why.to_owned()));
    let units =
        of_both(gap, "the allocation units are not known of both", |side| gap.count(side, "disk.allocation_bytes"))?;
    let block =
        setting(gap, "block").and_then(|block| block.parse::<u64>().ok()).ok_or_else(|| open("there is no block"))?;
    let told_units = format!(
        "the smallest file takes {} on {slow} and {} on {fast}, and a block has {}",
        format_bytes(units[0] as f64),
        format_bytes(units[1] as f64),
        format_bytes(block as f64)
    );
    if units[0] <= units[1] || units[0] <= block {
        return Err(Standing::RuledOut(gap.first_contact(told_units)));
    }
    let reference = gap.known_reference().ok_or_else(|| open("there is no reference"))?;
    let [of_slow, of_fast] = of_view(gap, reference)?;
    let told_moved = format!(
        "for each op {slow}'s device moves {}, and {fast}'s {}",
        format_bytes(of_slow.bytes),
        format_bytes(of_fast.bytes)
    );
    let least = of_fast.bytes.max(block as f64);
    if of_slow.bytes < NO_MORE * least {
        return Err(Standing::RuledOut(gap.at_reference(told_moved)));
    }
    if of_slow.bytes < AMPLIFIED * least {
        return Err(Standing::Undecided(gap.at_reference(told_moved)));
    }
    let flip = shown_flip(gap, LARGER_BLOCK)?;
    if !flip.moved() {
        return Err(moved_little(gap, &flip));
    }
    let [slow_then, fast_then] = of_view(gap, &flip.view)?;
    if slow_then.bytes > GONE * fast_then.bytes {
        let text = format!(
            "{}: {slow}'s device still moves {} for each op, and {fast}'s {}",
            LARGER_BLOCK.phrase(),
            format_bytes(slow_then.bytes),
            format_bytes(fast_then.bytes)
        );
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let reads = if of_slow.reads >= 0.5 && setting(gap, "op").is_some_and(|op| op.contains("write")) {
        " What is only written in part is read first."
    } else {
        ""
    };
    let summary = format!("{slow}'s file system works in larger units than the op: {told_moved}.{reads}");
    let remedy = format!(
        "Make {slow}'s unit the size of what is worked on (mkfs: `-b`, `-C` of bigalloc, `-n size`; ZFS: `recordsize`), or work in \
         blocks of {} and more.",
        format_bytes(units[0] as f64)
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let facts = vec![gap.first_contact(told_units), gap.at_reference(told_moved)];
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further: Vec::new() }))
}
