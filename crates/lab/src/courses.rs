//! Several targets through the same course of stages, one after the other in random mirrored order.
//!
//! A course is never cut into pieces that take turns: what a stage meets is what the one before it has left (a queue, a warm
//! cache, more workers), and on a target that had rested in between it would meet something else.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::blocks::settling;
use crate::hosts::Hosts;
use crate::pulse::Pulses;
use crate::turns::{Turns, mirrored};
use crate::waiting;
use crate::watch::Watcher;
use duel_model::{Nanos, Plan, Run, SECOND_NS, Slot, SlotRole, Stage, sanitize_line};

/// Longest wait for answers after a course, as after a run on one target.
const LONGEST_GRACE_NS: Nanos = 5 * SECOND_NS;

/// Runs blocks of courses: every target once in random order, then once more in the reverse order; one block at least, and
/// no more than end within the plan's time.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    hosts: &Hosts,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    bench.expect(Some(plan.compare.max_load_ns), None);
    waiting::choose(bench, plan, run, watcher)?;
    hosts.mark();
    let result = blocks(bench, plan, run, watcher);
    hosts.mark();
    result
}

fn blocks(bench: &mut Bench, plan: &Plan, run: &mut Run, watcher: &mut dyn Watcher) -> Result<(), LabError> {
    let mut turns = Turns::new(plan.compare.seed, plan.compare.max_load_ns);
    let mut order: Vec<usize> = (0..bench.targets()).collect();
    let mut pulses = Pulses::of(plan);
    bench.notice_death();
    for block in 0.. {
        if !turns.begins(bench) {
            return Ok(());
        }
        turns.shuffle(&mut order);
        for (repeat, target) in mirrored(&order) {
            let Some(slot) = course(bench, plan, (block, repeat, target), run, watcher)? else { return Ok(()) };
            if pulses.ends(run, slot, plan, bench.since_start_ns()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// One course on connections of its own, each of which has carried a request before. `None`: it was cut
/// at an arbitrary moment, so it is neither judged nor kept.
fn course(
    bench: &mut Bench,
    plan: &Plan,
    (block, repeat, target): (u32, u32, usize),
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<Option<Slot>, LabError> {
    let grace_ns = plan.load.op_timeout_ns.min(LONGEST_GRACE_NS);
    let name = sanitize_line(&plan.targets[target].name);
    watcher.label(&format!("course {} on {name}", 2 * block + repeat + 1));
    // Each op waits for its answer: what the course before has left on this target is worked off.
    if let Some(spec) = settling(bench, target, block, grace_ns)? {
        let slot = bench.slot(spec, watcher)?;
        if bench.is_stopped() {
            return Ok(None);
        }
        if slot.died_ns.is_some() {
            return Ok(Some(slot));
        }
        run.slots.push(slot);
    }
    let course_ns = Stage::total_ns(&plan.load.shape.stages);
    let spec = SlotSpec::timed(target, SlotRole::Measured, course_ns, grace_ns).at(block, repeat);
    let slot = bench.slot(spec, watcher)?;
    Ok((!bench.is_stopped()).then_some(slot))
}
