//! How a host is reached, and which of its processes is the server.

use crate::error::HostError;
use duel_model::sanitize_line;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the host is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostAccess {
    /// It is this machine.
    Local,
    /// Over the system's ssh, to a destination as ssh takes it. Made by [`HostAccess::ssh`].
    Ssh(Destination),
}

/// An ssh destination that cannot be taken for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination(String);

impl Destination {
    /// As ssh takes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HostAccess {
    /// Over ssh to `HOST`, `USER@HOST`, a name of the user's ssh config, or `ssh://USER@HOST:PORT`.
    pub fn ssh(destination: &str) -> Result<Self, HostError> {
        let wrong = |why| Err(HostError::Destination { given: sanitize_line(destination), why });
        let rest = destination.strip_prefix("ssh://").unwrap_or(destination);
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        if host.is_empty() {
            return wrong("no host is named");
        }
        // ssh would take these for options, wherever they stand; since 2023 it refuses most of the other characters too.
        if destination.starts_with('-') || rest.starts_with('-') || host.starts_with('-') {
            return wrong("it begins with '-'");
        }
        if destination.len() > 1024 {
            return wrong("it is too long");
        }
        let strange = |c: char| c.is_whitespace() || c.is_control() || "\"'`$\\;&<>|(){}*?!#".contains(c);
        if destination.contains(strange) {
            return wrong("it holds a character that no host's name has");
        }
        Ok(Self::Ssh(Destination(destination.to_owned())))
    }

    /// Where, as it is said in messages: `on this machine`, `over ssh to web1`.
    pub fn how(&self) -> String {
        match self {
            Self::Local => "on this machine".to_owned(),
            Self::Ssh(destination) => format!("over ssh to {}", sanitize_line(&destination.0)),
        }
    }
}

/// Which process of the host is the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// None is looked for.
    Unknown,
    /// Those that listen on this TCP port, and their descendants. With [`Options::address`]: those that get the connections
    /// made to it.
    Port(u16),
    /// This process and its descendants.
    Pid(u32),
    /// The main process of a service: a unit of systemd, or the name of a file in `/run`. Made by [`Server::service`].
    Service(ServiceName),
}

/// A service's name that is safe in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceName(String);

impl Server {
    /// The main process of a service, such as `nginx` or `postgresql@15-main.service`.
    pub fn service(name: &str) -> Result<Self, HostError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "@._:-".contains(c);
        // A name of dots would leave the folder of pid files.
        if name.is_empty() || name.len() > 256 || name.starts_with(['-', '.']) || !name.chars().all(allowed) {
            return Err(HostError::Server { given: sanitize_line(name), what: "name of a service" });
        }
        Ok(Self::Service(ServiceName(name.to_owned())))
    }

    /// Kind and value for the script; both are safe between single quotes.
    pub(crate) fn words(&self) -> (&'static str, String) {
        match self {
            Self::Unknown => ("none", String::new()),
            Self::Port(port) => ("port", port.to_string()),
            Self::Pid(pid) => ("pid", pid.to_string()),
            Self::Service(ServiceName(name)) => ("service", name.clone()),
        }
    }

    /// The port that it is found by.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Port(port) => Some(*port),
            Self::Unknown | Self::Pid(_) | Self::Service(_) => None,
        }
    }

    /// What is looked for, in words.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Unknown => "no server process was named".to_owned(),
            Self::Port(port) => format!("no process here listens on TCP port {port}"),
            Self::Pid(pid) => format!("there is no process {pid}"),
            Self::Service(ServiceName(name)) => format!("service {name} has no running main process"),
        }
    }
}

/// What may be set about reading a host.
#[derive(Debug, Clone)]
pub struct Options {
    /// What connections to the server are made to, as the client sees it; `None` where that is not known. Of several servers
    /// on a port it tells the one.
    pub address: Option<SocketAddr>,
    /// The user's ssh configuration, instead of `~/.ssh/config` and the system's.
    pub ssh_config: Option<PathBuf>,
    /// Command and arguments of the shell, which has to read a script from its standard input. `sudo -n /bin/sh -s` is
    /// another one, for hosts where only root may see the server's process.
    pub shell: Vec<String>,
    /// Time between samples that nobody asked for; `None` takes none.
    pub period: Option<Duration>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long the host may take for its facts: counting many firewall rules or reading large libraries takes time.
    pub facts_timeout: Duration,
    /// How long the host may take for one sample. A host under load may be slow; one that is this slow is of no use.
    pub sample_timeout: Duration,
    /// Where the kernel's process files are.
    pub proc_root: String,
    /// Where the kernel's device files are.
    pub sys_root: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: None,
            ssh_config: None,
            shell: vec!["/bin/sh".to_owned(), "-s".to_owned()],
            period: Some(Duration::from_secs(1)),
            connect_timeout: Duration::from_secs(10),
            facts_timeout: Duration::from_secs(30),
            sample_timeout: Duration::from_secs(10),
            proc_root: "/proc".to_owned(),
            sys_root: "/sys".to_owned(),
        }
    }
}

impl Options {
    /// The shell's command as it is sent over ssh. The login shell there may be any, so no word may mean anything to one.
    pub(crate) fn remote_command(&self) -> Result<String, HostError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
        match self.shell.iter().find(|word| word.is_empty() || !word.chars().all(plain)) {
            Some(word) => {
                Err(HostError::Server { given: sanitize_line(word), what: "word that can be sent to any shell" })
            }
            None => Ok(format!("exec {}", self.shell.join(" "))),
        }
    }

    /// The roots are put into the script between single quotes, and lines are told apart by their paths.
    pub(crate) fn check(&self) -> Result<(), HostError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        for root in [&self.proc_root, &self.sys_root] {
            if !root.starts_with('/') || root.ends_with('/') || root.len() > 512 || !root.chars().all(allowed) {
                return Err(HostError::Server { given: sanitize_line(root), what: "folder of the kernel's files" });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_that_could_be_options_or_commands_are_refused() {
        for good in ["web1", "root@10.0.0.1", "ssh://me@web1.example:2222", "a-b", "::1", "user@corp@host"] {
            assert!(HostAccess::ssh(good).is_ok(), "{good}");
        }
        for bad in
            ["", "-oProxyCommand=x", "me@-oX", "ssh://-oX", "ssh://me@-x", "a b", "a;b", "$(x)", "a`b`", "a\nb", "me@"]
        {
            assert!(HostAccess::ssh(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn services_cannot_leave_their_folder_or_the_quotes() {
        for good in ["nginx", "nginx.service", "postgresql@15-main", "a:b"] {
            assert!(Server::service(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "..", "../etc/x", "a/b", "a'b", "a b", "a$b"] {
            assert!(Server::service(bad).is_err(), "{bad}");
        }
    }
}
