//! `db.small-log`: the log has room for so little that blocks are written all the time to make room in it.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.small-log", slower_when_full);

pub(super) fn cases() -> Vec<Case> {
    // PostgreSQL's least log, two segments of 16 MB, costs too little on a quiet machine to be noticed (1.08 times the time of a statement).
    let on = |op, connections| {
        let setup = without_waits(Setup::rows(MARIADB, 100_000, op).sessions(connections));
        INJECTION.case(&setup.with("log-of-512M", large), "4M", small)
    };
    vec![on("update-non-index", 4), on("update-index", 4), on("update-index", 8)]
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

/// With statements over all connections that fill the small log several times: PostgreSQL's holds some 2,000 blocks, MariaDB's some 10,000
/// changes of a row.
fn slower_when_full(arena: &SqlArena) -> anyhow::Result<Bite> {
    let statements = match arena.system() {
        System::Postgres => 5_000,
        System::MariaDb => 20_000,
    };
    let connections = arena.connections();
    Ok(Bite::ratio("us per statement", arena.statement_us_of(connections, statements / connections)?, 1.15))
}
