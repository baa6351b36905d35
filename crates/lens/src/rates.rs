//! From rounds to rates, and how many times one is the other. Pure.

use duel_model::{Gain, LensFigure, LensOp, LensTreatment, MaskEffect, Nanos};

/// Rounds of one operation in one child process, or with one command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) op: LensOp,
    pub(crate) block_bytes: Option<u32>,
    pub(crate) treatment: LensTreatment,
    /// Bytes or operations per second.
    pub(crate) rounds_per_s: Vec<f64>,
    pub(crate) cpu_ns: Nanos,
    pub(crate) wall_ns: Nanos,
}

/// What the masks change for one operation, at its largest size.
pub(crate) fn effect(samples: &[Sample], op: LensOp) -> Option<MaskEffect> {
    let block_bytes = samples.iter().filter(|sample| sample.op == op).map(|sample| sample.block_bytes).max()?;
    let of = |treatment| -> Vec<&Sample> {
        samples
            .iter()
            .filter(|s| s.op == op && s.block_bytes == block_bytes && s.treatment == treatment)
            .filter(|s| !s.rounds_per_s.is_empty())
            .collect()
    };
    let noise = LensTreatment::ALL
        .iter()
        .filter_map(|&treatment| noise(&of(treatment)))
        .fold(None, |most, noise| Some(most.map_or(noise, |most: f64| most.max(noise))));
    let whole = of(LensTreatment::Whole);
    let (as_is, aes_masked) = (of(LensTreatment::AsIs), of(LensTreatment::AesMasked));
    let gain = |above: &[&Sample], below: &[&Sample]| gain(above, below, noise);
    Some(MaskEffect {
        op,
        block_bytes,
        environment: gain(&whole, &as_is),
        left: gain(&as_is, &aes_masked),
        aes_mask: gain(&whole, &aes_masked),
        full_mask: gain(&whole, &of(LensTreatment::AllMasked)),
        noise,
    })
}

/// How many times the medians of the same treatment differ between processes. Where every process gave a single rate, and
/// there are enough for an [interval], the spread of the rates has that difference in it already.
fn noise(samples: &[&Sample]) -> Option<f64> {
    let single = samples.iter().all(|sample| sample.rounds_per_s.len() == 1);
    if single && samples.len() >= FEWEST_RATES {
        return Some(1.0);
    }
    let medians: Vec<f64> = samples.iter().filter_map(|sample| median(&sample.rounds_per_s)).collect();
    let (low, high) = medians.iter().fold((f64::MAX, 0.0_f64), |(low, high), &m| (low.min(m), high.max(m)));
    (medians.len() > 1 && low > 0.0).then(|| high / low)
}

/// The ratio of two medians. Its interval is that of each median by the signs of its rounds, at 97.5 % each, so that both
/// hold at 95 %; and since rounds of one process have its luck in common, it is widened by what two processes of the same
/// treatment differ by.
///
/// Fewer rates have no such interval. `openssl speed` takes a second for each, so there are two: then it is their range,
/// widened by the most that any treatment of the operation differed from its own repeat. That has no known confidence; the
/// differences that are looked for are of five times and more.
fn gain(above: &[&Sample], below: &[&Sample], noise: Option<f64>) -> Option<Gain> {
    let pooled = |samples: &[&Sample]| -> Vec<f64> {
        let mut rounds: Vec<f64> =
            samples.iter().flat_map(|s| &s.rounds_per_s).copied().filter(|r| r.is_finite() && *r > 0.0).collect();
        rounds.sort_by(f64::total_cmp);
        rounds
    };
    let bounds = |sorted: &[f64]| match sorted {
        [low, .., high] if sorted.len() < FEWEST_RATES => Some((*low, *high)),
        _ => interval(sorted),
    };
    let (above, below) = (pooled(above), pooled(below));
    let ratio = median(&above)? / median(&below)?;
    let ((above_low, above_high), (below_low, below_high)) = (bounds(&above)?, bounds(&below)?);
    let noise = noise?;
    let gain = Gain { ratio, low: above_low / below_high / noise, high: above_high / below_low * noise };
    // A child may send any figure, also one that no machine has and whose sums or ratios leave what a float can hold.
    [gain.ratio, gain.low, gain.high].iter().all(|figure| figure.is_finite()).then_some(gain)
}

/// Fewest values that have an [interval].
const FEWEST_RATES: usize = 7;

/// The interval of the median of sorted values by their ranks, at 97.5 % at least: from the `k`-th lowest to the `k`-th
/// highest, with the largest `k` for which fewer than `k` of `n` values fall on one side of the median with a probability
/// of 1.25 % at most. `None` for fewer than 7 values.
fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    const TAIL: f64 = 0.0125;
    let n = sorted.len();
    // Probability of exactly `i` of `n`, beginning with none.
    let mut exactly = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut below = 0.0;
    let mut k = 0;
    while k < n / 2 && below + exactly <= TAIL {
        below += exactly;
        exactly *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    (k > 0).then(|| (sorted[k - 1], sorted[n - k]))
}

/// Every figure, in the order in which they are shown.
pub(crate) fn figures(samples: &[Sample]) -> Vec<LensFigure> {
    let mut keys: Vec<_> = samples.iter().map(|s| (s.op, s.block_bytes, s.treatment)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter_map(|(op, block_bytes, treatment)| {
            let all = || {
                samples.iter().filter(move |s| s.op == op && s.block_bytes == block_bytes && s.treatment == treatment)
            };
            let mut rounds: Vec<f64> = all().flat_map(|s| &s.rounds_per_s).copied().collect();
            rounds.sort_by(f64::total_cmp);
            let median_per_s = median(&rounds)?;
            let quartile = |share: f64| rounds[((rounds.len() - 1) as f64 * share).round() as usize];
            Some(LensFigure {
                op,
                block_bytes,
                treatment,
                median_per_s,
                spread: (quartile(0.75) - quartile(0.25)) / median_per_s,
                rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
                cpu_ns: all().map(|s| s.cpu_ns).sum(),
                wall_ns: all().map(|s| s.wall_ns).sum(),
            })
        })
        .collect()
}

/// `None` of nothing, or when it is no rate.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    (median.is_finite() && median > 0.0).then_some(median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_beyond_all_machines_have_no_gain() {
        let of = |rate: f64| Sample {
            op: LensOp::ALL[0],
            block_bytes: None,
            treatment: LensTreatment::Whole,
            rounds_per_s: vec![rate; 7],
            cpu_ns: 1,
            wall_ns: 1,
        };
        assert!(gain(&[&of(2.0)], &[&of(1.0)], Some(1.0)).is_some());
        // The first bound is infinite, and the noise is, too.
        assert_eq!(gain(&[&of(1e300)], &[&of(1e-300)], Some(f64::INFINITY)), None);
    }

    /// Ranks as in Conover, Practical Nonparametric Statistics, for at least 97.5 %.
    #[test]
    fn intervals_of_medians_by_ranks() {
        let ranks = |n: u32| {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            interval(&values)
        };
        assert_eq!(ranks(6), None);
        assert_eq!(ranks(7), Some((1.0, 7.0)));
        // P(X <= 1) of 10 is 1.07 %, P(X <= 2) is 5.5 %.
        assert_eq!(ranks(10), Some((2.0, 9.0)));
        // P(X <= 4) of 20 is 0.6 %, P(X <= 5) is 2.1 %.
        assert_eq!(ranks(20), Some((5.0, 16.0)));
    }
}
