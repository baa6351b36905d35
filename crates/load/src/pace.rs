//! The pace of a slot: which op is due next, on which lane, and when there is something to do. It knows of no workload.

use crate::course::{LaneCourse, RateCourse};
use crate::crew::Crew;
use crate::idle::Idle;
use crate::pacing::Schedule;
use crate::slot::SlotOrder;
use crate::workload::{LaneId, WorkerId};
use duel_model::{LoopKind, MILLISECOND_NS, Nanos};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A connection that could not be established is not tried again at once: a closed loop would otherwise become a
/// flood of connection attempts as soon as a server is down. 10 ms is short against any timeout and long against the
/// microseconds that a refusal takes.
const PAUSE_AFTER_FAILED_CONNECT_NS: Nanos = 10 * MILLISECOND_NS;
/// Longest sleep, so that a request to stop is seen.
const LONGEST_SLEEP_NS: Nanos = 50 * MILLISECOND_NS;

/// The state of the slot under way.
pub(crate) struct Pace {
    pub(crate) order: SlotOrder,
    pub(crate) end_ns: Nanos,
    /// This worker's share of the ops; `u64::MAX` without such a bound.
    pub(crate) ops_left: u64,
    pub(crate) source: Source,
    pub(crate) busy: usize,
    pub(crate) next_expiry_ns: Nanos,
    pub(crate) expiry_step_ns: Nanos,
    pub(crate) last_end_ns: Option<Nanos>,
    /// When an open loop's schedule ends: at the slot's end, or when its last op is due.
    pub(crate) schedule_end_ns: Nanos,
    /// An op of an open loop waited for a connection beyond the schedule's end.
    pub(crate) started_after_end: bool,
    /// Open loop: the mean time between this worker's ops, where they are closest.
    pub(crate) mean_gap_ns: Option<f64>,
    /// When the turn under way began, and when it is to have ended: that of a loop which runs.
    pub(crate) turn: Turn,
}

/// A turn of the loop, as it was meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// By when it is to be over: when it began, and the time that it wanted to sleep for at most. Ops that end within their
    /// start (blocking workloads) add what they took.
    pub(crate) until_ns: Nanos,
    /// CPU time of the thread's work, read some time before the turn began.
    pub(crate) work_ns: Option<Nanos>,
}

/// Where due times come from.
pub(crate) enum Source {
    /// Lanes make their own next op due; those whose time has not come yet are in the heap, those without pause that
    /// could not be started from within the event (blocking workloads, the slot's start) in the queue.
    Closed {
        think_ns: Nanos,
        ready: VecDeque<LaneId>,
        later: BinaryHeap<Reverse<(Nanos, LaneId)>>,
        /// How many lanes may carry ops; `None`: all.
        crew: Option<Crew>,
        /// Where one op is under way at a time: whose turn it is; `None`: all lanes go on by themselves.
        rounds: Option<Rounds>,
    },
    /// A schedule makes ops due, idle lanes take them in turn.
    Open { schedule: Schedule, idle: Idle },
}

/// Rounds in which each lane that is ready has one op, one after the other.
///
/// Each round has an order of its own. A balancer that hands requests to its servers in turn would else hand all of a lane to the same one,
/// and the lanes would seem to differ by their connections.
pub(crate) struct Rounds {
    /// Lanes that have not had their turn in the round under way.
    left: usize,
    random: Pcg64Mcg,
}

impl Rounds {
    fn new(seed: u64, worker: WorkerId) -> Self {
        Self { left: 0, random: Pcg64Mcg::seed_from_u64(seed ^ (u64::from(worker.number) << 48)) }
    }

    /// Puts whose turn it is to the front. Who has had its turn stands behind those that have not. A round begins with all whose pause
    /// after a failed connect is over by `now`.
    fn next(&mut self, ready: &mut VecDeque<LaneId>, later: &mut BinaryHeap<Reverse<(Nanos, LaneId)>>, now: Nanos) {
        if self.left == 0 {
            while later.peek().is_some_and(|&Reverse((due_ns, _))| due_ns <= now) {
                ready.extend(later.pop().map(|Reverse((_, lane))| lane));
            }
            ready.make_contiguous().shuffle(&mut self.random);
            self.left = ready.len();
        }
        self.left = self.left.saturating_sub(1);
    }
}

