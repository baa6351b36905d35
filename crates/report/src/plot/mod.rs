//! Charts as SVG, drawn by our own few functions: lines with bands, points with intervals,
//! intervals on a ratio scale, stacked bars.
//!
//! A chart crate would bring its own fonts, colours and layout, and most of it would be turned off again: here texts are
//! left to the reader's fonts, colours change between light and dark, and every chart is drawn for
//! two widths, because a chart that is merely scaled down to a phone cannot be read.
//!
//! Nothing here knows runs. Numbers come in as `f64`; what is not finite is not drawn.

mod axis;
mod bars;
mod frame;
mod intervals;
mod lines;
mod palette;
mod points;
mod svg;

pub(crate) use axis::Axis;
pub(crate) use bars::{Bar, Bars};
pub(crate) use intervals::{IntervalRow, Intervals};
pub(crate) use lines::{Band, Line, Lines};
pub(crate) use palette::{dark_rules, rules};
pub(crate) use points::{Pen, Point, PointSeries, Points};

/// For which width a chart is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A screen or a sheet of paper: 880 units wide, texts of 13 units.
    Wide,
    /// A phone: 360 units wide, texts of 13 units.
    Narrow,
}

impl Layout {
    /// Width of the drawing; one unit is about a pixel.
    pub(crate) fn width(self) -> f64 {
        match self {
            Self::Wide => 880.0,
            Self::Narrow => 360.0,
        }
    }

    /// One of two values.
    fn choose<T>(self, wide: T, narrow: T) -> T {
        match self {
            Self::Wide => wide,
            Self::Narrow => narrow,
        }
    }
}

/// What is drawn.
#[derive(Debug)]
pub(crate) enum Drawing {
    Lines(Lines),
    Intervals(Intervals),
    Bars(Bars),
    Points(Points),
}

/// Where the drawing is going to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting<'a> {
    /// In a page that has title, background and style sheet; identifiers end in this suffix, so that they stay unique.
    Inline(&'a str),
    /// In a file of its own: with title and background.
    File,
}

/// Texts that go with a drawing: for those who cannot see it, and for the head of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Texts<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// What the chart shows, in words and figures.
    pub(crate) description: &'a str,
}

/// The drawing as one `svg` element.
pub(crate) fn draw(drawing: &Drawing, texts: Texts<'_>, layout: Layout, setting: Setting<'_>) -> String {
    let mut canvas = svg::Canvas::new(layout, texts, setting);
    match drawing {
        Drawing::Lines(lines) => lines.draw(&mut canvas, layout),
        Drawing::Intervals(intervals) => intervals.draw(&mut canvas, layout),
        Drawing::Bars(bars) => bars.draw(&mut canvas, layout),
        Drawing::Points(points) => points.draw(&mut canvas, layout),
    }
    canvas.finish()
}
