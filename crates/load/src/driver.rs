//! The one driver loop: wait until an op is due, start it, hear of its end, record it.

use crate::clock::{monotonic_ns, sleeps, thread_cpu_ns, waited_for_cpu_ns};
use crate::connections::Connections;
use crate::idle::Idle;
use crate::log::OpLog;
use crate::pace::{Pace, Source};
use crate::poller::{self, Poller};
use crate::recorder::Recorder;
use crate::session::LiveSlot;
use crate::slot::{Drain, SlotOrder, USUAL_DRAIN_MEDIANS, WorkerSlot};
use crate::stalls::Stalls;
use crate::waiter::{Patience, Waiter};
use crate::wake::wake_cost_ns;
use crate::workload::{Counters, Failure, Io, LaneId, OpEnd, Progress, WorkerId, Workload};
use duel_model::{MILLISECOND_NS, Nanos, Schema, WorkerAudit};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time from an event to the worker that it wakes; on a machine whose CPUs are busy it may be longer, and then it is
/// not known since when something was there to be read.
const LONGEST_WAKE_NS: Nanos = MILLISECOND_NS;
/// How often the live figures are brought up to date.
const LIVE_INTERVAL_NS: Nanos = 50 * MILLISECOND_NS;
/// A turn of the loop that took so much longer than it wanted to sleep, and for which it did not use the CPU either, is a
/// standstill: the kernel wakes a thread within microseconds, and a machine on which some threads wait for each CPU lets
/// each run after some milliseconds. What is shorter moves a slot by less than other noise does.
const STANDSTILL_NS: Nanos = 50 * MILLISECOND_NS;
/// How long ops that end without waiting (blocking workloads) may follow each other before the loop looks at the rest:
/// at events of other lanes, at the slot's end, at a request to stop.
const SYNCHRONOUS_BATCH_NS: Nanos = MILLISECOND_NS;

/// Ops of each lane from which on half of them tell how long one usually takes.
const FEWEST_OPS_PER_LANE: u64 = 3;

/// One worker: a workload, its lanes and what it records.
pub(crate) struct Worker<W> {
    workload: W,
    poller: Poller,
    waiter: Waiter,
    lanes: Vec<Lane>,
    /// Lanes that share a connection.
    streams: usize,
    recorder: Recorder,
    stalls: Stalls,
    connections: Connections,
    schema: &'static Schema,
    /// When the poller was last asked for all that is ready: what it did not tell of then was not.
    asked_ns: Nanos,
    id: WorkerId,
    /// As [`WorkerAudit::works_itself`].
    works_itself: bool,
    run_up: RunUp,
    before: Before,
}

/// Load before a slot's time, which is in none of its figures.
#[derive(Debug, Default)]
struct RunUp {
    /// When it is over; `Nanos::MAX`: there is none, or it has ended.
    until_ns: Nanos,
    /// As [`WorkerAudit::run_up_ns`].
    took_ns: Nanos,
    /// As [`WorkerSlot::led_ns`].
    led_ns: i64,
    /// What its counters hold that is the slot's.
    carried: Counters,
    /// As [`WorkerAudit::gave_way`].
    gave_way: bool,
}

/// What the clocks of the thread showed when the worker began to count.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    sleeps: Option<u64>,
    waited_ns: Option<Nanos>,
    wall_ns: Nanos,
    cpu_ns: Option<Nanos>,
}

