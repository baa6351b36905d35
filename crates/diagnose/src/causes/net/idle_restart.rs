//! `net.idle-restart`: the slow side's sender begins anew with few segments after each pause of a connection.
//!
//! TCP takes a connection that has sent nothing for as long as its retransmission time-out for idle, and begins anew with as many segments
//! as a new one has (RFC 2861; `tcp_slow_start_after_idle` on Linux, which is on unless somebody turns it off). A response that does not fit into
//! them takes further round trips, in receiving, on a distant path, at a low rate or with think times. Without pauses, as probes are made, it
//! takes none. The machines' settings tell which side does so; senders with bbr do not, whatever the setting.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::evidence::counted::share_of_phases;
use crate::evidence::idle::{Pauses, begins_anew, has_pauses};
use crate::evidence::trip::{SAME_TRIP, USUAL_SEGMENTS, trips, usual_trips};
use crate::gap::{Flip, Gap, Look, View, percent, phase_differences};
use crate::probes::{ALONE, CLOSED};
use duel_model::web::phase;
use duel_model::{Confidence, format_bytes, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.idle-restart",
    description: "connections begin anew with few segments after each pause, on a distant path",
    signature: "hosts: the slow side's sender begins anew after a pause and the fast side's does not; with a rate or think times \
                receiving takes further round trips, without pauses it takes none",
    at_most: "likely",
    needs_machine: true,
};

