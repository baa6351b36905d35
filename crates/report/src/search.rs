//! The report of a search for the highest rate that keeps a promise, on one target or several.

use crate::figures::{Lengths, count, duration, exact_percent, maybe, percent, rate};
use crate::settings;
use crate::style::{Ink, Style};
use crate::summary::{addresses, first_of_all};
use crate::table::{Align, Row, Table};
use crate::text::{clean, wrap};
use crate::totals::Totals;
use crate::{contest, negotiated};
use duel_model::{Attempt, AttemptOutcome, Call, Promise, PromiseMetric, RateSearch, Run, SearchEnd, Slot, Verdict};

/// The sections of the report up to the doubts.
pub(crate) fn sections(run: &Run, verdict: &Verdict, targets: &[Totals<'_>], style: Style) -> Vec<Vec<String>> {
    let mut head = first_of_all(verdict, style);
    for contest in &verdict.contests {
        let ink = match contest.call {
            Call::Slower => Some(Ink::Slower),
            Call::Faster => Some(Ink::Faster),
            Call::Equivalent | Call::Unknown => None,
        };
        let text = contest::sentence(contest, promises(verdict), run.plan.compare.margin);
        head.extend(style.paint_lines(ink, wrap(&text, style.columns(), "", "  ")));
    }
    let answers = verdict.searches.iter().filter_map(|search| Some((search, targets.get(search.target)?)));
    if let [one] = targets {
        let name = if one.name == one.address { String::new() } else { format!("{}: ", one.name) };
        head.extend(wrap(&format!("{name}{}", one.address), style.columns(), "", "  "));
    }
    for (search, target) in answers.clone() {
        let name = if targets.len() > 1 { format!("{}: ", target.name) } else { String::new() };
        head.extend(wrap(&format!("{name}{}", answer(search)), style.columns(), "", "  "));
    }
    if let Some(text) = settings::ended_early(&run.status) {
        head.extend(style.paint_lines(Some(Ink::Doubt), wrap(&text, style.columns(), "", "  ")));
    }
    let mut sections = vec![head];
    if targets.len() > 1 {
        sections.push(addresses(targets, style));
        sections.push(negotiated::side_by_side(targets, style));
    }
    for (search, target) in answers {
        let table = table(run, search);
        if !table.rows.is_empty() {
            let name = if targets.len() > 1 { format!("{}: ", target.name) } else { String::new() };
            let title = wrap(&format!("{name}{TRIED}"), style.columns(), "", "  ");
            sections.push([title, table.lines(style.columns())].concat());
        }
    }
    sections
}

/// What had to be kept: the same on all targets.
pub(crate) fn promises(verdict: &Verdict) -> &[Promise] {
    verdict.searches.first().map(|search| search.promises.as_slice()).unwrap_or_default()
}

/// What the table of attempts holds.
pub(crate) const TRIED: &str = "Rates tried, the lowest first; an answer rests on two of three attempts; behind: that share \
                                of the requests was still waiting at the end";

/// What was found, in one sentence without a full stop.
pub(crate) fn answer(search: &RateSearch) -> String {
    let promised = contest::promised(&search.promises);
    let kept = search.kept_per_s.map(rate);
    let broken = search.broken_per_s.map(|per_s| format!("{} did not: {}", rate(per_s), why_broken(search, per_s)));
    match (kept, broken, search.end) {
        (Some(kept), Some(broken), SearchEnd::Found) => {
            format!("Highest rate that kept {promised}: {kept} ({broken})")
        }
        (Some(kept), _, SearchEnd::Generator) => {
            format!("Kept {promised} up to {kept} at least: beyond that the generator itself was the limit")
        }
        (Some(kept), _, SearchEnd::NothingBroken) => {
            format!("Kept {promised} at {kept}, the highest rate that can be asked for")
        }
        (Some(kept), Some(broken), _) => {
            format!("Kept {promised} at {kept} ({broken}); the time was over before this was known more closely")
        }
        (Some(kept), None, _) => {
            format!("Kept {promised} up to {kept} at least: the time was over before any rate was too high")
        }
        (None, Some(broken), SearchEnd::NothingKept) => format!("No rate kept {promised}: even {broken}"),
        (None, Some(broken), _) => {
            format!("No rate that was tried kept {promised}: even {broken}; the time was over")
        }
        (None, None, _) => format!("Nothing is known about {promised}: no rate was tried often enough"),
    }
}

/// By what a rate was broken, as the worst attempt at it showed.
fn why_broken(search: &RateSearch, per_s: f64) -> String {
    let at_rate = search.attempts.iter().filter(|a| a.rate_per_s == per_s && a.outcome != AttemptOutcome::Kept);
    let worst = at_rate.max_by(|a, b| {
        let growth = |attempt: &Attempt| attempt.backlog_growth.unwrap_or(0.0);
        (a.broken.len().cmp(&b.broken.len())).then(growth(a).total_cmp(&growth(b)))
    });
    let Some(attempt) = worst else { return "unknown why".to_owned() };
    let mut reasons: Vec<String> = attempt
        .broken
        .iter()
        .filter_map(|&place| {
            let (promise, figure) = (search.promises.get(place)?, attempt.figures.get(place)?);
            Some(format!("{} of {}", promise.metric, maybe(*figure, |figure| show(promise.metric, figure))))
        })
        .collect();
    if attempt.fell_behind {
        reasons.push(format!("fell behind by {} of the requests", maybe(attempt.backlog_growth, percent)));
    }
    reasons.join(", ")
}

fn show(metric: PromiseMetric, figure: f64) -> String {
    match metric {
        PromiseMetric::Errors | PromiseMetric::Done => percent(figure),
        PromiseMetric::Rate => rate(figure),
        _ => duration(figure),
    }
}

/// All attempts of all searches in one table, target by target.
pub(crate) fn table_of_all(run: &Run, searches: &[RateSearch]) -> Table {
    let name = |search: &RateSearch| run.plan.targets.get(search.target).map(|target| clean(&target.name));
    let mut all = Table { corner: "offered".to_owned(), heads: Vec::new(), rows: Vec::new(), align: Align::Right };
    for search in searches {
        let table = table(run, search);
        all.heads = table.heads;
        all.rows.extend(table.rows.into_iter().map(|row| match (searches.len(), name(search)) {
            (2.., Some(name)) => Row { label: format!("{name}, {}", row.label), ..row },
            _ => row,
        }));
    }
    all
}

/// All attempts by rate: what was done, the promised figures, and what came of it.
pub(crate) fn table(run: &Run, search: &RateSearch) -> Table {
    let mut attempts: Vec<(&Attempt, &Slot)> = search
        .attempts
        .iter()
        .filter_map(|attempt| Some((attempt, run.slots.iter().find(|slot| slot.index == attempt.slot)?)))
        .collect();
    attempts.sort_by(|(a, _), (b, _)| a.rate_per_s.total_cmp(&b.rate_per_s).then(a.slot.cmp(&b.slot)));
    let figures = |place: usize| attempts.iter().filter_map(move |(attempt, _)| *attempt.figures.get(place)?);
    let show_in: Vec<Box<dyn Fn(f64) -> String>> = search
        .promises
        .iter()
        .enumerate()
        .map(|(place, promise)| -> Box<dyn Fn(f64) -> String> {
            let metric = promise.metric;
            if metric.is_time() {
                let lengths = Lengths::beside(figures(place));
                Box::new(move |ns| lengths.show(ns))
            } else {
                Box::new(move |figure| show(metric, figure))
            }
        })
        .collect();
    let median = |slot: &Slot| slot.tally.response.quantile_ns(0.5).map(|ns| ns as f64);
    let lengths = Lengths::beside(attempts.iter().filter_map(|(_, slot)| median(slot)));
    let rows = attempts
        .iter()
        .map(|(attempt, slot)| {
            let mut cells = vec![
                count(slot.tally.due()),
                maybe(slot.rate_per_s(), rate),
                maybe(median(slot), |ns| lengths.show(ns)),
            ];
            cells.extend(attempt.figures.iter().zip(&show_in).map(|(figure, show)| maybe(*figure, show)));
            cells.push(outcome(search, attempt));
            Row::new(rate(attempt.rate_per_s), cells)
        })
        .collect();
    let mut heads = vec!["due".to_owned(), "done".to_owned(), "p50".to_owned()];
    heads.extend(search.promises.iter().map(head));
    heads.push("outcome".to_owned());
    Table { corner: "offered".to_owned(), heads, rows, align: Align::Right }
}

fn head(promise: &Promise) -> String {
    match promise.metric {
        PromiseMetric::Done => "done share".to_owned(),
        PromiseMetric::Rate => "rate ok".to_owned(),
        metric => metric.to_string(),
    }
}

/// What came of an attempt, in a word or two.
pub(crate) fn outcome(search: &RateSearch, attempt: &Attempt) -> String {
    match attempt.outcome {
        AttemptOutcome::Kept => "kept".to_owned(),
        AttemptOutcome::Generator => "generator".to_owned(),
        AttemptOutcome::Broken if attempt.fell_behind => match attempt.backlog_growth {
            Some(growth) if growth.is_finite() => format!("behind by {}", percent(growth)),
            _ => "behind".to_owned(),
        },
        AttemptOutcome::Broken => {
            let broken = attempt.broken.first().and_then(|&place| search.promises.get(place));
            broken.map_or_else(|| "broken".to_owned(), |promise| format!("{} broken", promise.metric))
        }
    }
}

/// How a search was set, for the settings.
pub(crate) fn set(search: &duel_model::SearchPlan, start_per_s: f64) -> String {
    let promised = contest::promised(&search.promises);
    let start = if start_per_s > 0.0 { format!(", from {} on", rate(start_per_s)) } else { String::new() };
    format!(
        "searching for the highest rate that keeps {promised}, to within {} of that rate{start}",
        exact_percent(search.precision)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(rate_per_s: f64, outcome: AttemptOutcome, p99_ms: f64, growth: f64) -> Attempt {
        let kept = outcome == AttemptOutcome::Kept;
        Attempt {
            slot: 0,
            rate_per_s,
            outcome,
            figures: vec![Some(p99_ms * 1e6), Some(0.0)],
            broken: if p99_ms < 50.0 { vec![] } else { vec![0] },
            backlog_growth: Some(growth),
            fell_behind: !kept && growth > 0.01,
        }
    }

    fn search(kept_per_s: Option<f64>, broken_per_s: Option<f64>, end: SearchEnd) -> RateSearch {
        RateSearch {
            target: 0,
            promises: Promise::parse_all("p99<50ms,errors<0.1%").unwrap_or_default(),
            attempts: vec![
                attempt(1_000.0, AttemptOutcome::Kept, 20.0, 0.0),
                attempt(1_018.0, AttemptOutcome::Broken, 80.0, 0.018),
                attempt(1_018.0, AttemptOutcome::Broken, 40.0, 0.012),
            ],
            kept_per_s,
            broken_per_s,
            end,
        }
    }

    #[test]
    fn an_answer_says_what_is_known_and_no_more() {
        let (kept, broken) = (Some(1_000.0), Some(1_018.0));
        let why = "1,018/s did not: p99 of 80.0 ms, fell behind by 2 % of the requests";
        for (kept, broken, end, said) in [
            (
                kept,
                broken,
                SearchEnd::Found,
                format!("Highest rate that kept p99<50ms and errors<0.1%: 1,000/s ({why})"),
            ),
            (
                kept,
                broken,
                SearchEnd::OutOfTime,
                format!(
                    "Kept p99<50ms and errors<0.1% at 1,000/s ({why}); the time was over before this was known more closely"
                ),
            ),
            (
                kept,
                None,
                SearchEnd::OutOfTime,
                "Kept p99<50ms and errors<0.1% up to 1,000/s at least: the time was over before any rate was too high"
                    .to_owned(),
            ),
            (
                kept,
                broken,
                SearchEnd::Generator,
                "Kept p99<50ms and errors<0.1% up to 1,000/s at least: beyond that the generator itself was the limit"
                    .to_owned(),
            ),
            (None, broken, SearchEnd::NothingKept, format!("No rate kept p99<50ms and errors<0.1%: even {why}")),
            (
                None,
                None,
                SearchEnd::OutOfTime,
                "Nothing is known about p99<50ms and errors<0.1%: no rate was tried often enough".to_owned(),
            ),
        ] {
            assert_eq!(answer(&search(kept, broken, end)), said);
        }
    }

    #[test]
    fn an_attempt_says_what_broke_it() {
        let search = search(None, None, SearchEnd::OutOfTime);
        let outcomes: Vec<String> = search.attempts.iter().map(|attempt| outcome(&search, attempt)).collect();
        assert_eq!(outcomes, ["kept", "behind by 2 %", "behind by 1 %"]);
        let alone = attempt(1.0, AttemptOutcome::Broken, 60.0, 0.0);
        assert_eq!(outcome(&search, &alone), "p99 broken");
        assert_eq!(outcome(&search, &attempt(1.0, AttemptOutcome::Generator, 60.0, 0.0)), "generator");
    }
}
