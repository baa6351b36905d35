//! What an address leads to.

use crate::errors::{cannot, shown, why};
use duel_load::WorkloadError;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// What a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder, for a work file of our own.
    Folder(PathBuf),
    /// A regular file of the user's.
    File(PathBuf),
    /// A block device.
    Device(PathBuf),
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
        let found = |error| cannot(format!("{} cannot be used: {}", shown(&named), why(&error)));
        let path = fs::canonicalize(&named).map_err(found)?;
        let sort = fs::metadata(&path).map_err(found)?.file_type();
        let is_none = |what: &str| {
            let takes = "a folder, a regular file or a block device can be measured";
            Err(cannot(format!("{} is {what}; {takes}", shown(&named))))
        };
        if sort.is_dir() {
            Ok(Self::Folder(path))
        } else if sort.is_file() {
            Ok(Self::File(path))
        } else if sort.is_block_device() {
            Ok(Self::Device(path))
        } else if sort.is_fifo() {
            is_none("a named pipe")
        } else if sort.is_socket() {
            is_none("a socket")
        } else {
            is_none("a character device")
        }
    }
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
        assert!(["x", "http://h/", "openssl:/x", ".hidden"].iter().all(|address| !is_path(address)));
    }
}
