//! Addresses of databases: what they mean, and what of them may be kept and shown.
//!
//! No error quotes what was typed: a password may stand anywhere in an address that is written wrongly.

use duel_load::WorkloadError;
use duel_model::sanitize_line;
use std::path::{Path, PathBuf};

/// Where Debian, Fedora and PostgreSQL's own packages have its socket, as libpq is built there.
pub(crate) const POSTGRES_SOCKETS: &str = "/var/run/postgresql";
const MYSQL_SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// A target, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A server.
    Server(ServerAddress),
    /// An SQLite database in this file.
    File(PathBuf),
    /// An SQLite database in the memory of this process.
    Memory,
}

/// A database server, and whom to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) system: System,
    pub(crate) user: String,
    pub(crate) place: Place,
    pub(crate) database: String,
    pub(crate) tls: SslMode,
    /// Authorities to verify the server with, instead of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// The address as it may be kept and shown.
    pub(crate) public: String,
    /// The password that was typed in it.
    pub(crate) password: Option<String>,
    /// Settings of each session, by their names; no part of the address.
    pub(crate) session: Vec<(String, String)>,
}

/// Which database system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Postgres,
    Mysql,
    Sqlite,
}

impl System {
    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Sqlite => "SQLite",
        }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// When TLS is used, in the words of libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyFull,
}

const SCHEMES: [(&str, System); 4] = [
    ("postgres", System::Postgres),
    ("postgresql", System::Postgres),
    ("mysql", System::Mysql),
    ("mariadb", System::Mysql),
];

/// Whether an address is one of a database.
pub fn claims(address: &str) -> bool {
    address.starts_with("sqlite:") || server_scheme(address).is_some()
}

fn server_scheme(address: &str) -> Option<(System, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    SCHEMES.iter().find(|(name, _)| *name == scheme).map(|&(name, system)| (system, name, rest))
}

/// An address as it may be kept and shown; of one that cannot be understood nothing but its scheme.
pub fn public(typed: &str) -> String {
    match parse(typed) {
        Ok(Address::Server(server)) => server.public,
        Ok(Address::File(_) | Address::Memory) => typed.to_owned(),
        Err(_) => format!("{}:...", typed.split(':').next().unwrap_or_default()),
    }
}

/// Takes an address apart.
pub(crate) fn parse(address: &str) -> Result<Address, WorkloadError> {
    if let Some(file) = address.strip_prefix("sqlite:") {
        return match file.trim_start_matches("//") {
            ":memory:" => Ok(Address::Memory),
            "" => Err(WorkloadError("sqlite: needs a file, such as sqlite:./x.db, or sqlite::memory:".into())),
            _ if file.contains('\0') => Err(WorkloadError("a file's name has no zero byte".into())),
            _ => Ok(Address::File(PathBuf::from(file.strip_prefix("//").unwrap_or(file)))),
        };
    }
    let (system, scheme, rest) = server_scheme(address)
        .ok_or_else(|| WorkloadError("it is no database; postgres://, mysql:// and sqlite: are".into()))?;
    server(system, scheme, rest).map(Address::Server)
}

fn server(system: System, scheme: &str, rest: &str) -> Result<ServerAddress, WorkloadError> {
    let wrong = |what: &str| WorkloadError(format!("the address {scheme}://... cannot be understood: {what}"));
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains('@') || query.split('&').any(|part| !part.contains('=') && part.contains('@')) {
        return Err(wrong("'/', '?', '#' and '@' in a password are written %2F, %3F, %23 and %40"));
    }
    let (login, host) = authority.rsplit_once('@').map_or((None, authority), |(login, host)| (Some(login), host));
    let (user, typed_password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
        None => (None, None),
        Some((user, "")) => (Some(user), None),
        Some((user, password)) => (Some(user), Some(password)),
    };
    let decode = |text: &str| decoded(text).ok_or_else(|| wrong("it has a % without two hexadecimal digits behind it"));
    let mut password = typed_password.map(decode).transpose()?;
    let mut user_given = user.filter(|user| !user.is_empty()).map(decode).transpose()?;
    let (host, port) = host_and_port(host).ok_or_else(|| wrong("behind the host's ':' there is no port"))?;
    let (mut host, mut port, mut socket) = (decode(host)?, port, None);
    let (mut tls, mut ca, mut kept_query) = (SslMode::Prefer, None, Vec::new());
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| wrong("a part behind '?' is not NAME=VALUE"))?;
        let value = decode(value)?;
        match name {
            "password" => {
                password = Some(value);
                continue;
            }
            "user" => user_given = Some(value),
            "host" => host = value,
            "port" => port = Some(value.parse().map_err(|_| wrong("port= is no port"))?),
            "socket" => socket = Some(PathBuf::from(value)),
            "sslmode" | "ssl-mode" => {
                tls = ssl_mode(&value)
                    .ok_or_else(|| wrong("sslmode= is one of disable, prefer, require, verify-full"))?;
            }
            "sslrootcert" | "ssl-ca" => ca = Some(PathBuf::from(value)),
            other => {
                return Err(wrong(&format!("it has a parameter that duel does not know: '{}'", sanitize_line(other))));
            }
        }
        kept_query.push(part);
    }
    let database = decode(path)?;
    let place = place(system, host, port, socket);
    let kept_login = user.filter(|user| !user.is_empty()).map_or_else(String::new, |user| format!("{user}@"));
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // With the '@' of an empty user it would read as one with none.
    let mut public = format!("{scheme}://{kept_login}{authority}/{path}");
    if !kept_query.is_empty() {
        public = format!("{public}?{}", kept_query.join("&"));
    }
    if [&database, user_given.as_ref().unwrap_or(&String::new())].iter().any(|text| text.contains('\0')) {
        return Err(wrong("a user or a database has a zero byte in its name"));
    }
    let user = user_given.unwrap_or_else(|| own_user(system));
    Ok(ServerAddress { system, user, place, database, tls, ca, public, password, session: Vec::new() })
}

