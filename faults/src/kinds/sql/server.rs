//! Database servers: how each is made, filled, copied and started.

use super::{Relay, SqlTwin, System};
use crate::world::{Folder, Launch, Namespace, Running, Volume, World, is_installed, run, succeed};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Makers of data folders and servers that start are slow where others want the disk, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Servers work here, clients on the other CPU.
const SERVER_CPU: &str = "0";
const DATABASE: &str = "sbtest";
/// Whom all clients are.
const CLIENT: &str = "duel";
const PORT: &str = "5432";

/// One that runs. It is reached by its socket, which no namespace hides.
pub(crate) struct Server {
    // Dropped in this order: the server, all that it has started, what they work on.
    _relay: Option<Running>,
    running: Running,
    namespace: Namespace,
    _volume: Option<Volume>,
    _data: Option<Folder>,
    sockets: Folder,
    /// Where clients find it.
    at: PathBuf,
    system: System,
    rows: u32,
}

/// Where PostgreSQL's programs are: Debian has a folder for each version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.into_iter().rev().find(|folder| folder.join("initdb").is_file())
}

/// What of a system is not installed here.
pub(crate) fn is_missing(system: System) -> Option<&'static str> {
    match system {
        System::Postgres if programs().is_none() => Some("PostgreSQL"),
        System::Postgres => (!is_installed("psql")).then_some("psql"),
        System::MariaDb => {
            ["mariadbd", "mariadb-install-db", "mariadb"].into_iter().find(|program| !is_installed(program))
        }
    }
}

/// A data folder with the table in it, of a server that was stopped again.
pub(super) fn filled(world: &World, twin: &SqlTwin, duel: &Path) -> anyhow::Result<Folder> {
    let folder = world.folder()?;
    let data = folder.path().join("data");
    make(twin.system, folder.path(), &data)?;
    world.go_on()?;
    let plain = SqlTwin { settings: Vec::new(), statements: Vec::new(), volume: None, relay: None, ..twin.clone() };
    let mut server = Server::serve(world, &plain, &data, None, None)?;
    server.make_database()?;
    let rows = twin.rows.to_string();
    succeed(&duel.to_string_lossy(), &["prepare", &server.address(), "--table-size", &rows])?;
    // What would be done some time later, and meanwhile on one of both.
    server.ask(match twin.system {
        System::Postgres => "VACUUM ANALYZE sbtest1",
        System::MariaDb => "ANALYZE TABLE sbtest1",
    })?;
    server.end()?;
    Ok(folder)
}

fn make(system: System, folder: &Path, data: &Path) -> anyhow::Result<()> {
    let path = data.to_string_lossy();
    own(folder, system)?;
    match system {
        System::Postgres => {
            let initdb = programs().context("PostgreSQL is not installed")?.join("initdb");
            let initdb = initdb.to_string_lossy();
            let words = ["-D", &path, "-U", CLIENT, "--auth=trust", "-N", "--locale=C", "-E", "UTF8"];
            let all = [&AS_POSTGRES[..], &[&initdb], &words].concat();
            succeed("setpriv", &all)
        }
        System::MariaDb => {
            let data = format!("--datadir={path}");
            // With logins of root and of its owner by the socket, as packages have it: by the latter it is copied.
            let words = ["--no-defaults", "--skip-test-db"];
            succeed("mariadb-install-db", &[&words[..], &["--user=mysql", &data]].concat())
        }
    }
}

/// A relay before the server's socket, and the folder in which its own one is.
fn relayed(namespace: &Namespace, sockets: &Path, system: System, plan: Relay) -> anyhow::Result<(Running, PathBuf)> {
    let name = match system {
        System::Postgres => format!(".s.PGSQL.{PORT}"),
        System::MariaDb => "socket".to_owned(),
    };
    let at = sockets.join("relay");
    std::fs::create_dir(&at)?;
    let relay = Launch::new(std::env::current_exe()?)
        .args(["relay-messages", "--every", &plan.every.to_string(), "--us", &plan.us.to_string(), "--listen"])
        .args([at.join(&name)])
        .args(["--to"])
        .args([sockets.join(&name)]);
    Ok((relay.within(namespace).on(SERVER_CPU).start(&sockets.join("relay.log"))?, at))
}

const AS_POSTGRES: [&str; 3] = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];

fn own(path: &Path, system: System) -> anyhow::Result<()> {
    let user = match system {
        System::Postgres => "postgres:postgres",
        System::MariaDb => "mysql:mysql",
    };
    succeed("chown", &[user, &path.to_string_lossy()])
}

impl Server {
    /// Starts one on a copy of this data, and does to it what its description asks for.
    pub(super) fn start(world: &World, twin: &SqlTwin, data: &Path) -> anyhow::Result<Server> {
        world.go_on()?;
        let volume = twin.volume.as_ref().map(|plan| Volume::new(world, plan)).transpose()?;
        let folder = if volume.is_none() { Some(world.folder()?) } else { None };
        let place = volume.as_ref().map(Volume::path).or(folder.as_ref().map(Folder::path)).context("no place")?;
        own(place, twin.system)?;
        let copy = place.join("data");
        succeed("cp", &["-a", &data.join("data").to_string_lossy(), &copy.to_string_lossy()])?;
        let server = Server::serve(world, twin, &copy, volume, folder)?;
        for statement in &twin.statements {
            server.ask(statement)?;
        }
        world.go_on()?;
        Ok(server)
    }

