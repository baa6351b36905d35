//! `--json` prints exactly one document, schema `duel/1`: every promised field with its type, and books that agree.
//!
//! A field that is not listed here may be added; one that is listed stays.

use crate::common::{Place, Ruler, Running, measuring};
use serde_json::{Value, json};

/// What a field may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    Text,
    Count,
    Number,
    Bool,
    List,
    Object,
    /// The text, or null where it is not known.
    MaybeText,
    MaybeNumber,
    MaybeObject,
}
use Is::{Bool, Count, List, MaybeNumber, MaybeObject, MaybeText, Number, Object, Text};

const DOCUMENT: &[(&str, Is)] = &[
    ("schema", Text),
    ("run", Text),
    ("seed", Count),
    ("workload", Text),
    ("targets", List),
    ("pairs", List),
    ("doubts", List),
    ("findings", List),
    ("ruled_out", List),
    ("explained", Bool),
    ("probes", List),
    ("hosts", List),
    ("search", MaybeObject),
    ("searches", List),
    ("contests", List),
    ("stage_ratios", List),
    ("status", Text),
    ("started_unix_ms", Count),
    ("started_utc", Text),
    ("margin", Number),
    ("versions", Object),
    ("plan", Object),
];
const TARGET: &[(&str, Is)] = &[
    ("name", Text),
    ("address", Text),
    ("ops", Count),
    ("failed", Object),
    ("rate_per_s", MaybeNumber),
    ("bytes_per_s", MaybeNumber),
    ("response_ms", Object),
    ("service_ms", Object),
    ("phases_ms", Object),
    ("negotiated", MaybeObject),
    ("started", Count),
    ("in_flight", Count),
    ("unstarted", Count),
    ("shed", Count),
    ("stages", List),
    ("statuses", Object),
    ("failure_examples", List),
    ("slots", Count),
    ("elapsed_s", Number),
    ("connections", Count),
    ("reused", Count),
    ("resent", Count),
    ("surplus", Count),
    ("resumed", Count),
    ("bytes_in", Count),
    ("bytes_out", Count),
    ("body_bytes", Count),
    ("audit", Object),
];
const TIMES: &[(&str, Is)] = &[
    ("p50", MaybeNumber),
    ("p90", MaybeNumber),
    ("p99", MaybeNumber),
    ("p99_9", MaybeNumber),
    ("max", MaybeNumber),
    ("mean", MaybeNumber),
];
const NEGOTIATED: &[(&str, Is)] = &[
    ("http", MaybeText),
    ("tls", MaybeText),
    ("cipher", MaybeText),
    ("group", MaybeText),
    ("alpn", MaybeText),
    ("certificate_key", MaybeText),
    ("chain_bytes", MaybeNumber),
    ("server", MaybeText),
    ("via", MaybeText),
    ("content_encoding", MaybeText),
    ("content_type", MaybeText),
    ("status", MaybeNumber),
    ("body_bytes", MaybeNumber),
    ("peer", MaybeText),
];
const PAIR: &[(&str, Is)] = &[
    ("baseline", Text),
    ("target", Text),
    ("metric", Text),
    ("call", Text),
    ("ratio", MaybeNumber),
    ("low", MaybeNumber),
    ("high", MaybeNumber),
    ("slots", Count),
    ("confidence", Number),
];
const DOUBT: &[(&str, Is)] = &[("id", Text), ("target", MaybeText), ("text", Text)];
const FINDING: &[(&str, Is)] = &[
    ("cause", Text),
    ("target", MaybeText),
    ("confidence", Text),
    ("explains", MaybeNumber),
    ("summary", Text),
    ("evidence", List),
    ("remedy", Text),
];
const PROBE: &[(&str, Is)] = &[
    ("id", Text),
    ("question", Text),
    ("variation", Object),
    ("pairs", List),
    ("targets", List),
    ("hosts", List),
    ("doubts", List),
    ("unavailable", MaybeText),
];
const HOST: &[(&str, Is)] = &[
    ("target", Text),
    ("how", Text),
    ("facts", Object),
    ("samples", Count),
    ("comparison", MaybeObject),
    ("last_words", List),
    ("lost", MaybeObject),
    ("target_died", Bool),
];
const WORK: &[(&str, Is)] = &[("ops", Count), ("elapsed_s", MaybeNumber), ("counters", Object), ("gauges", Object)];

