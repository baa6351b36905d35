//! What can go wrong with an archive, each in one sentence that names the file and what to try.

use duel_model::sanitize_line;
use std::io;
use std::path::{Path, PathBuf};

/// Why an archive could not be opened, written or read.
///
/// File names and run ids in the messages are made safe to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Nothing has been kept there yet.
    #[error("there is no archive at {} yet: the first run makes it; --archive FILE names another one", shown(.path))]
    Missing {
        /// The archive's file.
        path: PathBuf,
    },
    /// The name is that of a folder, a device or the like.
    #[error("cannot open the archive {}: it is {what}, not a file; name a file with --archive FILE", shown(.path))]
    NotAFile {
        /// The archive's file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The file is not in SQLite's format.
    #[error("cannot open the archive {}: it is no SQLite database, and duel leaves it alone; name another file with --archive FILE", shown(.path))]
    NotADatabase {
        /// The archive's file.
        path: PathBuf,
    },
    /// The file is another program's database.
    #[error("cannot open the archive {}: this database belongs to another program, and duel leaves it alone; name another file with --archive FILE", shown(.path))]
    Foreign {
        /// The archive's file.
        path: PathBuf,
    },
    /// The file has a schema that this version does not know.
    #[error("cannot open the archive {}: it was written by a newer duel (schema {found}, this one knows {known}); update duel, or name another file with --archive FILE", shown(.path))]
    Newer {
        /// The archive's file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The file has an older schema and may not be changed now.
    #[error("cannot read the archive {}: it was written by an older duel (schema {found}, now {known}) and has to be brought up to date where it can be written; copy it to such a place, or make a run with it once", shown(.path))]
    Older {
        /// The archive's file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The version needed.
        known: i64,
    },
    /// Something has to be brought in order before the file can be read, and it may not be changed here.
    #[error("cannot read the archive {}: a duel that was killed left a change half done, and the file or its folder is read-only here; copy the file with all files beside it to a place that can be written, or name another file with --archive FILE", shown(.path))]
    HalfDone {
        /// The archive's file.
        path: PathBuf,
    },
    /// The file or its folder could not be made or reached.
    #[error("cannot {doing} {}: {source}; check the path and its permissions, or name another file with --archive FILE", shown(.path))]
    Unreachable {
        /// What was being done, as an infinitive that the path completes.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file may be read only.
    #[error("cannot {doing} in the archive {}: the file or its folder is read-only; name a file that can be written with --archive FILE", shown(.path))]
    ReadOnly {
        /// What was being done.
        doing: String,
        /// The archive's file.
        path: PathBuf,
    },
    /// No space is left.
    #[error("cannot {doing} in the archive {}: the disk is full; free some space, or name a file elsewhere with --archive FILE (what was kept before is still there)", shown(.path))]
    DiskFull {
        /// What was being done.
        doing: String,
        /// The archive's file.
        path: PathBuf,
    },
    /// Another process kept the file locked for too long.
    #[error("cannot {doing} in the archive {}: another process has kept it locked for more than {} s; let it end, and try again", shown(.path), crate::open::BUSY_TIMEOUT.as_secs())]
    Locked {
        /// What was being done.
        doing: String,
        /// The archive's file.
        path: PathBuf,
    },
    /// SQLite found the file's structure damaged.
    #[error("cannot {doing} in the archive {}: the file is damaged ({detail}); restore a copy, or recover what is left with `sqlite3 FILE .recover`", shown(.path))]
    Damaged {
        /// What was being done.
        doing: String,
        /// The archive's file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// Any other error of the database.
    #[error("cannot {doing} in the archive {}: {}; check the file, its disk and their permissions, or name another file with --archive FILE", shown(.path), sanitize_line(&.cause.to_string()))]
    Database {
        /// What was being done.
        doing: String,
        /// The archive's file.
        path: PathBuf,
        /// What SQLite said. No `source`: the message has all of it, and the error within would say it again.
        cause: rusqlite::Error,
    },
    /// No run at all.
    #[error("no run is archived in {} yet: `duel URL URL` and `duel run URL` make one, or name another file with --archive FILE", shown(.path))]
    Empty {
        /// The archive's file.
        path: PathBuf,
    },
    /// No run of that name.
    #[error("no run '{}' in the archive {}: `duel list` shows what there is", sanitize_line(.wanted), shown(.path))]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// The archive's file.
        path: PathBuf,
    },
    /// Several runs begin so.
    #[error("'{}' may be any of {} runs in the archive {}: {}; type more of the id", sanitize_line(.wanted), .matches.len(), shown(.path), listed(.matches))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Ids of all runs that it may mean, in order.
        matches: Vec<String>,
        /// The archive's file.
        path: PathBuf,
    },
    /// A run of this id is already there.
    #[error("cannot begin run {} in the archive {}: a run of this id is already there; start it under another id", sanitize_line(.id), shown(.path))]
    Exists {
        /// The run.
        id: String,
        /// The archive's file.
        path: PathBuf,
    },
    /// The kept run has slots that differ from those that were to be added: somebody else added to it meanwhile.
    #[error("cannot add to run {} in the archive {}: slot {index} is kept there otherwise, so another duel has added to the run meanwhile; load it again and repeat", sanitize_line(.id), shown(.path))]
    Changed {
        /// The run.
        id: String,
        /// First slot that differs.
        index: u32,
        /// The archive's file.
        path: PathBuf,
    },
    /// A value has no written form, such as a path that is not Unicode.
    #[error("cannot keep {what} in the archive {}: {source}; change what cannot be written down", shown(.path))]
    Unwritable {
        /// What was to be kept.
        what: String,
        /// The archive's file.
        path: PathBuf,
        /// Why it cannot be written.
        source: serde_json::Error,
    },
    /// What is kept cannot be understood.
    #[error("cannot read {what} in the archive {}: {detail}; it may have been changed by hand or by another version of duel", shown(.path))]
    Unreadable {
        /// What was to be read.
        what: String,
        /// The archive's file.
        path: PathBuf,
        /// Why not.
        detail: String,
    },
}

impl ArchiveError {
    /// Sorts an error of SQLite by what its reader can do about it.
    pub(crate) fn database(path: &Path, doing: impl Into<String>, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let (path, doing) = (path.to_owned(), doing.into());
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { doing, path },
            // SQLite reports a full disk as such only for the database and its log; where it cannot make or grow the
            // log's index, it speaks of the operation that failed.
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if disk_is_full(&path) => {
                Self::DiskFull { doing, path }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { doing, path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { doing, path },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { doing, path, detail: sanitize_line(&source.to_string()) }
            }
            _ => Self::Database { doing, path, cause: source },
        }
    }

    /// Sorts an error of the file system likewise.
    pub(crate) fn unreachable(path: &Path, doing: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { doing: "make a place for runs".to_owned(), path }
            }
            _ => Self::Unreachable { doing, path, source },
        }
    }
}

/// True when the file system has less room than the index of a write-ahead log takes (32 KiB).
fn disk_is_full(path: &Path) -> bool {
    const LOG_INDEX_BYTES: u64 = 32 << 10;
    let folder = path.parent().unwrap_or(path);
    rustix::fs::statvfs(folder).is_ok_and(|room| room.f_bavail.saturating_mul(room.f_frsize) < LOG_INDEX_BYTES)
}

fn shown(path: &Path) -> String {
    sanitize_line(&path.display().to_string())
}

/// The first few of many ids.
fn listed(ids: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = ids.iter().take(SHOWN).map(|id| sanitize_line(id)).collect::<Vec<_>>().join(", ");
    if ids.len() > SHOWN {
        text.push_str(&format!(" and {} more", ids.len() - SHOWN));
    }
    text
}