impl Pace {
    /// That of one worker, whose lanes are all idle, in a slot whose load begins at `start_ns`, that of its run-up included.
    pub(crate) fn new(order: &SlotOrder, start_ns: Nanos, worker: WorkerId, idle: Idle) -> Self {
        let source = match order.kind {
            LoopKind::Closed { think_ns } if !order.stages.is_empty() => Source::Closed {
                think_ns,
                ready: VecDeque::new(),
                later: BinaryHeap::new(),
                crew: Some(Crew::resting(
                    LaneCourse::new(&order.stages, start_ns, worker.number, worker.of),
                    idle.in_turn(),
                )),
                rounds: None,
            },
            LoopKind::Closed { think_ns } => Source::Closed {
                think_ns,
                ready: idle.in_turn().into(),
                later: BinaryHeap::new(),
                crew: None,
                rounds: order.one_at_a_time.then(|| Rounds::new(order.seed, worker)),
            },
            LoopKind::Open { rate_per_s, arrival } => Source::Open {
                schedule: if order.stages.is_empty() {
                    Schedule::new(start_ns, rate_per_s, arrival, worker.number, worker.of, order.seed)
                } else {
                    Schedule::staged(start_ns, &order.stages, arrival, worker.number, worker.of, order.seed)
                },
                idle,
            },
        };
        let ops_left = order.ops.map_or(u64::MAX, |ops| {
            let (number, workers) = (u64::from(worker.number), u64::from(worker.of));
            ops / workers + u64::from(number < ops % workers)
        });
        let shortest_ns = order.op_timeout_ns.min(order.connect_timeout_ns);
        let end_ns = order
            .duration_ns
            .map_or(Nanos::MAX, |duration_ns| start_ns.saturating_add(order.run_up_ns).saturating_add(duration_ns));
        let schedule_end_ns = match (order.kind, order.ops) {
            (LoopKind::Open { rate_per_s, .. }, Some(ops)) => {
                end_ns.min(start_ns.saturating_add((ops as f64 * 1e9 / rate_per_s) as Nanos))
            }
            _ => end_ns,
        };
        Self {
            order: order.clone(),
            end_ns,
            schedule_end_ns,
            ops_left,
            source,
            busy: 0,
            next_expiry_ns: start_ns.saturating_add(shortest_ns),
            // A timeout is noticed at most 1 % late, or 1 ms, and looking for it costs next to nothing.
            expiry_step_ns: (shortest_ns / 100).clamp(MILLISECOND_NS, LONGEST_SLEEP_NS),
            last_end_ns: None,
            started_after_end: false,
            mean_gap_ns: match order.kind {
                LoopKind::Open { rate_per_s, .. } => {
                    let highest_per_s = RateCourse::highest_per_s(&order.stages).max(rate_per_s);
                    Some(1e9 * f64::from(worker.of) / highest_per_s)
                }
                LoopKind::Closed { .. } => None,
            },
            turn: Turn { until_ns: start_ns, work_ns: None },
        }
    }

    /// The next op that is due by `now`, with the lane to run it on; the lane is taken from the idle ones.
    #[inline]
    pub(crate) fn next_due(&mut self, now: Nanos) -> Option<(LaneId, Nanos)> {
        if self.ops_left == 0 {
            return None;
        }
        match &mut self.source {
            Source::Closed { .. } if now >= self.end_ns => None,
            Source::Closed { rounds: Some(_), .. } if self.busy > 0 => None,
            Source::Closed { ready, later, crew, rounds, .. } => loop {
                if let Some(rounds) = rounds {
                    rounds.next(ready, later, now);
                }
                if let Some(lane) = crew.as_mut().and_then(|crew| crew.called(now)) {
                    return Some((lane, now));
                }
                let (lane, due_ns) = if let Some(lane) = ready.pop_front() {
                    (lane, now)
                } else if let Some(&Reverse((due_ns, lane))) = later.peek()
                    && due_ns <= now
                    && due_ns < self.end_ns
                {
                    later.pop();
                    (lane, due_ns)
                } else {
                    return None;
                };
                match crew.as_mut().filter(|crew| crew.is_too_many()) {
                    Some(crew) => crew.rest(lane),
                    None => return Some((lane, due_ns)),
                }
            },
            Source::Open { schedule, idle } => {
                let due_ns = schedule.next_due_ns();
                if due_ns > now || due_ns >= self.end_ns {
                    return None;
                }
                let lane = idle.pop()?;
                schedule.advance();
                self.started_after_end |= now >= self.schedule_end_ns;
                Some((lane, due_ns))
            }
        }
    }

