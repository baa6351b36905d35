//! `none`: there is no gap to explain, or none that was established.

use crate::case::{Case, is_overloaded};
use crate::cause::CauseEntry;
use crate::leads::of_tail;
use crate::repeat;
use crate::unknown;
use duel_model::{
    Call, Confidence, Doubt, DoubtId, Evidence, Finding, Leads, PairVerdict, call_confidence, format_figure, sanitize,
    sanitize_line,
};

pub(crate) static ENTRY: CauseEntry = CauseEntry {
    id: "none",
    description: "no real difference: what is seen is within the practical margin, or chance",
    signature: "the verdict is equivalent, or no difference was established, and no other metric is called",
    at_most: "confirmed if equivalent",
    needs_machine: false,
};

/// What is said of a pair without a gap; `index` is its target's.
pub(crate) fn finding(case: &Case<'_>, index: usize, pair: &PairVerdict) -> Finding {
    let [target, baseline] = [&pair.target, &pair.baseline].map(|name| sanitize_line(name));
    let metric = pair.metric.name();
    let margin = 100.0 * case.plan.compare.margin;
    let interval = pair.low.zip(pair.high);
    // Doubts are about the comparison, and come up again with it.
    let compared = |text: String| {
        let repeat = repeat::command(case, [0, index], None);
        Evidence::new("comparison", text, repeat)
    };
    let differing = called_in_other_metrics(case, pair);
    let shown = std::iter::once(pair).chain(differing.iter().copied());
    let mut evidence: Vec<_> = shown.map(|pair| compared(figures(pair))).collect();
    let of_pair =
        |name: &Option<String>| name.as_ref().is_none_or(|name| [&pair.target, &pair.baseline].contains(&name));
    let doubts: Vec<_> = case.verdict.doubts.iter().filter(|doubt| of_pair(&doubt.target)).collect();
    evidence.extend(doubts.iter().map(|doubt| compared(sanitize(&doubt.text))));
    let saturated = is_overloaded(case.verdict, pair);

    let includes_one = interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
    let (entry, confidence, summary, remedy) = match pair.call {
        // Probes are judged by the rate, and their phases are means: none of them tells where a tail comes from.
        _ if !differing.is_empty() && (pair.call == Call::Equivalent || !saturated) => (
            &unknown::ENTRY,
            Confidence::Possible,
            format!(
                "{target} is {} than {baseline}, though by its {metric} {}: no probe tells why.",
                listed(&differing),
                if pair.call == Call::Equivalent {
                    format!("it is equivalent, within {margin:.0} %")
                } else {
                    "no difference was established".to_owned()
                }
            ),
            format!(
                "Look at when the slow {} come (`duel report` draws times over the run), and at what {} does then.",
                case.plan.schema().op.many,
                if differing.iter().any(|other| other.call == Call::Slower) { &target } else { &baseline }
            ),
        ),
        // That the interval lies within the margin is the very test of equivalence; no flip could add to it.
        Call::Equivalent => (
            &ENTRY,
            Confidence::Confirmed,
            format!("{target} and {baseline} are equally fast by their {metric}, within {margin:.0} %."),
            "Nothing to mend. A smaller difference can be looked for with a smaller margin and more time.".to_owned(),
        ),
        // A gap that could not be opened: its interval or what the targets showed is not there.
        Call::Slower | Call::Faster => (
            &unknown::ENTRY,
            Confidence::Possible,
            format!("{target} and {baseline} differ, but too little is known of the comparison to look for a cause."),
            "Measure again, longer, and ask again why.".to_owned(),
        ),
        _ if saturated => (
            &unknown::ENTRY,
            Confidence::Possible,
            format!("Not to be told: the generator was the bottleneck, not {target} or {baseline}."),
            "Offer less load (fewer connections or a lower rate), give the generator more CPUs or its own machine, and \
             compare again."
                .to_owned(),
        ),
        _ if includes_one => (
            &ENTRY,
            Confidence::Possible,
            format!("No difference between {target} and {baseline} was established, but neither was that there is none."),
            if doubts.iter().any(|doubt| weighs(doubt)) {
                "Look at the doubts of the comparison first; then measure again, longer, or on quieter machines.".to_owned()
            } else {
                "Measure longer, or on quieter machines, to make the interval narrower.".to_owned()
            },
        ),
        _ if interval.is_some() => (
            &unknown::ENTRY,
            Confidence::Possible,
            format!("{}: too little to look for a cause.", why_no_call(case, pair, &doubts)),
            if doubts.iter().any(|doubt| weighs(doubt)) {
                "Look at the doubts of the comparison first; then measure again, longer.".to_owned()
            } else {
                "Measure longer to make the interval narrower, then ask again why.".to_owned()
            },
        ),
        _ => (
            &unknown::ENTRY,
            Confidence::Possible,
            format!("{target} and {baseline} could not be compared."),
            "Look at the doubts and failures of the comparison first; then measure again, longer.".to_owned(),
        ),
    };
    Finding {
        cause: entry.id.to_owned(),
        target: (case.plan.targets.len() > 2).then(|| pair.target.clone()),
        confidence,
        explains: None,
        summary,
        evidence,
        remedy,
        leads: match &differing[..] {
            [] => Leads::default(),
            [first, ..] if first.call == Call::Slower => of_tail(case, index, 0),
            [..] => of_tail(case, 0, index),
        },
    }
}

