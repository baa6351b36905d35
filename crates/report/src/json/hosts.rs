//! What the targets' machines were and did, in the document.

use super::digits;
use crate::watched::{Watched, died, is_of_one, last_heard_ns, last_words};
use duel_model::{HostDemand, HostRecord, Known, Run, Value, unit};
use serde::Serialize;
use std::collections::BTreeMap;

/// Lines of the kernel's log in a document; the archive has more.
const MOST_LAST_WORDS: usize = 20;

/// The machine of one target. Its samples are left out: the archive has them.
#[derive(Debug, Serialize)]
pub(super) struct HostDocument<'a> {
    target: &'a str,
    /// How it was read, such as `over ssh to web1`.
    how: &'a str,
    facts: BTreeMap<&'a str, FactDocument<'a>>,
    /// How many samples were taken in all.
    samples: usize,
    /// What it did from the beginning of the measured slots to their end; `null` where it was not read then.
    comparison: Option<WorkDocument<'a>>,
    /// The last lines of its kernel's log, the oldest first.
    last_words: Vec<LastWord<'a>>,
    /// Where it stopped answering before the end.
    lost: Option<LostDocument<'a>>,
    /// Whether its target stopped answering.
    target_died: bool,
}

/// A fact: its value as text, with a unit where it is a number of one, or why it is not known.
#[derive(Debug, Serialize)]
struct FactDocument<'a> {
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<&'a str>,
}

/// Machines that were looked at, in the order in which they were given.
#[derive(Debug, Serialize)]
pub(super) struct FactsDocument<'a> {
    schema: &'static str,
    hosts: Vec<FactsOfDocument<'a>>,
}

/// What one of them is, or why it could not be read.
#[derive(Debug, Serialize)]
struct FactsOfDocument<'a> {
    name: &'a str,
    /// `null` where it could not be read.
    facts: Option<BTreeMap<&'a str, FactDocument<'a>>>,
    /// What weakens them.
    doubts: &'a [String],
    error: Option<&'a str>,
}

/// What a machine did for a target's requests.
///
/// The machine's own counters (not those of `process.` and `workers.`) hold everything that it did in that time. Counters
/// of single CPUs, threads and processes are left out.
#[derive(Debug, Serialize)]
pub(super) struct WorkDocument<'a> {
    /// Requests that ended well in that time; of this target alone.
    ops: u64,
    /// `null` where a clock jumped.
    elapsed_s: Option<f64>,
    counters: BTreeMap<&'a str, CounterDocument>,
    /// Means.
    gauges: BTreeMap<&'a str, Option<f64>>,
}

/// How a counter grew. Where that is not known, both figures are `null`, and never 0. Where only the part of others is too large to be taken
/// away, the rate is known.
#[derive(Debug, Serialize)]
struct CounterDocument {
    per_s: Option<f64>,
    /// The service demand: ns per request for a counter of ns.
    per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct LastWord<'a> {
    /// On the machine's own clock, since it was started.
    uptime_s: Option<f64>,
    /// Severity from 0 (emergency) to 7 (debug).
    level: Option<u8>,
    while_watched: Option<bool>,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct LostDocument<'a> {
    why: &'a str,
    /// When it was heard of last, since the run began.
    last_heard_s: Option<f64>,
}

/// The machines that were read.
pub(super) fn documents(run: &Run) -> Vec<HostDocument<'_>> {
    let read = run.plan.targets.iter().zip(&run.hosts).enumerate();
    read.filter_map(|(index, (target, record))| Some(document(run, index, &target.name, record.as_ref()?))).collect()
}

fn document<'a>(run: &'a Run, index: usize, target: &'a str, record: &'a HostRecord) -> HostDocument<'a> {
    HostDocument {
        target,
        how: &record.how,
        facts: facts(record),
        samples: record.samples.len(),
        comparison: Watched::over_measured_slots(run, index, record).map(|watched| work(&watched)),
        last_words: last_words(record, MOST_LAST_WORDS)
            .map(|(line, while_watched)| LastWord {
                uptime_s: line.uptime_ns.map(seconds),
                level: line.level,
                while_watched,
                text: &line.text,
            })
            .collect(),
        lost: record
            .lost
            .as_deref()
            .map(|why| LostDocument { why, last_heard_s: last_heard_ns(run, record).map(seconds) }),
        target_died: died(run, target),
    }
}

