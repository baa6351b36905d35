//! Runs with factors: every level and treatment judged, and what the factors do to the difference.
//!
//! Blocks are complete and randomised: each holds every treatment on every target. Within a treatment the targets are
//! paired as in a comparison; a level of one factor is the mean, in logarithms, over all treatments that have it, taken
//! within each round of slots, so that what the other factors do is the same for all levels (balance). What is inferred
//! is inferred from these numbers by the same means as in a comparison (`contrast`): blocks are the units.

mod cells;
mod costs;
mod doubts;
mod fitting;
mod scaling;

use crate::contrast::{Contrast, contrast, contrast_among, log_margin};
use crate::doubts::Found;
use crate::pairing::Pairs;
use crate::side::{Bias, Side, biases};
use crate::slots::{call, metrics, tempered};
use cells::Cells;
use duel_model::{
    Call, Dependence, DependenceAnswer, Doubt, DoubtId, Experiment, Factor, FactorVerdict, LevelFigure, LevelVerdict,
    Metric, PairVerdict, Plan, Ranged, Slot, Verdict,
};

/// Judges the slots of a plan with factors.
///
/// The verdict's pairs are over all treatments: the geometric mean of their ratios.
pub(crate) fn judge_experiment<'a>(slots: impl IntoIterator<Item = &'a Slot>, plan: &Plan) -> Verdict {
    let treatments = plan.treatments();
    if treatments == 0 || treatments > Plan::MOST_TREATMENTS {
        let text = format!("a plan with {treatments} treatments cannot be judged");
        let doubt = Doubt { id: DoubtId::NotRecorded, target: None, text };
        return Verdict { doubts: vec![doubt], ..Verdict::default() };
    }
    let plans: Vec<Plan> = (0..treatments).map(|treatment| plan.treated(treatment)).collect();
    let slots: Vec<&Slot> = slots.into_iter().collect();
    // A block with a slot that shows the generator is not complete. Where that leaves too few, all are kept and none is called.
    let every = Cells::new(slots.iter().copied(), plan);
    let clean = Cells::new(slots.iter().copied().filter(|slot| !slot.is_spoilt()), plan);
    let is_mostly_spoilt = 2 * clean.blocks.len() < every.blocks.len();
    let cells = if is_mostly_spoilt { every } else { clean };
    let judge = Judge { is_mostly_spoilt, ..Judge::new(plan, &plans, &cells) };
    let all: Vec<usize> = (0..treatments).collect();
    let overall = judge.level(String::new(), None, &all, 1);
    let experiment = Experiment {
        blocks: cells.blocks.len() as u32,
        confidence: plan.compare.confidence,
        treatments: all.iter().map(|&t| judge.level(plan.treatment_name(t), None, &[t], treatments)).collect(),
        factors: plan.factors.iter().enumerate().map(|(place, factor)| judge.factor(place, factor)).collect(),
        scaling: scaling::judge(plan, &cells, &judge),
        costs: costs::judge(plan, &cells, &judge),
    };
    let mut found = Found::default();
    for (place, target) in plan.targets.iter().enumerate() {
        let own: Vec<&Slot> = slots.iter().copied().filter(|slot| slot.target == place).collect();
        let consequence = if is_mostly_spoilt {
            "nothing is called, since they are in too many blocks to be left out"
        } else {
            "left out, with the blocks that they are in"
        };
        found.of_standstill(&target.name, &own, consequence);
    }
    let mut doubts = found.into_doubts();
    doubts.extend(doubts::of(plan, &plans, &cells));
    Verdict { pairs: overall.pairs, doubts, experiment: Some(experiment), ..Verdict::default() }
}

/// What all levels are judged by.
struct Judge<'a> {
    plan: &'a Plan,
    cells: &'a Cells<'a>,
    /// By treatment and target.
    sides: Vec<Vec<Side<'a>>>,
    metrics: &'static [Metric],
    /// The generator stood still in too many blocks for a call.
    is_mostly_spoilt: bool,
}

impl<'a> Judge<'a> {
    fn new(plan: &'a Plan, plans: &'a [Plan], cells: &'a Cells<'a>) -> Self {
        let of_treatment = |(treatment, plan): (usize, &'a Plan)| {
            let slots = cells.of_treatment(treatment);
            let targets = plan.targets.iter().enumerate();
            targets.map(|(place, target)| Side::new(&slots, place, target, plan)).collect()
        };
        let sides = plans.iter().enumerate().map(of_treatment).collect();
        // What some treatments do not have is unknown under these.
        let told = plans.iter().find(|plan| !plan.is_streamed()).unwrap_or(plan);
        Self { plan, cells, sides, metrics: metrics(told), is_mostly_spoilt: false }
    }

    /// Whether the generator was the bottleneck on any target under a treatment.
    fn is_saturated(&self, treatment: usize) -> bool {
        self.sides[treatment].iter().any(Side::saturated)
    }

