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
    /// What its sleeping costs servers on its own machine; `None` where none is there, or where it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waking: Option<Waking>,
}

/// Whoever sends to a thread that sleeps wakes it, and pays for that: what it costs servers on the generator's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waking {
    /// CPU time of the sender for each wake-up, ns, as measured on this machine.
    pub cost_ns: Nanos,
    /// CPUs of the machine: no server has more.
    pub cpus: u32,
    /// Whether the server is on this machine, by target in the plan's order.
    pub is_here: Vec<bool>,
}

impl Waiting {
    /// What it costs a target's server to wake a sleeping worker, ns of its CPU time; `None` where it is on another machine, or where
    /// that is not known.
    pub fn waking_ns(&self, target: usize) -> Option<Nanos> {
        self.waking.as_ref().filter(|waking| waking.is_here.get(target) == Some(&true)).map(|waking| waking.cost_ns)
    }

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
