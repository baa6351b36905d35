//! Ctrl-C, and targets that die: what was measured is printed and kept, and the exit code says that it is not all.

use crate::common::{Done, Place, Running, nginx, wait_until};
use duel_ruler::{Config, Ruler};
use rustix::process::Signal;
use serde_json::Value;

const INTERRUPTED: i32 = 130;
const COULD_NOT_RUN: i32 = 1;
/// Longer than any test waits: a load that ends by itself was not interrupted.
const FOR_EVER: &str = "600s";

fn ruler() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

fn start(place: &Place, args: &[&str]) -> Running {
    let mut command = place.command();
    command.args(args).arg("-q");
    Running::start(command)
}

fn last(place: &Place) -> Value {
    place.json(["show", "last"])
}

/// Waits until so many slots of each target are in the archive, which can be read meanwhile.
fn wait_for_slots(place: &Place, slots: u64) {
    wait_until("slots in the archive", || {
        let done = place.duel(["show", "last", "--json"]);
        done.code == Some(0)
            && done.json()["targets"].as_array().unwrap().iter().all(|target| target["slots"].as_u64() >= Some(slots))
    });
}

/// Ended by the user, with something to show.
fn assert_interrupted(document: &Value) {
    assert_eq!((&document["status"], &document["interruption"]), (&"interrupted".into(), &"user".into()));
    for target in document["targets"].as_array().unwrap() {
        assert!(target["ops"].as_u64() > Some(0), "{target}");
        assert_eq!(target["failed"], serde_json::json!({}), "what was cut did not fail");
    }
}

#[test]
fn once_during_a_run() {
    let (place, ruler) = (Place::new(), ruler());
    let running = start(&place, &["run", &ruler.url("/delay/1000"), "-d", FOR_EVER, "-c", "4"]);
    wait_until("requests", || ruler.truth().requests > 200);
    running.signal(Signal::INT);
    let done = running.end().ended(INTERRUPTED);
    assert_eq!(done.stderr, "");
    assert!(done.stdout.contains("Interrupted by the user"), "{}", done.stdout);
    assert!(done.stdout.contains(", interrupted, seed"), "{}", done.stdout);
    assert_interrupted(&last(&place));
    assert_eq!(place.duel(["show", "last"]).ok().stdout, done.stdout, "kept as it was shown");
    assert!(place.duel(["list"]).ok().stdout.contains("  interrupted  "));
    // Every request that the server answered is in the books, but for those that were cut.
    let (document, truth) = (last(&place), ruler.settled(crate::common::PATIENCE));
    let started = document["targets"][0]["started"].as_u64().unwrap();
    assert_eq!(started + 1, truth.requests, "and the first contact");
}

#[test]
fn once_during_a_comparison() {
    let (place, ruler) = (Place::new(), ruler());
    let urls = [ruler.url("/delay/1000"), ruler.url("/delay/8000")];
    // `terminate` does the same as Ctrl-C: that is what a service manager or a CI sends.
    for signal in [Signal::INT, Signal::TERM] {
        let more = ["-d", FOR_EVER, "-c", "4", "--slot", "100ms", "--no-early-stop", "--json"];
        let running = start(&place, &[&[urls[0].as_str(), &urls[1]], &more[..]].concat());
        wait_until("the run in the archive", || place.duel(["show", "last"]).code == Some(0));
        // Slots in which a busy machine let the generator stand still are not judged.
        wait_for_slots(&place, 16);
        running.signal(signal);
        let document = running.end().ended(INTERRUPTED).json();
        assert_interrupted(&document);
        // Where a busy machine weakens the figures the call is withheld; the estimate is there.
        let pair = &document["pairs"][0];
        assert!(pair["ratio"].as_f64().unwrap() < 0.9, "what was measured is judged: {pair}");
        assert_eq!(last(&place), document, "kept as it was shown");
        // The next round reads only its own run.
        std::fs::remove_file(place.archive()).unwrap();
    }
}

#[test]
fn once_before_anything_was_measured() {
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/never");
    for args in [&["run", url.as_str()][..], &[url.as_str(), &url]] {
        let before = ruler.truth().requests;
        let running = start(&place, args);
        wait_until("the first contact", || ruler.truth().requests > before);
        running.signal(Signal::INT);
        let sentence = running.end().refused(INTERRUPTED);
        assert_eq!(sentence, "interrupted before anything was measured");
    }
}

#[test]
fn once_while_the_cause_is_sought() {
    let (place, ruler) = (Place::new(), ruler());
    let (fast, slow) = (ruler.url("/delay/200"), ruler.url("/delay/4000"));
    let running = start(&place, &[&fast, &slow, "-d", "2s", "-c", "2", "--why", "--slot", "80ms", "--json"]);
    // Over one connection each: that is the first probe.
    wait_until("the first probe", || {
        let path = place.archive();
        path.exists() && probes_kept(&path) > 0
    });
    running.signal(Signal::INT);
    let document = running.end().ended(INTERRUPTED).json();
    assert_eq!(document["pairs"][0]["call"], "slower", "the comparison itself was complete");
    let unavailable = document["probes"].as_array().unwrap().iter().any(|probe| probe["unavailable"] == "interrupted");
    assert!(unavailable, "{}", document["probes"]);
    assert_eq!(last(&place), document);
}

/// Rows of slots in the archive that belong to probes; 0 where it has no such table yet.
fn probes_kept(archive: &std::path::Path) -> i64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(connection) = rusqlite::Connection::open_with_flags(archive, flags) else { return 0 };
    connection.query_row("select count(*) from slots where role like '%probe%'", [], |row| row.get(0)).unwrap_or(0)
}

