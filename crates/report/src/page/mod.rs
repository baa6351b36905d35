//! A run as one page that needs nothing else: no script, no network, no font but the reader's.
//!
//! Everything foreign goes through [`html::Html::text`], which makes it safe, leaves secrets out and escapes it. Should
//! that ever fail, the page's own content security policy forbids scripts and connections.

mod environment;
mod experiment;
mod findings;
mod html;
mod verdict;

use crate::charts::{Chart, charts};
use crate::plot::{self, Layout};
use crate::settings::status_word;
use crate::summary::{RATIOS, figures_table};
use crate::table::{Align, Table};
use crate::text::clean;
use crate::totals::{Totals, op_noun, totals};
use crate::{negotiated, search, single, stages};
use duel_model::{PlanSecrets, Run, Verdict};
use html::Html;

/// What a reader can type, and what it is good for.
#[derive(Debug, Clone)]
pub struct Command {
    /// What it does, such as `Repeat it with the same plan and seed`.
    pub purpose: String,
    /// The command for a shell.
    pub typed: String,
}

/// The page of a run: verdict, doubts, findings, charts with their numbers, figures, environment, and `commands` that
/// lead back to it.
///
/// Values of secret header fields, request bodies and secret parameters of addresses are left out, since pages are sent
/// around.
pub fn page(run: &Run, verdict: &Verdict, commands: &[Command]) -> String {
    let targets = totals(run);
    let charts = charts(run, verdict);
    let title = title(&targets);
    let mut html = Html::new(PlanSecrets::of(&run.plan));
    head(&mut html, &title);
    html.raw("<main>");
    verdict::section(&mut html, run, verdict, &targets, &title);
    for chart in charts.iter().filter(|chart| chart.id() == "verdict") {
        figure(&mut html, chart);
    }
    html.raw("</section>");
    verdict::doubts(&mut html, run, verdict);
    experiment::section(&mut html, run, verdict);
    let probes: Vec<&Chart> = charts.iter().filter(|chart| chart.id() == "probes").collect();
    findings::section(&mut html, run, |html| probes.iter().for_each(|chart| figure(html, chart)));
    html.raw("<section><h2>Charts</h2>");
    for chart in charts.iter().filter(|chart| !matches!(chart.id(), "verdict" | "probes")) {
        figure(&mut html, chart);
    }
    if charts.is_empty() {
        html.raw("<p>There is nothing to draw: nothing that was sent ended well.</p>");
    }
    html.raw("</section>");
    if verdict.searches.is_empty() {
        figures(&mut html, run, verdict, &targets);
    } else {
        searched(&mut html, run, verdict, &targets);
    }
    cached(&mut html, verdict);
    environment::section(&mut html, run);
    again(&mut html, commands);
    html.raw("</main>");
    foot(&mut html, run);
    html.finish()
}

/// `B against A`, `B and 2 more against A`, or the name of the only target.
fn title(targets: &[Totals<'_>]) -> String {
    match targets {
        [] => "No targets".to_owned(),
        [one] => one.name.clone(),
        [baseline, target] => format!("{} against {}", target.name, baseline.name),
        [baseline, target, more @ ..] => format!("{} and {} more against {}", target.name, more.len(), baseline.name),
    }
}

fn head(html: &mut Html, title: &str) {
    // A page that was tampered with, or a mistake of ours, still runs and fetches nothing.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    html.raw("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">"));
    html.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"no-referrer\">");
    html.raw("<title>duel: ");
    html.text(title);
    html.raw("</title><style>");
    html.raw(&plot::rules(":root"));
    html.raw(&plot::dark_rules());
    html.raw(include_str!("style.css"));
    html.raw("</style></head><body>");
}

/// A chart for both widths, of which the style sheet shows one, and its numbers.
fn figure(html: &mut Html, chart: &Chart) {
    html.raw(&format!("<figure id=\"chart-{}\"><figcaption><h3>", chart.id()));
    html.text(chart.title());
    html.raw("</h3></figcaption><div class=\"wide\">");
    html.raw(&chart.inline(Layout::Wide, "-w"));
    html.raw("</div><div class=\"narrow\">");
    html.raw(&chart.inline(Layout::Narrow, "-n"));
    html.raw("</div><details><summary>Numbers</summary><p>");
    html.text(chart.description());
    html.raw("</p>");
    html.table(chart.table(), chart.title());
    html.raw("</details></figure>");
}

