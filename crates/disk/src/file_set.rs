//! The files that ops on whole files work on: a folder of our own with folders and files in it, made and removed again.
//!
//! It is called what a work file is called (`duel-work-PID.tmp`), is locked as one is, and holds a file that shows whose it is.
//! Whatever is done in it goes by its descriptor and follows no link: its path may lead elsewhere a moment later.

use crate::buffer::Buffer;
use crate::content::{Content, SECTOR};
use crate::errors::{cannot, shown, why, why_not_made};
use crate::schema::phase;
use crate::settings::FileWork;
use crate::tell;
use crate::work_file::{self, MARK_BYTES, Made, SPARE_BYTES};
use duel_load::{PhaseTimes, WorkloadError, monotonic_ns};
use duel_model::{Nanos, Phase, SECOND_NS, format_bytes};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    Advice, AtFlags, Dir, FileType, Mode, OFlags, fadvise, fstatvfs, mkdirat, openat, statat, syncfs, unlinkat,
};
use rustix::io::Errno;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Shows that a folder is ours: its content is what a work file begins with.
const MARK: &str = "made-by-duel";
/// Multiplying by an odd number goes through all numbers of 32 bits, each once: names that are not made in their order.
const ODD: u32 = 0x9e37_79b1;
/// What even the smallest file takes on most file systems: an entry of its own in their tables.
const LEAST_FILE_BYTES: u64 = 4096;
/// From when on it is told how far it has come, and how often.
const TELL_EVERY_NS: Nanos = SECOND_NS / 5;

/// A folder of files that is there; it is removed with its last user.
#[derive(Debug)]
pub(crate) struct FileSet {
    pub(crate) work: FileWork,
    pub(crate) content: Content,
    /// Space that the smallest file takes; `None` where the file system does not tell.
    pub(crate) allocation_bytes: Option<u64>,
    /// Space that all files take together, where they are there before the load.
    pub(crate) used_bytes: Option<u64>,
    path: PathBuf,
    /// The folder itself; holds the lock.
    folder: File,
}

impl FileSet {
    /// A new folder in this one, with all files in it where `is_full`.
    ///
    /// # Errors
    ///
    /// It cannot be made; nothing is left of it.
    pub(crate) fn make(
        within: &Path,
        work: FileWork,
        compressibility: f64,
        is_full: bool,
        stop: &AtomicBool,
    ) -> Result<Self, WorkloadError> {
        has_room(within, work)?;
        let Made { path, file: folder, owner } = work_file::new_folder(within)?;
        let content = Content::new(owner, compressibility);
        // From here on it is removed, whatever happens.
        let mut made = Self { work, content, allocation_bytes: None, used_bytes: None, path, folder };
        made.lay_out(is_full, stop).map_err(|error| {
            cannot(format!("files for the work cannot be made in {}: {}", shown(within), why_not_made(&error)))
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(cannot("interrupted"));
        }
        Ok(made)
    }

    fn lay_out(&mut self, is_full: bool, stop: &AtomicBool) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut mark = File::from(openat(&self.folder, MARK, flags, Mode::RUSR | Mode::WUSR)?);
        let mut sector = [0; MARK_BYTES];
        self.content.fill(&mut sector, 0, 0);
        mark.write_all(&sector)?;
        mark.sync_all()?;
        // Some keep so little within the file's own entry, and say 0.
        self.allocation_bytes = Some(blocks_bytes(&mark.metadata()?)).filter(|bytes| *bytes > 0);
        for number in 0..self.work.folders {
            mkdirat(&self.folder, folder_name(number), Mode::RWXU)?;
        }
        if !is_full {
            return Ok(());
        }
        let began_ns = monotonic_ns();
        let mut told_ns = began_ns + SECOND_NS;
        let mut hand = Hand::new(self);
        for number in 0..self.work.files {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            hand.create(self, number, false, &mut Laps::new(began_ns))?;
            let now = monotonic_ns();
            if now >= told_ns {
                told_ns = now + TELL_EVERY_NS;
                let per_s = f64::from(number + 1) * 1e9 / (now - began_ns).max(1) as f64;
                tell::progress(&format!("making files: {} of {}, {per_s:.0}/s", number + 1, self.work.files));
            }
        }
        tell::progress("");
        if !stop.load(Ordering::Relaxed) {
            // Space is given out when data reaches the device.
            self.flush()?;
            self.used_bytes = self.space(&mut hand);
        }
        Ok(())
    }

