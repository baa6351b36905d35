//! Small charts in block characters: the rate over time, and how response times are spread.

use crate::figures::{bar, count, duration, rate};
use crate::spans::{Span, spans};
use crate::style::{Ink, Style};
use crate::text::{columns, cut_middle, pad_left, plural, wrap};
use crate::totals::Totals;
use duel_model::Distribution;

/// The rate over the measured slots, one chart per target, all on the same scales.
///
/// Slots of different targets take turns, so each target's own slots are drawn one after another, without the time in
/// between. Below a chart, `x` marks where ops failed.
pub(crate) fn rate_over_time(targets: &[Totals<'_>], style: Style) -> Vec<String> {
    let end_ns = targets.iter().map(|t| t.elapsed_ns).max().unwrap_or(0);
    if end_ns == 0 {
        return Vec::new();
    }
    let names: Vec<String> = match targets {
        [_] => vec![String::new()],
        many => many.iter().map(|t| cut_middle(&t.name, 12)).collect(),
    };
    let title = match targets {
        [one] => format!("Rate over time, {}", plural(one.slots.len() as u64, "slot")),
        _ => "Rate over time: each target's own slots end to end, same scale for all".to_owned(),
    };
    let mut lines = wrap(&title, style.columns(), "", "  ");

    // A first guess of the scale's label is enough for the width of the labels: a column's rate is a mean of
    // intervals, so none is above the highest interval's.
    let spans: Vec<Vec<Span>> = targets.iter().map(spans).collect();
    let highest = spans.iter().flatten().map(Span::rate_per_ns).fold(0.0, f64::max);
    let label_width =
        names.iter().map(|n| columns(n)).chain([columns(&rate(highest * 1e9)), "failed".len()]).max().unwrap_or(0);
    let plot_width = style.columns() - label_width - 2;
    let sampled: Vec<Vec<Sample>> = spans.iter().map(|s| resample(s, end_ns, plot_width)).collect();
    let top = sampled.iter().flatten().filter_map(|s| s.rate_per_ns).fold(0.0, f64::max);
    if top <= 0.0 {
        lines.push("  nothing to draw: nothing ended well".to_owned());
        return lines;
    }

    let rows = match targets.len() {
        1 | 2 => 4,
        3 => 3,
        4..=6 => 2,
        _ => 1,
    };
    for (name, samples) in names.iter().zip(&sampled) {
        for row in 0..rows {
            let label = match row {
                _ if rows == 1 => name.clone(),
                0 => rate(top * 1e9),
                1 => name.clone(),
                _ if row == rows - 1 => "0".to_owned(),
                _ => String::new(),
            };
            let axis = if row == 0 || (row == rows - 1 && rows > 2) { '┤' } else { '│' };
            let blocks: String =
                samples.iter().map(|s| block(s.rate_per_ns.unwrap_or(0.0) / top, rows - 1 - row, rows)).collect();
            lines.push(format!("{} {axis}{}", pad_left(&label, label_width), style.paint(Ink::Bar, &blocks)));
        }
        if samples.iter().any(|s| s.failed) {
            let marks: String = samples.iter().map(|s| if s.failed { 'x' } else { ' ' }).collect();
            lines.push(format!("{}  {marks}", pad_left("failed", label_width)));
        }
    }
    let end = duration(end_ns as f64);
    let axis = pad_left(&end, plot_width.saturating_sub("0 s".len()));
    lines.push(format!("{}  0 s{axis}", " ".repeat(label_width)));
    lines
}

/// How many response times lie in which range: rows of equal width on a logarithmic scale.
pub(crate) fn histogram(times: &Distribution, style: Style) -> Vec<String> {
    const ROWS: f64 = 10.0;
    let (Some(min), Some(max)) = (times.min_ns(), times.max_ns()) else { return Vec::new() };
    let (min, max) = (min.max(1) as f64, max.max(1) as f64);
    // Below 5 % a step, neighbouring edges would hardly differ in three digits.
    let step = (max / min).powf(1.0 / ROWS).max(1.05);
    let mut edges = vec![min * step];
    while edges.last().is_some_and(|&edge| edge < max * 0.999_999) {
        let next = (edges[edges.len() - 1] * step).min(max);
        edges.push(next);
    }
    let mut counts = vec![0_u64; edges.len()];
    for &(value, n) in times.buckets() {
        let row = edges.partition_point(|&edge| edge < value as f64).min(counts.len() - 1);
        counts[row] += n;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let labels: Vec<String> = edges.iter().map(|&edge| duration(edge.min(max))).collect();
    let label_width = labels.iter().map(|l| columns(l)).max().unwrap_or(0);
    let count_width = counts.iter().map(|&n| count(n).len()).max().unwrap_or(0);
    let bar_width = style.columns().saturating_sub(2 + "up to ".len() + label_width + 2 + count_width + 2).min(50);
    let share = |n: u64| if most > 0 { n as f64 / most as f64 } else { 0.0 };
    labels
        .iter()
        .zip(&counts)
        .map(|(label, &n)| {
            let (label, count) = (pad_left(label, label_width), pad_left(&count(n), count_width));
            format!("  up to {label}  {count}  {}", style.paint(Ink::Bar, &bar(share(n), bar_width)))
        })
        .collect()
}

/// One column of a chart.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Ok ops per ns; `None` after the target's last slot.
    rate_per_ns: Option<f64>,
    failed: bool,
}

/// Ops spread over columns of equal time, each column getting its share of the spans that it overlaps.
fn resample(spans: &[Span], end_ns: u64, width: usize) -> Vec<Sample> {
    let column_ns = end_ns as f64 / width as f64;
    let last_ns = spans.last().map_or(0.0, |s| s.to_ns);
    let mut first = 0;
    (0..width)
        .map(|column| {
            let (from_ns, to_ns) = (column as f64 * column_ns, (column + 1) as f64 * column_ns);
            while spans.get(first).is_some_and(|s| s.to_ns <= from_ns) {
                first += 1;
            }
            let (mut ok, mut covered, mut failed) = (0.0, 0.0, false);
            for span in spans[first..].iter().take_while(|s| s.from_ns < to_ns) {
                let overlap = (span.to_ns.min(to_ns) - span.from_ns.max(from_ns)).max(0.0);
                ok += span.rate_per_ns() * overlap;
                covered += overlap;
                failed |= span.failed && overlap > 0.0;
            }
            let known = covered > 0.0 && from_ns < last_ns;
            Sample { rate_per_ns: known.then(|| ok / covered), failed }
        })
        .collect()
}

/// The part of a column of height `share` (of all `rows`) that lies in a row, 0 being the lowest.
fn block(share: f64, row: usize, rows: usize) -> char {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = (share.clamp(0.0, 1.0) * (rows * 8) as f64).round() as usize;
    // What is there is seen, however small.
    let height = if share > 0.0 { height.max(1) } else { 0 };
    EIGHTHS[height.saturating_sub(row * 8).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resampling_keeps_the_rate() {
        let span = |from_ns, to_ns, ok| Span { from_ns, to_ns, ok, failed: false };
        let spans = [span(0.0, 50.0, 100.0), span(50.0, 100.0, 50.0)];
        let rates = |end, width| resample(&spans, end, width).iter().map(|s| s.rate_per_ns).collect::<Vec<_>>();
        assert_eq!(rates(100, 4), [Some(2.0), Some(2.0), Some(1.0), Some(1.0)]);
        assert_eq!(rates(100, 1), [Some(1.5)]);
        // After the target's end nothing is known, which is not a rate of zero.
        assert_eq!(rates(200, 4), [Some(2.0), Some(1.0), None, None]);
    }

    #[test]
    fn columns_are_drawn_to_an_eighth_of_a_row() {
        assert_eq!([block(1.0, 1, 2), block(0.5, 1, 2), block(0.5, 0, 2), block(0.75, 1, 2)], ['█', ' ', '█', '▄']);
        assert_eq!([block(1e-9, 0, 4), block(0.0, 0, 4)], ['▁', ' ']);
    }

    #[test]
    fn a_histogram_counts_everything_once() {
        let times = Distribution::from_values((1..=1000).map(|i| i * 1000));
        let lines = histogram(&times, Style::default());
        assert!(lines.len() <= 11, "{lines:#?}");
        let counted: u64 =
            lines.iter().filter_map(|l| l.split_whitespace().nth(4)?.replace(',', "").parse::<u64>().ok()).sum();
        assert_eq!(counted, 1000, "{lines:#?}");
        assert_eq!(histogram(&Distribution::from_values([7, 7]), Style::default()).len(), 1);
        assert!(histogram(&Distribution::default(), Style::default()).is_empty());
    }
}
