//! How long slots of streams are over long paths.
//!
//! Between slots streams rest, so that the path is free for the other targets. A sender that has rested for longer than its retransmission
//! time-out begins anew with a small window (RFC 5681, section 4.1): for some round trips a stream is slower
//! than one that never ends, however fast its path is. So slots begin with a run-up that is in no figure. And what a stream does from
//! one round trip to the next is not independent: after a loss it is slower until it has grown its window anew. So a slot lasts for some
//! round trips, or its rate would be that of a single piece of this course.

use crate::compare::SHORTEST_SLOT_NS;
use duel_diagnose::TRIPS_OF_PROBE_SLOT;
use duel_model::{Doubt, DoubtId, Facts, Nanos, Plan, SECOND_NS, Slot, Streamed, format_duration_ns};
use duel_stats::LOAD_TIMES_PER_WARM_UP;

/// Round trips that a slot should have. BBR tries for more every eighth round trip (Cardwell et al. 2016); a sender of Reno's kind that
/// loses one segment in a thousand has lost one after 26 round trips on average (Mathis et al. 1997).
const TRIPS_OF_SLOT: u64 = 20;
/// Fewest that a slot has as long as it has a whole run-up.
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

/// How long the run-up of a slot should be; 0 where it would not matter.
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

/// What a slot takes beside its run-up and its time, where an op takes so long: its last ops are waited for.
pub(crate) fn beside_ns(trip_ns: Nanos, op_ns: Nanos) -> Nanos {
    TRIPS_BESIDE.saturating_mul(trip_ns).max(op_ns)
}

/// The run-up and the time of a slot that should have so much of both, and for which there is so much room. Less room takes from its time
/// first, down to some round trips; then from the run-up, without which it holds the slow start of its streams; then from its time.
pub(crate) fn fit(trip_ns: Nanos, run_up_ns: Nanos, slot_ns: Nanos, room_ns: Nanos) -> (Nanos, Nanos) {
    let least_ns = FEWEST_TRIPS_OF_SLOT.saturating_mul(trip_ns).min(slot_ns);
    let run_up_ns = run_up_ns.min(room_ns.saturating_sub(least_ns));
    (run_up_ns, slot_ns.min(room_ns - run_up_ns))
}

/// The run-up of a slot of a probe, and how long the slot is at least.
pub(crate) fn of_probe(trip_ns: Nanos, run_up_ns: Nanos, room_ns: Nanos) -> (Nanos, Nanos) {
    fit(trip_ns, run_up_ns, TRIPS_OF_PROBE_SLOT.saturating_mul(trip_ns), room_ns)
}

/// What a comparison of streams has for its slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// How long a slot would be if the path were short.
    pub(crate) usual_ns: Nanos,
    /// The user has said so.
    pub(crate) is_set: bool,
    /// How long an op typically takes.
    pub(crate) op_ns: Nanos,
    /// The load time that is left.
    pub(crate) left_ns: Nanos,
}

/// The slots of a comparison of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSlots {
    trip_ns: Nanos,
    pub(crate) slot_ns: Nanos,
    pub(crate) run_up_ns: Nanos,
    /// As [`beside_ns`]; 0 where streams need nothing of their own.
    pub(crate) beside_ns: Nanos,
    /// What slots lack, where they lack something.
    pub(crate) lack: Option<Lack>,
}

/// There is less time than slots should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lack {
    /// The load time that would do, warm-up included.
    pub(crate) needs_ns: Nanos,
    /// Not even slots as short as on a short path leave time for as many pairs as a verdict takes.
    pub(crate) has_no_verdict: bool,
}

impl StreamSlots {
    /// Slots for streams whose round trips take so long. However long that is, they take no more time than there is for as many pairs
    /// as a verdict takes, or than those of a short path: what a peer tells of the path sets no bound for `-d`.
    pub(crate) fn of(trip_ns: Nanos, time: Time, plan: &Plan) -> Self {
        let Time { usual_ns, is_set, op_ns, left_ns } = time;
        let whole_run_up_ns = run_up_ns(trip_ns, usual_ns);
        if whole_run_up_ns == 0 {
            return Self { trip_ns, slot_ns: usual_ns, run_up_ns: 0, beside_ns: 0, lack: None };
        }
        let wanted_ns = if is_set { usual_ns } else { usual_ns.max(TRIPS_OF_SLOT.saturating_mul(trip_ns)) };
        let beside_ns = beside_ns(trip_ns, op_ns);
        // Blocks hold two pairs.
        let slots = (u64::from(plan.compare.min_pairs.next_multiple_of(2)) * plan.targets.len() as u64).max(1);
        let room_ns = (in_blocks_ns(left_ns) / slots).saturating_sub(beside_ns);
        let (run_up_ns, slot_ns) = if is_set {
            (whole_run_up_ns.min(room_ns.saturating_sub(usual_ns)), usual_ns)
        } else {
            fit(trip_ns, whole_run_up_ns, wanted_ns, room_ns)
        };
        // Shorter than on a short path they are not, for ops to end in them.
        let slot_ns = slot_ns.max(usual_ns.min(SHORTEST_SLOT_NS));
        let whole_ns = |slot_ns: Nanos, run_up_ns: Nanos| {
            slots.saturating_mul(slot_ns.saturating_add(run_up_ns).saturating_add(beside_ns))
        };
        let lacks = slot_ns < wanted_ns || run_up_ns < whole_run_up_ns;
        // Ops that take long are told of elsewhere: here it is about round trips.
        let needed_ns = if is_set { usual_ns } else { TRIPS_OF_SLOT.saturating_mul(trip_ns) };
        let blocks_ns = whole_ns(needed_ns, whole_run_up_ns).saturating_add(SECOND_NS) / 9;
        let with_warm_up_ns = blocks_ns.saturating_mul(10) / (LOAD_TIMES_PER_WARM_UP - 1);
        let needs_ns =
            with_warm_up_ns.saturating_mul(LOAD_TIMES_PER_WARM_UP).div_ceil(SECOND_NS).saturating_mul(SECOND_NS);
        let has_no_verdict = whole_ns(slot_ns, run_up_ns) > in_blocks_ns(left_ns);
        let lack = (lacks && needs_ns > plan.compare.max_load_ns).then_some(Lack { needs_ns, has_no_verdict });
        Self { trip_ns, slot_ns, run_up_ns, beside_ns, lack }
    }

