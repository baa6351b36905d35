//! What a server itself counts while it is under load, beside what is counted here.
//!
//! It is read before and after each slot, over a connection of its own. PostgreSQL's sessions tell what they did up to a second
//! late, so that a slot's own difference says little; but what they tell of transactions and what they tell of all else is equally
//! late. So what is kept is how much there is for each transaction that the server tells of, times the transactions of the slot.
//! MySQL counts statements at once; there it is for each statement. Where others work on the server, theirs are in it, and how many
//! they are is a counter, too.
//!
//! What sessions wait for is not counted by PostgreSQL: it is looked at, now and then, while a slot runs.

use crate::address::System;
use crate::client::{Client, Rows};
use crate::connection::Server;
use crate::link::End;
use crate::schema::counter;
use crate::wire::SqlFailure;
use duel_load::monotonic_ns;
use duel_model::{Counter, Id, MILLISECOND_NS, Nanos, SECOND_NS, Tally};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a reading may take: one takes a millisecond, and it stands between slots.
const PATIENCE_NS: Nanos = 2 * SECOND_NS;
/// How often what sessions wait for is looked at: a look costs the server about 0.3 ms, of this 0.6 %.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Fewest transactions that an average is made of: it is then some percent of whatever there is one of in each.
const FEWEST_TOLD: u64 = 50;
/// PostgreSQL vacuums now and then, and what was done before load may be told during it.
const OTHERS_AT_LEAST: u64 = 20;

/// What PostgreSQL tells of a database and of its log, in the order of [`POSTGRES_COUNTERS`]; the second where it has no table for
/// its log (before 14).
const POSTGRES: [&str; 2] = [
    "SELECT xact_commit, blks_read, blks_hit, tup_returned, temp_files, wal_bytes::bigint, wal_sync \
     FROM pg_stat_database, pg_stat_wal WHERE datname = current_database()",
    "SELECT xact_commit, blks_read, blks_hit, tup_returned, temp_files \
     FROM pg_stat_database WHERE datname = current_database()",
];
const POSTGRES_COUNTERS: [Counter; 6] = [
    counter::SERVER_READS,
    counter::SERVER_HITS,
    counter::SERVER_ROWS,
    counter::SERVER_TEMPORARY,
    counter::SERVER_LOG_BYTES,
    counter::SERVER_FLUSHES,
];
/// What of it is told of the whole server, and not of one database.
const OF_ALL_DATABASES: [Counter; 2] = [counter::SERVER_LOG_BYTES, counter::SERVER_FLUSHES];

/// How many of our sessions wait for a lock, and how many for the log.
const POSTGRES_WAITS: &str = "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), \
     count(*) FILTER (WHERE wait_event IN ('WALSync', 'WALWrite', 'SyncRep')) \
     FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()";

/// What MySQL and MariaDB tell of themselves; of those that stand for one counter the first that a server has.
const MYSQL: [(&str, Counter); 14] = [
    ("Innodb_buffer_pool_reads", counter::SERVER_READS),
    ("Innodb_buffer_pool_read_requests", counter::SERVER_HITS),
    ("Handler_read_first", counter::SERVER_ROWS),
    ("Handler_read_key", counter::SERVER_ROWS),
    ("Handler_read_last", counter::SERVER_ROWS),
    ("Handler_read_next", counter::SERVER_ROWS),
    ("Handler_read_prev", counter::SERVER_ROWS),
    ("Handler_read_rnd", counter::SERVER_ROWS),
    ("Handler_read_rnd_next", counter::SERVER_ROWS),
    ("Created_tmp_disk_tables", counter::SERVER_TEMPORARY),
    ("Innodb_os_log_written", counter::SERVER_LOG_BYTES),
    ("Innodb_row_lock_waits", counter::SERVER_LOCK_WAITS),
    ("Innodb_row_lock_time", counter::SERVER_LOCK_NS),
    ("Qcache_hits", counter::SERVER_CACHE_HITS),
];
/// MySQL counts the flushes of its log; MariaDB, from 10.8 on, those of all its files.
const MYSQL_FLUSHES: [&str; 2] = ["Innodb_os_log_fsyncs", "Innodb_data_fsyncs"];
/// Statements of all clients.
const QUESTIONS: &str = "Questions";

/// A server as it sees itself, while one target's load is on it.
#[derive(Debug)]
pub(crate) struct View {
    server: Arc<Server>,
    end: End,
    /// Transactions of PostgreSQL that an op is.
    transactions: u64,
    /// Whether sessions may wait for each other.
    looks: bool,
    /// What is the same for all targets on one server, and on one database; see [`View::is_alone`].
    place: [String; 2],
    state: Arc<Mutex<State>>,
    looking: Mutex<Option<Looking>>,
}

#[derive(Debug, Default)]
struct State {
    client: Option<Client>,
    /// It cannot be read, or not any more.
    is_blind: bool,
    /// Which of several questions the server understands.
    question: usize,
    /// Where the difference under way begins.
    since: Option<Reading>,
    /// For each transaction or statement that the server told of.
    each: BTreeMap<Id, f64>,
    /// Transactions or statements that the server told of so far, and how many were ours.
    told: u64,
    ours: u64,
    others: u64,
    waits: [Nanos; 2],
}