impl Before {
    fn now() -> Self {
        let (sleeps, waited_ns) = (sleeps(), waited_for_cpu_ns());
        // The wall is read around the CPU, not within it: in a slot of some microseconds the readings themselves are a
        // good part, and a worker would seem to have used more than all of its CPU.
        Self { sleeps, waited_ns, wall_ns: monotonic_ns(), cpu_ns: thread_cpu_ns() }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    busy: bool,
    due_ns: Nanos,
    start_ns: Nanos,
    /// Since when the lane could have taken an op.
    free_since_ns: Nanos,
}

impl<W: Workload> Worker<W> {
    /// `streams` lanes in a row share a connection.
    pub(crate) fn new(
        schema: &'static Schema,
        workload: W,
        lanes: usize,
        streams: usize,
        id: WorkerId,
    ) -> io::Result<Self> {
        Ok(Self {
            workload,
            poller: Poller::new()?,
            waiter: Waiter::new(wake_cost_ns()),
            lanes: vec![Lane::default(); lanes],
            streams,
            recorder: Recorder::new(schema),
            stalls: Stalls::new(lanes),
            connections: Connections::new(schema, lanes, streams),
            schema,
            asked_ns: 0,
            id,
            works_itself: false,
            run_up: RunUp::default(),
            before: Before::default(),
        })
    }

    /// The worker does the ops itself: see [`WorkerAudit::works_itself`].
    pub(crate) fn works_itself(mut self, works_itself: bool) -> Self {
        self.works_itself = works_itself;
        self
    }

