//! `db.bad-plan`: the server goes about a statement in another way, because of what nobody sees in its settings.
//!
//! duel makes no load on a table that has no index on `id` or none on `k`, so here both are there: the one on `k` is of a kind that the statement
//! cannot use, or the server is told to ignore it, or it does not use it since what it knows of the table is old or wrong.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.bad-plan", replanned);
/// What a table space costs is no setting that a session tells of; but who calls it a setting is right as well.
pub(super) const AS_SETTING: Injection<Sql> = INJECTION.or(&["db.config"]);

pub(super) fn cases() -> Vec<Case> {
    let points = |system| Setup::rows(system, 20_000, "select-random-points");
    let ranges = |system| Setup::rows(system, 20_000, "select-random-ranges");
    let costly = |twin: &mut SqlTwin| {
        twin.statements.push("ALTER TABLESPACE pg_default SET (random_page_cost = 1000)");
    };
    let update = Setup::rows(POSTGRES, 20_000, "update-non-index").sessions(2);
    let written_later = |setup: Setup<Sql>| setup.with("written-later", write_later);
    vec![
        INJECTION.case(&ranges(POSTGRES), "hash-index", hashed),
        INJECTION.case(&points(POSTGRES).sessions(4), "brin-index", of_blocks),
        INJECTION.case(&written_later(points(POSTGRES).sessions(2)), "old-statistics", not_analyzed),
        AS_SETTING.case(&Setup::rows(POSTGRES, 20_000, "point-select"), "costly-tablespace", costly),
        AS_SETTING.case(&without_waits(update), "costly-tablespace", costly),
        INJECTION.case(&points(MARIADB), "ignored-index", ignored),
        INJECTION.case(&ranges(MARIADB).sessions(4), "ignored-index", ignored),
        INJECTION.case(&written_later(ranges(MARIADB)), "old-statistics", not_analyzed),
    ]
}

// In one transaction, so that nobody sees the table without its index.

pub(super) fn hashed(twin: &mut SqlTwin) {
    twin.statements.push("DROP INDEX k_1; CREATE INDEX k_1 ON sbtest1 USING hash (k)");
}

pub(super) fn of_blocks(twin: &mut SqlTwin) {
    twin.statements.push("DROP INDEX k_1; CREATE INDEX k_1 ON sbtest1 USING brin (k)");
}

pub(super) fn ignored(twin: &mut SqlTwin) {
    twin.statements.push("ALTER TABLE sbtest1 ALTER INDEX k_1 IGNORED");
}

/// Statistics of the table as it was before its rows were written, which nobody renews by himself; then those of the table as it is, by the
/// last statement.
pub(super) fn write_later(twin: &mut SqlTwin) {
    twin.statements.extend_from_slice(match twin.system {
        // A column that has had a few values, of which none stands out, and has many now. It is written anew as a whole, so that no old rows
        // are left, and VACUUM alone renews no statistics.
        System::Postgres => &[
            "ALTER TABLE sbtest1 SET (autovacuum_enabled = off), ALTER k SET STATISTICS 10",
            "CREATE TABLE kept AS SELECT id, k FROM sbtest1; UPDATE sbtest1 SET k = id % 12",
            "ANALYZE sbtest1",
            "UPDATE sbtest1 SET k = kept.k FROM kept WHERE kept.id = sbtest1.id; DROP TABLE kept",
            "VACUUM FULL sbtest1",
            "VACUUM sbtest1",
            "ANALYZE sbtest1",
        ],
        // An empty table that was filled, and read from the disk once more, as after a restart: until then the server counts along.
        System::MariaDb => &[
            "CREATE TABLE filled LIKE sbtest1; ALTER TABLE filled STATS_PERSISTENT = 1 STATS_AUTO_RECALC = 0",
            "ANALYZE TABLE filled",
            "INSERT INTO filled SELECT * FROM sbtest1; DROP TABLE sbtest1; RENAME TABLE filled TO sbtest1",
            "FLUSH TABLE sbtest1",
            "ANALYZE TABLE sbtest1",
        ],
    });
}

/// The last statement is left out: the statistics stay those of the table as it was.
pub(super) fn not_analyzed(twin: &mut SqlTwin) {
    twin.statements.pop();
}

/// The servers tell different plans, and a statement takes longer, over one connection.
fn replanned(arena: &SqlArena) -> anyhow::Result<Bite> {
    let (healthy, faulty) = arena.plans()?;
    let plans = Bite { bites: healthy != faulty, figures: format!("plan: {faulty} against {healthy}") };
    Ok(plans.and(slower(arena)?))
}
