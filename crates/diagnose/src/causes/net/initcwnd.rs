//! `net.initcwnd`: the slow side begins each new connection with fewer segments, on a distant path.
//!
//! A response that does not fit into the first flight costs whole round trips, which sit in receiving, over TLS in waiting
//! for a whole record, or in a handshake with a long chain. Connecting is as fast, segments are as large, and connections that are kept have grown and do not
//! pay. The machine's routes tell the size of the first flight where it was set.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, fit_by_host};
use crate::evidence::counted::share_of_phases;
use crate::evidence::idle::{Pauses, has_pauses};
use crate::evidence::trip::{MOST_TRIPS, USUAL_SEGMENTS, trips, usual_trips};
use crate::evidence::worth::{needs_gap_alone, reference};
use crate::gap::{Flip, FlipLook, Gap, Look, percent, phase_differences};
use crate::probes::{KEPT, RANGE_1};
use duel_model::web::phase;
use duel_model::{Confidence, format_bytes, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.initcwnd",
    description: "the server begins connections with too few segments for a distant path",
    signature: "further round trips in receiving, beyond those that a larger response takes, on new connections \
                only; the route's setting where it is read",
    at_most: "likely",
    needs_machine: false,
};

/// Below, a round trip cannot be told from work.
const NOTICEABLE_TRIP_NS: f64 = 1e6;
/// A round trip more is seen as a little less, for part of the time is spent anyway.
const LEAST_TRIPS: f64 = 0.6;
/// How near to a whole number of round trips the delay has to be, as a part of one.
const WHOLE: f64 = 0.3;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if let Some(reused) = reference.slow.reused_share.filter(|&share| share >= 0.9) {
        let kept = format!("{:.0} % of the requests to {slow} go over a connection that is kept", 100.0 * reused);
        // After a pause a connection may begin anew, with as few segments as a new one.
        if has_pauses(gap.case.plan) && Pauses::of(gap).is_none_or(|pauses| !pauses.are_short()) {
            let text = format!("{kept}, and whether it begins anew after a pause is not known");
            return Err(Standing::Undecided(gap.evidence(reference, text)));
        }
        return Err(Standing::RuledOut(gap.evidence(reference, format!("{kept} and has grown"))));
    }
    let of_routes = [gap.slow, gap.fast].map(|side| first_flight(gap, side));
    if of_routes[0].is_some_and(|segments| segments >= USUAL_SEGMENTS) {
        let text = format!("{slow}'s routes set no smaller first flight than usual");
        return Err(Standing::RuledOut(gap.on_host(text, None)));
    }
    let trips = trips(gap)?;
    let trip_ns = trips.slow.typical.mid;
    let way = format!(
        "a round trip to {slow} takes {}, to {fast} {}",
        format_duration_ns(trip_ns),
        format_duration_ns(trips.fast.typical.mid)
    );
    if trip_ns < NOTICEABLE_TRIP_NS {
        let text = format!("{way}: too short for its number to matter");
        return Err(Standing::RuledOut(gap.evidence(&trips.seen, text)));
    }
    needs_gap_alone(gap, None)?;
    let extra = trips.extra();
    if extra.mid.abs() > 0.25 * trip_ns {
        let text = format!("{way}: the way itself differs");
        return Err(Standing::Undecided(gap.evidence(&trips.seen, text)));
    }
    let bytes = reference.slow.bytes_in_per_op.unwrap_or(0.0);
    let segment = |side| gap.count(side, web::SEGMENT_BYTES).map(|bytes| bytes as f64);
    if segment(gap.slow).is_some_and(|segment| bytes <= segment) {
        let text = format!("a response of {} takes a single segment", format_bytes(bytes));
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    let differences = phase_differences(reference);
    let of = |wanted| differences.iter().find(|(phase, _)| *phase == wanted).map_or(0.0, |(_, ns)| *ns);
    let connects = 1.0 - reference.slow.reused_share.unwrap_or(0.0);
    // The answer's first flight arrives at the end of waiting; what did not fit into it is received later, or waited for.
    let waiting_ns = for_whole_records_ns(gap, of(phase::WAIT), trip_ns)?;
    let [in_handshake, receiving] =
        [of(phase::TLS), of(phase::RECEIVE) + waiting_ns].map(|ns| ns / connects.max(0.1) / trip_ns);
    // A larger response takes more flights, however many segments the first one has.
    let usual = [(gap.slow, reference.slow), (gap.fast, reference.fast)].map(|(side, seen)| {
        let [bytes, segment] = [seen.bytes_in_per_op, segment(side)].map(|known| known.unwrap_or(0.0));
        usual_trips(bytes, segment)
    });
    let by_size = (usual[0] - usual[1]).max(0.0);
    let flights = [in_handshake, receiving - by_size];
    let told = format!(
        "{way}; {} {:.1} round trips more, the handshake {:.1}{}",
        if waiting_ns > 0.0 { "waiting for whole TLS records and receiving take" } else { "receiving takes" },
        receiving.max(0.0),
        flights[0].max(0.0),
        if by_size > 0.0 {
            format!("; for its larger response {by_size:.0} more would be usual")
        } else {
            String::new()
        }
    );
    let known_small = of_routes[0].is_some();
    if flights[1] < LEAST_TRIPS && !(known_small && flights[0] >= LEAST_TRIPS) {
        return Err(Standing::RuledOut(gap.evidence(reference, told)));
    }
    let open = |why: &str| Standing::Undecided(gap.evidence(reference, format!("{told}{why}")));
    let whole = |trips: f64| (trips - trips.round()).abs() <= WHOLE;
    // A handshake may take longer for its signature as well.
    let key = |side| gap.text(side, web::CERTIFICATE_KEY);
    let has_flights = whole(flights[0]) && (known_small || key(gap.slow) == key(gap.fast));
    let in_all = flights[1].max(0.0) + if has_flights { flights[0].max(0.0) } else { 0.0 };
    if in_all > MOST_TRIPS || !whole(flights[1]) {
        return Err(open(": that is no small number of whole round trips"));
    }
    if segment(gap.slow).zip(segment(gap.fast)).is_none_or(|(slow, fast)| slow < 0.8 * fast) {
        return Err(open(", but segments are not known to be equally large"));
    }
    let extra_ns = in_all * connects * trip_ns;
    let Some(share) = share_of_phases(reference, extra_ns).filter(|&share| share >= Flip::NOTEWORTHY) else {
        return Err(open(": that is not worth the gap"));
    };
    let route = of_routes.map(|segments| segments.map_or_else(|| "the usual 10".to_owned(), |n| format!("{n:.0}")));
    let mut facts = vec![gap.evidence(reference, told.clone())];
    if known_small {
        let special = gap.host_fact(gap.slow, "route.special").map(sanitize_line).unwrap_or_default();
        facts.push(gap.on_host(format!("routes of {slow}'s machine: {special}"), Some("ip route show".to_owned())));
    }
    let told_all = |facts| Told {
        summary: format!(
            "{slow} begins each new connection with too few segments{}: on a path of {} a response of {} takes {:.0} \
             round trips more, which makes {} of the gap.",
            if known_small { format!(" ({} instead of {})", route[0], route[1]) } else { String::new() },
            format_duration_ns(trip_ns),
            format_bytes(bytes),
            in_all.round(),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s machine, `ip route show` tells `initcwnd` where it is set; `ip route change ... initcwnd 10` \
             sets the usual value. Balancers and content delivery networks have a setting of that name. Kept \
             connections grow once and stay."
        ),
        facts,
        further: Vec::new(),
    };
    if known_small && of_routes[1].is_none_or(|fast| fast > of_routes[0].unwrap_or(0.0)) {
        return Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told_all(facts)));
    }
    // Without the route: connections that are kept do not pay for growing. That leaves out connecting as well, which
    // is as fast on both sides.
    match gap.flip(KEPT) {
        FlipLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => Err(open(&format!(", but {why}"))),
        FlipLook::Shown(flip) if !flip.moved() => Err(did_not_move(gap, &flip)),
        FlipLook::Shown(flip) => {
            // Kept connections leave out all of connecting: what these round trips make of it is less.
            Ok(fit(gap, &ENTRY, &flip, Confidence::Likely, told_all(facts)).with(|fit| {
                fit.finding.explains = fit.finding.explains.map(|by_flip| by_flip.min(share));
                fit.moved_ns = fit.moved_ns.min(extra_ns);
            }))
        }
    }
}

