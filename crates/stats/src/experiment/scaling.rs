//! The scaling law of each target, with intervals, and of targets against each other.

use super::Judge;
use super::cells::{Cells, mean};
use crate::bootstrap::{Resampled, resampled_blocks};
use crate::contrast::{contrast, log_margin};
use crate::signed_rank::pairs_needed;
use crate::usl::{FEWEST_POINTS, Law, Point, fit};
use duel_model::{
    Factor, LoopKind, Metric, Plan, Ranged, Scaling, ScalingCurve, ScalingDifference, ScalingLaw, ScalingMisfit,
    ScalingPoint,
};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A peak is told where it lies at no more than so many times the most connections measured: further out it says more
/// about the formula than about the server.
const PEAK_WITHIN: f64 = 2.0;

/// The law for each target; `None` where connections are not the only factor of a closed loop.
///
/// With other factors beside, the rates would be means over servers of several laws, and such means follow none.
pub(super) fn judge(plan: &Plan, cells: &Cells<'_>, judge: &Judge<'_>) -> Option<Scaling> {
    let ([Factor::Connections(levels)], LoopKind::Closed { .. }) = (plan.factors.as_slice(), plan.load.kind) else {
        return None;
    };
    let mut by_connections: Vec<Level> = levels
        .iter()
        .enumerate()
        .map(|(treatment, &connections)| Level { treatment, connections, left_out: None })
        .collect();
    by_connections.sort_by_key(|level| level.connections);
    for level in &mut by_connections {
        level.left_out = left_out(level.treatment, plan, cells, judge);
    }
    let fits: Vec<Result<Fit, String>> =
        (0..plan.targets.len()).map(|target| Fit::new(target, &by_connections, plan, cells)).collect();
    let curves =
        fits.iter().enumerate().map(|(target, fit)| curve(target, fit, &by_connections, plan, cells)).collect();
    let differences = fits.iter().enumerate().skip(1).filter_map(|(target, fit)| {
        let (Ok(baseline), Ok(fit)) = (&fits[0], fit) else { return None };
        Some(difference(plan, target, baseline, fit))
    });
    Some(Scaling { differences: differences.collect(), curves })
}

/// A number of connections.
struct Level {
    treatment: usize,
    connections: u32,
    left_out: Option<String>,
}

/// Why a level cannot be fitted; for all targets alike, so that their laws rest on the same levels.
fn left_out(treatment: usize, plan: &Plan, cells: &Cells<'_>, judge: &Judge<'_>) -> Option<String> {
    let is_missing = |target| cells.by_block(treatment, target, Metric::Rate).is_none();
    if (0..plan.targets.len()).any(is_missing) {
        Some("a slot has no rate".to_owned())
    } else if judge.is_saturated(treatment) {
        Some("the generator was the limit".to_owned())
    } else {
        None
    }
}

/// One target's law, and the laws of resamples of its blocks. Resamples of all targets are of the same blocks, so that
/// what disturbed a whole block goes out of their differences.
struct Fit {
    law: Law,
    resampled: Vec<Law>,
    blocks: usize,
    /// Largest number of connections that it rests on.
    largest: f64,
    misfit: Option<ScalingMisfit>,
}

impl Fit {
    fn new(target: usize, levels: &[Level], plan: &Plan, cells: &Cells<'_>) -> Result<Self, String> {
        let kept: Vec<&Level> = levels.iter().filter(|level| level.left_out.is_none()).collect();
        if kept.len() < FEWEST_POINTS {
            let what =
                if kept.len() < levels.len() { "numbers of connections that count" } else { "numbers of connections" };
            return Err(format!("it takes {FEWEST_POINTS} {what}, and there are {}", kept.len()));
        }
        // Logarithms of rates, by level and block.
        let logs: Option<Vec<Vec<f64>>> =
            kept.iter().map(|level| cells.by_block(level.treatment, target, Metric::Rate)).collect();
        let logs = logs.filter(|logs| !logs[0].is_empty()).ok_or("there is no complete block")?;
        let blocks = logs[0].len();
        let connections: Vec<f64> = kept.iter().map(|level| f64::from(level.connections)).collect();
        let weights = weights(&logs);
        let fit_to = |drawn: &[usize]| {
            let points: Vec<Point> = (0..kept.len())
                .filter_map(|level| {
                    let values: Vec<f64> = drawn.iter().map(|&block| logs[level][block]).collect();
                    let rate = mean(&values)?.exp();
                    Some(Point { connections: connections[level], rate, weight: weights[level] })
                })
                .collect();
            fit(&points)
        };
        let whole: Vec<usize> = (0..blocks).collect();
        let law = fit_to(&whole).ok_or("the rates are no numbers that it could be fitted to")?;
        let resampled = resampled_blocks(blocks, plan.compare.seed).filter_map(|drawn| fit_to(&drawn)).collect();
        let misfit = misfit(&law, &connections, &logs, plan);
        Ok(Self { law, resampled, blocks, largest: connections.iter().copied().fold(1.0, f64::max), misfit })
    }

