//! `net.congestion-control`: the slow side's server decides by another algorithm how much may be under way, over a path that loses a
//! little.
//!
//! What the server uses cannot be changed from here. But algorithms that take losses for congestion count in segments: with segments a
//! third as long as many are under way, and a third of the bytes flow. Nothing else that holds each connection back by itself does that: buffers,
//! windows and caps are counted in bytes. What gets lost has to get lost on both sides, or it is the loss; and as many segments have to be
//! under way as so many losses leave.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http, of_both};
use crate::evidence::bulk::{Growth, bulk, longer_receiving_ns, needs_small_requests};
use crate::evidence::by_hand;
use crate::evidence::counted::share_of_phases;
use crate::evidence::lost::Lost;
use crate::evidence::trip::{SAME_TRIP, USUAL_SEGMENTS, trips};
use crate::evidence::worth::{demands, needs_gap_alone, reference};
use crate::gap::{Flip, Gap, Look, View, percent};
use crate::probes::THIRD_SEGMENTS;
use duel_model::web::phase;
use duel_model::{Confidence, format_bytes, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.congestion-control",
    description: "the sender uses another congestion control, which sends less over such a path",
    signature: "hosts: the senders use different ones, and as much gets lost on both sides; with segments a third as long the slow side \
                flows at about a third, and the fast one does not",
    at_most: "likely",
    needs_machine: true,
};