/// What a server has counted until now.
#[derive(Debug, Clone, Default, PartialEq)]
struct Reading {
    /// Transactions, or statements.
    done: u64,
    counts: BTreeMap<Id, u64>,
}

/// Looks at what sessions wait for while a slot runs.
#[derive(Debug)]
struct Looking {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The targets of this process by the server, and by the database, that they are on.
static PLACES: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

impl View {
    /// `place` names the server and the database, `target` the target among all of the plan.
    pub(crate) fn new(
        server: Arc<Server>,
        end: End,
        transactions: u64,
        looks: bool,
        place: [String; 2],
        targets: &[String],
    ) -> Self {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        for place in &place {
            places.entry(place.clone()).or_default().extend(targets.iter().cloned());
        }
        drop(places);
        let looks = looks && server.system == System::Postgres;
        Self { server, end, transactions, looks, place, state: Arc::default(), looking: Mutex::default() }
    }

    /// Whether no other target of ours is on the same server (0), or in the same database (1).
    fn is_alone(&self, place: usize) -> bool {
        let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&self.place[place]).is_none_or(|targets| targets.len() <= 1)
    }

    /// A slot is about to begin on it.
    pub(crate) fn slot_begins(&self) {
        let mut state = lock(&self.state);
        // What PostgreSQL tells late is of slots before.
        if state.since.is_none() || self.server.system == System::Mysql {
            state.since = self.read(&mut state);
        }
        if self.looks && !state.is_blind {
            state.waits = [0; 2];
            drop(state);
            *lock(&self.looking) = self.look();
        }
    }

    /// A slot is over, in which duel did what its tally tells: adds what the server tells of it.
    pub(crate) fn slot_ended(&self, tally: &mut Tally) {
        let looked = lock(&self.looking).take().map(Looking::end).is_some();
        let mut state = lock(&self.state);
        let Some(before) = state.since.clone() else { return };
        let Some(now) = self.read(&mut state) else { return };
        let queries = tally.counted.get(&counter::QUERIES.id()).copied().unwrap_or(0);
        let ours = match self.server.system {
            System::Mysql => queries,
            _ => tally.ok.saturating_mul(self.transactions),
        };
        let is_mysql = self.server.system == System::Mysql;
        // A reading is one, too.
        state.ours += ours + 1;
        let told = now.done.saturating_sub(before.done);
        // Those of a server that was started anew begin anew.
        let is_anew = now.done < before.done;
        if told >= FEWEST_TOLD.min(ours.max(1)) && !is_anew {
            state.each = now.since(&before, told);
            state.told += told;
            state.since = Some(now);
        } else if is_mysql || is_anew {
            state.since = Some(now);
            if is_anew {
                state.each.clear();
            }
        }
        for (&counter, each) in &state.each {
            if self.tells(counter) {
                tally.counted.insert(counter, (each * ours as f64).round() as u64);
            }
        }
        // Beside a second that PostgreSQL is late for, which makes it fewer.
        let others = state.told.saturating_sub(state.ours);
        if self.is_alone(usize::from(!is_mysql)) && others > OTHERS_AT_LEAST + state.others {
            tally.counted.insert(counter::SERVER_OTHERS.id(), others - state.others);
            state.others = others;
        } else if state.told > 0 && self.is_alone(usize::from(!is_mysql)) {
            tally.counted.insert(counter::SERVER_OTHERS.id(), 0);
        }
        if looked {
            let [lock_ns, log_ns] = state.waits;
            tally.counted.insert(counter::SERVER_LOCK_NS.id(), lock_ns);
            tally.counted.insert(counter::SERVER_FLUSH_NS.id(), log_ns);
        }
    }

    /// Whether a counter is of this target's load alone. MySQL is read at both ends of a slot, where nobody else of ours is on it.
    fn tells(&self, counter: Id) -> bool {
        let of_server = OF_ALL_DATABASES.iter().any(|of_all| of_all.id() == counter);
        self.server.system == System::Mysql || self.is_alone(usize::from(!of_server))
    }

    /// What it has counted until now; `None` where that cannot be read, which is not tried again.
    fn read(&self, state: &mut State) -> Option<Reading> {
        if state.is_blind {
            return None;
        }
        let read = self.try_read(state);
        if read.is_none() {
            state.is_blind = true;
            state.client = None;
        }
        read
    }

    fn try_read(&self, state: &mut State) -> Option<Reading> {
        if state.client.is_none() {
            state.client = Client::connect_to(&self.server, &self.end, PATIENCE_NS).ok();
        }
        let client = state.client.as_mut()?;
        if self.server.system == System::Mysql {
            return mysql_reading(&client.rows(&mysql_question()).ok()?);
        }
        while let Some(question) = POSTGRES.get(state.question) {
            match client.rows(question) {
                Ok(rows) => return postgres_reading(&rows),
                Err(SqlFailure { kind, .. }) if kind == crate::schema::failure::ERROR => state.question += 1,
                Err(_) => return None,
            }
        }
        None
    }

