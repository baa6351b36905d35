//! Rates over all of the time: whatever a target loses in some of it counts.

use crate::contrast::{Contrast, log_margin, students_t};
use crate::signed_rank::Span;
use duel_model::{Call, ComparePlan, Slot};
use std::collections::BTreeMap;

/// What one slot adds to the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    pub(crate) target: usize,
    pub(crate) block: u32,
    pub(crate) ok: f64,
    pub(crate) time_ns: f64,
}

impl Part {
    pub(crate) fn of(slot: &Slot) -> Self {
        Self { target: slot.target, block: slot.block, ok: slot.tally.ok as f64, time_ns: slot.elapsed_ns as f64 }
    }
}

/// All ops of a target by all of its time over those of the baseline.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    /// In log.
    pub(crate) log_ratio: f64,
    /// How much each block moves it, times the number of blocks; empty where that is not known.
    moves: Vec<f64>,
}

impl Whole {
    /// `None` where one side did nothing.
    pub(crate) fn of(
        parts: impl IntoIterator<Item = Part>,
        target: usize,
        baseline: usize,
        compare: &ComparePlan,
    ) -> Option<Self> {
        let mut blocks: BTreeMap<u32, [[f64; 2]; 2]> = BTreeMap::new();
        let mut sums = [[0.0; 2]; 2];
        for part in parts {
            let Some(side) = [target, baseline].iter().position(|side| *side == part.target) else { continue };
            for of in [&mut sums[side], &mut blocks.entry(part.block).or_default()[side]] {
                of[0] += part.ok;
                of[1] += part.time_ns;
            }
        }
        if sums.iter().flatten().any(|sum| *sum <= 0.0) {
            return None;
        }
        let [log_target, log_baseline] = sums.map(|[ok, time_ns]| (ok / time_ns).ln());
        // To first order, as ratios of sums have it (Cochran 1977, "Sampling Techniques", 6.3). Over starts blocks are not independent.
        let count = if compare.restart.is_none() { blocks.len() as f64 } else { 0.0 };
        let of_side =
            |block: &[[f64; 2]; 2], side: usize| block[side][0] / sums[side][0] - block[side][1] / sums[side][1];
        let moves =
            blocks.values().filter(|_| count > 0.0).map(|block| count * (of_side(block, 0) - of_side(block, 1)));
        Some(Self { log_ratio: log_target - log_baseline, moves: moves.collect() })
    }

    /// Student's t on the blocks; `None` where it is not known.
    pub(crate) fn interval(&self, confidence: f64) -> Option<Span> {
        let around = students_t(&self.moves, confidence)?;
        Some(Span { low: self.log_ratio + around.low, high: self.log_ratio + around.high })
    }

    /// The verdict by it alone.
    pub(crate) fn contrast(&self, compare: &ComparePlan) -> Contrast {
        Contrast {
            estimate: Some(self.log_ratio),
            interval: self.interval(compare.confidence),
            calling: self.interval(duel_model::call_confidence(compare.confidence)),
            disagreement: None,
        }
    }

    /// Whether it is another one than that of the typical pair of slots, by more than its interval and half of the margin.
    pub(crate) fn contradicts(&self, typical: &Contrast, compare: &ComparePlan) -> bool {
        let (Some(estimate), Some(interval)) = (typical.estimate, typical.interval) else { return false };
        !interval.contains(self.log_ratio) && (self.log_ratio - estimate).abs() > log_margin(compare) / 2.0
    }

    /// Whether a call of the rate may stand beside it.
    ///
    /// The estimate is that of the typical pair of slots, which a few slots do not move however much they differ: pauses of a
    /// server that fall into one slot of ten would make no difference, and the servers would be called equivalent. Whoever serves
    /// so much less over the whole is not equivalent, nor who may do so by what is known of the whole; and a call of the one
    /// direction does not stand against the other.
    pub(crate) fn lets_stand(&self, call: Call, compare: &ComparePlan) -> bool {
        let margin = log_margin(compare);
        match call {
            Call::Equivalent => {
                let is_within = |span: Span| -margin <= span.low && span.high <= margin;
                self.log_ratio.abs() <= margin && self.interval(compare.confidence).is_none_or(is_within)
            }
            Call::Faster => self.log_ratio > 0.0,
            Call::Slower => self.log_ratio < 0.0,
            Call::Unknown => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(target: usize, block: u32, ok: f64, time_ns: f64) -> Part {
        Part { target, block, ok, time_ns }
    }

    #[test]
    fn the_interval_is_that_of_a_ratio_of_sums() {
        let blocks =
            [(0, 10.0, 1.0, 8.0, 1.0), (1, 11.0, 1.1, 7.0, 1.2), (2, 9.0, 1.0, 9.0, 1.1), (3, 12.0, 1.2, 8.0, 0.9)];
        let parts = || {
            let both = |(block, ok, time, ok_b, time_b)| [part(0, block, ok, time), part(1, block, ok_b, time_b)];
            blocks.into_iter().flat_map(both)
        };
        let compare = ComparePlan::default();
        let whole = Whole::of(parts(), 1, 0, &compare).unwrap();
        assert!((whole.log_ratio - ((32.0f64 / 4.2).ln() - (42.0f64 / 4.3).ln())).abs() < 1e-12);
        // The jackknife is another way to the same error, but for terms of the second order.
        let without = |left_out: u32| Whole::of(parts().filter(|part| part.block != left_out), 1, 0, &compare).unwrap();
        let left: Vec<f64> = (0..4).map(|block| without(block).log_ratio).collect();
        let mean = left.iter().sum::<f64>() / 4.0;
        let error = (left.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() * 3.0 / 4.0).sqrt();
        let half_width = whole.interval(0.95).unwrap().half_width();
        assert!((half_width / (3.182 * error) - 1.0).abs() < 0.05, "{half_width} against {error}");
    }

    #[test]
    fn who_did_nothing_has_no_ratio_and_one_block_no_interval() {
        let compare = ComparePlan::default();
        assert!(Whole::of([part(0, 0, 5.0, 1.0), part(1, 0, 0.0, 1.0)], 1, 0, &compare).is_none());
        let one = Whole::of([part(0, 0, 5.0, 1.0), part(1, 0, 4.0, 1.0)], 1, 0, &compare).unwrap();
        assert!(one.interval(0.95).is_none() && one.contrast(&compare).calling.is_none());
    }
}
