//! Blocks of short slots, in which targets take mirrored turns.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::ports::sets_of_a_block;
use crate::turns::Turns;
use crate::watch::Watcher;
use duel_model::{Nanos, Plan, Slot, SlotRole};
use duel_stats::{Held, SlotFigure, Stop, Wanted, WholeGap};

/// Blocks of slots, and when they end.
#[derive(Debug, Clone)]
pub(crate) struct BlockSchedule {
    pub(crate) role: SlotRole,
    pub(crate) slot_ns: Nanos,
    /// For how long each slot is under load before its time begins.
    pub(crate) run_up_ns: Nanos,
    /// For how long new connections are under load before the first slot; 0: until each has carried a request.
    pub(crate) settle_ns: Nanos,
    /// What a slot takes beside its run-up and its time, where that is known beforehand.
    pub(crate) beside_ns: Nanos,
    /// In how many turns each slot is run, between those of the other targets; at least 1.
    pub(crate) turns: u32,
    pub(crate) grace_ns: Nanos,
    /// The bench's load time at which no further block begins.
    pub(crate) end_load_ns: Nanos,
    pub(crate) first_block: u32,
    /// How many blocks there are, whatever is known by then; `None`: until it is known enough.
    pub(crate) blocks: Option<u32>,
    /// The time is used up, whatever is known by then.
    pub(crate) takes_all: bool,
    /// Each block has connections of its own, where connections are kept; one with slots in turns several sets of them.
    pub(crate) renews: bool,
    /// The gaps that a probe is held against.
    pub(crate) held: Vec<Held>,
    /// Those of a probe that were called by all of the time.
    pub(crate) by_whole: Vec<WholeGap>,
}

impl BlockSchedule {
    /// How long a block of so many targets should take. Where connections are new, what they carry before its slots is in it if it takes
    /// a time of its own.
    pub(crate) fn block_ns(&self, targets: usize) -> Nanos {
        let settle_ns = if self.renews { self.settle_ns } else { 0 };
        let slot_ns = self.run_up_ns.saturating_add(self.slot_ns).saturating_add(self.beside_ns);
        slot_ns.saturating_mul(2).saturating_add(settle_ns).saturating_mul(targets as u64)
    }
}

/// Rounds of turns after which connections are renewed within a block. The target that is first behind new connections may do a little
/// less or more there. Each round has the reverse order of the one before, so behind an odd number of rounds that is the last one of the order
/// before: of two targets, the other one. Of more, the first and the last one of the block's order take turns.
const ROUNDS_PER_SET: u32 = 3;
/// They are renewed only where that takes at most one part in so many of the time of these rounds. Handshakes of TLS seldom do; the first
/// turn behind them was seen to do a third less, and of the five turns of a slot one may be such a turn.
const TIME_PER_RENEWAL: Nanos = 20;

/// For how many of a block's rounds of turns connections are kept, where renewing them takes so long, and there are ports for so many sets
/// of connections in a block.
fn rounds_per_set(renewal_ns: Nanos, round_ns: Nanos, rounds: u32, sets: u64) -> u32 {
    let is_cheap = renewal_ns.saturating_mul(TIME_PER_RENEWAL) <= round_ns.saturating_mul(ROUNDS_PER_SET.into());
    if is_cheap && sets >= rounds.div_ceil(ROUNDS_PER_SET).into() { ROUNDS_PER_SET } else { rounds }
}

/// What is to follow after a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Go on, and look after the block whether it is known enough.
    Look,
    /// End here.
    End,
}

/// Something that is done around each slot of a block, outside of its time.
pub(crate) trait Around {
    /// A slot on this target is about to begin.
    fn before(&mut self, target: usize);
    /// It is over.
    fn after(&mut self, slot: &Slot);
}

/// Nothing is done around slots.
pub(crate) struct Unread;

impl Around for Unread {
    fn before(&mut self, _target: usize) {}
    fn after(&mut self, _slot: &Slot) {}
}

