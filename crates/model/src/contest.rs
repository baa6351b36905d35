//! What comes of several targets whose load is looked for or changes: their highest rates against each other, and stage
//! against stage.

use crate::{Call, Metric};
use serde::{Deserialize, Serialize};

/// One target's highest rate against the baseline's: derived from the run's slots, whenever it is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the target.
    pub target: String,
    /// The judgement: rests on [`Contest::head_to_head`] alone.
    pub call: Call,
    /// Highest rate of the target over that of the baseline, from the geometric middles of what was kept and what was
    /// not; `None` where an end of either is not known.
    pub ratio: Option<f64>,
    /// The least that the ratio can be if every attempt told the truth. No interval of any confidence.
    pub low: Option<f64>,
    /// The most, likewise.
    pub high: Option<f64>,
    /// Both at one rate; `None` where the brackets left no rate that would tell them apart.
    pub head_to_head: Option<HeadToHead>,
}

/// Two targets offered one and the same rate in turn, which one of them keeps and the other does not, if their searches
/// told the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeadToHead {
    /// The rate.
    pub rate_per_s: f64,
    /// Pairs of attempts in which the baseline alone kept the promises.
    pub baseline_alone: u32,
    /// Pairs in which the target alone kept them.
    pub target_alone: u32,
    /// Pairs in which both did, or neither, or the generator was at fault.
    pub alike: u32,
}

impl HeadToHead {
    /// Pairs that one target alone has to keep, and the other one never, for a call. If both are equal, each pair that tells
    /// them apart is the toss of a coin: eight on the side that the searches pointed to come by chance once in 256 (0.39 %),
    /// which is less than the 1 % at which other calls err.
    pub const PAIRS_NEEDED: u32 = 8;

    /// All pairs.
    pub fn pairs(&self) -> u32 {
        self.baseline_alone + self.target_alone + self.alike
    }
}

/// One target against the baseline in one metric of one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageContrast {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the target.
    pub target: String,
    /// Which of the plan's stages.
    pub stage: usize,
    /// What was compared.
    pub metric: Metric,
    /// Target over baseline; `None` when it is not known.
    pub ratio: Option<f64>,
    /// Lower end of the interval of this stage alone; `None` with too few pairs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Pairs of courses that it rests on.
    pub pairs: u32,
}
