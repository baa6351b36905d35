//! The very file that a process maps, opened once.
//!
//! Whoever may write to a library's folder can put something else in its place at any time: a link to a file that only root
//! may read, a device whose opening does something, a pipe that nobody writes to. So the file is looked at before it is opened
//! for reading, by its identity and not by its name, and what is measured afterwards is the open file.

use crate::order::LensError;
use duel_model::sanitize_line;
use duel_process::{Mapping, ProcessFiles};
use std::fs::File;

/// Opens the file of a mapping.
///
/// # Errors
///
/// Where it cannot be had any more, or what is there is another file.
pub(crate) fn open(files: &ProcessFiles, mapped: &Mapping) -> Result<File, LensError> {
    let opened = by_mapping(files, mapped).or_else(|| by_name(files, mapped));
    opened.ok_or_else(|| {
        let pid = files.pid();
        LensError::Process(format!(
            "the file {} that process {pid} maps cannot be opened: it was replaced or deleted since the process started, or is \
             not known by that name here; run duel as root, or restart the server",
            sanitize_line(&mapped.path.to_string_lossy())
        ))
    })
}

/// By the mapping itself, which leads to the file whatever became of its name. The kernel allows it to root. Its number may
/// differ from what mappings show where a file system is made of layers; that the mapping is still the same one does not.
#[cfg(target_os = "linux")]
fn by_mapping(files: &ProcessFiles, mapped: &Mapping) -> Option<File> {
    let found = rustix::fs::open(
        files.path("map_files").join(&mapped.range),
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .ok()?;
    let now = duel_process::mappings(&files.bytes("maps").ok()?);
    let is_it = now.iter().any(|mapping| mapping.range == mapped.range && mapping.file == mapped.file);
    if is_it { for_reading(&found, |_| true) } else { None }
}

/// By its name as the process sees it. Links on the way stay within its root folder.
#[cfg(target_os = "linux")]
fn by_name(files: &ProcessFiles, mapped: &Mapping) -> Option<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    let root = files.path("root");
    let folder = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found =
        rustix::fs::openat2(folder, &mapped.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
    let is_root = rustix::process::geteuid().is_root();
    for_reading(&found, |stat| {
        let device = format!("{:02x}:{:02x}", rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        // Layered file systems show another device here than in mappings. Who is not root opens nothing but their own.
        stat.st_ino == mapped.file.inode && (device == mapped.file.device || !is_root)
    })
}

/// What was found, opened for reading where it is a file and the right one.
#[cfg(target_os = "linux")]
fn for_reading(found: &rustix::fd::OwnedFd, is_it: impl Fn(&rustix::fs::Stat) -> bool) -> Option<File> {
    use std::os::fd::AsRawFd;
    let stat = rustix::fs::fstat(found).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile;
    if !is_file || !is_it(&stat) {
        return None;
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn by_mapping(_: &ProcessFiles, _: &Mapping) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn by_name(_: &ProcessFiles, _: &Mapping) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use duel_process::FileId;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    /// As our own mappings would show this file, if we mapped it.
    fn as_mapped(path: &Path) -> Mapping {
        let stat = fs::metadata(path).unwrap();
        let device = format!("{:02x}:{:02x}", rustix::fs::major(stat.dev()), rustix::fs::minor(stat.dev()));
        Mapping {
            range: "1000-2000".to_owned(),
            start: 0x1000,
            end: 0x2000,
            file_offset: 0,
            file: FileId { device, inode: stat.ino() },
            path: path.to_owned(),
            is_deleted: false,
            is_executable: true,
        }
    }

    #[test]
    fn what_was_put_in_the_library_s_place_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (library, secret) = (folder.path().join("libcrypto.so.3"), folder.path().join("secret"));
        fs::write(&library, "library").unwrap();
        fs::write(&secret, "secret").unwrap();
        let mapped = as_mapped(&library);
        let own = &ProcessFiles::of(std::process::id());
        assert!(open(own, &mapped).is_ok());

        // What was opened stays what it was, whatever comes to its place.
        let opened = open(own, &mapped).unwrap();
        fs::remove_file(&library).unwrap();
        symlink(&secret, &library).unwrap();
        assert_eq!(std::io::read_to_string(&opened).unwrap(), "library");
        assert!(open(own, &mapped).unwrap_err().to_string().contains("replaced or deleted"));

        // A pipe is not waited for, and a device is not opened.
        fs::remove_file(&library).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &library, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open(own, &mapped).is_err());
        assert!(open(own, &as_mapped(&library)).is_err(), "though it is the very pipe");
        assert!(open(own, &as_mapped(Path::new("/dev/null"))).is_err());
    }

    #[test]
    fn the_file_of_a_real_mapping_is_opened() {
        let maps = ProcessFiles::of(std::process::id()).bytes("maps").unwrap();
        let program = duel_process::mappings(&maps).into_iter().next().unwrap();
        let opened = open(&ProcessFiles::of(std::process::id()), &program).unwrap().metadata().unwrap();
        let expected = fs::metadata("/proc/self/exe").unwrap();
        assert_eq!((opened.dev(), opened.ino()), (expected.dev(), expected.ino()));
    }
}
