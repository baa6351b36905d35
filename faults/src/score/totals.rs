//! The totals: how often duel was right over all results, how firmly, and how soon.

use super::judge::{NONE, Outcome};
use super::keep::Scored;
use super::wilson::interval;
use crate::case::NAMELESS;
use crate::injections::UNPROVEN;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The table of totals of one kind of work, and what belongs beneath it.
pub(super) fn totals(kind: &str, results: &[Scored]) -> String {
    let counted: Vec<&Scored> = results.iter().filter(|result| result.outcome.counts()).collect();
    let faults: Vec<&Scored> =
        counted.iter().copied().filter(|result| !matches!(&*result.cause, NONE | NAMELESS)).collect();
    let equals: Vec<&Scored> = counted.iter().copied().filter(|result| result.cause == NONE).collect();
    let nameless: Vec<&Scored> = counted.iter().copied().filter(|result| result.cause == NAMELESS).collect();
    let first: Vec<&Scored> = faults.iter().copied().filter(|result| result.outcome == Outcome::First).collect();
    let mut text = format!("### Totals of {kind}\n\n| | of | share | 95 % interval (Wilson) |\n|---|---|---|---|\n");
    let mut row = |name: &str, hits: usize, of: usize| {
        let _ = writeln!(text, "| {name} | {hits}/{of} | {} |", share(hits, of));
    };
    let count =
        |of: &[&Scored], wanted: &[Outcome]| of.iter().filter(|result| wanted.contains(&result.outcome)).count();
    row("right cause first", first.len(), faults.len());
    let besides: Vec<bool> =
        first.iter().filter_map(|result| Some(!result.wrongly_blamed.as_ref()?.is_empty())).collect();
    row("of these: something else blamed besides", besides.iter().filter(|any| **any).count(), besides.len());
    let confidences: Vec<&str> =
        first.iter().filter_map(|result| result.right.as_ref()?.confidence.as_deref()).collect();
    for confidence in ["confirmed", "likely", "possible"] {
        let hits = confidences.iter().filter(|told| **told == confidence).count();
        row(&format!("of these: {confidence}"), hits, confidences.len());
    }
    row("right cause among three", count(&faults, &[Outcome::First, Outcome::AmongThree]), faults.len());
    row("unknown", count(&faults, &[Outcome::Unknown]), faults.len());
    let unknown: Vec<&Scored> = faults.iter().copied().filter(|result| result.outcome == Outcome::Unknown).collect();
    let suspects = unknown.iter().filter(|result| result.suspects_the_fault()).count();
    row("of these: the fault suspected", suspects, unknown.len());
    row("wrong", count(&faults, &[Outcome::Wrong]), faults.len());
    let could_acquit: Vec<&Scored> = faults.iter().copied().filter(|result| result.could_acquit()).collect();
    let acquits: Vec<bool> = could_acquit.iter().filter_map(|result| result.acquits()).collect();
    row("the fault ruled out (all are wrong)", acquits.iter().filter(|any| **any).count(), acquits.len());
    row("no answer", count(&faults, &[Outcome::NoAnswer]), faults.len());
    row("equals: nothing blamed", count(&equals, &[Outcome::First]), equals.len());
    row("equals: something blamed", count(&equals, &[Outcome::Wrong]), equals.len());
    row("equals: something suspected", equals.iter().filter(|result| result.suspects_anything()).count(), equals.len());
    row("faults without a name: nothing blamed", count(&nameless, &[Outcome::First]), nameless.len());
    row("faults without a name: something blamed or denied", count(&nameless, &[Outcome::Wrong]), nameless.len());
    text.push('\n');
    text += &seconds(&faults);
    let lost = results.iter().filter(|result| !result.outcome.counts()).count();
    let _ = writeln!(text, "* Not counted, because the fault did not bite or the bench failed: {lost}.");
    let untold = could_acquit.len() - acquits.len();
    if untold > 0 {
        let _ = writeln!(text, "* Of {untold} results of faults it is not known what was ruled out: it was not kept.");
    }
    text += &not_kept("what was blamed besides", first.len() - besides.len());
    text += &not_kept("the confidence", first.len() - confidences.len());
    text += &other_names(&first);
    text.push('\n');
    text
}

/// A share and its interval, as two cells.
pub(crate) fn share(hits: usize, of: usize) -> String {
    match interval(hits, of) {
        None => "- | -".to_owned(),
        Some((low, high)) => {
            let percent = |share: f64| format!("{:.0} %", share * 100.0);
            format!("{} | {} to {}", percent(hits as f64 / of as f64), percent(low), percent(high))
        }
    }
}

/// How long it took to name a cause. An "unknown" is told when the budget is used up, and would say little.
fn seconds(faults: &[&Scored]) -> String {
    let all: Vec<f64> =
        faults.iter().filter(|result| result.names_a_cause()).filter_map(|result| result.seconds).collect();
    let count = all.len();
    match crate::arena::median(all) {
        Ok(median) => format!(
            "* Seconds from the end of the comparison to the finding, where a cause was named: {median:.0} in the median of \
             {count} results.\n"
        ),
        Err(_) => "* Seconds from the end of the comparison to the finding: no cause was named.\n".to_owned(),
    }
}

