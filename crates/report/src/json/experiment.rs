//! What factors showed, as part of the document.

use super::{PairDocument, digits};
use duel_model::{
    CostDifference, CostMisfit, Costs, Dependence, DependenceAnswer, Experiment, FactorVerdict, LevelFigure,
    LevelVerdict, Metric, Ranged, Scaling, ScalingBand, ScalingCurve, ScalingDifference, ScalingLaw, ScalingMisfit,
    TargetCosts,
};
use serde::Serialize;

/// An experiment: every factor with its levels, every treatment, the scaling law.
///
/// Rates are per second, response times in ms. `low` and `high` are `null` where they are not known or open.
#[derive(Debug, Serialize)]
pub(super) struct ExperimentDocument<'a> {
    /// Complete blocks that all of it rests on.
    blocks: u32,
    /// Of all intervals, each by itself.
    confidence: f64,
    factors: Vec<FactorDocument<'a>>,
    treatments: Vec<LevelDocument<'a>>,
    /// `null` unless connections are the only factor of a closed loop.
    scaling: Option<ScalingDocument<'a>>,
    /// There where only how long an op is and in which parts it is handed over are varied. In ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<CostsDocument<'a>>,
}

impl<'a> ExperimentDocument<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Self {
        Self {
            blocks: experiment.blocks,
            confidence: experiment.confidence,
            factors: experiment.factors.iter().map(FactorDocument::of).collect(),
            treatments: experiment
                .treatments
                .iter()
                .map(|level| LevelDocument::of(level, experiment.treatments.len()))
                .collect(),
            scaling: experiment.scaling.as_ref().map(ScalingDocument::of),
            costs: experiment.costs.as_ref().map(CostsDocument::of),
        }
    }
}

#[derive(Debug, Serialize)]
struct FactorDocument<'a> {
    name: &'a str,
    levels: Vec<LevelDocument<'a>>,
    dependences: Vec<DependenceDocument<'a>>,
}

