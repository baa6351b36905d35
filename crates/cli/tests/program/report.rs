//! `duel report` and `duel export`: files of real runs.

#[path = "../../../report/tests/integration/browser/chromium.rs"]
mod chromium;

use crate::common::{Place, Ruler, measuring};
use chromium::Drawn::Line;

/// A place with one archived run of two targets, with an interval: a machine that is busy with other things may leave too few slots.
fn archived() -> Place {
    const TRIES: u32 = 6;
    let place = Place::new();
    let _alone = measuring();
    let ruler = Ruler::start(&[]);
    let (a, b) = (format!("a={}", ruler.url("/size/100")), format!("b={}", ruler.url("/size/200?token=s3cr3t")));
    let secret = "Authorization: Bearer t0k3n";
    let has_interval = (0..TRIES).any(|_| {
        place.duel([&a, &b, "-c", "2", "-d", "1s", "--seed", "1", "-q", "-H", secret]).ok();
        !place.json(["show", "last"])["pairs"][0]["low"].is_null()
    });
    assert!(has_interval, "no interval in any of {TRIES} runs");
    place
}

#[test]
fn a_page_is_written_and_not_overwritten() {
    let place = archived();
    let done = place.duel(["report", "last"]).ok();
    let name = done.stdout.trim_end();
    assert!(name.starts_with("duel-") && name.ends_with(".html"), "{name}");
    let html = std::fs::read_to_string(place.path(name)).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("b against a"));
    assert!(!html.contains("t0k3n") && !html.contains("s3cr3t"), "secrets are left out");
    assert!(html.contains("duel rerun ") && html.contains("--seed 1"), "the way back is told");

    let sentence = place.duel(["report", "last"]).refused(1);
    assert!(sentence.contains("is there already") && sentence.contains("--force"), "{sentence}");
    place.duel(["report", "last", "--force"]).ok();

    let done = place.duel(["report", "last", "-o", "-"]).ok();
    assert_eq!(done.stdout, html, "the same run makes the same page");
    place.duel(["report", "last", "-o", "own.html"]).ok();
    assert_eq!(std::fs::read_to_string(place.path("own.html")).unwrap(), html);
    let sentence = place.duel(["report", "last", "-o", "no/folder/x.html"]).refused(1);
    assert!(sentence.contains("cannot write no/folder/x.html"), "{sentence}");
    let refused = place.duel(["report", "last", "--json"]).ended(2).json();
    assert!(refused["error"].as_str().unwrap().contains("duel export"), "a page is no document: {refused}");
    place.duel(["report", "nosuch"]).refused(1);
}

#[test]
fn the_page_of_a_real_run_is_readable_in_a_browser_and_on_paper() {
    let test = "the_page_of_a_real_run_is_readable_in_a_browser_and_on_paper";
    let Some(browser) = chromium::browser(test) else { return };
    let place = archived();
    place.duel(["report", "last", "-o", "x.html"]).ok();
    let html = std::fs::read_to_string(place.path("x.html")).unwrap();
    let shown = place.duel(["show", "last"]).ok().stdout;
    let verdict = shown.lines().find(|line| line.contains("than a") || line.contains("b and a")).unwrap();
    // Terminals break lines where pages do not: the beginning of the sentence will do.
    let verdict = verdict.split_once(" (").map_or(verdict, |(sentence, _)| sentence).trim();
    let (seen, console) = chromium::look(browser, &html, &[("phone", 390), ("desk", 1280)], false);
    assert_eq!(console, Vec::<String>::new());
    for place in ["phone", "desk"] {
        chromium::check_page(&seen, place, verdict);
        for chart in ["progress", "rate", "latency", "percentiles"] {
            chromium::check_series(&seen, place, &format!("chart-{chart}"), &["a", "b"], Line);
        }
    }
    chromium::check_printed(browser, &html);
}

#[test]
fn charts_are_files() {
    let place = archived();
    let done = place.duel(["report", "last", "--svg", "charts/here"]).ok();
    let names: Vec<&str> = done.stdout.lines().collect();
    for chart in ["verdict", "progress", "rate", "latency", "percentiles", "phases"] {
        let name = format!("charts/here/{chart}.svg");
        assert!(names.contains(&name.as_str()), "{names:?}");
        let svg = std::fs::read_to_string(place.path(&name)).unwrap();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    }
    assert!(
        !std::fs::read_dir(place.root()).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().ends_with("html"))
    );
    place.duel(["report", "last", "--svg", "charts/here"]).refused(1);
    place.duel(["report", "last", "--svg", "charts/here", "--force"]).ok();
}

