//! The report of a run: the verdict first, then what it rests on.

use crate::about::about;
use crate::figures::{self, Lengths, byte_rate, count, maybe, part, percent, rate, three_digits};
use crate::sentence::{headlines, pair_sentence};
use crate::settings::Again;
use crate::style::{Ink, Style};
use crate::table::{Align, Row, Table};
use crate::text::{clean, clean_whole, plural, wrap};
use crate::totals::{Totals, all_doubts, op_noun, totals};
use crate::{cache, chart, experiment, last_words, line, negotiated, phases, search, settings, single, stages};
use duel_model::{Call, Counter, Distribution, Doubt, Id, Run, Streamed, Tally, Verdict, format_bytes};
use std::collections::BTreeSet;

/// The report of a run as text: the verdict in one sentence per pair, the targets side by side, the rate over time,
/// where the gap sits by phase, the doubts, the settings and, as far as `again` says, how to repeat it. Only measured
/// slots are summed up.
///
/// A run on a single target has no verdict; its report shows the distribution of response times and the generator's
/// audit instead.
pub fn summary(run: &Run, verdict: &Verdict, again: Again, style: Style) -> String {
    let targets = totals(run);
    let doubts = all_doubts(run, verdict);
    let mut sections = match (&verdict.experiment, targets.as_slice()) {
        (Some(experiment), targets) => experiment::sections(run, verdict, experiment, targets, style),
        (None, targets) if !verdict.searches.is_empty() => search::sections(run, verdict, targets, style),
        (None, [one]) => single::sections(run, verdict, one, style),
        (None, many) => compared(run, verdict, many, again, style),
    };
    if let (Some(first), false) = (sections.first_mut(), doubts.is_empty()) {
        let text = format!("({} below)", plural(doubts.len() as u64, "doubt"));
        first.push(style.paint(Ink::Doubt, &text));
    }
    for (title, table, notes) in cache::parts(verdict) {
        let title = wrap(&title, style.columns(), "", "  ");
        let notes = notes.iter().flat_map(|note| wrap(note, style.columns(), "", ""));
        sections
            .push([title, table.map_or_else(Vec::new, |table| table.lines(style.columns())), notes.collect()].concat());
    }
    sections.extend(last_words::sections(run, style));
    sections.push(doubt_list(&doubts, style));
    sections.push(settings::footer(run, again, style));
    join(sections, style)
}

/// Sections with an empty line between them; empty ones are left out.
pub(crate) fn join(sections: Vec<Vec<String>>, style: Style) -> String {
    let mut lines = Vec::new();
    for section in sections.into_iter().filter(|s| !s.is_empty()) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(section);
    }
    style.finish(&lines)
}

/// The doubts, one `! ` each.
pub(crate) fn doubt_list(doubts: &[&Doubt], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for doubt in doubts {
        let text = clean_whole(&doubt.text);
        let text = match doubt.target.as_deref().map(clean) {
            // Most doubts name their target themselves.
            Some(name) if !names(&text, &name) => format!("{name}: {text}"),
            _ => text,
        };
        lines.extend(style.paint_lines(Some(Ink::Doubt), wrap(&text, style.columns(), "! ", "  ")));
    }
    lines
}

/// Whether a name occurs in a text as a word of its own.
pub(crate) fn names(text: &str, name: &str) -> bool {
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            ends(text[..at].chars().next_back()) && ends(text[at + name.len()..].chars().next())
        })
}