    /// Runs one slot that begins at `start_ns`, behind its run-up; ends early when `stop` is set or `live` is halted. Records of all ops go to
    /// `log`, if there is one.
    pub(crate) fn run_slot(
        &mut self,
        order: &SlotOrder,
        start_ns: Nanos,
        stop: &AtomicBool,
        live: &LiveSlot,
        log: Option<&OpLog>,
    ) -> io::Result<WorkerSlot> {
        let load_from_ns = start_ns.saturating_sub(order.run_up_ns);
        self.settle_parked_lanes(load_from_ns)?;
        // What happened to parked connections is not part of this slot, except what they last negotiated, and that more came
        // than responses have.
        let parked = self.workload.take_counters();
        let has_run_up = order.run_up_ns > 0;
        self.recorder.reset(start_ns, &order.stages, log.is_some() && !has_run_up);
        self.recorder.is_in_run_up = has_run_up;
        self.stalls.begin(load_from_ns);
        self.connections.begin();
        self.run_up = RunUp { until_ns: if has_run_up { start_ns } else { Nanos::MAX }, ..RunUp::default() };
        self.lanes.fill(Lane { free_since_ns: load_from_ns, ..Lane::default() });
        let mut pace = Pace::new(order, load_from_ns, self.id, Idle::all(self.lanes.len(), self.streams));
        self.before = Before::now();
        self.waiter.begin(self.id.number < order.polling_workers, order.polling_gives_way, load_from_ns);
        pace.turn.work_ns = self.before.cpu_ns;
        let mut next_live_ns = load_from_ns + LIVE_INTERVAL_NS;
        let mut interrupted = false;

        loop {
            let now = monotonic_ns();
            if now >= self.run_up.until_ns {
                self.end_run_up(&mut pace, now, log.is_some());
            }
            if now > pace.turn.until_ns + STANDSTILL_NS {
                self.stood_still(&pace, now);
            }
            pace.turn.until_ns = now;
            if stop.load(Ordering::Relaxed) || live.is_halted() {
                interrupted = true;
                break;
            }
            self.start_due(&mut pace, now);
            let now = monotonic_ns();
            if now >= next_live_ns {
                live.publish(&self.recorder, self.workload.traffic());
                self.recorder.hand_over(log);
                if self.waiter.gives_way() {
                    self.waiter.waited_for_cpu(self.waited_ns());
                }
                self.waiter.reconsider(now);
                pace.turn.work_ns = self.work_ns();
                next_live_ns = now + LIVE_INTERVAL_NS;
            }
            if now >= pace.next_expiry_ns {
                self.expire(&mut pace, now);
            }
            self.hear_further(&mut pace);
            if pace.is_over(now) {
                break;
            }
            let pause_ns = self.workload.wakes_at().map_or(Nanos::MAX, |at_ns| at_ns.saturating_sub(now));
            let left_ns = pace.left_ns(now).min(self.run_up.until_ns.saturating_sub(now));
            let patience = self.waiter.patience(left_ns.min(pause_ns), pace.mean_gap_ns);
            pace.turn.until_ns += patience.total_ns();
            self.turn(&mut pace, now, patience)?;
        }

        let end_ns = monotonic_ns();
        if self.run_up.until_ns != Nanos::MAX {
            // It was broken off.
            self.end_run_up(&mut pace, end_ns, log.is_some());
        }
        let waited_ns = self.waited_ns();
        // Of short slots it is the only time.
        self.waiter.waited_for_cpu(waited_ns);
        self.waiter.reconsider(end_ns);
        let cpu_ns = self.before.cpu_ns.zip(thread_cpu_ns()).map(|(before, after)| after.saturating_sub(before));
        let silent_lanes = self.silent_lanes(load_from_ns);
        let waits = self.waiter.audit();
        let slept = self.slept();
        let audit = WorkerAudit {
            run_up_ns: self.run_up.took_ns,
            cpu_ns,
            waited_ns,
            wall_ns: monotonic_ns().saturating_sub(self.before.wall_ns),
            polling_ns: waits.polling_ns,
            taken_ns: waits.taken_ns,
            gave_way: waits.gave_way || self.run_up.gave_way,
            sleeps: slept,
            notice_lag: self.recorder.notice_lag.snapshot(),
            schedule_lag: self.recorder.schedule_lag.snapshot(),
            loop_lag: self.recorder.loop_lag.snapshot(),
            silent_lanes: Some(silent_lanes),
            standstill: self.recorder.standstill,
            works_itself: self.works_itself,
            target_stalls: self.stalls.end(self.usual_op_ns()).filter(|_| !self.works_itself),
            connections: self.connections.times(),
        };
        let drain = self.drain(&pace, end_ns);
        let in_flight = self.abandon(&mut pace, end_ns, interrupted);
        let unstarted = self.leave_unstarted(&mut pace, end_ns, interrupted);
        live.publish(&self.recorder, self.workload.traffic());
        self.recorder.hand_over(log);
        self.workload.slot_ended();
        let mut counters = self.workload.take_counters();
        // Bytes that came too late for their slot are those of the one before, and would be nobody's.
        let carried = std::mem::take(&mut self.run_up.carried);
        counters.surplus += parked.surplus + carried.surplus;
        counters.reused += carried.reused;
        let negotiated = counters.negotiated.take().or(carried.negotiated).or(parked.negotiated);
        Ok(WorkerSlot {
            tally: self.recorder.tally(in_flight, unstarted, counters),
            series: self.recorder.series().clone(),
            audit,
            last_end_ns: pace.last_end_ns,
            led_ns: self.run_up.led_ns,
            drain,
            had_backlog: pace.started_after_end || unstarted > 0,
            negotiated,
            signs: self.recorder.signs,
        })
    }

    /// How long an op of this slot usually took; `None` where lanes had few ops, as with new connections that carry one each.
    fn usual_op_ns(&self) -> Option<Nanos> {
        let has_some = self.recorder.ok >= FEWEST_OPS_PER_LANE * self.lanes.len() as u64;
        self.recorder.median_service_ns().filter(|_| has_some)
    }

    /// CPU time of the thread but for what it polled with nothing to do in this slot.
    fn work_ns(&self) -> Option<Nanos> {
        Some(thread_cpu_ns()?.saturating_sub(self.waiter.audit().polling_ns))
    }

