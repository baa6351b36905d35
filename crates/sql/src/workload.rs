//! The workload of database servers: each lane is a connection, driven by the event loop.

use crate::address::System;
use crate::cancel::Canceller;
use crate::connection::{Connection, Server, Stage};
use crate::failure;
use crate::kind::ForSession;
use crate::ledger::{Change, Ledger};
use crate::link::{End, Sent};
use crate::mix::Segment;
use crate::schema::{SCHEMA, counter, phase};
use crate::wire::{Happened, SqlFailure, Value};
use crate::work::{Figures, Next, Turn, Work};
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{MOST_COUNTERS, Nanos, Phase, Schema};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Read at a time: a thousand rows of a `c`.
const SCRATCH_BYTES: usize = 128 * 1024;
/// Reads of full buffers in a row before other connections get their turn.
const READS_IN_A_ROW: usize = 4;
/// How often a transaction is begun again: one that fails so often never comes through.
const MOST_RETRIES: u32 = 100;

/// Statements that a new connection prepares before its first op, at most: more are prepared where they are first needed.
const MOST_AHEAD: usize = 4096;

/// What a server may count of a connection: the login, SET, and the end; PostgreSQL counts the first alone.
const IN_CONNECTION: u64 = 3;
/// And of a request to stop a statement: a connection, a question, and the request.
const IN_CANCELLATION: u64 = IN_CONNECTION + 2;

/// What all workers of a session share.
#[derive(Debug, Clone)]
pub(crate) struct Factory {
    pub(crate) server: Arc<Server>,
    pub(crate) end: End,
    pub(crate) work: Arc<Work>,
    pub(crate) canceller: Arc<Canceller>,
    /// What was asked of the server beside the statements of ops, at most; see [`crate::views::View`].
    pub(crate) beside: Arc<AtomicU64>,
    pub(crate) reconnects: bool,
    pub(crate) retries: bool,
    pub(crate) ledger: Option<Arc<Ledger>>,
    /// Each worker that is made draws from numbers of its own.
    pub(crate) seed: Arc<AtomicU64>,
    /// Lanes of the session, and how many of them have a segment already.
    pub(crate) lanes: u32,
    pub(crate) segments: Arc<AtomicU32>,
}

impl ForSession for Factory {
    fn for_session(&self, lanes: u32, _stop: &Arc<AtomicBool>) -> Self {
        Self { lanes, segments: Arc::default(), ..self.clone() }
    }
}

impl WorkloadFactory for Factory {
    type Workload = Statements;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<Statements, WorkloadError> {
        // Workers may have unequally many lanes.
        let first = self.segments.fetch_add(lanes as u32, Ordering::Relaxed);
        let lane = |number: usize| {
            let segment = Segment { number: first + number as u32, others: self.lanes.saturating_sub(1) };
            Lane { turn: Turn::of(segment), ..Lane::default() }
        };
        Ok(Statements {
            factory: self.clone(),
            lanes: (0..lanes).map(lane).collect(),
            rng: Pcg64Mcg::seed_from_u64(self.seed.fetch_add(1, Ordering::Relaxed)),
            scratch: vec![0; SCRATCH_BYTES],
            values: Vec::new(),
            text: String::new(),
            ahead: if self.reconnects { Vec::new() } else { self.work.prepared_ahead(MOST_AHEAD) },
            figures: self.work.figures(),
            counted: [0; MOST_COUNTERS],
            counters: Counters::default(),
        })
    }
}

/// One worker's connections.
#[derive(Debug)]
pub(crate) struct Statements {
    factory: Factory,
    lanes: Vec<Lane>,
    rng: Pcg64Mcg,
    scratch: Vec<u8>,
    /// Of the statement that is sent.
    values: Vec<Value>,
    text: String,
    /// What a new connection prepares before its first op, as sysbench's threads do.
    ahead: Vec<u16>,
    /// Of the transactions of own SQL.
    figures: Vec<Figures>,
    counted: [u64; MOST_COUNTERS],
    counters: Counters,
}

/// A connection, or the place for one.
#[derive(Debug, Default)]
struct Lane {
    connection: Option<Connection>,
    watches_writing: bool,
    /// Which statements are prepared on the connection.
    prepared: Vec<bool>,
    turn: Turn,
    op: Option<Op>,
}

