//! What weakens an experiment: the doubts of its treatments, each kind told once.

use super::cells::Cells;
use crate::signed_rank::pairs_needed;
use crate::slots::judge_slots;
use duel_model::{ComparePlan, Doubt, DoubtId, Plan};

/// Treatments that are named with a doubt; of more, their number is told.
const NAMED: usize = 3;

/// A doubt, and under which treatments it came up.
struct Shared {
    doubt: Doubt,
    treatments: Vec<usize>,
}

/// The doubts about all treatments, and about their number of blocks.
pub(super) fn of(plan: &Plan, plans: &[Plan], cells: &Cells<'_>) -> Vec<Doubt> {
    let mut shared: Vec<Shared> = Vec::new();
    for (treatment, treated) in plans.iter().enumerate() {
        // The slots of one treatment alone are judged for their doubts only: what is called is called for a whole table.
        let doubts = judge_slots(cells.of_treatment(treatment), treated).doubts;
        for doubt in doubts.into_iter().filter(|doubt| doubt.id != DoubtId::TooFewSlots) {
            match shared.iter_mut().find(|s| s.doubt.id == doubt.id && s.doubt.target == doubt.target) {
                Some(known) if known.treatments.contains(&treatment) => {}
                Some(known) => known.treatments.push(treatment),
                None => shared.push(Shared { doubt, treatments: vec![treatment] }),
            }
        }
    }
    let mut doubts: Vec<Doubt> = too_few(cells, &plan.compare).into_iter().collect();
    doubts.extend(shared.into_iter().map(|shared| {
        let text = format!("{}: {}", under(plan, &shared.treatments), shared.doubt.text);
        Doubt { text, ..shared.doubt }
    }));
    doubts.sort_by_key(|doubt| doubt.id);
    doubts
}

/// `connections 64 (and 2 more treatments)`; the text that follows is that of the first.
fn under(plan: &Plan, treatments: &[usize]) -> String {
    match treatments {
        all if all.len() == plan.treatments() && all.len() > 1 => {
            format!("under all treatments, such as {}", plan.treatment_name(all[0]))
        }
        [first, more @ ..] if more.len() >= NAMED => {
            format!("at {} and under {} more treatments", plan.treatment_name(*first), more.len())
        }
        few => {
            let names: Vec<String> = few.iter().map(|&treatment| plan.treatment_name(treatment)).collect();
            format!("at {}", names.join(" and at "))
        }
    }
}

fn too_few(cells: &Cells<'_>, compare: &ComparePlan) -> Option<Doubt> {
    let (blocks, rounds) = (cells.blocks.len(), cells.rounds());
    let needed = compare.min_pairs.max(pairs_needed(compare.confidence).unwrap_or(u32::MAX));
    let plural = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    (rounds < needed as usize).then(|| Doubt {
        id: DoubtId::TooFewSlots,
        target: None,
        text: format!(
            "{} in {}; a verdict takes {needed}. More time (-d) or fewer levels give more",
            plural(rounds, "round"),
            plural(blocks, "complete block")
        ),
    })
}
