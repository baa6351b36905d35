//! `db.costly-connect`: the slow server takes long to let somebody in, and each transaction has a connection of its own.
//!
//! Over kept connections, on all targets, the gap goes away, and it sits in logging in and in preparing the first statement, not in
//! connecting: a server may say that somebody is in and then do what each session costs (`init_connect` of MariaDB), so that the first
//! exchange waits for it. Where that is no preparation but the statement itself, phases do not tell it from a slow statement, and nobody is
//! acquitted by them. What looks like it: a longer path (`net.path-delay`), on which connecting itself takes longer, and every
//! statement as well.

use super::KINDS;
use crate::cause::{Cause, CauseEntry, Standing, Told, fit, fit_by_host, shown_flip};
use crate::evidence::database::setting;
use crate::gap::{Flip, Gap, percent, phase_share_of};
use crate::probes::KEPT_SESSIONS;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "db.costly-connect",
    description: "the database takes long to let somebody in, and each transaction has a connection of its own",
    signature: "half of the extra time is spent in TLS, login and preparing, and over kept connections the gap goes \
                away",
    at_most: "confirmed; likely by phases alone, from four fifths on",
    needs_machine: false,
};

/// With less the gap is one of something else in the first place.
const HALF: f64 = 0.5;
/// From here on the gap is one of logging in: four fifths is what explains a gap elsewhere, too.
const MOST: f64 = 0.8;

pub(super) static CAUSE: Cause = Cause { kinds: KINDS, ..Cause::of(&ENTRY, weigh) };

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    if setting(gap, "reconnect") == Some("off") {
        return Err(Standing::RuledOut(gap.not_measured("connections are kept".to_owned())));
    }
    let reference = gap.known_reference().unwrap_or(&gap.comparison);
    let entering = phase_share_of(reference, &["tls", "login", "prepare"]);
    let Some(entering) = entering else {
        return Err(Standing::Undecided(gap.at_reference("where the gap sits is not known".to_owned())));
    };
    let told = format!(
        "{} of the extra time is spent until {slow} lets somebody in and prepares a statement",
        percent(entering)
    );
    // Of the logarithm of the gap it is no more than of the time.
    if entering < Flip::NOTEWORTHY {
        let flip = shown_flip(gap, KEPT_SESSIONS)?;
        let evidence = gap.evidence(&flip.view, format!("{told}; {}", gap.tell_flip(&flip)));
        return Err(if flip.is_negligible() { Standing::RuledOut(evidence) } else { Standing::Undecided(evidence) });
    }
    if entering < HALF {
        return Err(Standing::Undecided(gap.at_reference(format!("{told}; the greater part is spent elsewhere"))));
    }
    let summary = format!("{slow} takes longer than {fast} to let somebody in: {told}.");
    let remedy = format!(
        "Keep connections, or put a pool in front. On {slow}: does it look up names (`skip_name_resolve`, `log_hostname`), how many \
         rounds has the password's digest, how long do TLS, hooks of the login and `init_connect` take?"
    );
    let facts = vec![gap.at_reference(told)];
    let flip = match shown_flip(gap, KEPT_SESSIONS) {
        Ok(flip) => flip,
        Err(Standing::Undecided(_)) if entering >= MOST => {
            let told = Told { summary, remedy, facts, further: Vec::new() };
            return Ok(fit_by_host(gap, &ENTRY, Some(entering), Confidence::Likely, told));
        }
        Err(other) => return Err(other),
    };
    if !flip.moved() {
        return Err(Standing::Undecided(gap.evidence(&flip.view, gap.tell_flip(&flip))));
    }
    let confidence = if flip.confirms() { Confidence::Confirmed } else { Confidence::Likely };
    Ok(fit(gap, &ENTRY, &flip, confidence, Told { summary, remedy, facts, further: Vec::new() }))
}
