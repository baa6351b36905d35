//! A MariaDB of a test's own.

use super::{Place, free_port, skipped, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const DAEMON: &str = "/usr/sbin/mariadbd";

/// A running one.
pub(crate) struct MariaDb {
    process: Child,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
}

impl MariaDb {
    /// It, where MariaDB is installed, with these words behind its program. What stands in `setup`, a statement on each line, it does as it
    /// starts. As packages have it, its data are in a folder of its user's alone, and around that is one of root's.
    pub(crate) fn start_with(place: &Place, name: &str, settings: &[&str], setup: &str) -> Option<Self> {
        if !Path::new(DAEMON).exists() {
            skipped("MariaDB is not installed");
            return None;
        }
        let folder = place.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        // When it starts, MariaDB removes all temporary tables that it finds, those of others too.
        let [data, temporary] = ["data", "tmp"].map(|name| folder.join(name));
        for own in [&data, &temporary] {
            std::fs::create_dir(own).unwrap();
            std::fs::set_permissions(own, PermissionsExt::from_mode(0o700)).unwrap();
        }
        let setup = place.file(&format!("{name}.sql"), format!("CREATE DATABASE db;\n{setup}\n"));
        // Whom it runs for where we are root: it must not.
        let user = user();
        if let Some((_, uid, gid)) = &user {
            for own in [&data, &temporary] {
                chown(own, Some(*uid), Some(*gid)).unwrap();
            }
        }
        let as_user = user.as_ref().map(|(name, ..)| format!("--user={name}"));
        let mut install = Command::new("mariadb-install-db");
        install.stdin(Stdio::null()).current_dir("/").env("TMPDIR", &temporary);
        install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=socket"]);
        install.args(["--innodb-log-file-size=4M", &format!("--datadir={}", data.display())]).args(as_user);
        let installed = install.output().unwrap();
        let [said, complained] = [&installed.stdout, &installed.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(installed.status.success(), "mariadb-install-db: {said}{complained}");
        let port = free_port();
        let mut server = quiet(DAEMON);
        server.env("TMPDIR", &temporary);
        if let Some((_, uid, gid)) = user {
            server.uid(uid).gid(gid);
        }
        server.args(["--no-defaults", "--bind-address=127.0.0.1", "--innodb-log-file-size=4M"]);
        server.args(["--innodb-buffer-pool-size=16M", &format!("--port={port}"), &format!("--init-file={setup}")]);
        for (option, file) in [("datadir", ""), ("socket", "socket"), ("pid-file", "pid")] {
            server.arg(format!("--{option}={}/{file}", data.display()));
        }
        let server = Self { process: server.args(settings).spawn().unwrap(), folder, port };
        // What is to be set up is done before anybody is greeted.
        wait_until("MariaDB", || {
            let greeting =
                UnixStream::connect(server.folder.join("data/socket")).and_then(|mut line| line.read(&mut [0]));
            greeting.is_ok_and(|bytes| bytes == 1)
        });
        Some(server)
    }

    /// Whom it runs for, and who has a login by that.
    pub(crate) fn owner() -> String {
        let own = || {
            let (users, number) = (passwords(), rustix::process::geteuid().as_raw().to_string());
            let line = users.lines().find(|line| line.split(':').nth(2) == Some(&number)).unwrap();
            line.split(':').next().unwrap().to_owned()
        };
        user().map_or_else(own, |(name, ..)| name)
    }

    /// The number of its process, as it has written it down.
    pub(crate) fn number(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.join("data/pid")).ok().filter(|number| !number.is_empty())
    }

    /// By its socket.
    pub(crate) fn address(&self, user: &str) -> String {
        format!("mysql://{user}@/db?socket={}/data/socket", self.folder.display())
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}

fn user() -> Option<(String, u32, u32)> {
    rustix::process::geteuid().is_root().then(|| {
        let users = passwords();
        let line = users.lines().find(|line| line.starts_with("mysql:")).unwrap();
        let mut ids = line.split(':').skip(2).map(|id| id.parse::<u32>().unwrap());
        ("mysql".to_owned(), ids.next().unwrap(), ids.next().unwrap())
    })
}

fn passwords() -> String {
    std::fs::read_to_string("/etc/passwd").unwrap()
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    command
}
