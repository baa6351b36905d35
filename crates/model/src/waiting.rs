//! How the generator waits for answers: asleep, or awake while ops are in flight.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Whether the generator is to poll for answers, awake, for a while before it sleeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BusyPoll {
    /// Where every target serves at least as much then as with a generator that sleeps.
    #[default]
    Auto,
    /// It sleeps whenever it waits.
    Never,
    /// It polls.
    Always,
}

impl BusyPoll {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
            Self::Always => "always",
        }
    }

    /// What a run did that was kept before there was a choice.
    pub(crate) fn before_it_was_kept() -> Self {
        Self::Never
    }
}

/// How the generator waited in a run, the same for all of its targets, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Workers that polled; 0: all of them slept whenever they waited.
    pub polling_workers: u32,
    /// Why.
    pub why: WhyWaiting,
    /// Others wanted the CPU while it was measured: workers have polled until then only.
    pub gave_way: bool,
    /// What a sleep and the wake-up from it cost on the generator's machine.
    pub sleep_costs_ns: Nanos,
}

impl Waiting {
    /// Workers that polled to the end of the run.
    pub fn polling_at_the_end(&self) -> u32 {
        if self.gave_way { 0 } else { self.polling_workers }
    }
}

/// Why the generator waits as it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyWaiting {
    /// The user said so.
    Asked,
    /// Both ways were tried in turn: the rate with polling over that without, by target in the plan's order; `None` where ops
    /// take too long for a wake-up to matter.
    Tried(Vec<Option<f64>>),
    /// Polling was not tried: a single target gets no request that the plan does not ask for, and where ops are due by a
    /// schedule or after a pause the rate is not the generator's to raise. It polls where a CPU is free.
    Untried,
}
