//! Ops that stall: time that lies in the long end of a phase, where retransmission time-outs put it.

use crate::gap::View;
use duel_model::{MILLISECOND_NS, Nanos, Phase, Profile, TargetObservation};

/// A first SYN that nobody answers is sent again after 1 s (RFC 6298, 2.1); the clock behind it may tick a little early.
pub(super) const SYN_SENT_AGAIN_NS: Nanos = 900 * MILLISECOND_NS;
/// Linux waits for at least 200 ms before it sends data again (`TCP_RTO_MIN`), other systems as long or longer.
pub(super) const DATA_SENT_AGAIN_NS: Nanos = 190 * MILLISECOND_NS;

/// Ops that stalled in some phases under one treatment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stalls {
    /// How many, about.
    pub(super) count: f64,
    /// Their time in these phases, per ok op.
    pub(super) ns_per_op: f64,
}

impl Stalls {
    /// Of one side: times from `least_ns` on in any of `phases`; `None` where the times of phases were not kept.
    pub(super) fn of(seen: &TargetObservation, phases: &[(Phase, Nanos)]) -> Option<Self> {
        if seen.phase_profile.is_empty() || seen.ok == 0 {
            return None;
        }
        let mut stalls = Self::default();
        for &(phase, least_ns) in phases {
            // A phase that nobody went through stalled nobody.
            let Some(profile) = seen.phase_profile.get(&phase) else { continue };
            let values = profile.count as f64;
            stalls.count += values * profile.share_from(least_ns)?;
            stalls.ns_per_op += values * mean_from_ns(profile, least_ns) / seen.ok as f64;
        }
        Some(stalls)
    }

    /// Of the slow side and of the fast one.
    pub(super) fn of_both(view: &View<'_>, phases: &[(Phase, Nanos)]) -> Option<[Self; 2]> {
        Some([Self::of(view.slow, phases)?, Self::of(view.fast, phases)?])
    }
}

/// The part of the mean that values of at least `least_ns` make, ns.
///
/// Between two probabilities the quantile is taken for a straight line; the step onto `least_ns` is cut where the line
/// reaches it, as [`Profile::share_from`] does.
fn mean_from_ns(profile: &Profile, least_ns: Nanos) -> f64 {
    let steps = Profile::PROBABILITIES.windows(2).zip(profile.at_ns.windows(2));
    steps
        .map(|(probabilities, values)| {
            let (share, low, high) = (probabilities[1] - probabilities[0], values[0] as f64, values[1] as f64);
            let least = least_ns as f64;
            if high < least || share <= 0.0 {
                return 0.0;
            }
            let cut = if low >= least || high <= low { 0.0 } else { (least - low) / (high - low) };
            share * (1.0 - cut) * (low.max(least) + high) / 2.0
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Distribution;

    #[test]
    fn the_long_end_is_weighed_by_its_time() {
        // 80 ops of 1 ms and 20 of 241 ms.
        let values = (0..100).map(|i| if i < 80 { 1_000_000 } else { 241_000_000 });
        let profile = Profile::of(&Distribution::from_values(values));
        let long = mean_from_ns(&profile, DATA_SENT_AGAIN_NS);
        assert!((0.7..=1.2).contains(&(long / (0.2 * 241e6))), "{long}");
        assert_eq!(mean_from_ns(&profile, 300 * MILLISECOND_NS), 0.0);
        let all = mean_from_ns(&profile, 0);
        assert!((0.8..=1.2).contains(&(all / 49e6)), "{all}");
        let seen = TargetObservation { ok: 100, phase_profile: [(Phase::Wait, profile)].into(), ..Default::default() };
        let stalls = Stalls::of(&seen, &[(Phase::Wait, DATA_SENT_AGAIN_NS), (Phase::Connect, SYN_SENT_AGAIN_NS)]);
        assert!((15.0..=25.0).contains(&stalls.unwrap().count), "{stalls:?}");
        assert!(Stalls::of(&TargetObservation { ok: 9, ..Default::default() }, &[]).is_none(), "not kept is not zero");
    }
}
