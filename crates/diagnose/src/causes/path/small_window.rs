//! `net.small-window` of paths: socket buffers at one end of the slow side let too few bytes be under way.
//!
//! TCP itself says for how long the receiver's window held it back, and of its own send buffer in part; a stream that waits for
//! acknowledgements flows among others as it does alone. Both ends of all paths are then given
//! buffers of one size, which limits on automatic sizes do not hold down: the slow side has to become faster, and the gap go away. A
//! cap, a loss or a distance stays as it is with any buffer. What looks like it: a receiver that reads too slowly, whose window closes as
//! well, and who gains nothing; and a narrow link with a short queue, which loses less with a smaller buffer, but where it is not
//! the window that holds TCP back. Rejected: buffers of megabytes, which no system grants unless somebody changed it.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, shown_flip};
use crate::evidence::paths::{KINDS, Sends, both, loses_more, sends, streams};
use crate::evidence::worth::reference;
use crate::gap::{Gap, percent};
use crate::path::Path;
use crate::probes::SET_WINDOW;
use duel_model::{Confidence, format_bytes, format_duration_ns};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.small-window",
    description: "socket buffers are too small for the distance: a connection waits for acknowledgements",
    signature: "the window or send buffer held TCP back, or streams add up and nothing is lost; with buffers of \
                208 KiB at both ends of all paths the gap goes away, and the slow side gains",
    at_most: "confirmed",
    needs_machine: false,
};

/// A stream whose window is always full is held back by it for most of the time; with BBR, which sends no faster than it hears that
/// bytes arrive, for 43 % as measured. What stalls now and then comes to a tenth or two.
const HELD_BACK: f64 = 0.25;
/// An exchange that is shorter than this fits into any window but the smallest that Linux gives (`tcp_rmem`, `tcp_wmem`).
const LEAST_WINDOW_BYTES: u64 = 4096;
/// The slow side has to gain: a gap that goes away because the fast side lost is none of buffers. A fifth is beyond what two
/// measurements one after the other usually differ by.
const GAINS: f64 = 0.8;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let slow = gap.slow_name();
    match sends(gap) {
        Some(Sends::Blocks { .. }) => {}
        Some(Sends::Exchange { bytes }) if bytes > LEAST_WINDOW_BYTES => {}
        _ => {
            let text = "an op that is over before its bytes fill a window does not wait for it".to_owned();
            return Err(Standing::RuledOut(gap.at_reference(text)));
        }
    }
    let [of_slow, of_fast] = both(reference);
    if loses_more(of_slow, of_fast) == Some(true) {
        let text = format!("segments of {slow} get lost, which keeps little under way as well");
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    let share = |path: Path<'_>| path.held_back().map_or_else(|| "an unknown share".to_owned(), percent);
    let held = format!(
        "the window or the send buffer held TCP back for {} of the time on {slow}, {} on {}",
        share(of_slow),
        share(of_fast),
        gap.fast_name()
    );
    // A sender whose congestion window has grown no further than its buffer says that it was the congestion window.
    if of_slow.held_back().is_none_or(|share| share < HELD_BACK) {
        let streams = streams(gap)?;
        let text = format!("{held}, and {slow} carries {}", streams.tell());
        if streams.share_one_flow() {
            return Err(Standing::RuledOut(gap.evidence(&streams.many, text)));
        }
        if !streams.add_up() {
            return Err(Standing::Undecided(gap.evidence(&streams.many, text)));
        }
    }
    let flip = shown_flip(gap, SET_WINDOW)?;
    if !flip.moved() {
        // A kernel grants less than is asked for where its limit is lower, and does not say so.
        let text = format!(
            "{}; but a lower net.core.rmem_max or wmem_max makes buffers smaller than that",
            gap.tell_flip(&flip)
        );
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let Some((before_ns, after_ns)) = reference.slow_ns().zip(flip.view.slow_ns()) else {
        return Err(Standing::Undecided(gap.not_measured("the rates are not known".to_owned())));
    };
    let op = gap.case.plan.schema().op.one;
    let times = format!(
        "with buffers of one size an {op} to {slow} takes {} instead of {}",
        format_duration_ns(after_ns),
        format_duration_ns(before_ns)
    );
    if after_ns > GAINS * before_ns {
        let text = format!("{times}: it gains too little, and the fast side loses");
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let under_way = of_slow.bytes_per_s().zip(of_slow.loaded_trip_ns()).map(|(flow, ns)| flow * ns / 1e9);
    let told = Told {
        summary: format!(
            "Socket buffers at one end of the path to {slow} are too small for it{}. With buffers of one size at both ends of all \
             paths, {} of the gap is gone.",
            under_way.map_or_else(String::new, |bytes| format!(
                ": about {} are under way for each round trip",
                format_bytes(bytes)
            )),
            flip.percent()
        ),
        remedy: format!(
            "Compare `sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_moderate_rcvbuf` at both ends of the path to {slow} \
             with the others: the third number bounds what is under way, and has to be at least rate times round trip. Look as well \
             for programs that set SO_RCVBUF or SO_SNDBUF themselves (`ss -tmi`)."
        ),
        facts: vec![gap.evidence(reference, held)],
        further: vec![gap.evidence(&flip.view, times)],
    };
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}