/// Runs blocks of mirrored turns. Each slot is given to `keep`; after each block it is asked whether more would tell more.
pub(crate) fn blocks(
    bench: &mut Bench,
    plan: &Plan,
    schedule: &BlockSchedule,
    watcher: &mut dyn Watcher,
    around: &mut dyn Around,
    keep: &mut dyn FnMut(Slot, &Bench) -> Next,
) -> Result<(), LabError> {
    let mut judged: Vec<SlotFigure> = Vec::new();
    let seed = plan.compare.seed.wrapping_add(u64::from(schedule.first_block));
    let turns = Turns::new(seed, schedule.end_load_ns);
    // Without streams that need some time of their own, a block is begun as long as there is any time.
    let mut turns = if schedule.beside_ns > 0 { turns.expecting(schedule.block_ns(bench.targets())) } else { turns };
    let mut order: Vec<usize> = (0..bench.targets()).collect();
    let end = schedule.blocks.map_or(u32::MAX, |blocks| schedule.first_block.saturating_add(blocks));
    for block in schedule.first_block..end {
        if !turns.begins(bench) {
            return Ok(());
        }
        turns.shuffle(&mut order);
        let mut kept = |slot: Slot, bench: &Bench| {
            if is_judged(&slot) {
                judged.push(SlotFigure::of(&slot, plan));
            }
            keep(slot, bench)
        };
        let mut under_way = Block { schedule, block, slots: Vec::new(), renewed: Vec::new(), keep: &mut kept };
        if under_way.run(bench, order.clone(), watcher, around)? == Next::End {
            return Ok(());
        }
        if schedule.blocks.is_some() || schedule.takes_all {
            continue;
        }
        let is_verdict = schedule.role == SlotRole::Measured;
        let wanted = if is_verdict {
            Wanted::Verdict
        } else {
            Wanted::Probe { held: &schedule.held, by_whole: &schedule.by_whole }
        };
        if matches!(duel_stats::early_stop(judged.iter().copied(), plan, wanted), Stop::Enough { .. }) {
            return Ok(());
        }
    }
    Ok(())
}

/// A block under way.
struct Block<'a> {
    schedule: &'a BlockSchedule,
    block: u32,
    /// Those that are not kept yet, in the order in which they began.
    slots: Vec<Slot>,
    /// Targets that were given new connections since their slot under way began.
    renewed: Vec<usize>,
    keep: &'a mut dyn FnMut(Slot, &Bench) -> Next,
}

