//! Databases as a kind of work: which targets it has, and how one is made ready.

use crate::address::{self, Address, Place, ServerAddress, System};
use crate::cancel::Canceller;
use crate::client::{Client, Rows};
use crate::connection::Server;
use crate::database::Database;
use crate::explain;
use crate::facts;
use crate::fill;
use crate::keys::Keys;
use crate::ledger::{Common, Ledger};
use crate::link::End;
use crate::listener;
use crate::machine::Machine;
use crate::mix::{self, Mix, Step};
use crate::schema::{
    KEYS, OF_OPS, OP, PLANS, PREPARED, RANGE_SIZE, RECONNECT, RETRY, SCHEMA, SCRIPT, SCRIPT_DATA, SCRIPT_READ,
    SCRIPT_SHA256, SESSION, TABLE_SIZE, TABLES, TRANSACTIONS,
};
use crate::script::Script;
use crate::sqlite::{self, Store};
use crate::tables::{self, Standing};
use crate::views::{Own, View};
use crate::wire::SqlFailure;
use crate::work::Work;
use crate::workload;
use duel_load::{Copying, Opens, PlainKind, Prepared, PrivateCopy, Session, SessionError, WorkloadError};
use duel_model::{
    CopyPlan, Facts, KindPlan, Nanos, Param, Plan, SECOND_NS, Schema, Tally, assignments, is_secret_name, sanitize_line,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// The kind.
#[derive(Debug, Clone, Copy)]
pub struct Sql;

/// How long a question before or after load may take: a count reads whole tables.
const QUESTION_NS: Nanos = 300 * SECOND_NS;
/// How long statements that nobody waits for have to come to their end.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(1);
/// Clocks of two machines and whole seconds make a server's start differ by so many seconds from one question to the next.
const START_SECONDS: u64 = 3;
/// Rows of all tables in memory, at most. SQLite's `memdb` holds 1 GiB; a row with its index takes about 220 bytes.
const MOST_MEMORY_ROWS: u64 = 4_000_000;
/// Connections to SQLite, at most: each is a thread.
const MOST_THREADS: u32 = 1024;

impl PlainKind for Sql {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn claims(&self, address: &str) -> bool {
        address::claims(address)
    }

    fn without_secrets(&self, typed: &str) -> Result<String, WorkloadError> {
        match address::parse(typed)? {
            Address::Server(server) => crate::secret::remember(&server),
            Address::File(_) | Address::Memory => Ok(typed.to_owned()),
        }
    }

    fn server_port(&self, address: &str) -> Option<u16> {
        match address::parse(address).ok()? {
            Address::Server(ServerAddress { place: Place::Tcp { port, .. }, .. }) => Some(port),
            Address::Server(_) | Address::File(_) | Address::Memory => None,
        }
    }

    fn socket(&self, address: &str) -> Option<PathBuf> {
        match address::parse(address).ok()? {
            Address::Server(ServerAddress { place: Place::Unix(socket), .. }) => Some(socket),
            Address::Server(_) | Address::File(_) | Address::Memory => None,
        }
    }

    fn listener(&self, plan: &Plan, address: &str) -> Result<u32, String> {
        match address::parse(address).map_err(|error| error.0)? {
            Address::Server(server) => listener::of(&server, plan.load.connect_timeout_ns),
            Address::File(_) | Address::Memory => Err("SQLite has no server".to_owned()),
        }
    }

    fn check(&self, kind: &KindPlan, address: &str) -> Result<(), WorkloadError> {
        let rows = number(kind, &TABLES).saturating_mul(number(kind, &TABLE_SIZE));
        let at = address::parse(address)?;
        if !matches!(at, Address::Server(_)) && !kind.get(&SESSION).is_empty() {
            return Err(WorkloadError("--set sets what sessions of a server have: SQLite has none".into()));
        }
        for (name, _) in assignments(kind.get(&SESSION)) {
            check_setting(name)?;
        }
        crate::cache::cache_sizes(kind).map_err(WorkloadError)?;
        if at == Address::Memory && rows > MOST_MEMORY_ROWS {
            return Err(WorkloadError(format!(
                "{rows} rows in memory are too many: SQLite holds 1 GiB there, which are {MOST_MEMORY_ROWS} rows; sqlite:FILE \
                 takes more"
            )));
        }
        let is_own = !kind.get(&SCRIPT).is_empty();
        if is_own && let Some(param) = OF_OPS.iter().find(|param| is_set(kind, param)) {
            return Err(WorkloadError(format!(
                "--script says what a transaction does, and --{} would, too",
                param.name
            )));
        }
        if !is_own && is_set(kind, &SCRIPT_SHA256) {
            return Err(WorkloadError("--script-sha256 says which file --script has to be, and there is none".into()));
        }
        if !is_own && is_set(kind, &SCRIPT_DATA) {
            return Err(WorkloadError("--script-data has values for a --script, and there is none".into()));
        }
        Ok(())
    }

    fn hold(&self, kind: &mut KindPlan, facts: &Facts) {
        if let Some(read) = facts.text(SCRIPT_READ).filter(|_| !kind.get(&SCRIPT).is_empty()) {
            kind.settings.insert(SCRIPT_SHA256.id(), read.to_owned());
        }
    }

    fn copy(
        &self,
        plan: &Plan,
        address: &str,
        order: &CopyPlan,
        stop: &AtomicBool,
        tells: &dyn Fn(Copying),
    ) -> Result<Box<dyn PrivateCopy>, WorkloadError> {
        match address::parse(address)? {
            Address::Server(server) => crate::copy::copy(&server, plan.load.connect_timeout_ns, order, stop, tells),
            Address::File(_) | Address::Memory => Err(WorkloadError("SQLite has no server to copy".into())),
        }
    }

    fn prepare(&self, plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError> {
        self.prepare_unless(plan, kind, address, &AtomicBool::new(false))
    }

    fn prepare_unless(
        &self,
        plan: &Plan,
        kind: &KindPlan,
        address: &str,
        stop: &AtomicBool,
    ) -> Result<Prepared, WorkloadError> {
        self.check(kind, address)?;
        let mut at = address::parse(address)?;
        if let Address::Server(server) = &mut at {
            server.session = owned(assignments(kind.get(&SESSION)));
        }
        let connections = plan.load.connections;
        if !matches!(at, Address::Server(_)) && connections > MOST_THREADS {
            return Err(WorkloadError(format!(
                "{connections} connections are too many for SQLite, where each is a thread; at most {MOST_THREADS} work"
            )));
        }
        let (tables, size) = (number(kind, &TABLES) as u32, number(kind, &TABLE_SIZE));
        let (mut database, opened) =
            open(&at, plan.load.connect_timeout_ns, (tables, if is_bulk(kind) { 0 } else { size }), stop)
                .map_err(fail_of(&at))?;
        let script = kind.get(&SCRIPT);
        let ready = if script.is_empty() {
            ready_oltp(&mut database, &opened, kind, address, stop)
        } else {
            ready_own(&mut database, &opened, kind, address)
        };
        let Ready { work, mut facts, books } = ready.map_err(|why| match why {
            Trouble::Told(text) => WorkloadError(text),
            Trouble::Failed(why) => WorkloadError(why.text),
        })?;
        if let Database::Server(client, _) = &database
            && let Some((version, suite)) = client.tls_facts()
        {
            facts.note("sql.tls", Some(format!("TLS {version}, {suite}")));
        }
        let ledger = books.as_ref().map(|(_, ledger)| Arc::clone(ledger));
        let work = Arc::new(work);
        let has_index = !is_bulk(kind);
        let [reconnects, retries] = [&RECONNECT, &RETRY].map(|param| kind.get(param) == "on");
        let seed = Arc::new(AtomicU64::new(plan.compare.seed.wrapping_mul(1 << 20)));
        let opens: Arc<dyn Opens> = match opened {
            Opened::Server { server, end } => {
                let beside: Arc<AtomicU64> = Arc::default();
                let machine = Machine::of(&mut database, &end);
                facts.note("sql.device", machine.as_ref().and_then(Machine::device));
                facts.note("sql.cpus", machine.as_ref().and_then(|machine| machine.cpus));
                if machine.is_some() {
                    facts::note_copy(&mut database, &mut facts);
                }
                let view = place(&mut database).zip(work.transactions()).map(|(place, transactions)| {
                    let targets = targets_at(plan, address);
                    let looks = work.writes();
                    View::new(
                        Arc::clone(&server),
                        end.clone(),
                        transactions,
                        looks,
                        place,
                        &targets,
                        Arc::clone(&beside),
                    )
                    .looking_at(machine, Own::of(work.named()))
                });
                let reach = Reach::Server {
                    server: Arc::clone(&server),
                    end: end.clone(),
                    connect_timeout_ns: plan.load.connect_timeout_ns,
                };
                let (lanes, segments) = (plan.load.connections, Arc::default());
                let canceller = Arc::new(Canceller::new(Arc::clone(&server), end.clone()));
                let factory = workload::Factory {
                    server,
                    end,
                    work,
                    canceller,
                    beside,
                    reconnects,
                    retries,
                    ledger,
                    seed,
                    lanes,
                    segments,
                };
                Arc::new(Target { factory, reach, books, tables, has_index, view })
            }
            Opened::Store(store) => {
                let op_timeout_ns = plan.load.op_timeout_ns;
                let reach = Reach::Store(store.clone());
                let factory = sqlite::Factory {
                    store,
                    work,
                    reconnects,
                    retries,
                    op_timeout_ns,
                    ledger,
                    seed,
                    stop: Arc::default(),
                };
                Arc::new(Target { factory, reach, books, tables, has_index, view: None })
            }
        };
        Ok(Prepared { facts, opens })
    }
}

/// Refuses own SQL that is not the one that was meant. Answers which it is.
fn script_read(kind: &KindPlan, script: &Script) -> Result<String, Trouble> {
    let meant = kind.get(&SCRIPT_SHA256);
    if is_set(kind, &SCRIPT_SHA256) && !meant.eq_ignore_ascii_case(script.digest()) {
        return Err(Trouble::Told(format!(
            "{} is another file, or has other values, than was meant: its SHA-256 is {}, and {} was to be; to run it as it is, type the \
             command anew without --{}",
            sanitize_line(kind.get(&SCRIPT)),
            script.digest(),
            sanitize_line(meant),
            SCRIPT_SHA256.name
        )));
    }
    Ok(script.digest().to_owned())
}

/// What a session is by itself, or the protocol here: whom it is, where, and how texts and transactions go. With another one
/// what is counted and checked would not be true, or another user or database would be the target than the address says.
const NO_SETTINGS: [&str; 12] = [
    "user",
    "role",
    "session_authorization",
    "database",
    "replication",
    "options",
    "client_encoding",
    "application_name",
    "collation_connection",
    "autocommit",
    "sql_mode",
    "names",
];

/// Whether a session may have a setting of this name.
fn check_setting(name: &str) -> Result<(), WorkloadError> {
    let shown = sanitize_line(name);
    let of_protocol = name.to_ascii_lowercase();
    let last = of_protocol.rsplit('.').next().unwrap_or_default();
    if NO_SETTINGS.contains(&last) || last.starts_with("character_set_") || of_protocol.starts_with("_pq_.") {
        return Err(WorkloadError(format!(
            "--set cannot set {shown}: who a session is, on which database, and how it talks is up to the address and to duel"
        )));
    }
    if is_secret_name(last) {
        return Err(WorkloadError(format!(
            "--set takes no secrets, as {shown} looks like one: its values are shown and kept"
        )));
    }
    Ok(())
}

fn owned<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The targets of a plan that have this address: one that is given twice is two.
fn targets_at(plan: &Plan, address: &str) -> Vec<String> {
    let same = plan.targets.iter().enumerate().filter(|(_, target)| target.address == address);
    same.map(|(index, _)| format!("{index} {address}")).collect()
}

/// What is the same for all targets on one server, and for all in one database; `None` where it does not tell.
fn place(database: &mut Database) -> Option<[String; 2]> {
    let ask = match database.system() {
        System::Postgres => "SELECT 'postgres ' || pg_postmaster_start_time(), current_database()",
        System::Mysql => "SELECT concat('mysql ', @@hostname, ' ', @@port, ' ', @@datadir), coalesce(database(), '')",
        System::Sqlite => return None,
    };
    let row = database.ask_server(ask).ok()?.into_iter().next()?;
    let [Some(server), Some(name)] = row.as_slice() else { return None };
    Some([server.clone(), format!("{server} {name}")])
}

/// What a target was made ready with.
struct Ready {
    work: Work,
    facts: Facts,
    books: Option<(Arc<Common>, Arc<Ledger>)>,
}

/// Makes a target ready for sysbench's ops.
fn ready_oltp(
    database: &mut Database,
    opened: &Opened,
    kind: &KindPlan,
    address: &str,
    stop: &AtomicBool,
) -> Result<Ready, Trouble> {
    let (tables, size) = (number(kind, &TABLES) as u32, number(kind, &TABLE_SIZE));
    let mut mix = mix_of(kind, database.system());
    check_tables(database, kind, address, stop)?;
    let mut facts = facts::read(database, tables)?;
    facts.note(PLANS, explain::plans(database, &mix));
    let is_counted = tables::is_counted(tables, size);
    let has_ledger = mix.writes && is_counted;
    let common = match identity(database, opened, address) {
        Ok(identity) => Some(Common::of(&identity)),
        Err(why) if has_ledger => return Err(why.into()),
        // Some that speak PostgreSQL's protocol do not know what is asked there.
        Err(_) => None,
    };
    if let Some(common) = &common {
        common.deletes().fetch_or(mix.deletes(), Ordering::Relaxed);
        if is_counted {
            mix.may_lack_rows = Arc::clone(common.deletes());
        }
        if mix.writes && !has_ledger {
            common.note_other_writer();
        }
        mix.last_rows = common.last_rows();
    }
    if mix.is_bulk() {
        for table in 0..tables {
            mix.last_rows[table as usize].fetch_max(tables::last_row(database, table)?, Ordering::Relaxed);
        }
    }
    let mut books = None;
    if let Some(common) = common.filter(|_| has_ledger) {
        let content = tables::in_snapshot(database, |database| tables::content(database, tables))?;
        facts.note("sql.rows", u64::try_from(content.rows).ok());
        let ledger = common.ledger((tables, size), content);
        books = Some((common, ledger));
    }
    Ok(Ready { work: Work::Oltp(mix), facts, books })
}

/// Makes a target ready for own SQL: the server has to take each statement that can be prepared before the first one was executed.
fn ready_own(database: &mut Database, opened: &Opened, kind: &KindPlan, address: &str) -> Result<Ready, Trouble> {
    let values = Some(kind.get(&SCRIPT_DATA)).filter(|file| !file.is_empty()).map(Path::new);
    let prepares = kind.get(&PREPARED) == "on";
    let script = Script::read(Path::new(kind.get(&SCRIPT)), values, database.system(), prepares);
    let script = script.map_err(|why| Trouble::Told(why.0))?;
    let read = script_read(kind, &script)?;
    for number in script.to_check() {
        let sql = script.prepared(number.into()).unwrap_or_default();
        match database.prepare(number, sql) {
            Err(why) if !script.may_mend(&why.text) => {
                return Err(Trouble::Told(script.told(number.into(), &why.text)));
            }
            _ => {}
        }
    }
    let mut facts = facts::read(database, 0)?;
    facts.note(SCRIPT_READ, Some(read));
    facts.note("sql.checked", Some("nothing: of own SQL duel does not know what must agree".to_owned()));
    // It may write to tables that other load of this run is held against. Where there are none of these, there is no such load.
    if script.writes()
        && let Ok(identity) = identity(database, opened, address)
    {
        Common::of(&identity).note_other_writer();
    }
    Ok(Ready { work: Work::Own(Box::new(script)), facts, books: None })
}

/// A factory that is told of the session that it makes workers for.
pub(crate) trait ForSession: duel_load::WorkloadFactory + Clone + std::fmt::Debug {
    /// The one of a session with so many lanes, which is asked to stop by the flag.
    fn for_session(&self, lanes: u32, stop: &Arc<AtomicBool>) -> Self;
}

/// A target that was made ready.
#[derive(Debug)]
struct Target<F> {
    factory: F,
    reach: Reach,
    books: Option<(Arc<Common>, Arc<Ledger>)>,
    tables: u32,
    /// The tables have an index on `k`.
    has_index: bool,
    /// The server as it sees itself.
    view: Option<View>,
}

/// Where to ask after load: the very server that was loaded. A name that is looked up again may be another one.
#[derive(Debug)]
enum Reach {
    Server { server: Arc<Server>, end: End, connect_timeout_ns: Nanos },
    Store(Store),
}

impl Reach {
    fn open(&self) -> Result<Database, SqlFailure> {
        Ok(match self {
            Self::Server { server, end, connect_timeout_ns } => {
                let mut client = Client::connect_to(server, end, *connect_timeout_ns)?;
                client.be_patient(QUESTION_NS);
                Database::Server(Box::new(client), server.system)
            }
            Self::Store(store) => Database::File(store.open(false)?),
        })
    }
}

impl<F: ForSession> Opens for Target<F> {
    fn session(&self, lanes: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
        Session::open(self.factory.for_session(lanes, &stop), lanes, threads, stop)
    }

    fn slot_begins(&self) {
        if let Some(view) = &self.view {
            view.slot_begins();
        }
    }

    fn slot_ended(&self, tally: &mut Tally) {
        if let Some(view) = &self.view {
            view.slot_ended(tally);
        }
    }

    fn told_after(&self) -> Facts {
        self.view.as_ref().map(View::told_after).unwrap_or_default()
    }

    /// Rows and sums against what was done, and the index against the table.
    fn contradiction(&self) -> Result<Option<String>, String> {
        let Some((common, ledger)) = &self.books else { return Ok(None) };
        if !common.has_one_ledger() {
            return Ok(None);
        }
        let look = |database: &mut Database| match ledger.disagreement(tables::content(database, self.tables)?) {
            Some(told) => Ok(Some(told)),
            None if !self.has_index => Ok(None),
            None => tables::index_disagreement(database, self.tables),
        };
        let found = || {
            let mut database = self.reach.open()?;
            if tables::in_snapshot(&mut database, look)?.is_none() {
                return Ok(None);
            }
            // A statement that nobody waits for any longer may still have run.
            std::thread::sleep(SECOND_LOOK_AFTER);
            tables::in_snapshot(&mut database, look)
        };
        found().map_err(|why: SqlFailure| why.text)
    }
}

/// What of a database its workload is made of.
#[derive(Debug)]
pub(crate) enum Opened {
    Server { server: Arc<Server>, end: End },
    Store(Store),
}

/// Opens a database to ask it things; one in memory is made, with `(tables, rows)`.
pub(crate) fn open(
    at: &Address,
    patience_ns: Nanos,
    memory: (u32, u64),
    stop: &AtomicBool,
) -> Result<(Database, Opened), SqlFailure> {
    let store = match at {
        Address::Server(server) => {
            let (client, server, end) = connect(server, patience_ns)?;
            let system = server.system;
            return Ok((Database::Server(Box::new(client), system), Opened::Server { server, end }));
        }
        Address::File(path) => Store::File(path.clone()),
        Address::Memory => fill::memory(memory.0, memory.1, stop)?,
    };
    Ok((Database::File(store.open(false)?), Opened::Store(store)))
}

/// Connects to a server; the address that answered is the one that load goes to.
pub(crate) fn connect(server: &ServerAddress, patience_ns: Nanos) -> Result<(Client, Arc<Server>, End), SqlFailure> {
    let server = find(server)?;
    let (mut client, end) = Client::connect(&server, patience_ns)?;
    client.be_patient(QUESTION_NS);
    Ok((client, Arc::new(server), end))
}

/// Looks a server up.
pub(crate) fn find(server: &ServerAddress) -> Result<Server, SqlFailure> {
    Server::find(server).map_err(|error| SqlFailure::new(crate::failure::REFUSED, error.0))
}

/// A failure with the target's system, safe to show.
pub(crate) fn fail_of(at: &Address) -> impl Fn(SqlFailure) -> WorkloadError {
    let what = match at {
        Address::Server(server) => format!("{} at {}", server.system.name(), sanitize_line(&server.public)),
        Address::File(path) => format!("the SQLite database {}", sanitize_line(&path.to_string_lossy())),
        Address::Memory => "SQLite in memory".to_owned(),
    };
    move |why| WorkloadError(format!("{what}: {}", why.text))
}

pub(crate) fn mix_of(kind: &KindPlan, system: System) -> Mix {
    let (rows, tables) = (number(kind, &TABLE_SIZE), number(kind, &TABLES) as usize);
    let steps = mix::steps(kind.get(&OP), kind.get(&TRANSACTIONS) == "on");
    let writes = steps.iter().any(|step| matches!(step, Step::Run(statement, _) if statement.writes()));
    Mix {
        steps,
        system,
        keys: Keys::named(kind.get(&KEYS), rows),
        tables: tables as u32,
        table_size: rows as i64,
        range_size: number(kind, &RANGE_SIZE) as i64,
        is_prepared: kind.get(&PREPARED) == "on",
        writes,
        may_lack_rows: Arc::new(AtomicBool::new(true)),
        parts: (0..mix::STATEMENTS.len() * tables).map(|_| OnceLock::new()).collect(),
        last_rows: (0..tables).map(|_| AtomicI64::new(0)).collect(),
    }
}

/// Whether rows are inserted in bulk, into tables of two columns.
fn is_bulk(kind: &KindPlan) -> bool {
    kind.get(&OP) == "bulk-insert"
}

/// Whether a setting has another value than its default.
fn is_set(kind: &KindPlan, param: &'static Param) -> bool {
    kind.get(param) != param.default
}

fn number(kind: &KindPlan, param: &'static Param) -> u64 {
    kind.get(param).parse().unwrap_or(1)
}

/// Why tables cannot be loaded.
enum Trouble {
    Told(String),
    Failed(SqlFailure),
}

impl From<SqlFailure> for Trouble {
    fn from(why: SqlFailure) -> Self {
        Self::Failed(why)
    }
}

/// Whether all tables are as they have to be. They are never mended here.
fn check_tables(database: &mut Database, kind: &KindPlan, address: &str, stop: &AtomicBool) -> Result<(), Trouble> {
    let (tables, size) = (number(kind, &TABLES) as u32, number(kind, &TABLE_SIZE));
    let counts = tables::is_counted(tables, size);
    // Rows that were deleted, or never were there, are no obstacle to these.
    let needs_rows = !matches!(kind.get(&OP), "delete" | "insert");
    let is_bulk = is_bulk(kind);
    for table in 0..tables {
        if stop.load(Ordering::Relaxed) {
            return Err(Trouble::Told("stopped while its tables were looked at".to_owned()));
        }
        let standing = tables::standing(database, table, size, counts).map_err(Trouble::Failed)?;
        let name = tables::name(table);
        let command = |more: &str| {
            let address = sanitize_line(address);
            let quote = if address.contains(['?', '&', ';', ' ']) { "'" } else { "" };
            let rows = if is_bulk { " --bulk".to_owned() } else { format!(" --table-size {size}") };
            format!("duel prepare {quote}{address}{quote} --tables {tables}{rows}{more}")
        };
        let told = match standing {
            Standing::Bulk if is_bulk => continue,
            Standing::Bulk => {
                format!("table {name} is one of --op bulk-insert, which has tables of its own; duel cleanup drops it")
            }
            Standing::Half { .. }
            | Standing::Holed { .. }
            | Standing::Unindexed
            | Standing::Keyless
            | Standing::Whole
                if is_bulk =>
            {
                format!(
                    "table {name} is one of the other ops, and bulk-insert has tables of two columns; duel cleanup drops it, and then \
                 this makes one: {}",
                    command("")
                )
            }
            Standing::Whole => continue,
            Standing::Half { .. } | Standing::Holed { .. } if !needs_rows => continue,
            Standing::Missing => {
                format!("table {name} of {tables} is missing; this makes it: {}", command(""))
            }
            Standing::Half { rows } => format!(
                "table {name} has {rows} of {size} rows: it was made with fewer, or its preparation did not end; this adds what is \
                 missing: {}",
                command(" --go-on")
            ),
            Standing::Holed { rows } => format!(
                "table {name} has {rows} of {size} rows: others were deleted; this makes it anew: {}",
                command(" --anew")
            ),
            Standing::Unindexed => {
                format!("table {name} has no index on k; this makes it: {}", command(" --go-on"))
            }
            Standing::Keyless => format!(
                "table {name} has no primary key, which all statements go by; `ALTER TABLE {name} ADD PRIMARY KEY (id)` makes it where \
                 the server has that, and this makes all tables anew: {}",
                command(" --anew")
            ),
            Standing::Other(columns) => format!(
                "table {name} is not laid out as sysbench lays it out, but has the columns: {}",
                sanitize_line(&columns)
            ),
        };
        return Err(Trouble::Told(told));
    }
    Ok(())
}

/// What is the same for all ways to one database.
fn identity(database: &mut Database, opened: &Opened, address: &str) -> Result<String, SqlFailure> {
    if let Opened::Store(Store::Memory(name)) = opened {
        return Ok(format!("memory {name}"));
    }
    Ok(match database.system() {
        // The tables' own numbers, and when the server was started: two servers do not share both.
        System::Postgres => {
            let place = database.server_text("SELECT pg_postmaster_start_time() || ' ' || current_database()")?;
            let table = database.text("SELECT 'sbtest1'::pg_catalog.regclass::pg_catalog.oid")?;
            place.zip(table).map_or_else(|| address.to_owned(), |(place, table)| format!("{place} {table}"))
        }
        System::Mysql => {
            let place = database
                .text("SELECT concat(@@hostname, ' ', @@port, ' ', @@datadir, ' ', database())")?
                .unwrap_or_else(|| address.to_owned());
            // A clone has the same place. Its number is another one where servers have any, and so is when it was started.
            let second = |rows: Rows| rows.into_iter().filter_map(|row| row.into_iter().nth(1)?).collect::<Vec<_>>();
            let asked = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid')";
            let numbers = second(database.rows(asked)?).join(" ");
            let up = second(database.rows("SHOW GLOBAL STATUS LIKE 'Uptime'")?);
            let up = up.first().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let place = format!("{place} {numbers}");
            let start = started(&place, now.saturating_sub(up));
            format!("{place} {start}")
        }
        System::Sqlite => {
            let file = database.rows("PRAGMA database_list")?;
            let file = file.into_iter().next().and_then(|row| row.into_iter().nth(2)?);
            file.filter(|file| !file.is_empty()).unwrap_or_else(|| address.to_owned())
        }
    })
}

/// The start of a server as it was first heard of, from one that is about the same.
fn started(place: &str, start: u64) -> u64 {
    static STARTS: Mutex<BTreeMap<String, Vec<u64>>> = Mutex::new(BTreeMap::new());
    let mut starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let starts = starts.entry(place.to_owned()).or_default();
    if let Some(known) = starts.iter().find(|known| known.abs_diff(start) <= START_SECONDS) {
        return *known;
    }
    starts.push(start);
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_nobody_else_and_keeps_no_secret() {
        for refused in ["user", "Role", "SQL_MODE", "character_set_client", "x.autocommit", "app.api_token", "_pq_.x"] {
            assert!(check_setting(refused).is_err(), "{refused}");
        }
        for taken in ["work_mem", "synchronous_commit", "enable_seqscan", "optimizer_switch", "sort_buffer_size", "jit"]
        {
            assert!(check_setting(taken).is_ok(), "{taken}");
        }
    }

    #[test]
    fn what_own_sql_says_is_not_told_of_settings_that_it_replaces() {
        let mut kind = KindPlan::of(&SCHEMA);
        let replaced = |kind: &KindPlan| {
            let names = SCHEMA.params.iter().filter(|param| kind.is_replaced(param)).map(|param| param.name);
            names.collect::<Vec<_>>()
        };
        assert_eq!(replaced(&kind), Vec::<&str>::new());
        kind.settings.insert(SCRIPT.id(), "own.sql".to_owned());
        assert_eq!(replaced(&kind), ["op", "range-size", "keys", "transactions"]);
    }

    #[test]
    fn a_server_has_one_start_and_its_clone_another() {
        assert_eq!([1_000, 1_002, 2_000, 998].map(|start| started("a test", start)), [1_000, 1_000, 2_000, 1_000]);
    }
}