/// What machines are: each with its name, and what was read of it or why nothing was.
pub(super) fn looked_at<'a>(
    schema: &'static str,
    hosts: &'a [(String, Result<HostRecord, String>)],
) -> FactsDocument<'a> {
    let of = |(name, read): &'a (String, Result<HostRecord, String>)| {
        let record = read.as_ref().ok();
        FactsOfDocument {
            name,
            facts: record.map(facts),
            doubts: record.map_or(&[], |record| &record.doubts),
            error: read.as_ref().err().map(String::as_str),
        }
    };
    FactsDocument { schema, hosts: hosts.iter().map(of).collect() }
}

fn facts(record: &HostRecord) -> BTreeMap<&str, FactDocument<'_>> {
    record.facts.0.iter().map(|(key, known)| (key.as_str(), fact(key, known))).collect()
}

fn fact<'a>(key: &str, known: &'a Known) -> FactDocument<'a> {
    match known {
        Known::Value(value) => {
            // A limit may also be `none`.
            let is_number = match value {
                Value::Number(_) => true,
                Value::Text(text) => text.parse::<f64>().is_ok(),
                Value::YesNo(_) | Value::List(_) => false,
            };
            let unit = unit(key).filter(|_| is_number);
            FactDocument { value: Some(value), unit, unavailable: None }
        }
        Known::Unavailable(why) => FactDocument { value: None, unit: None, unavailable: Some(why) },
    }
}

fn work<'a>(watched: &Watched<'a>) -> WorkDocument<'a> {
    let counter = |key: &'a str| {
        let (per_s, per_op) = (watched.span.per_second(key), watched.span.per_op(key, watched.ops));
        (key, CounterDocument { per_s: figure(per_s), per_op: figure(per_op), unknown: watched.span.why_unknown(key) })
    };
    WorkDocument {
        ops: watched.ops,
        elapsed_s: watched.span.elapsed_ns().map(seconds),
        counters: watched.counters().into_iter().filter(|key| !is_of_one(key)).map(counter).collect(),
        gauges: watched
            .gauges()
            .into_iter()
            .filter(|(key, _)| !is_of_one(key))
            .map(|(key, mean)| (key, digits(mean, 6)))
            .collect(),
    }
}

/// What a machine did in the slots of a probe. Counters that could not be subtracted in each of them are absent.
pub(super) fn demand(demand: &HostDemand) -> WorkDocument<'_> {
    let counter = |key: &String| CounterDocument {
        per_s: figure(demand.per_second(key)),
        per_op: figure(demand.per_op(key)),
        unknown: (demand.ops > 0 && demand.per_op(key).is_none()).then_some("others made most of it"),
    };
    WorkDocument {
        ops: demand.ops,
        elapsed_s: (demand.elapsed_ns > 0).then(|| seconds(demand.elapsed_ns)),
        counters: demand.growth.keys().filter(|key| !is_of_one(key)).map(|key| (key.as_str(), counter(key))).collect(),
        gauges: demand
            .gauges
            .iter()
            .filter(|(key, _)| !is_of_one(key))
            .map(|(key, mean)| (key.as_str(), digits(*mean, 6)))
            .collect(),
    }
}

fn figure(value: Option<f64>) -> Option<f64> {
    digits(value?, 6)
}

/// To the millisecond.
fn seconds(ns: u64) -> f64 {
    (ns as f64 / 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_others_made_most_of_says_so() {
        let key = "tcp.delayed_acknowledgements";
        let counted = |quiet: u64| HostDemand {
            ops: 10,
            elapsed_ns: 1_000_000_000,
            growth: [(key.to_owned(), 100)].into(),
            quiet_ns: 1_000_000_000,
            quiet_growth: [(key.to_owned(), quiet)].into(),
            ..HostDemand::default()
        };
        let shown = |quiet: u64| serde_json::to_value(&demand(&counted(quiet)).counters[key]).unwrap();
        assert_eq!(shown(20), serde_json::json!({ "per_s": 100.0, "per_op": 8.0 }));
        let unknown = serde_json::json!({ "per_s": 100.0, "per_op": null, "unknown": "others made most of it" });
        assert_eq!(shown(80), unknown);
    }
}
