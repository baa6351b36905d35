//! Tables: one row per figure, one column per target, stacked in groups where the columns do not fit.

use crate::text::{columns, cut_middle, pad_left, pad_right, wrap_cell};

/// On which side cells are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// A table; cells have been made safe.
#[derive(Debug)]
pub(crate) struct Table {
    /// Above the labels.
    pub(crate) corner: String,
    /// Names of the columns.
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) align: Align,
}

/// A row: its label and a cell for each column; without any cells a heading.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) cells: Vec<String>,
}

impl Row {
    pub(crate) fn new(label: impl Into<String>, cells: Vec<String>) -> Self {
        Self { label: label.into(), cells }
    }
}

/// Between columns.
const GAP: usize = 2;
/// A column is not made narrower than this before the columns are stacked.
const NARROWEST: usize = 14;
/// Figures of columns closer than this run into one another.
const FIGURE: usize = 9;

impl Table {
    /// The table in lines of at most `width` columns.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let labels = self.rows.iter().map(|row| columns(&row.label)).chain([columns(&self.corner)]).max().unwrap_or(0);
        let labels = labels.min(width / 2);
        let room = width - labels;
        let count = self.heads.len().max(1);
        let fair = (room / count).saturating_sub(GAP).max(NARROWEST).min(room.saturating_sub(GAP));
        let natural: Vec<usize> = (0..self.heads.len()).map(|i| self.natural_width(i)).collect();
        // Columns take less than they need only where not all of them have what they need.
        let all_fit = natural.iter().map(|width| GAP + width).sum::<usize>() <= room;
        let widths: Vec<usize> =
            natural.into_iter().map(|width| if all_fit { width } else { width.min(fair) }).collect();

        let mut lines = Vec::new();
        let mut from = 0;
        while from < widths.len() {
            let mut to = from;
            let mut used = 0;
            while to < widths.len() && (to == from || used + GAP + widths[to] <= room) {
                used += GAP + widths[to];
                to += 1;
            }
            if from > 0 {
                lines.push(String::new());
            }
            self.group(from..to, labels, &widths, &mut lines);
            from = to;
        }
        lines
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column));
        let least = if self.align == Align::Right { FIGURE } else { 1 };
        cells.chain([&self.heads[column]]).map(|cell| columns(cell)).max().unwrap_or(0).max(least)
    }

    fn group(&self, range: std::ops::Range<usize>, labels: usize, widths: &[usize], lines: &mut Vec<String>) {
        let pad = |text: &str, width: usize| match self.align {
            Align::Left => pad_right(text, width),
            Align::Right => pad_left(text, width),
        };
        let gap = " ".repeat(GAP);
        let mut head = pad_right(&cut_middle(&self.corner, labels), labels);
        for i in range.clone() {
            head += &gap;
            head += &pad(&cut_middle(&self.heads[i], widths[i]), widths[i]);
        }
        lines.push(head.trim_end().to_owned());
        for row in &self.rows {
            // A row without cells is the heading of those below.
            if row.cells.is_empty() {
                lines.push(cut_middle(&row.label, labels));
                continue;
            }
            let cells: Vec<Vec<String>> =
                range.clone().map(|i| wrap_cell(row.cells.get(i).map_or("", String::as_str), widths[i])).collect();
            // A row whose cells are all empty in this group has nothing to say in it.
            if cells.iter().flatten().all(String::is_empty) {
                continue;
            }
            for nth in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let label = if nth == 0 { cut_middle(&row.label, labels) } else { String::new() };
                let mut line = pad_right(&label, labels);
                for (cell, i) in cells.iter().zip(range.clone()) {
                    line += &gap;
                    line += &pad(cell.get(nth).map_or("", String::as_str), widths[i]);
                }
                lines.push(line.trim_end().to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(align: Align, heads: &[&str], cells: &[&str]) -> Table {
        let strings = |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>();
        Table { corner: String::new(), heads: strings(heads), rows: vec![Row::new("rate", strings(cells))], align }
    }

    #[test]
    fn columns_that_do_not_fit_are_stacked() {
        let lines = table(Align::Right, &["A", "B", "C"], &["123456789", "223456789", "323456789"]).lines(30);
        assert_eq!(
            lines,
            ["              A          B", "rate  123456789  223456789", "", "              C", "rate  323456789"]
        );
    }

    #[test]
    fn no_cell_is_wrapped_while_the_line_has_room() {
        let lines = table(Align::Right, &["A", "B", "C"], &["13,103 µs ±0.7 %", "1", "2"]).lines(46);
        assert_eq!(lines[1], "rate  13,103 µs ±0.7 %          1          2");
    }

    #[test]
    fn long_text_is_wrapped_inside_its_column() {
        let lines = table(Align::Left, &["A", "B"], &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "x"]).lines(40);
        assert_eq!(
            lines,
            ["      A                 B", "rate  TLS_ECDHE_RSA_    x", "      WITH_AES_128_", "      GCM_SHA256"]
        );
    }
}
