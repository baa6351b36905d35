//! Of the JSON document: the stages of a run, and the search for a rate.

use super::{Times, digits, ms};
use crate::search::answer;
use duel_model::{Attempt, AttemptOutcome, Promise, PromiseMetric, RateSearch, Run, SearchEnd, Stage, StageTally};
use serde::Serialize;

/// Ops that were due in one stage, and what became of them; `due` is the sum of the five counts behind it.
#[derive(Debug, Serialize)]
pub(super) struct StageDocument {
    /// As it is typed.
    stage: Stage,
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
    pub(super) fn all(run: &Run, tallies: &[StageTally]) -> Vec<Self> {
        run.plan.load.shape.stages.iter().zip(tallies).map(|(stage, tally)| Self::of(stage, tally)).collect()
    }

    fn of(stage: &Stage, tally: &StageTally) -> Self {
        let duration_s = stage.duration_ns as f64 / 1e9;
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

/// What came of the search for a rate.
#[derive(Debug, Serialize)]
pub(super) struct SearchDocument<'a> {
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
    pub(super) fn of(run: &Run, search: &'a RateSearch) -> Self {
        Self {
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
        service_ms: Times::of(&slot.tally.service),
    })
}
