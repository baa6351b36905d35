//! Files that duel was started with, beyond its three streams: they are for duel, and not for what duel starts.
//!
//! A shell may have left a terminal, a socket or a file with secrets open (`3<file`, a process substitution). What duel opens
//! itself is closed in its children by the standard library; what it was started with would go to all of them, and some run
//! what a server's owner has chosen.

/// Marks such files as closed on `exec`. What cannot be marked, as where a filter of system calls forbids it, stays as it is.
#[cfg(target_os = "linux")]
pub(crate) fn keep_from_children() {
    let Ok(own) = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()) else {
        return;
    };
    for number in goes_to_children() {
        let _ = marked(&own, number);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_from_children() {}

/// Numbers of files beyond the streams that a child would find open.
#[cfg(target_os = "linux")]
fn goes_to_children() -> Vec<i32> {
    // O_CLOEXEC in `/proc/self/fdinfo`, octal as in fcntl.h.
    const CLOSED_ON_EXEC: u32 = 0o2000000;
    const STREAMS: i32 = 3;
    let Ok(entries) = std::fs::read_dir("/proc/self/fdinfo") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_open = |number: &i32| {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|f| f & CLOSED_ON_EXEC == 0)
    };
    numbers.filter(|number| *number >= STREAMS).filter(is_open).collect()
}

/// The mark belongs to a number, and a number that nothing of ours owns cannot be marked without `unsafe`. So the file is
/// copied, the number closed, and the copy's copy, which is marked, gets the number: the lowest that is free from there on,
/// since no other thread runs yet.
#[cfg(target_os = "linux")]
fn marked(own: &std::os::fd::OwnedFd, number: i32) -> std::io::Result<()> {
    use rustix::process::{PidfdGetfdFlags, pidfd_getfd};
    use std::os::fd::IntoRawFd;
    let copy = pidfd_getfd(own, number, PidfdGetfdFlags::empty())?;
    nix::unistd::close(number)?;
    // Open until the process ends: options may name it (`/dev/fd/3`).
    let _ = rustix::io::fcntl_dupfd_cloexec(&copy, number)?.into_raw_fd();
    Ok(())
}
