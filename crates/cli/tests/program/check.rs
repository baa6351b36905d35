//! `duel check` on the real binary: the line, the exit code, and JUnit XML.

use crate::common::{Place, Ruler, Running, free_port, measuring};

/// The words before the performance data, and the performance data as `(label, value;warn;crit;min;max)`.
fn parts(line: &str) -> (String, Vec<(String, String)>) {
    let line = line.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "one line: {line}");
    let (text, data) = line.split_once(" | ").unwrap_or((line, ""));
    assert!(!data.contains('|'), "{line}");
    // 'label'=value[UOM];[warn];[crit];[min];[max], separated by spaces; labels are quoted and may hold spaces.
    let mut found = Vec::new();
    let mut rest = data;
    while let Some(quoted) = rest.strip_prefix('\'') {
        let (label, after) = quoted.split_once("'=").unwrap();
        let (value, next) = after.split_once(' ').unwrap_or((after, ""));
        let fields: Vec<&str> = value.split(';').collect();
        assert!(fields.len() <= 5 && !fields[0].is_empty(), "{value}");
        let number = fields[0].trim_end_matches(['s', '%']);
        assert!(number == "U" || number.parse::<f64>().is_ok_and(|n| n >= 0.0), "{value}");
        found.push((label.to_owned(), value.to_owned()));
        rest = next;
    }
    assert_eq!(rest, "", "{line}");
    (text.to_owned(), found)
}

fn value<'a>(data: &'a [(String, String)], label: &str) -> &'a str {
    &data.iter().find(|(found, _)| found == label).unwrap_or_else(|| panic!("{label}: {data:?}")).1
}

#[test]
fn a_target_that_keeps_its_promises_is_ok() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/delay/2000");
    let args = ["check", &url, "-n", "200", "-c", "2", "-t", "1"];
    let limits =
        ["--critical", "errors<1%", "--critical", "p50<30s", "--warning", "p50<20s", "--warning", "rate>0.1/s"];
    let done = place.duel(args.iter().chain(&limits)).ended(0);
    assert_eq!(done.stderr, "", "no progress where nobody looks");
    let (text, data) = parts(&done.stdout);
    assert!(text.starts_with("OK - ") && text.contains("errors 0 %") && text.contains("p50 "), "{text}");
    assert_eq!(value(&data, "errors"), "0%;;1;0;100");
    assert!(value(&data, "p50").ends_with("s;20;30;0"), "{data:?}");
    assert!(value(&data, "rate").ends_with(";0.1:;;0"), "{data:?}");
    let labels: Vec<&str> = data.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["p50", "p99", "errors", "rate"]);
    // The run is in the archive, and can be held against other thresholds.
    let again = place.duel(["check", "last", "--critical", "p50<1ms", "--warning", "p50<1s"]).ended(2);
    let (text, again) = parts(&again.stdout);
    assert!(text.starts_with("CRITICAL - p50 ") && text.contains("(critical: p50<1ms"), "{text}");
    assert_eq!(value(&again, "p50").split(';').next(), value(&data, "p50").split(';').next());
    let (text, _) = parts(&place.duel(["check", "last", "--warning", "p50<1ms"]).ended(1).stdout);
    assert!(text.starts_with("WARNING - "), "{text}");
    let (text, _) = parts(&place.duel(["check", "localhost", "--warning", "p50<1ms"]).ended(3).stdout);
    assert!(text.contains("'localhost' is taken for a run, since addresses begin with http://"), "{text}");
    // A document that cannot be written is not told as OK on the line and as UNKNOWN in the exit code.
    let done = place.duel(["check", "last", "--critical", "p50<30s", "--junit", "no/such/folder.xml"]).ended(3);
    assert!(done.stdout.starts_with("UNKNOWN - ") && done.stdout.lines().count() == 1, "{}", done.stdout);
    // 200 requests do not tell the 99.9th percentile.
    let (text, _) = parts(&place.duel(["check", "last", "--critical", "p99.9<30s"]).ended(3).stdout);
    assert!(text.starts_with("UNKNOWN - ") && text.contains("200 requests are too few"), "{text}");
}

