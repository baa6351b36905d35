//! How load changes within a run: stages, a deadline, and the search for the highest rate that keeps a promise.

use crate::units::{parse_per_second, typed_duration};
use crate::{Nanos, Promise, Slot, parse_duration_ns, sanitize_line};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What goes beyond load that stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadShape {
    /// One after the other; empty: the load stays as it is. They say what [`LoadPlan::kind`](crate::LoadPlan::kind) and
    /// `connections` do not: the rate there is their mean, the connections there are their most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Open loop: an op that could only start later than this after its due time is not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// The rate is not given but looked for; that of [`LoadPlan::kind`](crate::LoadPlan::kind) is where the search
    /// begins, 0: where a closed loop says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// Closed loop: one op is under way at a time, whatever lanes there are. Each round of them has an order of its own, or whoever
    /// hands ops out in turn would hand all of a lane to the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
}

impl LoadShape {
    /// Whether the load stays as it is.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What rate is looked for: the highest one at which all promises are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// What has to be kept; at least one.
    pub promises: Vec<Promise>,
    /// By which share the lowest rate that is broken may exceed the highest one that is kept.
    pub precision: f64,
}

impl SearchPlan {
    /// A server's own speed wanders by a percent or two from minute to minute: a finer answer would not be the same
    /// tomorrow, and each halving costs two attempts or three.
    pub const PRECISION: f64 = 0.02;
}

/// A stretch of time in which the load stays as it is or changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Stage {
    /// How long it lasts; above 0.
    pub duration_ns: Nanos,
    /// What it sets.
    pub level: StageLevel,
}

/// What a stage sets, from its begin to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StageLevel {
    /// Open loop: ops per second over all workers.
    Rate {
        /// At the begin.
        from_per_s: f64,
        /// At the end.
        to_per_s: f64,
    },
    /// Closed loop: connections that carry ops, over all workers.
    Connections {
        /// At the begin.
        from: u32,
        /// At the end.
        to: u32,
    },
}

/// A list of stages could not be understood; the text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseStageError(String);

impl Stage {
    /// More of them are no stages any more, and each keeps a histogram of 200 kB on each worker while it runs.
    pub const MOST: usize = 64;
    /// Highest rate of a stage, per second: what no generator of one machine reaches.
    pub const HIGHEST_RATE_PER_S: f64 = 1e7;

    /// Parses stages separated by commas, all of rates or all of connections: `10s@100,30s@100..5000,10s@0`, or
    /// `10s@10c,30s@10c..100c`.
    pub fn parse_all(typed: &str) -> Result<Vec<Self>, ParseStageError> {
        let stages: Vec<Self> = typed.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if stages.len() > Self::MOST {
            return Err(ParseStageError(format!("{} stages: at most {} can be told apart", stages.len(), Self::MOST)));
        }
        let of_rate = stages.iter().filter(|stage| stage.is_of_rate()).count();
        if of_rate != 0 && of_rate != stages.len() {
            return Err(ParseStageError(
                "stages are of rates (10s@100) or of connections (10s@100c), not of both in one run".to_owned(),
            ));
        }
        if stages.iter().all(|stage| stage.highest() == 0.0) {
            return Err(ParseStageError("no stage has any load".to_owned()));
        }
        Ok(stages)
    }

    /// Whether it sets a rate; otherwise connections.
    pub fn is_of_rate(&self) -> bool {
        matches!(self.level, StageLevel::Rate { .. })
    }

    /// The higher of its ends: a rate per second, or connections.
    pub fn highest(&self) -> f64 {
        match self.level {
            StageLevel::Rate { from_per_s, to_per_s } => from_per_s.max(to_per_s),
            StageLevel::Connections { from, to } => f64::from(from.max(to)),
        }
    }

    /// Its mean: a rate per second, or connections.
    pub fn mean(&self) -> f64 {
        match self.level {
            StageLevel::Rate { from_per_s, to_per_s } => (from_per_s + to_per_s) / 2.0,
            StageLevel::Connections { from, to } => (f64::from(from) + f64::from(to)) / 2.0,
        }
    }

    /// How long all of them last.
    pub fn total_ns(stages: &[Self]) -> Nanos {
        stages.iter().map(|stage| stage.duration_ns).fold(0, Nanos::saturating_add)
    }

    /// Mean over all of them, by time.
    pub fn mean_of(stages: &[Self]) -> f64 {
        let weighed: f64 = stages.iter().map(|stage| stage.mean() * stage.duration_ns as f64).sum();
        weighed / Self::total_ns(stages).max(1) as f64
    }
}

impl FromStr for Stage {
    type Err = ParseStageError;

    fn from_str(typed: &str) -> Result<Self, ParseStageError> {
        let error = || {
            ParseStageError(format!(
                "'{}' is no stage such as 10s@100 (per second), 30s@100..5000 (a ramp) or 10s@50c (connections)",
                sanitize_line(typed.trim())
            ))
        };
        let (duration, level) = typed.split_once('@').ok_or_else(error)?;
        let duration_ns = parse_duration_ns(duration).map_err(|_| error())?;
        if duration_ns == 0 {
            return Err(ParseStageError(format!("'{}' takes no time", sanitize_line(typed.trim()))));
        }
        let (from, to) = level.split_once("..").unwrap_or((level, level));
        let (from, to) = (from.trim(), to.trim());
        let level = match (from.strip_suffix('c'), to.strip_suffix('c')) {
            // `10..100c` is clear enough; `10c..100` may as well be a mistake.
            (from_connections, Some(to)) => StageLevel::Connections {
                from: from_connections.unwrap_or(from).trim().parse().map_err(|_| error())?,
                to: to.trim().parse().map_err(|_| error())?,
            },
            (None, None) => {
                StageLevel::Rate { from_per_s: rate(from).ok_or_else(error)?, to_per_s: rate(to).ok_or_else(error)? }
            }
            (Some(_), None) => return Err(error()),
        };
        Ok(Self { duration_ns, level })
    }
}

