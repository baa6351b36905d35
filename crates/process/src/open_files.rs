//! The regular files that a process has open for reading, on file systems that lie on a block device.
//!
//! What is found can be held by a descriptor of ours, which leads to that file and no other one, whatever becomes of its name. Nothing of
//! a file is opened for that. File systems that a program answers for are passed by without being asked: whoever runs it could keep us
//! waiting.

use crate::files::{ProcessError, ProcessFiles};
#[cfg(target_os = "linux")]
use duel_model::MountLine;
#[cfg(target_os = "linux")]
use rustix::fd::AsFd;
use rustix::fd::OwnedFd;
#[cfg(target_os = "linux")]
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, major, makedev, minor, open, openat2, statx,
};
#[cfg(target_os = "linux")]
use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::fs;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

/// Most descriptors of a process that are looked at.
#[cfg(target_os = "linux")]
const MOST_DESCRIPTORS: usize = 4096;

/// A file that a process has open, not held yet.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "none is found there"))]
pub struct FoundFile<'a> {
    /// Its size.
    pub bytes: u64,
    /// Device and number of the file.
    pub identity: (u64, u64),
    files: &'a ProcessFiles,
    /// The kernel's link to it, among `files`.
    link: PathBuf,
    path: PathBuf,
    device: PathBuf,
}

/// The same, held.
#[derive(Debug)]
pub struct OpenFile {
    /// Leads to the file, and gives no right to its content (`O_PATH`).
    pub held: OwnedFd,
    /// Its name, as the process sees it.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The kernel's folder about the device that its file system lies on.
    pub device: PathBuf,
    /// Device and number of the file.
    pub identity: (u64, u64),
}

/// Those of a process; none of files that were removed.
///
/// # Errors
///
/// When the process is not there, or may not be looked at.
#[cfg(target_os = "linux")]
pub fn open_files(files: &ProcessFiles) -> Result<impl Iterator<Item = FoundFile<'_>>, ProcessError> {
    let mounts = files.read("mountinfo", "the mounts")?;
    let mounts = String::from_utf8_lossy(&mounts).into_owned();
    let entries = fs::read_dir(files.path("fd")).map_err(|error| files.refused("the open files", &error))?;
    let mut devices = BTreeMap::new();
    let mut device = move |mount| {
        let find =
            || mounts.lines().find_map(|line| device_under(line, mount)).and_then(|device| device.canonicalize().ok());
        devices.entry(mount).or_insert_with(find).clone()
    };
    let names = entries.flatten().take(MOST_DESCRIPTORS).map(|entry| entry.file_name());
    Ok(names.filter_map(move |name| found(files, name.to_str()?, &mut device)))
}

/// Those of a process.
///
/// # Errors
///
/// Always: other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub fn open_files(_files: &ProcessFiles) -> Result<std::iter::Empty<FoundFile<'_>>, ProcessError> {
    Err(ProcessError("which files a process has open is read on Linux only".to_owned()))
}

#[cfg(target_os = "linux")]
fn found<'a>(
    files: &'a ProcessFiles,
    name: &str,
    device: &mut impl FnMut(u64) -> Option<PathBuf>,
) -> Option<FoundFile<'a>> {
    let link = Path::new("fd").join(name);
    let path = fs::read_link(files.path(&link)).ok()?;
    if !path.is_absolute() || path.to_string_lossy().ends_with(" (deleted)") {
        return None;
    }
    let about = files.bytes(&format!("fdinfo/{name}")).ok()?;
    let device = device(mount_of_readable(&String::from_utf8_lossy(&about))?)?;
    // Follows the kernel's own link to the open file: no name is looked up.
    let (identity, bytes) = seen(CWD, &files.path(&link))?;
    Some(FoundFile { bytes, identity, files, link, path, device })
}

/// Device, number and size of a regular file. No file system is asked for what the kernel does not know: another file may have taken the
/// place of the one whose mount was looked at.
#[cfg(target_os = "linux")]
fn seen(from: impl AsFd, path: &Path) -> Option<((u64, u64), u64)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let seen = statx(from, path, flags, StatxFlags::BASIC_STATS).ok()?;
    let is_file = FileType::from_raw_mode(seen.stx_mode.into()) == FileType::RegularFile;
    is_file.then(|| ((makedev(seen.stx_dev_major, seen.stx_dev_minor), seen.stx_ino), seen.stx_size))
}

impl FoundFile<'_> {
    /// Holds it; `None`: it is not open there any more.
    #[cfg(target_os = "linux")]
    pub fn hold(self) -> Option<OpenFile> {
        let held = open(self.files.path(&self.link), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let (identity, bytes) = seen(&held, Path::new(""))?;
        let Self { path, device, .. } = self;
        (identity == self.identity).then_some(OpenFile { held, path, bytes, device, identity })
    }

    /// Holds it.
    #[cfg(not(target_os = "linux"))]
    pub fn hold(self) -> Option<OpenFile> {
        None
    }
}

