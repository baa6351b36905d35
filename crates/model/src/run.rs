//! One execution of a plan, kept whole.

use crate::{Doubt, Explanation, Facts, HostRecord, Plan, Slot, Waiting};
use serde::{Deserialize, Serialize};

/// One execution of a plan with all its raw slots: enough to judge it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Identity, sortable by time, such as `20261120-233200-7f3a`.
    pub id: String,
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// What was meant to be done, secrets left out.
    pub plan: Plan,
    /// What did it.
    pub versions: Versions,
    /// All slots in the order in which they ran, those of probes included.
    pub slots: Vec<Slot>,
    /// What each target's first response told, and what the target told of load when that was over, in the plan's order; `None` where
    /// no response came.
    pub first_contact: Vec<Option<Facts>>,
    /// What each target's machine was and did, in the plan's order; `None` where it was not read, empty where none was.
    #[serde(default)]
    pub hosts: Vec<Option<HostRecord>>,
    /// How the generator waited for answers; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// How it ended.
    pub status: RunStatus,
    /// Doubts that arose while running and cannot be derived from the slots.
    pub doubts: Vec<Doubt>,
    /// What diagnosis found, if it was asked.
    pub explanation: Option<Explanation>,
}

/// What a run does with its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Loads one of them.
    Run,
    /// Compares them.
    Compare,
    /// Varies factors.
    Factors,
    /// Looks for the highest rate that keeps a promise.
    Search,
}

impl RunKind {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Compare => "compare",
            Self::Factors => "factors",
            Self::Search => "search",
        }
    }
}

impl Plan {
    /// What a run of it does with the targets.
    pub fn kind(&self) -> RunKind {
        if self.load.shape.search.is_some() {
            RunKind::Search
        } else if !self.factors.is_empty() {
            RunKind::Factors
        } else if self.targets.len() > 1 {
            RunKind::Compare
        } else {
            RunKind::Run
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// All of it is there.
    Complete,
    /// It ended early; what was measured until then is there.
    Interrupted(Interruption),
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interruption {
    /// The user asked for it.
    User,
    /// It was never finished: duel was killed, the power failed, or it still goes on.
    Unfinished,
    /// A target stopped answering.
    TargetDied {
        /// Name of the target.
        target: String,
        /// Since the start of the run, in ns.
        at_ns: crate::Nanos,
        /// What was seen, safe to show.
        how: String,
    },
}

/// What did a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of duel.
    pub duel: String,
    /// Operating system and kernel of the generator.
    pub os: String,
    /// Processor architecture of the generator.
    pub arch: String,
    /// CPUs of the generator.
    pub cpus: u32,
    /// TLS library and cryptography provider.
    pub tls: String,
    /// Mechanism of the event loop, such as `epoll`.
    pub event_loop: String,
}
