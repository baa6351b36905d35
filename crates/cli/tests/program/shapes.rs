//! Stages, deadlines and the search for a rate, on a server whose capacity is known.

use crate::common::{Place, measuring};
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
    assert_eq!(
        ruler.settled(crate::common::PATIENCE).requests,
        count(target, "ops") + 1,
        "the first contact is one, too"
    );
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
    let args = ["run", &url, "--rate", "300", "-d", "1s", "-c", "1", "-t", "1", "--deadline", "100ms"];
    // The rate that was asked for is not reached, which the exit code says too.
    let document = place.json_ended(args, 1);
    let target = &document["targets"][0];
    assert_eq!(count(target, "started") + count(target, "unstarted") + count(target, "shed"), 300);
    assert!(count(target, "shed") >= 150, "{target}");
    assert_eq!(
        ruler.settled(crate::common::PATIENCE).requests,
        count(target, "started") + 1,
        "what was shed was not sent"
    );
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
#[ignore = "wants a quiet machine and two minutes: cargo test --release -p duel --test program shapes -- --ignored"]
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

/// One clerk serves 2,000 per second, the other 1,000, at rulers of their own. Whatever else the machine does can only break
/// attempts of either, and so leave the answer open or make it lower: the best of three counts. A call for the slower one
/// would be wrong in any of them.
#[test]
fn two_known_capacities_are_told_apart() {
    let mut seen = Vec::new();
    while seen.len() < 3 && !seen.iter().any(|(_, call)| call == "slower") {
        let (ratio, call) = found_contest();
        assert_ne!(call, "faster");
        seen.push((ratio, call));
    }
    let best = seen.iter().find(|(_, call)| call == "slower");
    let (ratio, _) = best.unwrap_or_else(|| panic!("{seen:?}"));
    // The machine may give the faster one less than it could do.
    assert!((0.45..1.0).contains(ratio), "{ratio}");
}

