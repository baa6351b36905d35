//! Ops that stall: time that lies in the long end of a phase, where retransmission time-outs put it.

use crate::gap::View;
use duel_model::{MILLISECOND_NS, Nanos, Phase, Profile, TargetObservation, TargetStalls};
use duel_stats::Estimate;

/// A first SYN that nobody answers is sent again after 1 s (RFC 6298, 2.1); the clock behind it may tick a little early.
pub(crate) const SYN_SENT_AGAIN_NS: Nanos = 900 * MILLISECOND_NS;
pub(crate) use duel_model::web::SENT_AGAIN_NS as DATA_SENT_AGAIN_NS;

/// Ops that stalled in some phases under one treatment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stalls {
    /// How many, about.
    pub(crate) count: f64,
    /// Their time in these phases, per ok op.
    pub(crate) ns_per_op: f64,
}

impl Stalls {
    /// Of one side: times from `least_ns` on in any of `phases`, and twice as long as the shortest there; `None` where the
    /// times of phases were not kept.
    pub(crate) fn of(seen: &TargetObservation, phases: &[(Phase, Nanos)]) -> Option<Self> {
        Self::count(seen, phases, false)
    }

    fn count(seen: &TargetObservation, phases: &[(Phase, Nanos)], alike: bool) -> Option<Self> {
        if seen.phase_profile.is_empty() || seen.ok == 0 {
            return None;
        }
        let mut stalls = Self::default();
        for &(phase, least_ns) in phases {
            // A phase that nobody went through stalled nobody.
            let Some(profile) = seen.phase_profile.get(&phase.id()) else { continue };
            // A stall is longer than the same usually takes: where even the shortest take that long, they do not stall.
            let least_ns = if alike { least_ns } else { least_ns.max(2 * profile.quantile_ns(0.05)?) };
            let (values, share) = (profile.count as f64, profile.share_from(least_ns)?);
            if share > 0.0 {
                let short_ns = values * short_mean_ns(profile, least_ns) / seen.ok as f64;
                stalls.count += values * share;
                stalls.ns_per_op += (seen.phase_mean_ns.get(&phase.id())? - short_ns).max(0.0);
            }
        }
        Some(stalls)
    }

    /// The same of the slow side and of the fast one, where all ops may wait alike.
    pub(crate) fn of_both_alike(view: &View<'_>, phases: &[(Phase, Nanos)]) -> Option<[Self; 2]> {
        Some([Self::count(view.slow, phases, true)?, Self::count(view.fast, phases, true)?])
    }

    /// Of the slow side and of the fast one.
    pub(crate) fn of_both(view: &View<'_>, phases: &[(Phase, Nanos)]) -> Option<[Self; 2]> {
        Some([Self::of(view.slow, phases)?, Self::of(view.fast, phases)?])
    }
}

/// Log of how many times longer ops take for stalls that take this share of the time.
pub(crate) fn worth_log_of(share: f64) -> f64 {
    // Who stands still all the time ends no op.
    const MOST: f64 = 0.999;
    -(-share.clamp(0.0, MOST)).ln_1p()
}

/// The same of stalls of all connections at once, with its interval.
pub(crate) fn worth_log(stalls: TargetStalls) -> Estimate {
    let TargetStalls { share, share_half, .. } = stalls;
    let (mid, low, high) = (share, share - share_half, share + share_half);
    let [mid, low, high] = [mid, low, high].map(worth_log_of);
    Estimate { mid, below: mid - low, above: high - mid }
}

/// The part of the mean that values below `least_ns` make, ns.
///
/// The mean of all is known exactly, so it is better to sum up the short values, of which there are many, and to take
/// the rest, than to sum up the few long ones between probabilities that lie far apart there. In the step that leads
/// beyond `least_ns` all values are taken for short: what that adds is small, because short values are.
fn short_mean_ns(profile: &Profile, least_ns: Nanos) -> f64 {
    let steps = Profile::PROBABILITIES.windows(2).zip(profile.at_ns.windows(2));
    steps
        .map(|(probabilities, values)| {
            let (share, low, high) = (probabilities[1] - probabilities[0], values[0], values[1]);
            match () {
                () if high < least_ns => share * (low + high) as f64 / 2.0,
                () if low < least_ns => share * low as f64,
                () => 0.0,
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Distribution;
    use duel_model::web::phase;

    #[test]
    fn the_long_end_is_weighed_by_its_time() {
        // 80 ops of 1 ms and 20 of 241 ms.
        let values = (0..100).map(|i| if i < 80 { 1_000_000 } else { 241_000_000 });
        let seen = TargetObservation {
            ok: 100,
            phase_mean_ns: [(phase::WAIT.id(), 49e6)].into(),
            phase_profile: [(phase::WAIT.id(), Profile::of(&Distribution::from_values(values)))].into(),
            ..Default::default()
        };
        let stalls =
            Stalls::of(&seen, &[(phase::WAIT, DATA_SENT_AGAIN_NS), (phase::CONNECT, SYN_SENT_AGAIN_NS)]).unwrap();
        assert!((15.0..=25.0).contains(&stalls.count), "{stalls:?}");
        assert!((0.98..=1.02).contains(&(stalls.ns_per_op / 48.2e6)), "{stalls:?}");
        let longer = Stalls::of(&seen, &[(phase::WAIT, 300 * MILLISECOND_NS)]).unwrap();
        assert_eq!((longer.count, longer.ns_per_op), (0.0, 0.0));
        assert!(Stalls::of(&TargetObservation { ok: 9, ..Default::default() }, &[]).is_none(), "not kept is not zero");
    }
}
