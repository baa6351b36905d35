//! A PostgreSQL of a test's own.

use super::{Place, free_port, skipped, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running one.
pub(crate) struct Postgres {
    process: Child,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
}

const HBA: &str = "\
local all,replication all trust
host all,replication guarded 127.0.0.1/32 scram-sha-256
host all,replication all 127.0.0.1/32 trust
";

impl Postgres {
    /// It, where PostgreSQL is installed.
    pub(crate) fn start(place: &Place) -> Option<Self> {
        Self::start_with(place, "postgres", &["-cfsync=off"])
    }

    /// The same in a folder of this name, with these words behind its program.
    pub(crate) fn start_with(place: &Place, name: &str, settings: &[&str]) -> Option<Self> {
        let programs = programs()?;
        let folder = folder(place, name);
        let data = folder.join("data");
        let made = as_user(&programs.join("initdb"), &folder)
            .args(["-U", "u", "--auth=trust", "-N", "--locale=C", "-E", "UTF8", "-D"])
            .arg(&data)
            .status();
        assert!(made.unwrap().success(), "initdb");
        std::fs::write(data.join("pg_hba.conf"), HBA).unwrap();
        let server = Self::on(&programs, folder, settings);
        wait_until("PostgreSQL takes connections", || {
            place.duel(["cleanup", &server.address("u", "postgres")]).code == Some(0)
        });
        Some(server)
    }

    /// A standby that follows this one, in a folder of that name.
    pub(crate) fn standby(&self, place: &Place, name: &str) -> Self {
        let programs = programs().unwrap();
        let folder = folder(place, name);
        let copied = as_user(&programs.join("pg_basebackup"), &folder)
            .args(["-R", "-c", "fast", "-N", "-U", "u", "-p", &self.port.to_string(), "-h"])
            .arg(&self.folder)
            .arg("-D")
            .arg(folder.join("data"))
            .status();
        assert!(copied.unwrap().success(), "pg_basebackup");
        Self::on(&programs, folder, &["-cfsync=off"])
    }

    /// One whose data lies on a disk of so many MB, in a mount that it alone sees; `None` where there can be none, which is said.
    pub(crate) fn start_on_small_disk(place: &Place, megabytes: u32) -> Option<Self> {
        let programs = programs()?;
        let Some((uid, gid)) = user() else {
            skipped("only root may mount a small disk for another user");
            return None;
        };
        let (folder, disk, port) = (folder(place, "small"), folder(place, "small/disk"), free_port());
        // Segments of the log are 16 MB each where nobody says otherwise, which is all of the disk.
        const SCRIPT: &str = "mount -t tmpfs -o size=${1}m,uid=$2,gid=$3 tmpfs $4 || exit 77
            as=\"setpriv --reuid=$2 --regid=$3 --clear-groups\"
            $as $5/initdb -U u --auth=trust -N --locale=C -E UTF8 --wal-segsize=1 -D $4/data || exit 1
            exec $as $5/postgres -D $4/data -k $6 -p $7 -c listen_addresses= -c fsync=off -c shared_buffers=16MB \
                -c min_wal_size=2MB -c max_wal_size=4MB >$6/log 2>&1";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", SCRIPT, "sh"]).args([megabytes, uid, gid].map(|number| number.to_string()));
        command.arg(&disk).arg(&programs).arg(&folder).arg(port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        let mut server = Self { process: command.spawn().unwrap(), folder, port };
        let mut ended = None;
        wait_until("PostgreSQL on a small disk", || {
            ended = server.process.try_wait().unwrap();
            ended.is_some() || place.duel(["cleanup", &server.address("u", "postgres")]).code == Some(0)
        });
        if let Some(status) = ended {
            assert_eq!(status.code(), Some(77), "it does not start");
            skipped("no mount here");
            return None;
        }
        Some(server)
    }

    /// Fills its small disk, and leaves so many bytes.
    pub(crate) fn fill_disk(&self, left_bytes: u64) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let full = std::io::copy(&mut std::io::repeat(0), &mut file).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        file.set_len(file.metadata().unwrap().len() - left_bytes).unwrap();
    }

    /// Makes room on it, once the server has noticed that there is none.
    pub(crate) fn free_disk_when_it_is_full(&self) {
        let log = self.folder.join("log");
        wait_until("the disk is full", || {
            std::fs::read_to_string(&log).unwrap_or_default().contains("No space left on device")
        });
        std::fs::remove_file(self.filler()).unwrap();
    }

    /// In the mount that the server alone sees.
    fn filler(&self) -> String {
        format!("/proc/{}/root{}/disk/filler", self.process.id(), self.folder.display())
    }

    fn on(programs: &Path, folder: PathBuf, settings: &[&str]) -> Self {
        let port = free_port();
        let process = as_user(&programs.join("postgres"), &folder)
            .arg("-D")
            .arg(folder.join("data"))
            .arg("-k")
            .arg(&folder)
            .args([&format!("-p{port}"), "-clisten_addresses=127.0.0.1", "-cshared_buffers=16MB"])
            .args(settings)
            .spawn();
        let server = Self { process: process.unwrap(), folder, port };
        wait_until("PostgreSQL", || server.folder.join(format!(".s.PGSQL.{port}")).exists());
        server
    }

    /// Makes a primary of a standby.
    pub(crate) fn promote(&self) {
        let promoted = as_user(&programs().unwrap().join("pg_ctl"), &self.folder)
            .args(["promote", "-w", "-D"])
            .arg(self.folder.join("data"))
            .status();
        assert!(promoted.unwrap().success(), "pg_ctl promote");
    }

    /// By its socket.
    pub(crate) fn address(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// Debian has a folder for each version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").exists());
    if found.is_none() {
        skipped("PostgreSQL is not installed");
    }
    found
}

/// Whom it runs for where we are root: it must not.
fn user() -> Option<(u32, u32)> {
    rustix::process::geteuid().is_root().then(|| {
        let users = std::fs::read_to_string("/etc/passwd").unwrap();
        let line = users.lines().find(|line| line.starts_with("postgres:")).unwrap().to_owned();
        let mut ids = line.split(':').skip(2).map(|id| id.parse::<u32>().unwrap());
        (ids.next().unwrap(), ids.next().unwrap())
    })
}

fn folder(place: &Place, name: &str) -> PathBuf {
    let folder = place.path(name);
    std::fs::create_dir_all(&folder).unwrap();
    if let Some((uid, gid)) = user() {
        chown(&folder, Some(uid), Some(gid)).unwrap();
    }
    folder
}

fn as_user(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(folder);
    if let Some((uid, gid)) = user() {
        command.uid(uid).gid(gid);
    }
    command
}