#[track_caller]
fn assert_fields(value: &Value, fields: &[(&str, Is)]) {
    for &(name, is) in fields {
        let field = value.get(name).unwrap_or_else(|| panic!("'{name}' is missing in {value}"));
        let fits = match is {
            Text => field.is_string(),
            Count => field.is_u64(),
            Number => field.is_number(),
            Bool => field.is_boolean(),
            List => field.is_array(),
            Object => field.is_object(),
            MaybeText => field.is_string() || field.is_null(),
            MaybeNumber => field.is_number() || field.is_null(),
            MaybeObject => field.is_object() || field.is_null(),
        };
        assert!(fits, "'{name}' is not {is:?}: {field}");
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap()
}

#[track_caller]
fn one_of(value: &Value, allowed: &[&str]) {
    assert!(value.as_str().is_some_and(|text| allowed.contains(&text)), "{value} is none of {allowed:?}");
}

/// Checks the whole document, whatever kind of run it is of.
#[track_caller]
fn assert_document(document: &Value) {
    assert_fields(document, DOCUMENT);
    assert_eq!(document["schema"], "duel/1");
    one_of(&document["workload"], &["http", "null"]);
    one_of(&document["status"], &["complete", "interrupted"]);
    assert_eq!(document["interruption"].is_null(), document["status"] == "complete");
    for target in list(document, "targets") {
        assert_target(target);
    }
    for pair in list(document, "pairs") {
        assert_pair(pair);
    }
    for doubt in list(document, "doubts") {
        assert_fields(doubt, DOUBT);
    }
    for finding in list(document, "findings") {
        assert_fields(finding, FINDING);
        one_of(&finding["confidence"], &["confirmed", "likely", "possible"]);
        for evidence in list(finding, "evidence") {
            assert_fields(evidence, &[("probe", Text), ("text", Text)]);
        }
    }
    for cause in list(document, "ruled_out") {
        assert!(cause.is_string());
    }
    for probe in list(document, "probes") {
        assert_fields(probe, PROBE);
        list(probe, "pairs").iter().for_each(assert_pair);
        list(probe, "hosts").iter().filter(|work| !work.is_null()).for_each(assert_work);
    }
    for host in list(document, "hosts") {
        assert_fields(host, HOST);
        for fact in host["facts"].as_object().unwrap().values() {
            assert_ne!(fact["value"].is_string(), fact["unavailable"].is_string(), "{fact}");
        }
        if host["comparison"].is_object() {
            assert_work(&host["comparison"]);
        }
    }
}

#[track_caller]
fn assert_work(work: &Value) {
    assert_fields(work, WORK);
    for (key, counter) in work["counters"].as_object().unwrap() {
        assert_fields(counter, &[("per_s", MaybeNumber), ("per_op", MaybeNumber)]);
        let is_known = counter["per_op"].as_f64().is_some_and(|per_op| per_op >= 0.0);
        assert_ne!(
            is_known && work["ops"] != 0,
            counter["unknown"].is_string() || work["ops"] == 0,
            "{key}: {counter}"
        );
    }
}

#[track_caller]
fn assert_target(target: &Value) {
    assert_fields(target, TARGET);
    let count = |name: &str| target[name].as_u64().unwrap();
    let failed: u64 = target["failed"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(count("started"), count("ops") + failed + count("in_flight"), "{target}");
    for times in ["response_ms", "service_ms"] {
        assert_times(&target[times]);
    }
    assert!(target["rate_per_s"].is_null() || target["elapsed_s"].as_f64() > Some(0.0));
    if let (Some(rate), Some(elapsed)) = (target["rate_per_s"].as_f64(), target["elapsed_s"].as_f64()) {
        assert!((rate * elapsed - count("ops") as f64).abs() <= 1e-3 * count("ops") as f64 + 1e-6, "{target}");
    }
    for (phase, times) in target["phases_ms"].as_object().unwrap() {
        one_of(&json!(phase), &["dns", "connect", "tls", "send", "wait", "receive"]);
        assert_times(times);
        assert!(times["ops"].as_u64().unwrap() > 0, "a phase that no op went through is absent");
        assert_fields(times, &[("per_op_mean", MaybeNumber)]);
    }
    if !target["negotiated"].is_null() {
        assert_fields(&target["negotiated"], NEGOTIATED);
    }
    assert_fields(&target["audit"], &[("worker_cpu", List), ("schedule_lag_ms", Object), ("loop_lag_ms", Object)]);
    assert_times(&target["audit"]["loop_lag_ms"]);
}

/// Quantiles grow, and either all are known or none.
#[track_caller]
fn assert_times(times: &Value) {
    assert_fields(times, TIMES);
    let known: Vec<f64> = ["p50", "p90", "p99", "p99_9", "max"].iter().filter_map(|q| times[q].as_f64()).collect();
    assert!(known.is_empty() || known.len() == 5, "{times}");
    assert_eq!(known.is_empty(), times["mean"].is_null(), "{times}");
    assert!(known.windows(2).all(|pair| pair[0] <= pair[1]), "{times}");
}

#[track_caller]
fn assert_pair(pair: &Value) {
    assert_fields(pair, PAIR);
    one_of(&pair["metric"], &["rate", "response_p50", "response_p99"]);
    one_of(&pair["call"], &["faster", "slower", "equivalent", "unknown"]);
    match (pair["low"].as_f64(), pair["ratio"].as_f64(), pair["high"].as_f64()) {
        (Some(low), Some(ratio), Some(high)) => assert!(low <= ratio && ratio <= high, "{pair}"),
        (None, _, None) => assert_eq!(pair["call"], "unknown", "{pair}"),
        _ => panic!("half an interval: {pair}"),
    }
}

/// Runs with `--json` and progress, which must not get into the document.
fn document(place: &Place, args: &[&str]) -> Value {
    document_ended(place, args, 0)
}

/// As [`document`], where `duel` has to end with this exit code.
fn document_ended(place: &Place, args: &[&str], code: i32) -> Value {
    let mut command = place.command();
    command.args(args).arg("--json");
    let done = Running::start(command).end().ended(code);
    assert!(done.stdout.starts_with('{') && done.stdout.ends_with("}\n"), "one document: {}", done.stdout);
    assert!(!done.stderr.contains('{'), "progress only: {}", done.stderr);
    let document = done.json();
    assert_document(&document);
    document
}

#[test]
fn of_a_run() {
    let (place, ruler) = (Place::new(), Ruler::start(&["--tls", "p256"]));
    let named = format!("mine={}", ruler.url("/size/1000"));
    let found = document(&place, &["run", &named, "-k", "-n", "300", "-c", "3", "--seed", "5"]);
    assert_eq!((&found["seed"], &found["pairs"], &found["explained"]), (&5.into(), &json!([]), &false.into()));
    let target = &found["targets"][0];
    assert_eq!((&target["name"], &target["address"]), (&"mine".into(), &ruler.url("/size/1000").into()));
    assert_eq!((&target["ops"], &target["statuses"]), (&300.into(), &json!({ "200": 300 })));
    assert_eq!((&target["connections"], &target["reused"]), (&3.into(), &297.into()));
    assert_eq!(target["body_bytes"], 300_000);
    assert_eq!(target["negotiated"]["tls"], "1.3");
    let phases: Vec<&String> = target["phases_ms"].as_object().unwrap().keys().collect();
    assert_eq!(phases, ["connect", "receive", "send", "tls", "wait"], "no look-up of an address");
    assert_eq!(document(&place, &["show", "last"]), found, "judged again, it is the same");
}

#[test]
fn unknown_is_null() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let found = document_ended(&place, &["run", &ruler.url("/status/500"), "-n", "20", "-c", "2"], 1);
    let target = &found["targets"][0];
    assert_eq!((&target["ops"], &target["failed"]), (&0.into(), &json!({ "status": 20 })));
    assert_eq!(target["phases_ms"], json!({}), "no op was ok");
    assert_eq!(
        target["response_ms"],
        serde_json::from_str::<Value>(
            r#"{"p50":null,"p90":null,"p95":null,"p99":null,"p99_9":null,"max":null,"mean":null}"#
        )
        .unwrap()
    );
    assert_eq!(target["negotiated"]["tls"], Value::Null);
    // What measures the generator itself negotiates nothing.
    let found = document(&place, &["run", "null:", "-n", "20", "-c", "2"]);
    assert_eq!((&found["workload"], &found["targets"][0]["negotiated"]), (&"null".into(), &Value::Null));
}

#[test]
fn of_a_comparison_explained_and_not() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    // Fifty times, by forty slots: what others take of the CPUs hides less than that now and then.
    let (fast, slow) = (format!("fast={}", ruler.url("/burn/100")), format!("slow={}", ruler.url("/burn/5000")));
    let args = [&fast, slow.as_str(), "-d", "5s", "-c", "1", "-t", "1", "--slot", "60ms"];
    let found = document(&place, &args);
    let names: Vec<_> = list(&found, "targets").iter().map(|target| target["name"].clone()).collect();
    assert_eq!(names, ["fast", "slow"]);
    let metrics: Vec<_> = list(&found, "pairs").iter().map(|pair| pair["metric"].clone()).collect();
    assert_eq!(metrics, ["rate", "response_p50", "response_p99"]);
    let rate = &found["pairs"][0];
    assert_eq!((&rate["baseline"], &rate["target"], &rate["call"]), (&"fast".into(), &"slow".into(), &"slower".into()));
    assert!(rate["ratio"].as_f64() < Some(1.0), "target over baseline");
    assert_eq!((&found["explained"], &found["findings"], &found["probes"]), (&false.into(), &json!([]), &json!([])));

    let found = document(&place, &[&args[..], &["--why", "--why-budget", "10s"]].concat());
    assert_eq!(found["explained"], true);
    assert!(!list(&found, "findings").is_empty() && !list(&found, "ruled_out").is_empty());
    let finding = &found["findings"][0];
    assert_eq!((&finding["cause"], &finding["target"]), (&"unknown".into(), &"slow".into()));
    assert!(!list(&found, "probes").is_empty());
    assert_eq!(document(&place, &["show", "last"]), found);
    // Two runs are a list of two documents, and so is what is listed.
    let both = place.json(["diff", "last~1", "last"]);
    both.as_array().unwrap().iter().for_each(assert_document);
    assert_eq!(both[1], found);
    let rows = place.json(["list"]);
    assert_eq!(rows.as_array().unwrap().len(), 2);
    // How a run ended is told in the same words everywhere.
    let ended = |row: &Value| (row["status"].clone(), row["interruption"].clone());
    assert_eq!(ended(&rows[0]), ended(&found));
    assert_eq!(
        (&rows[0]["run"], &rows[0]["explained"], &rows[1]["explained"]),
        (&found["run"], &true.into(), &false.into())
    );
}

