//! `tls.slow-group`: the slow side exchanges keys over a group that is dearer.
//!
//! Seen in what was negotiated; shown by forcing one group on all targets: the fast side's, else (where the slow side
//! takes no other) the slow side's. The key, the version, the path and whether sessions are resumed stay as they are. A
//! group that clients do not guess costs a round trip on top (HelloRetryRequest, RFC 8446, 4.1.4); forced, it is guessed,
//! so what that costs counts as the group's too, as it should.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, needs_http, needs_tls, of_both};
use crate::evidence::handshakes::needs_handshakes;
use crate::gap::{Flip, FlipLook, Gap};
use crate::probes::GROUP;
use duel_model::{Confidence, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.slow-group",
    description: "the key exchange group is dear, and each handshake pays for it",
    signature: "another key exchange group was negotiated; the gap goes away with one group forced on all",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let http = needs_http(gap)?;
    needs_tls(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let group = |side| gap.text(side, web::TLS_GROUP);
    let [of_slow, of_fast] = of_both(gap, "the key exchange groups of both sides are not known", group)?;
    if of_slow == of_fast {
        let text = format!("both sides exchange keys over {}", sanitize_line(of_slow));
        return Err(Standing::RuledOut(gap.first_contact(text)));
    }
    needs_handshakes(gap, http)?;
    let groups =
        format!("{slow} exchanges keys over {}, {fast} over {}", sanitize_line(of_slow), sanitize_line(of_fast));
    // A handshake of TLS 1.2 that is resumed has no key exchange; one of TLS 1.3 has (psk_dhe_ke).
    let version = gap.text(gap.slow, web::TLS_VERSION);
    let resumed = gap.known_reference().and_then(|view| view.slow.resumed_share);
    if version == Some("1.2") && resumed.is_some_and(|share| share >= 0.75) {
        let text = format!("{groups}, but most handshakes with {slow} are resumed, and those of TLS 1.2 exchange none");
        return Err(Standing::RuledOut(gap.first_contact(text)));
    }

    let flip = same_group(gap)?;
    if !flip.moved() {
        return Err(moved_little(gap, &flip));
    }
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let told = Told {
        summary: format!(
            "{slow} exchanges keys over a dearer group: {groups}. With the same group on both, {} of the gap is gone.",
            flip.percent()
        ),
        remedy: format!(
            "Let {slow} prefer X25519, then P-256: nginx `ssl_ecdh_curve X25519:prime256v1`, Apache `SSLOpenSSLConfCmd \
             Groups X25519:P-256`, HAProxy `ssl-default-bind-curves X25519:P-256`. `openssl speed ecdhx25519 ecdhp256 \
             ecdhp384` on its host tells what each costs. Kept connections save handshakes whatever the group."
        ),
        facts: vec![gap.first_contact(groups)],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

fn same_group<'a>(gap: &Gap<'a>) -> Result<Box<Flip<'a>>, Standing> {
    let without_fast = match gap.flip(GROUP.of(gap.fast)) {
        FlipLook::Shown(flip) => return Ok(flip),
        FlipLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => why,
    };
    match gap.flip(GROUP.of(gap.slow)) {
        FlipLook::Shown(flip) => Ok(flip),
        FlipLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => Err(Standing::Undecided(gap.not_measured(format!("{without_fast}, and {why}")))),
    }
}
