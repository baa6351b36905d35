//! `db.bloat`: the rows of the slow server's tables lie in many more blocks than they need, so that more blocks are looked at for each.
//!
//! Rows that were updated or deleted leave dead ones behind, which VACUUM (PostgreSQL) and purge (MySQL, MariaDB) remove, unless an old
//! transaction may still want to see them; and what was removed leaves holes. The server tells how large its tables are and how many dead
//! rows they have, and counts the blocks that it looks at. On a private copy whose tables were written anew the gap goes away. What looks like
//! it: another plan (`db.bad-plan`), which looks at more blocks of a table that is as large, and a smaller memory
//! (`db.small-buffer-pool`), which reads more blocks and looks at no more. Further indexes make tables larger, too: no copy loses
//! them.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, fit_by_twin, of_both};
use crate::causes::likes;
use crate::evidence::database::{MEMORY_FOR_BLOCKS, counted, differing, same_system, setting};
use crate::evidence::db_settings::how_to_allow_copies;
use crate::gap::{Flip, Gap};
use crate::probes::REWRITTEN_COPY;
use crate::twins::Twins;
use duel_model::{Confidence, Evidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "db.bloat",
    description: "the rows of the tables lie in many more blocks than they need, dead ones among them",
    signature: "larger tables or more dead rows, and half as many blocks again are looked at for each transaction, by the same \
                plans; with `--may-copy-database` the gap goes away on a private copy of the server whose tables were written anew",
    at_most: "confirmed",
    needs_machine: false,
};

/// Indexes into which rows came in any order are two thirds full, and those that were made at once nine tenths; they are a fifth of sysbench's
/// tables, which are larger by a tenth with that.
const LARGER: f64 = 1.2;
/// Of the rows that a table has. PostgreSQL's own autovacuum begins at a fifth; a tenth costs hardly anything.
const MANY_DEAD: f64 = 0.2;
/// Blocks for each transaction, as many times as many.
const MORE_BLOCKS: f64 = 1.5;
/// A disk that turns takes so long for a block, and hardly any other takes longer.
const LONGEST_READ_NS: f64 = 10e6;
/// A block in memory has some hundred rows, each of which is looked at in much less than a microsecond.
const LONGEST_LOOK_NS: f64 = 100e3;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    same_system(gap)?;
    let [slow_hits, fast_hits] = counted(gap, "server-hits", "how many blocks they look at")?;
    let [slow_reads, fast_reads] = counted(gap, "server-reads", "how many blocks they read")?;
    let [of_slow, of_fast] = [slow_hits + slow_reads, fast_hits + fast_reads];
    let blocks = format!("{slow} looks at {of_slow:.1} blocks for each transaction, {fast} at {of_fast:.1}");
    let tables = Tables::of_both(gap);
    // What PostgreSQL reads may come from the system's memory on one side, and from a disk on the other, where the tables are larger.
    let reads = match &tables {
        Ok(tables) if !tables.is_bloated(gap) => (slow_reads - fast_reads).max(0.0),
        Ok(_) | Err(_) => slow_reads,
    };
    let most_ns = reads * LONGEST_READ_NS + (of_slow - of_fast).max(0.0) * LONGEST_LOOK_NS;
    let open = |text: String| Standing::Undecided(gap.at_reference(text));
    // Dead entries of an index lie in the blocks of living ones, and each of them is looked at.
    let may_hide = tables.as_ref().is_ok_and(|tables| tables.has_more_dead(gap));
    if !may_hide && gap.comparison.difference_ns().is_some_and(|gap| most_ns < Flip::NOTEWORTHY * gap.mid) {
        return Err(Standing::RuledOut(gap.at_reference(blocks)));
    }
    let tables = tables?;
    let told = tables.told(gap);
    if !tables.is_bloated(gap) {
        return Err(open(format!("{blocks}; {told}")));
    }
    let facts = vec![gap.first_contact(told.clone()), gap.at_reference(blocks.clone())];
    let summary = format!("{slow} has to look at more blocks for the same rows: {told}. {blocks}.");
    let remedy = format!(
        "Look for what keeps dead rows on {slow}: autovacuum that is off or too slow, transactions that stay open, replication slots \
         (`SELECT pid, state, backend_xmin FROM pg_stat_activity ORDER BY age(backend_xmin) DESC`; of MySQL and MariaDB \
         `information_schema.innodb_trx`). Then `VACUUM` removes dead rows, and `VACUUM FULL`, `CLUSTER`, pg_repack or `OPTIMIZE TABLE` \
         write the table anew, which locks it or takes room."
    );
    let told = format!("{blocks}; {told}");
    // Tables that were written anew have new statistics as well, and with these other plans.
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|id| open(format!("{told}; {id} would look the same"))))?;
    }
    let suspected = |summary: String, remedy: String, further: Evidence| {
        // Blocks may be looked at for another reason, and come from a smaller memory.
        if of_slow < MORE_BLOCKS * of_fast || differing(gap, &MEMORY_FOR_BLOCKS).is_some() {
            let text = format!("{told}{}", how_to_allow_copies(gap));
            return Err(match may_hide {
                true => Standing::Suspected(gap.at_reference(text)),
                false => open(text),
            });
        }
        let told = Told { summary, remedy, facts: facts.clone(), further: vec![further] };
        Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told))
    };
    let copies = match gap.on_copies(REWRITTEN_COPY) {
        Twins::NotAllowed => {
            let text = "that more blocks are looked at was counted, and what it is worth was not";
            return suspected(summary, remedy, gap.at_reference(text.to_owned() + &how_to_allow_copies(gap)));
        }
        Twins::Wanted(probe) => return Err(Standing::Wants(vec![probe])),
        Twins::Told(copies) => copies,
    };
    if copies.flip.as_ref().is_some_and(|flip| flip.moved()) {
        let summary =
            format!("{summary} On a private copy of its server whose tables were written anew the gap goes away.");
        return Ok(fit_by_twin(gap, &ENTRY, copies, Told { summary, remedy, facts, further: Vec::new() }));
    }
    let (acquits, has_no_gap, tells_nothing) = (copies.acquits(), copies.has_no_gap, copies.tells_nothing());
    let Some(last) = copies.evidence.into_iter().next_back() else { return Err(open(told)) };
    if acquits {
        return Err(Standing::RuledOut(last));
    }
    // Old rows are kept for a transaction of the running server, which no copy has.
    if tells_nothing || has_no_gap && tables.has_more_dead(gap) {
        return suspected(summary, remedy, last);
    }
    Err(Standing::Undecided(last))
}

