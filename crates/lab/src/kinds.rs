//! The kinds of work that bring all that they need. A new one is a line here.

use duel_load::Kind;
use duel_model::Schema;

/// All of them.
pub const KINDS: &[&dyn Kind] = &[&duel_crypto::Crypto, &duel_sql::Sql];
/// What they declare of themselves, for whoever reads kept plans.
pub const SCHEMAS: &[&Schema] = &[&duel_crypto::SCHEMA, &duel_sql::SCHEMA];

/// The kind whose targets have addresses like this one; `None`: it is none of them.
pub fn of_address(address: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.claims(address))
}

/// The kind that declares this of itself.
pub(crate) fn of_schema(schema: &Schema) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.schema() == schema)
}
