//! The archive as the commands use it.

use crate::outcome::Usage;
use crate::output::OutputFlags;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use duel_archive::{Archive, RunWriter, default_path};
use duel_model::{Run, Slot};
use std::path::PathBuf;

/// An earlier run.
#[derive(Args, Clone)]
pub(crate) struct RunName {
    /// Id of the run, a unique beginning of it, 'last', or 'last~1' for the one before
    #[arg(value_name = "RUN")]
    pub(crate) name: String,
}

/// Opens the archive that runs are kept in; `None` if this run is not to be kept.
pub(crate) fn open(output: &OutputFlags) -> anyhow::Result<Option<Archive>> {
    if output.no_archive {
        return Ok(None);
    }
    let path = path(output)?;
    // What cannot be kept may still be measured.
    let opened =
        Archive::open(path).map_err(|error| anyhow::anyhow!("{error}; --no-archive measures and keeps nothing"))?;
    if let Some(note) = opened.note().filter(|_| !output.quiet) {
        terminal::note(&note);
    }
    Ok(Some(opened))
}

/// Opens the archive to look at earlier runs.
pub(crate) fn open_to_read(output: &OutputFlags) -> anyhow::Result<Archive> {
    Ok(Archive::open_read_only(path(output)?)?)
}

/// An earlier run as it may be shown.
pub(crate) fn load_to_show(name: &str, output: &OutputFlags) -> anyhow::Result<Run> {
    Ok(open_to_read(output)?.load(name)?.shown())
}

/// The archive that is used.
pub(crate) fn path(output: &OutputFlags) -> anyhow::Result<PathBuf> {
    if let Some(path) = &output.archive {
        if path.as_os_str().is_empty() {
            return Err(Usage("--archive needs the name of a file".into()).into());
        }
        return Ok(path.clone());
    }
    default_file()
        .context("there is no data folder to keep runs in: neither HOME nor XDG_DATA_HOME is set; use --archive FILE or --no-archive")
}

/// The archive where none is named.
pub(crate) fn default_file() -> Option<PathBuf> {
    default_path(|name| std::env::var_os(name))
}

/// Keeps a run while it goes on. A failure does not disturb the measurement; it is told when the run is over.
#[derive(Debug)]
pub(crate) enum Keeper<'a> {
    /// It is not to be kept.
    Nowhere,
    /// It has not begun.
    Ready(&'a mut Archive),
    /// Slots are written as they come, until one cannot be.
    Writing {
        /// Who writes.
        writer: RunWriter<'a>,
        /// What is missing is left to the end.
        waits_for_the_end: bool,
    },
    /// It could not be kept.
    Failed(duel_archive::ArchiveError),
}

/// Slots are kept at the end and not while the run goes on.
const LATE: &str = "the archive cannot be written to at the moment; slots are kept when the run is over";

impl<'a> Keeper<'a> {
    /// A keeper for the next run.
    pub(crate) fn new(archive: Option<&'a mut Archive>) -> Self {
        archive.map_or(Self::Nowhere, Self::Ready)
    }

    /// The run begins.
    pub(crate) fn begin(&mut self, run: &Run) {
        if let Self::Ready(archive) = std::mem::replace(self, Self::Nowhere) {
            *self = match archive.begin(run) {
                Ok(writer) => Self::Writing { writer, waits_for_the_end: false },
                Err(error) => Self::Failed(error),
            };
        }
    }

    /// A slot is over. Tells once, in words, that it could not be kept; then no other is tried before the end, since each try
    /// holds the measurement up.
    pub(crate) fn slot(&mut self, slot: &Slot) -> Option<&'static str> {
        if let Self::Writing { writer, waits_for_the_end: waits @ false } = self
            && writer.slot(slot).is_err()
        {
            *waits = true;
            return Some(LATE);
        }
        None
    }

    /// The run is over: keeps how it ended, and tells what went wrong.
    pub(crate) fn finish(self, run: &Run) -> anyhow::Result<()> {
        match self {
            Self::Nowhere | Self::Ready(_) => Ok(()),
            Self::Writing { writer, .. } => Ok(writer.finish(run)?),
            Self::Failed(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_slot_that_could_not_be_kept_none_is_tried_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let mut archive = Archive::open(&path).unwrap();
        let run = run();
        let mut keeper = Keeper::new(Some(&mut archive));
        keeper.begin(&Run { slots: vec![], ..run.clone() });
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(keeper.slot(&run.slots[0]), Some(LATE));
        other.execute_batch("COMMIT").unwrap();
        // It could be written now, and waits for the end nevertheless: the next lock would cost time again.
        assert_eq!(keeper.slot(&run.slots[1]), None);
        let slots = |other: &rusqlite::Connection| -> i64 {
            other.query_row("SELECT count(*) FROM slots", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(slots(&other), 0);
        keeper.finish(&run).unwrap();
        assert_eq!(slots(&other), 2);
    }

    /// A run as an archive has it.
    fn run() -> Run {
        let slot = |index: u32| {
            serde_json::json!({
                "index": index, "target": 0, "role": "measured", "block": 0, "repeat": 0, "started_unix_ms": 0,
                "offset_ns": 0, "elapsed_ns": 1, "tally": duel_model::Tally::default(),
                "series": duel_model::Series::default(), "audit": duel_model::GeneratorAudit::default(),
                "negotiated": null,
            })
        };
        serde_json::from_value(serde_json::json!({
            "id": "R", "started_unix_ms": 0, "plan": crate::command_line::tests::plan_of(["duel", "run", "http://a.example/"]),
            "versions": duel_model::Versions::default(), "status": "complete", "first_contact": [null],
            "slots": [slot(0), slot(1)], "doubts": [], "explanation": null,
        }))
        .unwrap()
    }
}
