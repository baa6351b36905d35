//! `disk.slow-flush` of databases: what the slow server waits for is that its log is on the disk.
//!
//! With commits that do not wait for the disk (PostgreSQL's `synchronous_commit=off` in duel's own sessions, on all targets) the gap goes
//! away; both have to flush about as often. What looks like it: settings that differ in how often, or whether at all, is waited
//! (`db.config`); locks that are held for as long as a commit takes, which then are long in the same measure. MySQL has no such setting for a
//! session, so that there it is left open, with what to try.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, shown_flip};
use crate::evidence::database::{Side, counted, differing_flushes, same_system, writes};
use crate::gap::{Gap, phase_share_of};
use crate::probes::ASYNCHRONOUS;
use duel_model::{Confidence, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.slow-flush",
    description: "the disk takes long to say that what was written is safe, and each commit waits for it",
    signature: "of PostgreSQL: with commits that do not wait for the disk the gap goes away; flushes per \
                transaction are alike, and so are the settings that decide on them",
    at_most: "confirmed",
    needs_machine: false,
};

/// Flushes for each transaction may differ by so much, and still be as many: commits that come together share one.
const AS_MANY: f64 = 2.0;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| Standing::Undecided(gap.at_reference(text));
    if !writes(gap) {
        return Err(Standing::RuledOut(gap.not_measured("what only reads commits nothing".to_owned())));
    }
    same_system(gap)?;
    if let Some(text) = differing_flushes(gap) {
        return Err(Standing::Undecided(gap.first_contact(format!("{text}: see db.config"))));
    }
    let flushes = counted(gap, "server-flushes", "how often they flush");
    if let Ok([of_slow, of_fast]) = flushes
        && of_slow > AS_MANY * of_fast.max(0.05)
    {
        let text = format!(
            "{slow} flushes {of_slow:.2} times for each transaction, {fast} {of_fast:.2} times: it is how often, not how long"
        );
        return Err(open(text));
    }
    let reference = gap.known_reference().ok_or_else(|| open("there is no reference".to_owned()))?;
    if phase_share_of(reference, &Side::PHASES_OF_STATEMENTS).is_some_and(|share| share < 0.5) {
        return Err(open("most of the gap does not sit in the statements and their commit".to_owned()));
    }
    if gap.text(gap.slow, "sql.synchronous_commit").is_none() {
        let text = format!(
            "whether {slow} waits for its disk can only be tried for the whole server: `SET GLOBAL innodb_flush_log_at_trx_commit = 2` on \
             both, compare again, and set it back"
        );
        return Err(open(text));
    }
    let flip = shown_flip(gap, ASYNCHRONOUS)?;
    if flip.is_negligible() {
        return Err(Standing::RuledOut(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    if !flip.moved() {
        return Err(Standing::Undecided(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    let saved = format_duration_ns(flip.moved_ns.max(0.0));
    let summary = format!(
        "{slow} waits longer until its log is on the disk: when commits do not wait for that, a transaction saves {saved} more on it \
         than on {fast}. That is {} of the gap.",
        flip.percent()
    );
    let remedy = format!(
        "Look at the disk under {slow}'s log: `pg_test_fsync` on both, a mount with `sync`, a cap on writes, a cache without a \
         battery. `synchronous_commit = off` gives up the last moments before a crash and nothing else."
    );
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let facts = match (counted(gap, "server-flush_ns", ""), flushes) {
        (Ok([of_slow, of_fast]), Ok([slow_flushes, fast_flushes])) => vec![gap.at_reference(format!(
            "for each transaction {slow} flushes {slow_flushes:.2} times and waits {} for its log, {fast} {fast_flushes:.2} times and {}",
            format_duration_ns(of_slow),
            format_duration_ns(of_fast)
        ))],
        _ => Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further: Vec::new() }))
}
