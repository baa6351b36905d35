//! Ops on whole files: making, looking at, reading and removing them. Each blocks its thread.
//!
//! A worker has a share of the files for itself. Between slots it brings them back to what they were: what was made is removed,
//! and what was removed is made again, where no op's time counts, and all of that is on the device before another target's slot begins.
//! Only where a slot goes through all of a share is that done within it, after an op's end: it is no part of the op's time, but of the
//! slot's, and is told as lateness of ours.

use crate::errors;
use crate::file_set::{FileSet, Hand, Laps};
use crate::schema::{SCHEMA, failure};
use crate::settings::{FileWork, Op};
use crate::target::Target;
use crate::watch::Watch;
use duel_load::{
    Counters, Event, Failure, Io, LaneId, LanesPerWorker, OpEnd, Progress, Session, SessionError, Traffic, WorkerId,
    Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{Nanos, Schema};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes the workers of a session.
#[derive(Debug, Clone)]
struct Factory {
    target: Arc<Target>,
    stop: Arc<AtomicBool>,
}

/// Opens a session: a thread of ours for each op in flight.
pub(crate) fn session(target: &Arc<Target>, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
    let workers = threads.saturating_mul(target.work.depth);
    let factory = Factory { target: Arc::clone(target), stop: Arc::clone(&stop) };
    Session::open(factory, workers, workers, stop)
}

impl WorkloadFactory for Factory {
    type Workload = FileOps;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, worker: WorkerId, _lanes: usize) -> Result<FileOps, WorkloadError> {
        let target = Arc::clone(&self.target);
        let files = target.files.as_ref().ok_or_else(|| errors::cannot("there are no files to work on"))?;
        let mut random = Pcg64Mcg::seed_from_u64(target.seed ^ (u64::from(worker.number) << 48));
        Ok(FileOps {
            round: Round::new(target.work.op, files.work, worker, &mut random),
            hand: Hand::new(files),
            watch: Watch::new(Arc::clone(&target), worker),
            random,
            made: 0,
            unrestored: None,
            stop: Arc::clone(&self.stop),
            target,
        })
    }

    fn lanes_per_worker(&self) -> LanesPerWorker {
        LanesPerWorker::One
    }
}

/// One worker.
#[derive(Debug)]
struct FileOps {
    target: Arc<Target>,
    hand: Hand,
    watch: Watch,
    random: Pcg64Mcg,
    round: Round,
    /// How many files were made, for `--flush`.
    made: u64,
    /// A file could not be brought back to what it was: the next op tells so.
    unrestored: Option<Box<Failure>>,
    stop: Arc<AtomicBool>,
}

/// A worker's way through its share of the files.
#[derive(Debug)]
struct Round {
    op: Op,
    /// The share, in the order in which it is gone through.
    order: Vec<u32>,
    is_random: bool,
    next: usize,
    /// So many files are not what they were when the slot began.
    changed: usize,
}

impl Round {
    fn new(op: Op, work: FileWork, worker: WorkerId, random: &mut Pcg64Mcg) -> Self {
        let mut order: Vec<u32> = share(work.files, worker).collect();
        // Names are at random where that is wanted (`Hand::name`), and so is what is removed.
        if work.is_random && op == Op::Unlink {
            for last in (1..order.len()).rev() {
                order.swap(last, random.random_range(0..=last));
            }
        }
        Self { op, order, is_random: work.is_random, next: 0, changed: 0 }
    }

    /// The next file.
    fn next(&mut self, random: &mut Pcg64Mcg) -> u32 {
        if self.is_random && matches!(self.op, Op::Stat | Op::ReadFile) {
            return self.order[random.random_range(0..self.order.len())];
        }
        let number = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        self.changed += usize::from(matches!(self.op, Op::Create | Op::Unlink));
        number
    }

    /// The file that has to be brought back before the next op: none is left that the slot has not changed.
    fn take_due(&mut self) -> Option<u32> {
        let is_due = self.changed >= self.order.len();
        self.changed -= usize::from(is_due);
        is_due.then(|| self.order[self.next])
    }

    /// The files that are not what they were when the slot began; it begins anew.
    fn take_changed(&mut self) -> Vec<u32> {
        let (all, changed) = (self.order.len(), std::mem::take(&mut self.changed));
        (0..changed).map(|back| self.order[(self.next + all - 1 - back) % all]).collect()
    }
}

/// The files of a worker: together workers have all of them.
fn share(files: u32, worker: WorkerId) -> Range<u32> {
    let at = |number: u32| (u64::from(files) * u64::from(number) / u64::from(worker.of.max(1))) as u32;
    at(worker.number)..at(worker.number + 1)
}

impl FileOps {
    fn op(&mut self, laps: &mut Laps) -> Result<u64, Box<Failure>> {
        let began_ns = laps.since_ns;
        if let Some(gone) = self.watch.gone(began_ns) {
            return Err(gone);
        }
        if let Some(failure) = self.unrestored.take() {
            return Err(failure);
        }
        let number = self.round.next(&mut self.random);
        let Some(files) = &self.target.files else { return Ok(0) };
        let bytes = match self.target.work.op {
            Op::Create => {
                self.made += 1;
                let flushes = self.target.work.flush.is_some_and(|every| self.made.is_multiple_of(every));
                let written = self.hand.create(files, number, flushes, laps);
                self.watch.traffic.bytes_out += written.map_err(|error| failed("creation", &error))?;
                0
            }
            Op::Unlink => {
                self.hand.unlink(files, number, laps).map_err(|error| failed("removal", &error))?;
                0
            }
            Op::ReadFile => {
                let read = self.hand.read(files, number, laps);
                let (bytes, said) = read.map_err(|error| failed("read", &error))?;
                self.watch.read(bytes);
                said.map_err(wrong)?;
                has_size(files, bytes)?;
                bytes
            }
            _ => {
                let size = self.hand.stat(files, number, laps).map_err(|error| failed("stat", &error))?;
                has_size(files, size)?;
                0
            }
        };
        if laps.since_ns.saturating_sub(began_ns) > self.target.op_timeout_ns {
            let text = "an op took longer than --timeout".to_owned();
            return Err(Box::new(Failure { kind: failure::TIMEOUT, text }));
        }
        Ok(bytes)
    }

