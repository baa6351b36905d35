//! Makes the tables, and takes them away: `duel prepare` and `duel cleanup`.

use crate::address::{self, Address, System};
use crate::client::Client;
use crate::database::{Database, sqlite_failure};
use crate::failure;
use crate::keys::Keys;
use crate::kind;
use crate::mix::append_digits;
use crate::mysql::LOADED_NAME;
use crate::sqlite::Store;
use crate::tables::{self, Standing};
use crate::wire::SqlFailure;
use duel_load::WorkloadError;
use duel_model::{Nanos, SECOND_NS};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows of a statement or transaction: what is lost at most when duel is killed. Who asks it to stop ends a bulk load early.
const LOAD_ROWS: u64 = 50_000;
const INSERT_ROWS: u64 = 1_000;
const SQLITE_ROWS: u64 = 10_000;
/// Rows that are written at a time to a bulk load.
const CHUNK_ROWS: u64 = 500;
const CONNECT_NS: Nanos = 10 * SECOND_NS;
/// An index over a large table takes long.
const STATEMENT_NS: Nanos = 24 * 3600 * SECOND_NS;
/// Tables that are filled at a time.
const MOST_WORKERS: usize = 4;

/// What is to be done with tables that are there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Existing {
    /// Go on with those whose preparation did not end.
    pub go_on: bool,
    /// Make all of them anew.
    pub anew: bool,
}

/// How far the work is; told by one thread and asked by another.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows written until now.
    pub rows: AtomicU64,
    /// Tables that are done.
    pub tables: AtomicU64,
    /// To stop is asked for.
    pub stop: AtomicBool,
}

/// What came of a preparation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filled {
    /// Tables that were whole before.
    pub found: u32,
    /// Tables that were made or finished.
    pub made: u32,
    /// Rows that were written.
    pub rows: u64,
}

/// Makes the tables `sbtest1` to `sbtestN` of a target with so many rows each, several at a time.
///
/// # Errors
///
/// A sentence for the user: a table is there that is not asked to be touched, or the database refuses.
pub fn prepare(
    address: &str,
    tables: u32,
    rows: u64,
    existing: Existing,
    progress: &Progress,
) -> Result<Filled, WorkloadError> {
    let at = address::parse(address)?;
    if at == Address::Memory {
        return Err(none_in_memory());
    }
    let fail = kind::fail_of(&at);
    // All tables are looked at before one is touched.
    let mut work = Vec::new();
    let mut filled = Filled::default();
    {
        let mut database = open(&at).map_err(&fail)?;
        for table in 0..tables {
            let standing = tables::standing(&mut database, table, rows, true).map_err(&fail)?;
            match begin_at(standing, existing, table, rows)? {
                None => filled.found += 1,
                Some(begin) => work.push((table, begin)),
            }
        }
    }
    let workers = if matches!(at, Address::File(_)) { 1 } else { MOST_WORKERS.min(work.len()) };
    let next = AtomicU64::new(0);
    let trouble: Mutex<Option<SqlFailure>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                let done = open(&at).and_then(|mut database| {
                    while let Some(&(table, begin)) = work.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                        make(&mut database, table, rows, begin, progress, &progress.stop)?;
                        progress.tables.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                });
                if let Err(why) = done {
                    // First the reason: a worker that sees `stop` has one of its own, which is none.
                    trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                    progress.stop.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    if let Some(why) = trouble.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(fail(why));
    }
    filled.made = work.len() as u32;
    filled.rows = progress.rows.load(Ordering::Relaxed);
    Ok(filled)
}

