//! `duel disk`: what is done with file systems, files and devices beside measuring them.

use crate::outcome::{self, Outcome, Usage};
use crate::output::OutputFlags;
use crate::{signals, terminal};
use clap::{Args, Subcommand, ValueEnum};
use duel_disk::{FileTablesPlan, Holes, Image, ImageEnd, ImagePlan};
use duel_model::{Param, sanitize_line};
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
    /// Print how fast a file system writes, reads, makes and removes files, as bonnie++ does
    Files {
        /// The folder to make files in; they are removed again
        #[arg(value_name = "FOLDER")]
        folder: String,
        /// Size of the one file that is written and read
        #[arg(long, value_name = "BYTES", default_value = "256M")]
        size: String,
        /// Bytes of its blocks
        #[arg(long, value_name = "BYTES", default_value = "8k")]
        block: String,
        /// How many small files are made
        #[arg(long, value_name = "N", default_value = "10000")]
        files: String,
        /// How large they are; a list makes a row for each size
        #[arg(long, value_name = "BYTES", default_value = "0,4k")]
        file_size: String,
        /// How many folders they are in
        #[arg(long, value_name = "N", default_value = "1")]
        folders: String,
    },
    /// Write an image onto a device, after asking twice, and read it back
    WriteImage {
        /// The image
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// A device that nobody uses, or a file that is not there yet
        #[arg(value_name = "DEVICE")]
        onto: PathBuf,
        /// The device once more: all that is on it may be overwritten. Its name is asked for on a terminal, too
        #[arg(long, value_name = "DEVICE")]
        destroy: Option<PathBuf>,
        /// What becomes of holes of the image: zero writes zeros, skip writes nothing, where zeros have to be on the device already
        #[arg(long, value_name = "WHAT", value_enum, default_value = "zero")]
        holes: HolesFlag,
        /// Go on at this byte, which an interrupted call has told
        #[arg(long, value_name = "BYTE", default_value = "0")]
        from: u64,
    },
    /// Remove the work files of runs that were killed
    Clean {
        /// The folder that they are in
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

#[derive(ValueEnum, Clone, Copy)]
enum HolesFlag {
    Zero,
    Skip,
}

/// Does it.
pub(crate) fn disk(disk: &DiskFlags, output: &OutputFlags) -> anyhow::Result<Outcome> {
    match &disk.verb {
        Verb::Tables { target } => tables(target, output),
        Verb::Files { folder, size, block, files, file_size, folders } => {
            let number =
                |param: &Param, typed: &str| param.read(typed).map_err(Usage).map(|read| read.parse().unwrap_or(0));
            let levels = duel_disk::FILE_SIZE.levels(file_size).map_err(Usage)?;
            let plan = FileTablesPlan {
                bytes: number(&duel_disk::SIZE, size)?,
                block: number(&duel_disk::BLOCK, block)?,
                files: u32::try_from(number(&duel_disk::FILES, files)?)?,
                file_bytes: levels.iter().map(|bytes| bytes.parse().unwrap_or(0)).collect(),
                folders: u32::try_from(number(&duel_disk::FOLDERS, folders)?)?,
            };
            // Sectors are verified, and the file is one of whole blocks.
            if !plan.block.is_multiple_of(512) || plan.bytes == 0 || !plan.bytes.is_multiple_of(plan.block) {
                let text = "--block has to be a multiple of 512 bytes, and --size a multiple of it";
                return Err(Usage(text.to_owned()).into());
            }
            file_tables(folder, &plan, output)
        }
        Verb::WriteImage { image, onto, destroy, holes, from } => {
            let holes = match holes {
                HolesFlag::Zero => Holes::Zero,
                HolesFlag::Skip => Holes::Skip,
            };
            let (image, onto, destroy) = (image.clone(), onto.clone(), destroy.clone());
            write_image(ImagePlan { image, onto, destroy, holes, from: *from }, output)
        }
        Verb::Clean { folder } => clean(folder, output),
    }
}

fn write_image(plan: ImagePlan, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let onto = sanitize_line(&plan.onto.display().to_string());
    // Until the name was typed, Ctrl-C ends it at once.
    let image = Image::open(plan)?;
    let stop = signals::stop_flag()?;
    let written = match image.write(&stop)? {
        ImageEnd::Done(written) => written,
        ImageEnd::Stopped(stopped) => {
            for sentence in stopped.text(&onto) {
                outcome::say(&sentence);
            }
            return Ok(Outcome::Interrupted);
        }
    };
    if output.json {
        let bad = written.bad.iter();
        let bad = bad.map(|bad| json!({ "from": bad.place.start, "to": bad.place.end, "what": bad.what }));
        terminal::print(&duel_report::safe_json(&json!({
            "schema": "duel/1",
            "target": onto,
            "bytes": written.bytes,
            "written_bytes": written.written_bytes,
            "hole_bytes": written.hole_bytes,
            "write_ns": written.write_ns,
            "read_ns": written.read_ns,
            "served_from": written.served_from,
            "used_bytes": written.used_bytes,
            "bad": bad.collect::<Vec<_>>(),
        })))?;
    } else {
        terminal::print(&written.text(&onto))?;
    }
    Ok(if written.bad.is_empty() { Outcome::Done } else { Outcome::NotAsAsked })
}

fn file_tables(folder: &str, plan: &FileTablesPlan, output: &OutputFlags) -> anyhow::Result<Outcome> {
    let stop = signals::stop_flag()?;
    let tables = match duel_disk::file_tables(folder, plan, &stop) {
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(Outcome::Interrupted),
        done => done?,
    };
    if !output.json {
        terminal::print(&tables.text())?;
        return Ok(Outcome::Done);
    }
    let throughputs = tables.throughputs.iter().map(|row| {
        json!({
            "name": row.name,
            "ops": row.ops,
            "bytes": row.bytes,
            "ops_per_s": row.per_s(),
            "bytes_per_s": row.bytes_per_s(),
            "cpu_ns": row.cpu_ns,
            "served_from": row.served_from,
        })
    });
    let rates = tables.rates.iter().map(|row| {
        json!({
            "name": row.name,
            "order": row.order,
            "file_bytes": row.file_bytes,
            "files": row.files,
            "files_per_s": row.per_s(),
            "cpu_ns": row.cpu_ns,
            "served_from": row.served_from,
        })
    });
    terminal::print(&duel_report::safe_json(&json!({
        "schema": "duel/1",
        "target": tables.path,
        "bytes": plan.bytes,
        "block_bytes": plan.block,
        "folders": plan.folders,
        "one_file": throughputs.collect::<Vec<_>>(),
        "many_files": rates.collect::<Vec<_>>(),
    })))?;
    Ok(Outcome::Done)
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
