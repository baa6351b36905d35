//! What draws of disks are.

use super::*;
use crate::random::{Draw, Sort, catalogue, causes, draw};
use std::collections::{BTreeMap, BTreeSet};

fn all_installed() -> Installed {
    Installed::of(["bindfs", "btrfs", "ext4", "xfs"].map(str::to_owned).to_vec())
}

fn draws(count: u32) -> Vec<Draw> {
    (1..=count).map(|number| draw::<Disk>(7, number, &all_installed()).unwrap()).collect()
}

#[test]
fn each_dimension_is_reached() {
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for drawn in draws(1500) {
        let pair = drawn.case.trial.pair::<Disk>().unwrap();
        let (twin, load) = (&pair.healthy, &pair.load);
        let mut saw = |what, value: String| seen.entry(what).or_default().insert(value);
        saw("sort", drawn.sort.name().to_owned());
        saw("file system", twin.volume.file_system.to_owned());
        saw("op", load.op.to_owned());
        saw("block", load.block_bytes.to_string());
        saw("memory", load.memory_mib.is_some().to_string());
        saw("backing", format!("{:?}", twin.volume.backing));
        for word in load.words.iter().filter(|word| word.starts_with('-')) {
            saw("word", (*word).to_owned());
        }
        drawn.case.truth.iter().for_each(|cause| _ = saw("cause", (*cause).to_owned()));
        if drawn.sort == Sort::Decoy {
            saw("decoy", drawn.case.strength.replace(|c: char| c.is_ascii_digit(), ""));
        }
    }
    let count = |what: &str| seen[what].len();
    assert_eq!((count("sort"), count("file system"), count("op"), count("memory")), (Sort::ALL.len() - 1, 3, 5, 2));
    assert_eq!((count("block"), count("backing")), (7, 2));
    assert_eq!(count("word"), 6, "{:?}", seen["word"]);
    assert_eq!(count("decoy"), Disk::DECOYS.len(), "{:?}", seen["decoy"]);
    assert_eq!(seen["cause"], causes::<Disk>(|_| true));
}

#[test]
fn twins_differ_where_they_should() {
    for drawn in draws(600) {
        drawn.differs_where_it_should();
    }
}

#[test]
fn only_what_is_installed_is_drawn() {
    for file_system in ["btrfs", "ext4", "xfs"] {
        let installed = Installed::of(vec![file_system.to_owned()]);
        for number in 1..=150 {
            let drawn = draw::<Disk>(7, number, &installed).unwrap();
            assert_eq!(drawn.case.trial.pair::<Disk>().unwrap().healthy.volume.file_system, file_system);
            assert_ne!(drawn.sort, Sort::Outside, "bindfs is not there");
        }
    }
    assert!(draw::<Disk>(7, 1, &Installed::of(vec!["bindfs".to_owned()])).is_err());
}

#[test]
fn what_duel_may_name_of_disks_is_drawn() {
    let drawn: BTreeSet<&str> = catalogue::<Disk>().map(|fault| fault.injection.cause).collect();
    for cause in duel_diagnose::catalogue_of("disk").iter().map(|entry| entry.id) {
        assert_ne!(drawn.contains(cause), duel_diagnose::unproven().contains(&cause), "{cause}");
    }
}
