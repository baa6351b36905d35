//! What machines are, side by side.

use crate::style::Style;
use crate::summary::join;
use crate::table::{Align, Row, Table};
use crate::text::{clean, wrap};
use duel_model::{HostFacts, Known};
use std::collections::BTreeSet;

/// The facts of machines with their names: first those that differ, then, if `all` is asked for or there is only one
/// machine, those that are the same; last what could not be read, and why.
pub fn facts(machines: &[(&str, &HostFacts)], all: bool, style: Style) -> String {
    let Sorted { differing, mut same, unread } = sorted(machines);
    let heads: Vec<String> = machines.iter().map(|(name, _)| clean(name)).collect();
    let table = |title: &str, rows: Vec<Row>, heads: Vec<String>| {
        let table = Table { corner: title.to_owned(), heads, rows, align: Align::Left };
        table.lines(style.columns())
    };
    let mut sections = Vec::new();
    let (differ, agree) = (differing.len(), same.len());
    if machines.len() > 1 {
        if differ > 0 {
            sections.push(table("differs", differing, heads.clone()));
        }
        let rest = if all { "" } else { " (--all shows them)" };
        let text = format!("{differ} facts differ, {agree} are the same{rest}.");
        sections.push(wrap(&text, style.columns(), "", ""));
        if all {
            // What is the same need not be told for each.
            same.iter_mut().for_each(|row| row.cells.truncate(1));
            sections.push(table("the same", same, vec!["on all".to_owned()]));
        }
    } else {
        same.extend(differing);
        sections.push(table("", same, heads));
    }
    if !unread.is_empty() {
        let mut lines = vec!["Not available here:".to_owned()];
        for (key, why) in &unread {
            lines.extend(wrap(&format!("{key}: {why}"), style.columns(), "  ", "    "));
        }
        sections.push(lines);
    }
    join(sections, style)
}

/// Facts by what they say about machines side by side; the texts are safe to show.
pub(crate) struct Sorted {
    /// Those that are not the same on all machines.
    pub(crate) differing: Vec<Row>,
    /// Those that are; of a single machine, all.
    pub(crate) same: Vec<Row>,
    /// Those that could be read nowhere, and why.
    pub(crate) unread: Vec<(String, String)>,
}

/// Sorts the facts of machines.
pub(crate) fn sorted(machines: &[(&str, &HostFacts)]) -> Sorted {
    let keys: BTreeSet<&str> = machines.iter().flat_map(|(_, facts)| facts.0.keys().map(String::as_str)).collect();
    let mut sorted = Sorted { differing: Vec::new(), same: Vec::new(), unread: Vec::new() };
    for key in keys {
        let known: Vec<Option<&Known>> = machines.iter().map(|(_, facts)| facts.0.get(key)).collect();
        if known.iter().flatten().any(|known| known.value().is_some()) {
            let row = Row::new(clean(key), known.iter().map(|known| cell(*known)).collect());
            let is_same = known.windows(2).all(|pair| pair[0] == pair[1]);
            if is_same { sorted.same.push(row) } else { sorted.differing.push(row) }
        } else if let Some(Known::Unavailable(why)) = known.iter().flatten().next() {
            sorted.unread.push((clean(key), clean(why)));
        }
    }
    sorted
}

fn cell(known: Option<&Known>) -> String {
    match known {
        Some(Known::Value(value)) => clean(value),
        Some(Known::Unavailable(_)) => "not available".to_owned(),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(facts: &[(&str, Result<&str, &str>)]) -> HostFacts {
        let known = |fact: &Result<&str, &str>| match fact {
            Ok(value) => Known::Value((*value).to_owned()),
            Err(why) => Known::Unavailable((*why).to_owned()),
        };
        HostFacts(facts.iter().map(|(key, fact)| ((*key).to_owned(), known(fact))).collect())
    }

    #[test]
    fn differences_come_first_and_what_was_not_read_last() {
        let a = machine(&[("cpu.model", Ok("X")), ("os.kernel", Ok("6.1")), ("cpu.mhz", Err("not told"))]);
        let b = machine(&[("cpu.model", Ok("Y\x1b[31m")), ("os.kernel", Ok("6.1")), ("cpu.mhz", Err("not told"))]);
        let style = Style::default();
        let text = facts(&[("a", &a), ("b", &b)], false, style);
        assert!(!text.contains('\x1b') && !text.contains("6.1"), "{text}");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(place("cpu.model") < place("1 facts differ, 1 are the same"), "{text}");
        assert!(place("1 facts differ") < place("cpu.mhz: not told"), "{text}");
        assert!(facts(&[("a", &a), ("b", &b)], true, style).contains("6.1"));
        let alone = facts(&[("a", &a)], false, style);
        assert!(alone.contains("cpu.model  X") && !alone.contains("differ"), "{alone}");
    }
}
