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
use crate::machine::{Counted, Machine};
use crate::schema::counter;
use crate::wire::SqlFailure;
use duel_load::monotonic_ns;
use duel_model::{Counter, Id, MILLISECOND_NS, Nanos, SECOND_NS, Tally};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// What PostgreSQL tells of a database and of its log, in the order of [`POSTGRES_COUNTERS`]; the second where it counts flushes
/// elsewhere (from 18 on), the third where it has no table for its log (before 14).
const POSTGRES: [&str; 3] = [
    "SELECT xact_commit, blks_read, blks_hit, tup_returned, temp_files, wal_bytes::bigint, wal_sync \
     FROM pg_stat_database, pg_stat_wal WHERE datname = current_database()",
    "SELECT xact_commit, blks_read, blks_hit, tup_returned, temp_files, wal_bytes::bigint \
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

/// How many of our sessions wait for a lock, and how many for the log. From 17 on, the names of what is waited for have other
/// capitals.
const POSTGRES_WAITS: &str = "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), \
     count(*) FILTER (WHERE lower(wait_event) IN ('walsync', 'walwrite', 'syncrep')) \
     FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'duel' AND state <> 'idle' AND pid <> pg_backend_pid()";

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
    /// What was asked of the server beside the statements of ops, at most: logins, settings, prepared statements, rollbacks.
    beside: Arc<AtomicU64>,
    /// Where it runs, if that is here.
    machine: Option<Machine>,
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
    /// Transactions or statements that the server told of so far, and how many of them were ours at most. What cannot be counted
    /// exactly is taken for ours: others would be accused of it.
    told: u64,
    ours: u64,
    others: u64,
    /// Looks and readings since [`State::since`], which are no load.
    own: u64,
    /// How long sessions waited in the slot; `None` before the first look, and after one that failed.
    waits: Option<[Nanos; 2]>,
    /// What its machine had counted when the slot began.
    machine: Counted,
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
        beside: Arc<AtomicU64>,
    ) -> Self {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        for place in &place {
            places.entry(place.clone()).or_default().extend(targets.iter().cloned());
        }
        drop(places);
        let looks = looks && server.system == System::Postgres;
        Self {
            server,
            end,
            transactions,
            looks,
            place,
            state: Arc::default(),
            looking: Mutex::default(),
            beside,
            machine: None,
        }
    }

    /// Looks at the machine as well.
    pub(crate) fn with_machine(self, machine: Option<Machine>) -> Self {
        Self { machine, ..self }
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
            state.own = 0;
        }
        let looks = self.looks && !state.is_blind;
        if looks {
            state.waits = None;
        }
        // Last, so that none of this is counted.
        state.machine = self.machine.as_ref().map(Machine::counted).unwrap_or_default();
        drop(state);
        if looks {
            *lock(&self.looking) = self.look();
        }
    }

    /// A slot is over, in which duel did what its tally tells: adds what the server tells of it.
    pub(crate) fn slot_ended(&self, tally: &mut Tally) {
        if let Some(machine) = &self.machine {
            let (now, before) = (machine.counted(), lock(&self.state).machine);
            let more = |of: fn(&Counted) -> Option<u64>| of(&now)?.checked_sub(of(&before)?);
            let counters = [counter::SERVER_DEVICE_READS, counter::SERVER_DEVICE_READ_BYTES, counter::SERVER_CPU_NS];
            let counts = [more(|of| of.reads), more(|of| of.read_bytes), more(|of| of.cpu_ns)];
            for (counter, count) in counters.into_iter().zip(counts) {
                if let Some(count) = count {
                    keep(tally, counter.id(), count);
                }
            }
        }
        let looked = lock(&self.looking).take().map(Looking::end).is_some();
        let mut state = lock(&self.state);
        if let Some([lock_ns, log_ns]) = state.waits.take().filter(|_| looked) {
            keep(tally, counter::SERVER_LOCK_NS.id(), lock_ns);
            keep(tally, counter::SERVER_FLUSH_NS.id(), log_ns);
        }
        let is_mysql = self.server.system == System::Mysql;
        let counted = |counter: Counter| tally.counted.get(&counter.id()).copied().unwrap_or(0);
        let (load, each_op) = match is_mysql {
            true => (counted(counter::QUERIES), 1),
            false => (tally.ok.saturating_mul(self.transactions), self.transactions),
        };
        // Of ops without a good end nobody knows what the server has done.
        let unclear = tally.failed_total().saturating_add(tally.in_flight).saturating_add(counted(counter::RETRIES));
        let beside = self.beside.swap(0, Ordering::Relaxed);
        for ours in [load, unclear.saturating_mul(each_op), beside] {
            state.ours = state.ours.saturating_add(ours);
        }
        let Some(before) = state.since.clone() else { return };
        let Some(now) = self.read(&mut state) else { return };
        // A reading is one, too.
        state.ours = state.ours.saturating_add(1);
        state.own = state.own.saturating_add(1);
        state.take(&before, now, load, is_mysql);
        for (&counter, each) in state.each.iter().filter(|_| load > 0) {
            if self.tells(counter) {
                keep(tally, counter, (each * load as f64).round() as u64);
            }
        }
        if state.told > 0 && self.is_alone(usize::from(!is_mysql)) {
            let of = if is_mysql { counter::SERVER_OTHERS_QUERIES } else { counter::SERVER_OTHERS };
            keep(tally, of.id(), state.others());
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
                Err(SqlFailure { kind, .. }) if kind == crate::failure::ERROR => state.question += 1,
                Err(_) => return None,
            }
        }
        None
    }

    fn look(&self) -> Option<Looking> {
        let (ends, state) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.state));
        let their_ends = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("duel-waits".to_owned()).spawn(move || {
            let (mut looked_ns, mut is_first) = (monotonic_ns(), true);
            while !their_ends.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK_EVERY);
                let mut state = lock(&state);
                state.own = state.own.saturating_add(1);
                state.ours = state.ours.saturating_add(1);
                let Some(waiting) = state.client.as_mut().and_then(|client| client.rows(POSTGRES_WAITS).ok()) else {
                    state.waits = None;
                    return;
                };
                let now_ns = monotonic_ns();
                let spent_ns = std::mem::replace(&mut looked_ns, now_ns).abs_diff(now_ns);
                state.waits = added(state.waits, &waiting, spent_ns, is_first);
                if state.waits.is_none() {
                    return;
                }
                is_first = false;
            }
        });
        Some(Looking { ends, thread: thread.ok()? })
    }
}

