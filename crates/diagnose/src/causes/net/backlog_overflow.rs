//! `net.backlog-overflow`: more clients connect at once than the slow side's listen queue holds.
//!
//! What does not fit is dropped, and the client asks again after 1 s, 3 s and 7 s. Where only the last packet of
//! connecting is dropped, the client takes the connection for established and sends its first data again after 200 ms
//! and more. Neither happens over a single connection, which tells it from lost packets; the machine counts overflows.
//!
//! So it is looked for under the plan's load, also where the gap shows over one connection: what makes it there, a long
//! filter chain for example, says nothing of the queue.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::counted::{Counted, share_of_phases};
use crate::evidence::stall::{DATA_SENT_AGAIN_NS, SYN_SENT_AGAIN_NS, Stalls};
use crate::evidence::worth::{reference_under_load, too_little};
use crate::gap::{DemandLook, Flip, Gap, Look, View, percent};
use crate::probes::{ALONE, is_https};
use duel_model::web::phase;
use duel_model::{Confidence, Evidence, Nanos, Phase, ServerPlan, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.backlog-overflow",
    description: "the listen queue is too short for those who connect at once",
    signature: "hosts: the listen queue overflows, often enough for stalls of connecting that are worth the gap \
                (1.1 s for each at most); not over one connection",
    at_most: "likely; possible from outside, or where the fast side's machine is not read",
    needs_machine: false,
};

const CONNECT: [(Phase, Nanos); 1] = [(phase::CONNECT, SYN_SENT_AGAIN_NS)];
/// A server that overflowed answers the first data late: the handshake, or the first request.
const CONNECTING: [(Phase, Nanos); 3] =
    [(phase::CONNECT, SYN_SENT_AGAIN_NS), (phase::TLS, DATA_SENT_AGAIN_NS), (phase::WAIT, DATA_SENT_AGAIN_NS)];

/// What one overflow costs who was dropped: the second until the first packet is sent again, and a way there. Of three in a
/// row each costs twice as much (1 s, 2 s, 4 s), so that half of the stalls suffices.
const MOST_PER_OVERFLOW_NS: f64 = 1_100e6;

