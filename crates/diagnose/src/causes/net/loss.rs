//! `net.loss`: packets between us and the slow side get lost.
//!
//! What is lost is sent again: after a round trip where later packets tell of it, else after a time-out of 200 ms and
//! more for data, and of 1 s for the first packet of a connection. The machine counts what it sends again. Of what *we* send
//! again TCP tells of requests that were late for it; of first packets it is seen in connecting, where nothing but a lost
//! packet or a full queue costs a second, and a queue is not full for a single connection.
//!
//! A machine that stalls for other reasons (a quota, collection of garbage, swapping) waits as long and sends next to nothing
//! again, and connects in time; where all of a server stands still at once, its longest requests are no lost packets'. A cap that
//! drops what exceeds it loses packets too: it spares small responses.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::counted::{Counted, share_of_phases};
use crate::evidence::lost::{MOST_PER_LOSS_NS, share_of_lost};
use crate::evidence::machines::Machines;
use crate::evidence::stall::{DATA_SENT_AGAIN_NS, SYN_SENT_AGAIN_NS, Stalls, worth_log_of};
use crate::evidence::worth::reference;
use crate::gap::{DemandLook, Demands, Flip, Gap, Look, View, percent};
use crate::probes::RANGE_1;
use duel_model::web::{counter, phase};
use duel_model::{Confidence, Evidence, Nanos, Phase, TargetStalls, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.loss",
    description: "packets get lost on the path and are sent again after time-outs",
    signature: "hosts: segments sent again, as many as the requests in whose longer time the gap lies (and no \
                quota holds the server back, which makes some of it be sent again); from outside: requests that TCP at \
                this end had to send again and that were late for it, or connects of a second and more over one \
                connection",
    at_most: "likely; possible where the fast side's machine is not read, and where no single byte of a long response can be had",
    needs_machine: false,
};

const CONNECT: [(Phase, Nanos); 1] = [(phase::CONNECT, SYN_SENT_AGAIN_NS)];
const ALL: [(Phase, Nanos); 4] = [
    (phase::CONNECT, SYN_SENT_AGAIN_NS),
    (phase::TLS, DATA_SENT_AGAIN_NS),
    (phase::WAIT, DATA_SENT_AGAIN_NS),
    (phase::RECEIVE, DATA_SENT_AGAIN_NS),
];

const WAITING: [(Phase, Nanos); 3] =
    [(phase::TLS, DATA_SENT_AGAIN_NS), (phase::SEND, DATA_SENT_AGAIN_NS), (phase::WAIT, DATA_SENT_AGAIN_NS)];

/// A clean path sends no SYN twice; so three that were are no chance, if the other side had hardly any.
const LEAST_SYNS: f64 = 3.0;
/// The same of other segments.
const LEAST_SENT_AGAIN: f64 = 3.0;
/// As [`MOST_PER_LOSS_NS`] while a connection is made: a time-out of 1 s.
const MOST_PER_LOST_SYN_NS: f64 = 1_100e6;
/// Responses of more segments than this are long enough for a cap to notice, and for their first byte to differ.
const LONG_RESPONSE_BYTES: f64 = 15_000.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let demands = match gap.demands() {
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Shown(demands) => Some(demands),
        DemandLook::Missing(_) => None,
    };
    let sent_again = demands.as_ref().and_then(|demands| SentAgain::of(gap, demands));
    if let Some(sent_again) = &sent_again
        && sent_again.counted.is_marked()
        && let Some(share) = sent_again.share_of_gap(reference)
        && share >= Flip::NOTEWORTHY
    {
        return by_counters(gap, reference, sent_again, share);
    }
    by_our_own(gap, reference, demands.as_ref())
        .map_or_else(|| by_connecting(gap, reference, demands.as_ref(), sent_again.as_ref()), Ok)
}

/// What the slow side's machine sent again under the plan's load.
struct SentAgain {
    counted: Counted,
    told: Evidence,
}

impl SentAgain {
    fn of(gap: &Gap<'_>, demands: &Demands<'_>) -> Option<Self> {
        let counted = Counted::of(demands, "tcp.retransmitted_segments")?;
        let sent = demands.slow.per_op("tcp.sent_segments").filter(|&sent| sent > 0.0)?;
        let other = counted.fast_per_op.map_or_else(String::new, |fast| format!(", {}'s {fast:.4}", gap.fast_name()));
        let text = format!(
            "{}'s machine sent {:.4} segments per request again ({:.2} % of all that it sent){other}",
            gap.slow_name(),
            counted.per_op,
            100.0 * counted.per_op / sent
        );
        let told = gap.on_host(text, Some("nstat -az TcpRetransSegs TcpOutSegs TcpExtTCPTimeouts".to_owned()));
        Some(Self { counted, told })
    }

