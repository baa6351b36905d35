//! What factors do, in tables and sentences; the terminal and the page show the same ones.

mod amounts;

use crate::figures::{Lengths, UNKNOWN, exact_percent, maybe, near_one, percent, rate, three_digits};
use crate::level_chart::level_chart;
use crate::negotiated;
use crate::sentence::pair_sentence;
use crate::settings;
use crate::style::{Ink, Style};
use crate::summary::{addresses, failure_examples, failure_rows, first_of_all};
use crate::table::{Align, Row, Table};
use crate::text::{clean, plural, wrap};
use crate::totals::{Totals, all_doubts, op_noun};
use duel_model::{
    Call, Costs, Dependence, DependenceAnswer, Doubt, Experiment, Factor, LevelVerdict, Metric, Ranged, Run, Scaling,
    ScalingCurve, ScalingDifference, ScalingLaw, TargetCosts, Verdict,
};

/// Most treatments that are listed one by one beside the tables of factors; all are in the JSON document.
const MOST_LISTED: usize = 30;

/// A part of an experiment's report: a title, a table, and sentences below it.
pub(crate) struct Part {
    pub(crate) title: String,
    pub(crate) table: Option<Table>,
    pub(crate) notes: Vec<String>,
}

/// The sections of the report up to the doubts.
pub(crate) fn sections(
    run: &Run,
    verdict: &Verdict,
    experiment: &Experiment,
    targets: &[Totals<'_>],
    style: Style,
) -> Vec<Vec<String>> {
    let width = style.columns();
    let mut head = first_of_all(verdict, style);
    head.extend(wrap(&overview(run, experiment), width, "", "  "));
    for (ink, text) in sentences(run, verdict) {
        head.extend(style.paint_lines(ink, wrap(&text, width, "", "  ")));
    }
    if let Some(text) = settings::ended_early(&run.status) {
        head.extend(style.paint_lines(Some(Ink::Doubt), wrap(&text, width, "", "  ")));
    }
    let mut sections = vec![head, addresses(targets, style), counts(run, targets).lines(width)];
    let examples: Vec<String> = targets.iter().flat_map(|target| failure_examples(target, style)).collect();
    if !examples.is_empty() {
        sections.push([vec!["First failures".to_owned()], examples].concat());
    }
    for part in parts(run, experiment, targets) {
        let mut lines = wrap(&part.title, width, "", "  ");
        lines.extend(part.table.iter().flat_map(|table| table.lines(width)));
        lines.extend(part.notes.iter().flat_map(|note| wrap(note, width, "", "  ")));
        sections.push(lines);
    }
    let names: Vec<&str> = run.plan.targets.iter().map(|target| target.name.as_str()).collect();
    let charts = experiment.factors.iter().map(|factor| level_chart(factor, &names, style));
    sections.extend(charts.filter(|chart| !chart.is_empty()));
    if targets.iter().all(|target| target.schema.runs_targets) {
        // What ran is told beside how fast it was. Of servers, treatments change what is agreed.
        sections.push(negotiated::side_by_side(targets, style));
    }
    sections
}

/// `5 treatments on 2 targets, 9 complete blocks`.
pub(crate) fn overview(run: &Run, experiment: &Experiment) -> String {
    format!(
        "{} on {}, {} in random order",
        plural(experiment.treatments.len() as u64, "treatment"),
        plural(run.plan.targets.len() as u64, "target"),
        plural(u64::from(experiment.blocks), "complete block")
    )
}

/// The main metric of each target over all treatments, and on what it depends.
pub(crate) fn sentences(run: &Run, verdict: &Verdict) -> Vec<(Option<Ink>, String)> {
    let doubts: Vec<Doubt> = all_doubts(run, verdict).into_iter().cloned().collect();
    let mut seen: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for pair in &verdict.pairs {
        if seen.contains(&pair.target.as_str()) {
            continue;
        }
        seen.push(&pair.target);
        let text = pair_sentence(verdict, pair, run.plan.compare.margin, &doubts);
        let ink = match pair.call {
            Call::Slower => Some(Ink::Slower),
            Call::Faster => Some(Ink::Faster),
            Call::Equivalent | Call::Unknown => None,
        };
        lines.push((ink, format!("Over all treatments (geometric mean): {text}")));
    }
    lines
}

/// How many requests there were; rates and times of different treatments are not put together.
pub(crate) fn counts(run: &Run, targets: &[Totals<'_>]) -> Table {
    let ok = targets.iter().map(|target| crate::figures::count(target.tally.ok)).collect();
    let mut rows = vec![Row::new(format!("{}s ok", op_noun(run)), ok)];
    rows.extend(failure_rows(targets));
    Table { corner: String::new(), heads: targets.iter().map(|t| t.name.clone()).collect(), rows, align: Align::Right }
}

/// Tables of all factors, of treatments where there are several factors, and the scaling law.
pub(crate) fn parts(run: &Run, experiment: &Experiment, targets: &[Totals<'_>]) -> Vec<Part> {
    let mut parts = Vec::new();
    for factor in &experiment.factors {
        for metric in shown_metrics(&factor.levels) {
            let is_main = metrics(&factor.levels).first() == Some(&metric);
            parts.push(Part {
                title: format!("{} by {}", title(metric), factor.name),
                table: Some(levels_table(run, &factor.name, &factor.levels, metric)),
                notes: if is_main {
                    factor.dependences.iter().map(|d| dependence(run, &factor.name, d, experiment.confidence)).collect()
                } else {
                    Vec::new()
                },
            });
        }
    }
    if experiment.factors.len() > 1 {
        parts.extend(treatments(run, experiment));
    }
    if let Some(last) = parts.last_mut() {
        last.notes.push(about_intervals(run, experiment));
    }
    for (place, factor) in experiment.factors.iter().enumerate() {
        parts.extend(amounts::parts(run, place, factor, targets));
    }
    parts.extend(experiment.scaling.as_ref().map(|law| scaling(law, experiment.confidence)));
    parts.extend(experiment.costs.as_ref().map(|found| costs(found, experiment.confidence)));
    parts
}

fn about_intervals(run: &Run, experiment: &Experiment) -> String {
    let confidence = exact_percent(experiment.confidence);
    if run.plan.targets.len() > 1 {
        format!(
            "Each interval holds at {confidence} by itself. Calls are made at so much more that all of one table together \
             err no more often than a single one."
        )
    } else {
        format!("Each interval holds at {confidence} for itself alone.")
    }
}

fn treatments(run: &Run, experiment: &Experiment) -> Option<Part> {
    let main = *metrics(&experiment.treatments).first()?;
    let title = format!("{} by treatment", title(main));
    let count = experiment.treatments.len();
    if count > MOST_LISTED {
        let notes = vec![format!("All {count} are in the JSON document (duel show {} --json).", clean(&run.id))];
        return Some(Part { title, table: None, notes });
    }
    let corner: Vec<&str> = run.plan.factors.iter().map(Factor::name).collect();
    let mut table = levels_table(run, &corner.join(", "), &experiment.treatments, main);
    // The factors' names stand above: the levels do.
    for (treatment, row) in table.rows.iter_mut().enumerate() {
        let level = |(place, factor): (usize, &Factor)| clean(&factor.label(run.plan.level_of(treatment, place)));
        row.label = run.plan.factors.iter().enumerate().map(level).collect::<Vec<_>>().join(", ");
    }
    Some(Part { title, table: Some(table), notes: Vec::new() })
}

/// The metrics of levels, the main one first.
pub(crate) fn metrics(levels: &[LevelVerdict]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for figure in levels.iter().flat_map(|level| &level.figures) {
        if !metrics.contains(&figure.metric) {
            metrics.push(figure.metric);
        }
    }
    metrics
}

/// The main metric and the next one: in a closed loop rate and median, in an open one median and 99th percentile.
fn shown_metrics(levels: &[LevelVerdict]) -> Vec<Metric> {
    metrics(levels).into_iter().take(2).collect()
}

pub(crate) fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "Rate",
        Metric::ResponseP50 => "Median response time",
        Metric::ResponseP99 => "99th percentile of the response time",
    }
}

/// A target's figure at a level.
pub(crate) fn figure<'a>(level: &'a LevelVerdict, target: &str, metric: Metric) -> Option<&'a Ranged> {
    level.figures.iter().find(|f| f.target == target && f.metric == metric).map(|f| &f.figure)
}