    /// The due time of the next op whose deadline has passed at `now`; it is taken from the schedule.
    #[inline]
    pub(crate) fn next_shed(&mut self, now: Nanos) -> Option<Nanos> {
        let deadline_ns = self.order.deadline_ns?;
        let Source::Open { schedule, .. } = &mut self.source else { return None };
        let due_ns = schedule.next_due_ns();
        if self.ops_left == 0 || due_ns >= self.end_ns || due_ns.saturating_add(deadline_ns) >= now {
            return None;
        }
        schedule.advance();
        self.ops_left -= 1;
        Some(due_ns)
    }

    /// Whether a lane whose op ended at `now` goes on without pause.
    #[inline]
    pub(crate) fn takes_next_at_once(&self, now: Nanos) -> bool {
        // Where connections come and go, the queue decides.
        matches!(self.source, Source::Closed { think_ns: 0, crew: None, rounds: None, .. })
            && now < self.end_ns
            && self.ops_left > 0
    }

    /// A lane is free for its next op.
    #[inline]
    pub(crate) fn release(&mut self, lane: LaneId, now: Nanos) {
        match &mut self.source {
            Source::Closed { think_ns: 0, ready, .. } => ready.push_back(lane),
            Source::Closed { think_ns, later, .. } => later.push(Reverse((now + *think_ns, lane))),
            Source::Open { idle, .. } => idle.push(lane),
        }
    }

    /// A lane could not connect: it waits before it tries again. An open loop keeps to its schedule.
    pub(crate) fn pause(&mut self, lane: LaneId, now: Nanos) {
        match &mut self.source {
            Source::Closed { think_ns, later, .. } => {
                later.push(Reverse((now + PAUSE_AFTER_FAILED_CONNECT_NS.max(*think_ns), lane)));
            }
            Source::Open { idle, .. } => idle.push(lane),
        }
    }

    /// Own lateness can be told where a time was set beforehand.
    #[inline]
    pub(crate) fn measures_schedule_lag(&self) -> bool {
        !matches!(self.source, Source::Closed { think_ns: 0, .. })
    }

    /// Ops may become due while no lane is free.
    #[inline]
    pub(crate) fn has_queue(&self) -> bool {
        matches!(self.source, Source::Open { .. })
    }

    /// Lanes that would be at work in a longer slot at any time, where that are not all.
    #[inline]
    pub(crate) fn lanes_at_work(&self) -> Option<usize> {
        match &self.source {
            Source::Closed { crew: Some(crew), .. } => Some(crew.active),
            // All others wait for the one that has its turn.
            Source::Closed { rounds: Some(_), .. } => Some(1),
            _ => None,
        }
    }

