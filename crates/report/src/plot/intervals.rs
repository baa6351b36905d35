//! Ratios with their intervals, one row each, on a scale where twice and half are equally far from equal.

use super::svg::{Anchor, Canvas, fitted, text_width};
use super::{Axis, Layout};

/// A chart of intervals.
#[derive(Debug)]
pub(crate) struct Intervals {
    /// A ratio axis that holds 1.
    pub(crate) axis: Axis,
    /// Ratios that make no difference in practice.
    pub(crate) margin: Option<(f64, f64)>,
    pub(crate) rows: Vec<IntervalRow>,
    pub(crate) note: String,
}

/// One ratio.
#[derive(Debug)]
pub(crate) struct IntervalRow {
    pub(crate) label: String,
    /// Number of the colour and the mark.
    pub(crate) series: usize,
    /// The estimate; `None`: nothing is known, and nothing drawn but the row.
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// The figures in words.
    pub(crate) text: String,
}

impl Intervals {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, layout: Layout) {
        let width = layout.width();
        // On paper and screens names, drawing and figures stand side by side; on a phone the texts stand above.
        let (left, right, row, at) = layout.choose((250.0, 640.0, 30.0, 15.0), (14.0, 346.0, 50.0, 32.0));
        let height = row * self.rows.len() as f64;
        let top = canvas.take(height + 52.0) + 6.0;
        let bottom = top + height;
        let at_x = |value: f64| left + self.axis.place(value) * (right - left);

        // Where texts stand above the drawing of their row, no line is to run through them.
        let stretches: Vec<(f64, f64)> = match layout {
            Layout::Wide => vec![(top, bottom)],
            Layout::Narrow => {
                let row_at = |i: usize| top + row * i as f64 + at;
                (0..self.rows.len()).map(|i| (row_at(i) - 10.0, row_at(i) + 10.0)).collect()
            }
        };
        if let Some((low, high)) = self.margin {
            for &(from, to) in &stretches {
                canvas.zone(at_x(low), from, (at_x(high) - at_x(low)).max(1.0), to - from);
            }
        }
        let mut ticks = Vec::new();
        for (value, text) in self.axis.ticks(layout.choose(6, 5)) {
            for &(from, to) in &stretches {
                canvas.rule((at_x(value), from), (at_x(value), to), false);
            }
            ticks.push((at_x(value), format!("{text}x")));
        }
        canvas.tick_texts(&ticks, bottom + 18.0);
        for &(from, to) in &stretches {
            canvas.rule((at_x(1.0), from), (at_x(1.0), to), true);
        }
        canvas.text(right, bottom + 37.0, Anchor::End, true, &fitted(&self.axis.label, right - 8.0));

        for (i, interval_row) in self.rows.iter().enumerate() {
            let from = top + i as f64 * row;
            let middle = from + at;
            // Figures are never cut; names take what they leave.
            let text_room = text_width(&interval_row.text);
            let (label_room, text_x, baseline, is_faint) = match layout {
                Layout::Wide => (left - 24.0, right + 14.0 + text_room, middle + 4.5, false),
                Layout::Narrow => (width - text_room - 28.0, width - 8.0, from + 15.0, true),
            };
            canvas.text(8.0, baseline, Anchor::Start, false, &fitted(&interval_row.label, label_room));
            canvas.text(text_x.min(width - 4.0), baseline, Anchor::End, is_faint, &interval_row.text);
            let series = interval_row.series;
            if let Some((low, high)) = interval_row.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
                canvas.area(
                    series,
                    &[vec![(at_x(low), middle - 7.0, middle + 7.0), (at_x(high), middle - 7.0, middle + 7.0)]],
                );
                for end in [low, high] {
                    canvas.bar(series, at_x(end) - 0.75, middle - 7.0, 1.5, 14.0, "");
                }
            }
            if let Some(value) = interval_row.value.filter(|value| value.is_finite()) {
                canvas.mark(series, at_x(value), middle, 4.5);
            }
        }
        canvas.note(&self.note);
    }
}