    /// Space that the files take.
    fn space(&self, hand: &mut Hand) -> Option<u64> {
        (0..self.work.files).try_fold(0, |sum: u64, number| {
            let seen = statat(&self.folder, hand.name(self.work, number), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(sum + u64::try_from(seen.st_blocks).ok()? * 512)
        })
    }

    /// Waits until all that was done is on the device.
    pub(crate) fn flush(&self) -> io::Result<()> {
        Ok(syncfs(&self.folder)?)
    }

    /// Whether its path still leads to it: it was not removed, nor its file system unmounted.
    pub(crate) fn is_there(&self) -> bool {
        work_file::leads_to(&self.path, &self.folder)
    }

    /// The folder, open.
    pub(crate) fn folder(&self) -> io::Result<File> {
        self.folder.try_clone()
    }
}

impl Drop for FileSet {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = remove(&self.path, &self.folder);
        }
    }
}

/// What makes, reads and removes files: a worker's own memory for that.
#[derive(Debug)]
pub(crate) struct Hand {
    name: String,
    buffer: Buffer,
    round: u64,
}

/// How long the calls of an op took, each from the end of the one before.
#[derive(Debug)]
pub(crate) struct Laps {
    pub(crate) phases: PhaseTimes,
    pub(crate) since_ns: Nanos,
}

impl Laps {
    pub(crate) fn new(since_ns: Nanos) -> Self {
        Self { phases: PhaseTimes::NONE, since_ns }
    }

    fn lap(&mut self, phase: Phase) {
        let now = monotonic_ns();
        self.phases.set(phase, now.saturating_sub(self.since_ns));
        self.since_ns = now;
    }
}

impl Hand {
    pub(crate) fn new(set: &FileSet) -> Self {
        Self { name: String::new(), buffer: Buffer::new(set.work.buffer_bytes()), round: 0 }
    }

    /// The name of a file, within the set's folder.
    fn name(&mut self, work: FileWork, number: u32) -> &str {
        self.name.clear();
        let told = if work.is_random { number.wrapping_mul(ODD) } else { number };
        // A `String` takes all that is written to it.
        let _ = write!(self.name, "{}/f{told:010}", folder_name(number % work.folders));
        &self.name
    }

    /// Makes a file with its content.
    pub(crate) fn create(&mut self, set: &FileSet, number: u32, flushes: bool, laps: &mut Laps) -> io::Result<u64> {
        let work = set.work;
        self.round += 1;
        let round = self.round;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&set.folder, self.name(work, number), flags, Mode::RUSR | Mode::WUSR)?;
        laps.lap(phase::OPEN);
        let mut done = 0;
        while done < work.bytes {
            let bytes = (work.bytes - done).min(self.buffer.get().len() as u64) as usize;
            let piece = &mut self.buffer.get_mut()[..bytes];
            set.content.fill(piece, work.place(number) + done, round);
            write_all(&file, piece)?;
            done += bytes as u64;
        }
        if work.bytes > 0 {
            laps.lap(phase::WRITE);
        }
        if flushes {
            rustix::fs::fsync(&file)?;
            laps.lap(phase::FLUSH);
        }
        drop(file);
        laps.lap(phase::CLOSE);
        Ok(done)
    }

    /// Asks what the system knows of a file; answers its size.
    pub(crate) fn stat(&mut self, set: &FileSet, number: u32, laps: &mut Laps) -> io::Result<u64> {
        let seen = statat(&set.folder, self.name(set.work, number), AtFlags::SYMLINK_NOFOLLOW)?;
        laps.lap(phase::STAT);
        Ok(u64::try_from(seen.st_size).unwrap_or(0))
    }

    /// Reads a file to its end; answers how many bytes it had, and what is wrong with them.
    pub(crate) fn read(
        &mut self,
        set: &FileSet,
        number: u32,
        laps: &mut Laps,
    ) -> io::Result<(u64, Result<(), String>)> {
        let work = set.work;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&set.folder, self.name(work, number), flags, Mode::empty())?;
        laps.lap(phase::OPEN);
        let (mut done, mut said) = (0, Ok(()));
        loop {
            let read = read_some(&file, self.buffer.get_mut())?;
            if read == 0 {
                break;
            }
            let sectors = &self.buffer.get()[..read / SECTOR * SECTOR];
            if said.is_ok() && !sectors.is_empty() {
                said = set.content.check(sectors, work.place(number) + done);
            }
            done += read as u64;
        }
        laps.lap(phase::READ);
        drop(file);
        laps.lap(phase::CLOSE);
        Ok((done, said))
    }

    /// Drops what the page cache holds of a file.
    pub(crate) fn forget(&mut self, set: &FileSet, number: u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&set.folder, self.name(set.work, number), flags, Mode::empty())?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    }

    /// Removes a file.
    pub(crate) fn unlink(&mut self, set: &FileSet, number: u32, laps: &mut Laps) -> io::Result<()> {
        unlinkat(&set.folder, self.name(set.work, number), AtFlags::empty())?;
        laps.lap(phase::UNLINK);
        Ok(())
    }
}

