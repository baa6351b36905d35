//! `net.extra-hop`: something stands between the client and the slow server, and hands each request on.
//!
//! A hop is as near as the server, so connecting takes no longer, and what it costs sits in the wait for the answer. That
//! alone is what any slower server looks like. What tells a hop from it:
//!
//! * from outside a `Via` field that the fast side's answers do not have. What the hop costs stays unknown: possible;
//! * on the machine the program that listens: a proxy, or a front server that has the work done by other processes, over
//!   further TCP segments for each request, which carry the answer once more. A cache that answers by itself is no hop. Another
//!   program that hands answers on is told, and not named: it may be a relay, or an application that asks for its data.
//!   What a request takes of that machine's CPU beyond the fast side's is what the hop is worth at least: likely. Where
//!   that is little, the rest may be what handing on takes besides: two processes more are woken for each request, and an
//!   idle CPU that has to wake up first, a virtual one above all, takes longer for it than they compute. Nobody counts
//!   that. As long as the client's own exchange with the fast side takes, which wakes as many, it is possible.
//!
//! A hop on another machine that leaves no trace cannot be told.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::evidence::counted;
use crate::evidence::fronts::{FRONTS, Fronts, PROXIES, waits_longer};
use crate::evidence::worth::{demands, reference, share_of_resource};
use crate::gap::{Demands, Flip, Gap, View};
use duel_model::{Confidence, HostDemand, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.extra-hop",
    description: "a proxy or balancer stands in front of the server and hands each request on",
    signature: "hosts: a proxy or a front listens, and further segments carry the answer once more; from outside a \
                `Via` field",
    at_most: "likely, by the CPU time counted; possible where that is little and the gap is no more than one more \
              exchange like that with the fast side; possible from outside, and over a Unix socket",
    needs_machine: false,
};

/// A request that is handed on and its answer are two segments at least, one each way; each is sent and received on the
/// machine. What clients acknowledge apart differs from side to side by some tenths.
const LEAST_SEGMENTS: f64 = 1.5;

/// Confidence of the intervals that tell a hop from what others send: that of flips.
const SURE: f64 = 0.995;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let reference = reference(gap)?;
    let waits = waits_longer(gap, reference)?;
    if gap.has_host(gap.slow) {
        let demands = demands(gap)?;
        if let Some(standing) = by_machine(gap, reference, waits, &demands) {
            return Ok(standing);
        }
    }
    Ok(by_field(gap, reference, waits))
}

/// From outside: a `Via` field that only the slow side has.
fn by_field(gap: &Gap<'_>, reference: &View<'_>, waits: Option<bool>) -> Standing {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let via = |side| gap.text(side, web::VIA);
    let Some(of_slow) = via(gap.slow).filter(|_| via(gap.fast).is_none()) else {
        let text = format!("nothing that can be seen tells whether something stands in front of {slow} alone");
        return Standing::Undecided(gap.first_contact(text));
    };
    let field = format!("{slow}'s answers came by way of `{}`, {fast}'s have no Via field", sanitize_line(of_slow));
    if waits != Some(true) {
        let text = format!("{field}, but the gap is not in waiting for answers alone");
        return Standing::Undecided(gap.evidence(reference, text));
    }
    let told = Told {
        summary: format!(
            "A proxy may be what makes {slow} slower: {field}, and connecting takes as long, but answers take longer. How \
             much of that is the proxy's cannot be told from outside."
        ),
        remedy: remedy(&slow),
        facts: vec![gap.first_contact(field)],
        further: Vec::new(),
    };
    fit_by_host(gap, &ENTRY, None, Confidence::Possible, told)
}

