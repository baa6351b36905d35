//! An sshd of a test's own. The tests of the whole program use this file too.

use super::child::Killed;
use super::prerequisites::{in_own_network, program};
use super::{free_port, wait_until};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs a test where ports and `/run` are its own; sshd wants a folder there for its privilege separation.
pub(crate) fn with_sshd(test: &str, body: impl FnOnce()) {
    if ["sshd", "ssh-keygen", "ssh"].iter().all(|name| program(name, test).is_some()) {
        in_own_network(test, body);
    }
}

/// An sshd with a key of its own, and a client's configuration that knows it.
pub(crate) struct Sshd {
    folder: TempDir,
    pub(crate) port: u16,
    pub(crate) server: Killed,
}

impl Sshd {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// The same, with a login shell that runs this first.
    pub(crate) fn start_with(login: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user", "stranger"] {
            keygen(&folder.path().join(key));
        }
        fs::copy(folder.path().join("user.pub"), folder.path().join("authorized")).unwrap();
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPermitRootLogin yes\nUsePAM no\nStrictModes no\n\
             PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nAllowAgentForwarding yes\nX11Forwarding yes\n",
            path("host"),
            path("authorized")
        );
        let config =
            if login.is_empty() { config } else { format!("{config}ForceCommand /bin/sh {}\n", path("login")) };
        fs::write(folder.path().join("login"), format!("{login}\n$SSH_ORIGINAL_COMMAND\n")).unwrap();
        fs::write(folder.path().join("sshd_config"), config).unwrap();
        let sshd = program("sshd", "").unwrap();
        let log = fs::File::create(folder.path().join("sshd.log")).unwrap();
        let server = Command::new(sshd).args(["-D", "-e", "-f", &path("sshd_config")]).stderr(log).spawn().unwrap();
        let sshd = Self { folder, port, server: Killed(server) };
        sshd.known("host");
        sshd.config("user", "");
        wait_until("sshd listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        sshd
    }

    /// Writes down a key as the host's.
    pub(crate) fn known(&self, key: &str) {
        let public = fs::read_to_string(self.folder.path().join(format!("{key}.pub"))).unwrap();
        fs::write(self.folder.path().join("known"), format!("[127.0.0.1]:{} {public}", self.port)).unwrap();
    }

    /// Writes the client's configuration: the host's name is `far`.
    pub(crate) fn config(&self, key: &str, more: &str) {
        let folder = self.folder.path().display();
        let text = format!(
            "Host far\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {folder}/{key}\n  IdentitiesOnly yes\n\
             UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile /dev/null\n{more}",
            self.port
        );
        fs::write(self.folder.path().join("config"), text).unwrap();
    }

    /// The folder of its keys and files.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("sshd.log")).unwrap()
    }
}

fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status().unwrap();
    assert!(made.success());
}
