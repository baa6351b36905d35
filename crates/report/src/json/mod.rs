//! The JSON document, schema `duel/1`.

mod cache;
mod experiment;
mod hosts;
mod shape;

use crate::line::LineUse;
use crate::phases::QUEUE;
use crate::summary::{Amount, counted_per_byte, counted_per_op};
use crate::totals::{Totals, all_doubts, totals};
use cache::CacheDocument;
use duel_model::{
    Call, Confidence, Counter, Distribution, Doubt, DoubtId, Evidence, Explanation, Facts, Finding, Headline,
    HeadlineKind, HostRecord, Id, Interruption, Leads, Metric, NotMade, PairVerdict, Plan, ProbeOutcome, Run,
    RunStatus, TargetObservation, Variation, Verdict, Versions, Waiting, without_secrets,
};
use experiment::ExperimentDocument;
use hosts::{HostDocument, WorkDocument};
use serde::Serialize;
use shape::{ContestDocument, SearchDocument, StageDocument, StageRatioDocument};
use std::collections::BTreeMap;

/// Name of the schema: its fields are never renamed or given another meaning.
const SCHEMA: &str = "duel/1";

/// A run with its verdict and explanation as one document; serialises in a stable order of fields.
///
/// What is not known is `null`, never 0. A phase that no op went through and a kind of failure that did not occur are
/// absent. Only measured slots are counted.
///
/// `hosts` holds the machines that were read, in the order of the targets: `facts` by their name (`value` as text, `unit`
/// where the name ends in one, or `unavailable` and why); what each did over the measured slots (`comparison`): its
/// `counters` as rates (`per_s`) and for each request of its target (`per_op`, the service demand), or `unknown` and why,
/// such as `restarted`, and the means of its `gauges`; the last lines of its kernel's log (`last_words`); whether it was
/// `lost`. A probe's `hosts` are the same figures over its slots, one entry for each target, `null` where its machine was
/// not read. Samples, single CPUs, threads and processes, and older lines of the log are in the archive.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    run: &'a str,
    seed: u64,
    workload: &'static str,
    targets: Vec<TargetDocument<'a>>,
    /// What has to be told of a target before any figure, the worst first: `target-died`, `failing` (`share` of its requests) or
    /// `rate-not-reached` (`share` of the rate asked for). Empty where each target did what was asked of it.
    headlines: &'a [Headline],
    pairs: Vec<PairDocument<'a>>,
    /// Over how many starts of the targets that were started anew; `null` where none was, so that `pairs` are about processes.
    starts: Option<u32>,
    /// Only of a run with factors; `pairs` are then over all treatments.
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<ExperimentDocument<'a>>,
    /// What targets are expected to do with caches of other sizes; only where that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cache_models: Vec<CacheDocument<'a>>,
    doubts: Vec<DoubtDocument<'a>>,
    /// Whether diagnosis was asked; without it, empty findings mean nothing.
    explained: bool,
    findings: Vec<FindingDocument<'a>>,
    ruled_out: &'a [String],
    probes: Vec<ProbeDocument<'a>>,
    hosts: Vec<HostDocument<'a>>,
    /// The search for the highest rate that keeps a promise on a single target; `null` where none was made. Its attempts are
    /// in no other figures of this document.
    search: Option<SearchDocument<'a>>,
    /// The same on every target, in their order.
    searches: Vec<SearchDocument<'a>>,
    /// The highest rate of each target against that of the first. `low` and `high` are what the brackets of both leave open,
    /// no interval of any confidence; `call` rests on `head_to_head`.
    contests: Vec<ContestDocument<'a>>,
    /// Every target against the first in each stage; empty where there are none.
    stage_ratios: Vec<StageRatioDocument<'a>>,
    status: &'static str,
    interruption: Option<&'a Interruption>,
    started_unix_ms: i64,
    started_utc: String,
    margin: f64,
    versions: &'a Versions,
    /// How the generator waited for answers, and why; `null` where that was not kept.
    waiting: Option<&'a Waiting>,
    plan: Plan,
}

