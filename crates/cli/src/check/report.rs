//! What a check found: the state of all thresholds together, and each of them.

use super::{Limit, State};
use duel_lab::{CheckStanding, CheckSubject, Checked, TargetFigures, check};
use duel_model::{
    Doubt, Interruption, PromiseMetric, Run, RunStatus, Threshold, Verdict, format_duration_ns, format_figure,
    sanitize_line,
};

/// A run held against thresholds.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) state: State,
    /// What is wrong with the run as a whole, before any threshold.
    pub(crate) trouble: Option<String>,
    /// What has to be told of targets before any figure.
    pub(crate) headlines: Vec<String>,
    /// Each threshold with each target that it concerns.
    pub(crate) results: Vec<Result>,
    /// Names of the targets, the kinds of doubt that concern the run, and the figures of the performance data.
    pub(crate) targets: Vec<TargetReport>,
    pub(crate) doubts: Vec<Doubt>,
    /// The run, where it is kept: there the doubts are told in sentences.
    pub(crate) kept: Option<String>,
}

/// One threshold and one target.
#[derive(Debug)]
pub(crate) struct Result {
    pub(crate) limit: Limit,
    pub(crate) checked: Checked,
}

/// One target's part of the performance data, or one treatment's of it.
#[derive(Debug)]
pub(crate) struct TargetReport {
    pub(crate) name: String,
    pub(crate) figures: TargetFigures,
    pub(crate) seconds: f64,
    /// Whether it answered, to the end.
    pub(crate) answers: bool,
}

/// Holds a run against thresholds.
///
/// A target that does not answer is CRITICAL, whatever the thresholds: the guidelines keep UNKNOWN for what the plugin
/// itself could not do. A run that somebody interrupted is UNKNOWN.
pub(crate) fn of_run(run: &Run, verdict: &Verdict, limits: &[Limit], is_kept: bool) -> Report {
    let results: Vec<Result> = limits
        .iter()
        .flat_map(|limit| {
            check(run, verdict, &limit.threshold).into_iter().map(|checked| Result { limit: limit.clone(), checked })
        })
        .collect();
    let targets: Vec<TargetReport> = CheckSubject::all(run)
        .into_iter()
        .map(|subject| {
            let figures = TargetFigures::of(run, &subject);
            let own =
                run.slots.iter().filter(|slot| (slot.target, slot.treatment) == (subject.target, subject.treatment));
            let died = matches!(
                &run.status,
                RunStatus::Interrupted(Interruption::TargetDied { target: dead, .. })
                    if *dead == run.plan.targets[subject.target].name
            );
            TargetReport {
                seconds: own.map(|slot| slot.elapsed_ns as f64 / 1e9).sum(),
                answers: !died && (figures.due() == 0 || figures.ok() > 0),
                name: subject.name,
                figures,
            }
        })
        .collect();
    let trouble = trouble(run, &targets);
    let state = match &trouble {
        Some((state, _)) => *state,
        None => results.iter().map(Result::state).fold(State::Ok, State::and),
    };
    let mut doubts: Vec<Doubt> = Vec::new();
    for doubt in &verdict.doubts {
        if !doubts.contains(doubt) {
            doubts.push(doubt.clone());
        }
    }
    let headlines = verdict.headlines.iter().map(|headline| headline.text.clone()).collect();
    let kept = is_kept.then(|| run.id.clone());
    Report { state, trouble: trouble.map(|(_, text)| text), headlines, results, targets, doubts, kept }
}

fn trouble(run: &Run, targets: &[TargetReport]) -> Option<(State, String)> {
    match &run.status {
        RunStatus::Complete => {}
        RunStatus::Interrupted(Interruption::TargetDied { target, how, .. }) => {
            let text = format!("{} stopped answering: {}", sanitize_line(target), sanitize_line(how));
            return Some((State::Critical, text));
        }
        RunStatus::Interrupted(Interruption::User) => {
            return Some((State::Unknown, "the run was interrupted".to_owned()));
        }
        RunStatus::Interrupted(Interruption::Unfinished) => {
            return Some((State::Unknown, "the run was never finished".to_owned()));
        }
    }
    let silent = targets.iter().find(|target| !target.answers)?;
    let example = silent.figures.failure_example().map(|text| format!("; the first failure: {}", sanitize_line(text)));
    Some((
        State::Critical,
        format!(
            "{}: none of {} requests ended well{}",
            sanitize_line(&silent.name),
            silent.figures.due(),
            example.unwrap_or_default()
        ),
    ))
}

impl Result {
    /// The state that it makes alone.
    pub(crate) fn state(&self) -> State {
        match self.checked.standing {
            CheckStanding::Kept => State::Ok,
            CheckStanding::Broken => self.limit.state,
            CheckStanding::Unknown => State::Unknown,
        }
    }

    /// The figure in words: `p99 12.3 ms`, `1.07x slower than A`.
    pub(crate) fn figure(&self) -> String {
        let unknown = || "unknown".to_owned();
        match &self.limit.threshold {
            Threshold::Promise(promise) => {
                let shown = self.checked.figure.map_or_else(unknown, |figure| shown(promise.metric, figure));
                format!("{} {shown}", promise.metric)
            }
            Threshold::Slower { than, .. } => {
                let than = sanitize_line(than);
                match self.checked.figure {
                    Some(slowdown) if slowdown >= 1.0 => format!("{}x slower than {than}", format_figure(slowdown)),
                    Some(slowdown) => format!("{}x faster than {than}", format_figure(1.0 / slowdown)),
                    None => format!("slowdown against {than} unknown"),
                }
            }
        }
    }
}

fn shown(metric: PromiseMetric, figure: f64) -> String {
    match metric {
        PromiseMetric::Errors | PromiseMetric::Done => format!("{} %", format_figure(figure * 100.0)),
        PromiseMetric::Rate => format!("{}/s", format_figure(figure)),
        _ => format_duration_ns(figure),
    }
}
