//! Private copies of PostgreSQL and MariaDB servers on this machine: a backup beside the data folder, and a server of its own on it, as
//! the running one is set up, or with one setting changed, or with tables that were written anew. It is reached by a Unix socket that
//! only root and the server's own user may open.
//!
//! The server's own programs do all of it, as the server's own user: nobody gains a right that he did not have. What is a system's own
//! about that is its [`Maker`].

mod keeper;
pub(crate) mod mariadb;
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
pub(crate) mod postgres;
mod room;
pub(crate) mod warm;

use crate::address::{Place, ServerAddress, SslMode, System};
use crate::client::Client;
use crate::connection::Server;
use crate::database::Database;
use crate::facts;
use crate::failure;
use crate::kind;
use crate::link::End;
use crate::machine::{Local, Runs};
use crate::wire::SqlFailure;
use duel_load::{Copying, PrivateCopy, WorkloadError, monotonic_ns};
use duel_model::{CopyPlan, CopySetting, Nanos, SECOND_NS, TwinReading, format_bytes, sanitize_line, shell_word};
use keeper::{Keeper, LOOK_EVERY, Making, Order};
use peer::Peer;
use room::Sizes;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use warm::Warmth;

/// How its folder's name begins; behind it stand the number of duel's process and one of the copy.
const PREFIX: &str = "duel-copy-";
/// A server that goes through its log before it answers takes seconds.
const START_NS: Nanos = 120 * SECOND_NS;
/// Writing tables anew reads and sorts them, writes them, and writes the log of that.
const REWRITINGS: u64 = 3;
/// What a server takes beside its memory for blocks: some 25 processes of PostgreSQL of 10 MB each, and no more than that the sessions and
/// tables of MariaDB.
const PROCESSES_BYTES: u64 = 256 << 20;

/// What a copy is started with.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The lines of its configuration file.
    pub(crate) lines: Vec<String>,
    /// Settings of its server that it has not, and that may cost transactions something there.
    pub(crate) left_out: Vec<String>,
    /// Those of its server that it is told, where it may not take all of them.
    told: Vec<(String, String)>,
}

/// What is a system's own about private copies of its servers.
trait Maker: Sync {
    /// The server for sessions that ask for duel itself.
    fn asking(&self, server: &ServerAddress) -> ServerAddress;

    /// Why there can be no copy of the server with this data folder.
    fn refuses(&self, database: &mut Database, data: &Path) -> Result<Option<String>, SqlFailure>;

    /// The program that makes a copy, or that there is none.
    fn program(&self, runs: &Runs) -> Result<PathBuf, String>;

    /// About how many bytes a copy takes when it is made; `None`: that cannot be told.
    fn bytes(&self, database: &mut Database, data: &Path) -> Result<Option<u64>, SqlFailure>;

    fn sizes(&self, database: &mut Database, change: Option<&CopySetting>) -> Result<Sizes, WorkloadError>;

    /// Whether the server writes its logs, or the like, to another disk than its data, and the copy does not.
    fn log_is_elsewhere(&self, database: &mut Database, data: &Path) -> Result<bool, SqlFailure>;

    /// What ends a copy that was left behind and removes it, as its owner by words in front of each program.
    fn removal(&self, left: &Path, runs: &Runs, as_owner: &str) -> String;

    /// Those of a copy in this folder. The outer `Err`: its server could not be asked; the inner one: why there can be no copy.
    fn settings(
        &self,
        database: &mut Database,
        folder: &Path,
        change: Option<&CopySetting>,
    ) -> Result<Result<Settings, WorkloadError>, SqlFailure>;

    /// What asks for a setting's value.
    fn value_of(&self, setting: &str) -> String;

    fn making(&self, database: &mut Database, server: &ServerAddress, source: &Source) -> Result<Making, SqlFailure>;

    /// Where the server of a copy in this folder listens.
    fn socket(&self, folder: &Path) -> PathBuf;

    /// The address of a copy in this folder.
    fn address(&self, user: &str, database: &str, folder: &Path) -> String;

    /// Who reads tables into the copy's memory.
    fn reader(&self, database: &mut Database, copied: ServerAddress) -> Result<ServerAddress, SqlFailure>;

    /// Reads tables and indexes into the memory of a copy. Its server gives that up after this time, so that none of it goes on under load.
    fn warm(&self, reader: &ServerAddress, patience_ns: Nanos) -> Warmth;

    /// Writes the tables of its database anew, each in the order of its primary key, as the user of the address: what is in a table's
    /// definition is executed with no more rights than its owner's. `reader` is who reads tables into memory.
    fn rewrite(&self, user: &ServerAddress, reader: &ServerAddress, patience_ns: Nanos) -> Result<(), SqlFailure>;

    /// Lines of the configuration of a copy whose tables are written anew.
    fn rewriting(&self) -> &'static [&'static str] {
        &[]
    }

    /// Settings that the copy was told and has otherwise.
    fn unlike(&self, _reader: &ServerAddress, _told: &[(String, String)]) -> Result<Vec<String>, SqlFailure> {
        Ok(Vec::new())
    }
}

