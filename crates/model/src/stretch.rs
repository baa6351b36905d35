//! Slots that are run in several turns: what a later turn adds to what was counted before.

use crate::{GeneratorAudit, Nanos, Series, Slot, Turn, WorkerAudit};

impl Slot {
    /// Adds a later turn of the same slot. The slot itself was the first one.
    pub fn append(&mut self, later: Self) {
        if self.turns.is_empty() {
            self.turns.push(self.as_turn(0));
        }
        self.turns.push(later.as_turn(later.offset_ns.saturating_sub(self.offset_ns)));
        let since_start_ns = later.offset_ns.saturating_sub(self.offset_ns);
        self.died_ns = later.died_ns.map(|died_ns| since_start_ns.saturating_add(died_ns));
        self.series.append(self.elapsed_ns, &later.series);
        self.elapsed_ns += later.elapsed_ns;
        self.tally.merge(&later.tally);
        self.audit.append(later.audit);
        self.negotiated = later.negotiated.or(self.negotiated.take());
    }
}

impl Slot {
    fn as_turn(&self, offset_ns: Nanos) -> Turn {
        Turn { offset_ns, ok: self.tally.ok, elapsed_ns: self.elapsed_ns }
    }
}

impl Series {
    /// Adds a series that began when so much of this one's time was over; within an interval of where that is.
    fn append(&mut self, after_ns: Nanos, later: &Self) {
        // A turn in which nothing ended has no intervals, and no length of them.
        if later.intervals.is_empty() {
            return;
        }
        let mut shifted = later.clone();
        let skipped = (after_ns / shifted.interval_ns.max(1)) as usize;
        shifted.intervals.splice(0..0, std::iter::repeat_n(crate::Interval::default(), skipped));
        self.merge(&shifted);
    }
}

impl GeneratorAudit {
    /// Adds what the same workers found out later.
    fn append(&mut self, later: Self) {
        for (mine, theirs) in self.workers.iter_mut().zip(later.workers) {
            mine.append(&theirs);
        }
        self.descriptors_open = later.descriptors_open;
    }
}

impl WorkerAudit {
    fn append(&mut self, later: &Self) {
        let sum = |mine: Option<u64>, theirs: Option<u64>| Some(mine? + theirs?);
        self.cpu_ns = sum(self.cpu_ns, later.cpu_ns);
        self.waited_ns = sum(self.waited_ns, later.waited_ns);
        self.sleeps = sum(self.sleeps, later.sleeps);
        self.wall_ns += later.wall_ns;
        self.run_up_ns += later.run_up_ns;
        self.polling_ns += later.polling_ns;
        self.taken_ns += later.taken_ns;
        self.gave_way |= later.gave_way;
        self.schedule_lag.merge(&later.schedule_lag);
        self.loop_lag.merge(&later.loop_lag);
        self.notice_lag.merge(&later.notice_lag);
        self.standstill.merge(&later.standstill);
        self.target_stalls = self.target_stalls.zip(later.target_stalls).map(|(mut mine, theirs)| {
            mine.merge(&theirs);
            mine
        });
        if self.connections.len() < later.connections.len() {
            self.connections.resize_with(later.connections.len(), Default::default);
        }
        for (mine, theirs) in self.connections.iter_mut().zip(&later.connections) {
            mine.append(theirs);
        }
        // So many at most were silent in all turns.
        self.silent_lanes = self.silent_lanes.zip(later.silent_lanes).map(|(mine, theirs)| mine.min(theirs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConnectionTimes, Interval, SlotRole, Standstill, Tally};

    fn turn(offset_ns: Nanos, ok: u64) -> Slot {
        let worker = WorkerAudit {
            cpu_ns: Some(3),
            wall_ns: 10,
            silent_lanes: Some(ok as u32),
            standstill: Standstill { count: 1, total_ns: 2, longest_ns: 2 },
            ..WorkerAudit::default()
        };
        Slot {
            offset_ns,
            elapsed_ns: 100,
            tally: Tally { started: ok, ok, ..Tally::default() },
            series: Series { interval_ns: 50, intervals: vec![Interval { ok, ..Interval::default() }] },
            audit: GeneratorAudit { workers: vec![worker], ..GeneratorAudit::default() },
            ..Slot::empty(0, SlotRole::Measured)
        }
    }

    #[test]
    fn a_connection_of_several_turns_is_the_same_one_unless_it_was_made_anew() {
        let times = |ops: [u64; 2], connect_ns: Option<Nanos>| ConnectionTimes {
            ops,
            sum_ns: ops.map(|ops| 10 * ops),
            connect_ns,
            is_new: connect_ns.is_some(),
            is_several: false,
        };
        let with = |offset_ns: Nanos, connections: [ConnectionTimes; 2]| {
            let mut slot = turn(offset_ns, 1);
            slot.audit.workers[0].connections = connections.to_vec();
            slot
        };
        // The second one had no op in the first turn.
        let mut slot = with(0, [times([2, 1], Some(7)), times([0, 0], None)]);
        slot.append(with(200, [times([1, 1], None), times([1, 0], Some(9))]));
        assert_eq!(slot.audit.workers[0].connections, [times([3, 2], Some(7)), times([1, 0], Some(9))]);
        slot.append(with(400, [times([1, 1], None), times([1, 0], Some(9))]));
        // The first ops of all turns are not all in one half.
        let mut one_op_each = times([1, 0], None);
        one_op_each.append(&times([1, 0], None));
        assert_eq!((one_op_each.ops, one_op_each.sum_ns), ([1, 1], [10, 10]));
        let is_several: Vec<bool> = slot.audit.workers[0].connections.iter().map(|seen| seen.is_several).collect();
        assert_eq!(is_several, [false, true]);
    }

    #[test]
    fn a_slot_is_the_sum_of_its_turns_without_the_time_between_them() {
        let mut slot = turn(1_000, 7);
        slot.append(turn(1_300, 2));
        slot.append(Slot { died_ns: Some(40), elapsed_ns: 40, ..turn(1_600, 1) });
        assert_eq!(
            slot.turns.iter().map(|turn| (turn.offset_ns, turn.ok, turn.elapsed_ns)).collect::<Vec<_>>(),
            [(0, 7, 100), (300, 2, 100), (600, 1, 40)]
        );
        assert_eq!((slot.turns.len(), slot.offset_ns, slot.elapsed_ns, slot.tally.ok), (3, 1_000, 240, 10));
        assert_eq!(slot.end_ns(), 1_640);
        assert_eq!(slot.died_ns, Some(640), "on the wall, as it is told");
        let ok: Vec<u64> = slot.series.intervals.iter().map(|interval| interval.ok).collect();
        assert_eq!(ok, [7, 0, 2, 0, 1]);
        let worker = &slot.audit.workers[0];
        assert_eq!((worker.cpu_ns, worker.wall_ns, worker.silent_lanes), (Some(9), 30, Some(1)));
        slot.append(Slot { series: Series::default(), ..turn(1_900, 0) });
        assert_eq!((slot.series.interval_ns, slot.series.intervals.len(), slot.elapsed_ns), (50, 5, 340));
        let worker = &slot.audit.workers[0];
        assert_eq!((worker.wall_ns, worker.silent_lanes), (40, Some(0)));
        assert_eq!(slot.standstill(), Standstill { count: 4, total_ns: 8, longest_ns: 2 });
    }
}
