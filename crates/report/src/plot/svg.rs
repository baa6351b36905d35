//! An `svg` element under construction.

use super::palette::{self, LIGHT, SERIES};
use super::{Layout, Pen, Setting, Texts};
use crate::markup::escape;
use std::fmt::Write;

/// Size of the texts.
pub(super) const TEXT: f64 = 13.0;
/// Mean width of a character in sentences, as a part of the text's size.
const CHARACTER: f64 = 0.57;

/// The reader's own fonts; nothing is fetched.
const FONTS: &str = "system-ui,-apple-system,Segoe UI,Roboto,Noto Sans,DejaVu Sans,sans-serif";

/// On which side of a point its text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Elements so far; the height is known when all are there.
pub(super) struct Canvas<'a> {
    layout: Layout,
    texts: Texts<'a>,
    setting: Setting<'a>,
    body: String,
    /// Where the drawing goes on: below what is there.
    top: f64,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(layout: Layout, texts: Texts<'a>, setting: Setting<'a>) -> Self {
        let mut canvas = Self { layout, texts, setting, body: String::new(), top: 4.0 };
        if setting == Setting::File {
            for line in wrapped(texts.title, layout.width() - 16.0, 16.0) {
                let y = canvas.take(22.0) + 17.0;
                let _ = write!(
                    canvas.body,
                    "<text x=\"8\" y=\"{}\" font-size=\"16\" font-weight=\"600\" fill=\"{}\">{}</text>",
                    short(y),
                    LIGHT.text,
                    escape(&line)
                );
            }
            canvas.take(6.0);
        }
        canvas
    }

    /// Takes so much height; answers where it begins.
    pub(super) fn take(&mut self, height: f64) -> f64 {
        let from = self.top;
        self.top += height;
        from
    }

    /// Texts below the ticks of an axis, each at its middle. One at an end of the axis is moved until the drawing holds it
    /// whole; one that would run into its neighbour is left out.
    pub(super) fn tick_texts(&mut self, ticks: &[(f64, String)], y: f64) {
        let mut free_from = 0.0;
        for (x, text) in ticks {
            let half = text_width(text) / 2.0;
            let x = x.min(self.layout.width() - half).max(half);
            if x - half >= free_from && x + half <= self.layout.width() {
                self.text(x, y, Anchor::Middle, true, text);
                free_from = x + half + 8.0;
            }
        }
    }

    /// A text of the usual size.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, is_faint: bool, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (class, color) = if is_faint { (" class=\"faint\"", LIGHT.faint) } else { ("", LIGHT.text) };
        let _ = write!(
            self.body,
            "<text x=\"{}\" y=\"{}\"{anchor}{class} font-size=\"{TEXT}\" fill=\"{color}\">{}</text>",
            short(x),
            short(y),
            escape(text)
        );
    }

    /// A line of the grid, or of an axis.
    pub(super) fn rule(&mut self, from: (f64, f64), to: (f64, f64), is_axis: bool) {
        let (class, color) = if is_axis { ("axis", LIGHT.faint) } else { ("grid", LIGHT.grid) };
        let _ = write!(
            self.body,
            "<path class=\"{class}\" d=\"M{} {}L{} {}\" stroke=\"{color}\" fill=\"none\"/>",
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1)
        );
    }

    /// A background zone, such as the practical margin.
    pub(super) fn zone(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let _ = write!(
            self.body,
            "<rect class=\"zone\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\".6\"/>",
            short(x),
            short(y),
            short(width),
            short(height),
            LIGHT.grid
        );
    }

    /// A bar, with the colour of a series.
    pub(super) fn bar(&mut self, series: usize, x: f64, y: f64, width: f64, height: f64, label: &str) {
        let title = if label.is_empty() { String::new() } else { format!("<title>{}</title>", escape(label)) };
        let _ = write!(
            self.body,
            "<rect class=\"s{} fill\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\">{title}</rect>",
            series % SERIES,
            short(x),
            short(y),
            short(width.max(0.5)),
            short(height),
            palette::light(series)
        );
    }

    /// Pieces of a line through points.
    pub(super) fn line(&mut self, series: usize, pieces: &[Vec<(f64, f64)>]) {
        self.line_of(series, Pen::Broad, pieces);
    }

    /// Pieces of a line through points, drawn with this pen.
    pub(super) fn line_of(&mut self, series: usize, pen: Pen, pieces: &[Vec<(f64, f64)>]) {
        let path: String = pieces.iter().filter(|piece| piece.len() > 1).map(|piece| polyline(piece)).collect();
        if path.is_empty() {
            return;
        }
        let dashes = palette::dashes(series);
        let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let _ = write!(
            self.body,
            "<path class=\"s{} line\" d=\"{path}\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\" fill=\"none\"{dashes}/>",
            series % SERIES,
            palette::light(series),
            if pen == Pen::Broad { 2 } else { 1 }
        );
    }

    /// Areas between a lower and an upper edge: `(x, low, high)`.
    pub(super) fn area(&mut self, series: usize, pieces: &[Vec<(f64, f64, f64)>]) {
        let mut path = String::new();
        for piece in pieces.iter().filter(|piece| piece.len() > 1) {
            let outline: Vec<(f64, f64)> = piece
                .iter()
                .map(|&(x, low, _)| (x, low))
                .chain(piece.iter().rev().map(|&(x, _, high)| (x, high)))
                .collect();
            path += &polyline(&outline);
            path.push('Z');
        }
        if path.is_empty() {
            return;
        }
        let _ = write!(
            self.body,
            "<path class=\"s{} fill\" d=\"{path}\" fill=\"{}\" fill-opacity=\".18\"/>",
            series % SERIES,
            palette::light(series)
        );
    }

    /// A mark of a series: four shapes in turn.
    pub(super) fn mark(&mut self, series: usize, x: f64, y: f64, radius: f64) {
        self.mark_of(series, Pen::Broad, x, y, radius);
    }

    /// A mark of a series, filled or hollow as the pen has it.
    pub(super) fn mark_of(&mut self, series: usize, pen: Pen, x: f64, y: f64, radius: f64) {
        let (class, color) = (series % SERIES, palette::light(series));
        let (kind, paint) = match pen {
            Pen::Broad => ("fill", format!("fill=\"{color}\"")),
            Pen::Fine => ("line", format!("stroke=\"{color}\" stroke-width=\"1.4\" fill=\"none\"")),
        };
        let shape = |path: String| format!("<path class=\"s{class} {kind}\" d=\"{path}\" {paint}/>");
        let [left, right, top, bottom] = [x - radius, x + radius, y - radius, y + radius].map(short);
        let (cx, cy) = (short(x), short(y));
        self.body += &match series % 4 {
            0 => format!("<circle class=\"s{class} {kind}\" cx=\"{cx}\" cy=\"{cy}\" r=\"{}\" {paint}/>", short(radius)),
            1 => shape(format!("M{left} {top}H{right}V{bottom}H{left}Z")),
            2 => shape(format!("M{cx} {top}L{right} {bottom}H{left}Z")),
            _ => shape(format!("M{cx} {top}L{right} {cy}L{cx} {bottom}L{left} {cy}Z")),
        };
    }

    /// A cross where something failed.
    pub(super) fn cross(&mut self, series: usize, x: f64, y: f64) {
        let [left, right, top, bottom] = [x - 3.0, x + 3.0, y - 3.0, y + 3.0].map(short);
        let _ = write!(
            self.body,
            "<path class=\"s{} line\" d=\"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}\" stroke=\"{}\" stroke-width=\"1.5\" fill=\"none\"/>",
            series % SERIES,
            palette::light(series)
        );
    }

    /// The legend: names with a piece of their line and their mark, in as many rows as it takes.
    pub(super) fn legend(&mut self, entries: &[(usize, &str)], has_lines: bool) {
        let entries: Vec<(usize, Option<Pen>, &str)> =
            entries.iter().map(|&(series, name)| (series, has_lines.then_some(Pen::Broad), name)).collect();
        self.named(&entries);
    }

    /// The legend of series that are drawn with several pens.
    pub(super) fn legend_of_pens(&mut self, entries: &[(usize, Pen, &str)]) {
        let entries: Vec<(usize, Option<Pen>, &str)> =
            entries.iter().map(|&(series, pen, name)| (series, Some(pen), name)).collect();
        self.named(&entries);
    }

    /// Names, each with what its pen draws; without a pen with a swatch.
    fn named(&mut self, entries: &[(usize, Option<Pen>, &str)]) {
        const SAMPLE: f64 = 30.0;
        let width = self.layout.width();
        let mut x = 8.0;
        let mut y = self.take(22.0) + 14.0;
        for &(series, pen, name) in entries {
            let name = fitted(name, width - SAMPLE - 24.0);
            let length = SAMPLE + text_width(&name) + 16.0;
            if x > 8.0 && x + length > width {
                x = 8.0;
                y = self.take(20.0) + 14.0;
            }
            if let Some(pen) = pen {
                self.line_of(series, pen, &[vec![(x, y - 4.0), (x + 24.0, y - 4.0)]]);
                self.mark_of(series, pen, x + 12.0, y - 4.0, 4.0);
            } else {
                self.bar(series, x + 6.0, y - 11.0, 14.0, 12.0, "");
            }
            self.text(x + SAMPLE, y, Anchor::Start, false, &name);
            x += length;
        }
        self.take(4.0);
    }

    /// A line of explanation in faint letters, broken where it has to be.
    pub(super) fn note(&mut self, text: &str) {
        for line in wrapped(text, self.layout.width() - 16.0, TEXT) {
            let y = self.take(17.0) + 13.0;
            self.text(8.0, y, Anchor::Start, true, &line);
        }
    }

    /// The element as text.
    pub(super) fn finish(mut self) -> String {
        let (width, height) = (short(self.layout.width()), short(self.take(0.0) + 4.0));
        let suffix = match self.setting {
            Setting::Inline(suffix) => suffix,
            Setting::File => "",
        };
        let id = format!("{}{suffix}", self.texts.id);
        let (namespace, before) = match self.setting {
            Setting::Inline(_) => ("", String::new()),
            Setting::File => (
                " xmlns=\"http://www.w3.org/2000/svg\"",
                format!(
                    "<style>{}</style><rect class=\"ground\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
                    palette::dark_rules(),
                    LIGHT.background
                ),
            ),
        };
        format!(
            "<svg{namespace} class=\"duel-chart\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-labelledby=\"{id}-t {id}-d\" font-family=\"{FONTS}\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{before}{}</svg>",
            escape(self.texts.title),
            escape(self.texts.description),
            self.body
        )
    }
}

