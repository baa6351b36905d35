//! The summary in hey's words: its present form, and that of 2017. Only figures that are not known are not hey's: where it
//! prints `NaN` or 0, a `-` stands.

use crate::flags::Style;
use crate::results::{Results, Times};
use duel_model::Nanos;
use std::fmt::Write;

/// Rows of the histogram between the shortest and the longest response time.
const STEPS: u64 = 10;
/// Length of its longest bar.
const BAR: u64 = 40;
const PERCENTILES: [u32; 7] = [10, 25, 50, 75, 90, 95, 99];

/// The whole summary. `total_ns` is the time that all requests took together.
pub fn summary(results: &Results, total_ns: Nanos, style: Style) -> String {
    match style {
        Style::Current => current(results, total_ns),
        Style::Historic { details } => historic(results, total_ns, details),
    }
}

fn current(results: &Results, total_ns: Nanos) -> String {
    let mut text = format!("\nSummary:\n{}  ", times(results, total_ns));
    if results.body_bytes > 0 {
        let _ = write!(text, "\n{}", sizes(results).trim_end());
    }
    let _ = write!(text, "\n\nResponse time histogram:\n{}", histogram(results, '■'));
    let _ = write!(text, "\n\nLatency distribution:\n{}", percentiles(results));
    let _ = write!(text, "\nDetails (average, fastest, slowest):\n{}", details(results));
    let _ = write!(text, "\nStatus code distribution:\n{}", statuses(results));
    text.push('\n');
    if results.errors.is_empty() {
        text.push('\n');
    } else {
        let _ = write!(text, "Error distribution:\n{}", errors(results));
    }
    text.push('\n');
    text
}

fn historic(results: &Results, total_ns: Nanos, with_details: bool) -> String {
    let mut text = String::new();
    if results.responses > 0 {
        let _ = write!(text, "\nSummary:\n{}", times(results, total_ns));
        if results.body_bytes > 0 {
            text.push_str(&sizes(results));
        }
        let _ = write!(text, "\nStatus code distribution:\n{}", statuses(results));
        let _ = write!(text, "\nResponse time histogram:\n{}", histogram(results, '∎'));
        let _ = write!(text, "\nLatency distribution:\n{}", percentiles(results));
        if with_details {
            let _ = write!(text, "\nDetails (average, fastest, slowest):\n{}", details(results));
        }
    }
    if !results.errors.is_empty() {
        let _ = write!(text, "\nError distribution:\n{}", errors(results));
    }
    text
}

fn times(results: &Results, total_ns: Nanos) -> String {
    let figures = results.response.figures_ns();
    // hey counts what failed as well.
    let rate_per_s = (total_ns > 0).then(|| results.total() as f64 * 1e9 / total_ns as f64);
    format!(
        "  Total:\t{}\n  Slowest:\t{}\n  Fastest:\t{}\n  Average:\t{}\n  Requests/sec:\t{}\n",
        seconds(Some(total_ns as f64)),
        seconds(figures.map(|(_, _, max_ns)| max_ns as f64)),
        seconds(figures.map(|(_, min_ns, _)| min_ns as f64)),
        seconds(figures.map(|(mean_ns, _, _)| mean_ns)),
        rate_per_s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.4}")),
    )
}

/// Only asked for where there are responses.
fn sizes(results: &Results) -> String {
    let each = results.body_bytes / results.responses.max(1);
    format!("  Total data:\t{} bytes\n  Size/request:\t{each} bytes\n", results.body_bytes)
}

/// Eleven rows: the shortest response time, and ten steps to the longest. A row counts what lies above the row before.
fn histogram(results: &Results, mark: char) -> String {
    let Some((_, min_ns, max_ns)) = results.response.figures_ns() else { return String::new() };
    let step = |number| min_ns + ((max_ns - min_ns) as f64 * number as f64 / STEPS as f64).round() as Nanos;
    let marks_ns: Vec<Nanos> = (0..=STEPS).map(step).collect();
    let up_to = results.counts_up_to(&marks_ns);
    let before = std::iter::once(0).chain(up_to.iter().copied());
    let counts: Vec<u64> = up_to.iter().zip(before).map(|(count, before)| count - before).collect();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut text = String::new();
    for (mark_ns, count) in marks_ns.iter().zip(counts) {
        let bar = mark.to_string().repeat(((count * BAR + most / 2) / most) as usize);
        let _ = writeln!(text, "  {:.3} [{count}]\t|{bar}", *mark_ns as f64 / 1e9);
    }
    text
}

fn percentiles(results: &Results) -> String {
    let mut text = String::new();
    for percent in PERCENTILES {
        if let Some(value_ns) = results.quantile_ns(f64::from(percent) / 100.0) {
            let _ = writeln!(text, "  {percent}% in {}", seconds(Some(value_ns as f64)));
        }
    }
    text
}

fn details(results: &Results) -> String {
    let row = |name: &str, times: &Times| {
        let figures = times.figures_ns();
        format!(
            "  {name}:\t{}, {}, {}\n",
            seconds(figures.map(|(mean_ns, _, _)| mean_ns)),
            seconds(figures.map(|(_, min_ns, _)| min_ns as f64)),
            seconds(figures.map(|(_, _, max_ns)| max_ns as f64)),
        )
    };
    let parts = &results.details;
    [
        row("DNS+dialup", &parts.dialup),
        row("DNS-lookup", &parts.lookup),
        row("req write", &parts.write),
        row("resp wait", &parts.wait),
        row("resp read", &parts.read),
    ]
    .concat()
}

fn statuses(results: &Results) -> String {
    results.statuses.iter().map(|(status, count)| format!("  [{status}]\t{count} responses\n")).collect()
}

