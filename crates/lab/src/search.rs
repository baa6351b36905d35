//! One rate after the other: the search for the highest one at which each target keeps the plan's promises.
//!
//! Targets take turns, attempt by attempt, so that what drifts hits all alike; each has its own course of rates. Where the
//! searches say that two targets differ, both are offered one rate in turn. What an attempt shows and which rate comes next
//! is decided by `duel_stats`; here it is carried out.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::blocks;
use crate::hosts::Hosts;
use crate::pulse::gone;
use crate::waiting;
use crate::watch::Watcher;
use duel_model::{
    Arrival, Attempt, Bound, LoopKind, MILLISECOND_NS, Nanos, Plan, Run, SECOND_NS, SlotRole, sanitize_line,
};
use duel_stats::SearchStep;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// How long a closed loop runs that says where to begin: some hundred ops of any target that is worth a search.
const ESTIMATE_NS: Nanos = SECOND_NS;
/// Longest wait for the answers of a target that is to come to rest between two attempts.
const LONGEST_REST_NS: Nanos = 5 * SECOND_NS;
/// After an attempt's time, how many times the longest promised time is waited for answers: what has not come until then
/// has broken the promise whenever it comes.
const GRACE_LIMITS: u64 = 2;
/// Where no time is promised, or a very short one: long against a turn of any event loop.
const SHORTEST_GRACE_NS: Nanos = 200 * MILLISECOND_NS;

/// Tries rates until the answers are narrow enough and as many targets told apart as can be, or the plan's time is over.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    hosts: &Hosts,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    let total_ns = match plan.load.bound {
        Bound::Duration(total_ns) => Some(total_ns),
        Bound::Ops(_) => None,
    };
    let LoopKind::Open { rate_per_s, arrival } = plan.load.kind else {
        return Err(LabError::Plan("a rate can only be looked for in an open loop".to_owned()));
    };
    bench.expect(total_ns, None);
    watcher.label("warming up");
    let random = Pcg64Mcg::seed_from_u64(plan.compare.seed);
    let mut search = Search { bench, plan, arrival, total_ns, run, watcher, random, block: 0 };
    let mut starts_per_s = Vec::new();
    for target in 0..plan.targets.len() {
        let closed_per_s = search.rest(target, Some(ESTIMATE_NS))?;
        starts_per_s.push(if rate_per_s > 0.0 { rate_per_s } else { closed_per_s * duel_stats::START_SHARE });
    }
    waiting::choose(search.bench, plan, search.run, search.watcher)?;
    hosts.mark();
    let result = search.rounds(&starts_per_s).and_then(|next| match next {
        Next::GoOn => search.heads(),
        Next::End => Ok(()),
    });
    hosts.mark();
    result
}

/// A search on all targets that is under way.
struct Search<'a> {
    bench: &'a mut Bench,
    plan: &'a Plan,
    arrival: Arrival,
    total_ns: Option<Nanos>,
    run: &'a mut Run,
    watcher: &'a mut dyn Watcher,
    random: Pcg64Mcg,
    /// Number of the round, or of the pair: what stands in it ran next to each other, with the same arrivals.
    block: u32,
}

/// Whether anything may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// The user, the time or the death of a target ended it.
    End,
}

