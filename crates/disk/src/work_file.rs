//! The file that duel makes for itself in a folder, and removes again; and how such files, and folders of them (`file_set`), are
//! known.
//!
//! Its name tells whose it is: `duel-work-PID.tmp`. Whoever has made one holds a lock on it, so that one whose maker was killed
//! is known by having none. Rejected: a file without a name (`O_TMPFILE`), which the kernel would remove by itself: space that
//! is taken, and nobody sees by what, is no better.

use crate::content::{Content, SECTOR};
use crate::errors::{cannot, shown, why, why_not_made};
use crate::place::Identity;
use crate::{file_set, tell};
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{Nanos, SECOND_NS, format_bytes};
use rustix::fs::{Advice, FlockOperation, fadvise, flock, fstatvfs};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

const PREFIX: &str = "duel-work-";
const SUFFIX: &str = ".tmp";
/// What is written at a time when a work file is laid out.
const PIECE: usize = 1 << 20;
/// Space that is left to others beside a work file.
pub(crate) const SPARE_BYTES: u64 = 1 << 20;
/// What shows whose a work file is: its first sector.
pub(crate) const MARK_BYTES: usize = SECTOR;
/// How often it is tried to have a file that nobody else has in hand, and how long each attempt waits.
const MOST_ATTEMPTS: u32 = 50;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(2);
/// From when on it is told how far a work file has come, and how often.
const TELL_AFTER_NS: Nanos = SECOND_NS;
const TELL_EVERY_NS: Nanos = SECOND_NS / 5;

/// A work file that is there; it is removed with its last user.
#[derive(Debug)]
pub(crate) struct WorkFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) content: Content,
    /// Space that one byte took; `None` where the file system does not tell.
    pub(crate) allocation_bytes: Option<u64>,
    compressibility: f64,
    folder: PathBuf,
    /// Holds the lock.
    file: File,
}

/// Work files of this process. Treatments that differ in other things share one.
static MADE: Mutex<Vec<Weak<WorkFile>>> = Mutex::new(Vec::new());
/// So that no two have one name.
static NUMBER: AtomicU32 = AtomicU32::new(0);

impl WorkFile {
    /// A work file of so many bytes in this folder, full of data: made now, unless there is one already.
    ///
    /// # Errors
    ///
    /// It cannot be made; nothing is left of it.
    pub(crate) fn of(
        folder: &Path,
        bytes: u64,
        compressibility: f64,
        stop: &AtomicBool,
    ) -> Result<Arc<Self>, WorkloadError> {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|file| file.strong_count() > 0);
        let is_like = |file: &Arc<Self>| {
            file.folder == folder && file.bytes == bytes && file.compressibility == compressibility && file.is_there()
        };
        if let Some(file) = made.iter().filter_map(Weak::upgrade).find(is_like) {
            return Ok(file);
        }
        let file = Arc::new(Self::make(folder, bytes, compressibility, stop)?);
        made.push(Arc::downgrade(&file));
        Ok(file)
    }

    fn make(folder: &Path, bytes: u64, compressibility: f64, stop: &AtomicBool) -> Result<Self, WorkloadError> {
        let mut made = Self::begun(folder, bytes, compressibility)?;
        made.allocation_bytes = made.allocation();
        made.lay_out(stop)
            .map_err(|error| cannot(format!("a work file cannot be written in {}: {}", shown(folder), why(&error))))?;
        if stop.load(Ordering::Relaxed) {
            return Err(cannot("interrupted"));
        }
        Ok(made)
    }

    /// A work file for so many bytes in which nothing is yet.
    ///
    /// # Errors
    ///
    /// It cannot be made, or there is no room for so much.
    pub(crate) fn empty(folder: &Path, bytes: u64) -> Result<Self, WorkloadError> {
        Self::begun(folder, bytes, 0.0)
    }

    /// From here on it is removed, whatever happens.
    fn begun(folder: &Path, bytes: u64, compressibility: f64) -> Result<Self, WorkloadError> {
        has_room(folder, bytes)?;
        let Made { path, file, owner } = new_in(folder, "a work file", |path| {
            File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
        })?;
        let (content, folder) = (Content::new(owner, compressibility), folder.to_owned());
        Ok(Self { path, bytes, content, allocation_bytes: None, compressibility, folder, file })
    }

    /// Space that a file of one byte takes.
    fn allocation(&self) -> Option<u64> {
        (&self.file).write_all(&[0]).ok()?;
        self.file.sync_all().ok()?;
        // Some keep so little within the file's own entry, and say 0.
        self.used_bytes().filter(|bytes| *bytes > 0)
    }

    /// Space that it takes.
    pub(crate) fn used_bytes(&self) -> Option<u64> {
        Some(self.file.metadata().ok()?.blocks() * 512)
    }

    fn lay_out(&mut self, stop: &AtomicBool) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let began_ns = monotonic_ns();
        let mut told_ns = began_ns + TELL_AFTER_NS;
        let mut piece = vec![0; PIECE];
        let mut done = 0;
        while done < self.bytes && !stop.load(Ordering::Relaxed) {
            let bytes = (self.bytes - done).min(PIECE as u64) as usize;
            self.content.fill(&mut piece[..bytes], done, 0);
            self.file.write_all_at(&piece[..bytes], done)?;
            done += bytes as u64;
            let now = monotonic_ns();
            if now >= told_ns {
                self.tell(done, now - began_ns);
                told_ns = now + TELL_EVERY_NS;
            }
        }
        if !stop.load(Ordering::Relaxed) {
            self.file.sync_all()?;
        }
        tell::progress("");
        Ok(())
    }

    fn tell(&self, done: u64, took_ns: Nanos) {
        let per_s = done as f64 * 1e9 / took_ns.max(1) as f64;
        let left_s = (self.bytes - done) as f64 / per_s;
        tell::progress(&format!(
            "writing the work file in {}: {} of {}, {}/s, {left_s:.0} s left",
            shown(&self.folder),
            format_bytes(done as f64),
            format_bytes(self.bytes as f64),
            format_bytes(per_s)
        ));
    }

    /// Which file it is, whatever its path leads to by now.
    pub(crate) fn identity(&self) -> Result<Identity, WorkloadError> {
        let seen = self.file.metadata();
        let seen = seen.map_err(|error| cannot(format!("{} cannot be read: {}", shown(&self.path), why(&error))))?;
        Ok(Identity::of(&seen))
    }

    /// Whether its path still leads to it: it was not removed, nor its file system unmounted.
    pub(crate) fn is_there(&self) -> bool {
        leads_to(&self.path, &self.file)
    }
}

