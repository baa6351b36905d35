//! `lock.contention`: what a trigger counts, it counts in one row for all, or in a few, and on the healthy twin in one of a thousand.
//!
//! A row that is held for as long as a commit takes is hardly waited for where commits take some microseconds, and MariaDB has no setting that
//! makes them take longer: `binlog_commit_wait_usec` ends its waiting for whoever waits for a row. So its trigger takes two milliseconds with
//! the row in its hand, on both twins, and commits wait for no disk.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("lock.contention", verify);

pub(super) fn cases() -> Vec<Case> {
    let updates = |system, connections| {
        counted(Setup::rows(system, 20_000, "update-non-index").sessions(connections))
    };
    vec![
        INJECTION.case(&updates(POSTGRES, 8), "one-row", in_one_row),
        INJECTION.case(&updates(POSTGRES, 16), "one-row", in_one_row),
        INJECTION.case(&updates(MARIADB, 8), "one-row", in_one_row),
        INJECTION.case(&updates(MARIADB, 16), "of-five-rows", of_five_rows),
    ]
}

/// On both the row is held for two milliseconds: by PostgreSQL for its commit, as on a disk that takes as long.
pub(super) fn counted(setup: Setup<Sql>) -> Setup<Sql> {
    let remark = match setup.twin.system {
        System::Postgres => "counted",
        System::MariaDb => "counted-in-2ms",
    };
    setup.with(remark, |twin| {
        twin.statements.extend(match twin.system {
            System::Postgres => [
                "CREATE TABLE counts (id integer PRIMARY KEY, n bigint); \
                 INSERT INTO counts SELECT id, 0 FROM generate_series(0, 999) id",
                "CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN UPDATE counts SET n = n + 1 WHERE id = NEW.id % 1000; RETURN NULL; END'; \
                 CREATE TRIGGER counts AFTER UPDATE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION counted()",
            ],
            System::MariaDb => [
                "CREATE TABLE counts (id INTEGER PRIMARY KEY, n BIGINT); \
                 INSERT INTO counts SELECT id - 1, 0 FROM sbtest1 WHERE id <= 1000",
                "CREATE TRIGGER counts AFTER UPDATE ON sbtest1 FOR EACH ROW \
                 UPDATE counts SET n = n + 1 + SLEEP(0.002) WHERE id = NEW.id % 1000",
            ],
        });
        twin.settings.extend_from_slice(match twin.system {
            System::Postgres => &[("commit_delay", "2000"), ("commit_siblings", "0")],
            System::MariaDb => &[("innodb-flush-log-at-trx-commit", "0")],
        });
    })
}

pub(super) fn in_one_row(twin: &mut SqlTwin) {
    twin.statements.push(match twin.system {
        System::Postgres => {
            "CREATE OR REPLACE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN UPDATE counts SET n = n + 1 WHERE id = NEW.id % 1; RETURN NULL; END'"
        }
        System::MariaDb => {
            "CREATE OR REPLACE TRIGGER counts AFTER UPDATE ON sbtest1 FOR EACH ROW \
             UPDATE counts SET n = n + 1 + SLEEP(0.002) WHERE id = NEW.id % 1"
        }
    });
}

/// Of MariaDB.
fn of_five_rows(twin: &mut SqlTwin) {
    twin.statements.push(
        "CREATE OR REPLACE TRIGGER counts AFTER UPDATE ON sbtest1 FOR EACH ROW \
         UPDATE counts SET n = n + 1 + SLEEP(0.002) WHERE id = NEW.id % 5",
    );
}

/// Over one connection there is nobody to wait for.
fn verify(arena: &SqlArena) -> anyhow::Result<Bite> {
    let alone = arena.statement_us(1)?;
    let many = Bite::ratio("us per statement over eight connections", arena.statement_us(8)?, 1.3);
    let ratio = alone.1 / alone.0;
    Ok(Bite { bites: many.bites && ratio < 1.2, figures: format!("{}; over one {ratio:.2}x", many.figures) })
}
