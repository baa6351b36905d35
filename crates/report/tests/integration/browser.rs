//! The page in a real browser, on a desk and on a phone, light and dark, and printed. Where there is no Chromium this is
//! skipped, with a word.

mod chromium;

use crate::sample::{self, factors, pair, server};
use chromium::Drawn::{self, Line, Marks};
use chromium::{browser, check_page, check_printed, check_series};
use duel_model::*;
use duel_report::{Command as Typed, page};
use serde_json::Value;

/// Frames, and the smallest text that may be in their charts.
const FRAMES: [(&str, u32); 3] = [("phone", 360), ("tablet", 768), ("desk", 1280)];
const SMALLEST: [f64; 3] = [11.0, 9.0, 12.0];

/// What the browser saw of a page that it has nothing to complain of.
fn look(browser: &str, html: &str, is_dark: bool) -> Value {
    let (seen, console) = chromium::look(browser, html, &FRAMES, is_dark);
    assert_eq!(console, Vec::<String>::new());
    seen
}

/// The page has these charts, in this order, and no others; those with a series for each target have it.
fn check(seen: &Value, text: &str, charts: &[(&str, Option<Drawn>)], targets: &[&str]) {
    for ((place, _), smallest) in FRAMES.into_iter().zip(SMALLEST) {
        check_page(seen, place, text);
        let figures = seen[place]["figures"].as_array().unwrap();
        let ids: Vec<&str> = figures.iter().map(|figure| figure["id"].as_str().unwrap()).collect();
        let expected: Vec<String> = charts.iter().map(|(id, _)| format!("chart-{id}")).collect();
        assert_eq!(ids, expected, "{place}");
        for (figure, (id, drawn)) in figures.iter().zip(charts) {
            assert!(figure["smallest"].as_f64().unwrap() >= smallest, "{place}: too small to read: {figure}");
            let Some(drawn) = drawn else { continue };
            // Of response times by level there are two series for each target.
            let of_target = |target: &&str| match (id.ends_with("-latency"), targets.len()) {
                (false, _) => vec![(*target).to_owned()],
                (true, 1) => ["median", "99th percentile"].map(str::to_owned).to_vec(),
                (true, _) => ["median", "99th percentile"].map(|what| format!("{target}: {what}")).to_vec(),
            };
            let names: Vec<String> = targets.iter().flat_map(of_target).collect();
            check_series(seen, place, &format!("chart-{id}"), &names, *drawn);
        }
    }
}

#[test]
fn an_explained_run_is_readable_everywhere() {
    let Some(browser) = browser("an_explained_run_is_readable_everywhere") else { return };
    let (mut run, verdict) = sample::slower();
    run.explanation = Some(sample::why());
    let typed = "duel A=https://ubuntu.example/64k B=https://freebsd.example/64k -c 64 --no-keepalive --seed 42 -d 30s";
    let html = page(&run, &verdict, &[Typed { purpose: "Repeat it".into(), typed: typed.into() }]);
    let charts = [
        ("verdict", None),
        ("probes", None),
        ("progress", Some(Line)),
        ("rate", Some(Line)),
        ("latency", Some(Line)),
        ("percentiles", Some(Line)),
        ("phases", None),
    ];
    let seen = look(browser, &html, false);
    check(&seen, "B is 3.04x slower than A", &charts, &["A", "B"]);
    let dark = look(browser, &html, true);
    for what in ["background", "ink"] {
        assert_ne!(dark["desk"][what], seen["desk"][what], "{what} is the same in light and in dark");
    }
}

#[test]
fn a_single_target_is_readable_everywhere() {
    let Some(browser) = browser("a_single_target_is_readable_everywhere") else { return };
    let run = sample::run(&[server("A", "https://ubuntu.example/64k", 4_115, 1_100_000)], 6);
    let seen = look(browser, &page(&run, &Verdict::default(), &[]), false);
    let charts = [
        ("progress", Some(Line)),
        ("rate", Some(Line)),
        ("latency", Some(Line)),
        ("percentiles", Some(Line)),
        ("phases", None),
    ];
    check(&seen, "requests per second", &charts, &["A"]);
}

