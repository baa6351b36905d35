//! Reports of a run with factors, compared with files under `tests/golden`. `UPDATE=1 cargo test` writes them anew: read
//! the difference before it is kept.

use crate::sample::factors;
use duel_model::*;
use duel_report::*;
use std::path::Path;

const PLAIN: Style = Style { width: 80, color: false, unicode: true };

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} is not as expected; if the new text is better, run with UPDATE=1\n{text}");
}

#[test]
fn a_factor_of_numbers_with_its_law() {
    let (run, verdict) = factors::scaling(2);
    golden("experiment.txt", &summary(&run, &verdict, Again::ShownAndRepeated, PLAIN));
    let ascii = summary(&run, &verdict, Again::Not, Style { width: 40, unicode: false, ..PLAIN });
    assert!(ascii.is_ascii() && ascii.lines().all(|line| line.len() <= 40 || line.contains("://")), "{ascii}");
    let document: serde_json::Value = serde_json::from_str(&json_text(&run, &verdict, None)).unwrap();
    golden("experiment.json", &(serde_json::to_string_pretty(&document["experiment"]).unwrap() + "\n"));
}

#[test]
fn a_law_is_drawn_with_its_band_where_that_is_known() {
    let (run, mut verdict) = factors::scaling(2);
    let drawn = |verdict: &Verdict| {
        let charts = charts(&run, verdict);
        charts.iter().find(|chart| chart.id() == "scaling").map(|chart| chart.svg(Layout::Wide)).unwrap()
    };
    let areas = |svg: &str| svg.matches("fill-opacity").count();
    let with = drawn(&verdict);
    verdict.experiment.as_mut().unwrap().scaling.as_mut().unwrap().curves[1].band.clear();
    let of_one = drawn(&verdict);
    verdict.experiment.as_mut().unwrap().scaling.as_mut().unwrap().curves[0].band.clear();
    let without = drawn(&verdict);
    assert_eq!((areas(&with), areas(&of_one), areas(&without)), (2, 1, 0));
    assert!(with.contains("the fitted law, with its 95 %") && !without.contains("with its"), "{with}");
}

#[test]
fn a_single_target_is_compared_with_nothing() {
    let (run, verdict) = factors::scaling(1);
    let text = summary(&run, &verdict, Again::Not, PLAIN);
    golden("experiment-single.txt", &text);
    let charts = charts(&run, &verdict);
    let ids: Vec<_> = charts.iter().map(Chart::id).collect();
    assert_eq!(ids, ["connections", "connections-latency", "scaling"]);
}

#[test]
fn response_times_by_level_are_drawn_as_far_as_they_are_known() {
    let (run, mut verdict) = factors::scaling(2);
    let drawn = |verdict: &Verdict| {
        let charts = charts(&run, verdict);
        charts.iter().find(|chart| chart.id() == "connections-latency").map(|chart| chart.svg(Layout::Wide))
    };
    let svg = drawn(&verdict).unwrap();
    for text in [
        ">A: median<",
        ">B: 99th percentile<",
        ">response time (ms), log scale<",
        "A: median 2.00 ms at 1, 5.71 ms at 32. A: 99th percentile 6.40 ms at 1, 18.3 ms at 32. B: median",
    ] {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
    let html = page(&run, &verdict, &[]);
    assert!(html.contains("<td>5.71 ms ±2 %</td><td>18.3 ms ±2 %</td>"), "the numbers of the last level");

    let mut keep = |which: fn(Metric) -> bool| {
        for level in &mut verdict.experiment.as_mut().unwrap().factors[0].levels {
            level.figures.retain(|figure| which(figure.metric));
        }
        drawn(&verdict)
    };
    let medians = keep(|metric| metric != Metric::ResponseP99).unwrap();
    assert!(medians.contains(">A: median<") && !medians.contains("A: 99th percentile"), "{medians}");
    assert_eq!(keep(|metric| metric != Metric::Rate), None, "the medians are the main metric, and drawn already");
}

#[test]
fn factors_that_are_no_numbers() {
    let (run, verdict) = factors::categories();
    let text = summary(&run, &verdict, Again::Not, PLAIN);
    golden("experiment-categories.txt", &text);
    assert!(!text.contains('\u{1b}'));
    let charts = charts(&run, &verdict);
    let ids: Vec<_> = charts.iter().map(Chart::id).collect();
    assert_eq!(
        ids,
        ["verdict", "keepalive", "keepalive-latency", "keepalive-ratio", "path", "path-latency", "path-ratio"]
    );
    for chart in &charts {
        for layout in [Layout::Wide, Layout::Narrow] {
            let svg = chart.svg(layout);
            assert!(!svg.contains("s3cr3t") && !svg.contains("<script") && !svg.contains("NaN"), "{svg}");
        }
    }
    let html = page(&run, &verdict, &[]);
    assert!(!html.contains("s3cr3t") && !html.contains("<script"), "secrets are left out");
    assert!(html.contains("<h2>Factors</h2>") && html.contains("id=\"chart-path-ratio\""));
}

/// Whatever is not known leaves a gap, and nothing panics.
#[test]
fn what_is_not_known_is_not_shown() {
    let (run, mut verdict) = factors::scaling(2);
    let experiment = verdict.experiment.as_mut().unwrap();
    for level in &mut experiment.factors[0].levels {
        level.figures.retain(|figure| figure.target == "A");
        level.figures.iter_mut().for_each(|figure| (figure.figure.low, figure.figure.high) = (None, None));
        level.pairs.iter_mut().for_each(|pair| (pair.ratio, pair.low, pair.high) = (None, None, None));
    }
    let scaling = experiment.scaling.as_mut().unwrap();
    scaling.curves[1].law = None;
    scaling.curves[1].unfitted = Some("it takes 4 numbers of connections, and there are 2".into());
    scaling.differences.clear();
    let text = summary(&run, &verdict, Again::Not, PLAIN);
    assert!(text.contains("Not fitted to B: it takes 4 numbers of connections"), "{text}");
    assert!(!text.contains("NaN") && page(&run, &verdict, &[]).contains("chart-scaling"));
    experiment_without_anything(&run, verdict);
}

fn experiment_without_anything(run: &Run, mut verdict: Verdict) {
    let experiment = verdict.experiment.as_mut().unwrap();
    experiment.treatments.clear();
    experiment.factors[0].levels.clear();
    experiment.scaling = Some(Scaling { curves: vec![], differences: vec![] });
    summary(run, &verdict, Again::Not, PLAIN);
    page(run, &verdict, &[]);
}
