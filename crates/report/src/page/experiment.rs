//! What the factors of a run showed.

use super::html::Html;
use crate::experiment::parts;
use crate::totals::totals;
use duel_model::{Run, Verdict};

/// The tables of factors and treatments, and the scaling law; nothing in a run without factors.
pub(super) fn section(html: &mut Html, run: &Run, verdict: &Verdict) {
    let Some(experiment) = &verdict.experiment else { return };
    html.raw("<section id=\"experiment\"><h2>Factors</h2>");
    for part in parts(run, experiment, &totals(run)) {
        html.raw("<h3>");
        html.text(&part.title);
        html.raw("</h3>");
        if let Some(table) = &part.table {
            html.table(table, &part.title);
        }
        for note in &part.notes {
            html.raw("<p>");
            html.text(note);
            html.raw("</p>");
        }
    }
    html.raw("</section>");
}
