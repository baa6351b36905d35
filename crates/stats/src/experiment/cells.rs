//! The slots of an experiment by block, treatment and target.

use crate::pairing::{Pair, Pairs, TAIL_OPS_AT_LEAST, value_of};
use duel_model::{Metric, Plan, Slot};
use std::collections::BTreeMap;

/// Where a slot stands: block, repeat, treatment, target.
type Place = (u32, u32, usize, usize);

/// The slots of complete blocks.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    slots: BTreeMap<Place, &'a Slot>,
    /// Block and repeat, in the order in which they ran.
    rounds: Vec<(u32, u32)>,
    /// Complete blocks.
    pub(super) blocks: Vec<u32>,
}

impl<'a> Cells<'a> {
    /// Sorts the slots of so many treatments and targets. A block is complete if each treatment has as many slots on each
    /// target as the fullest block has; one that was cut short favours whatever came first in it.
    pub(super) fn new(slots: impl IntoIterator<Item = &'a Slot>, plan: &Plan) -> Self {
        let (treatments, targets) = (plan.treatments(), plan.targets.len());
        let mut placed: BTreeMap<Place, &'a Slot> = BTreeMap::new();
        for slot in slots {
            let Some(treatment) = slot.treatment.map(|treatment| treatment as usize) else { continue };
            if treatment < treatments && slot.target < targets {
                placed.insert((slot.block, slot.repeat, treatment, slot.target), slot);
            }
        }
        let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for &(block, repeat, ..) in placed.keys() {
            *counts.entry((block, repeat)).or_default() += 1;
        }
        let repeats = |block: u32| counts.range((block, 0)..=(block, u32::MAX)).count();
        let most = counts.keys().map(|&(block, _)| repeats(block)).max().unwrap_or(0);
        let mut blocks: Vec<u32> = counts.keys().map(|&(block, _)| block).collect();
        blocks.dedup();
        blocks.retain(|&block| {
            let mut of_block = counts.range((block, 0)..=(block, u32::MAX));
            repeats(block) == most && of_block.all(|(_, &count)| count == treatments * targets)
        });
        let rounds = counts.keys().copied().filter(|(block, _)| blocks.contains(block)).collect();
        placed.retain(|(block, ..), _| blocks.contains(block));
        Self { slots: placed, rounds, blocks }
    }

    /// The slots of a treatment, in the order in which they ran.
    pub(super) fn of_treatment(&self, treatment: usize) -> Vec<&'a Slot> {
        self.slots.iter().filter(|((_, _, of, _), _)| *of == treatment).map(|(_, &slot)| slot).collect()
    }

    /// Rounds of all complete blocks: in each, every treatment ran once on every target.
    pub(super) fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// What a target did in a metric under some treatments: for each round the mean of the logarithms. Rounds in which a
    /// value is missing are left out.
    pub(super) fn levels(&self, treatments: &[usize], target: usize, metric: Metric) -> Vec<Pair> {
        let of_round = |&(block, repeat): &(u32, u32)| {
            let log_ratio = self.mean_log((block, repeat), treatments, target, metric)?;
            Some(Pair { block, log_ratio })
        };
        self.rounds.iter().filter_map(of_round).collect()
    }

    /// A target against the first in a metric under some treatments: for each round the mean of the log-ratios.
    pub(super) fn pairs(&self, treatments: &[usize], target: usize, metric: Metric) -> Pairs {
        let mut pairs = Pairs::default();
        for &(block, repeat) in &self.rounds {
            let of = |place: usize| self.mean_log((block, repeat), treatments, place, metric);
            let (of_target, of_baseline) = (of(target), of(0));
            pairs.target_without += u32::from(of_target.is_none());
            pairs.baseline_without += u32::from(of_baseline.is_none());
            if let (Some(of_target), Some(of_baseline)) = (of_target, of_baseline) {
                pairs.pairs.push(Pair { block, log_ratio: of_target - of_baseline });
                pairs.slots += 2 * treatments.len() as u32;
            }
        }
        pairs
    }

    /// How a target's ratio to the first differs between some treatments and others: for each round the difference of the
    /// log-ratios. Rounds in which a value is missing on either side are left out.
    pub(super) fn differences(&self, from: &[usize], to: &[usize], target: usize, metric: Metric) -> Vec<Pair> {
        let of_round = |&(block, repeat): &(u32, u32)| {
            let ratio = |treatments: &[usize]| {
                let of = |place: usize| self.mean_log((block, repeat), treatments, place, metric);
                Some(of(target)? - of(0)?)
            };
            Some(Pair { block, log_ratio: ratio(to)? - ratio(from)? })
        };
        self.rounds.iter().filter_map(of_round).collect()
    }

    /// The logarithm of a target's value for each complete block under one treatment: the mean over the block's repeats.
    /// `None` as soon as one is missing.
    pub(super) fn by_block(&self, treatment: usize, target: usize, metric: Metric) -> Option<Vec<f64>> {
        let of_block = |&block: &u32| {
            let rounds: Vec<_> = self.rounds.iter().filter(|round| round.0 == block).collect();
            let logs: Option<Vec<f64>> =
                rounds.iter().map(|&&round| self.mean_log(round, &[treatment], target, metric)).collect();
            mean(&logs?)
        };
        self.blocks.iter().map(of_block).collect()
    }

    fn mean_log(&self, round: (u32, u32), treatments: &[usize], target: usize, metric: Metric) -> Option<f64> {
        let log = |&treatment: &usize| {
            let slot = self.slots.get(&(round.0, round.1, treatment, target))?;
            value(slot, metric).filter(|v| v.is_finite() && *v > 0.0).map(f64::ln)
        };
        mean(&treatments.iter().map(log).collect::<Option<Vec<f64>>>()?)
    }
}

/// What one slot shows in a metric. Of the 99th percentile only where it is no maximum: slots are not merged here, as the
/// verdict of a comparison does, because those of several treatments have to stay beside each other.
fn value(slot: &Slot, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Rate | Metric::ResponseP50 => value_of(slot, metric),
        Metric::ResponseP99 => {
            let response = &slot.tally.response;
            let enough = response.count() >= TAIL_OPS_AT_LEAST;
            response.quantile_ns(0.99).filter(|_| enough).map(|ns| ns as f64)
        }
    }
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
