//! `http.h2-window`: over HTTP/2 one end may send no further until the other one gives it leave, and that takes the slow side long.
//!
//! Each end says how much it takes ahead of its leave (RFC 9113, 5.2). A window that is smaller than what is to be sent costs a round trip
//! for each of its fillings, whatever TCP does.
//!
//! * Responses wait for **our** window, which is the same for all targets: what differs is how far each is, and how soon it goes on.
//!   With a window that holds all of a response (which is what duel has where the plan sets none) the slow side has to gain, and the gap
//!   to go away. That is a flip as any other.
//! * Requests wait for the **server's** window. No setting of ours makes that larger; HTTP/1.1 has none. So over one connection HTTP/1.1
//!   on all targets has to take the gap away, and three things have to fit, for HTTP/1.1 spares more than windows: the slow side told the
//!   smaller window, the time is lost in sending, and about a window is under way for each round trip.
//!
//! What looks alike: small buffers of TCP and caps are the same with any window of HTTP/2, and over HTTP/1.1; `http.version`, which is
//! work for each frame, knows no distance, and says nothing of requests and responses that wait for leave. A server may give leave for
//! the whole connection that is smaller than that for a stream, and does not tell it as a setting: that acquits nobody here.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, needs_http, of_both, shown_flip};
use crate::evidence::bulk::sent_bytes;
use crate::evidence::trip::{SAME_TRIP, trips};
use crate::evidence::worth::{needs_gap_alone, reference};
use crate::gap::{Flip, Gap, phase_share};
use crate::probes::{HTTP_1, WIDE_WINDOW};
use duel_model::web::{phase, settings::H2_WINDOW};
use duel_model::{Confidence, HttpPlan, format_bytes, format_duration_ns, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.h2-window",
    description: "over HTTP/2 a small flow-control window, ours or the server's, is waited for again and again",
    signature: "responses: with a window of ours that holds them the slow side gains and the gap goes away. Requests with bodies: \
                the slow side takes less ahead of its leave, about that much is sent per round trip, and over one connection \
                HTTP/1.1 on all takes the gap away",
    at_most: "confirmed; likely where round trips are equally long, and by HTTP/1.1",
    needs_machine: false,
};

/// The slow side has to gain, by more than two measurements one after the other usually differ by.
const GAINS: f64 = 0.8;
/// A server says nothing of the window of a whole connection, which is this at least (RFC 9113, 6.9.2): what fits into it waits for none
/// of either kind, where streams have as much.
const LEAST_OF_CONNECTION_BYTES: u64 = 65_535;
/// More of the difference in time than this has to go away with HTTP/1.1, which leaves half of the work at least, see `http.version`.
const MOST_OF_DEARER_WORK: f64 = 0.5;
/// What is under way for each round trip is a window: half of one where leave comes for halves and each is waited for, and up to twice
/// where the last window of a request is on its way when it counts as sent.
const ABOUT_A_WINDOW: std::ops::RangeInclusive<f64> = 0.5..=2.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let http = needs_http(gap)?;
    if http.http2.is_none() {
        let text = "HTTP/1.1 has no windows of its own".to_owned();
        return Err(Standing::RuledOut(gap.not_measured(text)));
    }
    let both = [responses(gap, http), requests(gap, http)].map(|standing| standing.unwrap_or_else(|settled| settled));
    // Either may be it; it is neither only where both are ruled out.
    let [responses, requests] = both;
    Ok(if told_by(&requests) > told_by(&responses) { requests } else { responses })
}

/// How much a standing says of which of the two it is.
fn told_by(standing: &Standing) -> u8 {
    match standing {
        Standing::RuledOut(_) | Standing::Minor(_) => 0,
        Standing::Undecided(_) => 1,
        Standing::Suspected(_) => 2,
        Standing::Wants(_) => 3,
        Standing::Fits(_) => 4,
    }
}

