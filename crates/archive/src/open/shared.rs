//! Opening where other machines may write too: with a rollback journal, and never with the shared memory of a log.
//!
//! An archive that has a write-ahead log already (an older duel made it, or it was copied there) is given a rollback journal
//! first. That needs it alone: while a process has it open with its log, on whichever machine, it is told as locked. What is in
//! the log comes into the database then. In the exclusive locking mode SQLite keeps the log's index in its own memory, so
//! nothing is shared through the file system meanwhile.

use super::{BUSY_TIMEOUT, DOING, connect_to_write};
use crate::{ArchiveError, schema};
use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection that may write, the version of the tables, and whether a write-ahead log had to be given up.
pub(super) fn connect(path: &Path, known: i64) -> Result<(Connection, i64, bool), ArchiveError> {
    let start = Instant::now();
    loop {
        match without_log(path, known) {
            // Whoever else does the same holds what we wait for, and waits for what we hold: both have to let go. Processes
            // differ in how long they pause.
            Err(ArchiveError::Locked { .. }) if start.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5 + u64::from(std::process::id() % 16)));
            }
            other => return other,
        }
    }
}

fn without_log(path: &Path, known: i64) -> Result<(Connection, i64, bool), ArchiveError> {
    /// Long enough for a slot of another writer.
    const SHORT: Duration = Duration::from_millis(200);
    let connection = connect_to_write(path)?;
    let failed = |error| ArchiveError::database(path, DOING, error);
    connection.busy_timeout(SHORT).map_err(failed)?;
    alone(&connection, true).map_err(failed)?;
    let found = schema::version(&connection, path, known)?;
    let before: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(failed)?;
    let after: String = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0)).map_err(failed)?;
    if after == "wal" {
        return Err(ArchiveError::Locked { doing: "give up the write-ahead log".to_owned(), path: path.to_owned() });
    }
    alone(&connection, false).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    Ok((connection, found, before == "wal"))
}

/// The version of the tables, by a connection that only reads; an error where there is a write-ahead log.
pub(super) fn version(connection: &Connection, path: &Path, known: i64) -> Result<i64, ArchiveError> {
    let failed = |error| ArchiveError::database(path, DOING, error);
    // With a log it would need the file alone, which is not given to those who only read.
    alone(connection, true).map_err(failed)?;
    let found = schema::version(connection, path, known)?;
    alone(connection, false).map_err(failed)?;
    Ok(found)
}

/// Whether locks are kept once they are taken.
fn alone(connection: &Connection, keeps: bool) -> rusqlite::Result<()> {
    let word = if keeps { "EXCLUSIVE" } else { "NORMAL" };
    connection.pragma_update_and_check(None, "locking_mode", word, |_| Ok(()))?;
    if !keeps {
        // What is held is let go with the end of the next look at the file.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    }
    Ok(())
}