    /// What it can be worth; `None` where that is less than half of the gap: what was lost may have been others'.
    fn share_of_gap(&self, reference: &View<'_>) -> Option<f64> {
        let kept = reference.slow.reused_share.is_some_and(|share| share >= 0.9);
        let most_per_loss_ns = if kept { MOST_PER_LOSS_NS } else { MOST_PER_LOST_SYN_NS };
        share_of_lost(reference, self.counted.per_op, most_per_loss_ns)
    }
}

/// The machine sends clearly more again. Left to be told from a cap that drops what exceeds it.
fn by_counters(gap: &Gap<'_>, reference: &View<'_>, sent_again: &SentAgain, share: f64) -> Result<Standing, Standing> {
    let no_cap = excludes_caps(gap, reference, &sent_again.told.text)?;
    if let Ok(machines) = Machines::read(gap)
        && machines.slow.is_held_back(&machines.view)
    {
        let text = format!(
            "{}, but a quota held {} back: what that delays others take for lost, and the longest requests are its own",
            sent_again.told.text,
            gap.slow_name()
        );
        return Err(Standing::Undecided(gap.on_host(text, sent_again.told.repeat.clone())));
    }
    // TCP sends again to a server that stands still, too; and a lost packet holds up one connection, not all at once.
    let is_worth_it = |stalls: &TargetStalls| worth_log_of(stalls.share) >= Flip::NOTEWORTHY * gap.comparison.log.mid;
    let stands_still = gap.comparison.slow.stalls.filter(is_worth_it);
    if let Some(stalls) = stands_still {
        let text = format!(
            "{}, but {} stood still for all connections at once for {:.1} % of the time: what that delays others take for lost, and the \
             longest requests are its own",
            sent_again.told.text,
            gap.slow_name(),
            100.0 * stalls.share
        );
        return Err(Standing::Undecided(gap.on_host(text, sent_again.told.repeat.clone())));
    }
    // Where the other machine is not read, it may send as much again.
    let is_more = sent_again.counted.fast_per_op.is_some();
    let confidence = if is_more && no_cap { Confidence::Likely } else { Confidence::Possible };
    Ok(accuse(gap, share, confidence, vec![sent_again.told.clone()]))
}

/// Whether it is known that no cap drops what exceeds it. Such a cap spares small responses; and where no part of a long one can be had, many
/// connections together carry no more than one.
fn excludes_caps(gap: &Gap<'_>, reference: &View<'_>, sent_again: &str) -> Result<bool, Standing> {
    if reference.slow.bytes_in_per_op.is_some_and(|bytes| bytes <= LONG_RESPONSE_BYTES) {
        return Ok(true);
    }
    let may_be_cap = |view: &View<'_>, why: &str| {
        let text = format!("{sent_again}, but {why}: a cap that drops what exceeds it does the same");
        Standing::Undecided(gap.evidence(view, text))
    };
    match gap.look(RANGE_1) {
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Shown(small) if small.log.low() <= 0.0 => {
            Err(may_be_cap(&small, "the first byte of a response comes in time"))
        }
        Look::Shown(_) => Ok(true),
        Look::Missing(_) if carries_no_more(&gap.comparison, reference) => {
            let (slow, over) = (gap.slow_name(), gap.comparison.over(gap.case.plan));
            Err(may_be_cap(&gap.comparison, &format!("{slow} carries hardly more {over} than over one connection")))
        }
        Look::Missing(_) => Ok(false),
    }
}

/// Whether the slow side gets hardly more done over many connections than over one: each that loses packets by itself would add its own.
fn carries_no_more(many: &View<'_>, one: &View<'_>) -> bool {
    const HARDLY_MORE: f64 = 1.25;
    let rates = many.slow.rate_per_s.zip(one.slow.rate_per_s);
    many.connections() > Some(1)
        && one.connections() == Some(1)
        && rates.is_some_and(|(many, one)| many < HARDLY_MORE * one)
}

/// Requests that were late because TCP at our end had to send a segment of theirs again. It did so because no acknowledgement came,
/// which is the kernel's affair at the other end: a server that takes its time does not delay it.
fn by_our_own(gap: &Gap<'_>, reference: &View<'_>, demands: Option<&Demands<'_>>) -> Option<Standing> {
    let [ours, of_fast] = [reference.slow, reference.fast]
        .map(|seen| seen.counted_per_op.get(&counter::SENT_AGAIN.id()).map_or(0.0, |per_op| per_op * seen.ok as f64));
    let [stalls, fast_stalls] = Stalls::of_both(reference, &WAITING)?;
    let fast_ops = reference.fast.ok as f64 / (reference.slow.ok as f64).max(1.0);
    // As rare as what is sent again on a clean path, and most of what stalls: other stalls have other reasons.
    if ours < LEAST_SENT_AGAIN || of_fast > fast_ops * ours / 3.0 || ours < 0.5 * stalls.count {
        return None;
    }
    // A server whose listen queue is full drops what ends the handshake of a new connection: its first request is sent again.
    let is_kept = reference.slow.reused_share.is_some_and(|share| share >= 0.9);
    if !is_kept && queues_overflow(reference, demands, ours) != Some(false) {
        return None;
    }
    let share = share_of_phases(reference, stalls.ns_per_op - fast_stalls.ns_per_op)?;
    let text = format!(
        "{ours:.0} of {} requests to {} had to be sent again by TCP at this end and were late for it, {of_fast:.0} of {} to {}; such \
         stalls take {} per request to {}",
        reference.slow.ok,
        gap.slow_name(),
        reference.fast.ok,
        gap.fast_name(),
        format_duration_ns(stalls.ns_per_op),
        gap.slow_name()
    );
    let told = vec![gap.evidence(reference, text)];
    (share >= Flip::NOTEWORTHY).then(|| accuse(gap, share, Confidence::Likely, told))
}

