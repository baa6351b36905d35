//! `tls.slow-cipher`: the slow side negotiates another cipher suite, which is slower.
//!
//! Seen in what was negotiated; shown by forcing one suite on all targets. The fast side's suite on both takes the cause
//! away. Where the slow side has no other suite than its own, that one on both opens the same gap on the fast side: what
//! is then left between them is not the cipher's. Whatever else differs (path, key, CPU) is left as it was by either.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, needs_http, needs_tls, of_both};
use crate::gap::{Flip, FlipLook, Gap};
use crate::probes::{CHACHA20, SUITE};
use duel_model::{Confidence, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.slow-cipher",
    description: "the server chooses a cipher suite that is slower than the one it could use",
    signature: "another suite was negotiated; the gap goes away with one suite forced on all, or turns round",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    needs_tls(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let cipher = |side| gap.text(side, web::TLS_CIPHER);
    let [of_slow, of_fast] = of_both(gap, "the cipher suites of both sides are not known", cipher)?;
    if algorithm(of_slow) == algorithm(of_fast) {
        let text = format!("both sides encrypt with {}", sanitize_line(algorithm(of_slow)));
        return Err(Standing::RuledOut(gap.first_contact(text)));
    }
    let suites = format!("{slow} uses {}, {fast} {}", sanitize_line(of_slow), sanitize_line(of_fast));

    // A suite belongs to a version of TLS, and forcing it forces the version with its round trips.
    let version = |side| gap.text(side, web::TLS_VERSION);
    let same_version = version(gap.slow).is_some() && version(gap.slow) == version(gap.fast);
    let kept = [gap.slow, gap.fast].iter().all(|side| gap.reused_share(*side).is_some_and(|share| share >= 0.9));
    if !same_version && !kept {
        let text = format!("{suites}, but the TLS versions are not the same either, and each request may pay for it");
        return Err(Standing::Undecided(gap.first_contact(text)));
    }

    let flip = same_suite(gap, of_slow)?;
    if !flip.moved() {
        return Err(moved_little(gap, &flip));
    }
    // With the CPU's instructions AES is never much the slower one. Where it is, the suite may be right, and what
    // carries it out is not.
    let suspicious = of_slow.contains("AES") && of_fast.contains("CHACHA20");
    // That the other suite would be the faster one on the slow side too is shown only where it was used there: its
    // CPU may lack what makes it fast on the other.
    let taken_away = flip.kind == SUITE.of(gap.fast);
    let confidence =
        if flip.confirms() && taken_away && !suspicious { Confidence::Confirmed } else { Confidence::Likely };
    let shown_slow = sanitize_line(of_slow);
    let shown_fast = sanitize_line(of_fast);
    let told = Told {
        summary: format!(
            "{slow} encrypts with a slower cipher suite: {suites}. With the same suite on both, {} of the gap is gone.",
            flip.percent()
        ),
        remedy: if suspicious {
            format!(
                "AES should not be the slower one: look first whether {slow}'s TLS library uses the CPU's AES \
                 instructions (`openssl speed -elapsed -evp aes-256-gcm` against `-evp chacha20-poly1305` on its \
                 host). If its CPU has none, prefer {shown_fast} there."
            )
        } else {
            format!(
                "Let {slow} prefer {shown_fast} to {shown_slow}: nginx `ssl_conf_command Ciphersuites` (TLS 1.3) and \
                 `ssl_ciphers` with `ssl_prefer_server_ciphers on`; Apache `SSLCipherSuite` and \
                 `SSLHonorCipherOrder on`; HAProxy `ssl-default-bind-ciphersuites`. `openssl speed -elapsed -evp \
                 aes-128-gcm` and `-evp chacha20-poly1305` on its host tell which is faster there."
            )
        },
        facts: vec![gap.first_contact(suites)],
        further: Vec::new(),
    };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}

/// What a suite encrypts and hashes with: `AES_256_GCM_SHA384` of `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`.
///
/// How the key was exchanged and who signed stands in front of it, up to TLS 1.2, and is no part of the cipher.
fn algorithm(suite: &str) -> &str {
    let unversioned = || suite.strip_prefix("TLS13_").or_else(|| suite.strip_prefix("TLS_")).unwrap_or(suite);
    suite.split_once("_WITH_").map_or_else(unversioned, |(_, algorithm)| algorithm)
}

/// The flip that gives both sides the same suite: the fast side's, else the slow side's.
fn same_suite<'a>(gap: &Gap<'a>, of_slow: &str) -> Result<Box<Flip<'a>>, Standing> {
    let without_fast = match gap.flip(SUITE.of(gap.fast)) {
        FlipLook::Shown(flip) => return Ok(flip),
        FlipLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => why,
    };
    // That probe is made for other reasons as well.
    let of_slow = if of_slow.contains("CHACHA20") { CHACHA20 } else { SUITE.of(gap.slow) };
    match gap.flip(of_slow) {
        FlipLook::Shown(flip) => Ok(flip),
        FlipLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        FlipLook::Missing(why) => Err(Standing::Undecided(gap.not_measured(format!("{without_fast}, and {why}")))),
    }
}

#[cfg(test)]
mod tests {
    use super::algorithm;

    #[test]
    fn the_algorithm_of_a_suite() {
        for (suite, expected) in [
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "AES_256_GCM_SHA384"),
            ("TLS_AES_256_GCM_SHA384", "AES_256_GCM_SHA384"),
            ("TLS13_AES_256_GCM_SHA384", "AES_256_GCM_SHA384"),
            ("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305_SHA256"),
            ("something else", "something else"),
            ("", ""),
        ] {
            assert_eq!(algorithm(suite), expected);
        }
    }
}
