//! Databases as a kind of work: which targets it has, and how one is made ready.

use crate::address::{self, Address, ServerAddress, System};
use crate::client::Client;
use crate::connection::Server;
use crate::database::Database;
use crate::facts;
use crate::fill;
use crate::keys::Keys;
use crate::ledger::Ledger;
use crate::link::End;
use crate::mix::{self, Mix, Step};
use crate::schema::{KEYS, OP, PREPARED, RANGE_SIZE, RECONNECT, RETRY, SCHEMA, TABLE_SIZE, TABLES, TRANSACTIONS};
use crate::sqlite::{self, Store};
use crate::tables::{self, Standing};
use crate::wire::SqlFailure;
use crate::workload;
use duel_load::{Kind, Opens, Prepared, Session, SessionError, WorkloadError};
use duel_model::{KindPlan, Nanos, Plan, SECOND_NS, Schema, sanitize_line};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The kind.
#[derive(Debug, Clone, Copy)]
pub struct Sql;

/// How long a question before or after load may take: a count reads whole tables.
const QUESTION_NS: Nanos = 300 * SECOND_NS;
/// Rows of a table in memory, at most: some hundred bytes each.
const MOST_MEMORY_ROWS: u64 = 20_000_000;

impl Kind for Sql {
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

    fn check(&self, kind: &KindPlan, address: &str) -> Result<(), WorkloadError> {
        let rows = number(kind, &TABLES).saturating_mul(number(kind, &TABLE_SIZE));
        if address::parse(address)? == Address::Memory && rows > MOST_MEMORY_ROWS {
            return Err(WorkloadError(format!(
                "{rows} rows in memory are too many; at most {MOST_MEMORY_ROWS} fit, or use a file: sqlite:FILE"
            )));
        }
        Ok(())
    }

    fn prepare(&self, plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError> {
        self.check(kind, address)?;
        let at = address::parse(address)?;
        let (tables, size) = (number(kind, &TABLES) as u32, number(kind, &TABLE_SIZE));
        let fail = |why: SqlFailure| WorkloadError(why.text);
        let (mut database, opened) = open(&at, plan.load.connect_timeout_ns, (tables, size)).map_err(fail_of(&at))?;
        let mix = Arc::new(mix_of(kind, database.system()));
        check_tables(&mut database, kind, address).map_err(|why| match why {
            Trouble::Told(text) => WorkloadError(text),
            Trouble::Failed(why) => fail(why),
        })?;
        let mut facts = facts::read(&mut database, tables).map_err(fail)?;
        if let Database::Server(client, _) = &database
            && let Some((version, suite)) = client.tls_facts()
        {
            facts.note("sql.tls", Some(format!("TLS {version}, {suite}")));
        }
        let ledger = if mix.writes && tables::is_counted(tables, size) {
            let content = tables::content(&mut database, tables).map_err(fail)?;
            facts.note("sql.rows", u64::try_from(content.rows).ok());
            let identity = identity(&mut database, address).map_err(fail)?;
            Some(Ledger::of(&format!("{identity} {tables}"), content))
        } else {
            None
        };
        let [reconnects, retries] = [&RECONNECT, &RETRY].map(|param| kind.get(param) == "on");
        let seed = Arc::new(AtomicU64::new(plan.compare.seed.wrapping_mul(1 << 20)));
        let opens: Arc<dyn Opens> = match opened {
            Opened::Server { server, end } => Arc::new(Target {
                factory: workload::Factory { server, end, mix, reconnects, retries, ledger: ledger.clone(), seed },
                address: at,
                ledger,
                tables,
                rows: size,
            }),
            Opened::Store(store) => {
                let op_timeout_ns = plan.load.op_timeout_ns;
                let factory =
                    sqlite::Factory { store, mix, reconnects, retries, op_timeout_ns, ledger: ledger.clone(), seed };
                Arc::new(Target { factory, address: at, ledger, tables, rows: size })
            }
        };
        Ok(Prepared { facts, opens })
    }
}

/// A target that was made ready.
#[derive(Debug)]
struct Target<F> {
    factory: F,
    address: Address,
    ledger: Option<Arc<Ledger>>,
    tables: u32,
    rows: u64,
}

impl<F: duel_load::WorkloadFactory + Clone + std::fmt::Debug> Opens for Target<F> {
    fn session(&self, lanes: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
        Session::open(self.factory.clone(), lanes, threads, stop)
    }

