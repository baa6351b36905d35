//! What there is to draw from: a draw depends on it, so it is written down with each.

use crate::openssl;
use crate::twin::Server;
use crate::world::is_installed;

/// Servers that may be drawn, and the programs that they need. Those of the bench itself need none. A further server is a
/// line here, beside what it can be told (`possible.rs`) and how it is started (`servers/processes.rs`).
const SERVERS: [(Server, &[&str]); 6] = [
    (Server::Nginx, &["nginx"]),
    (Server::Apache, &["apache2"]),
    (Server::HaproxyNginx, &["haproxy", "nginx"]),
    (Server::Node, &["node"]),
    (Server::Ruler, &[]),
    (Server::Own, &[]),
];

/// Names of what is installed: programs, and `openssl-no-asm` for the two builds of OpenSSL. In alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed(Vec<String>);

impl Installed {
    /// Looks at this machine.
    pub(crate) fn here() -> Installed {
        let programs = ["apache2", "haproxy", "nginx", "node", "strace"];
        let mut names: Vec<String> =
            programs.into_iter().filter(|program| is_installed(program)).map(str::to_owned).collect();
        if openssl::builds().is_ok() {
            names.push("openssl-no-asm".to_owned());
        }
        Installed::of(names)
    }

    pub(super) fn of(mut names: Vec<String>) -> Installed {
        names.sort();
        names.dedup();
        Installed(names)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.0
    }

    pub(super) fn has_all(&self, needs: &[&str]) -> bool {
        needs.iter().all(|need| self.0.iter().any(|name| name == need))
    }

    pub(super) fn servers(&self) -> Vec<Server> {
        SERVERS.into_iter().filter(|(_, needs)| self.has_all(needs)).map(|(server, _)| server).collect()
    }
}
