//! Pairs of slots and their log-ratios.

use crate::signed_rank::Walsh;
use duel_model::{Distribution, Metric, Slot};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One comparison of the target with the baseline under the same circumstances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// Block that it comes from; pairs of a block may depend on each other.
    pub block: u32,
    /// Natural logarithm of target over baseline.
    pub log_ratio: f64,
}

/// All pairs of one target with the baseline in one metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pairs {
    /// In the order in which they ran.
    pub pairs: Vec<Pair>,
    /// Slots of both sides that the pairs were made of.
    pub slots: u32,
    /// Pairs left out because the target's slot has no value (no ok op, no time).
    pub target_without: u32,
    /// Pairs left out because the baseline's slot has none. A pair in which both lack it counts in both.
    pub baseline_without: u32,
    /// Slots of either side without a counterpart in their block: the run ended within it.
    pub unmatched: u32,
}

/// Fewest ops for a 99th percentile: with fewer, the smallest value that 99 % do not exceed is the largest of all, and
/// the "percentile" would be the maximum under another name.
pub(crate) const TAIL_OPS_AT_LEAST: u64 = 100;

/// Ops for a good 99th percentile: ten lie beyond it. The rank that 99 % of n ops take is on average the quantile
/// `0.99 n / (n + 1)`, so that a side with more ops looks further into the tail: at 1000 against 3000 ops and an
/// exponential tail this makes 1.4 % of the percentile, at 100 against 300 ops it would make 10 %.
const TAIL_OPS_WANTED: u64 = 1000;

/// Most pairs that are analysed one by one; their Walsh averages are then 131,328. Beyond, neighbours are averaged
/// (batch means), which costs no evidence and keeps time and memory bounded on runs of hours.
const MOST_PAIRS: usize = 512;

/// Pairs the k-th slot of the target with the k-th slot of the baseline in the same block, by `block` and `repeat`
/// whatever the order of `slots`.
///
/// A pair without a value on one side is left out and counted, never taken for zero: the logarithm of a rate of zero
/// does not exist, and the count tells the judge which side was spared.
pub(crate) fn pair_up(slots: &[&Slot], baseline: usize, target: usize, metric: Metric, min_pairs: u32) -> Pairs {
    let placed = slots.iter().map(|&slot| (slot.target, (slot.block, slot.repeat), slot));
    let (matched, unmatched) = match_up(placed, baseline, target);
    let mut pairs = match metric {
        Metric::Rate | Metric::ResponseP50 => pair_values(&matched, |slot| value_of(slot, metric)),
        Metric::ResponseP99 => pair_tails(&matched, min_pairs),
    };
    pairs.unmatched = unmatched;
    pairs
}

/// Pairs as [`pair_up`] does where each slot has been reduced to its one value: target, block and repeat, value.
pub(crate) fn pair_up_values(
    placed: impl Iterator<Item = (usize, (u32, u32), Option<f64>)>,
    baseline: usize,
    target: usize,
) -> Pairs {
    let (matched, unmatched) = match_up(placed, baseline, target);
    Pairs { unmatched, ..pair_values(&matched, |value| value) }
}

/// What one slot alone shows in a metric; `None` for the 99th percentile, which may take several slots.
pub(crate) fn value_of(slot: &Slot, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Rate => typical_rate_per_s(slot),
        Metric::ResponseP50 => quantile(&slot.tally.response, 0.5),
        Metric::ResponseP99 => None,
    }
}

/// Ok ops per second of a slot as its turns typically had it: their Hodges-Lehmann estimate, in logarithms. Where it was run in one go
/// it is the slot's own.
///
/// What disturbs a machine takes most of a turn or nothing of it. In a slot as a whole it moves the rate by some percent, and does so
/// in one slot of a few; a quarter of the turns may be disturbed before what they typically had moves much. Turns that a server itself
/// spends in pauses are left out by this as well: the rates over all of the time are held against it ([`crate::doubts`]).
fn typical_rate_per_s(slot: &Slot) -> Option<f64> {
    // No run makes that many; an archive may hold any number.
    if slot.turns.is_empty() || slot.turns.len() > MOST_PAIRS {
        return slot.rate_per_s();
    }
    // A turn in which nothing ended had less than one op.
    let rates = slot.turns.iter().filter(|turn| turn.elapsed_ns > 0);
    let rates: Vec<f64> = rates.map(|turn| ((turn.ok as f64).max(0.5) * 1e9 / turn.elapsed_ns as f64).ln()).collect();
    (slot.tally.ok > 0).then(|| Walsh::new(&rates).median().map(f64::exp)).flatten()
}

/// What belongs together: block, the target's, the baseline's.
pub(crate) type Matched<T> = (u32, T, T);

/// Matches what stands at the same block and repeat; and how many found no counterpart.
pub(crate) fn match_up<T: Copy>(
    placed: impl Iterator<Item = (usize, (u32, u32), T)>,
    baseline: usize,
    target: usize,
) -> (Vec<Matched<T>>, u32) {
    let (mut targets, mut baselines) = (BTreeMap::new(), BTreeMap::new());
    for (whose, place, item) in placed {
        if whose == target {
            targets.insert(place, item);
        } else if whose == baseline {
            baselines.insert(place, item);
        }
    }
    let matched: Vec<Matched<T>> =
        targets.iter().filter_map(|(place, &item)| Some((place.0, item, *baselines.get(place)?))).collect();
    let unmatched = targets.len() + baselines.len() - 2 * matched.len();
    (matched, unmatched as u32)
}

