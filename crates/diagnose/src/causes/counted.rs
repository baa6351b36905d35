//! What counted quantities are worth, held against the gap; for causes that no flip takes away.

use super::Standing;
use crate::gap::{DemandLook, Demands, Gap, View};
use duel_model::HostDemand;

/// Share of the log of the gap that is gone when the slow side saves this much time per op.
pub(super) fn share_by_time(reference: &View<'_>, saved_ns: f64) -> Option<f64> {
    let (slow_ns, fast_ns) = (reference.slow_ns()?, reference.fast_ns()?);
    // Who saves more than the whole difference does not become faster than the fast side by it: that is another cause.
    let left = ((slow_ns - saved_ns.max(0.0)) / fast_ns).max(1.0);
    let share = 1.0 - left.ln() / reference.log.mid;
    share.is_finite().then_some(share)
}

/// The reference, without which nothing can be held against the gap.
pub(super) fn needs_reference<'g, 'a>(gap: &'g Gap<'a>) -> Result<&'g View<'a>, Standing> {
    let missing = || Standing::Undecided(gap.first_contact("there is no reference to hold it against".to_owned()));
    gap.known_reference().ok_or_else(missing)
}

/// What the machines did. It is wanted where it was not read yet, and where it cannot be read the cause is left open.
pub(super) fn shown_demands<'a>(gap: &Gap<'a>) -> Result<Demands<'a>, Standing> {
    match gap.demands() {
        DemandLook::Shown(demands) => Ok(demands),
        DemandLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(why) => Err(Standing::Undecided(gap.on_host(why, None))),
    }
}

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
