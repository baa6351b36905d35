//! One thing set otherwise, in the words of the server's own program: other arguments, and other files in the place of those
//! that its configuration is made of. The server's own files are only read.

mod apache;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod nginx;
mod nginx_syntax;
mod reading;

use crate::{NoTwin, ServerProcess};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What is to be set otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// More workers.
    MoreWorkers,
    /// A worker for each CPU of the machine at least, on any of them.
    WorkersForAllCpus,
    /// Responses sent in large pieces: by `sendfile`, through large buffers, in large TLS records.
    LargePieces,
    /// No limit on bytes, requests and connections.
    NoLimits,
}

/// What a twin is given so that it is set up otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// All of its arguments, without the program's name.
    pub(crate) arguments: Vec<OsString>,
    /// Files that stand in the place of others.
    pub(crate) files: Vec<EditedFile>,
    /// What differs, in words.
    pub(crate) told: String,
    /// Something else may set it as it was, so that a twin may not be what it should be.
    pub(crate) may_not_hold: bool,
}

/// A file that stands in the place of another one, whose owner and mode it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditedFile {
    /// Where the server finds it.
    pub(crate) path: PathBuf,
    /// What it holds, without zero bytes: the twin makes sure that it replaces this and nothing else.
    pub(crate) was: Vec<u8>,
    /// What the twin finds.
    pub(crate) content: Vec<u8>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Permission bits for reading and writing.
    pub(crate) mode: u32,
}

/// What makes this setting of a server's twin.
///
/// # Errors
///
/// Why it cannot be made: another program, a configuration that is not understood or cannot be read, one that asks for it
/// already; or `stop` was set.
pub(crate) fn edit(server: &ServerProcess, setting: Setting, stop: &AtomicBool) -> Result<Edit, NoTwin> {
    let program = server.executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match program.as_str() {
        "nginx" | "openresty" | "nginx-debug" => nginx::edit(server, setting, stop),
        "apache2" | "httpd" => apache::edit(server, setting),
        _ => Err(NoTwin::new(format!(
            "not available: only nginx and Apache can be set up otherwise; this is {}",
            duel_model::sanitize_line(&program)
        ))),
    }
}

/// How many workers are more: one for each CPU that the server may use, and where there are as many, four times as many,
/// for those that mostly wait.
fn more_workers(now: usize, cpus: usize) -> usize {
    /// Each may take some megabytes for its connections alone, on a machine that is serving others.
    const MOST: usize = 64;
    if now < cpus { cpus } else { (4 * now).clamp(1, MOST.max(now + 1)) }
}

/// How many CPUs a list of the kernel holds, such as `0-3,8`; one at least.
fn count_of_cpus(list: &str) -> usize {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.checked_sub(first)?.saturating_add(1).min(8192))
    };
    list.split(',').filter_map(count).sum::<usize>().max(1)
}

/// How many CPUs the machine has.
fn online_cpus() -> usize {
    std::fs::read_to_string(ONLINE_CPUS).map_or(1, |list| count_of_cpus(&list))
}

/// Where Linux lists the CPUs that it uses.
pub(crate) const ONLINE_CPUS: &str = "/sys/devices/system/cpu/online";

#[cfg(test)]
mod tests {
    use super::{count_of_cpus, more_workers};

    #[test]
    fn cpus_are_counted() {
        assert_eq!(["0-3,8\n", "0", "7-2", "x", "0-99999999"].map(count_of_cpus), [5, 1, 1, 1, 8192]);
        assert_eq!(count_of_cpus("0-18446744073709551615"), 8192);
    }

    #[test]
    fn more_workers_are_never_fewer() {
        assert_eq!(more_workers(1, 8), 8);
        assert_eq!(more_workers(8, 8), 32);
        assert_eq!(more_workers(30, 8), 64);
        assert_eq!(more_workers(1000, 8), 1001);
    }
}
