//! How the generator is to wait for answers, asleep or polling: tried on the targets themselves, in turn.
//!
//! Polling gives a server more (nobody has to be woken) or takes from it (a CPU that it wanted), and which of the two depends
//! on the machine and on what else runs there. So both are tried on every target before it is measured, and what is chosen
//! holds for all targets and for all experiments on them: a way of waiting that differed would be a difference of its own.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::servers::is_own;
use crate::streams;
use crate::watch::Watcher;
use duel_model::{
    BusyPoll, HostAccess, LoopKind, MILLISECOND_NS, Nanos, Plan, Run, SECOND_NS, Slot, SlotRole, Target, Waiting,
    Waking, WhyWaiting, WorkloadPlan, web,
};
use std::net::SocketAddr;

/// Most pairs of slots for each target, one slot of each way. Of a server that varies by 5 % from slot to slot, the mean over
/// ten pairs has a standard error of 2 %.
const PAIRS: u32 = 10;
/// Fewest of them, where ops take so long that more would take too much of the time.
const FEWEST_PAIRS: usize = 2;
/// Shortest slot of a trial: hundreds of requests of a fast server, and some of a slow one.
const SHORTEST_SLOT_NS: Nanos = 10 * MILLISECOND_NS;
/// Longest one; ops that take longer do not care about a wake-up of some microseconds.
const LONGEST_SLOT_NS: Nanos = 100 * MILLISECOND_NS;
/// Part of the load time that trials may take, all targets together.
const SHARE: u64 = 20;
/// After a slot's time, how long it waits for what is in flight. A slot that leaves something unanswered is the last one.
const GRACE_NS: Nanos = SECOND_NS;
/// By how much, in log, polling may seem to serve less over all targets and is still chosen: half of what such a trial leaves
/// open.
const UNSEEN: f64 = 0.01;
/// So many standard errors below that, a single target's loss is not chance.
const CLEARLY: f64 = 2.0;

/// Chooses how the bench waits, and notes it in the run. Trials take requests of their own: they are made where several targets
/// are compared, on connections that carry load already, and not where a single one is sent what the plan says; nor of streams that could
/// not come up to speed in a slot of a trial.
pub(crate) fn choose(bench: &mut Bench, plan: &Plan, run: &mut Run, watcher: &mut dyn Watcher) -> Result<(), LabError> {
    // An op that does nothing is not waited for.
    if plan.workload == WorkloadPlan::NULL {
        return Ok(());
    }
    let is_here = are_here(plan, run);
    let free = free_cpus(is_here.contains(&true)).min(plan.load.threads);
    let (polling_workers, why) = match plan.load.busy_poll {
        BusyPoll::Never => (0, WhyWaiting::Asked),
        BusyPoll::Always => (plan.load.threads, WhyWaiting::Asked),
        // A quota below one CPU would be spent on waiting, and missed by the work.
        BusyPoll::Auto if has_no_whole_cpu() => (0, WhyWaiting::Untried),
        BusyPoll::Auto
            if bench.targets() == 1
                || !is_back_to_back(plan)
                || streams::run_up_ns(streams::trip_seen_ns(plan, &run.slots), SHORTEST_SLOT_NS) > SHORTEST_SLOT_NS =>
        {
            (free, WhyWaiting::Untried)
        }
        BusyPoll::Auto => {
            watcher.label("trying how to wait");
            // On a machine of one CPU everybody shares it, and only a trial can tell.
            let most = free.max(1);
            let gains = trial(bench, most, plan.compare.max_load_ns, run, watcher)?;
            let shown = gains.iter().map(|gain| gain.map(|Gain { log, .. }| log.exp())).collect();
            (if serve_as_much(&gains) { most } else { 0 }, WhyWaiting::Tried(shown))
        }
    };
    bench.wait_with(polling_workers);
    if !bench.is_stopped() {
        let sleep_costs_ns = duel_load::wake_cost_ns();
        let waking = is_here.contains(&true).then(|| waking(is_here)).flatten();
        run.waiting = Some(Waiting { polling_workers, why, gave_way: false, sleep_costs_ns, waking });
    }
    Ok(())
}

/// Whether requests follow each other without a pause, so that the generator's promptness is a part of the rate.
fn is_back_to_back(plan: &Plan) -> bool {
    plan.load.kind == LoopKind::Closed { think_ns: 0 } && plan.load.shape.stages.is_empty()
}

/// The rate with polling over that without.
#[derive(Debug, Clone, Copy)]
struct Gain {
    /// In log.
    log: f64,
    /// Its standard error.
    error: f64,
}

impl Gain {
    /// Of the logs of pairs of slots; `None` of too few.
    fn of(logs: &[f64]) -> Option<Self> {
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (logs.len() >= FEWEST_PAIRS).then(|| Self { log: mean, error: (variance / n).sqrt() })
    }
}

/// Whether nobody can be said to serve less when the generator polls; not where none was tried.
fn serve_as_much(gains: &[Option<Gain>]) -> bool {
    let known: Vec<&Gain> = gains.iter().flatten().collect();
    let mean = known.iter().map(|gain| gain.log).sum::<f64>() / known.len() as f64;
    mean >= -UNSEEN && known.iter().all(|gain| gain.log + CLEARLY * gain.error >= -UNSEEN)
}