/// A row for each level: the figure of each target, then ratio and call of each but the first.
pub(crate) fn levels_table(run: &Run, corner: &str, levels: &[LevelVerdict], metric: Metric) -> Table {
    let names: Vec<&str> = run.plan.targets.iter().map(|target| target.name.as_str()).collect();
    let baseline = names.first().map_or(String::new(), |name| clean(name));
    let mut heads: Vec<String> = names.iter().map(|name| clean(name)).collect();
    for name in names.iter().skip(1) {
        heads.extend([format!("{}/{baseline}", clean(name)), "call".to_owned()]);
    }
    let rows = levels
        .iter()
        .map(|level| {
            let values = names.iter().filter_map(|name| figure(level, name, metric)).map(|figure| figure.value);
            let lengths = Lengths::beside(values);
            let show = |value: f64| if metric == Metric::Rate { rate(value) } else { lengths.show(value) };
            let mut cells: Vec<String> =
                names.iter().map(|name| shown_figure(figure(level, name, metric), show)).collect();
            for name in names.iter().skip(1) {
                let pair = level.pairs.iter().find(|pair| pair.target == *name && pair.metric == metric);
                let ratio = pair.and_then(|p| Some(Ranged { value: p.ratio?, low: p.low, high: p.high }));
                cells.push(shown_figure(ratio.as_ref(), near_one));
                cells.push(pair.map_or(UNKNOWN, |pair| call_word(pair.call)).to_owned());
            }
            Row::new(clean(&level.label), cells)
        })
        .collect();
    Table { corner: clean(corner), heads, rows, align: Align::Right }
}

