//! Files as a server sees them: among its own mounts, and with every link followed there.

use crate::NoTwin;
use duel_model::sanitize_line;
use duel_process::ProcessFiles;
use std::ffi::OsString;
use std::path::Path;

/// A file's content and whose it is.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Permission bits for reading and writing: what is no program is not to become one.
    pub(super) mode: u32,
    /// What tells it from all other files: a file may have several names.
    pub(super) id: (u64, u64),
}

/// The file system of a server.
#[derive(Debug)]
pub(super) struct Root(#[cfg(target_os = "linux")] rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Root {
    pub(super) fn of(process: &ProcessFiles) -> Result<Self, NoTwin> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(process.path("root"), flags, Mode::empty());
        root.map(Self).map_err(|errno| NoTwin::new(format!("cannot look at the server's files: {errno}")))
    }

    /// Reads a file of at most `most_bytes`.
    pub(super) fn read(&self, path: &Path, most_bytes: u64) -> Result<Found, NoTwin> {
        use rustix::fs::OFlags;
        use std::fs::File;
        use std::io::Read;
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let cannot = |why: String| NoTwin::new(format!("cannot read {}: {why}", shown(path)));
        // Whoever has put a pipe there must not keep us waiting.
        let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(&cannot)?;
        let file = File::from(file);
        let known = file.metadata().map_err(|error| cannot(error.to_string()))?;
        if !known.is_file() {
            return Err(cannot("it is no regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(most_bytes + 1).read_to_end(&mut bytes).map_err(|error| cannot(error.to_string()))?;
        if bytes.len() as u64 > most_bytes {
            return Err(cannot("it is too large for a configuration".to_owned()));
        }
        Ok(Found {
            bytes,
            uid: known.uid(),
            gid: known.gid(),
            mode: known.permissions().mode() & 0o666,
            id: (known.dev(), known.ino()),
        })
    }

    /// Names in a folder, in order; none where there is no such folder.
    pub(super) fn names(&self, folder: &Path) -> Result<Vec<OsString>, NoTwin> {
        const MOST_NAMES: usize = 100_000;
        use rustix::fd::AsRawFd;
        use rustix::fs::OFlags;
        let Ok(folder) = self.open(folder, OFlags::RDONLY | OFlags::DIRECTORY) else { return Ok(Vec::new()) };
        let listed = std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let entries = listed.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut names: Vec<OsString> = entries.take(MOST_NAMES + 1).collect();
        if names.len() > MOST_NAMES {
            return Err(NoTwin::new("a folder that its configuration includes holds too many files"));
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, path: &Path, flags: rustix::fs::OFlags) -> Result<rustix::fd::OwnedFd, String> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        let within = path.strip_prefix("/").unwrap_or(path);
        openat2(
            &self.0,
            within,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
        )
        .map_err(|errno| errno.to_string())
    }
}

#[cfg(not(target_os = "linux"))]
impl Root {
    pub(super) fn of(_: &ProcessFiles) -> Result<Self, NoTwin> {
        Err(NoTwin::new("a twin needs the namespaces of Linux"))
    }

    pub(super) fn read(&self, path: &Path, _: u64) -> Result<Found, NoTwin> {
        Err(NoTwin::new(format!("cannot read {}", shown(path))))
    }

    pub(super) fn names(&self, _: &Path) -> Result<Vec<OsString>, NoTwin> {
        Ok(Vec::new())
    }
}

pub(super) fn shown(path: &Path) -> String {
    sanitize_line(&path.to_string_lossy())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_file_is_not_waited_for_and_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.conf"), "abc").unwrap();
        symlink(at("a.conf"), at("b.conf")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        let root = Root::of(&ProcessFiles::of(std::process::id())).unwrap();
        assert_eq!(root.read(&at("b.conf"), 3).unwrap().bytes, b"abc");
        let why = |name: &str, most| root.read(&at(name), most).unwrap_err().to_string();
        assert!(why("a.conf", 2).contains("too large"));
        assert!(why("pipe", 9).contains("no regular file"));
        assert!(why("gone", 9).contains("cannot read"));
        assert!(root.read(folder.path(), 9).unwrap_err().to_string().contains("no regular file"));
        assert_eq!(root.names(folder.path()).unwrap(), ["a.conf", "b.conf", "pipe"]);
        assert!(root.names(&at("gone")).unwrap().is_empty());
    }
}
