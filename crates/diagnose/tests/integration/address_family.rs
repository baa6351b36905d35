//! `net.address-family` in simulated worlds, beside what looks like it.

use crate::world::network::{Net, Stall, near};
use crate::world::{Server, World, named, world};
use duel_model::web::phase;
use duel_model::{Confidence, SECOND_NS};

/// A server whose name has addresses of both families, of which the one that is used leads the way of `used`.
fn by(used: Server, other: Server) -> Server {
    Server { other_way: Some(Box::new(other)), ..used }
}

fn pair(fast: Server, slow: Server, body: f64, connections: u32, keepalive: bool) -> World {
    let mut world = World { body, ..world(&[fast, slow]) };
    world.plan.load.connections = connections;
    world.http().keepalive = keepalive;
    // Where they have one address only.
    world.peers = ["192.0.2.1:80", "192.0.2.2:80"].map(|peer| Some(peer.to_owned())).to_vec();
    world
}

/// Ways that differ from the one of [`near`].
fn slow_ways() -> [(&'static str, Server); 4] {
    let usual = near();
    let capped = Net { total_cap: Some(20e6), ..usual.net.clone() };
    let lossy = Net { stalls: vec![Stall::of(phase::WAIT, 0.02, 210e6)], ..usual.net.clone() };
    [
        ("longer", Server { round_trip: 8e6, ..usual.clone() }),
        ("capped", Server { net: capped, ..usual.clone() }),
        ("lossy", Server { net: lossy, ..usual.clone() }),
        ("tunnelled", Server { round_trip: 3e6, delay: 0.5e6, ..usual }),
    ]
}

#[test]
fn the_way_of_one_family_is_named_whatever_makes_it_slow() {
    for (name, way) in slow_ways() {
        for (body, connections, keepalive) in [(40e3, 4, true), (40e3, 16, true), (12e3, 8, false)] {
            if name == "capped" && body < 40e3 {
                continue;
            }
            let slow = by(way.clone(), near());
            for fast in [near(), by(near(), near())] {
                pair(fast, slow.clone(), body, connections, keepalive).both_ways(|explanation, slow| {
                    let first = &explanation.findings[0];
                    assert_eq!(
                        (&*first.cause, first.target.as_deref(), first.confidence),
                        ("net.address-family", Some(slow), Confidence::Confirmed),
                        "{name} {body} {connections}: {explanation:#?}"
                    );
                    assert!(first.explains.unwrap() >= 0.8, "{name}: {explanation:#?}");
                });
            }
        }
    }
}

/// What is slow by both families is no family's, and a flip has shown it.
#[test]
fn a_server_that_is_slow_by_both_ways_is_slow_for_another_reason() {
    let busy = Server { cpu: 3.0, ..near() };
    let far = Server { round_trip: 8e6, ..near() };
    for slow in [busy, far] {
        pair(near(), by(slow.clone(), slow), 12e3, 8, true).both_ways(|explanation, _| {
            assert!(explanation.ruled_out.iter().any(|id| id == "net.address-family"), "{explanation:#?}");
        });
    }
}

/// A family that is slow for everybody, as behind a tunnel of our own, makes no gap: what is slow besides does.
#[test]
fn a_family_that_both_pay_for_is_none_of_the_gap() {
    for (_, way) in slow_ways() {
        let fast = by(way.clone(), near());
        for slow in [
            by(Server { delay: way.delay + 20e6, ..way.clone() }, Server { delay: 20e6, ..near() }),
            by(Server { cpu: 40.0, ..way.clone() }, Server { cpu: 40.0, ..near() }),
        ] {
            pair(fast.clone(), slow, 12e3, 8, true).both_ways(|explanation, _| {
                assert!(
                    explanation.findings.iter().all(|found| found.cause != "net.address-family"),
                    "{explanation:#?}"
                );
            });
        }
        // It is the fast side whose way by one family is the better one.
        let quick_by_one = by(near(), way.clone());
        pair(quick_by_one, by(way.clone(), way.clone()), 12e3, 8, true).both_ways(|explanation, _| {
            assert!(explanation.findings.iter().all(|found| found.cause != "net.address-family"), "{explanation:#?}");
        });
        // The fast side has no other address: what it would be by the other family is not known.
        let only = pair(near(), by(way, near()), 12e3, 8, true);
        let mut world = only.clone();
        world.peers = ["[2001:db8::1]:80", "192.0.2.2:80"].map(|peer| Some(peer.to_owned())).to_vec();
        for seed in 1..=3 {
            let explanation = World { seed, budget_ns: 600 * SECOND_NS, ..world.clone() }.explain();
            assert!(explanation.findings.iter().all(|found| found.cause != "net.address-family"), "{explanation:#?}");
            assert!(!explanation.ruled_out.iter().any(|id| id == "net.address-family"), "{explanation:#?}");
        }
    }
}

/// Without an address of the other family nothing can be shown. It is denied where both sides have one family and the slow side's name is
/// known to lead to no other; else it is left open.
#[test]
fn without_another_address_nothing_is_named() {
    for (peers, looked_up) in [
        (["192.0.2.1:80", "192.0.2.2:80"], true),
        (["192.0.2.1:80", "192.0.2.2:80"], false),
        (["192.0.2.1:80", "[2001:db8::2]:80"], true),
        (["192.0.2.1:80", "[2001:db8::2]:80"], false),
    ] {
        let far = Server { round_trip: 8e6, ..near() };
        let mut world = pair(near(), far, 12e3, 8, true);
        world.peers = peers.map(|peer| Some(peer.to_owned())).to_vec();
        world.names_have_ipv4_only = looked_up;
        let is_denied = looked_up && !peers[1].starts_with('[');
        world.both_ways(|explanation, slow| {
            assert_eq!(named(explanation), [("net.path-delay", Some(slow))], "{explanation:#?}");
            let denied = explanation.ruled_out.iter().any(|id| id == "net.address-family");
            assert_eq!(denied, is_denied, "{explanation:#?}");
        });
    }
}

/// What the family costs is not counted twice, once as that and once as a longer way, so that what is slow besides is still looked for.
#[test]
fn half_of_a_gap_is_not_the_whole_of_it() {
    let quick = near();
    let far = Server { round_trip: 4e6, ..quick.clone() };
    let works = |way: &Server| Server { delay: way.delay + 4e6, ..way.clone() };
    let slow = by(works(&far), works(&quick));
    pair(quick, slow, 600.0, 4, true).both_ways(|explanation, slow| {
        let found: Vec<(&str, Option<&str>)> = named(explanation);
        assert!(found.contains(&("unknown", Some(slow))), "{explanation:#?}");
        assert!(!found.contains(&("net.path-delay", Some(slow))), "{explanation:#?}");
    });
}

/// Where this machine has no further addresses, such a limit cannot be excluded, and nothing is confirmed.
#[test]
fn what_may_be_a_limit_for_each_client_is_not_confirmed() {
    for slow in [Server { per_address: Some(800.0), ..near() }, Server { round_trip: 8e6, ..near() }] {
        let mut world = pair(near(), by(slow, near()), 12e3, 8, true);
        world.sources = Err("this machine has no other address".to_owned());
        world.both_ways(|explanation, slow| {
            let first = &explanation.findings[0];
            assert_eq!(
                (&*first.cause, first.target.as_deref()),
                ("net.address-family", Some(slow)),
                "{explanation:#?}"
            );
            assert_eq!(first.confidence, Confidence::Likely, "{explanation:#?}");
            assert!(format!("{first:?}").contains("not shown: that it is no limit"), "{explanation:#?}");
        });
    }
}

/// A limit for each client counts another client by the other family. That is what it is, and no slow way.
#[test]
fn a_limit_for_each_client_is_no_slow_way() {
    let limited = Server { per_address: Some(800.0), ..near() };
    let mut world = pair(near(), by(limited, near()), 12e3, 8, true);
    world.sources = Ok(["192.0.2.10", "192.0.2.11", "192.0.2.12"].map(|address| address.parse().unwrap()).to_vec());
    world.both_ways(|explanation, slow| {
        assert_eq!(named(explanation), [("net.client-limit", Some(slow))], "{explanation:#?}");
    });
}
