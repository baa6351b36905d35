//! Why: findings first, then what was ruled out.

use crate::figures::percent;
use crate::leads;
use crate::style::{Ink, Style};
use crate::summary::{doubt_list, join};
use crate::text::{clean, clean_whole, plural, wrap};
use duel_model::{AboutCause, Confidence, Doubt, Evidence, Explanation, Finding, Stands};

/// What diagnosis found, as text: each finding with its evidence, how to repeat it and what to try next, then what was
/// ruled out and which probes could not be made.
pub fn explanation(explanation: &Explanation, style: Style) -> String {
    let mut repeated: Vec<&str> = Vec::new();
    let mut sections: Vec<Vec<String>> =
        explanation.findings.iter().map(|f| finding(f, &explanation.ruled_out, &mut repeated, style)).collect();
    if explanation.findings.is_empty() {
        sections.push(wrap("Diagnosis did not come to its end: no finding", style.columns(), "", "  "));
    }
    let doubts = doubts_of_probes(explanation);
    sections.push(doubt_list(&doubts.iter().collect::<Vec<_>>(), style));
    sections.push(search(explanation, style));
    join(sections, style)
}

/// What weakens probes. What several probes have is told once, in the words of the first one: probes that say it in the same
/// words are named together, those with other figures after them. Two doubts of one probe always stay two.
pub(crate) fn doubts_of_probes(explanation: &Explanation) -> Vec<Doubt> {
    let mut told: Vec<DoubtOfProbes<'_>> = Vec::new();
    for probed in &explanation.probes {
        let id = probed.probe.id.as_str();
        for doubt in &probed.doubts {
            let of_another_probe = |known: &&mut DoubtOfProbes<'_>| {
                known.doubt.id == doubt.id && known.doubt.target == doubt.target && !known.is_of(id)
            };
            match told.iter_mut().find(of_another_probe) {
                Some(known) if known.doubt.text == doubt.text => known.same.push(id),
                Some(known) => known.other_figures.push(id),
                None => told.push(DoubtOfProbes { doubt, same: vec![id], other_figures: Vec::new() }),
            }
        }
    }
    told.iter().map(DoubtOfProbes::told).collect()
}

/// A doubt and the probes that have it.
struct DoubtOfProbes<'a> {
    doubt: &'a Doubt,
    same: Vec<&'a str>,
    other_figures: Vec<&'a str>,
}

impl DoubtOfProbes<'_> {
    fn is_of(&self, probe: &str) -> bool {
        self.same.contains(&probe) || self.other_figures.contains(&probe)
    }

    fn told(&self) -> Doubt {
        let also = match self.other_figures.as_slice() {
            [] => String::new(),
            others => format!("; with other figures in {}", others.join(", ")),
        };
        Doubt { text: format!("{} [{}{also}]", self.doubt.text, self.same.join(", ")), ..self.doubt.clone() }
    }
}

/// A finding. Causes that are no finding are told by their reason, each reason once; a command that repeats several pieces
/// of evidence stands below the first of them.
fn finding<'a>(finding: &'a Finding, ruled_out: &[String], repeated: &mut Vec<&'a str>, style: Style) -> Vec<String> {
    let width = style.columns();
    let mut lines = wrap(&headline(finding), width, "", "  ");
    if finding.cause != "none" {
        lines.extend(wrap(&clean_whole(&finding.summary), width, "  ", "  "));
    }
    lines.extend(leads_of(finding, style));
    let (of_causes, told): (Vec<_>, Vec<_>) =
        finding.evidence.iter().partition(|evidence| about_a_cause(evidence, ruled_out).is_some());
    for evidence in told {
        let text = format!("{} [{}]", clean_whole(&evidence.told()), clean(&evidence.probe));
        lines.extend(wrap(&text, width, "  - ", "    "));
        if let Some(command) = evidence.repeat.as_deref().filter(|command| !repeated.contains(command)) {
            repeated.push(command);
            // In one piece, so that it can be copied.
            lines.push(style.paint(Ink::Bar, &format!("      {}", clean_whole(command))));
        }
    }
    for (title, reasons) in by_reason(&of_causes) {
        lines.push(format!("  {title}"));
        for (causes, reason) in reasons {
            let causes = causes.iter().map(|cause| clean(cause)).collect::<Vec<_>>().join(", ");
            lines.extend(wrap(&format!("{causes}: {}", clean_whole(reason)), width, "  - ", "    "));
        }
    }
    if of_causes.iter().any(|evidence| excludes(evidence, ruled_out)) {
        let text = "Why each of the causes below is ruled out: --json, or duel report.";
        lines.extend(wrap(text, width, "  ", "  "));
    }
    let remedy = clean_whole(&finding.remedy);
    if !remedy.trim().is_empty() {
        lines.extend(wrap(&remedy, width, "  Remedy: ", "  "));
    }
    lines
}