pub(crate) fn call_word(call: Call) -> &'static str {
    match call {
        Call::Slower => "slower",
        Call::Faster => "faster",
        Call::Equivalent => "equivalent",
        Call::Unknown => "unknown",
    }
}

/// An interval whose ends lie further apart than this does not tell the order of magnitude: the figure is not known.
const WIDEST: f64 = 10.0;

/// Whether an interval says so little that its figure would only be taken for one.
fn says_nothing(figure: &Ranged) -> bool {
    figure.low.zip(figure.high).is_some_and(|(low, high)| high > WIDEST * low)
}

/// `1,234/s ±2 %`, `0.823 ±2 %`: the wider side of the interval as a share.
pub(crate) fn shown_figure(figure: Option<&Ranged>, show: impl Fn(f64) -> String) -> String {
    let Some(figure) = figure else { return UNKNOWN.to_owned() };
    if says_nothing(figure) {
        return "not known".to_owned();
    }
    let wider =
        figure.low.zip(figure.high).map(|(low, high)| (high / figure.value - 1.0).max(1.0 - low / figure.value));
    match wider.filter(|share| share.is_finite()) {
        Some(share) => format!("{} ±{}", show(figure.value), percent(share)),
        None => maybe(Some(figure.value), show),
    }
}

/// `0.823 (0.806 to 0.847)`, with what is not known or open as `-`.
pub(crate) fn bracketed(figure: &Ranged, show: impl Fn(f64) -> String) -> String {
    match (figure.low, figure.high) {
        (None, None) => maybe(Some(figure.value), show),
        (low, high) => format!("{} ({} to {})", show(figure.value), maybe(low, &show), maybe(high, &show)),
    }
}

