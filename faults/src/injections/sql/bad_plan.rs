//! `db.bad-plan`: the primary key is missing, so that each row is looked for in the whole table.

use super::*;

const INJECTION: Injection<Sql> = Injection::new("db.bad-plan", slower);

pub(super) fn cases() -> Vec<Case> {
    let keyless = |twin: &mut SqlTwin| {
        twin.statements.push(match twin.system {
            System::Postgres => "ALTER TABLE sbtest1 DROP CONSTRAINT sbtest1_pkey",
            System::MariaDb => "ALTER TABLE sbtest1 MODIFY id INTEGER NOT NULL, DROP PRIMARY KEY",
        });
    };
    vec![
        INJECTION.case(&Setup::rows(POSTGRES, 20_000, "point-select"), "no-primary-key", keyless),
        INJECTION.case(&Setup::rows(POSTGRES, 5_000, "update-non-index").sessions(2), "no-primary-key", keyless),
        INJECTION.case(&Setup::rows(MARIADB, 5_000, "point-select"), "no-primary-key", keyless),
        INJECTION.case(&Setup::rows(MARIADB, 10_000, "point-select").sessions(4), "no-primary-key", keyless),
    ]
}
