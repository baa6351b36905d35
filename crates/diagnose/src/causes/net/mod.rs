//! Causes of paths, where the network itself is the target: both sides carry the same bytes from the same program, and what differs
//! is the way. Each is found by a setting that takes it away, or makes it the same on both. A cause stands here when it was planted into
//! a real way and found.

mod small_mtu;

pub(super) use small_mtu::SmallMtu;

use crate::gap::Gap;
use duel_model::WorkloadPlan;

/// The work that these causes are for.
const KINDS: &[&str] = &["net"];

/// Whether the plan's op carries blocks, one after the other, in one direction.
fn carries_blocks(gap: &Gap<'_>) -> bool {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return false };
    kind.schema.param("op").is_some_and(|op| matches!(kind.get(op), "bulk" | "bulk-reverse"))
}
