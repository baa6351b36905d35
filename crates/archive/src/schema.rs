//! The tables, and the steps from each version of them to the next.
//!
//! A field added to a kept noun needs a new version only if it cannot be absent; a new variant of a kept enum always
//! does (with an empty step, if need be), so that an older duel says "newer" instead of stumbling over it.

use crate::ArchiveError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// Tells our files from those of other programs: "duel" in ASCII, at byte 68 of the file.
pub const APPLICATION_ID: i32 = 0x6475_656c;

/// The newest version of the tables, the one that this duel writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// Brings the tables from one version to the next; `None` where they stay as they are, and an older duel cannot read what is
/// in them, or would judge it wrongly.
pub(crate) type Step = Option<fn(&Transaction<'_>) -> rusqlite::Result<()>>;

/// All steps in order: the one at position N leads from version N to N + 1. Released steps are never changed.
pub(crate) const STEPS: &[Step] = &[
    Some(version_1),
    Some(version_2),
    // Slots may be of several treatments, and may be attempts of a search (role `search`); bodies may be generated.
    None,
    // Searches may be of several targets, with attempts head to head (role `head-to-head`), and courses of stages too. Plans
    // may be over HTTP/2, which an older duel would repeat over HTTP/1.1, and have the doubt `resent`.
    None,
    // Probes may have the doubts `generator-stood-still` and `surplus`, and slots may be spoilt by the former.
    None,
    Some(version_6),
    // What was negotiated is kept as facts by name, as those of machines are; older rows are read as they are. An older duel
    // would read the new ones as nothing known.
    None,
    // Work may be of a kind that declares its settings, and a setting may be a factor; probes may set settings.
    None,
    // Runs may have the doubt `content-wrong`.
    None,
    // Probes may have the doubt `others-work`.
    None,
];

/// Raw data are JSON (see `packing` for slots). What stands in plain columns beside it is there to be listed and
/// asked for without reading it; integers beyond 63 bits are cut there, not in the JSON.
fn version_1(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE runs (
            id              TEXT PRIMARY KEY NOT NULL,
            started_unix_ms INTEGER NOT NULL,
            workload        TEXT NOT NULL,  -- kind of the plan's workload
            targets         TEXT NOT NULL,  -- JSON: names and addresses
            status          TEXT NOT NULL,  -- running, complete or interrupted
            interruption    TEXT,           -- JSON, where interrupted
            versions        TEXT NOT NULL,  -- JSON
            plan            TEXT NOT NULL,  -- JSON
            first_contact   TEXT NOT NULL,  -- JSON
            doubts          TEXT NOT NULL,  -- JSON
            explanation     TEXT            -- JSON, where diagnosis was made
         ) STRICT;
         CREATE INDEX runs_by_start ON runs (started_unix_ms, id);
         CREATE TABLE slots (
            run_id          TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            idx             INTEGER NOT NULL,
            target          INTEGER NOT NULL,  -- position in the plan
            role            TEXT NOT NULL,     -- warmup, measured or probe:ID
            block           INTEGER NOT NULL,
            repeat          INTEGER NOT NULL,
            started_unix_ms INTEGER NOT NULL,
            offset_ns       INTEGER NOT NULL,
            elapsed_ns      INTEGER NOT NULL,
            ok              INTEGER NOT NULL,
            failed          INTEGER NOT NULL,
            json_bytes      INTEGER NOT NULL,
            data            BLOB NOT NULL,     -- sqlar_uncompress(data, json_bytes) is the slot in JSON
            PRIMARY KEY (run_id, idx)
         ) STRICT;",
    )
}

/// What the targets' machines were and did.
fn version_2(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE hosts (
            run_id          TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            target          INTEGER NOT NULL,  -- position in the plan
            json_bytes      INTEGER NOT NULL,
            data            BLOB NOT NULL,     -- as in slots
            PRIMARY KEY (run_id, target)
         ) STRICT;",
    )
}

/// How the generator waited for answers.
fn version_6(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    // JSON; NULL where that was not kept.
    transaction.execute_batch("ALTER TABLE runs ADD COLUMN waiting TEXT")
}

/// The version of the tables, 0 for a database without any; refuses what is not ours.
pub(crate) fn version(connection: &Connection, path: &Path, known: i64) -> Result<i64, ArchiveError> {
    let failed = |error| ArchiveError::database(path, "look for runs", error);
    version_in(&connection.unchecked_transaction().map_err(failed)?, path, known)
}

/// As [`version`]. The transaction makes one view of the three answers: while another process makes the tables, a
/// mixture of before and after looks like another program's file.
fn version_in(transaction: &Transaction<'_>, path: &Path, known: i64) -> Result<i64, ArchiveError> {
    let ask = |sql| {
        let answer = transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        answer.map_err(|error| ArchiveError::database(path, "look for runs", error))
    };
    let (application, version) = (ask("PRAGMA application_id")?, ask("PRAGMA user_version")?);
    let tables = ask("SELECT count(*) FROM sqlite_schema")?;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(0),
        (application, version) if application != i64::from(APPLICATION_ID) || version < 1 => {
            Err(ArchiveError::Foreign { path: path.to_owned() })
        }
        (_, version) if version > known => Err(ArchiveError::Newer { path: path.to_owned(), found: version, known }),
        (_, version) => Ok(version),
    }
}

/// Brings the tables up to date: all steps or none, and once only, however many processes try.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, steps: &[Step]) -> Result<(), ArchiveError> {
    let known = steps.len() as i64;
    let failed = |error| ArchiveError::database(path, "bring the tables up to date", error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Asked again under the lock: another process may have been faster.
    let from = version_in(&transaction, path, known)?;
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)).flatten() {
        step(&transaction).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{open_read_only_with, open_with};
    use crate::sample;

    fn add_note(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction.execute_batch("ALTER TABLE runs ADD COLUMN note TEXT; UPDATE runs SET note = 'from 1'")
    }

    fn add_note_and_fail(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        add_note(transaction)?;
        transaction.execute_batch("this is no SQL")
    }

    /// The steps of today, and one more.
    fn further(step: Step) -> Vec<Step> {
        [STEPS, &[step]].concat()
    }

    #[test]
    fn an_older_archive_is_brought_up_to_date_with_its_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let run = sample::rich_run("r-1", 2);
        open_with(&path, STEPS).unwrap().save(&run).unwrap();

        let (now, newer) = (SCHEMA_VERSION, further(Some(add_note)));
        let error = open_read_only_with(&path, &newer).unwrap_err().to_string();
        assert!(error.contains(&format!("written by an older duel (schema {now}, now {})", now + 1)), "{error}");
        for _ in 0..2 {
            let archive = open_with(&path, &newer).unwrap();
            let note: String = archive.connection.query_row("SELECT note FROM runs", [], |row| row.get(0)).unwrap();
            assert_eq!((note.as_str(), archive.load("r-1").unwrap()), ("from 1", run.clone()));
        }
        let error = open_with(&path, STEPS).unwrap_err().to_string();
        assert!(
            error.contains(&format!("written by a newer duel (schema {}, this one knows {now})", now + 1)),
            "{error}"
        );
    }

    #[test]
    fn a_step_that_fails_leaves_the_archive_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let run = sample::rich_run("r-1", 1);
        open_with(&path, STEPS).unwrap().save(&run).unwrap();
        assert!(open_with(&path, &further(Some(add_note_and_fail))).is_err());
        assert_eq!(open_with(&path, STEPS).unwrap().load("r-1").unwrap(), run);
        assert!(open_with(&path, &further(Some(add_note))).is_ok());
    }
}
