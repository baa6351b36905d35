//! The frame of a chart with two axes: labels, ticks, grid.

use super::svg::{Anchor, Canvas, fitted, text_width};
use super::{Axis, Layout};

/// A frame that has been drawn: from values to places within it.
pub(super) struct Frame<'a> {
    x: &'a Axis,
    y: &'a Axis,
    left: f64,
    right: f64,
    height: f64,
    pub(super) bottom: f64,
}

impl<'a> Frame<'a> {
    /// Draws the axes; the drawing goes on below them.
    pub(super) fn draw(canvas: &mut Canvas<'_>, layout: Layout, x: &'a Axis, y: &'a Axis) -> Self {
        let width = layout.width();
        let label_y = canvas.take(20.0) + 14.0;
        canvas.text(8.0, label_y, Anchor::Start, true, &fitted(&y.label, width - 16.0));

        let y_ticks = y.ticks(layout.choose(6, 5));
        let left = y_ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max) + 16.0;
        let (right, height) = (width - 18.0, layout.choose(280.0, 230.0));
        let top = canvas.take(height + 52.0) + 6.0;
        let frame = Self { x, y, left, right, height, bottom: top + height };
        let bottom = frame.bottom;

        for (value, text) in &y_ticks {
            canvas.rule((left, frame.y(*value)), (right, frame.y(*value)), false);
            canvas.text(left - 8.0, frame.y(*value) + 4.5, Anchor::End, true, text);
        }
        canvas.rule((left, bottom), (right, bottom), true);
        let mut ticks = Vec::new();
        for (value, text) in x.ticks(layout.choose(9, 5)) {
            canvas.rule((frame.x(value), bottom), (frame.x(value), bottom + 4.0), true);
            ticks.push((frame.x(value), fitted(&text, (right - left) / 2.0)));
        }
        canvas.tick_texts(&ticks, bottom + 19.0);
        canvas.text(right, bottom + 37.0, Anchor::End, true, &fitted(&x.label, right - 8.0));
        frame
    }

    /// Where a value of the x axis lies.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (self.right - self.left)
    }

    /// Where a value of the y axis lies.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.place(value) * self.height
    }
}
