//! Servers that ask another server for each request, as far as the networks of their machines and the wait for answers tell.

use crate::cause::Standing;
use crate::gap::{DemandLook, Demands, Flip, Gap, Look, ON_HOST, View, phase_share};
use crate::probes::Mode;
use duel_model::web::phase;
use duel_model::{Evidence, HostDemand, Phase, TargetObservation};

/// Heads of IPv4 and TCP with its timestamps: what a segment has besides what it carries.
const HEAD_BYTES: f64 = 52.0;

/// By so much the head of IPv6 is longer.
const IPV6_FURTHER_BYTES: f64 = 20.0;

/// An answer that was handed on has come with a head. With that of the request before it, which arrives as well where who answers is in the same
/// network, there are no fewer bytes.
const LEAST_HEADS_BYTES: f64 = 100.0;

/// Least bytes of an answer without a body: those of a head that says little (HTTP/2, FastCGI).
const LEAST_ANSWER_BYTES: f64 = 30.0;

/// An answer is not made of less than this part of it that is asked for elsewhere, but for what is no data.
const LEAST_DATA: f64 = 0.02;

/// Heads of segments without timestamps.
const SHORTEST_HEAD_BYTES: f64 = 40.0;

/// Programs that mostly hand on what others answer. Some of them answer from a cache, or by themselves.
pub(crate) const PROXIES: [&str; 14] = [
    "haproxy",
    "envoy",
    "traefik",
    "varnishd",
    "squid",
    "pound",
    "hitch",
    "stunnel",
    "stunnel4",
    "relayd",
    "linkerd2-proxy",
    "trafficserver",
    "traffic_server",
    "kube-proxy",
];

/// Web servers that are as often used in front of another one.
pub(crate) const FRONTS: [&str; 13] = [
    "nginx",
    "apache2",
    "httpd",
    "caddy",
    "lighttpd",
    "h2o",
    "openresty",
    "angie",
    "unitd",
    "uwsgi",
    "litespeed",
    "lshttpd",
    "openlitespeed",
];

/// From so many further connections per op on a front connects anew: one that keeps too few for its load still keeps some.
const MOST_REQUESTS: f64 = 0.5;

/// What the networks of both servers tell of whom these ask.
pub(crate) struct Fronts {
    pub(crate) slow: Asking,
    pub(crate) fast: Asking,
    /// Connections per op that the slow side opens beyond the fast one. What opens some all the time, for whomever, opens more for each
    /// op where ops take longer; as many as the fast side shows of that are none of them.
    pub(crate) further_opened: f64,
    /// Bytes per op that arrive on the slow side beyond the fast one, without the heads of segments and what a larger answer has.
    pub(crate) further_received: f64,
    /// How many times as long an op takes on the slow side: as many times as much goes on meanwhile that is none of it.
    pub(crate) longer: f64,
}

/// What one of them tells, per op.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking {
    /// Connections that are opened there, and not by our load.
    pub(crate) opened: f64,
    /// Bytes that arrive there, without our requests, what our load receives and the heads of segments.
    received: f64,
    /// The answer arrives there once more, as it does where what is asked is another process or another machine.
    pub(crate) hands_on: bool,
    /// Hardly anything of an answer arrives there. In between it is not known: who is asked may answer in fewer bytes.
    pub(crate) answers_alone: bool,
}

impl Fronts {
    /// Of what the machines counted. By how much either was slower meanwhile does not matter.
    pub(crate) fn of(gap: &Gap<'_>, demands: &Demands<'_>) -> Result<Self, Standing> {
        let Look::Shown(seen) = gap.look(gap.hosts()) else {
            let text = "what was answered meanwhile is not known";
            return Err(Standing::Undecided(gap.on_host(text.to_owned(), None)));
        };
        Self::beside(gap, demands, &seen)
    }

