//! Several starts of one program: what differs between them is noise, and no difference between programs.
//!
//! A process keeps what it was started with: where its memory lies, what its compiler has made of it, the seeds of its hash
//! tables. All of its slots share that, so that however many of them there are, they are one observation of the program
//! (Kalibera and Jones 2013; Mytkowicz et al. 2009). Where targets are started anew, the unit is the start: each is reduced to one
//! log-ratio, and the interval comes from how these scatter. Both levels are in that scatter, that of starts whole and that of slots
//! by as much as their number within a start leaves of it.

use crate::contrast::{Contrast, students_t};
use crate::lasting::lasting;
use crate::pairing::{Matched, Pair, Pairs, TAIL_OPS_AT_LEAST, batched, log_ratios, match_up, pair_values, value_of};
use crate::signed_rank::{Span, Walsh};
use duel_model::{ComparePlan, Distribution, Metric, Slot};

/// Fewest starts for a verdict. The shape of what differs between starts is not known, and it is often that of a coin: a
/// program is laid out well or badly. Where one of two targets is started anew, all of its starts fall on one side in 2 of 2^n runs,
/// and the scatter is seen as none: at 8 starts that is 0.8 %, below the 1 % of a call, at 7 it is 1.6 %. (Where both are it takes
/// 4 for that; one rule for both, since a start that is seldom bad is met the sooner.)
pub const FEWEST_STARTS: usize = 8;

/// How many observations a verdict takes: starts where targets are started anew, pairs of slots where they are not.
pub(crate) fn fewest(compare: &ComparePlan) -> usize {
    if compare.restart.is_some() { FEWEST_STARTS } else { compare.min_pairs as usize }
}

/// As [`crate::pairing::pair_up`], with one pair for each start, whose place stands for its block: the Hodges-Lehmann estimate of
/// its pairs of slots, which a wild slot does not move far. The 99th percentile is that of all ops of a start; where a whole one has
/// too few for that, there are no pairs.
pub(crate) fn pair_up_starts(slots: &[&Slot], baseline: usize, target: usize, metric: Metric) -> Pairs {
    let placed = slots.iter().map(|&slot| (slot.target, (slot.block, slot.repeat), slot));
    let (matched, unmatched) = match_up(placed, baseline, target);
    let mut out = Pairs { unmatched, ..Pairs::default() };
    let chunks = || matched.chunk_by(|a, b| start_of(a) == start_of(b));
    let whole = chunks().map(<[_]>::len).max().unwrap_or(0);
    for of_start in chunks() {
        let start = start_of(&of_start[0]);
        let pairs = match metric {
            Metric::Rate | Metric::ResponseP50 => pair_values(of_start, |slot| value_of(slot, metric)),
            Metric::ResponseP99 => match tails(of_start) {
                Some(log_ratio) => {
                    let pairs = vec![Pair { block: start, log_ratio }];
                    Pairs { pairs, slots: 2 * of_start.len() as u32, ..Pairs::default() }
                }
                // The last one may have been cut short by the end of the run.
                None if of_start.len() < whole => continue,
                None => return Pairs::default(),
            },
        };
        out.pairs.extend(one_of(start, &pairs.pairs));
        out.slots += pairs.slots;
        out.target_without += pairs.target_without;
        out.baseline_without += pairs.baseline_without;
    }
    out
}

/// Pairs of slots reduced to one for each start; `start` tells that of a block. Starts have to lie one behind the other.
pub(crate) fn by_start(pairs: &[Pair], start: impl Fn(u32) -> u32) -> Vec<Pair> {
    let chunks = pairs.chunk_by(|a, b| start(a.block) == start(b.block));
    chunks.filter_map(|of_start| one_of(start(of_start[0].block), of_start)).collect()
}

/// How many starts there are among these slots.
pub(crate) fn starts(slots: &[&Slot]) -> u32 {
    let mut seen: Vec<u32> = slots.iter().filter_map(|slot| slot.start).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() as u32
}

/// Estimates the log-ratio from one pair for each start, and encloses it: the mean, in which each start counts alike however many
/// slots it had, and Student's t on the starts (Kalibera and Jones 2013, with starts as the highest level). From 8 starts
/// on also by batches of neighbours, for noise of a target's own that outlasts a start. `interval` is `None` with fewer than
/// [`FEWEST_STARTS`].
///
/// The mean and not the Hodges-Lehmann estimate: an unlucky start is no disturbance, but the program's own. Rejected: Wilcoxon's
/// interval on starts (it takes 8 of them for a call at 99 %), and variance components (the lower one adds nothing to the interval of
/// a balanced design, and its estimate may be negative).
pub(crate) fn contrast_of_starts(starts: &[Pair], compare: &ComparePlan) -> Contrast {
    let starts = batched(starts);
    let values = log_ratios(&starts);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let enough = values.len() >= FEWEST_STARTS;
    Contrast {
        estimate: (!values.is_empty()).then_some(mean),
        interval: if enough { enclose(&starts, &values, mean, compare.confidence) } else { None },
        calling: if enough {
            enclose(&starts, &values, mean, duel_model::call_confidence(compare.confidence))
        } else {
            None
        },
        disagreement: None,
    }
}

