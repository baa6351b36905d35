//! `net.loss` of paths: packets get lost on the slow side, and are sent again.
//!
//! TCP counts what it sends again. A stream that loses keeps few segments under way, so that several streams flow as many times
//! faster; a cap that drops what is too much lets all streams together have no more than one. A sender that does not mind losses (bbr) fills
//! the path with one stream, so that there it is asked what gets lost where little flows. Who waits for a lost segment fills its window: where
//! windows hold a stream back, the gap has to be as wide with windows of one size, and losses have to be worth it. An exchange that loses a packet waits for
//! a time-out of 200 ms and more, which its mean tells from what is usual. Datagrams are not sent again; where fewer of them get lost when
//! less is sent, it is a cap. And where the senders' congestion controls differ, they may lose different parts of what they send over paths that are
//! alike.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, shown_flip};
use crate::evidence::lost::{MOST_PER_LOSS_NS, share_of_lost};
use crate::evidence::paths::{KINDS, Sends, both, congestion_of_sender, loses_more, queues, sends, streams};
use crate::evidence::worth::{reference, share_of_log};
use crate::gap::{Flip, Gap, Look, View, percent};
use crate::path::Path;
use crate::probes::{FEWER_DATAGRAMS, LITTLE, SET_WINDOW, TRICKLE, congestion};
use duel_model::{Confidence, Evidence, TargetObservation, format_bytes, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.loss",
    description: "packets get lost on the path and are sent again after time-outs",
    signature: "segments are sent again, and not on the fast side: streams add up, or as much is sent again of a small part \
                of the flow; no window holds them back, or with windows of one size the gap is as wide; where congestion controls differ, \
                it is with the same one, too; of exchanges and of connecting, time beyond \
                the usual one that is worth the gap. Of datagrams: as many get lost with a sixteenth of them",
    at_most: "likely; possible where windows hold it back, and of connecting",
    needs_machine: false,
};

/// With more than this held back by windows, it may be these that keep a stream small.
const MOSTLY_HELD_BACK: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let [slow, fast] = both(reference);
    match sends(gap) {
        Some(Sends::Datagrams) => of_datagrams(gap, reference, [slow, fast]),
        Some(Sends::Connection) => {
            // Over one stream few connections are made, each of which waits for a second where something is lost.
            for view in [reference, &gap.comparison] {
                let [slow, fast] = both(view);
                if let Some((again, true)) = each_loses_more(gap, slow, fast, Sends::Connection)
                    && let Some(fit) = of_exchanges(gap, view, Sends::Connection, &again)?
                {
                    return Ok(fit);
                }
            }
            of_waiting(gap, reference, Sends::Connection, Vec::new())
        }
        Some(sends) => {
            let is_exchange = matches!(sends, Sends::Exchange { .. });
            let counted = match is_exchange {
                true => each_loses_more(gap, slow, fast, sends),
                false => tell(gap, slow, fast).zip(loses_more(slow, fast)),
            };
            let Some((again, more)) = counted else {
                let text = "how many segments were sent again is not known".to_owned();
                return Err(Standing::Undecided(gap.not_measured(text)));
            };
            if is_exchange {
                if more && let Some(fit) = of_exchanges(gap, reference, sends, &again)? {
                    return Ok(fit);
                }
                // How many of a thousand get lost says little of them: one that waits for a time-out costs as much as thousands.
                let facts = if more { vec![gap.evidence(reference, again)] } else { Vec::new() };
                return of_waiting(gap, reference, sends, facts);
            }
            if !more {
                return Err(Standing::RuledOut(gap.evidence(reference, again)));
            }
            let alike = with_one_congestion_control(gap, reference, &again)?;
            let by_windows = slow.held_back().is_none_or(|share| share > MOSTLY_HELD_BACK);
            let beside = if by_windows { vec![beside_windows(gap, reference, &again)?] } else { Vec::new() };
            let streams = streams(gap)?;
            let flow = format!("{} carries {}", gap.slow_name(), streams.tell());
            // Streams that wait for their windows add up whatever makes them wait.
            let mut facts = if streams.add_up() && !by_windows {
                vec![gap.evidence(&streams.many, flow)]
            } else {
                let open = |why: &str| {
                    let what = if streams.add_up() { "windows are full" } else { "streams do not add up" };
                    let text = format!("{again}, but {what}: {flow}; {why}");
                    Standing::Undecided(gap.evidence(&streams.many, text))
                };
                at_random(gap, [slow, fast], &open)?
            };
            facts.extend(beside);
            facts.extend(alike);
            let told = told(gap, sends, &again, facts);
            // How much of the gap that makes is not measured: a round trip may be longer as well, or each flow be policed. And what losses
            // are worth beside windows is known at most: a reader that is slow and loses as much would look the same.
            let confidence = if by_windows { Confidence::Possible } else { Confidence::Likely };
            Ok(fit_by_host(gap, &ENTRY, None, confidence, told))
        }
        None => Err(Standing::Undecided(gap.not_measured("what is sent is not known".to_owned()))),
    }
}

