//! `net.loss` of paths: packets get lost on the slow side, and are sent again.
//!
//! TCP counts what it sends again. A stream that loses keeps few segments under way, so that several streams flow as many times
//! faster; a cap that drops what is too much lets all streams together have no more than one. An exchange that loses a packet waits for
//! a time-out of 200 ms and more, which its mean tells from what is usual. Datagrams are not sent again; where fewer of them get lost when
//! less is sent, it is a cap.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::paths::{KINDS, Sends, both, loses_more, sends, streams};
use crate::evidence::worth::{reference, share_of_log};
use crate::gap::{Flip, Gap, Look, View, percent};
use crate::path::Path;
use crate::probes::FEWER_DATAGRAMS;
use duel_model::{Confidence, Evidence, TargetObservation};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.loss",
    description: "packets get lost on the path and are sent again after time-outs",
    signature: "segments are sent again, and not on the fast side: streams add up, and no window holds them back; \
                of exchanges, time beyond the usual one that is worth the gap. Of datagrams: as many get lost with \
                a sixteenth of them",
    at_most: "likely",
    needs_machine: false,
};

/// With more than this held back by windows, it is not losses that keep a stream small.
const MOSTLY_HELD_BACK: f64 = 0.5;

pub(super) struct Loss;

impl Cause for Loss {
    fn entry(&self) -> &'static CauseEntry {
        &ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        let reference = reference(gap)?;
        let [slow, fast] = both(reference);
        match sends(gap) {
            Some(Sends::Datagrams) => of_datagrams(gap, reference, [slow, fast]),
            Some(Sends::Connection) => of_waiting(gap, reference, "connections", Vec::new()),
            Some(sends) => {
                let (Some(again), Some(more)) = (tell(gap, slow, fast), loses_more(slow, fast)) else {
                    let text = "how many segments were sent again is not known".to_owned();
                    return Err(Standing::Undecided(gap.not_measured(text)));
                };
                if matches!(sends, Sends::Exchange { .. }) {
                    // How many of a thousand get lost says little of them: one that waits for a time-out costs as much as thousands.
                    let facts = if more { vec![gap.evidence(reference, again)] } else { Vec::new() };
                    return of_waiting(gap, reference, "exchanges", facts);
                }
                if !more {
                    return Err(Standing::RuledOut(gap.evidence(reference, again)));
                }
                if slow.held_back().is_none_or(|share| share > MOSTLY_HELD_BACK) {
                    let text = format!("{again}, but windows or buffers hold it back for most of the time");
                    return Err(Standing::Undecided(gap.evidence(reference, text)));
                }
                let streams = streams(gap)?;
                let flow = format!("{} carries {}", gap.slow_name(), streams.tell());
                if !streams.add_up() {
                    let text =
                        format!("{again}, but streams do not add up, as where what is too much is dropped: {flow}");
                    return Err(Standing::Undecided(gap.evidence(&streams.many, text)));
                }
                let told = told(gap, &again, vec![gap.evidence(&streams.many, flow)]);
                // How much of the gap that makes is not measured: a round trip may be longer as well, or each flow be policed.
                Ok(fit_by_host(gap, &ENTRY, None, Confidence::Likely, told))
            }
            None => Err(Standing::Undecided(gap.not_measured("what is sent is not known".to_owned()))),
        }
    }
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

fn told(gap: &Gap<'_>, text: &str, mut facts: Vec<Evidence>) -> Told {
    let slow = gap.slow_name();
    facts.insert(0, gap.at_reference(text.to_owned()));
    Told {
        summary: format!("Packets get lost on the path to {slow}: {text}."),
        remedy: format!(
            "Find where they get lost: `ip -s link` and `tc -s qdisc` at both ends of the path to {slow} (errors, dropped), `nft list \
             ruleset` for rules that drop or limit, `mtr -n HOST` for the way; a full-duplex link that fell back to half duplex, a bad \
             cable and a busy radio link lose at random; a policer drops what each flow sends beyond its rate."
        ),
        facts,
        further: Vec::new(),
    }
}

/// Ops that wait for a packet to be sent again take hundreds of milliseconds, and the others do not: what the mean is beyond the
/// usual time is what is waited for.
fn of_waiting(gap: &Gap<'_>, reference: &View<'_>, what: &str, facts: Vec<Evidence>) -> Result<Standing, Standing> {
    /// From here on it may be waiting for a time-out, whose least is 200 ms on Linux.
    const TIMEOUT_NS: u64 = 150_000_000;
    let beyond_usual_ns = |seen: &TargetObservation| {
        Some((seen.service_mean_ns? - seen.service_profile.quantile_ns(0.5)? as f64).max(0.0))
    };
    let (Some(slow_ns), Some(fast_ns)) = (beyond_usual_ns(reference.slow), beyond_usual_ns(reference.fast)) else {
        return Err(Standing::Undecided(gap.not_measured("how times are spread is not known".to_owned())));
    };
    let longest_ns = reference.slow.service_profile.quantile_ns(1.0).unwrap_or(0);
    let Some(share) = share_of_log(reference, slow_ns - fast_ns) else {
        return Err(Standing::Undecided(gap.not_measured("what waiting makes of the gap is not known".to_owned())));
    };
    let text =
        format!("some {what} of {} wait for a time-out: that makes {} of the gap", gap.slow_name(), percent(share));
    if share < Flip::NOTEWORTHY {
        let text =
            format!("{what} of {} that take far longer than usual make {} of the gap", gap.slow_name(), percent(share));
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    if longest_ns < TIMEOUT_NS {
        // A last segment that is sent again by a probe (RFC 8985) waits for some round trips only.
        let text =
            format!("some {what} of {} take far longer than usual, but none waits for a time-out", gap.slow_name());
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    if facts.is_empty() {
        // Of connections TCP tells nothing when they are closed: a queue that is too short looks the same.
        let text = format!("{text}; whether packets were sent again is not known");
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told(gap, &text, facts)))
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
    Ok(fit_by_host(gap, &ENTRY, Some(share.clamp(0.0, 1.0)), Confidence::Likely, told(gap, &lost, facts)))
}
