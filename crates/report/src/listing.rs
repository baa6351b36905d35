//! The list of archived runs.

use crate::settings::status_word;
use crate::style::Style;
use crate::text::{clean, clean_whole, columns, cut_end, cut_middle, pad_right, plural};
use duel_model::{RunKind, RunStatus};

/// What a list shows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Identity of the run.
    pub id: String,
    /// Start on the wall clock, in ms since 1970.
    pub started_unix_ms: i64,
    /// What was done with the targets.
    pub kind: RunKind,
    /// The targets as they were typed, the baseline first: an address, after a name that was given.
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
    // When it was started is in its id; an address needs the room more than that and the number of slots do.
    let head = ["run (UTC)", "kind", "status", "why"].map(str::to_owned);
    let rows: Vec<[String; 4]> = runs.iter().map(cells).collect();
    let mut widths = [0; 4];
    for row in [&head].into_iter().chain(&rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = columns(cell).max(*width);
        }
    }
    let fixed = widths.iter().sum::<usize>() + 2 * widths.len();
    let room = style.columns().saturating_sub(fixed);
    let mut lines = Vec::new();
    if room >= 12 {
        let line = |row: &[String; 4], targets: &str| {
            let cells: String = row.iter().zip(widths).map(|(cell, width)| pad_right(cell, width) + "  ").collect();
            cells + targets
        };
        lines.push(line(&head, "targets"));
        lines.extend(runs.iter().zip(&rows).map(|(run, row)| line(row, &targets(run, room))));
    } else {
        for (run, [id, kind, status, why]) in runs.iter().zip(&rows) {
            let when = crate::utc(run.started_unix_ms);
            let why = if why == "yes" { ", explained" } else { "" };
            // The identity stays whole: it is what one copies.
            let first = format!("{id}  {when}");
            if columns(&first) <= style.columns() {
                lines.push(first);
            } else {
                lines.extend([id.clone(), format!("  {when}")]);
            }
            let first = format!("  {kind}, {status}, {}{why}: ", slots(run));
            let room = style.columns().saturating_sub(columns(&first)).max(8);
            lines.push(cut_end(&(first + &targets(run, room)), style.columns()));
        }
    }
    style.finish(&lines)
}

fn cells(run: &RunRow) -> [String; 4] {
    [
        clean_whole(&run.id),
        run.kind.name().to_owned(),
        status_word(&run.status).to_owned(),
        if run.has_explanation { "yes" } else { "-" }.to_owned(),
    ]
}

fn slots(run: &RunRow) -> String {
    plural(u64::from(run.slots), "slot")
}

/// All targets in so many columns. Where they do not fit, they go without `http://`, and then each gets its part, as long as
/// that shows anything of it.
fn targets(run: &RunRow, room: usize) -> String {
    /// What one of several is worth showing with.
    const FEWEST: usize = 8;
    let mut all: Vec<String> = run.targets.iter().map(|target| clean(target)).collect();
    if columns(&all.join(", ")) > room {
        all.iter_mut().for_each(|target| *target = target.replacen("http://", "", 1));
    }
    let together = all.join(", ");
    let separators = 2 * all.len().saturating_sub(1);
    let part = room.saturating_sub(separators) / all.len().max(1);
    if columns(&together) <= room || part < FEWEST {
        return cut_end(&together, room);
    }
    // Addresses begin alike; where they differ is seldom the beginning.
    all.iter().map(|target| cut_middle(target, part)).collect::<Vec<_>>().join(", ")
}