/// Whether the server's listen queues overflowed, by a tenth as often as `seen` at least; `None`: not known.
fn queues_overflow(reference: &View<'_>, demands: Option<&Demands<'_>>, seen: f64) -> Option<bool> {
    match (reference.connections(), demands) {
        // A single connection does not fill a queue.
        (Some(1), _) => Some(false),
        (_, Some(demands)) => Counted::of(demands, "tcp.listen_overflows")
            .zip(Counted::of(demands, "tcp.listen_drops"))
            .map(|(overflows, drops)| overflows.total.max(drops.total) > 0.1 * seen),
        (_, None) => None,
    }
}

/// First packets of connections that we had to send again.
fn by_connecting(
    gap: &Gap<'_>,
    reference: &View<'_>,
    demands: Option<&Demands<'_>>,
    sent_again: Option<&SentAgain>,
) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let counted = || sent_again.map_or_else(String::new, |sent_again| format!("; {}", sent_again.told.text));
    let open = |text: String| Standing::Undecided(gap.evidence(reference, text));
    let (Some([stalls, of_fast]), Some([syns, fast_syns])) =
        (Stalls::of_both(reference, &ALL), Stalls::of_both(reference, &CONNECT))
    else {
        return Err(open(format!("how the times of phases are spread is not known{}", counted())));
    };
    let stalled_ns = stalls.ns_per_op - of_fast.ns_per_op;
    let told = format!(
        "stalls as long as retransmission time-outs take {} per request to {slow}, {} to {fast}",
        format_duration_ns(stalls.ns_per_op),
        format_duration_ns(of_fast.ns_per_op)
    );
    let Some(share) = share_of_phases(reference, stalled_ns) else {
        return Err(open(format!("{told}, but the time per request is not known")));
    };
    if share < Flip::NOTEWORTHY {
        // Stalls that are little of a large gap may be much beside what the fast side takes: then something else is at work, and not
        // only that.
        let is_little = reference.fast_ns().is_some_and(|fast_ns| stalled_ns < Flip::NOTEWORTHY * fast_ns);
        let excluded = is_little && sent_again.is_some_and(|sent_again| !sent_again.counted.is_marked());
        let text = format!("{told}{}", counted());
        // Without the machine's counters nothing tells of what was sent again before a time-out.
        return Err(if excluded { Standing::RuledOut(gap.evidence(reference, text)) } else { open(text) });
    }
    if syns.count < LEAST_SYNS || fast_syns.count > syns.count / 3.0 {
        return Err(open(format!("{told}{}: that may be stalls of the server as well", counted())));
    }
    let lost = format!(
        "about {:.0} connections to {slow} took as long as a first packet that was sent again (1 s and more), {:.0} to \
         {fast}",
        syns.count, fast_syns.count
    );
    match queues_overflow(reference, demands, syns.count) {
        Some(false) => {
            let facts = vec![gap.evidence(reference, told), gap.evidence(reference, lost)];
            Ok(accuse(gap, share, Confidence::Likely, facts))
        }
        _ => Err(open(format!("{lost}: a listen queue that overflows does the same"))),
    }
}

fn accuse(gap: &Gap<'_>, share: f64, confidence: Confidence, facts: Vec<Evidence>) -> Standing {
    let slow = gap.slow_name();
    let told = Told {
        summary: format!(
            "Packets between here and {slow} get lost, and what is sent again comes late: that makes {} of the gap.",
            percent(share)
        ),
        remedy: format!(
            "`mtr -n HOST` from both ends shows where packets get lost; on {slow}'s machine `nstat -az TcpRetransSegs`, \
             `ip -s link` and `ethtool -S INTERFACE` (errors, drops, overruns), the switch port (duplex, cable), and \
             firewall rules that drop."
        ),
        facts,
        further: Vec::new(),
    };
    fit_by_host(gap, &ENTRY, Some(share), confidence, told)
}
