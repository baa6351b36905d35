//! Time stamps of an op under way.

use duel_load::{PhaseTimes, monotonic_ns};
use duel_model::web::{SENT_AGAIN_NS, phase};
use duel_model::{Nanos, Phase};

/// What is known of the op under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    /// Where the phase that comes next begins.
    pub(super) phase_start_ns: Nanos,
    /// Since when it has waited for a connection to be established, if it does.
    pub(super) connecting_since_ns: Nanos,
    pub(super) phases: PhaseTimes,
    pub(super) first_byte_ns: Option<Nanos>,
    pub(super) bytes_in: u64,
    pub(super) retried: bool,
    /// The last byte of its request has left; where requests share a connection.
    pub(super) has_left: bool,
}

impl Op {
    pub(super) const NONE: Self = Self {
        phase_start_ns: 0,
        connecting_since_ns: 0,
        phases: PhaseTimes::NONE,
        first_byte_ns: None,
        bytes_in: 0,
        retried: false,
        has_left: false,
    };

    /// It begins now, and needs a connection first.
    #[inline]
    pub(super) fn begin(now: Nanos) -> Self {
        Self { phase_start_ns: now, connecting_since_ns: now, ..Self::NONE }
    }

    /// The connection that it had, or waited for a place on, is not for it: it needs another one from now on.
    #[cold]
    pub(super) fn needs_another_connection(&mut self) {
        self.connecting_since_ns = monotonic_ns();
    }

    /// What has been received until now was not for it.
    #[cold]
    pub(super) fn heard_nothing(&mut self) {
        self.first_byte_ns = None;
        self.phases.unset(phase::WAIT);
    }

    /// A phase ends now and the next one begins.
    #[inline]
    pub(super) fn phase_ended(&mut self, phase: Phase, now: Nanos) {
        self.phases.set(phase, now.saturating_sub(self.phase_start_ns));
        self.phase_start_ns = now;
    }

    /// Its request has left; a second time, if it had to be sent again.
    #[inline]
    pub(super) fn left(&mut self, now: Nanos) {
        self.waited_to_send(now);
        self.has_left = true;
    }

    /// Until now it has waited for its turn, which is a part of sending.
    #[inline]
    pub(super) fn waited_to_send(&mut self, now: Nanos) {
        let before_ns = self.phases.get(phase::SEND).unwrap_or(0);
        self.phase_ended(phase::SEND, now);
        if let Some(spent_ns) = self.phases.get(phase::SEND) {
            self.phases.set(phase::SEND, before_ns + spent_ns);
        }
    }

    /// Its response began at `first_byte_ns` and has been received until `now`. What came before the request had left was
    /// not waited for.
    #[inline]
    pub(super) fn received(&mut self, first_byte_ns: Nanos, now: Nanos) {
        let since_ns = first_byte_ns.max(self.phase_start_ns);
        self.first_byte(since_ns);
        self.phases.set(phase::RECEIVE, now.saturating_sub(since_ns));
    }

    /// For how long it waited where a segment of its own may have got lost, if that is as long as a time-out of TCP.
    #[inline]
    pub(super) fn late_ns(&self) -> Option<Nanos> {
        let waited = [phase::TLS, phase::SEND, phase::WAIT].into_iter().filter_map(|phase| self.phases.get(phase));
        waited.max().filter(|&waited_ns| waited_ns >= SENT_AGAIN_NS)
    }

    /// What is heard for it was not there before this time: the last of its phases that ended, or its first byte. The
    /// clocks that stamps are converted between are known to some microseconds only.
    #[inline]
    pub(super) fn heard_after_ns(&self) -> Nanos {
        self.first_byte_ns.map_or(self.phase_start_ns, |first_ns| first_ns.max(self.phase_start_ns))
    }

    /// The first byte of the response is there: waiting is over.
    #[inline]
    pub(super) fn first_byte(&mut self, now: Nanos) {
        if self.first_byte_ns.is_none() {
            self.first_byte_ns = Some(now);
            self.phases.set(phase::WAIT, now.saturating_sub(self.phase_start_ns));
        }
    }
}
