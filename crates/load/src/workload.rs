//! What an op is, as the driver sees it.

use crate::poller::{Event, Interest, Poller};
use duel_model::{Facts, FailureKind, Id, MOST_PHASES, Nanos, Phase, Schema};
use rustix::fd::AsFd;
use std::collections::BTreeMap;
use std::io;
use std::ops::AddAssign;

/// Number of a lane within its worker. A lane carries one op at a time; for a network workload it is a connection, or a
/// stream of one.
pub type LaneId = usize;

/// A kind of operation, one instance per worker thread, with all of that worker's lanes.
///
/// The lifecycle is: [`WorkloadFactory::make`] (prepare), then slots; in a slot the driver calls [`start`] for an idle
/// lane when an op is due, [`ready`] when a descriptor that the lane watches becomes ready, and [`cancel`] when it
/// gives an op up. Between slots lanes stay as they are (*parked*): connections stay open. Dropping it cleans up.
///
/// The same trait carries all ways in which work gets done, so that there is no second driver loop:
///
/// * *Event-driven* (HTTP): `start` sends and returns [`Progress::Pending`]; `ready` receives.
/// * *Another event loop* (an async SQL driver on its own runtime): the lane watches a descriptor that the runtime
///   writes to when a result is there, with the end's time stamp in the result.
/// * *Child processes* (CPU loops): the lane watches the pipe to the child, which measures itself.
/// * *Blocking calls* (disk): `start` does the call and returns [`Progress::Done`]; the factory asks for one lane per
///   worker ([`LanesPerWorker::One`]), so that the number of connections becomes the number of threads.
///
/// [`start`]: Workload::start
/// [`ready`]: Workload::ready
/// [`cancel`]: Workload::cancel
pub trait Workload {
    /// Begins an op on an idle lane at `now_ns`.
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress;

    /// Which lane an event belongs to. A workload that watches several descriptors for a lane tells them apart by their
    /// tokens (see [`Io::beyond`]); with one for each lane the token is the lane.
    #[inline]
    fn lane_of(&self, token: usize) -> LaneId {
        token
    }

    /// Something that `lane` watches became ready. Also called for idle lanes (a server closes a parked connection),
    /// where the answer must be [`Progress::Pending`].
    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress;

    /// The next op that has ended without a call for its lane having said so: where lanes share a connection, an event on it
    /// may end several. Asked after each round of events and of starts, until it answers `None`; what `start` has put by,
    /// to send it together, leaves then at the latest.
    #[inline]
    fn further(&mut self, io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        let _ = io;
        None
    }

    /// A turn of the event loop begins: timeouts, the slot's end and whoever wants to stop have been looked at. A workload
    /// that has much to do on an event may leave others for the next turn: what is watched stays ready until it is read.
    #[inline]
    fn turn_begins(&mut self) {}

    /// When [`further`] is to be asked again even if nothing becomes ready: an op pauses within the workload. `None`: no op does.
    ///
    /// [`further`]: Workload::further
    #[inline]
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }

    /// Gives up the op on `lane`; the lane is idle afterwards and nothing of the op may reach a later one.
    fn cancel(&mut self, lane: LaneId);

    /// Time that the op under way on `lane` has spent in each phase until now, the unfinished one included. Asked before an
    /// op is given up: where it got stuck is what it tells.
    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let _ = (lane, now_ns);
        PhaseTimes::NONE
    }

    /// Since when the op on `lane` has been establishing the connection that it waits for, so that the connect timeout
    /// applies; `None`: it has one. An op may need several, one after another.
    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        let _ = lane;
        None
    }

    /// A slot is over, and none of its ops is left: what happened to idle lanes may be looked at now, where nothing waits for
    /// it. The counters are taken next.
    fn slot_ended(&mut self) {}

    /// What went over connections since [`take_counters`] was last called.
    ///
    /// [`take_counters`]: Workload::take_counters
    fn traffic(&self) -> Traffic;

    /// Counters since the last call.
    fn take_counters(&mut self) -> Counters;
}

