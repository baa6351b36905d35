//! Rates over all of the time: whatever a target loses in some of it counts.

use crate::contrast::{Contrast, log_margin, students_t};
use crate::lasting::FEWEST_BLOCKS;
use crate::signed_rank::Span;
use duel_model::{Call, ComparePlan, PairVerdict, Slot, TargetObservation, Verdict, call_confidence};
use std::collections::BTreeMap;

/// What one slot adds to the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    pub(crate) target: usize,
    /// Start of the targets, where any is started anew, else block: these are independent of each other.
    pub(crate) unit: u32,
    pub(crate) ok: f64,
    pub(crate) time_ns: f64,
    /// In how many turns it was run; 0: in one go.
    pub(crate) turns: u32,
}

impl Part {
    pub(crate) fn of(slot: &Slot) -> Self {
        Self {
            target: slot.target,
            unit: slot.start.unwrap_or(slot.block),
            ok: slot.tally.ok as f64,
            time_ns: slot.elapsed_ns as f64,
            turns: u32::try_from(slot.turns.len()).unwrap_or(u32::MAX),
        }
    }
}

/// All ops of a target by all of its time over those of the baseline.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    /// In log.
    pub(crate) log_ratio: f64,
    /// How much each unit moves it, times the number of units, in the order in which they ran.
    moves: Vec<f64>,
    /// Turns of the side that had fewer; 0: its slots were run in one go.
    pub(crate) turns: f64,
    /// Time of the side that had less, ns.
    pub(crate) time_ns: f64,
}

/// A gap that a comparison has called by all of the time, and what its probes need know of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WholeGap {
    /// The target that differs from the baseline.
    target: usize,
    /// Half width of its interval, in log.
    half_log: f64,
    /// The time of the target that it took, ns.
    time_ns: f64,
}

impl WholeGap {
    /// Those of a verdict, whose `targets` were observed so.
    pub fn of(verdict: &Verdict, targets: &[TargetObservation]) -> Vec<Self> {
        let gap = |pair: &PairVerdict| {
            let target = targets.iter().position(|target| target.name == pair.target)?;
            let half_log = Span { low: pair.low?.ln(), high: pair.high?.ln() }.half_width();
            let time_ns = targets[target].ok as f64 * 1e9 / targets[target].rate_per_s?;
            Some(Self { target, half_log, time_ns })
        };
        verdict.pairs.iter().filter(|pair| pair.by_whole).filter_map(gap).collect()
    }

    /// That of this target.
    pub(crate) fn of_target(gaps: &[Self], target: usize) -> Option<&Self> {
        gaps.iter().find(|gap| gap.target == target)
    }
}

/// Turns without a loss that exclude a loss in a share of them, times that share, at 95 % (the rule of three; Hanley and
/// Lippman-Hand 1983).
const RULE_OF_THREE: f64 = 3.0;

impl Whole {
    /// `None` where one side did nothing.
    pub(crate) fn of(parts: impl IntoIterator<Item = Part>, target: usize, baseline: usize) -> Option<Self> {
        let mut units: BTreeMap<u32, [[f64; 2]; 2]> = BTreeMap::new();
        let (mut sums, mut turns) = ([[0.0; 2]; 2], [0.0; 2]);
        for part in parts {
            let Some(side) = [target, baseline].iter().position(|side| *side == part.target) else { continue };
            turns[side] += f64::from(part.turns);
            for of in [&mut sums[side], &mut units.entry(part.unit).or_default()[side]] {
                of[0] += part.ok;
                of[1] += part.time_ns;
            }
        }
        if sums.iter().flatten().any(|sum| *sum <= 0.0) {
            return None;
        }
        let [log_target, log_baseline] = sums.map(|[ok, time_ns]| (ok / time_ns).ln());
        // To first order, as ratios of sums have it (Cochran 1977, "Sampling Techniques", 6.3).
        let count = units.len() as f64;
        let of_side = |unit: &[[f64; 2]; 2], side: usize| unit[side][0] / sums[side][0] - unit[side][1] / sums[side][1];
        let moves = units.values().map(|unit| count * (of_side(unit, 0) - of_side(unit, 1))).collect();
        let time_ns = sums[0][1].min(sums[1][1]);
        Some(Self { log_ratio: log_target - log_baseline, moves, turns: turns[0].min(turns[1]), time_ns })
    }

    /// Whether its slots were run in turns.
    pub(crate) fn has_turns(&self) -> bool {
        self.turns > 0.0
    }

