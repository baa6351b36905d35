//! A server that runs on this machine, as the system sees it: the device under its data folder, and the CPU time of its process.
//!
//! Whether it does is not guessed from its address: behind a port of this machine may be a container or a tunnel, and its folder may
//! have the name of another server's. The process that is named in the server's own folder has to be alive, be one of such a server,
//! and see the same folder under that name.

use crate::address::System;
use crate::database::Database;
use crate::link::End;
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The unit that the kernel counts a device's bytes in, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;
/// The unit that it shows CPU times in (`USER_HZ`), whatever it counts them in: 100 for each second on all systems that we are built for.
const TICK_NS: u64 = 10_000_000;

/// Where to look.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The kernel's file about the device; `None`: the file system has none of its own.
    device: Option<PathBuf>,
    name: Option<String>,
    /// Where one process is the whole server.
    process: Option<PathBuf>,
    pub(crate) cpus: Option<u64>,
}

/// What was counted until now; all of it grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) reads: Option<u64>,
    pub(crate) read_bytes: Option<u64>,
    pub(crate) cpu_ns: Option<u64>,
}

/// Where a server of this machine is.
#[derive(Debug)]
pub(crate) struct Local {
    /// Its data folder.
    pub(crate) folder: PathBuf,
    /// The kernel's folder about its process.
    process: PathBuf,
}

impl Local {
    /// `None`: it is on another machine, or it cannot be seen that it is on this one.
    pub(crate) fn of(database: &mut Database, end: &End) -> Option<Self> {
        let is_near = match end {
            End::Unix(_) => true,
            End::Tcp(peer) => peer.ip().is_loopback(),
        };
        if !is_near {
            return None;
        }
        let (folder, process) = match database.system() {
            System::Mysql => {
                let row = database.rows("SELECT @@datadir, @@pid_file").ok()?.into_iter().next()?;
                let [Some(folder), Some(file)] = row.as_slice() else { return None };
                let folder = PathBuf::from(folder);
                let text = fs::read_to_string(folder.join(file)).ok()?;
                (folder, text.trim().parse::<u32>().ok()?)
            }
            System::Postgres => {
                let folder = PathBuf::from(database.text("SHOW data_directory").ok()??);
                let text = fs::read_to_string(folder.join("postmaster.pid")).ok()?;
                (folder, text.lines().next()?.trim().parse().ok()?)
            }
            System::Sqlite => return None,
        };
        let of_process = PathBuf::from(format!("/proc/{process}"));
        let name = fs::read_to_string(of_process.join("comm")).ok()?;
        if !["mariadbd", "mysqld", "postgres"].contains(&name.trim()) || !folder.is_absolute() {
            return None;
        }
        let theirs = of_process.join("root").join(folder.strip_prefix("/").ok()?);
        is_same(&folder, &theirs).then_some(Self { folder, process: of_process })
    }

    /// The folder of the program that it runs, where that is the one that stands there on this machine.
    pub(crate) fn programs(&self) -> Option<PathBuf> {
        let program = fs::read_link(self.process.join("exe")).ok()?;
        is_same(&program, &self.process.join("exe")).then_some(())?;
        program.parent().map(Path::to_owned)
    }
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    number(one).is_some_and(|found| Some(found) == number(other))
}

impl Machine {
    /// `None`: it is on another machine, or it cannot be seen that it is on this one.
    pub(crate) fn of(database: &mut Database, end: &End) -> Option<Self> {
        let Local { folder, process: of_process } = Local::of(database, end)?;
        let seen = fs::metadata(&folder).ok()?;
        let number = format!("{}:{}", major(seen.dev()), minor(seen.dev()));
        let device = fs::canonicalize(Path::new("/sys/dev/block").join(number)).ok();
        let is_whole = database.system() == System::Mysql;
        Some(Self {
            name: device.as_deref().and_then(|folder| Some(folder.file_name()?.to_string_lossy().replace('!', "/"))),
            device: device.map(|folder| folder.join("stat")),
            process: is_whole.then(|| of_process.join("stat")),
            cpus: fs::read_to_string(of_process.join("status")).ok().as_deref().and_then(allowed_cpus),
        })
    }

    /// The device's name, such as `/dev/sda1`.
    pub(crate) fn device(&self) -> Option<String> {
        self.name.as_deref().map(|name| format!("/dev/{}", duel_model::sanitize_line(name)))
    }

    pub(crate) fn counted(&self) -> Counted {
        let read = |path: &Option<PathBuf>| fs::read_to_string(path.as_deref()?).ok();
        let device = read(&self.device).as_deref().and_then(device_reads);
        Counted {
            reads: device.map(|(reads, _)| reads),
            read_bytes: device.map(|(_, bytes)| bytes),
            cpu_ns: read(&self.process).as_deref().and_then(cpu_ns),
        }
    }
}

/// Reads of a device, and the bytes of these.
fn device_reads(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let reads = fields.next()??;
    Some((reads, fields.nth(1)??.checked_mul(SECTOR_BYTES)?))
}

/// CPU time of a process, user and system. Its name stands in brackets, and may have spaces and brackets in it.
fn cpu_ns(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let (user, system) = (fields.next()??, fields.next()??);
    user.checked_add(system)?.checked_mul(TICK_NS)
}

/// How many CPUs a process may run on.
fn allowed_cpus(status: &str) -> Option<u64> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let each = list.trim().split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    each.sum::<Option<u64>>().filter(|&cpus| cpus > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read_and_what_it_does_not_is_not_known() {
        let stat = "    1209       3    38752     1000      0        0        0        0        0      900     1000";
        assert_eq!(device_reads(stat), Some((1209, 38752 * 512)));
        assert_eq!(device_reads("1209 3"), None);
        assert_eq!(device_reads(""), None);
        let stat = "77 (a ) b) S 1 77 77 0 -1 4194560 9 0 0 0 120 30 0 0 20 0 9 0 5";
        assert_eq!(cpu_ns(stat), Some(1_500_000_000));
        assert_eq!(cpu_ns("77 (x) S 1"), None);
        assert_eq!(allowed_cpus("Name:\tx\nCpus_allowed_list:\t0-3,6\n"), Some(5));
        assert_eq!(allowed_cpus("Cpus_allowed_list:\t3-0\n"), None);
        assert_eq!(allowed_cpus("Name:\tx\n"), None);
    }
}
