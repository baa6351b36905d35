//! A target that is ready: what all of its workers share.

use crate::content::{Content, SECTOR};
use crate::destroy::Agreed;
use crate::device::{Device, Done, Mount, mount_of};
use crate::errors::{cannot, shown, why};
use crate::file_set::FileSet;
use crate::place::{Identity, Place, is_held};
use crate::settings::{Engine, Op, ReadAhead, Work};
use crate::watch::MovedBytes;
use crate::work_file::{self, WorkFile};
use crate::{destroy, ring, tell};
use duel_load::{WorkloadError, ensure_descriptors};
use duel_model::{Nanos, format_bytes};
use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags, fadvise, fcntl_getfl, fcntl_setfl, ioctl_blksszget, statx};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Size of a work file where none is asked for: soon written, and larger than the caches of disks.
const WORK_FILE_BYTES: u64 = 256 << 20;
/// What direct I/O has to be a multiple of where the system does not tell.
const USUAL_SECTOR: u64 = 512;
/// Most threads that a target's ops may block.
const MOST_THREADS: u32 = 1024;

/// Event loops of a thread: those of sessions of two targets that are open, and of one that takes the place of another.
const LOOPS: u64 = 3;
/// Descriptors that everything else takes: the archive, files in `/proc`, the targets' own.
const BESIDE: u64 = 64;

/// Memory that the ops of a target may take: four times what one thread's may. Devices have a few hundred megabytes of work under
/// way at most, and small machines 8 GiB of memory.
const MOST_BUFFER_BYTES: u64 = 4 << 30;

/// What ops are done on.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) work: Work,
    pub(crate) place: Place,
    pub(crate) file: Arc<File>,
    /// How much of it is used.
    pub(crate) bytes: u64,
    pub(crate) work_file: Option<Arc<WorkFile>>,
    /// What ops on whole files work on; `file` is their folder then.
    pub(crate) files: Option<FileSet>,
    /// What is written where there is no work file.
    own: Option<Content>,
    pub(crate) mount: Option<Mount>,
    pub(crate) device: Option<Device>,
    /// Never [`Engine::Auto`].
    pub(crate) engine: Engine,
    /// Why another engine was taken than io_uring.
    pub(crate) engine_why: Option<String>,
    pub(crate) seed: u64,
    /// When ops are too late whose calls block: nobody can give those up.
    pub(crate) op_timeout_ns: Nanos,
    /// By all workers, since it was last counted.
    pub(crate) read_bytes: MovedBytes,
    pub(crate) written_bytes: MovedBytes,
    /// What the device had done when the slot began.
    begun: Mutex<Option<Done>>,
}

impl Target {
    /// A slot is about to begin.
    pub(crate) fn slot_begins(&self) {
        let done = self.device.as_ref().and_then(Device::done);
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = done;
    }