fn maker(system: System) -> Option<&'static dyn Maker> {
    match system {
        System::Postgres => Some(&postgres::Postgres),
        System::Mysql => Some(&mariadb::MariaDb),
        System::Sqlite => None,
    }
}

/// About how many bytes a copy of the server with this data folder takes when it is made; `None`: that cannot be told.
pub(crate) fn bytes(database: &mut Database, data: &Path) -> Result<Option<u64>, SqlFailure> {
    maker(database.system()).map_or(Ok(None), |maker| maker.bytes(database, data))
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
    tells: &dyn Fn(Copying),
) -> Result<Box<dyn PrivateCopy>, WorkloadError> {
    let maker = maker(server.system).ok_or_else(|| WorkloadError("not available here: it has no server".into()))?;
    let plain = |why: SqlFailure| WorkloadError(why.text);
    let (client, _, end) = kind::connect(&maker.asking(server), patience_ns).map_err(plain)?;
    let answers = Peer::of(&client, &end);
    let mut database = Database::Server(Box::new(client), server.system);
    let local = Local::of(&mut database, &end).ok_or_else(|| {
        WorkloadError("not available here: it cannot be seen that its server runs on this machine".into())
    })?;
    let source = Source::read(maker, &mut database, &local, plan)?;
    // A server can name the folder of another one. Whoever answers is the one whose rights are used.
    if !answers.is_some_and(|peer| peer.is(local.pid(), source.runs.owner.0)) {
        return Err(WorkloadError(
            "not available here: it cannot be seen that the server in the data folder is who answers".into(),
        ));
    }
    // Archives may be somebody else's, and hold any names.
    let change = plan.set.as_ref();
    if let Some(set) = change.filter(|set| !facts::is_setting(server.system, &set.fact, &set.name)) {
        return Err(WorkloadError(format!("{} is no setting that duel knows", sanitize_line(&set.name))));
    }
    let Settings { mut lines, mut left_out, told } =
        maker.settings(&mut database, &source.folder, change).map_err(plain)??;
    if plan.rewrites_tables {
        lines.extend(maker.rewriting().iter().map(|line| (*line).to_owned()));
    }
    let was = change.map(|set| database.text(&maker.value_of(&set.name))).transpose().map_err(plain)?;
    let making = maker.making(&mut database, server, &source).map_err(plain)?;
    let password = crate::secret::password(server)?;
    let address = maker.address(&server.user, &server.database, &source.folder);
    let copied = own(server, maker.socket(&source.folder), &address, password.clone())?;
    let user = copied.clone();
    let reader = maker.reader(&mut database, copied).map_err(plain)?;
    drop(database);
    let order = Order {
        folder: &source.folder,
        owner: source.runs.owner,
        cpus: source.runs.cpus.as_deref(),
        making: &making,
        password: password.as_deref().unwrap_or_default(),
        settings: &lines,
        most_bytes: plan.most_bytes,
    };
    let keeper = Keeper::start(&order)?;
    let copied = |bytes| tells(Copying { step: "its data is copied", bytes: Some((bytes, source.bytes)) });
    let step = |step| tells(Copying { step, bytes: None });
    keeper.until_copied(&order, stop, &copied)?;
    until_up(&keeper, &reader, stop, &|| step("its server starts"))?;
    left_out.extend(maker.unlike(&reader, &told).map_err(plain)?);
    let patience_ns = warm::patience_ns(source.bytes);
    if plan.rewrites_tables {
        let reader = reader.clone();
        let rewrite = move || maker.rewrite(&user, &reader, REWRITINGS * patience_ns);
        unless_stopped(stop, &|| step("its tables are written anew"), rewrite)?
            .ok_or_else(|| WorkloadError("no thread could be started".into()))?
            .map_err(|why| WorkloadError(format!("its tables could not be written anew: {}", why.text)))?;
    }
    let warm = move || maker.warm(&reader, patience_ns);
    let warmth = unless_stopped(stop, &|| step("its tables are read into memory"), warm)?.unwrap_or(Warmth::Cut);
    let changed = change.map(|set| {
        let was = was.flatten().unwrap_or_default();
        sanitize_line(&format!("{} = {} instead of {was}", set.name, set.value))
    });
    let changed = changed.or_else(|| plan.rewrites_tables.then(|| "its tables were written anew".to_owned()));
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
    /// What runs the server.
    runs: Runs,
    /// The program that makes the copy.
    program: PathBuf,
    /// The server's data folder.
    data: PathBuf,
    /// Where the copy is to be.
    folder: PathBuf,
    /// About how many it will take.
    bytes: u64,
    /// The server's log lies on another disk than its data, and the copy's does not.
    log_is_elsewhere: bool,
}

