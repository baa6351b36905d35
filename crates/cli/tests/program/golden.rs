//! What the real binary prints, compared with files under `tests/golden`. `UPDATE=1 cargo test -p duel --test program golden`
//! writes them anew: read the difference before it is kept.

use crate::common::{Place, Ruler, Running, golden, measuring};

/// A session as it looks on a terminal: each command line, what it printed, and its exit code where that is not 0.
/// Standard error's lines begin with `! `.
fn session(place: &Place, commands: &[&[&str]]) -> String {
    let mut text = String::new();
    for args in commands {
        let mut command = place.command();
        command.args(*args);
        let done = Running::start(command).end();
        text += &format!("$ duel {}\n{}", args.join(" "), done.stdout);
        done.stderr.lines().for_each(|line| text += &format!("! {line}\n"));
        if done.code != Some(0) {
            text += &format!("[exit {}]\n", done.code.unwrap());
        }
        text.push('\n');
    }
    text.replace(place.root().to_str().unwrap(), "DIR").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn help() {
    let place = Place::new();
    golden("help.txt", &session(&place, &[&["--help"]]));
    // With nothing typed, what to type first.
    golden("first-steps.txt", &session(&place, &[&[]]));
    assert_eq!(place.duel::<&str>([]).code, Some(2));
    golden("help-short.txt", &session(&place, &[&["-h"], &["--version"]]));
    let verbs =
        ["check", "demo", "why", "list", "show", "diff", "report", "export", "rerun", "plan", "man", "completions"]
            .map(|verb| [verb, "-h"]);
    golden("help-run.txt", &session(&place, &[&["run", "--help"]]));
    golden("help-verbs.txt", &session(&place, &verbs.each_ref().map(<[_; 2]>::as_slice)));
}

#[test]
fn errors() {
    let place = Place::new();
    let commands: &[&[&str]] = &[
        &["run", "http://h/", "-c", "0"],
        &["run", "http://h/", "-n", "0"],
        &["run", "http://h/", "-d", "10"],
        &["run", "http://h/", "--rate", "fast"],
        &["run", "http://h/", "--conections", "5"],
        &["run", "http://h/", "-H", "Bearer s3cr3t"],
        &["run", "http://u:s3cr3t@h/"],
        &["run", "h"],
        &["run"],
        &["http://h/"],
        &["a=http://h/", "a=http://i/"],
        &["frobnicate", "http://h/"],
        &["http://h/", "http://i/", "--margin", "2"],
        &["run", "http://h/", "--body-file", "nothing"],
        &["list"],
        &["show", "last"],
        &["run", "http://nosuch.invalid/"],
    ];
    golden("errors.txt", &session(&place, commands));
}

#[test]
fn an_archive_without_runs() {
    let place = Place::new();
    // The first run makes the archive, also where it fails.
    place.duel(["run", "http://nosuch.invalid/"]).ended(1);
    golden(
        "empty-archive.txt",
        &session(&place, &[&["list"], &["list", "--json"], &["show", "last"], &["diff", "a", "b"]]),
    );
}

/// A report without its figures. What stays is what a reader sees first: words, order, tables, sections.
///
/// - Numbers become `#`: words of digits, with separators, signs and `x`, `%`, `/s` or a bracket around them. What holds a
///   letter, as `p99`, `HTTP/1.1` or `X25519`, is no number. A unit of time or of bytes after one becomes `u`.
/// - The run's id and time become `ID` and `TIME`, the ruler's port `PORT`; bars and curves vanish.
/// - The histogram, whose rows depend on the range, keeps its first row; a chart, whose scale does, its title.
/// - Doubts depend on how busy the machine was: they vanish, and so does their announcement.
/// - So does for how long the generator waited for a CPU.
/// - Of the verdict's sentences only the first, on the rate, is certain; the others vanish.
/// - Spaces that align, and breaks of lines within a paragraph of settings, depend on the width of figures: one space.
fn masked(report: &str, id: &str, port: u16) -> String {
    let report = report.replace(id, "ID").replace(&port.to_string(), "PORT");
    let mut paragraphs = Vec::new();
    for (index, paragraph) in report.split("\n\n").enumerate() {
        if paragraph.starts_with("! ") {
            continue;
        }
        let mut lines: Vec<String> = Vec::new();
        for line in paragraph.lines() {
            let is_of_figures = line.contains('│') || line.contains('┤');
            let is_announcement = line.starts_with('(') && line.ends_with("below)");
            let is_further_verdict = index == 0 && line.starts_with("  ");
            let is_of_machine = line.trim_start().starts_with("waited for a CPU");
            if is_of_figures || is_announcement || is_further_verdict || is_of_machine {
                continue;
            }
            let line = masked_line(line);
            if !(line.starts_with("up to #") && lines.last() == Some(&line)) {
                lines.push(line);
            }
        }
        let together = paragraph.starts_with("Settings");
        paragraphs.push(lines.join(if together { " " } else { "\n" }));
    }
    paragraphs.join("\n\n") + "\n"
}

fn masked_line(line: &str) -> String {
    const UNITS: [&str; 10] = ["ns", "µs", "ms", "s", "B/s", "kB/s", "MB/s", "GB/s", "kB", "MB"];
    let bars = |c: char| ('\u{2580}'..='\u{259f}').contains(&c);
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace().filter(|word| !word.chars().all(bars)) {
        let core = word.trim_matches(['(', ')', '+', '-', '±', '<', ',', ':']);
        let number = core.trim_end_matches("/s").trim_end_matches(['x', '%']);
        let is_number = number.contains(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || ".,:-".contains(c));
        let after_number = words.last().is_some_and(|last| last.ends_with('#'));
        words.push(if is_number {
            word.replacen(number, "#", 1).replace("+#", "#").replace("-#", "#")
        } else if UNITS.contains(&core) && (after_number || words.last().is_some_and(|last| last == "phase,")) {
            word.replacen(core, "u", 1)
        } else {
            word.to_owned()
        });
    }
    words.join(" ")
}

#[test]
fn masking_keeps_words() {
    let line = "response p99     14,533 µs        198  HTTP/1.1 127.0.0.1:PORT (95 % interval 1.2 to 3), 3.4x ██▏ +0.1";
    assert_eq!(masked_line(line), "response p99 # u # HTTP/1.1 127.0.0.1:PORT (# % interval # to #), #x #");
    let report = "a is 2x b\n  more\nwaited for a CPU 3 %\n(1 doubt below)\n\n! doubt\n\nup to 1 s 5 ██\nup to 2 s 7\n";
    assert_eq!(masked(report, "20261121-233200-7f3a1", 65_000), "a is #x b\n\nup to # u #\n");
}

#[test]
fn a_run() {
    // A request of 190 ms makes duel look whether TCP sent something again, and say so.
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&["--tls", "p256"]));
    // Whether a CPU is free for polling depends on the machine.
    let args = ["-n", "300", "-c", "3", "-t", "1", "-k", "-q", "--busy-poll", "never"];
    let done = place.duel(["run", &ruler.url("/size/1000")].iter().chain(&args)).ok();
    let run = place.json(["show", "last"]);
    golden("run.txt", &masked(&done.stdout, run["run"].as_str().unwrap(), ruler.port()));
}

#[test]
fn a_comparison_and_why() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (fast, slow) = (format!("fast={}", ruler.url("/delay/100")), format!("slow={}", ruler.url("/delay/5000")));
    // What a trial of both ways would find depends on the machine.
    let args = ["-d", "2s", "-c", "1", "-t", "1", "--slot", "60ms", "--seed", "7", "-q", "--busy-poll", "never"];
    let done = place.duel([&fast[..], &slow].iter().chain(&args)).ok();
    let run = place.json(["show", "last"]);
    golden("comparison.txt", &masked(&done.stdout, run["run"].as_str().unwrap(), ruler.port()));
}
