//! Of the JSON document: the stages of a run, and the search for a rate.

use super::{Times, digits, ms};
use crate::contest::sentence;
use crate::search::{answer, promises};
use duel_model::{
    Attempt, AttemptOutcome, Call, Contest, HeadToHead, Metric, Promise, PromiseMetric, RateSearch, Run, SearchEnd,
    Stage, StageContrast, StageTally, Verdict,
};
use serde::Serialize;

/// Ops that were due in one stage of all courses, and what became of them; `due` is the sum of the five counts behind it.
#[derive(Debug, Serialize)]
pub(super) struct StageDocument {
    /// As it is typed.
    stage: Stage,
    /// Of all courses.
    duration_s: f64,
    due: u64,
    ok: u64,
    failed: u64,
    in_flight: u64,
    unstarted: u64,
    shed: u64,
    due_per_s: Option<f64>,
    /// Ops that ended well within the stage, whenever they were due, per second.
    done_per_s: Option<f64>,
    response_ms: Times,
}

impl StageDocument {
    pub(super) fn all(run: &Run, tallies: &[StageTally], courses: usize) -> Vec<Self> {
        run.plan.load.shape.stages.iter().zip(tallies).map(|(stage, tally)| Self::of(stage, tally, courses)).collect()
    }

    fn of(stage: &Stage, tally: &StageTally, courses: usize) -> Self {
        let duration_s = stage.duration_ns as f64 * courses as f64 / 1e9;
        Self {
            stage: *stage,
            duration_s,
            due: tally.due,
            ok: tally.ok,
            failed: tally.failed,
            in_flight: tally.in_flight,
            unstarted: tally.unstarted,
            shed: tally.shed,
            due_per_s: digits(tally.due as f64 / duration_s, 6),
            done_per_s: digits(tally.ended_ok as f64 / duration_s, 6),
            response_ms: Times::of(&tally.response),
        }
    }
}

/// One target against the baseline in one metric of one stage.
#[derive(Debug, Serialize)]
pub(super) struct StageRatioDocument<'a> {
    baseline: &'a str,
    target: &'a str,
    /// As it is typed, and its place from 0 on.
    stage: Option<Stage>,
    place: usize,
    metric: Metric,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Of the interval of this stage and metric alone.
    confidence: f64,
    pairs: u32,
}

impl<'a> StageRatioDocument<'a> {
    pub(super) fn of(run: &Run, contrast: &'a StageContrast) -> Self {
        Self {
            baseline: &contrast.baseline,
            target: &contrast.target,
            stage: run.plan.load.shape.stages.get(contrast.stage).copied(),
            place: contrast.stage,
            metric: contrast.metric,
            ratio: contrast.ratio.and_then(|ratio| digits(ratio, 6)),
            low: contrast.low.and_then(|low| digits(low, 6)),
            high: contrast.high.and_then(|high| digits(high, 6)),
            confidence: contrast.confidence,
            pairs: contrast.pairs,
        }
    }
}

/// One target's highest rate against the baseline's.
#[derive(Debug, Serialize)]
pub(super) struct ContestDocument<'a> {
    baseline: &'a str,
    target: &'a str,
    call: Call,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    head_to_head: Option<HeadToHead>,
    text: String,
}

impl<'a> ContestDocument<'a> {
    pub(super) fn of(run: &Run, verdict: &'a Verdict, contest: &'a Contest) -> Self {
        Self {
            baseline: &contest.baseline,
            target: &contest.target,
            call: contest.call,
            ratio: contest.ratio.and_then(|ratio| digits(ratio, 6)),
            low: contest.low.and_then(|low| digits(low, 6)),
            high: contest.high.and_then(|high| digits(high, 6)),
            head_to_head: contest.head_to_head,
            text: sentence(contest, promises(verdict), run.plan.compare.margin),
        }
    }
}

/// What came of the search for a rate on one target.
#[derive(Debug, Serialize)]
pub(super) struct SearchDocument<'a> {
    target: &'a str,
    promises: &'a [Promise],
    /// Highest rate kept below all that were not, and the lowest that was not.
    kept_per_s: Option<f64>,
    broken_per_s: Option<f64>,
    end: SearchEnd,
    text: String,
    attempts: Vec<AttemptDocument>,
}

/// One attempt at a rate, in the order in which they were made.
#[derive(Debug, Serialize)]
struct AttemptDocument {
    rate_per_s: f64,
    outcome: AttemptOutcome,
    fell_behind: bool,
    backlog_growth: Option<f64>,
    figures: Vec<FigureDocument>,
    due: u64,
    ops: u64,
    failed: u64,
    in_flight: u64,
    unstarted: u64,
    shed: u64,
    done_per_s: Option<f64>,
    elapsed_s: f64,
    response_ms: Times,
    service_ms: Times,
}

/// A promised figure: of times in ms, of shares from 0 to 1, of rates per second.
#[derive(Debug, Serialize)]
struct FigureDocument {
    promise: Promise,
    figure: Option<f64>,
    kept: bool,
}

impl<'a> SearchDocument<'a> {
    pub(super) fn of(run: &'a Run, search: &'a RateSearch) -> Self {
        Self {
            target: run.plan.targets.get(search.target).map_or("", |target| target.name.as_str()),
            promises: &search.promises,
            kept_per_s: search.kept_per_s,
            broken_per_s: search.broken_per_s,
            end: search.end,
            text: answer(search),
            attempts: search.attempts.iter().filter_map(|attempt| attempt_of(run, search, attempt)).collect(),
        }
    }
}

fn attempt_of(run: &Run, search: &RateSearch, attempt: &Attempt) -> Option<AttemptDocument> {
    let slot = run.slots.iter().find(|slot| slot.index == attempt.slot)?;
    let figure = |(place, (promise, figure)): (usize, (&Promise, &Option<f64>))| FigureDocument {
        promise: *promise,
        figure: figure.and_then(|figure| match promise.metric {
            PromiseMetric::Errors | PromiseMetric::Done | PromiseMetric::Rate => digits(figure, 6),
            _ => Some(ms(figure)),
        }),
        kept: !attempt.broken.contains(&place),
    };
    Some(AttemptDocument {
        rate_per_s: attempt.rate_per_s,
        outcome: attempt.outcome,
        fell_behind: attempt.fell_behind,
        backlog_growth: attempt.backlog_growth.and_then(|growth| digits(growth, 4)),
        figures: search.promises.iter().zip(&attempt.figures).enumerate().map(figure).collect(),
        due: slot.tally.due(),
        ops: slot.tally.ok,
        failed: slot.tally.failed_total(),
        in_flight: slot.tally.in_flight,
        unstarted: slot.tally.unstarted,
        shed: slot.tally.shed,
        done_per_s: slot.rate_per_s().and_then(|per_s| digits(per_s, 6)),
        elapsed_s: slot.elapsed_ns as f64 / 1e9,
        response_ms: Times::of(&slot.tally.response),
        service_ms: Times::of(slot.tally.told_service()),
    })
}
