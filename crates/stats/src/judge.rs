//! The verdict on a run: on its slots, by what the run was, and on how it ended.

use crate::contest::contests;
use crate::experiment::judge_experiment;
use crate::headline::headlines;
use crate::search::rate_searches;
use crate::side::{Bias, is_measured};
use crate::slots::{judge_pairs, tempered};
use crate::{acks, budget, doubts, search, wakes};
use duel_model::{Doubt, DoubtId, Interruption, PairVerdict, Run, RunStatus, Verdict};

/// Judges a run: its slots of role `Measured`, every target against the first of the plan.
///
/// As [`crate::judge_slots`], with factors by treatments and levels, with stages also stage by stage, and where a rate was looked
/// for by what the searches found. Besides: how the run ended, and the doubts that arose while it ran ([`Run::doubts`]), join
/// the doubts. A target that died is never called faster or equivalent, nor is another one called slower than it.
pub fn judge(run: &Run) -> Verdict {
    let measured = run.slots.iter().filter(|slot| is_measured(slot));
    let mut verdict = if run.plan.load.shape.search.is_some() {
        judge_searches(run)
    } else if run.plan.factors.is_empty() {
        judge_pairs(measured, &run.plan, budget::would_do(run), None)
    } else {
        judge_experiment(measured, &run.plan)
    };
    match &run.status {
        RunStatus::Complete => {}
        RunStatus::Interrupted(Interruption::User) => {
            verdict.doubts.push(interrupted("the run was interrupted; what was measured until then is judged"));
        }
        RunStatus::Interrupted(Interruption::Unfinished) => {
            verdict.doubts.push(interrupted("the run was never finished; what was kept of it is judged"));
        }
        RunStatus::Interrupted(Interruption::TargetDied { target, at_ns, how }) => {
            verdict.doubts.push(Doubt {
                id: DoubtId::TargetDied,
                target: Some(target.clone()),
                text: format!("{target} stopped answering {:.1} s into the run: {how}", *at_ns as f64 / 1e9),
            });
            let bias_of = |name: &str| Bias { flattered: name == target, hampered: false };
            for pair in all_pairs(&mut verdict) {
                pair.call = tempered(pair.call, bias_of(&pair.target), bias_of(&pair.baseline));
            }
            for contest in &mut verdict.contests {
                contest.call = tempered(contest.call, bias_of(&contest.target), bias_of(&contest.baseline));
            }
        }
    }
    verdict.doubts.extend(wakes::doubts(run));
    verdict.doubts.extend(acks::doubts(run));
    verdict.doubts.extend(run.doubts.iter().cloned());
    verdict.headlines = headlines(run, &verdict.doubts);
    verdict
}

/// What the searches for a rate found. Their slots are in no pairs: each was made at a rate of its own.
fn judge_searches(run: &Run) -> Verdict {
    let searches = rate_searches(run);
    let mut found = doubts::Found::default();
    let contests = contests(run, &searches, &mut found);
    let mut doubts = found.into_doubts();
    doubts.extend(searches.iter().flat_map(|search| search::doubts(search, run)));
    Verdict { doubts, searches, contests, ..Verdict::default() }
}

/// The pairs of a verdict, those of its levels and treatments included.
fn all_pairs(verdict: &mut Verdict) -> impl Iterator<Item = &mut PairVerdict> {
    let of_experiment = verdict.experiment.iter_mut().flat_map(|experiment| {
        let levels = experiment.factors.iter_mut().flat_map(|factor| &mut factor.levels);
        levels.chain(&mut experiment.treatments).flat_map(|level| &mut level.pairs)
    });
    verdict.pairs.iter_mut().chain(of_experiment)
}

fn interrupted(text: &str) -> Doubt {
    Doubt { id: DoubtId::Interrupted, target: None, text: text.to_owned() }
}