/// The terminal that it was started from goes away.
#[test]
#[cfg(target_os = "linux")]
fn a_hangup_ends_a_comparison_as_ctrl_c_does() {
    let (place, ruler) = (Place::new(), ruler());
    let urls = [ruler.url("/delay/1000"), ruler.url("/delay/1500")];
    // Whatever the test was started with.
    let mut command = place.command_within(&["env", "--default-signal=HUP"]);
    command.args(&urls).args(["-d", FOR_EVER, "-c", "4", "--slot", "100ms", "--no-early-stop", "--json", "-q"]);
    let running = Running::start(command);
    wait_until("the run in the archive", || place.duel(["show", "last"]).code == Some(0));
    wait_for_slots(&place, 8);
    running.signal(Signal::HUP);
    let document = running.end().ended(INTERRUPTED).json();
    assert_interrupted(&document);
    assert!(document["pairs"][0]["ratio"].is_number(), "what was measured is judged: {document:#}");
    assert_eq!(last(&place), document);
}

#[test]
#[cfg(target_os = "linux")]
fn under_nohup_a_hangup_ends_nothing() {
    let (place, ruler) = (Place::new(), ruler());
    let mut command = place.command_within(&["nohup"]);
    command.args(["run", &ruler.url("/delay/1000"), "-d", FOR_EVER, "-c", "4", "-q"]);
    let mut running = Running::start(command);
    wait_until("requests", || ruler.truth().requests > 200);
    running.signal(Signal::HUP);
    let until = ruler.truth().requests + 1_000;
    wait_until("more requests", || running.is_over() || ruler.truth().requests > until);
    assert!(!running.is_over());
    running.signal(Signal::TERM);
    running.end().ended(INTERRUPTED);
    assert_interrupted(&last(&place));
}

#[test]
fn twice_ends_at_once() {
    let (place, ruler) = (Place::new(), ruler());
    let urls = [ruler.url("/delay/1000"), ruler.url("/delay/1500")];
    let running = start(&place, &[&urls[0], &urls[1], "-d", FOR_EVER, "-c", "2", "--slot", "100ms", "--no-early-stop"]);
    wait_until("the run in the archive", || place.duel(["show", "last"]).code == Some(0));
    wait_for_slots(&place, 4);
    // Somebody else is writing to the archive, so that a clean end takes its time.
    let blocker = rusqlite::Connection::open(place.archive()).unwrap();
    blocker.execute_batch("begin immediate").unwrap();
    running.signal(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal(Signal::INT);
    let done = running.end().ended(INTERRUPTED);
    assert_eq!(done.stdout, "", "that was not the clean end");
    blocker.execute_batch("rollback").unwrap();
    drop(blocker);
    let document = last(&place);
    assert_eq!((&document["status"], &document["interruption"]), (&"interrupted".into(), &"unfinished".into()));
    assert!(document["targets"][0]["slots"].as_u64() >= Some(4), "the slots that were over are kept");
    assert!(place.duel(["show", "last"]).ok().stdout.contains("Unfinished, or still going on"));
}

fn assert_died(place: &Place, done: Done) {
    let done = done.ended(COULD_NOT_RUN);
    assert!(done.stdout.contains("Target died: dying stopped answering after"), "{}", done.stdout);
    let document = last(place);
    let died = &document["interruption"]["target-died"];
    assert_eq!((&document["status"], &died["target"]), (&"interrupted".into(), &"dying".into()), "{document}");
    assert!(died["at_ns"].as_u64() > Some(0) && !died["how"].as_str().unwrap().is_empty(), "{died}");
    for target in document["targets"].as_array().unwrap() {
        assert!(target["ops"].as_u64() > Some(0), "what was measured before is kept: {target}");
    }
    assert_eq!(place.duel(["show", "last"]).ok().stdout, done.stdout);
}

#[test]
fn a_target_that_dies_ends_the_comparison() {
    let (place, ruler) = (Place::new(), ruler());
    // It answers a millisecond after each request, two at a time: dead after 3 s of load, and warm-up takes 1.3 s.
    let dying = Ruler::start(Config { refuse_after: Some(4_000), ..Config::default() }).unwrap();
    let (healthy, dying) = (ruler.url("/delay/1000"), format!("dying={}", dying.url("/delay/1000")));
    let args = [&healthy, &dying, "-d", "20s", "-c", "2", "--slot", "100ms", "--no-early-stop"];
    assert_died(&place, start(&place, &args).end());
}

#[test]
fn a_target_that_dies_ends_a_run_of_one_target() {
    let place = Place::new();
    let dying = Ruler::start(Config { refuse_after: Some(500), ..Config::default() }).unwrap();
    let args = ["run", &format!("dying={}", dying.url("/delay/1000")), "-n", "1000000000", "-c", "4"];
    assert_died(&place, start(&place, &args).end());
}

#[test]
fn a_killed_nginx_ends_the_comparison() {
    let (place, ruler) = (Place::new(), ruler());
    let mut server = nginx(&place, "nginx", "server { listen 127.0.0.1:{1}; return 200 hello; }");
    let dying = format!("dying={}", server.http(1, "/"));
    let args = [&ruler.url("/"), dying.as_str(), "-d", FOR_EVER, "-c", "2", "--slot", "100ms", "--no-early-stop"];
    let running = start(&place, &args);
    wait_until("the run in the archive", || place.duel(["show", "last"]).code == Some(0));
    wait_for_slots(&place, 4);
    server.kill();
    assert_died(&place, running.end());
}