/// Makes the tables `sbtest1` to `sbtestN` of bulk inserts, which have two columns and no rows.
///
/// # Errors
///
/// A sentence for the user: a table is there that is not asked to be touched, or the database refuses.
pub fn prepare_bulk(address: &str, tables: u32, anew: bool) -> Result<Filled, WorkloadError> {
    let at = address::parse(address)?;
    if at == Address::Memory {
        return Err(none_in_memory());
    }
    let fail = kind::fail_of(&at);
    let mut database = open(&at).map_err(&fail)?;
    let mut missing = Vec::new();
    for table in 0..tables {
        match tables::standing(&mut database, table, 1, false).map_err(&fail)? {
            Standing::Missing => missing.push((table, false)),
            Standing::Bulk if anew => missing.push((table, true)),
            Standing::Bulk => {}
            _ => {
                let name = tables::name(table);
                let text = format!(
                    "table {name} is there, and is none of --op bulk-insert; duel cleanup drops those of the other ops"
                );
                return Err(WorkloadError(text));
            }
        }
    }
    for &(table, is_there) in &missing {
        if is_there {
            database.run(&format!("DROP TABLE {}", tables::name(table))).map_err(&fail)?;
        }
        make_bulk(&mut database, table).map_err(&fail)?;
    }
    let made = missing.len() as u32;
    Ok(Filled { found: tables - made, made, rows: 0 })
}

/// Makes a table of bulk inserts, as sysbench does.
fn make_bulk(database: &mut Database, table: u32) -> Result<(), SqlFailure> {
    let end = if database.system() == System::Mysql { " ENGINE = InnoDB" } else { "" };
    database.run(&format!(
        "CREATE TABLE {}(id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id)){end}",
        tables::name(table)
    ))
}

fn none_in_memory() -> WorkloadError {
    WorkloadError("a database in memory is made by each run for itself; there is nothing to prepare".into())
}

/// Drops the tables `sbtest1` to `sbtestN`; answers how many there were.
///
/// # Errors
///
/// A sentence for the user.
pub fn cleanup(address: &str, tables: u32) -> Result<u32, WorkloadError> {
    let at = address::parse(address)?;
    let fail = kind::fail_of(&at);
    if let Address::File(path) = &at
        && !path.exists()
    {
        return Ok(0);
    }
    let mut database = open(&at).map_err(&fail)?;
    let mut dropped = 0;
    for table in 0..tables {
        match tables::standing(&mut database, table, 1, false).map_err(&fail)? {
            Standing::Missing => {}
            Standing::Other(columns) => {
                return Err(WorkloadError(format!(
                    "table {} is none of sysbench's, and is left alone; it has the columns: {}",
                    tables::name(table),
                    duel_model::sanitize_line(&columns)
                )));
            }
            _ => {
                database.run(&format!("DROP TABLE {}", tables::name(table))).map_err(&fail)?;
                dropped += 1;
            }
        }
    }
    Ok(dropped)
}

/// Databases in memory that were made, by tables and rows. A connection to each keeps it alive until the process ends.
static IN_MEMORY: Mutex<BTreeMap<(u32, u64), Connection>> = Mutex::new(BTreeMap::new());

/// The database in memory with such tables, of no rows those of bulk inserts; it is made where there is none yet.
pub(crate) fn memory(tables: u32, rows: u64, stop: &AtomicBool) -> Result<Store, SqlFailure> {
    let store = Store::Memory(format!("duel-{tables}-{rows}"));
    let mut made = IN_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Entry::Vacant(place) = made.entry((tables, rows)) {
        let keeper = store.open(true)?;
        let mut database = Database::File(store.open(true)?);
        for table in 0..tables {
            let made = match rows {
                0 => make_bulk(&mut database, table),
                _ => make(&mut database, table, rows, Begin::Made, &Progress::default(), stop),
            };
            made.map_err(|why| {
                // Nothing of it stays, so that there is nothing to go on with.
                match stop.load(Ordering::Relaxed) {
                    true => SqlFailure::new(failure::ERROR, "stopped while its tables were made"),
                    false => why,
                }
            })?;
        }
        place.insert(keeper);
    }
    Ok(store)
}

fn open(at: &Address) -> Result<Database, SqlFailure> {
    match at {
        Address::File(path) => Store::File(path.clone()).open(true).map(Database::File),
        Address::Memory => kind::open(at, CONNECT_NS, (0, 0), &AtomicBool::new(false)).map(|(database, _)| database),
        Address::Server(address) => {
            let mut server = kind::find(address)?;
            server.login.loads_tables = true;
            let (mut client, _) = Client::connect(&server, CONNECT_NS)?;
            client.be_patient(STATEMENT_NS);
            Ok(Database::Server(Box::new(client), server.system))
        }
    }
}

