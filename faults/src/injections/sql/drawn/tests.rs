//! What draws of databases are.

use super::*;
use crate::random::{Draw, Sort, catalogue, causes, draw};
use std::collections::{BTreeMap, BTreeSet};

fn both_installed() -> Installed {
    Installed::of(["postgres", "mariadb"].map(str::to_owned).to_vec())
}

fn draws(count: u32) -> Vec<Draw> {
    (1..=count).map(|number| draw::<Sql>(7, number, &both_installed()).unwrap()).collect()
}

#[test]
fn each_dimension_is_reached() {
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for drawn in draws(1500) {
        let pair = drawn.case.trial.pair::<Sql>().unwrap();
        let (twin, load) = (&pair.healthy, &pair.load);
        let mut saw = |what, value: String| seen.entry(what).or_default().insert(value);
        saw("sort", drawn.sort.name().to_owned());
        saw("system", twin.system.name().to_owned());
        saw("op", load.op.to_owned());
        saw("keys", load.keys.to_owned());
        saw("anew", load.reconnects.to_string());
        drawn.case.truth.iter().for_each(|cause| _ = saw("cause", (*cause).to_owned()));
        let word = drawn.case.strength.replace(|c: char| c.is_ascii_digit(), "");
        match drawn.sort {
            Sort::Outside => _ = saw("outside", word),
            Sort::Decoy => _ = saw("decoy", word),
            Sort::Catalogue | Sort::Double | Sort::Equals => {}
        }
    }
    let count = |what: &str| seen[what].len();
    assert_eq!((count("sort"), count("system"), count("keys"), count("anew")), (Sort::ALL.len() - 1, 2, 5, 2));
    assert_eq!(count("op"), 9, "{:?}", seen["op"]);
    assert_eq!(count("outside"), Sql::OUTSIDE.len(), "{:?}", seen["outside"]);
    assert_eq!(count("decoy"), Sql::DECOYS.len(), "{:?}", seen["decoy"]);
    assert_eq!(seen["cause"], causes::<Sql>(|_| true));
}

#[test]
fn twins_differ_where_they_should() {
    for drawn in draws(600) {
        drawn.differs_where_it_should();
        let pair = drawn.case.trial.pair::<Sql>().unwrap();
        for twin in [&pair.healthy, &pair.faulty] {
            // PostgreSQL takes names with underscores, MariaDB's options have dashes.
            let foreign = if twin.system == POSTGRES { '-' } else { '_' };
            assert!(
                twin.settings.iter().all(|(name, _)| !name.contains(foreign)),
                "{}: {:?}",
                drawn.case.id,
                twin.settings
            );
        }
    }
}

#[test]
fn only_what_is_installed_is_drawn() {
    let of = |name: &str| Installed::of(vec![name.to_owned()]);
    for system in [POSTGRES, MARIADB] {
        for number in 1..=150 {
            let drawn = draw::<Sql>(7, number, &of(system.name())).unwrap();
            assert_eq!(drawn.case.trial.pair::<Sql>().unwrap().healthy.system, system);
        }
    }
    assert!(draw::<Sql>(7, 1, &Installed::of(Vec::new())).is_err());
}

#[test]
fn what_duel_may_name_of_databases_is_drawn() {
    /// Those that are not, and why.
    const NOT_DRAWN: [(&str, &str); 2] = [
        ("disk.slow-reads", "no hand-made case of databases injects it"),
        ("disk.split-reads", "no hand-made case injects it"),
    ];
    let drawn: BTreeSet<&str> = catalogue::<Sql>().map(|fault| fault.injection.cause).collect();
    for cause in duel_diagnose::catalogue_of("sql").iter().map(|entry| entry.id) {
        let excused = NOT_DRAWN.iter().any(|(not, _)| *not == cause) || duel_diagnose::unproven().contains(&cause);
        assert_ne!(drawn.contains(cause), excused, "{cause}");
    }
}
