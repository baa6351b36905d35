//! A MariaDB of the tests' own, and a blocking client over the protocol.

use super::*;
use crate::wire::Value;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A server that hangs fails its test in the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes a data folder and starts a server on it, waits for the end of its input, which comes with the end of the tests however they
/// end, and cleans up. An installation that is still under way then is in its group.
const KEEPER: &str = r#"
folder=$1 user=$2; shift 2
# When it starts, MariaDB removes all temporary tables that it finds, those of others too.
export TMPDIR="$folder"
trap '' TERM
(
    trap - TERM
    mariadb-install-db --no-defaults --skip-test-db --auth-root-authentication-method=socket --innodb-log-file-size=4M \
        --datadir="$folder/data" $user && exec "$@"
) >"$folder/log" 2>&1 </dev/null &
server=$!
read -r _
kill -KILL $server
kill -TERM 0
wait $server
for attempt in 1 2 3 4 5; do
    rm -rf "$folder" && break
    sleep 1
done
"#;

const DAEMON: &str = "/usr/sbin/mariadbd";
/// Options that name a file in its folder.
const FILES: [(&str, &str); 6] = [
    ("datadir", "data"),
    ("socket", "socket"),
    ("ssl-cert", "cert.pem"),
    ("ssl-key", "key.pem"),
    ("init-file", "init.sql"),
    ("pid-file", "pid"),
];

/// The server that all tests of this process share.
pub(super) struct Server {
    folder: PathBuf,
    port: u16,
    certificate: CertificateDer<'static>,
    /// Holds the keeper's input open.
    _keeper: Child,
}

/// It, if MariaDB is installed here.
pub(super) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    if !Path::new(DAEMON).exists() {
        eprintln!("MariaDB is not installed: nothing was tested");
        return None;
    }
    match SERVER.get_or_init(Server::start) {
        Ok(server) => Some(server),
        Err(why) => panic!("{why}"),
    }
}

impl Server {
    fn start() -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("duel-mariadb-").tempdir().unwrap().keep();
        let user = unprivileged();
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let files = [
            ("cert.pem", pair.cert.pem()),
            ("key.pem", pair.signing_key.serialize_pem()),
            ("init.sql", INIT.to_owned()),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        for path in [&folder, &folder.join("cert.pem"), &folder.join("key.pem"), &folder.join("init.sql")] {
            if let Some((_, uid, gid)) = &user {
                chown(path, Some(*uid), Some(*gid)).unwrap();
            }
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let user = user.map(|(name, ..)| format!("--user={name}")).unwrap_or_default();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(&folder).arg(&user).args([
            DAEMON,
            "--no-defaults",
            "--bind-address=127.0.0.1",
        ]);
        keeper.args((!user.is_empty()).then_some(&user)).arg(format!("--port={port}"));
        for (option, file) in FILES {
            keeper.arg(format!("--{option}={}/{file}", folder.display()));
        }
        keeper.args(["--plugin-load-add=auth_ed25519", "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M"]);
        keeper.args(["--max-allowed-packet=64M", "--innodb-flush-log-at-trx-commit=0", "--performance-schema=ON"]);
        // Ctrl-C is for the tests; the keeper cleans up behind them.
        let keeper =
            keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let server = Self { folder, port, certificate: pair.cert.der().clone(), _keeper: keeper };
        let began = Instant::now();
        while let Err(failure) =
            Client::log_in(server.socket(), &Login { is_local: true, is_socket: true, ..by("native") })
        {
            if began.elapsed() > PATIENCE {
                let log = fs::read_to_string(server.folder.join("log")).unwrap_or_default();
                return Err(format!("{}\n{log}", failure.text));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// A database as a target.
    pub(super) fn address(&self, database: &str, more: &str) -> String {
        format!("mysql://native:secret@127.0.0.1:{}/{database}{more}", self.port)
    }

    pub(super) fn tcp(&self) -> Stream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Stream::Tcp(stream)
    }

    pub(super) fn socket(&self) -> Stream {
        match UnixStream::connect(self.folder.join("socket")) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                Stream::Unix(stream)
            }
            Err(_) => Stream::None,
        }
    }

    /// A connection that may use TLS.
    pub(super) fn with_tls(&self) -> Stream {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
        match self.tcp() {
            Stream::Tcp(stream) => Stream::BeforeTls(stream, config),
            other => other,
        }
    }

    /// A logged-in connection.
    pub(super) fn connect(&self) -> Client {
        Client::log_in(self.tcp(), &by("native")).unwrap()
    }
}

/// Whom the server must not run as root for: a user, if we are root.
fn unprivileged() -> Option<(String, u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map(|id| id.parse().unwrap());
        Some((name.to_owned(), ids.next()?, ids.next()?))
    };
    Some(of("mysql").or_else(|| of("nobody")).unwrap())
}

