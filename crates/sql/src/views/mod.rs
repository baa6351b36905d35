//! What a server itself counts while it is under load, beside what is counted here.
//!
//! It is read before and after each slot, over a connection of its own. PostgreSQL's sessions tell what they did up to a second
//! late, so that a slot's own difference says little; but what they tell of transactions and what they tell of all else is equally
//! late. So what is kept is how much there is for each transaction that the server tells of, times the transactions of the slot.
//! MySQL counts statements at once; there it is for each statement. Where others work on the server, theirs are in it, and how many
//! they are is a counter, too.
//!
//! What sessions wait for is not counted by PostgreSQL: it is looked at, now and then, while a slot runs.

mod counted;
mod statements;

pub(crate) use self::statements::Own;

use self::counted::{
    MYSQL_TIMES, OF_ALL_DATABASES, POSTGRES, Reading, mysql_question, mysql_reading, postgres_reading,
};
use self::statements::Standing;
use crate::address::System;
use crate::client::{Client, Rows};
use crate::connection::Server;
use crate::link::End;
use crate::machine::{Counted, Machine};
use crate::schema::counter;
use crate::wire::SqlFailure;
use duel_load::monotonic_ns;
use duel_model::{Counter, Facts, Id, Nanos, SECOND_NS, Tally, sanitize_line};
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

/// What our sessions at work wait for, and how many of them for each.
const POSTGRES_WAITS: &str = "SELECT coalesce(wait_event_type || ':' || wait_event, 'nothing'), count(*) \
     FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'duel' AND state <> 'idle' \
     AND pid <> pg_backend_pid() GROUP BY 1";
