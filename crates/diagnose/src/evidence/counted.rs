//! What was counted, in phases and by machines, held against the gap and the other side.

use crate::evidence::worth::share_of_log;
use crate::gap::{Demands, View, phase_differences};
use duel_model::HostDemand;
use duel_stats::Ratio;

/// Share of the log of the gap that goes away when the slow side spends so much less time in its phases per op.
///
/// The time is taken as a part of what all phases take longer, and that part of the gap is taken away. Phases and the
/// pair's ratio come from the same ops but not with the same noise: of a gap of 100x, one percent of noise is as much
/// as the fast side's whole op, and would pass for a rest that nothing explains. Where connections work side by side,
/// their times overlap, and the part does not.
pub(crate) fn share_of_phases(view: &View<'_>, saved_ns: f64) -> Option<f64> {
    let longer_ns: f64 = phase_differences(view).iter().map(|(_, ns)| ns).sum();
    if longer_ns <= 0.0 {
        return None;
    }
    let part = (saved_ns / longer_ns).clamp(0.0, 1.0);
    share_of_log(view, part * (view.slow_ns()? - view.fast_ns()?))
}

/// CPU time per op that the slow side's processes need beyond those of the fast side, ns; all of it where the fast side's
/// machine is not read. `None` where it is not known.
pub(crate) fn further_cpu_ns(demands: &Demands<'_>) -> Option<f64> {
    let key = "process.cpu_ns";
    let fast_ns = demands.fast.and_then(|fast| fast.per_op(key)).unwrap_or(0.0);
    Some((demands.slow.per_op(key)? - fast_ns).max(0.0))
}

/// A counter's growth per op with its scatter. What goes on without load is taken away from it, but not from its scatter.
pub(crate) fn per_op(demand: &HostDemand, key: &str) -> Option<Ratio> {
    let sums = demand.scatter.counters.get(key)?;
    let (ops, grown) = (demand.ops as f64, *demand.growth.get(key)? as f64);
    let squares = [demand.scatter.ops_squares, sums.products, sums.squares];
    let ratio = Ratio::of_sums(demand.scatter.slots, [ops, grown], squares)?;
    Some(Ratio { mid: demand.per_op(key)?, ..ratio })
}

/// Time that passes while a process works is not waited for. Up to this part of it, waiting is what it consists of.
pub(crate) const MOSTLY_WAITING: f64 = 0.3;

/// A counter's growth on either side: in all and per op.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) total: f64,
    pub(crate) per_op: f64,
    /// Per op on the fast side; `None` where its machine is not read.
    pub(crate) fast_per_op: Option<f64>,
}

impl Counted {
    /// Fewer events than this say little of their rate: ten scatter by a third of their number (Poisson).
    const LEAST_EVENTS: f64 = 10.0;
    /// So many times the fast side's is more than chance makes of [`Counted::LEAST_EVENTS`] events on both sides.
    const CLEARLY_MORE: f64 = 3.0;

    /// `None` where the slow side's machine does not tell.
    pub(crate) fn of(demands: &Demands<'_>, key: &str) -> Option<Self> {
        let fast_per_op = demands.fast.and_then(|fast: &HostDemand| fast.per_op(key));
        let per_op = demands.slow.per_op(key)?;
        Some(Self { total: per_op * demands.slow.ops as f64, per_op, fast_per_op })
    }

    /// Enough events to speak of, and clearly more than on the fast side, as far as that is known.
    pub(crate) fn is_marked(self) -> bool {
        let more = self.fast_per_op.is_none_or(|fast| self.per_op >= Self::CLEARLY_MORE * fast);
        self.total >= Self::LEAST_EVENTS && more
    }
}
