//! Probes on private copies of databases.

use super::{Entry, FLIP, Kind};
use crate::case::Case;
use duel_model::{CopyPlan, CopySetting, TwinPlan};

/// A private copy of a target's server in its place, with its settings.
pub(crate) const COPY: Kind = Kind::new(&AS_IT_IS);

/// The same with one setting, which a fact tells, as another target has it.
pub(crate) const fn copy_with(fact: &'static str) -> Kind {
    Kind::new(&CHANGED).with_setting(fact)
}

/// The same as it is, but with tables that were written anew.
pub(crate) const REWRITTEN_COPY: Kind = Kind::new(&REWRITTEN);

static AS_IT_IS: Entry = Entry {
    id: "copy-of-",
    phrase: "with a private copy of its server in its place",
    question: "Does a private copy of the server show the gap?",
    possible: |_, case| most_bytes(case).map(|_| ()),
    varies: |kind, case, to| {
        to.twin = most_bytes(case)
            .ok()
            .map(|most_bytes| plan(kind, CopyPlan { most_bytes, set: None, rewrites_tables: false }));
    },
    is_copy: true,
    // Whether a copy is what it should be is found out when it is started.
    ..FLIP
};

static CHANGED: Entry = Entry {
    phrase: "with that setting of the others on a private copy of its server",
    question: "Does the gap go away on a private copy of the server with another setting?",
    possible: |kind, case| most_bytes(case).and_then(|_| other_setting(kind, case)).map(|_| ()),
    varies: |kind, case, to| {
        let order = most_bytes(case).and_then(|most_bytes| Ok((most_bytes, other_setting(kind, case)?)));
        to.twin = order
            .ok()
            .map(|(most_bytes, set)| plan(kind, CopyPlan { most_bytes, set: Some(set), rewrites_tables: false }));
    },
    ..AS_IT_IS
};

static REWRITTEN: Entry = Entry {
    id: "copy-rewritten-",
    phrase: "with its tables written anew on a private copy of its server",
    question: "Does the gap go away on a private copy of the server whose tables were written anew?",
    varies: |kind, case, to| {
        let copy = |most_bytes| CopyPlan { most_bytes, set: None, rewrites_tables: true };
        to.twin = most_bytes(case).ok().map(|most_bytes| plan(kind, copy(most_bytes)));
    },
    ..AS_IT_IS
};

fn plan(kind: Kind, copy: CopyPlan) -> TwinPlan {
    TwinPlan { of: kind.number, change: None, mask: None, copy: Some(copy) }
}

fn most_bytes(case: &Case<'_>) -> Result<u64, String> {
    case.most_copied_bytes.ok_or_else(|| "no copy of a database may be made".to_owned())
}

/// Under which name a copy of this target's server may be started with a setting; `None`: none can be made, or not with that one.
pub(crate) fn copy_setting<'a>(case: &Case<'a>, target: usize, fact: &str) -> Option<&'a str> {
    let may = case.first_contact.get(target)?.as_ref()?.list("sql.may_copy_with");
    may.iter().find_map(|set| set.strip_prefix(fact)?.strip_prefix('='))
}

/// The setting as the one other target has it.
fn other_setting(kind: Kind, case: &Case<'_>) -> Result<CopySetting, String> {
    let fact = kind.setting.ok_or("which setting is meant is not known")?;
    let name = copy_setting(case, kind.number, fact).ok_or("no copy of its server can be made with that setting")?;
    let of = |target: usize| case.first_contact.get(target)?.as_ref()?.value(fact).map(ToString::to_string);
    // Pairs are made with the baseline: of several targets beside it each has a value of its own.
    let other = match (kind.number, case.plan.targets.len()) {
        (0, 2) => 1,
        (0, _) => return Err("it is held against several others, which may have it differently".to_owned()),
        _ => 0,
    };
    let value = of(other).ok_or("how the other server has that setting is not known")?;
    Ok(CopySetting { fact: fact.to_owned(), name: name.to_owned(), value })
}
