//! What databases tell of themselves, for several causes.

use crate::cause::{Standing, of_both};
use crate::gap::{Gap, View};
use duel_model::{Id, WorkloadPlan, format_bytes, parse_size_bytes, sanitize_line};

/// Several times as many of what a server counts: what two equal servers count differs by their state, but not by so much.
pub(crate) const MUCH_MORE: f64 = 3.0;

/// What tells how large a server's memory for blocks is.
pub(crate) const MEMORY_FOR_BLOCKS: [&str; 2] = ["sql.shared_buffers", "sql.buffer_pool_bytes"];

/// A block for each hundred transactions: of an op of 50 µs a hundredth of a block that takes 100 µs is 2 %, the margin.
const FEWEST_READS: f64 = 0.01;

/// Whether the slow side reads so many more blocks that they may not fit into its memory for them.
pub(crate) fn reads_again([slow_reads, fast_reads]: [f64; 2]) -> bool {
    slow_reads >= FEWEST_READS.max(MUCH_MORE * fast_reads)
}

/// How large the logs of both servers may become before these make a checkpoint for want of room.
pub(crate) struct LogSizes {
    /// The fact that tells it.
    pub(crate) fact: &'static str,
    /// As the servers tell it, slow side first: for people, and as it can be set.
    pub(crate) told: [String; 2],
    pub(crate) set: [String; 2],
    bytes: [u64; 2],
}

impl LogSizes {
    /// A log that has half the room is full twice as often; what differs by less than that, as 1 GB and 1,000 MB, is about the same.
    const MUCH_SMALLER: f64 = 0.5;

    /// `None`: it is not known of both.
    pub(crate) fn of(gap: &Gap<'_>) -> Option<Self> {
        let of = |name: &'static str| {
            let one = |side: usize| {
                gap.fact(side, |seen| {
                    // MySQL and MariaDB tell bytes, PostgreSQL a number and a unit.
                    let told = seen.value(name)?.to_string();
                    let bytes = parse_size_bytes(&told).ok()?;
                    let is_number = told.bytes().all(|byte| byte.is_ascii_digit());
                    let set = sanitize_line(&told);
                    Some((if is_number { format_bytes(bytes as f64) } else { set.clone() }, set, bytes))
                })
            };
            let (slow, fast) = (one(gap.slow)?, one(gap.fast)?);
            Some(Self { fact: name, told: [slow.0, fast.0], set: [slow.1, fast.1], bytes: [slow.2, fast.2] })
        };
        // Of several files older servers tell the size of one.
        if differing(gap, &["sql.log_files"]).is_some() {
            return None;
        }
        ["sql.max_wal_size", "sql.log_file_bytes"].into_iter().find_map(of)
    }

    /// Whether the slow side's is much smaller.
    pub(crate) fn is_smaller(&self) -> bool {
        self.bytes[0] as f64 <= Self::MUCH_SMALLER * self.bytes[1] as f64
    }
}

/// Names of phases.
pub(crate) struct Side;

impl Side {
    /// All that passes after somebody was let in.
    pub(crate) const PHASES_OF_STATEMENTS: [&'static str; 4] = ["send", "first-row", "rows", "commit"];
}

/// The value of a setting of the plan.
pub(crate) fn setting<'a>(gap: &Gap<'a>, name: &str) -> Option<&'a str> {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return None };
    kind.schema.param(name).map(|param| kind.get(param))
}

/// Whether the plan's op changes rows; of own SQL that is not known, and so it may.
pub(crate) fn writes(gap: &Gap<'_>) -> bool {
    let is_own = setting(gap, "script").is_some_and(|file| !file.is_empty());
    is_own
        || !matches!(
            setting(gap, "op"),
            Some("point-select" | "read-only" | "select-random-points" | "select-random-ranges")
        )
}

/// Servers of different makes cannot be held against each other by settings, plans and counters.
pub(crate) fn same_system(gap: &Gap<'_>) -> Result<(), Standing> {
    let make = |side: usize| {
        let text = gap.text(side, "sql.server")?;
        let make = ["PostgreSQL", "MySQL", "SQLite"].into_iter().find(|make| text.starts_with(make));
        Some(make.unwrap_or(if text.contains("MariaDB") { "MariaDB" } else { "another" }))
    };
    let [slow, fast] = of_both(gap, "what servers they are is not known of both", make)?;
    if slow == fast {
        return Ok(());
    }
    let text = format!("{slow} and {fast} cannot be held against each other by what they tell of themselves");
    Err(Standing::Undecided(gap.not_measured(text)))
}

/// What both servers counted for each transaction where the gap is looked at, slow side first.
pub(crate) fn counted(gap: &Gap<'_>, counter: &'static str, what: &str) -> Result<[f64; 2], Standing> {
    let id = Id::new(counter);
    let of = |view: &View<'_>| Some([*view.slow.counted_per_op.get(&id)?, *view.fast.counted_per_op.get(&id)?]);
    // The comparison is longer than a probe, and shows what is rare.
    of(&gap.comparison)
        .ok_or_else(|| Standing::Undecided(gap.not_measured(format!("the servers do not both tell {what}"))))
}

/// In what the servers differ that decides how often a commit waits for the disk, or whether.
pub(crate) fn differing_flushes(gap: &Gap<'_>) -> Option<String> {
    const SETTINGS: [&str; 8] = [
        "sql.synchronous_commit",
        "sql.fsync",
        "sql.wal_sync_method",
        "sql.commit_delay",
        "sql.flush_at_commit",
        "sql.sync_binlog",
        "sql.log_bin",
        "sql.flush_method",
    ];
    differing(gap, &SETTINGS)
}

/// The first of these settings in which the servers differ, in words.
pub(crate) fn differing(gap: &Gap<'_>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let of = |side: usize| gap.fact(side, |seen| seen.value(name).map(ToString::to_string));
        let (slow, fast) = (of(gap.slow)?, of(gap.fast)?);
        let [label, of_slow, of_fast] = [name.strip_prefix("sql.").unwrap_or(name), &slow, &fast].map(sanitize_line);
        let (on_slow, on_fast) = (gap.slow_name(), gap.fast_name());
        (slow != fast).then(|| format!("{label} is {of_slow} on {on_slow} and {of_fast} on {on_fast}"))
    })
}
