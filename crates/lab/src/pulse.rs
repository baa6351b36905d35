//! Signs of life: when a target is gone.

use duel_load::Live;
use duel_model::{FailureKind, Interruption, Nanos, Plan, RunStatus, SECOND_NS, Slot, SlotRole};
use std::ops::ControlFlow;

/// A target that has given no sign of life for this long, while ops on it failed, is gone. Restarts of a service take
/// less, and whoever measures through one wants to see the hole that it leaves.
const GONE_AFTER_NS: Nanos = 10 * SECOND_NS;

/// Signs of life of the target while its slot runs.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Ops that the target answered, well or not.
    answered: u64,
    /// Ops without any answer, when it last gave one.
    silent_at_last_sign: u64,
    /// When it last answered, since the slot's begin.
    pub(crate) last_sign_ns: Nanos,
    /// Whether it is gone.
    pub(crate) is_gone: bool,
}

impl Pulse {
    /// Breaks once the target is gone. A target that is slow is not: ops on it do not fail.
    pub(crate) fn feel(&mut self, live: &Live, since_start_ns: Nanos) -> ControlFlow<()> {
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

/// What becomes of a run one of whose targets is gone: at what time, and how.
pub(crate) fn gone(plan: &Plan, target: usize, at_ns: Nanos, how: String) -> RunStatus {
    RunStatus::Interrupted(Interruption::TargetDied { target: plan.targets[target].name.clone(), at_ns, how })
}

/// What most of the ops without an answer met with, in words.
pub(crate) fn how_it_failed(slot: &Slot) -> String {
    let silent = slot.tally.failed.iter().filter(|(kind, _)| kind.is_silence());
    let most = silent.max_by_key(|&(_, count)| *count).map_or("no answer", |(kind, _)| FailureKind::name(*kind));
    format!("{most}, and no answer in the {} s that followed", GONE_AFTER_NS / SECOND_NS)
}

/// For how long targets have given no sign of life, slot after slot.
pub(crate) struct Pulses {
    /// Of each target: slots in a row without a success, and how long they waited.
    without: Vec<(u32, Nanos)>,
    /// A target that only keeps us waiting is gone after this time.
    patience_ns: Nanos,
}

impl Pulses {
    pub(crate) fn of(plan: &Plan) -> Self {
        let patience_ns = GONE_AFTER_NS.min(plan.load.op_timeout_ns);
        Self { without: vec![(0, 0); plan.targets.len()], patience_ns }
    }

    /// How the target of this slot died, in words, if it is gone now.
    ///
    /// One slot without an answer may be chance where few ops are due; two in a row are a target that is gone, if it
    /// refused. One that does not answer may only be slow, as long as an op has not been waited for long enough.
    pub(crate) fn feel(&mut self, slot: &Slot) -> Option<String> {
        let (slots, waited_ns) = &mut self.without[slot.target];
        let Some(how) = death(slot) else {
            if slot.role == SlotRole::Measured {
                (*slots, *waited_ns) = (0, 0);
            }
            return None;
        };
        *slots += 1;
        *waited_ns += slot.audit.workers.iter().map(|worker| worker.wall_ns).max().unwrap_or(slot.elapsed_ns);
        let only_waited =
            slot.tally.failed.keys().all(|kind| matches!(kind, FailureKind::Timeout | FailureKind::ConnectTimeout));
        (*slots > 1 && (!only_waited || *waited_ns >= self.patience_ns)).then_some(how)
    }
}

/// Whether a target may have died: a slot without a single success and with failures. What was seen, in words. What we
/// ran out of ourselves is not the target's death.
fn death(slot: &Slot) -> Option<String> {
    let tally = &slot.tally;
    let ours = |kind| tally.failed.get(&kind).copied().unwrap_or(0);
    let ours = ours(FailureKind::PortsExhausted) + ours(FailureKind::DescriptorsExhausted);
    (tally.ok == 0 && tally.failed_total() - ours + tally.in_flight > 0)
        .then(|| tally.failure_examples.first().cloned().unwrap_or_else(|| "no answer in time".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Tally;

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

    #[test]
    fn a_target_that_refuses_is_gone_at_once_and_one_that_is_slow_after_ten_seconds() {
        use duel_model::{GeneratorAudit, Series, WorkerAudit};
        let slot = |failed: &[(FailureKind, u64)], in_flight: u64, ok: u64| {
            let worker = WorkerAudit { wall_ns: 3 * SECOND_NS, ..WorkerAudit::default() };
            Slot {
                index: 0,
                target: 0,
                role: SlotRole::Measured,
                block: 0,
                repeat: 0,
                treatment: None,
                started_unix_ms: 0,
                offset_ns: 0,
                elapsed_ns: 0,
                offered_per_s: None,
                tally: Tally { failed: failed.iter().copied().collect(), in_flight, ok, ..Tally::default() },
                series: Series::default(),
                audit: GeneratorAudit { workers: vec![worker], ..GeneratorAudit::default() },
                negotiated: None,
            }
        };
        let after = |slots: &[Slot]| {
            let mut pulses = Pulses { without: vec![(0, 0)], patience_ns: GONE_AFTER_NS };
            slots.iter().map(|slot| pulses.feel(slot).is_some()).collect::<Vec<_>>()
        };
        let refused = slot(&[(FailureKind::Refused, 3)], 0, 0);
        assert_eq!(after(&[refused.clone(), refused]), [false, true]);
        let silent = slot(&[], 4, 0);
        assert_eq!(
            after(&[silent.clone(), silent.clone(), silent.clone(), silent.clone()]),
            [false, false, false, true]
        );
        let answered = slot(&[], 3, 1);
        let most = [silent.clone(), silent.clone(), silent.clone(), answered, silent.clone(), silent];
        assert!(after(&most).iter().all(|gone| !gone));
    }
}