/// Searches on both, holds the books of the searches together, and answers the ratio and the call.
fn found_contest() -> (f64, String) {
    let _alone = measuring();
    let (place, first, second) = (Place::new(), ruler(), ruler());
    let (a, b) = (format!("a={}", first.url("/serial/500")), format!("b={}", second.url("/serial/1000")));
    let document = place.json([&a, &b, "--find-rate", "errors<1%", "-d", "80s", "-c", "8", "-t", "1", "--seed", "1"]);
    assert_eq!(document["search"], Value::Null, "there is not one search");
    assert_eq!(document["pairs"].as_array().unwrap().len(), 0, "attempts are in no pairs");
    let searches = document["searches"].as_array().unwrap();
    assert_eq!(searches.iter().map(|it| it["target"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    for (search, capacity) in searches.iter().zip([2_000.0, 1_000.0]) {
        assert!(search["attempts"].as_array().unwrap().len() >= 4, "{search}");
        assert!(search["kept_per_s"].as_f64().unwrap_or(0.0) <= 1.06 * capacity, "{search}");
    }
    let contest = document["contests"][0].clone();
    // Judged again from the archive it is the same; the text and the page say it, and a check rests on it.
    let mut again = place.json(["show", "last"]);
    assert_eq!((again["contests"][0].take(), &again["searches"]), (contest.clone(), &document["searches"]));
    let shown = place.duel(["show", "last"]).ok().stdout;
    let said = contest["text"].as_str().unwrap();
    assert!(shown.replace("\n  ", " ").contains(said), "{said}: {shown}");
    assert!(shown.contains("a: Rates tried") && shown.contains("b: Rates tried"), "{shown}");
    let page = place.duel(["report", "last", "-o", "-"]).ok().stdout;
    assert!(page.contains("chart-search") && page.contains("Rates tried on b"));
    let checked = place.duel(["check", "last", "--critical", "rate>1500/s"]);
    if searches[1]["end"] == "found" {
        assert_eq!(checked.code, Some(2), "{}", checked.stdout);
        assert!(checked.stdout.starts_with("CRITICAL - ") && checked.stdout.contains("b rate "), "{}", checked.stdout);
    }
    let slower = place.duel(["check", "last", "--critical", "slower than a by 20%"]);
    let call = contest["call"].as_str().unwrap().to_owned();
    let end = |field: &str| contest[field].as_f64().map_or(f64::NAN, |ratio| 1.0 / ratio);
    let code = match (call.as_str(), end("high"), end("low")) {
        ("slower", least, _) if least > 1.2 => 2,
        ("slower", _, most) if most <= 1.2 => 0,
        _ => 3,
    };
    assert_eq!(slower.code, Some(code), "{}", slower.stdout);
    let why = place.duel(["why", "last"]).refused(2);
    assert!(why.contains("changed"), "{why}");
    (contest["ratio"].as_f64().unwrap_or(f64::NAN), call)
}

/// Both go through the stages twice. One of them answers after 4 ms, the other after 40 ms.
#[test]
fn stages_of_two_targets_are_told_side_by_side() {
    let _alone = measuring();
    let (place, first, second) = (Place::new(), ruler(), ruler());
    let (a, b) = (format!("a={}", first.url("/delay/4000")), format!("b={}", second.url("/delay/40000")));
    let stages = ["--stages", "300ms@100,400ms@100..300,100ms@0", "-c", "16", "-t", "1", "--seed", "1"];
    let document = place.json([&[a.as_str(), b.as_str()][..], &stages].concat());
    for (target, ruler) in document["targets"].as_array().unwrap().iter().zip([&first, &second]) {
        // One in which the generator stood still is not judged, and told apart.
        assert_eq!(count(target, "slots") + count(target, "slots_left_out"), 2);
        let stages = target["stages"].as_array().unwrap();
        assert_eq!(stages.iter().map(|stage| count(stage, "due")).collect::<Vec<_>>(), [60, 160, 0]);
        assert_eq!(stages[0]["due_per_s"], 100.0, "over both courses");
        // Beside the requests of the courses: the first contact, and one for each new connection.
        let requests = ruler.settled(crate::common::PATIENCE).requests;
        assert_eq!(requests, count(target, "started") + 1 + 2 * 16);
    }
    let ratios = document["stage_ratios"].as_array().unwrap();
    assert_eq!(ratios.len(), 3 * 3);
    let of = |place: u64, metric: &str| {
        ratios.iter().find(|it| it["place"] == place && it["metric"] == metric).unwrap_or_else(|| panic!("{ratios:?}"))
    };
    let median = of(0, "response_p50");
    let pairs = median["pairs"].as_u64().unwrap();
    let slots = document["targets"].as_array().unwrap().iter().map(|target| count(target, "slots"));
    assert_eq!(median["target"], "b");
    assert!(pairs > 0 && Some(pairs) <= slots.min(), "{document:#}");
    // Ten, were there nothing but the delays. What a busy machine adds to both makes them more alike, and what it adds to one
    // of them alone, more than the delays themselves, would be needed to get out of these bounds.
    assert!((1.5..25.0).contains(&median["ratio"].as_f64().unwrap()), "{median}");
    assert_eq!(median["low"], Value::Null, "two pairs make no interval");
    assert_eq!(of(2, "response_p50")["ratio"], Value::Null, "nothing was due");
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("b over a, stage by stage") && shown.contains("300 ms at 100/s"), "{shown}");
    assert!(shown.replace('\n', " ").contains("that takes 6 pairs (-d 9600ms)"), "{shown}");
    let page = place.duel(["report", "last", "-o", "-"]).ok().stdout;
    assert!(page.contains("Rate through all stages") && page.contains("stage by stage"));
    let again = place.json(["rerun", "last"]);
    assert_eq!(again["stage_ratios"].as_array().unwrap().len(), 9);
}

/// Six pairs make intervals: of the whole course, and of each stage.
#[test]
fn stages_have_intervals_where_there_is_time_for_six_pairs() {
    let _alone = measuring();
    let (place, first, second) = (Place::new(), ruler(), ruler());
    let (a, b) = (format!("a={}", first.url("/delay/2000")), format!("b={}", second.url("/delay/30000")));
    let stages = ["--stages", "200ms@100,200ms@2c"].map(str::to_owned);
    let said = place.duel([&a, &b, &stages[0], &stages[1]]).refused(2);
    assert!(said.contains("not of both"), "{said}");
    let document = place.json([&a, &b, "--stages", "200ms@1c,200ms@4c", "-d", "12s", "-t", "1", "--seed", "1"]);
    let ratios = document["stage_ratios"].as_array().unwrap();
    assert!(ratios.iter().all(|it| it["pairs"].as_u64().unwrap() >= 6 || it["metric"] == "response_p99"), "{ratios:?}");
    let median = ratios.iter().find(|it| it["metric"] == "response_p50").unwrap();
    assert!(median["low"].as_f64().unwrap() > 1.5, "{median}");
    assert_eq!(document["pairs"][0]["call"], "slower");
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
        (&["--stages", "1s@1", "-d", "5s"], "leave -d out"),
        (&["--stages", "1s@1", "--rate", "5"], "cannot be used with"),
        (&["--stages", "1s@1", "-n", "5"], "--stages goes by time"),
        (&["--stages", "1s@1", "--think", "5ms"], "--think is a pause of a closed loop"),
        (&["--stages", "1s@1c", "-c", "5"], "the stages say how many"),
        (&["--stages", "1s@1c", "--deadline", "5ms"], "give a --rate"),
        (&["--deadline", "5ms"], "give a --rate"),
        (&["--deadline", "0", "--rate", "5"], "--deadline has to be longer than 0"),
        (&["--find-rate", "p99"], "--find-rate: 'p99' is no promise such as"),
        (&["--find-rate", "p99>5ms"], "is better when it is lower"),
        (&["--find-rate", "p99<5ms", "-n", "5"], "--find-rate goes by time"),
        (&["--find-rate", "p99<5ms", "-d", "5s"], "-d 10s at least"),
        (&["--find-rate", "p99<5ms", "--stages", "1s@1"], "cannot be used with"),
        (&["--find-rate", "p99<5ms", "--think", "1s"], "cannot be used with"),
    ] {
        let said = place.duel([&["run", url], args].concat()).refused(2);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    for (args, words) in [
        (&["--stages", "1s@1", "--slot", "1s"][..], "--slot has no meaning with --stages"),
        (&["--find-rate", "p99<5ms", "--slot", "1s"], "--slot has no meaning with --find-rate"),
        (&["--stages", "10s@1", "-d", "39s"], "goes through the stages twice, which takes 40s"),
        (&["--find-rate", "p99<5ms", "-d", "19s"], "-d 20s at least"),
        (&["--find-rate", "p99<5ms", "--why"], "leave --stages and --find-rate out"),
        (&["--stages", "1s@1", "--why"], "leave --stages and --find-rate out"),
        (&["--stages", "1s@1", "-c", "1,2"], "leave the factors out"),
    ] {
        let two = ["http://127.0.0.1:1/", "http://127.0.0.1:2/"];
        let said = place.duel([&two, args].concat()).refused(2);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert!(!place.archive().exists(), "bad usage leaves nothing behind");
}
