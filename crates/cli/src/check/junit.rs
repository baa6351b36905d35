//! A check as test cases for CI servers.

use super::State;
use super::report::Report;
use duel_lab::CheckStanding;
use duel_model::without_secrets;
use duel_report::{JunitCase, JunitOutcome, JunitSuite};

/// A case for each threshold and target, and one for each target that it answers; where there are factors, for each of
/// its treatments. What is not known is skipped: nothing was decided.
pub(crate) fn junit(id: &str, started_unix_ms: i64, report: &Report) -> String {
    let mut cases: Vec<JunitCase> = report
        .targets
        .iter()
        .map(|target| {
            let said = format!("{} of {} requests ended well", target.figures.ok(), target.figures.due());
            JunitCase {
                subject: target.name.clone(),
                name: "answers".to_owned(),
                seconds: target.seconds,
                outcome: match &report.trouble {
                    Some(text) if !target.answers => JunitOutcome::Error("no-answer", without_secrets(text)),
                    Some(text) => JunitOutcome::Skipped(without_secrets(text)),
                    None if target.figures.due() == 0 => JunitOutcome::Skipped("nothing was measured".to_owned()),
                    None => JunitOutcome::Passed(said),
                },
            }
        })
        .collect();
    cases.extend(report.results.iter().map(|result| {
        let said = [result.figure(), result.checked.remark.clone()];
        let said = said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        let kind = if result.limit.state == State::Warning { "warning" } else { "critical" };
        let negated = matches!(result.limit.threshold, duel_model::Threshold::Slower { .. });
        JunitCase {
            subject: result.checked.target.clone(),
            name: format!("{}{} ({kind})", if negated { "not " } else { "" }, result.limit.threshold),
            seconds: 0.0,
            outcome: match result.checked.standing {
                _ if report.trouble.is_some() => JunitOutcome::Skipped("the run came to nothing".to_owned()),
                CheckStanding::Kept => JunitOutcome::Passed(said),
                CheckStanding::Broken => JunitOutcome::Failed(kind, said),
                CheckStanding::Unknown => JunitOutcome::Skipped(said),
            },
        }
    }));
    let notes = report.doubts.iter().map(|doubt| without_secrets(&doubt.text)).collect();
    JunitSuite { name: id.to_owned(), started_unix_ms, cases, notes }.xml()
}

/// The document of a check that came to no run: one case that could not be tried.
pub(crate) fn junit_of_nothing(started_unix_ms: i64, text: &str) -> String {
    let case = JunitCase {
        subject: "check".to_owned(),
        name: "could be made".to_owned(),
        seconds: 0.0,
        outcome: JunitOutcome::Error("no-run", without_secrets(text)),
    };
    JunitSuite { name: "check".to_owned(), started_unix_ms, cases: vec![case], notes: vec![] }.xml()
}
