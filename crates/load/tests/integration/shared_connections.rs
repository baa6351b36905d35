//! Lanes that share a connection: one event ends several ops, and what was started together leaves together.

use crate::common::{self, order};
use duel_load::{
    Counters, Event, Interest, Io, LaneId, OpEnd, Progress, Session, Traffic, WorkerId, Workload, WorkloadError,
    WorkloadFactory, monotonic_ns,
};
use duel_model::{Arrival, LoopKind, MILLISECOND_NS, Schema};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const STREAMS: usize = 3;

/// What really happened.
#[derive(Default)]
struct Truth {
    lanes: AtomicU64,
    started: AtomicU64,
    writes: AtomicU64,
    events: AtomicU64,
    /// Connections over which ops were started, in turn; of one worker.
    started_on: Mutex<Vec<usize>>,
}

struct Factory(Arc<Truth>);

impl WorkloadFactory for Factory {
    type Workload = Shared;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<Shared, WorkloadError> {
        assert_eq!(lanes % STREAMS, 0, "no connection is cut in two");
        self.0.lanes.fetch_add(lanes as u64, Ordering::Relaxed);
        let pair = || {
            let pair = UnixStream::pair().unwrap();
            pair.0.set_nonblocking(true).unwrap();
            pair
        };
        let connections = (0..lanes / STREAMS).map(|_| Connection { ends: pair(), is_watched: false, put_by: vec![] });
        Ok(Shared { connections: connections.collect(), ended: VecDeque::new(), truth: Arc::clone(&self.0) })
    }
    fn lanes_per_connection(&self) -> usize {
        STREAMS
    }
}

/// Each request is its lane's number, which comes back at once.
struct Shared {
    connections: Vec<Connection>,
    ended: VecDeque<LaneId>,
    truth: Arc<Truth>,
}

struct Connection {
    ends: (UnixStream, UnixStream),
    is_watched: bool,
    put_by: Vec<u8>,
}

impl Workload for Shared {
    fn start(&mut self, lane: LaneId, _now_ns: u64, io: &Io<'_>) -> Progress {
        self.truth.started.fetch_add(1, Ordering::Relaxed);
        self.truth.started_on.lock().unwrap().push(lane / STREAMS);
        let connection = &mut self.connections[lane / STREAMS];
        if !connection.is_watched {
            io.watch(&connection.ends.0, lane / STREAMS, Interest::Read).unwrap();
            connection.is_watched = true;
        }
        connection.put_by.push(lane as u8);
        Progress::Pending
    }

    fn ready(&mut self, number: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        self.truth.events.fetch_add(1, Ordering::Relaxed);
        let mut lanes = [0; 64];
        while let Ok(count) = self.connections[number].ends.0.read(&mut lanes) {
            self.ended.extend(lanes[..count].iter().map(|&lane| LaneId::from(lane)));
        }
        Progress::Pending
    }

    fn further(&mut self, _io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        if let Some(lane) = self.ended.pop_front() {
            return Some((lane, OpEnd { bytes_in: 1, ..OpEnd::noticed(monotonic_ns(), Ok(())) }));
        }
        for connection in self.connections.iter_mut().filter(|connection| !connection.put_by.is_empty()) {
            connection.ends.1.write_all(&connection.put_by).unwrap();
            connection.put_by.clear();
            self.truth.writes.fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    fn cancel(&mut self, lane: LaneId) {
        panic!("lane {lane} was given up though all are answered at once");
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

/// A slot of this load, bounded by time or by ops; nothing in it times out.
#[test]
fn all_ops_are_counted_and_those_that_start_together_leave_together() {
    const OPS: u64 = 3000;
    for kind in [LoopKind::Closed { think_ns: 0 }, LoopKind::Open { rate_per_s: 30_000.0, arrival: Arrival::Poisson }] {
        let truth = Arc::new(Truth::default());
        let stop = Arc::new(AtomicBool::new(false));
        let mut session = Session::open(Factory(Arc::clone(&truth)), 5, 2, stop).unwrap();
        assert_eq!(truth.lanes.load(Ordering::Relaxed), 5 * STREAMS as u64);
        let order = order(kind, None, Some(OPS));
        for slot in 1..=2 {
            let record = session.run_slot(&order, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!((record.tally.started, record.tally.ok, record.tally.in_flight), (OPS, OPS, 0));
            assert_eq!(record.tally.response.count(), OPS);
            assert_eq!(truth.started.load(Ordering::Relaxed), slot * OPS);
        }
        if matches!(kind, LoopKind::Closed { .. }) {
            // A connection's first requests fall due together, end together, and so do all that follow.
            let (writes, events) = (truth.writes.load(Ordering::Relaxed), truth.events.load(Ordering::Relaxed));
            assert!(writes <= OPS && events <= OPS, "{writes} writes and {events} events for {} ops", 2 * OPS);
        }
    }
}

#[test]
fn a_closed_loop_of_a_set_time_ends_with_all_that_it_began() {
    let truth = Arc::new(Truth::default());
    let mut session = Session::open(Factory(Arc::clone(&truth)), 2, 1, Arc::new(AtomicBool::new(false))).unwrap();
    let order = order(LoopKind::Closed { think_ns: MILLISECOND_NS }, Some(50 * MILLISECOND_NS), None);
    let record = session.run_slot(&order, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((record.tally.ok, record.tally.in_flight), (truth.started.load(Ordering::Relaxed), 0));
    assert!(record.tally.ok >= 2 * STREAMS as u64);
}

#[test]
fn requests_are_spread_over_connections() {
    const CONNECTIONS: usize = 4;
    let open = LoopKind::Open { rate_per_s: 2000.0, arrival: Arrival::Poisson };
    for (kind, ops) in [(LoopKind::Closed { think_ns: 0 }, CONNECTIONS as u64), (open, 400)] {
        let truth = Arc::new(Truth::default());
        let mut session = Session::open(Factory(Arc::clone(&truth)), 4, 1, Arc::new(AtomicBool::new(false))).unwrap();
        let order = order(kind, None, Some(ops));
        let record = session.run_slot(&order, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(record.tally.ok, ops);
        let started_on = truth.started_on.lock().unwrap();
        let of_each: Vec<usize> =
            (0..CONNECTIONS).map(|number| started_on.iter().filter(|&&on| on == number).count()).collect();
        // Whoever has an idle lane is asked in turn: as many at most as all lanes of another connection.
        let (fewest, most) = (of_each.iter().min().unwrap(), of_each.iter().max().unwrap());
        assert!(*fewest > 0 && most - fewest <= STREAMS * CONNECTIONS, "{of_each:?}");
        assert_eq!(started_on[..CONNECTIONS], [0, 1, 2, 3]);
    }
}
