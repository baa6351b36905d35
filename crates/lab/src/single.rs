//! One target under load, as the plan's bound says.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::hosts::Hosts;
use crate::watch::Watcher;
use duel_load::Live;
use duel_model::{Bound, FailureKind, Interruption, Nanos, Plan, Run, RunStatus, SECOND_NS, Slot, SlotRole};
use std::ops::ControlFlow;

/// Longest wait for answers after the load's end, unless ops may take less.
const LONGEST_GRACE_NS: Nanos = 5 * SECOND_NS;

/// A target that has given no sign of life for this long, while ops on it failed, is gone. Restarts of a service take
/// less, and whoever measures through one wants to see the hole that it leaves.
pub(crate) const GONE_AFTER_NS: Nanos = 10 * SECOND_NS;

/// Runs the one slot that such a run has; `to_the_end` also where the target is gone.
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
    watcher.label("measuring");
    let spec = SlotSpec {
        target: 0,
        role: SlotRole::Measured,
        block: 0,
        repeat: 0,
        duration_ns,
        ops,
        back_to_back: false,
        grace_ns: plan.load.op_timeout_ns.min(LONGEST_GRACE_NS),
    };
    let mut pulse = Pulse::default();
    hosts.mark();
    let slot = bench.slot_until(spec, watcher, &mut |live, since_start_ns| {
        if to_the_end { ControlFlow::Continue(()) } else { pulse.feel(live, since_start_ns) }
    })?;
    hosts.mark();
    if pulse.is_gone {
        run.status = RunStatus::Interrupted(Interruption::TargetDied {
            target: plan.targets[0].name.clone(),
            at_ns: slot.offset_ns + pulse.last_sign_ns,
            how: how_it_failed(&slot),
        });
    }
    run.slots.push(slot);
    Ok(())
}

/// Signs of life of the target while its slot runs.
#[derive(Debug, Default)]
struct Pulse {
    /// Ops that the target answered, well or not.
    answered: u64,
    /// Ops without any answer, when it last gave one.
    silent_at_last_sign: u64,
    /// When it last answered, since the slot's begin.
    last_sign_ns: Nanos,
    is_gone: bool,
}

impl Pulse {
    /// Breaks once the target is gone. A target that is slow is not: ops on it do not fail.
    fn feel(&mut self, live: &Live, since_start_ns: Nanos) -> ControlFlow<()> {
        let silent = live.silent();
        let answered = live.ok + live.failed_total() - silent;
        if answered > self.answered {
            *self = Self { answered, silent_at_last_sign: silent, last_sign_ns: since_start_ns, is_gone: false };
        }
        let silent_for_ns = since_start_ns.saturating_sub(self.last_sign_ns);
        self.is_gone = silent > self.silent_at_last_sign && silent_for_ns >= GONE_AFTER_NS;
        if self.is_gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What most of the ops without an answer met with, in words.
fn how_it_failed(slot: &Slot) -> String {
    let silent = slot.tally.failed.iter().filter(|(kind, _)| kind.is_silence());
    let most = silent.max_by_key(|&(_, count)| *count).map_or("no answer", |(kind, _)| FailureKind::name(*kind));
    format!("{most}, and no answer in the {} s that followed", GONE_AFTER_NS / SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(ok: u64, answered_badly: u64, silent: u64) -> Live {
        let failed = [(FailureKind::Status, answered_badly), (FailureKind::Refused, silent)].into();
        Live { ok, failed, ..Live::default() }
    }

    #[test]
    fn a_target_is_gone_after_ten_seconds_of_failures_without_an_answer() {
        let mut pulse = Pulse::default();
        assert!(pulse.feel(&live(100, 0, 0), SECOND_NS).is_continue());
        assert!(pulse.feel(&live(100, 0, 5), 2 * SECOND_NS).is_continue());
        assert!(pulse.feel(&live(100, 0, 900), 11 * SECOND_NS - 1).is_continue());
        assert!(pulse.feel(&live(100, 0, 901), 11 * SECOND_NS).is_break());
        assert_eq!((pulse.is_gone, pulse.last_sign_ns), (true, SECOND_NS));
    }

    #[test]
    fn slow_answers_and_error_statuses_are_signs_of_life() {
        let mut pulse = Pulse::default();
        assert!(pulse.feel(&live(0, 0, 0), 60 * SECOND_NS).is_continue());
        assert!(pulse.feel(&live(0, 1, 0), 61 * SECOND_NS).is_continue());
        assert!(pulse.feel(&live(0, 1, 9), 70 * SECOND_NS).is_continue());
        assert!(pulse.feel(&live(0, 2, 20), 71 * SECOND_NS).is_continue());
        assert!(pulse.feel(&live(0, 2, 20), 99 * SECOND_NS).is_continue());
    }

    #[test]
    fn a_target_that_never_answered_is_gone_as_well() {
        assert!(Pulse::default().feel(&live(0, 0, 3), GONE_AFTER_NS).is_break());
    }
}