    /// The same beside what was answered meanwhile.
    pub(crate) fn beside(gap: &Gap<'_>, demands: &Demands<'_>, seen: &View<'_>) -> Result<Self, Standing> {
        let open = |text: &str| Standing::Undecided(gap.on_host(text.to_owned(), None));
        let fast_demand = demands.fast.ok_or_else(|| open("the other machine is not read"))?;
        let of_slow = Asking::of(gap, gap.slow, demands.slow, seen.slow);
        let of_fast = Asking::of(gap, gap.fast, fast_demand, seen.fast);
        let (Some(slow), Some(fast)) = (of_slow, of_fast) else {
            return Err(open("which connections the machines open, and how many bytes they receive, is not known"));
        };
        let time_per_op = |demand: &HostDemand| demand.elapsed_ns as f64 / demand.ops.max(1) as f64;
        let longer = (time_per_op(demands.slow) / time_per_op(fast_demand)).max(1.0);
        let further_opened = (slow.opened - longer * fast.opened).max(0.0);
        let answer_bytes = seen.slow.bytes_in_per_op.zip(seen.fast.bytes_in_per_op);
        let larger_bytes = answer_bytes.map_or(0.0, |(of_slow, of_fast)| (of_slow - of_fast).max(0.0));
        let further_received = slow.received - fast.received - larger_bytes;
        Ok(Self { slow, fast, further_opened, further_received, longer })
    }
}

/// How a cause stands that was ruled out by what the slow side's server itself does or may do. Where it hands requests on, those whom it hands
/// them to may do that, or be held up so, and they are not read: then it is left open.
pub(crate) fn unless_handed_on(gap: &Gap<'_>, standing: Standing) -> Standing {
    let Standing::RuledOut(seen) = standing else { return standing };
    // What a probe shows from outside holds for whoever does the work.
    if seen.probe != ON_HOST {
        return Standing::RuledOut(seen);
    }
    if gap.case.http().is_none() || !gap.has_host(gap.slow) {
        return Standing::RuledOut(seen);
    }
    let demands = match gap.demands() {
        DemandLook::NotAsked(probe) => return Standing::Wants(vec![probe]),
        DemandLook::Missing(_) => None,
        DemandLook::Shown(demands) => Some(demands),
    };
    let received = demands
        .zip(gap.look(gap.hosts()).shown())
        .and_then(|(demands, view)| Received::of(gap, gap.slow, demands.slow, view.slow));
    let but = match received {
        Some(received) if received.is_handed_on => {
            "it hands requests on, and whoever does the rest of the work is not read"
        }
        Some(_) if demands.is_some_and(|demands| others_may_answer(gap, demands.slow)) => {
            "others on its machine compute meanwhile, and may do its work: handing on over a Unix socket is not seen"
        }
        Some(received) if received.is_no_answer => return Standing::RuledOut(seen),
        Some(_) | None => "whether it hands requests on, and to whom, is not known",
    };
    Standing::Undecided(Evidence { text: format!("{}; but {but}", seen.text), ..seen })
}

/// Of a program that is often a front: over a Unix socket nothing arrives in a network, but others need a CPU.
fn others_may_answer(gap: &Gap<'_>, demand: &HostDemand) -> bool {
    let is_front =
        gap.server_program(gap.slow).is_some_and(|program| FRONTS.contains(&program) || PROXIES.contains(&program));
    let interrupts_ns = ["cpu.softirq_ns", "cpu.irq_ns"].iter().filter_map(|key| demand.per_op(key)).sum::<f64>();
    let works = demand.others_cpu_per_op().zip(demand.per_op("process.cpu_ns")).zip(demand.per_op("cpu.busy_ns"));
    // Of interrupts the part is taken off that others have of all work: most kernels count them for whom they interrupt.
    is_front
        && works.is_none_or(|((others_ns, own_ns), busy_ns)| {
            others_ns * (1.0 - interrupts_ns / busy_ns.max(1.0)) >= Flip::NOTEWORTHY * own_ns
        })
}

