//! SQLite in this process: each lane is a thread with a connection of its own, and a call blocks until it is over.

use crate::database::sqlite_failure;
use crate::failure;
use crate::kind::ForSession;
use crate::ledger::{Change, Ledger};
use crate::mix::Segment;
use crate::schema::{SCHEMA, counter, phase};
use crate::wire::{SqlFailure, Value};
use crate::work::{Figures, Next, Turn, Work};
use duel_load::{
    Counters, Event, Failure, Io, LaneId, LanesPerWorker, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{MOST_COUNTERS, Nanos, Phase, Schema, format_duration_ns, sanitize_line};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement as Prepared, ToSql};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a statement waits for a lock, before its transaction is begun again.
const LOCK_WAIT: Duration = Duration::from_millis(100);
/// How often a transaction is begun again: with the wait for a lock, that bounds how long a request to stop is not seen.
const MOST_RETRIES: u32 = 100;
/// Statements that are kept prepared, at most: those of some hundred tables.
const MOST_PREPARED: usize = 4096;
/// Steps of a statement after which SQLite asks whether it is to go on: about 0.1 ms.
const STEPS_UNSEEN: i32 = 10_000;

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    File(PathBuf),
    /// In the memory of this process, by a name. The `memdb` file system of SQLite shares it among connections with the locks
    /// of a file; the shared cache, which is the other way, has locks of its own that no file has.
    Memory(String),
}

impl Store {
    /// Opens it; `makes`: a file that is not there is made.
    pub(crate) fn open(&self, makes: bool) -> Result<Connection, SqlFailure> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match self {
            Self::File(path) => {
                if makes {
                    flags |= OpenFlags::SQLITE_OPEN_CREATE;
                } else if !path.exists() {
                    let shown = sanitize_line(&path.to_string_lossy());
                    return Err(SqlFailure::new(failure::REFUSED, format!("there is no file {shown}")));
                }
                Connection::open_with_flags(as_path(path), flags)
            }
            Self::Memory(name) => {
                flags |= OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(format!("file:/{name}?vfs=memdb"), flags)
            }
        };
        let connection = connection.map_err(|error| sqlite_failure(&error))?;
        connection.busy_timeout(LOCK_WAIT).map_err(|error| sqlite_failure(&error))?;
        connection.set_prepared_statement_cache_capacity(MOST_PREPARED);
        Ok(connection)
    }
}

/// A relative path with a `./`, so that no name of a file reads as something else.
fn as_path(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// What all workers of a target share.
#[derive(Debug, Clone)]
pub(crate) struct Factory {
    pub(crate) store: Store,
    pub(crate) work: Arc<Work>,
    pub(crate) reconnects: bool,
    pub(crate) retries: bool,
    /// Longest time of an op: what takes longer is interrupted.
    pub(crate) op_timeout_ns: Nanos,
    /// Whoever wants the session to stop.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) seed: Arc<AtomicU64>,
}

impl ForSession for Factory {
    fn for_session(&self, _lanes: u32, stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), ..self.clone() }
    }
}

impl WorkloadFactory for Factory {
    type Workload = Calls;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, worker: WorkerId, _lanes: usize) -> Result<Calls, WorkloadError> {
        let segment = Segment { number: worker.number, others: worker.of.saturating_sub(1) };
        Ok(Calls {
            factory: self.clone(),
            connection: None,
            until_ns: Arc::new(AtomicU64::new(Nanos::MAX)),
            turn: Turn::of(segment),
            at: 0,
            rng: Pcg64Mcg::seed_from_u64(self.seed.fetch_add(1, Ordering::Relaxed)),
            values: Vec::new(),
            text: String::new(),
            figures: self.work.figures(),
            counted: [0; MOST_COUNTERS],
            counters: Counters::default(),
        })
    }

    fn lanes_per_worker(&self) -> LanesPerWorker {
        LanesPerWorker::One
    }
}

