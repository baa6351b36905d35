//! Lines over a common x axis, with bands around them.

use super::svg::{Anchor, Canvas, fitted, text_width};
use super::{Axis, Layout};

/// A chart of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    /// Where something failed: series and x.
    pub(crate) crosses: Vec<(usize, f64)>,
    /// What bands and crosses mean, below the chart.
    pub(crate) note: String,
}

/// One line, in pieces where there are gaps; its number in the chart is its colour, its dashes and its mark.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) pieces: Vec<Vec<(f64, f64)>>,
    pub(crate) band: Vec<Band>,
}

/// A stretch of a band: `(x, low, high)`.
pub(crate) type Band = Vec<(f64, f64, f64)>;

/// Marks on a line that is too dense to mark every point.
const MARKS: usize = 7;

impl Lines {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, layout: Layout) {
        if self.lines.len() > 1 {
            let names: Vec<(usize, &str)> = self.lines.iter().enumerate().map(|(i, l)| (i, l.name.as_str())).collect();
            canvas.legend(&names, true);
        }
        let width = layout.width();
        let y = canvas.take(20.0) + 14.0;
        canvas.text(8.0, y, Anchor::Start, true, &fitted(&self.y.label, width - 16.0));

        let y_ticks = self.y.ticks(layout.choose(6, 5));
        let left = y_ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max) + 16.0;
        let (right, height) = (width - 18.0, layout.choose(280.0, 230.0));
        let top = canvas.take(height + 52.0) + 6.0;
        let bottom = top + height;
        let at_x = |value: f64| left + self.x.place(value) * (right - left);
        let at_y = |value: f64| bottom - self.y.place(value) * height;

        for (value, text) in &y_ticks {
            canvas.rule((left, at_y(*value)), (right, at_y(*value)), false);
            canvas.text(left - 8.0, at_y(*value) + 4.5, Anchor::End, true, text);
        }
        canvas.rule((left, bottom), (right, bottom), true);
        let mut free_from = f64::NEG_INFINITY;
        for (value, text) in self.x.ticks(layout.choose(9, 5)) {
            let (x, half) = (at_x(value), text_width(&text) / 2.0);
            canvas.rule((x, bottom), (x, bottom + 4.0), true);
            // A text that would run into its neighbour is left out; its tick stays.
            if x - half >= free_from && x + half <= width {
                canvas.text(x, bottom + 19.0, Anchor::Middle, true, &text);
                free_from = x + half + 8.0;
            }
        }
        canvas.text(right, bottom + 37.0, Anchor::End, true, &fitted(&self.x.label, right - 8.0));

        for (i, line) in self.lines.iter().enumerate() {
            let band: Vec<Band> = line
                .band
                .iter()
                .map(|piece| piece.iter().map(|&(x, low, high)| (at_x(x), at_y(low), at_y(high))).collect())
                .collect();
            canvas.area(i, &band);
        }
        for (i, line) in self.lines.iter().enumerate() {
            let pieces: Vec<Vec<(f64, f64)>> =
                line.pieces.iter().map(|piece| piece.iter().map(|&(x, y)| (at_x(x), at_y(y))).collect()).collect();
            canvas.line(i, &pieces);
            let points: Vec<(f64, f64)> = pieces.into_iter().flatten().collect();
            // Lines begin their marks at different places, so that equal lines do not hide each other's.
            let every = points.len().div_ceil(MARKS).max(1);
            let first = (every * i / self.lines.len().max(1)).min(points.len().saturating_sub(1));
            for &(x, y) in points.iter().skip(first).step_by(every) {
                canvas.mark(i, x, y, 3.5);
            }
        }
        for &(series, x) in &self.crosses {
            canvas.cross(series, at_x(x), bottom - 5.0 - 7.0 * series as f64);
        }
        canvas.note(&self.note);
    }
}
