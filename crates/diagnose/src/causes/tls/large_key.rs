//! `tls.large-key`: the slow side signs its handshakes with a certificate key that is dearer to sign with.
//!
//! Signing with RSA costs about the cube of the key's size; elliptic curves are far cheaper. Every full handshake pays
//! for one signature; a resumed one does not, and a kept connection has no handshake. The keys are seen at the first
//! contact; the flip shows that the gap is where the signature is. The sharper flip is resumption: it keeps connection,
//! round trips and key exchange and leaves out the signature (and the certificates). Kept connections leave out all of
//! these; they are asked where resumption does not decide, and what either shows has to agree with the other.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, needs_tls, of_both};
use crate::evidence::handshakes::{FIRST_FLIGHT_BYTES, needs_handshakes, tls_difference};
use crate::gap::{Flip, FlipLook, Gap, View};
use crate::probes::{KEPT, Mode, RESUMED};
use duel_model::web::{CertificateKey, phase};
use duel_model::{Confidence, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.large-key",
    description: "the certificate's key is dear to sign with, and each full handshake pays for it",
    signature: "the slow side's certificate key is dearer to sign with; the gap goes away when handshakes are \
                resumed (or connections kept), and over one connection it sits in the tls phase; neither key \
                exchange, version, chain length nor path can explain the same; a handshake takes no more than such \
                a signature can",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    needs_tls(gap)?;
    let key = |side| gap.fact(side, CertificateKey::of);
    let [of_slow, of_fast] = of_both(gap, "the certificate keys of both sides are not known", key)?;
    let [shown_slow, shown_fast] = [&of_slow, &of_fast].map(|key| sanitize_line(&key.to_string()));
    let keys = format!("{slow}'s certificate key is {shown_slow}, {fast}'s {shown_fast}");
    if of_slow == of_fast {
        return Err(Standing::RuledOut(gap.first_contact(keys)));
    }
    match is_dearer(&of_slow, &of_fast) {
        Some(false) => {
            return Err(Standing::RuledOut(gap.first_contact(format!("{keys}: that is not the dearer one"))));
        }
        Some(true) => {}
        None if [&of_slow, &of_fast].into_iter().all(is_known) => {}
        None => return Err(Standing::Undecided(gap.first_contact(keys))),
    }
    if let Some(standing) = without_full_handshakes(gap, &slow) {
        return Err(standing);
    }

    Ok(match gap.flip(RESUMED) {
        FlipLook::NotAsked(probe) => Standing::Wants(vec![probe]),
        FlipLook::Shown(resumed) => weigh_both(gap, &resumed, &keys),
        FlipLook::Missing(no_resumption) => match gap.flip(KEPT) {
            FlipLook::NotAsked(probe) => Standing::Wants(vec![probe]),
            FlipLook::Shown(kept) => judge(gap, &kept, &keys),
            FlipLook::Missing(not_kept) => {
                Standing::Undecided(gap.not_measured(format!("{keys}, but {no_resumption}, and {not_kept}")))
            }
        },
    })
}

/// Whether a signature with the first key costs more than one with the second, on any CPU and by any library; `None`
/// where that depends on these. How much dearer is for the flip to show.
///
/// Within one algorithm the longer key is the dearer one. P-256 and Ed25519 have code of their own in every library and
/// are cheaper than any RSA in use; other curves may have none (OpenSSL before 3.1: P-384 is dearer than RSA-2048).
fn is_dearer(one: &CertificateKey, other: &CertificateKey) -> Option<bool> {
    match ((&*one.algorithm, one.bits), (&*other.algorithm, other.bits)) {
        (("RSA", Some(one)), ("RSA", Some(other))) | (("EC", Some(one)), ("EC", Some(other))) => Some(one > other),
        (("RSA", Some(bits)), _) if bits >= LEAST_RSA_BITS && is_quick(other) => Some(true),
        (_, ("RSA", Some(bits))) if bits >= LEAST_RSA_BITS && is_quick(one) => Some(false),
        _ => None,
    }
}

/// Shorter ones are no longer accepted by clients.
const LEAST_RSA_BITS: u32 = 2048;

/// Curves that every library has fast code for.
fn is_quick(key: &CertificateKey) -> bool {
    matches!((&*key.algorithm, key.bits), ("EC", Some(256)) | ("Ed25519", _))
}

/// Whether it is a key whose signatures may be what is dear.
fn is_known(key: &CertificateKey) -> bool {
    matches!((&*key.algorithm, key.bits), ("RSA" | "EC", Some(_)) | ("Ed25519", _))
}