impl Source {
    /// Makes sure that there can be a copy.
    fn read(maker: &dyn Maker, database: &mut Database, local: &Local, plan: &CopyPlan) -> Result<Self, WorkloadError> {
        let no = |why: String| Err(WorkloadError(format!("not available here: {why}")));
        let plain = |why: SqlFailure| WorkloadError(why.text);
        let runs = local.runs().map_err(|why| WorkloadError(why.0))?;
        let ours = rustix::process::geteuid();
        if runs.owner.0 == 0 || !ours.is_root() && ours.as_raw() != runs.owner.0 {
            return no("copies are made by root, or by the server's own user".to_owned());
        }
        if let Some(why) = maker.refuses(database, &local.folder).map_err(plain)? {
            return no(why);
        }
        let found = fs::metadata(&local.folder).map_err(|error| WorkloadError(format!("its data folder: {error}")))?;
        let beside = local.folder.parent().filter(|parent| {
            // Another disk is another speed.
            fs::metadata(parent).is_ok_and(|parent| parent.dev() == found.dev())
        });
        let Some(beside) = beside else {
            return no("the folder around its data folder is on another disk".to_owned());
        };
        if !ours.is_root() && rustix::fs::access(beside, rustix::fs::Access::WRITE_OK).is_err() {
            return no(format!("only root may make a folder in {}, beside its data folder", shown(beside)));
        }
        let program = match maker.program(&runs) {
            Ok(program) => program,
            Err(why) => return no(why),
        };
        if let Some(left) = left_behind(beside, runs.owner.0) {
            let as_owner = keeper::as_owner(runs.owner);
            let as_owner =
                if as_owner.is_empty() { String::new() } else { format!("setpriv {} -- ", as_owner.join(" ")) };
            let removes = maker.removal(&left, &runs, &as_owner);
            return no(format!("a copy that was left behind stands in {}; `{removes}` removes it", shown(&left)));
        }
        let Some(bytes) = maker.bytes(database, &local.folder).map_err(plain)? else {
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
        let sizes = maker.sizes(database, plan.set.as_ref())?;
        // Tables that are written anew stand there twice, and their rows in the log as well.
        let anew = if plan.rewrites_tables { (REWRITINGS - 1).saturating_mul(bytes) } else { 0 };
        let (free, needed) = (room::free_bytes(beside)?, sizes.needed_bytes(bytes).saturating_add(anew));
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
        let log_is_elsewhere = maker.log_is_elsewhere(database, &local.folder).map_err(plain)?;
        Ok(Self { runs, program, data: local.folder.clone(), folder, bytes, log_is_elsewhere })
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

/// What removes it: what is in it as its owner, and the folder as whoever may.
fn removal_of(left: &Path, as_owner: &str) -> String {
    let folder = shell_word(&shown(left));
    format!("{as_owner}find {folder} -mindepth 1 -delete; rmdir {folder}")
}

fn shown(path: &Path) -> String {
    sanitize_line(&path.to_string_lossy())
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
fn own(
    server: &ServerAddress,
    socket: PathBuf,
    address: &str,
    password: Option<String>,
) -> Result<ServerAddress, WorkloadError> {
    let copy = ServerAddress {
        place: Place::Unix(socket),
        tls: SslMode::Disable,
        ca: None,
        public: address.to_owned(),
        password,
        session: Vec::new(),
        ..server.clone()
    };
    // A path that is too long for a socket.
    Server::find(&copy)?;
    Ok(copy)
}

/// What becomes of a work on the copy, such as reading it into memory, which may take minutes; `None`: it could not be begun. Who is
/// interrupted meanwhile has the copy ended, and with its server the work.
fn unless_stopped<T: Send + 'static>(
    stop: &AtomicBool,
    waits: &dyn Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, WorkloadError> {
    let (done, worked) = channel();
    // Without the thread nothing is done.
    let _ = thread::Builder::new().name("duel-copy-work".into()).spawn(move || done.send(work()));
    loop {
        match worked.recv_timeout(LOOK_EVERY) {
            Ok(worked) => return Ok(Some(worked)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(WorkloadError("interrupted".into()));
            }
            Err(RecvTimeoutError::Timeout) => waits(),
        }
    }
}

/// Waits until it lets somebody in.
fn until_up(keeper: &Keeper, server: &ServerAddress, stop: &AtomicBool, waits: &dyn Fn()) -> Result<(), WorkloadError> {
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
        // PostgreSQL lets nobody in while it starts, and says so; MariaDB does not listen until then.
        if server.system == System::Mysql && why.kind == failure::LOGIN {
            return Err(WorkloadError(format!(
                "the user of the address is not let in by the copy's Unix socket, where he comes from localhost: {}",
                why.text
            )));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(WorkloadError("interrupted".into()));
        }
        if monotonic_ns() > deadline_ns {
            return Err(WorkloadError(format!("its server does not start: {}", why.text)));
        }
        waits();
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_interrupts_a_reading_into_memory_does_not_wait_for_its_end() {
        let stop = AtomicBool::new(false);
        assert_eq!(unless_stopped(&stop, &|| {}, || Warmth::Part).unwrap(), Some(Warmth::Part));
        stop.store(true, Ordering::Relaxed);
        let (release, held) = channel::<()>();
        let (ended, end) = channel();
        let read = move || {
            let _ = held.recv();
            let _ = ended.send(());
            Warmth::All
        };
        assert_eq!(unless_stopped(&stop, &|| {}, read).unwrap_err().0, "interrupted");
        assert!(end.try_recv().is_err(), "the reading still goes on");
        drop(release);
        end.recv().unwrap();
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
}
