//! `net.rate-cap` of paths: the slow side carries so many bytes per second and no more, over however many streams.
//!
//! A cap is no matter of the distance: the shortest round trip is as long as the fast side's, and packets queue before it, or are dropped.
//! It counts bytes: with short segments it carries about as much, which tells it from work on each packet. Who reads too slowly closes
//! its window, and nothing queues on the way. What gets lost at random looks like it where the sender does not mind losses (bbr): one stream
//! has all the flow then, and short segments change nothing. But as much gets lost of a little, which a cap lets pass; and on ways too short
//! for a little, of one stream as of several. Datagrams beyond it get lost, or come late, and at a lower rate they do not.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::paths::{KINDS, Sends, Streams, both, congestion_of_sender, loses_more, queues, sends, streams};
use crate::evidence::worth::reference;
use crate::gap::{Flip, Gap, Look, View};
use crate::path::Path;
use crate::probes::{AGAIN, FEWER_DATAGRAMS, SHORT_SEGMENTS, TRICKLE};
use duel_model::{Confidence, Evidence, format_bytes};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.rate-cap",
    description: "bandwidth is capped on the path or by the server, per connection or in total",
    signature: "streams share one flow, packets queue or are dropped though single ones take no longer, and with \
                segments a third as long as much flows. Of datagrams: with a sixteenth of them nearly all come in time",
    at_most: "likely",
    needs_machine: false,
};

/// With segments a third as long a line carries 8 % less payload where they were those of Ethernet, and 18 % less where they were of
/// 524 bytes, for each has its headers; where packets cost, there are three times as many.
const AS_MUCH: f64 = 0.75;
/// A cap lets a single packet pass at once: what the shortest round trip takes longer is something else.
const AS_NEAR: f64 = 1.25;
const AS_NEAR_NS: f64 = 200e3;
/// Held back by windows for longer than this, somebody reads too slowly, or buffers are too small.
const MOSTLY_HELD_BACK: f64 = 0.5;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    match sends(gap) {
        Some(Sends::Datagrams) => return of_datagrams(gap, reference),
        Some(Sends::Blocks { .. }) => {}
        Some(sends) if sends.fits_one_flight() => {
            let text = "an op that sends little before it waits for an answer does not come near a cap".to_owned();
            return Err(Standing::RuledOut(gap.evidence(reference, text)));
        }
        _ => {
            let text = "whether what is sent comes near a cap is told by blocks: --op bulk".to_owned();
            return Err(Standing::Undecided(gap.evidence(reference, text)));
        }
    }
    let [slow, fast] = both(reference);
    let streams = streams(gap)?;
    let flow = format!("{} carries {}", gap.slow_name(), streams.tell());
    let open = |why: &str| Standing::Undecided(gap.evidence(&streams.many, format!("{flow}; {why}")));
    if streams.add_up() {
        return Err(open("so all together are not capped, but each of them may be"));
    }
    if !streams.share_one_flow() {
        return Err(open("that is neither as one stream nor as several"));
    }
    let (Some(slow_ns), Some(fast_ns)) = (slow.shortest_trip_ns(), fast.shortest_trip_ns()) else {
        return Err(open("the round-trip time is not known"));
    };
    if slow_ns > (AS_NEAR * fast_ns).max(fast_ns + AS_NEAR_NS) {
        return Err(open("but its single packets take longer as well, which no cap does"));
    }
    let is_queued = |view: &View<'_>| queues(Path::of(view.slow)) == Some(true);
    let is_dropped = |view: &View<'_>| loses_more(Path::of(view.slow), Path::of(view.fast)) == Some(true);
    let held = if is_queued(&streams.one) || is_queued(&streams.many) {
        "packets queue on the way"
    } else if is_dropped(&streams.one) || is_dropped(&streams.many) {
        "what is too much is dropped"
    } else {
        return Err(open("but nothing queues on the way, and nothing is dropped: an end of it may be slow"));
    };
    if slow.held_back().is_none_or(|share| share > MOSTLY_HELD_BACK) && !is_queued(&streams.one) {
        return Err(open("but windows or buffers hold it back for most of the time"));
    }
    let mut facts = vec![gap.evidence(&streams.many, format!("{flow}, and {held}"))];
    let mut confidence = Confidence::Likely;
    if loses_more(slow, fast) == Some(true) {
        match gap.look(TRICKLE) {
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Shown(little) if loses_as_much(Path::of(little.slow), slow) => {
                let text = format!("{flow}; but {} as much gets lost, which no cap does", TRICKLE.phrase());
                return Err(Standing::Undecided(gap.evidence(&little, text)));
            }
            // Who does not mind losses has all the flow with one stream, whether or not there is a cap.
            Look::Missing(why) if !minds_losses(gap) => {
                let of_more = more_is_lost_of_several(gap, &streams, &|what| {
                    open(&format!("but whether as much gets lost of little is not known: {why}; {what}"))
                })?;
                facts.push(of_more);
                // Losses that come and go may have been more just while several, or just while one, were looked at.
                confidence = Confidence::Possible;
            }
            Look::Shown(_) | Look::Missing(_) => {}
        }
    }
    let short = match gap.look(SHORT_SEGMENTS) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => {
            return Err(open(&format!("whether that counts bytes or packets is not known: {why}")));
        }
    };
    let before = slow.bytes_per_s();
    let (Some(before), Some(after)) = (before, Path::of(short.slow).bytes_per_s()) else {
        return Err(open("how much flows with short segments is not known"));
    };
    let segments = format!(
        "with short segments {} carries {}/s instead of {}/s",
        gap.slow_name(),
        format_bytes(after),
        format_bytes(before)
    );
    if after < AS_MUCH * before {
        let text = format!("{flow}; {segments}: packets cost, rather than bytes being capped");
        return Err(Standing::Undecided(gap.evidence(&short, text)));
    }
    facts.push(gap.evidence(&short, segments));
    let told = told(gap, &flow, facts);
    // All of the slow side's time is that in which the cap lets nothing more pass.
    Ok(fit_by_host(gap, &ENTRY, Some(1.0), confidence, told))
}

