//! What is slow for a reason that none of the causes of databases is: a trigger that works for each row that is changed.

use super::*;
use crate::case::NAMELESS;

pub(super) const INJECTION: Injection<Sql> = Injection::new(NAMELESS, slower);

pub(super) fn cases() -> Vec<Case> {
    let works = |twin: &mut SqlTwin| {
        let work = match twin.system {
            System::Postgres => "md5(repeat(NEW.c, 2000))",
            System::MariaDb => "md5(repeat(NEW.c, 4000))",
        };
        twin.statements.push(crate::random::kept(trigger(twin.system, work)));
    };
    [POSTGRES, MARIADB]
        .into_iter()
        .map(|system| {
            let setup = Setup::rows(system, 20_000, "update-non-index").sessions(2);
            INJECTION.case(&without_waits(setup), "trigger-that-computes", works)
        })
        .collect()
}

/// What calls a function for each row that is changed.
pub(super) fn trigger(system: System, call: &str) -> String {
    match system {
        System::Postgres => format!(
            "CREATE FUNCTION work() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM {call}; RETURN NULL; END'; \
             CREATE TRIGGER works AFTER UPDATE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION work()"
        ),
        System::MariaDb => {
            format!("CREATE TRIGGER works AFTER UPDATE ON sbtest1 FOR EACH ROW SET @worked = {call}")
        }
    }
}
