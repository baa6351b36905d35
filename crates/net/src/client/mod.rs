//! The workload: lanes are streams, each with a connection of its own to the server.

mod bulk;
pub(crate) mod connection;
mod datagrams;
mod exchange;
mod rest;
mod reverse;
mod telling;

use crate::protocol::{Hello, Op};
use crate::schema::{SCHEMA, counter, failure, phase};
use crate::server::payload;
use crate::socket::{self, Options};
use bulk::Bulk;
use connection::{Connection, closed, failed};
use datagrams::Datagrams;
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, Network, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Nanos, Schema};
use exchange::Exchange;
use rest::{Blocks, Patience, Resting, rest};
use reverse::Reverse;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub(crate) use telling::Telling;

/// The server tells of datagrams every few milliseconds; what it has not told of after this time has not come.
const DATAGRAMS_SETTLE_WITHIN: Duration = Duration::from_millis(250);
/// Bytes that are read at a time; and of payload that blocks are made of.
const BUFFER_BYTES: usize = 128 << 10;

/// What all streams to a target do.
#[derive(Debug, Clone)]
pub(crate) struct Factory {
    pub(crate) to: SocketAddr,
    pub(crate) netns: Option<Network>,
    pub(crate) hello: Hello,
    pub(crate) options: Options,
    /// Streams are kept full, and ops end as blocks arrive; else each op hands over its own block.
    pub(crate) runs_ahead: bool,
    /// Of each stream of datagrams; 0: as fast as it goes.
    pub(crate) mbps: f64,
    pub(crate) telling: Telling,
}

