//! Flips that are made once more, since their first interval was too wide to tell.

use crate::world::{Server, World, named, world};
use duel_model::{Explanation, SECOND_NS};

/// B closes the connections that A keeps, and the flip that tells scatters by so much.
fn closing(noise: f64) -> World {
    let base = World { body: 2e3, ..world(&[Server::default(), Server { keeps: false, ..Server::default() }]) };
    let disturbed = World { noise, ..base.clone() };
    World { elsewhere: vec![("all-close".to_owned(), disturbed)], ..base }
}

fn probes(explanation: &Explanation) -> Vec<&str> {
    explanation.probes.iter().map(|outcome| outcome.probe.id.as_str()).collect()
}

fn longer(explanation: &Explanation) -> Option<usize> {
    probes(explanation).iter().position(|id| id.contains("-longer"))
}

fn under_seeds(world: World) -> Vec<Explanation> {
    let seeds = (1..=40).map(|seed| World { seed, ..world.clone() });
    seeds.flat_map(|world| [world.explain(), world.swapped().explain()]).collect()
}

#[test]
fn a_longer_look_finds_what_a_short_one_left_open_and_takes_its_time() {
    let explanations = under_seeds(closing(0.25));
    let (mut asked, mut found) = (0, 0);
    for explanation in &explanations {
        let slow = named(explanation)[0].1.unwrap();
        assert!(["http.no-keepalive", "unknown"].contains(&named(explanation)[0].0), "{:?}", named(explanation));
        assert!(!explanation.ruled_out.iter().any(|cause| cause == "http.no-keepalive"));
        let Some(at) = longer(explanation) else { continue };
        asked += 1;
        let [first, again] = ["all-close", "all-close-longer"]
            .map(|id| &explanation.probes.iter().find(|outcome| outcome.probe.id == id).unwrap().probe);
        assert!(again.takes_all && !first.takes_all && again.budget_ns == duel_diagnose::LONGER * first.budget_ns);
        // What comes behind it is held against what it has shown.
        assert!(probes(explanation)[at + 1..].iter().all(|id| id.starts_with("again")), "{:?}", probes(explanation));
        found += usize::from(named(explanation)[0] == ("http.no-keepalive", Some(slow)));
    }
    assert!(asked >= 10 && 2 * found >= asked, "{found} of {asked}");
}

#[test]
fn it_is_not_asked_for_where_the_first_one_tells_or_there_is_no_time() {
    assert!(under_seeds(closing(0.005)).iter().all(|explanation| longer(explanation).is_none()));
    let hurried = World { budget_ns: 20 * SECOND_NS, ..closing(0.25) };
    assert!(under_seeds(hurried).iter().all(|explanation| longer(explanation).is_none()));
}

/// All flips are held against the reference: where that is the wide one, it is looked at once more.
#[test]
fn the_reference_is_looked_at_once_more_where_it_is_what_leaves_a_flip_open() {
    let mut base = World { body: 2e3, ..world(&[Server::default(), Server { keeps: false, ..Server::default() }]) };
    base.plan.load.connections = 4;
    let world = World { elsewhere: vec![("alone".to_owned(), World { noise: 0.35, ..base.clone() })], ..base };
    let (mut asked, mut found) = (0, 0);
    for explanation in under_seeds(world) {
        assert!(!explanation.ruled_out.iter().any(|cause| cause == "http.no-keepalive"));
        let probes = probes(&explanation);
        if !probes.contains(&"alone-longer") {
            continue;
        }
        assert!(!probes.contains(&"all-close-longer"), "{probes:?}");
        asked += 1;
        found += usize::from(named(&explanation)[0].0 == "http.no-keepalive");
    }
    assert!(asked >= 10 && 2 * found >= asked, "{found} of {asked}");
}
