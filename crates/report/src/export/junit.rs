//! The verdict as test cases in JUnit's XML, which CI servers show.
//!
//! A target that was called slower is a failure, an unknown call is a skipped test (nothing was decided), and a target
//! that did not answer is an error. Faster and equivalent pass.

use crate::markup::escape;
use crate::sentence::{is_lower_bound, verdict_sentence};
use crate::settings::ended_early;
use crate::text::clean_whole;
use crate::totals::{all_doubts, op_noun, totals};
use duel_model::{Call, Doubt, Interruption, Run, RunStatus, Verdict};
use std::fmt::Write;

struct Case {
    target: String,
    name: String,
    seconds: f64,
    outcome: Outcome,
}

enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
    Error(String),
}

/// One suite: for each target a case that it answered, and one for each metric that it was compared by.
pub(super) fn junit(run: &Run, verdict: &Verdict) -> String {
    let cases = cases(run, verdict);
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Error(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        cases.iter().map(|case| case.seconds).sum::<f64>(),
    );
    let started = crate::utc(run.started_unix_ms).replace(' ', "T");
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites name=\"duel\" {counts}>");
    let _ = writeln!(xml, "  <testsuite name=\"{}\" timestamp=\"{started}:00Z\" {counts}>", escape(&run.id));
    for case in &cases {
        let _ = write!(
            xml,
            "    <testcase classname=\"duel.{}\" name=\"{}\" time=\"{:.3}\">",
            escape(&case.target),
            escape(&case.name),
            case.seconds
        );
        let _ = match &case.outcome {
            Outcome::Passed(text) => write!(xml, "<system-out>{}</system-out>", escape(text)),
            Outcome::Failed(text) => write!(xml, "<failure type=\"slower\" message=\"{}\"/>", escape(text)),
            Outcome::Skipped(text) => write!(xml, "<skipped message=\"{}\"/>", escape(text)),
            Outcome::Error(text) => write!(xml, "<error type=\"no-answer\" message=\"{}\"/>", escape(text)),
        };
        xml.push_str("</testcase>\n");
    }
    let doubts = all_doubts(run, verdict);
    if !doubts.is_empty() {
        let lines: Vec<String> =
            doubts.iter().map(|doubt| format!("! {}", escape(&clean_whole(&doubt.text)))).collect();
        let _ = writeln!(xml, "    <system-out>{}</system-out>", lines.join("\n"));
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn cases(run: &Run, verdict: &Verdict) -> Vec<Case> {
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
        cases.push(Case {
            target: target.name.clone(),
            name: "answers".to_owned(),
            seconds: target.elapsed_ns as f64 / 1e9,
            outcome: match died {
                Some(text) => Outcome::Error(text),
                None if target.slots.is_empty() => Outcome::Skipped("nothing was measured".to_owned()),
                None if ok == 0 => Outcome::Error(said),
                None => Outcome::Passed(said),
            },
        });
    }
    for pair in &verdict.pairs {
        let sentence = verdict_sentence(pair, run.plan.compare.margin, is_lower_bound(pair, &doubts));
        cases.push(Case {
            target: crate::text::clean(&pair.target),
            name: format!("{} is not slower than that of {}", pair.metric.name(), crate::text::clean(&pair.baseline)),
            seconds: 0.0,
            outcome: match pair.call {
                Call::Slower => Outcome::Failed(sentence),
                Call::Faster | Call::Equivalent => Outcome::Passed(sentence),
                Call::Unknown => Outcome::Skipped(sentence),
            },
        });
    }
    cases
}
