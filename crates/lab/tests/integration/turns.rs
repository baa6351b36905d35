//! Slots that are run in many short turns.

use crate::common::{EMPTY, Server, plan, run};
use duel_model::{HttpPlan, MILLISECOND_NS, Run, SECOND_NS, Slot, SlotRole};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[test]
fn targets_take_turns_within_their_slots() {
    let servers = [(); 2].map(|()| Server::that_ends("127.0.0.1", Duration::ZERO));
    let mut plan = plan(&servers.iter().collect::<Vec<_>>(), HttpPlan::default());
    // Even a machine on which a request takes 2.4 ms has five turns of 100 requests in it.
    plan.compare.slot_ns = Some(1_200 * MILLISECOND_NS);
    plan.compare.max_load_ns = 6 * SECOND_NS;
    let run = first_in_turns(|| run(&plan).unwrap());
    let measured: Vec<_> = measured(&run).collect();
    assert!(measured.len() >= 4, "{}", measured.len());
    for slot in &measured {
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

/// What clings to a set of connections is part of the noise: a block has several sets, where these cost little.
#[test]
fn connections_are_renewed_within_a_block() {
    // Turns are as long as a hundred requests, beside which renewing takes little on a busy machine, too.
    let servers = [(); 2].map(|()| Server::that_ends("127.0.0.1", Duration::from_micros(150)));
    let mut plan = plan(&servers.iter().collect::<Vec<_>>(), HttpPlan::default());
    // Short enough for pairs of slots to be left, where each block has connections of its own.
    plan.compare.slot_ns = Some(200 * MILLISECOND_NS);
    plan.compare.max_load_ns = 8 * SECOND_NS;
    plan.compare.stop_early = false;
    let sets_of_a_block = |run: &Run| -> Vec<(usize, usize)> {
        let last = measured(run).map(|slot| slot.block).max().unwrap_or(0);
        // Warm-up slots of the first block are those of the comparison's warm-up, too.
        let sets = |block: u32, target: usize| {
            let of_block = run.slots.iter().filter(|slot| slot.block == block && slot.target == target);
            of_block.filter(|slot| slot.role == SlotRole::Warmup).count()
        };
        // The last one may have been broken off.
        (1..last).map(|block| (sets(block, 0), sets(block, 1))).collect()
    };
    // A busy machine makes renewing too dear: such blocks keep one set.
    let (sets, rounds) = (0..8)
        .map(|_| {
            let run = first_in_turns(|| run(&plan).unwrap());
            let rounds = 2 * measured(&run).map(|slot| slot.turns.len()).max().unwrap();
            (sets_of_a_block(&run), rounds)
        })
        .find(|(sets, _)| sets.iter().any(|(first, _)| *first > 1))
        .expect("one of the runs renews connections within a block");
    let most = rounds.div_ceil(3);
    assert!(sets.iter().all(|(first, second)| first == second && (*first == 1 || *first == most)), "{sets:?} {rounds}");
}

/// Near the end of the time one request of 50 begins to take 0.7 s, so that each turn waits for one, and a block would last for a minute.
#[test]
fn what_makes_turns_long_at_the_end_of_the_time_is_kept() {
    let run = first_in_turns(run_that_stalls_at_its_end);
    let [of_fast, of_slow] = [0, 1].map(|target| {
        let turns = measured(&run).filter(|slot| slot.target == target).flat_map(|slot| &slot.turns);
        let mut lengths: Vec<_> = turns.map(|turn| turn.elapsed_ns).collect();
        lengths.sort_unstable();
        lengths
    });
    // Of two lanes one waits, and the other one rests: half of it is lost. A busy machine makes turns of the fast one long now and then.
    let (longest_ns, usual_ns) = (of_slow[of_slow.len() - 1], of_fast[of_fast.len() / 2]);
    assert!(longest_ns >= 300 * MILLISECOND_NS && longest_ns > 3 * usual_ns, "{of_fast:?} {of_slow:?}");
    // Both have had as many turns.
    let mut turns: BTreeMap<(u32, u32), BTreeMap<usize, usize>> = BTreeMap::new();
    measured(&run)
        .for_each(|slot| _ = turns.entry((slot.block, slot.repeat)).or_default().insert(slot.target, slot.turns.len()));
    assert!(turns.values().all(|of| of.len() == 2 && of[&0] == of[&1]), "{turns:?}");
}

/// The first of some runs whose slots have turns: on a machine that is busy with other things some ops of a warm-up may take
/// longer than a turn, and such slots are run in one go.
fn first_in_turns(run: impl Fn() -> Run) -> Run {
    let is_in_turns = |run: &Run| measured(run).all(|slot| slot.turns.len() > 1);
    (0..8).map(|_| run()).find(is_in_turns).expect("one of the runs is in turns")
}

fn measured(run: &Run) -> impl Iterator<Item = &Slot> {
    run.slots.iter().filter(|slot| slot.role == SlotRole::Measured)
}

fn run_that_stalls_at_its_end() -> Run {
    let began: OnceLock<Instant> = OnceLock::new();
    let takes = move |heard: usize| {
        let is_late = began.get_or_init(Instant::now).elapsed() > Duration::from_secs(4);
        Duration::from_millis(if is_late && heard.is_multiple_of(50) { 700 } else { 0 })
    };
    let slow = Server::that_takes("127.0.0.1", takes, EMPTY.to_owned());
    let mut plan = plan(&[&Server::that_ends("127.0.0.1", Duration::ZERO), &slow], HttpPlan::default());
    plan.compare.slot_ns = Some(1_200 * MILLISECOND_NS);
    plan.compare.max_load_ns = 8 * SECOND_NS;
    run(&plan).unwrap()
}