    /// Notes a turn that took too long, unless it was at work: then the loop was busy, which its CPU time tells.
    ///
    /// No call is made for this in a turn that is as it should be. The CPU time was read up to [`LIVE_INTERVAL_NS`] before the
    /// turn began, so what is taken off is at least what the turn used: a standstill may look shorter by so much, and work
    /// never looks like one.
    #[cold]
    fn stood_still(&mut self, pace: &Pace, now: Nanos) {
        let worked_ns = pace.turn.work_ns.zip(self.work_ns()).map_or(0, |(before, after)| after.saturating_sub(before));
        let gap_ns = now.saturating_sub(pace.turn.until_ns).saturating_sub(worked_ns);
        if gap_ns >= STANDSTILL_NS {
            self.recorder.standstill.add(gap_ns);
        }
    }

    /// How often this thread has slept since it began to count; `None` where the system does not tell.
    fn slept(&self) -> Option<u64> {
        self.before.sleeps.zip(sleeps()).map(|(before, after)| after.saturating_sub(before))
    }

    /// For how long others had the CPU that this thread wanted since it began to count; `None` where the system does not tell.
    fn waited_ns(&self) -> Option<Nanos> {
        let waited_ns = waited_for_cpu_ns()?.saturating_sub(self.before.waited_ns?);
        // After each sleep a CPU has to come back, which the kernel counts as well.
        Some(waited_ns.saturating_sub(self.slept().unwrap_or(0).saturating_mul(self.waiter.sleep_costs_ns())))
    }

    /// The run-up is over: all that the slot counts begins here, on all clocks at once, and no op needs to be asked when it began.
    ///
    /// Ops that are under way are the slot's, whole, and so is their time: each lane's time begins with the op that it has under way
    /// (see [`WorkerSlot::led_ns`]). To cut them would leave the slot a part of an op too much or too little.
    #[cold]
    fn end_run_up(&mut self, pace: &mut Pace, now: Nanos, keeps_records: bool) {
        let until_ns = std::mem::replace(&mut self.run_up.until_ns, Nanos::MAX);
        let led = self.workload.take_counters();
        let busy = || self.lanes.iter().filter(|lane| lane.busy);
        let under_way = busy().count() as u64;
        let idle = (pace.lanes_at_work().unwrap_or(self.lanes.len()) as u64).saturating_sub(under_way);
        let before_ns = |since_ns: Nanos| until_ns.cast_signed() - since_ns.cast_signed();
        self.run_up = RunUp {
            until_ns: Nanos::MAX,
            took_ns: now.saturating_sub(until_ns.saturating_sub(pace.order.run_up_ns)),
            led_ns: busy().map(|lane| before_ns(lane.start_ns)).sum::<i64>() + before_ns(now) * idle.cast_signed(),
            carried: Counters {
                // Ops are counted as over a connection that there was when they begin. Of those under way all are, unless connections
                // were made so late.
                reused: led.reused.min(under_way),
                surplus: led.surplus,
                negotiated: led.negotiated,
                ..Counters::default()
            },
            gave_way: self.waiter.audit().gave_way,
        };
        self.recorder.run_up_ended(under_way, &pace.order.stages, keeps_records);
        self.stalls.begin(now);
        self.connections.begin();
        pace.last_end_ns = None;
        let may_poll = self.id.number < pace.order.polling_workers;
        self.waiter.begin(may_poll, pace.order.polling_gives_way, now);
        self.before = Before::now();
        pace.turn.work_ns = self.before.cpu_ns;
        // What stood still in the run-up did not do so in the slot.
        pace.turn.until_ns = pace.turn.until_ns.max(until_ns.min(now));
    }