/// Where to look next, numbered in the order in which it is worth it, and what was not read.
fn leads_of(finding: &Finding, style: Style) -> Vec<String> {
    let width = style.columns();
    let (first, unread) = (leads::first(finding), leads::unread(finding));
    let mut lines = Vec::new();
    if !first.is_empty() {
        lines.push(format!("  {}", leads::FIRST));
    }
    for (number, (text, look)) in first.into_iter().enumerate() {
        lines.extend(wrap(&clean_whole(text), width, &format!("  {}. ", number + 1), "     "));
        lines.extend(look.map(|command| style.paint(Ink::Bar, &format!("       {}", clean_whole(command)))));
    }
    lines.extend(leads::more(finding).map(|text| format!("     ({text})")));
    let unread: Vec<String> = unread.flat_map(|text| wrap(&clean_whole(text), width, "  - ", "    ")).collect();
    if !unread.is_empty() {
        lines.push(format!("  {}", leads::UNREAD));
        lines.extend(unread);
    }
    lines
}

/// The cause that a piece of evidence leaves open, or that it excludes and that is listed as `ruled_out`.
fn about_a_cause<'a>(evidence: &'a Evidence, ruled_out: &[String]) -> Option<&'a AboutCause> {
    evidence.about.as_ref().filter(|about| about.stands != Stands::RuledOut || ruled_out.contains(&about.cause))
}

/// Whether it tells why a cause is listed as `ruled_out`.
pub(crate) fn excludes(evidence: &Evidence, ruled_out: &[String]) -> bool {
    about_a_cause(evidence, ruled_out).is_some_and(|about| about.stands == Stands::RuledOut)
}

/// Reasons with the causes that share them.
type Reasons<'a> = Vec<(Vec<&'a str>, &'a str)>;

/// What is open, and what several causes are ruled out by: a reason of one cause alone is found in the document and on the
/// page, or this list would hide what matters.
fn by_reason<'a>(of_causes: &[&'a Evidence]) -> Vec<(&'static str, Reasons<'a>)> {
    let grouped = |excluded: bool| {
        let mut reasons: Reasons<'a> = Vec::new();
        for (about, evidence) in of_causes.iter().filter_map(|evidence| Some((evidence.about.as_ref()?, evidence))) {
            if excluded != (about.stands == Stands::RuledOut) {
                continue;
            }
            match reasons.iter_mut().find(|(_, reason)| *reason == evidence.text) {
                Some((causes, _)) => causes.push(&about.cause),
                None => reasons.push((vec![&about.cause], &evidence.text)),
            }
        }
        reasons
    };
    let shared: Reasons<'a> = grouped(true).into_iter().filter(|(causes, _)| causes.len() > 1).collect();
    [("Open:", grouped(false)), ("Ruled out together:", shared)]
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
        let reason = outcome.unavailable.as_ref().map(|why| clean(why.told())).unwrap_or_default();
        lines.extend(wrap(&format!("{}: {reason}", clean(&outcome.probe.id)), width, "Not probed: ", "  "));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{DoubtId, Leads, ProbeOutcome, Variation};

    fn said(probe: &str, text: &str, repeat: Option<&str>) -> Evidence {
        Evidence::new(probe, text, repeat.map(str::to_owned))
    }

    fn about(cause: &str, stands: Stands, evidence: Evidence) -> Evidence {
        Evidence { about: Some(AboutCause { cause: cause.to_owned(), stands }), ..evidence }
    }

    #[test]
    fn causes_that_share_a_reason_are_told_once_and_so_are_commands() {
        use Stands::{Open, RuledOut};
        let no_tls = |cause: &str| about(cause, RuledOut, said("first-contact", "B does not use TLS", None));
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
                about(
                    "http.compression",
                    RuledOut,
                    said("identity", "B does not compress", Some("duel a b --encoding identity")),
                ),
                about("net.rate-cap", Open, said("hosts", "too small to tell", None)),
                about("net.small-window", Stands::Suspected, said("hosts", "too small to tell", None)),
                // Excluded for this gap, and not for another one.
                about("tls.large-key", RuledOut, said("resumed", "B has a small key", None)),
            ],
            remedy: String::new(),
            leads: Leads::default(),
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
  - not tls.large-key: B has a small key [resumed]
  Open:
  - net.rate-cap, net.small-window: too small to tell
  Ruled out together:
  - tls.aes-unused, tls.no-asm: B does not use TLS
  Why each of the causes below is ruled out: --json, or duel report.

Ruled out: tls.aes-unused, tls.no-asm, http.compression
"
        );
    }

    #[test]
    fn a_doubt_that_several_probes_have_is_told_once() {
        let outcome = |id: &str, doubts: Vec<Doubt>| -> ProbeOutcome {
            let probe =
                serde_json::json!({ "id": id, "question": "", "variation": Variation::default(), "budget_ns": 0 });
            let outcome = serde_json::json!({
                "probe": probe, "pairs": [], "targets": [], "doubts": doubts, "unavailable": null
            });
            serde_json::from_value(outcome).unwrap()
        };
        let waited = |target: &str, text: &str| Doubt {
            id: DoubtId::GeneratorWaited,
            target: Some(target.to_owned()),
            text: text.to_owned(),
        };
        let probes = vec![
            outcome("alone", vec![waited("A", "20 %"), waited("B", "3 %")]),
            outcome("hosts", vec![waited("A", "14 %")]),
            outcome("trip", vec![waited("A", "20 %"), waited("A", "of the first")]),
        ];
        let explained = Explanation { findings: Vec::new(), ruled_out: Vec::new(), probes };
        let told: Vec<String> = doubts_of_probes(&explained).into_iter().map(|doubt| doubt.text).collect();
        assert_eq!(told, ["20 % [alone, trip; with other figures in hosts]", "3 % [alone]", "of the first [trip]"]);
    }
}