/// Nobody connects twice for a reason other than loss or overflow; three are no chance.
const LEAST_SYNS: f64 = 3.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = &reference_under_load(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if reference.connections() == Some(1) {
        let text = "there is one connection, for which no queue is too short".to_owned();
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    if let Some(reused) = reference.slow.reused_share.filter(|&share| share >= 0.9) {
        let text = format!("{:.0} % of the requests to {slow} go over a connection used before", 100.0 * reused);
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    let Some([stalls, of_fast]) = Stalls::of_both(reference, &CONNECTING) else {
        let text = "how the times of connecting are spread is not known".to_owned();
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    };
    let told = gap.evidence(
        reference,
        format!(
            "stalls in connecting as long as retransmission time-outs take {} per request to {slow}, {} to {fast}",
            format_duration_ns(stalls.ns_per_op),
            format_duration_ns(of_fast.ns_per_op)
        ),
    );
    let stalled_ns = stalls.ns_per_op - of_fast.ns_per_op;
    let Some(share) = share_of_phases(reference, stalled_ns) else {
        return Err(Standing::Undecided(told));
    };
    if share < Flip::NOTEWORTHY {
        return Err(too_little(gap, reference, share, told));
    }
    let demands = match gap.demands() {
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(_) => return from_outside(gap, reference, share, told),
        DemandLook::Shown(demands) => demands,
    };
    let Some(overflows) = Counted::of(&demands, "tcp.listen_overflows") else {
        return from_outside(gap, reference, share, told);
    };
    let other =
        overflows.fast_per_op.map_or_else(String::new, |per_op| format!(", {fast}'s for {:.2} %", 100.0 * per_op));
    let counted = gap.on_host(
        format!(
            "the listen queue of {slow}'s machine overflowed for {:.2} % of the requests{other}",
            100.0 * overflows.per_op
        ),
        Some("nstat -az TcpExtListenOverflows TcpExtListenDrops".to_owned()),
    );
    if !overflows.is_marked() {
        return Err(Standing::RuledOut(counted));
    }
    // A server that has more to do than it can lets a few overflow, and the others queue for as long.
    let most_ns = overflows.per_op * MOST_PER_OVERFLOW_NS;
    if most_ns < 0.5 * (stalls.ns_per_op - of_fast.ns_per_op) {
        let text = format!("{}; {}: too few for those stalls", told.text, counted.text);
        return Err(Standing::Undecided(Evidence { text, ..counted }));
    }
    // Where the other machine is not read, its queue may overflow as often.
    let confidence = if overflows.fast_per_op.is_some() { Confidence::Likely } else { Confidence::Possible };
    Ok(accuse(gap, share, confidence, vec![told, counted]))
}

/// The judgement without the machine's counters: first packets that were sent again, and none over one connection.
fn from_outside(gap: &Gap<'_>, reference: &View<'_>, share: f64, told: Evidence) -> Result<Standing, Standing> {
    let Some([syns, fast_syns]) = Stalls::of_both(reference, &CONNECT) else { return Err(Standing::Undecided(told)) };
    let alone = match gap.look(ALONE) {
        Look::Shown(view) => Stalls::of(view.slow, &CONNECT).map(|stalls| stalls.count),
        Look::NotAsked(_) | Look::Missing(_) => None,
    };
    // Under one connection there were fewer ops; a single stall among them would be as many as lost packets make.
    if syns.count >= LEAST_SYNS && fast_syns.count <= syns.count / 3.0 && alone.is_some_and(|count| count < 0.5) {
        return Ok(accuse(gap, share, Confidence::Possible, vec![told]));
    }
    Err(Standing::Undecided(told))
}

fn accuse(gap: &Gap<'_>, share: f64, confidence: Confidence, mut facts: Vec<Evidence>) -> Standing {
    let slow = gap.slow_name();
    let port = port(gap, gap.slow);
    let backlog = port.and_then(|port| gap.host_number(gap.slow, &format!("listen.{port}.backlog")));
    let holds = backlog.map_or_else(String::new, |backlog| format!(" (it holds {backlog:.0})"));
    if let Some((port, backlog)) = port.zip(backlog) {
        let most = gap.host_number(gap.slow, "net.core.somaxconn");
        let most = most.map_or_else(String::new, |most| format!("; the system allows {most:.0}"));
        facts.push(gap.on_host(
            format!("the listen queue of port {port} on {slow}'s machine holds {backlog:.0}{most}"),
            Some(format!("ss -ltn 'sport = :{port}'")),
        ));
    }
    let told = Told {
        summary: format!(
            "{slow}'s listen queue{holds} is too short for {} connections at once: who finds it full connects again \
             after a second. That makes {} of the gap.",
            gap.case.plan.load.connections,
            percent(share)
        ),
        remedy: format!(
            "Give {slow} a longer queue: nginx `listen ... backlog=4096`, Apache `ListenBacklog`, HAProxy `backlog`, and \
             the system's limit `sysctl net.core.somaxconn`; restart the server, and look at `ss -ltn`. Kept connections \
             need no queue."
        ),
        facts,
        further: Vec::new(),
    };
    fit_by_host(gap, &ENTRY, Some(share), confidence, told).with(|fit| fit.is_under_load = true)
}

/// The port that the server listens on, as far as plan and address tell.
fn port(gap: &Gap<'_>, side: usize) -> Option<u16> {
    let target = gap.case.plan.targets.get(side)?;
    if let Some(ServerPlan::Port(port)) = target.host.as_ref().map(|host| &host.server) {
        return Some(*port);
    }
    let (_, rest) = target.address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let usual = if is_https(&target.address) { 443 } else { 80 };
    match authority.rsplit_once(':') {
        // `[::1]` has colons and no port.
        Some((_, port)) if !port.ends_with(']') => port.parse().ok(),
        _ => Some(usual),
    }
}