fn figures(html: &mut Html, run: &Run, verdict: &Verdict, targets: &[Totals<'_>]) {
    html.raw("<section><h2>Figures</h2>");
    let noun = op_noun(run);
    if verdict.experiment.is_some() {
        html.table(&crate::experiment::counts(run, targets), "Requests of all targets");
    } else if let [one] = targets {
        let rows = single::figure_rows(one, noun);
        html.table(
            &Table { corner: String::new(), heads: vec![one.name.clone()], rows, align: Align::Right },
            "Figures",
        );
        unanswered(html, noun, targets);
        if let Some(table) = stages::table(run, one) {
            html.raw("<h3>Stages</h3>");
            html.table(&table, stages::TITLE);
        }
    } else {
        let (table, has_ratios) = figures_table(noun, targets);
        html.table(&table, "Figures of all targets");
        unanswered(html, noun, targets);
        if has_ratios {
            html.raw("<p class=\"faint\">");
            html.text(RATIOS);
            html.raw("</p>");
        }
        let of_stages = stages::compared(run, verdict, targets);
        for (title, table) in &of_stages {
            html.raw("<h3>");
            html.text(title);
            html.raw("</h3>");
            html.table(table, title);
        }
        if !of_stages.is_empty() {
            html.raw("<p class=\"faint\">");
            html.text(&stages::note(run, verdict));
            html.raw("</p>");
        }
    }
    let examples: Vec<_> =
        targets.iter().flat_map(|t| t.tally.failure_examples.iter().map(move |example| (t, example))).collect();
    if !examples.is_empty() {
        html.raw("<h3>First failures</h3><ul>");
        for (target, example) in examples {
            html.raw("<li>");
            html.text(&format!("{}: {}", target.name, clean(example)));
            html.raw("</li>");
        }
        html.raw("</ul>");
    }
    negotiated(html, targets);
    html.raw("</section>");
}

/// What response times hold beside those of answers.
fn unanswered(html: &mut Html, noun: &str, targets: &[Totals<'_>]) {
    for text in crate::summary::unanswered(noun, targets) {
        html.raw("<p class=\"faint\">");
        html.text(&text);
        html.raw("</p>");
    }
}

/// What is expected with caches of other sizes.
fn cached(html: &mut Html, verdict: &Verdict) {
    for (title, table, notes) in crate::cache::parts(verdict) {
        html.raw("<section><h2>");
        html.text(&title);
        html.raw("</h2>");
        if let Some(table) = table {
            html.table(&table, &title);
        }
        for note in notes {
            html.raw("<p class=\"faint\">");
            html.text(&note);
            html.raw("</p>");
        }
        html.raw("</section>");
    }
}

/// The attempts of searches, which have no figures beside them.
fn searched(html: &mut Html, run: &Run, verdict: &Verdict, targets: &[Totals<'_>]) {
    html.raw("<section><h2>Figures</h2><p class=\"faint\">");
    html.text(&format!("{}.", search::TRIED));
    html.raw("</p>");
    for wanted in &verdict.searches {
        let title = match targets.get(wanted.target) {
            Some(target) if targets.len() > 1 => format!("Rates tried on {}", target.name),
            _ => "Rates tried".to_owned(),
        };
        if targets.len() > 1 {
            html.raw("<h3>");
            html.text(&title);
            html.raw("</h3>");
        }
        html.table(&search::table(run, wanted), &title);
    }
    if targets.len() > 1 {
        negotiated(html, targets);
    }
    html.raw("</section>");
}

fn negotiated(html: &mut Html, targets: &[Totals<'_>]) {
    if let Some((title, table)) = negotiated::table(targets) {
        html.raw("<h3>");
        html.text(&title);
        html.raw("</h3>");
        html.table(&table, &title);
    }
}

fn again(html: &mut Html, commands: &[Command]) {
    if commands.is_empty() {
        return;
    }
    html.raw("<section><h2>How to repeat it</h2><dl>");
    for command in commands {
        html.raw("<dt>");
        html.text(&command.purpose);
        html.raw("</dt><dd>");
        html.command(&command.typed);
        html.raw("</dd>");
    }
    html.raw("</dl></section>");
}

fn foot(html: &mut Html, run: &Run) {
    html.raw("<footer><p>");
    let version =
        if run.versions.duel.is_empty() { String::new() } else { format!(", made with duel {}", run.versions.duel) };
    let (when, status) = (crate::utc(run.started_unix_ms), status_word(&run.status));
    html.text(&format!("Run {}, {when} UTC, {status}, seed {}{}", run.id, run.plan.compare.seed, clean(&version)));
    html.raw("</p></footer></body></html>\n");
}