/// The op under way on a lane.
#[derive(Debug)]
struct Op {
    start_ns: Nanos,
    /// Its step.
    at: usize,
    doing: Doing,
    attempts: u32,
    phases: PhaseTimes,
    /// The phase that it is in, and since when.
    phase: Phase,
    since_ns: Nanos,
    /// Since when it has been connecting.
    connecting_ns: Option<Nanos>,
    bytes_in: u64,
    /// What its transaction has changed so far.
    change: Change,
}

/// What the server does for an op.
#[derive(Debug)]
enum Doing {
    Connecting,
    /// Prepares what there is to be prepared ahead, from this place on.
    PreparingAhead(usize),
    Preparing(u16),
    Asking,
    /// Takes back a transaction that failed.
    RollingBack(SqlFailure),
}

impl Op {
    fn new(now_ns: Nanos) -> Self {
        Self {
            start_ns: now_ns,
            at: 0,
            doing: Doing::Asking,
            attempts: 0,
            phases: PhaseTimes::NONE,
            phase: phase::SEND,
            since_ns: now_ns,
            connecting_ns: None,
            bytes_in: 0,
            change: Change::default(),
        }
    }

    /// Ends a phase now, and begins another one.
    #[inline]
    fn enter(&mut self, phase: Phase, now_ns: Nanos) {
        let spent_ns = now_ns.saturating_sub(self.since_ns);
        self.phases.set(self.phase, self.phases.get(self.phase).unwrap_or(0) + spent_ns);
        self.phase = phase;
        self.since_ns = now_ns;
    }
}

impl Workload for Statements {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        let mut op = Op::new(now_ns);
        self.factory.work.begin(&mut self.lanes[lane].turn, &mut self.rng);
        let begun = if self.lanes[lane].connection.is_some() {
            self.lanes[lane].op = Some(op);
            self.counters.reused += 1;
            self.step(lane, now_ns, io)
        } else {
            op.doing = Doing::Connecting;
            op.phase = phase::CONNECT;
            op.connecting_ns = Some(now_ns);
            self.lanes[lane].op = Some(op);
            self.connect(lane, io)
        };
        match begun {
            Ok(()) => Progress::Pending,
            Err(why) => self.failed(lane, why),
        }
    }

    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        match self.go_on(lane, event, io) {
            Ok(progress) => progress,
            Err(why) if self.lanes[lane].op.is_some() => self.failed(lane, why),
            // The server has closed a parked connection: the next op makes another one.
            Err(_) => {
                self.hang_up(lane);
                Progress::Pending
            }
        }
    }

    fn cancel(&mut self, lane: LaneId) {
        if self.lanes[lane].op.take().is_some() {
            self.note_uncertain(lane);
            let open = self.lanes[lane].connection.as_mut().filter(|connection| connection.stage() == Stage::Open);
            if let Some(cancellation) = open.and_then(Connection::cancellation) {
                self.factory.canceller.ask(cancellation);
                self.note_beside(IN_CANCELLATION);
            }
        }
        self.hang_up(lane);
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let Some(op) = &self.lanes[lane].op else { return PhaseTimes::NONE };
        let mut phases = op.phases;
        let spent_ns = now_ns.saturating_sub(op.since_ns);
        phases.set(op.phase, phases.get(op.phase).unwrap_or(0) + spent_ns);
        phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        self.lanes[lane].op.as_ref()?.connecting_ns
    }

    /// What was given up is over before another target has its turn.
    fn slot_ended(&mut self) {
        self.factory.canceller.settle();
        let (asked, failed) = self.factory.canceller.take();
        self.count(counter::CANCELLED, asked);
        self.count(counter::NOT_CANCELLED, failed);
    }

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    fn take_counters(&mut self) -> Counters {
        let mut counters = std::mem::take(&mut self.counters);
        let counted = std::mem::take(&mut self.counted);
        let ours = counter::ours().map(|counter| (counter.id(), counted[counter.place()]));
        counters.counted = ours.filter(|&(_, count)| count <= counter::MOST).collect();
        counters.counted.extend(self.factory.work.take_figures(&mut self.figures));
        counters
    }
}

impl Statements {
    fn count(&mut self, counter: duel_model::Counter, more: u64) {
        let counted = &mut self.counted[counter.place()];
        *counted = counted.saturating_add(more);
    }

    /// Notes what the server counts, or may count, beside the statements of ops.
    #[cold]
    fn note_beside(&self, requests: u64) {
        self.factory.beside.fetch_add(requests, Ordering::Relaxed);
    }

