//! What there is to draw from: a draw depends on it, so it is written down with each.

use crate::openssl;
use crate::servers::{lighttpd_is_installed, php_fpm};
use crate::twin::Server;
use crate::world::is_installed;

/// Servers that may be drawn, and the programs that they need. Those of the bench itself need none. A further server is a
/// line here, beside what it can be told (`possible.rs`) and how it is started (`servers/processes.rs`).
const SERVERS: [(Server, &[&str]); 9] = [
    (Server::Nginx, &["nginx"]),
    (Server::Apache, &["apache2"]),
    (Server::HaproxyNginx, &["haproxy", "nginx"]),
    (Server::Node, &["node"]),
    (Server::Lighttpd, &["lighttpd"]),
    (Server::NginxPhp, &["nginx", "php-fpm"]),
    (Server::Java, &["java"]),
    (Server::Ruler, &[]),
    (Server::Own, &[]),
];

/// Names of what is installed: programs, `lighttpd` with its modules, `java` with its compiler, and `openssl-no-asm` for the two
/// builds of OpenSSL. In alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed(Vec<String>);

impl Installed {
    /// Looks at this machine.
    pub(crate) fn here() -> Installed {
        let programs = ["apache2", "bindfs", "haproxy", "nginx", "node", "strace"];
        let mut names: Vec<String> =
            programs.into_iter().filter(|program| is_installed(program)).map(str::to_owned).collect();
        let others = [
            ("java", is_installed("java") && is_installed("javac")),
            ("lighttpd", lighttpd_is_installed()),
            ("openssl-no-asm", openssl::builds().is_ok()),
            ("php-fpm", php_fpm().is_some()),
        ];
        names.extend(others.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name.to_owned()));
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
