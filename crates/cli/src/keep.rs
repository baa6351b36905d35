//! The archive as the commands use it.

use crate::flags::OutputFlags;
use crate::outcome::Usage;
use anyhow::Context;
use duel_archive::{Archive, RunWriter, default_path};
use duel_model::{Run, Slot};
use std::path::PathBuf;

/// Opens the archive that runs are kept in; `None` if this run is not to be kept.
pub(crate) fn open(output: &OutputFlags) -> anyhow::Result<Option<Archive>> {
    if output.no_archive {
        return Ok(None);
    }
    Ok(Some(Archive::open(path(output)?)?))
}

/// Opens the archive to look at earlier runs.
pub(crate) fn open_to_read(output: &OutputFlags) -> anyhow::Result<Archive> {
    Ok(Archive::open_read_only(path(output)?)?)
}

fn path(output: &OutputFlags) -> anyhow::Result<PathBuf> {
    if let Some(path) = &output.archive {
        if path.as_os_str().is_empty() {
            return Err(Usage("--archive needs the name of a file".into()).into());
        }
        return Ok(path.clone());
    }
    default_path(|name| std::env::var_os(name))
        .context("there is no data folder to keep runs in: neither HOME nor XDG_DATA_HOME is set; use --archive FILE or --no-archive")
}

/// Keeps a run while it goes on. A failure does not disturb the measurement; it is told when the run is over.
#[derive(Debug)]
pub(crate) enum Keeper<'a> {
    /// It is not to be kept.
    Nowhere,
    /// It has not begun.
    Ready(&'a mut Archive),
    /// Slots are written as they come.
    Writing(RunWriter<'a>),
    /// It could not be kept.
    Failed(duel_archive::ArchiveError),
}

impl<'a> Keeper<'a> {
    /// A keeper for the next run.
    pub(crate) fn new(archive: Option<&'a mut Archive>) -> Self {
        archive.map_or(Self::Nowhere, Self::Ready)
    }

    /// The run begins.
    pub(crate) fn begin(&mut self, run: &Run) {
        if let Self::Ready(archive) = std::mem::replace(self, Self::Nowhere) {
            *self = match archive.begin(run) {
                Ok(writer) => Self::Writing(writer),
                Err(error) => Self::Failed(error),
            };
        }
    }

    /// A slot is over.
    pub(crate) fn slot(&mut self, slot: &Slot) {
        if let Self::Writing(writer) = self {
            // What fails now is tried again at the end.
            let _ = writer.slot(slot);
        }
    }

    /// The run is over: keeps how it ended, and tells what went wrong.
    pub(crate) fn finish(self, run: &Run) -> anyhow::Result<()> {
        match self {
            Self::Nowhere | Self::Ready(_) => Ok(()),
            Self::Writing(writer) => Ok(writer.finish(run)?),
            Self::Failed(error) => Err(error.into()),
        }
    }
}
