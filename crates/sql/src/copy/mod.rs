//! Private copies of PostgreSQL servers on this machine: `pg_basebackup` beside the data folder, and a server of its own on it, as
//! the running one is set up, or with one setting changed. It is reached by a Unix socket that only root and the server's own user
//! may open.
//!
//! The server's own programs do all of it, as the server's own user: nobody gains a right that he did not have.

mod keeper;
#[cfg(target_os = "linux")]
mod peer;
#[cfg(not(target_os = "linux"))]
mod peer {
    /// Only Linux shows it.
    pub(super) struct Peer;

    impl Peer {
        pub(super) fn of(_: &crate::client::Client, _: &crate::link::End) -> Option<Self> {
            None
        }

        pub(super) fn is(self, _: u32, _: u32) -> bool {
            false
        }
    }
}
mod room;
pub(crate) mod settings;
pub(crate) mod warm;

use crate::address::{Place, ServerAddress, SslMode, System};
use crate::client::Client;
use crate::connection::Server;
use crate::database::Database;
use crate::facts;
use crate::kind;
use crate::link::End;
use crate::machine::{Local, Runs};
use crate::wire::SqlFailure;
use duel_load::{PrivateCopy, WorkloadError, monotonic_ns};
use duel_model::{CopyPlan, Nanos, SECOND_NS, TwinReading, format_bytes, sanitize_line, shell_word};
use keeper::{Keeper, Order};
use peer::Peer;
use room::Sizes;
use settings::Settings;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use warm::Warmth;

/// How its folder's name begins; behind it stand the number of duel's process and one of the copy.
const PREFIX: &str = "duel-copy-";
/// A server that goes through its log before it answers takes seconds.
const START_NS: Nanos = 120 * SECOND_NS;
/// What a backup has beside the databases: some segments of the log, which are 16 MB each, and what is common to all databases.
const BESIDE_BYTES: u64 = 128 << 20;

/// Tables with rows that no backup has.
pub(crate) const UNLOGGED: &str =
    "SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relkind IN ('r', 'm') AND pg_relation_size(oid) > 0";

/// About how many bytes a copy takes when it is made; `None`: its server does not tell.
pub(crate) fn bytes(database: &mut Database) -> Result<Option<u64>, SqlFailure> {
    let of_databases = database.number("SELECT sum(pg_database_size(oid)) FROM pg_database")?;
    Ok(of_databases.and_then(|bytes| u64::try_from(bytes).ok()).map(|bytes| bytes + BESIDE_BYTES))
}

/// A copy that serves.
#[derive(Debug)]
struct Copy {
    /// Ends and removes it.
    keeper: Keeper,
    address: String,
    reading: TwinReading,
    /// The same once it has come to a sudden end.
    last_reading: OnceLock<TwinReading>,
}

impl PrivateCopy for Copy {
    fn address(&self) -> &str {
        &self.address
    }

    fn reading(&self) -> &TwinReading {
        let Some(why) = self.keeper.ended() else { return &self.reading };
        self.last_reading.get_or_init(|| TwinReading { ended: Some(why.to_owned()), ..self.reading.clone() })
    }
}

