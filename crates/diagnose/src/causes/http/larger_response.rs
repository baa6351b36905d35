//! `http.larger-response`: the slow side sends more bytes for the same request.
//!
//! Seen in the bytes per op. Where the bodies differ there is a flip: as many bytes asked of all targets as the smallest
//! response has (or no compression, where the fast side's body is smaller because it is compressed). A dear byte, a
//! limited rate or a slower cipher keeps its gap under that, since both sides still send as much. Where it is the heads
//! that differ nothing takes them away, and what the bytes are worth is counted: their number times what a byte costs the
//! slow side, by the size sweep.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, fit_by_host, moved_little, needs_http, of_both, shown};
use crate::evidence::worth::{our_further_work_ns, reference, share_of_log, too_little};
use crate::gap::{DemandLook, Demands, Flip, FlipLook, Gap, Look, View, percent, phase_share};
use crate::probes::{IDENTITY, Mode, RANGE_1, RANGE_SAME};
use duel_model::web::phase;
use duel_model::{Confidence, TargetObservation, format_bytes, format_duration_ns, web};
use duel_stats::Estimate;

static ENTRY: CauseEntry = CauseEntry {
    id: "http.larger-response",
    description: "the server sends more bytes (body or header fields) for the same request",
    signature: "more bytes per request; as many bytes asked of all take the gap away, or their number times what a \
                byte costs is worth it; where no part can be had, twice as many bytes and a gap in receiving that \
                bytes as dear as the fast side's make, or that is our own work to receive them",
    at_most: "confirmed; likely by what a byte costs; possible where no part can be had",
    needs_machine: false,
};

