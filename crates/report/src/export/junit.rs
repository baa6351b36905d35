//! The verdict as test cases in JUnit's XML.
//!
//! A target that was called slower is a failure, an unknown call is a skipped test (nothing was decided), and a target
//! that did not answer is an error. Faster and equivalent pass.

use crate::junit::{JunitCase, JunitOutcome, JunitSuite};
use crate::sentence::{is_lower_bound, verdict_sentence};
use crate::settings::ended_early;
use crate::totals::{all_doubts, op_noun, totals};
use duel_model::{Call, Doubt, Interruption, Run, RunStatus, Verdict};

/// One suite: for each target a case that it answered, and one for each metric that it was compared by.
pub(super) fn junit(run: &Run, verdict: &Verdict) -> String {
    JunitSuite {
        name: run.id.clone(),
        started_unix_ms: run.started_unix_ms,
        cases: cases(run, verdict),
        notes: all_doubts(run, verdict).iter().map(|doubt| doubt.text.clone()).collect(),
    }
    .xml()
}

fn cases(run: &Run, verdict: &Verdict) -> Vec<JunitCase> {
    let noun = op_noun(run);
    let doubts: Vec<Doubt> = all_doubts(run, verdict).into_iter().cloned().collect();
    let totals = totals(run);
    let mut cases = Vec::new();
    for (target, plan) in totals.iter().zip(&run.plan.targets) {
        let died = match &run.status {
            RunStatus::Interrupted(Interruption::TargetDied { target, .. }) if *target == plan.name => {
                ended_early(&run.status)
            }
            _ => None,
        };
        let (ok, failed) = (target.tally.ok, target.tally.failed_total());
        let said = format!("{ok} {noun}s ok, {failed} failed");
        cases.push(JunitCase {
            subject: target.name.clone(),
            name: "answers".to_owned(),
            seconds: target.elapsed_ns as f64 / 1e9,
            outcome: match died {
                Some(text) => JunitOutcome::Error("no-answer", text),
                None if target.slots.is_empty() => JunitOutcome::Skipped("nothing was measured".to_owned()),
                None if ok == 0 => JunitOutcome::Error("no-answer", said),
                None => JunitOutcome::Passed(said),
            },
        });
    }
    for pair in &verdict.pairs {
        let sentence = verdict_sentence(pair, run.plan.compare.margin, is_lower_bound(pair, &doubts));
        cases.push(JunitCase {
            subject: crate::text::clean(&pair.target),
            name: format!("{} is not slower than that of {}", pair.metric.name(), crate::text::clean(&pair.baseline)),
            seconds: 0.0,
            outcome: match pair.call {
                Call::Slower => JunitOutcome::Failed("slower", sentence),
                Call::Faster | Call::Equivalent => JunitOutcome::Passed(sentence),
                Call::Unknown => JunitOutcome::Skipped(sentence),
            },
        });
    }
    cases
}
