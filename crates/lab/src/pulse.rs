//! Signs of life: when a target is gone.

use duel_load::Live;
use duel_model::{
    FailureKind, Id, Interruption, MILLISECOND_NS, Meaning, Nanos, Plan, Run, RunStatus, SECOND_NS, Schema, Slot,
    SlotRole,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

/// A target that has given no sign of life for this long is gone, though its slot is not over: ops on it failed, or nobody
/// answered them. Restarts of a service take less, and whoever measures through one wants to see the hole that it leaves.
const GONE_AFTER_NS: Nanos = 10 * SECOND_NS;
/// After a slot that ended in silence: whoever still refuses after this time is gone. A service that is restarted by its
/// manager is back by then, or what follows is no comparison with what went before.
const REFUSED_FOR_NS: Nanos = 2 * SECOND_NS;
/// A target that has once let somebody wait for so long may do so again: so many times the longest wait are no silence.
const LONGEST_WAITS: Nanos = 2;
/// Between two looks at a slot no more time than this counts as silence. Looks are 0.1 s apart; if they are much further
/// apart, we stood still, and have not listened.
const LONGEST_LOOK_NS: Nanos = 200 * MILLISECOND_NS;
/// Where nothing was under way for this long, there was nothing to answer.
const IDLE_NS: Nanos = 2 * SECOND_NS;
/// Between two questions whether a target that refuses is back.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What has to be known of a target to tell silence from slowness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Longest time of an op.
    pub(crate) op_timeout_ns: Nanos,
    /// The longest answer that the target has given so far; `None`: it has given none.
    pub(crate) longest_ns: Option<Nanos>,
}

impl Patience {
    /// How long a target that only keeps us waiting is waited for.
    fn while_waiting_ns(self) -> Nanos {
        match self.longest_ns {
            Some(longest_ns) => GONE_AFTER_NS.max(LONGEST_WAITS * longest_ns),
            None => GONE_AFTER_NS.max(self.op_timeout_ns),
        }
    }
}

/// Signs of life of the target while its slot runs.
#[derive(Debug)]
pub(crate) struct Pulse {
    patience: Patience,
    /// Ops that the target answered, well or not.
    answered: u64,
    /// Ops without any answer, when it last gave one, and now.
    silent_at_last_sign: u64,
    silent: u64,
    /// For how long ops were under way or failed, and nobody answered.
    quiet_ns: Nanos,
    /// For how long nothing was under way.
    idle_ns: Nanos,
    last_look_ns: Nanos,
    /// Whether it is gone.
    pub(crate) is_gone: bool,
}

impl Pulse {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            answered: 0,
            silent_at_last_sign: 0,
            silent: 0,
            quiet_ns: 0,
            idle_ns: 0,
            last_look_ns: 0,
            is_gone: false,
        }
    }

    /// Breaks once the target is gone. A target that is slow is not: it has been as slow before.
    pub(crate) fn feel(&mut self, live: &Live, since_start_ns: Nanos) -> ControlFlow<()> {
        let looked_ns = since_start_ns.saturating_sub(self.last_look_ns).min(LONGEST_LOOK_NS);
        self.last_look_ns = since_start_ns;
        let silent = live.in_run_up.silent + live.silent;
        let answered = live.in_run_up.answered + live.ok + live.failed_total() - live.silent;
        let waits = live.in_run_up.started + live.started > answered + silent;
        self.idle_ns = if waits || silent > self.silent { 0 } else { self.idle_ns + looked_ns };
        self.silent = silent;
        if answered > self.answered {
            (self.answered, self.silent_at_last_sign, self.quiet_ns) = (answered, silent, 0);
        } else if self.idle_ns < IDLE_NS {
            self.quiet_ns += looked_ns;
        }
        let fails = silent > self.silent_at_last_sign && self.quiet_ns >= GONE_AFTER_NS;
        self.is_gone = fails || (waits && self.quiet_ns >= self.patience.while_waiting_ns());
        if self.is_gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What became of one question to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It answered, well or not.
    Given,
    /// It refused, or broke off.
    Refused,
    /// It did not answer in time.
    None,
}