/// As [`loses_more`], for each exchange, and in words. Where the last segment of an answer waits for its acknowledgement it is sent again to
/// ask for that (RFC 8985), lost or not: by the share of all segments a path that loses nothing would hide what another one loses.
fn each_loses_more(gap: &Gap<'_>, slow: Path<'_>, fast: Path<'_>, sends: Sends) -> Option<(String, bool)> {
    const LEAST: f64 = 10.0;
    /// Nobody connects twice unless something was lost, or dropped at the other end: three are no chance.
    const LEAST_OF_CONNECTIONS: f64 = 3.0;
    /// As of segments: fewer are worth little of any gap.
    const LEAST_EACH: f64 = 1e-3;
    const CLEARLY: f64 = 4.0;
    let ((count, _), of_slow, of_fast) = (slow.sent_again()?, slow.sent_again_per_op()?, fast.sent_again_per_op()?);
    let (what, least) = match sends {
        Sends::Connection => ("connection to", LEAST_OF_CONNECTIONS),
        _ => ("exchange with", LEAST),
    };
    let text = format!(
        "for each {what} {} {of_slow:.4} segments are sent again, for one {} {of_fast:.4}",
        gap.slow_name(),
        match sends {
            Sends::Connection => format!("to {}", gap.fast_name()),
            _ => format!("with {}", gap.fast_name()),
        }
    );
    Some((text, count >= least && of_slow >= LEAST_EACH.max(CLEARLY * of_fast)))
}

/// Exchanges of the slow side have more segments sent again, by whichever end is told, and those that it can have hit take so much longer.
/// `None`: they take no longer than the others.
fn of_exchanges(gap: &Gap<'_>, reference: &View<'_>, sends: Sends, again: &str) -> Result<Option<Standing>, Standing> {
    /// A SYN is sent again after a second, and after two more where that is lost as well.
    const MOST_PER_SYN_NS: f64 = 1_600e6;
    let most_per_loss_ns = if sends == Sends::Connection { MOST_PER_SYN_NS } else { MOST_PER_LOSS_NS };
    let share = Path::of(reference.slow)
        .sent_again_per_op()
        .and_then(|hit| share_of_lost(reference, hit, most_per_loss_ns))
        .filter(|&share| share >= Flip::NOTEWORTHY);
    let Some(share) = share else { return Ok(None) };
    // What is under way at once no sender sends too fast.
    let alike = match sends.fits_one_flight() {
        true => None,
        false => with_one_congestion_control(gap, reference, again)?,
    };
    let text = format!("{again}; exchanges that this can have hit make {} of the gap", percent(share));
    let told = told(gap, sends, &text, alike.into_iter().collect());
    Ok(Some(fit_by_host(gap, &ENTRY, Some(share), most_of_exchanges(sends), told)))
}

/// What is longer than is under way at once may be policed, or wait in a short queue that overflows, and lose as much for that. And a
/// SYN may be dropped at a listen queue that is too short.
fn most_of_exchanges(sends: Sends) -> Confidence {
    if sends != Sends::Connection && sends.fits_one_flight() { Confidence::Likely } else { Confidence::Possible }
}

/// `3 % of the segments to B were sent again, none of those to A`.
fn tell(gap: &Gap<'_>, slow: Path<'_>, fast: Path<'_>) -> Option<String> {
    let share = |path: Path<'_>| path.sent_again().map(|(_, share)| format!("{:.2} %", 100.0 * share));
    let (of_slow, of_fast) = (share(slow)?, share(fast)?);
    Some(format!(
        "{of_slow} of the segments of {} were sent again, {of_fast} of {}'s",
        gap.slow_name(),
        gap.fast_name()
    ))
}

