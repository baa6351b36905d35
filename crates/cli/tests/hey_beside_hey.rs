//! `duel hey` and the hey that is installed, with the same command line against the same nginx.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{DUEL, Place, measuring, nginx};
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

fn has_hey() -> bool {
    Command::new("hey").arg("-help").output().is_ok()
}

#[test]
fn each_line_has_its_counterpart() {
    if !has_hey() {
        println!("skipped: there is no hey here; apt-get install hey");
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    place.file("www/file", vec![b'x'; FILE_BYTES]);
    let config = format!("server {{ listen 127.0.0.1:{{1}} backlog=1024; root {}/www; }}", place.root().display());
    let mut server = nginx(&place, "nginx", &config);
    let url = server.http(1, "/file");
    let mut summaries = Vec::new();
    for program in [["hey"].as_slice(), &[DUEL, "hey"]] {
        let before = server.access_log(0).len();
        let output = Command::new(program[0])
            .args(&program[1..])
            .args(["-n", "3000", "-c", "300", "-m", "GET", "-disable-keepalive", &url])
            .output()
            .unwrap();
        let (summary, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success() && said.is_empty(), "{program:?}: {said}");
        assert_eq!(figure(&summary, "[200]"), 3000.0, "{summary}");
        assert_eq!(figure(&summary, "Total data:"), (3000 * FILE_BYTES) as f64);
        assert_eq!(figure(&summary, "Size/request:"), FILE_BYTES as f64);
        let rate = 3000.0 / figure(&summary, "Total:");
        assert!((figure(&summary, "Requests/sec:") / rate - 1.0).abs() < 0.01, "{summary}");
        let (fastest, average) = (figure(&summary, "Fastest:"), figure(&summary, "Average:"));
        assert!(0.0 < fastest && fastest < average && average < figure(&summary, "Slowest:"), "{summary}");
        assert_eq!(
            server.access_log(before + 3000).len(),
            before + 3000,
            "{program:?} made all of them, and no other one"
        );
        summaries.push(summary);
    }
    assert_eq!(skeleton(&summaries[1]), skeleton(&summaries[0]), "{}\n{}", summaries[1], summaries[0]);
    server.kill();
}

#[test]
fn so_has_each_column() {
    if !has_hey() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let mut server = nginx(&place, "nginx", "server { listen 127.0.0.1:{1}; return 404 hello; }");
    let mut rows = Vec::new();
    for program in [["hey"].as_slice(), &[DUEL, "hey"]] {
        let mut command = Command::new(program[0]);
        let output =
            command.args(&program[1..]).args(["-n", "100", "-c", "10", "-o", "csv", &server.http(1, "/")]).output();
        rows.push(skeleton(&String::from_utf8(output.unwrap().stdout).unwrap()));
    }
    assert_eq!(rows[1], rows[0]);
    server.kill();
}