/// On a shorter way ten segments for each round trip are 15 MB/s and more.
const NOTICEABLE_TRIP_NS: f64 = 1e6;
/// Of a third of the bytes at a time receiving takes three times as long, of as many as before as long as before: the middle is the root.
const LONGER_BY_SEGMENTS: f64 = 1.73;
/// Of so many times as many losses as many segments are under way as by the root of that (Mathis et al. 1997): a fifth fewer.
const AS_MUCH: f64 = 1.5;
/// How much more than the fast side's.
const MORE_THAN_THE_OTHER: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause { asks_last: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let reference = reference(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let segment = gap.count(gap.slow, web::SEGMENT_BYTES).map(|bytes| bytes as f64);
    if let Some((bytes, segment)) = reference.slow.bytes_in_per_op.zip(segment)
        && bytes <= USUAL_SEGMENTS * segment
    {
        needs_small_requests(gap)?;
        let text = format!("a response of {} is sent at once by any of them", format_bytes(bytes));
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    let receive_ns = longer_receiving_ns(gap, reference)?;
    let [of_slow, of_fast] = of_both(gap, "the congestion control of both machines is not known", |side| {
        gap.host_fact(side, "tcp.tcp_congestion_control")
    })?
    .map(sanitize_line);
    let names = format!("{slow}'s machine uses {of_slow}, {fast}'s {of_fast}");
    let repeat = || Some("sysctl net.ipv4.tcp_congestion_control; ip route show".to_owned());
    let is_routed = |side| gap.host_fact(side, "route.special").is_none_or(|routes| routes.contains("congctl"));
    if [gap.slow, gap.fast].into_iter().any(is_routed) {
        let text = format!("{names}, but routes may name others");
        return Err(Standing::Undecided(gap.on_host(text, repeat())));
    }
    if of_slow == of_fast {
        return Err(Standing::RuledOut(gap.on_host(names, repeat())));
    }
    let trips = trips(gap)?;
    let [slow_trip, fast_trip] = [trips.slow, trips.fast].map(|trip| trip.typical.mid);
    let way = format!(
        "a round trip to {slow} takes {}, to {fast} {}",
        format_duration_ns(slow_trip),
        format_duration_ns(fast_trip)
    );
    let far = |why: &str| Standing::Undecided(gap.evidence(&trips.seen, format!("{names}; {way}: {why}")));
    if slow_trip < NOTICEABLE_TRIP_NS {
        return Err(far("too short to tell what holds a connection back"));
    }
    if slow_trip > SAME_TRIP * fast_trip {
        return Err(far("the way is longer, whatever the algorithm"));
    }
    needs_gap_alone(gap, Some(&names))?;
    let bulk = bulk(gap)?;
    let flow = format!("bytes of {slow} flow at {}", bulk.tell());
    let open = |why: &str| Standing::Undecided(gap.evidence(&bulk.many, format!("{names}; {flow}{why}")));
    if bulk.growth != Growth::Scales {
        return Err(open(": connections are not held back one by one"));
    }
    let Some((under_way, segment)) = bulk.under_way_bytes(bulk.alone.slow, trips.slow).zip(segment) else {
        return Err(open(", and how much is under way is not known"));
    };
    let demands = demands(gap)?;
    let Some(lost) = Lost::of(&demands) else {
        return Err(open(", and nothing is known to be lost"));
    };
    let again = format!(
        "{:.2} % of the segments that {slow}'s machine sends are sent again, {:.3} for each request{}",
        100.0 * lost.share,
        lost.counted.per_op,
        lost.counted.fast_per_op.map_or_else(String::new, |per_op| format!(" ({fast}'s: {per_op:.3})"))
    );
    let on_host = |text: String| gap.on_host(text, Some(by_hand::SENT_AGAIN.to_owned()));
    let is_as_much = |of_fast: f64| lost.counted.per_op <= AS_MUCH * of_fast;
    if !lost.counted.fast_per_op.is_some_and(is_as_much) || lost.counted.is_marked() {
        let text = format!("{names}; {again}: that may be why, whatever the algorithm");
        return Err(Standing::Undecided(on_host(text)));
    }
    let segments = under_way / segment;
    let leaves = format!(
        "{segments:.0} segments of {slow} are under way, where losses like these leave about {:.0} to an algorithm that halves them for each",
        lost.segments_under_way()
    );
    if !lost.leaves(segments) {
        return Err(Standing::Undecided(on_host(format!(
            "{names}; {again}; {leaves}: that is not what holds it back"
        ))));
    }
    let third = match gap.look(THIRD_SEGMENTS) {
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(open(&format!(", but {why}"))),
        Look::Shown(view) => view,
    };
    let [slower, fast_slower] = longer_in_receiving(reference, &third)
        .ok_or_else(|| open(", and how long receiving takes with shorter segments is not known"))?;
    let by_segments = format!(
        "with segments a third as long receiving takes {slower:.1} times as long on {slow}, {fast_slower:.1} times on {fast}"
    );
    let shown = gap.evidence(&third, by_segments);
    if slower < LONGER_BY_SEGMENTS || slower < MORE_THAN_THE_OTHER * fast_slower {
        let text = format!("{names}, but {}: it is not held back in segments", shown.text);
        return Err(Standing::Undecided(gap.evidence(&third, text)));
    }
    let share = share_of_phases(reference, receive_ns).filter(|&share| share >= Flip::NOTEWORTHY);
    let Some(share) = share else {
        return Err(open(", which is not worth the gap"));
    };
    let told = Told {
        summary: format!(
            "Another congestion control: {names}. On this path {:.2} % of the segments get lost, on both sides, and {slow} sends about as \
             much as an algorithm does that takes each loss for congestion: {}/s over a connection. That makes {} of the gap.",
            100.0 * lost.share,
            format_bytes(bulk.alone_bytes_per_s),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s machine, `sysctl net.ipv4.tcp_congestion_control` tells the algorithm and \
             `tcp_available_congestion_control` which there are; a route (`congctl`) or the server may choose another one. Try {of_fast} \
             there, and look for what loses packets (`mtr -n HOST`)."
        ),
        facts: vec![
            gap.on_host(names, repeat()),
            gap.evidence(&trips.seen, way.clone()),
            gap.evidence(&bulk.many, flow.clone()),
            on_host(again),
            on_host(leaves),
        ],
        further: vec![shown],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// How many times as long receiving takes as before, of either side.
fn longer_in_receiving(before: &View<'_>, after: &View<'_>) -> Option<[f64; 2]> {
    let receive = phase::RECEIVE.id();
    let times = |before: &duel_model::TargetObservation, after: &duel_model::TargetObservation| {
        let (before, after) = (before.phase_mean_ns.get(&receive)?, after.phase_mean_ns.get(&receive)?);
        Some(after / before).filter(|times| times.is_finite())
    };
    Some([times(before.slow, after.slow)?, times(before.fast, after.fast)?])
}