/// Width and height of a PNG file.
#[cfg(feature = "png")]
fn png_size(bytes: &[u8]) -> (u32, u32) {
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[cfg(feature = "png")]
#[test]
fn charts_are_pictures() {
    let place = archived();
    let done = place.duel(["report", "last", "--png", "pictures", "--svg", "drawings"]).ok();
    let pictures: Vec<&str> = done.stdout.lines().filter(|name| name.ends_with(".png")).collect();
    assert!(pictures.len() >= 6 && done.stdout.lines().count() == 2 * pictures.len(), "{}", done.stdout);
    for name in &pictures {
        let svg = std::fs::read_to_string(place.path(&name.replace("pictures/", "drawings/").replace(".png", ".svg")));
        let size = |what: &str| {
            let svg = svg.as_ref().unwrap();
            let (_, rest) = svg.split_once(&format!(" {what}=\"")).unwrap();
            rest.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        let (width, height) = png_size(&std::fs::read(place.path(name)).unwrap());
        assert_eq!(
            (f64::from(width), f64::from(height)),
            (2.0 * size("width"), (2.0 * size("height")).ceil()),
            "{name}"
        );
    }
    place.duel(["report", "last", "--png", "pictures"]).refused(1);
}

#[cfg(feature = "png")]
#[test]
fn without_fonts_there_are_no_pictures_and_no_page() {
    let place = archived();
    let config = place.file("fonts.conf", "<?xml version=\"1.0\"?><fontconfig><dir>/nowhere</dir></fontconfig>");
    let mut command = place.command();
    command.args(["report", "last", "--png", "pictures", "-o", "page.html"]).env("FONTCONFIG_FILE", config);
    let sentence = crate::common::Running::start(command).end().refused(1);
    assert!(sentence.contains("no font is installed here") && sentence.contains("--svg"), "{sentence}");
    assert!(!place.path("pictures").exists() && !place.path("page.html").exists());
}

#[cfg(not(feature = "png"))]
#[test]
fn a_build_without_pictures_says_so() {
    let place = archived();
    let sentence = place.duel(["report", "last", "--png", "pictures"]).refused(2);
    assert!(sentence.contains("its feature png"), "{sentence}");
    assert!(!place.path("pictures").exists());
}

/// The measured slots of a target.
fn lines_of(place: &Place, target: &str) -> Vec<serde_json::Value> {
    let lines = place.duel(["export", "last", "--format", "ndjson", "--target", target]).ok().stdout;
    let slots = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    slots.filter(|slot| slot["role"] == "measured").collect()
}

/// `[0.5000, 51],` counts 51.
fn requests_of_point(line: &str) -> u64 {
    let point = line.strip_prefix('[').and_then(|rest| rest.strip_suffix("],")).unwrap_or_else(|| panic!("{line}"));
    point.split_once(", ").unwrap().1.parse().unwrap()
}

#[test]
fn each_form_can_be_written() {
    let place = archived();
    let csv = place.duel(["export", "last", "--format", "csv"]).ok().stdout;
    assert!(csv.starts_with("run,slot,target,") && csv.contains(",measured,"), "{csv}");
    let document: serde_json::Value =
        serde_json::from_str(&place.duel(["export", "last", "-f", "json"]).ok().stdout).unwrap();
    assert_eq!(document, place.json(["show", "last"]), "the same document as --json");
    let lines = place.duel(["export", "last", "--format", "ndjson", "--target", "b"]).ok().stdout;
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["target"] == "b"));
    place.duel(["export", "last", "--format", "hgrm", "--target", "a", "-o", "a.hgrm"]).ok();
    let hgrm = std::fs::read_to_string(place.path("a.hgrm")).unwrap();
    assert!(hgrm.contains("1/(1-Percentile)") && hgrm.contains("#[Mean "), "{hgrm}");
    let sentence = place.duel(["export", "last", "--format", "hgrm"]).refused(2);
    assert!(sentence.contains("--target: a, b"), "{sentence}");
    let series = place.duel(["export", "last", "--format", "highcharts"]).ok().stdout;
    let (a, b) = series.split_once("\n\n").unwrap_or_else(|| panic!("two series: {series}"));
    for (name, series) in [("a", a), ("b", b)] {
        let points = series.strip_prefix(&format!("// {name}\n[0.0000, 0],\n")).unwrap_or_else(|| panic!("{series}"));
        let done: u64 = points.lines().map(requests_of_point).sum();
        let slots = lines_of(&place, name);
        let ended = |slot: &serde_json::Value| slot["ok_ops"].as_u64().unwrap() + slot["failed_ops"].as_u64().unwrap();
        assert_eq!(done, slots.iter().map(ended).sum::<u64>(), "{name}: no request is lost: {series}");
    }
    assert_eq!(place.duel(["export", "last", "-f", "highcharts", "--target", "b"]).ok().stdout, b);
    let xml = place.duel(["export", "last", "--format", "junit"]).ok().stdout;
    assert!(xml.contains("<testsuites name=\"duel\""), "{xml}");
    if cfg!(feature = "parquet") {
        place.duel(["export", "last", "--format", "parquet", "-o", "run.parquet"]).ok();
        let bytes = std::fs::read(place.path("run.parquet")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    } else {
        let sentence = place.duel(["export", "last", "--format", "parquet", "-o", "run.parquet"]).refused(2);
        assert!(sentence.contains("its feature parquet"), "{sentence}");
    }
    place.duel(["export", "last", "--format", "xls"]).refused(2);
    place.duel(["export", "last"]).refused(2);
    place.duel(["export", "last", "--format", "csv", "-o", "a.hgrm"]).refused(1);
}
