//! Which journal an archive gets, by the file system that it is said to lie on.

use super::*;
use crate::mounted::where_mounted;
use crate::sample;
use std::sync::Barrier;

fn on_nfs(_: &Path) -> Storage {
    Storage::Shared("NFS")
}

fn on_disk(_: &Path) -> Storage {
    Storage::Local
}

fn open(path: &Path, look: fn(&Path) -> Storage) -> Archive {
    open_on(path, STEPS, look).unwrap()
}

fn mode(archive: &Archive) -> String {
    archive.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap()
}

/// Names of the files beside the archive, without the archive's own.
fn companions(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name());
    let mut found: Vec<_> = files.filter_map(|file| Some(file.to_str()?.strip_prefix(name)?.to_owned())).collect();
    found.retain(|suffix| !suffix.is_empty());
    found.sort();
    found
}

#[test]
fn where_other_machines_may_write_too_there_is_no_log_and_no_shared_memory() {
    for look in [on_nfs as fn(&Path) -> Storage, |_| Storage::Unknown] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let run = sample::rich_run("r", 3);
        let mut archive = open(&path, look);
        assert_eq!(mode(&archive), "delete");
        let note = archive.note().expect("the user is told");
        assert!(note.contains("rollback journal") && note.contains("one machine at a time"), "{note}");
        let mut writer = archive.begin(&sample::empty_run("r")).unwrap();
        for slot in &run.slots {
            writer.slot(slot).unwrap();
            assert_eq!(companions(&path), Vec::<String>::new());
        }
        writer.finish(&run).unwrap();
        // Nothing is kept locked: others read and write beside it.
        let reader = open_read_only_on(&path, STEPS, look).unwrap();
        assert_eq!(reader.load("r").unwrap(), run);
        let mut other = open(&path, look);
        assert_eq!(other.note(), None, "it was told when the archive was made");
        other.save(&sample::rich_run("s", 1)).unwrap();
        archive.save(&sample::rich_run("t", 1)).unwrap();
        assert_eq!(reader.list(9, 0).unwrap().len(), 3);
        assert_eq!(companions(&path), Vec::<String>::new());
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = open(&folder.path().join("runs.sqlite"), on_disk);
    assert_eq!((mode(&archive).as_str(), archive.note()), ("wal", None));
}

/// An archive with a log that a killed writer left: the last run is in the log alone.
fn left_with_a_log(folder: &Path) -> (PathBuf, duel_model::Run) {
    let (made, path) = (folder.join("made.sqlite"), folder.join("runs.sqlite"));
    let run = sample::rich_run("r", 3);
    let mut archive = open(&made, on_disk);
    archive.save(&run).unwrap();
    fs::copy(&made, &path).unwrap();
    fs::copy(companion(&made, "-wal"), companion(&path, "-wal")).unwrap();
    assert!(!holds_nothing(&path, "-wal"));
    (path, run)
}

#[test]
fn an_archive_with_a_log_that_was_brought_to_such_a_place_is_given_a_journal_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, run) = left_with_a_log(folder.path());
    let archive = open(&path, on_nfs);
    assert_eq!((mode(&archive).as_str(), companions(&path)), ("delete", vec![]));
    assert!(archive.note().is_some(), "the user is told");
    assert_eq!(archive.load("r").unwrap(), run);
    drop(archive);
    // Back on a disk of its own it has a log again.
    let archive = open(&path, on_disk);
    assert_eq!((mode(&archive).as_str(), archive.load("r").unwrap()), ("wal", run));
}

#[test]
fn whoever_only_reads_such_an_archive_has_it_given_a_journal_too() {
    let folder = tempfile::tempdir().unwrap();
    let (path, run) = left_with_a_log(folder.path());
    let archive = open_read_only_on(&path, STEPS, on_nfs).unwrap();
    assert_eq!((archive.load("r").unwrap(), companions(&path)), (run, vec![]));
}

#[test]
fn an_archive_that_somebody_has_open_with_its_log_is_not_touched_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut theirs = open(&path, on_disk);
    let run = sample::rich_run("r", 2);
    theirs.save(&run).unwrap();
    let start = Instant::now();
    let error = open_on(&path, STEPS, on_nfs).unwrap_err();
    assert!(matches!(error, ArchiveError::Locked { .. }), "{error:?}");
    assert!(start.elapsed() >= BUSY_TIMEOUT);
    theirs.save(&sample::rich_run("s", 1)).unwrap();
    assert_eq!(theirs.load("r").unwrap(), run);
}

#[test]
fn many_who_take_a_log_away_at_once_do_it_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let place = folder.path().join(round.to_string());
        fs::create_dir(&place).unwrap();
        let (path, run) = left_with_a_log(&place);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (path, run, start) = (&path, &run, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut archive = open(path, on_nfs);
                    assert_eq!(&archive.load("r").unwrap(), run);
                    archive.save(&sample::empty_run(&format!("run-{n}"))).unwrap();
                });
            }
        });
        assert_eq!(open(&path, on_nfs).list(9, 0).unwrap().len(), 5);
    }
}

/// A copy of an archive with a rollback journal, taken while half of a change is in the file.
fn left_with_a_journal() -> (tempfile::TempDir, PathBuf, duel_model::Run) {
    let folder = tempfile::tempdir().unwrap();
    let in_it = |name: &str| folder.path().join(name);
    let (made, path) = (in_it("made.sqlite"), in_it("runs.sqlite"));
    let run = sample::rich_run("r", 3);
    let mut archive = open(&made, on_nfs);
    archive.save(&run).unwrap();
    // With so small a cache pages are written to the file before the commit.
    archive.connection.pragma_update(None, "cache_size", 4).unwrap();
    archive.connection.execute_batch("BEGIN; UPDATE slots SET data = zeroblob(20000); DELETE FROM runs").unwrap();
    fs::copy(&made, &path).unwrap();
    fs::copy(companion(&made, "-journal"), companion(&path, "-journal")).unwrap();
    archive.connection.execute_batch("ROLLBACK").unwrap();
    assert_ne!(fs::read(&made).unwrap(), fs::read(&path).unwrap(), "half of the change had been written");
    (folder, path, run)
}

#[test]
fn what_a_killed_writer_had_begun_is_taken_back_by_whoever_reads() {
    for look in [on_nfs as fn(&Path) -> Storage, on_disk] {
        let (_folder, path, run) = left_with_a_journal();
        assert_eq!(open_read_only_on(&path, STEPS, look).unwrap().load("r").unwrap(), run);
        let (_folder, path, run) = left_with_a_journal();
        assert_eq!(open(&path, look).load("r").unwrap(), run);
    }
}

#[test]
fn what_was_left_half_done_in_a_place_that_can_only_be_read_is_told() {
    let (folder, path, run) = left_with_a_journal();
    fs::remove_file(folder.path().join("made.sqlite")).unwrap();
    let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
    where_mounted(mount, folder.path(), "open::tests::in_a_place_that_can_only_be_read");
    // Where it can be written it is whole again.
    assert_eq!(open_read_only_on(&path, STEPS, on_nfs).unwrap().load("r").unwrap(), run);
}

#[test]
#[ignore = "started by what_was_left_half_done_in_a_place_that_can_only_be_read_is_told"]
fn in_a_place_that_can_only_be_read() {
    let Some(folder) = crate::mounted::folder() else { return };
    let path = folder.join("runs.sqlite");
    for look in [on_nfs as fn(&Path) -> Storage, on_disk] {
        let error = open_read_only_on(&path, STEPS, look).unwrap_err();
        assert!(matches!(error, ArchiveError::HalfDone { .. }), "{error:?}");
    }
}