/// Whether the slow side's sender takes losses for congestion, as all do but bbr.
fn minds_losses(gap: &Gap<'_>) -> bool {
    gap.text(gap.slow, congestion_of_sender(gap)).is_some_and(|congestion| !congestion.starts_with("bbr"))
}

/// At least half as large a share of the segments was sent again. What is too much for a cap is none of it where little is sent.
fn loses_as_much(little: Path<'_>, before: Path<'_>) -> bool {
    const AS_MUCH_LOST: f64 = 0.5;
    let shares = little.sent_again().zip(before.sent_again());
    shares.is_some_and(|((_, of_little), (_, of_all))| of_little >= AS_MUCH_LOST * of_all)
}

/// That several streams lose a larger part than one does, though they carry as much: each sends more than its part of a cap, so that more of it
/// is too much. At random it is the same part. This is for ways so short that no buffer makes little flow.
///
/// So that losses which grow, or go, are not taken for that, the comparison is made once more after both: what it loses then has to stand
/// where it stood.
fn more_is_lost_of_several(
    gap: &Gap<'_>,
    streams: &Streams<'_>,
    open: &dyn Fn(&str) -> Standing,
) -> Result<Evidence, Standing> {
    /// Before policers of 20 to 200 MB/s four streams of bbr lost 2.0 to 7.5 times as large a part as one, and eight 2.0 to 12 times. Of what
    /// got lost at random (0.2 to 5 %) four lost 0.9 to 1.03 times as large a part.
    const MORE: f64 = 1.5;
    /// So many are expected of one stream: a machine hands some tens of segments to a link at once, and they get lost together.
    const LEAST_EXPECTED: f64 = 300.0;
    let again = match gap.look(AGAIN) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(open(&why)),
    };
    let (mut few, mut several) = (vec![&streams.one], vec![&streams.many]);
    match gap.comparison.connections() {
        Some(1) => few.push(&again),
        Some(_) => several.push(&again),
        None => return Err(open("streams do not go on all the time")),
    }
    let shares = |views: &[&View<'_>]| -> Option<Vec<f64>> {
        views.iter().map(|view| Some(Path::of(view.slow).sent_again()?.1)).collect()
    };
    let fewest = few.iter().map(|view| Path::of(view.slow).segments()).reduce(|a, b| Some(a?.min(b?))).flatten();
    let (Some(of_few), Some(of_several), Some(fewest)) = (shares(&few), shares(&several), fewest) else {
        return Err(open("how many segments were sent again is not known"));
    };
    let most = of_few.into_iter().fold(0.0, f64::max);
    let least = of_several.into_iter().fold(f64::INFINITY, f64::min);
    let text = format!(
        "of one stream {:.2} % of the segments were sent again at most, of {} {:.2} % at least",
        100.0 * most,
        streams.many.connections().unwrap_or(0),
        100.0 * least
    );
    match () {
        () if fewest * least < LEAST_EXPECTED => Err(open(&format!("{text}: too few to tell"))),
        () if least < MORE * most => Err(open(&format!("{text}: so much may get lost at random"))),
        () => Ok(gap.evidence(&again, text)),
    }
}

