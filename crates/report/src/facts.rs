//! What machines are, side by side.

use crate::style::Style;
use crate::summary::join;
use crate::table::{Align, Row, Table};
use crate::text::{clean, clean_whole, plural, wrap};
use duel_model::{Compared, Declaration, Facts, Known};
use std::collections::{BTreeMap, BTreeSet};

/// The facts of machines with their names: first those that differ, then, if `all` is asked for or there is only one
/// machine, those that are the same and those that differ whenever they are read; last what could not be read, and why.
pub fn facts(machines: &[(&str, &Facts)], all: bool, style: Style) -> String {
    let (width, names) = (style.columns(), machines.iter().map(|(name, _)| clean(name)).collect::<Vec<_>>());
    let mut sections = Vec::new();
    let table = |title: &str, rows: Vec<Row>, heads: &[String]| {
        let table = Table { corner: title.to_owned(), heads: heads.to_vec(), rows, align: Align::Left };
        table.lines(width)
    };
    if machines.len() == 1 {
        sections.push(table("", Sorted::of(machines).same, &names));
    } else {
        let Sorted { differing, same, moving } = Sorted::of(machines);
        let count = count(differing.len(), same.len(), moving.len(), all);
        if !differing.is_empty() {
            sections.push(table("differs", differing, &names));
        }
        sections.push(wrap(&count, width, "", ""));
        if all && !same.is_empty() {
            sections.push(table("the same", same, &["on all".to_owned()]));
        }
        if all && !moving.is_empty() {
            sections.push(table("differs by nature", moving, &names));
        }
    }
    sections.push(unavailable(machines, &names, width));
    join(sections, style)
}

/// Rows by what they tell.
#[derive(Default)]
pub(crate) struct Sorted {
    pub(crate) differing: Vec<Row>,
    /// With one cell: what is the same need not be told for each.
    pub(crate) same: Vec<Row>,
    /// Facts that differ between two readings of one machine.
    pub(crate) moving: Vec<Row>,
}

/// Facts that no machine told, and why; the texts are safe to show.
pub(crate) fn unread(machines: &[(&str, &Facts)]) -> Vec<(String, String)> {
    let keys: BTreeSet<&str> = machines.iter().flat_map(|(_, facts)| facts.0.keys().map(String::as_str)).collect();
    let why = |key: &str| {
        let mut whys = Vec::new();
        for known in machines.iter().filter_map(|(_, facts)| facts.0.get(key)) {
            match known {
                Known::Unavailable(why) => whys.push(clean(why)),
                _ => return None,
            }
        }
        Some((clean(key), whys.first()?.clone()))
    };
    keys.into_iter().filter_map(why).collect()
}

impl Sorted {
    pub(crate) fn of(machines: &[(&str, &Facts)]) -> Self {
        let mut sorted = Self::default();
        let keys: BTreeSet<&str> = machines.iter().flat_map(|(_, facts)| facts.0.keys().map(String::as_str)).collect();
        for key in keys {
            let known: Vec<Option<&Known>> = machines.iter().map(|(_, facts)| facts.0.get(key)).collect();
            // What nobody told is told at the end.
            if known.iter().flatten().all(|known| known.text().is_none()) {
                continue;
            }
            if known.windows(2).all(|pair| pair[0] == pair[1]) {
                sorted.same.push(Row::new(clean(key), vec![cell(known[0])]));
                continue;
            }
            let cells = apart(&known).unwrap_or_else(|| known.iter().map(|known| cell(*known)).collect());
            let rows = if moves(key) { &mut sorted.moving } else { &mut sorted.differing };
            rows.push(Row::new(clean(key), cells));
        }
        sorted
    }
}

/// Whether a fact is another one each time that it is read, or on each machine: it says nothing about a difference.
fn moves(key: &str) -> bool {
    Declaration::of(key).is_some_and(|declared| declared.compared == Compared::Never)
}

/// Long lists of words that have most of them in common, such as the flags of CPUs: only what is not common to all is
/// worth reading.
fn apart(known: &[Option<&Known>]) -> Option<Vec<String>> {
    /// Shorter lists are compared at a glance.
    const LONG: usize = 12;
    let lists: Vec<BTreeSet<&str>> =
        known.iter().map(|known| Some((*known)?.text()?.split(' ').collect())).collect::<Option<_>>()?;
    let (first, others) = lists.split_first()?;
    let shared: BTreeSet<&str> =
        first.iter().filter(|word| others.iter().all(|list| list.contains(*word))).copied().collect();
    if lists.iter().any(|list| list.len() < LONG || shared.len() * 2 < list.len()) {
        return None;
    }
    let cell = |list: &BTreeSet<&str>| {
        let own: Vec<String> = list.difference(&shared).map(|word| clean(word)).collect();
        let own = if own.is_empty() { "no other".to_owned() } else { own.join(" ") };
        format!("{} in common, and {own}", shared.len())
    };
    Some(lists.iter().map(cell).collect())
}

fn count(differing: usize, same: usize, moving: usize, all: bool) -> String {
    let verb = |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
    let mut text = format!(
        "{} {}, {same} {} the same",
        plural(differing as u64, "fact"),
        verb(differing, "differs", "differ"),
        verb(same, "is", "are")
    );
    if moving > 0 {
        text += &format!(", {moving} {} by nature", verb(moving, "differs", "differ"));
    }
    if !all && same + moving > 0 {
        text += " (--all shows them)";
    }
    text + "."
}

