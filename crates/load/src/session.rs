//! Workers as threads that live from the first slot on a target to the last, their connections parked in between.

use crate::clock::{monotonic_ns, unix_ms};
use crate::driver::{SlotOrder, Worker, WorkerSlot};
use crate::limits;
use crate::log::{OpLog, OpRecord};
use crate::recorder::Recorder;
use crate::workload::{LanesPerWorker, WorkerId, WorkloadFactory};
use duel_model::{FailureKind, GeneratorAudit, LoopKind, MICROSECOND_NS, Nanos, Negotiated, Series, Tally};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// All workers of one target.
#[derive(Debug)]
pub struct Session {
    workers: Vec<Handle>,
    reports: Receiver<Report>,
    stop: Arc<AtomicBool>,
    log: Option<OpLog>,
    /// Connections that can be open or lately closed at a time; `None` where the system does not tell.
    local_ports: Option<u32>,
}

/// What came of a slot, over all workers.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotRecord {
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// Start on the monotonic clock.
    pub start_ns: Nanos,
    /// Time that the slot's ok ops are to be divided by: see [`duel_model::Slot::elapsed_ns`].
    pub elapsed_ns: Nanos,
    /// Counts and distributions.
    pub tally: Tally,
    /// Counts over time.
    pub series: Series,
    /// The generator's audit of itself.
    pub audit: GeneratorAudit,
    /// What connections negotiated last.
    pub negotiated: Option<Negotiated>,
    /// The slot was cut short, by the stop flag or by the tick.
    pub interrupted: bool,
}

/// Figures of the slot under way, for a person who watches; at most a few tenths of a second old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Ops started.
    pub started: u64,
    /// Ops that ended well.
    pub ok: u64,
    /// Ops that failed.
    pub failed: u64,
    /// Those of them to which the other side gave no sign of life: see [`FailureKind::is_silence`].
    pub silent: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// 99th percentile of the response time, ns, of the worker where it is worst.
    pub response_p99_ns: Option<Nanos>,
}

/// A session could not be opened, or a worker failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The workload could not be prepared.
    #[error(transparent)]
    Workload(#[from] crate::workload::WorkloadError),
    /// The operating system refused something that a worker needs.
    #[error("the load generator could not {what}: {error}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// A worker thread is gone.
    #[error("a worker of the load generator ended unexpectedly; this is a bug in duel")]
    WorkerLost,
}

#[derive(Debug)]
struct Handle {
    orders: Sender<Start>,
    live: Arc<LiveSlot>,
    thread: Option<JoinHandle<()>>,
}

/// What a worker is told when a slot is to begin.
#[derive(Debug)]
struct Start {
    order: SlotOrder,
    at_ns: Nanos,
    log: Option<OpLog>,
}

struct Report(Result<WorkerSlot, SessionError>);

/// What a worker and the session that it belongs to share while a slot runs: where the worker leaves its live figures,
/// and where it is told to end the slot now.
#[derive(Debug, Default)]
pub(crate) struct LiveSlot {
    figures: Mutex<Live>,
    halted: AtomicBool,
}