    fn look(&self) -> Option<Looking> {
        let (ends, state) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.state));
        let their_ends = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("duel-waits".to_owned()).spawn(move || {
            let mut looked_ns = monotonic_ns();
            while !their_ends.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK_EVERY);
                let mut state = lock(&state);
                let Some(waiting) = state.client.as_mut().and_then(|client| client.rows(POSTGRES_WAITS).ok()) else {
                    return;
                };
                let now_ns = monotonic_ns();
                let spent_ns = std::mem::replace(&mut looked_ns, now_ns).abs_diff(now_ns);
                for (place, sum_ns) in state.waits.iter_mut().enumerate() {
                    *sum_ns += number(&waiting, place).unwrap_or(0) * spent_ns;
                }
                state.ours += 1;
            }
        });
        Some(Looking { ends, thread: thread.ok()? })
    }
}

impl Looking {
    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

impl Reading {
    /// How much more there is of each than before, for each of so many transactions. What was not there before is not known.
    fn since(&self, before: &Self, done: u64) -> BTreeMap<Id, f64> {
        let grown = self.counts.iter().filter_map(|(&counter, &count)| {
            let more = count.checked_sub(*before.counts.get(&counter)?)?;
            Some((counter, more as f64 / done as f64))
        });
        grown.collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(rows: &Rows, place: usize) -> Option<u64> {
    rows.first()?.get(place)?.as_ref()?.trim().parse().ok()
}

fn postgres_reading(rows: &Rows) -> Option<Reading> {
    let counts = POSTGRES_COUNTERS.iter().enumerate();
    let counts = counts.filter_map(|(place, counter)| Some((counter.id(), number(rows, place + 1)?)));
    Some(Reading { done: number(rows, 0)?, counts: counts.collect() })
}

fn mysql_question() -> String {
    let names = MYSQL.iter().map(|(name, _)| *name).chain(MYSQL_FLUSHES).chain([QUESTIONS]);
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "))
}

fn mysql_reading(rows: &Rows) -> Option<Reading> {
    let value = |wanted: &str| {
        let row = rows.iter().find(|row| row.first().is_some_and(|name| name.as_deref() == Some(wanted)))?;
        row.get(1)?.as_ref()?.trim().parse::<u64>().ok()
    };
    let mut counts = BTreeMap::new();
    for (name, counter) in MYSQL {
        if let Some(count) = value(name) {
            let unit = if counter.is_time() { MILLISECOND_NS } else { 1 };
            *counts.entry(counter.id()).or_default() += count.saturating_mul(unit);
        }
    }
    if let Some(flushes) = MYSQL_FLUSHES.into_iter().find_map(value) {
        counts.insert(counter::SERVER_FLUSHES.id(), flushes);
    }
    // A request that is read is one of all requests.
    let reads = counts.get(&counter::SERVER_READS.id()).copied().unwrap_or(0);
    if let Some(requests) = counts.get_mut(&counter::SERVER_HITS.id()) {
        *requests = requests.saturating_sub(reads);
    }
    Some(Reading { done: value(QUESTIONS)?, counts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Rows {
        pairs.iter().map(|(name, value)| vec![Some((*name).to_owned()), Some((*value).to_owned())]).collect()
    }

    #[test]
    fn what_a_server_does_not_count_is_not_zero() {
        let reading = mysql_reading(&rows(&[
            ("Questions", "100"),
            ("Handler_read_next", "5"),
            ("Handler_read_rnd_next", "7"),
            ("Innodb_row_lock_time", "3"),
            ("Innodb_buffer_pool_reads", "4"),
            ("Innodb_buffer_pool_read_requests", "10"),
        ]))
        .unwrap();
        let count = |counter: Counter| reading.counts.get(&counter.id()).copied();
        assert_eq!((reading.done, count(counter::SERVER_ROWS)), (100, Some(12)));
        assert_eq!((count(counter::SERVER_READS), count(counter::SERVER_HITS)), (Some(4), Some(6)));
        assert_eq!(count(counter::SERVER_LOCK_NS), Some(3_000_000));
        assert_eq!((count(counter::SERVER_FLUSHES), count(counter::SERVER_CACHE_HITS)), (None, None));
        assert_eq!(mysql_reading(&rows(&[("Handler_read_next", "5")])), None, "without a count of statements");
        let before = vec![vec![Some("10".to_owned()), Some("1".to_owned()), None]];
        let before = postgres_reading(&before).unwrap();
        assert_eq!((before.done, before.counts.len()), (10, 1));
    }

    #[test]
    fn counters_that_fell_are_not_known() {
        let reading = |done, count| Reading { done, counts: [(counter::SERVER_READS.id(), count)].into() };
        assert_eq!(reading(20, 9).since(&reading(10, 4), 10).get(&counter::SERVER_READS.id()), Some(&0.5));
        assert!(reading(20, 3).since(&reading(10, 4), 10).is_empty());
        assert!(reading(20, 3).since(&Reading::default(), 10).is_empty(), "nothing was known before");
    }
}
