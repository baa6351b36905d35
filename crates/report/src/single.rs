//! The report of a run on a single target: figures, not a verdict.

use crate::figures::{byte_rate, count, duration, maybe, part, percent, rate};
use crate::settings;
use crate::style::{Ink, Style};
use crate::summary::{
    LAG_QUANTILES, SERVICE_QUANTILES, connection_rows, counter_rows, failure_rows, first_of_all, inflated_rows,
    never_counted, op_time_rows, time_rows, unanswered,
};
use crate::table::{Align, Row, Table};
use crate::text::{clean, wrap};
use crate::totals::{Totals, op_noun};
use crate::{chart, line, negotiated, phases, stages};
use duel_model::{Run, Verdict};

/// The sections of the report up to the doubts.
pub(crate) fn sections(run: &Run, verdict: &Verdict, target: &Totals<'_>, style: Style) -> Vec<Vec<String>> {
    let noun = op_noun(run);
    vec![
        headline(run, verdict, target, noun, style),
        figures(target, noun, style),
        failures(target, style),
        staged(run, target, style),
        spread(target, noun, style),
        phases::spent(target, noun, style),
        chart::rate_over_time(std::slice::from_ref(target), style),
        agreed(target, style),
        generator(target, style),
    ]
}

/// What was done to whom, and how fast it was.
fn headline(run: &Run, verdict: &Verdict, target: &Totals<'_>, noun: &str, style: Style) -> Vec<String> {
    let name = if target.name == target.address { String::new() } else { format!("{}: ", target.name) };
    let mut lines = first_of_all(verdict, style);
    lines.extend(wrap(&format!("{name}{}", target.address), style.columns(), "", "  "));
    lines.extend(wrap(&outcome(target, noun), style.columns(), "", "  "));
    if let Some(text) = settings::ended_early(&run.status) {
        lines.extend(style.paint_lines(Some(Ink::Doubt), wrap(&text, style.columns(), "", "  ")));
    }
    lines
}

/// What came out, in one sentence without a full stop.
pub(crate) fn outcome(target: &Totals<'_>, noun: &str) -> String {
    let median = target.tally.response.quantile_ns(0.5);
    match target.rate_per_s() {
        None => format!("No {noun} was measured"),
        Some(_) if target.tally.ok == 0 => format!(
            "No {noun} ended well in {}: {} failed",
            duration(target.elapsed_ns as f64),
            count(target.tally.failed_total())
        ),
        Some(per_s) => format!(
            "{} {noun}s ok in {}: {}{}{}",
            count(target.tally.ok),
            duration(target.elapsed_ns as f64),
            rate(per_s),
            median.map(|ns| format!(", median response time {}", duration(ns as f64))).unwrap_or_default(),
            match target.tally.response.count().checked_sub(target.tally.ok) {
                None | Some(0) => String::new(),
                Some(without) => format!(" with {} unanswered ones", count(without)),
            }
        ),
    }
}

fn figures(target: &Totals<'_>, noun: &str, style: Style) -> Vec<String> {
    let mut lines = headless(figure_rows(target, noun), Align::Right, style);
    let one = std::slice::from_ref(target);
    let notes = unanswered(noun, one).into_iter().chain(never_counted(one));
    lines.extend(notes.flat_map(|text| wrap(&text, style.columns(), "", "  ")));
    lines
}

/// The figures of a single target.
pub(crate) fn figure_rows(target: &Totals<'_>, noun: &str) -> Vec<Row> {
    let one = std::slice::from_ref(target);
    let tally = &target.tally;
    let mut rows = vec![Row::new(format!("{noun}s ok"), vec![count(tally.ok)])];
    rows.extend(failure_rows(one));
    rows.push(Row::new("rate", vec![maybe(target.rate_per_s(), rate)]));
    if target.counts_bytes() {
        rows.push(Row::new(target.schema.bytes, vec![maybe(target.bytes_per_s(), byte_rate)]));
    }
    rows.extend(line::rows(one));
    rows.extend(inflated_rows(one));
    rows.extend(op_time_rows(one));
    rows.extend(connection_rows(one));
    if !target.schema.lanes_are_threads() {
        rows.push(Row::new("reused", vec![part(tally.reused, tally.started)]));
    }
    if tally.resent > 0 {
        rows.push(Row::new("sent again", vec![count(tally.resent)]));
    }
    if tally.surplus > 0 {
        rows.push(Row::new("with surplus bytes", vec![count(tally.surplus)]));
    }
    if tally.resumed > 0 {
        rows.push(Row::new("TLS resumed", vec![part(tally.resumed, tally.connections)]));
    }
    rows.extend(counter_rows(one));
    for (status, n) in &tally.statuses {
        rows.push(Row::new(format!("status {status}"), vec![count(*n)]));
    }
    rows
}

