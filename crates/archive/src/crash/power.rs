//! Power that fails after any call that a writer makes.
//!
//! A writer is recorded by strace, and what it did to its files is replayed up to every call, onto a disk that loses what was
//! not flushed. SQLite's own tests of crashes do the same below SQLite, in a file system layer of their own (`sqlite3_vfs`);
//! that takes unsafe code, which this workspace denies, and would see what SQLite says of itself. What the kernel was asked for
//! is what counts, the folders that duel makes included.

use super::disk::{Disk, Survives};
use super::number;
use super::trace::{Event, STRACE, events};
use super::writer::{Journal, Outlives, Reported, Task};
use crate::mounted::skipped;
use crate::open::open_read_only_on;
use crate::schema::STEPS;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn whenever_the_power_fails_finished_runs_are_whole() {
    // Where it is not here, or may not look at other processes, as in many containers.
    let traces = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !traces.is_ok_and(|status| status.success()) {
        return skipped("strace cannot be used here");
    }
    for journal in Journal::BOTH {
        let start = Instant::now();
        let folder = tempfile::tempdir().unwrap();
        // Below folders that it has to make.
        let file = Path::new("new/folder/runs.sqlite");
        let recorded = record(folder.path(), file, journal);
        let finished =
            recorded.iter().filter(|event| matches!(event, Event::Said(line) if line.starts_with("finished"))).count();
        assert!(finished > 5 && recorded.iter().any(|event| matches!(event, Event::Flush(_))), "{recorded:?}");
        let cuts = number(25, recorded.len()).min(recorded.len());
        let chances = number(2, 6) as u64;
        let mut images = 0;
        let mut disk = Disk::new(folder.path());
        let mut reported = Reported::default();
        for (n, event) in recorded.iter().enumerate() {
            disk.take(event);
            if let Event::Said(line) = event {
                reported.line(line.trim_end());
            }
            // Evenly among all calls.
            if (n + 1) * cuts / recorded.len() == n * cuts / recorded.len() {
                continue;
            }
            let some = (0..chances).map(|chance| Survives::Some(n as u64 * chances + chance + 1));
            for survives in [Survives::Nothing, Survives::Everything].into_iter().chain(some) {
                images += 1;
                let what = format!("{journal:?}, after call {n} ({event:.60?}), {survives:?}", event = kind(event));
                let checked = std::panic::catch_unwind(|| {
                    check(&disk, folder.path(), file, journal, survives, &reported);
                });
                assert!(checked.is_ok(), "{what}");
            }
        }
        eprintln!(
            "{journal:?}: {cuts} of {} calls, {images} disks, {finished} runs: {:?}",
            recorded.len(),
            start.elapsed()
        );
    }
}

/// An event in a few words.
fn kind(event: &Event) -> String {
    match event {
        Event::Write(path, at, bytes) => format!("{} bytes at {at} of {}", bytes.len(), path.display()),
        other => format!("{other:?}"),
    }
}

/// What a writer did to its files.
fn record(folder: &Path, file: &Path, journal: Journal) -> Vec<Event> {
    let trace = folder.join("trace");
    let task = Task { path: folder.join(file), name: "power".to_owned(), journal, runs: 8 };
    let wrapper = [STRACE, &[trace.to_str().unwrap()]].concat();
    let output = task.command(&wrapper).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recorded = events(&fs::read_to_string(&trace).unwrap(), folder);
    fs::remove_file(trace).unwrap();
    recorded
}

/// A disk after the power has failed: the archive opens, and has what was reported as finished.
fn check(disk: &Disk, folder: &Path, file: &Path, journal: Journal, survives: Survives, reported: &Reported) {
    // Memory is faster than a disk, and as good here.
    let shm = Path::new("/dev/shm");
    let place = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
    disk.restore(folder, place.path(), survives);
    let path = place.path().join(file);
    if !path.exists() {
        assert!(reported.finished.is_empty(), "the archive itself is lost");
        return;
    }
    // Whoever comes first has to bring it in order, a reader as well as a writer.
    if let Survives::Some(seed) = survives
        && seed % 2 == 0
        && !reported.finished.is_empty()
    {
        let archive = open_read_only_on(&path, STEPS, journal.look()).unwrap();
        reported.check(&archive, Outlives::FinishedRuns);
    }
    reported.check(&journal.open(&path), Outlives::FinishedRuns);
}