    fn serve(
        world: &World,
        twin: &SqlTwin,
        data: &Path,
        volume: Option<Volume>,
        folder: Option<Folder>,
    ) -> anyhow::Result<Server> {
        let (sockets, namespace) = (world.folder()?, Namespace::new(world)?);
        own(sockets.path(), twin.system)?;
        let at = sockets.path().to_string_lossy().into_owned();
        let launch = match twin.system {
            System::Postgres => {
                let program = programs().context("PostgreSQL is not installed")?.join("postgres");
                let settings =
                    twin.settings.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]);
                let fixed = ["-k", &at, "-p", PORT, "-c", "listen_addresses=", "-c", "max_connections=60"];
                Launch::new("setpriv")
                    .args(AS_POSTGRES)
                    .args([program])
                    .args(["-D"])
                    .args([data])
                    .args(fixed)
                    .args(settings)
            }
            System::MariaDb => {
                let fixed = ["--no-defaults", "--user=mysql", "--skip-networking", "--innodb-log-file-size=16M"];
                let settings = twin.settings.iter().map(|(name, value)| format!("--{name}={value}"));
                // Its number stands in its data folder, as on every machine: elsewhere nobody believes it.
                // When it starts, it removes all temporary tables that it finds, those of others too.
                let files = [
                    format!("--socket={at}/socket"),
                    format!("--tmpdir={at}"),
                    format!("--datadir={}", data.display()),
                ];
                Launch::new("mariadbd").args(fixed).args(files).args(settings)
            }
        };
        let running = launch.within(&namespace).on(SERVER_CPU).start(&sockets.path().join("log"))?;
        let (system, rows) = (twin.system, twin.rows);
        let (relay, at) = match &twin.relay {
            None => (None, sockets.path().to_owned()),
            Some(plan) => {
                let (relay, at) = relayed(&namespace, sockets.path(), system, *plan)?;
                (Some(relay), at)
            }
        };
        let mut server =
            Server { _relay: relay, running, namespace, _volume: volume, _data: folder, sockets, at, system, rows };
        let began = Instant::now();
        while server.client(server.first_database(), "SELECT 1").is_err() {
            world.go_on()?;
            server.running.check()?;
            ensure!(began.elapsed() < PATIENCE, "{} does not answer", system.name());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn first_database(&self) -> &'static str {
        match self.system {
            System::Postgres => "postgres",
            System::MariaDb => "mysql",
        }
    }

    fn make_database(&self) -> anyhow::Result<()> {
        let first = self.first_database();
        self.client(first, &format!("CREATE DATABASE {DATABASE}"))?;
        if self.system == System::MariaDb {
            // No superuser: what is set for each new session is not for these.
            self.client(
                first,
                &format!("CREATE USER {CLIENT}@localhost; GRANT ALL ON {DATABASE}.* TO {CLIENT}@localhost"),
            )?;
        }
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    fn end(&mut self) -> anyhow::Result<()> {
        let signal = match self.system {
            System::Postgres => "-INT",
            System::MariaDb => "-TERM",
        };
        for pid in self.namespace.pids()? {
            // One of them may have ended by itself.
            let _ = succeed("kill", &[signal, &pid.to_string()]);
        }
        let began = Instant::now();
        while !self.namespace.pids()?.is_empty() && self.running.check().is_ok() {
            if began.elapsed() > PATIENCE {
                bail!("{} does not end", self.system.name());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// As duel is told of it.
    pub(crate) fn address(&self) -> String {
        let at = self.at.display();
        match self.system {
            System::Postgres => format!("postgres://{CLIENT}@/{DATABASE}?host={at}&port={PORT}"),
            System::MariaDb => format!("mysql://{CLIENT}@/{DATABASE}?socket={at}/socket"),
        }
    }

    pub(crate) fn system(&self) -> System {
        self.system
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    pub(crate) fn folder(&self) -> &Path {
        self.sockets.path()
    }

    /// What its own client says of a statement, as a superuser.
    pub(crate) fn ask(&self, statement: &str) -> anyhow::Result<String> {
        self.client(DATABASE, statement)
    }

    fn client(&self, database: &str, statement: &str) -> anyhow::Result<String> {
        let (program, words) = self.words(database, "root");
        let last = match self.system {
            System::Postgres => "-c",
            System::MariaDb => "-e",
        };
        let words: Vec<&str> = words.iter().map(String::as_str).chain([last, statement]).collect();
        run(program, &words)
    }

    /// The server's own client, as whom duel is; what it executes comes from its input.
    pub(super) fn shell(&self) -> Vec<String> {
        let (program, words) = self.words(DATABASE, CLIENT);
        [program.to_owned()].into_iter().chain(words).collect()
    }

    fn words(&self, database: &str, user: &str) -> (&'static str, Vec<String>) {
        let at = self.at.display().to_string();
        let (program, words): (_, Vec<String>) = match self.system {
            System::Postgres => (
                "psql",
                ["-X", "-Atq", "-v", "ON_ERROR_STOP=1", "-h", &at, "-p", PORT, "-U", CLIENT, database]
                    .map(str::to_owned)
                    .into(),
            ),
            System::MariaDb => {
                let socket = format!("--socket={at}/socket");
                ("mariadb", ["--no-defaults", "-N", "-B", &socket, "-u", user, database].map(str::to_owned).into())
            }
        };
        (program, words)
    }
}