/// A response that is larger by less may well be slower for something else that shows in receiving.
const CLEARLY_LARGER: f64 = 2.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let seen = |side: usize| gap.case.comparison.get(side);
    let all = |side| seen(side)?.bytes_in_per_op;
    let body = |side| seen(side)?.body_bytes_per_op;
    let [all_slow, all_fast] = of_both(gap, "how many bytes come with a response is not known", all)?;
    let [body_slow, body_fast] = of_both(gap, "how large the bodies are is not known", body)?;
    let sizes = format!(
        "{slow} sends {} for each request, {fast} {} (bodies of {} and {})",
        format_bytes(all_slow),
        format_bytes(all_fast),
        format_bytes(body_slow),
        format_bytes(body_fast)
    );
    let extra_bytes = all_slow - all_fast;
    if !(all_fast > 0.0 && (all_slow / all_fast).ln() > gap.case.margin_log()) {
        return Err(Standing::RuledOut(gap.evidence(&gap.comparison, format!("{sizes}: not more"))));
    }
    if body_slow - body_fast < 0.5 * extra_bytes {
        return by_heads(gap, &sizes, extra_bytes, all_slow / all_fast);
    }

    let compressed = |side| gap.text(side, web::CONTENT_ENCODING).is_some_and(|by| by != "identity");
    let plain = compressed(gap.fast) && !compressed(gap.slow);
    let flip = match gap.flip(if plain { IDENTITY } else { RANGE_SAME }) {
        // Applications often send all of a body, whatever is asked for.
        FlipLook::Missing(why) if !plain => return by_receiving(gap, &sizes, all_slow / all_fast, "", &why),
        look => shown(gap, look)?,
    };
    if !flip.moved() {
        return Err(moved_little(gap, &flip));
    }
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let told = Told {
        summary: format!(
            "{slow}'s responses are larger: {sizes}. {}, {} of the gap is gone.",
            if plain { "Without compression on both" } else { "With as many bytes asked of both" },
            flip.percent()
        ),
        remedy: if plain {
            format!("Let {slow} compress as {fast} does, once rather than for each request (nginx `gzip_static on`).")
        } else {
            REMEDY_OF_BODIES.to_owned()
        },
        facts: vec![gap.evidence(&gap.comparison, sizes)],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// The extra bytes are outside of the bodies: in heads, or in what TLS adds.
fn by_heads(gap: &Gap<'_>, sizes: &str, extra_bytes: f64, times_larger: f64) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    // A handshake that resumes no session brings certificates, which are no part of a response.
    let [chain_slow, chain_fast] =
        [gap.slow, gap.fast].map(|side| gap.count(side, web::CHAIN_BYTES).unwrap_or(0) as f64);
    let of_chains = (chain_slow - chain_fast)
        * (1.0 - gap.reused_share(gap.slow).unwrap_or(0.0))
        * (1.0 - reference.slow.resumed_share.unwrap_or(0.0));
    if of_chains >= 0.5 * extra_bytes {
        let certificates = [chain_slow, chain_fast].map(format_bytes);
        let text = format!(
            "{sizes}, but certificates come with new connections: {} of {}, {} of {}",
            certificates[0],
            gap.slow_name(),
            certificates[1],
            gap.fast_name()
        );
        return Err(Standing::Undecided(gap.first_contact(text)));
    }
    let first_byte = match gap.look(RANGE_1) {
        Look::Shown(view) => view,
        Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => return by_receiving(gap, sizes, times_larger, " beside their bodies", &why),
    };
    let Some(byte_ns) = byte_ns(reference, &first_byte) else {
        let text = format!("{sizes}, but what a byte costs is not known");
        return Err(Standing::Undecided(gap.evidence(&first_byte, text)));
    };
    let share = |ns: f64| share_of_log(reference, extra_bytes * ns);
    let (Some(least), Some(mid), Some(most)) = (share(byte_ns.low()), share(byte_ns.mid), share(byte_ns.high())) else {
        let text = format!("{sizes}, but what that is worth is not known");
        return Err(Standing::Undecided(gap.evidence(&first_byte, text)));
    };
    let counted = format!(
        "the further {} cost {} at what a byte costs {} by the size sweep",
        format_bytes(extra_bytes),
        format_duration_ns(extra_bytes * byte_ns.mid.max(0.0)),
        gap.slow_name()
    );
    let line = |text: String| gap.evidence(&first_byte, text);
    if most < Flip::NOTEWORTHY {
        let line = line(format!("{sizes}, but {counted}"));
        return Err(match least > 0.0 {
            true => too_little(gap, reference, mid, line),
            false => Standing::RuledOut(line),
        });
    }
    if least < Flip::NOTEWORTHY {
        return Err(Standing::Undecided(line(format!("{sizes}, and {counted}: that leaves open whether it matters"))));
    }
    let slow = gap.slow_name();
    let told = Told {
        summary: format!("{slow}'s responses carry more bytes beside their bodies: {sizes}; {counted}."),
        remedy: remedy_of_heads(&slow),
        facts: vec![gap.evidence(&gap.comparison, sizes.to_owned())],
        further: vec![line(counted)],
    };
    Ok(fit_by_host(gap, &ENTRY, Some(mid), Confidence::Likely, told))
}

/// Share of the gap over one connection that is in receiving: what comes after an answer's first bytes takes longer.
fn in_receiving(gap: &Gap<'_>, reference: &View<'_>) -> f64 {
    let share = phase_share(reference, &[phase::RECEIVE]);
    if gap.mode == Mode::Alone { share.unwrap_or(0.0) } else { 0.0 }
}

/// Whether a byte of the fast side takes so long to come that the further ones make what receiving takes longer. Else each byte is
/// dearer on the slow side, too, and how many there are may not matter.
fn at_the_fast_price(reference: &View<'_>) -> bool {
    let receiving = |seen: &TargetObservation| seen.phase_mean_ns.get(&phase::RECEIVE.id()).copied();
    let known = || {
        let (slow_ns, fast_ns) = (receiving(reference.slow)?, receiving(reference.fast)?);
        let (slow_bytes, fast_bytes) = (reference.slow.bytes_in_per_op?, reference.fast.bytes_in_per_op?);
        Some((slow_bytes - fast_bytes) * fast_ns / fast_bytes >= Flip::EXPLAINS * (slow_ns - fast_ns))
    };
    known().unwrap_or(false)
}

/// Of small bodies no part can be asked for, and some servers send none, so that nobody knows what a byte costs. That so many
/// more bytes come fits, where it is receiving that takes longer, or moving them takes so long ([`moving`]). A server that sends the end
/// of its answer late would look the same. `beside` tells where the further bytes are.
fn by_receiving(gap: &Gap<'_>, sizes: &str, times_larger: f64, beside: &str, why: &str) -> Result<Standing, Standing> {
    let reference = reference(gap)?;
    let moving = if times_larger >= CLEARLY_LARGER { moving(gap, reference)? } else { None };
    let share = moving.as_ref().map(|(share, _)| *share);
    let is_received_longer =
        in_receiving(gap, reference) >= Flip::EXPLAINS && (!beside.is_empty() || at_the_fast_price(reference));
    if times_larger < CLEARLY_LARGER || !(is_received_longer || share.is_some()) {
        let text = format!("{sizes}, but what a byte costs is not known: {why}");
        return Err(Standing::Undecided(gap.evidence(&gap.comparison, text)));
    }
    let slow = gap.slow_name();
    let in_receiving = || format!("{} of the gap is in receiving", percent(in_receiving(gap, reference)));
    let seen = moving.map_or_else(in_receiving, |(_, told)| told);
    let told = Told {
        summary: format!(
            "{slow}'s responses may be slower because they carry more bytes{beside}: {sizes}; {seen}. What a byte costs {slow} is \
             not known."
        ),
        remedy: if beside.is_empty() { REMEDY_OF_BODIES.to_owned() } else { remedy_of_heads(&slow) },
        facts: vec![gap.evidence(&gap.comparison, sizes.to_owned()), gap.evidence(reference, seen)],
        further: vec![gap.not_measured(format!("not shown by a size sweep: {why}"))],
    };
    Ok(fit_by_host(gap, &ENTRY, share, Confidence::Possible, told))
}

/// What moving the further bytes is worth about, as a share of the gap, and how that is known; `None` where it is not known, or little.
///
/// The load generator itself works so much longer to receive them. To send a byte takes about as long as to receive it (each copies it once), as
/// far as the server is seen to work longer at all. Fewer bytes than one read takes make no further read.
fn moving(gap: &Gap<'_>, reference: &View<'_>) -> Result<Option<(f64, String)>, Standing> {
    /// A record of TLS, and what is read at once.
    const ONE_READ_BYTES: f64 = 16_384.0;
    let Some(ours_ns) = our_further_work_ns(gap, reference) else { return Ok(None) };
    let bytes = reference.slow.bytes_in_per_op.zip(reference.fast.bytes_in_per_op);
    let Some((of_slow, of_fast)) = bytes.filter(|(of_slow, of_fast)| of_slow - of_fast > ONE_READ_BYTES) else {
        return Ok(None);
    };
    // As dear as the fast side's bytes at most: beyond that it is how they come, piece by piece.
    let price = reference.fast.generator_work_ns_per_op.map_or(f64::INFINITY, |ns| ns / of_fast);
    let ours_ns = ours_ns.min(price * (of_slow - of_fast));
    let worth = |ns: f64| share_of_log(reference, ns).filter(|share| *share >= Flip::NOTEWORTHY);
    // Twice as long is the most that it can be.
    if worth(2.0 * ours_ns).is_none() {
        return Ok(None);
    }
    let servers_ns = match gap.demands() {
        DemandLook::NotAsked(probe) if probe.budget_ns <= gap.case.budget_left_ns => {
            return Err(Standing::Wants(vec![probe]));
        }
        DemandLook::Shown(Demands { slow, fast: Some(fast) }) => {
            slow.per_op("process.cpu_ns").zip(fast.per_op("process.cpu_ns")).map(|(slow, fast)| (slow - fast).max(0.0))
        }
        DemandLook::Shown(_) | DemandLook::NotAsked(_) | DemandLook::Missing(_) => None,
    };
    let share = worth(ours_ns + servers_ns.unwrap_or(0.0).min(ours_ns));
    let by_server = servers_ns
        .map_or_else(String::new, |ns| format!(", and {}'s server {}", gap.slow_name(), format_duration_ns(ns)));
    let told = |share: f64| {
        format!(
            "for each response duel itself needs {} more of CPU time{by_server}: to move the further bytes is worth about {} of the gap",
            format_duration_ns(ours_ns),
            percent(share)
        )
    };
    Ok(share.map(|share| (share, told(share))))
}

const REMEDY_OF_BODIES: &str = "Compare what the two send (`curl -s URL | wc -c`, then the contents): is it the same version of \
                                the same content, minified and compressed alike?";

fn remedy_of_heads(slow: &str) -> String {
    format!(
        "Look at {slow}'s header fields (`curl -sI URL`): cookies, policies and debugging fields that nobody reads cost with \
         each response. Over TLS look at the size of its records too."
    )
}

/// What a byte costs the slow side, ns: the time above that of a response of one byte, over the bytes. Its interval is as
/// wide as those of flips are read.
fn byte_ns(reference: &View<'_>, first_byte: &View<'_>) -> Option<Estimate> {
    let bytes = |seen: &TargetObservation| seen.bytes_in_per_op;
    let fewer = bytes(reference.slow)? - bytes(first_byte.slow)?;
    let (whole_ns, first_ns) = (reference.slow_ns()?, first_byte.slow_ns()?);
    let half = Flip::MANY_LOOKS * (whole_ns * reference.log.half()).hypot(first_ns * first_byte.log.half());
    (fewer > 0.0).then(|| Estimate::around((whole_ns - first_ns) / fewer, half / fewer))
}
