//! `duel disk`: what is done with file systems, files and devices beside measuring them.

use crate::flags::OutputFlags;
use crate::outcome::Outcome;
use crate::terminal;
use clap::{Args, Subcommand};
use duel_model::sanitize_line;
use std::path::PathBuf;

/// What is to be done.
#[derive(Args, Clone)]
pub(crate) struct DiskFlags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Clone)]
enum Verb {
    /// Remove the work files of runs that were killed
    Clean {
        /// The folder that they are in
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// Does it.
pub(crate) fn disk(disk: &DiskFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    match &disk.verb {
        Verb::Clean { folder } => clean(folder, output),
    }
}

fn clean(folder: &std::path::Path, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let removed = duel_disk::remove_left_behind(folder)?;
    let names: Vec<String> = removed.iter().map(|path| sanitize_line(&path.display().to_string())).collect();
    if output.json {
        terminal::print(&duel_report::safe_json(&serde_json::json!({ "schema": "duel/1", "removed": names })))?;
    } else if names.is_empty() {
        terminal::print("nothing was left behind there\n")?;
    } else {
        terminal::print(&names.iter().map(|name| format!("removed {name}\n")).collect::<String>())?;
    }
    Ok(Outcome::Done)
}
