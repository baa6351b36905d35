//! Which servers there are to draw from on this machine.

use crate::openssl;
use crate::random::Installed;
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

/// Names of what is installed here: programs, `lighttpd` with its modules, `java` with its compiler, and `openssl-no-asm` for the two
/// builds of OpenSSL.
pub(super) fn here() -> Installed {
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

pub(super) fn servers(installed: &Installed) -> Vec<Server> {
    SERVERS.into_iter().filter(|(_, needs)| installed.has_all(needs)).map(|(server, _)| server).collect()
}
