//! How many descriptors a plan asks for, held against what real runs have open.

use crate::common::{Place, Recorder, Ruler, Running, wait_until};

/// What is asked for beside what a plain run has open: eleven for telemetry, nine that are open for a moment, and the loops of
/// one more session (here at most two).
const SPARE: u64 = 22;

/// `duel ARGS -q` where no more than `limit` descriptors may be open.
fn limited(place: &Place, args: &[&str], limit: u64) -> Running {
    let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\" -q");
    let mut command = place.command_within(&["sh", "-c", &script]);
    command.args(args);
    Running::start(command)
}

/// What a plan asks for, by its refusal where there is next to nothing.
fn asked_for(place: &Place, args: &[&str]) -> u64 {
    let sentence = limited(place, args, 12).end().refused(1);
    let (count, rest) = sentence.split_once(' ').unwrap();
    assert!(rest.starts_with("descriptors are needed, but this process may open 12 at most"), "{sentence}");
    count.parse().unwrap()
}

/// The most descriptors that a process was seen with until it ended, and how it did.
fn most_open(mut running: Running) -> (u64, crate::common::Done) {
    let folder = format!("/proc/{}/fd", running.pid());
    let mut most = 0;
    wait_until("the end of the run", || {
        most = most.max(std::fs::read_dir(&folder).map_or(0, |fds| fds.count() as u64));
        running.is_over()
    });
    (most, running.end())
}

#[test]
fn what_is_asked_for_is_what_is_opened_and_a_little_more() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (one, two) = (ruler.url("/delay/1000"), format!("b={}", ruler.url("/delay/1100")));
    let comparison = [&one, two.as_str(), "-d", "3s", "--slot", "60ms", "-t", "2"];
    for args in [
        &["run", &one, "-n", "2000", "-c", "1", "-t", "1"][..],
        &["run", &one, "-n", "30000", "-c", "200", "-t", "2"],
        &[&comparison[..], &["-c", "40"]].concat(),
        &[&comparison[..], &["-c", "40", "--no-keepalive"]].concat(),
        &[&comparison[..], &["-c", "5", "--local", "A", "--local", "b"]].concat(),
        &["run", &one, "-d", "3s", "-c", "30,2", "-t", "2"],
    ] {
        let asked = asked_for(&place, args);
        // With just that much it works.
        let (most, done) = most_open(limited(&place, args, asked));
        assert_eq!(done.ok().stderr, "", "{args:?}");
        assert!(most <= asked && asked <= most + SPARE, "{args:?}: {asked} asked for, {most} open");
        let run = place.json(["show", "last"]);
        for target in run["targets"].as_array().unwrap() {
            assert_eq!(target["failed"], serde_json::json!({}), "{args:?}");
        }
    }
}

#[test]
fn a_single_connection_fits_into_the_smallest_limits_that_are_used() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/size/1");
    let done = limited(&place, &["run", &url, "-n", "20", "-c", "1", "--metrics", "0"], 64).end().ok();
    assert!(done.stdout.contains("20"), "{}", done.stdout);
}

/// The origins behind redirects are known once the first contact has been there.
#[test]
fn connections_to_where_redirects_lead_are_asked_for_too() {
    let (place, there) = (Place::new(), Ruler::start(&[]));
    let elsewhere = there.url("/delay/1000").replace("127.0.0.1", "localhost");
    let here = Recorder::start(format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"));
    let url = here.url("/");
    // With many workers: each has a bell of its own, by which it hears where redirects lead.
    let args = ["run", &url, "-n", "4000", "-c", "60", "-t", "6", "--follow-each", "1"];
    // Enough for one origin, and not for two.
    let sentence = limited(&place, &args, 130).end().refused(1);
    let asked: u64 = sentence.split_once(' ').unwrap().0.parse().unwrap();
    assert!(asked > 130, "{sentence}");
    let (most, done) = most_open(limited(&place, &args, asked));
    done.ok();
    // What the six workers hold (a loop and the two ends of a bell) is asked for once more: for those that follow them.
    assert!(most > 130 && most <= asked && asked <= most + SPARE + 6 * 3, "{asked} asked for, {most} open");
}
