//! One target at one rate after the other: the search for the highest rate that keeps the plan's promises.
//!
//! What an attempt shows and which rate comes next is decided by `duel_stats`; here it is carried out.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::hosts::Hosts;
use crate::watch::Watcher;
use duel_model::{
    Arrival, Attempt, Bound, Interruption, LoopKind, MILLISECOND_NS, Nanos, Plan, Run, RunStatus, SECOND_NS, SlotRole,
};
use duel_stats::SearchStep;

/// How long a closed loop runs that says where to begin: some hundred ops of any target that is worth a search.
const ESTIMATE_NS: Nanos = SECOND_NS;
/// Longest wait for the answers of a target that is to come to rest between two attempts.
const LONGEST_REST_NS: Nanos = 5 * SECOND_NS;
/// After an attempt's time, how many times the longest promised time is waited for answers: what has not come until then
/// has broken the promise whenever it comes.
const GRACE_LIMITS: u64 = 2;
/// Where no time is promised, or a very short one: long against a turn of any event loop.
const SHORTEST_GRACE_NS: Nanos = 200 * MILLISECOND_NS;

/// Tries rates until the answer is narrow enough, or the plan's time is over.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    hosts: &Hosts,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    let total_ns = match plan.load.bound {
        Bound::Duration(total_ns) => Some(total_ns),
        Bound::Ops(_) => None,
    };
    let LoopKind::Open { rate_per_s, arrival } = plan.load.kind else {
        return Err(LabError::Plan("a rate can only be looked for in an open loop".to_owned()));
    };
    bench.expect(total_ns, None);
    watcher.label("warming up");
    let closed_per_s = rest(bench, plan, run, watcher, Some(ESTIMATE_NS))?;
    let start_per_s = if rate_per_s > 0.0 { rate_per_s } else { closed_per_s * duel_stats::START_SHARE };
    let mut attempts: Vec<Attempt> = Vec::new();
    hosts.mark();
    let result = loop {
        if bench.is_stopped() {
            break Ok(());
        }
        let SearchStep::Try(rate_per_s) = duel_stats::next_rate(plan, &attempts, &run.slots, start_per_s) else {
            break Ok(());
        };
        let attempt_ns = duel_stats::attempt_ns(plan, rate_per_s);
        if total_ns.is_some_and(|total_ns| bench.load_ns() + attempt_ns + grace_ns(plan) > total_ns) {
            break Ok(());
        }
        watcher.label(&format!("trying {rate_per_s}/s"));
        let attempt_number = attempts.len() as u32;
        match attempt(bench, plan, rate_per_s, arrival, attempt_ns, attempt_number, run, watcher) {
            Ok(None) => break Ok(()),
            Ok(Some(seen)) => attempts.push(seen),
            Err(error) => break Err(error),
        }
        if last_left_work(run) {
            match rest(bench, plan, run, watcher, None) {
                Ok(_) => {}
                // It has answered before: now it is gone.
                Err(error) => {
                    run.status = RunStatus::Interrupted(Interruption::TargetDied {
                        target: plan.targets[0].name.clone(),
                        at_ns: bench.since_start_ns(),
                        how: error.to_string(),
                    });
                    break Ok(());
                }
            }
        }
    };
    hosts.mark();
    result
}

/// One attempt; `None` if the user ended it.
#[expect(clippy::too_many_arguments, reason = "all of them are the search's state, and nothing else needs it together")]
fn attempt(
    bench: &mut Bench,
    plan: &Plan,
    rate_per_s: f64,
    arrival: Arrival,
    attempt_ns: Nanos,
    number: u32,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<Option<Attempt>, LabError> {
    bench.offer(rate_per_s, arrival);
    let spec = SlotSpec {
        target: 0,
        role: SlotRole::Search,
        block: number,
        repeat: 0,
        duration_ns: Some(attempt_ns),
        ops: None,
        grace_ns: grace_ns(plan),
        back_to_back: false,
    };
    let slot = bench.slot(spec, watcher)?;
    if bench.is_stopped() {
        return Ok(None);
    }
    let seen = duel_stats::attempt(&slot, plan);
    run.slots.push(slot);
    Ok(seen)
}

/// Ops back to back in a closed loop: for a time, or one for each connection. It makes connections before they are
/// measured, and lets a target that was overloaded come to rest, since each op waits for its answer. The ops per second
/// that ended well.
fn rest(
    bench: &mut Bench,
    plan: &Plan,
    run: &mut Run,
    watcher: &mut dyn Watcher,
    duration_ns: Option<Nanos>,
) -> Result<f64, LabError> {
    let patience_ns = plan.load.op_timeout_ns.min(LONGEST_REST_NS);
    let spec = SlotSpec {
        target: 0,
        role: SlotRole::Warmup,
        block: 0,
        repeat: 0,
        duration_ns: Some(duration_ns.unwrap_or(patience_ns)),
        ops: duration_ns.is_none().then(|| u64::from(bench.connections())),
        grace_ns: patience_ns,
        back_to_back: true,
    };
    let slot = bench.slot(spec, watcher)?;
    let per_s = slot.rate_per_s().filter(|&per_s| per_s > 0.0);
    let what = slot.tally.failure_examples.first().cloned();
    let is_over = bench.is_stopped();
    if !is_over {
        run.slots.push(slot);
    }
    match per_s {
        Some(per_s) => Ok(per_s),
        None if is_over => Ok(0.0),
        None => Err(LabError::Target {
            name: duel_model::sanitize_line(&plan.targets[0].name),
            text: format!("no request ended well: {}", what.unwrap_or_else(|| "no answer in time".to_owned())),
        }),
    }
}

/// Whether the last attempt left the target with work, or connections broken.
fn last_left_work(run: &Run) -> bool {
    run.slots.last().is_some_and(|slot| slot.tally.in_flight + slot.tally.failed_total() > 0)
}

fn grace_ns(plan: &Plan) -> Nanos {
    let promises = plan.load.shape.search.iter().flat_map(|search| &search.promises);
    let longest = promises.filter(|promise| promise.metric.is_time()).map(|promise| promise.limit).fold(0.0, f64::max);
    (GRACE_LIMITS * longest as Nanos).max(SHORTEST_GRACE_NS).min(plan.load.op_timeout_ns)
}
