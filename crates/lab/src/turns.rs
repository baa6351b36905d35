//! The one schedule of experiments on several targets: blocks in which each target has its turns, mirrored, for as long as
//! there is time for another block.

use crate::bench::Bench;
use duel_model::Nanos;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// When blocks begin, and in which order comes what they hold.
pub(crate) struct Turns {
    random: Pcg64Mcg,
    /// The bench's load time by which the last block has to end.
    end_load_ns: Nanos,
    /// The load time at which the block under way began.
    began_ns: Option<Nanos>,
    longest_block_ns: Nanos,
}

impl Turns {
    pub(crate) fn new(seed: u64, end_load_ns: Nanos) -> Self {
        Self { random: Pcg64Mcg::seed_from_u64(seed), end_load_ns, began_ns: None, longest_block_ns: 0 }
    }

    /// Begins a block. One that would not end in time, were it as long as the longest so far, is not begun.
    pub(crate) fn begins(&mut self, bench: &mut Bench) -> bool {
        let now_ns = bench.load_ns();
        let last_ns = self.began_ns.replace(now_ns).map_or(0, |began_ns| now_ns - began_ns);
        self.longest_block_ns = self.longest_block_ns.max(last_ns);
        let has_time = now_ns + self.longest_block_ns <= self.end_load_ns;
        if has_time {
            bench.give_way();
        }
        has_time
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
