//! Where results go: the options of every command.

use clap::Args;
use std::path::PathBuf;

/// Where results go. Global: they may stand before a command and behind it.
#[derive(Args, Clone)]
pub(crate) struct OutputFlags {
    /// Print exactly one JSON document (schema duel/1)
    #[arg(long, help_heading = "Output", global = true)]
    pub(crate) json: bool,
    /// No progress
    #[arg(short = 'q', long, help_heading = "Output", global = true)]
    pub(crate) quiet: bool,
    /// Keep runs in this file [default: $DUEL_ARCHIVE, or runs.sqlite in the user's data folder]
    #[arg(long, value_name = "FILE", help_heading = "Output", global = true)]
    pub(crate) archive: Option<PathBuf>,
    /// Do not keep this run
    #[arg(long, conflicts_with = "archive", help_heading = "Output", global = true)]
    pub(crate) no_archive: bool,
}
