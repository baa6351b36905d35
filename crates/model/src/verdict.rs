//! What the slots say, and what weakens it.

use crate::{CacheModel, Contest, Experiment, RateSearch, StageContrast};
use serde::{Deserialize, Serialize};

/// The judgement of a run: every target against the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// One entry per target and metric; for each target the main metric first. In a run with factors: averaged over
    /// all treatments (geometric means).
    pub pairs: Vec<PairVerdict>,
    /// Over how many starts of the targets that are started anew; `None` where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<u32>,
    /// What weakens the numbers.
    pub doubts: Vec<Doubt>,
    /// What has to be told before any figure, the worst first; empty where all targets did what was asked of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<Headline>,
    /// What the factors showed, in a run that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// What came of the search for a rate on each target, in the plan's order; empty where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<RateSearch>,
    /// The highest rate of each target after the first against that of the first, where rates were looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contests: Vec<Contest>,
    /// Every target against the first in each stage, where there were some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageContrast>,
    /// What targets are expected to do with caches of other sizes, in the plan's order; empty where nobody asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheModel>,
}

/// One target against the baseline in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairVerdict {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the target.
    pub target: String,
    /// What was compared.
    pub metric: Metric,
    /// The judgement.
    pub call: Call,
    /// Target over baseline, `None` when it is not known. For a rate below 1 is slower, for a time above 1.
    pub ratio: Option<f64>,
    /// Lower end of the interval, `None` when it is not known.
    pub low: Option<f64>,
    /// Upper end of the interval, `None` when it is not known.
    pub high: Option<f64>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Slots that the judgement rests on, those of both targets.
    pub slots: u32,
    /// Of a rate: whether it is all ops by all of the time, pauses included, in place of what the typical pair of slots shows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_whole: bool,
}

impl PairVerdict {
    /// How many times slower (above 1) or faster (below 1) the target is, with interval, whatever the metric.
    pub fn slowdown(&self) -> Option<(f64, f64, f64)> {
        let (ratio, low, high) = (self.ratio?, self.low?, self.high?);
        Some(if self.metric.more_is_better() { (1.0 / ratio, 1.0 / high, 1.0 / low) } else { (ratio, low, high) })
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Successful ops per second.
    Rate,
    /// Median of the response time.
    ResponseP50,
    /// 99th percentile of the response time.
    ResponseP99,
}

impl Metric {
    /// Whether a larger value is the faster one.
    pub fn more_is_better(self) -> bool {
        self == Self::Rate
    }

    /// The metric's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::ResponseP50 => "response p50",
            Self::ResponseP99 => "response p99",
        }
    }
}

/// Confidence of the interval that a call of faster or slower rests on: at 0.95 it is 0.99.
///
/// An interval of 95 % excludes the truth in one run of 20 by design. As an interval that is the field's custom; as an
/// accusation of a system it would be too often, and dependence between slots that no interval knows of adds to it.
/// A fifth of the error costs 1.31 times the distance from 1 (2.576 against 1.960 standard errors).
pub fn call_confidence(confidence: f64) -> f64 {
    1.0 - (1.0 - confidence) / 5.0
}

impl PairVerdict {
    /// Confidence of the interval that the call rests on; `None`: there is no call.
    pub fn call_confidence(&self) -> Option<f64> {
        match self.call {
            Call::Faster | Call::Slower => Some(call_confidence(self.confidence)),
            Call::Equivalent => Some(self.confidence),
            Call::Unknown => None,
        }
    }
}

/// A judgement on a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// The target is faster: beyond doubt at the stated confidence, and by the best estimate by more than the margin.
    Faster,
    /// The target is slower, likewise.
    Slower,
    /// The difference, if any, is within the practical margin.
    Equivalent,
    /// The slots do not tell.
    Unknown,
}

/// What is told of a target before any figure: it did not do what was asked of it, so its figures are not what a reader
/// would take them for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Which kind it is.
    pub kind: HeadlineKind,
    /// Name of the target.
    pub target: String,
    /// Failed requests as a share of those sent, or the rate that was reached as a share of the one asked for; `None` of a
    /// target that stopped answering.
    pub share: Option<f64>,
    /// The headline in one sentence without a full stop, with its figures.
    pub text: String,
}

/// Kinds of headline, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HeadlineKind {
    /// The target stopped answering.
    TargetDied,
    /// What the target holds does not agree with what was done to it: it may be fast because it does not do its work.
    ContentWrong,
    /// The target failed too many requests.
    Failing,
    /// The target did not reach the rate that was asked for.
    RateNotReached,
}

impl Verdict {
    /// The worst headline of a target.
    pub fn headline(&self, target: &str) -> Option<&Headline> {
        self.headlines.iter().find(|headline| headline.target == target)
    }
}

/// Something that weakens a number; it travels with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// Which kind of doubt.
    pub id: DoubtId,
    /// Name of the target that it concerns; `None`: all.
    pub target: Option<String>,
    /// The doubt in one sentence, with its figures.
    pub text: String,
}

/// Kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DoubtId {
    /// The generator itself stood still.
    GeneratorStoodStill,
    /// The generator itself was the bottleneck.
    GeneratorSaturated,
    /// Others had the CPU that the generator wanted.
    GeneratorWaited,
    /// Ops were started later than due though a connection was free.
    ScheduleLag,
    /// Ops that were due were never started: the offered rate was not reached.
    RateNotReached,
    /// Few slots, or some turns within them, make a difference that most do not show.
    Uneven,
    /// Too few slots for an interval of the stated confidence.
    TooFewSlots,
    /// A slot held too few ops of each connection for its rate to be sharp.
    ShortSlots,
    /// Ops were given up at the end of their slots.
    Unfinished,
    /// Ops failed.
    Errors,
    /// Requests were sent again within their ops.
    Resent,
    /// More bytes came than responses have.
    Surplus,
    /// Rank interval and bootstrap interval differ much.
    IntervalsDisagree,
    /// The ratio moved while the run went on.
    Drift,
    /// Warm-up had not ended when measuring began.
    WarmupUnfinished,
    /// The targets answered with different amounts of bytes.
    DifferentResponses,
    /// The targets negotiated different parameters.
    DifferentNegotiation,
    /// The run ended early.
    Interrupted,
    /// A target stopped answering.
    TargetDied,
    /// The wall clock jumped.
    Clock,
    /// What a target holds does not agree with what was done to it.
    ContentWrong,
    /// Something that was to be recorded could not be.
    NotRecorded,
    /// The machine of a target could not be read, or not in full.
    HostNotRead,
    /// Others worked on the target meanwhile.
    OthersWork,
    /// The generator slept, and waking it was a good part of what a target's server did.
    WakeUps,
    /// Most of what an op takes seems to be waiting for an acknowledgement that is delayed.
    DelayedAcks,
}
