//! Figures for other systems on the real binary: a scraper, and collectors of several characters.

use crate::common::{Place, Ruler, Running, free_port, wait_until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn scraped(port: u16) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut text = String::new();
    connection.read_to_string(&mut text).ok()?;
    text.starts_with("HTTP/1.1 200").then_some(text)
}

/// The value of a sample, by its name and labels.
fn sample(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn a_scraper_sees_counts_grow_while_others_stall() {
    let (place, ruler, port) = (Place::new(), Ruler::start(&[]), free_port());
    let mut command = place.command();
    let target = format!("web={}", ruler.url("/delay/1000"));
    command.args(["run", &target, "-d", "60s", "-c", "2", "-t", "1", "-q", "--metrics", &port.to_string()]);
    let running = Running::start(command);
    wait_until("the page is there", || scraped(port).is_some());
    let stalling: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let ok = "duel_requests_total{target=\"web\",outcome=\"ok\"}";
    let mut seen = Vec::new();
    wait_until("the count grows", || {
        let page = scraped(port).unwrap_or_default();
        if let Some(count) = sample(&page, ok) {
            seen.push(count);
        }
        seen.iter().copied().fold(0.0, f64::max) > 50.0 && seen.first() < seen.last()
    });
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]), "a counter never falls: {seen:?}");
    let page = scraped(port).unwrap();
    assert_eq!(sample(&page, "duel_target_active{target=\"web\"}"), Some(1.0), "{page}");
    assert!(sample(&page, "duel_response_p99_seconds{target=\"web\"}").is_some_and(|p99| p99 > 0.0), "{page}");
    // A run on one target is one slot: what its page does not hold while that lasts, nobody would ever see.
    for of_the_slot_under_way in [
        "duel_received_bytes_total{target=\"web\"}",
        "duel_sent_bytes_total{target=\"web\"}",
        "duel_connections_opened_total{target=\"web\"}",
        "duel_response_seconds_count{target=\"web\"}",
        "duel_response_seconds_sum{target=\"web\"}",
        "duel_response_seconds_bucket{target=\"web\",le=\"+Inf\"}",
    ] {
        assert!(
            sample(&page, of_the_slot_under_way).is_some_and(|value| value > 0.0),
            "{of_the_slot_under_way}\n{page}"
        );
    }
    assert_eq!(sample(&page, "duel_response_seconds_bucket{target=\"web\",le=\"0.0005\"}"), Some(0.0), "{page}");
    running.signal(rustix::process::Signal::INT);
    running.end().ended(130);
    drop(stalling);
}

#[test]
fn a_port_that_is_taken_is_told_before_any_load() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let sentence = place.duel(["run", &ruler.url("/"), "-n", "5", "--metrics", &address]).refused(1);
    assert_eq!(sentence, format!("cannot serve metrics on {address}: Address already in use"));
    assert_eq!(place.duel(["list"]).ok().stdout, "No runs in the archive\n");
    let sentence = place.duel(["run", &ruler.url("/"), "--metrics", "here"]).refused(2);
    assert!(sentence.starts_with("--metrics takes HOST:PORT or a PORT"), "{sentence}");
}

/// A collector: answers each request with what it is made for, and keeps the documents.
struct Collector {
    address: SocketAddr,
    documents: Arc<Mutex<Vec<Value>>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Collector {
    /// `None`: it accepts, reads, and never answers.
    fn start(answer: Option<&'static str>) -> Self {
        Self::answering(&[], answer)
    }

    /// The first requests get other answers, and their documents are not taken.
    fn answering(first: &'static [&'static str], answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let documents: Arc<Mutex<Vec<Value>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, stopped) = (Arc::clone(&documents), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let (mut held, mut first) = (Vec::new(), first.iter());
            for connection in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let mut connection = connection.unwrap();
                let Some(answer) = answer else {
                    held.push(connection);
                    continue;
                };
                let Some(document) = received(&mut connection) else { continue };
                let refusal = first.next();
                if refusal.is_none() {
                    kept.lock().unwrap().push(document);
                }
                let _ = connection.write_all(refusal.unwrap_or(&answer).as_bytes());
            }
        });
        Self { address, documents, stop, thread: Some(thread) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn documents(&self) -> Vec<Value> {
        self.documents.lock().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().unwrap().join();
    }
}

