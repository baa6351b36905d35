//! What the tests of the driver share.

use duel_load::SlotOrder;
use duel_model::{LoopKind, Nanos, SECOND_NS};

/// Limits that bound a test which would hang, on a busy machine as well; a test of one of them sets its own.
const PATIENCE_NS: Nanos = 20 * SECOND_NS;

pub(crate) fn order(kind: LoopKind, duration_ns: Option<Nanos>, ops: Option<u64>) -> SlotOrder {
    SlotOrder {
        kind,
        duration_ns,
        ops,
        connect_timeout_ns: PATIENCE_NS,
        op_timeout_ns: PATIENCE_NS,
        grace_ns: PATIENCE_NS,
        seed: 3,
        stages: Vec::new(),
        deadline_ns: None,
        polling_workers: 0,
        polling_gives_way: true,
    }
}
