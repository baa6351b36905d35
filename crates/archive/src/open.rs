//! Opening: only what is ours, or nobody's, is ever written to.

mod shared;

use crate::schema::{self, STEPS, Step};
use crate::storage::Storage;
use crate::{Archive, ArchiveError};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait for other writers. A slot takes them milliseconds; ten seconds are for a disk that hangs.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for a slot of a run that goes on: whoever keeps it is to load the next target.
pub(crate) const SLOT_TIMEOUT: Duration = Duration::from_millis(100);

/// What is being done while an archive is opened.
const DOING: &str = "look for runs";

/// The smallest page that SQLite knows.
const SMALLEST_DATABASE_BYTES: u64 = 512;

impl Archive {
    /// Opens the archive for writing; makes it, and the folders that lead to it, where there is none.
    ///
    /// The file is for the user only (mode 0600), for plans hold addresses and request bodies. Other programs' files
    /// are refused untouched; an archive of an older duel is brought up to date.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        open_with(path.as_ref(), STEPS)
    }

    /// Opens an archive that is there to read it; works on read-only places as well.
    ///
    /// Nothing of its own is written. What a writer that was killed had begun is taken back, and on a file system where a
    /// write-ahead log is not safe an archive with a log is given a rollback journal.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        open_read_only_with(path.as_ref(), STEPS)
    }
}

pub(crate) fn open_with(path: &Path, steps: &[Step]) -> Result<Archive, ArchiveError> {
    open_on(path, steps, Storage::of)
}

/// `look` tells the file system of the file.
pub(crate) fn open_on(path: &Path, steps: &[Step], look: fn(&Path) -> Storage) -> Result<Archive, ArchiveError> {
    let path = whole_path(path)?;
    if !is_there(&path)? {
        create(&path)?;
    }
    let mut storage = look(&path);
    let known = steps.len() as i64;
    let (mut connection, found, changed) = if storage.is_local() {
        let connection = connect_to_write(&path)?;
        let found = schema::version(&connection, &path, known)?;
        if !write_ahead(&connection).map_err(|error| ArchiveError::database(&path, DOING, error))? {
            // It is not like those that are known.
            storage = Storage::Unknown;
        }
        (connection, found, false)
    } else {
        shared::connect(&path, known)?
    };
    synchronous(&connection, storage, false).map_err(|error| ArchiveError::database(&path, DOING, error))?;
    if found < known {
        schema::migrate(&mut connection, &path, steps)?;
    }
    let is_new_here = !storage.is_local() && (found == 0 || changed);
    Ok(Archive { connection, path, storage, is_new_here })
}

/// How much a commit waits for the disk; `durably`: what it writes outlives a power failure.
///
/// With a write-ahead log NORMAL loses nothing when duel is killed, and at worst the last slots when the power fails; it
/// never corrupts. FULL would flush the disk after every slot, which is no business of ours while that disk may be the one
/// under load. Ends of runs are flushed: see `write`.
///
/// With a rollback journal NORMAL may corrupt where the power fails, and FULL may lose the last commit, since the folder is
/// not flushed when the journal has gone. EXTRA does that.
pub(crate) fn synchronous(connection: &Connection, storage: Storage, durably: bool) -> rusqlite::Result<()> {
    let word = match (storage.is_local(), durably) {
        (true, false) => "NORMAL",
        (true, true) => "FULL",
        (false, _) => "EXTRA",
    };
    connection.pragma_update(None, "synchronous", word)
}

pub(crate) fn open_read_only_with(path: &Path, steps: &[Step]) -> Result<Archive, ArchiveError> {
    open_read_only_on(path, steps, Storage::of)
}