fn told(gap: &Gap<'_>, sends: Sends, text: &str, mut facts: Vec<Evidence>) -> Told {
    let slow = gap.slow_name();
    facts.insert(0, gap.at_reference(text.to_owned()));
    let (or_dropped, look_there) = match sends {
        Sends::Connection => (
            ", or are dropped at a listen queue that is full",
            "On {slow}'s machine `nstat -az TcpExtListenOverflows TcpExtListenDrops` counts connections that found its queue full, and `ss -ltn` \
             tells how long that is. ",
        ),
        _ => ("", ""),
    };
    let look_there = look_there.replace("{slow}", &slow);
    Told {
        summary: format!("Packets get lost on the path to {slow}{or_dropped}: {text}."),
        remedy: format!(
            "{look_there}Find where they get lost: `ip -s link` and `tc -s qdisc` at both ends of the path to {slow} (errors, dropped), `nft list \
             ruleset` for rules that drop or limit, `mtr -n HOST` for the way; a full-duplex link that fell back to half duplex, a bad \
             cable and a busy radio link lose at random; a policer drops what each flow sends beyond its rate."
        ),
        facts,
        further: Vec::new(),
    }
}

/// That a stream whose window is full waits for what got lost in it, and not for more room: with windows of one size on all paths the gap is
/// as wide, and losses are worth it. Of a larger window no less gets lost, so what losses make of the gap with small ones they make of it
/// anyway. What looks like it: a smaller window, which the same ones on all paths take away; and a receiver that reads slowly and loses
/// a little besides, which losses are not worth.
fn beside_windows(gap: &Gap<'_>, reference: &View<'_>, again: &str) -> Result<Evidence, Standing> {
    let open = |why: &str| {
        let text = format!("{again}, but windows or buffers hold it back for most of the time; {why}");
        Standing::Undecided(gap.evidence(reference, text))
    };
    let slow = Path::of(reference.slow);
    let (Some(lost), Some(trip_ns), Some(more)) =
        (slow.lost_per_op(), slow.loaded_trip_ns(), reference.difference_ns())
    else {
        return Err(open("what losses are worth is not known"));
    };
    // At most, for some are waited for together.
    let worth = lost * trip_ns / more.mid;
    if worth.is_nan() || worth < Flip::EXPLAINS {
        return Err(open(&format!(
            "a round trip for each lost segment is {} of the extra time at most",
            percent(worth)
        )));
    }
    let same_windows = shown_flip(gap, SET_WINDOW)?;
    let (then, text) = (&same_windows.view, gap.tell_flip(&same_windows));
    if stays_as_wide(then, reference) { Ok(gap.evidence(then, text)) } else { Err(open(&text)) }
}

/// The gap is about as wide under a flip as it was before.
fn stays_as_wide(then: &View<'_>, before: &View<'_>) -> bool {
    then.log.mid >= Flip::EXPLAINS * before.log.mid && then.log.low() > 0.5 * before.log.mid
}

/// That the slow side loses more, and the gap is as wide, with the same congestion control on all paths, where the senders use different
/// ones; `None` where they do not. What a sender loses is its own doing as well: one that starts too fast, or fills a queue until
/// something is dropped, loses many at once, and another one on the same path hardly any.
fn with_one_congestion_control(gap: &Gap<'_>, reference: &View<'_>, again: &str) -> Result<Option<Evidence>, Standing> {
    let name = congestion_of_sender(gap);
    // Of a peer that does not tell its own it is not known whether they are alike.
    let [of_slow, of_fast] = [gap.slow, gap.fast].map(|side| gap.text(side, name));
    if of_slow.is_some() && of_slow == of_fast {
        return Ok(None);
    }
    let [of_slow, of_fast] = [of_slow, of_fast].map(|of| of.map_or_else(|| "an unknown one".to_owned(), sanitize_line));
    let open = |why: &str| {
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        let text = format!("{again}, but the sender to {slow} uses {of_slow}, that to {fast} {of_fast}; {why}");
        Standing::Undecided(gap.evidence(reference, text))
    };
    let mut missing = "no other one can be set".to_owned();
    for kind in congestion(&of_fast) {
        let view = match gap.look(kind) {
            Look::Shown(view) => view,
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Missing(why) => {
                missing = why;
                continue;
            }
        };
        let [slow, fast] = both(&view);
        let text = format!("{}: {}", kind.phrase(), gap.tell(&view));
        let is_lost = loses_more(slow, fast) == Some(true) && stays_as_wide(&view, reference);
        return if is_lost { Ok(Some(gap.evidence(&view, text))) } else { Err(open(&text)) };
    }
    Err(open(&missing))
}

