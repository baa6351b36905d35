//! The files of `/proc/PID`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::{os::fd::AsRawFd, sync::Arc};

/// Bytes of a file that are read: those of `maps` of a process with 100,000 mappings.
const MOST_BYTES: u64 = 16 << 20;

/// Something about a process cannot be found out; one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProcessError(pub String);

/// The files that the kernel shows of one process: of the one that has the number when this is made. Its folder is held
/// open, so that nothing is read of another process that is given the number later.
#[derive(Debug, Clone)]
pub struct ProcessFiles {
    pid: u32,
    place: PathBuf,
    /// What `place` leads through, as long as this lives; none where there is no such process.
    #[cfg(target_os = "linux")]
    _folder: Option<Arc<rustix::fd::OwnedFd>>,
}

/// The same process, as long as both hold it.
impl PartialEq for ProcessFiles {
    fn eq(&self, other: &Self) -> bool {
        self.pid == other.pid
    }
}

impl Eq for ProcessFiles {}

impl ProcessFiles {
    /// Those of a process, which need not be there.
    #[cfg(target_os = "linux")]
    pub fn of(pid: u32) -> Self {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(format!("/proc/{pid}"), flags, Mode::empty()).ok().map(Arc::new);
        // The other name never leads anywhere: no process has the number 0.
        let place = folder.as_ref().map_or_else(
            || PathBuf::from("/proc/0"),
            |folder| PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), folder.as_raw_fd())),
        );
        Self { pid, place, _folder: folder }
    }

    /// Those of a process, which need not be there.
    #[cfg(not(target_os = "linux"))]
    pub fn of(pid: u32) -> Self {
        Self { pid, place: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where such a file is, as long as this is held.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.place.join(name)
    }

    /// Where a path of the process is to be found from here, as long as this is held. Links with an absolute target lead out of it.
    pub fn inside(&self, path: &Path) -> PathBuf {
        self.place.join("root").join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's content; `what` is its name for people.
    ///
    /// # Errors
    ///
    /// When the process is not there, or may not be looked at.
    pub fn read(&self, name: &str, what: &str) -> Result<Vec<u8>, ProcessError> {
        self.bytes(name).map_err(|error| self.refused(what, &error))
    }

    /// Where a link leads.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn link(&self, name: &str, what: &str) -> Result<PathBuf, ProcessError> {
        fs::read_link(self.path(name)).map_err(|error| self.refused(what, &error))
    }

    /// A file's content, with the system's own reason where there is none.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path(name))?.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether the process has not ended. Its folder stays as long as it is held, but is empty then.
    pub fn is_there(&self) -> bool {
        fs::symlink_metadata(self.place.join("stat")).is_ok()
    }

    pub(crate) fn refused(&self, what: &str, error: &io::Error) -> ProcessError {
        let pid = self.pid;
        ProcessError(match error.kind() {
            _ if !self.is_there() => format!("there is no process {pid}"),
            io::ErrorKind::PermissionDenied => {
                let what_to_do = if rustix::process::geteuid().is_root() {
                    "this machine does not let root do so (a security module, or limited rights of a container)"
                } else {
                    "run duel as that process's user or as root"
                };
                format!("may not read {what} of process {pid}: {what_to_do}")
            }
            _ => format!("cannot read {what} of process {pid}: {error}"),
        })
    }
}
