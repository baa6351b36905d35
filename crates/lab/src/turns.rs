//! The one schedule of experiments on several targets: blocks in which each target has its turns, mirrored, for as long as
//! there is time for another block.

use crate::bench::Bench;
use duel_model::{Distribution, MILLISECOND_NS, Nanos};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Shortest turn of a slot: to begin and to end one takes up to a millisecond, in which nothing is measured.
const SHORTEST_TURN_NS: Nanos = 10 * MILLISECOND_NS;
/// Ops that a connection should carry in a turn. While the last ones end, lanes rest that have ended theirs: two servers that do as much, one
/// in ops of equal length and one in ops that scatter like an exponential distribution, differ by 1.6 % for that. And one op in so many
/// is the first of a turn, for which the server had rested: no more than the 99th percentile leaves out.
pub(crate) const OPS_PER_TURN: u64 = 100;
/// The same where there is one connection, and no 99th percentile is asked for: no other lane rests while the last op ends. That the server
/// had rested before one op in twenty makes a rate 5 % lower where that costs as much as an op takes, of both sides and all probes.
pub(crate) const OPS_PER_TURN_ALONE: u64 = 20;
/// Turns that a slot should have: of four one may be disturbed, and the Hodges-Lehmann estimate is still among the others.
const FEWEST_TURNS: u64 = 5;
/// Shortest and longest slot that is run in turns, where time allows it.
const SLOT_IN_TURNS_NS: RangeInclusive<Nanos> = 100 * MILLISECOND_NS..=300 * MILLISECOND_NS;
/// Most turns of a slot, however long it is.
const MOST_TURNS: u64 = 64;
/// Ops longer than a turn that may be under way, on average, when one ends.
const MOST_SLOW_OPS: f64 = 0.1;

/// When blocks begin, and in which order comes what they hold.
pub(crate) struct Turns {
    random: Pcg64Mcg,
    /// The bench's load time by which the last block has to end.
    end_load_ns: Nanos,
    /// The load time at which the block under way began.
    began_ns: Option<Nanos>,
    /// The longest so far; before the first one, how long that should be.
    longest_block_ns: Nanos,
    has_ended_one: bool,
}

impl Turns {
    pub(crate) fn new(seed: u64, end_load_ns: Nanos) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            end_load_ns,
            began_ns: None,
            longest_block_ns: 0,
            has_ended_one: false,
        }
    }

    /// The same, where a block should take so long: the first one is not begun either if it would not end in time.
    pub(crate) fn expecting(self, block_ns: Nanos) -> Self {
        Self { longest_block_ns: block_ns, ..self }
    }

    /// Begins a block. One that would not end in time, were it as long as the longest so far, is not begun.
    pub(crate) fn begins(&mut self, bench: &mut Bench) -> bool {
        let now_ns = bench.load_ns();
        let has_time = self.has_time(now_ns);
        if has_time {
            bench.give_way();
        }
        has_time
    }

    /// Whether there is time for another block at this load time, at which the last one has ended.
    fn has_time(&mut self, now_ns: Nanos) -> bool {
        if let Some(began_ns) = self.began_ns.replace(now_ns) {
            let expected_ns = if self.has_ended_one { self.longest_block_ns } else { 0 };
            self.longest_block_ns = expected_ns.max(now_ns - began_ns);
            self.has_ended_one = true;
        }
        now_ns.saturating_add(self.longest_block_ns) <= self.end_load_ns
    }

    /// Puts targets, or treatments, into random order.
    pub(crate) fn shuffle(&mut self, order: &mut [usize]) {
        order.shuffle(&mut self.random);
    }
}

/// Every target once in this order, then once more in the reverse order (ABBA or BAAB for two), so that a steady drift hits all
/// alike; each with which of its turns it is.
pub(crate) fn mirrored(order: &[usize]) -> impl Iterator<Item = (u32, usize)> {
    let there = order.iter().map(|&target| (0, target));
    there.chain(order.iter().rev().map(|&target| (1, target)))
}

