//! What the generator's sleeping costs the servers beside it.
//!
//! Whoever sends to a thread that sleeps has to wake it, within the own send call. A generator on the machine of a server that
//! sleeps often takes a part of the server's CPU so, and the rate and the times that it shows are those with that part gone.

use crate::doubts::is_of_all;
use crate::side::{LATE, is_measured, percent, waited};
use duel_model::{
    Doubt, DoubtId, HostSpan, LoopKind, MILLISECOND_NS, Nanos, Run, Slot, Target, WorkerAudit, format_duration_ns,
    format_figure,
};

/// Share of the server's CPU time from which on wake-ups are doubted. Half of the default margin: so much of a server's rate is
/// not its own.
const WORTH_A_WORD: f64 = 0.01;

/// Of each target whose server is on the generator's machine and had to wake it for more than a hundredth of its CPU time.
///
/// Where the server's CPU time was read, that is held against it; elsewhere against all CPUs of the machine, which no server
/// exceeds: what is told is at least so much. Where others had the generator's CPU for a good part of the time, the server may be
/// who had it: to wake somebody on the own CPU costs little (no other one has to be interrupted), and nothing is told.
pub(crate) fn doubts(run: &Run) -> Vec<Doubt> {
    let Some(waiting) = &run.waiting else { return Vec::new() };
    let of_target = |(index, target): (usize, &Target)| {
        let cost_ns = waiting.waking_ns(index)?;
        let wakes = WakeUps::of(run, index, cost_ns, waiting.waking.as_ref()?.cpus)?;
        (wakes.share > WORTH_A_WORD).then(|| (target.name.clone(), cost_ns, wakes))
    };
    let told: Vec<(String, Nanos, WakeUps)> = run.plan.targets.iter().enumerate().filter_map(of_target).collect();
    let op = run.plan.schema().op.one;
    told_of(&told, run.plan.targets.len(), op)
}

/// Where it is so of all targets it is told once, with the figures of each.
fn told_of(told: &[(String, Nanos, WakeUps)], targets: usize, op: &str) -> Vec<Doubt> {
    if is_of_all(told.len(), targets) {
        return vec![Doubt { id: DoubtId::WakeUps, target: None, text: told_of_all(told, op) }];
    }
    let of_one = told.iter().map(|(name, cost_ns, wakes)| Doubt {
        id: DoubtId::WakeUps,
        target: Some(name.clone()),
        text: wakes.told(name, *cost_ns, op),
    });
    of_one.collect()
}

fn told_of_all(all: &[(String, Nanos, WakeUps)], op: &str) -> String {
    let names: Vec<&str> = all.iter().map(|(name, ..)| name.as_str()).collect();
    let each = all.iter().map(|(name, cost_ns, wakes)| {
        let (times, cost) = (format_figure(wakes.per_op), format_duration_ns(*cost_ns as f64));
        format!(
            "{name} did so {times} times per {op}, at {cost} each that is {} of {name}'s CPU time",
            wakes.share_told()
        )
    });
    format!(
        "duel slept while it loaded {}, and each of them had to wake it: {}. What it costs to wake somebody was measured on this \
         machine. A server that is short of CPU time serves that much more to others; --busy-poll always spares it most of that, and so does duel on another \
         machine",
        names.join(" and "),
        each.collect::<Vec<_>>().join("; ")
    )
}

/// How often a server woke the generator, and what that was of its CPU time.
struct WakeUps {
    per_op: f64,
    share: f64,
    /// The server's CPU time is not known, so the share is at least this.
    is_least: bool,
}

