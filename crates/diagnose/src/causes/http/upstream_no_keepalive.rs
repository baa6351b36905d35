//! `http.upstream-no-keepalive`: what serves connects anew, for each request, to the server that it asks in turn.
//!
//! Our own connections are kept or not, as on the fast side; so closing them everywhere moves nothing. On the machines:
//!
//! * both sides hand requests on: answers arrive in their networks once more. Where the fast side answers by itself, what the
//!   slow one connects to is a part of a further hop;
//! * the slow side's network opens about a connection for each request that we did not open, and the fast side's does not.
//!
//! What that is worth is the CPU time that the slow side's machine spends beyond the fast side's, and over one connection no more than
//! one more connection for each request costs the fast side: that is measured, by closing ours; with TLS where the slow side's
//! network also receives what a handshake brings. Where less is counted, two processes that wake each other once more may take the rest,
//! which nobody counts: it is possible, as long as the gap is no more than two such connections. A far upstream makes connecting
//! longer; that cannot be told from a slow one. Over Unix sockets nothing is counted.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::causes::likes;
use crate::evidence::fronts::{Fronts, waits_longer};
use crate::evidence::worth::{demands, reference, share_of_log, share_of_resource};
use crate::gap::{Demands, Flip, Gap, Look, View};
use crate::probes::{ALL_CLOSE, KEPT, Mode};
use duel_model::web::phase;
use duel_model::{Confidence, HostDemand, TargetObservation, format_duration_ns, format_figure, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.upstream-no-keepalive",
    description: "a front connects anew to the server behind it for each request",
    signature: "hosts: answers arrive once more on both, and the slow side's network opens a connection for each request that \
                is none of ours; its further CPU time is worth the gap, as far as one more connection to the fast side \
                takes as long (with its handshake where those behind it bring one)",
    at_most: "likely, by the CPU time counted; possible where that is little and the gap is no more than two connections to the \
              fast side",
    needs_machine: true,
};

/// Two processes have a part in a connection at either end, and our own is one of the two where the fast side's is measured.
const MOST_CONNECTIONS: f64 = 2.0;

