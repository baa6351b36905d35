//! How long slots of streams are over long paths.
//!
//! Between slots streams rest, so that the path is free for the other targets. A sender that has rested for longer than its retransmission
//! time-out begins anew with a small window (RFC 5681, section 4.1): for some round trips a stream is slower
//! than one that never ends, however fast its path is. So slots begin with a run-up that is in no figure. And what a stream does from
//! one round trip to the next is not independent: after a loss it is slower until it has grown its window anew. So a slot lasts for some
//! round trips, or its rate would be that of a single piece of this course.

use duel_model::{Doubt, DoubtId, Facts, Nanos, Plan, SECOND_NS, Slot, Streamed, format_duration_ns};
use duel_stats::LOAD_TIMES_PER_WARM_UP;

/// Round trips that a slot should have. BBR tries for more every eighth round trip (Cardwell et al. 2016); a sender of Reno's kind that
/// loses one segment in a thousand has lost one after 26 round trips on average (Mathis et al. 1997).
const TRIPS_OF_SLOT: u64 = 20;
/// Fewest that a slot has, however little time there is.
const FEWEST_TRIPS_OF_SLOT: u64 = 5;
/// Round trips that a slot takes beside its time and its run-up: its last blocks are waited for.
const TRIPS_BESIDE: u64 = 3;
/// A run-up that is shorter than this part of the slot is left out: while a window doubles in each round trip, half of what would have gone
/// is missing at most, and that of both targets.
const SLOTS_TO_A_RUN_UP: u64 = 20;

/// The longest of the round trips that these facts tell of the targets' streams; 0 where none is known.
pub(crate) fn longest_trip_ns<'a>(plan: &Plan, facts: impl IntoIterator<Item = &'a Facts>) -> Nanos {
    facts.into_iter().filter_map(|facts| plan.stream_trip_ns(facts)).max().unwrap_or(0)
}

/// The longest round trip that slots have shown so far.
pub(crate) fn trip_seen_ns(plan: &Plan, slots: &[Slot]) -> Nanos {
    // Of each target the shortest: round trips that were seen in a queue are longer than the path.
    let of = |target| {
        let facts = slots.iter().filter(|slot| slot.target == target).filter_map(|slot| slot.negotiated.as_ref());
        facts.filter_map(|facts| plan.stream_trip_ns(facts)).min()
    };
    (0..plan.targets.len()).filter_map(of).max().unwrap_or(0)
}

/// How long the run-up of a slot is; 0 where it would not matter.
pub(crate) fn run_up_ns(trip_ns: Nanos, slot_ns: Nanos) -> Nanos {
    let run_up_ns = Streamed::TRIPS_OF_RUN_UP.saturating_mul(trip_ns);
    if run_up_ns.saturating_mul(SLOTS_TO_A_RUN_UP) < slot_ns { 0 } else { run_up_ns }
}

/// How long new streams are under load before their first slot begins, where slots have a run-up.
pub(crate) fn settle_ns(trip_ns: Nanos, run_up_ns: Nanos) -> Nanos {
    if run_up_ns == 0 { 0 } else { Streamed::TRIPS_TO_SETTLE.saturating_mul(trip_ns) }
}

/// What of the time is left for blocks when each takes somewhat longer than it should: a block that may not end in time is not begun.
pub(crate) fn in_blocks_ns(left_ns: Nanos) -> Nanos {
    left_ns / 10 * 9
}

/// The slots of a comparison of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSlots {
    trip_ns: Nanos,
    pub(crate) slot_ns: Nanos,
    pub(crate) run_up_ns: Nanos,
    /// The load time in which slots would be as long as they should be, warm-up included; `None`: there is that.
    pub(crate) needs_ns: Option<Nanos>,
}

impl StreamSlots {
    /// Slots that would last for `usual_ns` if the path were short. `is_set`: the user has said how long they are to be.
    pub(crate) fn of(trip_ns: Nanos, usual_ns: Nanos, is_set: bool, left_ns: Nanos, plan: &Plan) -> Self {
        let run_up_ns = run_up_ns(trip_ns, usual_ns);
        if run_up_ns == 0 || is_set {
            return Self { trip_ns, slot_ns: usual_ns, run_up_ns, needs_ns: None };
        }
        let wanted_ns = usual_ns.max(TRIPS_OF_SLOT * trip_ns);
        // Blocks hold two pairs.
        let slots = u64::from(plan.compare.min_pairs.next_multiple_of(2)) * plan.targets.len() as u64;
        let beside_ns = run_up_ns + TRIPS_BESIDE * trip_ns;
        let has_room_ns = (in_blocks_ns(left_ns) / slots.max(1)).saturating_sub(beside_ns);
        let slot_ns = wanted_ns.min(has_room_ns).max(FEWEST_TRIPS_OF_SLOT * trip_ns);
        let needs_ns = (slot_ns < wanted_ns).then(|| {
            let whole_ns = slots.saturating_mul(TRIPS_OF_SLOT * trip_ns + beside_ns) / 9 * 10 + SECOND_NS;
            let with_warm_up_ns = whole_ns / (LOAD_TIMES_PER_WARM_UP - 1) * LOAD_TIMES_PER_WARM_UP;
            with_warm_up_ns.div_ceil(SECOND_NS) * SECOND_NS
        });
        // Ops that take long are told of elsewhere: here it is about round trips.
        let needs_ns = needs_ns.filter(|&needs_ns| needs_ns > plan.compare.max_load_ns);
        Self { trip_ns, slot_ns, run_up_ns, needs_ns }
    }

