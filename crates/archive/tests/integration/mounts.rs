//! File systems that are full, read-only or served by a program (FUSE): real ones, mounted in a namespace of their own.
//!
//! Where namespaces are not to be had the tests say so and pass; a full disk is tested without one in `write`.

use crate::mounted::{folder, where_mounted};
use crate::sample;
use duel_archive::{Archive, ArchiveError};

#[test]
fn full_disk() {
    let folder = tempfile::tempdir().unwrap();
    where_mounted("mount -t tmpfs -o size=1m tmpfs \"$1\"", folder.path(), "mounts::on_a_full_disk");
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
    where_mounted(mount, folder.path(), "mounts::in_a_read_only_place");
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

/// FUSE is what a machine can mount by itself of all that other machines may write to.
#[test]
fn fuse() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("behind")).unwrap();
    std::fs::create_dir(folder.path().join("seen")).unwrap();
    // The program ends with the mount, which ends with its namespace.
    where_mounted("bindfs \"$1/behind\" \"$1/seen\"", folder.path(), "mounts::on_fuse");
}

#[test]
#[ignore = "started by fuse"]
fn on_fuse() {
    let Some(folder) = folder() else { return };
    let (behind, seen) = (folder.join("behind/runs.sqlite"), folder.join("seen/runs.sqlite"));
    // One that has a log already, from a disk.
    let earlier = sample::rich_run("earlier", 2);
    Archive::open(&behind).unwrap().save(&earlier).unwrap();

    let mut archive = Archive::open(&seen).unwrap();
    let note = archive.note().expect("the user is told");
    assert!(note.contains(" is on FUSE: it gets a rollback journal"), "{note}");
    assert_eq!(archive.load("earlier").unwrap(), earlier);
    let run = sample::rich_run("r", 3);
    let mut writer = archive.begin(&sample::empty_run("r")).unwrap();
    for slot in &run.slots {
        writer.slot(slot).unwrap();
        for suffix in ["-wal", "-shm"] {
            assert!(!seen.with_file_name(format!("runs.sqlite{suffix}")).exists(), "{suffix}");
        }
    }
    writer.finish(&run).unwrap();
    assert_eq!(Archive::open_read_only(&seen).unwrap().load("r").unwrap(), run);
    drop(archive);
    assert_eq!(Archive::open(&behind).unwrap().load("r").unwrap(), run, "and back on the disk");
    let new = Archive::open(folder.join("seen/new.sqlite")).unwrap();
    assert!(new.note().is_some());
}