/// Whether the ratio depends on the factor, in one sentence.
pub(crate) fn dependence(run: &Run, factor: &str, found: &Dependence, confidence: f64) -> String {
    let target = clean(&found.target);
    let baseline = run.plan.targets.first().map_or(String::new(), |target| clean(&target.name));
    let (from, to) = (clean(&found.from), clean(&found.to));
    if says_nothing(&found.change) && found.answer == DependenceAnswer::Unknown {
        return format!(
            "Whether {target}/{baseline} depends on {factor} is not known: the slots leave open more than a factor of \
             {WIDEST} between {from} and {to}."
        );
    }
    let change = bracketed(&found.change, near_one);
    let interval = format!("{} interval for any two levels", exact_percent(confidence));
    match found.answer {
        DependenceAnswer::Depends => format!(
            "{target}/{baseline} depends on {factor}: at {to} it is {change} times what it is at {from} ({interval})."
        ),
        DependenceAnswer::Same => format!(
            "{target}/{baseline} does not depend on {factor} by more than the margin: from {from} to {to} it changes by a \
             factor of {change} ({interval})."
        ),
        DependenceAnswer::Unknown => format!(
            "Whether {target}/{baseline} depends on {factor} is not known: from {from} to {to} it changes by a factor of \
             {change} ({interval})."
        ),
    }
}

/// The law, its parameters and what they say.
fn scaling(scaling: &Scaling, confidence: f64) -> Part {
    let fitted: Vec<(&ScalingCurve, &ScalingLaw)> =
        scaling.curves.iter().filter_map(|curve| Some((curve, curve.law.as_ref()?))).collect();
    let mut notes = Vec::new();
    if !fitted.is_empty() {
        let intervals = if fitted.iter().any(|(_, law)| law.lambda_per_s.low.is_some()) {
            format!("Intervals of {} by resampling whole blocks.", exact_percent(confidence))
        } else {
            "There are too few complete blocks for intervals; a longer time (-d) makes more.".to_owned()
        };
        notes.push(format!(
            "lambda is the rate of one connection alone, sigma the share of work that is done one after the other, kappa \
             what each connection costs each other one. {intervals}"
        ));
    }
    notes.extend(fitted.iter().filter_map(|(curve, law)| in_words(curve, law)));
    notes.extend(scaling.differences.iter().map(difference));
    let is_said = |found: &&ScalingDifference| {
        let of = |name: &str| {
            fitted.iter().find(|(curve, _)| curve.target == name).and_then(|(curve, _)| curve.shape.as_ref())
        };
        [&found.baseline, &found.target].iter().all(|name| of(name).is_some_and(|shape| shape.missing.is_none()))
    };
    notes.extend(scaling.differences.iter().filter(is_said).map(difference_in_words));
    // It is the same for all: they have the same levels.
    let missing = fitted.iter().find_map(|(curve, _)| curve.shape.as_ref()?.missing.as_deref());
    notes.extend(missing.map(|missing| format!("What the law means is not said: that takes {}.", clean(missing))));
    notes.extend(fitted.iter().filter_map(|(curve, law)| misfit(curve, law)));
    // What is left out is left out for all.
    let left_out = scaling.curves.first().map(left_out).unwrap_or_default();
    notes.extend(left_out);
    for curve in &scaling.curves {
        if let Some(why) = &curve.unfitted {
            notes.push(format!("Not fitted to {}: {}.", clean(&curve.target), clean(why)));
        }
    }
    Part {
        title: "Scaling law: rate = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)) at N connections".to_owned(),
        table: (!fitted.is_empty()).then(|| scaling_table(&fitted)),
        notes,
    }
}

/// A value of a law that has an interval.
type Parameter = fn(&ScalingLaw) -> Option<&Ranged>;
/// How it is shown.
type Show = fn(f64) -> String;

