//! What is made on this machine for a case, and how it is unmade: namespaces, control groups, folders, mounts, processes.
//!
//! Everything that outlives its maker is a [`Made`]. It is written to the owner's journal *before* it is made, and it is
//! unmade by one function, [`Made::unmake`], whoever asks: the guard that goes out of scope, or `faults clean` after a
//! crash. Processes need no entry: each one runs within a network namespace of ours, and ends with it.

mod cgroup;
mod clean;
mod disk;
mod journal;
mod launch;
mod made;
mod namespace;
mod tools;

pub(crate) use cgroup::{Cgroup, Limits, Quota, Throttle};
pub(crate) use clean::clean;
pub(crate) use disk::{Backing, Volume, VolumePlan, log_volume};
pub(crate) use journal::Journal;
pub(crate) use launch::{Launch, Running};
pub(crate) use made::{Made, PREFIX};
pub(crate) use namespace::{Namespace, veth};
pub(crate) use tools::{beside, is_installed, run, run_with_input, succeed};

use signal_hook::consts::{SIGINT, SIGTERM};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maker of everything: knows whose it is, writes it down, and hears of Ctrl-C.
pub(crate) struct World {
    journal: Rc<Journal>,
    made_so_far: Cell<u32>,
    stop: Stop,
}

impl World {
    /// Needs root, since namespaces, control groups and mounts do.
    pub(crate) fn new(stop: Stop) -> anyhow::Result<World> {
        anyhow::ensure!(
            rustix::process::geteuid().is_root(),
            "network namespaces and control groups need root: run it as root"
        );
        Ok(World { journal: Rc::new(Journal::create(&journal::folder())?), made_so_far: Cell::new(0), stop })
    }

    /// A name that tells whose it is: prefix, the owner's pid, a number.
    pub(crate) fn name(&self) -> String {
        let number = self.made_so_far.get();
        self.made_so_far.set(number + 1);
        format!("{PREFIX}{}-{number}", std::process::id())
    }

    /// Writes down what is about to be made; it is unmade when the guard goes out of scope.
    pub(crate) fn promise(&self, made: Made) -> anyhow::Result<Guard> {
        self.journal.made(&made)?;
        Ok(Guard { made, journal: Rc::clone(&self.journal) })
    }

    /// A new folder for temporary files. Servers that give up root can look into it, but nobody else can write.
    pub(crate) fn folder(&self) -> anyhow::Result<Folder> {
        self.folder_in(&std::env::temp_dir())
    }

    /// The same in this folder.
    pub(crate) fn folder_in(&self, parent: &Path) -> anyhow::Result<Folder> {
        let path = parent.join(self.name());
        let guard = self.promise(Made::Folder(path.clone()))?;
        std::fs::create_dir(&path)?;
        Ok(Folder { path, _guard: guard })
    }

    /// An error once somebody has asked to stop: unwinds through all guards.
    pub(crate) fn go_on(&self) -> anyhow::Result<()> {
        self.stop.go_on()
    }

    /// For those who wait on their own.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

/// Whether somebody has asked to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// The first SIGINT or SIGTERM is heard; the second one ends the process, and `faults clean` removes what is left.
    pub(crate) fn on_signals() -> anyhow::Result<Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the conditional one is asked before the flag is set.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Stop(stop))
    }

    /// An error once it has been asked.
    pub(crate) fn go_on(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.0.load(Ordering::Relaxed), Interrupted);
        Ok(())
    }
}

/// SIGINT or SIGTERM.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Unmakes what was made, and strikes it out of the journal.
pub(crate) struct Guard {
    made: Made,
    journal: Rc<Journal>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        match self.made.unmake() {
            Ok(()) => self.journal.unmade(&self.made),
            // It stays in the journal, for `faults clean`.
            Err(error) => eprintln!("faults: {} is left: {error:#}", self.made),
        }
    }
}

/// A folder that goes away with everything in it.
pub(crate) struct Folder {
    path: PathBuf,
    _guard: Guard,
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