/// The document of a run. `explanation` is what diagnosis found, where it was asked.
pub fn json<'a>(run: &'a Run, verdict: &'a Verdict, explanation: Option<&'a Explanation>) -> Document<'a> {
    let (status, interruption) = json_status(&run.status);
    Document {
        schema: SCHEMA,
        run: &run.id,
        seed: run.plan.compare.seed,
        workload: run.plan.schema().kind,
        targets: totals(run)
            .into_iter()
            .zip(&run.plan.targets)
            .map(|(totals, target)| TargetDocument::of(run, &target.name, &target.address, totals))
            .collect(),
        headlines: &verdict.headlines,
        pairs: verdict
            .pairs
            .iter()
            .map(|pair| PairDocument { headline: crate::told_first(verdict, pair), ..PairDocument::of(pair) })
            .collect(),
        starts: verdict.starts,
        experiment: verdict.experiment.as_ref().map(ExperimentDocument::of),
        cache_models: verdict.caches.iter().map(CacheDocument::of).collect(),
        doubts: all_doubts(run, verdict).into_iter().map(DoubtDocument::of).collect(),
        explained: explanation.is_some(),
        findings: explanation.map(|e| e.findings.iter().map(FindingDocument::of).collect()).unwrap_or_default(),
        ruled_out: explanation.map(|e| e.ruled_out.as_slice()).unwrap_or_default(),
        probes: explanation.map(|e| e.probes.iter().map(ProbeDocument::of).collect()).unwrap_or_default(),
        hosts: hosts::documents(run),
        search: match verdict.searches.as_slice() {
            [only] => Some(SearchDocument::of(run, only)),
            _ => None,
        },
        searches: verdict.searches.iter().map(|search| SearchDocument::of(run, search)).collect(),
        contests: verdict.contests.iter().map(|contest| ContestDocument::of(run, verdict, contest)).collect(),
        stage_ratios: verdict.stages.iter().map(|contrast| StageRatioDocument::of(run, contrast)).collect(),
        status,
        interruption,
        started_unix_ms: run.started_unix_ms,
        started_utc: crate::utc(run.started_unix_ms),
        margin: run.plan.compare.margin,
        versions: &run.versions,
        waiting: run.waiting.as_ref(),
        plan: run.plan.shown(),
    }
}

/// The fields `status` and `interruption` of a run.
pub fn json_status(status: &RunStatus) -> (&'static str, Option<&Interruption>) {
    match status {
        RunStatus::Complete => ("complete", None),
        RunStatus::Interrupted(how) => ("interrupted", Some(how)),
    }
}

/// The document of a run as text: [`json`] by way of [`safe_json`].
pub fn json_text(run: &Run, verdict: &Verdict, explanation: Option<&Explanation>) -> String {
    safe_json(&json(run, verdict, explanation))
}

/// The document where no run came about: why, and nothing else.
pub fn json_failure(error: &str) -> String {
    #[derive(Serialize)]
    struct Failure<'a> {
        schema: &'static str,
        status: &'static str,
        error: &'a str,
    }
    safe_json(&Failure { schema: SCHEMA, status: "failed", error: &without_secrets(error) })
}

/// The document of machines that were looked at: `facts` of each by their name, as in the document of a run, `doubts` of
/// them, and where one could not be read `error` and no facts.
pub fn json_facts(hosts: &[(String, Result<HostRecord, String>)]) -> String {
    safe_json(&hosts::looked_at(SCHEMA, hosts))
}

/// A value as JSON that a terminal may show, ended by a newline.
///
/// JSON escapes only the lower control characters. Here every other one that could steer a terminal or turn the
/// direction of text is written as `\uXXXX`, too, which leaves names as they are for whoever parses the document.
pub fn safe_json<T: Serialize>(value: &T) -> String {
    // Serialising to memory fails only for maps whose keys are no text; none of ours has such.
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| "null".to_owned());
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Outside of strings the text is ASCII, and its only control character is the newline.
        if c == '\n' || (c.is_ascii() && !c.is_ascii_control()) || is_harmless(c) {
            safe.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe.push('\n');
    safe
}

fn is_harmless(c: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    crate::text::clean_whole(text) == text
}

