//! `net.small-mtu` of paths: the slow side's segments are short, so each byte takes more packets.
//!
//! How long segments are is known before any probe: where they are as long on both sides, it is something else. Where they are
//! not, both sides are made to use segments that are shorter than either's: if the gap goes away, it was the packets.

use super::{KINDS, carries_blocks};
use crate::causes::{Cause, CauseEntry, Standing, Told, did_not_move, fit, of_both, shown_flip, small_mtu};
use crate::flips::SHORT_SEGMENTS;
use crate::gap::Gap;
use crate::probes::Kind;
use duel_model::Confidence;

/// A cost of each packet makes a difference that is worth a name where there are so many times more of them: where packets are all
/// that an op costs, a gap is as large as this.
const SHORTER: f64 = 1.2;
/// The length that the probe asks for; a side whose segments are not longer is not changed by it.
const PROBED: u64 = 500;

pub(crate) struct SmallMtu;

impl Cause for SmallMtu {
    fn entry(&self) -> &'static CauseEntry {
        &small_mtu::ENTRY
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn weigh(&self, gap: &Gap<'_>) -> Result<Standing, Standing> {
        let (slow, fast) = (gap.slow_name(), gap.fast_name());
        let [of_slow, of_fast] =
            of_both(gap, "how long segments are is not known", |side| gap.count(side, "tcp.segment_bytes"))?;
        let lengths = format!("segments to {slow} carry {of_slow} bytes, those to {fast} {of_fast}");
        if (of_slow as f64) * SHORTER > of_fast as f64 {
            return Err(Standing::RuledOut(gap.first_contact(lengths)));
        }
        if !carries_blocks(gap) {
            let text = format!("{lengths}, which matters to what is longer than one of them");
            return Err(Standing::Undecided(gap.first_contact(text)));
        }
        if of_slow <= PROBED {
            let text = format!("{lengths}: too short to make them as short on both sides");
            return Err(Standing::Undecided(gap.first_contact(text)));
        }
        let flip = shown_flip(gap, Kind::Set(&SHORT_SEGMENTS))?;
        if !flip.moved() {
            return Err(did_not_move(gap, &flip));
        }
        let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
        let told = Told {
            summary: format!(
                "Segments to {slow} are short: {of_slow} bytes instead of {of_fast}, so it takes {:.1} times as many packets. \
                 With segments as short on both, {} of the gap is gone.",
                of_fast as f64 / of_slow as f64,
                flip.percent()
            ),
            remedy: format!(
                "Find the link with the small MTU on the way to {slow}: `ip link` on both ends, `tracepath -n HOST` between \
                 them. A tunnel or a PPPoE line takes some bytes of each packet; a few hundred bytes are a mistake. Look as well for a \
                 firewall rule that clamps the segment size (`nft list ruleset | grep maxseg`) and for a route with an MTU of its \
                 own (`ip route get HOST`)."
            ),
            facts: vec![gap.first_contact(lengths)],
            further: Vec::new(),
        };
        Ok(fit(gap, &small_mtu::ENTRY, &flip, confidence, told))
    }
}
