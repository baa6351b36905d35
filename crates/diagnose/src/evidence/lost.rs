//! What losses make of a stream: how many segments are under way where each one that gets lost halves them. And what they make of ops:
//! some take far longer, and the others do not.

use crate::evidence::counted::Counted;
use crate::evidence::worth::share_of_log;
use crate::gap::{Demands, View};
use duel_model::{Nanos, Profile};

/// What one lost packet costs at most, but for one that is lost again and again: a time-out of 200 ms on top of a round trip.
pub(crate) const MOST_PER_LOSS_NS: f64 = 300e6;

/// What a side's machine sends again of all that it sends, and how that stands beside the other side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) counted: Counted,
    /// Of all segments that the slow side's machine sends.
    pub(crate) share: f64,
}

impl Lost {
    /// Fewer say little of their share: ten scatter by a third of their number (Poisson).
    const LEAST: f64 = 10.0;
    /// Other algorithms than the one that the law below is of, and losses that come in bursts, make up to so many times more of it, or
    /// less.
    const WITHIN: f64 = 4.0;

    /// `None` where the slow side's machine does not tell, or sends nothing again.
    pub(crate) fn of(demands: &Demands<'_>) -> Option<Self> {
        let counted = Counted::of(demands, "tcp.retransmitted_segments")?;
        let sent = demands.slow.per_op("tcp.sent_segments").filter(|&sent| sent > 0.0)?;
        (counted.per_op > 0.0).then_some(Self { counted, share: counted.per_op / sent })
    }

    /// Segments under way on average where each loss halves them and each round trip adds one: the root of 1.5 over the share that gets
    /// lost (Mathis et al. 1997).
    pub(crate) fn segments_under_way(self) -> f64 {
        (1.5 / self.share).sqrt()
    }

    /// Whether so many segments under way are about what such losses leave.
    pub(crate) fn leaves(self, segments: f64) -> bool {
        let times = segments / self.segments_under_way();
        self.counted.total >= Self::LEAST && (1.0 / Self::WITHIN..=Self::WITHIN).contains(&times)
    }
}

/// What it can be worth that the slow side has so many segments sent again for each op. Loss hits some ops and leaves the others as they
/// are, so of what ops take longer only the part counts that lies in the longest, as many of them as segments were sent again. `None`
/// where that is less than half: then most of it has another reason.
pub(crate) fn share_of_lost(reference: &View<'_>, hit: f64, most_per_loss_ns: f64) -> Option<f64> {
    let whole_ns = reference.slow_ns()? - reference.fast_ns()?;
    let spared_ns = if hit < 1.0 {
        // Service times overlap where connections work side by side; time per op does not.
        let overlap = (reference.slow_ns()? / reference.slow.service_mean_ns?).min(1.0);
        overlap * spared_longer_ns(reference, 1.0 - hit)?
    } else {
        0.0
    };
    let hit_ns = whole_ns - spared_ns;
    if hit_ns < 0.5 * whole_ns {
        return None;
    }
    share_of_log(reference, hit_ns.min(hit * most_per_loss_ns))
}

/// How much longer the quickest `share` of the slow side's ops take than those of the fast side's, ns per op of all. What the
/// quickest quarter takes longer all take longer.
fn spared_longer_ns(reference: &View<'_>, share: f64) -> Option<f64> {
    let (slow, fast) = (&reference.slow.service_profile, &reference.fast.service_profile);
    let quick = |profile: &Profile| profile.quantile_ns(0.25).map(|ns| ns as f64);
    let all_ns = quick(slow)? - quick(fast)?;
    let spared_ns = quickest_ns(slow, share)? - quickest_ns(fast, share)?;
    Some(all_ns.max(spared_ns).max(0.0))
}

/// The part of the mean that the shortest `share` of the values makes, ns. In a step of the profile that the share cuts all
/// values are taken for the shortest there: a jump may lie in the rest of it.
fn quickest_ns(profile: &Profile, share: f64) -> Option<f64> {
    let steps = Profile::PROBABILITIES.windows(2).zip(profile.at_ns.windows(2));
    let part = |(probabilities, values): (&[f64], &[Nanos])| {
        let (low, high) = (values[0] as f64, values[1] as f64);
        let width = probabilities[1].min(share) - probabilities[0];
        width.max(0.0) * if probabilities[1] <= share { (low + high) / 2.0 } else { low }
    };
    (profile.at_ns.len() == Profile::PROBABILITIES.len()).then(|| steps.map(part).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Distribution;

    #[test]
    fn the_quickest_part_holds_no_stalls_that_lie_beyond_it() {
        // 98 ops of 1 ms and 2 of 201 ms.
        let values = (0..100).map(|i| if i < 98 { 1_000_000 } else { 201_000_000 });
        let profile = Profile::of(&Distribution::from_values(values));
        assert!((quickest_ns(&profile, 0.96).unwrap() - 0.96e6).abs() < 0.01e6);
        assert!((quickest_ns(&profile, 0.5).unwrap() - 0.5e6).abs() < 0.01e6);
        assert!(quickest_ns(&profile, 1.0).unwrap() > 3e6, "all of it holds them");
        assert_eq!(quickest_ns(&Profile::default(), 0.5), None, "not kept is not zero");
    }
}
