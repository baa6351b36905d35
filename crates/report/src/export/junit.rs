//! The verdict as test cases in JUnit's XML.
//!
//! A target that was called slower is a failure, an unknown call is a skipped test (nothing was decided), and a target
//! that did not answer is an error, one that fails requests or does not reach the rate asked for a failure. Faster and
//! equivalent pass.

use crate::junit::{JunitCase, JunitOutcome, JunitSuite};
use crate::sentence::{pair_sentence, told_first};
use crate::totals::{all_doubts, op_noun, totals};
use duel_model::{Call, Doubt, HeadlineKind, Interruption, Run, RunStatus, Verdict};

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

fn kind_of(headline: HeadlineKind) -> &'static str {
    match headline {
        HeadlineKind::TargetDied => "no-answer",
        HeadlineKind::ContentWrong => "wrong-content",
        HeadlineKind::RateNotReached => "rate-not-reached",
        _ => "failing",
    }
}

fn cases(run: &Run, verdict: &Verdict) -> Vec<JunitCase> {
    let noun = op_noun(run);
    let doubts: Vec<Doubt> = all_doubts(run, verdict).into_iter().cloned().collect();
    let totals = totals(run);
    let mut cases = Vec::new();
    for (target, plan) in totals.iter().zip(&run.plan.targets) {
        let died = match &run.status {
            RunStatus::Interrupted(Interruption::TargetDied { target, .. }) if *target == plan.name => {
                verdict.headline(&plan.name).map(|headline| crate::text::clean(&headline.text))
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
                None => match verdict.headline(&plan.name) {
                    Some(headline) => JunitOutcome::Failed(kind_of(headline.kind), crate::text::clean(&headline.text)),
                    None => JunitOutcome::Passed(said),
                },
            },
        });
    }
    for pair in &verdict.pairs {
        let sentence = pair_sentence(verdict, pair, run.plan.compare.margin, &doubts);
        cases.push(JunitCase {
            subject: crate::text::clean(&pair.target),
            name: format!("{} is not slower than that of {}", pair.metric.name(), crate::text::clean(&pair.baseline)),
            seconds: 0.0,
            outcome: match pair.call {
                Call::Slower => JunitOutcome::Failed("slower", sentence),
                // A call among the requests that succeed is no pass.
                _ if told_first(verdict, pair).is_some() => JunitOutcome::Skipped(sentence),
                Call::Faster | Call::Equivalent => JunitOutcome::Passed(sentence),
                Call::Unknown => JunitOutcome::Skipped(sentence),
            },
        });
    }
    cases
}
