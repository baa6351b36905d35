//! Gaps so plain that fewer pairs of slots show them than an interval takes.
//!
//! Ops that take seconds leave time for a few slots of one op to a lane. What such slots scatter by is what single ops scatter by, and
//! of few slots that is not to be seen: where one op in ten takes ten times as long, equal targets look twofold apart in four pairs in
//! one run of eight. So the ops themselves have to tell.

use crate::contrast::{Contrast, block_means, students_t};
use crate::pairing::{Pair, Pairs, log_ratios};
use crate::side::Side;
use crate::signed_rank::{Span, Walsh, pairs_needed};
use duel_model::{ComparePlan, Distribution, LoopKind, Metric};

/// How many times faster or slower a target has to be in each pair. What makes slots of equal targets differ (neighbours, placement) is
/// some percent, and seldom some ten.
const LEAST_RATIO: f64 = 2.0;
/// Share of the ops of a side that may be longer, or shorter, than all that is looked at.
const APART: f64 = 0.05;
/// Fewest ops of each side. That all of ten lie beyond all of ten others happens by chance twice in 184,756 times.
const FEWEST_OPS: u64 = 10;

/// The contrast of a plain gap, or `None`: it is none, or there are pairs enough for an interval.
///
/// It is one where the target is at least twice as fast or slow in each pair, Student's t on the means of blocks excludes equality, and
/// nearly all ops of one side took longer than nearly all of the other. The interval is that of Student's t, and holds besides what
/// these ops leave possible: from how much longer the short ones of the one side took than the long ones of the other, to the
/// opposite. Of a probe nothing is plain: what it shows is held against other intervals, which such a one is not like.
pub(crate) fn plain(
    pairs: &Pairs,
    target: &Side<'_>,
    baseline: &Side<'_>,
    metric: Metric,
    (compare, kind): (&ComparePlan, &LoopKind),
) -> Option<Contrast> {
    let needed = pairs_needed(compare.confidence)?;
    // A plan that asks for more pairs than an interval takes is obeyed.
    let is_asked = compare.restart.is_none() && compare.min_pairs <= needed && (pairs.pairs.len() as u32) < needed;
    let is_of_ops = matches!(kind, LoopKind::Closed { .. }) && metric != Metric::ResponseP99;
    let all_are_large = |pairs: &[Pair]| {
        let (least, logs) = (LEAST_RATIO.ln(), log_ratios(pairs));
        logs.iter().all(|log| *log >= least) || logs.iter().all(|log| *log <= -least)
    };
    if !is_asked || !is_of_ops || !all_are_large(&pairs.pairs) {
        return None;
    }
    let by_blocks = students_t(&block_means(&pairs.pairs), compare.confidence).filter(|span| !span.contains(0.0))?;
    let by_times = apart(&target.tally.service, &baseline.tally.service)?;
    let by_ops = match metric {
        Metric::Rate => Span { low: -by_times.high, high: -by_times.low },
        Metric::ResponseP50 | Metric::ResponseP99 => by_times,
    };
    let interval = by_blocks.union(by_ops);
    let estimate = Walsh::new(&log_ratios(&pairs.pairs)).median();
    (!interval.contains(0.0)).then_some(Contrast {
        estimate,
        interval: Some(interval),
        calling: Some(interval),
        disagreement: None,
    })
}

/// The log-ratio of times of ops, where nearly all of one side are longer than nearly all of the other.
fn apart(of_target: &Distribution, of_baseline: &Distribution) -> Option<Span> {
    if of_target.count().min(of_baseline.count()) < FEWEST_OPS {
        return None;
    }
    let log = |distribution: &Distribution, q| Some((distribution.quantile_ns(q)?.max(1) as f64).ln());
    let low = log(of_target, APART)? - log(of_baseline, 1.0 - APART)?;
    let high = log(of_target, 1.0 - APART)? - log(of_baseline, APART)?;
    (low > 0.0 || high < 0.0).then_some(Span { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_lie_apart_where_nearly_all_of_one_side_are_longer() {
        let of = |values: &[u64]| Distribution::from_values(values.iter().copied());
        let short = of(&(100..140).collect::<Vec<_>>());
        let long = of(&(900..940).collect::<Vec<_>>());
        let span = apart(&long, &short).unwrap();
        assert!(
            (span.low - (902.0f64 / 137.0).ln()).abs() < 0.03 && (span.high - (937.0f64 / 102.0).ln()).abs() < 0.03
        );
        let back = apart(&short, &long).unwrap();
        assert!((back.low + span.high).abs() < 1e-9 && (back.high + span.low).abs() < 1e-9);
        // One in ten of the short ones is as long as the long ones.
        let mixed: Vec<u64> = (0..40).map(|i| if i % 10 == 0 { 920 } else { 100 + i }).collect();
        assert_eq!(apart(&long, &of(&mixed)), None);
        assert_eq!(apart(&of(&[900; 9]), &of(&[100; 9])), None, "too few to tell");
    }
}
