//! A server that runs on this machine, as the system sees it: the device under its data folder, and the CPU time of its process.
//!
//! Whether it does is not guessed from its address: behind a port of this machine may be a container or a tunnel, and its folder may
//! have the name of another server's. The process that is named in the server's own folder has to be alive, be one of such a server,
//! and see the same folder under that name.

use crate::address::System;
use crate::database::Database;
use crate::link::End;
use crate::listener;
use duel_process::{ProcessError, ProcessFiles, confinement, steady};
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of a file with a process's number: PostgreSQL's has eight short lines.
#[cfg(target_os = "linux")]
const MOST_PID_FILE_BYTES: u64 = 4096;
/// Where packages of MySQL and MariaDB keep that file, if not in the data folder.
const MYSQL_RUN_FOLDERS: [&str; 4] = ["/run/mysqld", "/var/run/mysqld", "/run/mariadb", "/var/run/mariadb"];
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
    process: Option<ProcessFiles>,
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
    process: ProcessFiles,
}

/// What runs a server.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The program that it runs.
    pub(crate) program: PathBuf,
    /// The folder of that.
    pub(crate) programs: PathBuf,
    /// The user and the group that it runs as.
    pub(crate) owner: (u32, u32),
    /// CPUs that it may run on, as the kernel lists them.
    pub(crate) cpus: Option<String>,
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
        let (folder, file) = match database.system() {
            System::Mysql => {
                let row = database.rows("SELECT @@datadir, @@pid_file").ok()?.into_iter().next()?;
                let [Some(folder), Some(file)] = row.as_slice() else { return None };
                let folder = PathBuf::from(folder);
                let file = mysql_pid_file(&folder, Path::new(file))?;
                (folder, file)
            }
            System::Postgres => {
                let folder = PathBuf::from(database.server_text("SHOW data_directory").ok()??);
                let file = folder.join("postmaster.pid");
                (folder, file)
            }
            System::Sqlite => return None,
        };
        if !folder.is_absolute() {
            return None;
        }
        let process: u32 = small_text(&file)?.lines().next()?.trim().parse().ok()?;
        let process = ProcessFiles::of(process);
        let name = String::from_utf8(process.bytes("comm").ok()?).ok()?;
        if !listener::programs(database.system()).contains(&name.trim()) {
            return None;
        }
        is_same(&folder, &process.inside(&folder)).then_some(Self { folder, process })
    }

    /// Its process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// By which programs and as whom it runs, for whoever runs them once more: nobody may gain a right by that.
    pub(crate) fn runs(&self) -> Result<Runs, ProcessError> {
        steady(&self.process, |status| {
            let no = |why: &str| ProcessError(format!("not available here: {why}"));
            if let Some(why) = confinement(&self.process)? {
                return Err(no(&format!("its server {why}; a copy would run with more rights than it has")));
            }
            let user = status.user.as_ref().ok_or_else(|| no("whose its server is cannot be found out"))?;
            if !fs::metadata(&self.folder).is_ok_and(|folder| folder.uid() == user.uid) {
                return Err(no("its server does not run as the owner of its data folder"));
            }
            let program = self.process.link("exe", "the program")?;
            let programs =
                program.parent().filter(|_| is_same(&program, &self.process.path("exe"))).map(Path::to_owned);
            let programs = programs.ok_or_else(|| no("the programs of its server are not those of this machine"))?;
            Ok(Runs { program, programs, owner: (user.uid, user.gid), cpus: status.cpus.clone() })
        })
    }
}

/// Where the file with the process's number is, as a MySQL server says. `None`: in another folder than such servers have it in: what a
/// server says is no leave to open anything.
fn mysql_pid_file(folder: &Path, named: &Path) -> Option<PathBuf> {
    let file = folder.join(named);
    let around = file.parent()?;
    let is_known = around == folder || MYSQL_RUN_FOLDERS.iter().any(|run| around == Path::new(run));
    is_known.then_some(file)
}