/// Asks a target whose slot ended in silence until it answers or is gone: one op at a time, with the longest time that it may
/// take. `silent_ns` is for how long it has been silent. With an answer comes the time that somebody listened for it. Answers
/// whether it is gone; it is not where the user ends this.
pub(crate) fn ask_again<E>(
    patience: Patience,
    silent_ns: Nanos,
    is_stopped: &dyn Fn() -> bool,
    ask: &mut dyn FnMut(Nanos) -> Result<(Answer, Nanos), E>,
) -> Result<bool, E> {
    let mut so_far_ns = silent_ns;
    loop {
        // However long the silence before, a single op is given the time that it takes at its slowest, and some more.
        let least_ns = patience.longest_ns.map_or(SECOND_NS, |longest_ns| SECOND_NS.max(LONGEST_WAITS * longest_ns));
        let left_ns = patience.while_waiting_ns().saturating_sub(so_far_ns).max(least_ns);
        let (answer, listened_ns) = ask(left_ns)?;
        so_far_ns = so_far_ns.saturating_add(listened_ns);
        if is_stopped() || answer == Answer::Given {
            return Ok(false);
        }
        let limit_ns = if answer == Answer::Refused { REFUSED_FOR_NS } else { patience.while_waiting_ns() };
        if so_far_ns >= limit_ns {
            return Ok(true);
        }
        std::thread::sleep(ASK_EVERY);
        so_far_ns = so_far_ns.saturating_add(ASK_EVERY.as_nanos() as Nanos);
    }
}

/// What becomes of a run one of whose targets is gone: at what time, and how.
pub(crate) fn gone(plan: &Plan, target: usize, at_ns: Nanos, how: String) -> RunStatus {
    RunStatus::Interrupted(Interruption::TargetDied { target: plan.targets[target].name.clone(), at_ns, how })
}

/// What becomes of a run in one of whose slots the target died; `None` where it did not.
pub(crate) fn died_in(plan: &Plan, slot: &Slot) -> Option<RunStatus> {
    let died_ns = slot.died_ns?;
    Some(gone(plan, slot.target, slot.offset_ns.saturating_add(died_ns), how_it_failed(plan.schema(), slot)))
}

/// What most of the ops without an answer met with, in words.
fn how_it_failed(schema: &Schema, slot: &Slot) -> String {
    let silent = schema.failures.iter().filter(|kind| kind.means.is_silence());
    let tally = &slot.tally;
    let failed = |kind: &FailureKind| {
        let of = |counts: &BTreeMap<Id, u64>| counts.get(&kind.id()).copied().unwrap_or(0);
        of(&tally.failed) + of(&tally.failed_in_run_up)
    };
    let counts = silent.map(|kind| (kind.name, failed(kind))).filter(|&(_, count)| count > 0);
    match counts.max_by_key(|&(_, count)| count) {
        Some((name, _)) => format!("{name}, and no answer from then on"),
        None => format!("{} were taken and not answered from then on", schema.op.many),
    }
}

/// Slots of a target in a row without a success.
#[derive(Clone, Default)]
struct Silence {
    slots: u32,
    waited_ns: Nanos,
    /// The block of the last one that was not measured.
    block: Option<u32>,
}

/// For how long targets have given no sign of life, slot after slot.
pub(crate) struct Pulses {
    schema: &'static Schema,
    /// Of each target.
    without: Vec<Silence>,
    /// A target that only keeps us waiting is gone after this time.
    patience_ns: Nanos,
}

impl Pulses {
    /// Adds a slot to a run, at this time of it. Whether the run ends by that: the target does not live any more.
    pub(crate) fn ends(&mut self, run: &mut Run, slot: Slot, plan: &Plan, now_ns: Nanos) -> bool {
        let silent = self.feel(&slot);
        let ended = died_in(plan, &slot).or_else(|| Some(gone(plan, slot.target, now_ns, silent?)));
        run.slots.push(slot);
        let ends = ended.is_some();
        if let Some(status) = ended {
            run.status = status;
        }
        ends
    }

    pub(crate) fn of(plan: &Plan) -> Self {
        let patience_ns = GONE_AFTER_NS.min(plan.load.op_timeout_ns);
        Self { schema: plan.schema(), without: vec![Silence::default(); plan.targets.len()], patience_ns }
    }

    /// How the target of this slot died, in words, if it is gone now.
    ///
    /// One slot without an answer may be chance where few ops are due; two in a row are a target that is gone, if it
    /// refused. One that does not answer may only be slow, as long as an op has not been waited for long enough.
    pub(crate) fn feel(&mut self, slot: &Slot) -> Option<String> {
        let silence = &mut self.without[slot.target];
        let Some(how) = death(self.schema, slot) else {
            if slot.role == SlotRole::Measured {
                *silence = Silence::default();
            }
            return None;
        };
        // A block may have several sets of connections. Between the slots that begin them are turns, which may be answered.
        if slot.role != SlotRole::Measured && silence.block.replace(slot.block) == Some(slot.block) {
            return None;
        }
        silence.slots += 1;
        silence.waited_ns += slot.audit.workers.iter().map(|worker| worker.wall_ns).max().unwrap_or(slot.elapsed_ns);
        let waited = self.schema.failed(&slot.tally.failed, Meaning::is_waiting);
        let only_waited = waited == slot.tally.failed_total();
        (silence.slots > 1 && (!only_waited || silence.waited_ns >= self.patience_ns)).then_some(how)
    }
}

