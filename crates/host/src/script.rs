//! The script: what is sent to the shell.

use crate::access::{HostAccess, Options, Server};
use std::fmt::Write as _;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names of environment variables, as a regular expression, that are known to change how fast a server is. Nothing else
/// leaves the host.
const ENVIRONMENT: &str = "OPENSSL_[A-Za-z0-9_]*|LD_LIBRARY_PATH|LD_PRELOAD|LD_BIND_NOW|LD_AUDIT|LD_HWCAP_MASK|\
    GLIBC_TUNABLES|MALLOC_[A-Z0-9_]*|_RJEM_MALLOC_CONF|MIMALLOC_[A-Z0-9_]*|GOMAXPROCS|GOGC|GOMEMLIMIT|GODEBUG|\
    GOAMD64|OMP_[A-Z_]*|UV_THREADPOOL_SIZE|NODE_OPTIONS|NODE_ENV|JAVA_OPTS|JAVA_TOOL_OPTIONS|PYTHONMALLOC|\
    PYTHONOPTIMIZE|WEB_CONCURRENCY|RAILS_ENV|RUBY_GC_[A-Z_]*|RUBYOPT|PHP_FCGI_[A-Z_]*|TOKIO_WORKER_THREADS|\
    RUST_LOG|RUST_BACKTRACE|TZ|LANG|LC_ALL|NGINX|TCMALLOC_[A-Z_]*|KRB5_[A-Z_]*CCACHE_TYPE";

/// Libraries, by the beginning of their file's name, whose version and build matter for a server's speed.
const LIBRARIES: &str = "libcrypto|libssl|libz\\.so|libz-ng|libc\\.so|libc-[0-9]|ld-musl|libjemalloc|libtcmalloc|libmimalloc|libbrotli|libzstd|\
    libpcre|libnghttp|libgnutls|libwolfssl|libnettle|libgcrypt|libhogweed|liburing";

/// Text in a program or library that tells its version and how it was built.
const STRINGS: &str = "OpenSSL [0-9]+\\.[0-9]+\\.[0-9]+[a-z]*[-+a-z0-9.]* +[0-9]+ [A-Z][a-z][a-z] [0-9]+|\
    LibreSSL [0-9]+\\.[0-9.]+|AWS-LC [A-Z]*[ ]?[0-9.]+|BoringSSL|compiler: [ -~]+|platform: [ -~]+|built on: [ -~]+|\
    (in|de)flate [0-9.]+ Copyright|GNU C Library [ -~]*version [0-9.]+|[ -~]+, ?CRYPTOGAMS by|\
    (nginx|Apache|lighttpd|openresty|Tengine|angie|Caddy)/[0-9]+\\.[0-9.]+|configure arguments: [ -~]+|\
    HAProxy version [ -~]+|PostgreSQL [0-9]+\\.[0-9.]+|Go cmd/compile go1[0-9.]+|\
    [0-9]+\\.[0-9]+\\.[0-9]+-[0-9]+-g[0-9a-f]{40}|10\\.[0-9][0-9] 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]|\
    GCC: \\([ -~]+\\) [0-9.]+";

/// A word of 128 random bits that content on the host cannot know.
pub(crate) fn marker() -> std::io::Result<String> {
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold("duel-".to_owned(), |mut word, byte| {
        let _ = write!(word, "{byte:02x}");
        word
    }))
}

/// The whole script. Its last line starts it, so that a shell that reads ahead has nothing left to read: requests are
/// sent only after that.
pub(crate) fn script(marker: &str, access: &HostAccess, server: &Server, options: &Options) -> String {
    let (kind, name) = server.words();
    let port = options.address.map(|address| address.port()).or(server.port());
    let ip = options.address.map(|address| address.ip().to_canonical()).map(arrived_at);
    // It is taken as a word for the shell only if it is one: it comes from a file.
    let our_boot = || std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let near = match access {
        HostAccess::Local => "yes".to_owned(),
        HostAccess::Ssh(_) => our_boot().chars().filter(|c| c.is_ascii_hexdigit() || *c == '-').collect(),
    };
    let mut script = String::with_capacity(32 << 10);
    for (variable, value) in [
        ("M", marker),
        ("PROC", &options.proc_root),
        ("SYS", &options.sys_root),
        ("SERVER_KIND", kind),
        ("SERVER", &name),
        ("PORT", &port.map(|port| port.to_string()).unwrap_or_default()),
        ("IP", &ip.map(|ip| ip.to_string()).unwrap_or_default()),
        ("ADDRESS", &ip.map(in_hex).unwrap_or_default()),
        ("NEAR", &near),
        ("ENVIRONMENT", ENVIRONMENT),
        ("LIBRARIES", LIBRARIES),
        ("STRINGS", STRINGS),
    ] {
        let _ = writeln!(script, "{variable}='{value}'");
    }
    script.push_str(include_str!("script/common.sh"));
    script.push_str("case $(uname -s) in\nLinux)\n");
    script.push_str(include_str!("script/linux.sh"));
    script.push_str(include_str!("script/linux_server.sh"));
    script.push_str(include_str!("script/linux_socket.sh"));
    script.push_str(include_str!("script/linux_sample.sh"));
    script.push_str(";;\nFreeBSD)\n");
    script.push_str(include_str!("script/freebsd.sh"));
    script.push_str(";;\n*)\n");
    script.push_str(include_str!("script/other.sh"));
    script.push_str(";;\nesac\nmain; exit 0\n");
    script
}

/// Where a connection to an address arrives: one to the unspecified address is one to loopback.
fn arrived_at(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// All 128 bits in hexadecimal digits, IPv4 as it is mapped into IPv6 (RFC 4291, 2.5.5.2).
fn in_hex(ip: IpAddr) -> String {
    let ip = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    format!("{:032X}", u128::from(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_the_script_compares_them() {
        assert_eq!(in_hex([127, 0, 0, 2].into()), "00000000000000000000FFFF7F000002");
        assert_eq!(in_hex("fe80::1".parse().unwrap()), "FE800000000000000000000000000001");
        assert_eq!(arrived_at([0, 0, 0, 0].into()), IpAddr::from([127, 0, 0, 1]));
        assert_eq!(arrived_at([10, 0, 0, 1].into()), IpAddr::from([10, 0, 0, 1]));
    }

    #[test]
    fn nothing_breaks_the_quotes() {
        for value in [ENVIRONMENT, LIBRARIES, STRINGS] {
            assert!(!value.contains('\''));
        }
        let (one, other) = (marker().unwrap(), marker().unwrap());
        assert!(one != other && one.len() == 37 && one.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    }
}
