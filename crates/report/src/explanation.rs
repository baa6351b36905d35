//! Why: findings first, then what was ruled out.

use crate::figures::percent;
use crate::style::{Ink, Style};
use crate::summary::{doubt_list, join};
use crate::text::{clean, clean_whole, plural, wrap};
use duel_model::{Confidence, Doubt, Evidence, Explanation, Finding};

/// What diagnosis found, as text: each finding with its evidence, how to repeat it and what to try next, then what was
/// ruled out and which probes could not be made.
pub fn explanation(explanation: &Explanation, style: Style) -> String {
    let mut repeated: Vec<&str> = Vec::new();
    let mut sections: Vec<Vec<String>> =
        explanation.findings.iter().map(|f| finding(f, &explanation.ruled_out, &mut repeated, style)).collect();
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

/// A finding. Causes that are no finding are told by their reason, each reason once; a command that repeats several pieces
/// of evidence stands below the first of them.
fn finding<'a>(finding: &'a Finding, ruled_out: &[String], repeated: &mut Vec<&'a str>, style: Style) -> Vec<String> {
    let width = style.columns();
    let mut lines = wrap(&headline(finding), width, "", "  ");
    if finding.cause != "none" {
        lines.extend(wrap(&clean_whole(&finding.summary), width, "  ", "  "));
    }
    let (of_causes, told): (Vec<_>, Vec<_>) =
        finding.evidence.iter().partition(|evidence| about_a_cause(&evidence.text, ruled_out).is_some());
    for evidence in told {
        let text = format!("{} [{}]", clean_whole(&evidence.text), clean(&evidence.probe));
        lines.extend(wrap(&text, width, "  - ", "    "));
        if let Some(command) = evidence.repeat.as_deref().filter(|command| !repeated.contains(command)) {
            repeated.push(command);
            // In one piece, so that it can be copied.
            lines.push(style.paint(Ink::Bar, &format!("      {}", clean_whole(command))));
        }
    }
    for (title, reasons) in by_reason(&of_causes, ruled_out) {
        lines.push(format!("  {title}"));
        for (causes, reason) in reasons {
            let causes = causes.iter().map(|cause| clean(cause)).collect::<Vec<_>>().join(", ");
            lines.extend(wrap(&format!("{causes}: {}", clean_whole(reason)), width, "  - ", "    "));
        }
    }
    if of_causes.iter().any(|evidence| about_a_cause(&evidence.text, ruled_out).is_some_and(|about| !about.is_open)) {
        let text = "Why each of the causes below is ruled out: --json, or duel report.";
        lines.extend(wrap(text, width, "  ", "  "));
    }
    let remedy = clean_whole(&finding.remedy);
    if !remedy.trim().is_empty() {
        lines.extend(wrap(&remedy, width, "  Remedy: ", "  "));
    }
    lines
}

/// What a piece of evidence says of a cause that is no finding.
pub(crate) struct AboutACause<'a> {
    pub(crate) is_open: bool,
    cause: &'a str,
    reason: &'a str,
}

/// `not http.compression: B does not compress`, `open: net.rate-cap: too small to tell`.
pub(crate) fn about_a_cause<'a>(text: &'a str, ruled_out: &[String]) -> Option<AboutACause<'a>> {
    let (is_open, rest) = match text.strip_prefix("open: ") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("not ")?),
    };
    let (cause, reason) = rest.split_once(": ")?;
    let is_id = !cause.contains(' ') && cause.contains('.');
    (is_id && (is_open || ruled_out.iter().any(|id| id == cause))).then_some(AboutACause { is_open, cause, reason })
}

/// Reasons with the causes that share them.
type Reasons<'a> = Vec<(Vec<&'a str>, &'a str)>;

/// What is open, and what several causes are ruled out by: a reason of one cause alone is found in the document and on the
/// page, or this list would hide what matters.
fn by_reason<'a>(evidence: &[&'a Evidence], ruled_out: &[String]) -> Vec<(&'static str, Reasons<'a>)> {
    let grouped = |wants_open: bool| {
        let mut reasons: Reasons<'a> = Vec::new();
        for about in evidence.iter().filter_map(|evidence| about_a_cause(&evidence.text, ruled_out)) {
            if about.is_open != wants_open {
                continue;
            }
            match reasons.iter_mut().find(|(_, reason)| *reason == about.reason) {
                Some((causes, _)) => causes.push(about.cause),
                None => reasons.push((vec![about.cause], about.reason)),
            }
        }
        reasons
    };
    let shared: Reasons<'a> = grouped(false).into_iter().filter(|(causes, _)| causes.len() > 1).collect();
    [("Open:", grouped(true)), ("Ruled out together:", shared)]
        .into_iter()
        .filter(|(_, reasons)| !reasons.is_empty())
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(probe: &str, text: &str, repeat: Option<&str>) -> Evidence {
        Evidence { probe: probe.to_owned(), text: text.to_owned(), repeat: repeat.map(str::to_owned) }
    }

    #[test]
    fn causes_that_share_a_reason_are_told_once_and_so_are_commands() {
        let no_tls = |cause: &str| said("first-contact", &format!("not {cause}: B does not use TLS"), None);
        let finding = Finding {
            cause: "unknown".to_owned(),
            target: Some("B".to_owned()),
            confidence: Confidence::Possible,
            explains: None,
            summary: "B is 3.00x slower than A, and no known cause fits.".to_owned(),
            evidence: vec![
                said("comparison", "over 4 connections: B 3.00x slower than A", Some("duel a b -c 4")),
                said("comparison", "all of it is in wait", Some("duel a b -c 4")),
                no_tls("tls.aes-unused"),
                no_tls("tls.no-asm"),
                said("identity", "not http.compression: B does not compress", Some("duel a b --encoding identity")),
                said("hosts", "open: net.rate-cap: too small to tell", None),
                said("hosts", "open: net.small-window: too small to tell", None),
                // Of no cause at all.
                said("comparison", "not so: it is not", None),
            ],
            remedy: String::new(),
        };
        let ruled_out = ["tls.aes-unused", "tls.no-asm", "http.compression"].map(str::to_owned).to_vec();
        let explained = Explanation { findings: vec![finding], ruled_out, probes: Vec::new() };
        assert_eq!(
            explanation(&explained, Style::default()),
            "\
Cause: unknown on B
  B is 3.00x slower than A, and no known cause fits.
  - over 4 connections: B 3.00x slower than A [comparison]
      duel a b -c 4
  - all of it is in wait [comparison]
  - not so: it is not [comparison]
  Open:
  - net.rate-cap, net.small-window: too small to tell
  Ruled out together:
  - tls.aes-unused, tls.no-asm: B does not use TLS
  Why each of the causes below is ruled out: --json, or duel report.

Ruled out: tls.aes-unused, tls.no-asm, http.compression
"
        );
    }
}
