//! Block bootstrap of the Hodges-Lehmann estimate: the cross-check that does not assume independent pairs.

use crate::signed_rank::{Span, Walsh};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Resamples; one less than a round number, so that 2.5 % of resamples + 1 is an integer (25) and both ends of the
/// interval are order statistics at equal distance from the ends (Davison and Hinkley 1997).
const RESAMPLES: usize = 999;

/// Estimates from resamples (Hodges-Lehmann's, or others), from which intervals of any confidence can be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resampled {
    /// In rising order.
    values: Vec<f64>,
    blocks: usize,
}

impl Resampled {
    /// Of values in any order from resamples of so many blocks; `None` where some resample gave none.
    pub(crate) fn new(mut values: Vec<f64>, blocks: usize) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        (values.len() == RESAMPLES && blocks > 1).then_some(Self { values, blocks })
    }

    /// Percentile interval: what the resamples say as they stand.
    pub(crate) fn percentile(&self, confidence: f64) -> Span {
        self.cut((1.0 - confidence) / 2.0)
    }

    /// Expanded percentile interval, for what resamples of few blocks leave out.
    ///
    /// Resamples of B blocks scatter less than new runs would, by the square root of (B - 1) / B, and their quantiles
    /// are those of a known variance, not of one estimated from B blocks. Taking quantiles further out makes up for
    /// both: at the normal probability of `t * sqrt(B / (B - 1))` instead of `z` (Hesterberg 2015).
    pub(crate) fn expanded(&self, confidence: f64) -> Span {
        self.cut(expanded_tail((1.0 - confidence) / 2.0, self.blocks))
    }

    fn cut(&self, tail: f64) -> Span {
        let tail = ((tail * (RESAMPLES + 1) as f64).round() as usize).clamp(1, RESAMPLES / 2);
        Span { low: self.values[tail - 1], high: self.values[RESAMPLES - tail] }
    }
}

/// Bootstrap of the Hodges-Lehmann estimate over resamples of whole blocks.
///
/// `blocks[i]` tells the block of the i-th value that `walsh` was built from; equal numbers are one block and are
/// drawn together, so that whatever ties the pairs of a block to each other stays in the resamples (Künsch 1989).
/// The same seed gives the same resamples. `None` with fewer than two blocks.
///
/// A resample repeats value i some `c[i]` times, so its Walsh averages are the ones that are there already: `c[i] c[j]`
/// of each, `c[i] (c[i] + 1) / 2` of those of a value with itself. The median is found by walking them in order,
/// without sorting anything anew.
pub(crate) fn block_bootstrap(walsh: &Walsh, blocks: &[u32], seed: u64) -> Option<Resampled> {
    let (places, count) = number_blocks(blocks);
    if count < 2 {
        return None;
    }
    let mut drawn = vec![0u64; count];
    let mut copies = vec![0u64; blocks.len()];
    let mut medians: Vec<f64> = Vec::with_capacity(RESAMPLES);
    for blocks in resampled_blocks(count, seed) {
        drawn.fill(0);
        for block in blocks {
            drawn[block] += 1;
        }
        for (copies, &place) in copies.iter_mut().zip(&places) {
            *copies = drawn[place];
        }
        medians.push(weighted_median(walsh, &copies));
    }
    Resampled::new(medians, count)
}

/// The blocks of each resample: as many as there are, drawn with replacement. The same seed gives the same ones.
pub(crate) fn resampled_blocks(count: usize, seed: u64) -> impl Iterator<Item = Vec<usize>> {
    let mut rng = Pcg64::seed_from_u64(seed);
    (0..RESAMPLES).map(move |_| (0..count).map(|_| rng.random_range(0..count)).collect())
}

/// The probability to cut off at either end in place of `tail`, with so many blocks.
fn expanded_tail(tail: f64, blocks: usize) -> f64 {
    let blocks = blocks as f64;
    let Ok(student) = StudentsT::new(0.0, 1.0, blocks - 1.0) else { return tail };
    Normal::standard().cdf(student.inverse_cdf(tail) * (blocks / (blocks - 1.0)).sqrt())
}

