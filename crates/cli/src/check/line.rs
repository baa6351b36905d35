//! The line that a monitoring system reads: `OK - p99 12.3 ms, errors 0 % | 'p99'=0.0123s;0.1;0.2;0 ...`.

use super::report::{Report, Result};
use super::{Limit, State};
use duel_model::{Comparison, Metric, Promise, PromiseMetric, Threshold, sanitize_line, without_secrets};

/// What is told of each target, also where no threshold asks for it, so that its course can be drawn.
const ALWAYS: [PromiseMetric; 4] = [
    PromiseMetric::Quantile { millionths: 500_000 },
    PromiseMetric::Quantile { millionths: 990_000 },
    PromiseMetric::Errors,
    PromiseMetric::Rate,
];

/// The line of a check.
pub(crate) fn line(report: &Report) -> String {
    let many = report.targets.len() > 1;
    let mut said: Vec<String> = report.trouble.iter().cloned().collect();
    if report.trouble.is_none() {
        said.extend(report.headlines.iter().cloned());
        // What makes the state is told first.
        let mut results: Vec<&Result> = report.results.iter().collect();
        results.sort_by_key(|result| match result.state() {
            State::Critical => 0,
            State::Warning => 1,
            State::Unknown => 2,
            State::Ok => 3,
        });
        for result in results {
            let name = if many { format!("{} ", sanitize_line(&result.checked.target)) } else { String::new() };
            let text = format!("{name}{}", result.figure());
            let because = because(result);
            // A warning and a critical limit of one figure are one thing to tell.
            if said.iter().any(|earlier| *earlier == text || earlier.starts_with(&format!("{text} ("))) {
                continue;
            }
            said.push(if because.is_empty() { text } else { format!("{text} ({because})") });
        }
        said.extend(doubts(report));
    }
    format!("{} | {}\n", bare(report.state, &said.join(", ")), performance_data(report))
}

/// The kinds of doubts, and where they are told; of a run that is not kept, the first of each kind in its own words.
fn doubts(report: &Report) -> Option<String> {
    let mut kinds: Vec<(String, &str)> = Vec::new();
    for doubt in &report.doubts {
        let kind = serde_json::to_value(doubt.id).ok().and_then(|id| id.as_str().map(str::to_owned));
        let is_new = |kind: &String| kinds.iter().all(|(known, _)| known != kind);
        kinds.extend(kind.filter(is_new).map(|kind| (kind, doubt.text.as_str())));
    }
    if kinds.is_empty() {
        return None;
    }
    Some(match &report.kept {
        Some(run) => {
            let names: Vec<&str> = kinds.iter().map(|(kind, _)| kind.as_str()).collect();
            format!("doubts: {} (duel show {} explains them)", names.join(" "), sanitize_line(run))
        }
        None => {
            let told: Vec<String> =
                kinds.iter().map(|(kind, text)| format!("{kind}: {}", sanitize_line(text))).collect();
            format!("doubts: {}", told.join("; "))
        }
    })
}

/// The line of a check that came to nothing.
pub(crate) fn bare_line(state: State, text: &str) -> String {
    format!("{}\n", bare(state, text))
}

/// A bar would begin the performance data. The line goes to pagers and logs: secrets of addresses do not.
fn bare(state: State, text: &str) -> String {
    let text: String = without_secrets(text).chars().map(|c| if c == '|' { '/' } else { c }).collect();
    format!("{} - {}", state.word(), text.replace('\n', " "))
}

