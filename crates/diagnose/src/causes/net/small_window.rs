//! `net.small-window`: the slow side has few bytes under way on a distant path.
//!
//! What is under way is acknowledged after a round trip, so a connection flows at window over round trip, and several
//! connections flow as many times faster. The machine's limit on buffers has to be of the size of what is under way, and
//! smaller than the fast side's: otherwise a cap of each connection would show the same.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::evidence::bulk::{
    Growth, LEAST_WINDOW_BYTES, bulk, largest_window_bytes, longer_receiving_ns, needs_small_requests,
};
use crate::evidence::counted::{Counted, share_of_phases};
use crate::evidence::trip::{MOST_TRIPS, SAME_TRIP, trips};
use crate::evidence::worth::{needs_gap_alone, reference};
use crate::gap::{DemandLook, Flip, Gap, percent};
use duel_model::{Confidence, format_bytes, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.small-window",
    description: "socket buffers are too small for the distance: a connection waits for acknowledgements",
    signature: "as many bytes per round trip as the machine's buffers hold, and several connections flow as many \
                times faster",
    at_most: "likely",
    needs_machine: true,
};

/// On a shorter way even the smallest default buffers (16 KiB on Linux) carry more than 16 MB/s, which is rarely what a
/// connection gets.
const NOTICEABLE_TRIP_NS: f64 = 1e6;
/// A response of one window waits for none; with less than half of another one, what it seems to wait is something else.
const LONG_RESPONSE: f64 = 1.5;
/// The kernel keeps its books in the same buffers: what is under way is between an eighth of the limit (small packets
/// with large overhead) and all of it.
const LEAST_OF_BUFFER: f64 = 0.125;
/// Slow start and pauses between responses make the mean flow a little less or more than a window per round trip.
const MOST_OF_BUFFER: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if let Some(bytes) = reference.slow.bytes_in_per_op.filter(|&bytes| bytes <= LEAST_WINDOW_BYTES) {
        needs_small_requests(gap)?;
        let text = format!("a response of {} fits into any window, so it waits for none", format_bytes(bytes));
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    let receive_ns = longer_receiving_ns(gap, reference)?;
    let trips = trips(gap)?;
    let [slow_trip, fast_trip] = [trips.slow, trips.fast].map(|trip| trip.typical.mid);
    let way = format!(
        "a round trip to {slow} takes {}, to {fast} {}",
        format_duration_ns(slow_trip),
        format_duration_ns(fast_trip)
    );
    let ruled_out = |why: &str| Standing::RuledOut(gap.evidence(&trips.seen, format!("{way}{why}")));
    if slow_trip < NOTICEABLE_TRIP_NS {
        return Err(ruled_out(": too short for a window to matter"));
    }
    // A window holds up a single connection at least as much as many.
    needs_gap_alone(gap, Some(&way))?;
    if slow_trip > SAME_TRIP * fast_trip {
        let text = format!("{way}: the way is longer, whatever the windows");
        return Err(Standing::Undecided(gap.evidence(&trips.seen, text)));
    }
    let bulk = bulk(gap)?;
    let flow = format!("bytes of {slow} flow at {}", bulk.tell());
    if bulk.growth == Growth::Stays {
        return Err(Standing::RuledOut(gap.evidence(&bulk.many, flow)));
    }
    let open = |why: String| Standing::Undecided(gap.evidence(&bulk.many, format!("{flow}, {why}")));
    if bulk.growth == Growth::Between {
        return Err(open("which is neither as fast as one connection nor as many".to_owned()));
    }
    let Some(under_way) = bulk.under_way_bytes(bulk.alone.slow, trips.slow) else {
        return Err(open("and how long receiving takes is not known".to_owned()));
    };
    let shown = format!("{} per round trip", format_bytes(under_way));
    let body_bytes = bulk.alone.slow.body_bytes_per_op.unwrap_or(0.0);
    if body_bytes < LONG_RESPONSE * under_way {
        needs_small_requests(gap)?;
        let text = format!("{shown}, of responses of {}: too short to wait for a window", format_bytes(body_bytes));
        return Err(Standing::RuledOut(gap.evidence(&bulk.alone, text)));
    }
    if bulk.is_even() != Some(true) {
        return Err(open(format!("{shown}, but receiving is not known to be slow throughout")));
    }
    let reused = bulk.alone.slow.reused_share.unwrap_or(0.0);
    if reused < 0.9 && receive_ns < MOST_TRIPS * slow_trip {
        return Err(open(format!("{shown}: those may be the round trips in which a new connection grows")));
    }
    let [of_slow, of_fast] = [gap.slow, gap.fast].map(|side| largest_window_bytes(gap, side));
    let Some(largest) = of_slow else {
        return Err(open(format!(
            "{shown}: a window or a cap of each connection; the machine's buffers are not known"
        )));
    };
    let of_fast_told = of_fast.map_or_else(|| "not known".to_owned(), format_bytes);
    let buffers = format!(
        "send buffers on {slow}'s machine hold {} at most, those on {fast}'s {of_fast_told}",
        format_bytes(largest)
    );
    if under_way < LEAST_OF_BUFFER * largest {
        let text = format!(
            "{buffers}, and no more than {shown} flow: something else holds them up, or the server chose a smaller buffer"
        );
        return Err(Standing::Undecided(gap.on_host(text, None)));
    }
    if of_fast.is_none_or(|of_fast| of_fast < 1.5 * largest) || under_way > MOST_OF_BUFFER * largest {
        return Err(open(format!("{shown}; {buffers}")));
    }
    let lost = match gap.demands() {
        DemandLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        DemandLook::Shown(demands) => Counted::of(&demands, "tcp.retransmitted_segments"),
        DemandLook::Missing(_) => None,
    };
    if lost.is_some_and(Counted::is_marked) {
        return Err(open(format!("{shown}; {buffers}; but segments are lost, which keeps windows small as well")));
    }
    let share = share_of_phases(reference, receive_ns).filter(|&share| share >= Flip::NOTEWORTHY);
    let Some(share) = share else {
        return Err(open(format!("{shown}, which is not worth the gap")));
    };
    let told = Told {
        summary: format!(
            "{slow} sends no more than {shown} over a connection, on a path of {}: its send buffers hold {} at most. \
             Waiting for acknowledgements makes {} of the gap.",
            format_duration_ns(slow_trip),
            format_bytes(largest),
            percent(share)
        ),
        remedy: format!(
            "On {slow}'s machine, let buffers grow: `sysctl net.ipv4.tcp_wmem` (and `tcp_rmem` for uploads), as in \
             `net.ipv4.tcp_wmem=\"4096 16384 4194304\"`, and no SO_SNDBUF set by the server (nginx `listen ... \
             sndbuf=`). A connection needs its rate times the round trip; `ss -tin` shows `sndbuf_limited`."
        ),
        facts: vec![
            gap.evidence(&trips.seen, way.clone()),
            gap.evidence(&bulk.many, flow.clone()),
            gap.on_host(buffers, Some("sysctl net.ipv4.tcp_wmem net.ipv4.tcp_rmem".to_owned())),
        ],
        further: Vec::new(),
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}
