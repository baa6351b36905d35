//! `db.costly-connect`: a session takes long to begin, and each transaction has one of its own.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.costly-connect", slower);
/// What comes with PostgreSQL, and a session can load.
pub(super) const TEN_LIBRARIES: &str =
    "pg_stat_statements,auto_explain,pg_trgm,hstore,ltree,dblink,postgres_fdw,pgcrypto,tablefunc,citext";

pub(super) fn cases() -> Vec<Case> {
    let anew = |system, connections| {
        Setup::rows(system, 20_000, "point-select").sessions(connections).sends(|load| load.reconnects = true)
    };
    vec![
        INJECTION.case(&anew(POSTGRES, 1), "ten-libraries", set("session_preload_libraries", TEN_LIBRARIES)),
        INJECTION.case(&anew(MARIADB, 1), "init-sleeps-10ms", set("init-connect", "DO SLEEP(0.01)")),
        INJECTION.case(&anew(MARIADB, 4), "init-sleeps-4ms", set("init-connect", "DO SLEEP(0.004)")),
    ]
}
