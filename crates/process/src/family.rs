//! Who started whom, and who listens together.

use crate::files::ProcessFiles;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Most descriptors of a process that are looked at.
const MOST_DESCRIPTORS: usize = 65_536;

/// The process that started this one; `None` where it cannot be told.
pub fn parent(pid: u32) -> Option<u32> {
    parent_in(&ProcessFiles::of(pid).bytes("stat").ok()?)
}

/// The processes that this one has started, such as its workers, in order of their numbers.
pub fn children(pid: u32) -> Vec<u32> {
    descendants(pid, 1).into_iter().collect()
}

/// The processes that this one has started, those that they have started, and so on for so many generations. Each process of the system
/// is looked at once.
pub fn descendants(pid: u32, generations: usize) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: BTreeMap<u32, u32> = numbers.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    descendants_in(&parents, pid, generations)
}

/// The same of what is known of each process's parent.
fn descendants_in(parents: &BTreeMap<u32, u32>, pid: u32, generations: usize) -> BTreeSet<u32> {
    let (mut all, mut latest) = (BTreeSet::new(), BTreeSet::from([pid]));
    for _ in 0..generations {
        let next = parents.iter().filter(|(child, parent)| latest.contains(parent) && !all.contains(*child));
        latest = next.map(|(child, _)| *child).collect();
        all.extend(&latest);
    }
    all
}

/// Whether two processes hold a TCP socket in common that waits for connections.
pub fn listens_with(one: u32, other: u32) -> bool {
    let mut common = sockets(one);
    let others = sockets(other);
    common.retain(|inode| others.contains(inode));
    !common.is_empty() && listening(one).iter().any(|inode| common.contains(inode))
}

/// Whether a process, or one that it has started, holds the socket with this number.
pub fn holds_socket(pid: u32, number: u64) -> bool {
    std::iter::once(pid).chain(children(pid)).any(|one| sockets(one).contains(&number))
}

/// The parent in `/proc/PID/stat`. The name before it, in brackets, may hold anything.
fn parent_in(stat: &[u8]) -> Option<u32> {
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = String::from_utf8_lossy(stat.get(behind + 1..)?).into_owned();
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Sockets that a process holds, by their numbers. A link's whole text is looked at: a file may have any name.
fn sockets(pid: u32) -> BTreeSet<u64> {
    // Held until the last link is read.
    let files = ProcessFiles::of(pid);
    let Ok(entries) = fs::read_dir(files.path("fd")) else { return BTreeSet::new() };
    let links = entries.flatten().take(MOST_DESCRIPTORS).filter_map(|entry| fs::read_link(entry.path()).ok());
    let number = |link: std::path::PathBuf| {
        let inside = link.as_os_str().as_bytes().strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
        std::str::from_utf8(inside).ok()?.parse().ok()
    };
    links.filter_map(number).collect()
}

/// TCP sockets that wait for connections in a process's network.
fn listening(pid: u32) -> BTreeSet<u64> {
    let files = ProcessFiles::of(pid);
    let tables = ["net/tcp", "net/tcp6"].map(|table| files.bytes(table).unwrap_or_default());
    tables.iter().flat_map(|table| listening_in(&String::from_utf8_lossy(table))).collect()
}

/// Number, local and remote address, state (0A: listening), queues, timer, retransmits, user, timeout; then the inode.
fn listening_in(table: &str) -> Vec<u64> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.get(3) == Some(&"0A") { fields.get(9)?.parse().ok() } else { None }
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_name_does_not_hide_the_parent() {
        assert_eq!(parent_in(b"7 (a b) S 42 7 7 0 -1"), Some(42));
        assert_eq!(parent_in(b"7 (a) R 9 (b) S 42 7"), Some(42));
        assert_eq!(parent_in(b"7 (a) S"), None);
        assert_eq!(parent_in(b""), None);
    }

    #[test]
    fn descendants_are_told_for_so_many_generations_and_once_each() {
        let parents = BTreeMap::from([(2, 1), (3, 1), (4, 2), (5, 4), (6, 5), (9, 8)]);
        let of = |pid, generations| descendants_in(&parents, pid, generations).into_iter().collect::<Vec<_>>();
        assert_eq!(of(1, 1), [2, 3]);
        assert_eq!(of(1, 3), [2, 3, 4, 5]);
        assert_eq!(of(1, 9), [2, 3, 4, 5, 6]);
        assert_eq!((of(1, 0), of(7, 4)), (vec![], vec![]));
        // Numbers are given anew while they are read.
        let circle = BTreeMap::from([(1, 2), (2, 1)]);
        assert_eq!(descendants_in(&circle, 1, 9), BTreeSet::from([1, 2]));
    }

    #[test]
    fn a_listening_socket_is_told_from_a_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0\n\
             \x20  1: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 0\n";
        assert_eq!(listening_in(table), [77]);
    }

    #[test]
    fn this_very_process_listens_with_itself() {
        let pid = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listens_with(pid, pid));
        let _connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!listens_with(pid, u32::MAX));
        assert!(parent(pid).is_some_and(|parent| children(parent).contains(&pid)));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_stumble(stat: Vec<u8>, table in "([0-9A: ]|\n){0,60}") {
            let _ = (parent_in(&stat), listening_in(&table));
        }
    }
}