fn not_kept(what: &str, results: usize) -> String {
    if results == 0 {
        return String::new();
    }
    format!("* Of {results} results that were right first {what} is not known: an older bench has not kept it.\n")
}

/// Faults that were found under another name, which is as right.
fn other_names(first: &[&Scored]) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for result in first {
        if let Some(name) = result.named_as() {
            *counts.entry((&result.cause, name)).or_default() += 1;
        }
    }
    let line = |((cause, name), count): ((&str, &str), usize)| {
        format!("* Among the first are {count} in which `{cause}` was named as `{name}`, which it is as well.\n")
    };
    counts.into_iter().map(line).collect()
}

/// What duel may not name yet, of whatever kind.
pub(super) fn unproven() -> String {
    let causes: Vec<String> = UNPROVEN.iter().map(|(cause, why)| format!("`{cause}` ({why})")).collect();
    format!(
        "Not proven here so far, so duel tells them as suspicions unless it is scored with `--suspects`: {}.\n\n",
        causes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::score::judge::Right;

    #[test]
    fn what_was_not_kept_is_not_counted_as_nought() {
        let cases = crate::injections::cases();
        let key = cases.iter().find(|case| case.truth == ["tls.large-key"]).unwrap();
        let first = |round: u32, confidence: &str, besides: &[&str]| Scored {
            outcome: Outcome::First,
            right: Some(Right { cause: "tls.large-key".into(), confidence: Some(confidence.into()) }),
            wrongly_blamed: Some(besides.iter().map(|&blamed| blamed.to_owned()).collect()),
            ..Scored::new(key, round, "B")
        };
        let old = Scored { outcome: Outcome::First, ..Scored::new(key, 4, "B") };
        let text = totals(
            "web",
            &[
                first(1, "confirmed", &[]),
                first(2, "confirmed", &["net.loss on B", "mem.limit on A"]),
                first(3, "likely", &[]),
                old.clone(),
                Scored {
                    outcome: Outcome::Wrong,
                    wrongly_ruled_out: Some(vec!["tls.large-key".into()]),
                    ..Scored::new(key, 5, "B")
                },
                Scored { outcome: Outcome::Unknown, wrongly_ruled_out: Some(Vec::new()), ..Scored::new(key, 6, "B") },
                Scored { outcome: Outcome::NoAnswer, ..Scored::new(key, 7, "B") },
            ],
        );
        assert!(text.contains("| the fault ruled out (all are wrong) | 1/2 | 50 % |"), "{text}");
        assert!(text.contains("Of 4 results of faults it is not known what was ruled out"), "{text}");
        assert!(text.contains("| right cause first | 4/7 | 57 % |"), "{text}");
        assert!(text.contains("| of these: something else blamed besides | 1/3 | 33 % | 6 % to 79 % |"), "{text}");
        assert!(
            text.contains("| of these: confirmed | 2/3 |") && text.contains("| of these: likely | 1/3 |"),
            "{text}"
        );
        assert!(text.contains("| of these: possible | 0/3 |"), "{text}");
        assert!(text.contains("Of 1 results that were right first what was blamed besides is not known"), "{text}");
        let text = totals("web", &[old]);
        assert!(text.contains("| of these: something else blamed besides | 0/0 | - | - |"), "{text}");
        let known = Scored { wrongly_ruled_out: Some(Vec::new()), ..first(1, "likely", &[]) };
        assert!(!totals("web", &[known]).contains("not known"));
    }

    #[test]
    fn seconds_are_those_of_named_causes() {
        let cases = crate::injections::cases();
        let (equals, key) = (&cases[0], cases.iter().find(|case| case.truth == ["tls.large-key"]).unwrap());
        let said = |case: &Case, round: u32, said: &str, seconds: f64| Scored {
            outcome: Outcome::First,
            said: vec![said.to_owned()],
            seconds: Some(seconds),
            ..Scored::new(case, round, "B")
        };
        let text = totals(
            "web",
            &[
                said(key, 1, "tls.large-key on B", 10.0),
                said(key, 2, "net.loss on A", 20.0),
                said(key, 3, "tls.large-key on B", 30.0),
                said(key, 4, "unknown on B", 900.0),
                said(key, 5, "unknown on B", 900.0),
                said(key, 6, "none", 900.0),
                said(equals, 1, "net.loss on B", 900.0),
            ],
        );
        assert!(text.contains("a cause was named: 20 in the median of 3 results."), "{text}");
        assert!(totals("web", &[]).contains("no cause was named"));
    }

    #[test]
    fn other_names_are_told() {
        let cases = crate::injections::cases();
        let slower = cases.iter().find(|case| case.truth == ["cpu.slower"]).unwrap();
        let named = |round: u32, name: &str| Scored {
            outcome: Outcome::First,
            right: Some(Right { cause: name.into(), confidence: None }),
            ..Scored::new(slower, round, "B")
        };
        let text = totals("web", &[named(1, "cpu.quota"), named(2, "cpu.quota"), named(3, "cpu.slower")]);
        assert!(text.contains("Among the first are 2 in which `cpu.slower` was named as `cpu.quota`"), "{text}");
        assert!(!totals("web", &[named(1, "cpu.slower")]).contains("was named as"));
    }
}
