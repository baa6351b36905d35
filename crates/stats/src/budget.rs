//! How much load time a verdict would have taken.

use crate::side::is_measured;
use crate::signed_rank::pairs_needed;
use crate::starts::FEWEST_STARTS;
use duel_model::{Nanos, Run, RunStatus, SECOND_NS, Slot, SlotRole};

/// Pairs of slots that a block holds.
const PAIRS_PER_BLOCK: u64 = 2;
/// Longest slot that is chosen without being asked for: many short ones tell more than few long ones.
pub const LONGEST_SLOT_NS: Nanos = 2 * SECOND_NS;
/// Warm-up takes at most one part in so many of the load time, over all targets.
pub const LOAD_TIMES_PER_WARM_UP: u64 = 8;

/// The load time (`-d`) in which a comparison like this one would have had slots enough for a verdict: as many blocks as
/// that takes, each as long as the longest that was seen and longer by what its slots may grow, behind a warm-up of its
/// share of the time. A tenth more, since slow targets scatter; in whole seconds.
///
/// `None` where the run did not come to its end, nothing was measured, or slots are whole courses through stages.
pub(crate) fn would_do(run: &Run) -> Option<Nanos> {
    if run.status != RunStatus::Complete || !run.plan.load.shape.stages.is_empty() {
        return None;
    }
    let of_blocks = || run.slots.iter().filter(|slot| is_measured(slot));
    if run.plan.compare.restart.is_some() {
        // Each start takes its part of the load time, that of warming up included.
        let starts = u64::from(of_blocks().filter_map(|slot| slot.start).max()?) + 1;
        let whole_ns = run.plan.compare.max_load_ns.saturating_mul(FEWEST_STARTS as u64) / starts / 10 * 11;
        return (starts < FEWEST_STARTS as u64).then(|| whole_ns.div_ceil(SECOND_NS) * SECOND_NS);
    }
    let last = of_blocks().map(|slot| slot.block).max()?;
    let longest_block_ns = (0..=last).map(|block| block_ns(run, block)).max()?;
    let nominal_ns = of_blocks().map(|slot| slot.elapsed_ns).min()?;
    let growth_ns = match run.plan.compare.slot_ns {
        Some(_) => 0,
        None => LONGEST_SLOT_NS.saturating_sub(nominal_ns),
    };
    let slots = PAIRS_PER_BLOCK.saturating_mul(run.plan.targets.len() as u64);
    let pairs = u64::from(run.plan.compare.min_pairs.max(pairs_needed(run.plan.compare.confidence)?));
    let blocks = pairs.div_ceil(PAIRS_PER_BLOCK);
    let needed_ns = longest_block_ns.saturating_add(growth_ns.saturating_mul(slots)).saturating_mul(blocks);
    // Warm-up ends with the slot in which its share is used up.
    let warm_up_slots = run.slots.iter().filter(|slot| slot.role == SlotRole::Warmup).map(|slot| slot.elapsed_ns);
    let beyond_ns = warm_up_slots.max().unwrap_or(0).saturating_mul(run.plan.targets.len() as u64);
    let whole_ns = needed_ns.saturating_add(beyond_ns).saturating_mul(11) / 10 * LOAD_TIMES_PER_WARM_UP
        / (LOAD_TIMES_PER_WARM_UP - 1);
    // Where the time was not what was missing (pairs without a value), more of it is no advice.
    (whole_ns > run.plan.compare.max_load_ns).then(|| whole_ns.div_ceil(SECOND_NS) * SECOND_NS)
}

/// How long a block took, with the slots in which its connections were made; those of the first block cannot be told from
/// the warm-up before them.
fn block_ns(run: &Run, block: u32) -> Nanos {
    let belongs =
        |slot: &&Slot| slot.block == block && (is_measured(slot) || (block > 0 && slot.role == SlotRole::Warmup));
    run.slots.iter().filter(belongs).map(Slot::under_load_ns).fold(0, Nanos::saturating_add)
}
