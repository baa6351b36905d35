//! Several targets compared: warm-up, then blocks of short slots in random mirrored order until it is known enough.

use crate::bench::{Bench, SlotSpec};
use crate::blocks::{BlockSchedule, Next, Unread, blocks};
use crate::hosts::Hosts;
use crate::pulse::Pulses;
use crate::restart::Restarts;
use crate::rounds::{self, FirstStart};
use crate::streams::{self, StreamSlots};
use crate::turns::{OPS_PER_TURN, slot_in_turns_ns, turns_of};
use crate::waiting;
use crate::watch::Watcher;
use crate::{LabError, kinds};
use duel_model::{Doubt, DoubtId, LoopKind, MILLISECOND_NS, Nanos, Plan, Run, SECOND_NS, Slot, SlotRole, Tally};
use duel_stats::{LOAD_TIMES_PER_WARM_UP, LONGEST_SLOT_NS};

/// Shortest slot. Hiccups of some milliseconds must be small against it; below that, many short slots tell more than few
/// long ones: neighbours are closer in time, so that more of what disturbs them is common to both, and there are more
/// blocks, each with connections of its own.
pub(crate) const SHORTEST_SLOT_NS: Nanos = 150 * MILLISECOND_NS;
/// Ops that a connection should carry in a slot: cutting off the last one then moves a rate by a few percent at most,
/// and equally for all.
const OPS_PER_SLOT: u64 = 10;
/// Pairs of slots that the time is divided for.
const PAIRS_WANTED: u64 = 12;
/// Most slots that a run is divided into.
const MOST_SLOTS: u64 = 1000;
/// Ops due in a slot of an open loop: with Poisson arrivals one slot in 500 million has none then (e^-20).
const OPS_PER_OPEN_SLOT: f64 = 20.0;
/// Ops that an interval should hold for its rate to be told from noise (relative error 1/sqrt(20) = 22 %).
const OPS_PER_INTERVAL: u64 = 20;

/// Compares all targets of the plan.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    mut restarts: Option<Restarts<'_>>,
    hosts: &Hosts,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    bench.expect(Some(plan.compare.max_load_ns), None);
    let mut took_ns = 0;
    if let Some(restarts) = &mut restarts {
        bench.begin_start(0);
        took_ns = restarts.start_anew(bench, watcher)?;
        if bench.is_stopped() {
            return Ok(());
        }
    }
    watcher.label("warming up");
    let Warm { op_ns: typical_op_ns, steady_after_ns } = warm_up(bench, plan, run, watcher)?;
    if bench.is_stopped() {
        return Ok(());
    }
    let first = FirstStart { took_ns, steady_after_ns };
    if restarts.is_some() {
        run.doubts.extend(warm_up_doubts(plan, &first));
    }
    waiting::choose(bench, plan, run, watcher)?;
    if bench.is_stopped() {
        return Ok(());
    }
    watcher.label("measuring");
    let slot_ns = plan.compare.slot_ns.unwrap_or_else(|| {
        let left_ns = plan.compare.max_load_ns.saturating_sub(bench.load_ns());
        let slot_ns = slot_length_ns(typical_op_ns + bench.think_ns(), left_ns, bench.targets());
        whole_periods_ns(slot_ns, plan.load.kind)
    });
    let left_ns = plan.compare.max_load_ns.saturating_sub(bench.load_ns());
    let may_take_turns = kinds::of(&plan.workload).takes_turns()
        && matches!(plan.load.kind, LoopKind::Closed { .. })
        && restarts.is_none()
        && !watcher.wants_ops();
    let op_ns = typical_op_ns + bench.think_ns();
    let in_turns_ns = plan.compare.slot_ns.unwrap_or_else(|| {
        let affordable_ns = left_ns / (PAIRS_WANTED * bench.targets() as u64);
        slot_in_turns_ns(op_ns, OPS_PER_TURN).max(left_ns / MOST_SLOTS).min(affordable_ns)
    });
    let warm_up = run.slots.iter().map(|slot| (slot.target, &slot.tally.service));
    let (turns, slot_ns) =
        match may_take_turns.then(|| turns_of(in_turns_ns, op_ns, OPS_PER_TURN, warm_up, bench.lanes())) {
            None | Some(1) => (1, slot_ns),
            Some(turns) => (turns, in_turns_ns),
        };
    let trip_ns = streams::trip_seen_ns(plan, &run.slots);
    let time =
        streams::Time { usual_ns: slot_ns, is_set: plan.compare.slot_ns.is_some(), op_ns: typical_op_ns, left_ns };
    let streams = StreamSlots::of(trip_ns, time, plan);
    let StreamSlots { slot_ns, run_up_ns, beside_ns, .. } = streams;
    if let Some(label) = streams.label() {
        watcher.label(&label);
    }
    run.doubts.extend(streams.doubt());
    let settle_ns = streams::settle_ns(trip_ns, run_up_ns);
    let renews = if beside_ns > 0 {
        leaves_pairs_to_renew(run_up_ns + slot_ns, beside_ns, settle_ns, streams::in_blocks_ns(left_ns), plan)
    } else {
        leaves_pairs_to_renew(slot_ns, typical_op_ns, 0, left_ns, plan)
    };
    if !renews && bench.keeps_lanes() {
        run.doubts.push(kept_lanes(plan));
    }
    let schedule = BlockSchedule {
        role: SlotRole::Measured,
        slot_ns,
        run_up_ns,
        settle_ns,
        beside_ns,
        turns,
        grace_ns: bench.grace_ns(typical_op_ns, left_ns / (PAIRS_WANTED * bench.targets() as u64)),
        end_load_ns: plan.compare.max_load_ns,
        first_block: 0,
        blocks: None,
        takes_all: false,
        renews,
        held: Vec::new(),
        by_whole: Vec::new(),
    };
    let mut pulses = Pulses::of(plan);
    bench.notice_death();
    // What machines do for the ops of the comparison is counted from here to its end.
    hosts.mark();
    let mut keep = |slot: Slot, bench: &Bench| {
        if pulses.ends(run, slot, plan, bench.since_start_ns()) { Next::End } else { Next::Look }
    };
    let result = match &mut restarts {
        Some(restarts) => rounds::run(bench, plan, restarts, &first, &schedule, watcher, &mut keep),
        None => blocks(bench, plan, &schedule, watcher, &mut Unread, &mut keep),
    };
    hosts.mark();
    if renews && bench.wanted_ports() {
        run.doubts.push(kept_for_ports(plan));
    }
    result
}

