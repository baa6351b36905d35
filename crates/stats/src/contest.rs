//! Highest rates against each other: what the brackets of two searches leave open, and what both targets did at one rate.
//!
//! A bracket is no confidence interval: its ends are rates that were tried, and each answer is right as far as its votes
//! are. Close to saturation a target that is tried again may answer otherwise, so brackets of equal targets can lie apart.
//! They say where to look, and a call rests on what is seen there: both are offered one rate between the brackets in turn,
//! and the sign test asks whether it is always the same one that keeps it.

use crate::contrast::log_margin;
use crate::doubts::Found;
use crate::search::{attempt, rate_searches};
use crate::side::{Bias, MISSING, Side};
use crate::slots::tempered;
use duel_model::{AttemptOutcome, Call, Contest, HeadToHead, Plan, RateSearch, Run, Slot, SlotRole};
use std::collections::BTreeMap;

const PAIRS_NEEDED: u32 = HeadToHead::PAIRS_NEEDED;
/// Most pairs: every third may be alike, because one of its attempts met a hiccup.
const MOST_PAIRS: u32 = 12;

/// The rate to offer the baseline and the target at this place in turn; `None` where nothing is left to be asked: their
/// brackets do not lie apart by more than the margin, or what was seen so far decides it.
pub fn next_head_to_head(run: &Run, target: usize) -> Option<f64> {
    let searches = rate_searches(run);
    let (ratio, rate_per_s) = apart(searches.first()?, searches.get(target)?, &run.plan)?;
    let seen = head_to_head(run, target, rate_per_s);
    let (for_it, against) = votes(&seen, ratio);
    (against == 0 && for_it < PAIRS_NEEDED && seen.pairs() < MOST_PAIRS).then_some(rate_per_s)
}

/// Each target after the first against the first.
pub(crate) fn contests(run: &Run, searches: &[RateSearch], found: &mut Found) -> Vec<Contest> {
    let Some((baseline, others)) = searches.split_first() else { return Vec::new() };
    others.iter().map(|target| contest(run, baseline, target, found)).collect()
}

fn contest(run: &Run, baseline: &RateSearch, target: &RateSearch, found: &mut Found) -> Contest {
    let plan = &run.plan;
    let (of_baseline, of_target) = (Bracket::of(baseline), Bracket::of(target));
    let apart = apart(baseline, target, plan);
    let seen = apart.map(|(_, rate_per_s)| head_to_head(run, target.target, rate_per_s)).filter(|it| it.pairs() > 0);
    let call = match (apart, &seen) {
        (Some((ratio, _)), Some(seen)) => match votes(seen, ratio) {
            (PAIRS_NEEDED.., 0) if ratio < 1.0 => Call::Slower,
            (PAIRS_NEEDED.., 0) => Call::Faster,
            _ => Call::Unknown,
        },
        _ => Call::Unknown,
    };
    // What was kept is what is compared; of what was broken, errors and refusals are to be expected.
    let kept: Vec<&Slot> = run
        .slots
        .iter()
        .filter(|slot| attempt(slot, plan).is_some_and(|attempt| attempt.outcome == AttemptOutcome::Kept))
        .collect();
    let sides = [baseline, target].map(|it| Side::new(&kept, it.target, &plan.targets[it.target], plan));
    found.of_pair(&sides[0], &sides[1]);
    let fails_more = |side: &Side<'_>, other: &Side<'_>| {
        side.failed_share().unwrap_or(0.0) > other.failed_share().unwrap_or(0.0) + MISSING
    };
    // That the generator held a side back is in the outcomes of its attempts.
    let bias = |side, other| Bias { flattered: fails_more(side, other), hampered: false };
    let divided = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    Contest {
        baseline: plan.targets[baseline.target].name.clone(),
        target: plan.targets[target.target].name.clone(),
        call: tempered(call, bias(&sides[1], &sides[0]), bias(&sides[0], &sides[1])),
        ratio: divided(of_target.middle(), of_baseline.middle()),
        low: divided(of_target.least, of_baseline.most),
        high: divided(of_target.most, of_baseline.least),
        head_to_head: seen,
    }
}

