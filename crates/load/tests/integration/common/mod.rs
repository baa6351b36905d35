//! What the tests of the driver share.

use duel_load::SlotOrder;
use duel_model::{FailureKind, LoopKind, Meaning, Nanos, Noun, Phase, SECOND_NS, Schema, When};

/// The kind of work that is tried here.
pub(crate) const TRIED: Schema = Schema {
    kind: "tried",
    targets: "Hats",
    op: Noun { one: "try", many: "tries" },
    lane: Noun { one: "lane", many: "lanes" },
    shared_lane: Noun { one: "lane", many: "lanes" },
    phases: &[WAIT],
    failures: &[TIMEOUT, LOST],
    ..duel_model::null::SCHEMA
}
.sound();
pub(crate) const WAIT: Phase = Phase::at(0, "wait", When::Each);
pub(crate) const TIMEOUT: FailureKind = FailureKind::at(0, "timeout", Meaning::UnansweredInTime);
pub(crate) const LOST: FailureKind = FailureKind::at(1, "lost", Meaning::Lost);

/// Limits that bound a test which would hang, on a busy machine as well; a test of one of them sets its own.
const PATIENCE_NS: Nanos = 20 * SECOND_NS;

pub(crate) fn order(kind: LoopKind, duration_ns: Option<Nanos>, ops: Option<u64>) -> SlotOrder {
    SlotOrder { duration_ns, ops, seed: 3, ..SlotOrder::of(kind, PATIENCE_NS) }
}