fn told(gap: &Gap<'_>, text: &str, facts: Vec<Evidence>) -> Told {
    let slow = gap.slow_name();
    Told {
        summary: format!("The rate of the path to {slow} is capped: {text}."),
        remedy: format!(
            "Look for a cap on the way to {slow}: `tc -s qdisc show` and `nft list ruleset` (`limit rate`) at both ends and on routers \
             between them, `ethtool INTERFACE` for the links' speeds, and what the provider or hypervisor grants."
        ),
        facts,
        further: Vec::new(),
    }
}

fn of_datagrams(gap: &Gap<'_>, reference: &View<'_>) -> Result<Standing, Standing> {
    // Before a cap packets queue, and a long queue loses few of them for as long as a slot takes.
    let share_of = |[slow, fast]: [Option<f64>; 2]| {
        let (slow, fast) = (slow?, fast?);
        Some((slow, ((1.0 - fast) / (1.0 - slow)).ln() / reference.log.mid))
    };
    let not_come = both(reference).map(|path| path.not_come().map(|(missing, sent)| missing / sent));
    let lost = both(reference).map(|path| path.lost());
    let (Some((slow, share)), Some((_, share_lost))) = (share_of(not_come), share_of(lost)) else {
        return Err(Standing::Undecided(gap.not_measured("how many datagrams came is not known".to_owned())));
    };
    let lost = format!("{:.2} % of the datagrams to {} did not come in time", 100.0 * slow, gap.slow_name());
    if share.is_nan() || share < Flip::NOTEWORTHY {
        return Err(Standing::RuledOut(gap.evidence(reference, lost)));
    }
    // What gets lost was too much for the way. What only waits may wait at the other end.
    let queues = reference.connections().and_then(|streams| Path::of(reference.slow).datagrams_queue(streams));
    if share_lost < Flip::NOTEWORTHY && queues != Some(true) {
        let text = format!("{lost}, and that they wait on the way is not seen: they may wait for who reads them");
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    let fewer = match gap.look(FEWER_DATAGRAMS) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return Err(Standing::Undecided(gap.evidence(reference, format!("{lost}; {why}")))),
    };
    let [Some((missing, sent)), Some((missing_of_fast, sent_of_fast))] = both(&fewer).map(|path| path.not_come())
    else {
        return Err(Standing::Undecided(gap.evidence(reference, lost)));
    };
    // Of so few in a slot those that were on their way at its end are a part that counts, on the fast side as well.
    let beyond = missing - missing_of_fast / sent_of_fast * sent;
    // Of what gets lost at random no more than a fifth gets lost there once in a thousand times, where ten are expected. Nor is a way
    // that only takes long any shorter for fewer.
    const LEAST_EXPECTED: f64 = 10.0;
    let expected = slow * sent;
    let text = format!(
        "{lost}; with a sixteenth of the datagrams {missing:.0} of {sent:.0}, where {expected:.0} would at random, and \
         {missing_of_fast:.0} of {sent_of_fast:.0} of those to {}",
        gap.fast_name()
    );
    // What was lost for good is none of those that were on their way, so that no chance of the fast side's is in it.
    let is_lost = Path::of(fewer.slow).missing().is_none_or(|(lost, _)| lost > 0.2 * expected);
    if expected < LEAST_EXPECTED || is_lost || beyond > 0.2 * expected {
        return Err(Standing::Undecided(gap.evidence(&fewer, text)));
    }
    let facts = vec![gap.evidence(&fewer, text)];
    let summary = format!("{lost}, and of a sixteenth of them hardly any");
    Ok(fit_by_host(gap, &ENTRY, Some(share.clamp(0.0, 1.0)), Confidence::Likely, told(gap, &summary, facts)))
}
