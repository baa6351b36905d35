//! `net.client-limit`: the slow side, or the way to it, lets one client address do only so much, or treats ours worse than
//! others.
//!
//! A load generator is one address. Where a server, balancer, firewall or router counts by address, the generator alone is
//! held up, and many clients would not be. Shown by spreading the connections over other addresses of this machine, which
//! changes nothing else. If the gap shrinks, all connections from one other address tell two kinds apart: held up as
//! before, each address is limited; not held up, it is our own address that is treated worse.
//!
//! With too few addresses to close the gap the limit shows as well: k addresses get k times as much done, so each of them
//! is held to what the one was.
//!
//! Nothing is asked where it cannot be: who works all the time waits for no limit, and a limit makes no handshake dearer
//! to compute. Failures are no speed: what is refused is no gap that could shrink.

use crate::cause::{Cause, CauseEntry, Cure, Fit, Standing, Told, needs_http};
use crate::evidence::machines::{FULL, allowed_cpus, workers};
use crate::evidence::worth::{
    did_not_move_under_load, moved_under_load_ns, reference, reference_under_load, shown_under_load,
};
use crate::gap::{DemandLook, Flip, Gap, View, failed_share, phase_share};
use crate::probes::{Kind, SOURCE_OTHER, SOURCES_SPREAD};
use duel_model::web::phase;
use duel_model::{AddressRange, Confidence, TwinChange};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.client-limit",
    description: "one client address may do only so much, or this machine's address is treated worse than others",
    signature: "connections from other addresses take the gap away. Where one other address does not, each address \
                is limited; where it does, our own is treated worse. k addresses that leave a gap and get about k \
                times as much done are limited, too, and the rest of the gap is hidden behind that. Not asked \
                about a server that works all the time, handshakes, or failures",
    at_most: "confirmed; likely where the addresses are too few",
    needs_machine: false,
};

/// From this share of failures on the rate of the rest is another rate; probes are refused from there on as well.
const FAILING: f64 = 0.1;
/// Share of the time of a request that a server may compute and still be one that waits.
const WORKING: f64 = 0.5;
/// How many times off the number of addresses the growth of the rate may be and still go with it. A limit that counts in
/// whole milliseconds lets a single connection, which waits for each answer, do less than it lets several of one address.
const IN_PROPORTION: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause {
    cure: Some(Cure { change: TwinChange::NoLimits, may_lie_outside: true }),
    asks_last: true,
    ..Cause::of(&ENTRY, weigh)
};

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    reference(gap)?;
    let before = reference_under_load(gap)?;
    may_be_held_up(gap, &before)?;
    let spread = match SOURCES_SPREAD.possible(&gap.case) {
        Ok(()) => shown_under_load(gap, SOURCES_SPREAD, &before)?,
        // Of one connection, or one other address, only the address can be another one.
        Err(why) => return from_one_other(gap, &before, &why),
    };
    if !spread.moved() {
        return Err(did_not_move_under_load(gap, &spread, &before));
    }
    let other = match shown_under_load(gap, SOURCE_OTHER, &before) {
        Ok(flip) => Some(flip),
        Err(Standing::Undecided(_)) => None,
        Err(wanted) => return Err(wanted),
    };
    let held = match &other {
        Some(other) if is_held_alone(&spread, other) => Held::EachAddress,
        Some(other) if other.moved() && is_about_all(other, &spread) => Held::OurAddress,
        // Neither the one nor the other: then what the first flip showed may be chance.
        Some(other) => {
            let text = format!("{}, but {}", tell(gap, &spread, &before), tell(gap, other, &before));
            return Err(Standing::Undecided(gap.evidence(&other.view, text)));
        }
        None => Held::OneOfBoth,
    };
    Ok(found(gap, &before, held, &spread, other.as_deref()))
}

/// What is held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    EachAddress,
    OurAddress,
    OneOfBoth,
}

