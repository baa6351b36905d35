//! What counted quantities are worth of a gap, and what several causes ask of one first.

use super::Standing;
use crate::gap::{DemandLook, Demands, Gap, View};
use crate::probes::Mode;
use duel_model::HttpPlan;

/// Share of the log of the gap that goes away when each op of the slow side is spared this much time.
pub(super) fn share_of_log(view: &View<'_>, saved_ns: f64) -> Option<f64> {
    let left = (view.ratio - saved_ns.max(0.0) / view.fast_ns()?).max(1.0);
    (view.log.mid > 0.0 && left.is_finite()).then(|| (1.0 - left.ln() / view.log.mid).clamp(0.0, 1.0))
}

/// The same for time of a resource of the slow side, such as its CPU: `saved_ns` of the `all_ns` that an op needs there.
///
/// Over one connection an op waits for the resource once. Under load it waits for the ops before it as well, and where
/// the resource is what limits the rate, the time of an op is in proportion to what an op needs of it.
pub(super) fn share_of_resource(gap: &Gap<'_>, view: &View<'_>, saved_ns: f64, all_ns: f64) -> Option<f64> {
    let saved_ns = match gap.mode {
        Mode::Alone => saved_ns,
        Mode::Loaded if all_ns > 0.0 => view.slow_ns()? * (saved_ns / all_ns).min(1.0),
        Mode::Loaded => return None,
    };
    share_of_log(view, saved_ns)
}

/// The reference that flips and counts are held against; the probe that tells it is wanted where it is not known yet.
pub(super) fn reference<'g, 'a>(gap: &'g Gap<'a>) -> Result<&'g View<'a>, Standing> {
    use crate::gap::Reference;
    match &gap.reference {
        Reference::Known(view) => Ok(view),
        Reference::Wanted(probe) => Err(Standing::Wants(vec![probe.clone()])),
        Reference::Missing(why) => Err(Standing::Undecided(gap.first_contact(why.clone()))),
    }
}

/// What the machines do for each request. Where the slow side's is not read, the cause is left open.
pub(super) fn demands<'a>(gap: &Gap<'a>) -> Result<Demands<'a>, Standing> {
    if !gap.has_host(gap.slow) {
        let text = format!("the machine of {} is not read", gap.slow_name());
        return Err(Standing::Undecided(gap.first_contact(text)));
    }
    match gap.demands() {
        DemandLook::Shown(demands) => Ok(demands),
        DemandLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(why) => Err(Standing::Undecided(gap.first_contact(why))),
    }
}

/// A cause that lies in handshakes has nothing to do with requests that need none.
pub(super) fn needs_handshakes(gap: &Gap<'_>, http: &HttpPlan) -> Result<(), Standing> {
    if !http.keepalive {
        return Ok(());
    }
    let slow = gap.slow_name();
    match gap.reused_share(gap.slow) {
        Some(share) if share >= 0.9 => {
            let text = format!("{:.0} % of the requests to {slow} need no handshake", 100.0 * share);
            Err(Standing::RuledOut(gap.first_contact(text)))
        }
        Some(_) => Ok(()),
        None => {
            let text = format!("whether {slow} keeps connections is not known");
            Err(Standing::Undecided(gap.first_contact(text)))
        }
    }
}
