//! What is told before any figure, and slots that show the generator instead of their target.

use crate::synthetic::*;
use duel_model::web::failure;
use duel_model::{
    Arrival, Call, Distribution, DoubtId, FailureKind, HeadlineKind, Interruption, LoopKind, Metric, Plan, Run,
    RunStatus, SECOND_NS, Slot, Standstill, Verdict, Versions, WorkerAudit,
};
use duel_stats::judge;

fn run(plan: Plan, slots: Vec<Slot>) -> Run {
    Run {
        id: "test".into(),
        started_unix_ms: 0,
        first_contact: vec![None; plan.targets.len()],
        plan,
        versions: Versions::default(),
        slots,
        status: RunStatus::Complete,
        doubts: vec![],
        hosts: Vec::new(),
        explanation: None,
        waiting: None,
    }
}

/// B takes `factor` as long as A.
fn duel(factor: f64) -> Vec<Slot> {
    blocks(10, 2, |block, repeat, target| ripple(block, repeat, target) * if target == 1 { factor } else { 1.0 })
}

/// So many ops of each slot of B fail.
fn failing(kind: FailureKind, failed: u64, status: Option<u16>) -> Vec<Slot> {
    let mut slots = duel(1.0);
    for slot in slots.iter_mut().filter(|slot| slot.target == 1) {
        slot.tally.ok -= failed;
        slot.tally.failed = [(kind.id(), failed)].into();
        slot.tally.statuses = status.map(|status| (status, failed)).into_iter().collect();
    }
    slots
}

fn told(verdict: &Verdict) -> Vec<(HeadlineKind, &str)> {
    verdict.headlines.iter().map(|headline| (headline.kind, headline.text.as_str())).collect()
}

#[test]
fn a_target_that_fails_more_than_one_request_of_a_hundred_is_told_first() {
    let judged = |slots| judge(&run(plan(2), slots));
    let verdict = judged(failing(failure::STATUS, 200_000, Some(503)));
    assert_eq!(told(&verdict), [(HeadlineKind::Failing, "B fails 20 % of its requests (status 503)")]);
    assert_eq!(verdict.headlines[0].share, Some(0.2));
    assert_eq!(verdict.headline("B").map(|headline| headline.kind), Some(HeadlineKind::Failing));
    assert_eq!(verdict.headline("A"), None);
    let verdict = judged(failing(failure::REFUSED, 1_000_000, None));
    assert_eq!(told(&verdict), [(HeadlineKind::Failing, "B fails all of its requests (refused)")]);
    assert_eq!(told(&judged(failing(failure::RESET, 9_999, None))), [], "that is a doubt");
    assert_eq!(told(&judged(failing(failure::RESET, 10_001, None))).len(), 1);
    assert_eq!(told(&judged(failing(failure::PORTS_EXHAUSTED, 500_000, None))), [], "that is our own");
    assert_eq!(told(&judged(duel(3.0))), [], "who is slow does what was asked");
}

#[test]
fn what_a_target_failed_after_its_death_is_its_death() {
    let mut run = run(plan(2), failing(failure::REFUSED, 500_000, None));
    let how = "refused, and no answer from then on".to_owned();
    run.status = RunStatus::Interrupted(Interruption::TargetDied { target: "B".into(), at_ns: 1_500_000_000, how });
    let text = "Target died: B stopped answering after 1.50 s (refused, and no answer from then on); what follows was \
                measured until then";
    assert_eq!(told(&judge(&run)), [(HeadlineKind::TargetDied, text)]);
    // The other one's failures are told behind it.
    for slot in run.slots.iter_mut().filter(|slot| slot.target == 0) {
        slot.tally.ok -= 100_000;
        slot.tally.failed = [(failure::TIMEOUT.id(), 100_000)].into();
    }
    let verdict = judge(&run);
    let kinds: Vec<_> = verdict.headlines.iter().map(|headline| (headline.kind, headline.target.as_str())).collect();
    assert_eq!(kinds, [(HeadlineKind::TargetDied, "B"), (HeadlineKind::Failing, "A")]);
}

