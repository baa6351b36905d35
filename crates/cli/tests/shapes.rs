//! Stages, deadlines and the search for a rate, on a server whose capacity is known.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Place, measuring};
use duel_ruler::{Config, Ruler};
use serde_json::Value;

fn ruler() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

fn count(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn stages_are_told_one_by_one_and_lose_no_request() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/");
    let document =
        place.json(["run", &url, "--stages", "300ms@100,400ms@100..300,200ms@0,100ms@200", "-c", "8", "-t", "1"]);
    let target = &document["targets"][0];
    let stages = target["stages"].as_array().unwrap();
    assert_eq!(stages.iter().map(|stage| count(stage, "due")).collect::<Vec<_>>(), [30, 80, 0, 20]);
    assert_eq!(stages[1]["stage"], "400ms@100..300");
    for stage in stages {
        let parts = ["ok", "failed", "in_flight", "unstarted", "shed"].map(|field| count(stage, field));
        assert_eq!(parts.iter().sum::<u64>(), count(stage, "due"), "{stage}");
    }
    assert_eq!(ruler.settled(common::PATIENCE).requests, count(target, "ops") + 1, "the first contact is one, too");
    // Kept as they were typed, and shown again.
    assert_eq!(document["plan"]["load"]["shape"]["stages"][0], "300ms@100");
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("400 ms at 100/s to 300/s") && shown.contains("Stages:"), "{shown}");
    let again = place.json(["rerun", "last"]);
    assert_eq!(again["targets"][0]["stages"].as_array().unwrap().len(), 4);
}

#[test]
fn stages_of_connections_are_a_closed_loop() {
    let _alone = measuring();
    let document = Place::new().json(["run", &ruler().url("/delay/2000"), "--stages", "200ms@1c,200ms@4c", "-t", "1"]);
    let target = &document["targets"][0];
    assert_eq!(count(target, "connections"), 4);
    let ops: Vec<u64> = target["stages"].as_array().unwrap().iter().map(|stage| count(stage, "ok")).collect();
    assert!(ops[0] > 0 && ops[1] > 2 * ops[0], "{ops:?}");
}

/// The ruler's clerk serves 100 per second; 300 are due.
#[test]
fn what_is_past_its_deadline_is_shed_and_said_so() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/serial/10000");
    let document = place.json(["run", &url, "--rate", "300", "-d", "1s", "-c", "1", "-t", "1", "--deadline", "100ms"]);
    let target = &document["targets"][0];
    assert_eq!(count(target, "started") + count(target, "unstarted") + count(target, "shed"), 300);
    assert!(count(target, "shed") >= 150, "{target}");
    assert_eq!(ruler.settled(common::PATIENCE).requests, count(target, "started") + 1, "what was shed was not sent");
    let doubts = document["doubts"].as_array().unwrap();
    let said = doubts.iter().find(|doubt| doubt["id"] == "rate-not-reached").unwrap()["text"].as_str().unwrap();
    assert!(said.contains("deadline of 100 ms"), "{said}");
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("shed (too late)") && shown.contains("deadline 100 ms"), "{shown}");
}

/// The ruler's clerk serves exactly 200 per second, and a queue that grows by 6 % shows in any attempt. Whatever else the
/// machine does can only make the answer lower: the best of three counts. The sharp test is
/// `the_capacity_is_found_within_three_percent`.
#[test]
fn a_known_capacity_is_found() {
    let mut found = Vec::new();
    while found.len() < 3 && !found.iter().any(|per_s| *per_s >= 0.88 * 200.0) {
        found.push(found_capacity("/serial/5000", "20s", "p99<300ms,errors<1%"));
    }
    assert!(found.iter().all(|per_s| *per_s <= 1.06 * 200.0), "{found:?}");
    assert!(found.iter().any(|per_s| *per_s >= 0.88 * 200.0), "{found:?}");
}

#[test]
#[ignore = "wants a quiet machine and two minutes: cargo test --release -p duel --test shapes -- --ignored"]
fn the_capacity_is_found_within_three_percent() {
    for (path, capacity) in [("/serial/5000", 200.0), ("/serial/1000", 1_000.0)] {
        let found = found_capacity(path, "60s", "p99<50ms,errors<0.1%");
        eprintln!("{path}: {found} of {capacity}");
        assert!((found / capacity - 1.0).abs() < 0.03, "{path}: {found}");
    }
}

