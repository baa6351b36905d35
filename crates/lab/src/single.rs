//! One target under load, as the plan's bound says.

use crate::bench::{Bench, SlotSpec};
use crate::hosts::Hosts;
use crate::pulse::died_in;
use crate::waiting;
use crate::watch::Watcher;
use crate::{LabError, cache};
use duel_model::{Bound, Nanos, Plan, Run, RunStatus, SECOND_NS, SlotRole};

/// Longest wait for answers after the load's end, unless ops may take less.
const LONGEST_GRACE_NS: Nanos = 5 * SECOND_NS;

/// Slots of a run whose scatter is asked for: t of as many values less one is within a fifth of the normal's.
const SLOTS: u32 = 8;

/// Runs the one slot that such a run has, or some where their scatter is wanted; `to_the_end` also where the target is gone.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    hosts: &Hosts,
    run: &mut Run,
    watcher: &mut dyn Watcher,
    to_the_end: bool,
) -> Result<(), LabError> {
    let (duration_ns, ops) = match plan.load.bound {
        Bound::Duration(duration_ns) => (Some(duration_ns), None),
        Bound::Ops(ops) => (None, Some(ops)),
    };
    bench.expect(duration_ns, ops);
    waiting::choose(bench, plan, run, watcher)?;
    watcher.label("measuring");
    let slots = if duration_ns.is_some() && cache::is_asked(plan) { SLOTS } else { 1 };
    if !to_the_end {
        bench.notice_death();
    }
    hosts.mark();
    for block in 0..slots {
        let (grace_ns, duration_ns) =
            (plan.load.op_timeout_ns.min(LONGEST_GRACE_NS), duration_ns.map(|ns| ns / u64::from(slots)));
        let spec = SlotSpec { duration_ns, ops, ..SlotSpec::timed(0, SlotRole::Measured, 0, grace_ns) };
        let slot = bench.slot(spec.at(block, 0), watcher)?;
        if let Some(status) = died_in(plan, &slot) {
            run.status = status;
        }
        run.slots.push(slot);
        if run.status != RunStatus::Complete || bench.is_stopped() {
            break;
        }
    }
    hosts.mark();
    Ok(())
}