/// What else was called of the same pair: a tail may differ where the rate does not.
fn called_in_other_metrics<'a>(case: &Case<'a>, pair: &PairVerdict) -> Vec<&'a PairVerdict> {
    let of_pair = case.verdict.pairs.iter().filter(|other| other.target == pair.target && other.metric != pair.metric);
    of_pair.filter(|other| matches!(other.call, Call::Slower | Call::Faster)).collect()
}

/// `slower by its response p99 (3.02x)`, and so on for each metric.
fn listed(differing: &[&PairVerdict]) -> String {
    let one = |pair: &&PairVerdict| {
        let slower = pair.call == Call::Slower;
        let times = pair.slowdown().map(|(ratio, _, _)| if slower { ratio } else { 1.0 / ratio });
        let times = times.map_or_else(String::new, |times| format!(" ({}x)", format_figure(times)));
        format!("{} by its {}{times}", if slower { "slower" } else { "faster" }, pair.metric.name())
    };
    differing.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// The ratio of a pair in its metric, with its interval.
fn figures(pair: &PairVerdict) -> String {
    let [target, baseline] = [&pair.target, &pair.baseline].map(|name| sanitize_line(name));
    let metric = pair.metric.name();
    match (pair.ratio, pair.low.zip(pair.high)) {
        (Some(ratio), Some((low, high))) => format!(
            "{metric} of {target} over {baseline}: {ratio:.3} ({:.0} % interval {low:.3} to {high:.3}, {} slots)",
            100.0 * pair.confidence,
            pair.slots
        ),
        _ => format!("{metric} of {target} over {baseline}: no interval ({} slots)", pair.slots),
    }
}

/// Why slower or faster is not called though the interval leaves out 1. By how much they differ is not the question where
/// the estimate is beyond the margin: there the interval that calls rest on holds 1, or a doubt may have made the difference.
fn why_no_call(case: &Case<'_>, pair: &PairVerdict, doubts: &[&Doubt]) -> String {
    let [target, baseline] = [&pair.target, &pair.baseline].map(|name| sanitize_line(name));
    let margin = case.plan.compare.margin.max(0.0);
    if pair.ratio.is_some_and(|ratio| ratio.ln().abs() <= margin.ln_1p()) {
        let margin = 100.0 * margin;
        return format!("{target} and {baseline} differ, but whether by more than {margin:.0} % was not established");
    }
    // As many digits as it takes.
    let percent = |share: f64| (1e6 * 100.0 * share).round() / 1e6;
    let (shown, calling) = (percent(pair.confidence), percent(call_confidence(pair.confidence)));
    let differ = format!("At {shown} % {target} and {baseline} differ, but slower or faster is called at {calling} %");
    if doubts.iter().any(|doubt| weighs(doubt)) {
        format!("{differ}, and not where a doubt may have made the difference")
    } else {
        format!("{differ}, for which {} slots are too few or scatter too much", pair.slots)
    }
}

/// Whether calls are withheld for such a doubt, where it is large enough. That of a saturated generator is told by itself.
fn weighs(doubt: &Doubt) -> bool {
    use DoubtId::{Errors, NotRecorded, RateNotReached, TargetDied, TooFewSlots, Uneven, Unfinished};
    matches!(doubt.id, RateNotReached | TooFewSlots | Unfinished | Errors | NotRecorded | TargetDied | Uneven)
}
