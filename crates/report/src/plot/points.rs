//! Points with their intervals over levels, joined by lines or laid on a curve that was fitted to them.

use super::frame::Frame;
use super::svg::Canvas;
use super::{Axis, Layout};

/// A chart of points.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<PointSeries>,
    pub(crate) note: String,
}

/// The points of one series; its number in the chart is its colour, its dashes and its mark.
#[derive(Debug)]
pub(crate) struct PointSeries {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    /// A line: through the points, a curve fitted to them, or none.
    pub(crate) line: Vec<(f64, f64)>,
}

/// An estimate at a level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// It counts for nothing: drawn as a cross.
    pub(crate) is_left_out: bool,
}

/// Series stand so far apart at each level, in units of the drawing, that intervals do not hide each other.
const APART: f64 = 9.0;
/// Half of the width of an interval's ends.
const CAP: f64 = 4.0;

impl Points {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, layout: Layout) {
        if self.series.len() > 1 {
            let names: Vec<(usize, &str)> =
                self.series.iter().enumerate().map(|(i, series)| (i, series.name.as_str())).collect();
            canvas.legend(&names, true);
        }
        let frame = Frame::draw(canvas, layout, &self.x, &self.y);
        for (i, series) in self.series.iter().enumerate() {
            let known = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
            let line: Vec<(f64, f64)> =
                series.line.iter().filter(known).map(|&(x, y)| (frame.x(x), frame.y(y))).collect();
            canvas.line(i, &[line]);
        }
        let middle = (self.series.len().saturating_sub(1)) as f64 / 2.0;
        for (i, series) in self.series.iter().enumerate() {
            for point in series.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite()) {
                let (x, y) = (frame.x(point.x) + (i as f64 - middle) * APART, frame.y(point.y));
                if let Some((low, high)) = point.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
                    let (low, high) = (frame.y(low), frame.y(high));
                    canvas.bar(i, x - 0.75, high, 1.5, (low - high).max(0.5), "");
                    for end in [low, high] {
                        canvas.bar(i, x - CAP, end - 0.75, 2.0 * CAP, 1.5, "");
                    }
                }
                if point.is_left_out {
                    canvas.cross(i, x, y);
                } else {
                    canvas.mark(i, x, y, 4.0);
                }
            }
        }
        canvas.note(&self.note);
    }
}
