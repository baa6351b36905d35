//! Where results go: into the terminal, a pipe, a file; and where they cannot go, that is said and they are kept.

use crate::common::{Done, Place, Ruler, Running, wait_until};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

const COULD_NOT_RUN: i32 = 1;
const UNKNOWN: i32 = 3;

/// What is said of a result that could not be written, before why.
const CANNOT: &str = "cannot write the result to standard output: ";

/// `duel ARGS` with the shell's redirections.
fn redirected(place: &Place, args: &[&str], redirections: &str) -> Done {
    Running::start(redirected_command(place, args, redirections)).end()
}

fn redirected_command(place: &Place, args: &[&str], redirections: &str) -> std::process::Command {
    let mut command = place.command_within(&["sh", "-c", &format!("exec \"$0\" \"$@\" {redirections}")]);
    command.args(args);
    command
}

/// A place with a run in its archive.
fn place_with_a_run() -> Place {
    let place = Place::new();
    place.duel(["run", "null:", "-n", "20", "-q"]).ok();
    place
}

/// What is wrong with standard output, and what is said of it.
const BROKEN: [(&str, &str); 3] = [
    (">&-", "it was closed when duel was started"),
    (">/dev/full", "No space left on device"),
    // Open, and not for writing.
    ("1</dev/null", "Bad file descriptor"),
];

#[test]
fn a_result_that_cannot_be_written_is_said_whatever_printed_it() {
    let place = place_with_a_run();
    for (redirection, why) in BROKEN {
        for args in [
            &["list"][..],
            &["list", "--json"],
            &["show", "last"],
            &["diff", "last", "last"],
            &["export", "last", "-f", "csv"],
            &["report", "last", "-o", "-"],
            &["plan", "run", "http://a.example/"],
            &["facts"],
            &["man"],
            &["completions", "bash"],
            &["--help"],
            &["run", "--help"],
            &["version"],
            &["hey", "-help"],
        ] {
            let sentence = redirected(&place, args, redirection).ended(COULD_NOT_RUN).sentence();
            assert_eq!(sentence, format!("{CANNOT}{why}"), "{args:?} {redirection}");
        }
        let done = redirected(&place, &["check", "last", "--critical", "p99<1h"], redirection);
        assert_eq!(done.ended(UNKNOWN).sentence(), format!("{CANNOT}{why}"), "check {redirection}");
    }
}

#[test]
fn a_run_whose_result_cannot_be_written_is_kept_and_the_sentence_says_how_to_see_it() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    for (redirection, why) in BROKEN {
        for more in [&[][..], &["--json"]] {
            let url = ruler.url("/");
            let args = [&["run", &url, "-n", "20", "-c", "2", "-q"], more].concat();
            let sentence = redirected(&place, &args, redirection).ended(COULD_NOT_RUN).sentence();
            let run = place.json(["show", "last"]);
            assert_eq!((&run["status"], &run["targets"][0]["ops"]), (&"complete".into(), &20.into()));
            let id = run["run"].as_str().unwrap();
            let said = format!("{CANNOT}{why}; the run is kept, and shown by: duel show {id}");
            assert_eq!(sentence, said, "{redirection}");
        }
        let sentence = redirected(&place, &["run", "null:", "-n", "20", "-q", "--no-archive"], redirection)
            .ended(COULD_NOT_RUN)
            .sentence();
        assert_eq!(sentence, format!("{CANNOT}{why}"), "there is nothing to be shown");
    }
}

#[test]
fn what_hey_cannot_print_is_kept_where_that_was_asked_for() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let archive = place.archive();
    for (redirection, why) in BROKEN {
        for more in [&[][..], &["-o", "csv"]] {
            let begin = ["hey", "-n", "20", "-c", "2", "-archive", archive.to_str().unwrap()];
            let url = ruler.url("/");
            let args = [&begin, more, &[url.as_str()]].concat();
            let done = redirected(&place, &args, redirection).ended(COULD_NOT_RUN);
            assert_eq!(done.sentence(), format!("{CANNOT}{why}"), "{args:?}");
            assert_eq!(place.json(["show", "last"])["status"], "complete");
        }
    }
    assert_eq!(place.json(["list"]).as_array().unwrap().len(), 2 * BROKEN.len());
}

#[test]
fn a_result_that_nobody_wants_to_read_is_no_error() {
    let place = place_with_a_run();
    for redirection in [">/dev/null", "1<>/dev/null", "| true"] {
        for args in [&["list"][..], &["show", "last"], &["--help"], &["run", "null:", "-n", "20", "-q"]] {
            assert_eq!(redirected(&place, args, redirection).ok().stderr, "", "{args:?} {redirection}");
        }
    }
    // Nor does a reader that has gone away change what the exit code tells of the run.
    let ruler = Ruler::start(&[]);
    // A generator that is not busy: what it measures is the server's.
    place.duel(["run", &ruler.url("/delay/1000"), "-n", "100", "-c", "1", "-q"]).ok();
    let mut command = place.command_within(&["bash", "-c", "\"$0\" \"$@\" | true; exit ${PIPESTATUS[0]}"]);
    command.args(["check", "last", "--critical", "p50<1ns"]);
    assert_eq!(Running::start(command).end().ended(2).stderr, "");
}

/// A socket or an archive that got the number of a standard stream would get what is meant for that.
#[test]
fn streams_that_are_closed_leave_their_numbers_to_nobody() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/delay/1000");
    let args = ["run", &url, "-n", "2000", "-c", "2", "-t", "1", "--metrics", "0"];
    let mut command = redirected_command(&place, &args, "<&- >&- 2>&-");
    let mut child = command.spawn().unwrap();
    let opened = || -> Vec<PathBuf> {
        (0..3).filter_map(|number| std::fs::read_link(format!("/proc/{}/fd/{number}", child.id())).ok()).collect()
    };
    wait_until("the run in the archive", || place.duel(["show", "last"]).code == Some(0));
    assert_eq!(opened(), vec![PathBuf::from("/dev/null"); 3]);
    assert_eq!(child.wait().unwrap().code(), Some(COULD_NOT_RUN));
    assert_eq!(place.json(["show", "last"])["targets"][0]["ops"], 2000);
    assert!(place.archive().metadata().unwrap().size() > 0);
}
