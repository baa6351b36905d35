//! The list of archived runs.

use crate::settings::status_word;
use crate::style::Style;
use crate::text::{clean, clean_whole, columns, cut_end, pad_left, pad_right, plural};
use duel_model::RunStatus;

/// What a list shows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Identity of the run.
    pub id: String,
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// Names of the targets, the baseline first.
    pub targets: Vec<String>,
    /// How it ended.
    pub status: RunStatus,
    /// How many slots it has, warm-up and probes included.
    pub slots: u32,
    /// Whether diagnosis was asked.
    pub has_explanation: bool,
}

/// The runs as a table, in the order given; on narrow terminals two lines each.
pub fn list(runs: &[RunRow], style: Style) -> String {
    if runs.is_empty() {
        return style.finish(&["No runs in the archive".to_owned()]);
    }
    let head = ["run", "started (UTC)", "status", "slots", "why"].map(str::to_owned);
    let rows: Vec<[String; 5]> = runs.iter().map(cells).collect();
    let mut widths = [0; 5];
    for row in [&head].into_iter().chain(&rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = columns(cell).max(*width);
        }
    }
    let fixed = widths.iter().sum::<usize>() + 2 * widths.len();
    let room = style.columns().saturating_sub(fixed);
    let mut lines = Vec::new();
    if room >= 12 {
        let line = |row: &[String; 5], targets: &str| {
            let cells: String = row
                .iter()
                .zip(widths)
                .enumerate()
                .map(|(i, (cell, width))| {
                    let cell = if i == 3 { pad_left(cell, width) } else { pad_right(cell, width) };
                    cell + "  "
                })
                .collect();
            cells + &cut_end(targets, room)
        };
        lines.push(line(&head, "targets"));
        lines.extend(runs.iter().zip(&rows).map(|(run, row)| line(row, &targets(run))));
    } else {
        for (run, [id, when, status, _, why]) in runs.iter().zip(&rows) {
            let why = if why == "yes" { ", explained" } else { "" };
            // The identity stays whole: it is what one copies.
            let first = format!("{id}  {when}");
            if columns(&first) <= style.columns() {
                lines.push(first);
            } else {
                lines.extend([id.clone(), format!("  {when}")]);
            }
            lines.push(cut_end(&format!("  {status}, {}{why}: {}", slots(run), targets(run)), style.columns()));
        }
    }
    style.finish(&lines)
}

fn cells(run: &RunRow) -> [String; 5] {
    [
        clean_whole(&run.id),
        crate::utc(run.started_unix_ms),
        status_word(&run.status).to_owned(),
        run.slots.to_string(),
        if run.has_explanation { "yes" } else { "-" }.to_owned(),
    ]
}

fn slots(run: &RunRow) -> String {
    plural(u64::from(run.slots), "slot")
}

fn targets(run: &RunRow) -> String {
    run.targets.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ")
}