/// The rows of ops that failed, by kind, for kinds that occurred at all.
pub(crate) fn failure_rows(targets: &[Totals<'_>]) -> Vec<Row> {
    let each = |f: &dyn Fn(&Totals<'_>) -> String| targets.iter().map(f).collect::<Vec<_>>();
    let mut rows = vec![Row::new("failed", each(&|t| count(t.tally.failed_total())))];
    let kinds = targets.iter().flat_map(|t| t.tally.failed.keys().copied());
    for kind in targets.first().map(|t| t.schema.in_order(kinds)).unwrap_or_default() {
        let cells = each(&|t| count(t.tally.failed.get(&kind).copied().unwrap_or(0)));
        rows.push(Row::new(format!("  {}", kind.name()), cells));
    }
    if targets.iter().any(|t| t.tally.in_flight > 0) {
        rows.push(Row::new("unfinished", each(&|t| count(t.tally.in_flight))));
    }
    if targets.iter().any(|t| t.tally.unstarted > 0) {
        rows.push(Row::new("never started", each(&|t| count(t.tally.unstarted))));
    }
    if targets.iter().any(|t| t.tally.shed > 0) {
        rows.push(Row::new("shed (too late)", each(&|t| count(t.tally.shed))));
    }
    rows
}

/// The first few failures of a target in words.
pub(crate) fn failure_examples(target: &Totals<'_>, style: Style) -> Vec<String> {
    let first = format!("  {}: ", target.name);
    // A long name would leave no room for what it says.
    let first = if crate::text::columns(&first) > style.columns() / 2 { "  ".to_owned() } else { first };
    target
        .tally
        .failure_examples
        .iter()
        .flat_map(|example| wrap(&clean(example), style.columns(), &first, "    "))
        .collect()
}

fn compared(run: &Run, verdict: &Verdict, targets: &[Totals<'_>], again: Again, style: Style) -> Vec<Vec<String>> {
    let noun = op_noun(run);
    let mut sections = vec![sentences(run, verdict, again, style), addresses(targets, style)];
    sections.push(side_by_side(noun, targets, style));
    let of_stages = stages::compared(run, verdict, targets);
    let has_stages = !of_stages.is_empty();
    for (title, table) in of_stages {
        sections.push([wrap(&title, style.columns(), "", "  "), table.lines(style.columns())].concat());
    }
    if has_stages {
        sections.push(wrap(&stages::note(run, verdict), style.columns(), "", ""));
    }
    sections.push(negotiated::side_by_side(targets, style));
    let examples: Vec<String> = targets.iter().flat_map(|t| failure_examples(t, style)).collect();
    if !examples.is_empty() {
        sections.push([vec!["First failures".to_owned()], examples].concat());
    }
    sections.push(chart::rate_over_time(targets, style));
    if targets.len() > 2 {
        sections.push(phases::all(targets, noun, style));
    }
    if let [baseline, others @ ..] = targets {
        for (target, plan) in others.iter().zip(&run.plan.targets[1..]) {
            let call = gap_call(verdict, &plan.name);
            // Beyond two targets, pairs without a gap are told by the table of all.
            if targets.len() == 2 || call.is_some() {
                sections.push(phases::gap(baseline, target, call, noun, style));
            }
        }
    }
    sections
}

/// Whether a target was called slower or faster in any metric, the main one first.
pub(crate) fn gap_call(verdict: &Verdict, target: &str) -> Option<Call> {
    let calls = verdict.pairs.iter().filter(|p| p.target == target).map(|p| p.call);
    calls.into_iter().find(|call| matches!(call, Call::Slower | Call::Faster))
}

/// The verdict: the main metric of each target, the others indented below it, and whether the run came to its end.
fn sentences(run: &Run, verdict: &Verdict, again: Again, style: Style) -> Vec<String> {
    let mut lines = first_of_all(verdict, style);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let doubts: Vec<Doubt> = all_doubts(run, verdict).into_iter().cloned().collect();
    for pair in &verdict.pairs {
        // A further metric of which nothing is known is told by its doubt alone.
        if pair.ratio.is_none() && seen.contains(pair.target.as_str()) {
            continue;
        }
        let text = pair_sentence(verdict, pair, run.plan.compare.margin, &doubts);
        let (first, next) = if seen.insert(&pair.target) { ("", "  ") } else { ("  ", "    ") };
        let ink = match pair.call {
            Call::Slower => Some(Ink::Slower),
            Call::Faster => Some(Ink::Faster),
            Call::Equivalent | Call::Unknown => None,
        };
        lines.extend(style.paint_lines(ink, wrap(&text, style.columns(), first, next)));
    }
    if verdict.pairs.is_empty() {
        lines.extend(wrap("No verdict: no pair of targets was compared", style.columns(), "", "  "));
    }
    if let Some(text) = about(run, verdict, again == Again::Shown) {
        lines.extend(wrap(&text, style.columns(), "", "  "));
    }
    if let Some(text) = settings::ended_early(&run.status) {
        lines.extend(style.paint_lines(Some(Ink::Doubt), wrap(&text, style.columns(), "", "  ")));
    }
    lines
}

/// What is told before any figure.
pub(crate) fn first_of_all(verdict: &Verdict, style: Style) -> Vec<String> {
    let wrapped = headlines(verdict).map(|text| wrap(&text, style.columns(), "", "  "));
    wrapped.flat_map(|lines| style.paint_lines(Some(Ink::Slower), lines)).collect()
}

/// Which name stands for which address.
pub(crate) fn addresses(targets: &[Totals<'_>], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (i, target) in targets.iter().enumerate() {
        let role = if i == 0 && targets.len() > 1 { " (baseline)" } else { "" };
        if target.address != target.name {
            let text = format!("{}{role}: {}", target.name, target.address);
            lines.extend(wrap(&text, style.columns(), "", "  "));
        } else if !role.is_empty() {
            lines.extend(wrap(&format!("{}{role}", target.name), style.columns(), "", "  "));
        }
    }
    lines
}

fn side_by_side(noun: &str, targets: &[Totals<'_>], style: Style) -> Vec<String> {
    let (table, has_ratios) = figures_table(noun, targets);
    let mut lines = table.lines(style.columns());
    let notes = unanswered(noun, targets).into_iter().chain(never_counted(targets));
    lines.extend(notes.flat_map(|text| wrap(&text, style.columns(), "", "  ")));
    if has_ratios {
        lines.extend(wrap(RATIOS, style.columns(), "", ""));
    }
    lines
}

/// What the ratios beside the figures are, and are not.
pub(crate) const RATIOS: &str = "Ratios are of the totals shown; the verdict pairs slots that ran next to each other.";

/// The figures of all targets, and whether there are ratios among them.
pub(crate) fn figures_table(noun: &str, targets: &[Totals<'_>]) -> (Table, bool) {
    let each = |f: &dyn Fn(&Totals<'_>) -> String| targets.iter().map(f).collect::<Vec<_>>();
    let mut rows = vec![Row::new(format!("{noun}s ok"), each(&|t| count(t.tally.ok)))];
    rows.extend(failure_rows(targets));
    rows.push(figure_row("rate", targets, Totals::rate_per_s, rate));
    let bytes = targets.first().map_or("bytes read", |target| target.schema.bytes);
    if targets.iter().any(Totals::counts_bytes) {
        rows.push(figure_row(bytes, targets, Totals::bytes_per_s, byte_rate));
    }
    rows.extend(line::rows(targets));
    rows.extend(inflated_rows(targets));
    rows.extend(op_time_rows(targets));
    rows.extend(connection_rows(targets));
    if targets.iter().all(|t| !t.schema.lanes_are_threads()) {
        rows.push(Row::new("reused", each(&|t| part(t.tally.reused, t.tally.started))));
    }
    if targets.iter().any(|t| t.tally.resent > 0) {
        rows.push(Row::new("sent again", each(&|t| count(t.tally.resent))));
    }
    if targets.iter().any(|t| t.tally.surplus > 0) {
        rows.push(Row::new("with surplus bytes", each(&|t| count(t.tally.surplus))));
    }
    if targets.iter().any(|t| t.tally.resumed > 0) {
        rows.push(Row::new("TLS resumed", each(&|t| part(t.tally.resumed, t.tally.connections))));
    }
    rows.extend(counter_rows(targets));
    if targets.iter().any(|t| !t.worker_cpu.is_empty()) {
        let label = if targets.iter().all(|t| t.works_itself) { "thread CPU max" } else { "generator CPU max" };
        rows.push(Row::new(label, each(&|t| maybe(t.busiest_worker(), percent))));
        if targets.iter().any(|t| t.most_polling().is_some()) {
            rows.push(Row::new("polling max", each(&|t| maybe(t.most_polling(), percent))));
        }
        if targets.iter().any(|t| t.most_waited.is_some_and(|waited| waited >= 0.01)) {
            rows.push(Row::new("waited for a CPU", each(&|t| maybe(t.most_waited, percent))));
        }
        // Our own lateness says nothing about the targets: no ratio.
        let lags = [
            time_rows("schedule lag", targets, |t| &t.schedule_lag, &LAG_QUANTILES),
            time_rows("loop lag", targets, |t| &t.loop_lag, &LAG_QUANTILES),
            match targets.iter().any(|t| !t.notice_lag.is_empty()) {
                true => time_rows("noticed late", targets, |t| &t.notice_lag, &LAG_QUANTILES),
                false => Vec::new(),
            },
        ];
        rows.extend(lags.into_iter().flatten().map(|mut row| {
            row.cells.truncate(targets.len());
            row
        }));
    }
    let mut heads: Vec<String> = targets.iter().map(|t| t.name.clone()).collect();
    let two = targets.len() == 2;
    if two {
        let head = format!("{}/{}", heads[1], heads[0]);
        heads.push(if crate::text::columns(&head) <= 9 { head } else { "ratio".to_owned() });
    }
    let has_ratios = two && rows.iter().any(|row| row.cells.get(2).is_some_and(|cell| cell != figures::UNKNOWN));
    (Table { corner: String::new(), heads, rows, align: Align::Right }, has_ratios)
}

/// Which quantiles of response times a report shows; above one: the largest value.
const RESPONSE_QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", MAX)];
/// Which quantiles of service times a report shows.
pub(crate) const SERVICE_QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
/// Which quantiles of the generator's own lateness a report shows.
pub(crate) const LAG_QUANTILES: [(&str, f64); 1] = [("p99", 0.99)];
const MAX: f64 = 1.0;

/// Rows of quantiles, each in one unit, with the ratio where there are two targets.
pub(crate) fn time_rows(
    label: &str,
    targets: &[Totals<'_>],
    of: for<'t> fn(&'t Totals<'_>) -> &'t Distribution,
    quantiles: &[(&str, f64)],
) -> Vec<Row> {
    let value = |t: &Totals<'_>, q: f64| of(t).quantile_ns(q).map(|ns| ns as f64);
    quantiles
        .iter()
        .map(|&(name, q)| {
            let lengths = Lengths::beside(targets.iter().filter_map(|t| value(t, q)));
            figure_row(&format!("{label} {name}"), targets, |t| value(t, q), |ns| lengths.show(ns))
        })
        .collect()
}

/// Response and service times of ops; none where no op has any.
pub(crate) fn op_time_rows(targets: &[Totals<'_>]) -> Vec<Row> {
    if !targets.is_empty() && targets.iter().all(|t| t.tally.is_streamed()) {
        return Vec::new();
    }
    let mut rows = time_rows("response", targets, |t| &t.tally.response, &RESPONSE_QUANTILES);
    rows.extend(time_rows("service", targets, |t| t.tally.told_service(), &SERVICE_QUANTILES));
    rows
}

/// How many connections there were at a time, and how many were made while it was measured: none, where all were kept.
pub(crate) fn connection_rows(targets: &[Totals<'_>]) -> Vec<Row> {
    if targets.iter().any(|t| t.schema.lanes_are_threads()) {
        return Vec::new();
    }
    let each = |f: &dyn Fn(&Totals<'_>) -> String| targets.iter().map(f).collect::<Vec<_>>();
    let held = targets.iter().any(|t| t.held.is_some()).then(|| {
        Row::new("connections", each(&|t| t.held.map_or_else(|| figures::UNKNOWN.to_owned(), |n| count(u64::from(n)))))
    });
    let opened = Row::new("opened meanwhile", each(&|t| count(t.tally.connections)));
    held.into_iter().chain([opened]).collect()
}

/// Why there are no response times; or what they hold beside those of answers, and what of them is the generator's, for each target
/// where that is something.
pub(crate) fn unanswered(noun: &str, targets: &[Totals<'_>]) -> Vec<String> {
    let many = targets.len() > 1;
    let said = targets
        .iter()
        .flat_map(|t| [t.unanswered(noun), t.stood_still()].into_iter().flatten().map(move |text| (t, text)));
    let is_streamed = targets.iter().any(|t| t.tally.is_streamed());
    let untimed = is_streamed.then(|| format!("No response times: {}.", Streamed::NO_TIMES));
    untimed.into_iter().chain(said.map(|(t, text)| if many { format!("{}: {text}", t.name) } else { text })).collect()
}

/// What was looked for on all targets and never seen: a sentence in place of rows of zeros.
pub(crate) fn never_counted(targets: &[Totals<'_>]) -> Option<String> {
    let declared = targets.first().map_or(&[][..], |target| target.schema.counters);
    let titles: Vec<&str> = declared.iter().filter(|one| is_zero(one, targets)).map(|one| one.title).collect();
    (!titles.is_empty()).then(|| format!("None of: {}.", titles.join(", ")))
}

fn is_zero(counter: &Counter, targets: &[Totals<'_>]) -> bool {
    targets.iter().all(|t| t.tally.counted.get(&counter.id()) == Some(&0))
}

/// What the kind of work counts beside, and parts of it that have names: how often, or, of times, how long for each op and each byte.
pub(crate) fn counter_rows(targets: &[Totals<'_>]) -> Vec<Row> {
    let declared = targets.first().map_or(&[][..], |target| target.schema.counters);
    let counters = declared.iter().filter(|c| targets.iter().any(|t| t.tally.counted.contains_key(&c.id())));
    let rows = counters.filter(|counter| !is_zero(counter, targets)).flat_map(|counter| {
        let title = counter.title;
        if counter.is_time() {
            let amounts: [(&str, Amount); 2] = [("op", counted_per_op), ("byte", counted_per_byte)];
            let told = if counter.is_of_server() { &amounts[..1] } else { &amounts[..] };
            let known = told.iter().filter(|(_, of)| targets.iter().any(|t| of(&t.tally, counter.id()).is_some()));
            let rows = known.map(|(each, of)| {
                let each = if *each == "op" { targets[0].schema.op.one } else { each };
                let value = |t: &Totals<'_>| of(&t.tally, counter.id());
                let lengths = Lengths::beside(targets.iter().filter_map(value));
                figure_row(&format!("{title} per {each}"), targets, value, |ns| lengths.show(ns))
            });
            return rows.collect::<Vec<_>>();
        }
        if counter.is_of_server() && !counter.is_of_others() {
            let title = format!("{title} per {}", targets[0].schema.op.one);
            let show = |value: f64| if counter.is_bytes() { format_bytes(value) } else { three_digits(value) };
            return vec![figure_row(&title, targets, |t| counted_per_op(&t.tally, counter.id()), show)];
        }
        let shown = |t: &Totals<'_>| {
            t.tally.counted.get(&counter.id()).map_or_else(|| figures::UNKNOWN.to_owned(), |n| count(*n))
        };
        vec![Row::new(title, targets.iter().map(shown).collect())]
    });
    rows.chain(named_rows(targets)).collect()
}

/// Parts of a workload that have names of their own, which no schema declares: how often, and how long each took. They are counted
/// under a name, and their time under the same with `_ns` behind it.
fn named_rows(targets: &[Totals<'_>]) -> Vec<Row> {
    let declared = targets.first().map_or(&[][..], |target| target.schema.counters);
    let is_declared = |id: Id| declared.iter().any(|counter| counter.id() == id);
    let time_of = |id: Id| format!("{}_ns", id.name()).parse::<Id>().ok();
    let all: BTreeSet<Id> = targets.iter().flat_map(|t| t.tally.counted.keys().copied()).collect();
    let named =
        all.iter().filter_map(|&id| Some((id, time_of(id).filter(|time| !is_declared(id) && all.contains(time))?)));
    let rows = named.flat_map(|(id, time)| {
        let counted = |t: &Totals<'_>| t.tally.counted.get(&id).copied();
        let mean = |t: &Totals<'_>| {
            counted(t).filter(|n| *n > 0).zip(t.tally.counted.get(&time)).map(|(n, ns)| *ns as f64 / n as f64)
        };
        let lengths = Lengths::beside(targets.iter().filter_map(mean));
        let shown = |t: &Totals<'_>| counted(t).map_or_else(|| figures::UNKNOWN.to_owned(), count);
        [
            Row::new(id.name().to_owned(), targets.iter().map(shown).collect()),
            figure_row(&format!("{} mean", id.name()), targets, mean, |ns| lengths.show(ns)),
        ]
    });
    rows.collect()
}

/// How much of a counter there is for each of something.
pub(crate) type Amount = fn(&Tally, Id) -> Option<f64>;

/// For each ok op; `None` where it was not counted.
pub(crate) fn counted_per_op(tally: &Tally, counter: Id) -> Option<f64> {
    tally.counted.get(&counter).filter(|_| tally.ok > 0).map(|&n| n as f64 / tally.ok as f64)
}

/// For each byte read or processed; `None` where there is none.
pub(crate) fn counted_per_byte(tally: &Tally, counter: Id) -> Option<f64> {
    tally.counted.get(&counter).filter(|_| tally.bytes_in > 0).map(|&n| n as f64 / tally.bytes_in as f64)
}

/// Bodies in both sizes, where they were decompressed.
pub(crate) fn inflated_rows(targets: &[Totals<'_>]) -> Vec<Row> {
    if targets.iter().all(|t| t.tally.inflated_bytes.is_none()) {
        return Vec::new();
    }
    let sent = |t: &Totals<'_>| Some(t.tally.body_bytes as f64);
    let inflated = |t: &Totals<'_>| t.tally.inflated_bytes.map(|bytes| bytes as f64);
    vec![
        figure_row("bodies as sent", targets, sent, duel_model::format_bytes),
        figure_row("decompressed", targets, inflated, duel_model::format_bytes),
    ]
}

/// A row of one figure, with the ratio of the second to the first where there are two targets.
fn figure_row<'a>(
    label: &str,
    targets: &[Totals<'a>],
    value: impl Fn(&Totals<'a>) -> Option<f64>,
    show: impl Fn(f64) -> String,
) -> Row {
    let values: Vec<Option<f64>> = targets.iter().map(value).collect();
    let mut cells: Vec<String> = values.iter().map(|&v| maybe(v, &show)).collect();
    if let [baseline, target] = values[..] {
        let ratio = baseline.filter(|&v| v > 0.0).zip(target).map(|(a, b)| b / a);
        cells.push(ratio.map_or_else(|| figures::UNKNOWN.to_owned(), three_digits));
    }
    Row::new(label, cells)
}