/// The errors that there were, one on each line.
pub fn errors(results: &Results) -> String {
    results.errors.iter().map(|(error, count)| format!("  [{count}]\t{error}\n")).collect()
}

fn seconds(nanos: Option<f64>) -> String {
    nanos.map_or_else(|| "- secs".to_owned(), |nanos| format!("{:.4} secs", nanos / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{failure, response, results};

    const MS: Nanos = 1_000_000;

    /// Nine responses of 10 to 90 ms and one of 110 ms.
    fn ten() -> Results {
        let ok = (1..=9).map(|number| response(200, number * 10 * MS, 2_860_007));
        results(ok.chain([response(404, 110 * MS, 2_860_007)]))
    }

    #[test]
    fn the_present_summary() {
        let expected = "
Summary:
  Total:\t0.5000 secs
  Slowest:\t0.1100 secs
  Fastest:\t0.0100 secs
  Average:\t0.0560 secs
  Requests/sec:\t20.0000
  
  Total data:\t28600070 bytes
  Size/request:\t2860007 bytes

Response time histogram:
  0.010 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.020 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.030 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.040 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.050 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.060 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.070 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.080 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.090 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.100 [0]\t|
  0.110 [1]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■


Latency distribution:
  10% in 0.0100 secs
  25% in 0.0300 secs
  50% in 0.0500 secs
  75% in 0.0800 secs
  90% in 0.0900 secs
  95% in 0.1100 secs
  99% in 0.1100 secs

Details (average, fastest, slowest):
  DNS+dialup:\t0.0000 secs, 0.0000 secs, 0.0000 secs
  DNS-lookup:\t0.0000 secs, 0.0000 secs, 0.0000 secs
  req write:\t0.0000 secs, 0.0000 secs, 0.0000 secs
  resp wait:\t0.0560 secs, 0.0100 secs, 0.1100 secs
  resp read:\t0.0000 secs, 0.0000 secs, 0.0000 secs

Status code distribution:
  [200]\t9 responses
  [404]\t1 responses



";
        assert_eq!(summary(&ten(), 500 * MS, Style::Current), expected);
    }

    #[test]
    fn the_historic_summary() {
        let expected = "
Summary:
  Total:\t7.7650 secs
  Slowest:\t0.0400 secs
  Fastest:\t0.0200 secs
  Average:\t0.0250 secs
  Requests/sec:\t0.5151
  Total data:\t11440028 bytes
  Size/request:\t2860007 bytes

Status code distribution:
  [200]\t4 responses

Response time histogram:
  0.020 [3]\t|∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎∎
  0.022 [0]\t|
  0.024 [0]\t|
  0.026 [0]\t|
  0.028 [0]\t|
  0.030 [0]\t|
  0.032 [0]\t|
  0.034 [0]\t|
  0.036 [0]\t|
  0.038 [0]\t|
  0.040 [1]\t|∎∎∎∎∎∎∎∎∎∎∎∎∎

Latency distribution:
  10% in 0.0200 secs
  25% in 0.0200 secs
  50% in 0.0200 secs
  75% in 0.0200 secs
  90% in 0.0400 secs
  95% in 0.0400 secs
  99% in 0.0400 secs
";
        let four = || results([20, 20, 20, 40].map(|ms| response(200, ms * MS, 2_860_007)));
        assert_eq!(summary(&four(), 7_765 * MS, Style::Historic { details: false }), expected);
        let more = summary(&four(), 7_765 * MS, Style::Historic { details: true });
        assert!(more.starts_with(expected) && more.contains("\nDetails (average, fastest, slowest):\n  DNS+dialup:"));
    }

    #[test]
    fn where_all_fail_there_is_no_nan() {
        let none = results((0..10).map(|_| failure("connection refused")));
        let expected = "
Summary:
  Total:\t0.5000 secs
  Slowest:\t- secs
  Fastest:\t- secs
  Average:\t- secs
  Requests/sec:\t20.0000
  

Response time histogram:


Latency distribution:

Details (average, fastest, slowest):
  DNS+dialup:\t- secs, - secs, - secs
  DNS-lookup:\t- secs, - secs, - secs
  req write:\t- secs, - secs, - secs
  resp wait:\t- secs, - secs, - secs
  resp read:\t- secs, - secs, - secs

Status code distribution:

Error distribution:
  [10]\tconnection refused

";
        assert_eq!(summary(&none, 500 * MS, Style::Current), expected);
        let historic = summary(&none, 500 * MS, Style::Historic { details: true });
        assert_eq!(historic, "\nError distribution:\n  [10]\tconnection refused\n");
    }

    #[test]
    fn one_response_is_enough_for_all_percentiles() {
        let text = summary(&results([response(200, 5 * MS, 0)]), 0, Style::Current);
        assert_eq!(text.matches("% in 0.0050 secs").count(), 7);
        assert!(!text.contains("Total data") && text.contains("Requests/sec:\t-\n  \n\nResponse"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("\t|")).collect();
        assert_eq!(rows.len(), 11);
        assert!(rows[0].starts_with("  0.005 [1]") && rows[1..].iter().all(|row| row.starts_with("  0.005 [0]")));
    }

    #[test]
    fn rows_of_the_histogram_hold_every_response() {
        let results = results((1..=997).map(|n| response(200, n * n * 1_000 + 1_234_567, 0)));
        let text = histogram(&results, '■');
        let counts: Vec<u64> =
            text.lines().map(|line| line.split(['[', ']']).nth(1).unwrap().parse().unwrap()).collect();
        assert_eq!((counts.len(), counts.iter().sum::<u64>(), counts[0]), (11, 997, 1), "{text}");
    }
}