/// What polling gains, by target; `None` where it cannot be tried: ops take too long for a wake-up to matter, or fail.
fn trial(
    bench: &mut Bench,
    polling_workers: u32,
    total_ns: Nanos,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Option<Gain>>, LabError> {
    let targets = bench.targets();
    let share_ns = total_ns / SHARE / targets as u64;
    let slot_ns = (share_ns / u64::from(2 * PAIRS + 2)).clamp(SHORTEST_SLOT_NS, LONGEST_SLOT_NS);
    let mut gains = Vec::with_capacity(targets);
    for target in 0..targets {
        let mut logs = Vec::new();
        let began_ns = bench.load_ns();
        // The first pair connects, where nothing has yet, and is for the caches.
        'pairs: for pair in 0..=PAIRS {
            let mut rates = [None; 2];
            let ways = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for way in ways {
                bench.wait_with(if way == 1 { polling_workers } else { 0 });
                let slot = bench.slot(spec(target, pair, slot_ns), watcher)?;
                rates[way] = rate_per_ns(&slot);
                let is_slow = slot.tally.service.mean_ns().is_none_or(|mean_ns| mean_ns > LONGEST_SLOT_NS as f64);
                let tells_nothing = is_slow || slot.tally.in_flight > 0 || slot.tally.failed_total() > 0;
                run.slots.push(slot);
                if bench.is_stopped() {
                    return Ok(vec![None; targets]);
                }
                if tells_nothing {
                    logs.clear();
                    break 'pairs;
                }
            }
            if let ([Some(asleep), Some(polling)], true) = (rates, pair > 0) {
                logs.push((polling / asleep).ln());
            }
            // A slot ends with its ops, and these may take longer than the slot was meant to.
            if bench.load_ns() - began_ns > share_ns && logs.len() >= FEWEST_PAIRS {
                break;
            }
        }
        gains.push(Gain::of(&logs));
    }
    Ok(gains)
}

fn spec(target: usize, pair: u32, slot_ns: Nanos) -> SlotSpec {
    SlotSpec { back_to_back: true, ..SlotSpec::timed(target, SlotRole::Warmup, slot_ns, GRACE_NS).at(0, pair) }
}

fn rate_per_ns(slot: &Slot) -> Option<f64> {
    (slot.tally.ok > 0 && slot.elapsed_ns > 0).then(|| slot.tally.ok as f64 / slot.elapsed_ns as f64)
}

/// CPUs that workers may poll on: those that duel can use, of which one is left to a server on this machine unless duel was
/// given CPUs of its own.
fn free_cpus(serves_here: bool) -> u32 {
    let mine = duel_load::usable_cpus();
    let is_all_there_is = duel_load::cpus_online().is_none_or(|online| mine >= online);
    if serves_here && is_all_there_is { mine.saturating_sub(1) } else { mine }
}

/// Whether the control group's quota is less than one CPU.
fn has_no_whole_cpu() -> bool {
    duel_load::quota_cpus().is_some_and(|cpus| cpus < 1.0)
}

/// What sleeping costs servers on this machine.
fn waking(is_here: Vec<bool>) -> Option<Waking> {
    Some(Waking { cost_ns: duel_load::waking_cost_ns()?, cpus: duel_load::cpus_online()?, is_here })
}

/// Of each target, whether its server is known to run on this machine.
fn are_here(plan: &Plan, run: &Run) -> Vec<bool> {
    let peer = |index: usize| run.first_contact.get(index)?.as_ref()?.text(web::PEER);
    plan.targets.iter().enumerate().map(|(index, target)| is_on_this_machine(target, peer(index))).collect()
}

/// Whether a target's server is known to run on this machine.
fn is_on_this_machine(target: &Target, peer: Option<&str>) -> bool {
    // Where a name has led to several addresses, they are listed.
    let first = peer.and_then(|peer| peer.split([',', ' ']).next());
    let is_here = first.is_some_and(|peer| match peer.parse::<SocketAddr>() {
        Ok(address) => is_own(address.ip()),
        // The path of a Unix socket.
        Err(_) => peer.starts_with(['/', '@']),
    });
    is_here || target.host.as_ref().is_some_and(|host| host.access == HostAccess::Local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_is_chosen_where_nobody_can_be_said_to_lose_by_it() {
        let gains = |targets: &[&[f64]]| -> Vec<Option<Gain>> {
            targets.iter().map(|logs| Gain::of(&logs.iter().map(|ratio| ratio.ln()).collect::<Vec<f64>>())).collect()
        };
        assert!(serve_as_much(&gains(&[&[1.1, 1.2, 1.15], &[1.0, 1.02, 0.99]])));
        assert!(serve_as_much(&gains(&[&[1.1, 0.8, 1.2], &[0.9, 1.05, 1.1]])), "chance");
        assert!(!serve_as_much(&gains(&[&[1.3, 1.2, 1.25], &[0.9, 0.91, 0.89]])), "one that clearly loses");
        assert!(!serve_as_much(&gains(&[&[0.9, 1.0, 0.95]])), "a loss that may be chance");
        assert!(serve_as_much(&gains(&[&[1.1, 1.1], &[]])), "of one nothing is known");
        assert!(!serve_as_much(&gains(&[&[], &[1.5]])), "nothing is known of any");
    }

    #[test]
    fn a_server_is_here_if_its_address_is_ours() {
        let target = Target { name: "A".into(), address: "http://a/".into(), host: None };
        for (peer, is_here) in [
            (Some("127.0.0.1:80"), true),
            (Some("[::1]:80"), is_own("::1".parse().unwrap())),
            (Some("/run/web.sock"), true),
            // TEST-NET-1 (RFC 5737) is nobody's.
            (Some("192.0.2.7:443, 127.0.0.1:443"), false),
            (None, false),
        ] {
            assert_eq!(is_on_this_machine(&target, peer), is_here, "{peer:?}");
        }
    }
}