/// The document of one request, which has to be what the specification asks for.
fn received(connection: &mut TcpStream) -> Option<Value> {
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                assert!(head.starts_with("post /v1/metrics http/1.1"), "{head}");
                assert!(head.contains("content-type: application/json"), "{head}");
                assert!(head.contains("api-key: s3cr3t"), "{head}");
                return serde_json::from_slice(&bytes[end + 4..]).ok();
            }
        }
        match connection.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
    }
}

const WELL: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

/// Loads a little and sends figures to `url` five times a second.
fn pushed(place: &Place, url: &str) -> crate::common::Done {
    let ruler = Ruler::start(&[]);
    let target = format!("web={}", ruler.url("/delay/1000"));
    pushing(place, url, &["run", &target, "-d", "1s", "-c", "2", "-t", "1"])
}

/// Does what `args` say, and sends figures to `url` five times a second.
fn pushing(place: &Place, url: &str, args: &[&str]) -> crate::common::Done {
    let mut command = place.command();
    command
        .args(args)
        .args(["-q", "--otlp", url])
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cr3t");
    Running::start(command).end().ended(0)
}

/// The only data point of a metric whose attributes hold `attribute`.
fn point<'d>(document: &'d Value, metric: &str, kind: &str, attribute: &str) -> &'d Value {
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|found| found["name"] == metric).unwrap_or_else(|| panic!("{document:#}"));
    let has = |point: &&Value| {
        point["attributes"].as_array().unwrap().iter().any(|found| found["value"]["stringValue"] == attribute)
    };
    metric[kind]["dataPoints"].as_array().unwrap().iter().find(has).unwrap_or_else(|| panic!("{metric:#}"))
}