/// A host that may be in brackets, and a port behind it.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            None => rest.is_empty().then_some((host, None)),
            Some(port) => Some((host, Some(port.parse().ok()?))),
        };
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((host, "")) => Some((host, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
    }
}

fn place(system: System, host: String, port: Option<u16>, socket: Option<PathBuf>) -> Place {
    let default_port = if system == System::Mysql { 3306 } else { 5432 };
    let port = port.unwrap_or(default_port);
    if let Some(socket) = socket {
        return Place::Unix(socket);
    }
    let is_socket = host.is_empty() || host.starts_with('/');
    match system {
        System::Mysql if host.is_empty() => {
            let found = MYSQL_SOCKETS.iter().map(Path::new).find(|path| path.exists());
            Place::Unix(found.unwrap_or(Path::new(MYSQL_SOCKETS[0])).to_owned())
        }
        System::Mysql if is_socket => Place::Unix(PathBuf::from(host)),
        _ if is_socket => {
            let folder = if host.is_empty() { POSTGRES_SOCKETS } else { &host };
            Place::Unix(Path::new(folder).join(format!(".s.PGSQL.{port}")))
        }
        _ => Place::Tcp { host, port },
    }
}

fn ssl_mode(text: &str) -> Option<SslMode> {
    Some(match text.to_ascii_lowercase().as_str() {
        "disable" | "disabled" => SslMode::Disable,
        "prefer" | "preferred" => SslMode::Prefer,
        "require" | "required" => SslMode::Require,
        "verify-full" | "verify_identity" => SslMode::VerifyFull,
        _ => return None,
    })
}

/// Whom the systems' own clients are where nobody says it.
fn own_user(system: System) -> String {
    let named = if system == System::Postgres { std::env::var("PGUSER").ok() } else { None };
    let of_system = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    named
        .or_else(of_system)
        .filter(|user| !user.is_empty() && !user.contains('\0'))
        .unwrap_or_else(|| "root".to_owned())
}

/// A text without its percent escapes.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, others @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = others;
            continue;
        }
        let digits = others.get(..2).and_then(|digits| str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &others[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_of(address: &str) -> ServerAddress {
        match parse(address) {
            Ok(Address::Server(server)) => server,
            other => panic!("{address}: {other:?}"),
        }
    }

    #[test]
    fn an_address_is_taken_apart_as_libpq_does() {
        let found = server_of("postgres://u%40x:p%3aw@h:5433/db?sslmode=require");
        assert_eq!((found.user.as_str(), found.database.as_str(), found.tls), ("u@x", "db", SslMode::Require));
        assert_eq!(found.password.as_deref(), Some("p:w"));
        assert_eq!(found.place, Place::Tcp { host: "h".into(), port: 5433 });
        assert_eq!(found.public, "postgres://u%40x@h:5433/db?sslmode=require");
        let unix = |address| server_of(address).place;
        assert_eq!(unix("postgres://u@/db"), Place::Unix("/var/run/postgresql/.s.PGSQL.5432".into()));
        assert_eq!(unix("postgresql://u@/db?host=/tmp/x&port=7"), Place::Unix("/tmp/x/.s.PGSQL.7".into()));
        assert_eq!(unix("postgres://u@%2Ftmp%2Fx/db"), Place::Unix("/tmp/x/.s.PGSQL.5432".into()));
        assert_eq!(unix("mysql://u@/db?socket=/tmp/m.sock"), Place::Unix("/tmp/m.sock".into()));
        assert_eq!(unix("mysql://u@[::1]:7/db"), Place::Tcp { host: "::1".into(), port: 7 });
        assert_eq!(parse("sqlite::memory:").unwrap(), Address::Memory);
        assert_eq!(parse("sqlite:./x.db").unwrap(), Address::File("./x.db".into()));
        assert_eq!(parse("sqlite:///tmp/x.db").unwrap(), Address::File("/tmp/x.db".into()));
    }

    #[test]
    fn no_password_is_in_what_may_be_shown_however_the_address_is_written() {
        for address in [
            "postgres://u:hunter2@h/db",
            "postgres://u:hunter2@/db?host=/tmp",
            "mysql://u@h/db?password=hunter2",
            "postgres://u:hunter2@h/db?password=hunter2&sslmode=disable",
        ] {
            assert!(!server_of(address).public.contains("hunter2"), "{address}");
        }
        for wrong in [
            "postgres://u:x/hunter2@h/db",
            "postgres://u:hunter2?y@h/db",
            "postgres://h:hunter2/db",
            "postgres://u:hunter2%zz@h/db",
            "postgres://u:hunter2@h:port/db",
            "postgres://u@h/db?hunter2@x",
        ] {
            let said = parse(wrong).unwrap_err().to_string();
            assert!(!said.contains("hunter2"), "{wrong}: {said}");
        }
        assert!(parse("sqlite:").is_err() && parse("postgres://h:1:2/").is_err());
    }
}
