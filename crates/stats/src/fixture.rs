//! What unit tests are about: slots of a target.

use duel_model::{GeneratorAudit, Series, Slot, SlotRole, Tally};

/// A measured slot of the first target, in a block of its own.
pub(crate) fn slot(index: u32, tally: Tally) -> Slot {
    Slot {
        index,
        target: 0,
        role: SlotRole::Measured,
        block: index,
        repeat: 0,
        turns: Vec::new(),
        treatment: None,
        start: None,
        started_unix_ms: 0,
        offset_ns: 0,
        elapsed_ns: 1,
        offered_per_s: None,
        tally,
        series: Series::default(),
        audit: GeneratorAudit::default(),
        negotiated: None,
        died_ns: None,
    }
}
