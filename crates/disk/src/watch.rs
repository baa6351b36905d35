//! What is looked at beside the ops: what the device does meanwhile, and whether the work file is still there.

use crate::device::Done;
use crate::facts;
use crate::schema::{counter, fact, failure};
use crate::settings::ReadAhead;
use crate::target::Target;
use crate::work_file::forget;
use duel_load::{Counters, Failure, Traffic, WorkerId};
use duel_model::{MILLISECOND_NS, Nanos};
use rustix::fs::{Advice, fadvise};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a worker looks whether its work file is still there: 5 µs each time.
const LOOK_EVERY_NS: Nanos = 50 * MILLISECOND_NS;

/// What duel reads ahead: more than any device is asked for at a time.
const AHEAD_BYTES: u64 = 1 << 20;

/// One worker's counts, and its eye on the target.
#[derive(Debug)]
pub(crate) struct Watch {
    target: Arc<Target>,
    /// Only one worker of a session counts what they all cause.
    counts_device: bool,
    before: Option<Done>,
    /// At the end of the slot: what is done behind it is no op's.
    after: Option<Done>,
    looked_ns: Nanos,
    is_gone: bool,
    /// Which megabyte was asked for last, beside the one that is read now.
    ahead: Option<u64>,
    /// Bytes read, and bytes written, that the other workers do not know of.
    untold: u64,
    untold_written: u64,
    pub(crate) traffic: Traffic,
}

/// What a worker has read or written before it tells the others: few would have all workers write to one cache line with each op.
const TELL_BYTES: u64 = 64 << 10;

/// Bytes that all workers have read, or written, apart from what they only look at.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct MovedBytes(AtomicU64);

/// What came, and from where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) device: Option<Done>,
    /// By all workers of the session.
    pub(crate) read_bytes: u64,
}

impl Watch {
    pub(crate) fn new(target: Arc<Target>, worker: WorkerId) -> Self {
        let counts_device = worker.number == 0;
        if counts_device {
            // Of a session before.
            target.read_bytes.0.store(0, Ordering::Relaxed);
            target.written_bytes.0.store(0, Ordering::Relaxed);
        }
        let before = target.device.as_ref().filter(|_| counts_device).and_then(crate::device::Device::done);
        if target.work.cold && counts_device {
            forget(&target.file, None);
        }
        let traffic = Traffic::default();
        Self {
            target,
            counts_device,
            before,
            after: None,
            looked_ns: 0,
            is_gone: false,
            ahead: None,
            untold: 0,
            untold_written: 0,
            traffic,
        }
    }

    /// So many bytes were read.
    #[inline]
    pub(crate) fn read(&mut self, bytes: u64) {
        self.traffic.bytes_in += bytes;
        self.untold += bytes;
        if self.untold >= TELL_BYTES {
            self.tell();
        }
    }

    /// So many bytes were written.
    #[inline]
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.traffic.bytes_out += bytes;
        self.untold_written += bytes;
        if self.untold_written >= TELL_BYTES {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.target.written_bytes.0.fetch_add(std::mem::take(&mut self.untold_written), Ordering::Relaxed);
        self.target.read_bytes.0.fetch_add(std::mem::take(&mut self.untold), Ordering::Relaxed);
    }

    /// A failure, if the work file is not there any more. It is looked for now and then.
    #[inline]
    pub(crate) fn gone(&mut self, now_ns: Nanos) -> Option<Box<Failure>> {
        if now_ns.saturating_sub(self.looked_ns) >= LOOK_EVERY_NS {
            self.looked_ns = now_ns;
            let Target { work_file, files, .. } = &*self.target;
            self.is_gone = work_file.as_ref().is_some_and(|file| !file.is_there())
                || files.as_ref().is_some_and(|files| !files.is_there());
        }
        self.is_gone.then(|| {
            let text = "the work file is gone: it was removed, or its file system unmounted".to_owned();
            Box::new(Failure { kind: failure::GONE, text })
        })
    }