fn because(result: &Result) -> String {
    let limit = match (result.state(), &result.limit.threshold) {
        (State::Ok, _) => String::new(),
        (State::Unknown, threshold) => format!("unknown whether {threshold}"),
        (state, threshold) => format!("{}: {threshold}", state.word().to_ascii_lowercase()),
    };
    let remark = sanitize_line(&result.checked.remark);
    [limit, remark].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn performance_data(report: &Report) -> String {
    let many = report.targets.len() > 1;
    let label = |target: &str, what: &str| {
        // The guidelines allow neither of them in a label.
        let plain: String = sanitize_line(target).chars().map(|c| if "='|".contains(c) { '_' } else { c }).collect();
        if many { format!("'{plain} {what}'") } else { format!("'{what}'") }
    };
    let mut data: Vec<String> = Vec::new();
    for target in &report.targets {
        let limits_of = |metric: PromiseMetric| {
            report.results.iter().filter_map(move |result| match &result.limit {
                Limit { state, threshold: Threshold::Promise(promise) } if promise.metric == metric => {
                    Some((*state, *promise))
                }
                _ => None,
            })
        };
        let mut metrics = ALWAYS.to_vec();
        for result in &report.results {
            if let Threshold::Promise(promise) = &result.limit.threshold
                && !metrics.contains(&promise.metric)
            {
                metrics.push(promise.metric);
            }
        }
        for metric in metrics {
            let range = |wanted: State| {
                // What is outside of a range raises the alarm; one without a colon begins at 0. Of several the narrowest.
                let limits = || limits_of(metric).filter(|(state, _)| *state == wanted).map(|(_, promise)| promise);
                let is_upper = |promise: &Promise| matches!(promise.comparison, Comparison::Below | Comparison::AtMost);
                let upper = limits().filter(is_upper).map(|promise| promise.limit).min_by(f64::total_cmp);
                let lower =
                    limits().filter(|promise| !is_upper(promise)).map(|promise| promise.limit).max_by(f64::total_cmp);
                let (upper, lower) =
                    (upper.map(|limit| in_unit(metric, limit)), lower.map(|limit| in_unit(metric, limit)));
                upper.or_else(|| lower.map(|limit| format!("{limit}:"))).unwrap_or_default()
            };
            let (name, unit, most) = match metric {
                PromiseMetric::Errors => ("errors".to_owned(), "%", "100"),
                PromiseMetric::Done => ("ok".to_owned(), "%", "100"),
                PromiseMetric::Rate => ("rate".to_owned(), "", ""),
                time => (time.to_string(), "s", ""),
            };
            // What is not known is U; zero would be a figure.
            let value = target
                .figures
                .figure(metric)
                .map_or_else(|| "U".to_owned(), |figure| format!("{}{unit}", in_unit(metric, figure)));
            data.push(entry(
                &label(&target.name, &name),
                &value,
                &range(State::Warning),
                &range(State::Critical),
                most,
            ));
        }
        data.extend(slowdowns(report, &target.name).into_iter().map(|slowdown| {
            let what =
                slowdown.metric.map_or_else(|| "slowdown".to_owned(), |metric| format!("slowdown {}", metric.name()));
            let limit = |limit: Option<f64>| limit.map_or_else(String::new, decimal);
            let value = slowdown.figure.map_or_else(|| "U".to_owned(), decimal);
            entry(&label(&target.name, &what), &value, &limit(slowdown.warning), &limit(slowdown.critical), "")
        }));
    }
    data.join(" ")
}

/// A target's slowdown in one metric, and its limits.
struct Slowdown {
    metric: Option<Metric>,
    figure: Option<f64>,
    warning: Option<f64>,
    critical: Option<f64>,
}

fn slowdowns(report: &Report, target: &str) -> Vec<Slowdown> {
    let mut all: Vec<Slowdown> = Vec::new();
    for result in report.results.iter().filter(|result| result.checked.target == target) {
        let Threshold::Slower { metric, by, .. } = &result.limit.threshold else { continue };
        let place = all.iter().position(|known| known.metric == *metric).unwrap_or_else(|| {
            all.push(Slowdown { metric: *metric, figure: result.checked.figure, warning: None, critical: None });
            all.len() - 1
        });
        let limit =
            if result.limit.state == State::Warning { &mut all[place].warning } else { &mut all[place].critical };
        *limit = Some(limit.map_or(1.0 + by, |other| other.min(1.0 + by)));
    }
    all
}

fn entry(label: &str, value: &str, warn: &str, crit: &str, most: &str) -> String {
    format!("{label}={value};{warn};{crit};0;{most}").trim_end_matches(';').to_owned()
}

/// A figure in the unit of the performance data: seconds, per cent, or none.
fn in_unit(metric: PromiseMetric, figure: f64) -> String {
    match metric {
        PromiseMetric::Errors | PromiseMetric::Done => decimal(figure * 100.0),
        PromiseMetric::Rate => decimal(figure),
        _ => decimal(figure / 1e9),
    }
}

/// Digits and a point, nothing else: that is what is allowed. To a billionth.
fn decimal(value: f64) -> String {
    let text = format!("{value:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_lab::{CheckStanding, Checked, TargetFigures};

    fn result(threshold: &str, state: State, standing: CheckStanding, figure: Option<f64>, remark: &str) -> Result {
        Result {
            limit: Limit { state, threshold: threshold.parse().unwrap() },
            checked: Checked { target: "A".into(), standing, figure, remark: remark.into() },
        }
    }

    fn report(results: Vec<Result>) -> Report {
        let target = |name: &str| super::super::report::TargetReport {
            name: name.into(),
            figures: TargetFigures::default(),
            seconds: 1.0,
            answers: true,
        };
        let state = results.iter().map(Result::state).fold(State::Ok, State::and);
        Report {
            state,
            trouble: None,
            headlines: vec![],
            results,
            targets: vec![target("A")],
            doubts: vec![],
            kept: None,
        }
    }

    #[test]
    fn what_doubts_say_is_told_or_where_it_is() {
        let doubt = |target: &str, text: &str| duel_model::Doubt {
            id: duel_model::DoubtId::ShortSlots,
            target: Some(target.into()),
            text: text.into(),
        };
        let doubts = vec![doubt("A", "slots of A are short | few"), doubt("B", "slots of B are short")];
        let not_kept = Report { doubts, ..report(vec![]) };
        assert!(
            line(&not_kept).starts_with("OK - doubts: short-slots: slots of A are short / few | "),
            "{}",
            line(&not_kept)
        );
        let kept = Report { kept: Some("20261120-1".into()), ..not_kept };
        let told = line(&kept);
        assert!(told.starts_with("OK - doubts: short-slots (duel show 20261120-1 explains them) | "), "{told}");
    }

    #[test]
    fn what_makes_the_state_is_told_first_and_what_is_not_known_is_u() {
        let text = line(&report(vec![
            result("errors<0.1%", State::Critical, CheckStanding::Kept, Some(0.0), ""),
            result("p99<200ms", State::Warning, CheckStanding::Broken, Some(2.5e8), "near"),
            result("rate>500/s", State::Critical, CheckStanding::Unknown, None, "nothing was measured"),
        ]));
        assert_eq!(
            text,
            "WARNING - p99 250 ms (warning: p99<200ms; near), rate unknown (unknown whether rate>500/s; nothing was \
             measured), errors 0 % | 'p50'=U;;;0 'p99'=U;0.2;;0 'errors'=U;;0.1;0;100 'rate'=U;;500:;0\n"
        );
    }

    #[test]
    fn several_limits_of_one_figure_stand_in_one_entry() {
        let text = line(&report(vec![
            result("slower than old by 10%", State::Critical, CheckStanding::Kept, Some(1.07), ""),
            result("slower than old by 5%", State::Warning, CheckStanding::Broken, Some(1.07), ""),
            result("p99 slower than old by 5%", State::Critical, CheckStanding::Unknown, None, ""),
            result("p99<300ms", State::Critical, CheckStanding::Kept, Some(1e8), ""),
            result("p99<200ms", State::Critical, CheckStanding::Kept, Some(1e8), ""),
            result("rate>500/s", State::Warning, CheckStanding::Kept, Some(1e3), ""),
            result("rate>700/s", State::Warning, CheckStanding::Kept, Some(1e3), ""),
        ]));
        let (_, data) = text.split_once(" | ").unwrap();
        assert_eq!(
            data,
            "'p50'=U;;;0 'p99'=U;;0.2;0 'errors'=U;;;0;100 'rate'=U;700:;;0 'slowdown'=1.07;1.05;1.1;0 'slowdown \
             response p99'=U;;1.05;0\n"
        );
    }

    #[test]
    fn secrets_of_addresses_are_not_told() {
        let text = bare_line(State::Critical, "A: the first request to https://h/?a=1&token=s3cr3t failed");
        assert_eq!(text, "CRITICAL - A: the first request to https://h/?a=1&token=[left out] failed\n");
    }

    #[test]
    fn a_bar_in_a_text_does_not_begin_performance_data() {
        assert_eq!(bare_line(State::Critical, "a|b\nc"), "CRITICAL - a/b c\n");
    }

    #[test]
    fn numbers_are_plain() {
        for (value, text) in
            [(0.0, "0"), (0.0123, "0.0123"), (1e-9, "0.000000001"), (1500.0, "1500"), (1e7, "10000000")]
        {
            assert_eq!(decimal(value), text);
        }
    }

    #[test]
    fn nothing_is_well_while_something_is_not_known() {
        use State::*;
        assert_eq!([Ok, Unknown, Ok].into_iter().fold(Ok, State::and), Unknown);
        assert_eq!([Unknown, Warning].into_iter().fold(Ok, State::and), Warning);
        assert_eq!([Critical, Unknown, Warning].into_iter().fold(Ok, State::and), Critical);
        assert_eq!([Ok, Warning, Critical, Unknown].map(State::code), [0, 1, 2, 3]);
    }
}
