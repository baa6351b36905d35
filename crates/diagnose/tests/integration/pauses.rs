//! Pauses of the whole server in the simulated world: found on either side, and never where something alike is at work.

use crate::world::network::{Net, Stall};
use crate::world::{Server, World, named, world};
use duel_model::web::phase;
use duel_model::{Confidence, SECOND_NS};

/// A server whose machine is read: no quota, nobody else on its CPUs, enough memory, and it asks nobody.
fn good() -> Server {
    let net = Net { profiles: true, ..Net::default() };
    let counts = vec![
        ("ip.received_bytes", 300.0),
        ("tcp.received_segments", 2.0),
        ("tcp.opened", 0.0),
        ("tcp.retransmitted_segments", 0.0),
    ];
    Server { cores: 8.0, facts: Some(Vec::new()), all_read: true, net, counts, generator: 1e3, ..Server::default() }
}

fn pausing(share: f64) -> Server {
    Server { pauses: share, ..good() }
}

/// Requests by which the CPUs are not busy, for which over one connection everything takes longer than under load.
fn a_world(slow: &Server, fast: &Server) -> World {
    let mut world = World { body: 2e3, budget_ns: 3_600 * SECOND_NS, ..world(&[fast.clone(), slow.clone()]) };
    world.plan.load.connections = 16;
    world
}

#[track_caller]
fn assert_not_named(world: &World) {
    world.both_ways(|explanation, _| {
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "app.pauses"), "{explanation:#?}");
    });
}

#[track_caller]
fn assert_left_open(world: &World) {
    assert_not_named(world);
    world.both_ways(|explanation, _| {
        assert!(!explanation.ruled_out.iter().any(|cause| cause == "app.pauses"), "{explanation:#?}");
    });
}

#[test]
fn a_server_that_pauses_is_named_on_either_side() {
    for share in [0.08, 0.2, 0.5] {
        a_world(&pausing(share), &good()).both_ways(|explanation, side| {
            assert_eq!(named(explanation), [("app.pauses", Some(side))], "{share} {explanation:#?}");
            let finding = &explanation.findings[0];
            assert_eq!(finding.confidence, Confidence::Likely);
            assert!(finding.explains.unwrap() > 0.8, "{finding:#?}");
        });
    }
}

/// Whom it asks may be what pauses.
#[test]
fn where_it_asks_another_server_it_is_possible_and_where_packets_are_lost_it_is_open() {
    let counting = |server: Server, key, count| {
        let counts = server.counts.iter().map(|&(of, old)| (of, if of == key { count } else { old })).collect();
        Server { counts, ..server }
    };
    let front = |server| counting(server, "ip.received_bytes", 5e3);
    a_world(&front(pausing(0.3)), &front(good())).both_ways(|explanation, side| {
        assert_eq!(named(explanation), [("app.pauses", Some(side))], "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, Confidence::Possible);
    });
    assert_left_open(&a_world(&counting(pausing(0.3), "tcp.retransmitted_segments", 0.02), &good()));
}

#[test]
fn of_several_causes_pauses_are_their_share() {
    // Each request waits for half as long again besides.
    let slow = Server { delay: 60e3, ..pausing(0.2) };
    a_world(&slow, &good()).both_ways(|explanation, _| {
        let finding = explanation.findings.iter().find(|finding| finding.cause == "app.pauses").unwrap();
        assert!((0.2..0.7).contains(&finding.explains.unwrap()), "{finding:#?}");
    });
}

/// A server that works on one request at a time, and waits within every twelfth one.
#[test]
fn a_stall_in_every_few_requests_may_be_one_of_them() {
    let slow = |server| Server { delay: 60e6, ..server };
    let world = a_world(&slow(pausing(0.5)), &slow(good()));
    assert_left_open(&world);
    world.both_ways(|explanation, _| {
        let told = explanation.findings.iter().flat_map(|finding| &finding.evidence);
        assert!(
            told.into_iter().any(|line| line.text.contains("one of which may hold up all others")),
            "{explanation:#?}"
        );
    });
}

#[test]
fn stalls_that_both_sides_have_are_nobodys() {
    let slow = Server { delay: 300e3, ..pausing(0.2) };
    assert_not_named(&a_world(&slow, &pausing(0.2)));
}

#[test]
fn pauses_that_are_a_small_part_of_the_gap_are_ruled_out_and_few_looks_rule_out_nothing() {
    a_world(&Server { delay: 3e6, ..pausing(0.01) }, &good()).both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().any(|cause| cause == "app.pauses"), "{explanation:#?}");
    });
    // In 10 s stalls of 0.2 s that take 6 % of the time may be missed, which would be all of this gap.
    assert_left_open(&a_world(&Server { delay: 8e3, ..good() }, &good()));
}