pub(crate) fn pair_values<T: Copy>(matched: &[Matched<T>], value: impl Fn(T) -> Option<f64>) -> Pairs {
    let value = |item: T| value(item).filter(|v| v.is_finite() && *v > 0.0);
    let mut out = Pairs::default();
    for &(block, target, baseline) in matched {
        let (of_target, of_baseline) = (value(target), value(baseline));
        out.target_without += u32::from(of_target.is_none());
        out.baseline_without += u32::from(of_baseline.is_none());
        if let (Some(of_target), Some(of_baseline)) = (of_target, of_baseline) {
            // Not the logarithm of the quotient: so that swapping the sides negates it to the last bit.
            out.pairs.push(Pair { block, log_ratio: of_target.ln() - of_baseline.ln() });
            out.slots += 2;
        }
    }
    out
}

fn quantile(distribution: &Distribution, q: f64) -> Option<f64> {
    distribution.quantile_ns(q).map(|ns| ns as f64)
}

/// Pairs of 99th percentiles, of slots that have one each, else of neighbouring blocks merged until they have one.
///
/// Whole blocks are merged, so that both sides of a group saw the same stretch of time and the order within blocks
/// stays balanced. 1000 ops a group are taken when that leaves enough groups to see their scatter, else 100. Too few
/// groups for that as well: no pairs, and the 99th percentile is unknown.
fn pair_tails(matched: &[Matched<&Slot>], min_pairs: u32) -> Pairs {
    let enough = |slot: &Slot, ops: u64| slot.tally.response.count() >= ops;
    for (ops, fewest) in [(TAIL_OPS_WANTED, 2 * min_pairs as usize), (TAIL_OPS_AT_LEAST, min_pairs as usize)] {
        let single = matched.iter().all(|&(_, target, baseline)| enough(target, ops) && enough(baseline, ops));
        let pairs = if single {
            pair_values(matched, |slot| quantile(&slot.tally.response, 0.99))
        } else {
            pair_groups(matched, ops)
        };
        if pairs.pairs.len() >= fewest.max(1) {
            return pairs;
        }
    }
    Pairs::default()
}

fn pair_groups(matched: &[Matched<&Slot>], ops: u64) -> Pairs {
    struct Group {
        target: Distribution,
        baseline: Distribution,
        slots: u32,
    }
    let mut groups: Vec<Group> = Vec::new();
    for block in matched.chunk_by(|a, b| a.0 == b.0) {
        let open = groups.last_mut().filter(|group| group.target.count() < ops || group.baseline.count() < ops);
        let group = match open {
            Some(group) => group,
            None => {
                groups.push(Group { target: Distribution::default(), baseline: Distribution::default(), slots: 0 });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        for (_, target, baseline) in block {
            group.target.merge(&target.tally.response);
            group.baseline.merge(&baseline.tally.response);
            group.slots += 2;
        }
    }
    // What is left at the end is too small for a group of its own and joins the one before it.
    if let Some(rest) = groups.pop_if(|group| group.target.count() < ops || group.baseline.count() < ops)
        && let Some(last) = groups.last_mut()
    {
        last.target.merge(&rest.target);
        last.baseline.merge(&rest.baseline);
        last.slots += rest.slots;
    }
    let mut out = Pairs::default();
    for (block, group) in groups.iter().enumerate() {
        let value = |distribution| quantile(distribution, 0.99).filter(|v| *v > 0.0);
        if let (Some(target), Some(baseline)) = (value(&group.target), value(&group.baseline)) {
            out.pairs.push(Pair { block: block as u32, log_ratio: target.ln() - baseline.ln() });
            out.slots += group.slots;
        }
    }
    out
}

/// The log-ratios in order.
pub(crate) fn log_ratios(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|pair| pair.log_ratio).collect()
}

/// The pairs as they are analysed: themselves, or, of more than [`MOST_PAIRS`], averages of equally many neighbours.
pub(crate) fn batched(pairs: &[Pair]) -> Cow<'_, [Pair]> {
    if pairs.len() <= MOST_PAIRS {
        return Cow::Borrowed(pairs);
    }
    let mean = |(batch, pairs): (usize, &[Pair])| Pair {
        block: batch as u32,
        log_ratio: pairs.iter().map(|pair| pair.log_ratio).sum::<f64>() / pairs.len() as f64,
    };
    pairs.chunks(pairs.len().div_ceil(MOST_PAIRS)).enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pairs_are_averaged_and_few_are_not() {
        let pairs = |n: u32| (0..n).map(|i| Pair { block: i / 2, log_ratio: f64::from(i) }).collect::<Vec<_>>();
        assert_eq!(*batched(&pairs(512)), pairs(512)[..]);
        let means = batched(&pairs(1025)).into_owned();
        assert_eq!(means.len(), 342);
        assert_eq!(means[1], Pair { block: 1, log_ratio: 4.0 });
        assert_eq!(means[341], Pair { block: 341, log_ratio: 1023.5 });
    }
}