/// What both tell of the tables that load is put on, slow side first.
struct Tables {
    bytes: [u64; 2],
    /// What is dead in them: rows of PostgreSQL; of MariaDB transactions whose old rows are not purged.
    dead: Option<[u64; 2]>,
}

impl Tables {
    fn of_both(gap: &Gap<'_>) -> Result<Self, Standing> {
        let bytes =
            of_both(gap, "the sizes of their tables are not both known", |side| gap.count(side, "sql.tables_bytes"))?;
        let dead = |name: &str| Some([gap.count(gap.slow, name)?, gap.count(gap.fast, name)?]);
        Ok(Self { bytes, dead: dead("sql.dead_rows").or_else(|| dead("mysql.history_length")) })
    }

    fn is_bloated(&self, gap: &Gap<'_>) -> bool {
        let [of_slow, of_fast] = self.bytes.map(|bytes| bytes as f64);
        of_slow >= LARGER * of_fast || self.has_more_dead(gap)
    }

    fn has_more_dead(&self, gap: &Gap<'_>) -> bool {
        let number = |name: &str| setting(gap, name).and_then(|value| value.parse::<f64>().ok());
        let rows = number("tables").zip(number("table-size")).map(|(tables, size)| tables * size);
        self.dead.zip(rows).is_some_and(|([slow, fast], rows)| slow.saturating_sub(fast) as f64 >= MANY_DEAD * rows)
    }

    fn told(&self, gap: &Gap<'_>) -> String {
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        let [of_slow, of_fast] = self.bytes.map(|bytes| format_bytes(bytes as f64));
        let dead = self.dead.filter(|dead| *dead != [0, 0]).map_or_else(String::new, |[of_slow, of_fast]| {
            let what = if gap.count(gap.slow, "sql.dead_rows").is_some() {
                "dead rows"
            } else {
                "transactions whose old rows are kept"
            };
            format!(", with {of_slow} {what} against {of_fast}")
        });
        format!("{slow}'s tables take {of_slow}, {fast}'s {of_fast}{dead}")
    }
}
