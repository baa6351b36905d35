//! Runs kept whole in one SQLite file: plan, seed, versions, raw slots, what was negotiated, what was found.
//!
//! A run is written while it goes on, slot by slot, so that a kill costs at most the slot under way; one that was
//! never finished reads back as interrupted. Many processes may write at once. What is kept is raw: every report is
//! rendered again from here.
//!
//! # The file
//!
//! Small facts are JSON text in `runs`; each slot is JSON in `slots.data`, deflated the way SQLite's own `sqlar`
//! archives are, so that the `sqlite3` shell reads it without duel:
//!
//! ```sh
//! sqlite3 runs.sqlite "SELECT sqlar_uncompress(data, json_bytes) FROM slots" | jq .tally.ok
//! ```
//!
//! # Example
//!
//! ```no_run
//! # fn example(mut run: duel_model::Run, slot: duel_model::Slot) -> Result<(), duel_archive::ArchiveError> {
//! use duel_archive::{Archive, default_path};
//!
//! let path = default_path(|name| std::env::var_os(name)).expect("HOME is set");
//! let mut archive = Archive::open(&path)?;
//! let mut writer = archive.begin(&run)?;
//! writer.slot(&slot)?;
//! run.slots.push(slot);
//! writer.finish(&run)?;
//! assert_eq!(archive.load("last")?, run);
//! # Ok(())
//! # }
//! ```

mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod numbers;
mod open;
mod packing;
mod place;
mod read;
mod schema;
mod storage;
mod write;

#[cfg(test)]
mod crash;
#[cfg(test)]
#[path = "../tests/integration/mounted/mod.rs"]
mod mounted;
#[cfg(test)]
#[path = "../tests/integration/sample/mod.rs"]
mod sample;

pub use error::ArchiveError;
pub use place::default_path;
pub use read::RunSummary;
pub use schema::{APPLICATION_ID, SCHEMA_VERSION};
pub use write::RunWriter;

use std::path::{Path, PathBuf};

/// An open archive.
///
/// It may be moved to another thread; two threads that write each open their own.
#[derive(Debug)]
pub struct Archive {
    connection: rusqlite::Connection,
    path: PathBuf,
    storage: storage::Storage,
    /// Whether it was made, or got another journal, where other machines may write too.
    is_new_here: bool,
}

impl Archive {
    /// The file that holds the runs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the user should know about the place, in one sentence; `None` where there is nothing, or it was told before.
    pub fn note(&self) -> Option<String> {
        self.is_new_here.then(|| {
            format!(
                "the archive {} is on {}: it gets a rollback journal there instead of a write-ahead log, which is slower; \
                 write to it from one machine at a time, or name a file on a local disk with --archive FILE",
                duel_model::sanitize_line(&self.path.display().to_string()),
                self.storage.name()
            )
        })
    }
}
