//! What an experiment over factors showed.

use crate::{Metric, PairVerdict};
use serde::{Deserialize, Serialize};

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ranged {
    /// The estimate.
    pub value: f64,
    /// Low end of the interval; `None`: not known, or open.
    pub low: Option<f64>,
    /// High end of the interval; `None`: not known, or open.
    pub high: Option<f64>,
}

/// What a run with factors showed; judged from its complete blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Complete blocks: every treatment on every target. What is beyond them is not judged.
    pub blocks: u32,
    /// Confidence of all intervals, each by itself. Calls rest on wider ones: see [`LevelVerdict::pairs`].
    pub confidence: f64,
    /// Every treatment, in the plan's order.
    pub treatments: Vec<LevelVerdict>,
    /// Every factor, in the plan's order.
    pub factors: Vec<FactorVerdict>,
    /// The scaling law, where connections are the only factor of a closed loop.
    pub scaling: Option<Scaling>,
    /// What an op costs by its parts, where only how long it is and how it is handed over are varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
}

/// What one factor does, averaged over all others (geometric means).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorVerdict {
    /// Name of the factor.
    pub name: String,
    /// Its levels in the plan's order.
    pub levels: Vec<LevelVerdict>,
    /// For each target but the first: whether its ratio to the first depends on the level, in the main metric.
    pub dependences: Vec<Dependence>,
}

/// What was seen at one level of a factor, or under one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelVerdict {
    /// The level or treatment in words, as it was typed.
    pub label: String,
    /// The level as a number, where it is one.
    pub number: Option<f64>,
    /// Figures of each target and metric; what is not known is absent.
    pub figures: Vec<LevelFigure>,
    /// Each target against the first, the main metric first. Intervals hold each by itself; a call is made at so much
    /// more confidence (Bonferroni) that all calls of the table together err no more often than a single one would.
    pub pairs: Vec<PairVerdict>,
}

/// One target's figure in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelFigure {
    /// Name of the target.
    pub target: String,
    /// What was measured.
    pub metric: Metric,
    /// Ops per second, or ns.
    pub figure: Ranged,
}

/// Whether the ratio of a target to the first one depends on a factor's level (their interaction).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependence {
    /// Name of the target.
    pub target: String,
    /// In which metric.
    pub metric: Metric,
    /// The answer.
    pub answer: DependenceAnswer,
    /// The level at which the ratio is smallest.
    pub from: String,
    /// The level at which it is largest.
    pub to: String,
    /// Largest ratio over smallest, with an interval that allows for having chosen the two out of all levels.
    pub change: Ranged,
}

/// Answer to the question of [`Dependence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DependenceAnswer {
    /// It does: by more than the noise and by more than the practical margin.
    Depends,
    /// It does not: whatever change there may be lies within the margin.
    Same,
    /// The slots do not tell.
    Unknown,
}

/// Gunther's universal scaling law, `X(N) = λN / (1 + σ(N - 1) + κN(N - 1))`, fitted to each target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// One for each target, in the plan's order.
    pub curves: Vec<ScalingCurve>,
    /// Each target's law against the first one's, where both could be fitted.
    pub differences: Vec<ScalingDifference>,
}

/// One target's rates over connections, and the law fitted to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingCurve {
    /// Name of the target.
    pub target: String,
    /// Rates by rising numbers of connections.
    pub points: Vec<ScalingPoint>,
    /// The law; `None`: it was not fitted, for the reason that follows.
    pub law: Option<ScalingLaw>,
    /// Why it was not fitted.
    pub unfitted: Option<String>,
    /// What becomes of the rate with more connections; `None` where no law was fitted.
    #[serde(default)]
    pub shape: Option<ScalingShape>,
    /// Between which rates the law lies, by rising numbers of connections; empty where its intervals are not known.
    #[serde(default)]
    pub band: Vec<ScalingBand>,
}

/// Between which rates a law lies at one number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalingBand {
    /// Connections; between whole ones, too, for it is drawn as an area.
    pub connections: f64,
    /// Ok ops per second.
    pub low_per_s: f64,
    /// Ok ops per second.
    pub high_per_s: f64,
}

/// What becomes of a rate with more connections, as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingShape {
    /// The number of connections with the highest rate, of those that were measured.
    pub peak: u32,
    /// The largest number.
    pub last: u32,
    /// The rate there over the highest.
    pub last_over_peak: Ranged,
    /// Whether it falls beyond the peak; `None`: that is not known.
    pub falls: Option<bool>,
    /// What is missing for saying what the law means; `None`: nothing.
    pub missing: Option<String>,
}

/// The rate at one number of connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingPoint {
    /// Connections.
    pub connections: u32,
    /// Ok ops per second.
    pub rate: Ranged,
    /// Ok ops per second by the law.
    pub fitted_per_s: Option<f64>,
    /// Why the fit does not rest on it; `None`: it does.
    pub left_out: Option<String>,
}

/// Parameters of the law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// λ: ops per second of one connection alone.
    pub lambda_per_s: Ranged,
    /// σ: the share of work that is done one after the other (contention); 0 or above.
    pub sigma: Ranged,
    /// κ: what each connection costs each other one (coherency); 0 or above.
    pub kappa: Ranged,
    /// Connections at which the rate is highest; `None`: it has no peak.
    pub peak_connections: Option<Ranged>,
    /// The number of connections at which the law is off by most, of those where it is off by more than the noise and
    /// by more than the practical margin; `None`: the law describes the rates.
    pub misfit: Option<ScalingMisfit>,
}

/// Where the law does not describe the rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalingMisfit {
    /// Connections.
    pub connections: u32,
    /// Measured over fitted.
    pub ratio: f64,
}

/// One target's law against the first one's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingDifference {
    /// Name of the first target.
    pub baseline: String,
    /// Name of the target.
    pub target: String,
    /// λ over λ.
    pub lambda_ratio: Ranged,
    /// σ minus σ.
    pub sigma_difference: Ranged,
    /// κ minus κ.
    pub kappa_difference: Ranged,
}

/// The time of an op as a sum: so much for itself, for each of its calls and for each byte, fitted to each target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// What is paid for, such as "a call": in this order come the figures of each target.
    pub paid_for: Vec<String>,
    /// One for each target, in the plan's order; none where it was not fitted.
    pub targets: Vec<TargetCosts>,
    /// Each target's costs against the first one's.
    pub differences: Vec<CostDifference>,
    /// Why it was not fitted.
    pub unfitted: Option<String>,
}

/// What a target's ops cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetCosts {
    /// Name of the target.
    pub target: String,
    /// For each thing that is paid for, ns.
    pub ns: Vec<Ranged>,
    /// Where the sum is off by most, of the treatments where it is off by more than noise and margin.
    pub misfit: Option<CostMisfit>,
}

/// Where a sum of costs does not describe the times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostMisfit {
    /// The treatment, in words.
    pub treatment: String,
    /// Time measured over time fitted.
    pub ratio: f64,
}

/// One target's costs minus the first one's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostDifference {
    /// Name of the first target.
    pub baseline: String,
    /// Name of the target.
    pub target: String,
    /// For each thing that is paid for, ns.
    pub ns: Vec<Ranged>,
}
