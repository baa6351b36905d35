//! Blocks of short slots, in which targets take mirrored turns.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::turns::{Turns, mirrored};
use crate::watch::Watcher;
use duel_model::{Nanos, Plan, Slot, SlotRole};
use duel_stats::{Held, SlotFigure, Stop, Wanted};

/// Blocks of slots, and when they end.
#[derive(Debug, Clone)]
pub(crate) struct BlockSchedule {
    pub(crate) role: SlotRole,
    pub(crate) slot_ns: Nanos,
    pub(crate) grace_ns: Nanos,
    /// The bench's load time at which no further block begins.
    pub(crate) end_load_ns: Nanos,
    pub(crate) first_block: u32,
    /// How many blocks there are, whatever is known by then; `None`: until it is known enough.
    pub(crate) blocks: Option<u32>,
    /// Each block has connections of its own, where connections are kept.
    pub(crate) renews: bool,
    /// The gaps that a probe is held against.
    pub(crate) held: Vec<Held>,
}

/// What is to follow after a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Go on, and look after the block whether it is known enough.
    Look,
    /// End here.
    End,
}

/// Something that is done around each slot of a block, outside of its time.
pub(crate) trait Around {
    /// A slot on this target is about to begin.
    fn before(&mut self, target: usize);
    /// It is over.
    fn after(&mut self, slot: &Slot);
}

/// Nothing is done around slots.
pub(crate) struct Unread;

impl Around for Unread {
    fn before(&mut self, _target: usize) {}
    fn after(&mut self, _slot: &Slot) {}
}

/// Runs blocks of mirrored turns. Each slot is given to `keep`; after each block it is asked whether more would tell more.
pub(crate) fn blocks(
    bench: &mut Bench,
    plan: &Plan,
    schedule: &BlockSchedule,
    watcher: &mut dyn Watcher,
    around: &mut dyn Around,
    keep: &mut dyn FnMut(Slot, &Bench) -> Next,
) -> Result<(), LabError> {
    let mut judged: Vec<SlotFigure> = Vec::new();
    let seed = plan.compare.seed.wrapping_add(u64::from(schedule.first_block));
    let mut turns = Turns::new(seed, schedule.end_load_ns);
    let mut order: Vec<usize> = (0..bench.targets()).collect();
    let end = schedule.blocks.map_or(u32::MAX, |blocks| schedule.first_block.saturating_add(blocks));
    for block in schedule.first_block..end {
        if !turns.begins(bench) {
            return Ok(());
        }
        turns.shuffle(&mut order);
        for &target in order.iter().filter(|_| schedule.renews) {
            if let Some(slot) = renew(bench, target, block, schedule.grace_ns, watcher)?
                && (bench.is_stopped() || keep(slot, bench) == Next::End)
            {
                return Ok(());
            }
        }
        for (repeat, target) in mirrored(&order) {
            let spec = SlotSpec::timed(target, schedule.role.clone(), schedule.slot_ns, schedule.grace_ns);
            around.before(target);
            let slot = bench.slot(spec.at(block, repeat), watcher)?;
            around.after(&slot);
            if bench.is_stopped() {
                // Cut at an arbitrary moment: not judged, and not kept.
                return Ok(());
            }
            judged.push(SlotFigure::of(&slot, plan));
            if keep(slot, bench) == Next::End {
                return Ok(());
            }
        }
        if schedule.blocks.is_some() {
            continue;
        }
        let is_verdict = schedule.role == SlotRole::Measured;
        let wanted = if is_verdict { Wanted::Verdict } else { Wanted::Probe(&schedule.held) };
        if matches!(duel_stats::early_stop(judged.iter().copied(), plan, wanted), Stop::Enough { .. }) {
            return Ok(());
        }
    }
    Ok(())
}

/// Gives a target new connections, and lets each of them carry a request before anything is measured; the slot in which
/// they do. `None` where connections are not kept.
pub(crate) fn renew(
    bench: &mut Bench,
    target: usize,
    block: u32,
    grace_ns: Nanos,
    watcher: &mut dyn Watcher,
) -> Result<Option<Slot>, LabError> {
    if !bench.renew(target)? {
        return Ok(None);
    }
    bench.slot(SlotSpec::settling(target, bench.lanes(), grace_ns).at(block, 0), watcher).map(Some)
}