#[test]
#[cfg(target_os = "linux")]
fn of_machines() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (fast, slow) = (format!("fast={}", ruler.url("/burn/100")), format!("slow={}", ruler.url("/burn/2000")));
    let pid = format!("slow={}", std::process::id());
    let args = [&fast, slow.as_str(), "-d", "3s", "-c", "1", "-t", "1", "--no-local", "--local", "slow", "--pid", &pid];
    let found = document(&place, &[&args[..], &["--why", "--why-budget", "20s"]].concat());
    let host = &found["hosts"][0];
    assert_eq!((list(&found, "hosts").len(), &host["target"], &host["lost"]), (1, &"slow".into(), &Value::Null));
    let work = &host["comparison"];
    assert!(work["ops"].as_u64() > Some(0) && work["elapsed_s"].as_f64() > Some(0.0), "{work:#}");
    // A request burns two milliseconds of a CPU, which the kernel counts in hundredths of a second.
    assert!(work["counters"]["cpu.busy_ns"]["per_op"].as_f64() > Some(1e6), "{work:#}");
    assert!(work["counters"].get("cpu.0.user_ns").is_none() && work["gauges"].is_object());
    // Not each sample: that is what the archive is for.
    let bytes = serde_json::to_vec(host).unwrap().len();
    assert!(bytes < 100_000, "{bytes}");
    let read = list(&found, "probes").iter().find(|probe| !list(probe, "hosts").is_empty());
    if let Some(probe) = read {
        assert_eq!(probe["hosts"][0], Value::Null, "the machine of fast was not read");
        assert!(probe["hosts"][1]["counters"]["cpu.busy_ns"]["per_op"].as_f64() > Some(1e6), "{probe:#}");
    }
}