/// Of the longer waiting, what is waited for flights: over TLS nothing of a response can be read before the whole of its first
/// record is there, up to 16 kB. So it is not waited for a single byte, which fits into any flight.
fn for_whole_records_ns(gap: &Gap<'_>, waiting_ns: f64, trip_ns: f64) -> Result<f64, Standing> {
    let is_long = |ns: f64| ns >= LEAST_TRIPS * trip_ns;
    if !gap.uses_tls(gap.slow) || !is_long(waiting_ns) {
        return Ok(0.0);
    }
    let first_byte = match gap.look(RANGE_1) {
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(_) => return Ok(0.0),
        Look::Shown(view) => view,
    };
    let differences = phase_differences(&first_byte);
    let for_a_byte_ns = differences.iter().find(|(phase, _)| *phase == phase::WAIT).map_or(0.0, |(_, ns)| *ns);
    Ok((waiting_ns - for_a_byte_ns.max(0.0)).max(0.0))
}

/// The smallest first flight that a side's routes set, in segments: 10 where none sets any; `None` where routes are not
/// known, as those of IPv6 are. Which of the routes leads to us is not told, so one that is small is taken as a hint that timing has to bear out.
fn first_flight(gap: &Gap<'_>, side: usize) -> Option<f64> {
    if gap.text(side, web::PEER).is_some_and(|peer| peer.starts_with('[')) {
        return None;
    }
    let routes = gap.host_fact(side, "route.special")?;
    let set = routes.split("initcwnd ").skip(1).filter_map(|rest| {
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        number.parse::<f64>().ok().filter(|&segments| segments > 0.0)
    });
    Some(set.fold(USUAL_SEGMENTS, f64::min))
}