impl Drop for WorkFile {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What was made under a name of ours, and is locked.
pub(crate) struct Made {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// A number that nothing else has that duel makes.
    pub(crate) owner: u64,
}

/// A new folder of ours in this one.
pub(crate) fn new_folder(within: &Path) -> Result<Made, WorkloadError> {
    new_in(within, "a work folder", |path| {
        fs::DirBuilder::new().mode(0o700).create(path)?;
        // It may be exchanged for something else before it is open: its lock then tells that it is not there.
        File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY).open(path)
    })
}

fn new_in(folder: &Path, what: &str, make: impl Fn(&Path) -> io::Result<File>) -> Result<Made, WorkloadError> {
    let pid = std::process::id();
    for _ in 0..MOST_ATTEMPTS {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let further = if number == 0 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{PREFIX}{pid}{further}{SUFFIX}"));
        let file = make(&path)
            .map_err(|error| cannot(format!("{what} cannot be made in {}: {}", shown(folder), why_not_made(&error))))?;
        // Until it has a lock it looks as if its maker were gone, and `duel disk clean` may have it in hand.
        if is_own(&file, &path) {
            return Ok(Made { path, file, owner: owner_number(pid, number) });
        }
    }
    Err(cannot(format!("work files in {} are removed as soon as they are made", shown(folder))))
}

/// Whether this path leads to this open file.
pub(crate) fn leads_to(path: &Path, file: &File) -> bool {
    let seen = fs::symlink_metadata(path).ok().zip(file.metadata().ok());
    seen.is_some_and(|(named, own)| (named.dev(), named.ino()) == (own.dev(), own.ino()))
}

/// Locks a file that was just made; whether it is still there then. Where the file system has no locks, it is.
fn is_own(file: &File, path: &Path) -> bool {
    for _ in 0..MOST_ATTEMPTS {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            // Somebody looks at it: this takes moments.
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(BETWEEN_ATTEMPTS),
            Ok(()) | Err(_) => return leads_to(path, file),
        }
    }
    false
}

fn has_room(folder: &Path, bytes: u64) -> Result<(), WorkloadError> {
    let opened =
        File::open(folder).map_err(|error| cannot(format!("{} cannot be read: {}", shown(folder), why(&error))))?;
    let Ok(space) = fstatvfs(&opened) else { return Ok(()) };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    // Some network file systems tell nothing.
    if space.f_blocks > 0 && free < bytes.saturating_add(SPARE_BYTES) {
        return Err(cannot(format!(
            "no space in {}: a work file of {} is wanted, and {} are free; a smaller --size takes less",
            shown(folder),
            format_bytes(bytes as f64),
            format_bytes(free as f64)
        )));
    }
    Ok(())
}

/// A number that no other work file has.
fn owner_number(pid: u32, number: u32) -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    (since as u64) ^ u64::from(pid).rotate_left(40) ^ u64::from(number).rotate_left(56)
}

/// Work files in a folder whose makers are gone.
pub(crate) fn left_behind(folder: &Path) -> Vec<PathBuf> {
    found_in(folder).map(|(path, _)| path).collect()
}

/// The same, each locked as long as it is held.
fn found_in(folder: &Path) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = fs::read_dir(folder).ok().into_iter().flatten().flatten();
    let named = entries.map(|entry| entry.path()).filter(|path| is_named_like_one(path));
    named.filter_map(|path| abandoned(&path).map(|file| (path, file)))
}

