//! What is slow for a reason that none of the causes of databases is: a trigger that works for each row that is changed.

use super::*;
use crate::case::NAMELESS;

const INJECTION: Injection<Sql> = Injection::new(NAMELESS, slower);

pub(super) fn cases() -> Vec<Case> {
    let works = |twin: &mut SqlTwin| {
        twin.statements.push(match twin.system {
            System::Postgres => {
                "CREATE FUNCTION work() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN PERFORM md5(repeat(NEW.c, 2000)); RETURN NULL; END'; \
                 CREATE TRIGGER works AFTER UPDATE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION work()"
            }
            System::MariaDb => {
                "CREATE TRIGGER works AFTER UPDATE ON sbtest1 FOR EACH ROW SET @worked = md5(repeat(NEW.c, 4000))"
            }
        });
    };
    [POSTGRES, MARIADB]
        .into_iter()
        .map(|system| {
            let setup = Setup::rows(system, 20_000, "update-non-index").sessions(2);
            INJECTION.case(&without_waits(setup), "trigger-that-computes", works)
        })
        .collect()
}
