//! `http.version`: the slow side's HTTP/2 is slow, and its HTTP/1.1 is not.
//!
//! duel speaks one version with all targets: HTTP/2 and nothing else, or HTTP/1.1. So targets never speak different ones
//! because of what they prefer, and what is left to be found is an HTTP/2 that is slower than that of the other side. It is
//! shown by HTTP/1.1 on all targets, with as many requests under way: over one connection one at a time in either version;
//! under the plan's load there are more connections where several requests shared one.
//!
//! It is named over one connection only. Under load the flip takes work from both sides, as HTTP/2 is spoken by both: where the
//! slow side is short of CPU by a little, any work that is taken from it hides the gap. And a connection that is shared is
//! served by a single worker, has one window, and one lost packet holds up all that it carries. A gap that is left when both
//! the version and the sharing are changed is neither's, so it acquits under load, too.
//!
//! What looks alike, and what splits it:
//!
//! * A slower CPU, a quota, a tracer, a long path: whatever makes work dearer makes dearer what HTTP/2 has more of. Three
//!   things tell. HTTP/1.1 has at least half of the work (nginx over TLS: 75 and 89 % of the CPU time for 100 kB and 1 kB, 85
//!   and 100 % of the system calls), so that at least half of such a gap is left, and more than half has to go away. The
//!   fast side pays for HTTP/2 as well, and has to be spared little (nginx over TLS: 17 and 28 % of the time of a request).
//!   In the open HTTP/1.1 hands a whole file to the kernel
//!   (7 calls for 1 MB, against 256): there nothing is said of what is longer than a frame. And where the machine is read,
//!   nobody is accused beside a tracer or a quota that fits.
//! * HTTP/1.1 that is slow on the fast side makes both equal, too: the slow side has to become faster by itself.
//! * Connections that are closed in one version and kept in the other, responses that are compressed or another one in one
//!   version, another certificate or suite: such a flip does not count, see `alike`. A connection that is closed now and then
//!   is `http.no-keepalive`, which has to be ruled out.
//! * A small write that waits for an acknowledgement, as HTTP/2 has more of them, is `net.delayed-ack`, which has to be
//!   ruled out.
//! * Small records of TLS, of which HTTP/2 can feel more: HAProxy with records of 3,200 bytes took 3.5 ms for 690 kB over HTTP/2 instead of 1.6 ms, and no
//!   longer over HTTP/1.1. Left open where those of the slow side are smaller over HTTP/1.1 as well.
//! * A window of HTTP/2, where it is small: with each of its fillings a long path costs a round trip. Ours has to be twice as
//!   large as the response; a server's is not known, so nothing is said of requests that carry much.
//! * ALPN takes no round trip of its own: HTTP/1.1 is offered by it as well.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, needs_http, of_both, shown_flip};
use crate::causes::likes;
use crate::evidence::bulk::sent_bytes;
use crate::evidence::tls_records::RECORD_OVERHEAD_BYTES;
use crate::gap::{Flip, Gap, View};
use crate::probes::{HTTP_1, Mode};
use duel_model::web::settings::H2_WINDOW;
use duel_model::{
    Confidence, Evidence, HttpPlan, TargetObservation, format_bytes, format_duration_ns, sanitize_line, web,
};