#[test]
fn what_does_not_answer_is_critical() {
    let place = Place::new();
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    for address in [nobody.as_str(), "http://nosuch.invalid/"] {
        let done = place.duel(["check", address, "-d", "1s", "--warning", "p99<1s"]).ended(2);
        let (text, data) = parts(&done.stdout);
        assert!(text.starts_with("CRITICAL - A: ") && data.is_empty(), "{text}");
    }
    let ruler = Ruler::start(&[]);
    let args = ["check", &ruler.url("/status/500"), "-n", "20", "-c", "2", "--warning", "p99<1s"];
    let (text, data) = parts(&place.duel(args).ended(2).stdout);
    assert!(text.starts_with("CRITICAL - A: none of 20 requests ended well"), "{text}");
    assert_eq!(value(&data, "errors"), "100%;;;0;100");
    assert!(value(&data, "p99").starts_with("U;1"), "unknown is not zero: {data:?}");
}

#[test]
fn what_cannot_be_checked_is_unknown() {
    let place = Place::new();
    for (args, part) in [
        (&["check", "http://h/"][..], "there is nothing to check"),
        (&["check"], "required arguments were not provided"),
        (&["check", "http://h/", "--critical", "p99"], "--critical: 'p99' is no threshold such as"),
        (&["check", "http://h/", "--critical", "p99<1s", "--conections", "5"], "unexpected argument"),
        (&["check", "last", "--critical", "p99<1s"], "there is no archive"),
        (&["check", "http://h/", "--critical", "slower than A by 5%"], "needs two targets"),
        (&["check", "http://h/", "--critical", "p99<200"], "--critical: 'p99<200' has no unit: p99<200ms or p99<200s"),
        (&["check", "a=http://h/", "b=http://i/", "--warning", "slower than a by 5"], "a share has a %"),
        (
            &["check", "a=http://h/", "b=http://i/", "-c", "1,2", "--critical", "slower than a by 5%"],
            "is about one load, and this has factors",
        ),
        (
            &["check", "a=http://h/", "b=http://i/", "--critical", "slower than b by 5%"],
            "compared with the first one, which is called 'a'",
        ),
        (&["check", "http://h/", "--critical", "p99<1s", "--json"], "a check prints one line"),
        (&["check", "last", "--critical", "p99<1s", "-d", "5s"], "-d has no meaning with a run"),
        (&["check", "last", "--critical", "p99<1s", "--metrics", "9464"], "--metrics has no meaning with a run"),
        (&["check", "last", "--critical", "p99<1s", "--http2"], "--http2 has no meaning with a run"),
        (&["check", "last", "--critical", "p99<1s", "-k"], "-k has no meaning with a run"),
        (&["check", "http://h/", "--critical", "p99<1s", "--plan", "nothing.toml"], "cannot read the plan"),
    ] {
        let done = place.duel(args).ended(3);
        let (text, data) = parts(&done.stdout);
        assert!(text.starts_with("UNKNOWN - ") && text.contains(part) && data.is_empty(), "{args:?}: {text}");
    }
    // By the guidelines, whoever has put --help into a monitoring system is told.
    assert!(place.duel(["check", "--help"]).ended(3).stdout.contains("--critical"));
}

#[test]
fn slower_than_the_baseline_is_critical_where_the_interval_says_so() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (old, new) = (format!("old={}", ruler.url("/delay/200")), format!("new={}", ruler.url("/delay/4000")));
    let load = ["-d", "8s", "-c", "1", "-t", "1", "--slot", "60ms", "--seed", "7", "--junit", "check.xml"];
    let args = ["check", &old, &new, "--critical", "slower than old by 5%", "--warning", "p50<30s"];
    let done = place.duel(args.iter().chain(&load)).ended(2);
    let (text, data) = parts(&done.stdout);
    assert!(text.starts_with("CRITICAL - new ") && text.contains("x slower than old (critical: slower"), "{text}");
    assert!(value(&data, "new slowdown").contains(";;1.05;0"), "{data:?}");
    assert!(data.iter().any(|(label, _)| label == "old p50"), "{data:?}");
    let xml = std::fs::read_to_string(place.path("check.xml")).unwrap();
    for part in [
        "<testsuites name=\"duel\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"0\"",
        "<testcase classname=\"duel.old\" name=\"answers\"",
        "<testcase classname=\"duel.new\" name=\"not slower than old by 5% (critical)\"",
        "<failure type=\"critical\" message=\"",
        "<testcase classname=\"duel.new\" name=\"p50&lt;30s (warning)\"",
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
    // The other way round the same run is well, and a check that came to nothing says so in XML, too.
    let done = place.duel(["check", "last", "--critical", "rate slower than old by 100000%"]).ended(0);
    assert!(done.stdout.starts_with("OK - "), "{}", done.stdout);
    let done = place.duel(["check", "http://nosuch.invalid/", "--critical", "p99<1s", "--junit", "-"]).ended(2);
    assert!(done.stdout.starts_with("<?xml") && done.stdout.contains("<error type=\"no-run\""), "{}", done.stdout);
}