/// Slot length from the time that an op takes and the load time that is left.
pub(crate) fn slot_length_ns(typical_op_ns: Nanos, left_ns: Nanos, targets: usize) -> Nanos {
    let affordable_ns = left_ns / (PAIRS_WANTED * targets as u64).max(1);
    // However long a run is, its slots have to fit into memory.
    let shortest_ns = SHORTEST_SLOT_NS.max(left_ns / MOST_SLOTS);
    (OPS_PER_SLOT * typical_op_ns)
        .clamp(shortest_ns, LONGEST_SLOT_NS.max(shortest_ns))
        .min(affordable_ns)
        .max(SHORTEST_SLOT_NS.min(affordable_ns.max(MILLISECOND_NS)))
}

/// Whether there are pairs enough for a verdict where each block has connections of its own. These carry one op each before anything is
/// measured, or are under load for `settle_ns`, of all targets one after the other, and a slot takes up to an op longer than it is meant to.
fn leaves_pairs_to_renew(slot_ns: Nanos, op_ns: Nanos, settle_ns: Nanos, left_ns: Nanos, plan: &Plan) -> bool {
    // Where one op is under way at a time, new lanes have theirs one after the other.
    let first_ops_ns = u64::from(plan.lanes() / plan.ops_at_a_time()) * op_ns;
    let block_ns = plan.targets.len() as u64 * (first_ops_ns.max(settle_ns) + 2 * (slot_ns + op_ns));
    2 * (left_ns / block_ns.max(1)) >= u64::from(plan.compare.min_pairs)
}

/// What it means that they do not.
fn kept_lanes(plan: &Plan) -> Doubt {
    let lane = plan.schema().lane;
    let text = format!(
        "all blocks have the same {0}, since new ones would have left no time for a verdict: the some percent that depend on a single {1} \
         are in no interval; a longer -d makes new ones",
        lane.many, lane.one
    );
    Doubt { id: DoubtId::ShortSlots, target: None, text }
}

/// What it means that some blocks keep the connections of those before.
fn kept_for_ports(plan: &Plan) -> Doubt {
    let lane = plan.schema().lane;
    let text = format!(
        "some blocks have the {0} of the blocks before, since there were no local ports for new ones: of the some percent that depend on a \
         single {1}, less is in the interval than should be; fewer {0} (-c) need fewer ports",
        lane.many, lane.one
    );
    Doubt { id: DoubtId::ShortSlots, target: None, text }
}