impl<'a> FactorDocument<'a> {
    fn of(factor: &'a FactorVerdict) -> Self {
        Self {
            name: &factor.name,
            levels: factor.levels.iter().map(|level| LevelDocument::of(level, factor.levels.len())).collect(),
            dependences: factor.dependences.iter().map(DependenceDocument::of).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct LevelDocument<'a> {
    level: &'a str,
    number: Option<f64>,
    figures: Vec<FigureDocument<'a>>,
    /// `call` is made for all levels together, `low` and `high` hold by themselves.
    pairs: Vec<PairDocument<'a>>,
}

impl<'a> LevelDocument<'a> {
    /// One of so many that are judged together.
    fn of(level: &'a LevelVerdict, levels: usize) -> Self {
        Self {
            level: &level.label,
            number: level.number,
            figures: level.figures.iter().map(FigureDocument::of).collect(),
            pairs: level.pairs.iter().map(|pair| PairDocument::among(pair, levels)).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct FigureDocument<'a> {
    target: &'a str,
    metric: Metric,
    /// Per second, or ms.
    #[serde(flatten)]
    figure: RangedDocument,
}

impl<'a> FigureDocument<'a> {
    fn of(figure: &'a LevelFigure) -> Self {
        let scale = if figure.metric == Metric::Rate { 1.0 } else { 1e-6 };
        let scaled = |value: f64| value * scale;
        let Ranged { value, low, high } = figure.figure;
        let figure_scaled = Ranged { value: scaled(value), low: low.map(scaled), high: high.map(scaled) };
        Self { target: &figure.target, metric: figure.metric, figure: RangedDocument::of(&figure_scaled) }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct RangedDocument {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl RangedDocument {
    pub(super) fn of(figure: &Ranged) -> Self {
        let short = |value: f64| digits(value, 6);
        Self { value: short(figure.value), low: figure.low.and_then(short), high: figure.high.and_then(short) }
    }
}

#[derive(Debug, Serialize)]
struct DependenceDocument<'a> {
    target: &'a str,
    metric: Metric,
    answer: DependenceAnswer,
    from: &'a str,
    to: &'a str,
    change: RangedDocument,
}

impl<'a> DependenceDocument<'a> {
    fn of(found: &'a Dependence) -> Self {
        Self {
            target: &found.target,
            metric: found.metric,
            answer: found.answer,
            from: &found.from,
            to: &found.to,
            change: RangedDocument::of(&found.change),
        }
    }
}

#[derive(Debug, Serialize)]
struct ScalingDocument<'a> {
    curves: Vec<CurveDocument<'a>>,
    differences: Vec<DifferenceDocument<'a>>,
}

impl<'a> ScalingDocument<'a> {
    fn of(scaling: &'a Scaling) -> Self {
        Self {
            curves: scaling.curves.iter().map(CurveDocument::of).collect(),
            differences: scaling.differences.iter().map(DifferenceDocument::of).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct CurveDocument<'a> {
    target: &'a str,
    points: Vec<PointDocument<'a>>,
    law: Option<LawDocument>,
    /// Why it was not fitted.
    unfitted: Option<&'a str>,
    /// What becomes of the rate with more connections, as it was measured.
    shape: Option<ShapeDocument<'a>>,
    /// Between which rates the law lies; empty where its intervals are not known.
    band: Vec<BandDocument>,
}

#[derive(Debug, Serialize)]
struct BandDocument {
    connections: Option<f64>,
    low_per_s: Option<f64>,
    high_per_s: Option<f64>,
}

impl BandDocument {
    fn of(band: &ScalingBand) -> Self {
        let [connections, low_per_s, high_per_s] =
            [band.connections, band.low_per_s, band.high_per_s].map(|value| digits(value, 6));
        Self { connections, low_per_s, high_per_s }
    }
}

#[derive(Debug, Serialize)]
struct ShapeDocument<'a> {
    peak: u32,
    last: u32,
    last_over_peak: RangedDocument,
    /// `null`: that is not known.
    falls: Option<bool>,
    /// What is missing for saying what the law means.
    missing: Option<&'a str>,
}

impl<'a> CurveDocument<'a> {
    fn of(curve: &'a ScalingCurve) -> Self {
        let points = curve.points.iter().map(|point| PointDocument {
            connections: point.connections,
            rate_per_s: RangedDocument::of(&point.rate),
            fitted_per_s: point.fitted_per_s.and_then(|value| digits(value, 6)),
            left_out: point.left_out.as_deref(),
        });
        Self {
            target: &curve.target,
            points: points.collect(),
            law: curve.law.as_ref().map(LawDocument::of),
            unfitted: curve.unfitted.as_deref(),
            shape: curve.shape.as_ref().map(|shape| ShapeDocument {
                peak: shape.peak,
                last: shape.last,
                last_over_peak: RangedDocument::of(&shape.last_over_peak),
                falls: shape.falls,
                missing: shape.missing.as_deref(),
            }),
            band: curve.band.iter().map(BandDocument::of).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct PointDocument<'a> {
    connections: u32,
    rate_per_s: RangedDocument,
    fitted_per_s: Option<f64>,
    /// Why the fit does not rest on it.
    left_out: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct LawDocument {
    lambda_per_s: RangedDocument,
    sigma: RangedDocument,
    kappa: RangedDocument,
    peak_connections: Option<RangedDocument>,
    /// `null` where the law describes the rates.
    misfit: Option<ScalingMisfit>,
}

impl LawDocument {
    fn of(law: &ScalingLaw) -> Self {
        Self {
            lambda_per_s: RangedDocument::of(&law.lambda_per_s),
            sigma: RangedDocument::of(&law.sigma),
            kappa: RangedDocument::of(&law.kappa),
            peak_connections: law.peak_connections.as_ref().map(RangedDocument::of),
            misfit: law.misfit,
        }
    }
}

#[derive(Debug, Serialize)]
struct DifferenceDocument<'a> {
    baseline: &'a str,
    target: &'a str,
    lambda_ratio: RangedDocument,
    sigma_difference: RangedDocument,
    kappa_difference: RangedDocument,
}

impl<'a> DifferenceDocument<'a> {
    fn of(difference: &'a ScalingDifference) -> Self {
        Self {
            baseline: &difference.baseline,
            target: &difference.target,
            lambda_ratio: RangedDocument::of(&difference.lambda_ratio),
            sigma_difference: RangedDocument::of(&difference.sigma_difference),
            kappa_difference: RangedDocument::of(&difference.kappa_difference),
        }
    }
}

#[derive(Debug, Serialize)]
struct CostsDocument<'a> {
    targets: Vec<TargetCostsDocument<'a>>,
    differences: Vec<CostDifferenceDocument<'a>>,
    /// Why it was not fitted.
    unfitted: Option<&'a str>,
}

impl<'a> CostsDocument<'a> {
    fn of(costs: &'a Costs) -> Self {
        let each = |ns: &'a [Ranged]| {
            let costs = costs.paid_for.iter().zip(ns);
            costs.map(|(paid_for, ns)| CostDocument { paid_for, ns: RangedDocument::of(ns) }).collect()
        };
        let target = |of: &'a TargetCosts| TargetCostsDocument {
            target: &of.target,
            costs: each(&of.ns),
            misfit: of.misfit.as_ref(),
        };
        let difference = |of: &'a CostDifference| CostDifferenceDocument {
            baseline: &of.baseline,
            target: &of.target,
            costs: each(&of.ns),
        };
        Self {
            targets: costs.targets.iter().map(target).collect(),
            differences: costs.differences.iter().map(difference).collect(),
            unfitted: costs.unfitted.as_deref(),
        }
    }
}

#[derive(Debug, Serialize)]
struct CostDocument<'a> {
    paid_for: &'a str,
    ns: RangedDocument,
}

#[derive(Debug, Serialize)]
struct TargetCostsDocument<'a> {
    target: &'a str,
    costs: Vec<CostDocument<'a>>,
    /// `null` where the sum describes the times.
    misfit: Option<&'a CostMisfit>,
}

#[derive(Debug, Serialize)]
struct CostDifferenceDocument<'a> {
    baseline: &'a str,
    target: &'a str,
    costs: Vec<CostDocument<'a>>,
}
