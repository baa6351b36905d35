//! Whether the wall clock went on evenly while a run was made.

use duel_model::{Doubt, DoubtId, MILLISECOND_NS, Nanos};

/// Both clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    monotonic_ns: Nanos,
    unix_ms: i64,
}

/// A clock that is being slewed drifts by half a part in a thousand at most (adjtime); a jump is more than that and
/// more than a second.
const LARGEST_SLEW: f64 = 0.0005;
const SMALLEST_JUMP_MS: f64 = 1000.0;

impl Clocks {
    /// Now.
    pub(crate) fn read() -> Self {
        Self { monotonic_ns: duel_load::monotonic_ns(), unix_ms: duel_load::unix_ms() }
    }

    /// The doubt that arises if the wall clock has jumped since.
    pub(crate) fn doubt(self) -> Option<Doubt> {
        self.doubt_at(Self::read())
    }

    fn doubt_at(self, now: Self) -> Option<Doubt> {
        let passed_ms = now.monotonic_ns.saturating_sub(self.monotonic_ns) as f64 / MILLISECOND_NS as f64;
        let jump_ms = (now.unix_ms - self.unix_ms) as f64 - passed_ms;
        (jump_ms.abs() > SMALLEST_JUMP_MS + LARGEST_SLEW * passed_ms).then(|| Doubt {
            id: DoubtId::Clock,
            target: None,
            text: format!(
                "the wall clock jumped by {:+.1} s during the run: dates may be wrong; times are not, they come from \
                 the monotonic clock",
                jump_ms / 1000.0
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_told_from_slewing() {
        let start = Clocks { monotonic_ns: 0, unix_ms: 0 };
        let hour = |unix_ms| Clocks { monotonic_ns: 3_600_000 * MILLISECOND_NS, unix_ms };
        assert_eq!(start.doubt_at(hour(3_601_500)), None);
        assert_eq!(start.doubt_at(hour(3_604_000)).unwrap().id, DoubtId::Clock);
        assert!(start.doubt_at(hour(0)).unwrap().text.contains("-3600.0 s"));
    }
}