/// That as much gets lost where little flows, and the path is as the other one in all else. A sender that does not take losses for
/// congestion (bbr) fills what there is with one stream, so that several carry no more. So it is by a cap that drops what is too much: but
/// of little nothing is too much.
fn at_random(
    gap: &Gap<'_>,
    [slow, fast]: [Path<'_>; 2],
    open: &dyn Fn(&str) -> Standing,
) -> Result<Vec<Evidence>, Standing> {
    /// What waits for others on its way, or goes another way, takes longer by more than this.
    const AS_FAR: f64 = 1.25;
    /// So many are expected, where packets may get lost some at a time: a machine hands several to a link at once.
    const LEAST_EXPECTED: f64 = 30.0;
    let (Some(slow_ns), Some(fast_ns)) = (slow.shortest_trip_ns(), fast.shortest_trip_ns()) else {
        return Err(open("the round-trip time is not known"));
    };
    if slow_ns > AS_FAR * fast_ns {
        return Err(open("its round trip is longer as well"));
    }
    if queues(slow) != Some(false) {
        return Err(open("packets may queue on the way, as before a cap"));
    }
    if ["tcp.congestion", "tcp.peer_congestion"].iter().any(|name| gap.text(gap.slow, name) != gap.text(gap.fast, name))
    {
        return Err(open("the senders' congestion controls differ as well"));
    }
    let little = match gap.look(TRICKLE) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(open(&why)),
    };
    let path = Path::of(little.slow);
    let ((Some(before), Some(after)), Some((_, share)), Some((missing, of_little))) =
        ((slow.bytes_per_s(), path.bytes_per_s()), slow.sent_again(), path.sent_again())
    else {
        return Err(open("what gets lost of little is not known"));
    };
    let expected = if of_little > 0.0 { share * missing / of_little } else { 0.0 };
    let text = format!(
        "{}: of {}/s instead of {}/s {:.2} % of the segments were sent again, instead of {:.2} %",
        TRICKLE.phrase(),
        format_bytes(after),
        format_bytes(before),
        100.0 * of_little,
        100.0 * share
    );
    let told = |why: &str| Standing::Undecided(gap.evidence(&little, format!("{text}{why}")));
    match of_little / share {
        _ if after > LITTLE * before => Err(told(": that is not little enough to tell")),
        _ if expected < LEAST_EXPECTED => Err(told(": too few to tell")),
        as_many if as_many < 0.5 => Err(told(": most of it was too much")),
        as_many if as_many > 2.0 => Err(told(": small buffers lose more")),
        _ => Ok(vec![gap.evidence(&little, text)]),
    }
}