/// Who reads documents gets one also where no run came about.
#[test]
fn a_run_that_did_not_come_about_is_a_document_too() {
    let place = Place::new();
    let done = place
        .duel(["run", &format!("http://127.0.0.1:{}/", crate::common::free_port()), "-n", "1", "-q", "--json"])
        .ended(1);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&document["schema"], &document["status"]), (&json!("duel/1"), &json!("failed")));
    assert!(document["error"].as_str().unwrap().contains("connection refused"), "{document}");
}

/// Nor does it matter what kept it from coming about, or which command it was.
#[test]
fn whoever_asks_for_a_document_gets_one_of_every_refusal() {
    let place = Place::new();
    let unfit = place.file("unfit.toml", "targets = [\"http://a.example/\"]\n[load]\nconnections = \"many\"\n");
    let broken = place.file("broken.toml", "connections = = 3\n");
    let wants_json = place.file("json.toml", "json = true\ntargets = [\"http://a.example/\"]\n");
    let url = "http://a.example/";
    // No folder, whoever runs the tests.
    let nowhere = format!("{broken}/runs.sqlite");
    for (args, code, words) in [
        (&["--json"][..], 2, "nothing to compare"),
        (&["run", url, "--nonsense", "--json"], 2, "--nonsense"),
        (&["--json", "run", url, "-c", "many"], 2, "--connections takes a number"),
        (&["run", url, "-n", "many", "--json=true"], 2, "--requests takes a number"),
        (&["run", url, "--no-archive", "--archive", "x", "--json"], 2, "cannot be used with"),
        (&[url, "--json"], 2, "a comparison needs two targets"),
        (&["run", "nonsense", "--json"], 2, "neither a command nor an address"),
        (&["-c", "5", "run", url, "--json"], 2, "stands before 'run'"),
        (&["run", "--plan", &unfit, "--json"], 2, "unfit.toml:3:"),
        (&["run", "--plan", &broken, "--json"], 2, "broken.toml:1:"),
        (&["run", "--plan", "nowhere.toml", "--json"], 2, "nowhere.toml"),
        (&["run", "--plan", &wants_json, "--follow-each", "0"], 2, "--follow-each 0"),
        (&["run", url, "--archive", &nowhere, "--json"], 1, "runs.sqlite"),
        (&["run", url, "--archive", "", "--json"], 2, "a value is required"),
        (&["list", "--archive", &nowhere, "--json"], 1, "runs.sqlite"),
        (&["show", "last", "--json"], 1, "no archive"),
        (&["diff", "last", "last", "--json"], 1, ""),
        (&["why", "last", "--json"], 1, ""),
        (&["rerun", "last", "--json"], 1, ""),
        (&["export", "last", "-f", "csv", "--json"], 2, "--json prints results"),
        (&["report", "last", "--json"], 2, ""),
        (&["facts", "nowhere=", "--port", "x", "--json"], 2, "--port"),
        (&["lens", "/nowhere/libcrypto.so", "--json"], 1, ""),
        (&["man", "nothing", "--json"], 2, "no command 'nothing'"),
    ] {
        let done = place.duel(args).ended(code);
        let document = done.json();
        assert_eq!((&document["schema"], &document["status"]), (&json!("duel/1"), &json!("failed")), "{args:?}");
        let error = document["error"].as_str().unwrap();
        assert!(!error.is_empty() && error.contains(words), "{args:?}: {error}");
        let said = done.stderr.lines().next().unwrap_or_default();
        assert_eq!(said, format!("duel: {error}"), "{args:?}: the same is said in words");
    }
    // Who does not ask gets none, and a check prints its line.
    for args in [&["run", url, "--nonsense"][..], &["run", url, "--json=false", "--nonsense"]] {
        assert_eq!(place.duel(args).ended(2).stdout, "", "{args:?}");
    }
    assert!(place.duel(["check", url, "--json"]).ended(3).stdout.contains("UNKNOWN"));
    assert!(place.duel(["check", url, "--nonsense", "--json"]).ended(3).stdout.contains("UNKNOWN"));
}