#[test]
fn a_rate_that_is_not_reached_is_told_first() {
    let judged = |ended: u64, elapsed_s: f64| {
        let mut plan = plan(1);
        plan.load.kind = LoopKind::Open { rate_per_s: 2_000.0, arrival: Arrival::Constant };
        let mut one = slot(0, 0, 0, elapsed_s);
        (one.tally.started, one.tally.ok) = (ended, ended);
        judge(&run(plan, vec![one]))
    };
    // All of 8,000 were answered in the end: it took more than twice the time.
    let verdict = judged(8_000, 8.78);
    assert_eq!(
        told(&verdict),
        [(HeadlineKind::RateNotReached, "A answers 911/s of the 2,000/s that were asked for (46 %)")]
    );
    // Each of its connections was at an op for all of the time.
    let mut plan = plan(1);
    plan.load.kind = LoopKind::Open { rate_per_s: 2_000.0, arrival: Arrival::Constant };
    let mut one = slot(0, 0, 0, 8.78);
    (one.tally.started, one.tally.ok) = (8_000, 8_000);
    one.tally.service = Distribution::from_values([(8.7e9 * f64::from(plan.lanes())) as u64]);
    let busy = judge(&run(plan.clone(), vec![one]));
    let all = format!("A answers 911/s of the 2,000/s that were asked for (46 %): all {} were busy", plan.all_lanes());
    assert_eq!(told(&busy), [(HeadlineKind::RateNotReached, all.as_str())]);
    assert_eq!(told(&judged(8_000, 4.0)), []);
    assert_eq!(told(&judged(7_999, 4.0)), [], "a slot has up to one op less than its rate times its length");
    assert_eq!(told(&judged(7_800, 4.0)).len(), 1);
}

#[test]
fn what_was_under_way_when_the_user_ended_the_run_is_nobodys_shortfall() {
    let judged = |status: RunStatus| {
        let mut plan = plan(1);
        plan.load.kind = LoopKind::Open { rate_per_s: 50.0, arrival: Arrival::Constant };
        let mut one = slot(0, 0, 0, 3.0);
        // Each answer takes two seconds.
        (one.tally.started, one.tally.ok, one.tally.in_flight) = (150, 50, 100);
        judge(&Run { status, ..run(plan, vec![one]) })
    };
    assert_eq!(told(&judged(RunStatus::Interrupted(Interruption::User))), []);
    assert_eq!(told(&judged(RunStatus::Complete)).len(), 1);
}

/// The generator stands still for `share` of each slot that is `picked`, which then takes ten times as long.
fn standing_still(share: f64, picked: impl Fn(&Slot) -> bool) -> Vec<Slot> {
    let mut slots = duel(1.0);
    for slot in slots.iter_mut().filter(|slot| picked(slot)) {
        slot.elapsed_ns *= 10;
        let gap_ns = (slot.elapsed_ns as f64 * share) as u64;
        let mut standstill = Standstill::default();
        if gap_ns > 0 {
            standstill.add(gap_ns);
        }
        let worker = |standstill| WorkerAudit { wall_ns: SECOND_NS, standstill, ..WorkerAudit::default() };
        slot.audit.workers = vec![worker(Standstill::default()), worker(standstill)];
    }
    slots
}

#[test]
fn slots_in_which_the_generator_stood_still_are_not_judged() {
    let spoilt = |slot: &Slot| slot.target == 1 && slot.block < 4;
    let verdict = judge(&run(plan(2), standing_still(0.9, spoilt)));
    let pair = &verdict.pairs[0];
    assert_eq!((pair.call, pair.slots), (Call::Equivalent, 24), "{pair:?}");
    let doubt = verdict.doubts.iter().find(|doubt| doubt.id == DoubtId::GeneratorStoodStill).unwrap();
    assert_eq!(doubt.target.as_deref(), Some("B"));
    assert!(doubt.text.contains("stood still 8 times") && doubt.text.contains("left out: 8 of 20 slots"), "{doubt:?}");
    // As long, and the generator was there: it is the target's.
    let verdict = judge(&run(plan(2), standing_still(0.0, spoilt)));
    assert_ne!(verdict.pairs[0].call, Call::Equivalent);
    assert_eq!(verdict.pairs[0].slots, 40);
    assert!(verdict.doubts.iter().all(|doubt| doubt.id != DoubtId::GeneratorStoodStill));
}

#[test]
fn there_is_no_call_where_most_slots_are_not_judged() {
    let judged = |blocks: u32| {
        let mut slots = standing_still(0.9, |slot| slot.target == 1 && slot.block < blocks);
        slots.iter_mut().filter(|slot| slot.target == 1).for_each(|slot| slot.elapsed_ns *= 2);
        judge(&run(plan(2), slots))
    };
    assert_eq!(call(&judged(5), "B", Metric::Rate), Call::Slower);
    let verdict = judged(6);
    assert_eq!(call(&verdict, "B", Metric::Rate), Call::Unknown);
    assert_eq!(verdict.pairs[0].slots, 16, "which would have been enough");
    assert_eq!(call(&judged(10), "B", Metric::Rate), Call::Unknown);
}
