//! What counted quantities are worth of a gap, and what several causes ask of one first.

use super::Standing;
use crate::gap::{DemandLook, Demands, Flip, Gap, Look, View};
use crate::probes::{Kind, Mode};
use duel_model::web::phase;
use duel_model::{HostDemand, HttpPlan, Phase, TargetObservation};

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
        Reference::Missing(why) => Err(Standing::Undecided(gap.not_measured(why.clone()))),
    }
}

/// What shows over one connection as much as over many makes no gap that does not show there. `known` is told with it.
pub(super) fn needs_gap_alone(gap: &Gap<'_>, known: Option<&str>) -> Result<(), Standing> {
    if gap.mode == Mode::Alone {
        return Ok(());
    }
    let known = known.map_or_else(String::new, |known| format!("{known}, and "));
    match gap.look(Kind::Alone) {
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => {
            let text = format!("{known}whether the gap shows over one connection is not known: {why}");
            Err(Standing::Undecided(gap.not_measured(text)))
        }
        Look::Shown(alone) => {
            let text = format!("{known}over one connection most of the gap does not show");
            Err(Standing::RuledOut(gap.evidence(&alone, text)))
        }
    }
}

/// What the machines do for each request. Where the slow side's is not read, the cause is left open.
pub(super) fn demands<'a>(gap: &Gap<'a>) -> Result<Demands<'a>, Standing> {
    if !gap.has_host(gap.slow) {
        let text = format!("the machine of {} is not read", gap.slow_name());
        return Err(Standing::Undecided(gap.not_measured(text)));
    }
    match gap.demands() {
        DemandLook::Shown(demands) => Ok(demands),
        DemandLook::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        DemandLook::Missing(why) => Err(Standing::Undecided(gap.not_measured(why))),
    }
}

/// A cause that lies in handshakes has nothing to do with requests that need none.
pub(super) fn needs_handshakes(gap: &Gap<'_>, http: &HttpPlan) -> Result<(), Standing> {
    if !http.keepalive {
        return Ok(());
    }
    let slow = gap.slow_name();
    match gap.reused_share(gap.slow) {
        Some(share) => match connecting_at_most(gap) {
            Some(most) if share >= MOSTLY_REUSED && most < Flip::NOTEWORTHY => {
                let text = format!(
                    "{:.1} % of the requests to {slow} need no handshake, and those of the others make {:.0} % of the gap \
                     at most",
                    100.0 * share,
                    100.0 * most
                );
                Err(Standing::RuledOut(gap.at_reference(text)))
            }
            _ => Ok(()),
        },
        None => {
            let text = format!("whether {slow} keeps connections is not known");
            Err(Standing::Undecided(gap.not_measured(text)))
        }
    }
}

/// From here on connecting is the exception. It may be dear all the same: a server that closes each connection after a
/// hundred requests of 40 us spends more on a handshake of 5 ms than on all of them.
pub(super) const MOSTLY_REUSED: f64 = 0.9;

/// What connecting and handshakes can make of the gap at most, as a share of the difference in time per op. `None` where
/// there is no reference yet, or phases were not recorded.
///
/// Alone it is their difference. Under load the work of a handshake delays all who wait for the same CPU, so each ns of it
/// costs an op one ns for each connection at most.
pub(super) fn connecting_at_most(gap: &Gap<'_>) -> Option<f64> {
    let reference = gap.known_reference()?;
    let connecting_ns = |seen: &TargetObservation| {
        let of = |phase: Phase| seen.phase_mean_ns.get(&phase.id()).copied().unwrap_or(0.0);
        (!seen.phase_mean_ns.is_empty()).then(|| of(phase::CONNECT) + of(phase::TLS))
    };
    let most_ns = match gap.mode {
        Mode::Alone => connecting_ns(reference.slow)? - connecting_ns(reference.fast)?,
        Mode::Loaded => f64::from(gap.case.plan.lanes()) * connecting_ns(reference.slow)?,
    };
    let whole_ns = reference.difference_ns()?.mid;
    (whole_ns > 0.0).then(|| (most_ns / whole_ns).clamp(0.0, 1.0))
}

/// CPU time of a server's processes for each op.
pub(super) struct Cpu {
    /// In their own code and their libraries'.
    pub(super) user_ns: f64,
    /// In the kernel.
    pub(super) system_ns: f64,
}

impl Cpu {
    /// `None` where either is not known.
    pub(super) fn of(demand: &HostDemand) -> Option<Self> {
        Some(Self { user_ns: demand.per_op("process.user_ns")?, system_ns: demand.per_op("process.system_ns")? })
    }

    pub(super) fn all_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}
