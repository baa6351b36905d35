//! A disk as the rules of the system allow it to be when the power fails.
//!
//! What was flushed is there. Of the rest each sector, each change of a size and each change of a name may be there or not,
//! in any order: that is more than any file system does, so what stands this stands all of them. A write changes no byte
//! beside its own, which SQLite relies on as well ("powersafe overwrite").

use super::Random;
use super::trace::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a disk writes as a whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Disk {
    /// What each file that was ever made holds; names lead here by number.
    files: Vec<File>,
    names: BTreeMap<PathBuf, usize>,
    flushed_names: BTreeMap<PathBuf, usize>,
    /// Changes of names since their folder was flushed.
    renamed: Vec<(PathBuf, Option<usize>)>,
    /// Folders of ours that were flushed into the folder above them.
    folders: BTreeSet<PathBuf>,
    flushed_folders: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct File {
    flushed: Vec<u8>,
    /// Since then, in order.
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// Which of what was not flushed is there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Survives {
    Nothing,
    Everything,
    /// By chance, from this seed.
    Some(u64),
}

impl Disk {
    /// `folder` has been there for long.
    pub(super) fn new(folder: &Path) -> Self {
        let there = BTreeSet::from([folder.to_owned()]);
        Self { folders: there.clone(), flushed_folders: there, ..Self::default() }
    }

    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Make(path) if !self.names.contains_key(path) => {
                self.files.push(File::default());
                self.rename(path, Some(self.files.len() - 1));
            }
            Event::Make(_) | Event::Said(_) => {}
            Event::MakeFolder(path) => {
                self.folders.insert(path.clone());
            }
            Event::Write(path, at, bytes) => {
                self.change(path, Change::Write(usize::try_from(*at).unwrap(), bytes.clone()));
            }
            Event::Truncate(path, size) => self.change(path, Change::Truncate(usize::try_from(*size).unwrap())),
            Event::Remove(path) => self.rename(path, None),
            Event::Flush(path) if self.folders.contains(path) => {
                let (now, later): (Vec<_>, Vec<_>) =
                    std::mem::take(&mut self.renamed).into_iter().partition(|(name, _)| name.parent() == Some(path));
                self.renamed = later;
                now.into_iter().for_each(|(name, file)| set(&mut self.flushed_names, name, file));
                let within = self.folders.iter().filter(|folder| folder.parent() == Some(path)).cloned();
                self.flushed_folders.extend(within);
            }
            Event::Flush(path) => {
                let file = &mut self.files[self.names[path]];
                for change in std::mem::take(&mut file.changes) {
                    change.apply(&mut file.flushed, |_| true);
                }
            }
        }
    }

    fn rename(&mut self, path: &Path, file: Option<usize>) {
        set(&mut self.names, path.to_owned(), file);
        self.renamed.push((path.to_owned(), file));
    }

    fn change(&mut self, path: &Path, change: Change) {
        // A file that was removed may still be open, and nobody finds it again.
        if let Some(&file) = self.names.get(path) {
            self.files[file].changes.push(change);
        }
    }

    /// Makes the files as they may be after the power has failed, with `place` for `folder`.
    pub(super) fn restore(&self, folder: &Path, place: &Path, survives: Survives) {
        let (mut random, share) = match survives {
            Survives::Nothing => (Random(1), 0),
            Survives::Everything => (Random(1), 100),
            Survives::Some(seed) => {
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                let share = [5, 50, 95][random.below(3) as usize];
                (random, share)
            }
        };
        let mut is_there = || random.below(100) < share;
        let mut folders = self.flushed_folders.clone();
        folders.extend(self.folders.iter().filter(|_| is_there()).cloned());
        let mut names = self.flushed_names.clone();
        for (name, file) in self.renamed.iter().filter(|_| is_there()) {
            set(&mut names, name.clone(), *file);
        }
        for (name, file) in names {
            // Without one of the folders above it nobody finds it.
            let mut above = name.ancestors().skip(1).take_while(|above| above.starts_with(folder));
            if !above.all(|above| folders.contains(above)) {
                continue;
            }
            let file = &self.files[file];
            let mut content = file.flushed.clone();
            for change in &file.changes {
                change.apply(&mut content, |_| is_there());
            }
            let restored = place.join(name.strip_prefix(folder).unwrap());
            fs::create_dir_all(restored.parent().unwrap()).unwrap();
            // What was in the memory that processes share through this file was never meant for the disk.
            if name.to_str().unwrap().ends_with("-shm") {
                content = (0..32 << 10).map(|n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect();
            }
            fs::write(restored, content).unwrap();
        }
    }
}

impl Change {
    /// Makes it, or those parts of it that are there.
    fn apply(&self, content: &mut Vec<u8>, mut is_there: impl FnMut(usize) -> bool) {
        match self {
            Self::Truncate(size) => {
                if is_there(0) {
                    content.resize(*size, 0);
                }
            }
            Self::Write(at, bytes) => {
                let end = at + bytes.len();
                // The size may be there without what was written, and is then of zeros.
                if is_there(0) && content.len() < end {
                    content.resize(end, 0);
                }
                let mut from = *at;
                while from < end {
                    let to = end.min((from / SECTOR_BYTES + 1) * SECTOR_BYTES);
                    if is_there(from) {
                        if content.len() < to {
                            content.resize(to, 0);
                        }
                        content[from..to].copy_from_slice(&bytes[from - at..to - at]);
                    }
                    from = to;
                }
            }
        }
    }
}

fn set(names: &mut BTreeMap<PathBuf, usize>, name: PathBuf, file: Option<usize>) {
    match file {
        Some(file) => names.insert(name, file),
        None => names.remove(&name),
    };
}