impl Block<'_> {
    /// Runs all turns of its slots: round by round, each round in the reverse order of the one before.
    ///
    /// What disturbs a machine mostly lasts longer than a turn: it is common to turns that lie next to each other, and drops out of
    /// their ratio, and so does a steady drift.
    fn run(
        &mut self,
        bench: &mut Bench,
        mut order: Vec<usize>,
        watcher: &mut dyn Watcher,
        around: &mut dyn Around,
    ) -> Result<Next, LabError> {
        let schedule = self.schedule;
        let turn_ns = schedule.slot_ns / Nanos::from(schedule.turns);
        let rounds = 2 * schedule.turns;
        let mut kept_for = rounds;
        for round in 0..rounds {
            if schedule.renews && round % kept_for == 0 {
                let began_ns = bench.since_start_ns();
                if !self.renew(bench, &order, watcher)? {
                    return Ok(self.break_off(bench, watcher));
                }
                if round == 0 && schedule.turns > 1 {
                    let renewal_ns = bench.since_start_ns().saturating_sub(began_ns);
                    let round_ns = turn_ns.saturating_mul(order.len() as u64);
                    kept_for = rounds_per_set(renewal_ns, round_ns, rounds, self.sets_left(bench));
                }
            }
            // Turns that each wait long for their last ops may take many times as long as they were meant to. Every target has had as
            // many of them here, and what made them long is kept.
            if schedule.turns > 1 && bench.load_ns() > schedule.end_load_ns / 10 * 11 {
                self.finish(bench, watcher, |_| true);
                return Ok(Next::End);
            }
            for &target in &order {
                let spec = SlotSpec::timed(target, schedule.role.clone(), turn_ns, schedule.grace_ns);
                let spec = spec.at(self.block, round / schedule.turns).turn(round % schedule.turns, schedule.turns);
                let spec = spec.behind(schedule.run_up_ns);
                around.before(target);
                let (turn, _) = bench.turn(spec, watcher)?;
                around.after(&turn);
                if bench.is_stopped() || !self.add(turn) {
                    return Ok(self.break_off(bench, watcher));
                }
                if self.finish(bench, watcher, |slot| {
                    slot.turns.len().max(1) == schedule.turns as usize && is_judged(slot)
                }) == Next::End
                {
                    return Ok(Next::End);
                }
            }
            order.reverse();
        }
        Ok(self.finish(bench, watcher, |_| true))
    }

    /// How many sets of connections there are ports for in each block from here on, if blocks go on until the time is over.
    fn sets_left(&self, bench: &Bench) -> u64 {
        let left_ns = self.schedule.end_load_ns.saturating_sub(bench.load_ns());
        sets_of_a_block(bench.renewals_left(), self.schedule.block_ns(bench.targets()), left_ns)
    }

    /// Gives all targets new connections, and lets each of them carry a request before anything is measured with it; whether it goes on.
    /// Where there are ports for some of the targets alone, all keep theirs: a set of one target that lasts would not be noise to it.
    fn renew(&mut self, bench: &mut Bench, order: &[usize], watcher: &mut dyn Watcher) -> Result<bool, LabError> {
        if bench.keeps_lanes() && !bench.has_ports_to_renew() {
            return Ok(true);
        }
        for &target in order {
            let Some(spec) = settling(bench, target, self.block, self.schedule.grace_ns)? else { continue };
            let spec = match self.schedule.settle_ns {
                0 => spec,
                ns => SlotSpec::timed(target, SlotRole::Warmup, ns, self.schedule.grace_ns).at(self.block, 0),
            };
            let (turn, _) = bench.turn(spec, watcher)?;
            if bench.is_stopped() || !self.add(turn) {
                return Ok(false);
            }
            if self.finish(bench, watcher, |slot| !is_judged(slot)) == Next::End {
                return Ok(false);
            }
            self.renewed.push(target);
        }
        Ok(true)
    }

    /// Adds a turn to its slot; whether the target was alive at its end.
    ///
    /// Of a slot's connections those of its first set are told apart. Others on the same lanes are other ones, and beside them, these would
    /// differ for what differs from time to time.
    fn add(&mut self, mut turn: Slot) -> bool {
        let lives = turn.died_ns.is_none();
        let is_its =
            |slot: &&mut Slot| (slot.target, slot.repeat, &slot.role) == (turn.target, turn.repeat, &turn.role);
        match self.slots.iter_mut().find(is_its) {
            Some(slot) => {
                if self.renewed.contains(&turn.target) {
                    turn.audit.workers.iter_mut().for_each(|worker| worker.connections.clear());
                }
                slot.append(turn);
            }
            None => {
                self.renewed.retain(|&target| target != turn.target);
                self.slots.push(turn);
            }
        }
        lives
    }

    /// Shows and keeps the slots that are over; what is to follow.
    fn finish(&mut self, bench: &mut Bench, watcher: &mut dyn Watcher, is_over: impl Fn(&Slot) -> bool) -> Next {
        for mut slot in self.slots.extract_if(.., |slot| is_over(slot)) {
            bench.show(&mut slot, false, watcher);
            if (self.keep)(slot, bench) == Next::End {
                return Next::End;
            }
        }
        Next::Look
    }

    /// Ends the block before its time. What was cut at an arbitrary moment is not judged, and not kept; of a target that died all is,
    /// and it is told last.
    fn break_off(&mut self, bench: &mut Bench, watcher: &mut dyn Watcher) -> Next {
        self.slots.sort_by_key(|slot| slot.died_ns.is_some());
        let somebody_died = self.slots.iter().any(|slot| slot.died_ns.is_some());
        self.finish(bench, watcher, |slot| somebody_died || !is_judged(slot));
        Next::End
    }
}

/// Whether it is more than new connections that carry a request each.
fn is_judged(slot: &Slot) -> bool {
    slot.role != SlotRole::Warmup
}

