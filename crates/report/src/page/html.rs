//! HTML under construction.

use crate::markup::escape;
use crate::table::{Align, Table};
use crate::text::clean_whole;
use duel_model::PlanSecrets;

/// A page so far.
pub(super) struct Html {
    out: String,
    secrets: PlanSecrets,
}

impl Html {
    pub(super) fn new(secrets: PlanSecrets) -> Self {
        Self { out: String::with_capacity(1 << 18), secrets }
    }

    /// Markup of our own.
    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// A text, wherever it comes from.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&escape(&self.public(text)));
    }

    /// A text in which words between backticks are typed: they are shown so.
    pub(super) fn prose(&mut self, text: &str) {
        // What is left out of a text as a secret must not hang on where it is cut.
        let text = self.public(text);
        let pieces: Vec<&str> = text.split('`').collect();
        if pieces.len().is_multiple_of(2) {
            self.out.push_str(&escape(&text));
            return;
        }
        for (nth, piece) in pieces.into_iter().enumerate() {
            let (before, after) = if nth % 2 == 1 { ("<code>", "</code>") } else { ("", "") };
            self.out.push_str(&format!("{before}{}{after}", escape(piece)));
        }
    }

    /// A text without secrets: commands that lead back to the run are no part of it.
    fn public(&self, text: &str) -> String {
        clean_whole(&self.secrets.left_out(text))
    }

    /// A command that can be copied.
    pub(super) fn command(&mut self, command: &str) {
        self.raw("<pre><code>");
        self.text(command);
        self.raw("</code></pre>");
    }

    /// A table, which scrolls by itself where it is too wide.
    pub(super) fn table(&mut self, table: &Table, label: &str) {
        self.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
        self.text(label);
        self.raw(match table.align {
            Align::Right => "\"><table class=\"figures\"><thead><tr><th scope=\"col\">",
            Align::Left => "\"><table><thead><tr><th scope=\"col\">",
        });
        self.text(&table.corner);
        self.raw("</th>");
        for head in &table.heads {
            self.raw("<th scope=\"col\">");
            self.text(head);
            self.raw("</th>");
        }
        self.raw("</tr></thead><tbody>");
        for row in &table.rows {
            // What is indented on a terminal is a part of the row above it.
            let is_part = table.align == Align::Right && row.label.starts_with("  ");
            self.raw(if is_part { "<tr><th scope=\"row\" class=\"part\">" } else { "<tr><th scope=\"row\">" });
            self.text(row.label.trim_start());
            self.raw("</th>");
            for i in 0..table.heads.len() {
                self.raw("<td>");
                self.text(row.cells.get(i).map_or("", String::as_str));
                self.raw("</td>");
            }
            self.raw("</tr>");
        }
        self.raw("</tbody></table></div>");
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_typed_and_still_escaped() {
        let prose = |text: &str| {
            let mut html = Html::new(PlanSecrets::default());
            html.prose(text);
            html.finish()
        };
        assert_eq!(prose("run `a <b>` on it"), "run <code>a &lt;b&gt;</code> on it");
        // One alone opens nothing.
        assert_eq!(prose("it's a ` here & there"), "it&#39;s a ` here &amp; there");
    }
}
