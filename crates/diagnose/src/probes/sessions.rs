//! Settings that duel's own sessions on databases may have: which, and what they are set to.

use crate::case::Case;
use duel_model::{Compared, Declaration, Facts, WorkloadPlan, assignments};
use std::collections::BTreeMap;

/// Which settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Those that have statements written to a log.
    Logging,
    /// All others.
    Other,
}

const LOGGING: [&str; 7] = [
    "sql.log_statement",
    "sql.log_duration",
    "sql.log_all_durations",
    "sql.general_log",
    "sql.slow_query_log",
    "sql.long_query_s",
    "sql.log_output",
];
/// What a database tells that is no setting of it, beside what is another thing on each server by its nature.
const NO_SETTINGS: [&str; 7] =
    ["sql.server", "sql.tls", "sql.rows", "sql.tables_bytes", "sql.rows_bytes", "sql.checked", "sql.cpus"];

impl Group {
    fn has(self, fact: &str) -> bool {
        fact.starts_with("sql.") && !NO_SETTINGS.contains(&fact) && LOGGING.contains(&fact) == (self == Self::Logging)
    }

    /// Its settings, as they are declared.
    pub(crate) fn declared(self, case: &Case<'_>) -> impl Iterator<Item = &'static Declaration> {
        let facts = case.plan.schema().facts.iter();
        facts.filter(move |of| of.label.is_some() && of.compared != Compared::Never && self.has(of.name))
    }
}

/// A target's facts: those of its sessions of load hold no settings.
fn facts<'a>(case: &Case<'a>, target: usize) -> Option<&'a Facts> {
    case.first_contact.get(target)?.as_ref()
}

/// The name under which sessions of all targets may set what a fact tells.
pub(crate) fn settable(case: &Case<'_>, fact: &str) -> Option<String> {
    let name = |target: usize| {
        let may = facts(case, target)?.list("sql.may_set");
        may.iter().find_map(|set| set.strip_prefix(fact)?.strip_prefix('='))
    };
    let first = name(0)?;
    (1..case.plan.targets.len()).all(|target| name(target) == Some(first)).then(|| first.to_owned())
}

/// What `--set` holds where sessions have this target's settings: one of them, or all of a group in which targets differ.
/// `Err`: why that cannot be had.
pub(crate) fn session_of(case: &Case<'_>, target: usize, group: Group, only: Option<&str>) -> Result<String, String> {
    let WorkloadPlan::Plain(kind) = &case.plan.workload else { return Err("the workload has no sessions".to_owned()) };
    let param = kind.schema.param("set").ok_or("the workload has no sessions")?;
    let mut session: BTreeMap<String, String> =
        assignments(kind.get(param)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let value = |target: usize, fact: &str| facts(case, target)?.value(fact).map(ToString::to_string);
    let mut sets = false;
    for declared in group.declared(case).filter(|declared| only.is_none_or(|only| only == declared.name)) {
        let Some((setting, wanted)) = settable(case, declared.name).zip(value(target, declared.name)) else { continue };
        if (0..case.plan.targets.len()).any(|other| value(other, declared.name).as_ref() != Some(&wanted)) {
            session.insert(setting.to_ascii_lowercase(), wanted);
            sets = true;
        }
    }
    let text = session.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",");
    match param.read(&text) {
        Ok(read) if sets && read == text => Ok(text),
        Ok(_) => Err("targets differ in no setting that a session may have".to_owned()),
        Err(why) => Err(why),
    }
}