/// Loads rows that we send. MySQL wants a name for them, as of a file; no file of this machine is read.
fn bulk_load(system: System, table: &str) -> String {
    match system {
        System::Mysql => {
            format!("LOAD DATA LOCAL INFILE '{LOADED_NAME}' INTO TABLE {table} CHARACTER SET utf8mb4 (id, k, c, pad)")
        }
        System::Postgres | System::Sqlite => format!("COPY {table}(id, k, c, pad) FROM STDIN"),
    }
}

/// Where the making of a table begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// It is not there.
    Made,
    /// It is dropped first.
    Anew,
    /// So many rows are there.
    Behind(u64),
}

fn begin_at(standing: Standing, existing: Existing, table: u32, rows: u64) -> Result<Option<Begin>, WorkloadError> {
    let name = tables::name(table);
    let refuse = |text: String| Err(WorkloadError(text));
    match standing {
        Standing::Missing => Ok(Some(Begin::Made)),
        Standing::Other(columns) => refuse(format!(
            "table {name} is there, and is none of sysbench's: it has the columns {}; duel does not touch it",
            duel_model::sanitize_line(&columns)
        )),
        Standing::Bulk => refuse(format!(
            "table {name} is one of --op bulk-insert, which has tables of its own; duel cleanup drops it"
        )),
        _ if existing.anew => Ok(Some(Begin::Anew)),
        Standing::Whole => Ok(None),
        Standing::Half { rows: found } if existing.go_on => Ok(Some(Begin::Behind(found.max(0) as u64))),
        Standing::Unindexed if existing.go_on => Ok(Some(Begin::Behind(rows))),
        Standing::Half { rows: found } => refuse(format!(
            "table {name} has {found} of {rows} rows: it was made with fewer, or its preparation did not end; --go-on adds what is \
             missing, --anew makes all tables anew"
        )),
        Standing::Unindexed => refuse(format!("table {name} has no index on k; --go-on makes it")),
        Standing::Keyless => refuse(format!("table {name} has no primary key; --anew makes all tables anew")),
        Standing::Holed { rows: found } => refuse(format!(
            "table {name} has {found} of {rows} rows, and others were deleted; --anew makes all tables anew"
        )),
    }
}