/// Excludes, without a probe of its own, what no limit makes.
fn may_be_held_up(gap: &Gap<'_>, before: &View<'_>) -> Result<(), Standing> {
    let slow = gap.slow_name();
    let failed = failed_share(before.slow);
    if failed > FAILING {
        let text = format!(
            "{:.0} % of the requests to {slow} failed: how fast the others were tells nothing of a limit",
            100.0 * failed
        );
        return Err(Standing::Undecided(gap.evidence(before, text)));
    }
    let held_up = [phase::CONNECT, phase::SEND, phase::WAIT, phase::RECEIVE];
    if let Some(share) = phase_share(before, &held_up).filter(|share| *share < Flip::NOTEWORTHY) {
        let text = format!(
            "{:.0} % of the extra time is in connecting, waiting and receiving: a limit holds these up",
            100.0 * share.max(0.0)
        );
        return Err(Standing::RuledOut(gap.evidence(before, text)));
    }
    if !gap.has_host(gap.slow) {
        return Ok(());
    }
    let demand = match gap.demands() {
        DemandLook::Shown(demands) => demands.slow,
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(_) => return Ok(()),
    };
    let repeat = Some("top -H -b -n 1 | head -n 20".to_owned());
    let ruled_out = |text: String| Err(Standing::RuledOut(gap.on_host(text, repeat.clone())));
    if let Some((cpu_ns, op_ns)) = demand.per_op("process.cpu_ns").zip(before.slow_ns())
        && cpu_ns >= WORKING * op_ns
    {
        return ruled_out(format!(
            "{slow} computes for {:.0} % of a request's time: no limit does that",
            100.0 * cpu_ns / op_ns
        ));
    }
    let busiest = workers(demand).and_then(|workers| workers.into_iter().reduce(f64::max));
    if let Some(share) = busiest.filter(|share| *share >= FULL) {
        return ruled_out(format!(
            "a worker of {slow} computes for {:.0} % of the time: no limit holds it up",
            100.0 * share
        ));
    }
    let cpus = allowed_cpus(gap, gap.slow).map(|cpus| cpus.len() as f64);
    if let Some((used, cpus)) = demand.share_of_time("process.cpu_ns").zip(cpus)
        && used >= FULL * cpus
    {
        return ruled_out(format!("{slow} uses {used:.1} of its {cpus:.0} CPUs all the time: no limit holds it up"));
    }
    Ok(())
}

/// Whether one other address is held up as the usual one is: it moves less than half of what several do, beyond the interval,
/// or several do better than it beyond both intervals. (Under a tight limit a slot holds few requests, and intervals are
/// wide; of a large gap a few addresses take a small share.)
fn is_held_alone(spread: &Flip<'_>, other: &Flip<'_>) -> bool {
    let (of_other, half) = (other.gone.compared(), 0.5 * spread.gone.compared().mid);
    let apart = spread.view.log.high() < other.view.log.low();
    !other.moved() && (of_other.high() < half || (of_other.mid < half && apart))
}

/// Whether one other address takes away about as much as several do.
fn is_about_all(other: &Flip<'_>, spread: &Flip<'_>) -> bool {
    other.gone.compared().mid >= Flip::EXPLAINS * spread.gone.compared().mid
}

/// The judgement where connections cannot be spread, because of `why`.
fn from_one_other<'a>(gap: &Gap<'a>, before: &View<'a>, why: &str) -> Result<Standing, Standing> {
    let other = shown_under_load(gap, SOURCE_OTHER, before)?;
    if other.moved() {
        return Ok(found(gap, before, Held::OurAddress, &other, None));
    }
    let text = format!("{}; whether each address is limited was not to be seen: {why}", tell(gap, &other, before));
    Err(Standing::Undecided(gap.evidence(&other.view, text)))
}

fn tell(gap: &Gap<'_>, flip: &Flip<'_>, before: &View<'_>) -> String {
    gap.tell_flip_against(flip, Some(before))
}

