//! Percentiles as HdrHistogram prints them (`outputPercentileDistribution`), for its plotter and whatever else reads
//! `.hgrm` files. Values are milliseconds.

use super::ExportError;
use crate::text::clean;
use crate::totals::totals;
use duel_model::{Distribution, Run};
use std::fmt::Write;

/// Rows for each halving of the distance to 100 %, HdrHistogram's own default.
const TICKS_PER_HALF_DISTANCE: f64 = 5.0;
/// Buckets of the histogram that the generator records into, for the footer: 3 significant digits take 2,048
/// sub-buckets, and 1 µs (in steps of 512 ns) to 1 h takes 23 doublings of their range.
const BUCKETS: u32 = 23;
const SUB_BUCKETS: u32 = 2_048;

/// The response times of one target over its measured slots.
pub(super) fn hgrm(run: &Run, target: usize) -> Result<String, ExportError> {
    let name = run.plan.targets.get(target).map(|t| clean(&t.name)).unwrap_or_default();
    let totals = totals(run).into_iter().nth(target);
    let times = totals.map(|totals| totals.tally.response).filter(|times| !times.is_empty());
    times.map(|times| percentiles(&times)).ok_or(ExportError::Nothing(name))
}

fn percentiles(times: &Distribution) -> String {
    let mut text = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for row in rows(times) {
        let _ = match row.level_percent {
            level if level < 100.0 => writeln!(
                text,
                "{:12.3} {:2.12} {:10} {:14.2}",
                row.value_ns as f64 / 1e6,
                level / 100.0,
                row.count,
                1.0 / (1.0 - level / 100.0)
            ),
            _ => writeln!(text, "{:12.3} {:2.12} {:10}", row.value_ns as f64 / 1e6, 1.0, row.count),
        };
    }
    let (mean_ns, deviation_ns) = mean_and_deviation_ns(times);
    let (mean, deviation) = (mean_ns / 1e6, deviation_ns / 1e6);
    let (max, count) = (times.max_ns().unwrap_or(0) as f64 / 1e6, times.count());
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
    let _ = writeln!(text, "#[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]");
    text
}

struct Row {
    value_ns: u64,
    /// The percentile that was asked for, 0 to 100.
    level_percent: f64,
    /// Values up to this one.
    count: u64,
}

/// HdrHistogram's `PercentileIterator`: the steps of the level shrink by half each time the distance to 100 % has halved,
/// each row is the first value that reaches the level, and the last one is 100 %.
fn rows(times: &Distribution) -> Vec<Row> {
    let total = times.count();
    let largest_ns = times.max_ns().unwrap_or(0);
    let (mut rows, mut level, mut seen) = (Vec::new(), 0.0_f64, 0);
    for &(value_ns, n) in times.buckets() {
        seen += n;
        let reached = 100.0 * seen as f64 / total as f64;
        let value_ns = value_ns.min(largest_ns);
        while level <= reached && level < 100.0 {
            rows.push(Row { value_ns, level_percent: level, count: seen });
            let halvings = (100.0 / (100.0 - level)).log2().floor() + 1.0;
            level += 100.0 / (TICKS_PER_HALF_DISTANCE * halvings.exp2());
            // Once all values are in, only 100 % is left.
            if seen == total {
                break;
            }
        }
    }
    rows.push(Row { value_ns: largest_ns, level_percent: 100.0, count: total });
    rows
}

/// The exact mean, and the deviation as far as buckets keep it (three significant digits).
fn mean_and_deviation_ns(times: &Distribution) -> (f64, f64) {
    let Some(mean) = times.mean_ns() else { return (0.0, 0.0) };
    let squares: f64 = times.buckets().iter().map(|&(value, n)| n as f64 * (value as f64 - mean).powi(2)).sum();
    (mean, (squares / times.count() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_halve_their_steps_as_hdrhistogram_does() {
        let times = Distribution::from_values((1..=1_000).map(|i| i * 1_000_000));
        let levels: Vec<f64> = rows(&times).iter().map(|row| row.level_percent).collect();
        assert_eq!(levels[..12], [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0, 77.5]);
        assert_eq!(levels.last(), Some(&100.0));
        assert!(levels.windows(2).all(|pair| pair[0] < pair[1]), "{levels:?}");
        let text = percentiles(&times);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[2], "       1.000 0.000000000000          1           1.00");
        assert_eq!(lines[7], "     500.000 0.500000000000        500           2.00");
        assert!(lines.contains(&"    1000.000 1.000000000000       1000"), "{text}");
        assert!(text.contains("#[Mean    =      500.500, StdDeviation   =      288.675]"), "{text}");
        assert!(text.contains("#[Max     =     1000.000, Total count    =         1000]"), "{text}");
    }

    #[test]
    fn one_value_is_all_percentiles() {
        let rows = rows(&Distribution::from_values([7]));
        assert_eq!(rows.iter().map(|row| (row.value_ns, row.count)).collect::<Vec<_>>(), [(7, 1), (7, 1)]);
    }
}
