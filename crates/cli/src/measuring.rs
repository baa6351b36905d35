//! What every command that measures takes besides the load.

use crate::hosts::{self, HostFlags};
use crate::load::restart;
use crate::outcome::Usage;
use crate::telemetry::TelemetryFlags;
use clap::Args;
use duel_model::Plan;
use std::path::PathBuf;

/// What every command that measures takes besides the load.
#[derive(Args, Clone)]
pub(crate) struct MeasuringFlags {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
    #[command(flatten)]
    plan: PlanFlag,
}

impl MeasuringFlags {
    /// Whether options come from a plan file as well.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan.plan.is_some()
    }

    /// Says in the plan which machines are read, which goes by whether the cause of a difference is sought; refuses what cannot be
    /// meant.
    pub(crate) fn apply(&self, plan: &mut Plan, seeks_cause: bool) -> Result<(), Usage> {
        hosts::assign(plan, &self.hosts, seeks_cause)?;
        restart::refuse(plan)?;
        self.telemetry.checked()
    }
}

/// The plan that options are read from.
#[derive(Args, Clone, Default)]
pub(crate) struct PlanFlag {
    /// Read options and targets from this TOML file, as 'duel plan' prints it; what is typed beside it goes first. Its keys
    /// are the long names of the options; what it switches on is switched off by --OPTION=false
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) plan: Option<PathBuf>,
}
