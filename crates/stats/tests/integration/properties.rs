//! What must hold for all slots.

use crate::synthetic::*;
use duel_model::{Call, Slot};
use duel_stats::{judge_slots, observe, warmup_ended};
use proptest::prelude::*;

/// Slots of two targets in up to 12 blocks with any noise; a few without an ok op.
fn slots() -> impl Strategy<Value = Vec<Slot>> {
    prop::collection::vec((0.5f64..2.0, 0u8..40), 4..48).prop_map(|drawn| {
        let mut drawn = drawn.into_iter();
        let mut slots = Vec::new();
        for block in 0.. {
            for (repeat, target) in [(0, 0), (0, 1), (1, 1), (1, 0)] {
                let Some((elapsed_s, dead)) = drawn.next() else { return slots };
                let mut slot = slot(block, repeat, target, elapsed_s);
                respond(&mut slot, 200, 1e6 * elapsed_s);
                if dead == 0 {
                    slot.tally = duel_model::Tally::default();
                }
                slots.push(slot);
            }
        }
        slots
    })
}

fn swapped(call: Call) -> Call {
    match call {
        Call::Faster => Call::Slower,
        Call::Slower => Call::Faster,
        same => same,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swapping_the_targets_inverts_ratios_and_swaps_calls(slots in slots()) {
        let mut other_way = slots.clone();
        other_way.iter_mut().for_each(|slot| slot.target = 1 - slot.target);
        let there = judge_slots(&slots, &plan(2));
        let back = judge_slots(&other_way, &plan(2));
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a * b - 1.0).abs() < 1e-12,
            (a, b) => a.is_none() && b.is_none(),
        };
        for (a, b) in there.pairs.iter().zip(&back.pairs) {
            prop_assert_eq!(a.call, swapped(b.call));
            prop_assert!(near(a.ratio, b.ratio) && near(a.low, b.high) && near(a.high, b.low), "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn the_interval_contains_the_estimate_and_unknown_is_never_a_number(slots in slots()) {
        for pair in judge_slots(&slots, &plan(2)).pairs {
            if let (Some(low), Some(high)) = (pair.low, pair.high) {
                let ratio = pair.ratio.unwrap();
                prop_assert!(0.0 < low && low <= ratio && ratio <= high && high.is_finite());
            } else {
                prop_assert_eq!(pair.call, Call::Unknown);
                prop_assert!(pair.low.is_none() && pair.high.is_none());
            }
        }
    }

    #[test]
    fn the_order_of_slots_does_not_matter(slots in slots(), seed in any::<u64>()) {
        let mut shuffled = slots.clone();
        // A fixed but arbitrary order.
        shuffled.sort_by_key(|slot| (u64::from(slot.index) + 1).wrapping_mul(seed | 1).rotate_left(17));
        prop_assert_eq!(judge_slots(&slots, &plan(2)), judge_slots(&shuffled, &plan(2)));
        prop_assert_eq!(observe(&slots, &plan(2).targets), observe(&shuffled, &plan(2).targets));
        prop_assert_eq!(stop(&slots, &plan(2)), stop(&shuffled, &plan(2)));
    }

    #[test]
    fn the_unit_of_time_does_not_matter(slots in slots(), scale in 2u64..50) {
        let mut slower = slots.clone();
        slower.iter_mut().for_each(|slot| slot.elapsed_ns *= scale);
        let (one, other) = (judge_slots(&slots, &plan(2)), judge_slots(&slower, &plan(2)));
        for (a, b) in one.pairs.iter().zip(&other.pairs) {
            prop_assert_eq!(a.call, b.call);
            prop_assert!((a.ratio.unwrap_or(1.0) / b.ratio.unwrap_or(1.0) - 1.0).abs() < 1e-9);
            prop_assert!((a.low.unwrap_or(1.0) / b.low.unwrap_or(1.0) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_cut_is_in_the_first_half_and_scale_free(rates in prop::collection::vec(0.0f64..1e6, 0..80)) {
        let cut = warmup_ended(&rates);
        prop_assert!(cut.is_none_or(|cut| 2 * cut < rates.len()));
        let doubled: Vec<f64> = rates.iter().map(|rate| rate * 2.0).collect();
        prop_assert_eq!(cut, warmup_ended(&doubled));
    }
}
