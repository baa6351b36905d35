//! `db.statement-logging`: the server writes down every statement.
//!
//! A line in a file of this machine's memory costs a few microseconds, which no client notices. So both twins have what makes a log cost more: a
//! disk of their own whose writes wait, or several logs with more in them. One of both has nothing to write there.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.statement-logging", slower);

pub(super) fn cases() -> Vec<Case> {
    let select = |system| Setup::rows(system, 20_000, "point-select");
    vec![
        INJECTION.case(&several(select(POSTGRES)), "all-durations", set("log_min_duration_statement", "0")),
        INJECTION.case(&on_slow_disk(select(POSTGRES).sessions(4)), "all-statements", set("log_statement", "all")),
        INJECTION.case(&on_slow_disk(select(MARIADB)), "general-log", set("general-log", "ON")),
        INJECTION.case(&on_slow_disk(select(MARIADB).sessions(4)), "slow-log-of-all", slow_log),
    ]
}

/// In the data folder, as the logs of MariaDB are anyway.
fn collected(twin: &mut SqlTwin) {
    twin.settings.extend((twin.system == POSTGRES).then_some(("logging_collector", "on")));
}

pub(super) fn on_slow_disk(setup: Setup<Sql>) -> Setup<Sql> {
    setup.with("writes-wait", |twin| {
        collected(twin);
        twin.volume = Some(VolumePlan { mount: "sync", ..volume() });
    })
}

/// Of PostgreSQL.
pub(super) fn several(setup: Setup<Sql>) -> Setup<Sql> {
    setup.with("several-logs", |twin| {
        collected(twin);
        twin.settings.extend([("log_destination", "stderr,csvlog,jsonlog"), ("log_line_prefix", "%m %a %r %v ")]);
    })
}

/// Of MariaDB.
pub(super) fn slow_log(twin: &mut SqlTwin) {
    twin.settings.extend([("slow-query-log", "ON"), ("long-query-time", "0")]);
}
