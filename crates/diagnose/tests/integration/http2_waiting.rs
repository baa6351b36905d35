//! `http.h2-streams` and `http.h2-window`: requests and bodies that wait for leave over HTTP/2, and what looks like it.

use crate::world::network::Net;
use crate::world::{Server, World, named, world};
use duel_model::web::settings::H2_WINDOW;
use duel_model::{Body, Confidence, Http2Plan, SECOND_NS};

const STREAMS: &str = "http.h2-streams";
const WINDOW: &str = "http.h2-window";

/// A server at the other end of a path of 5 ms, with more CPUs than it needs.
fn distant() -> Server {
    Server {
        round_trip: 5e6,
        cores: 64.0,
        http2: 10e3,
        stream_window: Some(65_536),
        net: Net { profiles: true, ..Net::default() },
        ..Server::default()
    }
}

/// Two servers over HTTP/2, with as much time for the cause as it takes.
fn over_http2(servers: [Server; 2], connections: u32, streams: u32) -> World {
    let mut world = World { body: 2e3, budget_ns: 3_600 * SECOND_NS, ..world(&servers) };
    world.plan.load.connections = connections;
    world.http().http2 = Some(Http2Plan { streams });
    world
}

#[track_caller]
fn assert_found(world: &World, cause: &str, confidence: Confidence) {
    world.both_ways_under(8, |explanation, slow| {
        assert_eq!(named(explanation)[0], (cause, Some(slow)), "{explanation:#?}");
        assert_eq!(explanation.findings[0].confidence, confidence, "{explanation:#?}");
    });
}

#[track_caller]
fn assert_standing(world: &World, cause: &str, is_ruled_out: bool) {
    world.both_ways_under(8, |explanation, _| {
        assert!(named(explanation).iter().all(|(named, _)| *named != cause), "{explanation:#?}");
        let ruled_out = explanation.ruled_out.iter().any(|ruled_out| ruled_out == cause);
        assert_eq!(ruled_out, is_ruled_out, "{cause} {explanation:#?}");
    });
}

#[test]
fn few_streams_are_found_whatever_their_number_and_that_of_connections() {
    for (connections, streams, taken) in [(1, 16, 1), (2, 16, 4), (4, 10, 3), (1, 100, 10)] {
        let slow = Server { max_streams: Some(taken), ..distant() };
        let world = over_http2([distant(), slow], connections, streams);
        assert_found(&world, STREAMS, Confidence::Confirmed);
        world.both_ways_under(8, |explanation, _| assert_eq!(explanation.findings.len(), 1, "{explanation:#?}"));
    }
}

#[test]
fn few_streams_are_found_beside_a_path_that_is_longer_as_well() {
    let slow = Server { max_streams: Some(4), round_trip: 10e6, ..distant() };
    over_http2([distant(), slow], 2, 16).both_ways_under(8, |explanation, slow| {
        let of_streams = explanation.findings.iter().find(|finding| finding.cause == STREAMS);
        let finding = of_streams.unwrap_or_else(|| panic!("{explanation:#?}"));
        assert_eq!(finding.target.as_deref(), Some(slow));
        // 4x of 8x.
        assert!((0.5..0.8).contains(&finding.explains.unwrap()), "{finding:#?}");
    });
}

/// It works on few requests of a connection at a time, and says that it takes many.
#[test]
fn a_server_that_takes_more_streams_than_it_works_on_is_no_limit_that_it_tells() {
    assert_standing(&over_http2([distant(), Server { streams_at_a_time: 4.0, ..distant() }], 2, 16), STREAMS, true);
}

/// What else holds up each connection is spread over more of them as well, and does not make the fast side slow with few streams.
#[test]
fn a_connection_that_is_held_up_otherwise_is_no_matter_of_streams() {
    let fast = Server { delay: 50e6, ..distant() };
    // It takes 8, and works on one at a time; so does the fast one's connection hardly carry 8 at a time by itself.
    let slow = Server { max_streams: Some(15), streams_at_a_time: 1.0, ..fast.clone() };
    assert_standing(&over_http2([fast, slow], 2, 16), STREAMS, false);
}

/// Both probes move the gap: with 4 of 16 on each connection the fast side is slower, too, and over more connections the slow one is
/// faster. But it works on one of them at a time, and would do no more if it took all.
#[test]
fn a_tighter_hold_on_each_connection_hides_streams() {
    let slow = Server { max_streams: Some(4), streams_at_a_time: 1.0, ..distant() };
    assert_standing(&over_http2([distant(), slow], 2, 16), STREAMS, false);
}

#[test]
fn servers_that_compute_all_the_time_do_not_wait_for_streams() {
    let busy = |cores: f64| Server { fixed: 5e6, round_trip: 60e3, cores, ..distant() };
    for max_streams in [2, 8] {
        let slow = Server { max_streams: Some(max_streams), ..busy(1.0) };
        assert_standing(&over_http2([busy(2.0), slow], 4, 16), STREAMS, true);
    }
}

#[test]
fn a_longer_path_alone_is_no_matter_of_streams() {
    let slow = Server { round_trip: 20e6, ..distant() };
    assert_standing(&over_http2([distant(), slow], 2, 16), STREAMS, true);
}

