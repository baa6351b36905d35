//! The tables of causes in README.md and method/diagnosis.md: made from the catalogue, and held against it.

use super::{all, catalogue, is_proven, names};
use crate::cause::CauseEntry;
use std::{env, fs};

/// Each document with the table that stands in it behind this mark, up to [`END`].
const TABLES: [(&str, &str, Make); 3] = [
    ("README.md", "<!-- the causes, from crates/diagnose -->", what_they_are),
    ("README.md", "<!-- the causes of crypto libraries, from crates/diagnose -->", of_crypto_libraries),
    ("method/diagnosis.md", "<!-- the causes, from crates/diagnose -->", what_shows_them),
];

/// Makes a table.
type Make = fn() -> String;

const END: &str = "<!-- end -->";

/// `UPDATE=1` writes them anew.
#[test]
fn documents_tell_of_the_causes_that_there_are() {
    for (document, mark, table) in TABLES {
        let path = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) =
            text.split_once(&format!("{mark}\n")).unwrap_or_else(|| panic!("{document} has no {mark}"));
        let (table_there, after) = rest.split_once(END).unwrap_or_else(|| panic!("{document}: {mark} has no {END}"));
        let table = table();
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, format!("{before}{mark}\n{table}{END}{after}")).unwrap();
        } else {
            assert_eq!(table_there, table, "{document}: UPDATE=1 writes it anew");
        }
    }
}

fn what_they_are() -> String {
    let rows = catalogue().into_iter().map(|entry| {
        let mut text = entry.description.to_owned();
        let kinds = kinds_with(entry.id);
        let mut notes = Vec::new();
        match kinds.iter().map(|kind| work(&[kind])).collect::<Option<Vec<_>>>().as_deref() {
            Some([]) | None => {}
            Some([work]) => notes.push(format!("{work} only")),
            Some(works) => notes.push(works.join(" and ")),
        }
        let of_id = || all().filter(|cause| cause.entry.id == entry.id);
        let unproven = of_id().filter(|cause| !is_proven(cause.to_be_proven()));
        match unproven.flat_map(|cause| cause.kinds).map(|kind| work(&[kind]).unwrap_or("web servers")).next() {
            None if is_proven(entry.id) => {}
            Some(work) if of_id().any(|cause| is_proven(cause.to_be_proven())) => {
                notes.push(format!("of {work} suspicion only"));
            }
            _ => notes.push("suspicion only".to_owned()),
        }
        if !notes.is_empty() {
            text.push_str(&format!(" ({})", notes.join("; ")));
        }
        if is_beside(entry) {
            text.push_str("; told beside the verdict, since it happens before measuring");
        }
        if entry.needs_machine {
            text.push_str(" *");
        }
        if of_crypto().any(|other| other.id == entry.id && other.at_most != "never") {
            text.push_str(" \u{2020}");
        }
        vec![format!("`{}`", entry.id), text]
    });
    table(["cause", "what it is"], rows)
}

fn of_crypto_libraries() -> String {
    let rows = of_crypto().map(|entry| vec![format!("`{}`", entry.id), entry.signature.to_owned()]);
    table(["cause", "what shows it"], rows)
}

fn what_shows_them() -> String {
    let of_gaps = all().map(|cause| (cause.entry, work(cause.kinds)));
    let others = catalogue().into_iter().filter(|entry| kinds_with(entry.id).is_empty()).map(|entry| (entry, None));
    let rows = of_gaps.chain(others).map(|(entry, work)| {
        let of_work = work.map_or_else(String::new, |work| format!(" of {work}"));
        let beside = if is_beside(entry) { "; beside the gap" } else { "" };
        vec![format!("`{}`{of_work}", entry.id), format!("{}{beside}", entry.signature), entry.at_most.to_owned()]
    });
    table(["cause", "signature", "at most"], rows)
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: String = rows.map(|cells| format!("| {} |\n", cells.join(" | "))).collect();
    format!("\n| {} |\n{}|\n{rows}\n", head.join(" | "), "|---".repeat(N))
}

fn of_crypto() -> impl Iterator<Item = &'static CauseEntry> {
    all().filter(|cause| cause.kinds.contains(&"crypto")).map(|cause| cause.entry)
}

fn is_beside(entry: &CauseEntry) -> bool {
    names::BESIDE.contains(&entry)
}

/// The kinds of work that have a cause with this id.
fn kinds_with(id: &str) -> Vec<&'static str> {
    all().filter(|cause| cause.entry.id == id).flat_map(|cause| cause.kinds).copied().collect()
}

/// What work of these kinds is done with, where that is not web servers.
fn work(kinds: &[&str]) -> Option<&'static str> {
    match kinds {
        ["crypto"] => Some("crypto libraries"),
        ["disk"] => Some("disks"),
        ["net"] => Some("networks"),
        ["sql"] => Some("databases"),
        _ => None,
    }
}