/// Makes one.
pub(crate) fn copy(
    server: &ServerAddress,
    patience_ns: Nanos,
    plan: &CopyPlan,
    stop: &AtomicBool,
) -> Result<Box<dyn PrivateCopy>, WorkloadError> {
    if server.system != System::Postgres {
        return Err(WorkloadError("not available here: duel copies PostgreSQL servers only".into()));
    }
    let plain = |why: SqlFailure| WorkloadError(why.text);
    let (client, _, end) = kind::connect(&among_own_names(server.clone()), patience_ns).map_err(plain)?;
    let answers = Peer::of(&client, &end);
    let mut database = Database::Server(Box::new(client), server.system);
    let local = Local::of(&mut database, &end).ok_or_else(|| {
        WorkloadError("not available here: it cannot be seen that its server runs on this machine".into())
    })?;
    let source = Source::read(&mut database, &local, plan)?;
    // A server can name the folder of another one. Whoever answers is the one whose rights are used.
    if !answers.is_some_and(|peer| peer.is(local.pid(), source.owner.0)) {
        return Err(WorkloadError(
            "not available here: it cannot be seen that the server in the data folder is who answers".into(),
        ));
    }
    // Archives may be somebody else's, and hold any names.
    if let Some(set) = plan.set.as_ref().filter(|set| !facts::is_setting(&set.fact, &set.name)) {
        return Err(WorkloadError(format!("{} is no setting that duel knows", sanitize_line(&set.name))));
    }
    let Settings { lines, left_out } =
        settings::read(&mut database, &source.folder, plan.set.as_ref()).map_err(plain)??;
    let was = plan.set.as_ref().map(|set| database.text(&format!("SHOW {}", set.name))).transpose().map_err(plain)?;
    let superuser = database.text("SELECT rolname FROM pg_roles WHERE oid = 10").map_err(plain)?;
    let (host, port) = reached_at(server);
    let password = crate::secret::password(server)?.unwrap_or_default();
    let order = Order {
        programs: &source.programs,
        folder: &source.folder,
        owner: source.owner,
        host: &host,
        port,
        user: &server.user,
        password: &password,
        variables: &variables(server),
        settings: &lines,
        most_bytes: plan.most_bytes,
    };
    let address = address(&server.user, &server.database, &source.folder);
    drop(database);
    let copied = own(server, &source)?;
    let as_superuser =
        among_own_names(ServerAddress { user: superuser.unwrap_or_else(|| server.user.clone()), ..copied });
    let keeper = Keeper::start(&order)?;
    keeper.until_copied(&order, stop)?;
    until_up(&keeper, &as_superuser, stop)?;
    let warmth = warm::warm(&as_superuser, warm::patience_ns(source.bytes));
    let changed = plan.set.as_ref().map(|set| {
        let was = was.flatten().unwrap_or_default();
        sanitize_line(&format!("{} = {} instead of {was}", set.name, set.value))
    });
    let reading = TwinReading {
        environment_known: true,
        changed,
        libcrypto: None,
        may_not_hold: warmth != Warmth::All,
        warming_was_cut: warmth == Warmth::Cut,
        is_reached_otherwise: matches!(end, End::Tcp(_)) || source.log_is_elsewhere,
        left_out,
        ..TwinReading::default()
    };
    Ok(Box::new(Copy { keeper, address, reading, last_reading: OnceLock::new() }))
}

/// What is to be copied, and where to.
struct Source {
    /// The server's programs.
    programs: PathBuf,
    /// Where the copy is to be.
    folder: PathBuf,
    /// The server's own user and group.
    owner: (u32, u32),
    /// About how many it will take.
    bytes: u64,
    /// The server's log lies on another disk than its data, and the copy's does not.
    log_is_elsewhere: bool,
}

impl Source {
    /// Makes sure that there can be a copy.
    fn read(database: &mut Database, local: &Local, plan: &CopyPlan) -> Result<Self, WorkloadError> {
        let no = |why: String| Err(WorkloadError(format!("not available here: {why}")));
        let ask = |database: &mut Database, sql: &str| database.number(sql).map_err(|why| WorkloadError(why.text));
        if ask(database, "SELECT pg_is_in_recovery()::int")? != Some(0) {
            return no("its server is a standby".to_owned());
        }
        if ask(database, "SELECT count(*) FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')")?
            != Some(0)
        {
            return no("its server has tablespaces, which lie outside of its data folder".to_owned());
        }
        if ask(database, UNLOGGED)? != Some(0) {
            return no("its database has unlogged tables, whose rows no copy has".to_owned());
        }
        let found = fs::metadata(&local.folder).map_err(|error| WorkloadError(format!("its data folder: {error}")))?;
        let Runs { programs, owner } = local.runs().map_err(|why| WorkloadError(why.0))?;
        let ours = rustix::process::geteuid();
        if owner.0 == 0 || !ours.is_root() && ours.as_raw() != owner.0 {
            return no("copies are made by root, or by the server's own user".to_owned());
        }
        let beside = local.folder.parent().filter(|parent| {
            // Another disk is another speed.
            fs::metadata(parent).is_ok_and(|parent| parent.dev() == found.dev())
        });
        let Some(beside) = beside else {
            return no("the folder around its data folder is on another disk".to_owned());
        };
        if !programs.join("pg_basebackup").exists() {
            return no(format!("there is no pg_basebackup in {}", shown(&programs)));
        }
        if let Some(left) = left_behind(beside, owner.0) {
            let removes = removal(&left, &programs, &keeper::as_owner(owner));
            return no(format!("a copy that was left behind stands in {}; `{removes}` removes it", shown(&left)));
        }
        let Some(bytes) = bytes(database).map_err(|why| WorkloadError(why.text))? else {
            return no("its server does not tell how large its databases are".to_owned());
        };
        let size = |bytes: u64| format_bytes(bytes as f64);
        if bytes > plan.most_bytes {
            return no(format!(
                "a copy takes up to {}, and --may-copy-database allows {}",
                size(bytes),
                size(plan.most_bytes)
            ));
        }
        let sizes = Sizes::read(database, plan.set.as_ref())?;
        let (free, needed) = (room::free_bytes(beside)?, sizes.needed_bytes(bytes));
        if free < needed {
            return no(format!(
                "{} has {} left; a copy of {}, its log and what is to be left for its server take {}",
                shown(beside),
                size(free),
                size(bytes),
                size(needed)
            ));
        }
        if let Some(why) = room::lacks_memory(sizes.memory_bytes) {
            return no(why);
        }
        static COPIES: AtomicU32 = AtomicU32::new(0);
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let folder = beside.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let log = fs::symlink_metadata(local.folder.join("pg_wal"));
        Ok(Self { programs, folder, owner, bytes, log_is_elsewhere: !log.is_ok_and(|log| log.is_dir()) })
    }
}

