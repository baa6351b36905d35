//! The list of archived runs.

mod targets;

use crate::settings::status_word;
use crate::style::Style;
use crate::text::{clean, clean_whole, columns, pad_right, plural, wrap};
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

/// Least room for targets beside the other columns: a name, an address of IPv4 and a port. With less they get lines of their own.
const LEAST_ROOM: usize = 24;

/// The runs as a table, in the order given; on narrow terminals a few lines each.
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
    if room >= LEAST_ROOM {
        let line = |row: &[String; 4], targets: &str| {
            let cells: String = row.iter().zip(widths).map(|(cell, width)| pad_right(cell, width) + "  ").collect();
            cells + targets
        };
        lines.push(line(&head, "targets"));
        for (run, row) in runs.iter().zip(&rows) {
            let told = targets(run, room);
            let (first, further) = told.split_first().map_or(("", &[][..]), |(first, further)| (first, further));
            lines.push(line(row, first));
            lines.extend(further.iter().map(|targets| " ".repeat(fixed) + targets));
        }
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
            lines.extend(wrap(&format!("{kind}, {status}, {}{why}", slots(run)), style.columns(), "  ", "  "));
            let told = targets(run, style.columns().saturating_sub(4).max(8));
            lines.extend(told.iter().map(|targets| format!("    {targets}")));
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

fn targets(run: &RunRow, room: usize) -> Vec<String> {
    targets::lines(&run.targets.iter().map(|target| clean(target)).collect::<Vec<_>>(), room)
}
