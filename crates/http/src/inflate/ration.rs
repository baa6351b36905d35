//! How much a worker unpacks before it looks at all else: at timeouts, other lanes, the slot's end.
//!
//! Kept for each thread, since a worker is one: decoders are deep below what knows of turns, and belong to lanes of several
//! origins. Nothing here is asked where bodies are not decompressed.

use duel_model::{MILLISECOND_NS, Nanos};
use std::cell::Cell;

/// Time that a worker spends on unpacking in a turn of its event loop before the other events of the turn are put off to the
/// next one, before which timeouts are looked at. A timeout is noticed up to 50 ms late anyway ([`duel_load`] sleeps as
/// long); a fifth of that adds next to nothing, and is room for megabytes.
const TURN_NS: Nanos = 10 * MILLISECOND_NS;
/// Most that one event may unpack to; an op that goes beyond it fails. One that does not stop before cannot be put off, so
/// that this is what a decompression bomb may cost at once: about 0.1 s. DEFLATE makes 1032 times what comes, at best: of a
/// read of [`READ_BYTES`], with the unfinished TLS record and frame that it may complete, that is 53 MB. So gzip and deflate
/// never meet it. Brotli and zstd make gigabytes of some bytes.
const EVENT_LIMIT_BYTES: u64 = 64 << 20;
/// Read at a time where bodies are decompressed. A call of the kernel is nothing beside unpacking what it brings.
pub(crate) const READ_BYTES: usize = 16 * 1024;

struct Ration {
    spent_ns: Cell<Nanos>,
    /// Made of what the event under way has brought.
    unpacked: Cell<u64>,
    /// Connections take turns in rounds: none is served twice while another one waits for its turn.
    round: Cell<u32>,
    /// One was put off in the turn before, or in this one, that has not been served in this round.
    had_waiting: Cell<bool>,
    has_waiting: Cell<bool>,
}

thread_local! {
    static RATION: Ration = const {
        Ration {
            spent_ns: Cell::new(0),
            unpacked: Cell::new(0),
            round: Cell::new(1),
            had_waiting: Cell::new(false),
            has_waiting: Cell::new(false),
        }
    };
}

/// A turn of this worker's event loop begins: all else has been looked at.
pub(crate) fn turn_begins() {
    RATION.with(|ration| {
        ration.spent_ns.set(0);
        ration.unpacked.set(0);
        let has_waiting = ration.has_waiting.replace(false);
        ration.had_waiting.set(has_waiting);
        if !has_waiting {
            ration.round.set(ration.round.get().wrapping_add(1));
        }
    });
}

/// Whether an event on a connection is looked at in this turn. One that is not comes again, because what is watched stays
/// ready. `served_in` is the connection's own, the round in which it was served last.
pub(crate) fn admits(served_in: &mut u32) -> bool {
    RATION.with(|ration| {
        let is_served = *served_in == ration.round.get();
        if ration.spent_ns.get() >= TURN_NS {
            ration.has_waiting.set(ration.has_waiting.get() || !is_served);
            return false;
        }
        if is_served && ration.had_waiting.get() {
            return false;
        }
        *served_in = ration.round.get();
        ration.unpacked.set(0);
        true
    })
}

/// Time was spent on unpacking.
pub(super) fn spend(ns: Nanos) {
    RATION.with(|ration| ration.spent_ns.set(ration.spent_ns.get().saturating_add(ns)));
}

/// Bytes came out: whether the event may go on.
pub(super) fn unpacked(bytes: u64) -> bool {
    RATION.with(|ration| {
        let unpacked = ration.unpacked.get().saturating_add(bytes);
        ration.unpacked.set(unpacked);
        unpacked <= EVENT_LIMIT_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_its_time_the_other_events_of_a_turn_are_put_off() {
        turn_begins();
        let mut lanes = [0; 3];
        assert!(admits(&mut lanes[0]));
        spend(TURN_NS - 1);
        assert!(admits(&mut lanes[1]), "there is time left");
        spend(1);
        assert!(!admits(&mut lanes[2]) && !admits(&mut lanes[0]));
        turn_begins();
        assert!(admits(&mut lanes[2]));
    }

    #[test]
    fn each_connection_is_served_once_before_any_is_served_again() {
        const LANES: usize = 50;
        turn_begins();
        let (mut lanes, mut served) = ([0; LANES], [0; LANES]);
        // Each time all of them are ready, in the same order, and each takes all of a turn.
        for turn in 1..=3 * LANES {
            for lane in 0..LANES {
                if admits(&mut lanes[lane]) {
                    served[lane] += 1;
                    spend(TURN_NS);
                }
            }
            let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            assert!(most - least <= 1, "after {turn} turns: {served:?}");
            turn_begins();
        }
        assert_eq!(served, [3; LANES]);
    }

    #[test]
    fn what_is_cheap_is_never_put_off() {
        let mut lanes = [0; 300];
        for _ in 0..3 {
            turn_begins();
            for lane in &mut lanes {
                assert!(admits(lane) && admits(lane));
                spend(1000);
            }
        }
    }

    #[test]
    fn an_event_may_unpack_so_much_and_the_next_one_again() {
        let mut lane = 0;
        turn_begins();
        for _ in 0..2 {
            assert!(admits(&mut lane));
            assert!(unpacked(EVENT_LIMIT_BYTES) && !unpacked(1));
        }
    }
}
