//! The schema of ops that do nothing.

use crate::schema::{FailureKind, Meaning, Noun, Schema};

/// What they declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "null",
    targets: "null:, which sends nothing",
    op: Noun { one: "op", many: "ops" },
    lane: Noun { one: "connection", many: "connections" },
    shared_lane: Noun { one: "stream", many: "streams" },
    phases: &[],
    failures: &[FailureKind::at(0, "timeout", Meaning::UnansweredInTime)],
    bytes: "bytes read",
    facts_title: "Negotiated",
    facts: &[],
    params: &[],
    runs_targets: false,
    reaches: &[],
    threads: crate::Threads::OfDuel,
    depth: None,
    replaces: None,
    counters: &[],
    parts: None,
    held_back: None,
    streamed: None,
}
.sound();
