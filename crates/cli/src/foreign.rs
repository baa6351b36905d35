//! Runs out of somebody else's archive: whatever their numbers are, they are refused, or judged and shown.

use crate::command_line::tests::plan_of;
use crate::terminal;
use duel_archive::Archive;
use duel_lab::{Lab, Watcher};
use duel_model::Run;
use duel_report::{Again, Format};
use serde_json::Value;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

struct Nobody;

impl Watcher for Nobody {}

/// Runs of several kinds, as they are measured.
fn runs() -> Vec<Run> {
    let ruler = duel_ruler::Ruler::start(duel_ruler::Config::default()).unwrap();
    let (a, b) = (ruler.url("/size/10"), ruler.url("/delay/300"));
    let lab = Lab::new(Arc::default());
    [
        &[&a, &b, "-d", "600ms", "-c", "2", "-t", "1", "--slot", "20ms", "--no-early-stop"][..],
        &["run", &a, "--stages", "100ms@50,100ms@100", "-c", "2", "-t", "1"],
    ]
    .into_iter()
    .map(|words| lab.run(&plan_of(["duel"].into_iter().chain(words.iter().copied())), &mut Nobody).unwrap())
    .collect()
}

/// Everything that is done with a run that was read.
fn look_at(run: &Run) {
    let verdict = duel_lab::judge(run);
    let style = terminal::result_style();
    duel_report::summary(run, &verdict, Again::Shown, style);
    duel_report::json_text(run, &verdict, run.explanation.as_ref());
    duel_report::page(run, &verdict, &[]);
    duel_report::diff((run, &verdict), (run, &verdict), style);
    for format in Format::ALL {
        let _ = duel_report::export(run, &verdict, *format, None);
    }
}

/// The places of all numbers, of lists those of the first entry.
fn places(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Number(_) => drop(found.insert(at.to_owned())),
        Value::Array(list) => {
            list.iter().enumerate().take(1).for_each(|(index, value)| places(value, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

const STRANGE: [u64; 3] = [u64::MAX, (1 << 56) - 1, 0];

#[test]
fn no_number_in_an_archive_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let (mut tried, mut read) = (0, 0);
    for run in runs() {
        Archive::open(&path).unwrap().save(&run).unwrap();
        let database = rusqlite::Connection::open(&path).unwrap();
        let mut check = |what: &str| {
            tried += 1;
            let loaded = Archive::open_read_only(&path).unwrap().load(&run.id);
            let Ok(loaded) = loaded else { return };
            read += 1;
            catch_unwind(AssertUnwindSafe(|| look_at(&loaded))).unwrap_or_else(|_| panic!("{what}"));
        };
        check("as it was");
        let slot = run.slots.last().unwrap();
        let whole = serde_json::to_value(slot).unwrap();
        let store_slot = |value: &Value| {
            let text = value.to_string();
            let sql = "UPDATE slots SET json_bytes = ?1, data = ?2 WHERE run_id = ?3 AND idx = ?4";
            let row = rusqlite::params![text.len() as i64, text.as_bytes(), run.id, slot.index];
            assert_eq!(database.execute(sql, row).unwrap(), 1);
        };
        let mut found = BTreeSet::new();
        places(&whole, "", &mut found);
        for place in found {
            for number in STRANGE {
                let mut changed = whole.clone();
                *changed.pointer_mut(&place).unwrap() = number.into();
                store_slot(&changed);
                check(&format!("slot{place} = {number}"));
            }
        }
        store_slot(&whole);
        let whole = serde_json::to_value(&run.plan).unwrap();
        let store_plan = |value: &Value| {
            let sql = "UPDATE runs SET plan = ?1 WHERE id = ?2";
            assert_eq!(database.execute(sql, [value.to_string(), run.id.clone()]).unwrap(), 1);
        };
        let mut found = BTreeSet::new();
        places(&whole, "", &mut found);
        for place in found {
            for number in STRANGE {
                let mut changed = whole.clone();
                *changed.pointer_mut(&place).unwrap() = number.into();
                store_plan(&changed);
                check(&format!("plan{place} = {number}"));
            }
        }
        store_plan(&whole);
        check("as it was again");
    }
    assert!(tried > 300 && read > 100, "{tried} tried, {read} could be read");
}