/// Responses that wait for our leave.
fn responses(gap: &Gap<'_>, http: &HttpPlan) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    let window = http.number(&H2_WINDOW) as f64;
    let body = |side: usize| gap.case.comparison.get(side)?.body_bytes_per_op;
    let bodies = of_both(gap, "how large the responses are is not known", body)?;
    // All requests of a connection share its window, and leave is given anew when half of it is used up.
    let most = bodies.into_iter().fold(0.0, f64::max) * f64::from(http.streams());
    if 2.0 * most <= window {
        let text = format!("with a window of {} no server waits for leave to send a response", format_bytes(window));
        return Err(Standing::RuledOut(gap.at_reference(text)));
    }
    let reference = reference(gap)?;
    let flip = shown_flip(gap, WIDE_WINDOW)?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    needs_gain(gap, &flip)?;
    let ways = match trips(gap) {
        Ok(trips) => {
            let [of_slow, of_fast] = [trips.slow, trips.fast].map(|trip| trip.typical.mid);
            let text = format!(
                "a round trip to {slow} takes {}, to {} {}",
                format_duration_ns(of_slow),
                gap.fast_name(),
                format_duration_ns(of_fast)
            );
            Some((of_slow > SAME_TRIP * of_fast, gap.evidence(&trips.seen, text)))
        }
        Err(wanted @ Standing::Wants(_)) => return Err(wanted),
        Err(_) => None,
    };
    let is_farther = ways.as_ref().is_some_and(|(is_farther, _)| *is_farther);
    let told = Told {
        summary: format!(
            "{slow} waits for leave to send on: responses of {} go through a window of {}, as it is set here, which takes {}. With \
             a window that holds them, {} of the gap is gone.",
            format_bytes(body(gap.slow).unwrap_or(0.0)),
            format_bytes(window),
            if is_farther { "more time the farther a server is" } else { "that server more time than the other one" },
            flip.percent()
        ),
        remedy: "The window is that of the client: leave `--h2-window` out, or give as much as flows in a round trip. Clients with \
                 a window of that size see the same; where they are proxies or balancers, look there for it (nginx as a client \
                 of gRPC, HAProxy `tune.h2.initial-window-size`, curl and browsers have megabytes)."
            .to_owned(),
        facts: vec![gap.evidence(reference, gap.tell(reference))],
        further: ways.into_iter().map(|(_, told)| told).collect(),
    };
    let confidence = if flip.confirms() && is_farther { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// Requests that wait for the server's leave.
fn requests(gap: &Gap<'_>, http: &HttpPlan) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let bytes = sent_bytes(http);
    let windows = of_both(gap, "how much each side takes ahead of its leave is not known", |side| {
        gap.count(side, web::STREAM_WINDOW_BYTES)
    });
    if let Some(bytes) = bytes {
        let window = windows.as_ref().map_or(0, |[of_slow, _]| *of_slow).min(LEAST_OF_CONNECTION_BYTES);
        if bytes == 0 || bytes.saturating_mul(u64::from(http.streams())) <= window {
            let text = "requests carry so little that none waits for leave to be sent".to_owned();
            return Err(Standing::RuledOut(gap.at_reference(text)));
        }
    }
    let [of_slow, of_fast] = windows?;
    let told_windows = format!(
        "{slow} takes {} of a request ahead of its leave, {fast} {}",
        format_bytes(of_slow as f64),
        format_bytes(of_fast as f64)
    );
    let Some(bytes) = bytes else {
        let text = format!("{told_windows}; how much requests carry is not known");
        return Err(Standing::Undecided(gap.first_contact(text)));
    };
    let reference = reference(gap)?;
    needs_gap_alone(gap, Some(&told_windows))?;
    if of_slow >= of_fast || bytes <= of_slow {
        return Err(Standing::Undecided(gap.first_contact(told_windows)));
    }
    let flip = shown_flip(gap, HTTP_1)?;
    let told = gap.tell_flip(&flip);
    let open = |but: String| Standing::Undecided(gap.evidence(&flip.view, format!("{told}; but {but}")));
    if !flip.moved() {
        // Where the gap has grown, HTTP/1.1 is slow there by itself, behind which windows may hide.
        let has_grown = flip.gone.of_time().mid < -Flip::NOTEWORTHY;
        return Err(if has_grown {
            open("HTTP/1.1 is slow there by itself".to_owned())
        } else {
            did_not_move(gap, &flip)
        });
    }
    needs_gain(gap, &flip)?;
    if flip.gone.of_time().low() <= MOST_OF_DEARER_WORK {
        return Err(open("what makes all work of a server dearer could take as much with it".to_owned()));
    }
    if phase_share(reference, &[phase::SEND]).is_none_or(|share| share < 0.5) {
        return Err(open("most of the extra time is not lost while requests are sent".to_owned()));
    }
    let trips = trips(gap)?;
    let trip_ns = trips.slow.typical.mid;
    let send_ns = reference.slow.phase_mean_ns.get(&phase::SEND.id()).copied().unwrap_or(0.0);
    let under_way = bytes as f64 / send_ns * trip_ns;
    let flows = format!("{} per round trip of {}", format_bytes(under_way), format_duration_ns(trip_ns));
    if !ABOUT_A_WINDOW.contains(&(under_way / of_slow as f64)) {
        return Err(open(format!("{told_windows}, and {flows} are sent")));
    }
    let told = Told {
        summary: format!(
            "{slow} takes no more than {} of a request's body ahead of its leave, {fast} {}: a body of {} is sent at {flows}. With \
             HTTP/1.1 on both, {} of the gap is gone.",
            format_bytes(of_slow as f64),
            format_bytes(of_fast as f64),
            format_bytes(bytes as f64),
            flip.percent()
        ),
        remedy: format!(
            "Let {slow}, or what speaks HTTP/2 in its place, take more ahead (SETTINGS_INITIAL_WINDOW_SIZE, and the window of the \
             connection): HAProxy `tune.h2.initial-window-size` (later `tune.h2.fe.initial-window-size`), nginx \
             `http2_body_preread_size` and `client_body_buffer_size`, Apache `H2WindowSize`. A connection needs its rate times \
             the round trip."
        ),
        facts: vec![gap.first_contact(told_windows.clone()), gap.evidence(&trips.seen, flows.clone())],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, Confidence::Likely, told))
}

/// The slow side gains by a flip; a gap that goes away because the fast side loses is none of this.
fn needs_gain(gap: &Gap<'_>, flip: &Flip<'_>) -> Result<(), Standing> {
    let times = gap.known_reference().and_then(|reference| Some((reference.slow_ns()?, flip.view.slow_ns()?)));
    match times {
        Some((before_ns, now_ns)) if now_ns <= GAINS * before_ns => Ok(()),
        _ => {
            let text = format!("{}; but {} gains too little", gap.tell_flip(flip), gap.slow_name());
            Err(Standing::Undecided(gap.evidence(&flip.view, text)))
        }
    }
}