/// The text of a small file that somebody else has named. Opening a device or a pipe, or reading what the kernel makes up meanwhile, which
/// has no size, would do something or wait: so the file is looked at first, and opened only if it is a regular one of some bytes.
#[cfg(target_os = "linux")]
fn small_text(path: &Path) -> Option<String> {
    use rustix::fd::AsRawFd;
    use rustix::fs::{FileType, Mode, OFlags, fstat, open};
    use std::io::Read;
    let held = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let seen = fstat(&held).ok()?;
    let is_small = u64::try_from(seen.st_size).is_ok_and(|bytes| (1..=MOST_PID_FILE_BYTES).contains(&bytes));
    if !is_small || FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
        return None;
    }
    // The very file that was looked at. Its owner's lease on it is not waited for.
    let again = format!("/proc/self/fd/{}", held.as_raw_fd());
    let file = open(again, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = String::new();
    fs::File::from(file).take(MOST_PID_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Only Linux shows what is needed beside it.
#[cfg(not(target_os = "linux"))]
fn small_text(_: &Path) -> Option<String> {
    None
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    number(one).is_some_and(|found| Some(found) == number(other))
}

impl Machine {
    /// `None`: it is on another machine, or it cannot be seen that it is on this one.
    pub(crate) fn of(database: &mut Database, end: &End) -> Option<Self> {
        let Local { folder, process } = Local::of(database, end)?;
        let seen = fs::metadata(&folder).ok()?;
        let number = format!("{}:{}", major(seen.dev()), minor(seen.dev()));
        let device = fs::canonicalize(Path::new("/sys/dev/block").join(number)).ok();
        let is_whole = database.system() == System::Mysql;
        Some(Self {
            name: device.as_deref().and_then(|folder| Some(folder.file_name()?.to_string_lossy().replace('!', "/"))),
            device: device.map(|folder| folder.join("stat")),
            cpus: process.bytes("status").ok().and_then(|status| allowed_cpus(&String::from_utf8_lossy(&status))),
            process: is_whole.then_some(process),
        })
    }

    /// The device's name, such as `/dev/sda1`.
    pub(crate) fn device(&self) -> Option<String> {
        self.name.as_deref().map(|name| format!("/dev/{}", duel_model::sanitize_line(name)))
    }

    pub(crate) fn counted(&self) -> Counted {
        let device = self.device.as_deref().and_then(|path| device_reads(&fs::read_to_string(path).ok()?));
        let process = self.process.as_ref().and_then(|process| process.bytes("stat").ok());
        Counted {
            reads: device.map(|(reads, _)| reads),
            read_bytes: device.map(|(_, bytes)| bytes),
            cpu_ns: process.and_then(|stat| cpu_ns(&String::from_utf8_lossy(&stat))),
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
    #[cfg(target_os = "linux")]
    fn of_what_a_server_names_only_a_small_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("pid"), "77\n/data\n").unwrap();
        assert_eq!(small_text(&at("pid")).as_deref(), Some("77\n/data\n"));
        std::os::unix::fs::symlink(at("pid"), at("link")).unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::write(at("large"), vec![b'7'; MOST_PID_FILE_BYTES as usize + 1]).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for refused in
            [at("link"), at("empty"), at("large"), at("pipe"), at("none"), "/dev/zero".into(), "/proc/stat".into()]
        {
            assert_eq!(small_text(&refused), None, "{}", refused.display());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_process_runs_is_told_only_where_it_is_as_free_as_we_are_and_its_data_folder_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let sleeper = |words: &[&str]| {
            let mut command = std::process::Command::new(words[0]);
            command.args(&words[1..]).args(["sleep", "60"]).spawn().unwrap()
        };
        let runs = |pid: u32, folder: &Path| {
            Local { folder: folder.to_owned(), process: ProcessFiles::of(pid) }.runs().map_err(|why| why.0)
        };
        let mut process = sleeper(&["env"]);
        // It has its new name a moment before the kernel has told it what it starts with.
        let read = |pid: u32, file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let until_asleep = |pid: u32| {
            while read(pid, "comm") != b"sleep\n" || read(pid, "auxv").is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        };
        until_asleep(process.id());
        let found = runs(process.id(), folder.path()).unwrap();
        let ours = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        assert_eq!((found.owner, found.programs.join("sleep").exists()), (ours, true));
        if rustix::process::geteuid().is_root() {
            let others = tempfile::tempdir().unwrap();
            std::os::unix::fs::chown(others.path(), Some(65534), None).unwrap();
            let why = runs(process.id(), others.path()).unwrap_err();
            assert!(why.contains("does not run as the owner of its data folder"), "{why}");
            // Fewer capabilities are a wall that a copy would not have.
            let mut confined = sleeper(&["setpriv", "--bounding-set=-sys_admin"]);
            until_asleep(confined.id());
            let why = runs(confined.id(), folder.path()).unwrap_err();
            assert!(why.contains("fewer capabilities"), "{why}");
            confined.kill().unwrap();
            confined.wait().unwrap();
        }
        process.kill().unwrap();
        process.wait().unwrap();
    }

    #[test]
    fn a_server_has_its_number_in_its_data_folder_or_where_packages_have_it() {
        let file = |named: &str| mysql_pid_file(Path::new("/var/lib/mysql/"), Path::new(named));
        for named in ["x.pid", "/var/lib/mysql/x.pid", "/run/mysqld/mysqld.pid", "/var/run/mariadb/mariadb.pid"] {
            assert_eq!(file(named), Some(Path::new("/var/lib/mysql").join(named)), "{named}");
        }
        for named in ["/dev/zero", "../../../dev/zero", "/run/mysqld/../x", "/etc/passwd", "/", "", "/var/lib/mysql"] {
            assert_eq!(file(named), None, "{named}");
        }
    }

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