fn rate(typed: &str) -> Option<f64> {
    parse_per_second(typed).filter(|rate| *rate <= Stage::HIGHEST_RATE_PER_S)
}

impl fmt::Display for Stage {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", typed_duration(self.duration_ns), self.level)
    }
}

impl fmt::Display for StageLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { from_per_s, to_per_s } if from_per_s == to_per_s => write!(f, "{from_per_s}"),
            Self::Rate { from_per_s, to_per_s } => write!(f, "{from_per_s}..{to_per_s}"),
            Self::Connections { from, to } if from == to => write!(f, "{from}c"),
            Self::Connections { from, to } => write!(f, "{from}c..{to}c"),
        }
    }
}

kept_as_typed!(Stage);

/// What came of the search for a rate on one target: derived from the run's slots, whenever it is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// Which of the plan's targets.
    pub target: usize,
    /// What had to be kept.
    pub promises: Vec<Promise>,
    /// Every rate that was tried, in that order.
    pub attempts: Vec<Attempt>,
    /// Highest rate that was kept, below all that were broken; `None`: none was.
    pub kept_per_s: Option<f64>,
    /// Lowest rate that was not kept; `None`: none was.
    pub broken_per_s: Option<f64>,
    /// Why the search ended.
    pub end: SearchEnd,
}

impl RateSearch {
    /// Whether a slot is one of the attempts that the answer rests on: at the highest rate that was kept, and kept.
    pub fn is_of_answer(&self, slot: &Slot) -> bool {
        self.attempts.iter().any(|attempt| {
            attempt.slot == slot.index
                && attempt.outcome == AttemptOutcome::Kept
                && Some(attempt.rate_per_s) == self.kept_per_s
        })
    }
}

/// Why the search for a rate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// The lowest rate broken is as near to the highest one kept as was asked for.
    Found,
    /// Above the highest rate kept, the generator itself was the limit: the target may do better.
    Generator,
    /// The lowest rate worth trying was not kept.
    NothingKept,
    /// The highest rate that can be asked for was kept.
    NothingBroken,
    /// The time was over before.
    OutOfTime,
}

/// One attempt at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Index of its slot.
    pub slot: u32,
    /// The rate that was offered.
    pub rate_per_s: f64,
    /// What came of it.
    pub outcome: AttemptOutcome,
    /// The promised figures in the order and the units of the promises; `None`: there was none.
    pub figures: Vec<Option<f64>>,
    /// Which promises were broken, by their places.
    pub broken: Vec<usize>,
    /// By which share of the offered ops the backlog grew; `None` where it could not be told.
    pub backlog_growth: Option<f64>,
    /// The target did not keep up with the rate, whatever was promised: the backlog grew.
    pub fell_behind: bool,
}

/// What came of one attempt at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptOutcome {
    /// All promises were kept.
    Kept,
    /// A promise was broken, or the target fell behind.
    Broken,
    /// The same, while the generator itself was late or had no CPU time left: the target is not to blame.
    Generator,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND_NS;

    #[test]
    fn stages_are_shown_as_they_are_typed() {
        for typed in ["10s@100", "30s@100..5000", "1500ms@0", "10s@0.5", "10s@50c", "30s@10c..100c", "5s@0c"] {
            let stage: Stage = typed.parse().unwrap();
            assert_eq!(stage.to_string(), typed);
            let json = serde_json::to_string(&stage).unwrap();
            assert_eq!(serde_json::from_str::<Stage>(&json).unwrap(), stage);
        }
        assert_eq!(" 2 s @ 10 .. 20c".parse::<Stage>().unwrap().to_string(), "2s@10c..20c");
    }

    #[test]
    fn what_is_no_list_of_stages_is_refused_in_words() {
        for (typed, said) in [
            ("", "is no stage"),
            ("10s", "is no stage"),
            ("10s@", "is no stage"),
            ("@100", "is no stage"),
            ("10s@-5", "is no stage"),
            ("10s@1e3", "is no stage"),
            ("10s@NaN", "is no stage"),
            ("10s@10c..100", "is no stage"),
            ("10s@1.5c", "is no stage"),
            ("10s@99999999", "is no stage"),
            ("10s@1..2..3", "is no stage"),
            ("0s@100", "takes no time"),
            ("10s@100,10s@5c", "not of both"),
            ("10s@0,5s@0", "no stage has any load"),
            ("10s@100,", "is no stage"),
            ("10s@1\u{1b}[2J", "is no stage"),
        ] {
            let error = Stage::parse_all(typed).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\u{1b}'), "{typed}: {error}");
        }
        assert!(Stage::parse_all(&["1s@1"; 65].join(",")).unwrap_err().to_string().contains("at most 64"));
    }

    #[test]
    fn means_are_by_time() {
        let stages = Stage::parse_all("10s@100,20s@100..400,10s@0").unwrap();
        assert_eq!(Stage::total_ns(&stages), 40 * SECOND_NS);
        assert_eq!(Stage::mean_of(&stages), 150.0);
    }
}
