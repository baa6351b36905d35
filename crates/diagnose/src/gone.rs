//! How much of a gap a flip takes away.

use crate::gap::Flip;
use duel_stats::Estimate;

/// How much of a gap goes away under a flip, as shares of the whole. There are three such shares, which differ the more the larger
/// the gap is, and each answers questions of its own. So who asks goes by the question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone {
    /// Of the log of the ratio: 1 - ln(left)/ln(r). Causes that multiply add up in it.
    of_ratio: Estimate,
    /// Of the difference in time per op. Causes that add time add up in it. Of several that do, each alone moves little of the log of
    /// a large gap.
    of_time: Estimate,
    /// What the fast side alone pays under the flip, as a share of the log of the ratio: the slow side takes as long as before. That is
    /// what the slow side pays already, and in proportion to all else that makes it slow. It accuses nobody: all that it can do is to
    /// keep a cause from being ruled out. `None` where the flip was no such one.
    of_fast_alone: Option<Estimate>,
}

impl Gone {
    /// Of several causes that add up, each alone moves little of the log of a large gap (of two equal ones that make it
    /// 20x, 22 %). A quarter of the *time* is then accepted, if the log moves as well.
    const LEAST_OF_MANY: f64 = 0.1;

    pub(crate) fn new(of_ratio: Estimate, of_time: Estimate, of_fast_alone: Option<Estimate>) -> Self {
        Self { of_ratio, of_time, of_fast_alone }
    }

    /// The share of the gap, within 0 and 1: what is told to people, and what a finding explains.
    pub(crate) fn share(&self) -> f64 {
        self.of_ratio.mid.clamp(0.0, 1.0)
    }

    /// The most that this share may be, within 0 and 1.
    pub(crate) fn most(&self) -> f64 {
        self.of_ratio.high().clamp(0.0, 1.0)
    }

    /// The same share as it was measured, beyond 0 and 1 too: what flips of one gap are held against each other by.
    pub(crate) fn compared(&self) -> Estimate {
        self.of_ratio
    }

    /// The share of the time: what is held against a price that all work would pay.
    pub(crate) fn of_time(&self) -> Estimate {
        self.of_time
    }

    /// It is worth a name, by the best estimate.
    pub(crate) fn is_noteworthy(&self) -> bool {
        self.of_ratio.mid >= Flip::NOTEWORTHY
            || (self.of_ratio.mid >= Self::LEAST_OF_MANY && self.of_time.mid >= Flip::NOTEWORTHY)
    }

    /// Whichever way it is counted, it is not worth a name, not even the most that it may be. Of two causes that multiply, one that
    /// only the fast side is made to pay seems to move less than it would on the slow side.
    pub(crate) fn is_negligible(&self) -> bool {
        let is_little = |share: Estimate| share.high() < Flip::NOTEWORTHY;
        is_little(self.of_ratio) && is_little(self.of_time) && self.of_fast_alone.is_none_or(is_little)
    }

    /// It explains the gap, by the best estimate.
    pub(crate) fn explains(&self) -> bool {
        self.of_ratio.mid >= Flip::EXPLAINS
    }

    /// It is more than half of the gap beyond the interval.
    pub(crate) fn is_most(&self) -> bool {
        self.of_ratio.low() > 0.5
    }

    /// The gap is larger under the flip, and that may be by enough to be worth a name.
    pub(crate) fn is_growth(&self) -> bool {
        -self.of_ratio.low() > Flip::NOTEWORTHY && self.of_ratio.high() < 0.0
    }
}