/// What could not be read, and why, on all machines or on some: keys with the same reason together.
fn unavailable(machines: &[(&str, &Facts)], names: &[String], width: usize) -> Vec<String> {
    let mut where_and_why: BTreeMap<&str, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (index, (_, facts)) in machines.iter().enumerate() {
        for (key, known) in &facts.0 {
            if let Known::Unavailable(why) = known {
                where_and_why.entry(why).or_default().entry(key).or_default().push(index);
            }
        }
    }
    let mut lines: Vec<(Vec<usize>, Vec<String>, String)> = Vec::new();
    for (why, keys) in where_and_why {
        let mut together: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        for (key, on) in keys {
            together.entry(on).or_default().push(clean(key));
        }
        lines.extend(together.into_iter().map(|(on, keys)| (on, keys, clean_whole(why))));
    }
    // What holds for all first, then by name.
    lines.sort_by(|(a, a_keys, _), (b, b_keys, _)| (b.len(), a, a_keys).cmp(&(a.len(), b, b_keys)));
    let told = lines.into_iter().flat_map(|(on, keys, why)| {
        let on = if on.len() == machines.len() {
            String::new()
        } else {
            format!("on {}: ", on.iter().map(|&index| names[index].as_str()).collect::<Vec<_>>().join(", "))
        };
        wrap(&format!("{on}{}: {why}", keys.join(", ")), width, "  ", "    ")
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { told } else { [vec!["Not available:".to_owned()], told].concat() }
}

fn cell(known: Option<&Known>) -> String {
    match known {
        Some(Known::Value(value)) => clean_whole(&value.to_string()),
        Some(Known::Unavailable(_)) => "not available".to_owned(),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(facts: &[(&str, Result<&str, &str>)]) -> Facts {
        let known = |fact: &Result<&str, &str>| match fact {
            Ok(value) => Known::from((*value).to_owned()),
            Err(why) => Known::Unavailable((*why).to_owned()),
        };
        Facts(facts.iter().map(|(key, fact)| ((*key).to_owned(), known(fact))).collect())
    }

    #[test]
    fn differences_come_first_and_what_was_not_read_last() {
        let a = machine(&[("cpu.model", Ok("X")), ("os.kernel", Ok("6.1")), ("cpu.mhz", Err("not told"))]);
        let b = machine(&[("cpu.model", Ok("Y\x1b[31m")), ("os.kernel", Ok("6.1")), ("cpu.mhz", Err("not told"))]);
        let style = Style::default();
        let text = facts(&[("a", &a), ("b", &b)], false, style);
        assert!(!text.contains('\x1b') && !text.contains("6.1"), "{text}");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(place("cpu.model") < place("1 fact differs, 1 is the same"), "{text}");
        assert!(place("1 fact differs") < place("cpu.mhz: not told"), "{text}");
        assert!(facts(&[("a", &a), ("b", &b)], true, style).contains("6.1"));
        let alone = facts(&[("a", &a)], false, style);
        assert!(alone.contains("cpu.model  X") && !alone.contains("differ"), "{alone}");
    }

    #[test]
    fn what_moves_by_nature_is_no_difference() {
        let (a, b) = (machine(&[("os.uptime_s", Ok("1"))]), machine(&[("os.uptime_s", Ok("2"))]));
        let text = facts(&[("a", &a), ("b", &b)], false, Style::default());
        assert_eq!(text, "0 facts differ, 0 are the same, 1 differs by nature (--all shows them).\n");
        let text = facts(&[("a", &a), ("b", &b)], true, Style::default());
        assert!(text.contains("differs by nature") && text.contains("os.uptime_s"), "{text}");
    }

    #[test]
    fn of_long_lists_only_what_is_not_common_is_told() {
        let flags: String = (0..100).map(|n| format!("flag{n} ")).collect();
        let (a, b) = (format!("{flags}aes"), format!("{flags}avx512f vnni"));
        let (a, b) = (machine(&[("cpu.flags", Ok(&a))]), machine(&[("cpu.flags", Ok(&b))]));
        let text = facts(&[("a", &a), ("b", &b)], false, Style::default());
        assert!(
            text.contains("in common, and aes") && text.contains("avx512f vnni") && !text.contains("flag7"),
            "{text}"
        );
        // Lists that are about other things are told whole.
        let c = machine(&[("cpu.flags", Ok("one two"))]);
        assert!(facts(&[("a", &a), ("c", &c)], false, Style::default()).contains("one two"));
    }

    #[test]
    fn reasons_are_told_once_and_by_machine() {
        let a = machine(&[("x", Ok("1")), ("y", Err("no tool")), ("z", Err("no tool"))]);
        let b = machine(&[("x", Err("not permitted")), ("y", Err("no tool")), ("z", Err("no tool"))]);
        let text = facts(&[("a", &a), ("b", &b)], false, Style::default());
        let end = "Not available:\n  y, z: no tool\n  on b: x: not permitted\n";
        assert!(text.ends_with(end) && text.contains("not available"), "{text}");
    }
}
