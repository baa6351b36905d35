//! Stacked bars, one row each: what a whole is made of.

use super::svg::{Anchor, Canvas, fitted, text_width};
use super::{Axis, Layout};

/// A chart of stacked bars.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) axis: Axis,
    /// Names of the parts, in the order of their colours.
    pub(crate) parts: Vec<String>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) note: String,
}

/// One whole.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// Sizes of the parts, in the order of their names.
    pub(crate) parts: Vec<f64>,
    /// Sizes of the parts in words, in the same order.
    pub(crate) texts: Vec<String>,
    /// The whole in words.
    pub(crate) text: String,
}

impl Bars {
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, layout: Layout) {
        const ROW: f64 = 48.0;
        let names: Vec<(usize, &str)> = self.parts.iter().enumerate().map(|(i, name)| (i, name.as_str())).collect();
        canvas.legend(&names, false);
        let width = layout.width();
        let (left, right) = (10.0, width - 18.0);
        let height = ROW * self.bars.len() as f64;
        let top = canvas.take(height + 52.0) + 2.0;
        let bottom = top + height;
        let at_x = |value: f64| left + self.axis.place(value) * (right - left);
        let mut ticks = Vec::new();
        for (value, text) in self.axis.ticks(layout.choose(8, 4)) {
            canvas.rule((at_x(value), top), (at_x(value), bottom), false);
            ticks.push((at_x(value), text));
        }
        canvas.tick_texts(&ticks, bottom + 17.0);
        canvas.text(right, bottom + 36.0, Anchor::End, true, &fitted(&self.axis.label, right - left));
        for (i, bar) in self.bars.iter().enumerate() {
            let y = top + i as f64 * ROW;
            let whole_width = text_width(&bar.text);
            canvas.text(left, y + 15.0, Anchor::Start, false, &fitted(&bar.label, right - left - whole_width - 16.0));
            canvas.text(right, y + 15.0, Anchor::End, true, &bar.text);
            let mut from = 0.0;
            for (part, &size) in bar.parts.iter().enumerate() {
                if size.is_finite() && size > 0.0 {
                    let (x, to) = (at_x(from), at_x(from + size));
                    let text = bar.texts.get(part).map_or("", String::as_str);
                    canvas.bar(part, x, y + 22.0, to - x, 18.0, text);
                    from += size;
                }
            }
        }
        canvas.note(&self.note);
    }
}