/// Gives a target new connections; the slot in which each of them carries a request before anything is measured. `None` where
/// connections are not kept.
pub(crate) fn settling(
    bench: &mut Bench,
    target: usize,
    block: u32,
    grace_ns: Nanos,
) -> Result<Option<SlotSpec>, LabError> {
    let is_new = bench.renew(target)?;
    Ok(is_new.then(|| SlotSpec::settling(target, bench.lanes(), grace_ns).at(block, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{ConnectionTimes, GeneratorAudit, MILLISECOND_NS, WorkerAudit};

    #[test]
    fn connections_are_renewed_within_a_block_where_that_costs_little_and_ports_last() {
        let us = 1_000;
        // Rounds of two turns of 21 ms.
        let kept_for = |renewal_us: Nanos, sets: u64| rounds_per_set(renewal_us * us, 42_000 * us, 10, sets);
        assert_eq!((kept_for(0, 4), kept_for(3_800, 700), kept_for(6_300, 4)), (3, 3, 3));
        // Handshakes take longer, or the ports would be gone before the run is over.
        assert_eq!((kept_for(6_400, 700), kept_for(14_000, 700), kept_for(3_800, 3), kept_for(0, 0)), (10, 10, 10, 10));
    }

    #[test]
    fn of_a_slot_with_several_sets_of_connections_those_of_the_first_are_told_apart() {
        let schedule = schedule();
        let mut keep = |_: Slot, _: &Bench| Next::Look;
        let mut block =
            Block { schedule: &schedule, block: 0, slots: Vec::new(), renewed: Vec::new(), keep: &mut keep };
        let turn = |target: usize, repeat: u32, sum_ns: Nanos| {
            let connection = ConnectionTimes { ops: [1, 1], sum_ns: [sum_ns; 2], ..ConnectionTimes::default() };
            let worker = WorkerAudit { connections: vec![connection], ..WorkerAudit::default() };
            let audit = GeneratorAudit { workers: vec![worker], ..GeneratorAudit::default() };
            Slot { audit, repeat, ..Slot::empty(target, SlotRole::Measured) }
        };
        // The second slot begins over connections of the first one.
        for (repeat, sum_ns, renews) in
            [(0, 1, true), (0, 10, false), (0, 100, true), (0, 1_000, false), (1, 2, false), (1, 20, true)]
        {
            if renews {
                block.renewed.push(0);
            }
            assert!(block.add(turn(0, repeat, sum_ns)) && block.add(turn(1, repeat, sum_ns)));
        }
        let told = |slot: &Slot| slot.audit.workers[0].connections[0].sum_ns[0];
        let seen: Vec<_> = block.slots.iter().map(|slot| (slot.target, slot.repeat, told(slot))).collect();
        assert_eq!(seen, [(0, 0, 11), (1, 0, 1_111), (0, 1, 2), (1, 1, 22)]);
    }

    fn schedule() -> BlockSchedule {
        BlockSchedule {
            role: SlotRole::Measured,
            slot_ns: 150 * MILLISECOND_NS,
            run_up_ns: 0,
            settle_ns: 0,
            beside_ns: 0,
            turns: 1,
            grace_ns: 0,
            end_load_ns: 0,
            first_block: 0,
            blocks: None,
            takes_all: false,
            renews: true,
            held: Vec::new(),
            by_whole: Vec::new(),
        }
    }

    /// Rounds of several starts are planned by it.
    #[test]
    fn a_block_is_as_long_as_its_slots_with_their_run_ups_and_what_new_streams_carry_before() {
        let ms = MILLISECOND_NS;
        let short = schedule();
        assert_eq!(short.block_ns(2), 600 * ms);
        let streams = BlockSchedule {
            slot_ns: 800 * ms,
            run_up_ns: 400 * ms,
            settle_ns: 1_600 * ms,
            beside_ns: 120 * ms,
            ..short
        };
        assert_eq!(streams.block_ns(2), 8_480 * ms);
        assert_eq!(BlockSchedule { renews: false, ..streams }.block_ns(2), 5_280 * ms, "connections are kept");
    }
}
