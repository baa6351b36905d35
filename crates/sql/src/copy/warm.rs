//! What a running server has in memory, a new one has to read first.

use duel_model::{Nanos, SECOND_NS};

/// Slower than any disk for databases: a reading that takes longer than this is held up by something else.
const LEAST_BYTES_PER_S: u64 = 20 << 20;
/// For all that is beside the reading of blocks.
pub(super) const LEAST_PATIENCE_NS: Nanos = 10 * SECOND_NS;
/// Beyond this nobody would wait.
const MOST_PATIENCE_NS: Nanos = 300 * SECOND_NS;

/// What a copy has in memory when load begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warmth {
    /// All tables and indexes.
    All,
    /// Those that fit, or none where its system's means are missing: the same in each copy with this much memory.
    Part,
    /// How much is not known: the reading was given up.
    Cut,
}

/// How long so many bytes may take.
pub(crate) fn patience_ns(bytes: u64) -> Nanos {
    let reading_ns = (bytes / LEAST_BYTES_PER_S).saturating_mul(SECOND_NS);
    reading_ns.saturating_add(LEAST_PATIENCE_NS).min(MOST_PATIENCE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_may_take_longer_and_none_may_take_for_ever() {
        assert_eq!([0, 1 << 30].map(patience_ns), [10 * SECOND_NS, 61 * SECOND_NS]);
        assert_eq!(patience_ns(u64::MAX), MOST_PATIENCE_NS);
    }
}
