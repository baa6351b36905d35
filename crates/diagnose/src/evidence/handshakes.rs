//! What handshakes have a part in, and what they take longer.

use crate::cause::Standing;
use crate::gap::{Flip, Gap, View, phase_differences};
use crate::probes::Mode;
use duel_model::web::phase;
use duel_model::{HttpPlan, Phase, TargetObservation};

/// A cause that lies in handshakes has nothing to do with requests that need none.
pub(crate) fn needs_handshakes(gap: &Gap<'_>, http: &HttpPlan) -> Result<(), Standing> {
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
pub(crate) const MOSTLY_REUSED: f64 = 0.9;

/// What connecting and handshakes can make of the gap at most, as a share of the difference in time per op. `None` where
/// there is no reference yet, or phases were not recorded.
///
/// Alone it is their difference. Under load the work of a handshake delays all who wait for the same CPU, so each ns of it
/// costs an op one ns for each connection at most.
pub(crate) fn connecting_at_most(gap: &Gap<'_>) -> Option<f64> {
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

/// How much longer the slow side's handshakes take per op, in ns and as a share of the whole difference.
pub(crate) fn tls_difference(reference: &View<'_>) -> Option<(f64, f64)> {
    let differences = phase_differences(reference);
    let (_, tls_ns) = differences.into_iter().find(|(phase, _)| *phase == phase::TLS)?;
    let whole_ns = reference.difference_ns()?.mid;
    (whole_ns > 0.0).then(|| (tls_ns, tls_ns / whole_ns))
}

/// A chain above this does not fit into the usual initial window of ten segments: it costs a further round trip.
pub(crate) const FIRST_FLIGHT_BYTES: u64 = 14_000;