/// One thread with its connection.
#[derive(Debug)]
pub(crate) struct Calls {
    factory: Factory,
    connection: Option<Connection>,
    /// When the op under way is interrupted, as the connection is told.
    until_ns: Arc<AtomicU64>,
    turn: Turn,
    /// The step of the op under way.
    at: usize,
    rng: Pcg64Mcg,
    values: Vec<Value>,
    text: String,
    /// Of the transactions of own SQL.
    figures: Vec<Figures>,
    counted: [u64; MOST_COUNTERS],
    counters: Counters,
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Int(number) => ToSqlOutput::from(*number),
            Self::Decimal(number) => match number.parse::<f64>() {
                Ok(number) => ToSqlOutput::from(number),
                Err(_) => ToSqlOutput::Borrowed(ValueRef::Text(number.as_bytes())),
            },
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// Times of an op's phases.
#[derive(Debug)]
struct Watch {
    phases: PhaseTimes,
    since_ns: Nanos,
}

impl Watch {
    /// The time since the last call was this phase's.
    fn was(&mut self, phase: Phase) -> Nanos {
        let now_ns = monotonic_ns();
        let spent_ns = now_ns.saturating_sub(self.since_ns);
        self.phases.set(phase, self.phases.get(phase).unwrap_or(0) + spent_ns);
        self.since_ns = now_ns;
        now_ns
    }
}

impl Workload for Calls {
    fn start(&mut self, _lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        let mut watch = Watch { phases: PhaseTimes::NONE, since_ns: now_ns };
        let outcome = self.op(now_ns, &mut watch);
        if self.factory.reconnects {
            self.connection = None;
        }
        let outcome = outcome.map_err(|SqlFailure { kind, text }| Box::new(Failure { kind, text }));
        Progress::Done(OpEnd { phases: watch.phases, ..OpEnd::noticed(watch.since_ns.max(now_ns), outcome) })
    }

    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }

    fn cancel(&mut self, _lane: LaneId) {}

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    fn take_counters(&mut self) -> Counters {
        let mut counters = std::mem::take(&mut self.counters);
        let counted = std::mem::take(&mut self.counted);
        counters.counted = counter::ours().map(|counter| (counter.id(), counted[counter.place()])).collect();
        counters.counted.extend(self.factory.work.take_figures(&mut self.figures));
        counters
    }
}

impl Calls {
    /// One op, begun again where that is asked for.
    fn op(&mut self, start_ns: Nanos, watch: &mut Watch) -> Result<(), SqlFailure> {
        self.counters.reused += u64::from(self.connection.is_some());
        let work = Arc::clone(&self.factory.work);
        work.begin(&mut self.turn, &mut self.rng);
        self.until_ns.store(start_ns.saturating_add(self.factory.op_timeout_ns), Ordering::Relaxed);
        let mut attempts = 0;
        loop {
            let why = match self.attempt(watch) {
                Ok(()) => {
                    work.ended(&self.turn, watch.since_ns.saturating_sub(start_ns), &mut self.figures);
                    return Ok(());
                }
                Err(why) => why,
            };
            watch.was(phase::FIRST_ROW);
            match why.kind {
                kind if kind == failure::DEADLOCK => self.counted[counter::DEADLOCKS.place()] += 1,
                // Nobody but the connection's own question interrupts it.
                kind if kind == failure::STATEMENT_TIMEOUT => {
                    self.counted[counter::CANCELLED.place()] += 1;
                    let text = if self.factory.stop.load(Ordering::Relaxed) {
                        "interrupted, since the run was asked to stop".to_owned()
                    } else {
                        let within = format_duration_ns(self.factory.op_timeout_ns as f64);
                        format!("no complete answer within {within}")
                    };
                    return Err(SqlFailure::new(failure::TIMEOUT, text));
                }
                kind if kind == failure::DUPLICATE => self.counted[counter::DUPLICATES.place()] += 1,
                _ => return Err(why),
            }
            attempts += 1;
            if !self.factory.retries
                || !work.may_retry(self.at, &self.turn, why.kind)
                || attempts > MOST_RETRIES
                || watch.since_ns.saturating_sub(start_ns) > self.factory.op_timeout_ns
                || self.factory.stop.load(Ordering::Relaxed)
            {
                return Err(why);
            }
            self.counted[counter::RETRIES.place()] += 1;
        }
    }