    /// One turn of the event loop: wait, then handle what became ready.
    #[inline]
    fn turn(&mut self, pace: &mut Pace, now: Nanos, patience: Patience) -> io::Result<()> {
        self.workload.turn_begins();
        let asked_before_ns = std::mem::replace(&mut self.asked_ns, now);
        let count = self.waiter.wait(&mut self.poller, patience, pace.busy > 0)?;
        if count == 0 {
            return Ok(());
        }
        let woken_ns = monotonic_ns();
        // Whoever waited for long was woken by what came.
        let has_waited = woken_ns.saturating_sub(now) > LONGEST_WAKE_NS;
        let ready_after_ns = if has_waited { woken_ns - LONGEST_WAKE_NS } else { asked_before_ns };
        if count == poller::BATCH {
            // There may be more.
            self.asked_ns = asked_before_ns;
        }
        let mut last_ns = woken_ns;
        for index in 0..count {
            let event = self.poller.event(index);
            let lane = self.workload.lane_of(event.token);
            let progress = self.workload.ready(lane, event, &Io::ready_after(&self.poller, ready_after_ns));
            if let Progress::Done(op) = progress {
                last_ns = op.end_ns;
                self.op_ended(pace, lane, &op);
            }
            // What follows on this event leaves before the next one is looked at, as where each lane has a connection.
            last_ns = self.hear_further(pace).unwrap_or(last_ns);
        }
        // Up to its last op's end: what follows it delays nobody who is in this batch.
        self.recorder.loop_lag.record(last_ns.saturating_sub(woken_ns));
        Ok(())
    }

    /// Hears of ops that ended beside those that were asked about, and lets what was started leave; answers when the last
    /// of them ended.
    #[inline]
    fn hear_further(&mut self, pace: &mut Pace) -> Option<Nanos> {
        let mut last_ns = None;
        while let Some((lane, op)) = self.workload.further(&Io::new(&self.poller)) {
            last_ns = last_ns.max(Some(op.end_ns));
            self.op_ended(pace, lane, &op);
        }
        last_ns
    }

    /// An op ended on `lane`: start the lane's next op if that is due at once, and record the one that ended. Recording comes second,
    /// for its time would be the next op's.
    #[inline]
    fn op_ended(&mut self, pace: &mut Pace, lane: LaneId, op: &OpEnd) {
        let now = op.end_ns;
        let ended = self.free(pace, lane, op);
        let connection_failed = op.outcome.as_ref().is_err_and(|failure| failure.kind.means.is_unconnected());
        let next = (!connection_failed && pace.takes_next_at_once(now)).then(|| self.start(pace, lane, now, now));
        self.record(lane, ended, op);
        match next {
            Some(Progress::Pending) => {}
            Some(Progress::Done(op)) => {
                // A blocking workload: the next op goes through the queue, so that other lanes have their turn.
                pace.turn.until_ns += op.end_ns.saturating_sub(now);
                self.record_end(pace, lane, &op);
                pace.release(lane, op.end_ns);
            }
            None if connection_failed => pace.pause(lane, now),
            None => pace.release(lane, now),
        }
    }

    #[inline]
    fn record_end(&mut self, pace: &mut Pace, lane: LaneId, op: &OpEnd) {
        let ended = self.free(pace, lane, op);
        self.record(lane, ended, op);
    }

    #[inline]
    fn record(&mut self, lane: LaneId, ended: Lane, op: &OpEnd) {
        self.recorder.op_ended(ended.due_ns, ended.start_ns, op);
        self.connections.op_ended(lane, ended.start_ns, op);
    }

    /// The op on `lane` has ended: the lane is free. Answers what it was while the op was under way.
    #[inline]
    fn free(&mut self, pace: &mut Pace, lane: LaneId, op: &OpEnd) -> Lane {
        let state = &mut self.lanes[lane];
        debug_assert!(state.busy, "an idle lane cannot end an op");
        let ended = *state;
        state.busy = false;
        state.free_since_ns = op.end_ns;
        pace.busy -= 1;
        pace.last_end_ns = pace.last_end_ns.max(Some(op.end_ns));
        let lanes = &self.lanes;
        let waiting = |by_ns| lanes.iter().filter(|lane| lane.busy && lane.start_ns < by_ns).count();
        self.stalls.op_ended(ended.start_ns, op.over_ns(), waiting);
        ended
    }

