//! A PostgreSQL of the tests' own, in a temporary folder on a free port.

use crate::address::{Address, parse};
use crate::client::Client;
use crate::kind;
use duel_model::SECOND_NS;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server that hangs fails its test in the end.
const PATIENCE: Duration = Duration::from_secs(90);
/// The password of those who have one.
pub(super) const PASSWORD: &str = "hunter2 is a/distinctive@password";
pub(super) const ESCAPED: &str = "hunter2%20is%20a%2Fdistinctive%40password";

/// Makes a data folder and starts a server on it, waits for the end of its input, which comes with the end of the tests however
/// they end, and cleans up.
const KEEPER: &str = r#"
folder=$1 programs=$2 as=$3 port=$4 # and libraries that it loads
trap '' TERM
(
    trap - TERM
    $as "$programs/initdb" -D "$folder/data" -U u --auth=trust -N --locale=C -E UTF8 &&
    cp "$folder/hba" "$folder/data/pg_hba.conf" &&
    exec $as "$programs/postgres" -D "$folder/data" -k "$folder" -p "$port" -c listen_addresses=127.0.0.1 -c fsync=off \
        -c shared_buffers=16MB -c ssl=on -c ssl_cert_file="$folder/cert.pem" -c ssl_key_file="$folder/key.pem" \
        -c max_connections=40 -c deadlock_timeout=20ms -c track_io_timing=on -c shared_preload_libraries="$5"
) >"$folder/log" 2>&1 </dev/null &
server=$!
read -r _
kill -INT $server
wait $server
kill -TERM 0
rm -rf "$folder"
"#;

const HBA: &str = "\
local all u trust
host all scram 127.0.0.1/32 scram-sha-256
host all md5 127.0.0.1/32 md5
host all clear 127.0.0.1/32 password
host all all 127.0.0.1/32 trust
local all all trust
";

/// The server that all tests of this process share.
pub(super) struct Server {
    pub(super) folder: PathBuf,
    port: u16,
    databases: AtomicU32,
    /// Holds the keeper's input open.
    _keeper: Child,
}

/// It, if PostgreSQL is installed here.
pub(super) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    let Some(programs) = programs() else {
        eprintln!("PostgreSQL is not installed: nothing was tested");
        return None;
    };
    match SERVER.get_or_init(|| Server::start(&programs)) {
        Ok(server) => Some(server),
        Err(why) => panic!("{why}"),
    }
}

/// Debian has a folder for each version.
pub(super) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).find(|bin| bin.join("initdb").exists())
}

/// Whether this PostgreSQL has its view of statements: some systems have it in a package of its own.
pub(super) fn tells_of_statements(programs: &Path) -> bool {
    programs.join("../lib/pg_stat_statements.so").exists()
}

impl Server {
    fn start(programs: &Path) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("duel-postgres-").tempdir().unwrap().keep();
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let files =
            [("cert.pem", pair.cert.pem()), ("key.pem", pair.signing_key.serialize_pem()), ("hba", HBA.to_owned())];
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let mut unprivileged = String::new();
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = user();
            unprivileged = format!("setpriv --reuid={uid} --regid={gid} --clear-groups");
            for path in [&folder, &folder.join("cert.pem"), &folder.join("key.pem"), &folder.join("hba")] {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(&folder).arg(programs).arg(&unprivileged).arg(port.to_string());
        let libraries = if tells_of_statements(programs) { "pg_stat_statements" } else { "" };
        keeper.arg(libraries);
        // Ctrl-C is for the tests; the keeper cleans up behind them.
        let keeper =
            keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let server = Self { folder, port, databases: AtomicU32::new(0), _keeper: keeper };
        let began = Instant::now();
        while let Err(why) = server.try_client("postgres") {
            if began.elapsed() > PATIENCE {
                let log = fs::read_to_string(server.folder.join("log")).unwrap_or_default();
                return Err(format!("{why}\n{log}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut client = server.client("postgres");
        client.run(&format!("CREATE ROLE scram LOGIN PASSWORD '{PASSWORD}'")).unwrap();
        client.run(&format!("CREATE ROLE clear LOGIN PASSWORD '{PASSWORD}'")).unwrap();
        client.run("SET password_encryption = md5").unwrap();
        client.run(&format!("CREATE ROLE md5 LOGIN PASSWORD '{PASSWORD}'")).unwrap();
        client.run("CREATE ROLE few SUPERUSER LOGIN CONNECTION LIMIT 2; ALTER ROLE few NOSUPERUSER").unwrap();
        Ok(server)
    }

    /// A database of a test's own: its name.
    pub(super) fn database(&self) -> String {
        self.database_with("")
    }

    pub(super) fn database_with(&self, options: &str) -> String {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::Relaxed));
        // Two cannot be copied from one template at a time.
        let _one = ONE.lock().unwrap();
        self.client("postgres").run(&format!("CREATE DATABASE {name} {options}")).unwrap();
        name
    }

    /// By its socket, where everybody is trusted.
    pub(super) fn address(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// By TCP.
    pub(super) fn tcp(&self, login: &str, database: &str, more: &str) -> String {
        format!("postgres://{login}@localhost:{}/{database}{more}", self.port)
    }

    pub(super) fn client(&self, database: &str) -> Client {
        self.try_client(database).unwrap()
    }

    fn try_client(&self, database: &str) -> Result<Client, String> {
        connect(&self.address("u", database))
    }
}

static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// A client of an address, or what is said instead.
pub(super) fn connect(address: &str) -> Result<Client, String> {
    let Ok(Address::Server(server)) = parse(address) else { panic!("{address}") };
    kind::connect(&server, 30 * SECOND_NS).map(|(client, ..)| client).map_err(|why| why.text)
}

/// Whom the server runs for where we are root: it must not.
fn user() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map(|id| id.parse().unwrap());
        Some((ids.next()?, ids.next()?))
    };
    of("postgres").or_else(|| of("nobody")).unwrap()
}
