//! What an op costs by what it consists of: a block, its calls, their bytes.

use super::Judge;
use super::cells::{Cells, mean};
use super::fitting::{Fits, misfit, weights};
use crate::linear::{fit, predicted};
use duel_model::{
    CostDifference, CostMisfit, Costs, Factor, LoopKind, Metric, Parts, Plan, Ranged, TargetCosts, WorkloadPlan,
};

/// The columns: what is paid once for each op, for each of its calls, and for each byte.
const COLUMNS: usize = 3;
/// Every set of columns that may be above 0 together.
const FACES: [&[usize]; 7] = [&[0, 1, 2], &[0, 1], &[0, 2], &[1, 2], &[0], &[1], &[2]];

/// The costs of each target; `None` where something else is varied than how long an op is and in which parts it is handed
/// over, or ops are not done one after the other.
pub(super) fn judge(plan: &Plan, cells: &Cells<'_>, judge: &Judge<'_>) -> Option<Costs> {
    let WorkloadPlan::Plain(kind) = &plan.workload else { return None };
    let parts = kind.schema.parts.as_ref()?;
    let is_of_parts =
        |factor: &Factor| matches!(factor, Factor::Setting(of) if of.param == parts.whole || of.param == parts.part);
    let is_one_by_one = plan.load.kind == (LoopKind::Closed { think_ns: 0 });
    if !is_one_by_one || plan.factors.is_empty() || !plan.factors.iter().all(is_of_parts) {
        return None;
    }
    let treatments: Vec<usize> = (0..plan.treatments()).collect();
    let rows: Vec<[f64; COLUMNS]> =
        treatments.iter().map(|&treatment| row(&plan.treated(treatment), parts)).collect::<Option<_>>()?;
    let varies = |column: usize| rows.iter().any(|row| row[column].to_bits() != rows[0][column].to_bits());
    let columns: Vec<usize> = (0..COLUMNS).filter(|&column| column == 0 || varies(column)).collect();
    let mut paid_for = vec![match (varies(1), varies(2)) {
        (true, true) => format!("a {}", parts.whole_noun),
        (false, true) => format!("a {} and its {}", parts.whole_noun, parts.part_noun),
        (_, false) => format!("a {} with its bytes", parts.whole_noun),
    }];
    paid_for.extend(varies(1).then(|| format!("a {}", parts.part_noun)));
    paid_for.extend(varies(2).then(|| "a byte".to_owned()));
    let mut costs = Costs { paid_for, targets: Vec::new(), differences: Vec::new(), unfitted: None };
    let world = World { plan, cells, rows, columns };
    let is_saturated = treatments.iter().any(|&treatment| judge.is_saturated(treatment));
    let fits = if world.rows.len() <= world.columns.len() {
        Err(format!("it takes {} combinations of levels, and there are {}", world.columns.len() + 1, world.rows.len()))
    } else if is_saturated {
        Err("the generator was the limit".to_owned())
    } else {
        (0..plan.targets.len()).map(|target| Fit::new(target, &world)).collect::<Result<Vec<Fit>, String>>()
    };
    match fits {
        Err(why) => costs.unfitted = Some(why),
        Ok(fits) => {
            costs.targets = fits.iter().enumerate().map(|(target, fit)| fit.told(target, &world)).collect();
            costs.differences = fits
                .iter()
                .enumerate()
                .skip(1)
                .map(|(target, fit)| difference(target, &fits[0], fit, &world))
                .collect();
        }
    }
    Some(costs)
}

/// Blocks, calls and bytes of an op.
fn row(plan: &Plan, parts: &Parts) -> Option<[f64; COLUMNS]> {
    let WorkloadPlan::Plain(kind) = &plan.workload else { return None };
    let number = |param| kind.get(param).parse::<u64>().ok();
    let (whole, part) = (number(parts.whole)?, number(parts.part)?);
    let calls = if part == 0 { 1 } else { whole.div_ceil(part) };
    Some([1.0, calls as f64, whole as f64])
}

/// What all targets are fitted by.
struct World<'a> {
    plan: &'a Plan,
    cells: &'a Cells<'a>,
    rows: Vec<[f64; COLUMNS]>,
    /// Those that can be told apart: what does not vary is part of what is paid once.
    columns: Vec<usize>,
}

/// One target's costs in ns.
struct Fit {
    costs: Fits<[f64; COLUMNS]>,
    misfit: Option<CostMisfit>,
}

impl Fit {
    fn new(target: usize, world: &World<'_>) -> Result<Self, String> {
        let World { plan, cells, rows, columns } = world;
        // Logarithms of the ns of an op as its thread sees it, by treatment and block.
        let lanes = f64::from(plan.load.connections);
        let of_treatment = |treatment: usize| {
            let logs = cells.by_block(treatment, target, Metric::Rate)?;
            Some(logs.into_iter().map(|log| (lanes * 1e9).ln() - log).collect::<Vec<f64>>())
        };
        let logs: Option<Vec<Vec<f64>>> = (0..rows.len()).map(of_treatment).collect();
        let logs = logs.ok_or("a slot has no rate")?;
        let blocks = logs[0].len();
        if blocks == 0 {
            return Err("there is no complete block".to_owned());
        }
        let faces: Vec<&[usize]> =
            FACES.into_iter().filter(|face| face.iter().all(|column| columns.contains(column))).collect();
        let fit_to = |drawn: &[usize]| {
            let drawn: Vec<Vec<f64>> =
                logs.iter().map(|logs| drawn.iter().map(|&block| logs[block]).collect()).collect();
            let seen: Option<Vec<f64>> = drawn.iter().map(|logs| mean(logs).map(f64::exp)).collect();
            fit(rows, &seen?, &weights(&drawn), &faces)
        };
        let costs = Fits::of(blocks, plan, fit_to).ok_or("no sum of such costs fits")?;
        let fitted: Vec<f64> = rows.iter().map(|row| predicted(row, &costs.whole).ln()).collect();
        let misfit = misfit(&fitted, &logs, plan)
            .map(|(treatment, ratio)| CostMisfit { treatment: plan.treatment_name(treatment), ratio });
        Ok(Self { costs, misfit })
    }

    fn told(&self, target: usize, world: &World<'_>) -> TargetCosts {
        // None is below 0.
        let ns = |&column: &usize| {
            let found = self.costs.ranged(world.plan, |ns| ns[column]);
            Ranged { low: found.low.map(|low| low.max(0.0)), ..found }
        };
        TargetCosts {
            target: world.plan.targets[target].name.clone(),
            ns: world.columns.iter().map(ns).collect(),
            misfit: self.misfit.clone(),
        }
    }
}

fn difference(target: usize, baseline: &Fit, fit: &Fit, world: &World<'_>) -> CostDifference {
    let ns = |&column: &usize| {
        baseline.costs.ranged_beside(&fit.costs, world.plan, |before, now| now[column] - before[column])
    };
    CostDifference {
        baseline: world.plan.targets[0].name.clone(),
        target: world.plan.targets[target].name.clone(),
        ns: world.columns.iter().map(ns).collect(),
    }
}