    #[inline]
    fn start(&mut self, pace: &mut Pace, lane: LaneId, due_ns: Nanos, now: Nanos) -> Progress {
        let state = &mut self.lanes[lane];
        state.busy = true;
        state.due_ns = due_ns;
        state.start_ns = now;
        pace.busy += 1;
        pace.ops_left -= 1;
        self.recorder.started += 1;
        self.workload.start(lane, now, &Io::new(&self.poller))
    }

    /// Starts every op that is due and for which a lane is free.
    fn start_due(&mut self, pace: &mut Pace, mut now: Nanos) {
        let batch_end_ns = now + SYNCHRONOUS_BATCH_NS;
        loop {
            self.shed(pace, now);
            let Some((lane, due_ns)) = pace.next_due(now) else { return };
            let could_start_ns = due_ns.max(self.lanes[lane].free_since_ns);
            let progress = self.start(pace, lane, due_ns, now);
            // What is recorded about the start comes after it, for its time would be the op's.
            if pace.measures_schedule_lag() {
                self.recorder.schedule_lag.record(now.saturating_sub(could_start_ns));
                if pace.has_queue() {
                    self.recorder.queue.record(could_start_ns - due_ns);
                }
            }
            match progress {
                Progress::Pending => now = monotonic_ns(),
                Progress::Done(op) => {
                    pace.turn.until_ns += op.end_ns.saturating_sub(now);
                    now = op.end_ns;
                    self.record_end(pace, lane, &op);
                    if op.outcome.as_ref().is_err_and(|failure| failure.kind.means.is_unconnected()) {
                        pace.pause(lane, now);
                    } else {
                        pace.release(lane, now);
                    }
                    if now >= batch_end_ns {
                        return;
                    }
                }
            }
        }
    }

    /// Passes over the ops whose deadline is behind them.
    #[inline]
    fn shed(&mut self, pace: &mut Pace, now: Nanos) {
        while let Some(due_ns) = pace.next_shed(now) {
            self.recorder.shed(due_ns, pace.order.deadline_ns.unwrap_or(0));
        }
    }

    /// Gives up ops that took too long.
    fn expire(&mut self, pace: &mut Pace, now: Nanos) {
        pace.next_expiry_ns = now + pace.expiry_step_ns;
        for lane in 0..self.lanes.len() {
            let Lane { busy, start_ns, .. } = self.lanes[lane];
            let waited_ns = now.saturating_sub(start_ns);
            if !busy || waited_ns < pace.order.op_timeout_ns.min(pace.order.connect_timeout_ns) {
                continue;
            }
            let is_late = |since_ns| now.saturating_sub(since_ns) >= pace.order.connect_timeout_ns;
            let connecting = self.workload.connecting_since(lane).is_some_and(is_late);
            let (what, limit_ns) = if connecting {
                ("no connection", pace.order.connect_timeout_ns)
            } else if waited_ns >= pace.order.op_timeout_ns {
                ("no complete answer", pace.order.op_timeout_ns)
            } else {
                continue;
            };
            let kind = self.schema.given_up(connecting);
            let phases = self.workload.phases_so_far(lane, now);
            self.workload.cancel(lane);
            let text = format!("{what} within {}", duel_model::format_duration_ns(limit_ns as f64));
            let op = OpEnd { phases, ..OpEnd::noticed(now, Err(Box::new(Failure { kind, text }))) };
            self.op_ended(pace, lane, &op);
        }
    }

    /// What waiting for stragglers cost, those that are about to be given up at `now` included.
    fn drain(&self, pace: &Pace, now: Nanos) -> Option<Drain> {
        if !matches!(pace.source, Source::Closed { .. }) || pace.order.duration_ns.is_none() || pace.order.ops.is_some()
        {
            return None;
        }
        // Where no op has ended, nothing is known of how long one usually takes: the lanes have stalled since the end.
        let usual_end_ns = pace.end_ns + USUAL_DRAIN_MEDIANS * self.recorder.median_service_ns().unwrap_or(0);
        let rest_ns = |lane: &Lane| if lane.busy { now } else { lane.free_since_ns };
        let straggling_ns = self.lanes.iter().map(|lane| rest_ns(lane).saturating_sub(usual_end_ns)).sum();
        let lanes = pace.lanes_at_work().unwrap_or(self.lanes.len()).max(1) as u64;
        Some(Drain { usual_end_ns, straggling_ns, lanes })
    }

