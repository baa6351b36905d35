//! What unit tests are about: slots of a target.

use duel_model::{Slot, SlotRole, Tally};

/// A measured slot of the first target, in a block of its own.
pub(crate) fn slot(index: u32, tally: Tally) -> Slot {
    Slot { index, block: index, elapsed_ns: 1, tally, ..Slot::empty(0, SlotRole::Measured) }
}
