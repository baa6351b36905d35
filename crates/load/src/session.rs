//! Workers as threads that live from the first slot on a target to the last, their connections parked in between.

use crate::clock::{monotonic_ns, unix_ms};
use crate::driver::Worker;
use crate::log::{OpLog, OpRecord};
use crate::recorder::{Recorder, Signs};
use crate::slot::{SlotOrder, WorkerSlot};
use crate::workload::{LanesPerWorker, Traffic, WorkerId, WorkloadFactory};
use crate::{limits, local_ports};
use duel_model::{
    Distribution, Facts, GeneratorAudit, Id, LoopKind, MICROSECOND_NS, MILLISECOND_NS, Nanos, Series, Standstill,
    Tally, Threads,
};
use std::collections::BTreeMap;
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
    pub negotiated: Option<Facts>,
    /// The slot was cut short, by the stop flag or by the tick.
    pub interrupted: bool,
    /// When the target last answered, well or not, on the monotonic clock; `None`: it never did.
    pub answered_ns: Option<Nanos>,
    /// The last that was seen of the target is that it did not answer.
    pub ends_in_silence: bool,
}

/// Figures of the slot under way, for whoever watches; at most a few tenths of a second old. What they hold is in the slot's
/// [`Tally`] too when it is over: none of them is larger than there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// What the run-up showed; all else is of the slot's own time, and none while the run-up goes on.
    pub in_run_up: InRunUp,
    /// Ops started.
    pub started: u64,
    /// Ops that ended well.
    pub ok: u64,
    /// Ops that failed, by kind; kinds that did not occur are absent.
    pub failed: BTreeMap<Id, u64>,
    /// Failed ops to which the other side gave no sign of life: see [`duel_model::Meaning::is_silence`].
    pub silent: u64,
    /// What went over connections.
    pub traffic: Traffic,
    /// As [`Tally::response`].
    pub response: Distribution,
    /// For how long the generator itself stood still: what response times hold of that is not the target's.
    pub standstill: Standstill,
}

/// Ops of a run-up: they are in no figure, and tell that the target lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InRunUp {
    /// Ops started; when the run-up is over, only those that ended in it.
    pub started: u64,
    /// Ops that the target answered, well or not.
    pub answered: u64,
    /// Failed ops to which the other side gave no sign of life.
    pub silent: u64,
}