/// The number of the mount in a file of `fdinfo`, where the descriptor may be read from.
#[cfg(target_os = "linux")]
fn mount_of_readable(about: &str) -> Option<u64> {
    const WRITES_ONLY: u32 = 1;
    const ACCESS: u32 = 3;
    let field = |name: &str| about.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = u32::from_str_radix(field("flags:")?, 8).ok()?;
    // One that only leads to the file reads nothing, whatever else it says.
    let is_read = flags & OFlags::PATH.bits() == 0 && flags & ACCESS != WRITES_ONLY;
    is_read.then(|| field("mnt_id:")?.parse().ok())?
}

/// The kernel's folder about the device under a mount, if a line of `mountinfo` is about this one. File systems with device numbers of
/// their own (btrfs) tell their source.
#[cfg(target_os = "linux")]
fn device_under(line: &str, mount: u64) -> Option<PathBuf> {
    let line = MountLine::of(line).filter(|line| line.id == mount)?;
    if line.file_system.starts_with("fuse") || line.device.contains('/') {
        return None;
    }
    let by_number = Path::new("/sys/dev/block").join(line.device);
    if by_number.exists() {
        return Some(by_number);
    }
    device_named(Path::new(line.source).strip_prefix("/dev").ok()?)
}

/// The kernel's folder about the block device that has this name in `/dev`. Only root names what is found so: no link leads out of that
/// folder, and nothing is looked up in what is mounted within it, such as `/dev/shm`, where everybody may make links and mounts.
#[cfg(target_os = "linux")]
fn device_named(name: &Path) -> Option<PathBuf> {
    let all = open("/dev", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    let held = openat2(&all, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
    let seen = fstat(&held).ok()?;
    let is_device = FileType::from_raw_mode(seen.st_mode) == FileType::BlockDevice;
    is_device.then(|| format!("/sys/dev/block/{}:{}", major(seen.st_rdev), minor(seen.st_rdev)).into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_only_is_no_file_that_is_read() {
        let about = |flags: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\nino:\t7\n");
        assert_eq!(mount_of_readable(&about("0100002")), Some(29));
        assert_eq!(mount_of_readable(&about("02000000")), Some(29));
        assert_eq!(mount_of_readable(&about("0102001")), None);
        let only_leads_there = OFlags::PATH | OFlags::CLOEXEC;
        assert_eq!(mount_of_readable(&about(&format!("0{:o}", only_leads_there.bits()))), None);
        assert_eq!(mount_of_readable("pos:\t0\n"), None);
        assert_eq!(mount_of_readable(""), None);
    }

    #[test]
    fn nobody_is_asked_who_could_keep_us_waiting() {
        assert_eq!(device_under("29 1 0:44 / /mnt rw - fuse.sshfs x rw", 29), None);
        assert_eq!(device_under("29 1 7:0 / /mnt rw - fuseblk /dev/loop0 rw", 29), None);
        assert_eq!(device_under("29 1 0:44 / /mnt rw - tmpfs tmpfs rw", 29), None);
        assert_eq!(device_under("29 1 0:44 / /mnt rw - nfs far:/x rw", 29), None);
        assert_eq!(device_under("30 1 0:44 / /mnt rw - btrfs /dev/none rw", 29), None, "another mount");
        for strange in ["", " - ", "29", "29 - x", "29 1 ../../x / /mnt rw - ext4 /dev/x rw"] {
            assert_eq!(device_under(strange, 29), None, "{strange}");
        }
    }

    #[test]
    fn a_device_is_found_by_a_name_that_only_root_can_have_made() {
        use std::os::unix::fs::FileTypeExt;
        let of_source = |source: &str| device_under(&format!("29 1 0:44 / /mnt rw - btrfs {source} rw"), 29);
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        let is_device = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|sort| sort.is_block_device());
        let Some(device) = entries.filter(is_device).map(|entry| entry.path()).next() else {
            return eprintln!("skipped: there is no block device");
        };
        let found = of_source(device.to_str().unwrap()).unwrap();
        assert!(found.starts_with("/sys/dev/block"), "{found:?}");
        let mut folders = vec![tempfile::tempdir().unwrap()];
        folders.extend(tempfile::tempdir_in("/dev/shm"));
        for folder in &folders {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&device, &link).unwrap();
            let link = link.to_str().unwrap();
            for source in [link.to_owned(), format!("/dev/..{link}"), format!("/dev/../dev/../{link}")] {
                assert_eq!(of_source(&source), None, "{source}");
            }
        }
        for strange in ["/dev", "/dev/", "/device", "/dev/null", "/dev/none"] {
            assert_eq!(of_source(strange), None, "{strange}");
        }
    }

    #[test]
    fn a_file_is_held_whatever_becomes_of_its_name() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::MetadataExt;
        // In the build's folder: a temporary one may lie in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "first").unwrap();
        let file = fs::File::open(&path).unwrap();
        let seen = file.metadata().unwrap();
        let process = ProcessFiles::of(std::process::id());
        let find = || open_files(&process).unwrap().find(|one| one.identity == (seen.dev(), seen.ino()));
        let Some(found) = find().and_then(FoundFile::hold) else {
            eprintln!("skipped: {} is on no block device", folder.path().display());
            return;
        };
        assert_eq!((found.bytes, &found.path, found.device.join("stat").exists()), (5, &path, true));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "second").unwrap();
        let mut text = String::new();
        let again = format!("/proc/self/fd/{}", found.held.as_raw_fd());
        fs::File::open(again).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "first");
        assert!(find().is_none(), "it has no name any more");
    }
}
