//! `tls.no-resumption`: the slow side resumes no sessions where the fast side does.
//!
//! Seen in the share of handshakes that were resumed, where the plan resumes; shown by full handshakes on all targets:
//! then both pay for them, and the gap goes away. Where a full handshake costs the two sides different amounts (another
//! key, version or group), full handshakes on both leave a gap though resumption would have spared it: then a flip that
//! does not move the gap acquits nobody.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, needs_http, needs_tls, of_both, shown_flip};
use crate::evidence::handshakes::needs_handshakes;
use crate::gap::{Flip, Gap};
use crate::probes::UNRESUMED;
use duel_model::{Confidence, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.no-resumption",
    description: "the server resumes no TLS sessions, so that each new connection pays for a full handshake",
    signature: "the slow side resumes nothing where the fast side does; full handshakes on all take the gap away",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let http = needs_http(gap)?;
    needs_tls(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if !http.tls.resumption {
        let text = "the plan itself resumes no sessions".to_owned();
        return Err(Standing::RuledOut(gap.at_reference(text)));
    }
    needs_handshakes(gap, http)?;
    if gap.reused_share(gap.fast).is_some_and(|share| share >= 0.9) {
        let text = format!("{fast} keeps its connections, so whether it resumes sessions was hardly seen");
        return Err(Standing::Undecided(gap.at_reference(text)));
    }
    let [by_slow, by_fast] =
        of_both(gap, "how many handshakes were resumed is not known", |side| resumed_share(gap, side))?;
    let shares = format!(
        "{:.0} % of the handshakes with {slow} are resumed, {:.0} % of those with {fast}",
        100.0 * by_slow,
        100.0 * by_fast
    );
    // What makes less than a quarter of the handshakes dearer makes hardly a quarter of a gap.
    if by_fast - by_slow < Flip::NOTEWORTHY {
        return Err(Standing::RuledOut(gap.at_reference(shares)));
    }
    let flip = shown_flip(gap, UNRESUMED)?;
    if !flip.moved() {
        if [web::CERTIFICATE_KEY, web::TLS_VERSION, web::TLS_GROUP].into_iter().all(|name| same(gap, name)) {
            return Err(moved_little(gap, &flip));
        }
        let text = format!("{}, but full handshakes cost the two different amounts", gap.tell_flip(&flip));
        return Err(Standing::Undecided(gap.evidence(&flip.view, text)));
    }
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    let told = Told {
        summary: format!(
            "{slow} makes clients that come back go through a full handshake: {shares}. With full handshakes on both, \
             {} of the gap is gone.",
            flip.percent()
        ),
        remedy: format!(
            "Let {slow} resume sessions: nginx `ssl_session_tickets on` and `ssl_session_cache shared:SSL:10m`; Apache \
             `SSLSessionTickets on` and `SSLSessionCache shmcb:...`; HAProxy without `no-tls-tickets`. Several servers \
             behind one name need the same ticket keys. `openssl s_client -connect HOST:PORT -reconnect` says \
             \"Reused\" when it does."
        ),
        facts: vec![gap.at_reference(shares)],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// Share of a side's handshakes that were resumed, under the reference's treatment.
fn resumed_share(gap: &Gap<'_>, side: usize) -> Option<f64> {
    let at_reference = gap.known_reference().map(|view| if side == gap.slow { view.slow } else { view.fast });
    let seen = at_reference.and_then(|seen| seen.resumed_share);
    seen.or_else(|| gap.case.comparison.get(side).and_then(|seen| seen.resumed_share))
}

/// Whether a fact is known of both sides and the same.
fn same(gap: &Gap<'_>, name: &str) -> bool {
    let [of_slow, of_fast] = [gap.slow, gap.fast].map(|side| gap.text(side, name));
    of_slow.is_some() && of_slow == of_fast
}