/// The standing where the slow side's requests do not pay for full handshakes, or it is not known whether they do.
fn without_full_handshakes(gap: &Gap<'_>, slow: &str) -> Option<Standing> {
    let http = gap.case.http()?;
    if let Err(standing) = needs_handshakes(gap, http) {
        return Some(standing);
    }
    let resumed = gap.known_reference().and_then(|view| view.slow.resumed_share);
    match resumed {
        Some(share) if http.tls.resumption && share >= 0.75 => {
            let text = format!("{:.0} % of the handshakes with {slow} are resumed already", 100.0 * share);
            Some(Standing::RuledOut(gap.at_reference(text)))
        }
        _ => None,
    }
}

/// What resumption showed, held against what kept connections show.
///
/// Where resumption does not decide, kept connections may: they leave out the signature too, so what they hardly move
/// the signature hardly makes; and what they move is the signature's if resumption leaves room for that much. Two answers
/// that contradict each other tell that one of them is chance, and not which.
fn weigh_both(gap: &Gap<'_>, resumed: &Flip<'_>, keys: &str) -> Standing {
    let by_resumed = judge(gap, resumed, keys);
    let is_open = |standing: &Standing| matches!(standing, Standing::Undecided(_) | Standing::Wants(_));
    let kept = match gap.flip(KEPT) {
        FlipLook::Shown(kept) => kept,
        // What confounds resumption confounds the blunter flip as well: that is not worth a probe.
        FlipLook::NotAsked(probe) if is_open(&by_resumed) && !resumed.moved() => {
            return Standing::Wants(vec![probe]);
        }
        FlipLook::NotAsked(_) | FlipLook::Missing(_) => return by_resumed,
    };
    let contradict = |resumed: &Flip<'_>| {
        let text = format!("{keys}, but {}, and {}: these do not agree", gap.tell_flip(resumed), gap.tell_flip(&kept));
        Standing::Undecided(gap.evidence(&kept.view, text))
    };
    match (by_resumed, judge(gap, &kept, keys)) {
        (Standing::Fits(_), Standing::RuledOut(_) | Standing::Minor(_))
        | (Standing::RuledOut(_) | Standing::Minor(_), Standing::Fits(_)) => contradict(resumed),
        (open, Standing::Fits(_)) if is_open(&open) && resumed.gone.compared().high() < kept.gone.compared().mid => {
            contradict(resumed)
        }
        (open, by_kept @ (Standing::Fits(_) | Standing::RuledOut(_) | Standing::Minor(_))) if is_open(&open) => by_kept,
        (by_resumed, _) => by_resumed,
    }
}

fn judge(gap: &Gap<'_>, flip: &Flip<'_>, keys: &str) -> Standing {
    if flip.is_negligible() {
        return moved_little(gap, flip);
    }
    let Some(reference) = gap.known_reference() else {
        return Standing::Undecided(gap.not_measured("there is no reference".to_owned()));
    };
    let open = |why: String| Standing::Undecided(gap.evidence(reference, why));
    let mut further = Vec::new();
    let tls_ns = match (gap.mode, tls_difference(reference)) {
        (Mode::Alone, Some((tls_ns, share))) if share < Flip::NOTEWORTHY => {
            let text = format!(
                "the TLS handshake holds {} of the difference, {:.0} % of it",
                format_duration_ns(tls_ns.max(0.0)),
                100.0 * share.max(0.0)
            );
            return Standing::RuledOut(gap.evidence(reference, text));
        }
        (Mode::Alone, Some((tls_ns, share))) => {
            let (extra, percent) = (format_duration_ns(tls_ns), 100.0 * share.min(1.0));
            let text = format!("the TLS handshake takes {extra} more, {percent:.0} % of the difference");
            further.push(gap.evidence(reference, text));
            Some(tls_ns)
        }
        (Mode::Alone, None) => return open("how long handshakes took is not known".to_owned()),
        // Under load all phases wait for the same CPU: where the time is spent does not tell what spends it, and a kept
        // connection saves more than the signature.
        (Mode::Loaded, _) if flip.kind == KEPT => {
            return open(format!("{keys}, but without resumption that cannot be told from other costs of connecting"));
        }
        (Mode::Loaded, _) => None,
    };
    if let Some(doubt) = confounded(gap, flip, reference, tls_ns) {
        return open(format!("{keys}, but {doubt}"));
    }
    if !flip.moved() {
        return moved_little(gap, flip);
    }
    if let Some((one_ns, most_ns)) = beyond_a_signature(gap, flip, reference, tls_ns) {
        return open(format!(
            "{keys}, but each full handshake takes {} more, and a signature some {} at most: something else is slow in \
             them (a look-up, a check of the client's certificate, a key that is kept elsewhere)",
            format_duration_ns(one_ns),
            format_duration_ns(most_ns)
        ));
    }
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let slow = gap.slow_name();
    let told = Told {
        summary: format!(
            "{slow} signs each full handshake with a dearer certificate key: {keys}. {}, {} of the gap is gone.",
            if flip.kind == RESUMED { "With sessions resumed" } else { "With connections kept" },
            flip.percent()
        ),
        remedy: format!(
            "Give {slow} an ECDSA P-256 certificate (beside the RSA one if old clients need it), or one with RSA-2048; \
             `openssl speed rsa2048 rsa4096 ecdsap256` on its host tells what that saves. Session resumption and kept \
             connections save handshakes whatever the key."
        ),
        facts: vec![gap.first_contact(keys.to_owned())],
        further,
    };
    fit(gap, &ENTRY, flip, confidence, told)
}

