//! A generator that stood still does not blame the target, and a server that stood still is blamed.

use crate::common::{Place, Running, measuring, wait_until};
use duel_ruler::{Config, Ruler};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// How long the generator is stopped for.
const STOPPED: Duration = Duration::from_secs(1);
const STOPPED_MS: f64 = 1000.0;

fn ruler() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

fn start(place: &Place, args: &[&str]) -> Running {
    let mut command = place.command();
    command.args(args).args(["-q", "--json"]);
    Running::start(command)
}

fn stop_for_a_while(running: &Running) {
    running.signal(Signal::STOP);
    std::thread::sleep(STOPPED);
    running.signal(Signal::CONT);
}

fn doubts<'d>(document: &'d Value, target: &str) -> Vec<&'d str> {
    let doubts = document["doubts"].as_array().unwrap().iter();
    let own = doubts.filter(|doubt| doubt["id"] == "generator-stood-still" && doubt["target"] == target);
    own.map(|doubt| doubt["text"].as_str().unwrap()).collect()
}

#[test]
fn the_slots_in_which_the_generator_was_stopped_are_not_judged() {
    // Beside those that measure it might get to stopping after the run's end.
    let _alone = measuring();
    let (place, ruler) = (Place::new(), ruler());
    let urls = [ruler.url("/delay/2000"), ruler.url("/delay/2001")];
    let more = ["-d", "12s", "--slot", "300ms", "-c", "2", "-t", "1", "--no-early-stop"];
    let running = start(&place, &[&[urls[0].as_str(), &urls[1]], &more[..]].concat());
    wait_until("slots of both targets", || {
        let done = place.duel(["show", "last", "--json"]);
        done.code == Some(0)
            && done.json()["targets"].as_array().unwrap().iter().all(|target| target["slots"].as_u64() >= Some(2))
    });
    // Between two slots it does no harm; so it is stopped more than once.
    for _ in 0..3 {
        stop_for_a_while(&running);
        std::thread::sleep(Duration::from_millis(170));
    }
    let document = running.end().ok().json();
    let targets = document["targets"].as_array().unwrap();
    let left_out: u64 = targets.iter().map(|target| target["slots_left_out"].as_u64().unwrap()).sum();
    assert!(left_out > 0, "{document}");
    for target in targets.iter().filter(|target| target["slots_left_out"].as_u64() > Some(0)) {
        let told = doubts(&document, target["name"].as_str().unwrap());
        assert!(told.iter().any(|text| text.contains("stood still") && text.contains("left out")), "{told:?}");
    }
    for target in targets {
        let longest_ms = target["response_ms"]["max"].as_f64().unwrap();
        assert!(longest_ms < 0.9 * STOPPED_MS, "the second was the generator's: {target}");
    }
    assert_eq!(place.json(["show", "last"]), document, "what was kept says the same");
}

#[test]
fn a_run_of_one_target_tells_that_the_longest_times_are_its_own() {
    let (place, ruler) = (Place::new(), ruler());
    let running = start(&place, &["run", &ruler.url("/delay/2000"), "-d", "4s", "-c", "2", "-t", "1"]);
    wait_until("requests", || ruler.truth().requests > 100);
    stop_for_a_while(&running);
    let document = running.end().ok().json();
    let stood_still = &document["targets"][0]["audit"]["stood_still"];
    assert!(stood_still["longest_ms"].as_f64() >= Some(0.9 * STOPPED_MS), "{stood_still}");
    let told = doubts(&document, "A");
    assert!(told.iter().any(|text| text.contains("response times of up to that long are its own")), "{told:?}");
}

#[test]
fn a_server_that_stalls_is_blamed() {
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/stall-once/1000/100");
    let args = ["run", url.as_str(), "-d", "3s", "-c", "2", "-t", "1", "--think", "5ms"];
    let document = start(&place, &args).end().ok().json();
    let target = &document["targets"][0];
    assert!(target["response_ms"]["max"].as_f64() >= Some(STOPPED_MS), "{target}");
    let ours_ms = target["audit"]["stood_still"]["total_ms"].as_f64().unwrap();
    assert!(ours_ms < 0.5 * STOPPED_MS, "a wait for answers is no standstill: {target}");
}
