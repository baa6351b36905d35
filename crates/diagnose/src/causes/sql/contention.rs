//! `lock.contention` of databases: transactions wait for what others hold, on the slow server alone.
//!
//! The gap does not show over one connection, and the server itself tells how long sessions waited for locks: MySQL counts it,
//! PostgreSQL's sessions are looked at. What looks like it: a commit that takes long while locks are held (then the gap shows over one
//! connection, too), and few CPUs or connections, where nobody waits for a lock.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::database::{counted, setting};
use crate::gap::{Flip, Gap, Look, percent};
use crate::probes::ALONE;
use duel_model::{Confidence, format_duration_ns};

/// The same cause as of web servers.
static ENTRY: CauseEntry = CauseEntry {
    id: "lock.contention",
    description: "requests that are served at the same time hinder each other: with more of them, less gets done",
    signature: "over one connection at most half of the gap shows, and the server tells of longer waits for locks, \
                worth a quarter of it at least",
    at_most: "likely",
    needs_machine: false,
};

/// Most of the gap that may show over one connection: with more of it there, it is not one of many.
const MOST_ALONE: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    gap.needs_gap_of_means()?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let many = &gap.comparison;
    let open = |text: String| Standing::Undecided(gap.evidence(many, text));
    if gap.case.plan.lanes() == 1 {
        return Err(Standing::RuledOut(gap.not_measured("over one connection nobody waits for another".to_owned())));
    }
    let alone = match gap.look(ALONE) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(open(why)),
    };
    // Of the rest, what is held for as long as the slow part takes may be all.
    if alone.log.mid >= MOST_ALONE * many.log.mid && alone.log.low() > 0.0 {
        let text = format!("over one connection, where nobody waits for another: {}", gap.tell(&alone));
        let line = gap.evidence(&alone, text);
        let is_all = alone.log.low() >= Flip::EXPLAINS * many.log.mid;
        return Err(if is_all { Standing::RuledOut(line) } else { Standing::Undecided(line) });
    }
    let [of_slow, of_fast] = counted(gap, "server-lock_ns", "how long sessions wait for locks")?;
    let told = format!(
        "for each transaction {} is waited for locks on {slow}, {} on {fast}",
        format_duration_ns(of_slow),
        format_duration_ns(of_fast)
    );
    let (Some(slow_ns), Some(difference)) = (many.slow_ns(), many.difference_ns()) else {
        return Err(open("how long a transaction takes is not known".to_owned()));
    };
    let waited_ns = (of_slow - of_fast).max(0.0);
    let share_of_time = waited_ns / difference.mid;
    if share_of_time < Flip::NOTEWORTHY {
        let line = gap.evidence(many, format!("{told}: {} of the gap", percent(share_of_time)));
        // Locks within the server, of pages and of its log, are none of rows.
        return Err(Standing::Undecided(line));
    }
    let without_ns = (slow_ns - waited_ns).max(slow_ns / many.ratio);
    let share = (slow_ns / without_ns).ln() / many.log.mid;
    let connections = gap.case.plan.lanes();
    let summary = format!(
        "Transactions wait for each other on {slow}: over {connections} connections, {told}; over one, {}. That is worth {} of the gap.",
        gap.tell(&alone),
        percent(share)
    );
    let hot = if setting(gap, "keys") == Some("uniform") {
        ""
    } else {
        " Fewer rows that all want help, too (`--keys uniform` tells)."
    };
    let remedy = format!(
        "Find what they wait for on {slow}: `SELECT * FROM pg_locks WHERE NOT granted` with `pg_blocking_pids`, or `SHOW ENGINE INNODB \
         STATUS` and `information_schema.innodb_trx`, while the comparison runs; a trigger, a counter or a foreign key makes one row \
         everybody's. Shorter transactions and fewer connections at a time take its edge off.{hot}"
    );
    let further = vec![gap.evidence(many, told)];
    let told = Told { summary, remedy, facts: Vec::new(), further };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told).with(|fit| fit.is_under_load = true))
}
