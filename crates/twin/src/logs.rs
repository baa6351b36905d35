//! Large files that a server writes to: to write to a file, an overlay copies all of it into memory first.

use crate::NoTwin;
use duel_model::sanitize_line;
use duel_process::{ProcessFiles, children};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files up to this size are copied: they cost nothing, and may be read as well, such as a file with a process id.
const SMALL_BYTES: u64 = 1 << 20;
/// Most processes of a server that are looked at, and descriptors of each.
const MOST_PROCESSES: usize = 64;
const MOST_DESCRIPTORS: usize = 4096;

/// Of a path that a server may write through: is it only appended to?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// A log: it is never read again through this descriptor.
    Log,
    /// What it holds may be needed.
    Data,
}

/// The large files that a server and its children append to. A twin is to find them empty.
///
/// # Errors
///
/// Where a file that it reads and writes is too large for a twin's memory of `memory_bytes`.
pub(crate) fn large_logs(pid: u32, memory_bytes: u64) -> Result<Vec<PathBuf>, NoTwin> {
    let mut logs = BTreeSet::new();
    let family = std::iter::once(pid).chain(children(pid)).take(MOST_PROCESSES);
    for (path, writing, bytes) in family.flat_map(|pid| open_files(&ProcessFiles::of(pid))) {
        match writing {
            Writing::Log if bytes > SMALL_BYTES => {
                logs.insert(path);
            }
            Writing::Data if bytes > memory_bytes => {
                return Err(NoTwin::new(format!(
                    "the server writes to {} of {} MiB, and a twin has {} MiB for all that it writes",
                    sanitize_line(&path.to_string_lossy()),
                    bytes >> 20,
                    memory_bytes >> 20
                )));
            }
            Writing::Log | Writing::Data => {}
        }
    }
    Ok(logs.into_iter().collect())
}

/// Files that have a name, and that the process has open for writing, with their sizes.
fn open_files(files: &ProcessFiles) -> Vec<(PathBuf, Writing, u64)> {
    let Ok(entries) = fs::read_dir(files.path("fd")) else { return Vec::new() };
    let found = entries.flatten().take(MOST_DESCRIPTORS).filter_map(|entry| {
        let number = entry.file_name();
        let info = files.bytes(&Path::new("fdinfo").join(&number).to_string_lossy()).ok()?;
        let writing = writing(&String::from_utf8_lossy(&info))?;
        let path = fs::read_link(entry.path()).ok().filter(|path| path.is_absolute())?;
        // Through the descriptor: by its name it may be another file by now, and then it is no concern of a twin.
        let (open, named) = (fs::metadata(entry.path()).ok()?, fs::symlink_metadata(files.inside(&path)).ok()?);
        let is_it = open.is_file() && (open.dev(), open.ino()) == (named.dev(), named.ino());
        is_it.then_some((path, writing, open.len()))
    });
    found.collect()
}

/// What the flags of a descriptor say; `None` where it is for reading only.
fn writing(info: &str) -> Option<Writing> {
    // As the kernel prints them: octal, as in fcntl.h.
    const ACCESS: u32 = 0o3;
    const READ_ONLY: u32 = 0;
    const WRITE_ONLY: u32 = 1;
    const APPEND: u32 = 0o2000;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    match flags & ACCESS {
        READ_ONLY => None,
        WRITE_ONLY => Some(Writing::Log),
        _ if flags & APPEND != 0 => Some(Writing::Log),
        _ => Some(Writing::Data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn flags_tell_a_log_from_data() {
        assert_eq!(writing("pos:\t0\nflags:\t0102001\n"), Some(Writing::Log));
        assert_eq!(writing("flags:\t02002\n"), Some(Writing::Log));
        assert_eq!(writing("flags:\t0100002\n"), Some(Writing::Data));
        assert_eq!(writing("flags:\t0100000\n"), None);
        assert_eq!(writing("flags:\tx\n"), None);
    }

    #[test]
    fn large_logs_of_a_process_are_found_and_large_data_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let open = |name: &str, options: &mut OpenOptions, bytes| {
            let file = options.create(true).open(path(name)).unwrap();
            // A hole: it takes no room.
            file.set_len(bytes).unwrap();
            file
        };
        let _log = open("log", OpenOptions::new().append(true), 2 << 20);
        let _small = open("small", OpenOptions::new().append(true), 100);
        let own = std::process::id();
        // Other tests of this process have files open as well.
        let found = large_logs(own, u64::MAX).unwrap();
        assert!(found.contains(&path("log")) && !found.contains(&path("small")), "{found:?}");
        let _data = open("data", OpenOptions::new().read(true).write(true), 3 << 30);
        let why = large_logs(own, 2 << 30).unwrap_err().to_string();
        assert!(why.contains("data of 3072 MiB") && why.contains("2048 MiB"), "{why}");
    }
}