/// In an open loop a slot has to hold some ops, or it has no median; and constant arrivals are cut between two of them,
/// or each slot would offer up to one op more than the rate says.
pub(crate) fn whole_periods_ns(slot_ns: Nanos, kind: LoopKind) -> Nanos {
    let LoopKind::Open { rate_per_s, .. } = kind else { return slot_ns };
    let periods = (slot_ns as f64 * rate_per_s / 1e9).ceil().max(OPS_PER_OPEN_SLOT);
    (periods * 1e9 / rate_per_s).round() as Nanos
}

/// Of which targets later starts are given less warm-up than they needed behind the first one.
fn warm_up_doubts(plan: &Plan, first: &FirstStart) -> Vec<Doubt> {
    let (warm_ups, most_ns) = rounds::warm_ups(first, plan);
    let needs_more = warm_ups.iter().enumerate().filter_map(|(target, &given_ns)| {
        let needed_ns = first.steady_after_ns[target].filter(|&needed_ns| needed_ns > most_ns)?;
        Some(Doubt {
            id: DoubtId::WarmupUnfinished,
            target: Some(plan.targets[target].name.clone()),
            text: format!(
                "{} took {} of load to become steady behind its first start, and is given {} behind each later one; a longer -d \
                 gives it more",
                duel_model::sanitize_line(&plan.targets[target].name),
                duel_model::format_duration_ns(needed_ns as f64),
                duel_model::format_duration_ns(given_ns as f64)
            ),
        })
    });
    needs_more.collect()
}

/// What warm-up has shown.
pub(crate) struct Warm {
    /// How long an op typically takes on the slowest target.
    pub(crate) op_ns: Nanos,
    /// After how much load each target was steady; `None`: it was not, or that could not be seen.
    pub(crate) steady_after_ns: Vec<Option<Nanos>>,
}

