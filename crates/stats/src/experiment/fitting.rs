//! What laws fitted to the treatments of an experiment have in common.

use super::cells::mean;
use crate::bootstrap::{Resampled, resampled_blocks};
use crate::contrast::log_margin;
use crate::signed_rank::pairs_needed;
use duel_model::{Plan, Ranged};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A law that was fitted to all blocks, to resamples of them, and to all but one of them.
pub(super) struct Fits<T> {
    pub(super) whole: T,
    resampled: Vec<Option<T>>,
    but_one: Vec<Option<T>>,
}

impl<T> Fits<T> {
    /// `fit_to` fits it to blocks by their numbers; `None`: it cannot be fitted to all of them.
    pub(super) fn of(blocks: usize, plan: &Plan, fit_to: impl Fn(&[usize]) -> Option<T>) -> Option<Self> {
        let all: Vec<usize> = (0..blocks).collect();
        let but = |left_out: &usize| all.iter().copied().filter(|block| block != left_out).collect::<Vec<_>>();
        Some(Self {
            whole: fit_to(&all)?,
            resampled: resampled_blocks(blocks, plan.compare.seed).map(|drawn| fit_to(&drawn)).collect(),
            but_one: all.iter().map(|block| fit_to(&but(block))).collect(),
        })
    }

    /// A value of it with its interval.
    pub(super) fn ranged(&self, plan: &Plan, value: impl Fn(&T) -> f64) -> Ranged {
        let of = |fits: &[Option<T>]| fits.iter().map(|fit| fit.as_ref().map(&value)).collect();
        interval(value(&self.whole), of(&self.resampled), &of(&self.but_one), plan)
    }

    /// The same of two laws that were fitted to the same blocks: what disturbed a whole block goes out of their differences.
    pub(super) fn ranged_beside(&self, other: &Self, plan: &Plan, value: impl Fn(&T, &T) -> f64) -> Ranged {
        let of = |fits: &[Option<T>], others: &[Option<T>]| {
            let both = |(fit, other): (&Option<T>, &Option<T>)| Some(value(fit.as_ref()?, other.as_ref()?));
            fits.iter().zip(others).map(both).collect()
        };
        let but_one = of(&self.but_one, &other.but_one);
        interval(value(&self.whole, &other.whole), of(&self.resampled, &other.resampled), &but_one, plan)
    }
}

/// An interval from values of resamples and of all blocks but one; none with so few blocks that even the extremes would not be sure
/// enough.
///
/// It holds both what the resamples say, by expanded percentiles, and Student's t on the jackknife's error (Tukey 1958; Efron and Stein 1981):
/// of seven blocks either alone holds the truth somewhat less often than it says, since what the weights are is estimated
/// from the same blocks.
pub(super) fn interval(value: f64, resampled: Vec<Option<f64>>, but_one: &[Option<f64>], plan: &Plan) -> Ranged {
    let (confidence, blocks) = (plan.compare.confidence, but_one.len());
    let enough = pairs_needed(confidence).is_some_and(|needed| blocks >= needed as usize);
    let all: Option<Vec<f64>> = resampled.into_iter().collect();
    let span = all.and_then(|all| Resampled::new(all, blocks)).filter(|_| enough);
    let span = span.map(|resampled| resampled.expanded(confidence));
    let distance = jackknife_error(but_one).and_then(|error| {
        let student = StudentsT::new(0.0, 1.0, (blocks - 1) as f64).ok()?;
        Some(student.inverse_cdf(f64::midpoint(1.0, confidence)) * error)
    });
    let distance = distance.filter(|distance| distance.is_finite()).unwrap_or(0.0);
    let finite = |value: f64| value.is_finite().then_some(value);
    Ranged {
        value,
        low: span.and_then(|span| finite(span.low.min(value - distance))),
        high: span.and_then(|span| finite(span.high.max(value + distance))),
    }
}

/// The standard error of a value, from what it is without each of the blocks.
fn jackknife_error(but_one: &[Option<f64>]) -> Option<f64> {
    let values: Vec<f64> = but_one.iter().copied().collect::<Option<_>>()?;
    let (mean, blocks) = (mean(&values)?, values.len() as f64);
    Some(((blocks - 1.0) / blocks * values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()).sqrt())
}

/// What each level counts: one over the variance of its mean, drawn half way to that of all levels together, because
/// a variance estimated from a few blocks is off by tens of percent itself; and no level counts for more than if it
/// scattered by 0.1 %, below which a rate is not reproducible anyway.
pub(super) fn weights(logs: &[Vec<f64>]) -> Vec<f64> {
    let variance = |values: &Vec<f64>| {
        let mean = mean(values).unwrap_or(0.0);
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len().max(2) - 1) as f64
    };
    let variances: Vec<f64> = logs.iter().map(variance).collect();
    let pooled = mean(&variances).unwrap_or(0.0);
    variances.iter().map(|own| 1.0 / (f64::midpoint(*own, pooled)).max(1e-6)).collect()
}

/// The level at which a law is off by most, of those where it is off by more than the margin and by more than the noise
/// explains, and measured over fitted there. `fitted` are the law's logarithms by level, `logs` the measured ones by level
/// and block. Noise: Student's t on what is left of each block beside its own mean, at a confidence for all levels together.
pub(super) fn misfit(fitted: &[f64], logs: &[Vec<f64>], plan: &Plan) -> Option<(usize, f64)> {
    let (levels, blocks) = (logs.len(), logs[0].len());
    let off = |level: usize, block: usize| logs[level][block] - fitted[level];
    let mean_off: Vec<f64> =
        (0..blocks).map(|block| (0..levels).map(|level| off(level, block)).sum::<f64>() / levels as f64).collect();
    let student = StudentsT::new(0.0, 1.0, (blocks.max(2) - 1) as f64).ok()?;
    let each = (1.0 - plan.compare.confidence) / levels as f64;
    let distance = student.inverse_cdf(1.0 - each / 2.0);
    (0..levels)
        .filter_map(|level| {
            let total = mean(&(0..blocks).map(|block| off(level, block)).collect::<Vec<_>>())?;
            let own: Vec<f64> = (0..blocks).map(|block| off(level, block) - mean_off[block]).collect();
            let own_mean = mean(&own)?;
            let variance = own.iter().map(|v| (v - own_mean).powi(2)).sum::<f64>() / (blocks.max(2) - 1) as f64;
            let noise = distance * (variance / blocks as f64).sqrt();
            let is_off = blocks > 1 && total.abs() > log_margin(&plan.compare) && total.abs() > noise;
            is_off.then_some((level, total.exp()))
        })
        .max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()))
}
