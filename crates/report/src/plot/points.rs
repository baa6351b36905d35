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

/// The points of one series.
#[derive(Debug)]
pub(crate) struct PointSeries {
    pub(crate) name: String,
    /// Its colour, its dashes and its mark; series of one number belong to one target.
    pub(crate) number: usize,
    pub(crate) pen: Pen,
    pub(crate) points: Vec<Point>,
    /// A line: through the points, a curve fitted to them, or none.
    pub(crate) line: Vec<(f64, f64)>,
    /// Around it: `(x, low, high)`.
    pub(crate) band: Vec<(f64, f64, f64)>,
}

impl PointSeries {
    /// A line through points, from left to right.
    pub(crate) fn joined(points: &[Point]) -> Vec<(f64, f64)> {
        let mut line: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        line
    }
}

/// What tells two series of one number apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pen {
    /// Broad lines and filled marks.
    Broad,
    /// Fine lines and hollow marks.
    Fine,
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

/// Series of different numbers stand so far apart at each level, in units of the drawing, that intervals do not hide each other.
const APART: f64 = 9.0;
/// Half of the width of an interval's ends.
const CAP: f64 = 4.0;

impl Points {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, layout: Layout) {
        if self.series.len() > 1 {
            let names: Vec<(usize, Pen, &str)> =
                self.series.iter().map(|series| (series.number, series.pen, series.name.as_str())).collect();
            canvas.legend_of_pens(&names);
        }
        let frame = Frame::draw(canvas, layout, &self.x, &self.y);
        for series in &self.series {
            let known = |(x, low, high): &&(f64, f64, f64)| [x, low, high].into_iter().all(|value| value.is_finite());
            let place = |&(x, low, high): &(f64, f64, f64)| (frame.x(x), frame.y(low), frame.y(high));
            canvas.area(series.number, &[series.band.iter().filter(known).map(place).collect()]);
        }
        for series in &self.series {
            let known = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
            let line: Vec<(f64, f64)> =
                series.line.iter().filter(known).map(|&(x, y)| (frame.x(x), frame.y(y))).collect();
            canvas.line_of(series.number, series.pen, &[line]);
        }
        let middle = self.series.iter().map(|series| series.number).max().unwrap_or(0) as f64 / 2.0;
        for series in &self.series {
            let i = series.number;
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
                    canvas.mark_of(i, series.pen, x, y, 4.0);
                }
            }
        }
        canvas.note(&self.note);
    }
}
