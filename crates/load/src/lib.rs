//! Send on time, count honestly.
//!
//! One thread per worker, each with its own event loop, its own connections (*lanes*) and its own memory for what it
//! records; they share nothing while a slot runs and are merged when it is over. There is one driver loop
//! ([`driver`](self)); pacing, bound and protocol are parameters of it. What an op *is* comes in through [`Workload`].

mod clock;
mod connections;
mod course;
mod crew;
mod driver;
mod groups;
mod idle;
mod kind;
mod limits;
mod local_ports;
mod log;
mod network;
mod null;
mod pace;
mod pacing;
mod poller;
mod recorder;
mod session;
mod slot;
mod stages;
mod stalls;
mod tcp_info;
mod waiter;
mod wake;
mod workload;

pub use clock::{monotonic_ns, thread_cpu_ns, unix_ms};
pub use groups::own_groups;
pub use kind::{Asked, Contact, Copying, Kind, LeadsTo, Opens, PlainKind, Prepared, PrivateCopy};
pub use limits::{LimitError, allowed_cpus, cpus_online, ensure_descriptors, quota_cpus, usable_cpus};
pub use local_ports::{connect_from_next, local_ports_of};
pub use log::OpRecord;
pub use network::Network;
pub use null::{Null, NullFactory, NullKind};
pub use pacing::Schedule;
pub use poller::{Event, Interest, MECHANISM, Poller};
pub use session::{InRunUp, Live, Session, SessionError, SlotRecord};
pub use slot::SlotOrder;
pub use tcp_info::TcpInfo;
pub use waiter::is_in_the_way;
pub use wake::{wake_cost_ns, waking_cost_ns};
pub use workload::{
    Counters, Failure, Io, LaneId, LanesPerWorker, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory,
};
