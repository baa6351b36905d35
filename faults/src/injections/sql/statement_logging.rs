//! `db.statement-logging`: the server writes down every statement.

use super::*;

const INJECTION: Injection<Sql> = Injection::new("db.statement-logging", slower);

pub(super) fn cases() -> Vec<Case> {
    let select = |system| Setup::rows(system, 20_000, "point-select");
    vec![
        INJECTION.case(&select(POSTGRES), "all-durations", set("log_min_duration_statement", "0")),
        INJECTION.case(&select(POSTGRES).sessions(4), "all-statements", set("log_statement", "all")),
        INJECTION.case(&select(MARIADB), "general-log", set("general-log", "ON")),
        INJECTION.case(&select(MARIADB).sessions(4), "slow-log-of-all", |twin| {
            twin.settings.extend([("slow-query-log", "ON"), ("long-query-time", "0")]);
        }),
    ]
}
