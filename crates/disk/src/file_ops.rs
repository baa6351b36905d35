//! Ops on whole files: making, looking at, reading and removing them. Each blocks its thread.
//!
//! A worker has a share of the files for itself. Between slots it brings them back to what they were: what was made is removed,
//! and what was removed is made again, where no op's time counts. Only where a slot goes through all of a share does an op do that
//! itself, before its own calls; its phases tell so.

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
use std::sync::atomic::AtomicBool;

/// Makes the workers of a session.
#[derive(Debug, Clone)]
struct Factory {
    target: Arc<Target>,
}

/// Opens a session: a thread of ours for each op in flight.
pub(crate) fn session(target: &Arc<Target>, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
    let workers = threads.saturating_mul(target.work.depth);
    Session::open(Factory { target: Arc::clone(target) }, workers, workers, stop)
}

impl WorkloadFactory for Factory {
    type Workload = FileOps;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn make(&self, lanes: usize) -> Result<FileOps, WorkloadError> {
        self.make_for(WorkerId::ONLY, lanes)
    }

    fn make_for(&self, worker: WorkerId, _lanes: usize) -> Result<FileOps, WorkloadError> {
        let target = Arc::clone(&self.target);
        let files = target.files.as_ref().ok_or_else(|| errors::cannot("there are no files to work on"))?;
        let mut random = Pcg64Mcg::seed_from_u64(target.seed ^ (u64::from(worker.number) << 48));
        Ok(FileOps {
            round: Round::new(target.work.op, files.work, worker, &mut random),
            hand: Hand::new(files),
            watch: Watch::new(Arc::clone(&target), worker),
            random,
            made: 0,
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
}

/// A worker's way through its share of the files.
#[derive(Debug)]
struct Round {
    op: Op,
    /// The share, in the order in which it is gone through.
    order: Vec<u32>,
    is_random: bool,
    next: usize,
    /// So many ops of this slot have changed what is there.
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

    /// The next file, and whether it has to be brought back to what it was before.
    fn next(&mut self, random: &mut Pcg64Mcg) -> (u32, bool) {
        let draws = self.is_random && matches!(self.op, Op::Stat | Op::ReadFile);
        if draws {
            return (self.order[random.random_range(0..self.order.len())], false);
        }
        let number = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        let changes = matches!(self.op, Op::Create | Op::Unlink);
        let is_again = changes && self.changed >= self.order.len();
        self.changed += usize::from(changes);
        (number, is_again)
    }

    /// The files that are not what they were when the slot began; it begins anew.
    fn take_changed(&mut self) -> Vec<u32> {
        let (all, changed) = (self.order.len(), std::mem::take(&mut self.changed).min(self.order.len()));
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
        let (number, is_again) = self.round.next(&mut self.random);
        let Some(files) = &self.target.files else { return Ok(0) };
        let bytes = match self.target.work.op {
            Op::Create => {
                if is_again {
                    self.hand.unlink(files, number, laps).map_err(|error| failed("removal", &error))?;
                }
                self.made += 1;
                let flushes = self.target.work.flush.is_some_and(|every| self.made.is_multiple_of(every));
                let written = self.hand.create(files, number, flushes, laps);
                self.watch.traffic.bytes_out += written.map_err(|error| failed("creation", &error))?;
                0
            }
            Op::Unlink => {
                if is_again {
                    self.hand.create(files, number, false, laps).map_err(|error| failed("creation", &error))?;
                }
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

    /// Brings the files back to what they were when the slot began. What cannot be brought back fails in its next op.
    fn restore(&mut self) {
        let Some(files) = &self.target.files else { return };
        for number in self.round.take_changed() {
            let mut laps = Laps::new(0);
            let _ = match self.target.work.op {
                Op::Create => self.hand.unlink(files, number, &mut laps),
                _ => self.hand.create(files, number, false, &mut laps).map(drop),
            };
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
        Progress::Done(OpEnd { phases, bytes_in, ..OpEnd::noticed(monotonic_ns(), said.map(drop)) })
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
            let some: Vec<(u32, bool)> = (0..7).map(|_| round.next(&mut random)).collect();
            assert!(some.iter().all(|(number, is_again)| (10..20).contains(number) && !is_again));
            let mut changed = round.take_changed();
            changed.sort_unstable();
            let mut expected: Vec<u32> = some.iter().map(|(number, _)| *number).collect();
            expected.sort_unstable();
            assert_eq!((changed, round.take_changed()), (expected, Vec::new()));
            // More than there are: the eleventh is brought back by its op.
            let again: Vec<bool> = (0..12).map(|_| round.next(&mut random).1).collect();
            assert_eq!(again.iter().position(|is_again| *is_again), Some(10));
            let mut changed = round.take_changed();
            changed.sort_unstable();
            assert_eq!(changed, (10..20).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn files_are_gone_through_in_order_or_at_random() {
        for op in [Op::Stat, Op::ReadFile] {
            let (mut ordered, mut random) = round(op, false);
            let seen: Vec<u32> = (0..12).map(|_| ordered.next(&mut random).0).collect();
            assert_eq!(seen, (10..20).chain(10..12).collect::<Vec<u32>>());
            let (mut drawn, mut random) = round(op, true);
            let seen: Vec<u32> = (0..12).map(|_| drawn.next(&mut random).0).collect();
            assert!(!seen.is_sorted() && seen.iter().all(|number| (10..20).contains(number)), "{seen:?}");
        }
    }
}