#[derive(Debug, Serialize)]
struct TargetDocument<'a> {
    name: &'a str,
    address: &'a str,
    /// Ops that ended well; `started` is these, the failed ones and those in flight.
    ops: u64,
    failed: BTreeMap<Id, u64>,
    rate_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    response_ms: Times,
    service_ms: Times,
    phases_ms: Phases,
    #[serde(serialize_with = "duel_model::web::serialize_shown")]
    negotiated: Option<Facts>,
    /// `ops`, the failed ones and those in flight.
    started: u64,
    in_flight: u64,
    /// Failed ops as a share of those started.
    failed_share: Option<f64>,
    /// Ops that were due and never started.
    unstarted: u64,
    /// Ops that were due and not sent, because their deadline had passed.
    shed: u64,
    /// The same by stages, where there are any.
    stages: Vec<StageDocument>,
    statuses: BTreeMap<u16, u64>,
    failure_examples: Vec<String>,
    slots: usize,
    /// Slots that are in no figure, because the generator stood still in them.
    slots_left_out: usize,
    elapsed_s: f64,
    connections: u64,
    reused: u64,
    /// How often requests were sent again within their ops.
    resent: u64,
    /// How often more came on a connection than the response that it carried.
    surplus: u64,
    resumed: u64,
    bytes_in: u64,
    bytes_out: u64,
    body_bytes: u64,
    /// The same after decompression, where that was asked for.
    inflated_bytes: Option<u64>,
    /// What the kind of work counts beside, by the names of its counters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counters: BTreeMap<Id, u64>,
    /// The same for each ok op, where the counter is a time or the target itself counts it, and for each byte read or processed, where
    /// it is a time of ours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counters_per_op: BTreeMap<Id, f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counters_per_byte: BTreeMap<Id, f64>,
    /// How much of the line was used, where its rate is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<LineUse>,
    audit: AuditDocument,
}

impl<'a> TargetDocument<'a> {
    fn of(run: &Run, name: &'a str, address: &'a str, totals: Totals<'_>) -> Self {
        let (rate_per_s, bytes_per_s) = (totals.rate_per_s(), totals.bytes_per_s());
        let phases = totals.schema.phases.iter().filter_map(|&phase| {
            let times = totals.tally.phases.get(&phase.id()).filter(|times| !times.is_empty())?;
            let per_op_mean = totals.phase_per_op_ns(phase).map(ms);
            Some((phase.name, PhaseTimes { times: Times::of(times), ops: times.count(), per_op_mean }))
        });
        // Of all ops that were started, whether or not it is long enough for a row of the text.
        let queue = Some(&totals.tally.queue).filter(|times| !times.is_empty()).map(|times| {
            let spent =
                PhaseTimes { times: Times::of(times), ops: times.count(), per_op_mean: times.mean_ns().map(ms) };
            (QUEUE, spent)
        });
        let phases_ms = Phases(queue.into_iter().chain(phases).collect());
        let audit = AuditDocument {
            worker_cpu: totals.worker_cpu.iter().map(|share| share.and_then(|s| digits(s, 4))).collect(),
            schedule_lag_ms: Times::of(&totals.schedule_lag),
            loop_lag_ms: Times::of(&totals.loop_lag),
            worker_polling: totals.worker_polling.iter().map(|share| share.and_then(|s| digits(s, 4))).collect(),
            waited_for_cpu: totals.most_waited.and_then(|share| digits(share, 4)),
            sleeps_per_op: totals.sleeps_per_op().and_then(|sleeps| digits(sleeps, 4)),
            noticed_late_ms: Times::of(&totals.notice_lag),
            stood_still: StandstillDocument {
                count: totals.standstill.count,
                total_ms: ms(totals.standstill.total_ns as f64),
                longest_ms: ms(totals.standstill.longest_ns as f64),
            },
        };
        let line = LineUse::of(&totals);
        let tally = totals.tally;
        let amounts = |of: Amount, tells: fn(&Counter) -> bool| -> BTreeMap<Id, f64> {
            let told = totals.schema.counters.iter().filter(|counter| tells(counter));
            told.filter_map(|counter| Some((counter.id(), digits(of(&tally, counter.id())?, 6)?))).collect()
        };
        let counters_per_op = amounts(counted_per_op, |counter| counter.is_time() || counter.is_of_server());
        let counters_per_byte = amounts(counted_per_byte, |counter| counter.is_time() && !counter.is_of_server());
        let failed_total = tally.failed_total();
        let service_ms = Times::of(tally.told_service());
        Self {
            name,
            address,
            ops: tally.ok,
            failed: tally.failed,
            rate_per_s: rate_per_s.and_then(|v| digits(v, 6)),
            bytes_per_s: bytes_per_s.and_then(|v| digits(v, 6)),
            response_ms: Times::of(&tally.response),
            service_ms,
            phases_ms,
            negotiated: totals.negotiated,
            started: tally.started,
            in_flight: tally.in_flight,
            failed_share: (tally.started > 0)
                .then(|| failed_total as f64 / tally.started as f64)
                .and_then(|share| digits(share, 6)),
            unstarted: tally.unstarted,
            shed: tally.shed,
            stages: StageDocument::all(run, &tally.stages, totals.slots.len()),
            statuses: tally.statuses,
            failure_examples: tally.failure_examples,
            slots: totals.slots.len(),
            slots_left_out: totals.left_out,
            elapsed_s: totals.elapsed_ns as f64 / 1e9,
            connections: tally.connections,
            reused: tally.reused,
            resent: tally.resent,
            surplus: tally.surplus,
            resumed: tally.resumed,
            bytes_in: tally.bytes_in,
            bytes_out: tally.bytes_out,
            body_bytes: tally.body_bytes,
            inflated_bytes: tally.inflated_bytes,
            counters: tally.counted,
            counters_per_op,
            counters_per_byte,
            line,
            audit,
        }
    }
}