#[test]
fn what_stops_a_server_as_well_is_not_taken_for_its_own_pauses() {
    // Half of what it could do, in stalls that are seen.
    let stopped = |server: Server| Server { seems_to_pause: 0.5, cores: 1.0, ..server };
    let one = Server { cores: 1.0, ..good() };
    assert_not_named(&a_world(&stopped(Server { quota: Some(0.4), ..good() }), &one));
    assert_not_named(&a_world(&stopped(Server { others: 0.6, ..good() }), &one));
    assert_not_named(&a_world(&stopped(Server { stolen: 0.6, ..good() }), &one));
    // A disk, on which all wait for a flush.
    assert_not_named(&a_world(&stopped(Server { disk: 1e6, ..good() }), &one));
}

#[test]
fn without_the_machine_it_is_no_more_than_a_suspicion() {
    let unread = |server: Server| Server { facts: None, ..server };
    assert_left_open(&a_world(&unread(pausing(0.3)), &unread(good())));
}

#[test]
fn a_limit_on_requests_in_each_stretch_of_time_is_not_taken_for_pauses() {
    // It lets through so many, and has all others wait together for the next stretch.
    let limited = |per_s: f64, seen: f64| Server { per_address: Some(per_s), seems_to_pause: seen, ..good() };
    for (per_s, seen) in [(4_000.0, 0.9), (20_000.0, 0.6), (40_000.0, 0.3)] {
        assert_not_named(&a_world(&limited(per_s, seen), &good()));
    }
}

/// Where one connection fills the server, a limit would let through no fewer of its requests than of many. First seen on an Apache of 660 kB.
#[test]
fn where_one_connection_fills_the_server_requests_for_a_byte_tell_pauses_from_a_limit() {
    let one = Server { cores: 1.0, per_byte: 1.0, ..good() };
    let large = |slow: &Server| World { body: 600e3, ..a_world(slow, &one) };
    large(&Server { pauses: 0.3, ..one.clone() }).both_ways(|explanation, side| {
        assert_eq!(named(explanation), [("app.pauses", Some(side))], "{explanation:#?}");
    });
    for per_s in [400.0, 1_000.0] {
        assert_not_named(&large(&Server { per_address: Some(per_s), seems_to_pause: 0.5, ..one.clone() }));
    }
}

#[test]
fn few_connections_do_not_tell_stalls_from_slow_requests() {
    let mut world = a_world(&pausing(0.3), &good());
    world.plan.load.connections = 3;
    assert_left_open(&world);
}

#[test]
fn stalls_too_short_to_be_looked_for_are_not_ruled_out() {
    let mut short = good();
    short.net.stalls.push(Stall::of(phase::WAIT, 0.3, 6e6));
    assert_left_open(&a_world(&short, &good()));
    // All requests take longer, the quickest too.
    a_world(&Server { delay: 2e6, ..good() }, &good()).both_ways(|explanation, _| {
        assert!(explanation.ruled_out.iter().any(|cause| cause == "app.pauses"), "{explanation:#?}");
    });
}
