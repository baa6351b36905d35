//! What the child tells its parent: lines of JSON.

use duel_model::{LensIdentity, LensOp, Nanos};
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    /// What the library says about itself; comes first.
    Library(LensIdentity),
    /// An operation could not be measured.
    Absent { op: LensOp, why: String },
    /// A figure.
    Figure(ChildFigure),
    /// Some of the library's variables.
    Variables { from: u64, hex: String },
    /// The library cannot be measured at all; comes last.
    Failed { why: String },
    /// All is told; comes last.
    Done,
}

/// The rounds of one operation in one child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildFigure {
    pub(crate) op: LensOp,
    pub(crate) block_bytes: Option<u32>,
    /// Bytes or operations per second of CPU time, in the order of the rounds.
    pub(crate) rounds_per_s: Vec<f64>,
    pub(crate) cpu_ns: Nanos,
    pub(crate) wall_ns: Nanos,
}
