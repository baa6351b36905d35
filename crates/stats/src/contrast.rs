//! One target against the baseline in one metric: estimate and interval, not yet a call.

use crate::bootstrap::block_bootstrap;
use crate::lasting::lasting;
use crate::pairing::{Pair, batched, log_ratios};
use crate::signed_rank::{Span, Walsh, pairs_needed};
use duel_model::ComparePlan;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What the pairs say, in logarithms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Contrast {
    /// Hodges-Lehmann estimate of the log-ratio.
    pub estimate: Option<f64>,
    /// Interval at the plan's confidence, the widest of several at either end.
    pub interval: Option<Span>,
    /// Interval that must exclude 0 for a call: see [`duel_model::call_confidence`].
    pub calling: Option<Span>,
    /// Half widths of rank interval and bootstrap, where they differ so much that it must be said.
    pub disagreement: Option<(f64, f64)>,
}

impl Contrast {
    /// The same, had all pairs come out so much higher.
    pub(crate) fn shifted(self, by: f64) -> Self {
        let moved = |span: Span| Span { low: span.low + by, high: span.high + by };
        Self {
            estimate: self.estimate.map(|estimate| estimate + by),
            interval: self.interval.map(moved),
            calling: self.calling.map(moved),
            disagreement: self.disagreement,
        }
    }
}

/// How many times wider the bootstrap may be. If the pairs of a block were one and the same observation, half the pairs
/// would carry all evidence and the bootstrap would be wider by the square root of 2; beyond 1.5, dependence reaches
/// from block to block or a few blocks are unlike all others.
const WIDER_AT_MOST: f64 = 1.5;

/// Estimates the log-ratio and encloses it.
///
/// The signed-rank interval is exact if the pairs are independent. The bootstrap needs only independent blocks, but is
/// an approximation that is good with many of them; with very few, Student's t on the means of blocks stands in. Student's t on
/// the means of batches of blocks needs only that noise does not last as long as they do ([`lasting`]). None of them is right
/// always, so the union is used, whether or not they disagree enough for a doubt: it costs a fifth of the width when the pairs are
/// independent, and keeps the error rate when pairs move together.
pub(crate) fn contrast(pairs: &[Pair], compare: &ComparePlan) -> Contrast {
    contrast_among(pairs, compare, 1)
}

/// As [`contrast`], one of so many `looks`: each is made at so much more confidence that all of them together err no more
/// often than a single one (Bonferroni).
///
/// Whether there are pairs enough is asked at the plan's confidence. At the higher one a rank interval may not exist; then
/// bootstrap and Student's t stand without it.
pub(crate) fn contrast_among(pairs: &[Pair], compare: &ComparePlan, looks: usize) -> Contrast {
    let pairs = batched(pairs);
    let values = log_ratios(&pairs);
    let blocks: Vec<u32> = pairs.iter().map(|pair| pair.block).collect();
    let walsh = Walsh::new(&values);
    let estimate = walsh.median();
    let Some(rank) = walsh.interval(compare.confidence) else {
        return Contrast { estimate, ..Contrast::default() };
    };
    let resampled = block_bootstrap(&walsh, &blocks, compare.seed);
    let enclose = |confidence: f64| {
        // A rank interval takes more pairs the surer it is to be; where there are too few, Student's t stands alone.
        let spans = [
            walsh.interval(confidence),
            resampled.as_ref().map(|resampled| resampled.expanded(confidence)),
            few_blocks(&pairs, confidence),
            estimate.and_then(|estimate| lasting(&pairs, estimate, confidence)),
        ];
        spans.into_iter().flatten().reduce(Span::union)
    };
    let each = |confidence: f64| 1.0 - (1.0 - confidence) / looks.max(1) as f64;
    let disagreement = resampled.as_ref().and_then(|resampled| {
        let (narrow, wide) = (rank.half_width(), resampled.percentile(compare.confidence).half_width());
        (wide > WIDER_AT_MOST * narrow && wide - narrow > log_margin(compare) / 4.0).then_some((narrow, wide))
    });
    Contrast {
        estimate,
        interval: enclose(each(compare.confidence)),
        calling: enclose(each(duel_model::call_confidence(compare.confidence))),
        disagreement,
    }
}

/// Student's t interval of the means of blocks, where there are at least two but fewer than a signed-rank interval of
/// blocks takes: 2 to 5 at 0.95, 2 to 7 at 0.99.
///
/// So few blocks have no interval without an assumption on the shape of noise: no resample of them reaches beyond the
/// largest block, and if the pairs of a block are one and the same observation, three blocks lie on one side of zero in
/// every fourth A/A run. Student's t is exact for normal noise and errs to the wide side for heavier tails. A gap worth
/// stopping for after three blocks is so much larger than the noise that the width does not matter.
fn few_blocks(pairs: &[Pair], confidence: f64) -> Option<Span> {
    let means = block_means(pairs);
    if means.len() >= pairs_needed(confidence)? as usize {
        return None;
    }
    students_t(&means, confidence)
}

/// The mean of each block.
pub(crate) fn block_means(pairs: &[Pair]) -> Vec<f64> {
    pairs
        .chunk_by(|a, b| a.block == b.block)
        .map(|block| block.iter().map(|pair| pair.log_ratio).sum::<f64>() / block.len() as f64)
        .collect()
}

/// Student's t interval of the mean of independent values; `None` with fewer than two.
pub(crate) fn students_t(values: &[f64], confidence: f64) -> Option<Span> {
    let count = values.len() as f64;
    // Archives may hold any confidence.
    if values.len() < 2 || !(0.0..1.0).contains(&confidence) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let half_width = student.inverse_cdf(f64::midpoint(1.0, confidence)) * (variance / count).sqrt();
    Some(Span { low: mean - half_width, high: mean + half_width })
}

/// The practical margin as a log-ratio, so that it is the same in both directions. Negative or unknown margins are 0.
pub(crate) fn log_margin(compare: &ComparePlan) -> f64 {
    compare.margin.max(0.0).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_blocks_agree_with_scipy() {
        // SciPy 1.17.1: scipy.stats.t.interval(0.95, 2, loc=m.mean(), scale=scipy.stats.sem(m)), m the means of blocks.
        let pairs: Vec<Pair> = [0.1, 0.3, 0.2, 0.2, 0.5, 0.1]
            .iter()
            .enumerate()
            .map(|(i, &log_ratio)| Pair { block: i as u32 / 2, log_ratio })
            .collect();
        let few = few_blocks(&pairs, 0.95).unwrap();
        assert!(
            (few.low - 0.08991157567501795).abs() < 1e-9 && (few.high - 0.37675509099164867).abs() < 1e-9,
            "{few:?}"
        );
        // The signed-rank interval reaches from 0.1 to 0.5: the union is wider than either.
        let both = contrast(&pairs, &ComparePlan::default()).interval.unwrap();
        assert_eq!((both.low, both.high), (few.low, 0.5));
        // Six pairs of six blocks need no assumption.
        let apart: Vec<Pair> = (0..6).map(|block| Pair { block, log_ratio: 0.1 }).collect();
        assert_eq!(few_blocks(&apart, 0.95), None);
        assert_eq!(few_blocks(&pairs[..2], 0.95), None);
    }
}