    /// What is said when the slots begin; `None` where streams need nothing of their own.
    pub(crate) fn label(&self) -> Option<String> {
        let Self { trip_ns, slot_ns, run_up_ns, needs_ns } = *self;
        let [trip, slot, run_up] = [trip_ns, slot_ns, run_up_ns].map(|ns| format_duration_ns(ns as f64));
        let needs =
            needs_ns.map(|ns| format!("; to hold enough of them they need -d {}", format_duration_ns(ns as f64)));
        (run_up_ns > 0).then(|| {
            format!(
                "measuring in slots of {slot} behind {run_up} of run-up, as a round trip takes {trip}{}",
                needs.unwrap_or_default()
            )
        })
    }

    /// That there is less time than the slots should have.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let [trip, slot, needs] = [self.trip_ns, self.slot_ns, self.needs_ns?].map(|ns| format_duration_ns(ns as f64));
        let text = format!(
            "slots of {slot} hold {} round trips of {trip}: after a loss streams need more to come up to speed again, so slots scatter and \
             a gap may look smaller than it is; -d {needs} leaves time for {TRIPS_OF_SLOT}",
            self.slot_ns / self.trip_ns.max(1)
        );
        Some(Doubt { id: DoubtId::ShortSlots, target: None, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{ComparePlan, LoadPlan, MILLISECOND_NS, Target, WorkloadPlan};

    const MS: Nanos = MILLISECOND_NS;

    fn plan(max_load_ns: Nanos) -> Plan {
        let target = |name: &str| Target { name: name.into(), address: format!("tcp://{name}"), host: None };
        Plan {
            targets: vec![target("a"), target("b")],
            workload: WorkloadPlan::NULL,
            load: LoadPlan::default(),
            compare: ComparePlan { max_load_ns, ..ComparePlan::default() },
            factors: vec![],
        }
    }

    /// With an eighth of the time for warm-up.
    fn slots(trip_ms: Nanos, usual_ms: Nanos, is_set: bool, load_ms: Nanos) -> StreamSlots {
        StreamSlots::of(trip_ms * MS, usual_ms * MS, is_set, load_ms * MS / 8 * 7, &plan(load_ms * MS))
    }

    #[test]
    fn slots_of_streams_last_for_some_round_trips_behind_a_run_up() {
        let lengths = |trip_ms, usual_ms| {
            let StreamSlots { slot_ns, run_up_ns, needs_ns, .. } = slots(trip_ms, usual_ms, false, 30_000);
            (run_up_ns / MS, slot_ns / MS, needs_ns)
        };
        assert_eq!(lengths(5, 150), (50, 150, None), "as long as they would be anyway");
        assert_eq!(lengths(20, 150), (200, 400, None));
        assert_eq!(lengths(40, 150), (400, 800, None));
        assert_eq!(lengths(20, 1_000), (200, 1_000, None), "ops that take long");
    }

    #[test]
    fn short_paths_keep_their_short_slots() {
        for trip_ns in [0, MS / 20, MS / 2] {
            let slots = StreamSlots::of(trip_ns, 150 * MS, false, 26_000 * MS, &plan(30_000 * MS));
            assert_eq!((slots.slot_ns, slots.run_up_ns), (150 * MS, 0));
            assert_eq!((slots.label(), slots.doubt()), (None, None));
        }
    }

    #[test]
    fn what_the_user_has_set_stays_and_only_gets_a_run_up() {
        let set = slots(40, 200, true, 10_000);
        assert_eq!((set.slot_ns, set.run_up_ns, set.doubt()), (200 * MS, 400 * MS, None));
    }

    /// In as many slots as six pairs have.
    #[test]
    fn as_many_pairs_as_a_verdict_takes_fit_as_long_as_slots_can_be_shorter() {
        for (trip_ms, load_ms) in [(20, 10_000), (30, 10_000), (40, 30_000), (70, 30_000), (100, 30_000)] {
            let found = slots(trip_ms, 150, false, load_ms);
            let slot_ns = found.run_up_ns + found.slot_ns + TRIPS_BESIDE * trip_ms * MS;
            let whole_ns = 12 * slot_ns;
            assert!(whole_ns <= in_blocks_ns(load_ms * MS / 8 * 7), "{trip_ms} ms in {load_ms} ms: {found:?}");
            let holds_enough = found.slot_ns >= TRIPS_OF_SLOT * trip_ms * MS;
            assert_eq!(found.doubt().is_none(), holds_enough, "{found:?}");
        }
    }

    #[test]
    fn how_long_it_would_take_is_said_and_is_enough() {
        for (trip_ms, load_ms) in [(40, 10_000), (100, 30_000), (300, 30_000), (600, 10_000)] {
            let found = slots(trip_ms, 150, false, load_ms);
            let needs_ms = found.needs_ns.unwrap() / MS;
            assert!(found.label().unwrap().contains("-d ") && found.doubt().is_some());
            let then = slots(trip_ms, 150, false, needs_ms);
            assert_eq!((then.needs_ns, then.slot_ns), (None, 20 * trip_ms * MS), "{trip_ms} ms in {needs_ms} ms");
        }
    }
}