impl State {
    /// Takes a reading for the end of what began with the one before, if it tells enough of so much load.
    fn take(&mut self, before: &Reading, now: Reading, load: u64, is_mysql: bool) {
        // Those of a server that was started anew begin anew.
        let is_anew = now.done < before.done;
        let done = now.done.saturating_sub(before.done);
        let of_load = done.saturating_sub(self.own);
        let is_enough = load > 0 && of_load >= FEWEST_TOLD.min(load) && !is_anew;
        if !is_enough && !is_mysql && !is_anew {
            return;
        }
        self.each = if is_enough { now.since(before, of_load) } else { BTreeMap::new() };
        self.told = self.told.saturating_add(done);
        self.since = Some(now);
        self.own = 0;
    }

    /// What others did since it was last asked, beside a second that PostgreSQL is late for, which makes it fewer.
    fn others(&mut self) -> u64 {
        let others = self.told.saturating_sub(self.ours);
        if others <= OTHERS_AT_LEAST.saturating_add(self.others) {
            return 0;
        }
        others - std::mem::replace(&mut self.others, others)
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

/// How long sessions have waited, with those of another look, which stand for the time since the last one.
fn added(sums_ns: Option<[Nanos; 2]>, waiting: &Rows, spent_ns: Nanos, is_first: bool) -> Option<[Nanos; 2]> {
    let sums_ns = if is_first { [0; 2] } else { sums_ns? };
    let now_ns = [number(waiting, 0)?, number(waiting, 1)?].map(|sessions| sessions.saturating_mul(spent_ns));
    Some([sums_ns[0].saturating_add(now_ns[0]), sums_ns[1].saturating_add(now_ns[1])])
}

/// Keeps what a server has counted in a slot, where that can be.
fn keep(tally: &mut Tally, counter: Id, count: u64) {
    if count <= counter::MOST {
        tally.counted.insert(counter, count);
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
    // Not at all, or not to be read.
    let value = |wanted: &str| -> Option<Option<u64>> {
        let row = rows.iter().find(|row| row.first().is_some_and(|name| name.as_deref() == Some(wanted)))?;
        Some(row.get(1).and_then(|value| value.as_ref()?.trim().parse().ok()))
    };
    let (mut counts, mut unread) = (BTreeMap::<Id, u64>::new(), Vec::new());
    for (name, counter) in MYSQL {
        match value(name) {
            Some(Some(count)) => {
                let unit = if counter.is_time() { MILLISECOND_NS } else { 1 };
                let sum = counts.entry(counter.id()).or_default();
                *sum = sum.saturating_add(count.saturating_mul(unit));
            }
            Some(None) => unread.push(counter.id()),
            None => {}
        }
    }
    counts.retain(|counter, _| !unread.contains(counter));
    if let Some(flushes) = MYSQL_FLUSHES.into_iter().find_map(value).flatten() {
        counts.insert(counter::SERVER_FLUSHES.id(), flushes);
    }
    // A request that is read is one of all requests.
    if let Some(requests) = counts.remove(&counter::SERVER_HITS.id())
        && let Some(reads) = counts.get(&counter::SERVER_READS.id())
    {
        counts.insert(counter::SERVER_HITS.id(), requests.saturating_sub(*reads));
    }
    Some(Reading { done: value(QUESTIONS).flatten()?, counts })
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

    #[test]
    fn numbers_that_lie_are_not_known_and_end_nothing() {
        let most = u64::MAX.to_string();
        let lying = [("Questions", most.as_str()), ("Handler_read_key", &most), ("Handler_read_next", &most)];
        let reading = mysql_reading(&rows(&lying)).unwrap();
        assert_eq!(reading.counts.get(&counter::SERVER_ROWS.id()), Some(&u64::MAX));
        let mut state = State::default();
        state.take(&Reading { done: 0, counts: [(counter::SERVER_ROWS.id(), 0)].into() }, reading, 1, true);
        let mut tally = Tally::default();
        keep(&mut tally, counter::SERVER_ROWS.id(), (state.each[&counter::SERVER_ROWS.id()] * 1e18) as u64);
        keep(&mut tally, counter::SERVER_OTHERS.id(), state.others());
        assert!(tally.counted.is_empty(), "{:?}", tally.counted);
        let unread = mysql_reading(&rows(&[("Questions", "1"), ("Handler_read_key", "x"), ("Handler_read_next", "5")]));
        assert!(unread.unwrap().counts.is_empty(), "a part of a sum is none");
    }

    #[test]
    fn waits_are_known_from_a_good_look_to_a_bad_one() {
        let look = |lock: &str, log: &str| vec![vec![Some(lock.to_owned()), Some(log.to_owned())]];
        let first = added(None, &look("2", "0"), 10, true);
        assert_eq!(first, Some([20, 0]));
        assert_eq!(added(first, &look("1", "3"), 10, false), Some([30, 30]));
        assert_eq!(added(first, &look("1", "x"), 10, false), None);
        assert_eq!(added(Some([u64::MAX, 0]), &look("9", "0"), u64::MAX, false), Some([u64::MAX, 0]));
    }

    #[test]
    fn looks_and_readings_are_no_load() {
        let reading = |done, count| Reading { done, counts: [(counter::SERVER_ROWS.id(), count)].into() };
        let mut state = State { own: 100, ours: 300, ..State::default() };
        state.take(&reading(1000, 0), reading(1300, 400), 200, false);
        assert_eq!(state.each.get(&counter::SERVER_ROWS.id()), Some(&2.0));
        assert_eq!((state.own, state.others()), (0, 0));
        let before = state.since.clone().unwrap();
        state.take(&before, reading(9000, 500), 0, false);
        assert_eq!(state.told, 300, "without load nothing is an average");
        state.take(&before, reading(1800, 500), 200, false);
        state.ours += 200;
        assert_eq!((state.others(), state.others()), (300, 0));
    }
}
