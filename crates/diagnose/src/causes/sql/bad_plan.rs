//! `db.bad-plan`: the slow server goes about a statement in another way, and looks at more rows for it.
//!
//! Both servers tell their plans (EXPLAIN), which are compared by their nodes and indexes. A plan that differs is no cause by itself: the
//! slow server has to count several times as many rows, and the time has to pass in reading, not in connecting or committing. What
//! looks like it: settings of the planner that differ (`db.config`), whose flip says more; a table with dead rows, which has the same
//! plan.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::causes::likes;
use crate::evidence::database::{MUCH_MORE, Side, counted, same_system, setting};
use crate::evidence::db_settings::differ_as_sessions_may;
use crate::gap::{Gap, percent, phase_share_of};
use duel_model::{Confidence, capitalized};
use std::collections::BTreeSet;

static ENTRY: CauseEntry = CauseEntry {
    id: "db.bad-plan",
    description: "the server goes about a statement in a worse way: an index is missing, not used, or its statistics are old",
    signature: "the servers tell different plans for a statement, the slow one looks at three times as many rows \
                at least, half of the gap sits in statements, and no setting that differs may be why",
    at_most: "likely",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| Standing::Undecided(gap.first_contact(text));
    same_system(gap)?;
    let plans = |side: usize| gap.fact(side, |seen| Some(seen.list("sql.plans")).filter(|plans| !plans.is_empty()));
    let (Some(of_slow), Some(of_fast)) = (plans(gap.slow), plans(gap.fast)) else {
        return Err(open("the servers did not both tell how they go about the statements".to_owned()));
    };
    let differing: Vec<(&str, &str, &str)> = of_slow
        .iter()
        .filter_map(|plan| plan.rsplit_once(": "))
        .filter_map(|(statement, plan)| {
            let same = |other: &&String| other.rsplit_once(": ").is_some_and(|(of, _)| of == statement);
            let (_, other) = of_fast.iter().find(same)?.rsplit_once(": ")?;
            (plan != other).then_some((statement, plan, other))
        })
        .collect();
    let Some((statement, plan, other)) = differing.first() else {
        let told_of = of_slow.iter().filter_map(|plan| table_of(plan)).collect::<BTreeSet<_>>().len();
        if setting(gap, "tables").and_then(|count| count.parse().ok()).is_some_and(|tables: usize| told_of < tables) {
            return Err(open(format!(
                "both go about all statements in the same way on the {told_of} tables that they tell of"
            )));
        }
        return Err(Standing::RuledOut(gap.first_contact("both go about all statements in the same way".to_owned())));
    };
    let told = format!("`{statement}`: {plan} on {slow}, {other} on {fast}");
    let reference = gap.known_reference().ok_or_else(|| open("there is no reference".to_owned()))?;
    let [slow_rows, fast_rows] = counted(gap, "server-rows", "rows that they look at")?;
    if slow_rows < MUCH_MORE * fast_rows.max(1.0) {
        let text =
            format!("{told}; but {slow} looks at {slow_rows:.1} rows for each transaction, {fast} at {fast_rows:.1}");
        return Err(open(text));
    }
    for like in likes::held_against(gap, &ENTRY) {
        let is_why = |id: &str| open(format!("{told}; a setting that differs is why, see {id}"));
        let ruled_out = like.map_err(|against| against.settles(is_why))?;
        if ruled_out.is_none() && differ_as_sessions_may(gap) {
            return Err(open(format!("{told}; settings that differ may be why, see db.config")));
        }
    }
    let share = phase_share_of(reference, &Side::PHASES_OF_STATEMENTS);
    let Some(share) = share.filter(|share| *share >= 0.5) else {
        return Err(open(format!("{told}; but most of the gap does not sit in the statements")));
    };
    let rows = format!("{slow} looks at {slow_rows:.0} rows for each transaction, {fast} at {fast_rows:.1}");
    let summary = format!(
        "{slow} goes about a statement in another way: {told}. {}; {} of the gap sits there.",
        capitalized(&rows),
        percent(share)
    );
    let table = table_of(statement).unwrap_or("TABLE");
    let remedy = format!(
        "Look at the table's indexes on {slow} and {fast} (`\\d {table}`, `SHOW INDEX FROM {table}`): make the one that is missing, or \
         let it be used again; else `ANALYZE {table}` (`ANALYZE TABLE {table}` of MySQL and MariaDB), and EXPLAIN the statement once \
         more on both."
    );
    let facts = vec![gap.first_contact(told), gap.at_reference(rows)];
    // By the logarithm: a share of the time is at most that of the gap.
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, Told { summary, remedy, facts, further: Vec::new() }))
}

/// The table of a statement, as far as it can stand in a command as it is.
fn table_of(statement: &str) -> Option<&str> {
    let mut words = statement.split_whitespace();
    words.find(|word| matches!(*word, "FROM" | "INTO" | "UPDATE"))?;
    let is_plain = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    words.next().filter(|name| is_plain(name))
}

#[cfg(test)]
mod tests {
    use super::table_of;

    #[test]
    fn a_table_is_told_where_it_can_stand_in_a_command() {
        assert_eq!(table_of("SELECT c FROM sbtest3 WHERE id=?"), Some("sbtest3"));
        assert_eq!(table_of("UPDATE sbtest12 SET k=k+1 WHERE id=?: Index Scan"), Some("sbtest12"));
        assert_eq!(table_of("INSERT INTO sbtest2 VALUES"), Some("sbtest2"));
        for none in ["SELECT 1", "UPDATE ?", "DELETE FROM x`;id", "SELECT c FROM"] {
            assert_eq!(table_of(none), None, "{none}");
        }
    }
}