/// Whether a target may have died: a slot without a single success and with failures. What was seen, in words. What we
/// ran out of ourselves is not the target's death.
fn death(schema: &Schema, slot: &Slot) -> Option<String> {
    let tally = &slot.tally;
    let ours = schema.failed(&tally.failed, Meaning::is_ours);
    (tally.ok == 0 && tally.failed_total() - ours + tally.in_flight > 0)
        .then(|| tally.failure_examples.first().cloned().unwrap_or_else(|| "no answer in time".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_load::InRunUp;
    use duel_model::Tally;
    use duel_model::web::{SCHEMA, failure};

    fn live(ok: u64, answered_badly: u64, silent: u64, in_flight: u64) -> Live {
        let failed = [(failure::STATUS.id(), answered_badly), (failure::REFUSED.id(), silent)].into();
        Live { started: ok + answered_badly + silent + in_flight, ok, failed, silent, ..Live::default() }
    }

    fn pulse(longest_s: Option<u64>) -> Pulse {
        Pulse::new(Patience { op_timeout_ns: 30 * SECOND_NS, longest_ns: longest_s.map(|s| s * SECOND_NS) })
    }

    /// Looks ten times a second, beginning behind `from_ns`; answers when the target was gone, in tenths of a second.
    fn gone_at(pulse: &mut Pulse, from: u64, to: u64, seen: impl Fn(u64) -> Live) -> Option<u64> {
        (from + 1..=to).find(|&tenth| pulse.feel(&seen(tenth), tenth * SECOND_NS / 10).is_break())
    }

    #[test]
    fn a_target_is_gone_after_ten_seconds_of_failures_without_an_answer() {
        let mut pulse = pulse(Some(0));
        assert_eq!(gone_at(&mut pulse, 0, 10, |tenth| live(tenth, 0, 0, 1)), None);
        // It refuses from 1 s on, and more and more ops fail.
        assert_eq!(gone_at(&mut pulse, 10, 300, |tenth| live(10, 0, tenth, 0)), Some(110));
    }

    #[test]
    fn a_target_that_hangs_is_gone_in_the_middle_of_its_slot() {
        let mut hangs = pulse(Some(1));
        assert_eq!(gone_at(&mut hangs, 0, 10, |tenth| live(tenth, 0, 0, 8)), None);
        assert_eq!(gone_at(&mut hangs, 10, 6_000, |_| live(10, 0, 0, 8)), Some(110));
        // One whose answers took 9 s before is given 18 s.
        assert_eq!(gone_at(&mut pulse(Some(9)), 0, 6_000, |_| live(0, 0, 0, 8)), Some(180));
        // One that never answered is given the time that an op may take.
        assert_eq!(gone_at(&mut pulse(None), 0, 6_000, |_| live(0, 0, 0, 8)), Some(300));
    }

    #[test]
    fn answers_and_error_statuses_are_signs_of_life_and_a_pause_is_no_silence() {
        assert_eq!(gone_at(&mut pulse(Some(1)), 0, 900, |tenth| live(0, tenth / 90, tenth, 1)), None);
        // Two ops failed, and then none was due for a minute and a half.
        assert_eq!(gone_at(&mut pulse(Some(1)), 0, 900, |_| live(100, 0, 2, 0)), None);
    }

    /// In a run-up as long as that of a path of some seconds, and in the slot behind it.
    #[test]
    fn who_answers_in_a_run_up_lives_and_who_does_not_is_gone() {
        let in_run_up = |answered: u64, silent: u64| Live {
            in_run_up: InRunUp { started: answered + silent + 1, answered, silent },
            ..Live::default()
        };
        let mut lives = pulse(Some(1));
        assert_eq!(gone_at(&mut lives, 0, 300, |tenth| in_run_up(tenth, 0)), None);
        let behind_it =
            |tenth| Live { in_run_up: InRunUp { started: 300, answered: 300, silent: 0 }, ..live(tenth, 0, 0, 1) };
        assert_eq!(gone_at(&mut lives, 300, 310, behind_it), None);
        let hangs = |_| Live { in_run_up: InRunUp { started: 300, answered: 300, silent: 0 }, ..live(310, 0, 0, 1) };
        assert_eq!(gone_at(&mut lives, 310, 600, hangs), Some(410));
        assert_eq!(gone_at(&mut pulse(Some(1)), 0, 300, |_| in_run_up(10, 0)), Some(101), "it hangs in the run-up");
        assert_eq!(gone_at(&mut pulse(Some(1)), 0, 300, |tenth| in_run_up(10, tenth)), Some(101), "it refuses there");
    }

    #[test]
    fn while_we_stand_still_nobody_is_silent() {
        let mut pulse = pulse(Some(1));
        assert!(pulse.feel(&live(10, 0, 0, 8), SECOND_NS / 10).is_continue());
        assert!(pulse.feel(&live(10, 0, 0, 8), 60 * SECOND_NS).is_continue(), "a minute between two looks");
        assert!(pulse.feel(&live(11, 0, 0, 8), 60 * SECOND_NS + 1).is_continue());
    }

    #[test]
    fn who_is_asked_again_is_gone_or_answers() {
        let patience = Patience { op_timeout_ns: 30 * SECOND_NS, longest_ns: Some(SECOND_NS) };
        let asked = |silent_ns: Nanos, answers: &[Answer]| {
            let (mut answers, mut given) = (answers.iter(), Vec::new());
            let gone = ask_again(patience, silent_ns, &|| false, &mut |left_ns| {
                given.push(left_ns.div_ceil(SECOND_NS));
                let answer = *answers.next().unwrap();
                Ok::<_, ()>((answer, if answer == Answer::None { left_ns } else { 0 }))
            });
            (gone.unwrap(), given)
        };
        assert_eq!(asked(SECOND_NS, &[Answer::Given]), (false, vec![9]));
        assert!(!asked(SECOND_NS, &[Answer::Refused, Answer::Given]).0, "it was restarted");
        assert!(asked(2 * SECOND_NS, &[Answer::Refused]).0);
        assert_eq!(asked(60 * SECOND_NS, &[Answer::None]), (true, vec![2]), "it is given twice its longest time");
        // Ops may take less time than a target is waited for.
        let mut answers = [(Answer::None, SECOND_NS / 2), (Answer::Given, 0)].into_iter();
        assert_eq!(ask_again(patience, 9 * SECOND_NS, &|| false, &mut |_| answers.next().ok_or(())), Ok(false));
        // What went by while we stood still is not held against it.
        let mut answers = [(Answer::None, 0), (Answer::Given, 0)].into_iter();
        assert_eq!(ask_again(patience, 9 * SECOND_NS, &|| false, &mut |_| answers.next().ok_or(())), Ok(false));
        assert_eq!(ask_again(patience, 0, &|| true, &mut |_| Ok::<_, ()>((Answer::Refused, 0))), Ok(false));
    }

    #[test]
    fn a_target_that_refuses_is_gone_at_once_and_one_that_is_slow_after_ten_seconds() {
        use duel_model::{GeneratorAudit, WorkerAudit};
        let slot = |failed: &[(Id, u64)], in_flight: u64, ok: u64| {
            let worker = WorkerAudit { wall_ns: 3 * SECOND_NS, ..WorkerAudit::default() };
            Slot {
                tally: Tally { failed: failed.iter().copied().collect(), in_flight, ok, ..Tally::default() },
                audit: GeneratorAudit { workers: vec![worker], ..GeneratorAudit::default() },
                ..Slot::empty(0, SlotRole::Measured)
            }
        };
        let after = |slots: &[Slot]| {
            let mut pulses = Pulses { schema: &SCHEMA, without: vec![Silence::default()], patience_ns: GONE_AFTER_NS };
            slots.iter().map(|slot| pulses.feel(slot).is_some()).collect::<Vec<_>>()
        };
        let refused = slot(&[(failure::REFUSED.id(), 3)], 0, 0);
        assert_eq!(after(&[refused.clone(), refused.clone()]), [false, true]);
        // Sets of new connections that get no answer, in one block and in two.
        let anew = |block: u32| Slot { role: SlotRole::Warmup, block, ..refused.clone() };
        assert_eq!(after(&[anew(0), anew(0), anew(0), slot(&[], 0, 9), anew(1), anew(1)]), [false; 6]);
        assert_eq!(after(&[anew(0), anew(1)]), [false, true]);
        assert_eq!(after(&[anew(0), refused.clone()]), [false, true]);
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
