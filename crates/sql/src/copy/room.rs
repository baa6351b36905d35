//! The room that a copy takes beside its server: on their file system, and in the machine's memory. Neither may run full.

use duel_load::WorkloadError;
use duel_model::format_bytes;
use rustix::fs::statvfs;
use std::fs;
use std::path::Path;

/// What is left for its server in any case: as much as PostgreSQL's log takes where nobody says otherwise, and ten times MariaDB's.
pub(super) const RESERVE_BYTES: u64 = 1 << 30;

/// What the settings of a copy, one of which may be changed, make it take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Its memory.
    pub(super) memory_bytes: u64,
    /// Its log, when it has grown.
    pub(super) log_bytes: u64,
}

impl Sizes {
    /// What has to be free where a copy of so many bytes is made: its log, and a reserve, or as much again.
    pub(super) fn needed_bytes(self, copy_bytes: u64) -> u64 {
        copy_bytes.saturating_add(copy_bytes.max(self.log_bytes.saturating_add(RESERVE_BYTES)))
    }
}

/// Bytes that are free in the file system around a folder.
pub(super) fn free_bytes(folder: &Path) -> Result<u64, WorkloadError> {
    let found = statvfs(folder);
    let found = found.map_err(|errno| WorkloadError(format!("{}: {errno}", super::shown(folder))))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Why the machine's memory does not take so much more, or that of duel's control group; `None` where it does.
pub(super) fn lacks_memory(bytes: u64) -> Option<String> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let has = [
        (available_bytes(&read(Path::new("/proc/meminfo"))?), "available in this machine's memory"),
        (
            group_bytes(&read(Path::new("/proc/self/cgroup")).unwrap_or_default(), read),
            "what duel's control group may have",
        ),
    ];
    has.into_iter().find_map(|(has, of_what)| {
        let has = has.filter(|has| *has < bytes)?;
        let [bytes, has] = [bytes, has].map(|bytes| format_bytes(bytes as f64));
        Some(format!("a copy takes {bytes} of memory, and {has} are {of_what}"))
    })
}

/// Of `/proc/meminfo`.
fn available_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of a process's groups and of those around them, of either version: by its `/proc/PID/cgroup`.
fn group_bytes(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        // `0::/PATH` of version 2, `4:memory:/PATH` of version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (mount, file) = match controllers {
            "" => (Path::new("/sys/fs/cgroup"), "memory.max"),
            _ => (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        };
        let is_of_memory = controllers.is_empty() || controllers.split(',').any(|name| name == "memory");
        let group = mount.join(path.trim_start_matches('/'));
        let around = group.ancestors().filter(|folder| is_of_memory && folder.starts_with(mount));
        // "max" is none.
        around.filter_map(|folder| read(&folder.join(file))?.trim().parse::<u64>().ok()).collect::<Vec<_>>()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_beside_a_copy_is_its_log_and_a_reserve_or_as_much_again() {
        let sizes = Sizes { memory_bytes: 0, log_bytes: 12 << 30 };
        assert_eq!(sizes.needed_bytes(1 << 30), (1 << 30) + (12 << 30) + RESERVE_BYTES);
        assert_eq!(sizes.needed_bytes(100 << 30), 200 << 30);
    }

    #[test]
    fn the_least_limit_around_is_the_one() {
        let files = |path: &Path| match path.to_str()? {
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".to_owned()),
            "/sys/fs/cgroup/a/memory.max" => Some("5000\n".to_owned()),
            "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => Some("4000\n".to_owned()),
            "/sys/fs/cgroup/memory/memory.limit_in_bytes" => Some("9223372036854771712\n".to_owned()),
            _ => None,
        };
        assert_eq!(group_bytes("0::/a/b\n", files), Some(5000));
        assert_eq!(group_bytes("4:memory:/x/y\n3:cpu,cpuacct:/x\n0::/\n", files), Some(4000));
        assert_eq!(group_bytes("3:cpu:/x\n\n", files), None);
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:   3 kB\n"), Some(3072));
        assert!(lacks_memory(1).is_none());
        let why = lacks_memory(u64::MAX).unwrap();
        assert!(why.contains("available in this machine's memory"), "{why}");
    }
}