/// Ops that wait for a packet to be sent again take hundreds of milliseconds, and the others do not: what the mean is beyond the
/// usual time is what is waited for.
fn of_waiting(gap: &Gap<'_>, reference: &View<'_>, sends: Sends, facts: Vec<Evidence>) -> Result<Standing, Standing> {
    /// From here on it may be waiting for a time-out, whose least is 200 ms on Linux.
    const TIMEOUT_NS: u64 = 150_000_000;
    /// The mean over all ops and the gap's own measure, that of the typical pair of slots, are two. Where the means are further apart than
    /// this many times the gap, slots typically have none of the ops that make them so.
    const AS_WIDE: f64 = 1.5;
    let what = if sends == Sends::Connection { "connections" } else { "exchanges" };
    let times = |seen: &TargetObservation| {
        let mean_ns = seen.service_mean_ns.filter(|&ns| ns > 0.0)?;
        let usual_ns = seen.service_profile.quantile_ns(0.5)? as f64;
        Some((mean_ns, (mean_ns - usual_ns).max(0.0)))
    };
    let (Some((slow_ns, beyond_slow_ns)), Some((fast_ns, beyond_fast_ns))) =
        (times(reference.slow), times(reference.fast))
    else {
        return Err(Standing::Undecided(gap.not_measured("how times are spread is not known".to_owned())));
    };
    let longest_ns = reference.slow.service_profile.quantile_ns(1.0).unwrap_or(0);
    // Means are held against means: where a few ops take a thousand times as long, the gap's measure is far from both.
    let part = ((beyond_slow_ns - beyond_fast_ns) / (slow_ns - fast_ns)).clamp(0.0, 1.0);
    let saved_ns = reference.slow_ns().zip(reference.fast_ns()).map(|(slow_ns, fast_ns)| part * (slow_ns - fast_ns));
    let share = saved_ns.filter(|saved_ns| saved_ns.is_finite()).and_then(|saved_ns| share_of_log(reference, saved_ns));
    let Some(share) = share.filter(|_| slow_ns > fast_ns && slow_ns <= AS_WIDE * reference.ratio * fast_ns) else {
        return Err(Standing::Undecided(gap.not_measured("what waiting makes of the gap is not known".to_owned())));
    };
    let text =
        format!("some {what} of {} wait for a time-out: that makes {} of the gap", gap.slow_name(), percent(share));
    if share < Flip::NOTEWORTHY {
        let text =
            format!("{what} of {} that take far longer than usual make {} of the gap", gap.slow_name(), percent(share));
        let evidence = gap.evidence(reference, text);
        // Where most exchanges lose something the usual ones do, and of what the other end sends again nothing is told here.
        let may_be_lost = longest_ns >= TIMEOUT_NS || !facts.is_empty();
        return Err(if may_be_lost { Standing::Undecided(evidence) } else { Standing::RuledOut(evidence) });
    }
    if longest_ns < TIMEOUT_NS {
        // A last segment that is sent again by a probe (RFC 8985) waits for some round trips only.
        let text =
            format!("some {what} of {} take far longer than usual, but none waits for a time-out", gap.slow_name());
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    if facts.is_empty() {
        // Of exchanges TCP tells nothing of the other end: a server that stands still looks the same.
        let text = format!("{text}; that packets were sent again is not known");
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    Ok(fit_by_host(gap, &ENTRY, Some(share), most_of_exchanges(sends), told(gap, sends, &text, facts)))
}

/// Of datagrams it is counted what came. What gets lost at a lower rate as well is no cap.
fn of_datagrams(gap: &Gap<'_>, reference: &View<'_>, [slow, fast]: [Path<'_>; 2]) -> Result<Standing, Standing> {
    let (Some(of_slow), Some(of_fast)) = (slow.lost(), fast.lost()) else {
        return Err(Standing::Undecided(gap.not_measured("how many datagrams got lost is not known".to_owned())));
    };
    let lost = format!(
        "{:.2} % of the datagrams to {} got lost, {:.2} % of those to {}",
        100.0 * of_slow,
        gap.slow_name(),
        100.0 * of_fast,
        gap.fast_name()
    );
    let share = ((1.0 - of_fast) / (1.0 - of_slow)).ln() / reference.log.mid;
    if share.is_nan() || share < Flip::NOTEWORTHY {
        return Err(Standing::RuledOut(gap.evidence(reference, lost)));
    }
    let fewer = match gap.look(FEWER_DATAGRAMS) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(Standing::Undecided(gap.evidence(reference, format!("{lost}; {why}")))),
    };
    let Some((missing, sent)) = Path::of(fewer.slow).missing() else {
        return Err(Standing::Undecided(gap.evidence(reference, lost)));
    };
    // At random about as many of those get lost. Fewer than half of them do once in a hundred times, where ten are expected.
    const LEAST_EXPECTED: f64 = 10.0;
    let expected = of_slow * sent;
    let text = format!(
        "with a sixteenth of the datagrams {missing:.0} of {sent:.0} got lost, where {expected:.0} were expected"
    );
    if expected < LEAST_EXPECTED {
        return Err(Standing::Undecided(gap.evidence(&fewer, format!("{lost}; {text}: too few to tell"))));
    }
    if missing < 0.5 * expected {
        return Err(Standing::RuledOut(gap.evidence(&fewer, format!("{lost}; {text}: too many were sent"))));
    }
    let facts = vec![gap.evidence(&fewer, text)];
    Ok(fit_by_host(
        gap,
        &ENTRY,
        Some(share.clamp(0.0, 1.0)),
        Confidence::Likely,
        told(gap, Sends::Datagrams, &lost, facts),
    ))
}