impl WorkloadFactory for Factory {
    type Workload = Streams;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<Streams, WorkloadError> {
        // This thread is the worker's own, and opens no sockets but those of this target.
        self.netns.as_ref().map_or(Ok(()), Network::enter)?;
        Ok(Streams {
            factory: self.clone(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            payload: payload(BUFFER_BYTES).into(),
            scratch: vec![0; BUFFER_BYTES],
            counters: Counters::default(),
            telling: self.telling.clone(),
        })
    }
}

/// How far an op has come.
#[derive(Debug)]
pub(crate) enum Step {
    /// It goes on.
    Pending,
    /// So many ops are over, with so many bytes.
    Done { ops: u32, payload: u64 },
    /// So many datagrams did not come.
    Lost { ops: u32 },
    /// So many came, and the server's system dropped them.
    Dropped { ops: u32 },
}

/// One worker's streams.
#[derive(Debug)]
pub(crate) struct Streams {
    factory: Factory,
    lanes: Vec<Lane>,
    payload: Arc<[u8]>,
    scratch: Vec<u8>,
    counters: Counters,
    telling: Telling,
}

#[derive(Debug, Default)]
struct Lane {
    is_busy: bool,
    connection: Option<Connection>,
    carries: Carries,
    /// Bytes that had gone over the connection when that was last asked.
    moved_before: u64,
}

/// What a stream is used for.
#[derive(Debug, Default)]
enum Carries {
    /// Nothing yet, or the connection alone.
    #[default]
    Nothing,
    Bulk(Bulk),
    Reverse(Reverse),
    Exchange(Exchange),
    Datagrams(Box<Datagrams>),
}

impl Carries {
    /// Bytes of payload that have gone over the connection, those included that no op counts.
    fn moved(&self) -> u64 {
        match self {
            Self::Bulk(bulk) => bulk.written(),
            Self::Reverse(reverse) => reverse.came_bytes(),
            Self::Nothing | Self::Exchange(_) | Self::Datagrams(_) => 0,
        }
    }
}

impl Streams {
    fn begin(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Result<Step, Box<Failure>> {
        let Lane { connection, carries, .. } = &mut self.lanes[lane];
        let Some(connection) = connection else {
            let Factory { to, options, .. } = &self.factory;
            let made = Connection::begin(to, options, lane, now_ns, io)?;
            self.lanes[lane].connection = Some(made);
            return Ok(Step::Pending);
        };
        match carries {
            Carries::Nothing => Ok(Step::Pending),
            Carries::Bulk(bulk) => bulk.begin(connection, lane, &self.payload, io),
            Carries::Reverse(reverse) => reverse.begin(connection),
            Carries::Exchange(exchange) => exchange.begin(connection, lane, &self.payload, io),
            Carries::Datagrams(datagrams) => Ok(datagrams.begin(now_ns)),
        }
    }

    fn heard(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Result<Step, Box<Failure>> {
        let now_ns = monotonic_ns();
        let Lane { connection: Some(connection), carries, is_busy, .. } = &mut self.lanes[lane] else {
            return Ok(Step::Pending);
        };
        if !connection.is_open() {
            let Factory { hello, to, .. } = &self.factory;
            if !connection.proceed(hello, to, lane, now_ns, io)? {
                return Ok(Step::Pending);
            }
            self.counters.connections += 1;
            self.opened(lane)?;
            // What came with the welcome is told of by the next event.
            return self.begin(lane, now_ns, io);
        }
        if !*is_busy {
            // It is watched for room to write as long as an op may want it.
            connection.watch(lane, Interest::Read, io)?;
            if event.readable {
                idle(connection, carries, &mut self.scratch)?;
            }
            return Ok(Step::Pending);
        }
        match carries {
            Carries::Nothing => match recv(&connection.stream, &mut self.scratch[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => Ok(Step::Done { ops: 1, payload: 0 }),
                Ok(_) => Err(failed(failure::NONSENSE, "the server said more than its welcome")),
                Err(Errno::AGAIN | Errno::INTR) => Ok(Step::Pending),
                Err(error) => Err(connection::lost(error)),
            },
            Carries::Bulk(bulk) => bulk.ready(connection, lane, event.readable, &self.payload, io),
            Carries::Reverse(reverse) => reverse.ready(connection, &mut self.scratch),
            Carries::Exchange(exchange) => exchange.ready(connection, lane, &mut self.scratch, &self.payload, io),
            Carries::Datagrams(datagrams) => datagrams.ready(connection, now_ns),
        }
    }

    /// A connection is open: what it is used for begins.
    fn opened(&mut self, lane: LaneId) -> Result<(), Box<Failure>> {
        let Factory { hello, runs_ahead, mbps, to, .. } = &self.factory;
        let Lane { connection: Some(connection), carries, .. } = &mut self.lanes[lane] else { return Ok(()) };
        self.telling.opened(lane, connection);
        *carries = match hello.op {
            Op::Bulk => Carries::Bulk(Bulk::new(hello.block, *runs_ahead)),
            Op::BulkReverse => Carries::Reverse(Reverse::new(hello.block, *runs_ahead)),
            Op::Rr => Carries::Exchange(Exchange::new(hello.block, hello.response)),
            Op::Connect | Op::Watch => Carries::Nothing,
            Op::Udp => {
                let port = connection.welcome.map_or(0, |welcome| welcome.udp_port);
                let length = hello.block as usize;
                let made = Datagrams::new(to.ip(), port, hello.token, length, *mbps, &self.payload)?;
                Carries::Datagrams(Box::new(made))
            }
        };
        Ok(())
    }

    fn progress(&mut self, lane: LaneId, step: Result<Step, Box<Failure>>) -> Progress {
        let (ops, payload, outcome) = match step {
            Ok(Step::Pending) => return Progress::Pending,
            Ok(Step::Done { ops, payload }) => (ops, payload, Ok(())),
            Ok(Step::Lost { ops }) => {
                (ops, 0, Err(failed(failure::DATAGRAM_LOST, "a datagram did not reach the server")))
            }
            Ok(Step::Dropped { ops }) => {
                let text = "a datagram reached the server, which read too slowly to have room for it";
                (ops, 0, Err(failed(failure::DATAGRAM_DROPPED, text)))
            }
            Err(why) => (1, 0, Err(why)),
        };
        let end_ns = monotonic_ns();
        let of = &mut self.lanes[lane];
        // An idle lane has no op that could fail.
        if !of.is_busy {
            self.drop_connection(lane, true);
            return Progress::Pending;
        }
        let mut phases = PhaseTimes::NONE;
        if let Some(connection) = &mut of.connection
            && connection.since_ns > 0
            && connection.is_open()
        {
            phases.set(phase::CONNECT, connection.connected_ns.saturating_sub(connection.since_ns));
            phases.set(phase::GREET, connection.opened_ns.saturating_sub(connection.connected_ns));
            // Of the first op only.
            connection.since_ns = 0;
        }
        of.is_busy = false;
        let is_datagram = outcome
            .as_ref()
            .is_err_and(|why| why.kind == failure::DATAGRAM_LOST || why.kind == failure::DATAGRAM_DROPPED);
        if (outcome.is_err() && !is_datagram) || self.factory.hello.op == Op::Connect {
            self.drop_connection(lane, outcome.is_err());
        }
        self.counters.bytes_in += payload;
        // Of several that end at once, all but the first began on a connection that there was.
        self.counters.reused += u64::from(ops.saturating_sub(1));
        self.telling.carried(payload);
        Progress::Done(OpEnd { ops, phases, bytes_in: payload, ..OpEnd::noticed(end_ns, outcome) })
    }

    /// Closes a connection. `forgets`: what is under way on it is to reach nobody.
    fn drop_connection(&mut self, lane: LaneId, forgets: bool) {
        let of = &mut self.lanes[lane];
        let carries = std::mem::take(&mut of.carries);
        self.telling.moved(carries.moved() - std::mem::take(&mut of.moved_before));
        let Some(connection) = of.connection.take() else { return };
        if let Carries::Datagrams(mut datagrams) = carries {
            // What had not come by then is counted as lost.
            let sums = datagrams.settle(&connection, Instant::now());
            self.telling.datagrams(&mut self.counters, sums, datagrams.told.jitter_ns);
        }
        self.telling.closing(lane, &connection, None);
        if forgets {
            socket::forget_when_closed(socket2::SockRef::from(&connection.stream));
        }
    }
}

/// What is heard on a stream whose lane has no op.
fn idle(connection: &Connection, carries: &mut Carries, scratch: &mut [u8]) -> Result<(), Box<Failure>> {
    match carries {
        Carries::Bulk(bulk) => bulk.idle(connection),
        Carries::Reverse(reverse) => reverse.idle(connection, scratch),
        Carries::Datagrams(datagrams) => datagrams.idle(connection),
        // Nothing is asked for, so nothing may come.
        Carries::Exchange(_) | Carries::Nothing => Err(closed()),
    }
}

impl Workload for Streams {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        let of = &mut self.lanes[lane];
        of.is_busy = true;
        self.counters.reused += u64::from(of.connection.is_some());
        let step = self.begin(lane, now_ns, io);
        self.progress(lane, step)
    }

    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        let step = self.heard(lane, event, io);
        self.progress(lane, step)
    }

    fn further(&mut self, _io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        if self.factory.hello.op != Op::Udp {
            return None;
        }
        let now_ns = monotonic_ns();
        for lane in 0..self.lanes.len() {
            let Lane { is_busy: true, carries: Carries::Datagrams(datagrams), .. } = &mut self.lanes[lane] else {
                continue;
            };
            let step = match datagrams.send(now_ns) {
                Ok(()) => datagrams.take_lost().map(Ok),
                Err(why) => Some(Err(why)),
            };
            if let Some(step) = step
                && let Progress::Done(end) = self.progress(lane, step)
            {
                return Some((lane, end));
            }
        }
        None
    }

    fn wakes_at(&self) -> Option<Nanos> {
        let due = |lane: &Lane| match lane {
            Lane { is_busy: true, carries: Carries::Datagrams(datagrams), .. } => Some(datagrams.wakes_at()),
            _ => None,
        };
        self.lanes.iter().filter_map(due).min()
    }

    fn cancel(&mut self, lane: LaneId) {
        self.lanes[lane].is_busy = false;
        self.drop_connection(lane, true);
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let mut phases = PhaseTimes::NONE;
        if let Some(connection) = self.lanes[lane].connection.as_ref().filter(|connection| !connection.is_open()) {
            if connection.is_connected() {
                phases.set(phase::CONNECT, connection.connected_ns.saturating_sub(connection.since_ns));
                phases.set(phase::GREET, now_ns.saturating_sub(connection.connected_ns));
            } else {
                phases.set(phase::CONNECT, now_ns.saturating_sub(connection.since_ns));
            }
        }
        phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        self.lanes[lane]
            .connection
            .as_ref()
            .filter(|connection| !connection.is_open())
            .map(|connection| connection.since_ns)
    }

    fn slot_ended(&mut self) {
        let open = self.lanes.iter().enumerate().filter_map(|(lane, of)| Some((lane, of.connection.as_ref()?)));
        self.telling.slot_ended(open);
        let until_datagrams = Instant::now() + DATAGRAMS_SETTLE_WITHIN;
        let mut resting = Vec::new();
        for (lane, of) in self.lanes.iter_mut().enumerate() {
            let Lane { connection: Some(connection), carries, .. } = of else { continue };
            let blocks = match carries {
                Carries::Bulk(bulk) => Blocks::ToServer(bulk),
                Carries::Reverse(reverse) => Blocks::FromServer(reverse),
                Carries::Datagrams(datagrams) => {
                    let sums = datagrams.settle(connection, until_datagrams);
                    self.telling.datagrams(&mut self.counters, sums, datagrams.told.jitter_ns);
                    continue;
                }
                Carries::Exchange(_) | Carries::Nothing => continue,
            };
            resting.push(Resting { lane, connection, blocks });
        }
        // One that has not come to rest is given up, and the next op makes another one.
        let never = rest(resting, &self.payload, &mut self.scratch, Patience::OF_A_SLOT);
        for (lane, of) in self.lanes.iter().enumerate() {
            if let Carries::Reverse(reverse) = &of.carries {
                self.telling.sender_told(lane, reverse.sender);
            }
        }
        never.into_iter().for_each(|lane| self.drop_connection(lane, true));
    }

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    fn take_counters(&mut self) -> Counters {
        for of in &mut self.lanes {
            let moved = of.carries.moved();
            self.telling.moved(moved - std::mem::replace(&mut of.moved_before, moved));
        }
        let open = self.lanes.iter().enumerate().filter_map(|(lane, of)| Some((lane, of.connection.as_ref()?)));
        let mut counters = std::mem::take(&mut self.counters);
        self.telling.tell(open, &mut counters);
        counters
    }
}
