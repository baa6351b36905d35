//! Which files are taken, made, and refused.

use crate::sample;
use duel_archive::{APPLICATION_ID, Archive, ArchiveError, SCHEMA_VERSION};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn refusal(path: &Path) -> String {
    let error = Archive::open(path).expect_err("it is refused").to_string();
    assert!(error.contains(&path.display().to_string()), "the file is named: {error}");
    assert!(error.contains("--archive FILE"), "and what to try: {error}");
    assert!(!error.contains('\n'), "in one line: {error}");
    error
}

#[test]
fn a_new_archive_is_for_its_user_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/runs.sqlite");
    let mut archive = Archive::open(&path).unwrap();
    archive.save(&sample::empty_run("r")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    let ask = |pragma: &str| {
        Connection::open(&path).unwrap().query_row(pragma, [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap()
    };
    assert_eq!(ask("PRAGMA application_id"), i64::from(APPLICATION_ID).into());
    assert_eq!(ask("PRAGMA user_version"), SCHEMA_VERSION.into());
    assert_eq!(ask("PRAGMA journal_mode"), "wal".to_owned().into());
    assert_eq!(&APPLICATION_ID.to_be_bytes(), b"duel");
}

#[test]
fn empty_files_and_databases_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (file, database) = (folder.path().join("empty"), folder.path().join("empty.db"));
    fs::write(&file, "").unwrap();
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE t (x); DROP TABLE t").unwrap();
    for path in [file, database] {
        Archive::open(&path).unwrap().save(&sample::empty_run("r")).unwrap();
        assert_eq!(Archive::open(&path).unwrap().load("r").unwrap(), sample::empty_run("r"));
    }
}

#[test]
fn files_that_are_no_databases_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for content in
        [&b"x"[..], b"duel\n", &[0; 100], &[b'x'; 511], &[0; 512], &[0; 5_000], &[b'x'; 5_000], b"SQLite format 3"]
    {
        fs::write(&path, content).unwrap();
        let error = refusal(&path);
        assert!(error.contains("it is no SQLite database"), "{error}");
        assert!(Archive::open_read_only(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn databases_of_other_programs_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql) in [
        ("tables", "CREATE TABLE runs (id TEXT)"),
        ("view", "CREATE VIEW v AS SELECT 1"),
        ("application", "PRAGMA application_id = 7; CREATE TABLE t (x)"),
        ("application only", "PRAGMA application_id = 7"),
        ("version", "PRAGMA user_version = 1"),
        ("newer", "PRAGMA application_id = 7; PRAGMA user_version = 99; CREATE TABLE t (x)"),
    ] {
        let path = folder.path().join(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = fs::read(&path).unwrap();
        let error = refusal(&path);
        assert!(error.contains("belongs to another program"), "{name}: {error}");
        assert!(matches!(Archive::open_read_only(&path), Err(ArchiveError::Foreign { .. })));
        assert_eq!(fs::read(&path).unwrap(), before, "{name}");
    }
}

#[test]
fn archives_of_a_newer_duel_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    drop(Archive::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refusal(&path);
    assert!(
        error.contains(&format!("written by a newer duel (schema 99, this one knows {SCHEMA_VERSION})")),
        "{error}"
    );
}

#[test]
fn places_that_hold_no_file_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = refusal(folder.path());
    assert!(error.contains("it is a folder, not a file"), "{error}");
    let error = refusal(Path::new("/dev/null"));
    assert!(error.contains("it is a device"), "{error}");

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Archive::open(file.join("runs.sqlite")).unwrap_err().to_string();
    assert!(error.contains("cannot open the archive") && error.contains("Not a directory"), "{error}");
    let error = Archive::open(file.join("deeper/runs.sqlite")).unwrap_err().to_string();
    assert!(error.contains("Not a directory") && error.contains("--archive FILE"), "{error}");
    let error = Archive::open("/proc/duel/runs.sqlite").unwrap_err().to_string();
    assert!(error.starts_with("cannot make the archive's folder /proc/duel: "), "{error}");

    let link = folder.path().join("link");
    symlink(folder.path().join("nowhere"), &link).unwrap();
    refusal(&link);
}

#[test]
fn reading_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let error = Archive::open_read_only(&path).unwrap_err();
    assert!(matches!(error, ArchiveError::Missing { .. }), "{error}");
    fs::write(&path, "").unwrap();
    assert!(matches!(Archive::open_read_only(&path), Err(ArchiveError::Missing { .. })));
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);

    Archive::open(&path).unwrap().save(&sample::empty_run("r")).unwrap();
    let mut archive = Archive::open_read_only(&path).unwrap();
    let error = archive.save(&sample::empty_run("s")).unwrap_err();
    assert!(matches!(error, ArchiveError::ReadOnly { .. }), "{error}");
    assert_eq!(archive.list(9, 0).unwrap().len(), 1);
}

#[test]
fn names_that_sqlite_takes_for_special_are_files() {
    let folder = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a b%20#?&é.sqlite"] {
        let path = folder.path().join(name);
        Archive::open(&path).unwrap().save(&sample::empty_run("r")).unwrap();
        assert!(path.is_file(), "{name}");
        assert!(Archive::open_read_only(&path).unwrap().load("r").is_ok(), "{name}");
    }
}
