//! `tls.extra-round-trip`: the slow side's handshake takes more round trips, on a path where that is noticed.
//!
//! A full handshake of TLS 1.2 takes two round trips, one of TLS 1.3 takes one (RFC 5246, 7.3; RFC 8446, 2). A chain of
//! certificates that does not fit into the initial window waits for an acknowledgement, which is one more. How long a
//! round trip is the connect phase tells, in which there is nothing else; so what the cause is worth is counted rather
//! than guessed. For the version there is a flip as well: TLS 1.2 on all targets makes both take the further trip.
//!
//! A dear key or group lengthens the handshake too, but not by whole round trips of a path, and stays as it is under the
//! flip. A further round trip shows over one connection by its nature.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, fit_by_host, moved_little, needs_http, needs_tls, of_both};
use crate::evidence::handshakes::{FIRST_FLIGHT_BYTES, needs_handshakes, tls_difference};
use crate::evidence::worth::{acquit, needs_gap_alone, reference, share_of_log, waiting_ns};
use crate::gap::{DemandLook, Flip, FlipLook, Gap, View};
use crate::probes::TLS_12;
use duel_model::web::phase;
use duel_model::{Confidence, Evidence, format_bytes, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.extra-round-trip",
    description: "the TLS handshake takes a round trip more (TLS 1.2, or a long certificate chain) on a path where that counts",
    signature: "an older version, or a chain beyond the first flight; worth the round trips that connecting shows",
    at_most: "confirmed by TLS 1.2 on all, else likely",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let http = needs_http(gap)?;
    needs_tls(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let version = |side| gap.text(side, web::TLS_VERSION);
    let [of_slow, of_fast] = of_both(gap, "the TLS versions of both sides are not known", version)?;
    let older = of_slow == "1.2" && of_fast == "1.3";
    let chain = |side| gap.count(side, web::CHAIN_BYTES);
    let longer = match (chain(gap.slow), chain(gap.fast)) {
        (Some(slow), Some(fast)) => slow > FIRST_FLIGHT_BYTES && fast <= FIRST_FLIGHT_BYTES,
        _ => false,
    };
    let shown = |side, version: &str| {
        let chain = chain(side)
            .map_or_else(String::new, |bytes| format!(" with a certificate chain of {}", format_bytes(bytes as f64)));
        format!("TLS {}{chain}", sanitize_line(version))
    };
    let facts = format!("{slow} speaks {}, {fast} {}", shown(gap.slow, of_slow), shown(gap.fast, of_fast));
    if !older && !longer {
        return Err(Standing::RuledOut(gap.first_contact(format!("{facts}: as many round trips"))));
    }
    needs_handshakes(gap, http)?;
    let reference = reference(gap)?;
    if reference.slow.resumed_share.is_some_and(|share| share >= 0.75) {
        let text =
            format!("{facts}, but most handshakes with {slow} are resumed, which takes one round trip in any case");
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    needs_gap_alone(gap, Some(&facts))?;

    let trips = f64::from(u8::from(older) + u8::from(longer));
    let (Some(trip_ns), Some((tls_ns, _))) = (round_trip_ns(reference), tls_difference(reference)) else {
        let text = format!("{facts}, but how long a round trip and the handshakes take is not known");
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    };
    let Some(share) = share_of_log(reference, (trips * trip_ns).min(tls_ns)) else {
        let text = format!("{facts}, but what that is worth is not known");
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    };
    let counted = format!(
        "a round trip to {slow} takes {} (connect), its handshakes {} more than {fast}'s",
        format_duration_ns(trip_ns),
        format_duration_ns(tls_ns.max(0.0))
    );
    if share < Flip::NOTEWORTHY {
        let line = gap.evidence(reference, format!("{facts}, but {counted}"));
        return Err(short_trips(gap, reference, line, trips * trip_ns, tls_ns, older));
    }
    let told = |by: String| Told {
        summary: format!(
            "{slow}'s handshakes take a further round trip of {}: {facts}. {by}",
            format_duration_ns(trip_ns)
        ),
        remedy: remedy(&slow, older),
        facts: vec![gap.first_contact(facts.clone()), gap.evidence(reference, counted.clone())],
        further: Vec::new(),
    };
    // Nothing shortens a foreign chain; and where TLS 1.2 cannot be forced, the count is what there is.
    let by_count = |why: Option<String>| {
        let mut told = told(format!("That is {:.0} % of the gap.", 100.0 * share));
        told.further.extend(why.map(|why| gap.not_measured(format!("not shown by a flip: {why}"))));
        fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told)
    };
    if !older {
        return Ok(by_count(None));
    }
    Ok(match gap.flip(TLS_12) {
        FlipLook::NotAsked(probe) => Standing::Wants(vec![probe]),
        FlipLook::Missing(why) => by_count(Some(why)),
        FlipLook::Shown(flip) if !flip.moved() => moved_little(gap, &flip),
        FlipLook::Shown(flip) => {
            let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
            let by = format!("With TLS 1.2 on both, {} of the gap is gone.", flip.percent());
            fit(gap, &ENTRY, &flip, confidence, told(by))
        }
    })
}

/// How it stands where further round trips are short. The kernel answers who connects; the handshake is the server's own, and
/// each of its trips may wait for a CPU. So its trips are ruled out where even with that they, or all that handshakes take
/// longer, are not worth the gap; or by the flip.
fn short_trips(
    gap: &Gap<'_>,
    reference: &View<'_>,
    line: Evidence,
    trips_ns: f64,
    tls_ns: f64,
    older: bool,
) -> Standing {
    let waited_ns = match gap.demands() {
        DemandLook::Shown(demands) => waiting_ns(gap, demands.slow),
        DemandLook::NotAsked(probe) => return Standing::Wants(vec![probe]),
        DemandLook::Missing(_) => None,
    };
    let most_ns = waited_ns.map_or(tls_ns, |waited_ns| (trips_ns + waited_ns).min(tls_ns));
    let most = share_of_log(reference, most_ns).ok_or_else(|| "what that is worth is not known".to_owned());
    match acquit(&most, line) {
        Standing::Undecided(line) if older => match gap.flip(TLS_12) {
            FlipLook::NotAsked(probe) => Standing::Wants(vec![probe]),
            FlipLook::Shown(flip) if flip.is_negligible() => moved_little(gap, &flip),
            FlipLook::Shown(_) | FlipLook::Missing(_) => Standing::Undecided(line),
        },
        standing => standing,
    }
}

fn remedy(slow: &str, older: bool) -> String {
    if older {
        format!(
            "Let {slow} speak TLS 1.3: nginx `ssl_protocols TLSv1.2 TLSv1.3`, Apache `SSLProtocol -all +TLSv1.2 +TLSv1.3`, \
             HAProxy without `ssl-max-ver TLSv1.2`; its TLS library has to know it (OpenSSL 1.1.1 or later). Resumption and \
             kept connections save the trip as well."
        )
    } else {
        format!(
            "Shorten {slow}'s certificate chain: leave the root and certificates that are not needed out of it (`openssl \
             s_client -connect HOST:PORT -showcerts`), and prefer ECDSA certificates. A larger initial window (`ip route \
             change ... initcwnd 20`) lets a long one leave at once."
        )
    }
}

/// A round trip to the slow side in ns per op: the mean of its connect phase, less what lies beyond the median (a lost
/// SYN or a full listen queue is no round trip).
fn round_trip_ns(reference: &View<'_>) -> Option<f64> {
    let mean_ns = reference.slow.phase_mean_ns.get(&phase::CONNECT.id()).copied()?;
    let profile = reference.slow.phase_profile.get(&phase::CONNECT.id());
    let median_ns = profile.and_then(|profile| profile.quantile_ns(0.5)).map_or(mean_ns, |ns| ns as f64);
    Some(mean_ns.min(median_ns)).filter(|ns| ns.is_finite() && *ns > 0.0)
}