/// `look` tells the file system of the file.
pub(crate) fn open_read_only_on(
    path: &Path,
    steps: &[Step],
    look: fn(&Path) -> Storage,
) -> Result<Archive, ArchiveError> {
    let path = whole_path(path)?;
    if !is_there(&path)? {
        return Err(ArchiveError::Missing { path });
    }
    let storage = look(&path);
    let known = steps.len() as i64;
    let read = || {
        let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let found = if storage.is_local() {
            schema::version(&connection, &path, known)?
        } else {
            shared::version(&connection, &path, known)?
        };
        Ok((connection, found))
    };
    let might_be_helped = |error: &ArchiveError| {
        matches!(error, ArchiveError::Database { .. } | ArchiveError::ReadOnly { .. } | ArchiveError::DiskFull { .. })
    };
    let mut opened = read();
    if opened.as_ref().is_err_and(might_be_helped) {
        let is_settled = holds_nothing(&path, "-journal");
        let helped = match (is_settled, storage.is_local()) {
            // It has a write-ahead log, which nobody reads safely here, or a writer was killed.
            (_, false) => shared::connect(&path, known).map(drop),
            // A writer was killed: what it had begun is taken back first, as every opener that may write does.
            (false, true) => take_back(&path, known),
            (true, true) => Ok(()),
        };
        let is_half_done = !is_settled || !storage.is_local() && !holds_nothing(&path, "-wal");
        let helped = helped.map_err(|error| match error {
            ArchiveError::ReadOnly { path, .. } if is_half_done => ArchiveError::HalfDone { path },
            error => error,
        });
        opened = helped.and_then(|()| read());
    }
    if opened.as_ref().is_err_and(might_be_helped) && holds_nothing(&path, "-wal") && holds_nothing(&path, "-journal") {
        // Readers too have to make the index of the write-ahead log, which a read-only or full place does not allow.
        // Without a log, and where nobody can write one, the file itself is all there is.
        let connection = connect(&immutable(&path), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
        opened = schema::version(&connection, &path, known).map(|found| (connection, found));
    }
    match opened? {
        (_, 0) => Err(ArchiveError::Missing { path }),
        // Where the tables are as they were, there is nothing to be brought up to date for a reader.
        (_, found) if steps.iter().skip(usize::try_from(found).unwrap_or(0)).any(Option::is_some) => {
            Err(ArchiveError::Older { path, found, known })
        }
        (connection, _) => Ok(Archive { connection, path, storage, is_new_here: false }),
    }
}

/// From the root on, so that no name is taken for one of SQLite's special ones (`:memory:`, `file:...`).
fn whole_path(path: &Path) -> Result<PathBuf, ArchiveError> {
    std::path::absolute(path).map_err(|error| ArchiveError::unreachable(path, "open the archive", error))
}

/// Whether the file exists; refuses what cannot be a database by its kind or size.
///
/// Asked by name only: closing a second descriptor of a database drops the locks that this process has on it.
fn is_there(path: &Path) -> Result<bool, ArchiveError> {
    match fs::metadata(path) {
        // SQLite takes some files of a few bytes for empty databases, and would write over them.
        Ok(found) if found.is_file() && (1..SMALLEST_DATABASE_BYTES).contains(&found.len()) => {
            Err(ArchiveError::NotADatabase { path: path.to_owned() })
        }
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) => {
            let what = if found.is_dir() { "a folder" } else { "a device, a pipe or a socket" };
            Err(ArchiveError::NotAFile { path: path.to_owned(), what })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ArchiveError::unreachable(path, "open the archive", error)),
    }
}

/// Makes an empty file, which SQLite takes for an empty database; its companions inherit the file's mode.
fn create(path: &Path) -> Result<(), ArchiveError> {
    // Another thread must not have the new file open in SQLite when our descriptor of it is closed (see `is_there`).
    static CREATING: Mutex<()> = Mutex::new(());
    let _alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = path.parent() {
        let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| ArchiveError::unreachable(folder, "make the archive's folder", error))?;
        // SQLite flushes the folder that its files are in. That this folder is there is written in the one above it, and without
        // it the power's failure would take the first runs away. A file system that cannot flush a folder says so, and has its
        // own way.
        for above in missing.iter().filter_map(|folder| folder.parent()) {
            let _ = fs::File::open(above).and_then(|above| above.sync_all());
        }
    }
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(ArchiveError::unreachable(path, "make the archive", error)),
    }
}

/// A connection that may write: SQLite falls back to reading where it may not, and would say so only with the first slot.
fn connect_to_write(path: &Path) -> Result<Connection, ArchiveError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(|error| ArchiveError::database(path, DOING, error))? {
        return Err(ArchiveError::ReadOnly { doing: "keep runs".to_owned(), path: path.to_owned() });
    }
    Ok(connection)
}

/// Takes back what a writer that was killed had begun, by its rollback journal; SQLite does that with the first read.
///
/// The journal may come from anywhere, as the archive may. It changes this database only: the file that a journal may name
/// besides, a journal of several databases, is deleted by SQLite only where its name and content are those of one.
fn take_back(path: &Path, known: i64) -> Result<(), ArchiveError> {
    schema::version(&connect_to_write(path)?, path, known).map(drop)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, ArchiveError> {
    let connect = || {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // The file may come from anywhere: what its schema defines is not to call functions on our behalf.
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(connection)
    };
    connect().map_err(|error| ArchiveError::database(path, DOING, error))
}

/// Readers and one writer at a time, none in the way of the other; false where there cannot be such a log.
fn write_ahead(connection: &Connection) -> rusqlite::Result<bool> {
    let is_log = |row: &rusqlite::Row<'_>| Ok(row.get::<_, String>(0)? == "wal");
    if connection.query_row("PRAGMA journal_mode", [], is_log)? {
        return Ok(true);
    }
    let start = Instant::now();
    loop {
        // The change needs the file alone, and SQLite does not always wait for that by itself.
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", is_log) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && start.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// Whether a companion of the database is not there, or empty.
fn holds_nothing(path: &Path, suffix: &str) -> bool {
    fs::metadata(companion(path, suffix)).map_or(true, |found| found.len() == 0)
}

/// The file beside the database whose name ends so.
fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The URI by which SQLite opens a file that nobody changes.
fn immutable(path: &Path) -> PathBuf {
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    PathBuf::from(uri)
}

#[cfg(test)]
mod tests;