/// What the flip took from each full handshake, and what a signature can take, where that is less: over one connection by
/// time, under load at most by what every other connection waits for it.
fn beyond_a_signature(gap: &Gap<'_>, flip: &Flip<'_>, reference: &View<'_>, tls_ns: Option<f64>) -> Option<(f64, f64)> {
    let key = gap.fact(gap.slow, CertificateKey::of)?;
    let bits = f64::from(key.bits.unwrap_or(256));
    // On a slow CPU of today, and twice that.
    let most_ns = 2.0
        * match &*key.algorithm {
            "RSA" => 5e6 * (bits / 2048.0).powi(3),
            "EC" => 1e6 * (bits / 256.0).powi(3),
            _ => 1e6,
        };
    let connects = 1.0 - reference.slow.reused_share.unwrap_or(0.0);
    if connects <= 0.0 {
        return None;
    }
    let each_ns = match gap.mode {
        Mode::Alone => tls_ns.unwrap_or(flip.moved_ns),
        Mode::Loaded => flip.moved_ns / reference.connections().map_or(1.0, f64::from),
    };
    let one_ns = each_ns / connects;
    (one_ns > most_ns).then_some((one_ns, most_ns))
}

/// What else differs between the handshakes and would go away under the same flip.
fn confounded(gap: &Gap<'_>, flip: &Flip<'_>, reference: &View<'_>, tls_ns: Option<f64>) -> Option<String> {
    let [slow, fast] = [gap.slow, gap.fast];
    let group = |side| gap.text(side, web::TLS_GROUP);
    let version = |side| gap.text(side, web::TLS_VERSION);
    let same_version = version(slow).is_some() && version(slow) == version(fast);
    let same_group = group(slow).is_some() && group(slow) == group(fast);
    // A resumed handshake of TLS 1.3 does its key exchange all the same (psk_dhe_ke); one of TLS 1.2 does not.
    let keeps_exchange = flip.kind == RESUMED && version(slow) == Some("1.3") && version(fast) == Some("1.3");
    if !same_group && !keeps_exchange {
        return Some("the key exchange groups are not known to be equal".to_owned());
    }
    // Further round trips go away with the full handshake. They matter where one takes a noteworthy part of it.
    let chain = |side| gap.count(side, web::CHAIN_BYTES).unwrap_or(0);
    let long_chain = chain(slow) > FIRST_FLIGHT_BYTES && chain(fast) <= FIRST_FLIGHT_BYTES;
    let further_trips = f64::from(u8::from(!same_version) + u8::from(long_chain));
    let connect = |seen: &duel_model::TargetObservation| seen.phase_mean_ns.get(&phase::CONNECT.id()).copied();
    let tolerated_ns = tls_ns.map(|ns| (1.0 - Flip::EXPLAINS) * ns);
    if further_trips > 0.0 {
        let fits = connect(reference.slow).zip(tolerated_ns).is_some_and(|(trip, most)| further_trips * trip <= most);
        if !fits {
            return Some(
                "TLS versions or lengths of the certificate chains differ, which costs round trips".to_owned(),
            );
        }
    }
    // Kept connections save the way to the server too; a longer way is not the key's fault.
    if flip.kind == KEPT
        && let Some((slow, fast)) = connect(reference.slow).zip(connect(reference.fast))
        && tolerated_ns.is_some_and(|most| slow - fast > most)
    {
        return Some("connecting takes longer as well".to_owned());
    }
    None
}