    /// Asks for the megabyte of this place and the next one, where that is wanted, once for each.
    #[inline]
    pub(crate) fn read_ahead(&mut self, offset: u64) {
        if self.target.work.read_ahead != ReadAhead::Own || self.ahead == Some(offset / AHEAD_BYTES) {
            return;
        }
        self.ahead = Some(offset / AHEAD_BYTES);
        let bytes = std::num::NonZeroU64::new(2 * AHEAD_BYTES);
        let _ = fadvise(&self.target.file, offset, bytes, Advice::WillNeed);
    }

    /// A slot is over: what follows is cold, where that is wanted.
    pub(crate) fn slot_ended(&mut self) {
        self.tell();
        // What was read ahead may be dropped by then.
        self.ahead = None;
        if self.counts_device {
            self.after = self.target.device.as_ref().and_then(crate::device::Device::done);
            self.pass_begins(None);
        }
    }

    /// A way through a part of the file begins: what was read on the one before is not to be read from memory, where that is wanted.
    /// What other workers have in hand is left alone.
    pub(crate) fn pass_begins(&mut self, part: Option<Range<u64>>) {
        self.ahead = None;
        if self.target.work.cold {
            forget(&self.target.file, part);
        }
    }

    /// What was counted since the last call.
    pub(crate) fn take(&mut self) -> Counters {
        self.tell();
        let Traffic { bytes_in, bytes_out, .. } = std::mem::take(&mut self.traffic);
        let mut counters = Counters { bytes_in, bytes_out, ..Counters::default() };
        if !self.counts_device {
            return counters;
        }
        let done = || self.target.device.as_ref().and_then(crate::device::Device::done);
        // What happened between slots is no op's either.
        let before = self.target.take_begun().or(self.before);
        let device = self.after.take().or_else(done).zip(before).map(|(after, before)| after.since(before));
        self.before = done();
        if let Some(done) = device {
            counters.counted.extend([
                (counter::DEVICE_READS.id(), done.reads),
                (counter::DEVICE_READ_BYTES.id(), done.read_bytes),
                (counter::DEVICE_WRITES.id(), done.writes),
                (counter::DEVICE_WRITTEN_BYTES.id(), done.written_bytes),
            ]);
        }
        // The device's figures are of what all workers caused.
        let read_bytes = self.target.read_bytes.0.swap(0, Ordering::Relaxed);
        let from = facts::served_from(Came { device, read_bytes });
        let written_bytes = self.target.written_bytes.0.swap(0, Ordering::Relaxed);
        let to = facts::written_to(device, written_bytes).filter(|_| self.target.work.direct);
        let mut facts = facts::of(&self.target);
        facts.note(fact::SERVED_FROM, from);
        facts.note(fact::WRITTEN_TO, to);
        counters.negotiated = Some(facts);
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::schema::SCHEMA;
    use crate::settings::Work;
    use duel_model::KindPlan;
    use std::sync::atomic::AtomicBool;

    fn target(settings: &[(&'static str, &str)], folder: &std::path::Path) -> Arc<Target> {
        let settings = settings.iter().map(|(name, value)| (duel_model::Id::new(name), (*value).to_owned())).collect();
        let work = Work::of(&KindPlan { settings, ..KindPlan::of(&SCHEMA) }).unwrap();
        let place = Place::of(folder.to_str().unwrap()).unwrap();
        Arc::new(Target::ready(work, place, 4, 1, &AtomicBool::new(false)).unwrap())
    }

    #[test]
    fn what_the_device_read_is_compared_with_what_all_workers_read() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(&[("size", "1048576")], folder.path());
        let worker = |number| Watch::new(Arc::clone(&target), WorkerId { number, of: 4 });
        let mut workers: Vec<Watch> = (0..4).map(worker).collect();
        for watch in &mut workers {
            watch.read(TELL_BYTES + 1);
            watch.read(5);
        }
        for watch in workers.iter_mut().rev() {
            watch.slot_ended();
        }
        assert_eq!(target.read_bytes.0.load(Ordering::Relaxed), 4 * (TELL_BYTES + 6));
        assert_eq!(workers[0].take().bytes_in, TELL_BYTES + 6, "traffic stays each worker's own");
        assert_eq!(target.read_bytes.0.load(Ordering::Relaxed), 0, "each slot is counted anew");
    }
}