/// On the machine; `None` where it does not tell.
fn by_machine(gap: &Gap<'_>, reference: &View<'_>, waits: Option<bool>, demands: &Demands<'_>) -> Option<Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let (of_slow, of_fast) = (gap.server_program(gap.slow)?, gap.server_program(gap.fast)?);
    let (on_slow, on_fast) = (Work::of(demands.slow)?, Work::of(demands.fast?)?);
    let proxy = PROXIES.contains(&of_slow) && !PROXIES.contains(&of_fast);
    let further_segments = on_slow.segments - on_fast.segments;
    // An answer that is handed on is received on the machine; so are acknowledgements, of which many small packets of one's
    // own bring as many segments, but hardly any bytes.
    let answer_bytes = reference.slow.bytes_in_per_op.unwrap_or(f64::INFINITY);
    // Where both hand on, or duel is on the machine, a larger answer is received there as often, and is more bytes.
    let larger = answer_bytes / reference.fast.bytes_in_per_op.unwrap_or(answer_bytes).max(1.0);
    let larger = if larger.is_finite() { larger.max(1.0) } else { 1.0 };
    // What others send each other on a busy machine comes in bursts, and differs from slot to slot. What is handed on does not.
    let surely_further = |key: &str, times: f64| {
        let (of_slow, of_fast) = (counted::per_op(demands.slow, key)?, counted::per_op(demands.fast?, key)?);
        Some(of_slow.beyond(times, of_fast, SURE)?.low())
    };
    let arrives_again = surely_further("tcp.received_segments", 1.0).is_some_and(|segments| segments >= LEAST_SEGMENTS)
        && surely_further("ip.received_bytes", larger).is_some_and(|bytes| bytes >= 0.5 * answer_bytes);
    let seems_to = further_segments >= LEAST_SEGMENTS && on_slow.bytes - larger * on_fast.bytes >= 0.5 * answer_bytes;
    // Where both hand on, and one connects anew for that, connecting brings segments too, and TLS certificates with it.
    let fronts = Fronts::of(gap, demands).ok();
    let hands_on = arrives_again
        && fronts.is_none_or(|both| both.slow.hands_on && !(both.fast.hands_on && both.slow_connects_anew()));
    let others_work = on_slow.others_ns - on_fast.others_ns >= Flip::NOTEWORTHY * on_fast.server_ns;
    let front = FRONTS.contains(&of_slow) && hands_on && others_work;
    // Over a Unix socket nothing is counted; then it is possible where others on the machine work for the request.
    let unseen = proxy && !seems_to && others_work;
    if !(proxy && hands_on || front || unseen) {
        let text = format!(
            "{} listens on {slow}'s machine, {} on {fast}'s; {further_segments:.1} further TCP segments for each request",
            sanitize_line(of_slow),
            sanitize_line(of_fast)
        );
        if seems_to && !arrives_again {
            let text = format!("{text}, and they differ so much from slot to slot that they may be of others");
            return Some(Standing::Undecided(gap.on_host(text, None)));
        }
        // A relay may be written in anything. But an application that asks for its data, which the other one holds, looks the same.
        let sign = if hands_on && of_slow != of_fast {
            "they bring the answer once more: it is a relay, or asks another server for its data"
        } else if arrives_again && !hands_on {
            "whether they bring the answer once more is not known"
        } else {
            "no sign of a hop there"
        };
        // Another machine may stand in front of this one.
        return (gap.text(gap.slow, web::VIA).is_none())
            .then(|| Standing::Undecided(gap.on_host(format!("{text}: {sign}"), None)));
    }
    // What both processes spend, less what one does without the hop; no more than the one that hands on spends, or,
    // where that is the front, than the other.
    let extra_ns = (on_slow.all_ns() - on_fast.all_ns()).min(on_slow.server_ns.max(on_slow.others_ns));
    let share = share_of_resource(gap, reference, extra_ns, on_slow.all_ns());
    let facts = format!(
        "{} listens on {slow}'s machine, {} on {fast}'s; a request takes {} of CPU there, {} of it outside of {}, against {} \
         and {}; {further_segments:.1} further TCP segments go over it",
        sanitize_line(of_slow),
        sanitize_line(of_fast),
        format_duration_ns(on_slow.all_ns()),
        format_duration_ns(on_slow.others_ns),
        sanitize_line(of_slow),
        format_duration_ns(on_fast.all_ns()),
        format_duration_ns(on_fast.others_ns)
    );
    let by_cpu = share.filter(|share| *share >= Flip::NOTEWORTHY);
    let by_handing_on = proxy && hands_on && waits == Some(true) && is_one_exchange(reference);
    if by_cpu.is_none() && !by_handing_on {
        // Two more processes may have waited for a CPU each; for how long nobody counts.
        let worth =
            if share.is_some() { "by itself that is not worth the gap" } else { "what that is worth is not known" };
        let text = format!("{facts}: {worth}");
        return Some(Standing::Undecided(gap.on_host(text, None)));
    }
    let worth = if let Some(share) = by_cpu {
        format!("The further CPU time alone is worth {:.0} % of the gap.", 100.0 * share)
    } else {
        let little = share.map_or_else(
            || "What the further CPU time is worth is not known.".to_owned(),
            |share| format!("The further CPU time is worth {:.0} % of the gap only.", 100.0 * share),
        );
        format!(
            "{little} But nearly all that a request to {slow} takes longer is \
             waiting for the answer and receiving it, and no longer than one more exchange like that with {fast}: the one \
             between {} and what is behind it may take that. How much of it does cannot be told.",
            sanitize_line(of_slow)
        )
    };
    let told = Told {
        summary: format!("Requests to {slow} pass through a further process: {facts}. {worth}"),
        remedy: remedy(&slow),
        facts: vec![gap.on_host(facts, Some("ss -tlnp".to_owned()))],
        further: Vec::new(),
    };
    let confidence = if unseen || by_cpu.is_none() { Confidence::Possible } else { Confidence::Likely };
    Some(fit_by_host(gap, &ENTRY, by_cpu, confidence, told))
}

/// Whether a request to the slow side may take no longer than two to the fast side: what is handed on once more needs one
/// exchange more, between neighbours, and not all that the fast side does for its own.
fn is_one_exchange(reference: &View<'_>) -> bool {
    reference.low <= 2.0
}

fn remedy(slow: &str) -> String {
    format!(
        "Ask {slow}'s server directly, past what stands in front of it (`--connect-to HOST:PORT:ADDRESS:PORT`), and compare \
         again. If the hop has to stay: kept connections between it and the server (nginx `keepalive` in `upstream` with \
         `proxy_http_version 1.1`; HAProxy `http-reuse`), and no second encryption behind it."
    )
}

/// What a machine does for each op.
struct Work {
    /// CPU time of the processes that listen, and of all others.
    server_ns: f64,
    others_ns: f64,
    /// TCP segments received: those that processes of one machine send each other too.
    segments: f64,
    /// Bytes in these, headers of IP included.
    bytes: f64,
}

impl Work {
    fn of(demand: &HostDemand) -> Option<Self> {
        let server_ns = demand.per_op("process.cpu_ns")?;
        let others_ns = demand.others_cpu_per_op()?;
        let (segments, bytes) = (demand.per_op("tcp.received_segments")?, demand.per_op("ip.received_bytes")?);
        Some(Self { server_ns, others_ns, segments, bytes })
    }

    fn all_ns(&self) -> f64 {
        self.server_ns + self.others_ns
    }
}
