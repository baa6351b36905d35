//! How long the way to either side is: connecting over TCP takes one round trip, and the kernel at its end answers.

use crate::cause::Standing;
use crate::gap::{Gap, Look, View};
use crate::probes::{ALL_CLOSE, ALONE, Mode, TRIP};
use duel_model::TargetObservation;
use duel_model::web::phase;
use duel_stats::Estimate;

/// From one segment on, flights double: 1, 2, 4, 8 make 15 segments. A longer response pays no more, for a first flight
/// of ten grows as well; one more for a handshake that goes before.
pub(crate) const MOST_TRIPS: f64 = 5.0;

/// Segments of a first flight since RFC 6928.
pub(crate) const USUAL_SEGMENTS: f64 = 10.0;

/// Round trips are equally long if they differ by less than a quarter; else windows are not what differs alone.
pub(crate) const SAME_TRIP: f64 = 1.25;

/// The round trip to one side, as far as the times of connecting tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trip {
    /// Near the shortest: what the way takes when nothing stands in it.
    pub(crate) floor_ns: f64,
    /// The median with its interval.
    pub(crate) typical: Estimate,
}

impl Trip {
    /// Fewer connections than this have no quartiles.
    const LEAST_CONNECTIONS: u64 = 4;

    fn of(seen: &TargetObservation) -> Option<Self> {
        let profile = seen.phase_profile.get(&phase::CONNECT.id())?;
        let at = |probability| profile.quantile_ns(probability).map(|ns| ns as f64);
        if profile.count < Self::LEAST_CONNECTIONS {
            return None;
        }
        // 95 % interval of a median: 1.96 standard errors of 1.253 sigma / sqrt(n), with sigma = quartiles' distance
        // / 1.349 (as for the notches of McGill, Tukey and Larsen 1978, who take a little less to compare two).
        let spread_ns = at(0.75)? - at(0.25)?;
        let half_ns = 1.82 * spread_ns / (profile.count as f64).sqrt();
        Some(Self { floor_ns: at(0.05)?, typical: Estimate::around(at(0.5)?, half_ns) })
    }
}

/// The ways to both sides, seen under the same treatment.
pub(crate) struct Trips<'a> {
    pub(crate) slow: Trip,
    pub(crate) fast: Trip,
    /// Where they were seen.
    pub(crate) seen: View<'a>,
}

impl Trips<'_> {
    /// How much longer a round trip to the slow side is.
    pub(crate) fn extra(&self) -> Estimate {
        self.slow.typical.minus(self.fast.typical)
    }
}

/// The round trips of both sides: rather over one connection, where nobody waits for a CPU. Where connecting was not
/// seen often enough, it is probed.
pub(crate) fn trips<'a>(gap: &Gap<'a>) -> Result<Trips<'a>, Standing> {
    let alone = gap.known_reference().filter(|_| gap.mode == Mode::Alone).cloned();
    let shown = |kind| match gap.look(kind) {
        Look::Shown(view) => Some(view),
        Look::NotAsked(_) | Look::Missing(_) => None,
    };
    let views = [alone, shown(ALONE), shown(TRIP), shown(ALL_CLOSE), Some(gap.comparison.clone())];
    let both = |view: View<'a>| {
        let (slow, fast) = (Trip::of(view.slow)?, Trip::of(view.fast)?);
        Some(Trips { slow, fast, seen: view })
    };
    views.into_iter().flatten().find_map(both).ok_or_else(|| match gap.look(TRIP) {
        Look::NotAsked(probe) => Standing::Wants(vec![probe]),
        Look::Shown(_) | Look::Missing(_) => Standing::Undecided(
            gap.not_measured("too few connections were made to tell how long a round trip is".to_owned()),
        ),
    })
}

/// Round trips after the first flight of a response whose flights begin at the usual size and double.
pub(crate) fn usual_trips(bytes: f64, segment: f64) -> f64 {
    if segment <= 0.0 {
        return 0.0;
    }
    let segments = bytes / segment;
    // n flights hold 10 (2^n - 1) segments.
    ((segments / USUAL_SEGMENTS + 1.0).log2().ceil() - 1.0).clamp(0.0, MOST_TRIPS)
}