#[test]
fn streams_that_both_sides_take_as_few_of_acquit_nobody() {
    let few = |round_trip| Server { max_streams: Some(4), round_trip, ..distant() };
    assert_standing(&over_http2([few(5e6), few(20e6)], 2, 16), STREAMS, false);
}

#[test]
fn one_request_at_a_time_needs_one_stream_only() {
    let slow = Server { max_streams: Some(1), round_trip: 20e6, ..distant() };
    assert_standing(&over_http2([distant(), slow.clone()], 8, 1), STREAMS, true);
    let mut of_http1 = over_http2([distant(), slow], 8, 1);
    of_http1.http().http2 = None;
    assert_standing(&of_http1, STREAMS, true);
}

#[test]
fn streams_that_are_not_told_leave_it_open() {
    let slow = Server { max_streams: None, round_trip: 20e6, ..distant() };
    assert_standing(&over_http2([distant(), slow], 2, 16), STREAMS, false);
}

#[test]
fn without_more_connections_it_is_left_open() {
    let mut world = over_http2([distant(), Server { max_streams: Some(4), ..distant() }], 2, 16);
    world.unavailable = vec!["more-connections".to_owned()];
    assert_standing(&world, STREAMS, false);
}

/// Responses of 1 MB through a window of ours of 64 KiB.
fn through_our_window(servers: [Server; 2]) -> World {
    let mut world = World { body: 1e6, ..over_http2(servers, 4, 1) };
    world.http().set(&H2_WINDOW, "65536");
    world
}

#[test]
fn a_window_of_ours_is_found_on_a_longer_path() {
    let world =
        through_our_window([Server { round_trip: 0.2e6, ..distant() }, Server { round_trip: 20e6, ..distant() }]);
    world.both_ways_under(8, |explanation, slow| {
        let of_window = explanation.findings.iter().find(|finding| finding.cause == WINDOW);
        let finding = of_window.unwrap_or_else(|| panic!("{explanation:#?}"));
        assert_eq!(finding.target.as_deref(), Some(slow));
        assert!(finding.explains.unwrap() > 0.3, "{finding:#?}");
    });
    // Each of its fillings takes one of the path's round trips.
    assert_standing(&world, "net.path-delay", false);
}

#[test]
fn a_window_of_ours_is_acquitted_where_another_thing_holds_responses_up() {
    let slow = [
        Server { cap: Some(1e6), ..distant() },
        Server { net: Net { window: Some(16e3), ..distant().net }, ..distant() },
        Server { delay: 500e6, ..distant() },
    ];
    for slow in slow {
        assert_standing(&through_our_window([distant(), slow]), WINDOW, true);
    }
}

#[test]
fn a_window_that_holds_all_responses_is_acquitted() {
    let far = Server { round_trip: 50e6, ..distant() };
    assert_standing(&World { body: 1e6, ..over_http2([distant(), far], 4, 8) }, WINDOW, true);
}

/// Requests of 1 MB.
fn uploads(servers: [Server; 2]) -> World {
    let mut world = over_http2(servers, 4, 1);
    world.http().body = Body::Generated(1_000_000);
    world.http().method = "POST".to_owned();
    world
}

#[test]
fn a_servers_small_window_is_found_where_requests_are_large() {
    for (window, usual) in [(16_384, 1 << 20), (65_535, 1 << 24)] {
        let fast = Server { stream_window: Some(usual), ..distant() };
        let world = uploads([fast, Server { stream_window: Some(window), ..distant() }]);
        assert_found(&world, WINDOW, Confidence::Likely);
    }
}

#[test]
fn a_slow_server_that_takes_little_ahead_is_not_accused_for_its_window() {
    let fast = Server { round_trip: 60e3, stream_window: Some(1 << 24), ..distant() };
    let little = Server { stream_window: Some(65_536), ..fast.clone() };
    for slow in [Server { http2: 50e6, ..little.clone() }, Server { delay: 50e6, ..little.clone() }] {
        uploads([fast.clone(), slow]).both_ways_under(8, |explanation, _| {
            assert!(named(explanation).iter().all(|(cause, _)| *cause != WINDOW), "{explanation:#?}");
        });
    }
    // HTTP/1.1 takes as long.
    let slow = Server { delay: 50e6, ..little };
    assert_standing(&uploads([fast, slow]), WINDOW, true);
}

#[test]
fn windows_that_are_not_told_leave_it_open_where_requests_are_large() {
    let untold = |delay| Server { stream_window: None, delay, ..distant() };
    assert_standing(&uploads([untold(0.0), untold(50e6)]), WINDOW, false);
}

/// How much of a request's body is under way is not looked at by causes that look at responses.
#[test]
fn small_responses_to_large_requests_do_not_acquit_buffers_and_caps() {
    for over_http2 in [false, true] {
        let slow = Server { delay: 500e6, ..distant() };
        let mut world = uploads([distant(), slow]);
        if !over_http2 {
            world.http().http2 = None;
        }
        for cause in ["net.small-window", "net.rate-cap"] {
            assert_standing(&world, cause, false);
        }
        world.http().body = Body::None;
        assert_standing(&world, "net.small-window", true);
    }
}
