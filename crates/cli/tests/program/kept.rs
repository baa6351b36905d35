//! What earlier versions kept opens, shows and is judged as they did it themselves.
//!
//! `archives/schema-N.archive` was written by a duel of that schema, and the files beside it are what that duel printed of
//! it: none of them is ever written anew, and what is told otherwise today is changed in them by hand. Of a comparison that
//! was explained the slots of warm-up and probes were taken out.

use crate::common::Place;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A comparison over TLS with what diagnosis made of it, and a run that a redirect answered.
const RUNS: [&str; 2] = ["20261123-213512-3fc56", "20261123-213518-5e3f3"];

#[test]
fn an_archive_from_before_facts_had_names_is_shown_as_it_was() {
    let place = Place::new();
    std::fs::copy(kept("schema-6.archive"), place.archive()).unwrap();
    for _ in 0..2 {
        for run in RUNS {
            let shown = place.duel(["show", run]).ended(0).stdout;
            assert_eq!(shown, std::fs::read_to_string(kept(&format!("{run}.txt"))).unwrap());
            let then = std::fs::read_to_string(kept(&format!("{run}.json"))).unwrap();
            let then: Value = serde_json::from_str(&then).unwrap();
            holds(&place.json(["show", run]), &then, run);
        }
        // The second time it is of today's schema.
        place.duel(["run", "null:", "-n", "1", "-q"]).ended(0);
    }
    let diff = place.duel(["diff", RUNS[0], RUNS[0]]).ended(0).stdout;
    assert!(diff.contains("Negotiated with bad: the same"), "{diff}");
}

/// Whether a document has all that an earlier one had, as it had it. Members may have been added: `duel/1` promises no more.
fn holds(now: &Value, then: &Value, place: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (name, then) in then {
                let now = now.get(name).unwrap_or_else(|| panic!("{place} has lost {name}"));
                holds(now, then, &format!("{place}.{name}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{place}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                holds(now, then, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{place}"),
    }
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives").join(name)
}
