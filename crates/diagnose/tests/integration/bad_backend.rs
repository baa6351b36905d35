//! One slow server of several behind a name, in the simulated world: found on either side, and never where something alike is at work.

use crate::world::network::{Stall, near};
use crate::world::{Server, SlowConnections, World, named, world};
use duel_model::web::phase;
use duel_model::{Confidence, Http2Plan, SECOND_NS};

fn with(slow: SlowConnections) -> Server {
    Server { slow_connections: Some(slow), ..near() }
}

fn a_world(slow: &Server, fast: &Server) -> World {
    World { body: 2e3, budget_ns: 3_600 * SECOND_NS, ..world(&[fast.clone(), slow.clone()]) }
}

/// Nor acquitted: where all connections lead to one slow server they are alike.
#[track_caller]
fn assert_left_open(world: &World) {
    world.both_ways(|explanation, _| {
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "http.bad-backend"), "{explanation:#?}");
        assert!(!explanation.ruled_out.iter().any(|cause| cause == "http.bad-backend"), "{explanation:#?}");
    });
}

#[test]
fn one_slow_server_of_several_is_named_on_either_side() {
    // Larger responses may take longer on the way.
    for (body, confidence) in [(600.0, Confidence::Likely), (2e3, Confidence::Possible)] {
        for (share, longer_ns) in [(0.125, 50e6), (0.33, 1e6), (0.5, 300e3), (0.5, 50e6)] {
            let world = World { body, ..a_world(&with(SlowConnections::of(share, longer_ns)), &near()) };
            world.both_ways(|explanation, side| {
                assert_eq!(named(explanation), [("http.bad-backend", Some(side))], "{share} {explanation:#?}");
                let finding = &explanation.findings[0];
                assert_eq!(finding.confidence, confidence);
                assert!(finding.explains.unwrap() > 0.8, "{finding:#?}");
            });
        }
    }
}

#[test]
fn it_is_told_how_many_connections_are_slow_and_how_slow_they_are() {
    let explanation = a_world(&with(SlowConnections::of(0.25, 50e6)), &near()).explain();
    let summary = &explanation.findings[0].summary;
    assert!(summary.contains("24 of 96 take 50.1 ms for a request, where the others take 101 µs"), "{summary}");
}

#[test]
fn slow_requests_that_go_over_any_connection_are_no_slow_server_by_connection() {
    let slow = Server { delay: 2.5e6, slow_ops: Some((0.05, 50e6)), ..near() };
    assert_left_open(&a_world(&slow, &near()));
}

#[test]
fn connections_that_wait_for_each_other_lead_to_no_slow_server() {
    let uneven = SlowConnections { only_under_load: true, ..SlowConnections::of(0.5, 2e6) };
    assert_left_open(&a_world(&with(uneven), &near()));
}

#[test]
fn a_longer_way_for_some_connections_is_no_slow_server() {
    let way = SlowConnections { connects_longer_ns: 20e6, ..SlowConnections::of(0.5, 20e6) };
    assert_left_open(&a_world(&with(way), &near()));
}

#[test]
fn slow_connections_that_both_sides_have_are_nobodys() {
    let slow = SlowConnections::of(0.5, 2e6);
    assert_left_open(&a_world(&Server { delay: 500e3, ..with(slow) }, &with(slow)));
}

#[test]
fn slow_connections_that_are_a_small_part_of_the_gap_are_not_blamed_for_it() {
    assert_left_open(&a_world(&Server { delay: 5e6, ..with(SlowConnections::of(0.05, 1e6)) }, &near()));
}

#[test]
fn where_packets_are_lost_a_slow_connection_may_be_one_that_lost_some() {
    let mut slow = with(SlowConnections::of(0.3, 20e6));
    slow.net.stalls.push(Stall { sent_again: true, ..Stall::of(phase::WAIT, 0.05, 210e6) });
    slow.facts = Some(Vec::new());
    slow.counts = vec![("tcp.retransmitted_segments", 0.05)];
    assert_left_open(&a_world(&slow, &near()));
}

#[test]
fn connections_that_are_not_told_apart_are_not_alike() {
    let slow = with(SlowConnections::of(0.5, 5e6));
    let mut few = a_world(&slow, &near());
    few.plan.load.connections = 3;
    assert_left_open(&few);
    let mut shared = a_world(&slow, &near());
    shared.http().http2 = Some(Http2Plan { streams: 10 });
    assert_left_open(&shared);
    let mut closed = a_world(&slow, &near());
    closed.http().keepalive = false;
    assert_left_open(&closed);
}