fn staged(run: &Run, target: &Totals<'_>, style: Style) -> Vec<String> {
    let Some(table) = stages::table(run, target) else { return Vec::new() };
    [wrap(stages::TITLE, style.columns(), "", "  "), table.lines(style.columns())].concat()
}

fn failures(target: &Totals<'_>, style: Style) -> Vec<String> {
    let examples: Vec<String> = target
        .tally
        .failure_examples
        .iter()
        .flat_map(|example| wrap(&clean(example), style.columns(), "  ", "    "))
        .collect();
    if examples.is_empty() { Vec::new() } else { [vec!["First failures".to_owned()], examples].concat() }
}

fn spread(target: &Totals<'_>, noun: &str, style: Style) -> Vec<String> {
    let rows = chart::histogram(&target.tally.response, style);
    if rows.is_empty() {
        return rows;
    }
    let title = format!("Response times of {} {noun}s by range", count(target.tally.response.count()));
    [wrap(&title, style.columns(), "", "  "), rows].concat()
}

fn agreed(target: &Totals<'_>, style: Style) -> Vec<String> {
    let rows: Vec<Row> = target
        .negotiated
        .iter()
        .flat_map(negotiated::rows)
        .map(|(label, value)| Row::new(format!("  {label}"), vec![value]))
        .collect();
    if rows.len() > negotiated::FEW_ROWS {
        return [
            wrap(target.schema.facts_title, style.columns(), "", "  "),
            negotiated::in_a_paragraph(&rows, "  ", style),
        ]
        .concat();
    }
    if rows.is_empty() {
        return Vec::new();
    }
    [vec![target.schema.facts_title.to_owned()], headless(rows, Align::Left, style)].concat()
}

/// What the generator found out about itself: whether the figures are the server's or ours.
fn generator(target: &Totals<'_>, style: Style) -> Vec<String> {
    if target.worker_cpu.is_empty() {
        return Vec::new();
    }
    let one = std::slice::from_ref(target);
    let cpu: Vec<String> = target.worker_cpu.iter().map(|&share| maybe(share, percent)).collect();
    let mut rows = vec![Row::new("  CPU by worker", vec![cpu.join(", ")])];
    if target.most_polling().is_some() {
        let polling: Vec<String> = target.worker_polling.iter().map(|&share| maybe(share, percent)).collect();
        rows.push(Row::new("  polling by worker", vec![polling.join(", ")]));
    }
    if let Some(waited) = target.most_waited.filter(|&waited| waited >= 0.01) {
        rows.push(Row::new("  waited for a CPU", vec![percent(waited)]));
    }
    if let Some(sleeps) = target.sleeps_per_op() {
        let costs = target.waking_ns.map(|ns| format!(", {} of the server's CPU", duration(sleeps * ns as f64)));
        rows.push(Row::new("  sleeps per op", vec![duel_model::format_figure(sleeps) + &costs.unwrap_or_default()]));
    }
    rows.extend(time_rows("  schedule lag", one, |t| &t.schedule_lag, &LAG_QUANTILES));
    rows.extend(time_rows("  loop lag", one, |t| &t.loop_lag, &LAG_QUANTILES));
    if !target.notice_lag.is_empty() {
        rows.extend(time_rows("  noticed late", one, |t| &t.notice_lag, &SERVICE_QUANTILES));
    }
    if let (Some(open), Some(limit)) = target.descriptors {
        rows.push(Row::new("  descriptors", vec![format!("{} of {}", count(open), count(limit))]));
    }
    [vec!["Generator".to_owned()], headless(rows, Align::Left, style)].concat()
}

/// A table of one column, which needs no name.
fn headless(rows: Vec<Row>, align: Align, style: Style) -> Vec<String> {
    let table = Table { corner: String::new(), heads: vec![String::new()], rows, align };
    let mut lines = table.lines(style.columns());
    lines.remove(0);
    lines
}