impl LiveSlot {
    pub(crate) fn publish(&self, recorder: &Recorder) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = Live {
            started: recorder.started,
            ok: recorder.ok,
            failed: recorder.failed_total(),
            silent: recorder.failed_of(FailureKind::is_silence),
            bytes_in: recorder.bytes_in,
            response_p99_ns: recorder.response_p99_ns(),
        };
    }

    /// Whether the slot under way is to end now.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed)
    }

    fn read(&self) -> Live {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All workers begin a slot at the same instant, this far ahead: enough for each thread to wake up.
const LEAD_NS: Nanos = 300 * MICROSECOND_NS;
/// How often the caller's tick is called while a slot runs.
const TICK: Duration = Duration::from_millis(100);

impl Session {
    /// Starts the workers: `threads` of them share `connections`, each with its lanes, or one per connection where ops block.
    ///
    /// Slots end early once `stop` is set.
    pub fn open<F: WorkloadFactory>(
        factory: F,
        connections: u32,
        threads: u32,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, SessionError> {
        let lanes_per_connection = u32::try_from(factory.lanes_per_connection()).unwrap_or(u32::MAX);
        let workers = match factory.lanes_per_worker() {
            LanesPerWorker::Many => threads.clamp(1, connections.max(1)),
            LanesPerWorker::One => connections.max(1),
        };
        let local_ports = limits::local_ports_of(factory.address_pairs());
        let factory = Arc::new(factory);
        let (report, reports) = channel();
        let mut session = Self { workers: Vec::new(), reports, stop, log: None, local_ports };
        for number in 0..workers {
            // The first workers take the remainder, so that exactly `connections` lanes exist.
            let connections = connections / workers + u32::from(number < connections % workers);
            let lanes = connections.saturating_mul(lanes_per_connection);
            let handle =
                spawn(Arc::clone(&factory), lanes, number, workers, report.clone(), Arc::clone(&session.stop))?;
            session.workers.push(handle);
        }
        for _ in 0..workers {
            // Each worker reports once that it is ready: `make` may load files and fail.
            session.reports.recv().map_err(|_| SessionError::WorkerLost)?.0?;
        }
        Ok(session)
    }

    /// From the next slot on, records of all ops go where the returned end receives them, in batches several times per
    /// second; after a slot all of its records are there. It costs some hundred bytes for each op until they are fetched.
    pub fn log_ops(&mut self) -> Receiver<Vec<OpRecord>> {
        let (log, records) = channel();
        self.log = Some(log);
        records
    }

    /// Runs one slot on all workers and merges what they bring back; `tick` is called now and then with live figures,
    /// and ends the slot by breaking.
    pub fn run_slot(
        &mut self,
        order: &SlotOrder,
        tick: &mut dyn FnMut(Live) -> ControlFlow<()>,
    ) -> Result<SlotRecord, SessionError> {
        let (started_unix_ms, start_ns) = (unix_ms(), monotonic_ns() + LEAD_NS);
        let mut halted = false;
        for worker in &self.workers {
            worker.live.halted.store(false, Ordering::Relaxed);
            let start = Start { order: order.clone(), at_ns: start_ns, log: self.log.clone() };
            worker.orders.send(start).map_err(|_| SessionError::WorkerLost)?;
        }
        let mut slots = Vec::with_capacity(self.workers.len());
        while slots.len() < self.workers.len() {
            match self.reports.recv_timeout(TICK) {
                Ok(Report(slot)) => slots.push(slot?),
                Err(RecvTimeoutError::Timeout) => {
                    if tick(self.live()).is_break() {
                        halted = true;
                        self.workers.iter().for_each(|worker| worker.live.halted.store(true, Ordering::Relaxed));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(SessionError::WorkerLost),
            }
        }
        let interrupted = halted || self.stop.load(Ordering::Relaxed);
        let mut record = merge(order, slots, started_unix_ms, start_ns, interrupted);
        record.audit.local_ports = self.local_ports;
        Ok(record)
    }

    fn live(&self) -> Live {
        self.workers.iter().map(|worker| worker.live.read()).fold(Live::default(), |sum, worker| Live {
            started: sum.started + worker.started,
            ok: sum.ok + worker.ok,
            failed: sum.failed + worker.failed,
            silent: sum.silent + worker.silent,
            bytes_in: sum.bytes_in + worker.bytes_in,
            response_p99_ns: sum.response_p99_ns.max(worker.response_p99_ns),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for worker in self.workers.drain(..) {
            // Without orders to come a worker ends; its workload closes what it holds.
            drop(worker.orders);
            if let Some(thread) = worker.thread {
                let _ = thread.join();
            }
        }
    }
}

fn spawn<F: WorkloadFactory>(
    factory: Arc<F>,
    lanes: u32,
    number: u32,
    workers: u32,
    report: Sender<Report>,
    stop: Arc<AtomicBool>,
) -> Result<Handle, SessionError> {
    let (orders, inbox) = channel::<Start>();
    let live = Arc::new(LiveSlot::default());
    let their_live = Arc::clone(&live);
    let thread = std::thread::Builder::new()
        .name(format!("duel-load-{number}"))
        .spawn(move || {
            let made = factory
                .make_for(WorkerId { number, of: workers }, lanes as usize)
                .map_err(SessionError::from)
                .and_then(|workload| {
                    Worker::new(workload, lanes as usize, number, workers)
                        .map_err(|error| SessionError::System { what: "create an event loop", error })
                });
            let mut worker = match made {
                Ok(worker) => worker,
                Err(error) => {
                    let _ = report.send(Report(Err(error)));
                    return;
                }
            };
            let _ = report.send(Report(Ok(WorkerSlot::ready())));
            while let Ok(Start { order, at_ns, log }) = inbox.recv() {
                let slot = worker
                    .run_slot(&order, at_ns, &stop, &their_live, log.as_ref())
                    .map_err(|error| SessionError::System { what: "wait for events", error });
                if report.send(Report(slot)).is_err() {
                    return;
                }
            }
        })
        .map_err(|error| SessionError::System { what: "start a thread", error })?;
    Ok(Handle { orders, live, thread: Some(thread) })
}

fn merge(
    order: &SlotOrder,
    slots: Vec<WorkerSlot>,
    started_unix_ms: i64,
    start_ns: Nanos,
    interrupted: bool,
) -> SlotRecord {
    let had_backlog = slots.iter().any(|slot| slot.had_backlog);
    let last_end_ns = slots.iter().filter_map(|slot| slot.last_end_ns).max();
    let mut record = SlotRecord {
        started_unix_ms,
        start_ns,
        elapsed_ns: 0,
        tally: Tally::default(),
        series: Series::default(),
        audit: GeneratorAudit {
            workers: Vec::new(),
            descriptors_open: limits::descriptors_open(),
            local_ports: None,
            descriptor_limit: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            cpus: std::thread::available_parallelism().ok().and_then(|cpus| u32::try_from(cpus.get()).ok()),
        },
        negotiated: None,
        interrupted,
    };
    for slot in slots {
        record.tally.merge(&slot.tally);
        record.series.merge(&slot.series);
        record.audit.workers.push(slot.audit);
        record.negotiated = slot.negotiated.or(record.negotiated);
    }
    let busy_ns = last_end_ns.map_or(0, |end| end.saturating_sub(start_ns));
    record.elapsed_ns = if interrupted {
        monotonic_ns().saturating_sub(start_ns)
    } else {
        elapsed_ns(order, record.tally.started, busy_ns, had_backlog)
    };
    record
}

/// The time over which a slot's ops were served.
///
/// Closed loop: to the end of the last op. A cut at the slot's nominal end would leave out ops in flight, and that
/// hits the slower target harder: with 30 connections and 0.3 s per op, a slot of 1 s would lose a third of its work.
/// Open loop that kept up: the schedule's own length, since each op was only shifted by its latency; if ops had to
/// wait beyond the end, the server did not keep up, and the time it took to work them off belongs to the slot.
fn elapsed_ns(order: &SlotOrder, started: u64, busy_ns: Nanos, had_backlog: bool) -> Nanos {
    let nominal_ns = match (order.kind, order.ops, order.duration_ns) {
        (LoopKind::Open { rate_per_s, .. }, Some(ops), duration_ns) if started >= ops => {
            let scheduled_ns = (ops as f64 * 1e9 / rate_per_s) as Nanos;
            duration_ns.map_or(scheduled_ns, |duration_ns| duration_ns.min(scheduled_ns))
        }
        (LoopKind::Closed { .. }, Some(ops), _) if started >= ops => 0,
        (_, _, duration_ns) => duration_ns.unwrap_or(0),
    };
    match order.kind {
        LoopKind::Open { .. } if !had_backlog => nominal_ns,
        _ => nominal_ns.max(busy_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{Arrival, SECOND_NS};

    fn order(kind: LoopKind, duration_ns: Option<Nanos>, ops: Option<u64>) -> SlotOrder {
        SlotOrder {
            kind,
            duration_ns,
            ops,
            connect_timeout_ns: SECOND_NS,
            op_timeout_ns: SECOND_NS,
            grace_ns: SECOND_NS,
            seed: 0,
            stages: Vec::new(),
            deadline_ns: None,
        }
    }

    #[test]
    fn a_closed_loop_lasts_to_the_end_of_its_last_op() {
        let closed = LoopKind::Closed { think_ns: 0 };
        assert_eq!(elapsed_ns(&order(closed, Some(SECOND_NS), None), 9, 1_300_000_000, false), 1_300_000_000);
        assert_eq!(elapsed_ns(&order(closed, None, Some(9)), 9, 1_300_000_000, false), 1_300_000_000);
        // Think time: the last op may end long before the slot does.
        assert_eq!(elapsed_ns(&order(closed, Some(SECOND_NS), None), 9, 5_000, false), SECOND_NS);
    }

    #[test]
    fn an_open_loop_lasts_as_long_as_its_schedule_unless_it_fell_behind() {
        let open = LoopKind::Open { rate_per_s: 10.0, arrival: Arrival::Constant };
        assert_eq!(elapsed_ns(&order(open, Some(SECOND_NS), None), 10, 1_001_000_000, false), SECOND_NS);
        assert_eq!(elapsed_ns(&order(open, Some(SECOND_NS), None), 10, 1_900_000_000, true), 1_900_000_000);
        assert_eq!(elapsed_ns(&order(open, None, Some(20)), 20, 1_901_000_000, false), 2 * SECOND_NS);
    }
}
