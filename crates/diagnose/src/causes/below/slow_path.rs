//! `net.slow-path`: whoever exchanges as many bytes on the path to the slow side waits longer.
//!
//! The user has started `duel net serve` on the targets' machines. Duel asks it for as many bytes as the servers' own answers have at
//! least, time after time, as many at a time as ops are in flight where the gap is held. What an exchange takes longer
//! on the slow side is time that an op takes longer there: the path is the same. That is the least that the path is worth: larger requests,
//! connecting and TLS go over it as well.
//!
//! What looks like it is a machine that has no time for either program, as beside busy neighbours. But a program that waits for a CPU has
//! nothing under way, and TCP counts for how long it has: where that is not most of what exchanges take longer, or is not told, this
//! cause is a suspicion. By itself it is possible at most, since the system's own part of the work may be late as well. TCP
//! tells what makes a path slow (how long its round trips are, what was sent again, what held a stream back), and the causes of paths are
//! held against the gap between the two paths: where one of them is likely, this is.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host};
use crate::causes::likes::{self, Against};
use crate::evidence::below::nested;
use crate::evidence::exchanges::Exchanges;
use crate::gap::{Flip, Gap, percent};
use duel_model::{Confidence, Layer};

static ENTRY: CauseEntry = CauseEntry {
    id: "net.slow-path",
    description: "the path to the server's machine is slower for another program as well",
    signature: "`duel net serve` answers on both machines (`--net-server`): exchanges of as many bytes with it, as many at a time, take \
                longer on the slow side, which is worth the gap, and data is under way for most of what they take longer; what makes \
                that path slow is found there",
    at_most: "likely; possible where nothing tells what makes the path slow",
    needs_machine: false,
};

// Of databases it is not known which address they are reached at.
pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

/// Most of what exchanges take longer.
const MOST: f64 = 0.5;

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    // What is known without the probe spares it.
    let stands = likes::held_against(gap, &ENTRY).find_map(|like| match like {
        Err(Against::Stands(id)) => Some(id),
        Err(Against::Asks(_)) | Ok(_) => None,
    });
    if let Some(id) = stands {
        return Err(Standing::Undecided(gap.not_measured(format!("{id} fits, which would show there as well"))));
    }
    let below = nested(gap, Layer::Path)?;
    let view = gap
        .known_reference()
        .ok_or_else(|| Standing::Undecided(gap.not_measured("the gap has no reference".to_owned())))?;
    let exchanges = Exchanges::of(gap, view)?;
    let share = exchanges.worth(gap, view)?;
    let takes = exchanges.tell(gap);
    let open = |text: String| Standing::Undecided(exchanges.told(text));
    if share < Flip::NOTEWORTHY {
        return Err(open(format!("{takes}: {} of the gap", percent(share))));
    }
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|id| open(format!("{takes}; {id} fits, which shows there as well"))))?;
    }
    let under_way = exchanges.under_way();
    if under_way.is_none_or(|share| share < MOST) {
        let why = match under_way {
            Some(share) => format!("data is under way for {} of what that is longer", percent(share.max(0.0))),
            None => "for how long data is under way is not told".to_owned(),
        };
        let text = format!("{takes}: {} of the gap; {why}: a machine that has no time for it would look so", percent(share));
        return Err(Standing::Suspected(exchanges.told(text)));
    }
    let slow = gap.slow_name();
    let summary = format!(
        "The path to {slow} is slower for another program as well: {takes}. That is {} of the gap.",
        percent(share)
    );
    let remedy = format!(
        "Compare both paths alone, as in the line above, and with `--why`. Look at the path to {slow} (`mtr -n`, `tracepath`, `ip route get`), at \
         what forwards, filters or shapes on it, and whether that machine has time for its network (`mpstat -P ALL 1`, softirq)."
    );
    let facts = vec![
        exchanges.told(format!("exchanges with `duel net serve`: {}", below.tell(&below.comparison))),
        exchanges.told(takes),
    ];
    let told = Told { summary, remedy, facts, further: Vec::new() };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Possible, told).with(|fit| fit.below = Some(Layer::Path)))
}