/// Makes one table: the table, its rows, its statistics, its index. In this order, so that a table without its index is not done, and
/// one with it is.
fn make(
    database: &mut Database,
    table: u32,
    rows: u64,
    begin: Begin,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<(), SqlFailure> {
    let t = tables::name(table);
    if begin == Begin::Anew {
        database.run(&format!("DROP TABLE {t}"))?;
    }
    let first = match begin {
        Begin::Behind(found) => found + 1,
        Begin::Made | Begin::Anew => {
            let (id, end) = match database.system() {
                System::Postgres => ("SERIAL", ""),
                System::Mysql => ("INTEGER NOT NULL AUTO_INCREMENT", " ENGINE = InnoDB"),
                System::Sqlite => ("INTEGER NOT NULL", ""),
            };
            database.run(&format!(
                "CREATE TABLE {t}(id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
                 pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)){end}"
            ))?;
            1
        }
    };
    let mut writer = Writer { rng: Pcg64Mcg::seed_from_u64(u64::from(table) << 32 | first), rows, text: String::new() };
    let mut next = first;
    let mut loads = database.system() != System::Sqlite;
    while next <= rows {
        let most = match database.system() {
            System::Sqlite => SQLITE_ROWS,
            _ if loads => LOAD_ROWS,
            _ => INSERT_ROWS,
        };
        let mut end = rows.min(next + most - 1);
        match database {
            Database::Server(client, system) if loads => {
                let mut at = next;
                let done = client.load(&bulk_load(*system, &t), &mut |out| {
                    let until = end.min(at + CHUNK_ROWS - 1);
                    (at..=until).for_each(|id| writer.tabbed(id, out));
                    progress.rows.fetch_add(until + 1 - at, Ordering::Relaxed);
                    at = until + 1;
                    if stop.load(Ordering::Relaxed) {
                        end = until;
                    }
                    Ok(at <= end)
                });
                let rows_sent = end + 1 - next;
                match done {
                    // Of data that a client sends MySQL leaves out rows that it cannot take, and is content.
                    Ok(taken) if taken != rows_sent => {
                        let text = format!("it took {taken} of {rows_sent} rows that were loaded into {t}");
                        return Err(SqlFailure::new(failure::WRONG, text));
                    }
                    Ok(_) => {}
                    // It takes no data of clients (`local_infile`), or a proxy in between does not.
                    Err(why) if *system == System::Mysql && at == next && why.kind == failure::ERROR => {
                        loads = false;
                        continue;
                    }
                    Err(why) => return Err(why),
                }
            }
            Database::Server(client, _) => {
                client.run(writer.insert(&t, next, end))?;
                progress.rows.fetch_add(end + 1 - next, Ordering::Relaxed);
            }
            Database::File(connection) => {
                insert(connection, &t, &mut writer, next, end).map_err(|error| sqlite_failure(&error))?;
                progress.rows.fetch_add(end + 1 - next, Ordering::Relaxed);
            }
        }
        next = end + 1;
        if stop.load(Ordering::Relaxed) {
            let text = format!("stopped; table {t} has {end} of {rows} rows, and --go-on goes on with it");
            return Err(SqlFailure::new(failure::ERROR, text));
        }
    }
    if database.system() == System::Postgres {
        // A table that was there may have more rows than are asked for.
        let last = format!("GREATEST({rows}, (SELECT max(id) FROM {t}))");
        database.rows(&format!("SELECT setval(pg_get_serial_sequence('{t}', 'id'), {last})"))?;
    }
    let index = format!("CREATE INDEX k_{} ON {t}(k)", table + 1);
    // A plan that is made before statistics are there is another one than later.
    match database.system() {
        System::Postgres => database.run(&format!("VACUUM ANALYZE {t}"))?,
        // Those of the index are made with it.
        System::Mysql => database.rows(&format!("ANALYZE TABLE {t}")).map(|_| ())?,
        System::Sqlite => return database.run(&format!("BEGIN; {index}; ANALYZE {t}; COMMIT")),
    }
    database.run(&index)
}

/// Makes the content of rows: as that of sysbench 1.0, random digits, and a `k` by its default distribution.
struct Writer {
    rng: Pcg64Mcg,
    rows: u64,
    text: String,
}

impl Writer {
    fn k(&mut self) -> i64 {
        Keys::Special.draw(&mut self.rng, 1, self.rows as i64)
    }

    fn row(&mut self, id: u64, between: &str, quote: &str) {
        let k = self.k();
        self.text.push_str(&format!("{id}{between}{k}{between}{quote}"));
        append_digits(&mut self.rng, 10, &mut self.text);
        self.text.extend([quote, between, quote]);
        append_digits(&mut self.rng, 5, &mut self.text);
        self.text.push_str(quote);
    }

    fn tabbed(&mut self, id: u64, out: &mut Vec<u8>) {
        self.text.clear();
        self.row(id, "\t", "");
        self.text.push('\n');
        out.extend_from_slice(self.text.as_bytes());
    }

    fn insert(&mut self, table: &str, first: u64, last: u64) -> &str {
        self.text.clear();
        self.text.push_str(&format!("INSERT INTO {table}(id, k, c, pad) VALUES "));
        for id in first..=last {
            self.text.push_str(if id == first { "(" } else { ",(" });
            self.row(id, ",", "'");
            self.text.push(')');
        }
        &self.text
    }
}

fn insert(
    connection: &mut Connection,
    table: &str,
    writer: &mut Writer,
    first: u64,
    last: u64,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement =
            transaction.prepare_cached(&format!("INSERT INTO {table}(id, k, c, pad) VALUES (?, ?, ?, ?)"))?;
        for id in first..=last {
            let k = writer.k();
            let [c, pad] = [10, 5].map(|groups| crate::mix::digits(&mut writer.rng, groups));
            statement.execute((id as i64, k, c, pad))?;
        }
    }
    transaction.commit()
}
