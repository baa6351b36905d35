//! Noise that outlasts a block: how wide an interval has to be for it.

use crate::pairing::Pair;
use crate::signed_rank::Span;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest batches that a width is taken from: three have means that tell too little of their scatter.
const FEWEST_BATCHES: usize = 4;
/// Largest quantile of Student's t at which batches are used: of four batches it is 3.2 at 0.95 and 5.8 at 0.99. Where calls are made
/// at more confidence (several levels of a factor), it takes more batches to stay below; else nothing would be known any more.
const LARGEST_QUANTILE: f64 = 6.0;
/// Fewest blocks of which two make a batch: with fewer nothing is seen of noise that outlasts a block.
pub(crate) const FEWEST_BLOCKS: usize = 2 * FEWEST_BATCHES;
/// Deviations from the estimate count up to so many times their typical size (1.4826 times their median, which for normal noise is
/// their standard deviation). A few wild slots move a Hodges-Lehmann estimate little, so they must not make its interval wide; normal
/// noise is cut once in two million slots.
const WILD: f64 = 5.0;

/// The interval that noise asks for which lasts longer than a block: Student's t on the means of batches of 1, 2, 4, 8, ...
/// neighbouring blocks, around the estimate, the widest of them. `None` with fewer than [`FEWEST_BLOCKS`].
///
/// A target that is slower for seconds at a time (another placement in memory, a neighbour, a phase of its own) makes blocks that
/// resemble their neighbours. All methods that take blocks for independent are then too sure: with noise of a target's own of
/// AR(1) with 0.9 from slot to slot, two equal targets were called faster or slower in one run of seven. The means of batches that are
/// long against the memory of the noise are nearly independent, and Student's t on them is right (batch means; Conway 1963, Law and
/// Carson 1979). How long that memory is nobody knows, so all lengths are tried that leave enough batches. Rejected: the batch length
/// by a test for correlation (with few batches it finds none) and a factor from the correlation seen at lag 1 (with 15 blocks its
/// error is as large as what it is to measure; where it protects, it costs half of the power where noise does not last).
pub(crate) fn lasting(pairs: &[Pair], estimate: f64, confidence: f64) -> Option<Span> {
    let typical = 1.4826 * median(pairs.iter().map(|pair| (pair.log_ratio - estimate).abs()).collect())?;
    let most = WILD * typical;
    let blocks: Vec<f64> = pairs
        .chunk_by(|a, b| a.block == b.block)
        .map(|block| {
            block.iter().map(|pair| (pair.log_ratio - estimate).clamp(-most, most)).sum::<f64>() / block.len() as f64
        })
        .collect();
    if blocks.len() < FEWEST_BLOCKS {
        return None;
    }
    let lengths = std::iter::successors(Some(1), |length| Some(2 * length));
    let half_width = lengths
        .map(|length| blocks.len() / length)
        .take_while(|batches| *batches >= FEWEST_BATCHES)
        .filter_map(|batches| Some((batches, quantile(batches, confidence)?)))
        .take_while(|(batches, quantile)| *batches == blocks.len() || *quantile <= LARGEST_QUANTILE)
        .map(|(batches, quantile)| quantile * error_of_mean(&batch_means(&blocks, batches)))
        .reduce(f64::max)?;
    Some(Span { low: estimate - half_width, high: estimate + half_width })
}

/// Means of so many batches of neighbours, as equally long as they can be.
fn batch_means(blocks: &[f64], batches: usize) -> Vec<f64> {
    (0..batches)
        .map(|batch| {
            let of = &blocks[batch * blocks.len() / batches..(batch + 1) * blocks.len() / batches];
            of.iter().sum::<f64>() / of.len() as f64
        })
        .collect()
}

/// How many standard errors Student's t interval reaches to either side, for so many values.
fn quantile(values: usize, confidence: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, values as f64 - 1.0).ok()?.inverse_cdf(f64::midpoint(1.0, confidence)))
}

/// Standard error of the mean of independent values.
fn error_of_mean(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt()
}

/// The middle value, the upper one of two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(blocks: &[f64]) -> Vec<Pair> {
        let both = |(block, value): (usize, &f64)| [(); 2].map(|()| Pair { block: block as u32, log_ratio: *value });
        blocks.iter().enumerate().flat_map(both).collect()
    }

    #[test]
    fn agrees_with_scipy() {
        // SciPy 1.17.1: scipy.stats.t.ppf(0.975, len(m) - 1) * scipy.stats.sem(m) for m the eight values, and for the means of
        // their neighbours two by two; the wider of the two.
        let values = [0.01, 0.03, 0.02, -0.01, 0.0, 0.02, 0.04, 0.01];
        let span = lasting(&pairs(&values), 0.015, 0.95).unwrap();
        assert!((span.half_width() - 0.014525813578773828).abs() < 1e-9, "{}", span.half_width());
        assert!((f64::midpoint(span.low, span.high) - 0.015).abs() < 1e-12);
    }

    #[test]
    fn what_lasts_makes_it_wider_and_the_order_is_what_tells() {
        let apart: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 0.01 } else { -0.01 }).collect();
        let lasts: Vec<f64> = (0..16).map(|i| if i / 4 % 2 == 0 { 0.01 } else { -0.01 }).collect();
        let half = |values: &[f64]| lasting(&pairs(values), 0.0, 0.95).unwrap().half_width();
        assert!(half(&lasts) > 3.0 * half(&apart), "{} and {}", half(&lasts), half(&apart));
    }

    #[test]
    fn what_is_to_be_surer_takes_more_batches() {
        // Blocks in pairs of alike ones: batches of two are as far apart as single blocks. Of eight blocks these are four batches.
        let twos: Vec<f64> = (0..8).map(|i| if i / 2 % 2 == 0 { 0.01 } else { -0.01 }).collect();
        let reach = |confidence| {
            let half_width = lasting(&pairs(&twos), 0.0, confidence).unwrap().half_width();
            half_width / error_of_mean(&batch_means(&twos, 4))
        };
        assert!((reach(0.99) - quantile(4, 0.99).unwrap()).abs() < 1e-9);
        assert!(reach(0.998) < quantile(4, 0.998).unwrap() / 2.0, "by eight blocks, and not by four batches");
    }

    #[test]
    fn a_wild_slot_makes_it_little_wider() {
        let mut values: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 0.01 } else { -0.01 }).collect();
        let half = |values: &[f64]| lasting(&pairs(values), 0.0, 0.95).unwrap().half_width();
        let calm = half(&values);
        values[5] = -2.0;
        assert!(half(&values) < 3.0 * calm, "{} and {calm}", half(&values));
    }

    #[test]
    fn few_blocks_tell_nothing_of_it() {
        assert_eq!(lasting(&pairs(&[0.01; 7]), 0.01, 0.95), None);
        assert_eq!(lasting(&[], 0.0, 0.95), None);
        // All alike: no width, and no error.
        assert_eq!(lasting(&pairs(&[0.01; 8]), 0.01, 0.95).map(Span::half_width), Some(0.0));
    }
}
