//! `net.path-delay` of paths: packets take longer on the slow side.
//!
//! The shortest round trip is what the way takes: TCP measures it, and a kernel answers at its other end. An exchange waits for one, a
//! connection for two. A stream of blocks flows at what is under way for each round trip: where as much is under way on the slow side
//! as on the fast one, it is slow because the round trips are long. Waiting is hidden by more streams, and that is what tells it from
//! work on each packet (long chains of filter rules, say) and from caps, which delay the first packet as well or hold all streams.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::paths::{KINDS, Sends, both, loses_more, queues, sends, streams};
use crate::evidence::worth::{reference, share_of_log};
use crate::gap::{Flip, Gap, View, percent};
use crate::path::Path;
use duel_model::{Confidence, format_bytes, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.path-delay",
    description: "the network path to the server is longer: each round trip takes more time",
    signature: "the shortest round trip that TCP saw is longer, worth the gap (one for an exchange, two for a \
                connection; of blocks, where as much is under way for each round trip as on the fast side, nothing \
                queues and nothing is lost), and streams add up",
    at_most: "likely",
    needs_machine: false,
};

/// Round trips are equally long if they differ by less than a quarter, as for windows.
const CLEARLY_LONGER: f64 = 1.25;
/// Over so much the smallest windows that programs are given (64 KiB) carry more than 300 MB/s.
const CLEARLY_LONGER_NS: f64 = 200e3;
/// With so much of what the fast side has under way, the slow side is not held back by what is under way.
const AS_MUCH: f64 = 0.7;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let [of_slow, of_fast] = both(reference);
    let (Some(slow_ns), Some(fast_ns)) = (of_slow.shortest_trip_ns(), of_fast.shortest_trip_ns()) else {
        return Err(Standing::Undecided(gap.not_measured("the round-trip time is not known".to_owned())));
    };
    let trips = format!(
        "the shortest round trip to {slow} takes {}, to {fast} {}",
        format_duration_ns(slow_ns),
        format_duration_ns(fast_ns)
    );
    let (ruled_out, open) = (
        |why: &str| Standing::RuledOut(gap.evidence(reference, format!("{trips}{why}"))),
        |why: &str| Standing::Undecided(gap.evidence(reference, format!("{trips}{why}"))),
    );
    let extra_ns = slow_ns - fast_ns;
    let (worth, further) = match sends(gap) {
        Some(Sends::Connection) => (share_of_log(reference, 2.0 * extra_ns), None),
        Some(Sends::Datagrams) => return Err(ruled_out(", for which no datagram waits")),
        None => return Err(open(", and what is sent is not known")),
        Some(sends) if sends.fits_one_flight() => (share_of_log(reference, extra_ns), None),
        Some(Sends::Exchange { .. }) => {
            // It waits for one round trip at least.
            let share = share_of_log(reference, extra_ns);
            if share.is_some_and(|share| share < Flip::NOTEWORTHY) && extra_ns > 0.0 {
                return Err(open(": how many of them an exchange waits for is not known"));
            }
            if queues(of_slow) == Some(true) {
                return Err(open(", but packets queue on the way, as before a narrow link"));
            }
            if loses_more(of_slow, of_fast) != Some(false) {
                return Err(open(", but segments are lost, or that is not known"));
            }
            (share, None)
        }
        Some(Sends::Blocks { .. }) => {
            if slow_ns < (CLEARLY_LONGER * fast_ns).max(fast_ns + CLEARLY_LONGER_NS) {
                return Err(ruled_out(": equally long"));
            }
            let (share, text) = of_flow(reference, [of_slow, of_fast], [slow_ns, fast_ns])
                .ok_or_else(|| open(", and how much flows is not known"))?;
            let text = text.replace("{slow}", &slow).replace("{fast}", &fast);
            let Some(share) = share else { return Err(open(&format!(", but {text}"))) };
            if queues(of_slow) == Some(true) {
                return Err(open(", but packets queue on the way, as before a narrow link"));
            }
            if loses_more(of_slow, of_fast) != Some(false) {
                return Err(open(", but segments are lost, or that is not known"));
            }
            (Some(share), Some(text))
        }
    };
    let Some(share) = worth else { return Err(open(", and the time per op is not known")) };
    if share < Flip::NOTEWORTHY {
        return Err(ruled_out(": that difference makes little of the gap"));
    }
    let streams = streams(gap)?;
    if !streams.add_up() {
        let text = format!("{trips}, but streams do not add up: {}", streams.tell());
        return Err(Standing::Undecided(gap.evidence(&streams.many, text)));
    }
    let told = Told {
        summary: format!(
            "The path to {slow} is longer: a round trip takes {} more than to {fast}. Waiting for it makes {} of the gap; more \
             streams hide it.",
            format_duration_ns(extra_ns),
            percent(share)
        ),
        remedy: format!(
            "Look where the time goes: `mtr -n HOST` (or `traceroute -n HOST`) towards both, and routes, VPNs and wireless links \
             on the way to {slow}. If it has to stay far away: several streams, larger socket buffers, and fewer round trips."
        ),
        facts: vec![gap.evidence(reference, trips.clone())],
        further: further
            .into_iter()
            .chain([format!("{slow} carries {}", streams.tell())])
            .map(|text| gap.evidence(&streams.many, text))
            .collect(),
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// What the longer round trips make of a gap between two flows, if nothing else keeps the slow one small; and what is under way.
/// `None` where that is not known.
fn of_flow(view: &View<'_>, paths: [Path<'_>; 2], trips_ns: [f64; 2]) -> Option<(Option<f64>, String)> {
    let [slow, fast] = [0, 1].map(|side| Some(paths[side].bytes_per_s()? * trips_ns[side] / 1e9));
    let (slow, fast) = (slow?, fast?);
    let text = format!("{{slow}} carries {} for each round trip, {{fast}} {}", format_bytes(slow), format_bytes(fast));
    let share = (trips_ns[0] / trips_ns[1]).ln() / view.log.mid;
    Some(((slow >= AS_MUCH * fast).then(|| share.clamp(0.0, 1.0)), text))
}