/// A copy of this user in a folder whose duel has ended without it.
fn left_behind(folder: &Path, user: u32) -> Option<PathBuf> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_ended = |name: &str| {
        let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let numbers = numbers.filter(|(process, copy)| is_number(process) && is_number(copy));
        numbers.is_some_and(|(process, _)| !Path::new("/proc").join(process).exists())
    };
    // Of a link the link itself.
    let is_theirs = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    entries.find(|entry| has_ended(&entry.file_name().to_string_lossy()) && is_theirs(entry)).map(|entry| entry.path())
}

/// What ends and removes it, as its owner: `pg_ctl` refuses root, and whatever stands in the folder may be chosen by him.
fn removal(left: &Path, programs: &Path, as_owner: &[String]) -> String {
    let word = |path: PathBuf| shell_word(&shown(&path));
    let own = if as_owner.is_empty() { String::new() } else { format!("setpriv {} -- ", as_owner.join(" ")) };
    let (program, data, folder) = (word(programs.join("pg_ctl")), word(left.join("data")), word(left.to_owned()));
    format!("{own}{program} stop -m immediate -D {data}; {own}rm -r {folder}")
}

fn shown(path: &Path) -> String {
    sanitize_line(&path.to_string_lossy())
}

/// Where its own clients would be told to connect to.
fn reached_at(server: &ServerAddress) -> (String, u16) {
    match &server.place {
        Place::Tcp { host, port } => (host.clone(), *port),
        Place::Unix(path) => {
            let folder = path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
            let port = path.extension().and_then(|port| port.to_string_lossy().parse().ok());
            (folder, port.unwrap_or(PORT_OF_POSTGRES))
        }
    }
}

const PORT_OF_POSTGRES: u16 = 5432;

/// What libpq is told beside that.
fn variables(server: &ServerAddress) -> Vec<(&'static str, String)> {
    let mode = match server.tls {
        SslMode::Disable => "disable",
        SslMode::Prefer => "prefer",
        SslMode::Require => "require",
        SslMode::VerifyFull => "verify-full",
    };
    let ca = server.ca.as_ref().map(|ca| ("PGSSLROOTCERT", ca.to_string_lossy().into_owned()));
    [("PGSSLMODE", mode.to_owned()), ("PGCONNECT_TIMEOUT", "30".to_owned())].into_iter().chain(ca).collect()
}

/// The copy's address.
fn address(user: &str, database: &str, folder: &Path) -> String {
    let [user, database, folder] = [user, database, &folder.to_string_lossy()].map(encoded);
    format!("postgres://{user}@/{database}?host={folder}&port={}", settings::PORT)
}

/// A text in an address.
fn encoded(text: &str) -> String {
    let each = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    each.collect()
}

