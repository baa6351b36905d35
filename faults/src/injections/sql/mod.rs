//! The faults of databases, each on PostgreSQL and on MariaDB where both can have it.

mod drawn;

use super::*;
use crate::kinds::sql::{Sql, SqlArena, SqlTwin, System, is_missing};
use crate::world::VolumePlan;

macro_rules! databases {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        pub(super) fn cases() -> Vec<Case> {
            let mut cases = Vec::new();
            $(cases.extend($module::cases().into_iter().map(where_there_is_such_a_server));)*
            cases
        }
    };
}

databases!(
    none,
    nameless,
    statement_logging,
    bad_plan,
    config,
    slow_flush,
    small_buffer_pool,
    bloat,
    small_log,
    costly_connect,
    contention,
);

const POSTGRES: System = System::Postgres;
const MARIADB: System = System::MariaDb;

/// What has to be installed is looked for, and its lack is told.
fn where_there_is_such_a_server(mut case: Case) -> Case {
    let is_of = |system: &System| case.setup.starts_with(&format!("sql-{}-", system.name()));
    let missing = [POSTGRES, MARIADB].into_iter().find(is_of).and_then(is_missing);
    if let (None, Some(program)) = (&case.unavailable, missing) {
        case.unavailable = Some(format!("{program} is not installed"));
    }
    case
}

/// A file system for a server's data, beside which a private copy has room, and what duel leaves free for the server.
fn volume() -> VolumePlan {
    // Tables of inodes are written when it is made, and not under load.
    VolumePlan { make: &["-E", "lazy_itable_init=0,lazy_journal_init=0"], ..VolumePlan::of("ext4", 4096) }
}

/// A server with another setting.
fn set(name: &'static str, value: &'static str) -> impl Fn(&mut SqlTwin) {
    move |twin| twin.settings.push((name, value))
}

/// Both with commits that nobody waits for: a disk's time would hide what the fault costs.
fn without_waits(setup: Setup<Sql>) -> Setup<Sql> {
    setup.with("no-waits", |twin| {
        twin.settings.push(match twin.system {
            System::Postgres => ("synchronous_commit", "off"),
            System::MariaDb => ("innodb-flush-log-at-trx-commit", "0"),
        });
    })
}

/// A statement takes longer, over one connection.
fn slower(arena: &SqlArena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("us per statement", arena.statement_us(1)?, 1.15))
}
