//! A shell on another machine, through the system's ssh: the user's config, keys, agent and jump hosts just work.

use super::control::ControlFolder;
use super::{Reader, Shell};
use crate::access::Destination;
use crate::error::HostError;
use duel_model::sanitize_line;
use openssh::{ControlPersist, KnownHosts, SessionBuilder, Stdio};
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Starts a shell over ssh.
pub(super) struct Ssh {
    pub(super) destination: Destination,
    /// Instead of the user's and the system's configuration.
    pub(super) config: Option<PathBuf>,
    pub(super) timeout: Duration,
    /// What runs there, in words that mean the same to every login shell.
    pub(super) command: String,
}

/// A connection that nobody uses ends after this time, so that none is left when duel is killed.
const IDLE_S: usize = 5;
/// A host that answers nothing for three times this long is gone.
const ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// What comes first holds, in ssh's configuration, so the user's cannot undo this. `Include` tells nothing about a file
/// that is not there.
const CONFIG: &str = "ForwardAgent no\nForwardX11 no\nClearAllForwardings yes\nPermitLocalCommand no\nRequestTTY no\n\
    RemoteCommand none\nTunnel no\nStrictHostKeyChecking yes\nNumberOfPasswordPrompts 0\nVisualHostKey no\n";

impl Reader for Ssh {
    fn start(&self) -> Result<Shell, HostError> {
        let failed = |why: String| HostError::Start {
            how: format!("over ssh to {}", sanitize_line(self.destination.as_str())),
            why,
        };
        let told = |error: &dyn Error| failed(reason(error));
        // Asynchronous only while connecting: after that the streams are pipes that ssh serves.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| told(&error))?;
        let folder = ControlFolder::new().map_err(|error| told(&error))?;
        let config = folder.config();
        write_config(&config, self.config.as_deref()).map_err(|error| told(&error))?;
        let mut builder = SessionBuilder::default();
        builder
            .known_hosts_check(KnownHosts::Strict)
            .connect_timeout(self.timeout.max(Duration::from_secs(1)))
            .server_alive_interval(ALIVE_INTERVAL)
            .control_directory(folder.path())
            .control_persist(NonZeroUsize::new(IDLE_S).map_or(ControlPersist::Forever, ControlPersist::IdleFor))
            .config_file(&config);
        // ssh's own timeout covers connecting and exchanging keys; this one covers the rest too.
        let patience = self.timeout + Duration::from_secs(5);
        let streams = runtime.block_on(async {
            let connect = tokio::time::timeout(patience, builder.connect_mux(self.destination.as_str()));
            let session = match connect.await {
                Ok(session) => Arc::new(session.map_err(|error| told(&error))?),
                Err(_) => return Err(failed(format!("no connection within {} s", patience.as_secs()))),
            };
            let (stdin_far, stdin) = io::pipe().map_err(|error| told(&error))?;
            let (stdout, stdout_far) = io::pipe().map_err(|error| told(&error))?;
            let (stderr, stderr_far) = io::pipe().map_err(|error| told(&error))?;
            // The user's login shell, whatever it is, sees nothing but this; the script comes behind it.
            let mut command = session.arc_raw_command(&self.command);
            command
                .stdin(Stdio::from(OwnedFd::from(stdin_far)))
                .stdout(Stdio::from(OwnedFd::from(stdout_far)))
                .stderr(Stdio::from(OwnedFd::from(stderr_far)));
            let child = tokio::time::timeout(patience, command.spawn())
                .await
                .map_err(|_| failed(format!("no shell within {} s", patience.as_secs())))?
                .map_err(|error| told(&error))?;
            Ok((child, OwnedFd::from(stdin), OwnedFd::from(stdout), OwnedFd::from(stderr)))
        });
        let (child, stdin, stdout, stderr) = streams?;
        Ok(Shell {
            stdin: File::from(stdin),
            stdout: File::from(stdout),
            stderr: File::from(stderr),
            // Dropped in this order: the session with its connection, the runtime that it needs for that, the folder.
            keeper: Box::new((child, runtime, folder)),
        })
    }
}

/// Ours first, then what the user gave, or what ssh would have read without us.
fn write_config(path: &Path, given: Option<&Path>) -> io::Result<()> {
    let mut text = CONFIG.to_owned();
    match given {
        Some(given) => {
            let given = given.canonicalize()?;
            let given = given.to_str().filter(|given| !given.contains(['"', '\n', '*', '?', '[']));
            let given =
                given.ok_or_else(|| io::Error::other("the ssh config file has a name that ssh cannot include"))?;
            text.push_str(&format!("Include \"{given}\"\n"));
        }
        None => text.push_str("Include ~/.ssh/config\nInclude /etc/ssh/ssh_config\n"),
    }
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

/// The deepest cause says the most: "Permission denied (publickey)" rather than "failed to connect".
fn reason(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let text = deepest.to_string();
    // ssh frames its warning of a changed key with lines of @; what remains is said in the order of the lines.
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric)).collect();
    let changed = lines.iter().any(|line| line.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"));
    let told = if changed { "its host key has changed since it was last known".to_owned() } else { lines.join("; ") };
    let hint = if changed || text.contains("Host key verification failed") {
        " (connect once with ssh by hand and check the key)"
    } else {
        ""
    };
    format!("{}{hint}", sanitize_line(if told.is_empty() { "ssh said nothing" } else { &told }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_said_is_told_in_one_line() {
        let changed = "@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@\nlong story\x1b[2J";
        let told = reason(&io::Error::other(changed));
        assert!(told.starts_with("its host key has changed") && !told.contains(['\n', '\x1b']), "{told}");
        let told = reason(&io::Error::other("No ED25519 host key is known\r\nHost key verification failed."));
        assert!(told.contains("by hand") && !told.contains('\n'), "{told}");
    }

    #[test]
    fn ssh_understands_the_config_and_obeys_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, users) = (folder.path().join("config"), folder.path().join("users"));
        std::fs::write(&users, "Host web1\n  HostName 192.0.2.7\n  ForwardAgent yes\n  RemoteCommand rm -rf /\n")
            .unwrap();
        write_config(&path, Some(&users)).unwrap();
        // Says how it understands its configuration, and connects to nothing.
        let Ok(output) = std::process::Command::new("ssh").arg("-G").arg("-F").arg(&path).arg("web1").output() else {
            println!("skipped ssh_understands_the_config_and_obeys_it: no ssh here");
            return;
        };
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for line in [
            "hostname 192.0.2.7",
            "forwardagent no",
            "forwardx11 no",
            "clearallforwardings yes",
            "stricthostkeychecking true",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}: {told}");
        }
        assert!(!told.contains("rm -rf"), "{told}");
    }

    #[test]
    fn the_users_config_comes_after_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        write_config(&path, None).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.find("ForwardAgent no").unwrap() < text.find("Include").unwrap());
        assert!(write_config(&folder.path().join("x"), Some(Path::new("/does/not/exist"))).is_err());
    }
}
