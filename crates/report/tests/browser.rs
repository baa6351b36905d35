//! The page in a real browser, on a desk and on a phone, light and dark. Skipped, with a word, where there is no Chromium.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod sample;

use duel_model::*;
use duel_report::{Command as Typed, page};
use sample::{pair, server};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A browser that has not answered by then never will, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Looks at the page in frames as wide as a phone, a tablet and a desk, and writes down what it saw.
const LOOKER: &str = r#"<!DOCTYPE html><meta charset="utf-8"><body>
<iframe id="phone" src="page.html" width="360" height="800"></iframe>
<iframe id="tablet" src="page.html" width="768" height="800"></iframe>
<iframe id="desk" src="page.html" width="1280" height="800"></iframe>
<pre id="seen"></pre>
<script>
const shown = element => element.getBoundingClientRect().width > 0;
const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
function look(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const figures = [...page.querySelectorAll('figure')].map(figure => {
    const svg = [...figure.querySelectorAll('svg')].filter(shown);
    const place = svg[0].getBoundingClientRect();
    const texts = [...svg[0].querySelectorAll('text')].map(t => ({ text: t.textContent, place: t.getBoundingClientRect(), size: t.getBoundingClientRect().height }));
    const outside = texts.filter(t => t.place.left < place.left - 1 || t.place.right > place.right + 1 || t.place.bottom > place.bottom + 1).map(t => t.text);
    const collisions = [];
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => { if (overlap(a.place, b.place)) collisions.push(a.text + ' / ' + b.text); }));
    return { id: figure.id, drawings: svg.length, marks: svg[0].querySelectorAll('.line,.fill').length, outside, collisions,
      smallest: Math.min(...texts.map(t => t.size)), named: !!svg[0].querySelector('title') && svg[0].getAttribute('role') === 'img' };
  });
  return { wide: root.scrollWidth - root.clientWidth, text: page.body.innerText, figures,
    background: getComputedStyle(page.body).backgroundColor, ink: getComputedStyle(page.querySelector('.duel-chart .s0.line,.duel-chart .s1.fill')).fill };
}
window.addEventListener('load', () => {
  const seen = {};
  for (const frame of document.querySelectorAll('iframe')) seen[frame.id] = look(frame);
  document.getElementById('seen').textContent = encodeURIComponent(JSON.stringify(seen));
});
</script>"#;

fn browser() -> Option<&'static str> {
    let is_there = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there)
}

/// A browser that ends with its owner.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the browser saw, and what it said on its console.
fn look(browser: &str, html: &str, is_dark: bool) -> (Value, Vec<String>) {
    let folder = tempfile::Builder::new().prefix("duel-page-").tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), html).unwrap();
    std::fs::write(folder.path().join("look.html"), LOOKER).unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let file = |path: &Path| std::fs::File::create(path).unwrap();
    let child = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"])
        // The looker reads the frames' documents, which are files, too.
        .args(["--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=5000"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if is_dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", folder.path().join("look.html").display()))
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .unwrap();
    let mut browser = Browser(child);
    let until = Instant::now() + PATIENCE;
    while browser.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the browser hangs: {}", std::fs::read_to_string(&err).unwrap_or_default());
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = String::from_utf8_lossy(&std::fs::read(&err).unwrap()).into_owned();
    let dom = String::from_utf8_lossy(&std::fs::read(&out).unwrap()).into_owned();
    let seen = dom.split("<pre id=\"seen\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let seen = decoded(seen.unwrap_or_else(|| panic!("nothing was seen: {said}\n{dom}")));
    let seen = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}\n{said}"));
    (seen, said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect())
}

/// What `encodeURIComponent` has encoded.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&rest[..2]).unwrap(), 16).unwrap());
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn check(seen: &Value, verdict: &str, charts: &[&str]) {
    for (place, smallest) in [("phone", 11.0), ("tablet", 9.0), ("desk", 12.0)] {
        let page = &seen[place];
        assert!(page["text"].as_str().unwrap().contains(verdict), "{place}: {}", page["text"]);
        assert!(page["wide"].as_f64().unwrap() <= 0.0, "{place}: {} px too wide", page["wide"]);
        let figures = page["figures"].as_array().unwrap();
        let ids: Vec<&str> = figures.iter().map(|figure| figure["id"].as_str().unwrap()).collect();
        assert_eq!(ids, charts, "{place}");
        for figure in figures {
            let what = format!("{place}, {}", figure["id"]);
            assert_eq!(figure["drawings"], 1, "{what}: one of the two widths is shown");
            assert!(figure["marks"].as_u64().unwrap() >= 2, "{what}: nothing is drawn: {figure}");
            assert_eq!(figure["outside"], serde_json::json!([]), "{what}: texts are cut");
            assert_eq!(figure["collisions"], serde_json::json!([]), "{what}: texts run into each other");
            assert!(figure["smallest"].as_f64().unwrap() >= smallest, "{what}: too small to read: {figure}");
            assert_eq!(figure["named"], true, "{what}: no text for those who cannot see it");
        }
    }
}

#[test]
fn an_explained_run_is_readable_everywhere() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium is installed here (apt-get install chromium)");
        return;
    };
    let (mut run, verdict) = sample::slower();
    run.explanation = Some(sample::why());
    let typed = "duel A=https://ubuntu.example/64k B=https://freebsd.example/64k -c 64 --no-keepalive --seed 42 -d 30s";
    let html = page(&run, &verdict, &[Typed { purpose: "Repeat it".into(), typed: typed.into() }]);
    let charts = [
        "chart-verdict",
        "chart-probes",
        "chart-progress",
        "chart-rate",
        "chart-latency",
        "chart-percentiles",
        "chart-phases",
    ];
    let (seen, console) = look(browser, &html, false);
    assert_eq!(console, Vec::<String>::new());
    check(&seen, "B is 3.04x slower than A", &charts);
    let (dark, console) = look(browser, &html, true);
    assert_eq!(console, Vec::<String>::new());
    for what in ["background", "ink"] {
        assert_ne!(dark["desk"][what], seen["desk"][what], "{what} is the same in light and in dark");
    }
}

#[test]
fn a_search_and_stages_of_two_targets_are_readable_everywhere() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium is installed here (apt-get install chromium)");
        return;
    };
    let (run, verdict) = sample::searched();
    let (seen, console) = look(browser, &page(&run, &verdict, &[]), false);
    assert_eq!(console, Vec::<String>::new());
    check(&seen, "is 0.400x that of A, so slower", &["chart-search"]);
    let (run, verdict) = sample::staged();
    let (seen, console) = look(browser, &page(&run, &verdict, &[]), false);
    assert_eq!(console, Vec::<String>::new());
    let charts = ["chart-verdict", "chart-rate", "chart-latency", "chart-percentiles", "chart-phases"];
    check(&seen, "B over A, stage by stage", &charts);
}

#[test]
fn long_names_and_many_targets_do_not_break_it() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium is installed here (apt-get install chromium)");
        return;
    };
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
    let (seen, console) = look(browser, &page(&run, &verdict, &[]), false);
    assert_eq!(console, Vec::<String>::new());
    let charts =
        ["chart-verdict", "chart-progress", "chart-rate", "chart-latency", "chart-percentiles", "chart-phases"];
    check(&seen, "slower than a", &charts);
}