/// Searches, holds the books of the search together, and answers what was found.
fn found_capacity(path: &str, time: &str, promises: &str) -> f64 {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url(path);
    let document = place.json(["run", &url, "--find-rate", promises, "-d", time, "-c", "16", "-t", "1"]);
    let search = &document["search"];
    let attempts = search["attempts"].as_array().unwrap();
    assert!(attempts.len() >= 4, "{search}");
    for attempt in attempts {
        let due = count(attempt, "due");
        let parts = ["ops", "failed", "in_flight", "unstarted", "shed"].map(|field| count(attempt, field));
        assert_eq!(parts.iter().sum::<u64>(), due, "{attempt}");
        let kept = attempt["outcome"] == "kept";
        let all_kept = attempt["figures"].as_array().unwrap().iter().all(|figure| figure["kept"] == true);
        assert_eq!(kept, all_kept && attempt["fell_behind"] == false, "{attempt}");
    }
    assert_eq!(document["targets"][0]["slots"], 0, "attempts are in no other figures");
    // Judged again from the archive it is the same.
    let mut again = place.json(["show", "last"]);
    assert_eq!(again["search"].take(), *search);
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("Rates tried") && shown.contains("p99<"), "{shown}");
    search["kept_per_s"].as_f64().unwrap_or(0.0)
}

#[test]
fn a_promise_that_is_never_kept_is_an_answer_too() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), ruler());
    // 30 ms are not within 20.
    let document =
        place.json(["run", &ruler.url("/delay/30000"), "--find-rate", "p50<20ms", "-d", "10s", "-c", "4", "-t", "1"]);
    assert_eq!(document["search"]["kept_per_s"], Value::Null);
    assert!(document["search"]["broken_per_s"].is_number(), "{}", document["search"]);
}

#[test]
fn a_target_without_answers_is_no_search() {
    let place = Place::new();
    let ruler = ruler();
    let done = place.duel(["run", &ruler.url("/status/500"), "--find-rate", "p99<50ms", "-d", "10s", "-c", "2", "-q"]);
    assert!(done.refused(1).contains("no request ended well"), "the status is an error");
}

#[test]
fn senseless_shapes_are_refused_in_a_sentence() {
    let place = Place::new();
    let url = "http://127.0.0.1:1/";
    for (args, words) in [
        (&["--stages", "10s"][..], "--stages: '10s' is no stage such as"),
        (&["--stages", "10s@1,10s@1c"], "not of both"),
        (&["--stages", "10s@0"], "no stage has any load"),
        (&["--stages", "1s@1", "-d", "5s"], "cannot be used with"),
        (&["--stages", "1s@1", "--rate", "5"], "cannot be used with"),
        (&["--stages", "1s@1", "-n", "5"], "--stages goes by time"),
        (&["--stages", "1s@1", "--think", "5ms"], "--think is a pause of a closed loop"),
        (&["--stages", "1s@1c", "-c", "5"], "the stages say how many"),
        (&["--stages", "1s@1c", "--deadline", "5ms"], "give a --rate"),
        (&["--deadline", "5ms"], "give a --rate"),
        (&["--deadline", "0", "--rate", "5"], "--deadline has to be longer than 0"),
        (&["--find-rate", "p99"], "--find-rate: 'p99' is no promise such as"),
        (&["--find-rate", "p99>5ms"], "is better <"),
        (&["--find-rate", "p99<5ms", "-n", "5"], "--find-rate goes by time"),
        (&["--find-rate", "p99<5ms", "-d", "5s"], "-d 10s at least"),
        (&["--find-rate", "p99<5ms", "--stages", "1s@1"], "cannot be used with"),
        (&["--find-rate", "p99<5ms", "--think", "1s"], "cannot be used with"),
    ] {
        let said = place.duel([&["run", url], args].concat()).refused(2);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    for option in [["--stages", "1s@1"], ["--find-rate", "p99<5ms"]] {
        let said = place.duel([&["http://127.0.0.1:1/", "http://127.0.0.1:2/"][..], &option].concat()).refused(2);
        assert!(said.contains("works on one target") && said.contains("duel run"), "{said}");
    }
    assert!(!place.archive().exists(), "bad usage leaves nothing behind");
}