/// Below, a round trip cannot be told from work.
const NOTICEABLE_TRIP_NS: f64 = 1e6;
/// A round trip more is seen as a little less, for part of the time is spent anyway.
const LEAST_TRIPS: f64 = 0.6;
/// Where each second segment is acknowledged, flights grow by a half instead of doubling: from ten segments on that takes up to
/// ln 2 / ln 1.5 = 1.7 times as many.
const SLOWEST_GROWTH: f64 = 1.7;
/// What is in receiving of all that is longer.
const LEAST_IN_RECEIVING: f64 = 0.5;
/// Without pauses the fast side takes about as long: else more load, or a shared line, hides the gap.
const SAME_WORK: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause { needs_no_reference: true, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let ruled_out = |text: String| Standing::RuledOut(gap.evidence(&gap.comparison, text));
    let open = |text: String| Standing::Undecided(gap.evidence(&gap.comparison, text));
    if !has_pauses(gap.case.plan) {
        return Err(ruled_out("connections rest no longer than it takes to send the next request".to_owned()));
    }
    match gap.comparison.slow.reused_share {
        Some(reused) if reused <= 0.1 => {
            return Err(ruled_out(format!("connections to {slow} carry one request each, and have no pause")));
        }
        Some(reused) if reused >= 0.9 => {}
        _ => return Err(open("how many requests go over connections that are kept is not clear".to_owned())),
    }
    let segment = gap.count(gap.slow, web::SEGMENT_BYTES).map(|bytes| bytes as f64);
    let bytes = gap.comparison.slow.bytes_in_per_op;
    let (Some(segment), Some(bytes)) = (segment, bytes) else {
        return Err(open("how many segments a response takes is not known".to_owned()));
    };
    let begins_as_usual = [gap.slow, gap.fast].map(|side| !sets_first_flight(gap, side).unwrap_or(true));
    if bytes <= segment || bytes <= USUAL_SEGMENTS * segment && begins_as_usual[0] {
        let text = format!(
            "a response of {} takes no more segments than a connection sends at once after a pause",
            format_bytes(bytes)
        );
        return Err(ruled_out(text));
    }
    let [of_slow, of_fast] = [gap.slow, gap.fast].map(|side| begins_anew(gap, side));
    let settings = format!("{}; {}", tell_settings(gap, gap.slow), tell_settings(gap, gap.fast));
    let repeat = || Some("sysctl net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_congestion_control".to_owned());
    match (of_slow, of_fast) {
        (Some(false), _) => return Err(Standing::RuledOut(gap.on_host(settings, repeat()))),
        (Some(true), Some(false)) => {}
        (Some(true), Some(true)) if begins_as_usual == [true; 2] => {
            return Err(Standing::RuledOut(gap.on_host(format!("{settings}: both begin anew alike"), repeat())));
        }
        (Some(true), Some(true)) => {
            let text = format!("{settings}: both begin anew, and with how many segments is not known");
            return Err(Standing::Undecided(gap.on_host(text, repeat())));
        }
        (None, _) | (_, None) => {
            return Err(Standing::Undecided(
                gap.on_host(format!("{settings}: that leaves open who begins anew"), repeat()),
            ));
        }
    }
    let trips = trips(gap)?;
    let [slow_trip, fast_trip] = [trips.slow, trips.fast].map(|trip| trip.typical.mid);
    let way = format!(
        "a round trip to {slow} takes {}, to {fast} {}",
        format_duration_ns(slow_trip),
        format_duration_ns(fast_trip)
    );
    if slow_trip < NOTICEABLE_TRIP_NS {
        return Err(ruled_out(format!("{way}: too short for its number to matter")));
    }
    if slow_trip > SAME_TRIP * fast_trip {
        return Err(open(format!("{way}: the way itself is longer")));
    }
    let Some(pauses) = Pauses::of(gap) else { return Err(open("how long connections rest is not known".to_owned())) };
    let rest = format!("connections to {slow} rest for {} between requests", format_duration_ns(pauses.mean_ns));
    if pauses.are_short() {
        return Err(ruled_out(format!("{rest}: TCP takes none for idle")));
    }
    let differences = phase_differences(&gap.comparison);
    let all_ns: f64 = differences.iter().map(|(_, ns)| ns).sum();
    let receive_ns = differences.iter().find(|(phase, _)| *phase == phase::RECEIVE).map_or(0.0, |(_, ns)| *ns);
    let more = receive_ns / slow_trip;
    let most = SLOWEST_GROWTH * usual_trips(bytes, segment).max(1.0);
    let told = format!("{way}; receiving takes {:.1} round trips more", more.max(0.0));
    if more < LEAST_TRIPS || receive_ns < LEAST_IN_RECEIVING * all_ns {
        return Err(open(format!("{told}, which is not what the gap consists of")));
    }
    if more > most + LEAST_TRIPS {
        return Err(open(format!("{told}, where a new connection takes {most:.0} at most")));
    }
    let busy = without_pauses(gap)?;
    let seen = gap.evidence(&busy, format!("without pauses: {}", gap.tell(&busy)));
    if busy.log.low() > (1.0 - Flip::NOTEWORTHY) * gap.comparison.log.mid {
        return Err(Standing::RuledOut(seen));
    }
    let is_gone = busy.log.high() < 0.5 * gap.comparison.log.mid;
    let work = |view: &View<'_>| view.fast.service_mean_ns;
    let is_same_work = work(&busy).zip(work(&gap.comparison)).is_some_and(|(busy, usual)| busy <= SAME_WORK * usual);
    if !is_gone || !is_same_work {
        return Err(open(format!("{told}; {}, which leaves open whether pauses matter", seen.text)));
    }
    let gone = 1.0 - busy.log.mid.max(0.0) / gap.comparison.log.mid;
    let share = share_of_phases(&gap.comparison, receive_ns).map(|share| share.min(gone));
    let Some(share) = share.filter(|&share| share >= Flip::NOTEWORTHY) else {
        return Err(open(format!("{told}: that is not worth the gap")));
    };
    let told = Told {
        summary: format!(
            "Connections to {slow} begin anew with few segments after each pause, and those to {fast} do not: {rest}, and a \
             response of {} then takes {more:.1} round trips of {} more, which makes {} of the gap. Without pauses it takes none.",
            format_bytes(bytes),
            format_duration_ns(slow_trip),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s machine, `sysctl -w net.ipv4.tcp_slow_start_after_idle=0` keeps what a connection has grown to; senders with \
             bbr keep it anyway. How a connection stands, `ss -tin` tells there (`cwnd`, `lastsnd`)."
        ),
        facts: vec![gap.evidence(&trips.seen, told), gap.on_host(settings, repeat())],
        further: vec![seen],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// The same requests with nothing between them: over one connection, and where that was not seen, over as many.
fn without_pauses<'a>(gap: &Gap<'a>) -> Result<View<'a>, Standing> {
    if let Look::Shown(view) = gap.look(ALONE) {
        return Ok(view);
    }
    match gap.look(CLOSED) {
        Look::Shown(view) => Ok(view),
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// Whether a side's routes say how many segments a connection begins with; `None`: not known.
fn sets_first_flight(gap: &Gap<'_>, side: usize) -> Option<bool> {
    Some(gap.host_fact(side, "route.special")?.contains("initcwnd"))
}

/// `tcp_slow_start_after_idle is 1 on A's machine, with cubic`.
fn tell_settings(gap: &Gap<'_>, side: usize) -> String {
    let [idle, algorithm] = ["tcp.tcp_slow_start_after_idle", "tcp.tcp_congestion_control"]
        .map(|key| gap.host_fact(side, key).map_or_else(|| "not known".to_owned(), sanitize_line));
    format!(
        "tcp_slow_start_after_idle is {idle} on {}'s machine, and the congestion control {algorithm}",
        gap.name(side)
    )
}
