//! A file system that is full and one that is read-only: real ones, mounted in a namespace of their own.
//!
//! Where namespaces are not to be had the tests say so and pass; a full disk is tested without one in `write`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

mod sample;

use duel_archive::{Archive, ArchiveError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder, in the process that has it mounted.
const FOLDER: &str = "DUEL_ARCHIVE_TEST_FOLDER";

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs one ignored test of this file where `mount` (of which "$1" is the folder) has been done.
fn where_mounted(mount: &str, folder: &Path, test: &str) {
    let script = format!("{mount} || exit 77; shift; exec \"$@\"");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script, "sh"])
        .arg(folder)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test} has to exist");
        }
        Ok(output) if !output.stdout.starts_with(b"\nrunning") => {
            eprintln!("skipped, no mount here: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("skipped, no unshare here: {error}"),
    }
}

#[test]
fn full_disk() {
    let folder = tempfile::tempdir().unwrap();
    where_mounted("mount -t tmpfs -o size=1m tmpfs \"$1\"", folder.path(), "on_a_full_disk");
}

#[test]
#[ignore = "started by full_disk"]
fn on_a_full_disk() {
    let Some(folder) = folder() else { return };
    let path = folder.join("runs.sqlite");
    let earlier = sample::rich_run("earlier", 2);
    let mut archive = Archive::open(&path).unwrap();
    archive.save(&earlier).unwrap();

    let run = sample::rich_run("long", 40);
    let mut writer = archive.begin(&sample::empty_run("long")).unwrap();
    let mut fitted = 0;
    let error = run
        .slots
        .iter()
        .find_map(|slot| {
            let error = writer.slot(slot).err();
            fitted += usize::from(error.is_none());
            error
        })
        .expect("1 MiB does not hold 40 slots");
    assert!(matches!(error, ArchiveError::DiskFull { .. }), "{error:?}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    let error = writer.finish(&run).unwrap_err();
    assert!(matches!(error, ArchiveError::DiskFull { .. }), "{error:?}");

    let intact = |archive: &Archive| {
        assert_eq!(archive.load("earlier").unwrap(), earlier);
        assert_eq!(archive.load("long").unwrap().slots, run.slots[..fitted]);
    };
    intact(&archive);
    drop(archive);
    // Somebody else takes what is left, so that not even the log's index has room.
    let hog = folder.join("hog");
    let _ = std::fs::write(&hog, vec![0; 1 << 20]);
    for result in [Archive::open(&path), Archive::open_read_only(&path)] {
        match result {
            Ok(archive) => intact(&archive),
            Err(error) => assert!(matches!(error, ArchiveError::DiskFull { .. }), "{error:?}"),
        }
    }
    let error = Archive::open(folder.join("other/new.sqlite")).unwrap_err();
    assert!(matches!(error, ArchiveError::DiskFull { .. }), "{error:?}");
    std::fs::remove_file(hog).unwrap();
    intact(&Archive::open(&path).unwrap());
}

#[test]
fn read_only_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    Archive::open(path).unwrap().save(&sample::rich_run("r", 2)).unwrap();
    let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
    where_mounted(mount, folder.path(), "in_a_read_only_place");
}

#[test]
#[ignore = "started by read_only_place"]
fn in_a_read_only_place() {
    let Some(folder) = folder() else { return };
    let path = folder.join("runs.sqlite");
    let error = Archive::open(&path).unwrap_err();
    assert!(matches!(error, ArchiveError::ReadOnly { .. }), "{error:?}");
    let error = Archive::open(folder.join("new.sqlite")).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the archive ") && error.contains("Read-only file system"), "{error}");
    let archive = Archive::open_read_only(&path).unwrap();
    assert_eq!(archive.load("r").unwrap(), sample::rich_run("r", 2));
}
