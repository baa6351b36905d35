//! Time stamps of an op under way.

use duel_load::PhaseTimes;
use duel_model::{Nanos, Phase};

/// What is known of the op under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    /// Where the phase that comes next begins.
    pub(super) phase_start_ns: Nanos,
    pub(super) phases: PhaseTimes,
    pub(super) first_byte_ns: Option<Nanos>,
    pub(super) bytes_in: u64,
    pub(super) retried: bool,
}

impl Op {
    pub(super) const NONE: Self =
        Self { phase_start_ns: 0, phases: PhaseTimes::NONE, first_byte_ns: None, bytes_in: 0, retried: false };

    /// A phase ends now and the next one begins.
    #[inline]
    pub(super) fn phase_ended(&mut self, phase: Phase, now: Nanos) {
        self.phases.set(phase, now.saturating_sub(self.phase_start_ns));
        self.phase_start_ns = now;
    }

    /// The first byte of the response is there: waiting is over.
    #[inline]
    pub(super) fn first_byte(&mut self, now: Nanos) {
        if self.first_byte_ns.is_none() {
            self.first_byte_ns = Some(now);
            self.phases.set(Phase::Wait, now.saturating_sub(self.phase_start_ns));
        }
    }
}