/// Makes the workload of each worker, on that worker's thread.
pub trait WorkloadFactory: Send + Sync + 'static {
    /// What it makes.
    type Workload: Workload;

    /// What this kind of work declares of itself.
    fn schema(&self) -> &'static Schema;

    /// Makes the workload of this worker with so many lanes: workers may share out what there is to do.
    fn make(&self, worker: WorkerId, lanes: usize) -> Result<Self::Workload, WorkloadError>;

    /// Lanes that share a connection. A worker's lanes are a multiple of it.
    fn lanes_per_connection(&self) -> usize {
        1
    }

    /// How lanes are spread over workers.
    fn lanes_per_worker(&self) -> LanesPerWorker {
        LanesPerWorker::Many
    }

    /// Pairs of a local and a remote address that connections are spread over: each has a range of local ports of its own.
    fn address_pairs(&self) -> usize {
        1
    }
}

/// A worker among those of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerId {
    /// Counted from 0.
    pub number: u32,
    /// How many there are; at least 1.
    pub of: u32,
}

impl WorkerId {
    /// The only one.
    pub const ONLY: Self = Self { number: 0, of: 1 };
}

/// How lanes are spread over workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanesPerWorker {
    /// Each worker drives many lanes; ops do not block.
    Many,
    /// An op blocks its thread: one lane per worker.
    One,
}

/// A workload could not be prepared; the text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorkloadError(pub String);

/// The event loop as a workload may use it.
pub struct Io<'a> {
    poller: &'a Poller,
    /// Added to a lane's number to make the token of what is watched for it.
    first_token: usize,
    /// What is ready now was not ready at this time.
    ready_after_ns: Nanos,
}

impl<'a> Io<'a> {
    pub(crate) fn new(poller: &'a Poller) -> Self {
        Self { poller, first_token: 0, ready_after_ns: 0 }
    }

    /// As [`Io::new`], for events of which none had been there at this time.
    pub(crate) fn ready_after(poller: &'a Poller, ready_after_ns: Nanos) -> Self {
        Self { ready_after_ns, ..Self::new(poller) }
    }

    /// A time at which nothing could be read yet of what an event tells of: the event loop had asked, and was told of
    /// nothing, or it was woken just now. 0 where that is not known.
    #[inline]
    pub fn ready_after_ns(&self) -> Nanos {
        self.ready_after_ns
    }

    /// The same event loop, where what is watched for lane 0 gets this token, for lane 1 the next one, and so on.
    pub fn beyond(&self, first_token: usize) -> Self {
        Self { first_token, ..*self }
    }

    /// Starts watching a descriptor for `lane`. Closing the descriptor ends it.
    pub fn watch(&self, fd: impl AsFd, lane: LaneId, interest: Interest) -> io::Result<()> {
        self.poller.add(fd, self.first_token + lane, interest)
    }

    /// Changes what a descriptor is watched for.
    pub fn rewatch(&self, fd: impl AsFd, lane: LaneId, interest: Interest) -> io::Result<()> {
        self.poller.modify(fd, self.first_token + lane, interest)
    }
}

/// How far an op has come.
#[derive(Debug)]
pub enum Progress {
    /// It goes on when something becomes ready.
    Pending,
    /// It is over.
    Done(OpEnd),
}

/// The end of an op.
#[derive(Debug)]
pub struct OpEnd {
    /// When its end was noticed, stamped as soon as its last byte had been read. Its lane goes on from here.
    pub end_ns: Nanos,
    /// When the system had its last byte, where the system tells: not later than `end_ns`. What lies between is our own
    /// lateness (the worker slept, or was busy with others), and no part of the time that the op took.
    pub arrived_ns: Option<Nanos>,
    /// How many equal ops, done one after the other, ended with it: 1, but of a batch. Each took an equal share of the time.
    pub ops: u32,
    /// How it ended.
    pub outcome: Result<(), Box<Failure>>,
    /// Where the time went.
    pub phases: PhaseTimes,
    /// Bytes read for this op.
    pub bytes_in: u64,
    /// Status of its complete response, where the protocol has one.
    pub status: Option<u16>,
    /// Bytes of its complete response's body.
    pub body_bytes: u64,
}