#[test]
fn a_collector_gets_figures_while_it_runs_and_at_the_end() {
    let (place, collector) = (Place::new(), Collector::start(Some(WELL)));
    let done = pushed(&place, &collector.url());
    assert_eq!(done.stderr, "");
    let documents = collector.documents();
    assert!(documents.len() >= 2, "one while it ran, and the last one: {}", documents.len());
    let counts: Vec<u64> = documents
        .iter()
        .map(|document| point(document, "duel.requests", "sum", "ok")["asInt"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(counts.windows(2).all(|pair| pair[0] <= pair[1]), "{counts:?}");
    // The last one holds what the run holds.
    let run = place.json(["show", "last"]);
    assert_eq!(run["targets"][0]["ops"], *counts.last().unwrap());
    assert_eq!(run["doubts"].as_array().unwrap().iter().filter(|doubt| doubt["id"] == "not-recorded").count(), 0);
    let histogram = point(documents.last().unwrap(), "duel.response.duration", "histogram", "web");
    assert_eq!(histogram["count"], counts.last().unwrap().to_string());
}

#[test]
fn requests_that_end_after_their_slot_are_counted_once() {
    let (place, collector, ruler) = (Place::new(), Collector::start(Some(WELL)), Ruler::start(&[]));
    let mut command = place.command();
    // Answers come long after a slot's schedule has ended: the time since its begin is longer than the slot.
    let targets = ["a", "b"].map(|name| format!("{name}={}", ruler.url("/delay/250000")));
    command
        .args([&targets[0], &targets[1], "--rate", "40", "-d", "4s", "--slot", "500ms", "-t", "1", "-q"])
        .args(["--no-early-stop", "--otlp", &collector.url()])
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cr3t");
    Running::start(command).end().ended(0);
    let documents = collector.documents();
    let rows = place.duel(["export", "last", "--format", "ndjson"]).ok().stdout;
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for target in ["a", "b"] {
        let sum = |column: &str| -> u64 {
            rows.iter().filter(|row| row["target"] == target).map(|row| row[column].as_u64().unwrap()).sum()
        };
        let told = |document: &Value, metric: &str| -> u64 {
            let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
            let points = &metrics.iter().find(|found| found["name"] == metric).unwrap()["sum"]["dataPoints"];
            let is_of = |point: &&Value| point["attributes"][0]["value"]["stringValue"] == target;
            points.as_array().unwrap().iter().find(is_of).unwrap()["asInt"].as_str().unwrap().parse().unwrap()
        };
        let last = documents.last().unwrap();
        assert!(sum("ok_ops") > 0);
        for (metric, column) in [("duel.requests", "ok_ops"), ("duel.received", "bytes_in"), ("duel.sent", "bytes_out")]
        {
            assert_eq!(told(last, metric), sum(column), "{metric} of {target}");
            let course: Vec<u64> = documents.iter().map(|document| told(document, metric)).collect();
            assert!(course.windows(2).all(|pair| pair[0] <= pair[1]), "{metric}: {course:?}");
        }
    }
}

#[test]
fn repeating_and_explaining_an_earlier_run_tell_figures_too() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let [a, b] = [("a", "/delay/1000"), ("b", "/delay/3000")].map(|(name, path)| format!("{name}={}", ruler.url(path)));
    place.duel([&a, &b, "-d", "2s", "-c", "2", "-t", "1", "-q"]).ok();
    let begun_ms = place.json(["show", "last"])["started_unix_ms"].as_i64().unwrap();
    let roles_of = |collector: &Collector| {
        let documents = collector.documents();
        let last = documents.last().expect("the last figures are sent");
        let slots = point(last, "duel.slots", "sum", "a");
        let since_ns: i64 = slots["startTimeUnixNano"].as_str().unwrap().parse().unwrap();
        assert!(since_ns / 1_000_000 > begun_ms, "counts begin with this command, not with the earlier run");
        assert!(point(last, "duel.requests", "sum", "b")["asInt"].as_str().unwrap().parse::<u64>().unwrap() > 0);
        last.to_string()
    };

    let collector = Collector::start(Some(WELL));
    // Enough for a probe or two; with less there are none, and nothing to count.
    pushing(&place, &collector.url(), &["why", "last", "--why-budget", "12s"]).ended(0);
    let told = roles_of(&collector);
    assert!(told.contains("\"probe\"") && !told.contains("\"measured\""), "{told}");

    let collector = Collector::start(Some(WELL));
    pushing(&place, &collector.url(), &["rerun", "last"]).ended(0);
    assert!(roles_of(&collector).contains("\"measured\""));

    // What fails is told with the run that it belongs to.
    let down = format!("http://127.0.0.1:{}", free_port());
    let done = pushing(&place, &down, &["why", "last", "--why-budget", "4s"]).ended(0);
    assert!(done.sentence().contains("connection refused"), "{}", done.stderr);
    let run = place.json(["show", "last"]);
    assert_eq!(run["doubts"].as_array().unwrap().iter().filter(|doubt| doubt["id"] == "not-recorded").count(), 1);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["why", "rerun"] {
        let sentence = place.duel([command, "last", "--metrics", &address]).refused(1);
        assert!(sentence.starts_with("cannot serve metrics on"), "{sentence}");
        let sentence = place.duel([command, "last", "--otlp", "grpc://c:4317"]).refused(2);
        assert!(sentence.starts_with("--otlp takes"), "{sentence}");
    }
}

#[test]
fn a_collector_that_fails_becomes_a_doubt_and_nothing_else() {
    let down = format!("http://127.0.0.1:{}", free_port());
    let garbage = Collector::start(Some("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"));
    let no_http = Collector::start(Some("220 mail.example ESMTP\r\n"));
    let refusing = Collector::start(Some("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    let stalling = Collector::start(None);
    for (url, said) in [
        (&down, "connection refused"),
        (&garbage.url(), "what it answers is not OTLP"),
        (&no_http.url(), "of metrics to http://127.0.0.1:"),
        (&refusing.url(), "it answers 404"),
        (&stalling.url(), "it did not answer within 3 s"),
    ] {
        let place = Place::new();
        let done = pushed(&place, url);
        let sentence = done.sentence();
        assert!(sentence.contains("pushes of metrics to http://127.0.0.1:") && sentence.contains(said), "{sentence}");
        assert!(!sentence.contains("s3cr3t"), "{sentence}");
        // It is told in the report, and kept with the run.
        assert!(done.stdout.contains("pushes of metrics"), "{}", done.stdout);
        let run = place.json(["show", "last"]);
        let doubts = run["doubts"].as_array().unwrap().iter().filter(|doubt| doubt["id"] == "not-recorded");
        assert_eq!(doubts.count(), 1, "{:#}", run["doubts"]);
        assert_eq!((&run["status"], run["targets"][0]["ops"].as_u64() > Some(10)), (&"complete".into(), true));
    }
}

#[test]
fn the_last_push_is_tried_again_where_the_collector_asks_for_it() {
    const BUSY: &str =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let sent = |collector: &Collector| {
        let mut command = place.command();
        // Shorter than the interval: the last push is the only one.
        command
            .args(["run", &format!("web={}", ruler.url("/size/1")), "-n", "20", "-c", "2", "-t", "1", "-q"])
            .args(["--otlp", &collector.url()])
            .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cr3t");
        Running::start(command).end().ended(0)
    };
    let collector = Collector::answering(&[BUSY], Some(WELL));
    assert_eq!(sent(&collector).stderr, "");
    let documents = collector.documents();
    assert_eq!(documents.len(), 1);
    assert_eq!(point(&documents[0], "duel.requests", "sum", "ok")["asInt"], "20");
    // What would be refused again is not tried again, and who never has time is given up.
    const REFUSING: &str = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let collector = Collector::answering(&[REFUSING], Some(WELL));
    assert!(sent(&collector).sentence().ends_with("failed: it answers 400"));
    assert!(collector.documents().is_empty());
    assert!(sent(&Collector::start(Some(BUSY))).sentence().ends_with("failed: it answers 503"));
    // Whatever pause it asks for.
    const NEVER: [&[&str]; 2] = [
        &["HTTP/1.1 429 Busy\r\nRetry-After: 18446744073709551615\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"],
        &["HTTP/1.1 503 Busy\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"],
    ];
    for never in NEVER {
        let collector = Collector::answering(never, Some(WELL));
        assert!(sent(&collector).sentence().contains("failed: it answers "), "{never:?}");
        assert!(collector.documents().is_empty(), "it asked for more time than there is: {never:?}");
        assert_eq!(place.json(["show", "last"])["status"], "complete");
    }
    let elsewhere = "HTTP/1.1 308 Permanent Redirect\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert!(sent(&Collector::start(Some(elsewhere))).sentence().contains("it answers 308 and leads elsewhere"));
}

/// A collector that takes its time, or brings something down, finds nothing that is not kept yet.
#[test]
fn the_run_is_whole_in_the_archive_before_the_collector_hears_the_last_of_it() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = place.command();
    // Shorter than the interval: the last push is the only one.
    command
        .args(["run", &ruler.url("/size/1"), "-n", "20", "-c", "2", "-t", "1", "-q"])
        .args(["--otlp", &format!("http://{}", collector.local_addr().unwrap())])
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cr3t");
    let running = Running::start(command);
    let (mut connection, _) = collector.accept().unwrap();
    assert!(received(&mut connection).is_some());
    let run = place.json(["show", "last"]);
    assert_eq!((&run["status"], &run["targets"][0]["ops"]), (&"complete".into(), &20.into()));
    assert!(!run["doubts"].as_array().unwrap().iter().any(|doubt| doubt["id"] == "not-recorded"));
    drop(connection);
    running.end().ended(0);
    // The doubt that came of it is kept afterwards.
    let run = place.json(["show", "last"]);
    assert!(run["doubts"].as_array().unwrap().iter().any(|doubt| doubt["id"] == "not-recorded"), "{run:#}");
}

#[test]
fn an_interval_of_any_length_can_be_asked_for() {
    let (place, ruler, collector) = (Place::new(), Ruler::start(&[]), Collector::start(Some(WELL)));
    let url = ruler.url("/size/1");
    for interval_ms in ["1", "18446744073709551615"] {
        let mut command = place.command();
        command
            .args(["run", &url, "-n", "20", "-c", "2", "-t", "1", "-q", "--otlp", &collector.url()])
            .env("OTEL_METRIC_EXPORT_INTERVAL", interval_ms)
            .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cr3t");
        assert_eq!(Running::start(command).end().ended(0).stderr, "", "{interval_ms}");
    }
    assert!(collector.documents().len() >= 2);
}

#[test]
fn an_address_that_is_none_is_refused() {
    let place = Place::new();
    let sentence = place.duel(["run", "http://h/", "--otlp", "grpc://c:4317"]).refused(2);
    assert!(sentence.starts_with("--otlp takes the URL of a collector"), "{sentence}");
    let sentence = place.duel(["run", "http://h/", "--otlp", "http://u:s3cr3t@c/"]).refused(2);
    assert!(sentence.contains("OTEL_EXPORTER_OTLP_HEADERS") && !sentence.contains("s3cr3t"), "{sentence}");
}