    /// Lanes that are still with the first op of their slot.
    fn silent_lanes(&self, start_ns: Nanos) -> u32 {
        let is_silent = |lane: &&Lane| lane.busy && lane.free_since_ns == start_ns;
        u32::try_from(self.lanes.iter().filter(is_silent).count()).unwrap_or(u32::MAX)
    }

    /// Gives up what is still in flight when the slot is over, and says how many ops that were.
    ///
    /// After a full grace their time waited enters the distribution: it is long, and leaving it out would flatter the
    /// server. After an interruption it does not: it was cut at an arbitrary moment.
    fn abandon(&mut self, pace: &mut Pace, now: Nanos, interrupted: bool) -> u64 {
        let mut in_flight = 0;
        for lane in 0..self.lanes.len() {
            if !self.lanes[lane].busy {
                continue;
            }
            let phases = self.workload.phases_so_far(lane, now);
            self.workload.cancel(lane);
            self.lanes[lane].busy = false;
            in_flight += 1;
            self.recorder.signs.unanswered(self.lanes[lane].start_ns);
            self.recorder.left_in_flight(self.lanes[lane].due_ns);
            if !interrupted {
                self.recorder.given_up(self.lanes[lane].due_ns, self.lanes[lane].start_ns, now, &phases);
            }
        }
        pace.busy = 0;
        // What tells the server that they were given up leaves now: during other targets' slots it is to be idle.
        let further = self.workload.further(&Io::new(&self.poller));
        debug_assert!(further.is_none(), "no lane has an op to end");
        in_flight
    }

    /// Counts the ops that became due and were never started; their waiting counts as [`Worker::abandon`] says.
    fn leave_unstarted(&mut self, pace: &mut Pace, now: Nanos, interrupted: bool) -> u64 {
        self.shed(pace, now);
        let Source::Open { schedule, .. } = &mut pace.source else { return 0 };
        let mut unstarted = 0;
        while pace.ops_left > 0 && schedule.next_due_ns() < pace.end_ns.min(now) {
            let due_ns = schedule.next_due_ns();
            unstarted += 1;
            pace.ops_left -= 1;
            self.recorder.left_unstarted(due_ns);
            if !interrupted {
                self.recorder.waited_without_start(due_ns, now.saturating_sub(due_ns));
            }
            schedule.advance();
        }
        unstarted
    }

    /// Until the slot begins: lets the workload hear of parked connections that the server has closed.
    fn settle_parked_lanes(&mut self, start_ns: Nanos) -> io::Result<()> {
        // Once the slot should have begun, a lane that never falls silent must not hold it up for ever; one batch of
        // events for each lane tells of all that there is to tell.
        let mut batches_left = self.lanes.len();
        loop {
            let now = monotonic_ns();
            self.workload.turn_begins();
            let count = self.poller.wait(Some(start_ns.saturating_sub(now)))?.len();
            for index in 0..count {
                let event = self.poller.event(index);
                let lane = self.workload.lane_of(event.token);
                let progress = self.workload.ready(lane, event, &Io::new(&self.poller));
                debug_assert!(matches!(progress, Progress::Pending), "a parked lane has no op to end");
            }
            let further = self.workload.further(&Io::new(&self.poller));
            debug_assert!(further.is_none(), "a parked lane has no op to end");
            if now >= start_ns {
                if count == 0 || batches_left == 0 {
                    return Ok(());
                }
                batches_left -= 1;
            }
        }
    }
}
