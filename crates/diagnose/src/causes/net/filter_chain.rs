//! `net.filter-chain`: each packet to the slow side passes a long chain of filter rules.
//!
//! Rules of a chain are looked at one by one, for each packet. Their number is read on the machine; that they are
//! passed shows in connecting, which is slow already, and in everything else that takes packets. From outside alone a
//! chain looks like a slightly longer way, so without the number nothing is said. And a machine with many rules that few
//! packets pass may be a little further away: so the machine has to be seen to spend the time, in interrupts.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::filter_rules::{RULE_NS, Rules};
use crate::evidence::trip::trips;
use crate::evidence::worth::{acquit, by_others_ns, is_hidden_by_load, reference, share_of_resource, too_little};
use crate::gap::{DemandLook, Flip, Gap, percent};
use crate::probes::Mode;
use duel_model::{Confidence, HostDemand, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.filter-chain",
    description: "each packet passes a long chain of firewall rules",
    signature: "hosts: far more firewall rules, connecting alone is slow already, and the machine works as much \
                more in interrupts",
    at_most: "likely",
    needs_machine: true,
};

/// Fewer rules than this take microseconds at most, which is what handling a packet takes anyhow.
const LEAST_RULES: f64 = 500.0;
/// Rules that the fast side has as well do not make it fast.
const CLEARLY_MORE: f64 = 3.0;