/// A statement on each line.
const INIT: &str = r"
CREATE DATABASE db;
CREATE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('secret');
CREATE USER signed IDENTIFIED VIA ed25519 USING PASSWORD('secret');
CREATE USER encrypted IDENTIFIED VIA mysql_native_password USING PASSWORD('secret') REQUIRE SSL;
CREATE USER warmer IDENTIFIED VIA mysql_native_password USING PASSWORD('secret');
CREATE USER alone IDENTIFIED VIA mysql_native_password USING PASSWORD('secret') WITH MAX_USER_CONNECTIONS 1;
ALTER USER root@localhost IDENTIFIED VIA unix_socket;
CREATE USER either IDENTIFIED VIA ed25519 USING PASSWORD('other') OR mysql_native_password USING PASSWORD('secret');
GRANT ALL ON *.* TO native;
GRANT ALL ON warm.* TO warmer;
GRANT ALL ON anew.* TO warmer;
GRANT ALL ON db.* TO signed, encrypted, alone, either;
";

/// A user of the server.
pub(super) fn by(user: &str) -> Login {
    Login { user: user.into(), ..login() }
}

pub(super) enum Stream {
    None,
    Tcp(TcpStream),
    Unix(UnixStream),
    BeforeTls(TcpStream, Arc<ClientConfig>),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn read(&mut self, into: &mut [u8]) -> usize {
        let read = match self {
            Self::None => Ok(0),
            Self::Tcp(stream) | Self::BeforeTls(stream, _) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        };
        read.unwrap_or(0)
    }

    fn write(&mut self, bytes: &[u8]) {
        // A server that has closed shows when reading.
        let _ = match self {
            Self::None => Ok(()),
            Self::Tcp(stream) | Self::BeforeTls(stream, _) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        };
    }

    fn begin_tls(&mut self) {
        if let Self::BeforeTls(stream, config) = std::mem::replace(self, Self::None) {
            let connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
            *self = Self::Tls(Box::new(StreamOwned::new(connection, stream)));
        }
    }
}

pub(super) struct Client {
    pub(super) wire: MySql,
    stream: Stream,
    room: Vec<u8>,
}

/// What became of a statement: rows that were wanted, how many there were, and how many changed.
pub(super) type Outcome = Result<(Vec<Vec<Option<String>>>, u64, u64), SqlFailure>;

impl Client {
    pub(super) fn log_in(stream: Stream, login: &Login) -> Result<Self, SqlFailure> {
        let mut client = Self { wire: MySql::default(), stream, room: vec![0; 1 << 16] };
        client.wire.log_in(login)?;
        assert_eq!(client.until_over()?, Happened::LoggedIn);
        Ok(client)
    }

    pub(super) fn query(&mut self, sql: &str) -> Outcome {
        self.wire.query(sql)?;
        self.outcome()
    }

    /// Sends a statement, and does not wait.
    pub(super) fn send(&mut self, sql: &str) {
        self.wire.query(sql).unwrap();
        self.flush();
    }

    pub(super) fn prepare(&mut self, number: u16, sql: &str) -> Result<(), SqlFailure> {
        self.wire.prepare(number, sql)?;
        match self.until_over()? {
            Happened::Refused(failure) => Err(failure),
            _ => Ok(()),
        }
    }

    pub(super) fn execute(&mut self, number: u16, values: &[Value]) -> Outcome {
        self.wire.execute(number, values)?;
        self.outcome()
    }

    /// What becomes of the statement that is under way, or of a connection that is idle.
    pub(super) fn outcome(&mut self) -> Outcome {
        let mut kept = Vec::new();
        let mut first_rows = 0;
        loop {
            match self.happened()? {
                Happened::FirstRow => first_rows += 1,
                Happened::Row => kept.push(self.wire.row().to_vec()),
                Happened::Done { rows, affected } => {
                    assert_eq!(first_rows, u64::from(rows > 0));
                    return Ok((kept, rows, affected));
                }
                Happened::Refused(failure) => return Err(failure),
                other => panic!("{other:?}"),
            }
        }
    }

    fn until_over(&mut self) -> Result<Happened, SqlFailure> {
        loop {
            match self.happened()? {
                Happened::WantsTls => {
                    self.stream.begin_tls();
                    self.wire.tls_established()?;
                }
                over => return Ok(over),
            }
        }
    }

    fn happened(&mut self) -> Result<Happened, SqlFailure> {
        loop {
            let happened = self.wire.next()?;
            self.flush();
            if let Some(happened) = happened {
                return Ok(happened);
            }
            match self.stream.read(&mut self.room) {
                0 => return Err(SqlFailure::new(crate::failure::LOST, "the server closed the connection")),
                count => self.wire.receive(&self.room[..count])?,
            }
        }
    }

    fn flush(&mut self) {
        let out = self.wire.outgoing();
        if !out.is_empty() {
            self.stream.write(out);
            out.clear();
        }
    }
}