fn folder_name(number: u32) -> String {
    format!("d{number:05}")
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::NOSPC.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn read_some(file: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(file, &mut *buffer) {
            Err(Errno::INTR) => {}
            said => return Ok(said?),
        }
    }
}

fn blocks_bytes(seen: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(seen) * 512
}

fn has_room(within: &Path, work: FileWork) -> Result<(), WorkloadError> {
    let opened =
        File::open(within).map_err(|error| cannot(format!("{} cannot be read: {}", shown(within), why(&error))))?;
    let Ok(space) = fstatvfs(&opened) else { return Ok(()) };
    let wanted = u64::from(work.files).saturating_mul(work.bytes.max(LEAST_FILE_BYTES));
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    // Some network file systems tell nothing.
    if space.f_blocks > 0 && free < wanted.saturating_add(SPARE_BYTES) {
        return Err(cannot(format!(
            "no space in {}: {} files of {} are wanted, and {} are free; --files and --file-size say how many and how large",
            shown(within),
            work.files,
            format_bytes(work.bytes as f64),
            format_bytes(free as f64)
        )));
    }
    let entries = u64::from(work.files) + u64::from(work.folders);
    if space.f_files > 0 && space.f_favail < entries {
        return Err(cannot(format!(
            "no space in {}: {entries} files and folders are wanted, and its file system has room for {}; --files says how many",
            shown(within),
            space.f_favail
        )));
    }
    Ok(())
}

/// Whether an open folder is one of ours: nothing is in it, or the file that shows so.
pub(crate) fn is_ours(folder: &File) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(folder, MARK, flags, Mode::empty()) {
        Ok(mark) => work_file::is_like_ours(&File::from(mark)),
        Err(Errno::NOENT) => entries(folder).is_ok_and(|entries| entries.is_empty()),
        Err(_) => false,
    }
}

/// Removes an open folder of ours, which this path leads to. What it holds beside our files stays, and so does the folder then.
///
/// # Errors
///
/// Something cannot be removed.
pub(crate) fn remove(path: &Path, folder: &File) -> io::Result<()> {
    for (name, _) in entries(folder)?.into_iter().filter(|(name, is)| is_named(name, 'd') && *is == FileType::Directory)
    {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = openat(folder, &*name, flags, Mode::empty())?;
        for (name, _) in
            entries(&within)?.into_iter().filter(|(name, is)| is_named(name, 'f') && *is == FileType::RegularFile)
        {
            unlinkat(&within, &*name, AtFlags::empty())?;
        }
        unlinkat(folder, &*name, AtFlags::REMOVEDIR)?;
    }
    // Last: what is left of it, by a kill or because something of somebody else's is in it, is still known.
    if entries(folder)?.iter().any(|(name, _)| name != MARK) {
        return Err(Errno::NOTEMPTY.into());
    }
    match unlinkat(folder, MARK, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => std::fs::remove_dir(path),
        Err(error) => Err(error.into()),
    }
}