#[test]
fn a_search_and_stages_of_two_targets_are_readable_everywhere() {
    let Some(browser) = browser("a_search_and_stages_of_two_targets_are_readable_everywhere") else { return };
    let (run, verdict) = sample::searched();
    let seen = look(browser, &page(&run, &verdict, &[]), false);
    check(&seen, "is 0.400x that of A, so slower", &[("search", Some(Line))], &["A", "B"]);
    let (run, verdict) = sample::staged();
    let seen = look(browser, &page(&run, &verdict, &[]), false);
    let charts = [
        ("verdict", None),
        ("rate", Some(Line)),
        ("latency", Some(Line)),
        ("percentiles", Some(Line)),
        ("phases", None),
    ];
    check(&seen, "B over A, stage by stage", &charts, &["A", "B"]);
}

#[test]
fn factors_are_readable_everywhere() {
    let Some(browser) = browser("factors_are_readable_everywhere") else { return };
    let numbers = [
        ("connections", Some(Line)),
        ("connections-latency", Some(Line)),
        ("connections-ratio", None),
        ("scaling", Some(Line)),
    ];
    let (run, verdict) = factors::scaling(2);
    let seen = look(browser, &page(&run, &verdict, &[]), false);
    let of_two = [&[("verdict", None)], &numbers[..]].concat();
    check(&seen, "connections", &of_two, &["A", "B"]);
    let (run, verdict) = factors::scaling(1);
    let seen = look(browser, &page(&run, &verdict, &[]), false);
    check(&seen, "connections", &[numbers[0], numbers[1], numbers[3]], &["A"]);
    // Two levels of each, which no line joins.
    let (run, verdict) = factors::categories();
    let seen = look(browser, &page(&run, &verdict, &[]), false);
    let charts = [
        ("verdict", None),
        ("keepalive", Some(Marks(2))),
        ("keepalive-latency", Some(Marks(2))),
        ("keepalive-ratio", None),
        ("path", Some(Marks(2))),
        ("path-latency", Some(Marks(2))),
        ("path-ratio", None),
    ];
    check(&seen, "keepalive", &charts, &["A", "B"]);
}

#[test]
fn a_printed_page_has_all_its_tables() {
    let Some(browser) = browser("a_printed_page_has_all_its_tables") else { return };
    let (run, verdict) = sample::slower();
    check_printed(browser, &page(&run, &verdict, &[]));
}

#[test]
fn long_names_and_many_targets_do_not_break_it() {
    let Some(browser) = browser("long_names_and_many_targets_do_not_break_it") else { return };
    let long = "https://very-long.example/with/a/path";
    let names = ["a", long, "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "漢字漢字漢字漢字漢字漢字", "e"];
    let servers: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            server(name, &format!("https://example.org/{}", "x".repeat(40 * i)), 90_000 >> (2 * i), 100 << (4 * i))
        })
        .collect();
    let run = sample::run(&servers, 12);
    let metrics = [Metric::Rate, Metric::ResponseP50, Metric::ResponseP99];
    let pairs = names[1..].iter().flat_map(|name| {
        metrics.map(|metric| PairVerdict {
            baseline: "a".into(),
            ..pair(
                name,
                metric,
                Call::Slower,
                Some(if metric == Metric::Rate { [0.002, 0.0019, 0.0021] } else { [5.0, 4.0, 6000.0] }),
            )
        })
    });
    let verdict = Verdict { pairs: pairs.collect(), doubts: vec![], ..Verdict::default() };
    let seen = look(browser, &page(&run, &verdict, &[]), false);
    let charts = [
        ("verdict", None),
        ("progress", Some(Line)),
        ("rate", Some(Line)),
        ("latency", Some(Line)),
        ("percentiles", Some(Line)),
        ("phases", None),
    ];
    check(&seen, "slower than a", &charts, &names);
}