impl WakeUps {
    fn of(run: &Run, index: usize, cost_ns: Nanos, cpus: u32) -> Option<Self> {
        let slots: Vec<&Slot> = run.slots.iter().filter(|slot| slot.target == index && is_measured(slot)).collect();
        if waited(&slots).is_some_and(|waited| waited > LATE) {
            return None;
        }
        // Whom a timer wakes, at due times and after think times, no server had to wake; and who does the ops itself sleeps in them.
        if run.plan.load.kind != (LoopKind::Closed { think_ns: 0 }) {
            return None;
        }
        let sleepers = || slots.iter().flat_map(|slot| &slot.audit.workers).filter(|worker| !worker.works_itself);
        sleepers().next()?;
        let sleeps = sleepers().map(|worker| worker.sleeps).sum::<Option<u64>>()?;
        let started: u64 = slots.iter().map(|slot| slot.tally.started).sum();
        let servers_cpu_ns = server_cpu_ns(run, index, &slots).map(|ns| ns as f64);
        let most_cpu_ns = || slots.iter().map(|slot| slot.elapsed_ns).sum::<Nanos>() as f64 * f64::from(cpus);
        let cpu_ns = servers_cpu_ns.unwrap_or_else(most_cpu_ns);
        (started > 0 && cpu_ns > 0.0).then(|| Self {
            per_op: sleeps as f64 / started as f64,
            share: sleeps as f64 * cost_ns as f64 / cpu_ns,
            is_least: servers_cpu_ns.is_none(),
        })
    }

    fn share_told(&self) -> String {
        if self.is_least { "at least " } else { "" }.to_owned() + &percent(self.share.min(1.0))
    }

    fn told(&self, name: &str, cost_ns: Nanos, op: &str) -> String {
        let share = self.share_told();
        format!(
            "duel slept {} times per {op} while it loaded {name}, and {name} had to wake it: at {} each, as measured on this machine, \
             that is {share} of {name}'s CPU time. If {name} is short of CPU time, it serves that much more to others; --busy-poll always \
             spares it most of that, and so does duel on another machine",
            format_figure(self.per_op),
            format_duration_ns(cost_ns as f64)
        )
    }
}

/// CPU time of the server's processes while these slots ran, where its machine was read before and after them.
fn server_cpu_ns(run: &Run, index: usize, slots: &[&Slot]) -> Option<Nanos> {
    let samples = &run.hosts.get(index)?.as_ref()?.samples;
    let (first, last) = (slots.first()?, slots.last()?);
    let end_unix_ms = last.started_unix_ms + (last.elapsed_ns / MILLISECOND_NS) as i64;
    let before = samples.iter().rev().find(|sample| sample.unix_ms <= first.started_unix_ms)?;
    let after = samples.iter().find(|sample| sample.unix_ms >= end_unix_ms)?;
    let cpu_ns = HostSpan::between(before, after).growth("process.cpu_ns").filter(|&ns| ns > 0)?;
    // The server works in run-ups as it does in the slots behind them, and sleeps are counted in slots alone.
    let of_all = |part: fn(&WorkerAudit) -> Nanos| {
        let workers = slots.iter().flat_map(|slot| &slot.audit.workers);
        workers.map(|worker| u128::from(part(worker))).sum::<u128>()
    };
    let (slots_ns, run_ups_ns) = (of_all(|worker| worker.wall_ns), of_all(|worker| worker.run_up_ns));
    Some((u128::from(cpu_ns) * slots_ns.max(1) / (slots_ns + run_ups_ns).max(1)) as Nanos).filter(|&ns| ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts_of(names: &[&str], targets: usize) -> Vec<Doubt> {
        let wakes = || WakeUps { per_op: 2.0, share: 0.05, is_least: false };
        let told: Vec<_> = names.iter().map(|name| ((*name).to_owned(), 10_000, wakes())).collect();
        told_of(&told, targets, "request")
    }

    #[test]
    fn what_is_so_of_some_targets_is_not_said_of_all() {
        let targets = |names: &[&str], targets: usize| -> Vec<Option<String>> {
            doubts_of(names, targets).into_iter().map(|doubt| doubt.target).collect()
        };
        assert_eq!(targets(&["A", "C"], 4), [Some("A".to_owned()), Some("C".to_owned())]);
        assert_eq!(targets(&["A", "C"], 2), [None]);
        assert_eq!(targets(&["A"], 1), [Some("A".to_owned())], "a run on one target names it");
        assert_eq!(targets(&[], 2), []);
    }

    #[test]
    fn what_was_measured_is_the_cost_of_a_wake_up() {
        let [doubt] = &doubts_of(&["A", "C"], 2)[..] else { panic!() };
        assert!(doubt.text.contains("What it costs to wake somebody was measured on this machine."), "{}", doubt.text);
        for one in doubts_of(&["A", "C"], 3) {
            assert!(one.text.contains("at 10.0 µs each, as measured on this machine"), "{}", one.text);
        }
    }
}
