//! Results that go into files.

use crate::outcome::Usage;
use crate::terminal;
use anyhow::Context;
use duel_model::sanitize_line;
use std::fs::{OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where a result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output.
    Output,
    /// A file.
    File(PathBuf),
}

impl Destination {
    /// What was typed for `-o`: `-` is standard output.
    pub(crate) fn of(typed: &Path) -> Result<Self, Usage> {
        match typed.to_str() {
            Some("-") => Ok(Self::Output),
            Some("") => Err(Usage("-o needs the name of a file, or - for standard output".into())),
            _ => Ok(Self::File(typed.to_path_buf())),
        }
    }
}

/// Writes a result; `replaces` says that an existing file may go. Answers the file, if it is one.
pub(crate) fn deliver<'d>(
    to: &'d Destination,
    bytes: &[u8],
    is_text: bool,
    replaces: bool,
) -> anyhow::Result<Option<&'d Path>> {
    match to {
        Destination::Output if !is_text && std::io::stdout().is_terminal() => {
            Err(Usage("that is no text, and standard output is a terminal; use -o FILE".into()).into())
        }
        Destination::Output => terminal::print_bytes(bytes).map(|()| None),
        Destination::File(path) => write(path, bytes, replaces).map(|()| Some(path.as_path())),
    }
}

/// Writes a whole file or none.
pub(crate) fn write(path: &Path, bytes: &[u8], replaces: bool) -> anyhow::Result<()> {
    let shown = sanitize_line(&path.to_string_lossy());
    // A device or a pipe is written to, not replaced.
    let is_special = path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir());
    if is_special {
        let written = OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes));
        return written.with_context(|| format!("cannot write {shown}"));
    }
    let written = if replaces { replaced(path, bytes) } else { created(path, bytes) };
    match written {
        Err(error) if !replaces && error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!("{shown} is there already; use another name, or --force to replace it")
        }
        other => other.with_context(|| format!("cannot write {shown}")),
    }
}

/// Who may read what others have not been asked for: the owner, as of the archive. Reports name machines and their settings.
const OWNER_ALONE: u32 = 0o600;

/// A new file for its owner alone; none is left where it could not be written whole.
fn created(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ALONE).open(path)?;
    file.write_all(bytes).inspect_err(|_| drop(std::fs::remove_file(path)))
}

/// A file in the place of another one, which stays until the new one is whole, and leaves it who may read it. A link stays a
/// link: what it leads to is replaced.
fn replaced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mode = path.metadata().map_or(OWNER_ALONE, |data| data.mode() & 0o777);
    let draft = draft(&path, bytes)?;
    let put =
        std::fs::set_permissions(&draft, Permissions::from_mode(mode)).and_then(|()| std::fs::rename(&draft, &path));
    put.inspect_err(|_| drop(std::fs::remove_file(&draft)))
}

/// The new content beside the old. One that a run left behind which was killed is in nobody's way.
fn draft(path: &Path, bytes: &[u8]) -> std::io::Result<PathBuf> {
    const ATTEMPTS: u32 = 16;
    let mut last = ErrorKind::AlreadyExists.into();
    for _ in 0..ATTEMPTS {
        let mut name = path.as_os_str().to_owned();
        // Keyed at random by the standard library, for each of them anew.
        name.push(format!(".{:016x}", RandomState::new().hash_one(std::process::id())));
        let draft = PathBuf::from(name);
        match created(&draft, bytes) {
            Ok(()) => return Ok(draft),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_on_request_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.html");
        write(&path, b"first", false).unwrap();
        assert!(write(&path, b"second", false).unwrap_err().to_string().contains("--force"));
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        write(&path, b"third", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // A link that leads nowhere is there, too.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        assert!(write(&link, b"x", false).is_err());
        assert!(write(&folder.path().join("no/such/folder"), b"x", true).is_err());
    }

    #[test]
    fn nobody_else_may_read_a_new_file_and_a_replaced_one_keeps_who_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let mode = || path.metadata().unwrap().mode() & 0o777;
        write(&path, b"first", false).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, b"second", true).unwrap();
        assert_eq!((mode(), std::fs::read(&path).unwrap()), (0o640, b"second".to_vec()));
    }

    #[test]
    fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("kept.html"), folder.path().join("latest.html"));
        write(&path, b"first", false).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, b"second", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_draft_that_was_left_behind_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.html");
        write(&path, b"first", false).unwrap();
        std::fs::write(folder.path().join(format!("x.html.{}", std::process::id())), b"left").unwrap();
        write(&path, b"second", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
    }
}