impl Live {
    /// Failed ops of all kinds.
    pub fn failed_total(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Adds another worker's figures of the same slot.
    fn merge(&mut self, other: &Self) {
        self.in_run_up.started += other.in_run_up.started;
        self.in_run_up.answered += other.in_run_up.answered;
        self.in_run_up.silent += other.in_run_up.silent;
        self.started += other.started;
        self.ok += other.ok;
        for (&kind, count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        self.silent += other.silent;
        self.traffic += other.traffic;
        self.response.merge(&other.response);
        // Workers mostly stand still together.
        self.standstill = std::cmp::max_by_key(self.standstill, other.standstill, |still| still.total_ns);
    }
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
    /// Nothing has happened yet: called before the worker is told to begin, so that nobody takes the last slot's figures for
    /// those of the next.
    fn begin(&self) {
        self.halted.store(false, Ordering::Relaxed);
        self.exchange(Live::default());
    }

    pub(crate) fn publish(&self, recorder: &Recorder, traffic: Traffic) {
        self.exchange(recorder.live(traffic));
    }

    /// The lock is held for the exchange alone: what is old is dropped, and what is new was made, outside of it.
    fn exchange(&self, mut live: Live) {
        std::mem::swap(&mut *self.figures.lock().unwrap_or_else(PoisonError::into_inner), &mut live);
    }

    /// Whether the slot under way is to end now.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed)
    }

    fn add_to(&self, sum: &mut Live) {
        sum.merge(&self.figures.lock().unwrap_or_else(PoisonError::into_inner));
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
        let local_ports = local_ports::local_ports_of(factory.address_pairs());
        let factory = Arc::new(factory);
        let (report, reports) = channel();
        let mut session = Self { workers: Vec::new(), reports, stop, log: None, local_ports };
        for number in 0..workers {
            // The first workers take the remainder, so that exactly `connections` lanes exist.
            let connections = connections / workers + u32::from(number < connections % workers);
            let lanes = connections.saturating_mul(lanes_per_connection);
            let handle = spawn(
                Arc::clone(&factory),
                lanes,
                WorkerId { number, of: workers },
                report.clone(),
                Arc::clone(&session.stop),
            )?;
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
        tick: &mut dyn FnMut(&Live) -> ControlFlow<()>,
    ) -> Result<SlotRecord, SessionError> {
        let run_up_ms = (order.run_up_ns / MILLISECOND_NS) as i64;
        let (started_unix_ms, start_ns) = (unix_ms() + run_up_ms, monotonic_ns() + LEAD_NS + order.run_up_ns);
        let mut halted = false;
        for worker in &self.workers {
            worker.live.begin();
            let start = Start { order: order.clone(), at_ns: start_ns, log: self.log.clone() };
            worker.orders.send(start).map_err(|_| SessionError::WorkerLost)?;
        }
        let mut slots = Vec::with_capacity(self.workers.len());
        while slots.len() < self.workers.len() {
            match self.reports.recv_timeout(TICK) {
                Ok(Report(slot)) => slots.push(slot?),
                Err(RecvTimeoutError::Timeout) => {
                    if tick(&self.live()).is_break() {
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
        let mut sum = Live::default();
        self.workers.iter().for_each(|worker| worker.live.add_to(&mut sum));
        sum
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
    id: WorkerId,
    report: Sender<Report>,
    stop: Arc<AtomicBool>,
) -> Result<Handle, SessionError> {
    let (orders, inbox) = channel::<Start>();
    let live = Arc::new(LiveSlot::default());
    let their_live = Arc::clone(&live);
    let thread = std::thread::Builder::new()
        .name(format!("duel-load-{}", id.number))
        .spawn(move || {
            let made = factory.make(id, lanes as usize).map_err(SessionError::from).and_then(|workload| {
                let streams = factory.lanes_per_connection();
                let schema = factory.schema();
                let works_itself =
                    factory.lanes_per_worker() == LanesPerWorker::One || schema.threads == Threads::Working;
                Worker::new(schema, workload, lanes as usize, streams, id)
                    .map(|worker| worker.works_itself(works_itself))
                    .map_err(|error| SessionError::System { what: "create an event loop", error })
            });
            let mut worker = match made {
                Ok(worker) => worker,
                Err(error) => {
                    let _ = report.send(Report(Err(error)));
                    return;
                }
            };
            let _ = report.send(Report(Ok(WorkerSlot::default())));
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
    let last_end_ns = served_until_ns(&slots);
    let led_ns = led_ns(&slots);
    let signs = slots.iter().map(|slot| slot.signs).fold(Signs::default(), Signs::and);
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
        answered_ns: (signs.answered_ns > 0).then_some(signs.answered_ns),
        ends_in_silence: signs.end_in_silence(),
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
        elapsed_ns(order, record.tally.started + record.tally.shed, busy_ns, had_backlog).saturating_add_signed(led_ns)
    };
    record
}

/// When the slot's last op ended. Of stragglers only the part counts that they cost.
///
/// While one lane of n waits for a straggler the others rest, where in a longer slot they would have gone on: the wait
/// costs an n-th of its time, not all of it. (Ops n and times s of a lane that are counted to the end of the op under way
/// when the time is over satisfy E n * E op = E s, Wald's identity.) A lane whose op was given up counts as long as it was
/// waited for, which is the least that the op would have taken.
fn served_until_ns(slots: &[WorkerSlot]) -> Option<Nanos> {
    let usual_ns = slots.iter().filter_map(|slot| {
        let drain = slot.drain;
        let last_ns = slot.last_end_ns.or(drain.map(|drain| drain.usual_end_ns))?;
        // An op that was given up is no end, but its lane was at work until then.
        let straggled = drain.is_some_and(|drain| drain.straggling_ns > 0);
        Some(drain.map_or(
            last_ns,
            |drain| {
                if straggled { drain.usual_end_ns } else { last_ns.min(drain.usual_end_ns) }
            },
        ))
    });
    let drains = || slots.iter().filter_map(|slot| slot.drain);
    let lanes: u64 = drains().map(|drain| drain.lanes).sum();
    let straggling_ns: Nanos = drains().map(|drain| drain.straggling_ns).sum();
    Some(usual_ns.max()? + straggling_ns / lanes.max(1))
}

/// How long before the slot's time its ops began, behind a run-up: those that were under way when it ended are counted whole, and so is
/// their time. Lanes do so each by itself; the mean over them is the time that all of them together had. No op began before the
/// run-up, so it is no longer than that.
fn led_ns(slots: &[WorkerSlot]) -> i64 {
    let lanes: u64 = slots.iter().filter_map(|slot| slot.drain).map(|drain| drain.lanes).sum();
    slots.iter().map(|slot| slot.led_ns).sum::<i64>() / lanes.max(1).cast_signed()
}

/// The time over which a slot's ops were served.
///
/// Closed loop: to the end of the last op. A cut at the slot's nominal end would leave out ops in flight, and that
/// hits the slower target harder: with 30 connections and 0.3 s per op, a slot of 1 s would lose a third of its work.
/// Open loop that kept up: the schedule's own length, since each op was only shifted by its latency; if ops had to
/// wait beyond the end, the server did not keep up, and the time it took to work them off belongs to the slot.
///
/// `passed` ops were started or shed: where a number of ops bounds the slot and all of them have passed, that ended it.
fn elapsed_ns(order: &SlotOrder, passed: u64, busy_ns: Nanos, had_backlog: bool) -> Nanos {
    let nominal_ns = match (order.kind, order.ops, order.duration_ns) {
        (LoopKind::Open { .. }, Some(ops), _) if passed >= ops => order.planned_ns().unwrap_or(0),
        (LoopKind::Closed { .. }, Some(ops), _) if passed >= ops => 0,
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
    use crate::recorder::tests::{LOST, TRIED};
    use crate::slot::Drain;
    use crate::workload::{Failure, OpEnd};
    use duel_model::{Arrival, FailureKind, SECOND_NS};

    /// A worker that has seen `ops` end after `response_ns` each.
    fn worker(ops: u64, response_ns: Nanos, outcome: Result<(), FailureKind>) -> LiveSlot {
        let mut recorder = Recorder::new(&TRIED);
        recorder.reset(0, &[], false);
        for _ in 0..ops {
            let outcome = outcome.map_err(|kind| Box::new(Failure { kind, text: String::new() }));
            recorder.op_ended(0, 0, &OpEnd::noticed(response_ns, outcome));
        }
        let live = LiveSlot::default();
        live.publish(&recorder, Traffic { bytes_in: 7, bytes_out: 5, connections: 1 });
        live
    }

    #[test]
    fn live_figures_are_those_of_all_workers_together() {
        let workers = [
            worker(990, MILLISECOND_NS, Ok(())),
            worker(10, 100 * MILLISECOND_NS, Ok(())),
            worker(3, SECOND_NS, Err(LOST)),
        ];
        let mut sum = Live::default();
        workers.iter().for_each(|worker| worker.add_to(&mut sum));
        assert_eq!((sum.ok, sum.failed_total(), sum.silent), (1000, 3, 3));
        assert_eq!(sum.traffic, Traffic { bytes_in: 21, bytes_out: 15, connections: 3 });
        // Not the 100 ms of the slower worker, but what 99 of 100 requests stayed below.
        let p99_ns = sum.response.quantile_ns(0.99).unwrap();
        // To the width of a bucket, 2 %.
        assert!(p99_ns.abs_diff(MILLISECOND_NS) <= MILLISECOND_NS / 50, "{p99_ns}");
        assert_eq!(sum.response.sum_ns, u128::from(1990 * MILLISECOND_NS));
    }

    #[test]
    fn a_slot_that_begins_shows_nothing_of_the_last_one() {
        let worker = worker(5, MILLISECOND_NS, Ok(()));
        worker.begin();
        let mut sum = Live::default();
        worker.add_to(&mut sum);
        assert_eq!(sum, Live::default());
    }

    fn order(kind: LoopKind, duration_ns: Option<Nanos>, ops: Option<u64>) -> SlotOrder {
        SlotOrder { duration_ns, ops, ..SlotOrder::of(kind, SECOND_NS) }
    }

    #[test]
    fn a_closed_loop_lasts_to_the_end_of_its_last_op() {
        let closed = LoopKind::Closed { think_ns: 0 };
        assert_eq!(elapsed_ns(&order(closed, Some(SECOND_NS), None), 9, 1_300_000_000, false), 1_300_000_000);
        assert_eq!(elapsed_ns(&order(closed, None, Some(9)), 9, 1_300_000_000, false), 1_300_000_000);
        // Think time: the last op may end long before the slot does.
        assert_eq!(elapsed_ns(&order(closed, Some(SECOND_NS), None), 9, 5_000, false), SECOND_NS);
    }

    /// Two workers of two lanes each in a slot of 1 s that began at 0, with ops of 10 ms.
    #[test]
    fn a_straggler_costs_its_lane_and_not_all_lanes() {
        let ms = 1_000_000;
        let worker = |last_end_ms: u64, straggling_ms: u64| WorkerSlot {
            last_end_ns: Some(last_end_ms * ms),
            drain: Some(Drain { usual_end_ns: 1_040 * ms, straggling_ns: straggling_ms * ms, lanes: 2 }),
            ..WorkerSlot::default()
        };
        assert_eq!(served_until_ns(&[worker(1_010, 0), worker(1_015, 0)]), Some(1_015 * ms), "the last end, as ever");
        assert_eq!(served_until_ns(&[worker(1_010, 0), worker(5_040, 4_000)]), Some(2_040 * ms), "a fourth of 4 s");
        // Given up after a wait of 4 s: no op ended late, but the lane was at work.
        assert_eq!(served_until_ns(&[worker(1_010, 0), worker(1_012, 4_000)]), Some(2_040 * ms));
        // All lanes: the server stood still.
        assert_eq!(served_until_ns(&[worker(5_040, 8_000), worker(5_040, 8_000)]), Some(5_040 * ms));
        // One in which no op ended was waited for just as long.
        let stalled = WorkerSlot {
            drain: Some(Drain { usual_end_ns: 1_000 * ms, straggling_ns: 2_000 * ms, lanes: 2 }),
            ..WorkerSlot::default()
        };
        assert_eq!(served_until_ns(std::slice::from_ref(&stalled)), Some(2_000 * ms));
        assert_eq!(served_until_ns(&[worker(1_010, 0), stalled]), Some(1_510 * ms));
        assert_eq!(served_until_ns(&[WorkerSlot::default()]), None);
    }

    #[test]
    fn an_open_loop_lasts_as_long_as_its_schedule_unless_it_fell_behind() {
        let open = LoopKind::Open { rate_per_s: 10.0, arrival: Arrival::Constant };
        assert_eq!(elapsed_ns(&order(open, Some(SECOND_NS), None), 10, 1_001_000_000, false), SECOND_NS);
        assert_eq!(elapsed_ns(&order(open, Some(SECOND_NS), None), 10, 1_900_000_000, true), 1_900_000_000);
        assert_eq!(elapsed_ns(&order(open, None, Some(20)), 20, 1_901_000_000, false), 2 * SECOND_NS);
        // The shorter of two bounds.
        assert_eq!(elapsed_ns(&order(open, Some(SECOND_NS), Some(20)), 10, 1_001_000_000, false), SECOND_NS);
        assert_eq!(elapsed_ns(&order(open, Some(9 * SECOND_NS), Some(20)), 20, 1_901_000_000, false), 2 * SECOND_NS);
    }
}
