//! `disk.readahead-off`: the system reads less ahead on the slow side's device, so that reads in order wait for it more often.
//!
//! The system tells how far it reads ahead. Where duel itself asks for what comes next (posix_fadvise), on all targets, the gap goes
//! away. What looks like it: a file that is in memory on one side alone, of which the device's counters tell; and whatever slows a
//! device down, which stays then. Rejected: a flip that reads ahead on neither side. It makes the fast side so much dearer that
//! nothing can be told of what is left.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, of_both, shown_flip};
use crate::gap::Gap;
use crate::probes::OWN_READ_AHEAD;
use duel_model::{Confidence, WorkloadPlan};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.readahead-off",
    description: "the system reads little or nothing ahead on the device, so that reads in order wait for it more often",
    signature: "the system tells that it reads less ahead on the slow side's device, both read in order from their \
                devices, and with duel itself reading ahead the gap is gone",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if !reads_in_order(gap) {
        let text = "nothing is read ahead of an op that does not read in order through the page cache";
        return Err(Standing::RuledOut(gap.not_measured(text.to_owned())));
    }
    let [slow_kib, fast_kib] = of_both(gap, "how far the system reads ahead is not known of both", |side| {
        gap.count(side, "disk.read_ahead_kib")
    })?;
    let told = format!("the system reads {slow_kib} KiB ahead on {slow}'s device, and {fast_kib} KiB on {fast}'s");
    if slow_kib >= fast_kib {
        return Err(Standing::RuledOut(gap.first_contact(told)));
    }
    let [_, fast_from] =
        of_both(gap, "where reads came from is not known of both", |side| gap.text(side, "disk.served_from"))?;
    if fast_from == "memory" {
        let text = format!("{told}; but what {fast} reads is in memory");
        return Err(Standing::Undecided(gap.at_reference(text)));
    }
    let flip = shown_flip(gap, OWN_READ_AHEAD)?;
    if flip.is_negligible() {
        return Err(Standing::RuledOut(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    if !flip.moved() {
        return Err(Standing::Undecided(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    let summary = format!("Reads in order wait longer on {slow}: {told}. That is {} of the gap.", flip.percent());
    let remedy = format!(
        "Look at {slow}'s device: `blockdev --getra DEVICE` tells how many sectors of 512 bytes are read ahead, and `blockdev --setra \
         256 DEVICE` makes it 128 KiB; a udev rule keeps it."
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let facts = vec![gap.first_contact(told)];
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further: Vec::new() }))
}

/// Whether the plan's op is one that the system reads ahead of.
fn reads_in_order(gap: &Gap<'_>) -> bool {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return false };
    let value = |name: &str| kind.schema.param(name).map(|param| kind.get(param));
    matches!(value("op"), Some("read" | "rewrite")) && value("direct") == Some("off")
}
