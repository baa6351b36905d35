//! The folder of an ssh connection: its control socket and its configuration.
//!
//! It is removed with the connection. A duel that is killed cannot do that; the next one that needs such a folder removes what
//! is left. A lock on the folder tells whether its duel lives: the kernel takes it away with the last process that holds it,
//! and no child inherits it. A process id in its name would tell less: containers may share `/tmp` and not their processes.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Names of such folders begin with this, and end with so many letters and digits.
const PREFIX: &str = "duel-ssh-";
const RANDOM_CHARACTERS: usize = 6;
/// Its configuration is written after it is locked.
const CONFIG: &str = "config";
/// Between making a folder and locking it pass microseconds; one of this age that holds nothing is nobody's any more.
const MADE_LONG_AGO: Duration = Duration::from_secs(60);
/// Longest path of the place where it is made: behind it come this folder's name, that of openssh's own folder and socket, and
/// the 17 bytes that ssh adds while it binds; all of it may have 104 bytes on some systems.
const MOST_PLACE_BYTES: usize = 44;
/// Most names in a place that are looked at.
const MOST_NAMES: usize = 100_000;

/// A folder for the control socket, removed when dropped.
pub(super) struct ControlFolder {
    folder: TempDir,
    /// Held for as long as the folder is ours.
    _lock: File,
}

impl ControlFolder {
    pub(super) fn new() -> io::Result<Self> {
        let places =
            [std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), Some(std::env::temp_dir()), Some("/tmp".into())];
        let fits = |place: &PathBuf| place.is_absolute() && place.as_os_str().len() <= MOST_PLACE_BYTES;
        let mut last = io::Error::other("there is no folder for temporary files with a short path");
        for place in places.into_iter().flatten().filter(fits) {
            remove_left_overs(&place);
            match Self::within(&place) {
                Ok(folder) => return Ok(folder),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn within(place: &Path) -> io::Result<Self> {
        let for_us_alone = std::fs::Permissions::from_mode(0o700);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).rand_bytes(RANDOM_CHARACTERS).permissions(for_us_alone);
        let folder = builder.tempdir_in(place)?;
        let lock = opened(folder.path())?;
        // Whoever looks whether it is a left-over holds it for a moment.
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the configuration is to be written.
    pub(super) fn config(&self) -> PathBuf {
        self.path().join(CONFIG)
    }
}

/// Removes folders in this place whose duel has ended without removing them. Failures are no reason to do without ssh.
fn remove_left_overs(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    let is_ours = |name: &str| {
        name.strip_prefix(PREFIX).is_some_and(|rest| {
            rest.len() == RANDOM_CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    for entry in entries.flatten().take(MOST_NAMES) {
        if entry.file_name().to_str().is_some_and(is_ours) {
            let _ = remove_left_over(&entry.path());
        }
    }
}

/// Removes one that is a folder of this user, closed to all others, that nobody holds.
fn remove_left_over(path: &Path) -> io::Result<()> {
    let lock = opened(path)?;
    let known = lock.metadata()?;
    if known.uid() != rustix::process::geteuid().as_raw() || known.mode() & 0o077 != 0 {
        return Ok(());
    }
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    let is_old = || known.modified().ok().and_then(|made| made.elapsed().ok()).is_some_and(|age| age > MADE_LONG_AGO);
    if path.join(CONFIG).exists() || is_old() {
        // No link within is followed.
        std::fs::remove_dir_all(path)?;
    }
    Ok(())
}

/// A folder, and nothing that a link leads to.
fn opened(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_what_is_surely_left_over_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let made = |name: &str, mode| {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join(CONFIG), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        made("duel-ssh-abc123", 0o700);
        let stay = ["duel-ssh-open12", "duel-ssh-toolong", "duel-ssh-", "duel-ssh-a.b1c2", "other-abc123"];
        for name in stay {
            made(name, if name == "duel-ssh-open12" { 0o755 } else { 0o700 });
        }
        // One that is being made, and has neither its lock nor its configuration yet.
        fs::create_dir(at("duel-ssh-young1")).unwrap();
        fs::set_permissions(at("duel-ssh-young1"), fs::Permissions::from_mode(0o700)).unwrap();
        // A link to what is somebody's.
        made("kept", 0o700);
        symlink(at("kept"), at("duel-ssh-link12")).unwrap();
        let lives = ControlFolder::within(place.path()).unwrap();
        fs::write(lives.config(), "").unwrap();

        remove_left_overs(place.path());
        assert!(!at("duel-ssh-abc123").exists());
        for name in stay.into_iter().chain(["duel-ssh-young1", "kept", "duel-ssh-link12"]) {
            assert!(at(name).exists(), "{name}");
        }
        assert!(at("kept").join(CONFIG).exists() && lives.config().exists());

        let lived = lives.path().to_owned();
        drop(lives);
        assert!(!lived.exists());
    }

    #[test]
    fn what_belongs_to_another_user_stays() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: it takes root to give a folder away");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let other = place.path().join("duel-ssh-other1");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(CONFIG), "").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&other, Some(65534), Some(65534)).unwrap();
        remove_left_overs(place.path());
        assert!(other.exists());
    }
}
