//! Why: findings with their evidence.

use super::html::Html;
use crate::explanation::headline;
use crate::text::{clean, clean_whole};
use duel_model::{Confidence, Doubt, Explanation, Finding, Run};

/// The findings, what was ruled out and what could not be asked; nothing where diagnosis was not asked for. `chart` draws
/// what became of the gap under the probes.
pub(super) fn section(html: &mut Html, run: &Run, chart: impl FnOnce(&mut Html)) {
    let Some(explanation) = &run.explanation else { return };
    html.raw("<section id=\"findings\"><h2>Why</h2>");
    if explanation.findings.is_empty() {
        html.raw("<p>Diagnosis did not come to its end: no finding.</p>");
    }
    explanation.findings.iter().for_each(|found| finding(html, found));
    chart(html);
    search(html, explanation);
    html.raw("</section>");
}

fn finding(html: &mut Html, finding: &Finding) {
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
        html.text(&finding.summary);
        html.raw("</p>");
    }
    if !finding.evidence.is_empty() {
        html.raw("<h4>Evidence</h4><ul>");
        for evidence in &finding.evidence {
            html.raw("<li>");
            html.text(&evidence.text);
            html.raw(" <span class=\"faint\">[");
            html.text(&clean(&evidence.probe));
            html.raw("]</span>");
            if let Some(command) = &evidence.repeat {
                html.command(command);
            }
            html.raw("</li>");
        }
        html.raw("</ul>");
    }
    if !finding.remedy.trim().is_empty() {
        html.raw("<p><strong>Remedy.</strong> ");
        html.text(&finding.remedy);
        html.raw("</p>");
    }
    html.raw("</article>");
}

/// How the search went.
fn search(html: &mut Html, explanation: &Explanation) {
    let mut doubts: Vec<&Doubt> = Vec::new();
    for doubt in explanation.probes.iter().flat_map(|outcome| &outcome.doubts) {
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    list(html, "Doubts about the probes", doubts.iter().map(|doubt| clean_whole(&doubt.text)).collect());
    list(html, "Ruled out", explanation.ruled_out.clone());
    let not_made = explanation.probes.iter().filter_map(|outcome| {
        Some(format!("{}: {}", clean(&outcome.probe.id), clean(outcome.unavailable.as_deref()?)))
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
