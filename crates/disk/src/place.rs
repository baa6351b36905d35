//! What an address leads to.

use crate::errors::{cannot, shown, why};
use duel_load::WorkloadError;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder, for a work file of our own.
    Folder(PathBuf),
    /// A regular file of the user's.
    File(PathBuf, Identity),
    /// A block device.
    Device(PathBuf, Identity),
}

/// Which file or device it is. A path may lead elsewhere a moment later: whoever may write to its folder decides that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    file: (u64, u64),
    /// The device that a block special file stands for.
    stands_for: Option<u64>,
}

impl Identity {
    pub(crate) fn of(seen: &Metadata) -> Self {
        let stands_for = seen.file_type().is_block_device().then(|| seen.rdev());
        Self { file: (seen.dev(), seen.ino()), stands_for }
    }

    /// Whether this is what was seen.
    ///
    /// # Errors
    ///
    /// It is something else: a sentence for the user.
    pub(crate) fn is_that_of(self, seen: &Metadata, path: &Path) -> Result<(), WorkloadError> {
        if Self::of(seen) == self {
            return Ok(());
        }
        Err(cannot(format!("{} was exchanged for something else", shown(path))))
    }
}

/// Whether an address is a path.
pub(crate) fn is_path(address: &str) -> bool {
    ["/", "./", "../", "file:"].iter().any(|begin| address.starts_with(begin))
}

/// The path that an address names.
pub(crate) fn path(address: &str) -> PathBuf {
    let path = address.strip_prefix("file:").unwrap_or(address);
    // As other programs write it: `file:///PATH`.
    PathBuf::from(path.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(path))
}

impl Place {
    /// What is there, with links followed.
    ///
    /// # Errors
    ///
    /// Nothing is, or something that cannot be measured: a sentence for the user.
    pub(crate) fn of(address: &str) -> Result<Self, WorkloadError> {
        let named = path(address);
        if is_held(&named) {
            return Self::held(named);
        }
        let found = |error| cannot(format!("{} cannot be used: {}", shown(&named), why(&error)));
        let path = fs::canonicalize(&named).map_err(found)?;
        // No link is left in this path.
        let seen = fs::symlink_metadata(&path).map_err(found)?;
        let (sort, identity) = (seen.file_type(), Identity::of(&seen));
        let is_none = |what: &str| {
            let takes = "a folder, a regular file or a block device can be measured";
            Err(cannot(format!("{} is {what}; {takes}", shown(&named))))
        };
        if sort.is_dir() {
            Ok(Self::Folder(path))
        } else if sort.is_file() {
            Ok(Self::File(path, identity))
        } else if sort.is_block_device() {
            Ok(Self::Device(path, identity))
        } else if sort.is_fifo() {
            is_none("a named pipe")
        } else if sort.is_symlink() {
            is_none("a link that was made just now")
        } else if sort.is_socket() {
            is_none("a socket")
        } else {
            is_none("a character device")
        }
    }

    /// A regular file that duel has open itself, whatever has become of its name. Folders are none: a work file would be made there, and
    /// whoever chose the file did not ask for that.
    fn held(path: PathBuf) -> Result<Self, WorkloadError> {
        let seen =
            fs::metadata(&path).map_err(|error| cannot(format!("{} cannot be used: {}", shown(&path), why(&error))))?;
        if !seen.is_file() {
            return Err(cannot(format!("{} is no regular file", shown(&path))));
        }
        Ok(Self::File(path, Identity::of(&seen)))
    }
}

/// Whether a path is one of this process's own descriptors. The kernel's link leads to what is open there, by no name.
pub(crate) fn is_held(path: &Path) -> bool {
    let number = path.to_str().and_then(|path| path.strip_prefix("/proc/self/fd/"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_by_their_beginning() {
        for (address, expected) in
            [("/mnt/a", "/mnt/a"), ("./x", "./x"), ("file:x", "x"), ("file:/x", "/x"), ("file:///x", "/x")]
        {
            assert!(is_path(address));
            assert_eq!(path(address), PathBuf::from(expected));
        }
        assert!(is_held(Path::new("/proc/self/fd/12")));
        for other in
            ["/proc/self/fd/", "/proc/self/fd/1/x", "/proc/self/fd/../fd/1", "/proc/1/fd/1", "/proc/self/fd/+1"]
        {
            assert!(!is_held(Path::new(other)), "{other}");
        }
        assert!(["x", "http://h/", "openssl:/x", ".hidden"].iter().all(|address| !is_path(address)));
    }
}