    /// What is said when the slots begin; `None` where streams need nothing of their own.
    pub(crate) fn label(&self) -> Option<String> {
        let Self { trip_ns, slot_ns, run_up_ns, lack, .. } = *self;
        let [trip, slot, run_up] = [trip_ns, slot_ns, run_up_ns].map(|ns| format_duration_ns(ns as f64));
        let behind = if run_up_ns > 0 { format!("behind a run-up of {run_up}") } else { "without a run-up".to_owned() };
        let needs = lack.map(|lack| {
            format!(
                "; -d {} leaves time for slots and run-ups as long as they should be",
                format_duration_ns(lack.needs_ns as f64)
            )
        });
        (run_up_ns > 0 || lack.is_some()).then(|| {
            format!("measuring in slots of {slot} {behind}, as a round trip takes {trip}{}", needs.unwrap_or_default())
        })
    }

    /// That there is less time than the slots should have.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let Self { trip_ns, slot_ns, run_up_ns, .. } = *self;
        let Lack { needs_ns, has_no_verdict } = self.lack?;
        let [trip, slot, needs] = [trip_ns, slot_ns, needs_ns].map(|ns| format_duration_ns(ns as f64));
        let trips = |ns: Nanos| ns / trip_ns.max(1);
        let run_up = match trips(run_up_ns) {
            0 => " and have no run-up before them".to_owned(),
            has if run_up_ns < Streamed::TRIPS_OF_RUN_UP.saturating_mul(trip_ns) => {
                format!(" and have a run-up of {has} before them, not of {}", Streamed::TRIPS_OF_RUN_UP)
            }
            _ => String::new(),
        };
        let verdict = if has_no_verdict {
            "there is no time for as many pairs as a verdict takes, so there will be none; "
        } else {
            ""
        };
        let text = format!(
            "{verdict}slots of {slot} hold {} round trips of {trip}{run_up}: streams need more to come up to speed, and to do so again after a \
             loss, so slots scatter and a gap may look smaller than it is; -d {needs} leaves time for slots and run-ups as long as they should \
             be",
            trips(slot_ns)
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
    fn left_ns(load_ms: Nanos) -> Nanos {
        load_ms * MS / 8 * 7
    }

    fn slots(trip_ms: Nanos, usual_ms: Nanos, is_set: bool, load_ms: Nanos) -> StreamSlots {
        let time = Time { usual_ns: usual_ms * MS, is_set, op_ns: 0, left_ns: left_ns(load_ms) };
        StreamSlots::of(trip_ms.saturating_mul(MS), time, &plan(load_ms * MS))
    }

    /// What as many pairs as a verdict takes last for.
    fn six_pairs_ns(of: &StreamSlots) -> Nanos {
        12 * (of.run_up_ns + of.slot_ns + of.beside_ns)
    }

    #[test]
    fn slots_of_streams_last_for_some_round_trips_behind_a_run_up() {
        let lengths = |trip_ms, usual_ms| {
            let StreamSlots { slot_ns, run_up_ns, lack, .. } = slots(trip_ms, usual_ms, false, 30_000);
            (run_up_ns / MS, slot_ns / MS, lack)
        };
        assert_eq!(lengths(5, 150), (50, 150, None), "as long as they would be anyway");
        assert_eq!(lengths(20, 150), (200, 400, None));
        assert_eq!(lengths(40, 150), (400, 800, None));
        assert_eq!(lengths(20, 1_000), (200, 1_000, None), "ops that take long");
    }

    #[test]
    fn short_paths_keep_their_short_slots() {
        for trip_ns in [0, MS / 20, MS / 2] {
            let time = Time { usual_ns: 150 * MS, is_set: false, op_ns: 0, left_ns: 26_000 * MS };
            let slots = StreamSlots::of(trip_ns, time, &plan(30_000 * MS));
            assert_eq!((slots.slot_ns, slots.run_up_ns, slots.beside_ns), (150 * MS, 0, 0));
            assert_eq!((slots.label(), slots.doubt()), (None, None));
        }
    }

    #[test]
    fn what_the_user_has_set_stays_and_only_gets_a_run_up() {
        let set = slots(40, 200, true, 12_000);
        assert_eq!((set.slot_ns, set.run_up_ns, set.doubt()), (200 * MS, 400 * MS, None));
        let little = slots(40, 200, true, 8_000);
        assert_eq!(
            (little.slot_ns, little.run_up_ns),
            (200 * MS, 205 * MS),
            "seven seconds, nine tenths of them, by twelve"
        );
        assert!(little.doubt().unwrap().text.contains("a run-up of 5 before them, not of 10"));
        assert_eq!(slots(40, 2_000, true, 10_000).run_up_ns, 0);
    }

    /// In as many slots as six pairs have, down to slots as short as on a short path.
    #[test]
    fn as_many_pairs_as_a_verdict_takes_fit_whatever_slots_and_run_ups_they_leave_room_for() {
        for load_ms in [10_000, 30_000, 60_000] {
            for trip_ms in [20, 30, 40, 70, 100, 109, 120, 150, 200, 300, 600] {
                let found = slots(trip_ms, 150, false, load_ms);
                let fits = six_pairs_ns(&found) <= in_blocks_ns(left_ns(load_ms));
                let is_whole = found.slot_ns >= TRIPS_OF_SLOT * trip_ms * MS && found.run_up_ns == 10 * trip_ms * MS;
                assert_eq!(found.doubt().is_none(), is_whole, "{found:?}");
                assert_eq!(
                    found.lack.is_some_and(|lack| lack.has_no_verdict),
                    !fits,
                    "{trip_ms} ms in {load_ms} ms: {found:?}"
                );
                // Waiting for the last ops alone takes three round trips of each slot.
                let waits_ns = 12 * (3 * trip_ms + 150) * MS;
                assert!(fits || waits_ns > in_blocks_ns(left_ns(load_ms)), "{trip_ms} ms in {load_ms} ms: {found:?}");
            }
        }
    }

    #[test]
    fn a_shorter_run_up_comes_after_shorter_slots_and_none_before_the_shortest_ones() {
        let trips = |trip_ms, load_ms| {
            let found = slots(trip_ms, 150, false, load_ms);
            (found.run_up_ns / MS / trip_ms, found.slot_ns / MS / trip_ms)
        };
        assert_eq!(trips(40, 30_000), (10, 20));
        assert_eq!(trips(100, 30_000), (10, 6));
        assert_eq!(trips(150, 30_000), (5, 5));
        assert_eq!(trips(300, 30_000), (0, 3));
    }

    /// At 600 ms a block lasted for 43 s.
    #[test]
    fn no_block_takes_more_than_the_time_that_there_is() {
        for (trip_ms, load_ms) in [(200, 10_000), (600, 10_000), (600, 30_000)] {
            let found = slots(trip_ms, 150, false, load_ms);
            assert!(six_pairs_ns(&found) / 3 <= left_ns(load_ms), "{trip_ms} ms in {load_ms} ms: {found:?}");
        }
        // A peer that says anything.
        for trip_ms in [4_294_967, Nanos::MAX / MS] {
            let found = slots(trip_ms, 150, false, 30_000);
            assert_eq!((found.run_up_ns, found.slot_ns), (0, 150 * MS), "{trip_ms} ms");
            assert!(found.doubt().unwrap().text.contains("there will be none"));
        }
    }

    #[test]
    fn slots_of_probes_fit_their_budget() {
        assert_eq!(of_probe(40 * MS, 400 * MS, 1_000 * MS), (400 * MS, 400 * MS));
        assert_eq!(of_probe(40 * MS, 400 * MS, 500 * MS), (300 * MS, 200 * MS), "less than both should have");
        for trip_ns in [600 * MS, Nanos::MAX] {
            let (run_up_ns, slot_ns) = of_probe(trip_ns, trip_ns, 300 * MS);
            assert!(run_up_ns + slot_ns <= 300 * MS, "{trip_ns}");
        }
    }

    #[test]
    fn how_long_it_would_take_is_said_and_is_enough() {
        for (trip_ms, load_ms) in [(40, 10_000), (100, 30_000), (300, 30_000), (600, 10_000)] {
            let found = slots(trip_ms, 150, false, load_ms);
            let needs_ms = found.lack.unwrap().needs_ns / MS;
            assert!(found.label().unwrap().contains("-d ") && found.doubt().is_some());
            let then = slots(trip_ms, 150, false, needs_ms);
            assert_eq!((then.lack, then.slot_ns), (None, 20 * trip_ms * MS), "{trip_ms} ms in {needs_ms} ms");
        }
    }
}
