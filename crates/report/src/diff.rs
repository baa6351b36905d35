//! Two runs beside each other: what was different, and what came out.

mod options;

use crate::figures::{Lengths, UNKNOWN, maybe, rate, three_digits};
use crate::sentence::{headlines, pair_sentence};
use crate::style::Style;
use crate::summary::join;
use crate::table::{Align, Row, Table};
use crate::text::{clean, clean_whole, wrap};
use crate::totals::{Totals, all_doubts, totals};
use crate::{contest, negotiated, search, settings};
use duel_model::{Doubt, Plan, Run, Verdict, Versions};
use serde_json::Value;
use std::collections::BTreeMap;

/// What differs between two runs in plan, versions and negotiation, what each of them said, and the figures of each
/// target with their ratio. No verdict: runs made at different times are not paired.
pub fn diff(a: (&Run, &Verdict), b: (&Run, &Verdict), style: Style) -> String {
    let mut sections = vec![not_paired(a.0, b.0, style)];
    for (label, (run, verdict)) in [("1", a), ("2", b)] {
        sections.push(said(label, run, verdict, style));
    }
    sections.push(differences("Plan", &plan_facts(&a.0.plan), &plan_facts(&b.0.plan), style));
    let versions = (version_facts(&a.0.versions), version_facts(&b.0.versions));
    sections.push(differences("Versions", &versions.0, &versions.1, style));

    let (first, second) = (totals(a.0), totals(b.0));
    let mut only = Vec::new();
    for target in &first {
        match second.iter().find(|t| t.name == target.name) {
            Some(other) => {
                let title = format!("{} with {}", target.schema.facts_title, target.name);
                sections.push(differences(&title, &negotiated_facts(target), &negotiated_facts(other), style));
                sections.push(figures(target, other, style));
            }
            None => only.extend(wrap(&format!("Only in run 1: {}", target.name), style.columns(), "", "  ")),
        }
    }
    for target in second.iter().filter(|t| first.iter().all(|other| other.name != t.name)) {
        only.extend(wrap(&format!("Only in run 2: {}", target.name), style.columns(), "", "  "));
    }
    sections.push(only);
    join(sections, style)
}

fn not_paired(a: &Run, b: &Run, style: Style) -> Vec<String> {
    let text = "No verdict: the two runs were made at different times and are not paired. What changed between them, \
                on the machines or on the way, is in the ratios below as well. To compare, run the targets in one run.";
    let mut lines = wrap(text, style.columns(), "", "");
    for (label, run) in [("1", a), ("2", b)] {
        let text = format!("{}, {} UTC", clean_whole(&run.id), crate::utc(run.started_unix_ms));
        lines.extend(wrap(&text, style.columns(), &format!("Run {label}  "), "       "));
    }
    lines
}

/// What a run said by itself.
fn said(label: &str, run: &Run, verdict: &Verdict, style: Style) -> Vec<String> {
    let doubts: Vec<Doubt> = all_doubts(run, verdict).into_iter().cloned().collect();
    let mut lines = Vec::new();
    let first = format!("Run {label}  ");
    for text in headlines(verdict) {
        lines.extend(wrap(&text, style.columns(), &first, "       "));
    }
    for pair in &verdict.pairs {
        let text = pair_sentence(verdict, pair, run.plan.compare.margin, &doubts);
        lines.extend(wrap(&text, style.columns(), &first, "       "));
    }
    for contest in &verdict.contests {
        let text = contest::sentence(contest, search::promises(verdict), run.plan.compare.margin);
        lines.extend(wrap(&text, style.columns(), &first, "       "));
    }
    for wanted in &verdict.searches {
        let name = run.plan.targets.get(wanted.target).map(|target| clean(&target.name)).unwrap_or_default();
        lines.extend(wrap(&format!("{name}: {}", search::answer(wanted)), style.columns(), &first, "       "));
    }
    if let Some(text) = settings::ended_early(&run.status) {
        lines.extend(wrap(&text, style.columns(), &first, "       "));
    }
    if !doubts.is_empty() {
        let text = format!("{} (duel show {})", crate::text::plural(doubts.len() as u64, "doubt"), clean(&run.id));
        lines.extend(wrap(&text, style.columns(), &first, "       "));
    }
    lines
}