/// Loads each target until its rate is steady.
pub(crate) fn warm_up(
    bench: &mut Bench,
    plan: &Plan,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<Warm, LabError> {
    let share_ns = plan.compare.max_load_ns / LOAD_TIMES_PER_WARM_UP / bench.targets() as u64;
    let piece_ns = (share_ns / 2).clamp(50 * MILLISECOND_NS, SECOND_NS);
    let mut slowest_op_ns = 0;
    let mut steady_after_ns = vec![None; bench.targets()];
    for target in 0..bench.targets() {
        let (mut rates, mut spent_ns, mut tally) = (Vec::new(), 0, Tally::default());
        // A few ops may take far longer than the others, and all of the time would go by waiting for them. Only where no
        // op ends within that, an op is given all the time that it may take.
        let mut grace_ns = share_ns.max(SECOND_NS).min(bench.op_timeout_ns());
        loop {
            let slot = bench.slot(SlotSpec::timed(target, SlotRole::Warmup, piece_ns, grace_ns), watcher)?;
            spent_ns += slot.elapsed_ns;
            tally.merge(&slot.tally);
            steady_part(&slot, piece_ns, &mut rates);
            if bench.is_stopped() {
                return Ok(Warm { op_ns: slowest_op_ns, steady_after_ns });
            }
            run.slots.push(slot);
            if tally.ok == 0 && tally.started > 0 {
                if tally.in_flight == 0 || grace_ns == bench.op_timeout_ns() {
                    return Err(all_failed(plan, target, &tally));
                }
                grace_ns = bench.op_timeout_ns();
                continue;
            }
            if let Some(cut) = duel_stats::warmup_ended(&rates) {
                steady_after_ns[target] = Some((spent_ns as f64 * cut as f64 / rates.len() as f64) as Nanos);
                break;
            }
            if spent_ns >= share_ns {
                if rates.len() >= 10 {
                    run.doubts.push(Doubt {
                        id: DoubtId::WarmupUnfinished,
                        target: Some(plan.targets[target].name.clone()),
                        text: format!(
                            "{} had not become steady after {} of warm-up",
                            duel_model::sanitize_line(&plan.targets[target].name),
                            duel_model::format_duration_ns(spent_ns as f64)
                        ),
                    });
                }
                break;
            }
        }
        let mean_ns = tally.service.mean_ns().unwrap_or(0.0) as Nanos;
        slowest_op_ns = slowest_op_ns.max(mean_ns);
    }
    Ok(Warm { op_ns: slowest_op_ns, steady_after_ns })
}

/// Adds the rates of a slot's whole intervals: not the last one, which is cut, nor what was drained after its time.
/// Intervals are joined until each holds enough ops.
fn steady_part(slot: &Slot, nominal_ns: Nanos, rates: &mut Vec<f64>) {
    let whole = (nominal_ns / slot.series.interval_ns.max(1)) as usize;
    let intervals = &slot.series.intervals[..whole.min(slot.series.intervals.len())];
    let ok: u64 = intervals.iter().map(|interval| interval.ok).sum();
    if intervals.is_empty() || ok == 0 {
        return;
    }
    let joined = ((OPS_PER_INTERVAL * intervals.len() as u64).div_ceil(ok) as usize).clamp(1, intervals.len());
    rates.extend(
        intervals
            .chunks_exact(joined)
            .map(|chunk| chunk.iter().map(|interval| interval.ok).sum::<u64>() as f64 / joined as f64),
    );
}

fn all_failed(plan: &Plan, target: usize, tally: &Tally) -> LabError {
    let example = tally.failure_examples.first().cloned().unwrap_or_else(|| "no answer in time".to_owned());
    LabError::Target {
        name: duel_model::sanitize_line(&plan.targets[target].name),
        text: format!(
            "all {} {} failed, so there is nothing to compare: {example}",
            tally.started,
            plan.schema().op.many
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{ComparePlan, LoadPlan, Target, WorkloadPlan};

    #[test]
    fn slots_are_long_against_an_op_and_short_against_the_run() {
        let ms = MILLISECOND_NS;
        assert_eq!(slot_length_ns(ms, 30_000 * ms, 2), 150 * ms);
        assert_eq!(slot_length_ns(60 * ms, 30_000 * ms, 2), 600 * ms);
        assert_eq!(slot_length_ns(360 * ms, 28_800 * ms, 2), 1_200 * ms);
        assert_eq!(slot_length_ns(ms, 2_400 * ms, 2), 100 * ms);
        assert_eq!(slot_length_ns(ms, 3_600_000 * ms, 2), 3_600 * ms);
    }

    #[test]
    fn blocks_have_connections_of_their_own_where_that_leaves_pairs_enough() {
        let target = Target { name: "A".into(), address: "http://a/".into(), host: None };
        let plan = Plan {
            targets: vec![target.clone(), Target { name: "B".into(), ..target }],
            workload: WorkloadPlan::Http(Box::default()),
            load: LoadPlan::default(),
            compare: ComparePlan::default(),
            factors: vec![],
        };
        let ms = MILLISECOND_NS;
        assert!(leaves_pairs_to_renew(150 * ms, ms, 0, 26_000 * ms, &plan));
        // 3 blocks of 2 * (0.4 + 2 * 1.5) s, and one of 2 * (1.9 + 2 * 3) s.
        assert!(leaves_pairs_to_renew(1_100 * ms, 400 * ms, 0, 26_000 * ms, &plan));
        assert!(!leaves_pairs_to_renew(1_100 * ms, 1_900 * ms, 0, 26_000 * ms, &plan));
        assert!(leaves_pairs_to_renew(2_000 * ms, 1_900 * ms, 0, 60_000 * ms, &plan), "a longer run does");
        // New streams over 20 ms: three blocks of 2 * (0.8 + 2 * 0.6) s.
        assert!(leaves_pairs_to_renew(600 * ms, ms, 800 * ms, 13_000 * ms, &plan));
        assert!(!leaves_pairs_to_renew(600 * ms, ms, 800 * ms, 11_000 * ms, &plan));
    }

    #[test]
    fn slots_of_an_open_loop_hold_whole_periods_and_enough_of_them() {
        let open = |rate_per_s| LoopKind::Open { rate_per_s, arrival: duel_model::Arrival::Constant };
        assert_eq!(whole_periods_ns(150 * MILLISECOND_NS, open(2.0)), 10 * SECOND_NS);
        assert_eq!(whole_periods_ns(150 * MILLISECOND_NS, open(1_000.0)), 150 * MILLISECOND_NS);
        assert_eq!(whole_periods_ns(150 * MILLISECOND_NS, open(333.0)), 150_150_150);
        assert_eq!(whole_periods_ns(150 * MILLISECOND_NS, LoopKind::Closed { think_ns: 0 }), 150 * MILLISECOND_NS);
    }
}