impl OpEnd {
    /// Its end was noticed at this time; of all else nothing is known yet.
    #[inline]
    pub fn noticed(end_ns: Nanos, outcome: Result<(), Box<Failure>>) -> Self {
        let phases = PhaseTimes::NONE;
        Self { end_ns, arrived_ns: None, ops: 1, outcome, phases, bytes_in: 0, status: None, body_bytes: 0 }
    }

    /// When it was over for whoever had sent it: when its last byte arrived, or else when that was noticed.
    #[inline]
    pub fn over_ns(&self) -> Nanos {
        self.arrived_ns.unwrap_or(self.end_ns)
    }
}

/// Why an op failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind that it is counted under.
    pub kind: FailureKind,
    /// One sentence for the user, safe to show.
    pub text: String,
}

/// Time spent in each phase of an op, by their places in the schema; a phase that was not gone through has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTimes([Nanos; MOST_PHASES]);

impl PhaseTimes {
    /// No phase gone through.
    pub const NONE: Self = Self([Nanos::MAX; MOST_PHASES]);

    /// Notes the time spent in a phase.
    #[inline]
    pub fn set(&mut self, phase: Phase, spent_ns: Nanos) {
        self.0[phase.place()] = spent_ns;
    }

    /// Takes back that a phase was gone through.
    pub fn unset(&mut self, phase: Phase) {
        self.set(phase, Nanos::MAX);
    }

    /// Adds the times of a further part of the same op.
    pub fn add(&mut self, further: &Self) {
        for (mine_ns, further_ns) in self.0.iter_mut().zip(further.each()) {
            if let Some(further_ns) = further_ns {
                *mine_ns = further_ns + if *mine_ns == Nanos::MAX { 0 } else { *mine_ns };
            }
        }
    }

    /// Time spent in a phase, if it was gone through.
    #[inline]
    pub fn get(&self, phase: Phase) -> Option<Nanos> {
        let spent_ns = self.0[phase.place()];
        (spent_ns != Nanos::MAX).then_some(spent_ns)
    }

    /// The same of all phases, in their order.
    #[inline]
    pub(crate) fn each(&self) -> impl Iterator<Item = Option<Nanos>> {
        self.0.iter().map(|&spent_ns| (spent_ns != Nanos::MAX).then_some(spent_ns))
    }
}

/// What went over connections: the part of [`Counters`] that is told while a slot runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read from connections.
    pub bytes_in: u64,
    /// Bytes written to connections.
    pub bytes_out: u64,
    /// Connections established.
    pub connections: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.connections += other.connections;
    }
}

/// What a workload counts besides the ops themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes read from connections.
    pub bytes_in: u64,
    /// Bytes written to connections.
    pub bytes_out: u64,
    /// Bytes of response bodies.
    pub body_bytes: u64,
    /// The same after decompression, where that is done.
    pub inflated_bytes: Option<u64>,
    /// Connections established.
    pub connections: u64,
    /// Connections whose session was resumed.
    pub resumed: u64,
    /// Ops on a connection that had carried one before.
    pub reused: u64,
    /// How often requests were sent again within their ops.
    pub resent: u64,
    /// How often more came on a connection than the response that it carried.
    pub surplus: u64,
    /// What the kind of work declares beside ([`Schema::counters`]), by name.
    pub counted: BTreeMap<Id, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// What was negotiated last.
    pub negotiated: Option<Facts>,
}

impl Counters {
    /// What went over connections.
    pub fn traffic(&self) -> Traffic {
        let Self { bytes_in, bytes_out, connections, .. } = *self;
        Traffic { bytes_in, bytes_out, connections }
    }
}
