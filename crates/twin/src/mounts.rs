//! Whether a server with mounts of its own sees the same programs as we do.
//!
//! A twin is set up among the server's mounts, with the tools and libraries that are found there, as root. Where they are
//! ours, that is no risk: such servers come from `ip netns exec` and from systemd's `PrivateTmp=`. Where others lie in their
//! place, root would run what somebody else has put there.

use crate::NoTwin;
use duel_model::sanitize_line;
use duel_process::ProcessFiles;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where programs lie, their libraries, and what the loader reads.
const PROGRAMS: [&str; 21] = [
    "/",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local",
    "/etc",
    "/etc/alternatives",
    "/etc/ld.so.preload",
    "/etc/ld.so.cache",
    "/nix",
    "/gnu",
    "/bin/sh",
];
/// Mounts within these hide programs.
const PROGRAM_FOLDERS: [&str; 9] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/nix", "/gnu"];

/// Refuses a server among whose mounts other programs lie where ours do.
pub(crate) fn must_show_our_programs(theirs: &ProcessFiles) -> Result<(), NoTwin> {
    let ours = ProcessFiles::of(std::process::id());
    let mut places: BTreeSet<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    for files in [theirs, &ours] {
        let mounts = files.read("mountinfo", "the mounts").map_err(|error| NoTwin::new(error.to_string()))?;
        places.extend(
            mount_points(&mounts).filter(|point| PROGRAM_FOLDERS.iter().any(|folder| point.starts_with(folder))),
        );
    }
    // A link by itself, since one with an absolute target would lead to our files in either case.
    let identity = |files: &ProcessFiles, place: &Path| {
        let found = fs::symlink_metadata(files.inside(place));
        found.map(|found| (found.dev(), found.ino())).map_err(|error| error.kind())
    };
    match places.iter().find(|place| identity(theirs, place) != identity(&ours, place)) {
        Some(place) => Err(NoTwin::new(format!(
            "not available here: among the server's own mounts there is another {}, so root would run programs that are not \
             this system's",
            sanitize_line(&place.to_string_lossy())
        ))),
        None => Ok(()),
    }
}

/// The fifth field of each line, in which spaces and the like are written as octal numbers.
fn mount_points(mountinfo: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = mountinfo.split(|&byte| byte == b'\n');
    lines.filter_map(|line| Some(unescaped(line.split(|&byte| byte == b' ').nth(4)?)))
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let escape =
            behind.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match escape.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_spaces() {
        let line = b"36 35 98:0 /mnt1 /usr/my\\040bin rw,noatime master:1 - ext3 /dev/root rw\nx\n";
        assert_eq!(mount_points(line).collect::<Vec<_>>(), [PathBuf::from("/usr/my bin")]);
        assert_eq!(unescaped(b"a\\04"), PathBuf::from("a\\04"));
    }

    #[test]
    fn we_see_our_own_programs() {
        assert_eq!(must_show_our_programs(&ProcessFiles::of(std::process::id())), Ok(()));
    }

    proptest::proptest! {
        #[test]
        fn no_mounts_make_it_stumble(mounts: Vec<u8>) {
            let _ = mount_points(&mounts).count();
        }
    }
}