/// About how wide a text is, rather too wide than too narrow: the reader's font is not known.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(character_width).sum::<f64>() * TEXT
}

/// Width of a character as a part of the text's size: a little above that of the widest common font, DejaVu Sans.
fn character_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.43,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '\u{2026}' => 1.0,
        'A'..='Z' => 0.78,
        c if c.is_ascii() => 0.64,
        c => crate::text::char_columns(c).max(1) as f64 * 0.66,
    }
}

/// As much of a text as fits, its middle left out.
pub(super) fn fitted(text: &str, width: f64) -> String {
    let mut columns = crate::text::columns(text);
    let mut shown = text.to_owned();
    while text_width(&shown) > width && columns > 1 {
        columns -= 1;
        shown = crate::text::cut_middle(text, columns);
    }
    shown
}

fn wrapped(text: &str, width: f64, size: f64) -> Vec<String> {
    crate::text::wrap_cell(text, (width / (size * CHARACTER)).max(1.0) as usize)
}

fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::with_capacity(points.len() * 12);
    for (i, &(x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if i == 0 { 'M' } else { 'L' }, short(x), short(y));
    }
    path
}

/// A coordinate to a tenth of a unit, which is finer than a screen shows.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_ticks_are_whole_and_apart() {
        let texts = Texts { id: "", title: "", description: "" };
        let mut canvas = Canvas::new(Layout::Narrow, texts, Setting::File);
        canvas.body.clear();
        let ticks = [(0.0, "0.5x"), (340.0, "1.5x"), (346.0, "1.75x")].map(|(x, text)| (x, text.to_owned()));
        canvas.tick_texts(&ticks, 10.0);
        let drawn: Vec<(f64, &str)> = canvas
            .body
            .split("<text x=\"")
            .skip(1)
            .map(|element| {
                let (x, rest) = element.split_once('"').unwrap();
                (x.parse().unwrap(), rest.split_once('>').unwrap().1.split_once('<').unwrap().0)
            })
            .collect();
        assert_eq!(drawn.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["0.5x", "1.5x"]);
        for (x, text) in drawn {
            let half = text_width(text) / 2.0 - 0.05;
            assert!(x - half >= 0.0 && x + half <= Layout::Narrow.width(), "{text} at {x}");
        }
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(fitted("WWWWWWWWWW", text_width("WWWWW")), "WW…WW");
        assert_eq!([short(12.0), short(12.34), short(-0.01), short(-3.26)], ["12", "12.3", "0", "-3.3"]);
    }
}
