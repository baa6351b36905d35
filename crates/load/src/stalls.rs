//! Stalls of the target, as one worker sees them: for a while nothing ends, although several lanes wait, and then all of them
//! get their answers at once.
//!
//! That they end together is what tells a stall of the target from several ops that are slow each for itself: of these, one ends
//! and the others go on. A connection that waits for a lost packet is one of many, whose answers come meanwhile.

use duel_model::{MILLISECOND_NS, Nanos, Standstill};

/// Shortest stall: a thread whose CPU others want gets it back after some milliseconds, and no turn of a slot is shorter.
const SHORTEST_NS: Nanos = 10 * MILLISECOND_NS;
/// How many times as long as an op usually takes: lanes that are in step end their ops together, each time after one op.
const TIMES_USUAL: Nanos = 4;
/// Fewest lanes that wait, or all where there are fewer: a few slow ops may well be under way at a time. What is found over one
/// connection is the time of ops that are slow, whatever makes them so.
const FEWEST_LANES: usize = 4;
/// Part of a stall's time within which at least half of those who waited have to get their answers, once the first one came.
const ENDS_WITHIN: Nanos = 4;

/// The stalls of a slot.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    /// How long an op usually took in the slot before, ns; `None`: there was none, and nothing is looked for.
    usual_ns: Option<Nanos>,
    lanes: usize,
    /// Since when nothing has ended.
    silent_since_ns: Nanos,
    /// A silence that was ended by an answer, and may have been a stall.
    over: Option<Silence>,
    found: Standstill,
}

/// A time in which nothing ended.
#[derive(Debug, Clone, Copy)]
struct Silence {
    took_ns: Nanos,
    ended_ns: Nanos,
    /// Those who waited, and how many of them have got their answers.
    waited: usize,
    answered: usize,
}

impl Stalls {
    /// Of so many lanes.
    pub(crate) fn new(lanes: usize) -> Self {
        Self { lanes, ..Self::default() }
    }

    /// A slot begins.
    pub(crate) fn begin(&mut self, start_ns: Nanos) {
        self.silent_since_ns = start_ns;
        self.over = None;
        self.found = Standstill::default();
    }

    /// It is over; an op of its usually took so long.
    pub(crate) fn end(&mut self, usual_ns: Option<Nanos>) -> Option<Standstill> {
        let found = self.usual_ns.map(|_| self.found);
        self.usual_ns = usual_ns.or(self.usual_ns);
        found
    }

    /// An op that began at `start_ns` was over at `over_ns`. `waiting` tells how many lanes had begun their ops by some time and
    /// still wait.
    #[inline]
    pub(crate) fn op_ended(&mut self, start_ns: Nanos, over_ns: Nanos, waiting: impl FnOnce(Nanos) -> usize) {
        let took_ns = over_ns.saturating_sub(self.silent_since_ns);
        self.silent_since_ns = self.silent_since_ns.max(over_ns);
        if took_ns >= SHORTEST_NS || self.over.is_some() {
            self.look(start_ns, over_ns, took_ns, waiting);
        }
    }

    #[cold]
    fn look(&mut self, start_ns: Nanos, over_ns: Nanos, took_ns: Nanos, waiting: impl FnOnce(Nanos) -> usize) {
        if let Some(mut silence) = self.over.take()
            && over_ns <= silence.ended_ns + silence.took_ns / ENDS_WITHIN
        {
            silence.answered += usize::from(start_ns < silence.ended_ns - silence.took_ns / 2);
            self.take(silence);
            return;
        }
        let Some(usual_ns) = self.usual_ns else { return };
        // Who began after half of it saw too little of it.
        let by_ns = over_ns - took_ns / 2;
        if took_ns < SHORTEST_NS.max(TIMES_USUAL.saturating_mul(usual_ns)) || start_ns >= by_ns {
            return;
        }
        let waited = 1 + waiting(by_ns);
        if waited >= FEWEST_LANES.min(self.lanes) {
            self.take(Silence { took_ns, ended_ns: over_ns, waited, answered: 1 });
        }
    }

