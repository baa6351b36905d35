//! `net.congestion-control`: the sender of the slow side decides by another algorithm how much may be under way.
//!
//! Which one it is is known of both senders: ours, and the server's. With the same one on all paths the gap goes away.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit, moved_little, of_both, shown_flip};
use crate::evidence::paths::{KINDS, Sends, sends};
use crate::gap::Gap;
use crate::probes;
use duel_model::{Confidence, sanitize_line};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.congestion-control",
    description: "the sender uses another congestion control, which sends less over such a path",
    signature: "the senders use different ones; with the fast side's, or else with reno, everywhere the gap goes \
                away",
    at_most: "confirmed",
    needs_machine: false,
};

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let name = match sends(gap) {
        Some(Sends::Blocks { from_us: true }) => "tcp.congestion",
        Some(Sends::Blocks { from_us: false }) => "tcp.peer_congestion",
        None | Some(Sends::Exchange { .. }) if sends(gap).is_none_or(|sends| !sends.fits_one_flight()) => {
            let text = "which congestion control counts is told by blocks: --op bulk or bulk-reverse".to_owned();
            return Err(Standing::Undecided(gap.at_reference(text)));
        }
        _ => {
            let text = "an op that sends few bytes at a time is not held back by congestion control".to_owned();
            return Err(Standing::RuledOut(gap.at_reference(text)));
        }
    };
    let [of_slow, of_fast] =
        of_both(gap, "the senders' congestion control is not known", |side| gap.text(side, name))?.map(sanitize_line);
    let names = format!("the sender to {slow} uses {of_slow}, that to {fast} {of_fast}");
    if of_slow == of_fast {
        return Err(Standing::RuledOut(gap.first_contact(names)));
    }
    // The fast side's, where both servers let it be chosen: then the slow side gains, and nobody loses.
    let mut flip = Err(Standing::Undecided(gap.first_contact(names.clone())));
    for kind in probes::congestion(&of_fast) {
        flip = shown_flip(gap, kind);
        if !matches!(flip, Err(Standing::Undecided(_))) {
            break;
        }
    }
    let flip = flip?;
    if !flip.moved() {
        return Err(moved_little(gap, &flip));
    }
    let told = Told {
        summary: format!(
            "Another congestion control: {names}. With the same one on all paths, {} of the gap is gone.",
            flip.percent()
        ),
        remedy: format!(
            "On the machine that sends to {slow}, `sysctl net.ipv4.tcp_congestion_control` tells the algorithm and \
             `tcp_available_congestion_control` which there are; a route (`congctl`) or the program may choose another one. Compare \
             with `--congestion {of_fast}`."
        ),
        facts: vec![gap.first_contact(names)],
        further: Vec::new(),
    };
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, told))
}
