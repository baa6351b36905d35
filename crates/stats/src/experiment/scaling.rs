//! The scaling law of each target, with intervals, and of targets against each other.

use super::Judge;
use super::cells::{Cells, mean};
use super::fitting::{Fits, misfit, weights};
use crate::contrast::contrast;
use crate::usl::{FEWEST_POINTS, Law, Point, fit};
use duel_model::{
    Factor, LoopKind, Metric, Plan, Ranged, Scaling, ScalingBand, ScalingCurve, ScalingDifference, ScalingLaw,
    ScalingMisfit, ScalingPoint, ScalingShape,
};

/// A peak is told where it lies at no more than so many times the most connections measured: further out it says more
/// about the formula than about the server.
const PEAK_WITHIN: f64 = 2.0;

/// Fewest numbers of connections from which is said what the law means: twice as many as it has parameters, so that half of
/// them hold it against the other half.
const FEWEST_FOR_WORDS: usize = 6;

/// Places of the band from the fewest to the most connections: so close that it has no corners.
const BAND_PLACES: u32 = 48;

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

/// One target's law.
struct Fit {
    laws: Fits<Law>,
    /// Largest number of connections that it rests on.
    largest: f64,
    misfit: Option<ScalingMisfit>,
    shape: ScalingShape,
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
        let fit_to = |drawn: &[usize]| {
            let drawn: Vec<Vec<f64>> =
                logs.iter().map(|logs| drawn.iter().map(|&block| logs[block]).collect()).collect();
            let points: Vec<Point> = drawn
                .iter()
                .zip(&connections)
                .zip(weights(&drawn))
                .filter_map(|((logs, &connections), weight)| {
                    Some(Point { connections, rate: mean(logs)?.exp(), weight })
                })
                .collect();
            fit(&points)
        };
        let laws = Fits::of(blocks, plan, fit_to).ok_or("the rates are no numbers that it could be fitted to")?;
        let fitted: Vec<f64> = connections.iter().map(|&n| laws.whole.rate(n).ln()).collect();
        let misfit = misfit(&fitted, &logs, plan)
            .map(|(level, ratio)| ScalingMisfit { connections: connections[level] as u32, ratio });
        let shape = shape(&connections, &logs, plan).ok_or("a rate is no number")?;
        Ok(Self { laws, largest: connections.iter().copied().fold(1.0, f64::max), misfit, shape })
    }

    /// A value of the law, none of which is below 0, with its interval.
    fn ranged(&self, plan: &Plan, value: impl Fn(&Law) -> f64) -> Ranged {
        let found = self.laws.ranged(plan, value);
        Ranged { low: found.low.map(|low| low.max(0.0)), ..found }
    }
}

/// What becomes of the rate, by the logarithms of rates by level and block.
fn shape(connections: &[f64], logs: &[Vec<f64>], plan: &Plan) -> Option<ScalingShape> {
    let means: Vec<f64> = logs.iter().map(|values| mean(values)).collect::<Option<_>>()?;
    let last = connections.len() - 1;
    let peak = (0..=last).max_by(|&a, &b| means[a].total_cmp(&means[b]))?;
    let blocks = logs[0].len();
    let over = |drawn: &[usize]| {
        let of = |level: usize| mean(&drawn.iter().map(|&block| logs[level][block]).collect::<Vec<_>>());
        Some(of(last)? - of(peak)?)
    };
    let last_over_peak = exponential(Fits::of(blocks, plan, over)?.ranged(plan, |log| *log));
    // By less than the margin it does not fall in practice.
    let least = 1.0 / (1.0 + plan.compare.margin.max(0.0));
    let falls = match (last_over_peak.low, last_over_peak.high) {
        _ if peak == last => Some(false),
        (_, Some(high)) if high < least => Some(true),
        (Some(low), _) if low >= least => Some(false),
        _ => None,
    };
    let has_one = connections.contains(&1.0);
    let missing = match (connections.len() >= FEWEST_FOR_WORDS, has_one) {
        (true, true) => None,
        (false, true) => {
            Some(format!("{FEWEST_FOR_WORDS} numbers of connections, and there are {}", connections.len()))
        }
        (true, false) => Some("one connection, which is not among them".to_owned()),
        (false, false) => Some(format!(
            "{FEWEST_FOR_WORDS} numbers of connections with one connection among them, and there are {} without it",
            connections.len()
        )),
    };
    Some(ScalingShape {
        peak: connections[peak] as u32,
        last: connections[last] as u32,
        last_over_peak,
        falls,
        missing,
    })
}

fn curve(target: usize, fit: &Result<Fit, String>, levels: &[Level], plan: &Plan, cells: &Cells<'_>) -> ScalingCurve {
    let point = |level: &Level| {
        let seen = contrast(&cells.levels(&[level.treatment], target, Metric::Rate), &plan.compare);
        Some(ScalingPoint {
            connections: level.connections,
            rate: super::ranged(&seen)?,
            fitted_per_s: fit.as_ref().ok().map(|fit| fit.laws.whole.rate(f64::from(level.connections))),
            left_out: level.left_out.clone(),
        })
    };
    let law = |fit: &Fit| ScalingLaw {
        lambda_per_s: fit.ranged(plan, |law| law.lambda),
        sigma: fit.ranged(plan, |law| law.sigma),
        kappa: fit.ranged(plan, |law| law.kappa),
        peak_connections: (fit.laws.whole.peak() <= PEAK_WITHIN * fit.largest).then(|| fit.ranged(plan, Law::peak)),
        misfit: fit.misfit,
    };
    ScalingCurve {
        target: plan.targets[target].name.clone(),
        points: levels.iter().filter_map(point).collect(),
        law: fit.as_ref().ok().map(law),
        unfitted: fit.as_ref().err().cloned(),
        shape: fit.as_ref().ok().map(|fit| fit.shape.clone()),
        band: fit.as_ref().map_or_else(|_| Vec::new(), |fit| band(fit, levels, plan)),
    }
}

/// Between which rates the law lies, over all levels, at each place for itself.
fn band(fit: &Fit, levels: &[Level], plan: &Plan) -> Vec<ScalingBand> {
    let numbers = || levels.iter().map(|level| f64::from(level.connections));
    let (smallest, largest) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(1.0, f64::max));
    (0..=BAND_PLACES)
        .filter_map(|place| {
            let connections = smallest * (largest / smallest).powf(f64::from(place) / f64::from(BAND_PLACES));
            let Ranged { low, high, .. } = fit.ranged(plan, |law| law.rate(connections));
            Some(ScalingBand { connections, low_per_s: low?, high_per_s: high? })
        })
        .collect()
}

fn difference(plan: &Plan, target: usize, baseline: &Fit, fit: &Fit) -> ScalingDifference {
    let each = |value: &dyn Fn(&Law, &Law) -> f64| baseline.laws.ranged_beside(&fit.laws, plan, value);
    ScalingDifference {
        baseline: plan.targets[0].name.clone(),
        target: plan.targets[target].name.clone(),
        lambda_ratio: exponential(each(&|a, b| (b.lambda / a.lambda).ln())),
        sigma_difference: each(&|a, b| b.sigma - a.sigma),
        kappa_difference: each(&|a, b| b.kappa - a.kappa),
    }
}

/// A ratio, from its logarithm: the error of that reaches equally far to either side, and no ratio is below 0.
fn exponential(log: Ranged) -> Ranged {
    Ranged { value: log.value.exp(), low: log.low.map(f64::exp), high: log.high.map(f64::exp) }
}
