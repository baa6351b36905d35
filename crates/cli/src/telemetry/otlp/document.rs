//! Figures as an `ExportMetricsServiceRequest` in OTLP's JSON encoding: keys in lowerCamelCase, enums as numbers, 64-bit
//! integers as texts.

use super::super::figures::{BOUNDS_NS, Counts, Figures, TargetFigures};
use duel_lab::Traffic;
use duel_model::sanitize_line;
use serde_json::{Value, json};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// The request.
pub(super) fn document(figures: &Figures) -> Value {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let clock = Clock { start_ns: figures.since.as_nanos().to_string(), now_ns: now.as_nanos().to_string() };
    let resource = attributes(&[
        ("service.name", "duel"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", &figures.run),
    ]);
    json!({ "resourceMetrics": [{
        "resource": { "attributes": resource },
        "scopeMetrics": [{
            "scope": { "name": "duel", "version": env!("CARGO_PKG_VERSION") },
            "metrics": metrics(figures, &clock),
        }],
    }] })
}

/// Since when counts count and now, in ns since 1970.
struct Clock {
    start_ns: String,
    now_ns: String,
}

fn metrics(figures: &Figures, clock: &Clock) -> Vec<Value> {
    let mut metrics = Vec::new();
    let targets = figures.so_far();
    let requests = targets.iter().flat_map(|(target, counts)| {
        [("ok", counts.ok), ("failed", counts.failed_total())]
            .map(|(outcome, count)| clock.integer(&[("target", &target.name), ("outcome", outcome)], count))
    });
    metrics.push(sum("duel.requests", "{request}", "Requests that ended.", requests.collect()));
    let failures = targets.iter().flat_map(|(target, counts)| {
        let failed = counts.failed.iter();
        failed.map(|(kind, count)| clock.integer(&[("target", &target.name), ("kind", kind.name())], *count))
    });
    metrics.push(sum("duel.request.failures", "{request}", "Failed requests by kind.", failures.collect()));
    let slots = figures.targets.iter().flat_map(|target| {
        target.slots.iter().map(|(role, count)| clock.integer(&[("target", &target.name), ("role", role)], *count))
    });
    metrics.push(sum("duel.slots", "{slot}", "Slots that are over, by what they were for.", slots.collect()));
    let loads = targets.iter().map(|(target, counts)| clock.double(&[("target", &target.name)], counts.load_s()));
    metrics.push(sum("duel.load.time", "s", "Time under load.", loads.collect()));
    type Count = fn(&Traffic) -> u64;
    let traffic: [(&str, &str, &str, Count); 3] = [
        ("duel.received", "By", "Bytes read from connections.", |traffic| traffic.bytes_in),
        ("duel.sent", "By", "Bytes written to connections.", |traffic| traffic.bytes_out),
        ("duel.connections.opened", "{connection}", "Connections that were established.", |traffic| {
            traffic.connections
        }),
    ];
    for (name, unit, description, count) in traffic {
        let point = |(target, counts): &(&TargetFigures, Counts)| {
            clock.integer(&[("target", &target.name)], count(&counts.traffic))
        };
        metrics.push(sum(name, unit, description, targets.iter().map(point).collect()));
    }
    let responses: Vec<Value> = targets
        .iter()
        .filter(|(_, counts)| !counts.response.is_empty())
        .map(|(target, counts)| clock.histogram(&target.name, counts))
        .collect();
    metrics.push(json!({
        "name": "duel.response.duration", "unit": "s", "description": "Response times from the due time on.",
        "histogram": { "aggregationTemporality": CUMULATIVE, "dataPoints": responses },
    }));
    metrics.extend(verdict(figures, clock));
    // A metric without a data point is not allowed.
    metrics.retain(|metric| {
        let points = |kind: &str| metric[kind]["dataPoints"].as_array().is_some_and(|points| !points.is_empty());
        points("sum") || points("gauge") || points("histogram")
    });
    metrics
}

/// How many times slower each target is than the baseline, with its interval, once that is judged.
fn verdict(figures: &Figures, clock: &Clock) -> Vec<Value> {
    let points = |part: fn((f64, f64, f64)) -> f64| {
        let point = |pair: &duel_model::PairVerdict| {
            let names =
                [("target", pair.target.as_str()), ("baseline", &pair.baseline), ("metric", pair.metric.name())];
            Some(clock.double(&names, part(pair.slowdown()?)))
        };
        figures.pairs.iter().filter_map(point).collect::<Vec<_>>()
    };
    [
        ("duel.slowdown", "How many times slower than the baseline.", points(|(ratio, _, _)| ratio)),
        ("duel.slowdown.low", "Low end of its interval.", points(|(_, low, _)| low)),
        ("duel.slowdown.high", "High end of its interval.", points(|(_, _, high)| high)),
    ]
    .into_iter()
    .map(|(name, description, points)| {
        json!({ "name": name, "unit": "1", "description": description, "gauge": { "dataPoints": points } })
    })
    .collect()
}

fn sum(name: &str, unit: &str, description: &str, points: Vec<Value>) -> Value {
    json!({
        "name": name, "unit": unit, "description": description,
        "sum": { "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points },
    })
}

impl Clock {
    fn point(&self, names: &[(&str, &str)], key: &str, value: Value) -> Value {
        json!({
            "attributes": attributes(names), "startTimeUnixNano": self.start_ns, "timeUnixNano": self.now_ns, key: value,
        })
    }

    fn integer(&self, names: &[(&str, &str)], value: u64) -> Value {
        self.point(names, "asInt", json!(value.to_string()))
    }

    fn double(&self, names: &[(&str, &str)], value: f64) -> Value {
        self.point(names, "asDouble", json!(value))
    }

    fn histogram(&self, target: &str, counts: &Counts) -> Value {
        let response = &counts.response;
        let by_bound: Vec<String> = counts.by_bound().iter().map(u64::to_string).collect();
        let bounds: Vec<f64> = BOUNDS_NS.iter().map(|&ns| ns as f64 / 1e9).collect();
        json!({
            "attributes": attributes(&[("target", target)]),
            "startTimeUnixNano": self.start_ns, "timeUnixNano": self.now_ns,
            "count": response.count().to_string(), "sum": response.sum_ns as f64 / 1e9,
            "bucketCounts": by_bound, "explicitBounds": bounds,
            "min": response.min_ns().map(|ns| ns as f64 / 1e9), "max": response.max_ns().map(|ns| ns as f64 / 1e9),
        })
    }
}

fn attributes(names: &[(&str, &str)]) -> Value {
    names.iter().map(|(key, text)| json!({ "key": key, "value": { "stringValue": sanitize_line(text) } })).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::tests::{of, slot};
    use super::*;

    #[test]
    fn a_document_is_what_the_encoding_wants() {
        let mut figures = of(&["A", "B"]);
        figures.add(&slot(0, 3, 2, 2));
        let document = document(&figures);
        let resource = &document["resourceMetrics"][0];
        assert_eq!(
            resource["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "duel"}})
        );
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
        let point = &named("duel.requests")["sum"]["dataPoints"][0];
        assert_eq!(point["asInt"], "3", "64-bit integers are texts");
        assert_eq!(named("duel.requests")["sum"]["isMonotonic"], true);
        let histogram = &named("duel.response.duration")["histogram"];
        assert_eq!(
            (&histogram["aggregationTemporality"], &histogram["dataPoints"][0]["count"]),
            (&json!(2), &json!("3"))
        );
        let point = &histogram["dataPoints"][0];
        let (counts, bounds) = (point["bucketCounts"].as_array().unwrap(), point["explicitBounds"].as_array().unwrap());
        assert_eq!(counts.len(), bounds.len() + 1);
        // There is no verdict yet, and B has no response times: they are not there.
        assert!(metrics.iter().all(|metric| metric["name"] != "duel.slowdown"));
        assert_eq!(histogram["dataPoints"].as_array().unwrap().len(), 1);
    }
}
