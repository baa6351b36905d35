//! `http.h2-streams`: the slow side takes fewer requests at a time on a connection of HTTP/2 than are to be sent.
//!
//! A server says how many it takes (SETTINGS_MAX_CONCURRENT_STREAMS), and duel keeps to that: the other requests wait at our end
//! until a stream is free. So that there is a limit is a fact, and what it is worth takes two probes, both with the plan's load:
//!
//! * as many requests at a time over more connections, none of which carries more than every target takes: the slow side has to gain,
//!   and the gap to go away. A cap or a window of each connection would show the same;
//! * as few requests at a time on the plan's connections, to all targets: for the slow side nothing changes but how many wait here. What
//!   else holds its connections up does not make the fast side slow, so the fast side has to become as slow.
//!
//! What is left of the gap then has to show over one connection as well, with one request at a time: else something that holds up a
//! connection more tightly than streams do makes the gap, and more streams would change nothing.
//!
//! What looks like it: a server that works on fewer requests of a connection than it takes says nothing of it, which is `unknown`; few
//! workers serve as few requests over many connections; where the server computes all the time, as many wait there instead of here.

use crate::cause::{Cause, CauseEntry, Fit, Standing, Told, needs_http, of_both, shown_look};
use crate::evidence::worth::{
    did_not_move_under_load, moved_under_load_ns, reference, reference_under_load, shown_under_load,
};
use crate::gap::{Flip, Gap, Look, View, percent};
use crate::probes::{ALONE, FEW_STREAMS, MORE_CONNECTIONS};
use duel_model::{Confidence, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.h2-streams",
    description: "the server takes so few requests at a time on a connection of HTTP/2 that the others wait for it",
    signature: "HTTP/2: the slow side says that it takes fewer requests at a time on a connection than are to be sent, and \
                than the fast side takes; with as many over more connections it gains and the gap goes away, and with as few \
                on each connection to all the fast side becomes as slow",
    at_most: "confirmed",
    needs_machine: false,
};

/// The slow side has to gain, by more than two measurements one after the other usually differ by.
const GAINS: f64 = 1.25;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let asked = needs_http(gap)?.streams();
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if asked == 1 {
        let text = "no connection is to carry more than one request at a time".to_owned();
        return Err(Standing::RuledOut(gap.not_measured(text)));
    }
    let taken = of_both(gap, "how many requests at a time each side takes on a connection is not known", |side| {
        gap.count(side, web::MAX_STREAMS)
    })?;
    let [of_slow, of_fast] = taken.map(|taken| taken.min(u64::from(asked)));
    let takes = format!("{slow} takes {of_slow} of {asked} requests at a time on a connection, {fast} {of_fast}");
    if of_slow == u64::from(asked) {
        return Err(Standing::RuledOut(gap.first_contact(takes)));
    }
    if of_slow >= of_fast {
        // More of them may help the slow side alone, and there is no target that shows what as few as these do.
        return Err(Standing::Undecided(gap.first_contact(takes)));
    }
    reference(gap)?;
    // It acquits nobody that all of the gap shows with one request at a time: who is slow with one may be slow with many for the sole
    // reason that few of them are taken.
    let elsewhere = match gap.look(ALONE) {
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Shown(alone) => alone.log.high(),
        Look::Missing(_) => 0.0,
    };
    let before = reference_under_load(gap)?;
    let flip = shown_under_load(gap, MORE_CONNECTIONS, &before)?;
    if !flip.moved() {
        return Err(did_not_move_under_load(gap, &flip, &before));
    }
    let told = gap.tell_flip_against(&flip, Some(&before));
    let open = |view: &View<'_>, but: &str| Standing::Undecided(gap.evidence(view, format!("{told}; but {but}")));
    let gain = flip.view.slow.rate_per_s.zip(before.slow.rate_per_s).map_or(0.0, |(now, before)| now / before);
    if gain < GAINS {
        return Err(open(&flip.view, &format!("{slow} gains too little")));
    }
    let few = shown_look(gap, FEW_STREAMS)?;
    let told_few = format!("{}: {} instead of {:.2}x", FEW_STREAMS.phrase(), gap.tell(&few), before.ratio);
    // Only the fast side has another load, and the question is how much slower that makes it.
    let gone = few.log.over(before.log).map(duel_stats::Estimate::complement);
    let is_as_slow =
        |gone: duel_stats::Estimate| gone.mid >= Flip::NOTEWORTHY && gone.mid > Flip::MANY_LOOKS * gone.below;
    let Some(gone) = gone.filter(|gone| is_as_slow(*gone)) else {
        return Err(open(&few, &format!("{told_few}: whatever holds up each connection would show the first")));
    };
    if few.log.low() > elsewhere {
        return Err(open(
            &few,
            &format!("{told_few}: something holds up its connections more tightly than streams do"),
        ));
    }
    let confirms = flip.confirms() && gone.mid >= Flip::EXPLAINS && gone.low() > 0.5;
    let share = flip.gone.share().min(gone.mid.clamp(0.0, 1.0));
    let told = Told {
        summary: format!(
            "{takes}: the others wait for a free one. With as many requests at a time over more connections {} of the gap is \
             gone, and with as few on each connection {fast} is as slow by {}.",
            flip.percent(),
            percent(gone.mid)
        ),
        remedy: format!(
            "Let {slow}, or what speaks HTTP/2 in its place, take more requests at a time: nginx \
             `http2_max_concurrent_streams` (128 by default), Apache `H2MaxSessionStreams`, HAProxy \
             `tune.h2.max-concurrent-streams`. `h2load -c1 -m{asked} URL` shows it without duel. Until then clients need more \
             connections."
        ),
        facts: vec![gap.first_contact(takes.clone()), gap.evidence(&flip.view, told), gap.evidence(&few, told_few)],
        further: Vec::new(),
    };
    let confidence = if confirms { Confidence::Confirmed } else { Confidence::Likely };
    Ok(Standing::Fits(Box::new(Fit {
        moved_ns: moved_under_load_ns(gap, &flip).unwrap_or(0.0),
        is_counted: false,
        is_under_load: true,
        ..Fit::of(gap, &ENTRY, Some(share), confidence, told)
    })))
}
