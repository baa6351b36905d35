//! `net.path-delay`: packets to the slow side and back take longer.
//!
//! Connecting takes one round trip, answered by the kernel: what it takes longer is the way. Each request waits for one
//! round trip too, and pays for connecting, for the handshake, and for starting slowly, as far as it goes through them;
//! so round trips are counted, and the longer way is worth their number times the difference.
//!
//! A chain of thousands of filter rules delays each packet as well, and a slow or busy CPU answers everything late, but
//! these are work: under load they count at least as much as over one connection. A way is only waited for, so load
//! hides it.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::counted::{MOSTLY_WAITING, further_cpu_ns, share_of_phases};
use crate::evidence::filter_rules::{RULE_NS, Rules};
use crate::evidence::trip::trips;
use crate::evidence::worth::{is_hidden_by_load, needs_gap_alone, reference, too_little};
use crate::gap::{DemandLook, Flip, Gap, View, phase_differences};
use duel_model::web::phase;
use duel_model::web::settings::H2_WINDOW;
use duel_model::{Confidence, Phase, format_duration_ns, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.path-delay",
    description: "the network path to the server is longer: each round trip takes more time",
    signature: "connecting takes longer; worth the round trips of a request, and not larger under load",
    at_most: "likely",
    needs_machine: false,
};

/// A kernel answers a SYN within some ten microseconds, and even ten thousand filter rules add a few hundred. From here
/// on a longer way needs no further witness.
const BEYOND_PROCESSING_NS: f64 = 500e3;

/// Segments that a new connection begins with (RFC 6928), and their usual size.
const FIRST_FLIGHT_BYTES: f64 = 10.0 * 1460.0;
/// What a connection without window scaling has under way at most, in bytes: one round trip for each is the slowest
/// that a long response gets.
const SMALLEST_WINDOW_BYTES: f64 = 65_536.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let trips = trips(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let extra = trips.extra();
    let [of_slow, of_fast] = [trips.slow, trips.fast].map(|trip| format_duration_ns(trip.typical.mid));
    let told = format!("connecting to {slow} takes {of_slow} (median), to {fast} {of_fast}");
    let open = |why: &str| Standing::Undecided(gap.evidence(&trips.seen, format!("{told}{why}")));
    // A way is as long for one connection as for many.
    needs_gap_alone(gap, Some(&told))?;
    let waits = receiving_waits(gap, reference);
    let worth = |extra_ns: f64, by_windows| share_of_phases(reference, waited_ns(gap, reference, extra_ns, by_windows));
    // Where nobody knows whether receiving waits for the way, it is no reason to name it, and none to rule it out.
    let share = worth(extra.mid, waits == Some(true));
    let most = worth(extra.high().max(0.0), waits != Some(false));
    let (Some(share), Some(most)) = (share, most) else {
        return Err(open(", and the time per request is not known"));
    };
    let is_beyond_chance = extra.mid > Flip::MANY_LOOKS * extra.below;
    if most < Flip::NOTEWORTHY {
        let text = format!("{told}: that difference makes little of the gap");
        let line = gap.evidence(&trips.seen, text);
        return Err(match is_beyond_chance {
            true => too_little(gap, reference, share, line),
            false => Standing::RuledOut(line),
        });
    }
    if share < Flip::NOTEWORTHY || !is_beyond_chance {
        return Err(open(": whether that is a difference is within chance"));
    }
    if trips.slow.floor_ns - trips.fast.floor_ns < 0.5 * extra.mid {
        return Err(open(", but the shortest times are close: something queues, rather than being far away"));
    }
    let waits_longer =
        phase_differences(reference).into_iter().any(|(phase, ns)| phase == phase::WAIT && ns >= 0.5 * extra.mid);
    if !waits_longer {
        return Err(open(", but answers to requests do not take that much longer"));
    }
    if let Some(rules) = Rules::of(gap, gap.slow).map(|rules| rules.at_least)
        && extra.mid <= 2.0 * RULE_NS * rules
    {
        return Err(open(&format!(", but its packets pass up to {rules:.0} filter rules, which may take as long")));
    }
    if extra.mid < BEYOND_PROCESSING_NS && !is_hidden_by_load(gap, reference) {
        return Err(open(", but so short a delay may as well be work on packets"));
    }

    let extra_shown = format_duration_ns(extra.mid);
    let kept = gap.reused_share(gap.slow).is_some_and(|share| share >= 0.9);
    let told = Told {
        summary: format!(
            "The path to {slow} is longer: a round trip takes {extra_shown} more than to {fast}. {}, that makes {} of \
             the gap.",
            if kept {
                "With one round trip for each request"
            } else {
                "With the round trips for connecting, the request and the response"
            },
            crate::gap::percent(share)
        ),
        remedy: format!(
            "Look where the time goes: `mtr -n HOST` (or `traceroute -n HOST`) from here to both, and routes, VPNs, \
             proxies and wireless links on the way. If {slow} has to stay far away: keep connections open, use TLS \
             1.3, and let a cache or proxy near the clients answer."
        ),
        facts: vec![gap.evidence(&trips.seen, told)],
        further: Vec::new(),
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// Whether what receiving takes longer is waiting, and no work. `None`: the machines do not tell.
fn receiving_waits(gap: &Gap<'_>, reference: &View<'_>) -> Option<bool> {
    let DemandLook::Shown(demands) = gap.demands() else { return None };
    further_cpu_ns(&demands).map(|cpu_ns| cpu_ns <= MOSTLY_WAITING * receive_ns(&phase_differences(reference)))
}

fn receive_ns(differences: &[(Phase, f64)]) -> f64 {
    differences.iter().find(|(phase, _)| *phase == phase::RECEIVE).map_or(0.0, |(_, ns)| *ns)
}

/// Time per op that the slow side's requests wait for the way: in each phase no more than the round trips that belong
/// to it, and no more than the phase really took longer. `by_windows`: a long response may go by windows, with a trip for each.
fn waited_ns(gap: &Gap<'_>, reference: &View<'_>, extra_ns: f64, by_windows: bool) -> f64 {
    let connects = 1.0 - reference.slow.reused_share.unwrap_or(0.0);
    let two = gap.text(gap.slow, web::TLS_VERSION) == Some("1.2");
    let bytes = reference.slow.bytes_in_per_op.unwrap_or(0.0);
    // On a new connection slow start doubles its flights. A long response then goes by windows, if it waits at all.
    let windows = if by_windows { bytes / smallest_window_bytes(gap) } else { 0.0 };
    let flights = connects * (bytes / FIRST_FLIGHT_BYTES + 1.0).log2().floor() + windows;
    let trips = |phase| match phase {
        phase::CONNECT => connects,
        phase::TLS => connects * if two { 2.0 } else { 1.0 },
        phase::WAIT => 1.0,
        phase::RECEIVE => flights,
        _ => 0.0,
    };
    phase_differences(reference).into_iter().map(|(phase, ns)| ns.clamp(0.0, trips(phase) * extra_ns.max(0.0))).sum()
}

/// What is under way at most for each round trip: over HTTP/2 half of the window that the plan sets, where that is less, since leave to
/// send on is given anew when half of it is used up.
fn smallest_window_bytes(gap: &Gap<'_>) -> f64 {
    let of_http2 = gap.case.http().filter(|http| http.http2.is_some()).map(|http| http.number(&H2_WINDOW) as f64 / 2.0);
    of_http2.map_or(SMALLEST_WINDOW_BYTES, |bytes| bytes.min(SMALLEST_WINDOW_BYTES))
}
