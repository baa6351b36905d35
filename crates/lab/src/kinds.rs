//! The kinds of work that there are. A new one is a line in each list.

use duel_load::{Kind, NullKind, PlainKind};
use duel_model::{Facts, KindPlan, Plan, Schema, Sort, WorkloadPlan};

/// Those whose targets have addresses that tell of them.
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
/// The one that all other addresses are for.
const WEB: &dyn Kind = &duel_http::Web;
/// The library that its TLS is made with, and the library's version.
pub(crate) const TLS_LIBRARY: &str = duel_http::TLS_LIBRARY;

/// The kind whose targets have addresses like this one; `None`: it is none of them, but the web or nothing.
pub fn of_address(address: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.claims(address))
}

/// Whether any kind, the web among them, has targets with addresses like this one.
pub fn is_claimed(address: &str) -> bool {
    of_address(address).is_some() || WEB.claims(address)
}

/// Holds the plan of an earlier run to the files that the run has read, as its targets' facts tell them.
pub fn hold(plan: &mut Plan, first_contact: &[Option<Facts>]) {
    if let Some(facts) = first_contact.iter().flatten().next() {
        of(&plan.workload).hold(&mut plan.workload, facts);
    }
}

/// Work that reads files at random places past the page cache, in blocks of so many bytes, so many at a time.
pub(crate) fn reads_of_files(block: u64, at_a_time: u64) -> KindPlan {
    let mut work = KindPlan::of(&duel_disk::SCHEMA);
    for (param, value) in [
        (&duel_disk::OP, "randread".to_owned()),
        (&duel_disk::BLOCK, block.to_string()),
        (&duel_disk::DEPTH, at_a_time.to_string()),
        (&duel_disk::DIRECT, "on".to_owned()),
    ] {
        work.settings.insert(param.id(), value);
    }
    work
}

/// Work that asks for so many bytes and waits for them.
pub(crate) fn exchanges(answer_bytes: u64) -> KindPlan {
    /// What is under way at once on a new connection (RFC 6928), in segments of the shortest size that TCP is sure of. Of longer answers it
    /// matters what the sender's TCP does, and of blocks that is told.
    const ONE_FLIGHT_BYTES: u64 = 10 * 536;
    let (op, size) = match answer_bytes {
        ..=ONE_FLIGHT_BYTES => ("rr", &duel_net::RESPONSE),
        _ => ("bulk-reverse", &duel_net::BLOCK),
    };
    let bytes = match size.sort {
        Sort::Bytes { least, most, .. } => answer_bytes.clamp(least.max(1), most),
        _ => answer_bytes,
    };
    let mut work = KindPlan::of(&duel_net::SCHEMA);
    for (param, value) in [(&duel_net::OP, op), (&duel_net::AHEAD, "off"), (size, &*bytes.to_string())] {
        work.settings.insert(param.id(), value.to_owned());
    }
    work
}

/// Whether the paths to targets of a kind can be measured alone: some cause asks for it.
pub fn measures_paths(schema: &Schema) -> bool {
    duel_diagnose::catalogue_of(schema.kind).iter().any(|cause| cause.id == "net.slow-path")
}

/// Whether an address can be that of a `duel net serve`.
pub fn check_net_server(address: &str) -> Result<(), String> {
    PlainKind::check(&duel_net::Net, &exchanges(1), address).map_err(|error| error.to_string())
}

/// The kind whose targets have this address.
pub(crate) fn claiming(address: &str) -> &'static dyn Kind {
    of_address(address).unwrap_or(WEB)
}

/// The kind that does this work.
pub(crate) fn of(workload: &WorkloadPlan) -> &'static dyn Kind {
    let schema = workload.schema();
    // No plan is made or read with a kind that is not known.
    KINDS.iter().copied().chain([WEB]).find(|kind| kind.schema() == schema).unwrap_or(&NullKind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_that_is_claimed_is_claimed_by_its_own_kind() {
        for (address, kind) in
            [("http://h/", "http"), ("HTTPS://h/", "http"), ("tcp://h:1", "net"), ("sqlite:a", "sql"), ("./a", "disk")]
        {
            assert!(is_claimed(address), "{address}");
            assert_eq!(claiming(address).schema().kind, kind, "{address}");
        }
        for address in ["ftp://h/", "https:h", "h", ""] {
            assert!(!is_claimed(address), "{address}");
        }
    }
}
