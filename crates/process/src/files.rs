//! The files of `/proc/PID`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file that are read: those of `maps` of a process with 100,000 mappings.
const MOST_BYTES: u64 = 16 << 20;

/// Something about a process cannot be found out; one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProcessError(pub String);

/// The files that the kernel shows of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFiles {
    pid: u32,
    place: PathBuf,
}

impl ProcessFiles {
    /// Those of a process, which need not be there.
    pub fn of(pid: u32) -> Self {
        Self { pid, place: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// Where such a file is.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.place.join(name)
    }

    /// Where a path of the process is to be found from here. Links with an absolute target lead out of it.
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

    fn refused(&self, what: &str, error: &io::Error) -> ProcessError {
        let pid = self.pid;
        ProcessError(match error.kind() {
            io::ErrorKind::NotFound if !self.place.exists() => format!("there is no process {pid}"),
            io::ErrorKind::PermissionDenied => {
                format!("may not read {what} of process {pid}: run duel as that process's user or as root")
            }
            _ => format!("cannot read {what} of process {pid}: {error}"),
        })
    }
}
