//! Slots that are run in many short turns.

use crate::common::{Server, plan, run};
use duel_model::{HttpPlan, MILLISECOND_NS, SECOND_NS, SlotRole};
use std::time::Duration;

#[test]
fn targets_take_turns_within_their_slots() {
    let servers = [(); 2].map(|()| Server::that_ends("127.0.0.1", Duration::ZERO));
    let mut plan = plan(&servers.iter().collect::<Vec<_>>(), HttpPlan::default());
    // Even a machine on which a request takes 6 ms has two turns of 100 requests in it.
    plan.compare.slot_ns = Some(1_200 * MILLISECOND_NS);
    plan.compare.max_load_ns = 6 * SECOND_NS;
    let run = run(&plan).unwrap();
    let measured: Vec<_> = run.slots.iter().filter(|slot| slot.role == SlotRole::Measured).collect();
    assert!(measured.len() >= 4, "{}", measured.len());
    for slot in &measured {
        assert!(slot.turns.len() > 1);
        assert_eq!(slot.turns.iter().map(|turn| turn.ok).sum::<u64>(), slot.tally.ok);
        assert_eq!(slot.turns.iter().map(|turn| turn.elapsed_ns).sum::<u64>(), slot.elapsed_ns);
        assert_eq!(slot.series.intervals.iter().map(|interval| interval.ok).sum::<u64>(), slot.tally.ok);
        assert!(slot.audit.workers[0].wall_ns >= slot.elapsed_ns / 2, "of all turns together");
    }
    // Both targets have a slot under way at a time.
    let [first, second] = [measured[0], measured[1]];
    assert!(first.target != second.target && (first.block, first.repeat) == (second.block, second.repeat));
    assert!(second.offset_ns < first.offset_ns + first.elapsed_ns);
}