fn scaling_table(fitted: &[(&ScalingCurve, &ScalingLaw)]) -> Table {
    let plain: Show = three_digits;
    let rows: [(&str, Parameter, Show); 4] = [
        ("lambda", |law| Some(&law.lambda_per_s), rate),
        ("sigma", |law| Some(&law.sigma), plain),
        ("kappa", |law| Some(&law.kappa), plain),
        ("peak at", |law| law.peak_connections.as_ref(), plain),
    ];
    let heads: Vec<String> = fitted.iter().map(|(curve, _)| clean(&curve.target)).collect();
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|(label, of, show)| {
            let cell = |(_, law): &(&ScalingCurve, &ScalingLaw)| match of(law) {
                Some(value) => bracketed(value, show),
                None => "none seen".to_owned(),
            };
            Row::new(label, fitted.iter().map(cell).collect())
        })
        .collect();
    Table { corner: String::new(), heads, rows, align: Align::Right }
}

/// One law against the other.
fn difference(found: &ScalingDifference) -> String {
    format!(
        "{} against {}: lambda {} times as much, sigma {}, kappa {}.",
        clean(&found.target),
        clean(&found.baseline),
        bracketed(&found.lambda_ratio, near_one),
        signed(&found.sigma_difference),
        signed(&found.kappa_difference)
    )
}

/// What a law means for one target.
fn in_words(curve: &ScalingCurve, law: &ScalingLaw) -> Option<String> {
    let shape = curve.shape.as_ref().filter(|shape| shape.missing.is_none())?;
    let name = clean(&curve.target);
    let at = |connections: u32| curve.points.iter().find(|point| point.connections == connections);
    let (one, most) = (at(1)?, at(shape.peak)?);
    let last = f64::from(shape.last);
    let course = match shape.falls {
        Some(true) => format!(
            "beyond {} the rate falls, to {} of that at {}",
            plural(u64::from(shape.peak), "connection"),
            share(&shape.last_over_peak),
            shape.last
        ),
        Some(false) => format!("up to {} the rate does not fall", plural(u64::from(shape.last), "connection")),
        None => format!("whether it falls up to {} is not known", plural(u64::from(shape.last), "connection")),
    };
    // By the law: what of the rate of so many single ones is lost, and to which of both.
    let (queued, hindered) = (law.sigma.value * (last - 1.0), law.kappa.value * last * (last - 1.0));
    let lost = (queued + hindered) / (1.0 + queued + hindered);
    let to = match queued + hindered {
        0.0 => String::new(),
        both => format!(
            ", {} of it to work that is done one after the other and {} to what connections cost each other",
            percent(queued / both),
            percent(hindered / both)
        ),
    };
    Some(format!(
        "{name} does {} over one connection and most, {}, over {}; {course}. At {} it loses {} of what as many single ones would do{to}.",
        rate(one.rate.value),
        rate(most.rate.value),
        shape.peak,
        shape.last,
        percent(lost)
    ))
}

/// A share with its interval.
fn share(figure: &Ranged) -> String {
    bracketed(figure, percent)
}

/// What two laws mean beside each other.
fn difference_in_words(found: &ScalingDifference) -> String {
    let (name, other) = (clean(&found.target), clean(&found.baseline));
    let ratio = found.lambda_ratio.value;
    let alone = match (found.lambda_ratio.low, found.lambda_ratio.high) {
        (Some(low), Some(high)) if low <= 1.0 && 1.0 <= high => {
            format!("Over one connection no difference between {name} and {other} was established")
        }
        (Some(_), Some(_)) if ratio < 1.0 => {
            format!("Over one connection {name} is {}x slower than {other}", near_one(1.0 / ratio))
        }
        (Some(_), Some(_)) => format!("Over one connection {name} is {}x faster than {other}", near_one(ratio)),
        _ => format!("Over one connection there is no interval for {name} beside {other}"),
    };
    let part = |figure: &Ranged, what: &str| match (figure.low, figure.high) {
        (Some(low), _) if low > 0.0 => format!("{name} loses more than {other} to {what}"),
        (_, Some(high)) if high < 0.0 => format!("{name} loses less than {other} to {what}"),
        (Some(_), Some(_)) => format!("no difference in {what} was established"),
        _ => format!("whether they differ in {what} is not known"),
    };
    format!(
        "{alone}; {}; {}.",
        part(&found.sigma_difference, "work done one after the other (sigma)"),
        part(&found.kappa_difference, "what connections cost each other (kappa)")
    )
}

