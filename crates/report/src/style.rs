//! What the reader's terminal can show.

use crate::text::char_columns;

/// How text is laid out. The caller finds out about the terminal, `NO_COLOR` and the locale; nothing is looked up here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns; below [`Style::MIN_WIDTH`] the text is laid out for that many.
    pub width: usize,
    /// Colour the verdict, the doubts and the bars.
    pub color: bool,
    /// Block characters and other text beyond ASCII; without it everything shown is ASCII.
    pub unicode: bool,
}

impl Default for Style {
    /// 80 columns without colour: what a file or a pipe gets.
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true }
    }
}

/// The few colours, named for what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Slower: red.
    Slower,
    /// Faster: green.
    Faster,
    /// A doubt: yellow.
    Doubt,
    /// Bars, which must not outshine the figures: dim.
    Bar,
}

impl Style {
    /// Fewest columns that a layout is made for.
    pub const MIN_WIDTH: usize = 40;

    /// Columns to lay out for.
    pub(crate) fn columns(self) -> usize {
        self.width.max(Self::MIN_WIDTH)
    }

    /// Colours a text that has already been laid out: escapes take no columns. Trailing spaces stay uncoloured.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        let visible = text.trim_end();
        if !self.color || visible.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Slower => "31",
            Ink::Faster => "32",
            Ink::Doubt => "33",
            Ink::Bar => "2",
        };
        format!("\x1b[{code}m{visible}\x1b[0m{}", &text[visible.len()..])
    }

    /// As [`Style::paint`], each line by itself, so that a pager that cuts between lines does not lose the colour.
    pub(crate) fn paint_lines(self, ink: Option<Ink>, lines: Vec<String>) -> Vec<String> {
        match ink {
            Some(ink) => lines.iter().map(|line| self.paint(ink, line)).collect(),
            None => lines,
        }
    }

    /// The last step of every report: no trailing spaces, ASCII where nothing else may be shown.
    pub(crate) fn finish_line(self, line: &str) -> String {
        let line = line.trim_end();
        if self.unicode { line.to_owned() } else { to_ascii(line) }
    }

    /// Lines as one text, each ended by a newline.
    pub(crate) fn finish(self, lines: &[String]) -> String {
        lines.iter().map(|line| self.finish_line(line) + "\n").collect()
    }
}

/// Replaces every character by ASCII of the same width, so that what was aligned stays aligned.
fn to_ascii(line: &str) -> String {
    let mut ascii = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            _ if c.is_ascii() => ascii.push(c),
            'µ' | 'μ' => ascii.push('u'),
            '…' => ascii.push('~'),
            '–' | '—' | '─' | '▒' => ascii.push('-'),
            '×' => ascii.push('x'),
            '≠' => ascii.push('*'),
            '→' => ascii.push('>'),
            '│' => ascii.push('|'),
            '┤' | '└' => ascii.push('+'),
            '▁' | '▂' | '▃' | '░' | '·' => ascii.push('.'),
            '▄' | '▅' | '▆' => ascii.push(':'),
            '▇' | '█' | '▌' | '▋' | '▊' | '▉' => ascii.push('#'),
            '▏' | '▎' | '▍' => ascii.push(' '),
            _ => ascii.extend(std::iter::repeat_n('?', char_columns(c))),
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_keeps_the_columns() {
        let style = Style { unicode: false, ..Style::default() };
        assert_eq!(style.finish_line("41.2 µs │▁▄█ 漢e\u{301}…  "), "41.2 us |.:# ??e~");
    }

    #[test]
    fn colour_only_when_asked_for_and_never_on_trailing_spaces() {
        assert_eq!(Style::default().paint(Ink::Doubt, "! x "), "! x ");
        let colored = Style { color: true, ..Style::default() };
        assert_eq!(colored.paint(Ink::Doubt, "! x "), "\x1b[33m! x\x1b[0m ");
        assert_eq!(colored.paint(Ink::Bar, "   "), "   ");
    }
}
