//! Courses of stages: every target against the baseline, stage by stage.
//!
//! A course is the unit, as a slot is of a comparison: within it a stage inherits what the one before has left, a queue or
//! a cache. So pairs are made of the same stage of two courses of one block.

use crate::contrast::contrast;
use crate::pairing::{TAIL_OPS_AT_LEAST, pair_up_values};
use duel_model::{Metric, Plan, Slot, StageContrast, StageTally};

/// What is compared of each stage.
const METRICS: [Metric; 3] = [Metric::Rate, Metric::ResponseP50, Metric::ResponseP99];

/// Every target against the first in each stage; empty where there are none. Intervals are those of a comparison, each for
/// itself.
pub(crate) fn stage_contrasts(slots: &[&Slot], plan: &Plan) -> Vec<StageContrast> {
    let mut contrasts = Vec::new();
    for target in 1..plan.targets.len() {
        for stage in 0..plan.load.shape.stages.len() {
            for metric in METRICS {
                contrasts.push(stage_contrast(slots, plan, target, stage, metric));
            }
        }
    }
    contrasts
}

fn stage_contrast(slots: &[&Slot], plan: &Plan, target: usize, stage: usize, metric: Metric) -> StageContrast {
    let placed = slots.iter().map(|slot| {
        let value = slot.tally.stages.get(stage).and_then(|tally| value_of(tally, metric));
        (slot.target, (slot.block, slot.repeat), value)
    });
    let pairs = pair_up_values(placed, 0, target).pairs;
    let seen = contrast(&pairs, &plan.compare);
    StageContrast {
        baseline: plan.targets[0].name.clone(),
        target: plan.targets[target].name.clone(),
        stage,
        metric,
        ratio: seen.estimate.map(f64::exp),
        low: seen.interval.map(|interval| interval.low.exp()),
        high: seen.interval.map(|interval| interval.high.exp()),
        confidence: plan.compare.confidence,
        pairs: pairs.len() as u32,
    }
}

/// What a stage of one course shows. Rates of one stage have the same length of time below them, so that their ratio is that
/// of the ops.
fn value_of(tally: &StageTally, metric: Metric) -> Option<f64> {
    let quantile = |q| tally.response.quantile_ns(q).map(|ns| ns as f64);
    match metric {
        Metric::Rate => Some(tally.ended_ok as f64),
        Metric::ResponseP50 => quantile(0.5),
        Metric::ResponseP99 => quantile(0.99).filter(|_| tally.response.count() >= TAIL_OPS_AT_LEAST),
    }
}
