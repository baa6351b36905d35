//! What a worker's connections to one target share, whichever version of HTTP they speak: the choice of requests, the
//! buffer that is read into, and the books.

use super::broken::status_failure;
use super::inflate::ration;
use super::link::{Link, READS_IN_A_ROW, SCRATCH_BYTES};
use super::op::Op;
use super::shared::{Requests, Shared};
use crate::requests::picker::Picker;
use duel_load::{Counters, Failure, WorkerId};
use duel_model::Nanos;
use duel_model::web::{counter, phase};
use std::sync::atomic::Ordering;

/// Statuses are three digits.
const STATUSES: usize = 1000;

/// One worker's for one target.
#[derive(Debug)]
pub(super) struct Desk {
    /// Chooses requests, where there is more than one.
    pub(super) picker: Option<Box<Picker>>,
    /// What is read from any connection goes here first; only unfinished TLS records are kept per connection, so that
    /// a thousand idle connections cost next to nothing.
    pub(super) scratch: Vec<u8>,
    /// Most that is read at a time, and how often in a row: little where it is decompressed, since it may become a thousand
    /// times as much.
    most_read_bytes: usize,
    pub(super) reads_in_a_row: usize,
    pub(super) counters: Counters,
    statuses: Box<[u64; STATUSES]>,
    /// The next response's head and session are to be written down; once per slot.
    pub(super) wants_details: bool,
    unreported_lookup_ns: Option<Nanos>,
    /// What is read now could not be read at this time.
    pub(super) ready_after_ns: Nanos,
    /// Number of the next connection, by which its addresses are chosen.
    turn: usize,
}

impl Desk {
    /// For a worker with so many connections at a time.
    pub(super) fn new(shared: &Shared, worker: WorkerId, connections: usize) -> Self {
        let picker = match &shared.requests {
            Requests::One(_) => None,
            Requests::Many(repertoire) => Some(Box::new(Picker::new(repertoire, worker))),
        };
        let (most_read_bytes, reads_in_a_row) =
            if shared.decompress { (ration::READ_BYTES, 1) } else { (SCRATCH_BYTES, READS_IN_A_ROW) };
        Self {
            picker,
            most_read_bytes,
            reads_in_a_row,
            scratch: vec![0; SCRATCH_BYTES],
            counters: Self::counters(shared),
            statuses: Box::new([0; STATUSES]),
            wants_details: true,
            unreported_lookup_ns: shared.take_lookup_ns(),
            ready_after_ns: 0,
            turn: shared.next_turn.fetch_add(connections, Ordering::Relaxed),
        }
    }

    /// The turn of the next connection.
    pub(super) fn next_turn(&mut self) -> usize {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        turn
    }

    /// How far the buffer may be filled behind what is kept in it.
    #[inline]
    pub(super) fn read_end(&self, kept: usize) -> usize {
        self.scratch.len().min(kept + self.most_read_bytes)
    }

    /// A response is complete: enters its status, and judges it by that.
    #[inline]
    pub(super) fn judge(&mut self, status: u16, shared: &Shared) -> Result<(), Box<Failure>> {
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
        if status < 400 || shared.accepts_any_status { Ok(()) } else { Err(status_failure(status)) }
    }

    /// Counts an op that was late because TCP had to send a segment of it again. Its connection tells, as long as it is open.
    #[inline]
    pub(super) fn ask_why_late(&mut self, op: &Op, link: &mut Link) {
        let was_sent_again = op.late_ns().and_then(|late_ns| link.was_late_for_sending_again(late_ns));
        if let Some(was_sent_again) = was_sent_again {
            *self.counters.counted.entry(counter::SENT_AGAIN.id()).or_default() += u64::from(was_sent_again);
        }
    }

    /// The time of the name's look-up goes with the first op that ends.
    #[inline]
    pub(super) fn report_lookup(&mut self, op: &mut Op) {
        if let Some(lookup_ns) = self.unreported_lookup_ns.take() {
            op.phases.set(phase::DNS, lookup_ns);
        }
    }

    /// Counters since the last call.
    pub(super) fn take_counters(&mut self, shared: &Shared) -> Counters {
        self.wants_details = true;
        if let (Some(picker), Requests::Many(repertoire)) = (&mut self.picker, &shared.requests) {
            picker.leave_word(repertoire);
        }
        let mut counters = std::mem::replace(&mut self.counters, Self::counters(shared));
        for (status, count) in self.statuses.iter_mut().enumerate() {
            if *count > 0 {
                counters.statuses.insert(status as u16, std::mem::take(count));
            }
        }
        counters
    }

    fn counters(shared: &Shared) -> Counters {
        Counters { inflated_bytes: shared.decompress.then_some(0), ..Counters::default() }
    }
}
