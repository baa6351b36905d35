//! What was agreed with each target, side by side, differences marked.

use crate::figures::{UNKNOWN, count};
use crate::style::Style;
use crate::table::{Align, Row, Table};
use crate::text::{clean, wrap};
use crate::totals::Totals;
use duel_model::{Compared, Declaration, Facts, Value};

/// What was negotiated, as text.
pub(crate) fn side_by_side(targets: &[Totals<'_>], style: Style) -> Vec<String> {
    let Some((title, table)) = table(targets) else { return Vec::new() };
    let mut lines = wrap(&title, style.columns(), "", "  ");
    lines.extend(table.lines(style.columns()));
    lines
}

/// A table of what was negotiated, with its title; a row that no target has is left out. `None` without any row.
pub(crate) fn table(targets: &[Totals<'_>]) -> Option<(String, Table)> {
    let mut differs = false;
    let mut rows = Vec::new();
    for (declared, label) in listed() {
        let cells: Vec<Option<String>> =
            targets.iter().map(|target| shown(declared, target.negotiated.as_ref()?)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let compared = |cell: &Option<String>| {
            cell.as_deref().map(|cell| match declared.compared {
                Compared::Whole => cell.to_owned(),
                Compared::WithoutPort => cell.rsplit_once(':').map_or(cell, |(host, _)| host).to_owned(),
                Compared::Never => String::new(),
            })
        };
        // Of a target that was never reached nothing is known, which is no difference.
        let mut known =
            cells.iter().zip(targets).filter(|(_, t)| t.negotiated.is_some()).map(|(cell, _)| compared(cell));
        let reference = known.next();
        let different = reference.is_some_and(|reference| known.any(|cell| cell != reference));
        differs |= different;
        let mark = if different { "≠" } else { " " };
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| UNKNOWN.to_owned())).collect();
        rows.push(Row::new(format!("{mark} {label}"), cells));
    }
    if rows.is_empty() {
        return None;
    }
    let title = targets.first().map_or("", |target| target.schema.facts_title);
    let title = if differs { format!("{title} (≠ marks what differs)") } else { title.to_owned() };
    let heads = targets.iter().map(|t| t.name.clone()).collect();
    Some((title, Table { corner: String::new(), heads, rows, align: Align::Left }))
}

/// Every fact that is known and that tables have a row for, with its label. The texts are safe to show.
pub(crate) fn rows(seen: &Facts) -> impl Iterator<Item = (&'static str, String)> {
    listed().filter_map(|(declared, label)| Some((label, shown(declared, seen)?)))
}

fn listed() -> impl Iterator<Item = (&'static Declaration, &'static str)> {
    Declaration::all().filter_map(|declared| Some((declared, declared.label?)))
}

fn shown(declared: &Declaration, seen: &Facts) -> Option<String> {
    Some(match seen.value(declared.name)? {
        Value::Number(number) if declared.unbounded == Some(*number) => "any number".to_owned(),
        Value::Number(number) => count(*number),
        value => clean(&value.to_string()),
    })
}
