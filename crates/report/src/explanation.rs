//! Why: findings first, then what was ruled out.

use crate::figures::percent;
use crate::style::{Ink, Style};
use crate::summary::{doubt_list, join};
use crate::text::{clean, clean_whole, plural, wrap};
use duel_model::{Confidence, Doubt, Explanation, Finding};

/// What diagnosis found, as text: each finding with its evidence, how to repeat it and what to try next, then what was
/// ruled out and which probes could not be made.
pub fn explanation(explanation: &Explanation, style: Style) -> String {
    let mut sections: Vec<Vec<String>> = explanation.findings.iter().map(|f| finding(f, style)).collect();
    if explanation.findings.is_empty() {
        sections.push(wrap("Diagnosis did not come to its end: no finding", style.columns(), "", "  "));
    }
    let mut doubts: Vec<&Doubt> = Vec::new();
    for doubt in explanation.probes.iter().flat_map(|p| &p.doubts) {
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    sections.push(doubt_list(&doubts, style));
    sections.push(search(explanation, style));
    join(sections, style)
}

fn finding(finding: &Finding, style: Style) -> Vec<String> {
    let width = style.columns();
    let mut lines = wrap(&headline(finding), width, "", "  ");
    if finding.cause != "none" {
        lines.extend(wrap(&clean_whole(&finding.summary), width, "  ", "  "));
    }
    for evidence in &finding.evidence {
        let text = format!("{} [{}]", clean_whole(&evidence.text), clean(&evidence.probe));
        lines.extend(wrap(&text, width, "  - ", "    "));
        if let Some(command) = &evidence.repeat {
            // In one piece, so that it can be copied.
            lines.push(style.paint(Ink::Bar, &format!("      {}", clean_whole(command))));
        }
    }
    let remedy = clean_whole(&finding.remedy);
    if !remedy.trim().is_empty() {
        lines.extend(wrap(&remedy, width, "  Remedy: ", "  "));
    }
    lines
}

/// `Cause: tls.aes-unused on B (likely, explains 97 % of the gap)`. What is only possible is not called the cause.
pub(crate) fn headline(finding: &Finding) -> String {
    let on = finding.target.as_deref().map(|target| format!(" on {}", clean(target))).unwrap_or_default();
    match finding.cause.as_str() {
        "none" => return clean_whole(&finding.summary),
        "unknown" => return format!("Cause: unknown{on}"),
        _ => {}
    }
    let (title, confidence) = match finding.confidence {
        Confidence::Possible => ("Possible cause", None),
        Confidence::Likely => ("Cause", Some("likely".to_owned())),
        Confidence::Confirmed => ("Cause", Some("confirmed".to_owned())),
    };
    let share = finding.explains.filter(|s| s.is_finite()).map(|s| format!("explains {} of the gap", percent(s)));
    let firmness = confidence.into_iter().chain(share).collect::<Vec<_>>().join(", ");
    let firmness = if firmness.is_empty() { firmness } else { format!(" ({firmness})") };
    format!("{title}: {}{on}{firmness}", clean(&finding.cause))
}

/// How the search went: what is excluded, what could not be asked.
fn search(explanation: &Explanation, style: Style) -> Vec<String> {
    let width = style.columns();
    let mut lines = Vec::new();
    if !explanation.ruled_out.is_empty() {
        let causes = explanation.ruled_out.iter().map(|cause| clean(cause)).collect::<Vec<_>>().join(", ");
        lines.extend(wrap(&causes, width, "Ruled out: ", "  "));
    }
    let (made, not_made): (Vec<_>, Vec<_>) = explanation.probes.iter().partition(|p| p.unavailable.is_none());
    if !made.is_empty() {
        let names = made.iter().map(|p| clean(&p.probe.id)).collect::<Vec<_>>().join(", ");
        let text = format!("{names} ({})", plural(made.len() as u64, "probe"));
        lines.extend(wrap(&text, width, "Probed: ", "  "));
    }
    for outcome in not_made {
        let reason = outcome.unavailable.as_deref().map(clean).unwrap_or_default();
        lines.extend(wrap(&format!("{}: {reason}", clean(&outcome.probe.id)), width, "Not probed: ", "  "));
    }
    lines
}