/// The figures of one target in both runs.
fn figures(first: &Totals<'_>, second: &Totals<'_>, style: Style) -> Vec<String> {
    let row = |label: &str, values: [Option<f64>; 2], show: &dyn Fn(f64) -> String| {
        let [a, b] = values;
        let ratio = a.filter(|&v| v > 0.0).zip(b).map(|(a, b)| b / a);
        let ratio = ratio.map_or_else(|| UNKNOWN.to_owned(), three_digits);
        Row::new(label, vec![maybe(a, show), maybe(b, show), ratio])
    };
    let times = |q: f64| [first, second].map(|t| t.tally.response.quantile_ns(q).map(|ns| ns as f64));
    let (p50, p99) = (times(0.5), times(0.99));
    let [of_p50, of_p99] = [p50, p99].map(|pair| Lengths::beside(pair.into_iter().flatten()));
    let count = |n: u64| crate::figures::count(n);
    let counts = |f: &dyn Fn(&Totals<'_>) -> u64| vec![count(f(first)), count(f(second))];
    let mut rows = vec![
        Row::new("ok", counts(&|t| t.tally.ok)),
        Row::new("failed", counts(&|t| t.tally.failed_total())),
        row("rate", [first.rate_per_s(), second.rate_per_s()], &rate),
    ];
    if ![first, second].iter().all(|t| t.tally.is_streamed()) {
        rows.push(row("response p50", p50, &|ns| of_p50.show(ns)));
        rows.push(row("response p99", p99, &|ns| of_p99.show(ns)));
    }
    let heads = vec!["run 1".to_owned(), "run 2".to_owned(), "ratio".to_owned()];
    let table = Table { corner: first.name.clone(), heads, rows, align: Align::Right };
    table.lines(style.columns())
}

type Named = BTreeMap<String, String>;

/// The facts in which the two differ, side by side.
fn differences(title: &str, first: &Named, second: &Named, style: Style) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let rows: Vec<Row> = names
        .into_iter()
        .filter(|name| first.get(*name) != second.get(*name))
        .map(|name| {
            let cell = |facts: &Named| facts.get(name).map_or_else(|| UNKNOWN.to_owned(), |text| clean(text));
            Row::new(format!("  {}", clean(name)), vec![cell(first), cell(second)])
        })
        .collect();
    if rows.is_empty() {
        return wrap(&format!("{title}: the same"), style.columns(), "", "  ");
    }
    let mut lines = wrap(&format!("{title}: differs"), style.columns(), "", "  ");
    let heads = vec!["run 1".to_owned(), "run 2".to_owned()];
    lines.extend(Table { corner: String::new(), heads, rows, align: Align::Left }.lines(style.columns()));
    lines
}

/// Every field of the plan, so that none that is added later is forgotten here: by the option that sets it, or else by its path.
fn plan_facts(plan: &Plan) -> Named {
    let mut facts = fields(plan);
    // Of a comparison -d sets both.
    if plan.targets.len() > 1 && facts.get("load.bound.duration") == facts.get("compare.max_load_ns") {
        facts.remove("load.bound.duration");
    }
    facts.iter().map(|(path, value)| options::as_typed(plan, path, value)).collect()
}

/// The fields of a plan by their path, as they may be shown.
fn fields(plan: &Plan) -> Named {
    let (shown, mut facts) = (plan.shown(), Named::new());
    if let Ok(value) = serde_json::to_value(&shown) {
        flatten("", &value, &mut facts);
    }
    options::join(&shown, &mut facts);
    facts
}

fn version_facts(versions: &Versions) -> Named {
    let mut facts = Named::new();
    if let Ok(value) = serde_json::to_value(versions) {
        flatten("", &value, &mut facts);
    }
    facts
}

fn negotiated_facts(target: &Totals<'_>) -> Named {
    target.negotiated.iter().flat_map(negotiated::rows_to_compare).collect()
}

fn flatten(path: &str, value: &Value, facts: &mut Named) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                flatten(&below(name), field, facts);
            }
        }
        // Lists of plain values read better in one line: versions, ciphers, groups.
        Value::Array(items) if items.iter().all(|i| !i.is_object() && !i.is_array()) => {
            let text = items.iter().map(plain).collect::<Vec<_>>().join(" ");
            facts.insert(path.to_owned(), if text.is_empty() { "none".to_owned() } else { text });
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                flatten(&below(&(i + 1).to_string()), item, facts);
            }
        }
        other => {
            facts.insert(path.to_owned(), plain(other));
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}
