//! `duel disk`: what is done with file systems, files and devices beside measuring them.

use crate::outcome::Outcome;
use crate::output::OutputFlags;
use crate::{signals, terminal};
use clap::{Args, Subcommand};
use duel_model::sanitize_line;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// What is to be done.
#[derive(Args, Clone)]
pub(crate) struct DiskFlags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Clone)]
enum Verb {
    /// Print seek times and transfer rates, as diskinfo -t does
    Tables {
        /// A device, a file, or a folder for a work file
        #[arg(value_name = "TARGET")]
        target: String,
    },
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
        Verb::Tables { target } => tables(target, output),
        Verb::Clean { folder } => clean(folder, output),
    }
}

fn tables(target: &str, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let stop = signals::stop_flag()?;
    let tables = match duel_disk::tables(target, &stop) {
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(Outcome::Interrupted),
        done => done?,
    };
    if !output.json {
        terminal::print(&tables.text())?;
        return Ok(Outcome::Done);
    }
    let seeks = tables.seeks.iter().map(|row| {
        let ms = |ns: f64| ns / 1e6;
        json!({
            "name": row.name,
            "reads": row.reads,
            "mean_ms": ms(row.mean_ns),
            "median_ms": ms(row.median_ns as f64),
            "max_ms": ms(row.most_ns as f64),
        })
    });
    let seeks: Vec<_> = seeks.collect();
    let transfers = tables.transfers.iter();
    let transfers: Vec<_> =
        transfers.map(|row| json!({ "name": row.name, "bytes": row.bytes, "bytes_per_s": row.bytes_per_s })).collect();
    terminal::print(&duel_report::safe_json(&json!({
        "schema": "duel/1",
        "target": tables.path,
        "bytes": tables.bytes,
        "sector_bytes": tables.sector_bytes,
        "seeks": seeks,
        "transfers": transfers,
    })))?;
    Ok(Outcome::Done)
}

fn clean(folder: &std::path::Path, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let removed = duel_disk::remove_left_behind(folder)?;
    let names: Vec<String> = removed.iter().map(|path| sanitize_line(&path.display().to_string())).collect();
    if output.json {
        terminal::print(&duel_report::safe_json(&json!({ "schema": "duel/1", "removed": names })))?;
    } else if names.is_empty() {
        terminal::print("nothing was left behind there\n")?;
    } else {
        terminal::print(&names.iter().map(|name| format!("removed {name}\n")).collect::<String>())?;
    }
    Ok(Outcome::Done)
}