fn found(gap: &Gap<'_>, before: &View<'_>, held: Held, spread: &Flip<'_>, other: Option<&Flip<'_>>) -> Standing {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let ranges = sources(gap, spread.kind);
    let addresses = ranges.iter().map(|range| range.count() as f64).sum::<f64>();
    // By the slow side's own rates: what a limit makes them does not scatter with the fast side's.
    let growth = before.slow.rate_per_s.zip(spread.view.slow.rate_per_s).map_or(1.0, |(before, now)| now / before);
    let in_proportion = held == Held::EachAddress
        && addresses >= 2.0
        && (addresses / IN_PROPORTION..=addresses * IN_PROPORTION).contains(&growth);
    let hides_rest = in_proportion && !spread.confirms();
    let grown = format!("{slow} gets {growth:.1} times as much done over {addresses:.0} addresses as over one");
    let mut evidence = Vec::new();
    let mut text = tell(gap, spread, before);
    if addresses > 1.0 && held != Held::OurAddress {
        text = format!("{text}; {grown}");
    }
    evidence.push(gap.evidence(&spread.view, text));
    evidence.extend(other.map(|other| gap.evidence(&other.view, tell(gap, other, before))));
    let gone = spread.percent();
    let summary = match held {
        Held::EachAddress if hides_rest => format!(
            "{slow}, or the way to it, lets one client address do only so much{}: {grown}, {fast} no more than before. So \
             many addresses are too few to close the gap: {gone} of it is gone so, and the limit hides what else there may \
             be.",
            per_address(&spread.view, addresses)
        ),
        Held::EachAddress => format!(
            "{slow}, or the way to it, lets one client address do only so much{}: with connections spread over \
             {addresses:.0} addresses of this machine {gone} of the gap is gone, and from one other address little of it.",
            per_address(before, 1.0)
        ),
        Held::OurAddress => format!(
            "{slow}, or the way to it, treats the address that this machine connects from worse than its other ones: with \
             connections from {} {gone} of the gap is gone.",
            if addresses > 1.0 { "others" } else { "another one" }
        ),
        Held::OneOfBoth => format!(
            "What {slow} gets done depends on the address that it is asked from: with connections spread over \
             {addresses:.0} other addresses of this machine {gone} of the gap is gone. Whether each address is limited, or \
             this machine's usual one is treated worse, was not shown."
        ),
    };
    let range = ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let by_limit = "a limit for each client address: nginx `limit_req` and `limit_conn` by `$binary_remote_addr`, HAProxy \
                    stick tables (`track-sc0 src`), Apache `mod_qos`; on the machine and on the way `nft list ruleset` and \
                    `iptables-save` (`meter`, `hashlimit`, `connlimit`, sets with `limit rate`), policers; or a balancer \
                    that sends all of one address to one server (`ip_hash`, `balance source`)";
    let by_name = "what names this address or its network: firewall rules and traffic classes by source (`nft list \
                   ruleset`, `tc filter show`), routes by source (`ip rule`), lists of clients in server and balancer \
                   (nginx `geo`, HAProxy `src`)";
    let remedy = match held {
        Held::EachAddress => format!(
            "Look for {by_limit}. Clients behind one address, such as a proxy, meet it as this machine does. To measure \
             what the server can do, exempt this machine, or spread the load: `--source {range}`."
        ),
        Held::OurAddress => format!("Look for {by_name}. `--source {range}` measures without it."),
        Held::OneOfBoth => format!("Look for {by_limit}; and for {by_name}."),
    };
    let confidence = match held {
        Held::OneOfBoth => Confidence::Possible,
        _ if spread.confirms() => Confidence::Confirmed,
        _ => Confidence::Likely,
    };
    let told = Told { summary, remedy, facts: evidence, further: Vec::new() };
    let share = Some(spread.gone.share());
    Standing::Fits(Box::new(Fit {
        moved_ns: moved_under_load_ns(gap, spread).unwrap_or(0.0),
        is_counted: false,
        is_under_load: true,
        hides_rest,
        ..Fit::of(gap, &ENTRY, share, confidence, told)
    }))
}

/// The addresses that connections came from in this probe.
fn sources(gap: &Gap<'_>, kind: Kind) -> Vec<AddressRange> {
    let outcome = gap.case.outcome(&kind.id(gap.mode));
    outcome.and_then(|outcome| outcome.probe.variation.sources.clone()).unwrap_or_default()
}

/// `, about 100 requests per second`.
fn per_address(view: &View<'_>, addresses: f64) -> String {
    let rate = view.slow.rate_per_s.map(|rate| rate / addresses).filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.map_or_else(String::new, |rate| format!(", about {rate:.0} requests per second"))
}
