//! `db.small-buffer-pool`: what is read does not fit into the slow server's memory for blocks, and does into the fast one's.
//!
//! The settings tell the sizes, the counters that the slow server reads blocks again; and with so few rows that both hold them, or on a
//! private copy with the fast side's memory, the gap goes away. What looks like it: a plan that looks at more blocks (then it finds more in memory, too), and a slow disk under equal
//! memories, which reads no more blocks.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, fit_by_twin, of_both, shown_flip};
use crate::evidence::database::{MEMORY_FOR_BLOCKS, counted, reads_again, same_system, writes};
use crate::evidence::db_settings::how_to_allow_copies;
use crate::gap::{Flip, Gap};
use crate::probes::{FEW_ROWS, copy_with};
use crate::twins::Twins;
use duel_model::{Confidence, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "db.small-buffer-pool",
    description: "the database's memory for blocks is too small for what is read, so that blocks are read again and again",
    signature: "three times as many blocks are read with another size of memory for them, and with a hundred rows \
                or, with `--may-copy-database`, on a private copy of the server with the other size the gap goes away",
    at_most: "confirmed",
    needs_machine: false,
};

/// A disk that turns takes so long for a block, and hardly any other takes longer: by this a memory may be acquitted.
const LONGEST_READ_NS: f64 = 10e6;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    same_system(gap)?;
    let name =
        MEMORY_FOR_BLOCKS.into_iter().find(|name| gap.fact(gap.slow, |seen| seen.value(name)).is_some()).ok_or_else(
            || Standing::Undecided(gap.not_measured("the size of its memory for blocks is not known".to_owned())),
        )?;
    let [of_slow, of_fast] = of_both(gap, "the sizes of their memories for blocks are not both known", |side| {
        gap.fact(side, |seen| {
            let bytes = seen.number(name).map(duel_model::format_bytes);
            bytes.or_else(|| seen.value(name).map(|value| sanitize_line(&value.to_string())))
        })
    })?;
    let [slow_reads, fast_reads] = counted(gap, "server-reads", "how many blocks they read")?;
    let told = format!(
        "{slow} reads {slow_reads:.3} blocks for each transaction with {of_slow} of memory for them, {fast} {fast_reads:.3} with {of_fast}"
    );
    let most_ns = (slow_reads - fast_reads) * LONGEST_READ_NS;
    let is_little = gap.comparison.difference_ns().is_some_and(|gap| most_ns < Flip::NOTEWORTHY * gap.mid);
    if most_ns <= 0.0 || is_little {
        return Err(Standing::RuledOut(gap.at_reference(told)));
    }
    // Some more blocks may be a small memory's, or those of a table that was left behind.
    if of_slow == of_fast || !reads_again([slow_reads, fast_reads]) {
        return Err(Standing::Undecided(gap.at_reference(told)));
    }
    let remedy = format!(
        "Give {slow} more memory for blocks (`shared_buffers`, `innodb_buffer_pool_size`), as much as {fast} has, or as the tables take."
    );
    let facts = vec![gap.at_reference(told.clone())];
    let mut further = Vec::new();
    let copies = match gap.on_copies(copy_with(name)) {
        Twins::NotAllowed => None,
        Twins::Wanted(probe) => return Err(Standing::Wants(vec![probe])),
        Twins::Told(copies) => Some(copies),
    };
    let acquitted = copies.as_ref().filter(|copies| copies.acquits()).and_then(|copies| copies.evidence.last());
    if let Some(evidence) = acquitted {
        return Err(Standing::Undecided(evidence.clone()));
    }
    if let Some(copies) = copies {
        if copies.confirms() {
            let summary = format!(
                "What is read does not fit into {slow}'s memory for blocks: {told}. On a private copy of its server with {of_fast} the \
                 gap goes away."
            );
            return Ok(fit_by_twin(gap, &ENTRY, copies, Told { summary, remedy, facts, further: Vec::new() }));
        }
        further = copies.evidence;
    }
    if writes(gap) {
        let more = how_to_allow_copies(gap);
        let text = format!("{told}; with an op that writes, no fewer rows can be asked for{more}");
        return Err(Standing::Undecided(further.pop().unwrap_or_else(|| gap.at_reference(text))));
    }
    let flip = shown_flip(gap, FEW_ROWS)?;
    if flip.is_negligible() {
        return Err(Standing::RuledOut(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    if !flip.moved() {
        return Err(Standing::Undecided(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    let summary = format!(
        "What is read does not fit into {slow}'s memory for blocks: {told}. That is {} of the gap.",
        flip.percent()
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further }))
}
