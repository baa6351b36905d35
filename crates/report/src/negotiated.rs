//! What was agreed with each target, side by side, differences marked.

use crate::figures::{UNKNOWN, count};
use crate::style::Style;
use crate::table::{Align, Row, Table};
use crate::text::{clean, wrap};
use crate::totals::Totals;
use duel_model::{Compared, Declaration, Facts, Value};
use std::collections::BTreeSet;

/// Marks a row whose values differ.
const DIFFERS: &str = "≠";

/// Rows that are looked through one by one. Of more than these, what differs comes first, and text tells what is the same in a
/// paragraph: a database has forty settings, of which one matters.
pub(crate) const FEW_ROWS: usize = 20;

/// What was negotiated, as text.
pub(crate) fn side_by_side(targets: &[Totals<'_>], style: Style) -> Vec<String> {
    let Some((title, table)) = table(targets) else { return Vec::new() };
    [wrap(&title, style.columns(), "", "  "), laid_out(table, style)].concat()
}

fn laid_out(mut table: Table, style: Style) -> Vec<String> {
    let mut same = Vec::new();
    if table.rows.len() > FEW_ROWS {
        let is_same = |row: &Row| row.cells.windows(2).all(|pair| pair[0] == pair[1]);
        let (folded, kept) = table.rows.into_iter().partition(is_same);
        (table.rows, same) = (kept, folded);
    }
    let mut lines = if table.rows.is_empty() { Vec::new() } else { table.lines(style.columns()) };
    if !same.is_empty() {
        let first = if table.heads.len() > 1 { "  the same on all: " } else { "  " };
        lines.extend(in_a_paragraph(&same, first, style));
    }
    lines
}

/// The first values of rows, one behind the other.
pub(crate) fn in_a_paragraph(rows: &[Row], first: &str, style: Style) -> Vec<String> {
    let value = |row: &Row| format!("{} {}", row.label.trim(), row.cells.first().map_or("", String::as_str));
    let told: Vec<String> = rows.iter().map(value).collect();
    wrap(&told.join("; "), style.columns(), first, "  ")
}

/// A table of what was negotiated, with its title; a row that no target has is left out. `None` without any row.
pub(crate) fn table(targets: &[Totals<'_>]) -> Option<(String, Table)> {
    let mut differs = false;
    let mut rows = Vec::new();
    let seen: Vec<&Facts> = targets.iter().filter_map(|target| target.negotiated.as_ref()).collect();
    for (declared, name, label) in listed(&seen) {
        let cells: Vec<Option<String>> =
            targets.iter().map(|target| shown(declared, &name, target.negotiated.as_ref()?)).collect();
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
        let mark = if different { DIFFERS } else { " " };
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| UNKNOWN.to_owned())).collect();
        rows.push(Row::new(format!("{mark} {label}"), cells));
    }
    if rows.is_empty() {
        return None;
    }
    if rows.len() > FEW_ROWS {
        // A stable sort: within what differs, and within the rest, the order stays.
        rows.sort_by_key(|row: &Row| !row.label.starts_with(DIFFERS));
    }
    let title = targets.first().map_or("", |target| target.schema.facts_title);
    let title = if differs { format!("{title} (≠ marks what differs)") } else { title.to_owned() };
    let heads = targets.iter().map(|t| t.name.clone()).collect();
    Some((title, Table { corner: String::new(), heads, rows, align: Align::Left }))
}

/// Every fact that is known and that tables have a row for, with its label. The texts are safe to show.
pub(crate) fn rows(seen: &Facts) -> impl Iterator<Item = (String, String)> {
    listed(&[seen]).into_iter().filter_map(|(declared, name, label)| Some((label, shown(declared, &name, seen)?)))
}

/// Those of them that say something about a difference.
pub(crate) fn rows_to_compare(seen: &Facts) -> impl Iterator<Item = (String, String)> {
    let comparable = listed(&[seen]).into_iter().filter(|(declared, ..)| declared.compared != Compared::Never);
    comparable.filter_map(|(declared, name, label)| Some((label, shown(declared, &name, seen)?)))
}

/// What is declared of the facts that tables have a row for, each with its name and its label. One that is declared for any name
/// has a row for each that some target has, called by what it is about.
fn listed(seen: &[&Facts]) -> Vec<(&'static Declaration, String, String)> {
    let declared = Declaration::all().filter_map(|declared| Some((declared, declared.label?)));
    let rows = declared.flat_map(|(declared, label)| {
        let Some((begin, end)) = declared.name.split_once('*') else {
            return vec![(declared, declared.name.to_owned(), label.to_owned())];
        };
        let names: BTreeSet<&str> = seen.iter().flat_map(|facts| facts.0.keys()).map(String::as_str).collect();
        let about = names.into_iter().filter_map(|name| Some((name, name.strip_prefix(begin)?.strip_suffix(end)?)));
        about.map(|(name, about)| (declared, name.to_owned(), format!("{label}: {}", clean(about)))).collect()
    });
    rows.collect()
}

fn shown(declared: &Declaration, name: &str, seen: &Facts) -> Option<String> {
    Some(match seen.value(name)? {
        Value::Number(number) if declared.unbounded == Some(*number) => "any number".to_owned(),
        Value::Number(number) => count(*number),
        value => clean(&value.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: usize) -> String {
        let row =
            |n: usize| Row::new(format!("  setting{n}"), vec!["on".into(), if n == 3 { "off" } else { "on" }.into()]);
        let rows = (0..rows).map(row).collect();
        let heads = vec!["A".into(), "B".into()];
        laid_out(Table { corner: String::new(), heads, rows, align: Align::Left }, Style::default()).join("\n")
    }

    #[test]
    fn of_many_rows_only_those_that_differ_stand_alone() {
        let few = of(FEW_ROWS);
        assert_eq!(few.lines().count(), 1 + FEW_ROWS, "{few}");
        let many = of(FEW_ROWS + 1);
        let lines: Vec<&str> = many.lines().collect();
        assert!(lines[1].contains("setting3") && lines[1].contains("off"), "{many}");
        assert!(
            lines[2].starts_with("  the same on all: setting0 on; setting1 on; setting2 on; setting4 on;"),
            "{many}"
        );
        assert!(many.contains("setting20 on") && !many.contains("setting3 on"), "{many}");
    }
}