impl Fronts {
    /// For most requests the slow side connects anew, and the fast side does not.
    pub(crate) fn slow_connects_anew(&self) -> bool {
        self.further_opened >= MOST_REQUESTS
    }
}

impl Asking {
    fn of(gap: &Gap<'_>, index: usize, demand: &HostDemand, seen: &TargetObservation) -> Option<Self> {
        let by_us = if holds_our_load(gap, index, demand) { 1.0 - seen.reused_share? } else { 0.0 };
        let received = Received::of(gap, index, demand, seen)?;
        let opened = (demand.per_op("tcp.opened")? - by_us).max(0.0);
        let (hands_on, answers_alone) = (received.is_handed_on, received.is_no_answer);
        Some(Self { opened, received: received.bytes, hands_on, answers_alone })
    }
}

/// Bytes per op that arrive in the server's network, without our requests, what our load receives and the heads of segments.
struct Received {
    bytes: f64,
    /// The answer is among them.
    is_handed_on: bool,
    /// They are too few for it, and for what it is made of.
    is_no_answer: bool,
}

impl Received {
    fn of(gap: &Gap<'_>, index: usize, demand: &HostDemand, seen: &TargetObservation) -> Option<Self> {
        // Both are bytes as they were sent: handshakes and records of TLS are among them, and none of what a front asks for.
        let answers = if holds_our_load(gap, index, demand) { seen.bytes_in_per_op? } else { 0.0 };
        let requests = if goes_over_network(gap) { seen.bytes_out_per_op? } else { 0.0 };
        let segments = demand.per_op("tcp.received_segments")?;
        let by_ipv6 = IPV6_FURTHER_BYTES * demand.per_op("ip.received_ipv6_packets").unwrap_or(0.0);
        let all = demand.per_op("ip.received_bytes")? - by_ipv6 - answers - requests;
        let bytes = all - HEAD_BYTES * segments;
        // Too many were taken off where segments have no timestamps.
        let most_bytes = if bytes < 0.0 { all - SHORTEST_HEAD_BYTES * segments } else { bytes };
        let body_bytes = seen.body_bytes_per_op?;
        Some(Self {
            bytes,
            // The body may have come in the clear, and the head that it came with is another one.
            is_handed_on: bytes >= body_bytes + LEAST_HEADS_BYTES,
            is_no_answer: most_bytes < LEAST_ANSWER_BYTES + LEAST_DATA * body_bytes,
        })
    }
}

/// Our load is not in the counters of networks where it goes over a Unix socket.
fn goes_over_network(gap: &Gap<'_>) -> bool {
    gap.case.http().is_none_or(|http| http.unix_socket.is_none())
}

/// Our load connects from the server's own network only where that is the machine's, and ours.
fn holds_our_load(gap: &Gap<'_>, index: usize, demand: &HostDemand) -> bool {
    demand.generator_cpu_ns > 0 && goes_over_network(gap) && gap.host_fact(index, "process.network") != Some("its own")
}

/// Over one connection: whether the gap sits in waiting for answers and receiving them, all but a little, while
/// connecting takes as long. Ruled out where hardly any of it does. `None` under load, where phases hold queueing.
pub(crate) fn waits_longer(gap: &Gap<'_>, reference: &View<'_>) -> Result<Option<bool>, Standing> {
    if gap.mode == Mode::Loaded {
        return Ok(None);
    }
    let share = |phases: [Phase; 2]| phase_share(reference, &phases);
    let shares = share([phase::WAIT, phase::RECEIVE]).zip(share([phase::DNS, phase::CONNECT]));
    let Some((answering, connecting)) = shares else { return Ok(None) };
    if answering < Flip::NOTEWORTHY {
        let text =
            format!("{:.0} % of the gap is in waiting for the answer and receiving it", 100.0 * answering.max(0.0));
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    Ok(Some(answering >= Flip::EXPLAINS && connecting <= 1.0 - Flip::EXPLAINS))
}
