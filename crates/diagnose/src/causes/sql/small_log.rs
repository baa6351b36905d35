//! `db.small-log`: the slow server's log is so small that it is full all the time, and blocks have to be brought to the tables before it goes on.
//!
//! The settings tell the sizes. PostgreSQL writes each block whole to its log when it is changed first after a checkpoint, so that checkpoints
//! without end are seen in what it writes to its log for each transaction; MySQL and MariaDB write blocks back to their tables early. On a
//! private copy with the fast side's size the gap goes away. What looks like it: a slow disk under the log (`disk.slow-flush`), which writes no
//! more, and commits that wait more often (`db.config`).

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, fit_by_twin};
use crate::causes::likes;
use crate::evidence::database::{LogSizes, counted, differing, same_system, writes};
use crate::evidence::db_settings::how_to_allow_copies;
use crate::gap::Gap;
use crate::probes::copy_with;
use crate::twins::Twins;
use duel_model::{Confidence, Evidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "db.small-log",
    description: "the database's log is so small that it is full all the time, and blocks are written to make room in it",
    signature: "a log of at most half the size, and half as much again is written for each transaction: to the log itself \
                (PostgreSQL), or of blocks back to the tables (MySQL and MariaDB); with `--may-copy-database` the gap goes away on a \
                private copy of the server with the other size",
    at_most: "confirmed",
    needs_machine: false,
};

/// What two equal servers write for a transaction differs by when their last checkpoints were; by half as much again it does not.
const MORE: f64 = 1.5;
/// Of a transaction of 25 µs a twentieth of a block, which takes some 10 µs to write, is 2 %, the margin.
const FEWEST_BLOCKS: f64 = 0.05;
/// Settings that have a server write as much more with any log.
const WRITE_AS_MUCH: [&str; 10] = [
    "sql.shared_buffers",
    "sql.buffer_pool_bytes",
    "sql.page_bytes",
    "sql.full_page_writes",
    "sql.wal_compression",
    "sql.wal_level",
    "sql.checksums",
    "sql.checkpoint_timeout",
    "sql.io_capacity",
    "sql.doublewrite",
];

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if !writes(gap) {
        return Err(Standing::RuledOut(gap.not_measured("what only reads fills no log".to_owned())));
    }
    same_system(gap)?;
    let unknown = || Standing::Undecided(gap.not_measured("the sizes of their logs are not both known".to_owned()));
    let sizes = LogSizes::of(gap).ok_or_else(unknown)?;
    let [of_slow, of_fast] = &sizes.told;
    let told = format!("{slow} has room for {of_slow} of log, {fast} for {of_fast}");
    if !sizes.is_smaller() {
        return Err(Standing::RuledOut(gap.first_contact(told)));
    }
    let facts = vec![gap.first_contact(told.clone())];
    let written = Written::of(gap);
    let more = written.as_ref().map_or_else(|| told.clone(), |written| format!("{told}; {}", written.told(gap)));
    let open = |text: String| Standing::Undecided(gap.at_reference(text));
    // Nobody writes less because the log is full.
    if written.as_ref().is_some_and(|written| !written.is_more(1.0)) {
        return Err(open(format!("{more}: as much, or hardly anything, as far as this run shows")));
    }
    let summary = format!("{slow} has a small log, and writes more: {more}.");
    let name = match gap.text(gap.slow, "sql.server") {
        Some(server) if server.starts_with("PostgreSQL") => "max_wal_size",
        Some(server) if server.starts_with("MySQL") => "innodb_redo_log_capacity",
        _ => "innodb_log_file_size",
    };
    let before = if name == "innodb_redo_log_capacity" { " (before 8.0.30 `innodb_log_file_size`)" } else { "" };
    let remedy = format!(
        "Set `{name} = {}`{before} on {slow} as on {fast}, or to what is written in some minutes. It costs as much room on the disk, and a \
         longer start after a crash.",
        sizes.set[1]
    );
    let suspected = |summary: String, remedy: String, further: Evidence| {
        if written.as_ref().is_none_or(|written| !written.is_more(MORE)) {
            return Err(open(format!("{more}{}", how_to_allow_copies(gap))));
        }
        if let Some(other) = differing(gap, &WRITE_AS_MUCH) {
            return Err(open(format!("{more}; {other}, which may be why{}", how_to_allow_copies(gap))));
        }
        for like in likes::held_against(gap, &ENTRY) {
            like.map_err(|against| against.settles(|id| open(format!("{more}; {id} would look the same"))))?;
        }
        let told = Told { summary, remedy, facts: facts.clone(), further: vec![further] };
        Ok(fit_by_host(gap, &ENTRY, None, Confidence::Possible, told))
    };
    let copies = match gap.on_copies(copy_with(sizes.fact)) {
        Twins::NotAllowed => {
            let text = "that more is written was counted, and what it is worth was not";
            return suspected(summary, remedy, gap.at_reference(text.to_owned() + &how_to_allow_copies(gap)));
        }
        Twins::Wanted(probe) => return Err(Standing::Wants(vec![probe])),
        Twins::Told(copies) => copies,
    };
    if copies.flip.as_ref().is_some_and(|flip| flip.moved()) {
        let summary = format!("{summary} On a private copy of its server with room for {of_fast} the gap goes away.");
        return Ok(fit_by_twin(gap, &ENTRY, copies, Told { summary, remedy, facts, further: Vec::new() }));
    }
    let tells_nothing = copies.tells_nothing();
    let Some(last) = copies.evidence.into_iter().next_back() else { return Err(open(more)) };
    // A copy begins behind a checkpoint, and is looked at for seconds: its log may not have been full yet.
    if tells_nothing { suspected(summary, remedy, last) } else { Err(Standing::Undecided(last)) }
}

/// What is written for each transaction because checkpoints are made.
struct Written {
    bytes: Option<[f64; 2]>,
    blocks: Option<[f64; 2]>,
}

impl Written {
    fn of(gap: &Gap<'_>) -> Option<Self> {
        let bytes = counted(gap, "server-log_bytes", "").ok();
        let blocks = counted(gap, "server-writes", "").ok();
        (bytes.is_some() || blocks.is_some()).then_some(Self { bytes, blocks })
    }

    /// Whether the slow side writes more than so many times as much, and as much as may matter. What a server writes back to its tables tells
    /// more than its log, where that is counted.
    fn is_more(&self, times: f64) -> bool {
        let least = if self.blocks.is_some() { FEWEST_BLOCKS } else { 0.0 };
        self.blocks.or(self.bytes).is_some_and(|[slow, fast]| slow > times * fast && slow >= least)
    }

    fn told(&self, gap: &Gap<'_>) -> String {
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        let bytes = self.bytes.map(|bytes| {
            let [of_slow, of_fast] = bytes.map(format_bytes);
            format!("{of_slow} to its log, {fast} {of_fast}")
        });
        let blocks = self
            .blocks
            .map(|[of_slow, of_fast]| format!("{of_slow:.2} blocks back to its tables, {fast} {of_fast:.2}"));
        let told = [blocks, bytes].into_iter().flatten().collect::<Vec<_>>().join("; ");
        format!("for each transaction {slow} writes {told}")
    }
}
