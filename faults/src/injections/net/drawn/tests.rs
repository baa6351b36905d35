//! What draws of paths are.

use super::*;
use crate::random::{Draw, Sort, catalogue, causes, draw};
use std::collections::{BTreeMap, BTreeSet};

fn draws(count: u32) -> Vec<Draw> {
    let installed = Installed::of(["bbr", "cubic", "reno"].map(str::to_owned).to_vec());
    (1..=count).map(|number| draw::<Net>(7, number, &installed).unwrap()).collect()
}

#[test]
fn each_dimension_is_reached() {
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for drawn in draws(1500) {
        let twin = &drawn.case.trial.pair::<Net>().unwrap().healthy;
        let mut saw = |what, value: String| seen.entry(what).or_default().insert(value);
        saw("sort", drawn.sort.name().to_owned());
        saw("op", format!("{:?}", twin.op).split(' ').next().unwrap_or_default().to_owned());
        saw("near", (twin.network.path == Path::Veth).to_string());
        if let Path::Relay { to_client, .. } = twin.network.path {
            saw("line", to_client.bytes_per_s.is_some().to_string());
        }
        drawn.case.truth.iter().for_each(|cause| _ = saw("cause", (*cause).to_owned()));
        let word = drawn.case.strength.trim_matches(|c: char| c.is_ascii_digit()).split('-').next().unwrap_or_default();
        match drawn.sort {
            Sort::Outside => _ = saw("outside", drawn.case.strength.replace(|c: char| c.is_ascii_digit(), "")),
            Sort::Decoy => _ = saw("decoy", word.replace(|c: char| c.is_ascii_digit(), "")),
            Sort::Catalogue | Sort::Double | Sort::Equals => {}
        }
    }
    let count = |what: &str| seen[what].len();
    assert_eq!((count("sort"), count("op"), count("near"), count("line")), (Sort::ALL.len() - 1, 5, 2, 2));
    assert_eq!(count("outside"), Net::OUTSIDE.len(), "{:?}", seen["outside"]);
    assert!(count("decoy") >= Net::DECOYS.len(), "{:?}", seen["decoy"]);
    assert_eq!(seen["cause"], causes::<Net>(|_| true));
}

#[test]
fn twins_differ_where_they_should() {
    for drawn in draws(600) {
        drawn.differs_where_it_should();
    }
}

#[test]
fn what_the_kernel_does_not_offer_is_not_drawn() {
    for number in 1..=300 {
        let drawn = draw::<Net>(7, number, &Installed::of(Vec::new())).unwrap();
        assert!(!drawn.case.truth.contains(&"net.congestion-control"));
    }
}

#[test]
fn what_duel_may_name_of_paths_is_drawn() {
    let drawn: BTreeSet<&str> = catalogue::<Net>().map(|fault| fault.injection.cause).collect();
    let known: BTreeSet<&str> = duel_diagnose::catalogue_of("net").iter().map(|entry| entry.id).collect();
    assert_eq!(drawn, known);
}
