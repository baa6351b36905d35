//! A disk that becomes full at a moment that its size decides.

use super::number;
use super::writer::{Journal, Outlives, Reported, run};
use crate::mounted::{folder, where_mounted};
use crate::open::{open_on, open_read_only_on};
use crate::schema::STEPS;
use crate::{Archive, ArchiveError};
use duel_model::Run;
use std::fs;
use std::path::Path;

#[test]
fn on_a_full_disk_what_was_finished_is_whole_and_the_rest_is_told() {
    let folder = tempfile::tempdir().unwrap();
    where_mounted("mount -t tmpfs -o size=16m tmpfs \"$1\"", folder.path(), "crash::full::on_small_disks");
}

#[test]
#[ignore = "started by on_a_full_disk_what_was_finished_is_whole_and_the_rest_is_told"]
fn on_small_disks() {
    let Some(folder) = folder() else { return };
    /// From none at all to room for some runs, their log and its index.
    const MOST_BYTES: u64 = 400 << 10;
    let sizes = number(10, 50) as u64;
    let mut finished = 0;
    for n in 0..sizes {
        let place = folder.join(n.to_string());
        finished += on_a_small_disk(&place, n * MOST_BYTES / sizes, Journal::BOTH[n as usize % 2]);
        fs::remove_dir_all(&place).unwrap();
    }
    eprintln!("{sizes} full disks, {finished} runs finished before, all whole");
}

/// How many runs had room.
fn on_a_small_disk(place: &Path, free_bytes: u64, journal: Journal) -> usize {
    let path = place.join("runs.sqlite");
    let mut reported = Reported::default();
    let mut archive = journal.open(&path);
    archive.save(&run("disk", 0)).unwrap();
    reported.line("finished disk-0");

    let hog = place.join("hog");
    let room = rustix::fs::statvfs(place).unwrap();
    let zeros = vec![0; usize::try_from((room.f_bavail * room.f_frsize).saturating_sub(free_bytes)).unwrap()];
    fs::write(&hog, zeros).unwrap();
    let mut n = 0;
    let error = loop {
        n += 1;
        match add(&mut archive, &run("disk", n), &mut reported) {
            Ok(()) => assert!(n < 1000, "the disk never becomes full"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ArchiveError::DiskFull { .. }), "{free_bytes} {journal:?}: {error:?}");
    assert!(error.to_string().contains("the disk is full; free some space"), "{error}");
    reported.check(&archive, Outlives::Everything);
    drop(archive);
    for opened in [open_on(&path, STEPS, journal.look()), open_read_only_on(&path, STEPS, journal.look())] {
        match opened {
            Ok(archive) => reported.check(&archive, Outlives::Everything),
            Err(error) => {
                assert!(matches!(error, ArchiveError::DiskFull { .. }), "{free_bytes} {journal:?}: {error:?}");
            }
        }
    }
    fs::remove_file(hog).unwrap();
    let mut archive = journal.open(&path);
    reported.check(&archive, Outlives::Everything);
    // Once there is room it goes on.
    archive.save(&run("disk", n + 1)).unwrap();
    reported.line(&format!("finished disk-{}", n + 1));
    reported.check(&archive, Outlives::Everything);
    reported.finished.len()
}

fn add(archive: &mut Archive, run: &Run, reported: &mut Reported) -> Result<(), ArchiveError> {
    let mut writer = archive.begin(&Run { slots: vec![], ..run.clone() })?;
    reported.line(&format!("begun {}", run.id));
    for slot in &run.slots {
        if writer.slot(slot).is_ok() {
            reported.line(&format!("kept {} {}", run.id, slot.index));
        }
    }
    writer.finish(run)?;
    reported.line(&format!("finished {}", run.id));
    Ok(())
}
