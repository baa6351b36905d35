//! Pages in a real browser.

#![allow(dead_code, reason = "not every test file uses all of it")]

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A browser that has not answered by then never will, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Looks at the page in frames of several widths, and writes down what it saw.
const LOOKER: &str = include_str!("look.html");

/// Where a Chromium is, or says that the test is skipped for want of it; where `./test` is set to skip nothing, it fails.
#[track_caller]
pub(crate) fn browser(test: &str) -> Option<&'static str> {
    let is_there = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there);
    if found.is_none() {
        let why = "no Chromium is installed here (apt-get install chromium)";
        println!("skipped {test}: {why}");
        assert!(
            std::env::var_os("DUEL_TESTS_SKIP_NOTHING").is_none_or(|value| value != "1"),
            "nothing may be skipped: {why}"
        );
    }
    found
}

/// A browser that ends with its owner.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the browser to its end in this folder, with further arguments and the address of a file there; answers what it
/// printed and what it said.
fn run(browser: &str, folder: &Path, args: &[&str], file: &str) -> (String, String) {
    let (out, err) = (folder.join("out"), folder.join("err"));
    let create = |path: &Path| std::fs::File::create(path).unwrap();
    let child = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(args)
        .arg(format!("file://{}", folder.join(file).display()))
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&err))
        .spawn()
        .unwrap();
    let mut browser = Browser(child);
    let until = Instant::now() + PATIENCE;
    while browser.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the browser hangs: {}", std::fs::read_to_string(&err).unwrap_or_default());
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    (read(&out), read(&err))
}

fn folder_with(html: &str) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("duel-page-").tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), html).unwrap();
    folder
}

/// What the browser saw in frames of these names and widths, and what it said on its console.
pub(crate) fn look(browser: &str, html: &str, frames: &[(&str, u32)], is_dark: bool) -> (Value, Vec<String>) {
    let folder = folder_with(html);
    let frame = |(name, width): &(&str, u32)| {
        format!("<iframe id=\"{name}\" src=\"page.html\" width=\"{width}\" height=\"800\"></iframe>\n")
    };
    let frames: String = frames.iter().map(frame).collect();
    std::fs::write(folder.path().join("look.html"), LOOKER.replace("<!--frames-->\n", &frames)).unwrap();
    let scheme = format!("--blink-settings=preferredColorScheme={}", if is_dark { 0 } else { 1 });
    // The looker reads the frames' documents, which are files, too.
    let args =
        ["--hide-scrollbars", "--allow-file-access-from-files", "--virtual-time-budget=5000", &scheme, "--dump-dom"];
    let (dom, said) = run(browser, folder.path(), &args, "look.html");
    let seen = dom.split("<pre id=\"seen\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let seen = decoded(seen.unwrap_or_else(|| panic!("nothing was seen: {said}\n{dom}")));
    let seen = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}\n{said}"));
    (seen, said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect())
}

/// What is folded on a screen is on paper, where nobody can unfold it: the browser's PDF has pages, and in its structure,
/// which it keeps for readers that cannot see it, all tables of the page with all their cells.
pub(crate) fn check_printed(browser: &str, html: &str) {
    let folder = folder_with(html);
    let pdf = folder.path().join("page.pdf");
    let (_, said) = run(browser, folder.path(), &[&format!("--print-to-pdf={}", pdf.display())], "page.html");
    let pdf = std::fs::read(&pdf).unwrap_or_else(|error| panic!("{error}: {said}"));
    let pdf = String::from_utf8_lossy(&pdf);
    assert!(pdf.starts_with("%PDF-"), "{} bytes", pdf.len());
    let in_pdf = |what: &str| pdf.lines().filter(|line| line.trim_start_matches("<<") == what).count();
    let in_html = |tag: &str| html.matches(tag).count();
    assert!(in_pdf("/Type /Page") > 0, "no pages");
    assert!(in_html("<details>") > 0, "nothing is folded");
    // Of empty cells the structure has nothing to say.
    let cells = in_html("<td>") - in_html("<td></td>");
    assert_eq!((in_pdf("/S /Table"), in_pdf("/S /TD")), (in_html("<table"), cells), "tables and cells");
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

/// What has to hold of any page in any frame; a name of a target may be shortened where it is too long for the legend.
pub(crate) fn check_page(seen: &Value, place: &str, text: &str) {
    let page = &seen[place];
    assert!(page["text"].as_str().unwrap().contains(text), "{place}: {}", page["text"]);
    assert!(page["wide"].as_f64().unwrap() <= 0.0, "{place}: {} px too wide", page["wide"]);
    for figure in page["figures"].as_array().unwrap() {
        let what = format!("{place}, {}", figure["id"]);
        assert_eq!(figure["drawings"], 1, "{what}: one of the two widths is shown");
        assert!(figure["marks"].as_u64().unwrap() >= 2, "{what}: nothing is drawn: {figure}");
        assert_eq!(figure["outside"], serde_json::json!([]), "{what}: texts are cut");
        assert_eq!(figure["collisions"], serde_json::json!([]), "{what}: texts run into each other");
        assert_eq!(figure["named"], true, "{what}: no text for those who cannot see it");
    }
}

/// How a chart draws a series of each target, told apart by its name in the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// As one line with marks.
    Line,
    /// As so many marks that no line joins.
    Marks(u64),
}

/// Each target has its own series, which the legend names; a chart of a single one needs no legend. A name may be
/// shortened where it is too long.
pub(crate) fn check_series(seen: &Value, place: &str, chart: &str, names: &[impl AsRef<str>], drawn: Drawn) {
    let figures = seen[place]["figures"].as_array().unwrap();
    let figure = figures.iter().find(|it| it["id"] == *chart).unwrap_or_else(|| panic!("{place}: no {chart}"));
    let what = format!("{place}, {chart}: {}", figure["series"]);
    let series = figure["series"].as_array().unwrap();
    assert_eq!(series.len(), names.len(), "{what}");
    for (series, name) in series.iter().zip(names.iter().map(AsRef::as_ref)) {
        let shown = series["name"].as_str().unwrap();
        let ends = shown.split_once('…');
        let is_shortened = ends.is_some_and(|(begin, end)| name.starts_with(begin) && name.ends_with(end));
        assert!(shown == name || is_shortened || (names.len() == 1 && shown.is_empty()), "{what}: {name}");
        let (lines, marks) = (series["lines"].as_u64().unwrap(), series["marks"].as_u64().unwrap());
        match drawn {
            Drawn::Line => assert!(lines == 1 && marks > 0, "{what}: {name}"),
            Drawn::Marks(expected) => assert_eq!((lines, marks), (0, expected), "{what}: {name}"),
        }
    }
}