/// The interval of so many starts at another confidence than the plan's; `None` with too few of them.
pub(crate) fn interval_of_starts(starts: &[Pair], confidence: f64) -> Option<Span> {
    let starts = batched(starts);
    let values = log_ratios(&starts);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if values.len() < FEWEST_STARTS { None } else { enclose(&starts, &values, mean, confidence) }
}

fn enclose(starts: &[Pair], values: &[f64], mean: f64, confidence: f64) -> Option<Span> {
    let spans = [students_t(values, confidence), lasting(starts, mean, confidence)];
    spans.into_iter().flatten().reduce(Span::union)
}

fn start_of((_, target, _): &Matched<&Slot>) -> u32 {
    target.start.unwrap_or(0)
}

fn one_of(start: u32, pairs: &[Pair]) -> Option<Pair> {
    let log_ratio = Walsh::new(&log_ratios(&batched(pairs))).median()?;
    Some(Pair { block: start, log_ratio })
}

/// The log-ratio of 99th percentiles over all ops of a start; `None` where either side has too few.
fn tails(of_start: &[Matched<&Slot>]) -> Option<f64> {
    let (mut target, mut baseline) = (Distribution::default(), Distribution::default());
    for (_, of_target, of_baseline) in of_start {
        target.merge(&of_target.tally.response);
        baseline.merge(&of_baseline.tally.response);
    }
    let tail = |of: &Distribution| {
        let tail_ns = of.quantile_ns(0.99).filter(|&tail_ns| tail_ns > 0 && of.count() >= TAIL_OPS_AT_LEAST)?;
        Some((tail_ns as f64).ln())
    };
    Some(tail(&target)? - tail(&baseline)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts_of(values: &[f64]) -> Vec<Pair> {
        values.iter().enumerate().map(|(start, &log_ratio)| Pair { block: start as u32, log_ratio }).collect()
    }

    #[test]
    fn agrees_with_tables_of_students_t() {
        // Of four degrees of freedom the quantiles are 2.776445 at 0.975 and 4.604095 at 0.995; the standard error is sqrt(0.00025 / 5).
        let [interval, calling] = [0.95, 0.99].map(|sure| students_t(&[0.01, 0.03, 0.02, -0.01, 0.0], sure).unwrap());
        for (found, expected) in [
            (interval.low, -0.009_632_431_614),
            (interval.high, 0.029_632_431_614),
            (calling.low, -0.022_555_867),
            (calling.high, 0.042_555_867),
        ] {
            assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
    }

    #[test]
    fn seven_starts_are_too_few() {
        let contrast = contrast_of_starts(&starts_of(&[0.5; 7]), &ComparePlan::default());
        assert_eq!((contrast.estimate, contrast.interval, contrast.calling), (Some(0.5), None, None));
        assert_eq!(interval_of_starts(&starts_of(&[0.5; 7]), 0.9), None);
        assert_eq!(contrast_of_starts(&[], &ComparePlan::default()), Contrast::default());
    }

    #[test]
    fn a_start_counts_once_however_many_blocks_it_has() {
        let pairs: Vec<Pair> = [0.1, 0.1, 0.1, 0.3]
            .iter()
            .enumerate()
            .map(|(block, &log_ratio)| Pair { block: block as u32, log_ratio })
            .collect();
        let starts = by_start(&pairs, |block| u32::from(block == 3));
        assert_eq!(starts, starts_of(&[0.1, 0.3]));
    }

    #[test]
    fn noise_that_outlasts_starts_makes_it_wider() {
        let apart: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 0.01 } else { -0.01 }).collect();
        let lasts: Vec<f64> = (0..16).map(|i| if i / 4 % 2 == 0 { 0.01 } else { -0.01 }).collect();
        let half = |values: &[f64]| {
            contrast_of_starts(&starts_of(values), &ComparePlan::default()).interval.unwrap().half_width()
        };
        assert!(half(&lasts) > 1.5 * half(&apart), "{} and {}", half(&lasts), half(&apart));
    }
}
