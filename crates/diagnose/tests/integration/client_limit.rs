//! What one client address may do, in simulated worlds beside what looks like it.

use crate::world::network::{Net, Stall, near};
use crate::world::{Server, World, named, open_loop, world};
use duel_model::web::phase;
use duel_model::{Confidence, Evidence, Explanation};
use std::net::{IpAddr, Ipv4Addr};

const LIMIT: &str = "net.client-limit";

/// Two servers, asked for little over 16 connections, from a machine with so many other addresses.
fn pair(slow: Server, others: u8) -> World {
    let sources = (0..others).map(|host| IpAddr::from(Ipv4Addr::new(127, 0, 1, host))).collect();
    World { body: 900.0, sources: Ok(sources), ..world(&[near(), slow]) }
}

fn rate(server: &Server) -> f64 {
    pair(server.clone(), 0).show(server, &duel_model::Variation::default()).rate
}

fn asked(explanation: &Explanation) -> Vec<&str> {
    let ids = explanation.probes.iter().map(|outcome| &*outcome.probe.id);
    ids.filter(|id| id.starts_with("source")).collect()
}

fn told(explanation: &Explanation, of: &str) -> String {
    let lines = explanation.findings.iter().flat_map(|finding| &finding.evidence);
    lines.filter(|line| line.told().contains(of)).map(Evidence::told).collect::<Vec<_>>().join("; ")
}

/// A limit that shows over one connection as well, and one that shows under load only.
#[test]
fn a_limit_for_each_address_is_confirmed_where_the_addresses_close_the_gap() {
    let most = rate(&near());
    for (share, connections) in [(0.03, 64), (0.1, 16), (0.3, 16)] {
        let mut world = pair(Server { per_address: Some(share * most), ..near() }, 64);
        world.plan.load.connections = connections;
        world.both_ways(|explanation, slow| {
            assert_eq!(named(explanation), [(LIMIT, Some(slow))], "{explanation:#?}");
            let finding = &explanation.findings[0];
            assert_eq!(finding.confidence, Confidence::Confirmed, "{explanation:#?}");
            assert!(finding.summary.contains("lets one client address do only so much"), "{}", finding.summary);
            assert!(finding.remedy.contains("limit_req") && finding.remedy.contains("--source 127.0.1.0-127.0.1."));
            let commands: Vec<_> = finding.evidence.iter().filter_map(|line| line.repeat.as_deref()).collect();
            assert!(commands.iter().any(|line| line.contains("--source 127.0.1.0-127.0.1.")), "{commands:#?}");
            assert_eq!(asked(explanation), ["sources-spread", "source-other"]);
        });
    }
}

#[test]
fn with_too_few_addresses_it_is_likely_and_the_rest_of_the_gap_is_not_called_unexplained() {
    let most = rate(&near());
    for (share, others) in [(0.02, 4), (0.005, 16), (0.02, 2)] {
        let world = pair(Server { per_address: Some(share * most), ..near() }, others);
        world.both_ways(|explanation, slow| {
            assert_eq!(named(explanation), [(LIMIT, Some(slow))], "{explanation:#?}");
            let finding = &explanation.findings[0];
            assert_eq!(finding.confidence, Confidence::Likely, "{explanation:#?}");
            assert!(finding.summary.contains("too few to close the gap"), "{}", finding.summary);
            assert!(finding.summary.contains(&format!("over {others} addresses")), "{}", finding.summary);
        });
    }
}

#[test]
fn an_address_of_ours_that_is_treated_worse_is_told_from_a_limit() {
    for others in [1, 64] {
        let world = pair(Server { dislikes_us: 5e6, ..near() }, others);
        world.both_ways(|explanation, slow| {
            let found = explanation.findings.iter().find(|finding| finding.cause == LIMIT);
            let finding = found.unwrap_or_else(|| panic!("{explanation:#?}"));
            assert_eq!((finding.target.as_deref(), finding.confidence), (Some(slow), Confidence::Confirmed));
            assert!(
                finding.summary.contains("treats the address that this machine connects from worse"),
                "{finding:#?}"
            );
            assert!(finding.remedy.contains("ip rule"), "{finding:#?}");
        });
    }
}

/// A single connection has a single address: only another one can be tried.
#[test]
fn over_a_single_connection_only_our_address_can_be_told() {
    let mut limited = pair(Server { per_address: Some(200.0), ..near() }, 64);
    limited.plan.load.connections = 1;
    limited.both_ways(|explanation, _| {
        assert_eq!(asked(explanation), ["source-other"]);
        assert!(explanation.findings.iter().all(|finding| finding.cause != LIMIT));
        assert!(!explanation.ruled_out.iter().any(|id| id == LIMIT), "a limit would look the same: {explanation:#?}");
    });
    let mut disliked = pair(Server { dislikes_us: 5e6, ..near() }, 64);
    disliked.plan.load.connections = 1;
    disliked.both_ways(|explanation, _| assert_eq!(explanation.findings[0].cause, LIMIT, "{explanation:#?}"));
}