/// Numbers the blocks 0, 1, 2, ... by rising block; returns each value's number and how many blocks there are.
fn number_blocks(blocks: &[u32]) -> (Vec<usize>, usize) {
    let mut distinct = blocks.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    (blocks.iter().map(|block| distinct.partition_point(|other| other < block)).collect(), distinct.len())
}

fn weighted_median(walsh: &Walsh, copies: &[u64]) -> f64 {
    let values: u64 = copies.iter().sum();
    let total = values * (values + 1) / 2;
    // Ranks of the lower and upper median, counted from 1; the same when the total is odd.
    let (lower, upper) = (total.div_ceil(2), total / 2 + 1);
    let mut seen = 0;
    let mut low = 0.0;
    for &(average, i, j) in walsh.averages() {
        let (a, b) = (copies[i as usize], copies[j as usize]);
        let weight = if i == j { a * (a + 1) / 2 } else { a * b };
        if seen < lower {
            low = average;
        }
        seen += weight;
        if seen >= upper {
            return (low + average) / 2.0;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resample_has_the_median_of_its_repeated_values() {
        let values = [0.3, -0.1, 0.7, 0.2];
        let walsh = Walsh::new(&values);
        for copies in [[1, 1, 1, 1], [0, 2, 1, 3], [4, 0, 0, 0], [2, 0, 0, 2], [1, 0, 0, 3], [0, 0, 1, 1]] {
            let repeated: Vec<f64> =
                values.iter().zip(copies).flat_map(|(&v, c)| std::iter::repeat_n(v, c as usize)).collect();
            let expected = Walsh::new(&repeated).median().unwrap();
            assert!((weighted_median(&walsh, &copies) - expected).abs() < 1e-15, "{copies:?}");
        }
    }

    #[test]
    fn mirrored_values_give_the_mirrored_interval() {
        let values = [0.1, -0.2, 0.35, 0.05, 0.6, -0.15, 0.22, 0.4];
        let mirrored = values.map(|v| -v);
        let blocks = [0, 0, 1, 1, 2, 2, 3, 3];
        let there = block_bootstrap(&Walsh::new(&values), &blocks, 7).unwrap();
        let back = block_bootstrap(&Walsh::new(&mirrored), &blocks, 7).unwrap();
        for (there, back) in
            [(there.percentile(0.95), back.percentile(0.95)), (there.expanded(0.95), back.expanded(0.95))]
        {
            assert_eq!((there.low, there.high), (-back.high, -back.low));
        }
    }

    #[test]
    fn few_blocks_are_expanded_more() {
        // SciPy 1.17.1: scipy.stats.norm.cdf(scipy.stats.t.ppf(0.025, B - 1) * (B / (B - 1)) ** 0.5).
        for (blocks, tail) in [
            (4, 0.00011903073915322568),
            (6, 0.0024318031746115563),
            (15, 0.013207173126811439),
            (100, 0.023064387207087624),
        ] {
            assert!((expanded_tail(0.025, blocks) / tail - 1.0).abs() < 1e-6, "{blocks}");
        }
    }

    #[test]
    fn one_block_tells_nothing() {
        assert_eq!(block_bootstrap(&Walsh::new(&[0.1, 0.2]), &[4, 4], 1), None);
    }

    #[test]
    fn pairs_that_move_together_widen_the_interval() {
        // Eight blocks of two equal pairs: half as much evidence as sixteen pairs.
        let values: Vec<f64> = [0.3, -0.2, 0.1, 0.5, -0.4, 0.0, 0.2, -0.1].iter().flat_map(|&v| [v, v]).collect();
        let together: Vec<u32> = (0..16).map(|i| i / 2).collect();
        let apart: Vec<u32> = (0..16).collect();
        let walsh = Walsh::new(&values);
        let wide = block_bootstrap(&walsh, &together, 1).unwrap().percentile(0.95).half_width();
        let narrow = block_bootstrap(&walsh, &apart, 1).unwrap().percentile(0.95).half_width();
        assert!(wide > 1.2 * narrow, "{wide} {narrow}");
    }
}