    /// Rows and sums against what was done, and the index against the table.
    fn contradiction(&self) -> Result<Option<String>, String> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let found = || {
            let (mut database, _) = open(&self.address, QUESTION_NS, (self.tables, self.rows))?;
            match ledger.disagreement(tables::content(&mut database, self.tables)?) {
                Some(told) => Ok(Some(told)),
                None => tables::index_disagreement(&mut database, self.tables),
            }
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
pub(crate) fn open(at: &Address, patience_ns: Nanos, memory: (u32, u64)) -> Result<(Database, Opened), SqlFailure> {
    let store = match at {
        Address::Server(server) => {
            let (client, server, end) = connect(server, patience_ns)?;
            let system = server.system;
            return Ok((Database::Server(Box::new(client), system), Opened::Server { server, end }));
        }
        Address::File(path) => Store::File(path.clone()),
        Address::Memory => fill::memory(memory.0, memory.1)?,
    };
    Ok((Database::File(store.open(false)?), Opened::Store(store)))
}

/// Connects to a server; the address that answered is the one that load goes to.
pub(crate) fn connect(server: &ServerAddress, patience_ns: Nanos) -> Result<(Client, Arc<Server>, End), SqlFailure> {
    let server = Server::find(server).map_err(|error| SqlFailure::new(crate::schema::failure::REFUSED, error.0))?;
    let (mut client, end) = Client::connect(&server, patience_ns)?;
    client.be_patient(QUESTION_NS);
    Ok((client, Arc::new(server), end))
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

fn mix_of(kind: &KindPlan, system: System) -> Mix {
    let rows = number(kind, &TABLE_SIZE);
    let steps = mix::steps(kind.get(&OP), kind.get(&TRANSACTIONS) == "on");
    let writes = steps.iter().any(|step| matches!(step, Step::Run(statement, _) if statement.writes()));
    Mix {
        steps,
        system,
        keys: Keys::named(kind.get(&KEYS), rows),
        tables: number(kind, &TABLES) as u32,
        table_size: rows as i64,
        range_size: number(kind, &RANGE_SIZE) as i64,
        is_prepared: kind.get(&PREPARED) == "on",
        writes,
    }
}

fn number(kind: &KindPlan, param: &'static duel_model::Param) -> u64 {
    kind.get(param).parse().unwrap_or(1)
}

/// Why tables cannot be loaded.
enum Trouble {
    Told(String),
    Failed(SqlFailure),
}

/// Whether all tables are as they have to be. They are never mended here.
fn check_tables(database: &mut Database, kind: &KindPlan, address: &str) -> Result<(), Trouble> {
    let (tables, size) = (number(kind, &TABLES) as u32, number(kind, &TABLE_SIZE));
    let counts = tables::is_counted(tables, size);
    // Rows that were deleted, or never were there, are no obstacle to these.
    let needs_rows = !matches!(kind.get(&OP), "delete" | "insert");
    for table in 0..tables {
        let standing = tables::standing(database, table, size, counts).map_err(Trouble::Failed)?;
        let name = tables::name(table);
        let command = |more: &str| {
            let address = sanitize_line(address);
            let quote = if address.contains(['?', '&', ';', ' ']) { "'" } else { "" };
            format!("duel prepare {quote}{address}{quote} --tables {tables} --table-size {size}{more}")
        };
        let told = match standing {
            Standing::Whole => continue,
            Standing::Half { .. } | Standing::Holed { .. } if !needs_rows => continue,
            Standing::Missing => {
                format!("table {name} of {tables} is missing; this makes it: {}", command(""))
            }
            Standing::Half { rows } => format!(
                "table {name} has {rows} of {size} rows: its preparation did not end; this goes on with it: {}",
                command(" --go-on")
            ),
            Standing::Holed { rows } => format!(
                "table {name} has {rows} of {size} rows: others were deleted; this makes it anew: {}",
                command(" --anew")
            ),
            Standing::Unindexed => {
                format!("table {name} has no index on k; this makes it: {}", command(" --go-on"))
            }
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
fn identity(database: &mut Database, address: &str) -> Result<String, SqlFailure> {
    Ok(match database.system() {
        // The tables' own numbers, and when the server was started: two servers do not share both.
        System::Postgres => database
            .text("SELECT pg_postmaster_start_time() || ' ' || current_database() || ' ' || 'sbtest1'::regclass::oid")?
            .unwrap_or_else(|| address.to_owned()),
        System::Mysql => database
            .text("SELECT concat(@@hostname, ' ', @@port, ' ', @@datadir, ' ', database())")?
            .unwrap_or_else(|| address.to_owned()),
        System::Sqlite => {
            let file = database.rows("PRAGMA database_list")?;
            let file = file.into_iter().next().and_then(|row| row.into_iter().nth(2)?);
            file.filter(|file| !file.is_empty()).unwrap_or_else(|| address.to_owned())
        }
    })
}