#[derive(Debug, Serialize)]
struct Times {
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p99_9: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
}

impl Times {
    fn of(times: &Distribution) -> Self {
        let quantile = |q| times.quantile_ns(q).map(|ns| ms(ns as f64));
        Self {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max: times.max_ns().map(|ns| ms(ns as f64)),
            mean: times.mean_ns().map(ms),
        }
    }
}

/// Phases by name, in the order in which an op goes through them.
#[derive(Debug)]
struct Phases(Vec<(&'static str, PhaseTimes)>);

impl Serialize for Phases {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, times)| (name, times)))
    }
}

/// Times of the ops that went through a phase.
#[derive(Debug, Serialize)]
struct PhaseTimes {
    #[serde(flatten)]
    times: Times,
    /// How many ops went through it.
    ops: u64,
    /// Mean over all ops that ended well or were given up: those that skipped the phase spent none in it.
    per_op_mean: Option<f64>,
}

#[derive(Debug, Serialize)]
struct AuditDocument {
    /// Share of its CPU that each worker used for work.
    worker_cpu: Vec<Option<f64>>,
    schedule_lag_ms: Times,
    loop_lag_ms: Times,
    /// Share of the time that each worker stayed awake with nothing to do.
    worker_polling: Vec<Option<f64>>,
    /// Share of the time for which the worker that waited most wanted a CPU and others had it; `null` where that is not known.
    waited_for_cpu: Option<f64>,
    /// How often a worker slept because it waited, for each op; `null` where that is not known.
    sleeps_per_op: Option<f64>,
    /// How much later than they had arrived ends of ops were noticed; response times end at the arrival. All `null` where the
    /// system does not tell: then they end when they were noticed.
    noticed_late_ms: Times,
    /// How often the generator stood still in the slots that are shown, and for how long.
    stood_still: StandstillDocument,
}

#[derive(Debug, Serialize)]
struct StandstillDocument {
    count: u64,
    total_ms: f64,
    longest_ms: f64,
}

#[derive(Debug, Serialize)]
struct PairDocument<'a> {
    baseline: &'a str,
    target: &'a str,
    metric: Metric,
    call: Call,
    /// What has to be told before `call` of one of the two targets (see `headlines`); absent where that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<HeadlineKind>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    slots: u32,
    /// Of the interval from `low` to `high`.
    confidence: f64,
    /// Of the interval that `call` rests on; `null` where it is unknown.
    call_confidence: Option<f64>,
}

