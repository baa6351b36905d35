//! Lines over a common x axis, with bands around them.

use super::frame::Frame;
use super::svg::Canvas;
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

/// Up to so many points of a line are all marked; they are what was measured.
const ALL_MARKED: usize = 16;
/// Marks on a line that is too dense to mark every point.
const MARKS: usize = 7;

impl Lines {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, layout: Layout) {
        if self.lines.len() > 1 {
            let names: Vec<(usize, &str)> = self.lines.iter().enumerate().map(|(i, l)| (i, l.name.as_str())).collect();
            canvas.legend(&names, true);
        }
        let frame = Frame::draw(canvas, layout, &self.x, &self.y);
        let (at_x, at_y, bottom) = (|value| frame.x(value), |value| frame.y(value), frame.bottom);

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
            let every = if points.len() <= ALL_MARKED { 1 } else { points.len().div_ceil(MARKS) };
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