/// Between which rates the highest one lies that a target keeps.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    least: Option<f64>,
    most: Option<f64>,
}

impl Bracket {
    fn of(search: &RateSearch) -> Self {
        Self { least: search.kept_per_s, most: search.broken_per_s.and_then(|per_s| broken_by_target(search, per_s)) }
    }

    /// In ratios both ends are equally far from it.
    fn middle(&self) -> Option<f64> {
        Some((self.least? * self.most?).sqrt())
    }
}

/// The lowest rate from `broken_per_s` on that the target itself did not keep: where the generator was at fault, votes that
/// count against the target only as long as nobody is accused tell nothing about what it can do.
fn broken_by_target(search: &RateSearch, broken_per_s: f64) -> Option<f64> {
    let votes = |per_s: f64, outcome: AttemptOutcome| {
        let at_rate = search.attempts.iter().filter(|attempt| attempt.rate_per_s == per_s);
        at_rate.filter(|attempt| attempt.outcome == outcome).count()
    };
    let is_its_own = |per_s: &f64| {
        votes(*per_s, AttemptOutcome::Broken) >= 2
            || (*per_s == broken_per_s && votes(*per_s, AttemptOutcome::Generator) == 0)
    };
    let rates = search.attempts.iter().map(|attempt| attempt.rate_per_s).filter(|per_s| *per_s >= broken_per_s);
    rates.filter(is_its_own).reduce(f64::min)
}

/// By which ratio the brackets lie apart, and the rate in the middle of what lies between them; `None` where they overlap,
/// or where the difference, were it certain, would be within the margin.
fn apart(baseline: &RateSearch, target: &RateSearch, plan: &Plan) -> Option<(f64, f64)> {
    let (of_baseline, of_target) = (Bracket::of(baseline), Bracket::of(target));
    let ((low, high), sign) = match (of_baseline, of_target) {
        (Bracket { least: Some(kept), .. }, Bracket { most: Some(broken), .. }) if broken <= kept => {
            ((broken, kept), -1.0)
        }
        (Bracket { most: Some(broken), .. }, Bracket { least: Some(kept), .. }) if broken <= kept => {
            ((broken, kept), 1.0)
        }
        _ => return None,
    };
    // Where an end is not known, the brackets differ by at least what lies between them.
    let at_least = (high / low).powf(sign);
    let ratio = of_target.middle().zip(of_baseline.middle()).map_or(at_least, |(target, baseline)| target / baseline);
    (ratio.ln().abs() > log_margin(&plan.compare)).then(|| (ratio, (low * high).sqrt()))
}

/// What both targets did at this rate, in pairs of attempts of one block.
fn head_to_head(run: &Run, target: usize, rate_per_s: f64) -> HeadToHead {
    let mut blocks: BTreeMap<u32, [Option<AttemptOutcome>; 2]> = BTreeMap::new();
    for slot in run.slots.iter().filter(|slot| slot.role == SlotRole::HeadToHead) {
        if let (Some(attempt), true) = (attempt(slot, &run.plan), slot.target == 0 || slot.target == target) {
            blocks.entry(slot.block).or_default()[usize::from(slot.target == target)] = Some(attempt.outcome);
        }
    }
    let mut seen = HeadToHead { rate_per_s, baseline_alone: 0, target_alone: 0, alike: 0 };
    for pair in blocks.into_values() {
        match pair {
            [Some(AttemptOutcome::Kept), Some(AttemptOutcome::Broken)] => seen.baseline_alone += 1,
            [Some(AttemptOutcome::Broken), Some(AttemptOutcome::Kept)] => seen.target_alone += 1,
            [Some(_), Some(_)] => seen.alike += 1,
            // The run ended between its two attempts; or it is a pair of others.
            _ => {}
        }
    }
    seen
}

/// Pairs for what the brackets say, and against it.
fn votes(seen: &HeadToHead, ratio: f64) -> (u32, u32) {
    if ratio < 1.0 { (seen.baseline_alone, seen.target_alone) } else { (seen.target_alone, seen.baseline_alone) }
}