    /// What the device had done when the slot began, once; `None` where nobody has told that one begins.
    pub(crate) fn take_begun(&self) -> Option<Done> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Makes a place ready for work by so many threads.
    ///
    /// # Errors
    ///
    /// What is wrong with it: a sentence for the user. Nothing is left behind.
    pub(crate) fn ready(
        work: Work,
        place: Place,
        threads: u32,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Self, WorkloadError> {
        has_memory(&work, threads)?;
        if work.op.is_on_files() {
            return Self::of_files(work, place, threads, seed, stop);
        }
        let (engine, engine_why) = engine(&work, threads)?;
        let (mut work_file, mut agreed) = (None, None);
        match &place {
            Place::Folder(folder) => work_file = Some(work_file_in(folder, &work, threads, stop)?),
            Place::File(path, _) if work.op.writes() => destroy::file(path, &work)?,
            Place::Device(path, identity) if work.op.writes() => {
                agreed = Some(destroy::device(path, *identity, work.may_destroy(path))?);
            }
            Place::File(..) | Place::Device(..) => {}
        }
        let (path, identity) = match (&place, &work_file) {
            (_, Some(file)) => (file.path.clone(), file.identity()?),
            (Place::File(path, identity) | Place::Device(path, identity), None) => (path.clone(), *identity),
            (Place::Folder(path), None) => return Err(cannot(format!("{} is a folder", shown(path)))),
        };
        let file = open(&path, identity, &work, agreed.as_ref())?;
        if work.op.writes() && matches!(place, Place::File(..)) {
            destroy::has_one_name(&file, &path)?;
        }
        let there = bytes_of(&file, &path)?;
        let bytes = work.size.map_or(there, |size| size.min(there));
        has_room(&work, &path, there, bytes, threads)?;
        let mount = mount_of(&file);
        let device = match &place {
            Place::Device(path, _) => Device::at(path),
            _ => mount.as_ref().and_then(Device::under),
        };
        let mount = mount.filter(|_| !matches!(place, Place::Device(..)));
        if work.direct {
            fits_direct(&file, &path, &work, mount.as_ref())?;
            // As if it had not just been written through the cache. What the cache holds of files of others is theirs: a server may work
            // with it, and direct reads reach the device without.
            if work_file.is_some() {
                work_file::forget(&file, None);
            }
        }
        if work.op.reads() && !work.direct && !work.cold {
            tell_of_memory(bytes);
        }
        if work.read_ahead == ReadAhead::None {
            let _ = fadvise(&file, 0, None, Advice::Random);
        }
        let own = (work.op.writes() && work_file.is_none()).then(|| Content::new(seed, work.compressibility));
        let (file, read_bytes) = (Arc::new(file), MovedBytes::default());
        let op_timeout_ns = Nanos::MAX;
        Ok(Self {
            work,
            place,
            file,
            bytes,
            work_file,
            files: None,
            own,
            mount,
            device,
            engine,
            engine_why,
            seed,
            op_timeout_ns,
            read_bytes,
            written_bytes: MovedBytes::default(),
            begun: Mutex::new(None),
        })
    }

    /// A folder for work on whole files.
    fn of_files(work: Work, place: Place, threads: u32, seed: u64, stop: &AtomicBool) -> Result<Self, WorkloadError> {
        let Place::Folder(within) = &place else {
            return Err(cannot(
                "create, stat, readfile and unlink need a folder as the target: they make files of their own there",
            ));
        };
        let workers = blocking_threads(&work, threads)?;
        if work.files.files < workers {
            return Err(cannot(format!("--files {}: {workers} threads have at least one file each", work.files.files)));
        }
        tell_of_left_behind(within);
        let files = FileSet::make(within, work.files, work.compressibility, work.op != Op::Create, stop)?;
        let opened = files.folder();
        let file =
            Arc::new(opened.map_err(|error| cannot(format!("{} cannot be read: {}", shown(within), why(&error))))?);
        let mount = mount_of(&file);
        let device = mount.as_ref().and_then(Device::under);
        let bytes = work.files.all_bytes();
        Ok(Self {
            work,
            place,
            file,
            bytes,
            work_file: None,
            files: Some(files),
            own: None,
            mount,
            device,
            engine: Engine::Pread,
            engine_why: None,
            seed,
            op_timeout_ns: Nanos::MAX,
            read_bytes: MovedBytes::default(),
            written_bytes: MovedBytes::default(),
            begun: Mutex::new(None),
        })
    }

    /// What blocks are filled with.
    pub(crate) fn content(&self) -> Option<&Content> {
        self.work_file.as_ref().map(|file| &file.content).or(self.own.as_ref())
    }

    /// Looks at what was read: known data in a work file, else anything.
    #[inline]
    pub(crate) fn check(&self, block: &[u8], offset: u64) -> Result<(), String> {
        self.work_file.as_ref().map_or(Ok(()), |file| file.content.check(block, offset))
    }
}

/// Says once that reads may never reach the device: who compares file systems does not want to compare copies in memory.
fn tell_of_memory(bytes: u64) {
    static TOLD: Once = Once::new();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available_kib = available.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
    if available_kib.is_none_or(|kib| bytes / 1024 < kib) {
        TOLD.call_once(|| {
            tell::note(&format!(
                "{} fit into this machine's memory, from which reads are served once they are there; --direct reads from the \
                 device, --cold empties the cache before each slot",
                format_bytes(bytes as f64)
            ));
        });
    }
}

/// The engine to take.
fn engine(work: &Work, threads: u32) -> Result<(Engine, Option<String>), WorkloadError> {
    let blocking = || blocking_threads(work, threads).map(|_| Engine::Pread);
    match (work.engine, ring::is_allowed()) {
        (Engine::Pread, _) => Ok((blocking()?, None)),
        (_, Ok(())) => Ok((Engine::Uring, None)),
        (Engine::Uring, Err(error)) => {
            Err(cannot(format!("io_uring is not available here: {}; --engine pread does without", why(&error))))
        }
        (Engine::Auto, Err(error)) => Ok((blocking()?, Some(why(&error)))),
    }
}

/// How many threads calls that block take.
fn blocking_threads(work: &Work, threads: u32) -> Result<u32, WorkloadError> {
    match threads.saturating_mul(work.depth) {
        many @ 1..=MOST_THREADS => {
            // Each has an event loop of its own, beside what the plan was found to need.
            let needed = u64::from(many) * LOOPS + BESIDE;
            ensure_descriptors(needed).map_err(|error| cannot(error.to_string()))?;
            Ok(many)
        }
        many => Err(cannot(format!(
            "calls that block need a thread for each op in flight, and {many} are too many; at most {MOST_THREADS}"
        ))),
    }
}

/// Says what an earlier duel has left in a folder.
pub(crate) fn tell_of_left_behind(folder: &Path) {
    let left = work_file::left_behind(folder);
    let [first, ..] = left.as_slice() else { return };
    let folder = shown(folder);
    let (there, them) = match left.len() {
        1 => ("there is a work file".to_owned(), "it"),
        many => (format!("there are {many} work files"), "them"),
    };
    tell::note(&format!(
        "{there} in {folder} of an earlier duel that was killed, such as {}; to remove {them}: duel disk clean {folder}",
        shown(Path::new(first.file_name().unwrap_or_default())),
    ));
}

fn work_file_in(folder: &Path, work: &Work, threads: u32, stop: &AtomicBool) -> Result<Arc<WorkFile>, WorkloadError> {
    let sector = SECTOR as u64;
    if !(work.block.is_multiple_of(sector) && work.align.is_multiple_of(sector)) {
        return Err(cannot(format!(
            "a work file's data is verified in sectors of {sector} bytes: --block {} and --align have to be multiples of it",
            work.block
        )));
    }
    let bytes = work.size.unwrap_or(WORK_FILE_BYTES);
    if !bytes.is_multiple_of(sector) {
        return Err(cannot(format!("--size {bytes}: a work file's size has to be a multiple of {sector} bytes")));
    }
    has_room(work, folder, bytes, bytes, threads)?;
    tell_of_left_behind(folder);
    WorkFile::of(folder, bytes, work.compressibility, stop)
}

/// Opens what was seen there before, and nothing that has taken its place; of a device that was agreed upon that one.
fn open(path: &Path, identity: Identity, work: &Work, agreed: Option<&Agreed>) -> Result<File, WorkloadError> {
    let direct = if work.direct { libc::O_DIRECT } else { 0 };
    let synchronous = if work.op == Op::Dsync { libc::O_DSYNC } else { 0 };
    let mut options = File::options();
    options.read(true).write(work.op.writes());
    if let Some(agreed) = agreed {
        return agreed.open(&mut options, direct | synchronous);
    }
    // What was a file a moment ago may be a link or a named pipe now.
    let no_link = if is_held(path) { 0 } else { libc::O_NOFOLLOW };
    let careful = no_link | libc::O_NONBLOCK;
    options.custom_flags(direct | synchronous | careful);
    // Of a file that somebody else chose no trace is left, where that may be asked for.
    let untraced =
        is_held(path).then(|| options.clone().custom_flags(direct | careful | libc::O_NOATIME).open(path).ok());
    let opened = untraced.flatten().map_or_else(|| options.open(path), Ok);
    let file = opened.map_err(|error| {
        let is_direct = work.direct && error.raw_os_error() == Some(libc::EINVAL);
        let why = if is_direct { "its file system has no direct I/O (--direct)".to_owned() } else { why(&error) };
        cannot(format!("{} cannot be opened: {why}", shown(path)))
    })?;
    let unread = |error: io::Error| cannot(format!("{} cannot be read: {}", shown(path), why(&error)));
    identity.is_that_of(&file.metadata().map_err(unread)?, path)?;
    // Ops have to wait for the device instead of being told that it is not ready.
    let flags = fcntl_getfl(&file).map_err(|error| unread(error.into()))?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(|error| unread(error.into()))?;
    Ok(file)
}

fn bytes_of(mut file: &File, path: &Path) -> Result<u64, WorkloadError> {
    // Of a device, too.
    file.seek(SeekFrom::End(0))
        .map_err(|error| cannot(format!("the size of {} is not known: {}", shown(path), why(&error))))
}

/// Whether all threads' ops together take no more memory than a machine can spare: the kernel holds on to it, and swaps none.
fn has_memory(work: &Work, threads: u32) -> Result<(), WorkloadError> {
    let bytes = work.block.saturating_mul(u64::from(work.depth)).saturating_mul(u64::from(threads.max(1)));
    if bytes <= MOST_BUFFER_BYTES {
        return Ok(());
    }
    Err(cannot(format!(
        "--block {} at --depth {} of {threads} threads would take {} of memory; {} at most",
        work.block,
        work.depth,
        format_bytes(bytes as f64),
        format_bytes(MOST_BUFFER_BYTES as f64)
    )))
}

/// Whether there is room for the work.
fn has_room(work: &Work, path: &Path, there: u64, bytes: u64, threads: u32) -> Result<(), WorkloadError> {
    let path = shown(path);
    let told = |bytes: u64| format_bytes(bytes as f64);
    if let Some(size) = work.size.filter(|size| *size > there) {
        return Err(cannot(format!("{path} has {}, and --size asks for {}", told(there), told(size))));
    }
    if work.block > bytes {
        return Err(cannot(format!("{path}: a block of {} does not fit into {}", told(work.block), told(bytes))));
    }
    if !work.op.is_random() && bytes / work.block < u64::from(threads.max(1)) {
        return Err(cannot(format!(
            "{path}: {} are too few for {threads} threads that have a part of it each, with blocks of {}",
            told(bytes),
            told(work.block)
        )));
    }
    Ok(())
}

/// Whether the system takes such direct I/O on this file.
fn fits_direct(file: &File, path: &Path, work: &Work, mount: Option<&Mount>) -> Result<(), WorkloadError> {
    let path = shown(path);
    if let Some(mount) = mount.filter(|mount| ["tmpfs", "ramfs"].contains(&mount.file_system.as_str())) {
        return Err(cannot(format!(
            "{path} is in memory ({}): there is no device that I/O could go to directly (--direct)",
            mount.file_system
        )));
    }
    let seen = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN).ok();
    let told = seen.filter(|seen| seen.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let told = told.map(|seen| u64::from(seen.stx_dio_offset_align));
    if told == Some(0) {
        return Err(cannot(format!("{path} takes no direct I/O (--direct)")));
    }
    let of_device = || ioctl_blksszget(file).ok().map(u64::from);
    let sector = told.or_else(of_device).unwrap_or(USUAL_SECTOR).max(1);
    for (name, bytes) in [("block", work.block), ("align", work.align)] {
        if !bytes.is_multiple_of(sector) {
            return Err(cannot(format!(
                "{path}: with --direct, --{name} has to be a multiple of the sector of {sector} bytes; {bytes} is none"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SCHEMA;
    use duel_model::{Id, KindPlan};
    use std::fs;

    fn work(settings: &[(&'static str, &str)]) -> Work {
        let settings = settings.iter().map(|(name, value)| (Id::new(name), (*value).to_owned())).collect();
        Work::of(&KindPlan { settings, ..KindPlan::of(&SCHEMA) }).unwrap()
    }

    #[test]
    fn what_has_taken_the_place_of_what_was_seen_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        for file in [&path, &other] {
            fs::write(file, [1; 8192]).unwrap();
        }
        let seen = Identity::of(&fs::metadata(&path).unwrap());
        let opened = open(&path, seen, &work(&[]), None).unwrap();
        assert!(!fcntl_getfl(&opened).unwrap().contains(OFlags::NONBLOCK), "ops wait");
        // Another file, then a link to the same one.
        fs::rename(&path, folder.path().join("c")).unwrap();
        fs::rename(&other, &path).unwrap();
        let said = open(&path, seen, &work(&[]), None).unwrap_err().to_string();
        assert!(said.contains("was exchanged"), "{said}");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("c"), &path).unwrap();
        assert!(open(&path, seen, &work(&[]), None).is_err());
    }

    #[test]
    fn what_duel_has_open_is_read_by_no_name_and_is_never_a_folder() {
        use rustix::fs::{Mode, open as open_there};
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [7; 8192]).unwrap();
        let hold = |path: &Path| open_there(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let held = hold(&path);
        fs::rename(&path, folder.path().join("b")).unwrap();
        fs::create_dir(&path).unwrap();
        let address = |held: &rustix::fd::OwnedFd| format!("/proc/self/fd/{}", held.as_raw_fd());
        let place = Place::of(&address(&held)).unwrap();
        let target = Target::ready(work(&[]), place, 1, 1, &AtomicBool::new(false)).unwrap();
        assert_eq!(target.bytes, 8192);
        let said = Place::of(&address(&hold(folder.path()))).unwrap_err().to_string();
        assert!(said.contains("no regular file"), "{said}");
    }

    /// Bytes that a thread has read from disks.
    fn read_from_disks_bytes() -> u64 {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn what_the_cache_holds_of_the_files_of_others_stays_there() {
        use rustix::fs::{Mode, open as open_there};
        use std::os::fd::AsRawFd;
        // In the build's folder: a temporary one may lie in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [7; 1 << 20]).unwrap();
        // What reading the file through the cache takes from the device.
        let missing_bytes = || {
            let before = read_from_disks_bytes();
            fs::read(&path).unwrap();
            read_from_disks_bytes() - before
        };
        work_file::forget(&File::open(&path).unwrap(), None);
        if missing_bytes() == 0 {
            return eprintln!("skipped: reads of {} are not counted", folder.path().display());
        }
        let held = open_there(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for address in [format!("/proc/self/fd/{}", held.as_raw_fd()), path.to_str().unwrap().to_owned()] {
            let (direct, place) = (work(&[("direct", "on")]), Place::of(&address).unwrap());
            match Target::ready(direct, place, 1, 1, &AtomicBool::new(false)) {
                Ok(_) => assert_eq!(missing_bytes(), 0, "{address}"),
                Err(why) => return eprintln!("skipped: {why}"),
            }
        }
    }

    #[test]
    fn a_file_that_has_another_name_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [1; 8192]).unwrap();
        fs::hard_link(&path, folder.path().join("b")).unwrap();
        let address = path.to_str().unwrap();
        let destroys = work(&[("op", "write"), ("destroy", address)]);
        let go = AtomicBool::new(false);
        let said = Target::ready(destroys, Place::of(address).unwrap(), 1, 1, &go).unwrap_err().to_string();
        assert!(said.contains("2 names"), "{said}");
        assert!(Target::ready(work(&[]), Place::of(address).unwrap(), 1, 1, &go).is_ok(), "reading harms nobody");
    }

    #[test]
    fn memory_is_bounded_for_all_threads_together() {
        let large = work(&[("depth", "64"), ("block", "16777216")]);
        assert!(has_memory(&large, 4).is_ok());
        let said = has_memory(&large, 64).unwrap_err().to_string();
        assert!(said.contains("64 threads") && said.contains("of memory"), "{said}");
        let folder = tempfile::tempdir().unwrap();
        let place = Place::of(folder.path().to_str().unwrap()).unwrap();
        assert!(Target::ready(large, place, 64, 1, &AtomicBool::new(false)).is_err());
    }
}
