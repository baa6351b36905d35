//! `db.small-log`: the log has room for so little that blocks are written all the time to make room in it.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.small-log", slower_when_full);

pub(super) fn cases() -> Vec<Case> {
    let update = |system, op| without_waits(Setup::rows(system, 100_000, op));
    let of_postgres = |op| small_buffer_pool::written(update(POSTGRES, op)).with("log-of-1GB", large);
    let of_mariadb = |op| update(MARIADB, op).with("log-of-512M", large);
    vec![
        INJECTION.case(&of_postgres("update-non-index"), "32MB", small),
        INJECTION.case(&of_postgres("update-index").sessions(4), "32MB", small),
        INJECTION.case(&of_mariadb("update-non-index"), "4M", small),
        INJECTION.case(&of_mariadb("update-index").sessions(4), "4M", small),
    ]
}

/// Room for more than is written while duel looks.
pub(super) fn large(twin: &mut SqlTwin) {
    twin.settings.push(match twin.system {
        System::Postgres => ("max_wal_size", "1GB"),
        System::MariaDb => ("innodb-log-file-size", "512M"),
    });
}

/// The least that each of them takes.
pub(super) fn small(twin: &mut SqlTwin) {
    twin.settings.extend_from_slice(match twin.system {
        System::Postgres => &[("min_wal_size", "32MB"), ("max_wal_size", "32MB")],
        System::MariaDb => &[("innodb-log-file-size", "4M")],
    });
}

/// Statements that fill the small log several times.
const MANY: u32 = 20_000;

fn slower_when_full(arena: &SqlArena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("us per statement", arena.statement_us_of(1, MANY)?, 1.15))
}