    /// Whether nothing is left to do, or to wait for.
    #[inline]
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        let nothing_more_due = self.ops_left == 0
            || match &self.source {
                Source::Closed { .. } => now >= self.end_ns,
                Source::Open { schedule, .. } => now >= self.end_ns && schedule.next_due_ns() >= self.end_ns,
            };
        (nothing_more_due && self.busy == 0) || now >= self.end_ns.saturating_add(self.order.grace_ns)
    }

    /// How long the loop may wait if nothing becomes ready.
    #[inline]
    pub(crate) fn left_ns(&self, now: Nanos) -> Nanos {
        self.next_wake_ns(now).saturating_sub(now).min(LONGEST_SLEEP_NS)
    }

    /// When the loop has to look again even if nothing becomes ready.
    #[inline]
    fn next_wake_ns(&self, now: Nanos) -> Nanos {
        let mut wake_ns = self.next_expiry_ns;
        if now < self.end_ns {
            wake_ns = wake_ns.min(self.end_ns);
        } else {
            wake_ns = wake_ns.min(self.end_ns.saturating_add(self.order.grace_ns));
        }
        if self.ops_left == 0 {
            return wake_ns;
        }
        match &self.source {
            // Whoever has its turn ends it by an event.
            Source::Closed { rounds: Some(_), .. } if self.busy > 0 => wake_ns,
            Source::Closed { ready, .. } if !ready.is_empty() && now < self.end_ns => now,
            Source::Closed { later, crew, .. } => {
                let next_ns = later.peek().map(|&Reverse((due_ns, _))| due_ns).filter(|&due_ns| due_ns < self.end_ns);
                let change_ns = crew.as_ref().and_then(|crew| crew.course.next_change_ns());
                [next_ns, change_ns].into_iter().flatten().fold(wake_ns, Nanos::min)
            }
            Source::Open { schedule, idle } if !idle.is_empty() && schedule.next_due_ns() < self.end_ns => {
                wake_ns.min(schedule.next_due_ns())
            }
            Source::Open { .. } => wake_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot without end in which so many lanes have one op under way at a time.
    fn rounds(lanes: usize, seed: u64) -> Pace {
        let closed = SlotOrder::of(LoopKind::Closed { think_ns: 0 }, MILLISECOND_NS);
        let order = SlotOrder { duration_ns: Some(u64::MAX / 2), one_at_a_time: true, seed, ..closed };
        Pace::new(&order, 0, WorkerId { number: 0, of: 1 }, Idle::all(lanes, 1))
    }

    /// The lanes that had so many ops of a slot, one at a time, by round.
    fn rounds_of(lanes: usize, count: usize, seed: u64) -> Vec<Vec<LaneId>> {
        let mut pace = rounds(lanes, seed);
        let mut next = || {
            let (lane, _) = pace.next_due(1).unwrap();
            pace.busy = 1;
            assert_eq!(pace.next_due(1), None, "another one is under way");
            assert!(pace.left_ns(1) > 0, "until it ends there is nothing to do");
            assert!(!pace.takes_next_at_once(1), "others have their turn");
            assert_eq!(pace.lanes_at_work(), Some(1));
            pace.busy = 0;
            pace.release(lane, 1);
            lane
        };
        (0..count).map(|_| (0..lanes).map(|_| next()).collect()).collect()
    }

    #[test]
    fn a_lane_that_could_not_connect_has_its_turn_again_once_its_pause_is_over() {
        let mut pace = rounds(3, 5);
        let (failed, _) = pace.next_due(1).unwrap();
        pace.pause(failed, 1);
        let mut round = |now| {
            let mut lanes: Vec<LaneId> = Vec::new();
            while let Some((lane, _)) = pace.next_due(now).filter(|(lane, _)| !lanes.contains(lane)) {
                lanes.push(lane);
                pace.release(lane, now);
            }
            lanes
        };
        assert!(!round(2).contains(&failed), "it pauses");
        assert!(round(2 + PAUSE_AFTER_FAILED_CONNECT_NS).contains(&failed));
    }

    #[test]
    fn one_at_a_time_each_lane_has_its_turn_in_each_round_and_no_two_rounds_have_an_order_in_common() {
        let rounds = rounds_of(8, 50, 7);
        for round in &rounds {
            let mut lanes = round.clone();
            lanes.sort_unstable();
            assert_eq!(lanes, (0..8).collect::<Vec<_>>());
        }
        // Whoever hands ops out to two servers in turn hands those of each lane to either.
        for lane in 0..8 {
            let is_odd = |round: &&Vec<LaneId>| round.iter().position(|other| *other == lane).unwrap() % 2 == 1;
            let odd = rounds.iter().filter(is_odd).count();
            assert!((10..=40).contains(&odd), "lane {lane}: {odd} of 50");
        }
        assert_ne!(rounds_of(8, 3, 7), rounds_of(8, 3, 8));
    }
}