    /// Brings the files back to what they were when the slot began, and waits until that is on the device.
    fn restore(&mut self) {
        let changed = self.round.take_changed();
        if changed.is_empty() {
            return;
        }
        for number in changed {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            self.restore_one(number);
        }
        let flushed = self.target.files.as_ref().map_or(Ok(()), FileSet::flush);
        if let Err(error) = flushed {
            self.unrestored.get_or_insert_with(|| failed("flush after a slot", &error));
        }
    }

    fn restore_one(&mut self, number: u32) {
        let Some(files) = &self.target.files else { return };
        let mut laps = Laps::new(0);
        let said = match self.target.work.op {
            Op::Create => self.hand.unlink(files, number, &mut laps),
            _ => self.hand.create(files, number, false, &mut laps).map(drop),
        };
        if let Err(error) = said {
            self.unrestored.get_or_insert_with(|| failed("restoring of a file after an op", &error));
        }
    }
}

fn has_size(files: &FileSet, bytes: u64) -> Result<(), Box<Failure>> {
    if bytes == files.work.bytes {
        return Ok(());
    }
    Err(wrong(format!("a file has {bytes} bytes, where {} had been written", files.work.bytes)))
}

fn wrong(text: String) -> Box<Failure> {
    Box::new(Failure { kind: failure::WRONG_DATA, text })
}

fn failed(what: &str, error: &io::Error) -> Box<Failure> {
    Box::new(errors::failed(what, error))
}

impl Workload for FileOps {
    fn start(&mut self, _lane: LaneId, now_ns: Nanos, _io: &Io<'_>) -> Progress {
        let mut laps = Laps::new(now_ns);
        let said = self.op(&mut laps);
        let bytes_in = said.as_ref().map_or(0, |bytes| *bytes);
        let Laps { phases, .. } = laps;
        let over_ns = monotonic_ns();
        let due = self.round.take_due();
        if let Some(number) = due {
            self.restore_one(number);
        }
        let (arrived_ns, end_ns) = match due {
            Some(_) => (Some(over_ns), monotonic_ns()),
            None => (None, over_ns),
        };
        Progress::Done(OpEnd { phases, bytes_in, arrived_ns, ..OpEnd::noticed(end_ns, said.map(drop)) })
    }

    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        Progress::Pending
    }

    fn cancel(&mut self, _lane: LaneId) {}

    fn slot_ended(&mut self) {
        self.watch.slot_ended();
        self.restore();
    }

    fn traffic(&self) -> Traffic {
        self.watch.traffic
    }

    fn take_counters(&mut self) -> Counters {
        self.watch.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(op: Op, is_random: bool) -> (Round, Pcg64Mcg) {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let work = FileWork { files: 20, folders: 1, bytes: 0, block: 512, is_random };
        (Round::new(op, work, WorkerId { number: 1, of: 2 }, &mut random), random)
    }

    #[test]
    fn workers_share_all_files_out_among_them() {
        for (files, of) in [(20, 3), (3, 3), (1000, 7), (u32::MAX, 1024)] {
            let shares: Vec<Range<u32>> = (0..of).map(|number| share(files, WorkerId { number, of })).collect();
            assert!(
                shares.windows(2).all(|two| two[0].end == two[1].start) && shares.iter().all(|share| !share.is_empty())
            );
            assert_eq!((shares[0].start, shares[of as usize - 1].end), (0, files));
        }
    }

    #[test]
    fn what_a_slot_changed_is_told_once_and_nothing_twice() {
        for (op, is_random) in [(Op::Create, false), (Op::Unlink, false), (Op::Unlink, true)] {
            let (mut round, mut random) = round(op, is_random);
            let some: Vec<u32> = (0..7).map(|_| round.next(&mut random)).collect();
            assert!(some.iter().all(|number| (10..20).contains(number)) && round.take_due().is_none());
            let sorted = |mut numbers: Vec<u32>| {
                numbers.sort_unstable();
                numbers
            };
            assert_eq!((sorted(round.take_changed()), round.take_changed()), (sorted(some), Vec::new()));
            // After the tenth, and each one behind it, the next op's file is brought back.
            let steps: Vec<(u32, Option<u32>)> = (0..12).map(|_| (round.next(&mut random), round.take_due())).collect();
            assert!(steps[..9].iter().all(|(_, due)| due.is_none()), "{steps:?}");
            assert_eq!((steps[9].1, steps[10].1), (Some(steps[10].0), Some(steps[11].0)));
            let due = steps[11].1.unwrap();
            assert_eq!(sorted(round.take_changed()), (10..20).filter(|number| *number != due).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn files_are_gone_through_in_order_or_at_random() {
        for op in [Op::Stat, Op::ReadFile] {
            let (mut ordered, mut random) = round(op, false);
            let seen: Vec<u32> = (0..12).map(|_| ordered.next(&mut random)).collect();
            assert_eq!(seen, (10..20).chain(10..12).collect::<Vec<u32>>());
            let (mut drawn, mut random) = round(op, true);
            let seen: Vec<u32> = (0..12).map(|_| drawn.next(&mut random)).collect();
            assert!(!seen.is_sorted() && seen.iter().all(|number| (10..20).contains(number)), "{seen:?}");
        }
    }
}