#[test]
fn each_level_of_a_factor_has_to_keep_a_promise() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    // Three paths of four answer at once: over all requests the median would be short, and the errors few.
    let paths = "path=/size/1,/size/2,/size/3,/delay/40000";
    let args = ["check", &ruler.url("/"), "--vary", paths, "-d", "4s", "-c", "1", "-t", "1"];
    let done = place.duel(args.iter().chain(&["--critical", "p50<30ms", "--junit", "check.xml"])).ended(2);
    let (text, data) = parts(&done.stdout);
    assert!(text.starts_with("CRITICAL - A at path /delay/40000 p50 "), "{text}");
    assert!(text.contains("(critical: p50<30ms"), "{text}");
    assert!(value(&data, "A at path /size/1 p50").ends_with(";;0.03;0"), "{data:?}");
    assert_eq!(data.len(), 4 * 4, "each level has figures of its own: {data:?}");
    let xml = std::fs::read_to_string(place.path("check.xml")).unwrap();
    assert!(xml.contains("tests=\"8\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{xml}");
    assert!(xml.contains("<testcase classname=\"duel.A at path /delay/40000\" name=\"answers\""), "{xml}");
    // The run that was kept is judged the same way.
    let again = place.duel(["check", "last", "--critical", "p50<30ms"]).ended(2);
    assert!(again.stdout.starts_with("CRITICAL - A at path /delay/40000 p50 "), "{}", again.stdout);
}

#[test]
fn where_no_run_can_be_kept_targets_are_checked_all_the_same() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/size/10");
    let args = ["check", &url, "-n", "20", "-c", "1", "-t", "1", "--critical", "errors<1%"];
    // As under a monitoring agent that gives its plugins no home.
    let mut command = place.command();
    command.args(args).env_remove("HOME").env_remove("XDG_DATA_HOME").env_remove("DUEL_ARCHIVE");
    let done = Running::start(command).end().ended(0);
    assert!(done.stdout.starts_with("OK - errors 0 %"), "{}", done.stdout);
    assert!(done.sentence().contains("there is no data folder to keep runs in"), "{}", done.stderr);
    place.file("notes.txt", "x".repeat(9000));
    let done = place.duel(args.iter().chain(&["--archive", "notes.txt"])).ended(0);
    assert!(done.stdout.starts_with("OK - ") && done.stderr.contains("notes.txt"), "{}{}", done.stdout, done.stderr);
    let done = place.duel(args.iter().chain(&["--no-archive"])).ended(0);
    assert_eq!(done.stderr, "");
    let done = place.duel(args.iter().chain(&["--archive", ""])).ended(3);
    assert!(done.stdout.starts_with("UNKNOWN - a value is required for"), "{}", done.stdout);
}

#[test]
fn a_check_that_is_ended_is_unknown() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let mut command = place.command();
    command.args(["check", &ruler.url("/delay/1000"), "-d", "60s", "-c", "2", "--critical", "p99<10s"]);
    let running = Running::start(command);
    crate::common::wait_until("the run has begun", || {
        let listed = place.duel(["list", "--json"]);
        listed.code == Some(0) && listed.stdout.contains("\"run\"")
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal(rustix::process::Signal::TERM);
    let done = running.end().ended(3);
    assert!(done.stdout.starts_with("UNKNOWN - the run was interrupted | "), "{}", done.stdout);
}

#[test]
fn thresholds_stand_in_a_plan() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let text = format!(
        "targets = \"{}\"\n[load]\nconnections = 2\nrequests = 50\n[check]\ncritical = [\"p50<30s\", \"errors<1%\"]\n",
        ruler.url("/size/10")
    );
    place.file("plan.toml", &text);
    let done = place.duel(["check", "--plan", "plan.toml"]).ended(0);
    assert!(done.stdout.starts_with("OK - ") && done.stdout.contains(";;30;0"), "{}", done.stdout);
    // The same file is a plan of an ordinary run.
    place.duel(["run", "--plan", "plan.toml", "-q"]).ok();
    place.file("plan.toml", text.replace("errors<1%", "errors"));
    let done = place.duel(["check", "--plan", "plan.toml"]).ended(3);
    assert!(
        done.stdout.starts_with("UNKNOWN - plan.toml:6:24: --critical: 'errors' is no threshold"),
        "{}",
        done.stdout
    );
}
