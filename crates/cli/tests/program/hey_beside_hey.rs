//! `duel hey` and the hey that is installed, with the same command line against the same nginx.

use crate::common::{DUEL, Place, free_port, measuring, nginx, skipped};
use std::collections::BTreeSet;
use std::process::Command;

/// Bytes of the file; not the story's 2.86 MB, or the test would take long.
const FILE_BYTES: usize = 28_607;

/// A summary without what differs from run to run: figures are `#`, bars vanish.
fn skeleton(summary: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // Newer versions of hey print the sign twice.
    for line in summary.replace("%%", "%").lines() {
        let mut masked = String::new();
        for c in line.chars().filter(|&c| c != '■') {
            let is_figure = c.is_ascii_digit() || (c == '.' && masked.ends_with('#'));
            if !is_figure {
                masked.push(c);
            } else if !masked.ends_with('#') {
                masked.push('#');
            }
        }
        lines.push(masked);
    }
    lines
}

#[track_caller]
fn figure(summary: &str, name: &str) -> f64 {
    let line = summary
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name))
        .unwrap_or_else(|| panic!("{name}: {summary}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Runs hey and duel with these arguments; both have to end well and to say nothing else.
fn both(args: &[&str]) -> [String; 2] {
    [["hey"].as_slice(), &[DUEL, "hey"]].map(|program| {
        let output = Command::new(program[0]).args(&program[1..]).args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.is_empty(), "{program:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    })
}

fn has_hey() -> bool {
    let is_here = Command::new("hey").arg("-help").output().is_ok();
    if !is_here {
        skipped("there is no hey here; apt-get install hey");
    }
    is_here
}

#[test]
fn each_line_has_its_counterpart() {
    if !has_hey() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    place.file("www/file", vec![b'x'; FILE_BYTES]);
    let config = format!("server {{ listen 127.0.0.1:{{1}} backlog=1024; root {}/www; }}", place.root().display());
    let mut server = nginx(&place, "nginx", &config);
    let url = server.http(1, "/file");
    let mut made = 0;
    for more in [["-disable-keepalive"].as_slice(), &[]] {
        let summaries = both(&[&["-n", "3000", "-c", "300", "-m", "GET"], more, &[&url]].concat());
        for summary in &summaries {
            assert_eq!(figure(summary, "[200]"), 3000.0, "{summary}");
            assert_eq!(figure(summary, "Total data:"), (3000 * FILE_BYTES) as f64);
            assert_eq!(figure(summary, "Size/request:"), FILE_BYTES as f64);
            let rate = 3000.0 / figure(summary, "Total:");
            assert!((figure(summary, "Requests/sec:") / rate - 1.0).abs() < 0.01, "{summary}");
            let (fastest, average) = (figure(summary, "Fastest:"), figure(summary, "Average:"));
            // In 0.1 ms: over loopback the first answers are faster than that, and so may be the mean.
            assert!(0.0 <= fastest && fastest <= average && average < figure(summary, "Slowest:"), "{summary}");
        }
        assert_eq!(skeleton(&summaries[1]), skeleton(&summaries[0]), "{}\n{}", summaries[1], summaries[0]);
        // hey's stand first, then duel's.
        made += 6000;
        let log = server.access_log(made);
        assert_eq!(log.len(), made, "both made all of them, and no other one");
        let connections = |lines: &[String]| -> usize {
            lines.iter().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect::<BTreeSet<_>>().len()
        };
        let of_hey = connections(&log[made - 6000..made - 3000]);
        let of_duel = connections(&log[made - 3000..]);
        if more.is_empty() {
            // hey's client may begin a connection, and then take one that became free meanwhile.
            assert!(of_hey < 3000 && of_duel == 300, "kept: {of_hey} {of_duel}");
        } else {
            assert_eq!((of_hey, of_duel), (3000, 3000), "one for each request");
        }
    }
    server.kill();
}

#[test]
fn where_all_are_refused_so_it_is_told() {
    if !has_hey() {
        return;
    }
    let url = format!("http://127.0.0.1:{}/", free_port());
    let told = both(&["-n", "20", "-c", "4", &url]).map(|summary| {
        // What is not known is NaN or 0 in hey, and "-" in duel; what went wrong is told in Go's words, and in ours.
        let bare = |line: &String| {
            let words = line.split_whitespace().map(|word| match word {
                "NaN" | "-" => "#",
                "-," => "#,",
                word => word,
            });
            let line = words.collect::<Vec<_>>().join(" ");
            match line.split_once(" Get ") {
                Some((count, why)) => format!("{count} {}", why.rsplit(": ").next().unwrap()),
                None => line,
            }
        };
        let lines: Vec<String> = skeleton(&summary).iter().map(bare).collect();
        assert!(summary.contains("\n  [20]\t"), "{summary}");
        lines
    });
    assert!(told[1].ends_with(&["Error distribution:".into(), "[#] connection refused".into(), String::new()]));
    assert_eq!(told[1], told[0]);
}

#[test]
fn so_has_each_column() {
    if !has_hey() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let mut server = nginx(&place, "nginx", "server { listen 127.0.0.1:{1}; return 404 hello; }");
    let rows = both(&["-n", "100", "-c", "10", "-o", "csv", &server.http(1, "/")]).map(|rows| skeleton(&rows));
    assert_eq!(rows[1], rows[0]);
    server.kill();
}

/// These tests, where there is no hey: passed over by who has none, and failed by `./test`, which installs it.
#[test]
fn a_missing_hey_is_passed_over_only_where_that_is_allowed() {
    let place = Place::new();
    for (value, passes) in [("0", true), ("1", false)] {
        let mut tests = Command::new(std::env::current_exe().unwrap());
        tests.args([
            "--exact",
            "hey_beside_hey::so_has_each_column",
            "hey_beside_hey::where_all_are_refused_so_it_is_told",
        ]);
        let ended = tests.env("PATH", place.root()).env("DUEL_TESTS_SKIP_NOTHING", value).output().unwrap();
        let told = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.status.success(), passes, "{told}");
        assert!(told.contains("running 2 tests"), "{told}");
    }
}
