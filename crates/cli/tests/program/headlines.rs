//! What is told before any figure: a target that stopped answering, that fails requests, or that does not reach the rate. The
//! sentence, the page, the JSON document and the exit code say the same.

use crate::common::{Done, Place, Running};
use duel_ruler::{Config, Ruler};
use serde_json::Value;

const NOT_AS_ASKED: i32 = 1;

fn ruler() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

fn duel(place: &Place, args: &[&str]) -> Done {
    let mut command = place.command();
    command.args(args).arg("-q");
    Running::start(command).end()
}

fn last(place: &Place) -> Value {
    place.json(["show", "last"])
}

/// The first line of the report, the one headline of the document, and the page; the run is shown again as it was.
#[track_caller]
fn told(place: &Place, done: Done, kind: &str, first: &str) -> Value {
    let done = done.ended(NOT_AS_ASKED);
    assert!(done.stdout.starts_with(first), "{}", done.stdout);
    assert_eq!(place.duel(["show", "last"]).ok().stdout, done.stdout);
    let document = last(place);
    let [headline] = document["headlines"].as_array().unwrap().as_slice() else { panic!("{}", document["headlines"]) };
    assert_eq!(headline["kind"], kind, "{headline}");
    assert!(headline["text"].as_str().unwrap().starts_with(first.trim_end()), "{headline}");
    let page = place.path("page.html");
    place.duel(["report", "last", "--force", "-o", page.to_str().unwrap()]).ok();
    let page = std::fs::read_to_string(page).unwrap();
    let verdict = page.split_once("<h2>Verdict</h2>").unwrap().1;
    assert!(verdict.starts_with("<p class=\"call\"><span class=\"badge slower\">! "), "{}", &verdict[..200]);
    document
}

/// The time that a target lived is the time that its rate is over.
#[track_caller]
fn assert_lived(document: &Value, planned_s: f64) {
    let (died, target) = (&document["interruption"]["target-died"], &document["targets"][0]);
    let lived_s = target["elapsed_s"].as_f64().unwrap();
    assert!(0.0 < lived_s && lived_s < planned_s, "{target}");
    assert!(died["at_ns"].as_f64().unwrap() / 1e9 >= lived_s, "{died}");
    let rate_per_s = target["ops"].as_f64().unwrap() / lived_s;
    assert!((target["rate_per_s"].as_f64().unwrap() / rate_per_s - 1.0).abs() < 1e-3, "{target}");
}

#[test]
fn a_server_that_dies_before_the_end_of_a_short_run() {
    let place = Place::new();
    // Long before the end, however slow the machine is.
    let dying = Ruler::start(Config { refuse_after: Some(300), ..Config::default() }).unwrap();
    let url = format!("dying={}", dying.url("/delay/1000"));
    let done = duel(&place, &["run", &url, "-d", "6s", "-c", "4", "-t", "1"]);
    let document = told(&place, done, "target-died", "Target died: dying stopped answering after ");
    assert_lived(&document, 6.0);
}

#[test]
fn a_server_that_takes_requests_and_does_not_answer_them_any_more() {
    let (place, ruler) = (Place::new(), ruler());
    let url = format!("hangs={}", ruler.url("/stall-once/600000/300"));
    let done = duel(&place, &["run", &url, "-d", "2s", "-c", "2", "-t", "1", "--think", "5ms"]);
    let document = told(&place, done, "target-died", "Target died: hangs stopped answering after ");
    assert_lived(&document, 2.0);
    assert!(document["interruption"]["target-died"]["how"].as_str().unwrap().contains("not answered"), "{document}");
}

#[test]
fn a_hang_is_noticed_in_the_middle_of_a_slot() {
    let (place, ruler) = (Place::new(), ruler());
    // With this seed B comes first. Warm-up is over before it hangs, and two of these slots take longer than any test may.
    let b = ruler.url("/stall-once/6000000/3500");
    let more = ["-d", "60s", "--slot", "100s", "-c", "2", "-t", "1", "--think", "3ms", "--seed", "7"];
    let done = duel(&place, &[&[ruler.url("/").as_str(), &b], &more[..]].concat());
    told(&place, done, "target-died", "Target died: B stopped answering after ");
}

#[test]
fn a_server_that_was_silent_for_a_while_and_comes_back_has_not_died() {
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/stall-once/3000/100");
    // The stall begins in the load's time and lasts beyond it.
    let args = ["run", url.as_str(), "-d", "1s", "-c", "2", "-t", "1", "--think", "5ms", "--timeout", "1500ms"];
    let done = duel(&place, &args);
    let document = last(&place);
    assert_eq!((&document["status"], &document["interruption"]), (&"complete".into(), &Value::Null), "{}", done.stdout);
}

#[test]
fn requests_that_fail_are_told_before_any_speed() {
    let (place, ruler) = (Place::new(), ruler());
    let [a, b] = ["/errors/0", "/errors/20"].map(|path| ruler.url(path));
    let done = duel(&place, &[&a, &b, "-d", "4s", "-c", "2", "-t", "1"]);
    assert!(done.stdout.contains("Of the requests that succeed: "), "{}", done.stdout);
    let is_called_slow = |line: &str| line.starts_with("B is ") && line.contains("slower");
    assert!(!done.stdout.lines().any(is_called_slow), "{}", done.stdout);
    let document = told(&place, done, "failing", "B fails 20 % of its requests (status 500)\n");
    let share = document["headlines"][0]["share"].as_f64().unwrap();
    assert!((share - 0.2).abs() < 0.01 && document["status"] == "complete", "{document}");
    assert_eq!(document["targets"][1]["failed_share"].as_f64().map(|of| (of * 100.0).round()), Some(20.0));
    assert_eq!(document["targets"][0]["failed_share"], 0.0);
    for pair in document["pairs"].as_array().unwrap() {
        assert!(pair["call"] != "faster" && pair["call"] != "equivalent" && pair["headline"] == "failing", "{pair}");
    }
    let xml = place.duel(["export", "last", "--format", "junit"]).ok().stdout;
    assert!(xml.contains("B fails 20 % of its requests"), "{xml}");
    let line = place.duel(["check", "last", "--critical", "errors<1%"]).ended(2).stdout;
    assert!(line.starts_with("CRITICAL - B fails 20 % of its requests (status 500)"), "{line}");
    // Of one target alone it is no other.
    let done = duel(&place, &["run", &b, "-n", "200", "-c", "2", "-t", "1"]);
    told(&place, done, "failing", "A fails 20 % of its requests (status 500)\n");
}

#[test]
fn a_rate_that_is_not_reached_is_told_before_any_time() {
    let (place, ruler) = (Place::new(), ruler());
    // 200 a second at most, however fast the machine is.
    let url = ruler.url("/serial/5000");
    let done = duel(&place, &["run", &url, "--rate", "400", "-d", "2s", "-c", "4", "-t", "1"]);
    let document = told(&place, done, "rate-not-reached", "A answers ");
    let headline = &document["headlines"][0];
    assert!(headline["text"].as_str().unwrap().contains("/s of the 400/s that were asked for"), "{headline}");
    assert!(headline["share"].as_f64().unwrap() < 0.6, "{headline}");
}

#[test]
fn a_server_that_does_what_it_is_asked_for_has_no_headline() {
    let (place, ruler) = (Place::new(), ruler());
    let done = duel(&place, &["run", &ruler.url("/delay/1000"), "--rate", "50", "-d", "1s", "-c", "8", "-t", "1"]);
    assert_eq!(done.ok().code, Some(0));
    assert_eq!(last(&place)["headlines"], serde_json::json!([]));
}