impl Search<'_> {
    /// Rounds in each of which every target has an attempt whose rate is not known yet, every second one in reverse order.
    fn rounds(&mut self, starts_per_s: &[f64]) -> Result<Next, LabError> {
        let mut attempts: Vec<Vec<Attempt>> = vec![Vec::new(); starts_per_s.len()];
        let mut order: Vec<usize> = (0..starts_per_s.len()).collect();
        loop {
            self.turn(&mut order);
            let mut is_known = true;
            for &target in &order {
                let (own, start_per_s) = (&attempts[target], starts_per_s[target]);
                let SearchStep::Try(rate_per_s) = duel_stats::next_rate(self.plan, own, &self.run.slots, start_per_s)
                else {
                    continue;
                };
                is_known = false;
                self.watcher.label(&self.label(target, &format!("trying {rate_per_s}/s")));
                let (next, seen) = self.attempt(target, rate_per_s, SlotRole::Search)?;
                attempts[target].extend(seen);
                if next == Next::End {
                    return Ok(Next::End);
                }
            }
            if is_known {
                return Ok(Next::GoOn);
            }
            self.block += 1;
        }
    }

    /// The baseline and each other target at one rate in turn, as long as that can tell more.
    fn heads(&mut self) -> Result<(), LabError> {
        for target in 1..self.plan.targets.len() {
            let mut order = [0, target];
            while let Some(rate_per_s) = duel_stats::next_head_to_head(self.run, target) {
                self.turn(&mut order);
                for own in order {
                    self.watcher.label(&self.label(own, &format!("head to head at {rate_per_s:.0}/s")));
                    if self.attempt(own, rate_per_s, SlotRole::HeadToHead)?.0 == Next::End {
                        return Ok(());
                    }
                }
                self.block += 1;
            }
        }
        Ok(())
    }

    /// Random order, and the reverse of it in the next block.
    fn turn(&mut self, order: &mut [usize]) {
        if self.block.is_multiple_of(2) {
            order.shuffle(&mut self.random);
        } else {
            order.reverse();
        }
    }

    fn label(&self, target: usize, what: &str) -> String {
        match self.plan.targets.as_slice() {
            [_] => what.to_owned(),
            several => format!("{}: {what}", sanitize_line(&several[target].name)),
        }
    }

    /// One attempt, and what it showed; nothing if it could not be made to its end.
    fn attempt(&mut self, target: usize, rate_per_s: f64, role: SlotRole) -> Result<(Next, Option<Attempt>), LabError> {
        let attempt_ns = duel_stats::attempt_ns(self.plan, rate_per_s);
        let grace_ns = grace_ns(self.plan);
        let is_over = |total_ns| self.bench.load_ns() + attempt_ns + grace_ns > total_ns;
        if self.bench.is_stopped() || self.total_ns.is_some_and(is_over) {
            return Ok((Next::End, None));
        }
        self.renew(target)?;
        self.bench.offer(rate_per_s, self.arrival);
        let spec = SlotSpec::timed(target, role, attempt_ns, grace_ns).at(self.block, 0);
        let slot = self.bench.slot(spec, self.watcher)?;
        if self.bench.is_stopped() {
            return Ok((Next::End, None));
        }
        let seen = duel_stats::attempt(&slot, self.plan);
        let left_work = slot.tally.in_flight + slot.tally.failed_total() > 0;
        self.run.slots.push(slot);
        if left_work && let Err(error) = self.rest(target, None) {
            // It has answered before: now it is gone.
            self.run.status = gone(self.plan, target, self.bench.since_start_ns(), error.to_string());
            return Ok((Next::End, seen));
        }
        Ok((Next::GoOn, seen))
    }

    /// New connections for an attempt, where targets are compared: what clings to a set of them is worth some percent (see
    /// [`Bench::renew`]), and is to be another one in each.
    fn renew(&mut self, target: usize) -> Result<(), LabError> {
        if self.plan.targets.len() > 1 {
            let patience_ns = self.patience_ns();
            if let Some(spec) = blocks::settling(self.bench, target, self.block, patience_ns)? {
                let slot = self.bench.slot(spec, self.watcher)?;
                self.run.slots.extend(Some(slot).filter(|_| !self.bench.is_stopped()));
            }
        }
        Ok(())
    }

    /// Ops back to back in a closed loop: for a time, or one for each lane. It makes connections before they are
    /// measured, and lets a target that was overloaded come to rest, since each op waits for its answer. The ops per second
    /// that ended well.
    fn rest(&mut self, target: usize, duration_ns: Option<Nanos>) -> Result<f64, LabError> {
        let patience_ns = self.patience_ns();
        let timed = SlotSpec::timed(target, SlotRole::Warmup, duration_ns.unwrap_or(patience_ns), patience_ns);
        let ops = duration_ns.is_none().then(|| u64::from(self.bench.lanes()));
        let spec = SlotSpec { ops, back_to_back: true, ..timed };
        let slot = self.bench.slot(spec, self.watcher)?;
        let per_s = slot.rate_per_s().filter(|&per_s| per_s > 0.0);
        let what = slot.tally.failure_examples.first().cloned();
        let is_over = self.bench.is_stopped();
        if !is_over {
            self.run.slots.push(slot);
        }
        match per_s {
            Some(per_s) => Ok(per_s),
            None if is_over => Ok(0.0),
            None => Err(LabError::Target {
                name: sanitize_line(&self.plan.targets[target].name),
                text: format!("no request ended well: {}", what.unwrap_or_else(|| "no answer in time".to_owned())),
            }),
        }
    }

    fn patience_ns(&self) -> Nanos {
        self.plan.load.op_timeout_ns.min(LONGEST_REST_NS)
    }
}

fn grace_ns(plan: &Plan) -> Nanos {
    let promises = plan.load.shape.search.iter().flat_map(|search| &search.promises);
    let longest = promises.filter(|promise| promise.metric.is_time()).map(|promise| promise.limit).fold(0.0, f64::max);
    (GRACE_LIMITS * longest as Nanos).max(SHORTEST_GRACE_NS).min(plan.load.op_timeout_ns)
}