/// A difference with its sign.
fn signed(figure: &Ranged) -> String {
    bracketed(figure, |value| if value > 0.0 { format!("+{}", three_digits(value)) } else { three_digits(value) })
}

fn misfit(curve: &ScalingCurve, law: &ScalingLaw) -> Option<String> {
    let misfit = law.misfit?;
    let off = if misfit.ratio >= 1.0 { misfit.ratio - 1.0 } else { 1.0 - misfit.ratio };
    Some(format!(
        "The law does not quite describe {}: at {} the rate is {} {} than the law says, which is more than noise and margin; \
         its parameters are a summary, not a mechanism.",
        clean(&curve.target),
        plural(u64::from(misfit.connections), "connection"),
        percent(off),
        if misfit.ratio >= 1.0 { "higher" } else { "lower" }
    ))
}

/// Which levels the fit does not rest on; those with the same reason together.
fn left_out(curve: &ScalingCurve) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for point in &curve.points {
        let Some(why) = point.left_out.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, levels)) => levels.push(point.connections.to_string()),
            None => reasons.push((why, vec![point.connections.to_string()])),
        }
    }
    let told = reasons.into_iter();
    told.map(|(why, levels)| format!("Left out of the fit: {} connections, since {}.", levels.join(", "), clean(why)))
        .collect()
}

/// What an op costs by its parts.
fn costs(found: &Costs, confidence: f64) -> Part {
    let mut notes = Vec::new();
    if !found.targets.is_empty() {
        let has_intervals = found.targets.iter().flat_map(|of| &of.ns).any(|ns| ns.low.is_some());
        let intervals = if has_intervals {
            format!("Intervals of {} by resampling whole blocks.", exact_percent(confidence))
        } else {
            "There are too few complete blocks for intervals; a longer time (-d) makes more.".to_owned()
        };
        notes.push(format!("The time of an op on its thread, as a sum of what it does. {intervals}"));
    }
    for difference in &found.differences {
        let each: Vec<String> = found
            .paid_for
            .iter()
            .zip(&difference.ns)
            .map(|(paid_for, ns)| format!("{paid_for} {}", bracketed(ns, signed_ns)))
            .collect();
        notes.push(format!(
            "{} minus {}: {}.",
            clean(&difference.target),
            clean(&difference.baseline),
            each.join(", ")
        ));
    }
    for of in &found.targets {
        let Some(misfit) = &of.misfit else { continue };
        let off = if misfit.ratio >= 1.0 { misfit.ratio - 1.0 } else { 1.0 - misfit.ratio };
        notes.push(format!(
            "The sum does not quite describe {}: at {} an op takes {} {} than it says, which is more than noise and margin.",
            clean(&of.target),
            clean(&misfit.treatment),
            percent(off),
            if misfit.ratio >= 1.0 { "longer" } else { "less" }
        ));
    }
    notes.extend(found.unfitted.as_ref().map(|why| format!("Not fitted: {}.", clean(why))));
    let cost = |(place, paid_for): (usize, &String)| {
        let cell = |of: &TargetCosts| of.ns.get(place).map_or_else(String::new, |ns| bracketed(ns, ns_text));
        Row::new(paid_for, found.targets.iter().map(cell).collect())
    };
    let table = (!found.targets.is_empty()).then(|| Table {
        corner: "ns".to_owned(),
        heads: found.targets.iter().map(|of| clean(&of.target)).collect(),
        rows: found.paid_for.iter().enumerate().map(cost).collect(),
        align: Align::Right,
    });
    Part { title: "Costs: what an op is paid for".to_owned(), table, notes }
}

/// ns with three digits; below 0.001 ns nothing is left of it.
fn ns_text(ns: f64) -> String {
    if ns.abs() < 0.001 { "0".to_owned() } else { three_digits(ns) }
}

fn signed_ns(ns: f64) -> String {
    format!("{}{} ns", if ns > 0.0 { "+" } else { "" }, ns_text(ns))
}