static ENTRY: CauseEntry = CauseEntry {
    id: "http.version",
    description: "the server's HTTP/2 is slow: what it serves over HTTP/1.1 it serves slower over HTTP/2",
    signature: "HTTP/2 is spoken; with HTTP/1.1 on all and as many requests at a time the slow side becomes faster, the \
                fast side hardly, and the gap goes away",
    at_most: "confirmed; likely where another program answers HTTP/1.1",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let http = needs_http(gap)?;
    speaks_http2(gap, http)?;
    needs_no_leave(gap, http)?;
    let flip = shown_flip(gap, HTTP_1)?;
    if !flip.moved() {
        return Err(acquitted_fully(gap, http, &flip));
    }
    let told = gap.tell_flip(&flip);
    let open = |but: &str| Standing::Undecided(gap.evidence(&flip.view, format!("{told}; but {but}")));
    if gap.mode == Mode::Loaded {
        return Err(open("under load less work of any kind may hide a gap, and fewer requests share a connection"));
    }
    let times = gap.known_reference().and_then(|reference| Times::of(reference, &flip));
    let times = times.ok_or_else(|| open("how long requests take is not known"))?;
    times.are_of_the_slow_side(gap).map_err(|but| open(&but))?;
    if flip.gone.of_time().low() <= MOST_OF_DEARER_WORK {
        return Err(open("what makes all work of a server dearer could take as much with it"));
    }
    needs_as_many_calls(gap).map_err(|but| open(&but))?;
    needs_equal_records(gap, &flip.view).map_err(|but| open(&but))?;
    for like in likes::held_against(gap, &ENTRY) {
        let not_excluded = |id: &str| open(&format!("{id} is not excluded, which could show like that"));
        like.map_err(|against| against.settles(not_excluded))?;
    }

    let other_program = another_program(gap, &flip);
    let confidence =
        if flip.confirms() && other_program.is_none() { Confidence::Confirmed } else { Confidence::Likely };
    let told = Told {
        summary: format!(
            "{slow}'s HTTP/2 is slow: a request takes {} over it and {} over HTTP/1.1, with {fast} {} and {}. With \
             HTTP/1.1 on both, {} of the gap is gone.",
            format_duration_ns(times.slow[0]),
            format_duration_ns(times.slow[1]),
            format_duration_ns(times.fast[0]),
            format_duration_ns(times.fast[1]),
            flip.percent()
        ),
        remedy: format!(
            "Look at what {slow} sets for HTTP/2 alone: nginx `http2_chunk_size` (8k by default); Apache \
             `H2MaxDataFrameLen`, `H2MaxWorkers`; HAProxy `tune.h2.*`; and what stands before it and speaks HTTP/2 in \
             its place. Until then HTTP/1.1 is the faster one there. `h2load -c1 -m1 URL` against `h2load --h1 -c1 \
             URL` shows it without duel."
        ),
        facts: Vec::new(),
        further: other_program.into_iter().collect(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// More of the difference in time than this has to go away: HTTP/1.1 leaves half of the work at least, and with it half of
/// what dearer work makes.
const MOST_OF_DEARER_WORK: f64 = 0.5;

/// Leaves it open where the slow side's TLS records are small over HTTP/1.1 as well: then it is a setting of TLS, with which HTTP/2 has more to do. A
/// server of small frames has small records over HTTP/2 alone. They are told by what comes beside the bodies: heads of answers that
/// differ by as much leave it open as well.
fn needs_equal_records(gap: &Gap<'_>, over_http1: &View<'_>) -> Result<(), String> {
    /// The largest record (RFC 8446, 5.1).
    const FULL_RECORD_BYTES: f64 = 16_384.0;
    const LEAST: f64 = 8.0;
    // Nobody sets records of a tenth of a segment.
    const SMALLEST_RECORD_BYTES: f64 = 128.0;
    let least_body_bytes = LEAST * SMALLEST_RECORD_BYTES;
    if !gap.uses_tls(gap.slow) || over_http1.slow.body_bytes_per_op.is_some_and(|bytes| bytes < least_body_bytes) {
        return Ok(());
    }
    let beside = |seen: &TargetObservation| Some(seen.bytes_in_per_op? - seen.body_bytes_per_op?);
    let further = beside(over_http1.slow).zip(beside(over_http1.fast));
    let Some((further, body_bytes)) = further.zip(over_http1.slow.body_bytes_per_op) else {
        return Err("in how many TLS records responses come over HTTP/1.1 is not known".to_owned());
    };
    let records = (further.0 - further.1) / RECORD_OVERHEAD_BYTES;
    // Twice as many as the fewest that carry the body.
    // Nor are there more of them than the smallest records would be: that is a longer head.
    if records < (body_bytes / FULL_RECORD_BYTES).max(LEAST) || records > body_bytes / SMALLEST_RECORD_BYTES {
        return Ok(());
    }
    Err(format!(
        "over HTTP/1.1 {} sends {} more beside the body of a response, as about {records:.0} further TLS records would bring",
        gap.slow_name(),
        format_bytes(further.0 - further.1)
    ))
}

/// HTTP/2 is spoken. Where it is not, it is no cause.
fn speaks_http2(gap: &Gap<'_>, http: &HttpPlan) -> Result<(), Standing> {
    if http.http2.is_some() {
        return Ok(());
    }
    let version = |side| gap.text(side, web::HTTP_VERSION);
    let [of_slow, of_fast] = of_both(gap, "the versions of HTTP of both sides are not known", version)?;
    if of_slow == of_fast {
        let text = format!("both sides speak {}", sanitize_line(of_slow));
        return Err(Standing::RuledOut(gap.first_contact(text)));
    }
    let text = format!(
        "{} speaks {}, {} {}, and neither can be had from both",
        gap.slow_name(),
        sanitize_line(of_slow),
        gap.fast_name(),
        sanitize_line(of_fast)
    );
    Err(Standing::Undecided(gap.first_contact(text)))
}

/// Leaves it open where a side may have to wait for leave to send on, which HTTP/1.1 does not know.
fn needs_no_leave(gap: &Gap<'_>, http: &HttpPlan) -> Result<(), Standing> {
    /// A server that says nothing gives leave for 65,535 bytes (RFC 9113, 6.9.2), and may say less: a frame is what it
    /// has to take anyhow.
    const LITTLE_BYTES: u64 = 16_384;
    let open = |text: String| Err(Standing::Undecided(gap.not_measured(text)));
    let window = http.number(&H2_WINDOW);
    let body = |side: usize| gap.case.comparison.get(side)?.body_bytes_per_op;
    let bodies = of_both(gap, "how large the bodies are is not known", body)?;
    if bodies.iter().any(|bytes| 2.0 * bytes > window as f64) {
        return open(format!("with a window of {} servers may wait for leave to send on", format_bytes(window as f64)));
    }
    if sent_bytes(http).is_none_or(|bytes| bytes > LITTLE_BYTES) {
        return open("requests may be so large that they wait for leave to be sent on".to_owned());
    }
    Ok(())
}

/// The standing of a flip that did not move the gap. It acquits, but for two cases: with one request at a time it says nothing of
/// several that share a connection, where a good part of the gap under load is missing; and where the gap has grown, HTTP/1.1 has
/// something of its own on the slow side, behind which the cost of HTTP/2 may hide.
fn acquitted_fully(gap: &Gap<'_>, http: &HttpPlan, flip: &Flip<'_>) -> Standing {
    let most_of_it = (1.0 - Flip::NOTEWORTHY) * gap.comparison.log.mid;
    let is_there = gap.known_reference().is_some_and(|reference| reference.log.low() >= most_of_it);
    let left_open = if gap.mode == Mode::Alone && http.streams() > 1 && !is_there {
        "what several requests do that share a connection"
    } else if flip.gone.of_time().mid < -Flip::NOTEWORTHY {
        "what HTTP/2 costs, for HTTP/1.1 is slow there by itself"
    } else {
        return did_not_move(gap, flip);
    };
    Standing::Undecided(gap.evidence(&flip.view, format!("{}: that leaves open {left_open}", gap.tell_flip(flip))))
}

/// How long a request takes on each side, over HTTP/2 and over HTTP/1.1, in ns.
struct Times {
    slow: [f64; 2],
    fast: [f64; 2],
}

impl Times {
    fn of(reference: &View<'_>, flip: &Flip<'_>) -> Option<Self> {
        Some(Self {
            slow: [reference.slow_ns()?, flip.view.slow_ns()?],
            fast: [reference.fast_ns()?, flip.view.fast_ns()?],
        })
    }

    /// It is the slow side that HTTP/1.1 makes faster; else what it was instead.
    fn are_of_the_slow_side(&self, gap: &Gap<'_>) -> Result<(), String> {
        /// From here on the fast side's HTTP/2 is as unusual, and may be what a slower machine makes dearer.
        const MOST_SPARED: f64 = 1.0 / 3.0;
        let Self { slow, fast } = self;
        let (gap_ns, slow_saves_ns, fast_saves_ns) = (slow[0] - fast[0], slow[0] - slow[1], fast[0] - fast[1]);
        if -fast_saves_ns >= Flip::NOTEWORTHY * gap_ns {
            return Err(format!("HTTP/1.1 makes {} slower", gap.fast_name()));
        }
        let moved_ns = slow_saves_ns - fast_saves_ns;
        if fast_saves_ns >= Flip::NOTEWORTHY * moved_ns || fast_saves_ns >= MOST_SPARED * fast[0] {
            return Err(format!(
                "HTTP/1.1 makes {} faster as well, and what makes all work of a server dearer could show like that",
                gap.fast_name()
            ));
        }
        Ok(())
    }
}

/// Both versions take about as many system calls and packets: over TLS, and for what is one frame. Else what makes each of them
/// dearer looks the same.
fn needs_as_many_calls(gap: &Gap<'_>) -> Result<(), String> {
    /// Half of the frames that nginx makes, which makes the smallest ones by default.
    const ONE_FRAME_BYTES: f64 = 4096.0;
    let body = |side: usize| gap.case.comparison.get(side)?.body_bytes_per_op;
    let is_one_frame = |side| body(side).is_some_and(|bytes| bytes <= ONE_FRAME_BYTES);
    if [gap.slow, gap.fast].into_iter().all(|side| gap.uses_tls(side) || is_one_frame(side)) {
        return Ok(());
    }
    Err("without TLS HTTP/1.1 hands over a file by few calls, and what makes each call dearer could show like that"
        .to_owned())
}

/// That another program answers HTTP/1.1 on the slow side, where one does: it is then not its version alone that differs.
fn another_program(gap: &Gap<'_>, flip: &Flip<'_>) -> Option<Evidence> {
    [web::SERVER, web::VIA].into_iter().find_map(|name| {
        let before = gap.text(gap.slow, name);
        let now = flip.view.slow.negotiated.as_ref()?.text(name);
        (before != now).then(|| {
            let told = |text: Option<&str>| text.map_or_else(|| "none".to_owned(), sanitize_line);
            let text = format!(
                "over HTTP/1.1 another program may answer for {}: its field {} is {} instead of {}",
                gap.slow_name(),
                if name == web::VIA { "Via" } else { "Server" },
                told(now),
                told(before)
            );
            gap.evidence(&flip.view, text)
        })
    })
}