impl<'a> PairDocument<'a> {
    fn of(pair: &'a PairVerdict) -> Self {
        Self::among(pair, 1)
    }

    /// One of so many pairs whose calls err together no more often than a single one does (Bonferroni).
    fn among(pair: &'a PairVerdict, pairs: usize) -> Self {
        let surer = |confidence: f64| 1.0 - (1.0 - confidence) / pairs.max(1) as f64;
        let figure = |value: Option<f64>| value.and_then(|v| digits(v, 6));
        Self {
            baseline: &pair.baseline,
            target: &pair.target,
            metric: pair.metric,
            call: pair.call,
            headline: None,
            ratio: figure(pair.ratio),
            low: figure(pair.low),
            high: figure(pair.high),
            slots: pair.slots,
            confidence: pair.confidence,
            call_confidence: pair.call_confidence().and_then(|confidence| digits(surer(confidence), 6)),
        }
    }
}

#[derive(Debug, Serialize)]
struct DoubtDocument<'a> {
    id: DoubtId,
    target: Option<&'a str>,
    text: &'a str,
}

impl<'a> DoubtDocument<'a> {
    fn of(doubt: &'a Doubt) -> Self {
        Self { id: doubt.id, target: doubt.target.as_deref(), text: &doubt.text }
    }
}

#[derive(Debug, Serialize)]
struct FindingDocument<'a> {
    cause: &'a str,
    target: Option<&'a str>,
    confidence: Confidence,
    explains: Option<f64>,
    summary: &'a str,
    evidence: &'a [Evidence],
    remedy: &'a str,
    leads: &'a Leads,
}

impl<'a> FindingDocument<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            cause: &finding.cause,
            target: finding.target.as_deref(),
            confidence: finding.confidence,
            explains: finding.explains.and_then(|share| digits(share, 4)),
            summary: &finding.summary,
            evidence: &finding.evidence,
            remedy: &finding.remedy,
            leads: &finding.leads,
        }
    }
}

#[derive(Debug, Serialize)]
struct ProbeDocument<'a> {
    id: &'a str,
    question: &'a str,
    variation: &'a Variation,
    pairs: Vec<PairDocument<'a>>,
    targets: &'a [TargetObservation],
    /// Empty unless machines were read.
    hosts: Vec<Option<WorkDocument<'a>>>,
    doubts: Vec<DoubtDocument<'a>>,
    unavailable: Option<&'a str>,
}

impl<'a> ProbeDocument<'a> {
    fn of(outcome: &'a ProbeOutcome) -> Self {
        Self {
            id: &outcome.probe.id,
            question: &outcome.probe.question,
            variation: &outcome.probe.variation,
            pairs: outcome.pairs.iter().map(PairDocument::of).collect(),
            targets: &outcome.targets,
            hosts: outcome.demands.iter().map(|demand| demand.as_ref().map(hosts::demand)).collect(),
            doubts: outcome.doubts.iter().map(DoubtDocument::of).collect(),
            unavailable: outcome.unavailable.as_ref().map(NotMade::told),
        }
    }
}

/// Milliseconds to the microsecond; below one millisecond to the nanosecond, which is what was recorded.
fn ms(ns: f64) -> f64 {
    let ms = ns / 1e6;
    let scale = if ms < 1.0 { 1e6 } else { 1e3 };
    (ms * scale).round() / scale
}

/// A number with so many significant digits: more would be noise. `None` for what is no number.
fn digits(value: f64, significant: u8) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    format!("{value:.*e}", usize::from(significant) - 1).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        assert_eq!([ms(15_400_959.0), ms(812_345.0), ms(0.0)], [15.401, 0.812_345, 0.0]);
        assert_eq!(digits(1.0 / 3.0, 6), Some(0.333_333));
        assert_eq!(digits(123_456_789.0, 6), Some(123_457_000.0));
        assert_eq!(digits(f64::NAN, 6), None);
    }
}