    /// Counts a silence once half of those who waited have their answers; until then it is kept.
    fn take(&mut self, silence: Silence) {
        if 2 * silence.answered >= silence.waited {
            self.found.add(silence.took_ns);
        } else {
            self.over = Some(silence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND_NS;

    /// The stalls of a slot in which ops began and ended so, in the order of their ends; `usual_ms` of the slot before.
    fn found(usual_ms: Option<Nanos>, ops_ms: &[(Nanos, Nanos)]) -> Option<Standstill> {
        found_of(8, usual_ms, ops_ms)
    }

    fn found_of(lanes: usize, usual_ms: Option<Nanos>, ops_ms: &[(Nanos, Nanos)]) -> Option<Standstill> {
        let mut stalls = Stalls { usual_ns: usual_ms.map(|ms| ms * MS), ..Stalls::new(lanes) };
        stalls.begin(0);
        for (place, &(start_ms, end_ms)) in ops_ms.iter().enumerate() {
            let waiting = |by_ns| ops_ms[place + 1..].iter().filter(|(start_ms, _)| start_ms * MS < by_ns).count();
            stalls.op_ended(start_ms * MS, end_ms * MS, waiting);
        }
        stalls.end(None)
    }

    #[test]
    fn lanes_that_wait_and_get_their_answers_together_were_stalled() {
        let ops = [(0, 1), (0, 1), (0, 1), (0, 2), (1, 62), (1, 62), (1, 63), (2, 63), (62, 64)];
        let once = Standstill { count: 1, total_ns: 60 * MS, longest_ns: 60 * MS };
        assert_eq!(found(Some(1), &ops), Some(once));
        // It may be there when the slot begins.
        assert_eq!(found(Some(1), &[(0, 40), (0, 40), (0, 41), (0, 41)]).unwrap().total_ns, 40 * MS);
        assert_eq!(found(None, &ops), None, "nothing is known of how long an op takes: that is not none");
    }

    #[test]
    fn ops_that_are_slow_each_for_itself_are_no_stall() {
        let none = Some(Standstill::default());
        // One waits for a lost packet.
        assert_eq!(found(Some(1), &[(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (0, 203)]), none);
        // All lanes are with slow ops, and one of these ends after the other.
        assert_eq!(found(Some(1), &[(0, 1), (0, 61), (0, 91), (0, 121), (0, 151)]), none);
        // Lanes in step, whose ops take that long.
        assert_eq!(found(Some(30), &[(0, 30), (0, 30), (0, 30), (0, 30), (30, 60), (30, 60)]), none);
        // Too few of them, and a few milliseconds.
        assert_eq!(found(Some(1), &[(0, 1), (0, 61), (0, 61), (0, 61)]), none);
        assert_eq!(found(Some(1), &[(0, 9), (0, 9), (0, 9), (0, 9)]), none);
        // Who had nothing to wait for: an open loop that was idle.
        assert_eq!(found(Some(1), &[(0, 1), (60, 61), (60, 61), (60, 61), (60, 61)]), none);
    }

    #[test]
    fn over_one_connection_each_slow_op_counts() {
        let slow = [(0, 1), (1, 62), (62, 63), (63, 70), (70, 110)];
        let twice = Standstill { count: 2, total_ns: 101 * MS, longest_ns: 61 * MS };
        assert_eq!(found_of(1, Some(1), &slow), Some(twice));
    }

    #[test]
    fn each_slot_has_its_own() {
        let mut stalls = Stalls::new(4);
        assert_eq!(stalls.end(Some(MS)), None);
        stalls.begin(100 * MS);
        (0..4).for_each(|_| stalls.op_ended(100 * MS, 130 * MS, |_| 3));
        assert_eq!(stalls.end(None).unwrap().count, 1);
        stalls.begin(200 * MS);
        assert_eq!(stalls.end(None), Some(Standstill::default()));
    }
}
