//! Events that a machine counted, held against those on the other side.

use crate::gap::Demands;
use duel_model::HostDemand;

/// A counter's growth on either side: in all and per op.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) total: f64,
    pub(super) per_op: f64,
    /// Per op on the fast side; `None` where its machine is not read.
    pub(super) fast_per_op: Option<f64>,
}

impl Counted {
    /// Fewer events than this say little of their rate: ten scatter by a third of their number (Poisson).
    const LEAST_EVENTS: f64 = 10.0;
    /// So many times the fast side's is more than chance makes of [`Counted::LEAST_EVENTS`] events on both sides.
    const CLEARLY_MORE: f64 = 3.0;

    /// `None` where the slow side's machine does not tell.
    pub(super) fn of(demands: &Demands<'_>, key: &str) -> Option<Self> {
        let total = *demands.slow.growth.get(key)? as f64;
        let fast_per_op = demands.fast.and_then(|fast: &HostDemand| fast.per_op(key));
        Some(Self { total, per_op: demands.slow.per_op(key)?, fast_per_op })
    }

    /// Enough events to speak of, and clearly more than on the fast side, as far as that is known.
    pub(super) fn is_marked(self) -> bool {
        let more = self.fast_per_op.is_none_or(|fast| self.per_op >= Self::CLEARLY_MORE * fast);
        self.total >= Self::LEAST_EVENTS && more
    }
}