/// What the first flight of a server over TLS carries at least: its hello, a certificate with an elliptic key, a signature and its
/// end (RFC 8446, section 4).
const LEAST_HANDSHAKE_BYTES: f64 = 500.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let reference = reference(gap)?;
    let waits = waits_longer(gap, reference)?;
    let demands = demands(gap)?;
    let fronts = Fronts::of(gap, &demands)?;
    let open = |text: String| Standing::Undecided(gap.on_host(text, None));
    let counted = format!(
        "for each request {slow}'s network opens {} connections besides ours, {fast}'s {}",
        format_figure(fronts.slow.opened),
        format_figure(fronts.fast.opened)
    );
    // What is asked over Unix sockets is not counted: few are no acquittal.
    if !fronts.slow_connects_anew() {
        return Err(open(counted));
    }
    if !(fronts.slow.hands_on && fronts.fast.hands_on) {
        return Err(open(format!("{counted}; but not both are seen to hand requests on")));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|other| open(format!("{counted}; but {other} fits as well"))))?;
    }
    // Where ours are closed as well, those have their part in it.
    let connects = |index| gap.reused_share(index).map_or(0.0, |share| 1.0 - share);
    let ours = (connects(gap.slow) - connects(gap.fast)).max(0.0);
    let part = fronts.further_opened / (fronts.further_opened + ours);
    let further_ns = further_cpu_ns(&demands, fronts.longer)
        .map(|ns| part * ns)
        .ok_or_else(|| open(format!("{counted}; what CPU time that takes is not known")))?;
    let shakes_hands =
        gap.uses_tls(gap.fast) && fronts.further_received >= LEAST_HANDSHAKE_BYTES * fronts.further_opened;
    let connection_ns = match gap.mode {
        Mode::Alone => connection_ns(gap, reference, shakes_hands)?,
        Mode::Loaded => None,
    };
    let share = match (gap.mode, connection_ns) {
        (Mode::Alone, Some(most_ns)) => share_of_log(reference, further_ns.min(most_ns)),
        (Mode::Alone, None) => None,
        (Mode::Loaded, _) => {
            all_cpu_ns(demands.slow).and_then(|all| share_of_resource(gap, reference, further_ns, all))
        }
    };
    let by_cpu = share.filter(|share| *share >= Flip::NOTEWORTHY);
    let is_that_long = connection_ns.zip(reference.difference_ns()).is_some_and(|(connection, gap)| {
        gap.mid <= MOST_CONNECTIONS * connection && connection >= Flip::NOTEWORTHY * gap.mid
    });
    let of_connection = connection_ns.map_or_else(String::new, |ns| {
        let tls = if shakes_hands { " and its TLS handshake" } else { "" };
        format!("; one more connection{tls} for each request to {fast} takes {}", format_duration_ns(ns))
    });
    let facts = format!(
        "{counted}; a request takes {} more of CPU on {slow}'s machine{of_connection}",
        format_duration_ns(further_ns)
    );
    if by_cpu.is_none() && !(waits == Some(true) && is_that_long) {
        return Err(open(format!("{facts}: that is not seen to be worth the gap")));
    }
    let worth = match by_cpu {
        Some(share) => format!("The further CPU time is worth {:.0} % of the gap.", 100.0 * share),
        None => "The further CPU time is not worth the gap by itself, but as long as such a connection takes, the gap is: how \
                 much of it connecting makes cannot be told."
            .to_owned(),
    };
    let program = gap.server_program(gap.slow).map_or_else(|| "what serves".to_owned(), sanitize_line);
    let told = Told {
        summary: format!("{program} of {slow} connects anew to the server behind it: {facts}. {worth}"),
        remedy: format!(
            "Let {slow} keep connections to the server behind it: nginx `keepalive` in `upstream`, with `proxy_http_version 1.1` \
             and `proxy_set_header Connection \"\"` (of FastCGI `fastcgi_keep_conn on`); HAProxy `http-reuse` and no \
             `http-server-close`; Apache `ProxyPass` without `disablereuse=On`; and let that server keep them. `ss -tn state \
             time-wait` on its machine shows one for each request else."
        ),
        facts: vec![gap.on_host(facts, Some("nstat -az TcpActiveOpens TcpPassiveOpens".to_owned()))],
        further: Vec::new(),
    };
    let confidence = if by_cpu.is_some() { Confidence::Likely } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, by_cpu, confidence, told))
}

/// What one more connection for each request costs the fast side and us, ns; with its handshake where those behind the front have one, too, and
/// the fast side shows what one takes. `None` where it could not be measured.
fn connection_ns(gap: &Gap<'_>, reference: &View<'_>, shakes_hands: bool) -> Result<Option<f64>, Standing> {
    let is_kept = needs_http(gap)?.keepalive;
    match gap.look(if is_kept { ALL_CLOSE } else { KEPT }) {
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(_) => Ok(None),
        Look::Shown(view) => {
            let tls_ns = |seen: &TargetObservation| match shakes_hands {
                true => 0.0,
                false => seen.phase_mean_ns.get(&phase::TLS.id()).copied().unwrap_or(0.0),
            };
            let counted_ns = |view: &View<'_>| Some(view.fast_ns()? - tls_ns(view.fast));
            let both = counted_ns(&view).zip(counted_ns(reference));
            let ns = both.map(|(other, here)| if is_kept { other - here } else { here - other });
            Ok(ns.map(|ns| ns.max(0.0)))
        }
    }
}

/// CPU time per op of a machine, whoever spends it, without the load generator's.
fn all_cpu_ns(demand: &HostDemand) -> Option<f64> {
    Some(demand.per_op("process.cpu_ns")? + demand.others_cpu_per_op()?)
}

/// What the slow side's machine spends beyond the fast side's. What others do there all the time is more for each op where ops take
/// longer, so of theirs only what the fast side's would not have come to in that time.
fn further_cpu_ns(demands: &Demands<'_>, longer: f64) -> Option<f64> {
    let (slow, fast) = (demands.slow, demands.fast?);
    let by_front = slow.per_op("process.cpu_ns")? - fast.per_op("process.cpu_ns")?;
    let by_others = slow.others_cpu_per_op()? - longer * fast.others_cpu_per_op()?;
    Some((by_front + by_others.max(0.0)).max(0.0))
}