    fn connect(&mut self, lane: LaneId, io: &Io<'_>) -> Result<(), SqlFailure> {
        let is_mysql = self.factory.server.system == System::Mysql;
        self.note_beside(if is_mysql { IN_CONNECTION } else { 1 });
        let connection = Connection::open(&self.factory.server, &self.factory.end)?;
        let state = &mut self.lanes[lane];
        state.watches_writing = true;
        io.watch(connection.fd(), lane, Interest::ReadWrite).map_err(|error| unwatched(&error))?;
        state.prepared.clear();
        state.prepared.resize(self.factory.work.statements(), false);
        let stage = connection.stage();
        state.connection = Some(connection);
        // On loopback it is connected at once.
        if stage != Stage::Connecting {
            self.note_stage(lane, stage);
        }
        Ok(())
    }

    fn go_on(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Result<Progress, SqlFailure> {
        let server = Arc::clone(&self.factory.server);
        let state = &mut self.lanes[lane];
        let Some(connection) = &mut state.connection else { return Ok(Progress::Pending) };
        if event.writable && state.watches_writing {
            let was = connection.stage();
            let sent = connection.writable(&server)?;
            let is = connection.stage();
            if was == Stage::Connecting && is != was {
                self.note_stage(lane, is);
            }
            self.watch(lane, sent == Sent::Blocked, io)?;
        }
        if !event.readable {
            return Ok(Progress::Pending);
        }
        for _ in 0..READS_IN_A_ROW {
            let Some(connection) = &mut self.lanes[lane].connection else { return Ok(Progress::Pending) };
            let was = connection.stage();
            if !connection.receive(&server, &mut self.scratch)? {
                return Ok(Progress::Pending);
            }
            let is = connection.stage();
            if is != was {
                self.note_stage(lane, is);
            }
            loop {
                let Some(connection) = &mut self.lanes[lane].connection else { return Ok(Progress::Pending) };
                let was = connection.stage();
                let happened = connection.next(&server)?;
                let is = connection.stage();
                if is != was && is != Stage::Open {
                    self.note_stage(lane, is);
                }
                let Some(happened) = happened else { break };
                if let Some(end) = self.handle(lane, happened, io)? {
                    return Ok(Progress::Done(end));
                }
            }
            let Some(connection) = &mut self.lanes[lane].connection else { return Ok(Progress::Pending) };
            if !connection.may_have_more(self.scratch.len()) {
                break;
            }
        }
        Ok(Progress::Pending)
    }

    /// A connection has come further on its way.
    #[cold]
    fn note_stage(&mut self, lane: LaneId, stage: Stage) {
        let phase = match stage {
            Stage::Connecting => phase::CONNECT,
            Stage::ShakingHands => phase::TLS,
            Stage::LoggingIn | Stage::Open => phase::LOGIN,
        };
        if let Some(op) = &mut self.lanes[lane].op {
            op.enter(phase, monotonic_ns());
        }
    }

    /// Watches for room to write, or no longer.
    #[inline]
    fn watch(&mut self, lane: LaneId, writing: bool, io: &Io<'_>) -> Result<(), SqlFailure> {
        let state = &mut self.lanes[lane];
        let Some(connection) = &state.connection else { return Ok(()) };
        if state.watches_writing != writing {
            let interest = if writing { Interest::ReadWrite } else { Interest::Read };
            io.rewatch(connection.fd(), lane, interest).map_err(|error| unwatched(&error))?;
            state.watches_writing = writing;
        }
        Ok(())
    }

    /// Handles what happened on a lane; the op's end, if it ended.
    fn handle(&mut self, lane: LaneId, happened: Happened, io: &Io<'_>) -> Result<Option<OpEnd>, SqlFailure> {
        let now_ns = monotonic_ns();
        let Some(op) = &mut self.lanes[lane].op else {
            return Err(SqlFailure::new(failure::BROKEN, "the server answers what nobody asked"));
        };
        match (&mut op.doing, happened) {
            (Doing::Connecting, Happened::LoggedIn) => {
                op.connecting_ns = None;
                op.enter(phase::SEND, now_ns);
                self.counters.connections += 1;
                self.note_tls(lane);
                self.prepare_ahead(lane, 0, now_ns, io)?;
            }
            (Doing::PreparingAhead(place), Happened::Prepared) => {
                let place = *place;
                let number = self.ahead[place];
                self.lanes[lane].prepared[usize::from(number)] = true;
                self.prepare_ahead(lane, place + 1, now_ns, io)?;
            }
            (Doing::Preparing(number), Happened::Prepared) => {
                let number = *number;
                op.enter(phase::SEND, now_ns);
                op.doing = Doing::Asking;
                self.lanes[lane].prepared[usize::from(number)] = true;
                self.ask(lane, (number, true), phase::FIRST_ROW, io)?;
            }
            (Doing::Asking, Happened::FirstRow) => op.enter(phase::ROWS, now_ns),
            (Doing::Asking, Happened::Done { rows, affected }) => {
                return self.answered(lane, rows, affected, now_ns, io);
            }
            (Doing::Asking | Doing::Preparing(_) | Doing::PreparingAhead(_), Happened::Refused(why)) => {
                return self.refused(lane, why, now_ns, io);
            }
            (Doing::RollingBack(why), Happened::Done { .. }) => {
                let why = why.clone();
                return self.rolled_back(lane, why, now_ns, io);
            }
            (Doing::RollingBack(_), Happened::Refused(why)) => return Err(why),
            (Doing::Asking, Happened::WantsData) => {
                let text = "a statement that takes data from the client is no statement for load";
                return Err(SqlFailure::new(failure::ERROR, text));
            }
            (_, other) => {
                return Err(SqlFailure::new(
                    failure::BROKEN,
                    format!("the server sent {other:?} where something else belongs"),
                ));
            }
        }
        Ok(None)
    }

    /// A statement has ended well.
    #[inline]
    fn answered(
        &mut self,
        lane: LaneId,
        rows: u64,
        affected: u64,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Result<Option<OpEnd>, SqlFailure> {
        self.count(counter::QUERIES, 1);
        let work = Arc::clone(&self.factory.work);
        let state = &mut self.lanes[lane];
        let Some(op) = &mut state.op else { return Ok(None) };
        op.enter(phase::SEND, now_ns);
        work.check(op.at, &state.turn, rows, affected)?;
        work.note(op.at, &state.turn, affected, &mut op.change);
        op.at += 1;
        let is_over = op.at == work.steps(&state.turn);
        self.count(counter::ROWS, rows);
        self.count(counter::CHANGED, affected);
        let Some(op) = &mut self.lanes[lane].op else { return Ok(None) };
        if is_over || work.settles_each() {
            let change = std::mem::take(&mut op.change);
            if let Some(ledger) = self.factory.ledger.as_ref().filter(|_| !change.is_nothing()) {
                ledger.add(change);
            }
        }
        if !is_over {
            self.step(lane, now_ns, io)?;
            return Ok(None);
        }
        let took_ns = now_ns.saturating_sub(op.start_ns);
        if work.is_own() && self.lanes[lane].connection.as_mut().is_some_and(|open| open.wire().is_in_transaction()) {
            self.roll_back(lane, work.left_open(), io)?;
            return Ok(None);
        }
        work.ended(&self.lanes[lane].turn, took_ns, &mut self.figures);
        Ok(Some(self.end(lane, now_ns, Ok(()))))
    }

    /// The server has refused a statement; the connection is good.
    #[cold]
    fn refused(
        &mut self,
        lane: LaneId,
        why: SqlFailure,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Result<Option<OpEnd>, SqlFailure> {
        self.count(counter::QUERIES, 1);
        for (kind, counter) in [
            (failure::DEADLOCK, counter::DEADLOCKS),
            (failure::SERIALIZATION, counter::SERIALIZATIONS),
            (failure::DUPLICATE, counter::DUPLICATES),
        ] {
            if why.kind == kind {
                self.count(counter, 1);
            }
        }
        let state = &mut self.lanes[lane];
        let Some(op) = &mut state.op else { return Ok(None) };
        let number = match op.doing {
            Doing::PreparingAhead(place) => self.ahead.get(place).copied(),
            Doing::Preparing(number) => Some(number),
            _ => None,
        };
        let why = self.factory.work.told(number, op.at, &state.turn, why);
        op.enter(phase::SEND, now_ns);
        op.change = Change::default();
        if !state.connection.as_mut().is_some_and(|connection| connection.wire().is_in_transaction()) {
            return self.rolled_back(lane, why, now_ns, io);
        }
        self.roll_back(lane, why, io)?;
        Ok(None)
    }

    /// A transaction of the database is open that nobody goes on with.
    #[cold]
    fn roll_back(&mut self, lane: LaneId, why: SqlFailure, io: &Io<'_>) -> Result<(), SqlFailure> {
        if let Some(op) = &mut self.lanes[lane].op {
            op.doing = Doing::RollingBack(why);
        }
        self.note_beside(1);
        self.say(lane, "ROLLBACK", phase::COMMIT, io)
    }

    /// Nothing of the transaction is left: it begins again, or the op has failed.
    #[cold]
    fn rolled_back(
        &mut self,
        lane: LaneId,
        why: SqlFailure,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Result<Option<OpEnd>, SqlFailure> {
        let retries = self.factory.retries;
        let Lane { op: Some(op), turn, .. } = &mut self.lanes[lane] else { return Ok(None) };
        let may_retry = retries && self.factory.work.may_retry(op.at, turn, why.kind);
        op.enter(phase::SEND, now_ns);
        if may_retry && op.attempts < MOST_RETRIES {
            op.attempts += 1;
            op.at = 0;
            op.doing = Doing::Asking;
            self.count(counter::RETRIES, 1);
            self.step(lane, now_ns, io)?;
            return Ok(None);
        }
        Ok(Some(self.end(lane, now_ns, Err(why))))
    }

    /// Begins the step that the op is at.
    #[inline]
    fn step(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Result<(), SqlFailure> {
        let state = &mut self.lanes[lane];
        let Some(op) = &mut state.op else { return Ok(()) };
        op.doing = Doing::Asking;
        match self.factory.work.next(op.at, &mut state.turn, &mut self.rng) {
            Next::Say { text, phase } => self.say(lane, text, phase, io),
            Next::Run { number, is_prepared: true, .. } if !state.prepared[usize::from(number)] => {
                self.prepare(lane, number, Doing::Preparing(number), now_ns, io)
            }
            Next::Run { number, is_prepared, phase } => self.ask(lane, (number, is_prepared), phase, io),
        }
    }

    /// Goes on with what a new connection prepares, and then with the op: no later op has to wait for a statement of a table
    /// that it is the first to draw.
    #[cold]
    fn prepare_ahead(&mut self, lane: LaneId, place: usize, now_ns: Nanos, io: &Io<'_>) -> Result<(), SqlFailure> {
        let Some(&number) = self.ahead.get(place) else {
            if let Some(op) = &mut self.lanes[lane].op {
                op.enter(phase::SEND, now_ns);
            }
            return self.step(lane, now_ns, io);
        };
        self.prepare(lane, number, Doing::PreparingAhead(place), now_ns, io)
    }

    #[cold]
    fn prepare(
        &mut self,
        lane: LaneId,
        number: u16,
        doing: Doing,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Result<(), SqlFailure> {
        let state = &mut self.lanes[lane];
        let (Some(op), Some(connection)) = (&mut state.op, &mut state.connection) else { return Ok(()) };
        op.enter(phase::PREPARE, now_ns);
        op.doing = doing;
        connection.wire().prepare(number, &self.factory.work.prepared(number))?;
        let sent = connection.flush()?;
        self.note_beside(1);
        self.watch(lane, sent == Sent::Blocked, io)
    }

    /// Sends a statement, which may be a prepared one.
    #[inline]
    fn ask(
        &mut self,
        lane: LaneId,
        (number, is_prepared): (u16, bool),
        phase: Phase,
        io: &Io<'_>,
    ) -> Result<(), SqlFailure> {
        let Self { factory, lanes, rng, values, text, .. } = self;
        let state = &mut lanes[lane];
        let (Some(op), Some(connection)) = (&mut state.op, &mut state.connection) else { return Ok(()) };
        if is_prepared {
            factory.work.values(number, &mut state.turn, rng, values);
            connection.execute(number, values)?;
        } else {
            factory.work.text(number, &mut state.turn, rng, values, text);
            connection.wire().query(text)?;
        }
        let sent = connection.flush()?;
        op.enter(phase, monotonic_ns());
        self.watch(lane, sent == Sent::Blocked, io)
    }

    /// Sends a statement without values.
    fn say(&mut self, lane: LaneId, sql: &str, phase: Phase, io: &Io<'_>) -> Result<(), SqlFailure> {
        let state = &mut self.lanes[lane];
        let (Some(op), Some(connection)) = (&mut state.op, &mut state.connection) else { return Ok(()) };
        connection.wire().query(sql)?;
        let sent = connection.flush()?;
        op.enter(phase, monotonic_ns());
        self.watch(lane, sent == Sent::Blocked, io)
    }

    /// An op is over, and its connection is good.
    fn end(&mut self, lane: LaneId, end_ns: Nanos, outcome: Result<(), SqlFailure>) -> OpEnd {
        let state = &mut self.lanes[lane];
        let Some(mut op) = state.op.take() else { return OpEnd::noticed(end_ns, Ok(())) };
        if let Some(connection) = &mut state.connection {
            let (bytes_in, bytes_out) = connection.take_traffic();
            op.bytes_in += bytes_in;
            self.counters.bytes_in += bytes_in;
            self.counters.bytes_out += bytes_out;
        }
        if self.factory.reconnects {
            self.hang_up(lane);
        }
        let outcome = outcome.map_err(|SqlFailure { kind, text }| Box::new(Failure { kind, text }));
        OpEnd { phases: op.phases, bytes_in: op.bytes_in, ..OpEnd::noticed(end_ns, outcome) }
    }

    /// An op has failed, and its connection with it.
    #[cold]
    fn failed(&mut self, lane: LaneId, why: SqlFailure) -> Progress {
        let now_ns = monotonic_ns();
        if let Some(op) = &mut self.lanes[lane].op {
            let phase = op.phase;
            op.enter(phase, now_ns);
            if op.connecting_ns.is_none() {
                self.note_uncertain(lane);
            }
        }
        let end = self.end(lane, now_ns, Err(why));
        self.hang_up(lane);
        Progress::Done(end)
    }

    /// Whether an op that writes has done so is not known.
    fn note_uncertain(&self, lane: LaneId) {
        if let Some(ledger) = &self.factory.ledger {
            let work = &self.factory.work;
            ledger.add_uncertain(work.moves_k(), work.rows_at_stake(&self.lanes[lane].turn));
        }
    }

    /// Closes a lane's connection, with a word where the protocol has one.
    fn hang_up(&mut self, lane: LaneId) {
        let Some(mut connection) = self.lanes[lane].connection.take() else { return };
        if connection.stage() == Stage::Open {
            connection.wire().leave();
            let _ = connection.flush();
        }
        let (bytes_in, bytes_out) = connection.take_traffic();
        self.counters.bytes_in += bytes_in;
        self.counters.bytes_out += bytes_out;
    }

    #[cold]
    fn note_tls(&mut self, lane: LaneId) {
        let facts = self.lanes[lane].connection.as_ref().and_then(Connection::tls_facts);
        if let Some((version, suite)) = facts {
            let facts = duel_model::Facts::default().with("sql.tls", format!("TLS {version}, {suite}"));
            self.counters.negotiated = Some(facts);
        }
    }
}

fn unwatched(error: &std::io::Error) -> SqlFailure {
    SqlFailure::new(failure::OURS, format!("cannot watch a socket: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, parse};
    use duel_load::WorkerId;
    use duel_model::KindPlan;

    #[test]
    fn lanes_of_unequal_workers_have_segments_of_their_own() {
        let Ok(Address::Server(address)) = parse("postgres://u@127.0.0.1:1/db?sslmode=disable") else { panic!() };
        let server = Server::find(&address).unwrap();
        let factory = Factory {
            end: server.ends[0].clone(),
            canceller: Arc::new(Canceller::new(Arc::new(server.clone()), server.ends[0].clone())),
            server: Arc::new(server),
            work: Arc::new(Work::Oltp(crate::kind::mix_of(&KindPlan::of(&SCHEMA), System::Postgres))),
            beside: Arc::default(),
            reconnects: false,
            retries: true,
            ledger: None,
            seed: Arc::default(),
            lanes: 1,
            segments: Arc::default(),
        };
        for _ in 0..2 {
            let session = factory.for_session(5, &Arc::default());
            let mut numbers = Vec::new();
            for (number, lanes) in [3, 2].into_iter().enumerate() {
                let worker = WorkerId { number: number as u32, of: 2 };
                let made = session.make(worker, lanes).unwrap();
                numbers.extend(
                    made.lanes.iter().map(|lane| (lane.turn.place.segment.number, lane.turn.place.segment.others)),
                );
            }
            assert_eq!(numbers, [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]);
        }
    }
}