/// What waits for the log are called, in small letters: from 17 on, the names have other capitals.
const LOG_WAITS: [&str; 3] = ["walsync", "walwrite", "syncrep"];
/// Names of waits that are kept, at most: PostgreSQL has some two hundred, and who sends more lies.
const MOST_WAITS: usize = 500;

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
    /// The statements of load.
    own: Own,
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
    /// Transactions of load since [`State::since`], and what the server counts as such beside them.
    load_since: u64,
    beside_since: u64,
    /// MySQL tells no times.
    is_timeless: bool,
    /// What was told of statements before load.
    before_load: Option<Standing>,
    /// How many sessions at work were seen waiting, by what for; `None`: nobody looked.
    looked: Option<BTreeMap<String, u64>>,
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
            own: Own::default(),
        }
    }

    /// Looks at the machine as well, and asks about these statements.
    pub(crate) fn looking_at(self, machine: Option<Machine>, own: Own) -> Self {
        Self { machine, own, ..self }
    }

    /// Whether no other target of ours is on the same server (0), or in the same database (1).
    fn is_alone(&self, place: usize) -> bool {
        let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&self.place[place]).is_none_or(|targets| targets.len() <= 1)
    }

    /// A slot is about to begin on it.
    pub(crate) fn slot_begins(&self) {
        let mut state = lock(&self.state);
        if state.before_load.is_none() {
            state.before_load = self.standing(&mut state);
        }
        // What PostgreSQL tells late is of slots before.
        if state.since.is_none() || self.server.system == System::Mysql {
            state.since = self.read(&mut state);
            (state.own, state.load_since, state.beside_since) = (0, 0, 0);
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
        state.load_since = state.load_since.saturating_add(load);
        state.beside_since = state.beside_since.saturating_add(unclear.saturating_mul(each_op)).saturating_add(beside);
        let Some(before) = state.since.clone() else { return };
        let Some(now) = self.read(&mut state) else { return };
        // A reading is one or two, too.
        let questions = 1 + u64::from(is_mysql && !state.is_timeless);
        state.ours = state.ours.saturating_add(questions);
        state.own = state.own.saturating_add(questions);
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

    /// What the server tells of statements until now; `None` where it cannot be asked.
    fn standing(&self, state: &mut State) -> Option<Standing> {
        if state.is_blind {
            return None;
        }
        let standing = Standing::read(self.client(state)?, self.server.system, &self.own);
        // What the server counts for all is asked for anew, whatever came of this.
        state.client.take_if(|client| client.is_broken());
        Some(standing)
    }

    /// What it has told of statements and waits since load began, while sessions are still open. Where another target of ours is in the
    /// same database, it is of both, and nothing is told.
    pub(crate) fn told_after(&self) -> Facts {
        let mut state = lock(&self.state);
        let Some(before) = state.before_load.take() else { return Facts::default() };
        if !self.is_alone(1) {
            return Facts::default();
        }
        let Some(now) = self.standing(&mut state) else { return Facts::default() };
        let now = if self.is_alone(0) { now } else { now.of_database() };
        now.since(&before, state.looked.as_ref())
    }

    fn client<'a>(&self, state: &'a mut State) -> Option<&'a mut Client> {
        if state.client.is_none() {
            state.client = Client::connect_to(&self.server, &self.end, PATIENCE_NS).ok();
        }
        state.client.as_mut()
    }

    fn try_read(&self, state: &mut State) -> Option<Reading> {
        let is_timeless = state.is_timeless;
        let client = self.client(state)?;
        if self.server.system == System::Mysql {
            let times = if is_timeless { None } else { client.rows(MYSQL_TIMES).ok() };
            let reading = mysql_reading(&client.rows(&mysql_question()).ok()?)?;
            let (reading, tells) = reading.with_times(&times.unwrap_or_default());
            state.is_timeless |= !tells;
            return Some(reading);
        }
        while let Some(question) = POSTGRES.get(state.question) {
            match self.client(state)?.ask_server(question) {
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
                let Some(waiting) = state.client.as_mut().and_then(|client| client.ask_server(POSTGRES_WAITS).ok())
                else {
                    state.waits = None;
                    return;
                };
                state.note_looked(&waiting);
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
        let told = done.saturating_sub(self.own);
        // A new session of PostgreSQL, and each statement that it prepares, is a transaction, told as late as those of load: of
        // what was told load has its share. MySQL does not count all of what was done beside.
        let of_load = match (self.load_since, self.load_since.saturating_add(self.beside_since)) {
            (_, 0) => told,
            _ if is_mysql => told,
            (ours, all) => (told as f64 * ours as f64 / all as f64) as u64,
        };
        let is_enough = load > 0 && of_load >= FEWEST_TOLD.min(load) && !is_anew;
        if !is_enough && !is_mysql && !is_anew {
            return;
        }
        self.each = if is_enough { now.since(before, of_load) } else { BTreeMap::new() };
        self.told = self.told.saturating_add(done);
        self.since = Some(now);
        (self.own, self.load_since, self.beside_since) = (0, 0, 0);
    }

    /// Keeps what sessions were seen waiting for.
    fn note_looked(&mut self, waiting: &Rows) {
        let looked = self.looked.get_or_insert_default();
        for row in waiting {
            let count = row.get(1).and_then(|count| count.as_ref()?.trim().parse::<u64>().ok());
            let (Some(name), Some(count)) = (row.first().and_then(Option::as_deref), count) else { continue };
            if looked.len() < MOST_WAITS || looked.contains_key(name) {
                let sum = looked.entry(sanitize_line(name)).or_default();
                *sum = sum.saturating_add(count);
            }
        }
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

/// How long sessions have waited for locks and for the log, with those of another look, which stand for the time since the last one.
fn added(sums_ns: Option<[Nanos; 2]>, waiting: &Rows, spent_ns: Nanos, is_first: bool) -> Option<[Nanos; 2]> {
    let mut sums_ns = if is_first { [0; 2] } else { sums_ns? };
    for row in waiting {
        let (name, sessions) = (row.first()?.as_deref()?, row.get(1)?.as_deref()?.trim().parse::<u64>().ok()?);
        let waited_ns = sessions.saturating_mul(spent_ns);
        let (class, event) = name.split_once(':').unwrap_or((name, ""));
        let is_of = [class == "Lock", LOG_WAITS.contains(&event.to_ascii_lowercase().as_str())];
        for (sum_ns, is_of) in sums_ns.iter_mut().zip(is_of) {
            *sum_ns = sum_ns.saturating_add(if is_of { waited_ns } else { 0 });
        }
    }
    Some(sums_ns)
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

#[cfg(test)]
mod tests {
    use super::counted::tests::rows;
    use super::*;

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
        let look = |lock: &str, log: &str| rows(&[("Lock:tuple", lock), ("IO:WALSync", log), ("nothing", "5")]);
        let first = added(None, &look("2", "0"), 10, true);
        assert_eq!(first, Some([20, 0]));
        assert_eq!(added(first, &look("1", "3"), 10, false), Some([30, 30]));
        assert_eq!(added(first, &rows(&[("Lock:relation", "1"), ("IO:WalSync", "1")]), 10, false), Some([30, 10]));
        assert_eq!(added(first, &Rows::new(), 10, false), first, "nobody was at work");
        assert_eq!(added(first, &look("1", "x"), 10, false), None);
        assert_eq!(added(Some([u64::MAX, 0]), &look("9", "0"), u64::MAX, false), Some([u64::MAX, 0]));
        let mut state = State::default();
        state.note_looked(&look("2", "x"));
        state.note_looked(&look("1", "1"));
        let looked = state.looked.unwrap();
        assert_eq!((looked["Lock:tuple"], looked["IO:WALSync"], looked["nothing"]), (3, 1, 10));
    }

    #[test]
    fn sessions_that_were_opened_are_no_transactions_of_load() {
        let reading = |done, count| Reading { done, counts: [(counter::SERVER_HITS.id(), count)].into() };
        let mut state = State { load_since: 100, beside_since: 200, ..State::default() };
        state.take(&reading(0, 0), reading(300, 1_000), 100, false);
        assert_eq!(state.each.get(&counter::SERVER_HITS.id()), Some(&10.0));
        assert_eq!((state.load_since, state.beside_since), (0, 0));
        // Half of what was done is told, of both alike.
        let mut state = State { load_since: 400, beside_since: 800, ..State::default() };
        state.take(&reading(0, 0), reading(600, 2_000), 400, false);
        assert_eq!(state.each.get(&counter::SERVER_HITS.id()), Some(&10.0));
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
