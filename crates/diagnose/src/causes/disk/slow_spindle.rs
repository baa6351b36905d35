//! `disk.slow-spindle`: the slow side's disk has mechanics, and its head takes long to get from one place to another.
//!
//! Within a small part of the disk the way is short, and random ops take less time. What looks like it: a device with a cache that
//! holds the smaller file, which nothing here tells apart; caps and flushes do not care where blocks lie. So it is told of devices
//! alone that the system says have mechanics, and only as likely.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, did_not_move, fit, shown_flip};
use crate::evidence::device::{of_view, setting};
use crate::gap::Gap;
use crate::probes::SMALLER_FILE;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "disk.slow-spindle",
    description: "the disk has mechanics that take long from one place to another",
    signature: "the system says that the slow side's device has mechanics; within a sixteenth of the size the gap \
                is gone with as many calls",
    at_most: "told as a suspicion only",
    needs_machine: false,
};

/// Calls of both devices for each op are as many: what is read beside is another cause.
const AS_MANY: f64 = 1.25;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let slow = gap.slow_name();
    if !matches!(setting(gap, "op"), Some("randread" | "randwrite" | "randrw")) {
        let text = "ops in order do not go from one place to another";
        return Err(Standing::RuledOut(gap.not_measured(text.to_owned())));
    }
    match gap.fact(gap.slow, |facts| facts.is("disk.is_rotational")) {
        Some(true) => {}
        Some(false) => {
            let text = format!("the system says that {slow}'s device has no mechanics");
            return Err(Standing::RuledOut(gap.first_contact(text)));
        }
        None => {
            let text = format!("whether {slow}'s device has mechanics is not known");
            return Err(Standing::Undecided(gap.not_measured(text)));
        }
    }
    let missing = || Standing::Undecided(gap.not_measured("there is no reference".to_owned()));
    let [of_slow, of_fast] = of_view(gap, gap.known_reference().ok_or_else(missing)?)?;
    if of_slow.ios() > AS_MANY * of_fast.ios() {
        let text =
            format!("{slow}'s device is called {:.2} times for each op, the other {:.2}", of_slow.ios(), of_fast.ios());
        return Err(Standing::Undecided(gap.at_reference(text)));
    }
    let flip = shown_flip(gap, SMALLER_FILE)?;
    if !flip.moved() {
        return Err(did_not_move(gap, &flip));
    }
    let summary =
        format!("{slow}'s disk has mechanics: where ops lie close together {} of the gap is gone.", flip.percent());
    let remedy = format!(
        "`duel disk tables` of both devices tells how long full, half and quarter strokes take. Look for errors that {slow}'s disk \
         mends by itself (`smartctl -a`: reallocated and pending sectors, seek errors), and for its speed of rotation."
    );
    Ok(fit(gap, &ENTRY, &flip, Confidence::Likely, Told { summary, remedy, facts: Vec::new(), further: Vec::new() }))
}