    fn attempt(&mut self, watch: &mut Watch) -> Result<(), SqlFailure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = self.factory.store.open(false)?;
                let (until_ns, stop) = (Arc::clone(&self.until_ns), Arc::clone(&self.factory.stop));
                let is_over =
                    move || stop.load(Ordering::Relaxed) || monotonic_ns() >= until_ns.load(Ordering::Relaxed);
                connection.progress_handler(STEPS_UNSEEN, Some(is_over)).map_err(|error| sqlite_failure(&error))?;
                self.counters.connections += 1;
                watch.was(phase::CONNECT);
                connection
            }
        };
        let done = self.steps(&connection, watch);
        let is_open = !connection.is_autocommit();
        if is_open {
            // Where it cannot be taken back, the connection is of no more use.
            connection.execute_batch("ROLLBACK").map_err(|error| sqlite_failure(&error))?;
        }
        self.connection = Some(connection);
        done.and_then(|()| if is_open { Err(self.factory.work.left_open()) } else { Ok(()) })
    }

    fn steps(&mut self, connection: &Connection, watch: &mut Watch) -> Result<(), SqlFailure> {
        let work = Arc::clone(&self.factory.work);
        let mut change = Change::default();
        for at in 0..work.steps(&self.turn) {
            self.at = at;
            match work.next(at, &mut self.turn, &mut self.rng) {
                Next::Say { text, phase } => {
                    connection
                        .prepare_cached(text)
                        .and_then(|mut said| said.execute([]))
                        .map_err(|e| sqlite_failure(&e))?;
                    watch.was(phase);
                }
                Next::Run { number, is_prepared, phase } => {
                    let ran = self.run(connection, &work, (number, is_prepared), phase, watch);
                    let told = |error| work.told(Some(number), at, &self.turn, sqlite_failure(&error));
                    let (rows, changed) = ran.map_err(told)?;
                    work.check(at, &self.turn, rows, changed)?;
                    self.counted[counter::ROWS.place()] += rows;
                    self.counted[counter::CHANGED.place()] += changed;
                    work.note(at, &self.turn, changed, &mut change);
                    if work.settles_each() {
                        self.settle(std::mem::take(&mut change));
                    }
                }
            }
            self.counted[counter::QUERIES.place()] += 1;
        }
        self.settle(change);
        Ok(())
    }

    fn settle(&self, change: Change) {
        if let Some(ledger) = self.factory.ledger.as_ref().filter(|_| !change.is_nothing()) {
            ledger.add(change);
        }
    }

    /// Executes one statement: how many rows it answered, and how many it changed.
    fn run(
        &mut self,
        connection: &Connection,
        work: &Work,
        (number, is_prepared): (u16, bool),
        phase: Phase,
        watch: &mut Watch,
    ) -> rusqlite::Result<(u64, u64)> {
        let Self { turn, rng, values, text, .. } = self;
        let before = connection.total_changes();
        let rows = if is_prepared {
            let mut prepared = connection.prepare_cached(&work.prepared(number))?;
            work.values(number, turn, rng, values);
            for (place, value) in values.iter().enumerate() {
                prepared.raw_bind_parameter(place + 1, value)?;
            }
            rows(&mut prepared, phase, watch)?
        } else {
            work.text(number, turn, rng, values, text);
            rows(&mut connection.prepare(text)?, phase, watch)?
        };
        Ok((rows, connection.total_changes() - before))
    }
}

/// Reads all rows of a statement, with all that is in them: how many there were.
fn rows(prepared: &mut Prepared<'_>, phase: Phase, watch: &mut Watch) -> rusqlite::Result<u64> {
    let columns = prepared.column_count();
    if columns == 0 {
        prepared.raw_execute()?;
        watch.was(phase);
        return Ok(0);
    }
    let mut count = 0;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next()? {
        if count == 0 {
            watch.was(phase);
        }
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
        count += 1;
    }
    watch.was(if count == 0 { phase } else { phase::ROWS });
    Ok(count)
}
