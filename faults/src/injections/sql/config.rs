//! `db.config`: a setting that is worth time, on one of both.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.config", slower);

pub(super) fn cases() -> Vec<Case> {
    let wide = |system| Setup::rows(system, 20_000, "read-only").sends(|load| load.range = 5_000);
    vec![
        INJECTION.case(&wide(POSTGRES), "work_mem-64kB", set("work_mem", "64kB")),
        // The planner takes another way because of it, which is as right a name.
        INJECTION.or(&["db.bad-plan"]).case(&Setup::rows(POSTGRES, 20_000, "point-select"), "no-index-scans", |twin| {
            twin.settings.extend([("enable_indexscan", "off"), ("enable_bitmapscan", "off")]);
        }),
        // Each commit waits for the disk there, which is as right a name.
        INJECTION.or(&["disk.slow-flush"]).case(
            &Setup::rows(POSTGRES, 20_000, "update-non-index"),
            "commits-wait-2ms",
            |twin| twin.settings.extend([("commit_delay", "2000"), ("commit_siblings", "0")]),
        ),
        // None that a session may change: duel can tell it, and cannot prove it.
        INJECTION.case(
            &Setup::rows(MARIADB, 20_000, "update-non-index")
                .with("both-flush-late", |twin| twin.settings.push(("innodb-flush-log-at-trx-commit", "0"))),
            "binlog-synchronous",
            |twin| twin.settings.extend([("log-bin", "binlog"), ("server-id", "1"), ("sync-binlog", "1")]),
        ),
    ]
}