    /// One factor, averaged over the others.
    fn factor(&self, place: usize, factor: &Factor) -> FactorVerdict {
        let with = |level: usize| -> Vec<usize> {
            (0..self.sides.len()).filter(|&t| self.plan.level_of(t, place) == level).collect()
        };
        let levels: Vec<(String, Vec<usize>)> =
            (0..factor.levels()).map(|level| (factor.label(level), with(level))).collect();
        let of = |(level, (label, treatments)): (usize, &(String, Vec<usize>))| {
            self.level(label.clone(), factor.number(level), treatments, levels.len())
        };
        FactorVerdict {
            name: factor.name().to_owned(),
            levels: levels.iter().enumerate().map(of).collect(),
            dependences: (1..self.plan.targets.len())
                .filter_map(|target| self.dependence(target, self.metrics[0], &levels))
                .collect(),
        }
    }

    /// What was seen under some treatments together; a table of so many `looks` is judged by rows like this.
    fn level(&self, label: String, number: Option<f64>, treatments: &[usize], looks: usize) -> LevelVerdict {
        let places = || 0..self.plan.targets.len();
        let figure = |target: usize, metric: Metric| {
            let seen = contrast(&self.cells.levels(treatments, target, metric), &self.plan.compare);
            let target = self.plan.targets[target].name.clone();
            Some(LevelFigure { target, metric, figure: ranged(&seen)? })
        };
        LevelVerdict {
            label,
            number,
            figures: places()
                .flat_map(|target| self.metrics.iter().map(move |&metric| (target, metric)))
                .filter_map(|(target, metric)| figure(target, metric))
                .collect(),
            pairs: places()
                .skip(1)
                .flat_map(|target| self.metrics.iter().map(move |&metric| (target, metric)))
                .map(|(target, metric)| self.pair(treatments, target, metric, looks))
                .collect(),
        }
    }

    fn pair(&self, treatments: &[usize], target: usize, metric: Metric, looks: usize) -> PairVerdict {
        let compare = &self.plan.compare;
        let pairs = self.cells.pairs(treatments, target, metric);
        let shown = contrast(&pairs.pairs, compare);
        let surer = if looks > 1 { contrast_among(&pairs.pairs, compare, looks) } else { shown };
        let (of_target, of_baseline) = self.biases(treatments, target, metric, &pairs);
        let name = |place: usize| self.plan.targets[place].name.clone();
        PairVerdict {
            baseline: name(0),
            target: name(target),
            metric,
            call: if self.is_mostly_spoilt {
                Call::Unknown
            } else {
                tempered(call(&surer, pairs.pairs.len(), metric, compare), of_target, of_baseline)
            },
            ratio: shown.estimate.map(f64::exp),
            low: shown.interval.map(|interval| interval.low.exp()),
            high: shown.interval.map(|interval| interval.high.exp()),
            confidence: compare.confidence,
            slots: pairs.slots,
            by_whole: false,
        }
    }

    /// A mean is biased as soon as one of its parts is.
    fn biases(&self, treatments: &[usize], target: usize, metric: Metric, pairs: &Pairs) -> (Bias, Bias) {
        let either =
            |a: Bias, b: Bias| Bias { hampered: a.hampered || b.hampered, flattered: a.flattered || b.flattered };
        treatments
            .iter()
            .map(|&treatment| {
                let sides = &self.sides[treatment];
                biases(&sides[target], &sides[0], metric, pairs)
            })
            .fold((Bias::default(), Bias::default()), |(target, baseline), (t, b)| {
                (either(target, t), either(baseline, b))
            })
    }

    /// Whether a target's ratio to the first depends on the level: the levels with the smallest and the largest ratio
    /// are held against each other, with an interval wide enough for any two of all levels (Bonferroni), since these two
    /// were chosen by what was seen.
    fn dependence(&self, target: usize, metric: Metric, levels: &[(String, Vec<usize>)]) -> Option<Dependence> {
        let compare = &self.plan.compare;
        let seen: Vec<f64> = levels
            .iter()
            .map(|(_, treatments)| contrast(&self.cells.pairs(treatments, target, metric).pairs, compare).estimate)
            .collect::<Option<_>>()?;
        let order = |&a: &usize, &b: &usize| seen[a].total_cmp(&seen[b]);
        let (from, to) = ((0..seen.len()).min_by(order)?, (0..seen.len()).max_by(order)?);
        if from == to {
            return None;
        }
        let differences = self.cells.differences(&levels[from].1, &levels[to].1, target, metric);
        let looks = levels.len() * (levels.len() - 1) / 2;
        let change = contrast_among(&differences, compare, looks);
        let margin = log_margin(compare);
        let (estimate, interval) = (change.estimate?, change.interval?);
        let answer = if differences.len() < compare.min_pairs as usize {
            DependenceAnswer::Unknown
        } else if -margin <= interval.low && interval.high <= margin {
            DependenceAnswer::Same
        } else if change.calling.is_some_and(|calling| !calling.contains(0.0)) && estimate.abs() > margin {
            DependenceAnswer::Depends
        } else {
            DependenceAnswer::Unknown
        };
        Some(Dependence {
            target: self.plan.targets[target].name.clone(),
            metric,
            answer,
            from: levels[from].0.clone(),
            to: levels[to].0.clone(),
            change: ranged(&change)?,
        })
    }
}

/// Back from logarithms.
fn ranged(contrast: &Contrast) -> Option<Ranged> {
    Some(Ranged {
        value: contrast.estimate?.exp(),
        low: contrast.interval.map(|interval| interval.low.exp()),
        high: contrast.interval.map(|interval| interval.high.exp()),
    })
}
