//! What a process of this program has made, on disk before it is made: it survives SIGKILL.

use super::Made;
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where journals are kept: gone after a reboot, as is what they tell of (except folders below /tmp).
pub(crate) fn folder() -> PathBuf {
    PathBuf::from("/run/duel-faults")
}

/// A file of lines `made KIND VALUE` and `unmade KIND VALUE`, locked while its owner lives.
///
/// The lock tells a dead owner from a living one without asking for its pid, which might be another process by now.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Creates the journal of this process in `folder`.
    pub(crate) fn create(folder: &Path) -> anyhow::Result<Journal> {
        std::fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
        let path = folder.join(format!("{}.journal", std::process::id()));
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("could not write {}", path.display()))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("{} belongs to a process that is alive", path.display()))?;
        Ok(Journal { path, file })
    }

    /// Writes down what is about to be made.
    pub(crate) fn made(&self, made: &Made) -> anyhow::Result<()> {
        // One write: a line is there as a whole, or not at all.
        (&self.file).write_all(format!("made {made}\n").as_bytes()).context("could not write the journal")
    }

    /// Strikes it out. A failure leaves it standing, and unmaking what is gone does no harm.
    pub(crate) fn unmade(&self, made: &Made) {
        let _ = (&self.file).write_all(format!("unmade {made}\n").as_bytes());
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Guards hold the journal too, so the last of them is gone. What could not be unmade keeps the file.
        if std::fs::read_to_string(&self.path).is_ok_and(|text| standing(&text).is_empty()) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A journal whose owner is dead, locked by this process from now on.
pub(crate) struct Orphan {
    pub(crate) path: PathBuf,
    _file: File,
    /// What is left of it, the latest first.
    pub(crate) left: Vec<Made>,
}

/// All journals in `folder` whose owners are dead.
pub(crate) fn orphans(folder: &Path) -> anyhow::Result<Vec<Orphan>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("could not read {}", folder.display())),
    };
    let mut orphans = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "journal") {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if !lock_of_the_dead(&path, &file) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let mut left = standing(&text);
        left.reverse();
        orphans.push(Orphan { path, _file: file, left });
    }
    Ok(orphans)
}

/// Locks the journal if its owner is dead. A child that the owner was just starting holds the lock until it has become
/// another program, so the lock of an owner whose pid is gone is waited for.
fn lock_of_the_dead(path: &Path, file: &File) -> bool {
    const A_PROGRAM_STARTS: Duration = Duration::from_secs(2);
    let pid = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let until = Instant::now() + A_PROGRAM_STARTS;
    loop {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Path::new("/proc").join(&pid).exists() || Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What was made and not unmade, in the order in which it was made. A line that was cut off counts for nothing: what it
/// would have told of was not made yet.
fn standing(text: &str) -> Vec<Made> {
    let mut standing: Vec<Made> = Vec::new();
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        if let Some(made) = line.strip_prefix("made ").and_then(Made::parse) {
            standing.push(made);
        } else if let Some(made) = line.strip_prefix("unmade ").and_then(Made::parse) {
            standing.retain(|other| *other != made);
        }
    }
    standing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_is_what_was_made_and_not_unmade() {
        let text = "made namespace duel-faults-1-0\nmade folder /tmp/duel-faults-1-1\nunmade namespace duel-faults-1-0\n\
                    nonsense\nmade folder /tmp/duel-faults-1-2\nmade folder /tmp/duel-fau";
        let folders = ["/tmp/duel-faults-1-1", "/tmp/duel-faults-1-2"].map(|path| Made::Folder(path.into()));
        assert_eq!(standing(text), folders);
    }

    #[test]
    fn the_journal_of_a_living_owner_is_nobodys_orphan() {
        let folder = std::env::temp_dir().join(format!("duel-faults-{}-journal-test", std::process::id()));
        let journal = Journal::create(&folder).unwrap();
        let made = Made::Folder("/tmp/duel-faults-0-nowhere".into());
        journal.made(&made).unwrap();
        assert!(orphans(&folder).unwrap().is_empty());
        let path = journal.path.clone();
        drop(journal);
        assert!(path.exists(), "what stands keeps the journal");
        let left = orphans(&folder).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].left, [made]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