    /// Whether it has seen enough blocks to know of noise that lasts longer than one.
    pub(crate) fn shows_lasting(&self) -> bool {
        self.moves.len() >= FEWEST_BLOCKS
    }

    /// Student's t on its units; `None` where it is not known. Noise that lasts for many units moves the typical pair as well, whose
    /// interval is wide for it; what moves the whole alone comes and goes.
    pub(crate) fn interval(&self, confidence: f64) -> Option<Span> {
        let around = students_t(&self.moves, confidence)?;
        Some(Span { low: self.log_ratio + around.low, high: self.log_ratio + around.high })
    }

    /// The verdict by it alone.
    pub(crate) fn contrast(&self, compare: &ComparePlan) -> Contrast {
        Contrast {
            estimate: Some(self.log_ratio),
            interval: self.interval(compare.confidence),
            calling: self.interval(call_confidence(compare.confidence)),
            disagreement: None,
        }
    }

    /// The same in a probe of a gap that was called by all of the time.
    ///
    /// Its interval is no narrower than the comparison's would have been in the probe's time. A probe is short, and pauses that are
    /// seldom may all fall between its slots: these are then much alike, and the gap would seem to be gone beyond doubt. What comes by
    /// chance scatters by the root of how much of it there is.
    pub(crate) fn contrast_in_probe(&self, gap: &WholeGap, compare: &ComparePlan) -> Contrast {
        let least = gap.half_log * (gap.time_ns / self.time_ns).sqrt();
        let contrast = self.contrast(compare);
        let at_least = |span: Span| span.union(Span { low: self.log_ratio - least, high: self.log_ratio + least });
        Contrast { interval: contrast.interval.map(at_least), calling: contrast.calling.map(at_least), ..contrast }
    }

    /// Whether it is another one than that of the typical pair of slots: each lies outside of the other's interval, and they differ
    /// by more than half of the margin.
    pub(crate) fn contradicts(&self, typical: &Contrast, compare: &ComparePlan) -> bool {
        let (Some(estimate), Some(interval)) = (typical.estimate, typical.interval) else { return false };
        !interval.contains(self.log_ratio)
            && self.interval(compare.confidence).is_some_and(|own| !own.contains(estimate))
            && (self.log_ratio - estimate).abs() > log_margin(compare) / 2.0
    }

    /// Whether it is the verdict, in place of the typical pair: turns leave a server's pauses out.
    pub(crate) fn is_verdict(&self, typical: &Contrast, compare: &ComparePlan) -> bool {
        self.has_turns() && self.contradicts(typical, compare)
    }

    /// Whether a call of the rate may stand beside it.
    ///
    /// The estimate is that of the typical pair of slots, which a few slots do not move however much they differ: pauses of a
    /// server that fall into one slot of ten would make no difference, and the servers would be called equivalent. Whoever serves
    /// so much less over the whole is not equivalent, nor who may do so by what is known of the whole. A few turns without a pause
    /// scatter little, and say little of pauses that come seldom: it takes so many that pauses worth the margin would have come up.
    /// A call of the one direction does not stand against the other.
    pub(crate) fn lets_stand(&self, call: Call, compare: &ComparePlan) -> bool {
        let margin = log_margin(compare);
        match call {
            Call::Equivalent => {
                let all_within = |span: Span| -margin <= span.low && span.high <= margin;
                self.is_within(margin)
                    && self.interval(compare.confidence).is_none_or(all_within)
                    && self.turns_wanted(compare).is_none()
            }
            Call::Faster => self.log_ratio > 0.0,
            Call::Slower => self.log_ratio < 0.0,
            Call::Unknown => true,
        }
    }

    /// How many turns of either side it takes to exclude pauses that cost as much as the margin; `None` where there are so many, or
    /// none at all.
    pub(crate) fn turns_wanted(&self, compare: &ComparePlan) -> Option<f64> {
        let wanted = (RULE_OF_THREE / compare.margin.max(0.0)).ceil();
        (self.has_turns() && self.turns < wanted).then_some(wanted)
    }

