//! Which call comes next, and where.

use crate::settings::{Op, Work};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::ops::Range;

/// A call that an op consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Write,
    Flush,
}

/// An op: where, and which calls it makes one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) offset: u64,
    reads: bool,
    writes: bool,
    flushes: bool,
}

impl Step {
    /// The next of its calls.
    pub(crate) fn take(&mut self) -> Option<Call> {
        let calls = [(&mut self.reads, Call::Read), (&mut self.writes, Call::Write), (&mut self.flushes, Call::Flush)];
        calls.into_iter().find_map(|(is_left, call)| std::mem::take(is_left).then_some(call))
    }
}

/// A worker's way through the file. Those who go in order have a part of the file each; all of a worker's ops in flight are on
/// one way.
#[derive(Debug)]
pub(crate) struct Walk {
    op: Op,
    block: u64,
    align: u64,
    /// Places to begin at; at least one.
    places: u64,
    first: u64,
    next: u64,
    mix: f64,
    flush: Option<u64>,
    written: u64,
    random: Pcg64Mcg,
    begins_anew: bool,
}

impl Walk {
    /// The way of one of so many workers through so many bytes, of which each worker's share has room for a block.
    pub(crate) fn new(work: &Work, bytes: u64, (number, of): (u32, u32), seed: u64) -> Self {
        let (first, places) = if work.op.is_random() {
            (0, (bytes - work.block) / work.align + 1)
        } else {
            let share = bytes / work.block / u64::from(of).max(1);
            (u64::from(number) * share * work.block, share.max(1))
        };
        Self {
            op: work.op,
            block: work.block,
            align: work.align,
            places,
            first,
            next: 0,
            mix: work.mix,
            flush: work.flush,
            written: 0,
            random: Pcg64Mcg::seed_from_u64(seed ^ (u64::from(number) << 48)),
            begins_anew: false,
        }
    }

    /// The bytes that it goes through in order; `None`: it goes anywhere.
    pub(crate) fn part(&self) -> Option<Range<u64>> {
        (!self.op.is_random()).then(|| self.first..self.first + self.places * self.block)
    }

    /// Whether it reads one block after the other.
    pub(crate) fn reads_in_order(&self) -> bool {
        matches!(self.op, Op::Read | Op::Rewrite)
    }

    /// Whether the op that was told last is the first on the way through the file.
    pub(crate) fn begins_anew(&self) -> bool {
        self.begins_anew
    }

    /// The next op.
    pub(crate) fn next(&mut self) -> Step {
        let offset = if self.op.is_random() {
            self.random.random_range(0..self.places) * self.align
        } else {
            let place = self.next;
            self.next = if place + 1 == self.places { 0 } else { place + 1 };
            self.begins_anew = place == 0;
            self.first + place * self.block
        };
        let reads = match self.op {
            Op::Read | Op::RandRead | Op::Rewrite => true,
            Op::RandRw => self.random.random_bool(self.mix),
            Op::Write | Op::RandWrite | Op::Fsync | Op::Dsync => false,
            Op::Create | Op::Stat | Op::ReadFile | Op::Unlink => false,
        };
        let writes = self.op == Op::Rewrite || (self.op.writes() && !reads);
        let mut flushes = self.op == Op::Fsync;
        if writes && let Some(every) = self.flush {
            self.written += 1;
            flushes |= self.written.is_multiple_of(every);
        }
        Step { offset, reads, writes, flushes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SCHEMA;
    use duel_model::{Id, KindPlan};

    fn walk(settings: &[(&'static str, &str)], bytes: u64, worker: (u32, u32)) -> Walk {
        let settings = settings.iter().map(|(name, value)| (Id::new(name), (*value).to_owned())).collect();
        let work = Work::of(&KindPlan { settings, ..KindPlan::of(&SCHEMA) }).unwrap();
        Walk::new(&work, bytes, worker, 1)
    }

    fn calls(mut step: Step) -> Vec<Call> {
        std::iter::from_fn(|| step.take()).collect()
    }

    #[test]
    fn who_goes_in_order_has_a_part_of_the_file_and_begins_again() {
        let mut walk = walk(&[("op", "read"), ("block", "1024")], 10 << 10, (1, 3));
        let offsets: Vec<u64> = (0..4).map(|_| walk.next().offset).collect();
        assert_eq!(offsets, [3072, 4096, 5120, 3072]);
        assert_eq!(walk.part(), Some(3072..6144), "what the others have is not theirs to drop");
    }

    #[test]
    fn random_places_are_aligned_within_the_file_and_reach_its_end() {
        let mut walk = walk(&[("op", "randread"), ("block", "8192"), ("align", "4096")], 16 << 10, (0, 1));
        let offsets: std::collections::BTreeSet<u64> = (0..200).map(|_| walk.next().offset).collect();
        assert_eq!(offsets.into_iter().collect::<Vec<_>>(), [0, 4096, 8192]);
        assert_eq!(walk.part(), None);
    }

    #[test]
    fn ops_make_their_calls_in_order() {
        for (op, expected) in [
            ("read", vec![Call::Read]),
            ("randwrite", vec![Call::Write]),
            ("rewrite", vec![Call::Read, Call::Write]),
            ("fsync", vec![Call::Write, Call::Flush]),
            ("dsync", vec![Call::Write]),
        ] {
            assert_eq!(calls(walk(&[("op", op)], 1 << 20, (0, 1)).next()), expected, "{op}");
        }
        let mut flushing = walk(&[("op", "write"), ("flush", "3")], 1 << 20, (0, 1));
        let flushed: Vec<bool> = (0..6).map(|_| calls(flushing.next()).contains(&Call::Flush)).collect();
        assert_eq!(flushed, [false, false, true, false, false, true]);
        let mut mixed = walk(&[("op", "randrw"), ("mix", "0.75")], 1 << 20, (0, 1));
        let reads = (0..4000).filter(|_| calls(mixed.next()) == [Call::Read]).count();
        assert!((2800..3200).contains(&reads), "{reads}");
    }
}
