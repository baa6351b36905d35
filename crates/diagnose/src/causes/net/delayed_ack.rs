//! `net.delayed-ack`: the slow side holds back a small write until we acknowledge the one before, and we delay that.
//!
//! Nagle's algorithm (RFC 896) sends no small segment while another one is unacknowledged; the receiver delays its
//! acknowledgement, by 40 ms on Linux and up to 200 ms elsewhere (RFC 9293 allows 500 ms). Seen as ops that wait that
//! long for the rest of a response; shown by acknowledging at once, which takes nothing else away.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, needs_http, shown_flip};
use crate::evidence::counted::share_of_phases;
use crate::evidence::stall::Stalls;
use crate::evidence::trip::trips;
use crate::evidence::worth::{needs_gap_alone, reference, too_little};
use crate::gap::{Flip, Gap, View};
use crate::probes::QUICK_ACK;
use duel_model::web::phase;
use duel_model::{Confidence, MILLISECOND_NS, Nanos, Phase, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.delayed-ack",
    description: "small writes are held back until the client's delayed acknowledgement (Nagle's algorithm)",
    signature: "ops that wait for 35 ms and more within a response; the gap goes away with acknowledgements sent \
                at once",
    at_most: "confirmed",
    needs_machine: false,
};

/// The shortest delay of an acknowledgement on common systems is Linux's 40 ms (`TCP_DELACK_MIN`); it begins when the
/// first part arrives, a little before we read it.
const LEAST_NS: Nanos = 35 * MILLISECOND_NS;
/// The longest that common systems delay it, with a little to spare: twice 200 ms, for a response of two such writes.
const MOST_NS: f64 = 400e6;
const PHASES: [(Phase, Nanos); 2] = [(phase::WAIT, LEAST_NS), (phase::RECEIVE, LEAST_NS)];

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    needs_http(gap)?;
    let reference = reference(gap)?;
    // One connection holds its writes back like any other.
    needs_gap_alone(gap, None)?;
    let Some([of_slow, of_fast]) = Stalls::of_both_alike(reference, &PHASES) else {
        let text = "how the times of waiting and receiving are spread is not known".to_owned();
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    };
    let stalled = format!(
        "{} per request are spent in waits of 35 ms and more for {slow}, {} for {fast}",
        format_duration_ns(of_slow.ns_per_op),
        format_duration_ns(of_fast.ns_per_op)
    );
    // What takes longer than an acknowledgement is delayed waits for something else.
    let most_ns = of_slow.count * MOST_NS / reference.slow.ok.max(1) as f64;
    let extra_ns = (of_slow.ns_per_op - of_fast.ns_per_op).min(most_ns);
    if let Some(share) = share_of_phases(reference, extra_ns).filter(|share| *share < Flip::NOTEWORTHY) {
        return Err(too_little(gap, reference, share, gap.evidence(reference, stalled)));
    }
    let flip = shown_flip(gap, QUICK_ACK)?;
    if !flip.moved() {
        if flip.is_negligible() {
            // Our own acknowledgements are not it. A backend's may be, behind a proxy, which looks the same from here.
            let text =
                format!("{stalled}; {}: it is not our acknowledgements that are waited for", gap.tell_flip(&flip));
            return Err(Standing::RuledOut(gap.evidence(&flip.view, text)));
        }
        return Err(did_not_move(gap, &flip));
    }
    if !flip.confirms() {
        not_by_round_trips(gap, reference, &gap.tell_flip(&flip))?;
    }
    let told = Told {
        summary: format!(
            "{slow} sends its responses in several small writes and holds the later ones back until the former are \
             acknowledged, which clients delay by 40 to 200 ms. With acknowledgements sent at once, {} of the gap is \
             gone.",
            flip.percent()
        ),
        remedy: format!(
            "Let {slow} set TCP_NODELAY (nginx `tcp_nodelay on`, HAProxy `option http-no-delay`; most \
             frameworks have an option of that name), or hand over head and body in one write. `ss -tin` on its \
             machine shows unsent bytes (`notsent`) while it waits."
        ),
        facts: vec![gap.evidence(reference, stalled)],
        further: Vec::new(),
    };
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// Leaves it open on a path whose round trips are nearly as long as those waits, where new connections grow: the sooner they
/// are acknowledged, the sooner they do.
fn not_by_round_trips(gap: &Gap<'_>, reference: &View<'_>, flipped: &str) -> Result<(), Standing> {
    if reference.slow.reused_share.is_some_and(|share| share >= 0.9) {
        return Ok(());
    }
    let trips = match trips(gap) {
        Ok(trips) => trips,
        Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
        Err(_) => return Ok(()),
    };
    let trip_ns = trips.slow.typical.mid;
    if trip_ns < 0.5 * LEAST_NS as f64 {
        return Ok(());
    }
    let text = format!(
        "{flipped}; but a round trip takes {}, and new connections grow sooner when they are acknowledged at once",
        format_duration_ns(trip_ns)
    );
    Err(Standing::Undecided(gap.evidence(reference, text)))
}
