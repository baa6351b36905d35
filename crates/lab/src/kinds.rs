//! The kinds of work that bring all that they need. A new one is a line here.

use duel_load::Kind;
use duel_model::{Facts, Plan, Schema, WorkloadPlan};

/// All of them.
pub const KINDS: &[&dyn Kind] = &[
    &duel_crypto::Crypto, //
    &duel_net::Net,
    &duel_disk::Disk,
    &duel_sql::Sql,
];
/// What they declare of themselves, for whoever reads kept plans.
pub const SCHEMAS: &[&Schema] = &[
    &duel_crypto::SCHEMA, //
    &duel_net::SCHEMA,
    &duel_disk::SCHEMA,
    &duel_sql::SCHEMA,
];

/// The kind whose targets have addresses like this one; `None`: it is none of them.
pub fn of_address(address: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.claims(address))
}

/// Holds the plan of an earlier run to the files that the run has read, as its targets' facts tell them.
pub fn hold(plan: &mut Plan, first_contact: &[Option<Facts>]) {
    if let WorkloadPlan::Plain(settings) = &mut plan.workload
        && let Some(kind) = of_schema(settings.schema)
        && let Some(facts) = first_contact.iter().flatten().next()
    {
        kind.hold(settings, facts);
    }
}

/// The kind that declares this of itself.
pub(crate) fn of_schema(schema: &Schema) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.schema() == schema)
}