fn is_named_like_one(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

/// The file or folder, locked, if nobody else holds its lock and its content is what a maker leaves. What is neither is none of
/// ours, nor is a file or folder of the user's that has such a name.
fn abandoned(path: &Path) -> Option<File> {
    if !fs::symlink_metadata(path).is_ok_and(|seen| seen.is_file() || seen.is_dir()) {
        return None;
    }
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let is_folder = file.metadata().ok()?.is_dir();
    let is_ours = if is_folder { file_set::is_ours(&file) } else { is_like_ours(&file) };
    (leads_to(path, &file) && is_ours).then_some(file)
}

/// Whether a file is empty, has the one byte that is written to see what that takes, or begins with the stamp of the first sector.
pub(crate) fn is_like_ours(file: &File) -> bool {
    let Ok(seen) = file.metadata() else { return false };
    let mut begin = [0; SECTOR];
    let mut has_begin = || {
        let read = std::os::unix::fs::FileExt::read_exact_at(file, &mut begin, 0);
        read.is_ok() && Content::is_first_sector(&begin)
    };
    seen.is_file() && (seen.len() <= 1 || has_begin())
}

/// Removes the work files in a folder whose makers are gone; answers which those were.
///
/// # Errors
///
/// One cannot be removed: a sentence for the user.
pub fn remove_left_behind(folder: &Path) -> Result<Vec<PathBuf>, WorkloadError> {
    let mut removed = Vec::new();
    // The lock is held until it is gone: nobody takes the file for theirs meanwhile.
    for (path, file) in found_in(folder) {
        if leads_to(&path, &file) {
            let is_folder = file.metadata().is_ok_and(|seen| seen.is_dir());
            let said = if is_folder { file_set::remove(&path, &file) } else { fs::remove_file(&path) };
            said.map_err(|error| cannot(format!("{} cannot be removed: {}", shown(&path), why(&error))))?;
            removed.push(path);
        }
    }
    Ok(removed)
}

/// Drops what the page cache holds of a file, or of a part of it.
pub(crate) fn forget(file: &File, part: Option<Range<u64>>) {
    // What is not yet on the device cannot be dropped.
    let _ = file.sync_data();
    let (begin, bytes) = part.map_or((0, None), |part| (part.start, NonZeroU64::new(part.end - part.start)));
    let _ = fadvise(file, begin, bytes, Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::pread;

    static GO: AtomicBool = AtomicBool::new(false);

    #[test]
    fn a_work_file_is_full_of_known_data_shared_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = WorkFile::of(folder.path(), 3 << 20, 0.0, &GO).unwrap();
        let mut block = vec![0; 65_536];
        let opened = File::open(&file.path).unwrap();
        assert_eq!(pread(&opened, &mut block[..], 1 << 20).unwrap(), block.len());
        assert_eq!(file.content.check(&block, 1 << 20), Ok(()));
        let again = WorkFile::of(folder.path(), 3 << 20, 0.0, &GO).unwrap();
        assert!(Arc::ptr_eq(&file, &again));
        let other = WorkFile::of(folder.path(), 1 << 20, 0.0, &GO).unwrap();
        assert_ne!(other.path, file.path);
        assert!(left_behind(folder.path()).is_empty(), "they have owners");
        drop((file, again, other));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_whose_maker_is_gone_is_known_and_nothing_else_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["duel-work-77.tmp", "duel-work-77-1.tmp", "duel-work-x.tmp", "duel-work-.tmp", "mine.tmp"] {
            fs::write(folder.path().join(name), b"x").unwrap();
        }
        fs::create_dir(folder.path().join("duel-work-x-78.tmp")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("duel-work-79.tmp")).unwrap();
        let mut removed = remove_left_behind(folder.path()).unwrap();
        removed.sort();
        let names = ["duel-work-77-1.tmp", "duel-work-77.tmp"].map(|name| folder.path().join(name));
        assert_eq!(removed, names);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }

    #[test]
    fn a_file_of_the_users_that_is_named_like_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("duel-work-2024.tmp");
        fs::write(&path, vec![b'x'; 4096]).unwrap();
        assert_eq!(remove_left_behind(folder.path()).unwrap(), Vec::<PathBuf>::new());
        // What a killed duel leaves is removed, whichever it was.
        let mut block = vec![0; 4096];
        Content::new(99, 0.0).fill(&mut block, 0, 7);
        fs::write(&path, &block).unwrap();
        assert_eq!(remove_left_behind(folder.path()).unwrap(), [path]);
    }

    #[test]
    fn a_file_that_was_removed_before_it_had_its_lock_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("duel-work-1.tmp");
        let file = File::create(&path).unwrap();
        assert!(is_own(&file, &path));
        // Who cleans has it in hand: it is waited for, and looked at again.
        let cleans = File::open(&path).unwrap();
        drop(file);
        flock(&cleans, FlockOperation::NonBlockingLockExclusive).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!is_own(&file, &path));
        drop(cleans);
        assert!(!is_own(&file, &path));
    }

    #[test]
    fn an_interruption_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(WorkFile::of(folder.path(), 1 << 30, 0.0, &AtomicBool::new(true)).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn more_than_there_is_room_for_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let said = WorkFile::of(folder.path(), 1 << 60, 0.0, &GO).unwrap_err().to_string();
        assert!(said.contains("no space in") && said.contains("--size"), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