    /// Whether the ratio itself lies within the margin, whatever its interval is.
    pub(crate) fn is_within(&self, log_margin: f64) -> bool {
        self.log_ratio.abs() <= log_margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(target: usize, unit: u32, ok: f64, time_ns: f64) -> Part {
        Part { target, unit, ok, time_ns, turns: 0 }
    }

    #[test]
    fn the_interval_is_that_of_a_ratio_of_sums() {
        let blocks =
            [(0, 10.0, 1.0, 8.0, 1.0), (1, 11.0, 1.1, 7.0, 1.2), (2, 9.0, 1.0, 9.0, 1.1), (3, 12.0, 1.2, 8.0, 0.9)];
        let parts = || {
            let both = |(block, ok, time, ok_b, time_b)| [part(0, block, ok, time), part(1, block, ok_b, time_b)];
            blocks.into_iter().flat_map(both)
        };
        let whole = Whole::of(parts(), 1, 0).unwrap();
        assert!((whole.log_ratio - ((32.0f64 / 4.2).ln() - (42.0f64 / 4.3).ln())).abs() < 1e-12);
        // The jackknife is another way to the same error, but for terms of the second order.
        let without = |left_out: u32| Whole::of(parts().filter(|part| part.unit != left_out), 1, 0).unwrap();
        let left: Vec<f64> = (0..4).map(|block| without(block).log_ratio).collect();
        let mean = left.iter().sum::<f64>() / 4.0;
        let error = (left.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() * 3.0 / 4.0).sqrt();
        let half_width = whole.interval(0.95).unwrap().half_width();
        assert!((half_width / (3.182 * error) - 1.0).abs() < 0.05, "{half_width} against {error}");
    }

    #[test]
    fn who_did_nothing_has_no_ratio_and_one_block_no_interval() {
        let compare = ComparePlan::default();
        assert!(Whole::of([part(0, 0, 5.0, 1.0), part(1, 0, 0.0, 1.0)], 1, 0).is_none());
        let one = Whole::of([part(0, 0, 5.0, 1.0), part(1, 0, 4.0, 1.0)], 1, 0).unwrap();
        assert!(one.interval(0.95).is_none() && one.contrast(&compare).calling.is_none());
    }

    #[test]
    fn few_turns_without_a_pause_do_not_exclude_pauses() {
        let compare = ComparePlan::default();
        let equal = |blocks: u32| {
            let both = |unit| [0, 1].map(|target| Part { turns: 10, ..part(target, unit, 10.0, 1.0) });
            Whole::of((0..blocks).flat_map(both), 1, 0).unwrap()
        };
        assert_eq!(equal(8).turns_wanted(&compare), Some(150.0));
        assert!(!equal(14).lets_stand(Call::Equivalent, &compare) && equal(15).lets_stand(Call::Equivalent, &compare));
        // Slots in one go are as long as pauses are, or longer.
        assert_eq!(Whole::of([part(0, 0, 5.0, 1.0), part(1, 0, 4.0, 1.0)], 1, 0).unwrap().turns_wanted(&compare), None);
    }

    #[test]
    fn a_whole_that_scatters_contradicts_nothing_that_it_may_be() {
        let compare = ComparePlan::default();
        let known = |ratio: f64| {
            let span = Span { low: ratio.ln() - 0.003, high: ratio.ln() + 0.003 };
            Contrast { estimate: Some(ratio.ln()), interval: Some(span), calling: Some(span), disagreement: None }
        };
        // B does a tenth less in one block of five, and is 2 % slower for that.
        let of = |loss: f64| {
            let both = |unit: u32| {
                let lost = if unit % 5 == 2 { loss } else { 0.0 };
                [part(0, unit, 100.0, 1.0), part(1, unit, 100.0 * (1.0 - lost), 1.0)]
            };
            Whole::of((0..20).flat_map(both), 1, 0).unwrap()
        };
        let whole = of(0.1);
        assert!((whole.log_ratio.exp() - 0.98).abs() < 1e-9);
        assert!(whole.contradicts(&known(1.0), &compare), "{:?}", whole.interval(0.95));
        assert!(!whole.contradicts(&known(0.991), &compare), "less than half of the margin");
        // In two of 20 blocks B does nothing: 10 % less, known to 15 %.
        let both =
            |unit: u32| [part(0, unit, 100.0, 1.0), part(1, unit, if unit % 10 == 2 { 1.0 } else { 100.0 }, 1.0)];
        let rare = Whole::of((0..20).flat_map(both), 1, 0).unwrap();
        assert!(rare.log_ratio < -0.09 && !rare.contradicts(&known(1.0), &compare), "{:?}", rare.interval(0.95));
        assert!(!rare.lets_stand(Call::Equivalent, &compare), "it is told all the same");
    }
}
