//! How the generator is to wait for answers, asleep or polling: tried on the targets themselves, in turn.
//!
//! Polling gives a server more (nobody has to be woken) or takes from it (a CPU that it wanted), and which of the two depends
//! on the machine and on what else runs there. So both are tried on every target before it is measured, and what is chosen
//! holds for all targets and for all experiments on them: a way of waiting that differed would be a difference of its own.

use crate::LabError;
use crate::bench::{Bench, SlotSpec};
use crate::watch::Watcher;
use duel_model::{
    BusyPoll, HostAccess, LoopKind, MILLISECOND_NS, Nanos, Plan, Run, Slot, SlotRole, Target, Waiting, WhyWaiting,
    WorkloadPlan,
};
use std::net::{SocketAddr, UdpSocket};

/// Most pairs of slots for each target, one slot of each way: the pairs of a server that varies by 5 % from slot to slot show
/// a difference of 2 %.
const PAIRS: u32 = 6;
/// Fewest of them, where ops take so long that more would take too much of the time.
const FEWEST_PAIRS: usize = 2;
/// Shortest slot of a trial: hundreds of requests of a fast server, and some of a slow one.
const SHORTEST_SLOT_NS: Nanos = 10 * MILLISECOND_NS;
/// Longest one; ops that take longer do not care about a wake-up of some microseconds.
const LONGEST_SLOT_NS: Nanos = 100 * MILLISECOND_NS;
/// Part of the load time that trials may take, all targets together.
const SHARE: u64 = 20;
/// After a slot's time, how long it waits for what is in flight.
const GRACE_NS: Nanos = 3 * LONGEST_SLOT_NS;
/// By how much, in log, polling may seem to serve less and is still chosen: what such a trial cannot see.
const UNSEEN: f64 = 0.01;

/// Chooses how the bench waits, and notes it in the run. Trials are made on connections that carry load already.
pub(crate) fn choose(
    bench: &mut Bench,
    plan: &Plan,
    is_exact: bool,
    total_ns: Nanos,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    // An op that does nothing is not waited for.
    if plan.workload == WorkloadPlan::Null {
        return Ok(());
    }
    let most = most_polling_workers(plan, run);
    let (polling_workers, why) = match plan.load.busy_poll {
        BusyPoll::Never => (0, WhyWaiting::Asked),
        BusyPoll::Always => (plan.load.threads, WhyWaiting::Asked),
        BusyPoll::Auto if is_exact => (0, WhyWaiting::Exact),
        BusyPoll::Auto if !matches!(plan.load.kind, LoopKind::Closed { think_ns: 0 }) => (most, WhyWaiting::Scheduled),
        BusyPoll::Auto => {
            watcher.label("trying how to wait");
            let gains = trial(bench, most, total_ns, run, watcher)?;
            let mut known = gains.iter().flatten().peekable();
            let serves_as_much = known.peek().is_some() && known.all(|gain| gain.ln() >= -UNSEEN);
            (if serves_as_much { most } else { 0 }, WhyWaiting::Tried(gains))
        }
    };
    bench.wait_with(polling_workers);
    run.waiting = Some(Waiting { polling_workers, why, sleep_costs_ns: duel_load::wake_cost_ns() });
    Ok(())
}

/// The rate with polling over that without, by target; `None` where ops take too long for a wake-up to matter.
fn trial(
    bench: &mut Bench,
    polling_workers: u32,
    total_ns: Nanos,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Option<f64>>, LabError> {
    let targets = bench.targets();
    let share_ns = total_ns / SHARE / targets as u64;
    let slot_ns = (share_ns / u64::from(2 * PAIRS + 2)).clamp(SHORTEST_SLOT_NS, LONGEST_SLOT_NS);
    let mut gains = Vec::with_capacity(targets);
    for target in 0..targets {
        let mut log_ratios = Vec::new();
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
                run.slots.push(slot);
                if bench.is_stopped() {
                    return Ok(vec![None; targets]);
                }
                if is_slow {
                    break 'pairs;
                }
            }
            if let ([Some(asleep), Some(polling)], true) = (rates, pair > 0) {
                log_ratios.push((polling / asleep).ln());
            }
            // A slot ends with its ops, and these may take longer than the slot was meant to.
            if bench.load_ns() - began_ns > share_ns && log_ratios.len() >= FEWEST_PAIRS {
                break;
            }
        }
        // The middle one: a hiccup in one slot is no answer.
        log_ratios.sort_unstable_by(f64::total_cmp);
        let middle = |n: usize| (log_ratios[(n - 1) / 2] + log_ratios[n / 2]) / 2.0;
        gains.push((!log_ratios.is_empty()).then(|| middle(log_ratios.len()).exp()));
    }
    Ok(gains)
}

fn spec(target: usize, pair: u32, slot_ns: Nanos) -> SlotSpec {
    SlotSpec {
        target,
        role: SlotRole::Warmup,
        block: 0,
        repeat: pair,
        duration_ns: Some(slot_ns),
        ops: None,
        grace_ns: GRACE_NS,
        back_to_back: true,
    }
}

fn rate_per_ns(slot: &Slot) -> Option<f64> {
    (slot.tally.ok > 0 && slot.elapsed_ns > 0).then(|| slot.tally.ok as f64 / slot.elapsed_ns as f64)
}

/// How many workers may poll at most: those that have a CPU, of which one is left to a server on this machine unless duel
/// was given CPUs of its own.
fn most_polling_workers(plan: &Plan, run: &Run) -> u32 {
    let mine = duel_load::usable_cpus();
    let is_all_there_is = duel_load::cpus_online().is_none_or(|online| mine >= online);
    let peers = run.first_contact.iter().map(|seen| seen.as_ref().and_then(|seen| seen.peer.as_deref()));
    let is_local = plan.targets.iter().zip(peers).any(|(target, peer)| is_on_this_machine(target, peer));
    // On a machine of one CPU everybody shares it, and only a trial can tell.
    let free = if is_local && is_all_there_is { mine.saturating_sub(1).max(1) } else { mine };
    free.min(plan.load.threads)
}

/// Whether a target's server is known to run on this machine.
fn is_on_this_machine(target: &Target, peer: Option<&str>) -> bool {
    // Where a name has led to several addresses, they are listed.
    let first = peer.and_then(|peer| peer.split([',', ' ']).next());
    let is_here = first.is_some_and(|peer| match peer.parse::<SocketAddr>() {
        // Only an own address can be bound to. Nothing is sent.
        Ok(address) => UdpSocket::bind((address.ip(), 0)).is_ok(),
        // The path of a Unix socket.
        Err(_) => peer.starts_with(['/', '@']),
    });
    is_here || target.host.as_ref().is_some_and(|host| host.access == HostAccess::Local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_here_if_its_address_is_ours() {
        let target = Target { name: "A".into(), address: "http://a/".into(), host: None };
        for (peer, is_here) in [
            (Some("127.0.0.1:80"), true),
            (Some("[::1]:80"), UdpSocket::bind("[::1]:0").is_ok()),
            (Some("/run/web.sock"), true),
            // TEST-NET-1 (RFC 5737) is nobody's.
            (Some("192.0.2.7:443, 127.0.0.1:443"), false),
            (None, false),
        ] {
            assert_eq!(is_on_this_machine(&target, peer), is_here, "{peer:?}");
        }
    }
}