/// The copy as a server.
fn own(server: &ServerAddress, source: &Source) -> Result<ServerAddress, WorkloadError> {
    let place = Place::Unix(source.folder.join(format!(".s.PGSQL.{}", settings::PORT)));
    let copy = ServerAddress { place, tls: SslMode::Disable, ca: None, session: Vec::new(), ..server.clone() };
    // A path that is too long for a socket.
    Server::find(&copy)?;
    Ok(copy)
}

/// The same server for sessions that ask and do something for duel itself: names mean PostgreSQL's own functions and operators, whatever
/// else the database's owner has called so, who would have it run with the rights of the session's user. Sessions have that from
/// their beginning, and it is stronger than what is set for the database and its users.
pub(crate) fn among_own_names(server: ServerAddress) -> ServerAddress {
    let path = ("search_path".to_owned(), "pg_catalog, pg_temp".to_owned());
    ServerAddress { session: vec![path], ..server }
}

/// Waits until it lets somebody in.
fn until_up(keeper: &Keeper, server: &ServerAddress, stop: &AtomicBool) -> Result<(), WorkloadError> {
    let found = Server::find(server)?;
    let deadline_ns = monotonic_ns() + START_NS;
    loop {
        let why = match Client::connect(&found, SECOND_NS) {
            Ok(_) => return Ok(()),
            Err(why) => why,
        };
        if let Some(failed) = keeper.failed() {
            return Err(WorkloadError(failed));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(WorkloadError("interrupted".into()));
        }
        if monotonic_ns() > deadline_ns {
            return Err(WorkloadError(format!("its server does not start: {}", why.text)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, parse};

    #[test]
    fn the_address_of_a_copy_is_read_as_it_is_meant() {
        let Ok(Address::Server(server)) = parse(&address("u@x", "d b?", Path::new("/var/lib/p&g/duel-copy-1-0")))
        else {
            panic!()
        };
        assert_eq!((server.user.as_str(), server.database.as_str()), ("u@x", "d b?"));
        assert_eq!(server.place, Place::Unix("/var/lib/p&g/duel-copy-1-0/.s.PGSQL.5432".into()));
    }

    #[test]
    fn what_a_dead_process_left_behind_is_seen_and_what_lives_or_is_another_thing_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let us = rustix::process::geteuid().as_raw();
        let make = |name: String| fs::create_dir(folder.path().join(name)).unwrap();
        make(format!("{PREFIX}{}-0", std::process::id()));
        make("main".to_owned());
        // No process has this number: Linux counts to 2^22 at most.
        for other in ["notes", "4194305", "4194305-", "4194305-3;reboot", "4194305-`reboot`", "+4194305-3"] {
            make(format!("{PREFIX}{other}"));
        }
        fs::write(folder.path().join("duel-copy-4194305-1"), "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("main"), folder.path().join("duel-copy-4194305-2")).unwrap();
        assert_eq!(left_behind(folder.path(), us), None);
        make(format!("{PREFIX}4194305-3"));
        assert_eq!(left_behind(folder.path(), us + 1), None, "somebody else's");
        assert_eq!(left_behind(folder.path(), us), Some(folder.path().join("duel-copy-4194305-3")));
    }

    #[test]
    fn what_removes_a_copy_is_done_by_a_shell_as_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let around = folder.path().join("a b;$(touch x)'`");
        let (left, programs) = (around.join("duel-copy-4194305-3"), around.join("bin"));
        fs::create_dir_all(left.join("data")).unwrap();
        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("pg_ctl"), "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.said\"\n").unwrap();
        fs::set_permissions(programs.join("pg_ctl"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let line = removal(&left, &programs, &[]);
        assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
        let said = fs::read_to_string(programs.join("pg_ctl.said")).unwrap();
        assert_eq!(said, format!("stop\n-m\nimmediate\n-D\n{}\n", left.join("data").display()));
        assert!(!left.exists() && around.exists());
        let as_owner = removal(&left, &programs, &["--reuid=7".to_owned(), "--clear-groups".to_owned()]);
        assert_eq!(as_owner.matches("setpriv --reuid=7 --clear-groups -- ").count(), 2, "{as_owner}");
    }
}
