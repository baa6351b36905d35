//! What losses make of a stream: how many segments are under way where each one that gets lost halves them.

use crate::evidence::counted::Counted;
use crate::gap::Demands;

/// What a side's machine sends again of all that it sends, and how that stands beside the other side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) counted: Counted,
    /// Of all segments that the slow side's machine sends.
    pub(crate) share: f64,
}

impl Lost {
    /// Fewer say little of their share: ten scatter by a third of their number (Poisson).
    const LEAST: f64 = 10.0;
    /// Other algorithms than the one that the law below is of, and losses that come in bursts, make up to so many times more of it, or
    /// less.
    const WITHIN: f64 = 4.0;

    /// `None` where the slow side's machine does not tell, or sends nothing again.
    pub(crate) fn of(demands: &Demands<'_>) -> Option<Self> {
        let counted = Counted::of(demands, "tcp.retransmitted_segments")?;
        let sent = demands.slow.per_op("tcp.sent_segments").filter(|&sent| sent > 0.0)?;
        (counted.per_op > 0.0).then_some(Self { counted, share: counted.per_op / sent })
    }

    /// Segments under way on average where each loss halves them and each round trip adds one: the root of 1.5 over the share that gets
    /// lost (Mathis et al. 1997).
    pub(crate) fn segments_under_way(self) -> f64 {
        (1.5 / self.share).sqrt()
    }

    /// Whether so many segments under way are about what such losses leave.
    pub(crate) fn leaves(self, segments: f64) -> bool {
        let times = segments / self.segments_under_way();
        self.counted.total >= Self::LEAST && (1.0 / Self::WITHIN..=Self::WITHIN).contains(&times)
    }
}