/// Length of a turn of so many ops, each of which takes so long.
fn turn_ns(op_ns: Nanos, ops: u64) -> Nanos {
    (ops * op_ns).max(SHORTEST_TURN_NS)
}

/// How long a slot that is run in turns should be.
pub(crate) fn slot_in_turns_ns(op_ns: Nanos, ops: u64) -> Nanos {
    (FEWEST_TURNS * turn_ns(op_ns, ops)).clamp(*SLOT_IN_TURNS_NS.start(), *SLOT_IN_TURNS_NS.end())
}

/// In how many turns of `ops` ops a slot of this length is run, where an op takes so long, and a warm-up has shown these service
/// times of targets.
///
/// In one go where there would be fewer than [`FEWEST_TURNS`], which say too little of what is typical; and where some ops of a target
/// take longer than a turn is meant to last, and one of them is likely to be under way on some lane when a turn ends: a turn waits
/// for its last ops, and waiting would take more time than load.
pub(crate) fn turns_of<'a>(
    slot_ns: Nanos,
    op_ns: Nanos,
    ops: u64,
    warm_up: impl IntoIterator<Item = (usize, &'a Distribution)>,
    lanes: u32,
) -> u32 {
    let turns = (slot_ns / turn_ns(op_ns, ops)).min(MOST_TURNS);
    if turns < FEWEST_TURNS {
        return 1;
    }
    // Of each target by itself: one whose ops are slow is loaded for as long as the others, and ends as few ops as it can.
    let mut service: BTreeMap<usize, Distribution> = BTreeMap::new();
    warm_up.into_iter().for_each(|(target, took)| service.entry(target).or_default().merge(took));
    let under_way = |service: &Distribution| {
        let slow = service.buckets().iter().filter(|(value_ns, _)| *value_ns > slot_ns / turns);
        let slow_ns: f64 = slow.map(|(value_ns, count)| *value_ns as f64 * *count as f64).sum();
        f64::from(lanes) * slow_ns / (service.sum_ns as f64).max(1.0)
    };
    if service.values().any(|service| under_way(service) > MOST_SLOW_OPS) { 1 } else { turns as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_would_not_end_in_time_is_not_begun_and_the_first_one_goes_by_what_it_should_take() {
        let second = 1_000 * MILLISECOND_NS;
        assert!(!Turns::new(1, 30 * second).expecting(43 * second).has_time(4 * second));
        assert!(Turns::new(1, 30 * second).has_time(4 * second), "nothing is known of it");
        let mut turns = Turns::new(1, 30 * second).expecting(20 * second);
        assert!(turns.has_time(4 * second));
        // It took 8 s: that is known from then on.
        assert!(turns.has_time(12 * second) && turns.has_time(20 * second) && !turns.has_time(28 * second));
    }

    #[test]
    fn slots_are_run_in_turns_where_no_turn_waits_for_long() {
        let ms = MILLISECOND_NS;
        // A lane that is busy with ops of 100 µs for 9.7 s of 10 s, and with one of 300 ms in the rest.
        let steady = Distribution::from_values(std::iter::repeat_n(ms / 10, 100_000));
        let stalls = Distribution::from_values(std::iter::repeat_n(ms / 10, 97_000).chain([300 * ms]));
        let turns =
            |warm_up: &[&Distribution]| turns_of(100 * ms, ms / 10, 100, (0..).zip(warm_up.iter().copied()), 10);
        assert_eq!(turns(&[&steady, &steady]), 10);
        // Of ten lanes 0.3 are busy with a slow op, whatever the other targets do.
        assert_eq!(turns(&[&steady, &stalls]), 1);
        assert_eq!(turns(&[&steady, &stalls, &steady, &steady, &steady]), 1);
        // Turns of 25 ms: four of them.
        assert_eq!(turns_of(100 * ms, ms / 4, 100, [(0, &steady)], 10), 1);
        assert_eq!(turns_of(100 * ms, ms / 4, 20, [(0, &steady)], 1), 10, "none shorter than 10 ms");
    }
}