    /// A value of the law with its interval.
    fn ranged(&self, plan: &Plan, value: impl Fn(&Law) -> f64) -> Ranged {
        let values = self.resampled.iter().map(&value).collect();
        interval(value(&self.law), values, self.blocks, plan)
    }
}

/// An interval from values of resamples; none with so few blocks that even the extremes would not be sure enough.
fn interval(value: f64, resampled: Vec<f64>, blocks: usize, plan: &Plan) -> Ranged {
    let confidence = plan.compare.confidence;
    let enough = pairs_needed(confidence).is_some_and(|needed| blocks >= needed as usize);
    let span = Resampled::new(resampled, blocks).filter(|_| enough).map(|resampled| resampled.expanded(confidence));
    let finite = |value: f64| value.is_finite().then_some(value);
    Ranged { value, low: span.and_then(|span| finite(span.low)), high: span.and_then(|span| finite(span.high)) }
}

/// What each level counts: one over the variance of its mean, drawn half way to that of all levels together, because
/// a variance estimated from a few blocks is off by tens of percent itself; and no level counts for more than if it
/// scattered by 0.1 %, below which a rate is not reproducible anyway.
fn weights(logs: &[Vec<f64>]) -> Vec<f64> {
    let variance = |values: &Vec<f64>| {
        let mean = mean(values).unwrap_or(0.0);
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len().max(2) - 1) as f64
    };
    let variances: Vec<f64> = logs.iter().map(variance).collect();
    let pooled = mean(&variances).unwrap_or(0.0);
    variances.iter().map(|own| 1.0 / (f64::midpoint(*own, pooled)).max(1e-6)).collect()
}

/// The level at which the law is off by most, of those where it is off by more than the margin and by more than the noise
/// explains: Student's t on what is left of each block beside its own mean, at a confidence for all levels together.
fn misfit(law: &Law, connections: &[f64], logs: &[Vec<f64>], plan: &Plan) -> Option<ScalingMisfit> {
    let (levels, blocks) = (logs.len(), logs[0].len());
    let off = |level: usize, block: usize| logs[level][block] - law.rate(connections[level]).ln();
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
            is_off.then_some(ScalingMisfit { connections: connections[level] as u32, ratio: total.exp() })
        })
        .max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
}

fn curve(target: usize, fit: &Result<Fit, String>, levels: &[Level], plan: &Plan, cells: &Cells<'_>) -> ScalingCurve {
    let point = |level: &Level| {
        let seen = contrast(&cells.levels(&[level.treatment], target, Metric::Rate), &plan.compare);
        Some(ScalingPoint {
            connections: level.connections,
            rate: super::ranged(&seen)?,
            fitted_per_s: fit.as_ref().ok().map(|fit| fit.law.rate(f64::from(level.connections))),
            left_out: level.left_out.clone(),
        })
    };
    let law = |fit: &Fit| ScalingLaw {
        lambda_per_s: fit.ranged(plan, |law| law.lambda),
        sigma: fit.ranged(plan, |law| law.sigma),
        kappa: fit.ranged(plan, |law| law.kappa),
        peak_connections: (fit.law.peak() <= PEAK_WITHIN * fit.largest).then(|| fit.ranged(plan, Law::peak)),
        misfit: fit.misfit,
    };
    ScalingCurve {
        target: plan.targets[target].name.clone(),
        points: levels.iter().filter_map(point).collect(),
        law: fit.as_ref().ok().map(law),
        unfitted: fit.as_ref().err().cloned(),
    }
}

fn difference(plan: &Plan, target: usize, baseline: &Fit, fit: &Fit) -> ScalingDifference {
    let each = |value: &dyn Fn(&Law, &Law) -> f64| {
        let resampled = baseline.resampled.iter().zip(&fit.resampled).map(|(a, b)| value(a, b)).collect();
        interval(value(&baseline.law, &fit.law), resampled, fit.blocks, plan)
    };
    ScalingDifference {
        baseline: plan.targets[0].name.clone(),
        target: plan.targets[target].name.clone(),
        lambda_ratio: each(&|a, b| b.lambda / a.lambda),
        sigma_difference: each(&|a, b| b.sigma - a.sigma),
        kappa_difference: each(&|a, b| b.kappa - a.kappa),
    }
}
