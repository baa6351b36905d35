//! Writers that are killed at random moments, two at a time on one archive: one is killed while the other goes on.

use super::writer::{Journal, Outlives, Reported, Task};
use super::{Random, number};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A writer, and who listens to it.
struct Writer {
    child: Child,
    listener: JoinHandle<Reported>,
    /// How many lines it has said.
    said: Arc<AtomicU64>,
}

impl Writer {
    fn start(task: &Task) -> Self {
        let mut child = task.command(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            let mut reported = Reported::default();
            lines.map_while(Result::ok).for_each(|line| {
                assert!(!line.contains("panicked"), "{line}");
                reported.line(&line);
                count.fetch_add(1, Ordering::Relaxed);
            });
            reported
        });
        Self { child, listener, said }
    }

    /// Waits until it has said so many lines: how long that takes depends on the machine.
    fn wait_for(&self, lines: u64) {
        let start = Instant::now();
        while self.said.load(Ordering::Relaxed) < lines {
            assert!(start.elapsed() < Duration::from_secs(120), "it does not get on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn kill(mut self) -> Reported {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.listener.join().unwrap()
    }
}

#[test]
fn writers_that_are_killed_at_random_moments_lose_nothing_that_they_reported() {
    let kills = number(10, 200);
    let seed = u64::from(std::process::id()) | 1 << 40;
    let mut random = Random(seed);
    let (mut done, mut finished, start) = (0, 0, Instant::now());
    while done < kills {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let journal = Journal::BOTH[done / 2 % 2];
        // Some kills hit an archive that is being made, some one that has runs.
        let mut all = Vec::new();
        for round in 0..2 {
            let task =
                |name: &str| Task { path: path.clone(), name: format!("{name}{round}"), journal, runs: u32::MAX };
            let (one, other) = (Writer::start(&task("one")), Writer::start(&task("other")));
            for writer in [one, other] {
                // One in four while it begins.
                if random.below(4) > 0 {
                    writer.wait_for(1 + random.below(60));
                }
                std::thread::sleep(Duration::from_micros(random.below(40_000)));
                all.push(writer.kill());
            }
            done += 2;
            let archive = journal.open(&path);
            for reported in &all {
                reported.check(&archive, Outlives::Everything);
            }
        }
        finished += all.iter().map(|reported| reported.finished.len()).sum::<usize>();
    }
    eprintln!("{done} kills (seed {seed}), {finished} finished runs, all whole: {:?}", start.elapsed());
}
