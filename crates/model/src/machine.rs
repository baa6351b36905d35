//! What is declared of the facts of machines, such as `cpu.model`, `cpu.mitigations.spectre_v2` or
//! `process.library.libcrypto.path`. There are hundreds, and most need no declaration: tables call them by their names.

use crate::facts::{Compared, Declaration, Facts};

/// Those that differ by nature.
pub(crate) const FACTS: &[Declaration] = &[
    by_nature("clock.unix_s"),
    by_nature("cpu.fastest_mhz"),
    by_nature("cpu.slowest_mhz"),
    by_nature("fs.file-nr"),
    by_nature("listen.*.waiting"),
    by_nature("memory.available_bytes"),
    by_nature("net.netfilter.nf_conntrack_count"),
    by_nature("os.boot_id"),
    by_nature("os.uptime_s"),
    by_nature("process.listens_on"),
    by_nature("process.members"),
    by_nature("process.pid"),
    by_nature("process.resident_bytes"),
    by_nature("process.roots"),
    by_nature("process.started"),
    by_nature("process.worker.*"),
];

impl Facts {
    /// The name of the server's program, such as `nginx` of `/usr/sbin/nginx (deleted)`: by then another file has its place.
    pub fn server_program(&self) -> Option<&str> {
        let path = self.text("process.exe")?;
        path.strip_suffix(" (deleted)").unwrap_or(path).rsplit('/').next()
    }
}

const fn by_nature(name: &'static str) -> Declaration {
    Declaration { compared: Compared::Never, ..Declaration::unlisted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_program_has_the_name_of_its_file() {
        for (path, name) in [
            ("/usr/sbin/nginx", "nginx"),
            ("/usr/sbin/nginx (deleted)", "nginx"),
            ("nginx", "nginx"),
            ("/opt/a b/c d", "c d"),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(Facts::default().with("process.exe", path).server_program(), Some(name), "{path}");
        }
        assert_eq!(Facts::default().server_program(), None);
    }
}