#[test]
fn who_limits_nobody_is_acquitted() {
    for slow in [
        Server { delay: 5e6, ..near() },
        Server { places: 2.0, delay: 1e6, ..near() },
        Server { net: Net { stalls: vec![Stall::of(phase::WAIT, 0.05, 40e6)], ..near().net }, ..near() },
    ] {
        pair(slow.clone(), 64).both_ways(|explanation, _| {
            assert!(explanation.findings.iter().all(|finding| finding.cause != LIMIT), "{explanation:#?}");
            let settled_before = asked(explanation).is_empty();
            assert!(settled_before || explanation.ruled_out.iter().any(|id| id == LIMIT), "{slow:?}: {explanation:#?}");
        });
    }
}

#[test]
fn where_there_is_no_other_address_the_reason_is_told() {
    let most = rate(&near());
    let limited = Server { per_address: Some(0.1 * most), ..near() };
    let mut world = World { sources: Err("this machine is alone".to_owned()), ..pair(limited, 0) };
    let open = |world: &World, why: &str| {
        world.both_ways(|explanation, slow| {
            assert_eq!(named(explanation), [("unknown", Some(slow))], "{explanation:#?}");
            assert!(told(explanation, "open: net.client-limit").contains(why), "{explanation:#?}");
            assert!(asked(explanation).is_empty());
        });
    };
    open(&world, "this machine is alone");
    world.sources = Ok(vec![Ipv4Addr::new(127, 0, 0, 2).into()]);
    world.http().reach.sources = vec!["127.0.0.9".parse().unwrap()];
    open(&world, "the plan says which addresses");
}

#[test]
fn what_is_refused_is_no_gap_that_a_limit_makes() {
    let world = pair(Server { delay: 1e6, failing: 0.5, ..near() }, 64);
    world.both_ways(|explanation, _| {
        assert!(asked(explanation).is_empty(), "{explanation:#?}");
        assert!(explanation.findings.iter().all(|finding| finding.cause != LIMIT), "{explanation:#?}");
    });
}

/// Nobody who has another cause to be found waits for this one.
#[test]
fn it_is_asked_last_and_never_of_who_works_all_the_time() {
    let closes = pair(Server { keeps: false, round_trip: 2e6, ..near() }, 64);
    closes.both_ways(|explanation, _| assert!(asked(explanation).is_empty(), "{:#?}", explanation.findings));
    let facts = vec![("cpu.cpus", "4"), ("process.cpus_allowed", "0-3")];
    let busy = Server { fixed: 2e6, cores: 4.0, all_read: true, facts: Some(facts), ..near() };
    pair(busy, 64).both_ways(|explanation, _| {
        assert!(asked(explanation).is_empty(), "{explanation:#?}");
        assert!(explanation.ruled_out.iter().any(|id| id == LIMIT), "{explanation:#?}");
    });
}

/// Under an offered rate flips are made in a closed loop, and held against one.
#[test]
fn an_offered_rate_is_probed_in_a_closed_loop() {
    let mut world = pair(Server { dislikes_us: 5e6, ..near() }, 64);
    world.plan.load.kind = open_loop(500.0);
    world.both_ways(|explanation, _| {
        assert_eq!(explanation.findings[0].cause, LIMIT, "{explanation:#?}");
        assert!(explanation.probes.iter().any(|outcome| outcome.probe.id == "closed"));
    });
}

/// Without the second flip, which kind it is stays open; and where the two contradict each other, so does everything.
#[test]
fn what_the_second_flip_leaves_open_is_not_told() {
    let limited = Server { per_address: Some(0.1 * rate(&near())), ..near() };
    let unseen = World { unavailable: vec!["source-other".to_owned()], ..pair(limited.clone(), 64) };
    unseen.both_ways(|explanation, slow| {
        let finding = explanation.findings.iter().find(|finding| finding.cause == LIMIT).unwrap();
        assert_eq!((finding.target.as_deref(), finding.confidence), (Some(slow), Confidence::Possible));
        assert!(finding.summary.contains("was not shown"), "{}", finding.summary);
    });
    let half_of_it = pair(Server { per_address: Some(0.4 * rate(&near())), ..near() }, 64);
    let contradicting = World { elsewhere: vec![("source-other".to_owned(), half_of_it)], ..pair(limited, 64) };
    contradicting.both_ways(|explanation, _| {
        assert!(explanation.findings.iter().all(|finding| finding.cause != LIMIT), "{explanation:#?}");
        assert!(told(explanation, "open: net.client-limit").contains("but with all connections from one other"));
    });
}
