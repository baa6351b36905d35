//! The process that crashes: it writes one run after the other, and reports on standard error what is kept.

use crate::open::open_on;
use crate::schema::STEPS;
use crate::storage::Storage;
use crate::{Archive, sample};
use duel_model::{Distribution, Run, Slot};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const FILE: &str = "DUEL_CRASH_FILE";
const NAME: &str = "DUEL_CRASH_NAME";
const JOURNAL: &str = "DUEL_CRASH_JOURNAL";
const RUNS: &str = "DUEL_CRASH_RUNS";

/// Which journal the archive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    WriteAhead,
    Rollback,
}

impl Journal {
    pub(super) const BOTH: [Self; 2] = [Self::WriteAhead, Self::Rollback];

    /// The file system on which it is chosen.
    pub(super) fn look(self) -> fn(&Path) -> Storage {
        match self {
            Self::WriteAhead => |_| Storage::Local,
            Self::Rollback => |_| Storage::Shared("NFS"),
        }
    }

    pub(super) fn open(self, path: &Path) -> Archive {
        open_on(path, STEPS, self.look()).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

/// What a writer is to do.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) journal: Journal,
    /// How many runs; it ends by itself then.
    pub(super) runs: u32,
}

impl Task {
    /// The command that does it, behind the words of another program such as strace.
    pub(super) fn command(&self, wrapper: &[&str]) -> Command {
        let exe = std::env::current_exe().unwrap().into_os_string();
        let mut words = wrapper.iter().map(Into::into).chain([exe]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(["--exact", "crash::writer::writing", "--ignored", "--nocapture"])
            .env(FILE, &self.path)
            .env(NAME, &self.name)
            .env(JOURNAL, if self.journal == Journal::Rollback { "rollback" } else { "wal" })
            .env(RUNS, self.runs.to_string());
        command
    }

    fn of_environment() -> Option<Self> {
        Some(Self {
            path: std::env::var_os(FILE)?.into(),
            name: std::env::var(NAME).ok()?,
            journal: if std::env::var(JOURNAL).ok()? == "rollback" { Journal::Rollback } else { Journal::WriteAhead },
            runs: std::env::var(RUNS).ok()?.parse().ok()?,
        })
    }
}

#[test]
#[ignore = "started by the tests of crashes"]
fn writing() {
    let Some(task) = Task::of_environment() else { return };
    let mut archive = open(&task);
    for n in 0..task.runs {
        let run = run(&task.name, n);
        // The last connection that is closed brings what is in the log into the database.
        if n % 3 == 2 {
            drop(archive);
            archive = open(&task);
        }
        let mut writer = archive.begin(&Run { slots: vec![], ..run.clone() }).unwrap();
        say(&format!("begun {}", run.id));
        for slot in &run.slots {
            // Another writer may be faster; then the end brings the slot.
            if writer.slot(slot).is_ok() {
                say(&format!("kept {} {}", run.id, slot.index));
            }
        }
        writer.finish(&run).unwrap();
        say(&format!("finished {}", run.id));
    }
}

fn open(task: &Task) -> Archive {
    let archive = task.journal.open(&task.path);
    // The log comes into the database in the midst of runs too, as it does by itself with every thousand pages.
    archive.connection.pragma_update_and_check(None, "wal_autocheckpoint", 40, |_| Ok(())).unwrap();
    archive
}

/// In one call, so that a line is said as a whole or not at all.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The n-th run of a writer: the same one in every process.
pub(super) fn run(name: &str, n: u32) -> Run {
    static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();
    let slots = SLOTS.get_or_init(|| {
        (0..6)
            .map(sample::slot)
            .map(|mut slot| {
                // A few pages each: the more distributions, the longer every look at them takes.
                slot.tally.phases.clear();
                slot.tally.response = Distribution::default();
                slot.audit.workers.clear();
                slot
            })
            .collect()
    });
    let mut run = sample::rich_run(&format!("{name}-{n}"), 0);
    run.started_unix_ms += i64::from(n);
    run.slots = slots[..1 + n as usize % slots.len()].to_vec();
    run
}

/// What a writer has reported.
#[derive(Debug, Default, Clone)]
pub(super) struct Reported {
    begun: BTreeSet<String>,
    kept: BTreeSet<(String, u32)>,
    pub(super) finished: BTreeSet<String>,
}

impl Reported {
    /// Takes a line; a killed writer's last one may be half of one, and says nothing then.
    pub(super) fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["begun", id] => {
                self.begun.insert((*id).to_owned());
            }
            ["kept", id, index] => {
                self.kept.insert(((*id).to_owned(), index.parse().unwrap()));
            }
            ["finished", id] => {
                self.finished.insert((*id).to_owned());
            }
            _ => {}
        }
    }

    /// The archive opens, is sound, and has all that outlives the crash: of a kill all that was reported, of a power failure
    /// the finished runs.
    pub(super) fn check(&self, archive: &Archive, outlives: Outlives) {
        let ask = |sql| {
            archive.connection.query_row::<String, _, _>(sql, [], |row| row.get(0)).unwrap_or_else(|e| e.to_string())
        };
        assert_eq!(ask("PRAGMA integrity_check"), "ok");
        let listed: Vec<_> = archive.list(u32::MAX, 0).unwrap();
        for id in &self.finished {
            let found = listed.iter().find(|listed| listed.id == *id);
            assert!(found.is_some_and(|listed| listed.finished), "{id} was reported as finished: {found:?}");
        }
        for listed in &listed {
            let (name, n) = listed.id.split_once('-').unwrap();
            let whole = run(name, n.parse().unwrap());
            let loaded = archive.load(&listed.id).unwrap();
            if listed.finished {
                assert_eq!(loaded, whole, "a finished run is whole");
                continue;
            }
            for slot in &loaded.slots {
                assert_eq!(*slot, whole.slots[slot.index as usize], "a slot is whole or not there");
            }
        }
        if outlives == Outlives::Everything {
            for id in &self.begun {
                assert!(listed.iter().any(|listed| listed.id == *id), "{id} was reported as begun");
            }
            for (id, index) in &self.kept {
                let slots = archive.load(id).unwrap().slots;
                assert!(slots.iter().any(|slot| slot.index == *index), "slot {index} of {id} was reported as kept");
            }
        }
    }
}

/// What a crash may not cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlives {
    Everything,
    FinishedRuns,
}
