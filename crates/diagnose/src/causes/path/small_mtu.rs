//! `net.small-mtu` of paths: the slow side's segments are short, so that each byte takes more packets.
//!
//! How long segments are is known before any probe. All paths are made to use segments as short as the slow side's: where the gap goes
//! away, for the fast side becomes as slow, it was the packets. Where offloads put packets together, short segments cost little, and the
//! flip shows that, too.

use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, of_both, shown_flip};
use crate::evidence::paths::{KINDS, Sends, sends};
use crate::gap::Gap;
use crate::probes::SHORTEST_SEGMENTS;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "net.small-mtu",
    description: "responses go in many small packets: a small MTU, or nothing that puts packets together",
    signature: "segments are shorter; with segments as short on all paths the gap goes away",
    at_most: "confirmed",
    needs_machine: false,
};

/// A gap of a quarter in time per byte takes at least a quarter more packets, if packets were all that counts.
const CLEARLY_SHORTER: f64 = 0.8;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let [of_slow, of_fast] =
        of_both(gap, "how long segments are is not known", |side| gap.count(side, "tcp.segment_bytes"))?;
    let lengths = format!("segments of {slow} carry {of_slow} bytes, those of {fast} {of_fast}");
    if of_slow as f64 > CLEARLY_SHORTER * of_fast as f64 {
        return Err(Standing::RuledOut(gap.first_contact(lengths)));
    }
    match sends(gap) {
        Some(Sends::Blocks { .. }) => {}
        Some(Sends::Exchange { bytes }) if bytes > 2 * of_slow => {}
        _ => {
            let text = format!("{lengths}, which does not matter to what fits into one of them");
            return Err(Standing::RuledOut(gap.first_contact(text)));
        }
    }
    let flip = shown_flip(gap, SHORTEST_SEGMENTS)?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    let told = Told {
        summary: format!(
            "{slow} carries its bytes in smaller packets: {lengths}, so that it takes {:.1} times as many. With segments as short \
             on all paths, {} of the gap is gone.",
            of_fast as f64 / of_slow.max(1) as f64,
            flip.percent()
        ),
        remedy: format!(
            "Find the link with the small MTU on the way to {slow}: `ip link` at both ends, `tracepath -n HOST` between them. A \
             tunnel takes some bytes of each packet; a few hundred bytes are a mistake. Look as well for rules that clamp the \
             segment size (`nft list ruleset | grep maxseg`) and for routes with an MTU of their own (`ip route get HOST`)."
        ),
        facts: vec![gap.first_contact(lengths)],
        further: Vec::new(),
    };
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}