fn is_named(name: &str, letter: char) -> bool {
    name.strip_prefix(letter)
        .is_some_and(|number| number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is in a folder, with what it is; names that are no text are none of ours.
fn entries(folder: impl AsFd) -> io::Result<Vec<(String, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            found.push((String::new(), FileType::Unknown));
            continue;
        };
        if name == "." || name == ".." {
            continue;
        }
        let is = match entry.file_type() {
            // Some file systems do not tell it here.
            FileType::Unknown => {
                let seen = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(seen.st_mode)
            }
            known => known,
        };
        found.push((name.to_owned(), is));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    static GO: AtomicBool = AtomicBool::new(false);

    fn work(bytes: u64, is_random: bool) -> FileWork {
        FileWork { files: 20, folders: 3, bytes, block: 512, is_random }
    }

    #[test]
    fn files_are_made_read_and_removed_with_their_folder() {
        for (bytes, is_random) in [(0, false), (1300, true), (4096, false)] {
            let within = tempfile::tempdir().unwrap();
            let set = FileSet::make(within.path(), work(bytes, is_random), 0.0, true, &GO).unwrap();
            let mut hand = Hand::new(&set);
            let mut laps = Laps::new(monotonic_ns());
            for number in 0..20 {
                assert_eq!(hand.stat(&set, number, &mut laps).unwrap(), bytes);
                let (read, said) = hand.read(&set, number, &mut laps).unwrap();
                assert_eq!((read, said), (bytes, Ok(())));
            }
            assert!(hand.create(&set, 3, false, &mut laps).is_err(), "it is there");
            hand.unlink(&set, 3, &mut laps).unwrap();
            assert_eq!(hand.create(&set, 3, true, &mut laps).unwrap(), bytes);
            assert!(work_file::left_behind(within.path()).is_empty(), "it has an owner");
            drop(set);
            assert_eq!(fs::read_dir(within.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_file_with_the_content_of_another_one_is_told() {
        let within = tempfile::tempdir().unwrap();
        let set = FileSet::make(within.path(), work(1024, false), 0.0, true, &GO).unwrap();
        let mut hand = Hand::new(&set);
        let path = |number| {
            set.path.join({
                let mut hand = Hand::new(&set);
                hand.name(set.work, number).to_owned()
            })
        };
        fs::copy(path(4), path(5)).unwrap();
        let (_, said) = hand.read(&set, 5, &mut Laps::new(0)).unwrap();
        assert!(said.unwrap_err().contains("is what had been written at byte"));
    }

    #[test]
    fn names_at_random_are_all_different() {
        let within = tempfile::tempdir().unwrap();
        let set = FileSet::make(within.path(), work(0, true), 0.0, false, &GO).unwrap();
        let mut hand = Hand::new(&set);
        let names: Vec<String> = (0..20).map(|number| hand.name(set.work, number).to_owned()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 20);
        assert!(!names.is_sorted());
    }

    #[test]
    fn what_a_kill_left_is_removed_and_what_is_somebody_elses_stays() {
        let within = tempfile::tempdir().unwrap();
        let set = FileSet::make(within.path(), work(600, false), 0.0, true, &GO).unwrap();
        let (ours, theirs) = (within.path().join("duel-work-71.tmp"), within.path().join("duel-work-72.tmp"));
        // As if its maker had been killed: its lock is gone.
        fs::rename(&set.path, &ours).unwrap();
        drop(set);
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("mine"), "x").unwrap();
        fs::create_dir(within.path().join("duel-work-73.tmp")).unwrap();
        let mut removed = work_file::remove_left_behind(within.path()).unwrap();
        removed.sort();
        assert_eq!(removed, [ours, within.path().join("duel-work-73.tmp")]);
        assert!(theirs.join("mine").exists());
    }

    #[test]
    fn a_link_in_it_is_not_followed_and_keeps_the_folder() {
        let within = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("f0000000001"), "x").unwrap();
        let set = FileSet::make(within.path(), work(0, false), 0.0, true, &GO).unwrap();
        let path = set.path.clone();
        fs::remove_dir_all(path.join("d00001")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), path.join("d00001")).unwrap();
        drop(set);
        assert!(elsewhere.path().join("f0000000001").exists() && path.exists());
    }
}