/// Packets are often handled by a single CPU; less than this of one leaves it idle for a good part of the time.
const BUSY: f64 = 0.7;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let Some(counted) = Rules::of(gap, gap.slow) else {
        let text = format!("how many filter rules {slow} has is not known");
        return Err(Standing::Undecided(gap.on_host(text, None)));
    };
    let of_fast = Rules::of(gap, gap.fast);
    let shown = of_fast.map_or_else(|| "'s are not known".to_owned(), |of_fast| format!(" {}", of_fast.tell()));
    let counts = format!("{slow} has {} filter rules, {fast}{shown}", counted.tell());
    let fact = || gap.on_host(counts.clone(), Some(COUNT.to_owned()));
    let of_slow = counted.at_least;
    if of_slow < LEAST_RULES || of_fast.is_some_and(|of_fast| of_slow < CLEARLY_MORE * of_fast.at_least) {
        return Err(if counted.all { Standing::RuledOut(fact()) } else { Standing::Undecided(fact()) });
    }
    let trips = trips(gap)?;
    let extra = trips.extra();
    if gap.mode == Mode::Loaded
        && let DemandLook::Shown(demands) = gap.demands()
        && demands.slow.share_of_time("cpu.busy_ns").is_none_or(|share| share < BUSY)
    {
        // Under load work counts where it is what others wait for.
        let text = format!("{counts}, but nothing tells that CPUs of {slow}'s machine are busy");
        return Err(Standing::Undecided(gap.on_host(text, Some(COUNT.to_owned()))));
    }
    let connecting = format!(
        "connecting to {slow} takes {} (median), to {fast} {}",
        format_duration_ns(trips.slow.typical.mid),
        format_duration_ns(trips.fast.typical.mid)
    );
    let open = |why: &str| Standing::Undecided(gap.evidence(&trips.seen, format!("{counts}; {connecting}{why}")));
    // Work shows under load as well, unless something else is the bottleneck there. Of a longer way little may be left.
    if is_hidden_by_load(gap, reference) && gap.comparison.log.high() < 0.5 * reference.log.low() {
        return Err(open(", but under load little of the gap is left: that is waited for, not worked"));
    }
    let Some(Work { packets, cpu_ns, filtering_ns, own_ns, waiting_ns }) = work(gap)? else {
        return Err(open(", and how much both machines work on packets is not known"));
    };
    // A SYN and its answer take the extra time. Where both pass the chain, so do what else is received and sent;
    // where only the SYN does, it is what is received. Of a long response more is sent, but in large pieces.
    // It is work, so no more of it than the machine works more.
    let worth = |extra_ns: f64| share_of_resource(gap, reference, (extra_ns * packets).min(filtering_ns), cpu_ns);
    let (Some(share), Some(most)) = (worth(extra.mid), worth(extra.high().max(0.0))) else {
        return Err(open(", and the time per request is not known"));
    };
    let is_beyond_chance = extra.mid > Flip::MANY_LOOKS * extra.below;
    if most < Flip::NOTEWORTHY {
        let text =
            format!("{counts}; {connecting}: with {packets:.0} packets per request to it that makes little of the gap");
        // Work that waits for a CPU takes longer than it is; and others' time is no part of what it is held against.
        let longest_ns = extra.high().max(0.0) * packets;
        let most = match gap.mode {
            Mode::Alone => waiting_ns.map(|waiting_ns| longest_ns.min(filtering_ns + waiting_ns)),
            Mode::Loaded => Some(longest_ns.min(filtering_ns)),
        };
        // However long it waited, connecting shows how long a packet takes.
        let most_ns = most.unwrap_or(longest_ns);
        let most = share_of_resource(gap, reference, most_ns, own_ns)
            .filter(|share| most.is_some() || *share < Flip::NOTEWORTHY)
            .ok_or_else(|| format!("how long packets to {slow} waited for a CPU is not known"));
        let line = gap.evidence(&trips.seen, text);
        return Err(match acquit(&most, line) {
            Standing::RuledOut(line) if is_beyond_chance => too_little(gap, reference, share, line),
            settled => settled,
        });
    }
    if share < Flip::NOTEWORTHY || !is_beyond_chance {
        return Err(open(": whether packets take longer is within chance"));
    }
    if extra.mid > 2.0 * RULE_NS * of_slow {
        return Err(open(", which is more than so many rules can take"));
    }
    let told = Told {
        summary: format!(
            "Each packet of {slow} passes a long chain of filter rules ({of_slow:.0} are set): connecting takes {} \
             longer than to {fast}, and with about {packets:.0} packets per request to it that makes {} of the gap.",
            format_duration_ns(extra.mid),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s machine, `nft list ruleset` or `iptables-save` shows the rules. Let packets of established \
             connections pass first (`ct state established,related accept`), and put many addresses or ports into one \
             set (`nft` sets, `ipset`) instead of one rule each; then compare again."
        ),
        facts: vec![fact(), gap.evidence(&trips.seen, connecting.clone())],
        further: Vec::new(),
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// How the rules are counted by hand.
const COUNT: &str = "nft list ruleset | wc -l; iptables-save | grep -c '^-A'";

/// What an op makes of work on the slow side's machine.
struct Work {
    /// Packets that the machine receives.
    packets: f64,
    /// CPU time of the whole machine, ns.
    cpu_ns: f64,
    /// The most of it that can be filtering, ns: see [`most_filtering_ns`].
    filtering_ns: f64,
    /// CPU time of the server and of interrupts, ns: what others may have done at the same time is not in it.
    own_ns: f64,
    /// The longest that filtering can have waited while others had the CPUs, ns. `None` where that is not known.
    waiting_ns: Option<f64>,
}

/// `None` where the machines do not tell.
fn work(gap: &Gap<'_>) -> Result<Option<Work>, Standing> {
    let demands = match gap.demands() {
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Shown(demands) => demands,
        DemandLook::Missing(_) => return Ok(None),
    };
    let known = |fast: &HostDemand| {
        Some(Work {
            packets: demands.slow.per_op("tcp.received_segments")?,
            cpu_ns: demands.slow.per_op("cpu.busy_ns")?,
            filtering_ns: most_filtering_ns(demands.slow, fast)?,
            own_ns: demands.slow.per_op("process.cpu_ns")? + interrupts_ns(demands.slow)?,
            waiting_ns: by_others_ns(demands.slow),
        })
    };
    Ok(demands.fast.and_then(known))
}

/// CPU time per op that can have gone on filtering beyond the other side's, ns.
///
/// What is received is filtered in interrupts, whoever's CPU that is. What a process sends is filtered in its own time in the
/// kernel, and takes no longer than what it receives: of that more than as much is the process's own work.
fn most_filtering_ns(slow: &HostDemand, fast: &HostDemand) -> Option<f64> {
    let received_ns = (interrupts_ns(slow)? - interrupts_ns(fast)?).max(0.0);
    let kernel = |demand: &HostDemand| demand.per_op("process.system_ns");
    let sent_ns = kernel(slow).zip(kernel(fast)).map_or(0.0, |(slow, fast)| (slow - fast).max(0.0));
    Some(received_ns + sent_ns.min(received_ns))
}

/// CPU time of a machine per op in interrupts, ns.
fn interrupts_ns(demand: &HostDemand) -> Option<f64> {
    match ["cpu.softirq_ns", "cpu.irq_ns"].map(|key| demand.per_op(key)) {
        [None, None] => None,
        known => Some(known.into_iter().flatten().sum::<f64>()),
    }
}
