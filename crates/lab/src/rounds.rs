//! A comparison in rounds: targets are started anew, warmed up, and compared in a few blocks.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::blocks::{BlockSchedule, Next, Unread, blocks};
use crate::restart::Restarts;
use crate::watch::Watcher;
use duel_model::{MILLISECOND_NS, Nanos, Plan, Slot, SlotRole};
use duel_stats::{FEWEST_STARTS, LOAD_TIMES_PER_WARM_UP, SlotFigure, Stop, Wanted};

/// Fewest blocks of a round, where the time allows: of four pairs of slots a wild one does not move the estimate far.
const BLOCKS_WANTED: u64 = 2;
/// Shortest warm-up behind a start: connections are made, and what is read first comes into memory.
const SHORTEST_WARM_UP_NS: Nanos = 100 * MILLISECOND_NS;
/// Behind later starts warm-up takes at most one part in so many of the load time: twice as much as without starts.
const LOAD_TIMES_PER_WARM_UPS: u64 = LOAD_TIMES_PER_WARM_UP / 2;

/// What the first start has shown.
#[derive(Debug, Clone)]
pub(crate) struct FirstStart {
    /// How long starting all targets anew took.
    pub(crate) took_ns: Nanos,
    /// After how much load each target was steady; `None`: it was not, or that could not be seen.
    pub(crate) steady_after_ns: Vec<Option<Nanos>>,
}

/// How long each target is warmed up behind later starts: as long as it needed behind the first one, and what there is for it where
/// that is not known; and the most that there is. One that stays as it runs is, too: it has idled, and lost its connections.
pub(crate) fn warm_ups(first: &FirstStart, plan: &Plan) -> (Vec<Nanos>, Nanos) {
    let targets = first.steady_after_ns.len() as u64;
    let most_ns = plan.compare.max_load_ns / LOAD_TIMES_PER_WARM_UPS / FEWEST_STARTS as u64 / targets.max(1);
    let given = |needed: &Option<Nanos>| needed.unwrap_or(most_ns).max(SHORTEST_WARM_UP_NS).min(most_ns);
    (first.steady_after_ns.iter().map(given).collect(), most_ns)
}

/// How long a warm-up of `given_ns` is where it is what new streams come up to speed in.
fn settling_ns(given_ns: Nanos, settle_ns: Nanos, most_ns: Nanos) -> Nanos {
    given_ns.max(settle_ns.min(most_ns))
}

/// Runs rounds until it is known enough or the time is over. The targets have been started anew and warmed up for the first one.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    restarts: &mut Restarts<'_>,
    first: &FirstStart,
    schedule: &BlockSchedule,
    watcher: &mut dyn Watcher,
    keep: &mut dyn FnMut(Slot, &Bench) -> Next,
) -> Result<(), LabError> {
    let (mut warm_ups, most_ns) = warm_ups(first, plan);
    if !schedule.renews {
        // Connections are new behind each start, and this is all that they carry before slots.
        warm_ups.iter_mut().for_each(|given_ns| *given_ns = settling_ns(*given_ns, schedule.settle_ns, most_ns));
    }
    let warm_ns: Nanos = warm_ups.iter().sum();
    let left_ns = schedule.end_load_ns.saturating_sub(bench.load_ns());
    // Slots end with their last op, and each block makes new connections: a tenth more.
    let block_ns = schedule.block_ns(bench.targets()).saturating_mul(11) / 10;
    let of_round = blocks_of_round(first.took_ns + warm_ns, warm_ns, block_ns, left_ns);
    let mut figures: Vec<SlotFigure> = Vec::new();
    let mut longest_ns = 0;
    for start in 0.. {
        if start > 0 {
            // A round that would not end in time is not begun.
            if bench.load_ns() + longest_ns + warm_ns > schedule.end_load_ns {
                return Ok(());
            }
            bench.begin_start(start);
            restarts.start_anew(bench, watcher)?;
            watcher.label("measuring");
            // Another one is warmed up last in each round, just before it is measured.
            for target in (0..warm_ups.len()).map(|place| (place + start as usize) % warm_ups.len()) {
                if bench.is_stopped() {
                    return Ok(());
                }
                let spec = SlotSpec::timed(target, SlotRole::Warmup, warm_ups[target], schedule.grace_ns);
                let slot = bench.slot(spec.at(start * of_round, 0), watcher)?;
                if bench.is_stopped() || keep(slot, bench) == Next::End {
                    return Ok(());
                }
            }
        }
        let (before_ns, mut is_over) = (bench.load_ns(), false);
        let round = BlockSchedule { first_block: start * of_round, blocks: Some(of_round), ..schedule.clone() };
        blocks(bench, plan, &round, watcher, &mut Unread, &mut |slot, bench| {
            if slot.role == SlotRole::Measured {
                figures.push(SlotFigure::of(&slot, plan));
            }
            let next = keep(slot, bench);
            is_over = next == Next::End;
            next
        })?;
        if is_over || bench.is_stopped() {
            return Ok(());
        }
        longest_ns = longest_ns.max(bench.load_ns() - before_ns);
        if matches!(duel_stats::early_stop(figures.iter().copied(), plan, Wanted::Verdict), Stop::Enough { .. }) {
            return Ok(());
        }
    }
    Ok(())
}

/// How many blocks a round has. What a start costs, with its warm-up, is to be spent on it again in blocks, in the ratio that makes
/// the interval narrowest for the time: the root of what a start costs over what a block does, where starts scatter as much as
/// blocks do (Kalibera and Jones 2013; how much they do is not known before). That is by the user's time, of which a start may take
/// much; by load time, which is what is bounded, there are to be as many rounds as a verdict takes, above all.
fn blocks_of_round(start_costs_ns: Nanos, warm_ns: Nanos, block_ns: Nanos, left_ns: Nanos) -> u32 {
    let block_ns = block_ns.max(1);
    let best = (start_costs_ns as f64 / block_ns as f64).sqrt().round() as u64;
    let affordable = (left_ns / FEWEST_STARTS as u64).saturating_sub(warm_ns) / block_ns;
    u32::try_from(best.max(BLOCKS_WANTED).min(affordable).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_streams_settle_in_the_warm_up_behind_a_start_as_far_as_there_is_time() {
        let ms = MILLISECOND_NS;
        assert_eq!(settling_ns(100 * ms, 1_600 * ms, 2_000 * ms), 1_600 * ms);
        assert_eq!(settling_ns(100 * ms, 1_600 * ms, 500 * ms), 500 * ms);
        assert_eq!(settling_ns(300 * ms, 0, 500 * ms), 300 * ms, "short paths");
    }

    #[test]
    fn dear_starts_get_more_blocks_and_there_are_enough_starts_all_the_same() {
        let ms = MILLISECOND_NS;
        // A start that takes as long as a block; one that takes a minute; and time for eight starts of one block each.
        assert_eq!(blocks_of_round(660 * ms, 200 * ms, 660 * ms, 28_000 * ms), 2);
        assert_eq!(blocks_of_round(60_000 * ms, 200 * ms, 660 * ms, 280_000 * ms), 10);
        assert_eq!(blocks_of_round(60_000 * ms, 200 * ms, 660 * ms, 28_000 * ms), 5);
        assert_eq!(blocks_of_round(60_000 * ms, 200 * ms, 660 * ms, 7_000 * ms), 1);
        assert_eq!(blocks_of_round(0, 0, 0, 0), 1);
    }
}
