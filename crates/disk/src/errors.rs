//! What the system says, in words for the user.

use crate::schema::failure;
use duel_load::{Failure, WorkloadError};
use duel_model::{FailureKind, sanitize_line};
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// A path as it may be shown.
pub(crate) fn shown(path: &Path) -> String {
    sanitize_line(&path.display().to_string())
}

/// A sentence for the user.
pub(crate) fn cannot(text: impl Into<String>) -> WorkloadError {
    WorkloadError(text.into())
}

/// What the system said, as the end of a sentence.
pub(crate) fn why(error: &io::Error) -> String {
    let known = error.raw_os_error().map(Errno::from_raw_os_error);
    let text = match known {
        Some(Errno::NOSPC) => "no space is left there",
        Some(Errno::DQUOT) => "the quota is used up",
        Some(Errno::ROFS) => "it is mounted read-only",
        Some(Errno::ACCESS | Errno::PERM) => "this user has no permission",
        Some(Errno::NOENT) => "it does not exist",
        Some(Errno::BUSY) => "it is in use",
        Some(Errno::IO) => "the device reports an input/output error",
        Some(Errno::NOTDIR) => "a part of the path is no folder",
        Some(Errno::LOOP) => "its symbolic links lead nowhere",
        Some(Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM) => "there is no device behind it",
        _ => return sanitize_line(&error.to_string()),
    };
    text.to_owned()
}

/// The same of a file that was to be made in a folder that is there.
pub(crate) fn why_not_made(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => "the folder is gone, or its file system makes no files".to_owned(),
        _ => why(error),
    }
}

/// An op that failed with what the system said.
pub(crate) fn failed(what: &str, error: &io::Error) -> Failure {
    let kind: FailureKind = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => failure::NO_SPACE,
        Some(Errno::IO | Errno::NXIO | Errno::NODEV) => failure::IO_ERROR,
        Some(Errno::STALE) => failure::GONE,
        _ => failure::REFUSED,
    };
    Failure { kind, text: format!("a {what} failed: {}", why(error)) }
}
