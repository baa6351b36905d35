//! Why: findings with their evidence.

use super::html::Html;
use crate::explanation::{doubts_of_probes, excludes, headline};
use crate::leads;
use crate::text::{clean, clean_whole};
use duel_model::{Confidence, Evidence, Explanation, Finding, Run};

/// The findings, what was ruled out and what could not be asked; nothing where diagnosis was not asked for. `chart` draws
/// what became of the gap under the probes.
pub(super) fn section(html: &mut Html, run: &Run, chart: impl FnOnce(&mut Html)) {
    let Some(explanation) = &run.explanation else { return };
    html.raw("<section id=\"findings\"><h2>Why</h2>");
    if explanation.findings.is_empty() {
        html.raw("<p>Diagnosis did not come to its end: no finding.</p>");
    }
    explanation.findings.iter().for_each(|found| finding(html, found, &explanation.ruled_out));
    chart(html);
    search(html, explanation);
    html.raw("</section>");
}

/// A finding. Why causes are ruled out stands apart, folded: there are many, and none of them is this one.
fn finding(html: &mut Html, finding: &Finding, ruled_out: &[String]) {
    let class = match finding.confidence {
        Confidence::Confirmed => "confirmed",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    };
    html.raw(&format!("<article class=\"finding {class}\"><h3>"));
    html.text(&headline(finding));
    html.raw("</h3>");
    if finding.cause != "none" {
        html.raw("<p>");
        html.prose(&finding.summary);
        html.raw("</p>");
    }
    leads_of(html, finding);
    let (excluding, telling): (Vec<&Evidence>, Vec<&Evidence>) =
        finding.evidence.iter().partition(|evidence| excludes(evidence, ruled_out));
    let mut repeated = Vec::new();
    if !telling.is_empty() {
        html.raw("<h4>Evidence</h4>");
        evidence(html, &telling, &mut repeated);
    }
    if !excluding.is_empty() {
        html.raw(&format!("<details><summary>Why each cause is ruled out ({})</summary>", excluding.len()));
        evidence(html, &excluding, &mut repeated);
        html.raw("</details>");
    }
    if !finding.remedy.trim().is_empty() {
        html.raw("<p><strong>Remedy.</strong> ");
        html.prose(&finding.remedy);
        html.raw("</p>");
    }
    html.raw("</article>");
}

/// Where to look next, in the order in which it is worth it, and what was not read.
fn leads_of(html: &mut Html, finding: &Finding) {
    let first = leads::first(finding);
    if !first.is_empty() {
        html.raw(&format!("<h4>{}</h4><ol>", leads::FIRST));
        for (text, look) in first {
            html.raw("<li>");
            html.prose(text);
            if let Some(command) = look {
                html.command(command);
            }
            html.raw("</li>");
        }
        html.raw("</ol>");
    }
    if let Some(text) = leads::more(finding) {
        html.raw("<p class=\"faint\">");
        html.text(&text);
        html.raw("</p>");
    }
    let unread: Vec<&str> = leads::unread(finding).collect();
    if !unread.is_empty() {
        html.raw(&format!("<h4>{}</h4><ul>", leads::UNREAD));
        for text in unread {
            html.raw("<li>");
            html.prose(text);
            html.raw("</li>");
        }
        html.raw("</ul>");
    }
}

/// A command that repeats several pieces of evidence stands below the first of them.
fn evidence<'a>(html: &mut Html, pieces: &[&'a Evidence], repeated: &mut Vec<&'a str>) {
    html.raw("<ul>");
    for piece in pieces {
        html.raw("<li>");
        html.prose(&piece.told());
        html.raw(" <span class=\"faint\">[");
        html.text(&clean(&piece.probe));
        html.raw("]</span>");
        if let Some(command) = piece.repeat.as_deref().filter(|command| !repeated.contains(command)) {
            repeated.push(command);
            html.command(command);
        }
        html.raw("</li>");
    }
    html.raw("</ul>");
}

/// How the search went.
fn search(html: &mut Html, explanation: &Explanation) {
    let doubts = doubts_of_probes(explanation);
    list(html, "Doubts about the probes", doubts.iter().map(|doubt| clean_whole(&doubt.text)).collect());
    list(html, "Ruled out", explanation.ruled_out.clone());
    let not_made = explanation.probes.iter().filter_map(|outcome| {
        Some(format!("{}: {}", clean(&outcome.probe.id), clean(outcome.unavailable.as_ref()?.told())))
    });
    list(html, "Not probed", not_made.collect());
}

fn list(html: &mut Html, title: &str, items: Vec<String>) {
    if items.is_empty() {
        return;
    }
    html.raw(&format!("<details><summary>{title} ({})</summary><ul>", items.len()));
    for item in &items {
        html.raw("<li>");
        html.text(item);
        html.raw("</li>");
    }
    html.raw("</ul></details>");
}
