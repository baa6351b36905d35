//! `disk.slow-flush`: until what was written is on the slow side's device it takes longer, while writing itself does not.
//!
//! The same writes without a flush, past the page cache on all targets: the gap goes away. Into the page cache they would be no test,
//! for it takes writes at any speed. What looks like it: a device that is slow to write, capped or not, where the gap stays; a file
//! system that compresses when it flushes, where the gap goes with the content; and one whose units are larger than what is written,
//! which the page cache reads and writes as a whole. A file system that is mounted `sync` flushes whatever is asked, so nothing is told
//! by not asking.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, shown_flip};
use crate::evidence::device::{of_view, setting};
use crate::gap::{Flip, Gap};
use crate::probes::{COMPRESSIBLE, NO_FLUSH};
use duel_model::{Confidence, Id, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.slow-flush",
    description: "the disk takes long to say that what was written is safe, and each commit waits for it",
    signature: "ops are flushed, and without that and past the page cache the gap is gone; it does not go away \
                with the content",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (writes, flushes) = match setting(gap, "op") {
        Some("fsync" | "dsync") => (true, true),
        Some("write" | "randwrite" | "randrw" | "rewrite" | "create" | "unlink") => {
            (true, setting(gap, "flush").is_some_and(|every| every != "0"))
        }
        _ => (false, false),
    };
    let is_synchronous = gap
        .text(gap.slow, "disk.mount_options")
        .is_some_and(|options| options.split(',').any(|option| option == "sync"));
    if writes && is_synchronous {
        let text =
            format!("{} is mounted sync: it flushes each write, whether duel asks for that or not", gap.slow_name());
        return Err(Standing::Undecided(gap.first_contact(text)));
    }
    if !flushes {
        return Err(Standing::RuledOut(gap.not_measured("no op of this plan is flushed".to_owned())));
    }
    let flip = shown_flip(gap, NO_FLUSH)?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    // Past the page cache some file systems do not compress: then it is not the flush that is dear.
    let by_content = shown_flip(gap, COMPRESSIBLE)?;
    if by_content.moved() {
        let text = format!("{}: it goes with what is written", gap.tell_flip(&by_content));
        return Err(Standing::Undecided(gap.evidence(&by_content.view, text)));
    }
    if let Some(text) = moves_less_unflushed(gap, &flip) {
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let slow = gap.slow_name();
    let summary = format!(
        "What is written on {slow} takes longer until it is on the device: that is {} of the gap, which writing alone does not have.",
        flip.percent()
    );
    let remedy = format!(
        "On {slow}: is its write cache without a battery, is it a network volume, or a file system mounted `sync` or with its journal on a \
         slow device? `cat /sys/block/*/queue/write_cache` tells whether flushes are sent at all. Fewer commits for more work \
         (group commit) pay for it less often."
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let flush_ns = |seen: &duel_model::TargetObservation| seen.phase_mean_ns.get(&Id::new("flush")).copied();
    let reference = gap.known_reference();
    let phases = reference.and_then(|view| Some((flush_ns(view.slow)?, flush_ns(view.fast)?)));
    let facts = phases.map(|(of_slow, of_fast)| {
        let [of_slow, of_fast] = [of_slow, of_fast].map(format_duration_ns);
        gap.at_reference(format!("an op waits {of_slow} for the flush on {slow}, and {of_fast} on {}", gap.fast_name()))
    });
    let told = Told { summary, remedy, facts: facts.into_iter().collect(), further: Vec::new() };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// That the slow side's unit is larger than the fast side's and than a block, and that its device moves no more any longer once the page
/// cache does not complete what is written; `None` where that is not so, or not known.
fn moves_less_unflushed(gap: &Gap<'_>, flip: &Flip<'_>) -> Option<String> {
    /// Journals are written beside data, and by less than this.
    const MORE: f64 = 1.5;
    let unit = |side: usize| gap.count(side, "disk.allocation_bytes");
    let block = setting(gap, "block")?.parse::<u64>().ok()?;
    let [before, then] = [gap.known_reference()?, &flip.view]
        .map(|view| of_view(gap, view).ok().map(|[slow, fast]| slow.bytes / fast.bytes));
    let is_larger = unit(gap.slow)? > unit(gap.fast)?.max(block);
    (is_larger && before? > MORE && then? <= MORE).then(|| {
        format!(
            "{}: but {}'s units are larger than a block, and its device no longer moves more than the other's",
            gap.tell_flip(flip),
            gap.slow_name()
        )
    })
}
