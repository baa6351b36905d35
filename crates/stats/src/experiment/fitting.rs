//! What laws fitted to the treatments of an experiment have in common.

use super::cells::mean;
use crate::bootstrap::Resampled;
use crate::contrast::log_margin;
use crate::signed_rank::pairs_needed;
use duel_model::{Plan, Ranged};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// An interval from values of resamples; none with so few blocks that even the extremes would not be sure enough.
pub(super) fn interval(value: f64, resampled: Vec<f64>, blocks: usize, plan: &Plan) -> Ranged {
    let confidence = plan.compare.confidence;
    let enough = pairs_needed(confidence).is_some_and(|needed| blocks >= needed as usize);
    let span = Resampled::new(resampled, blocks).filter(|_| enough).map(|resampled| resampled.expanded(confidence));
    let finite = |value: f64| value.is_finite().then_some(value);
    Ranged { value, low: span.and_then(|span| finite(span.low)), high: span.and_then(|span| finite(span.high)) }
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
