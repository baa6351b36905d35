//! `http.version`: an HTTP/2 that is slow, and what looks like one.

use crate::world::network::Net;
use crate::world::{Server, World, named, world};
use duel_model::web::settings::H2_WINDOW;
use duel_model::{Body, Confidence, Explanation, Http2Plan, SECOND_NS};

/// A server whose HTTP/2 takes a fifth of a request more than its HTTP/1.1, as nginx's does.
fn good() -> Server {
    Server { http2: 10e3, net: Net { profiles: true, ..Net::default() }, ..Server::default() }
}

fn slow_http2(ns: f64) -> Server {
    Server { http2: ns, ..good() }
}

/// Two servers over HTTP/2, with as much time for the cause as it takes.
fn over_http2(servers: [Server; 2], connections: u32, streams: u32) -> World {
    let mut world = World { body: 2e3, budget_ns: 3_600 * SECOND_NS, ..world(&servers) };
    world.plan.load.connections = connections;
    world.http().http2 = Some(Http2Plan { streams });
    world
}

#[track_caller]
fn assert_found(world: &World, least: Confidence, most: Confidence) {
    world.both_ways_under(8, |explanation, slow| {
        assert_eq!(named(explanation), [("http.version", Some(slow))], "{explanation:#?}");
        let finding = &explanation.findings[0];
        assert!((least..=most).contains(&finding.confidence), "{finding:#?}");
        assert!(finding.explains.unwrap() > 0.7, "{finding:#?}");
    });
}

#[track_caller]
fn assert_left_open(world: &World) {
    world.both_ways_under(8, |explanation, _| {
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "http.version"), "{explanation:#?}");
        assert!(!is_ruled_out(explanation), "{explanation:#?}");
    });
}

#[track_caller]
fn assert_ruled_out(world: &World) {
    world.both_ways_under(8, |explanation, _| assert!(is_ruled_out(explanation), "{explanation:#?}"));
}

fn is_ruled_out(explanation: &Explanation) -> bool {
    explanation.ruled_out.iter().any(|cause| cause == "http.version")
}

/// Small records are a setting of TLS, of which HTTP/2 feels more.
#[test]
fn a_slow_http2_of_small_records_is_left_open() {
    let body = 690e3;
    let world = |record| World { body, ..over_http2([good(), Server { record, ..slow_http2(2e6) }], 1, 1) };
    assert_found(&world(16_384.0), Confidence::Likely, Confidence::Confirmed);
    assert_left_open(&world(3_200.0));
    // Of few records some more are as telling, and a small response has no more than one.
    let world = |body, record, head| {
        let slow = Server { record, head, ..slow_http2(2e6) };
        World { body, ..over_http2([good(), slow], 1, 1) }
    };
    assert_found(&world(500.0, 16_384.0, 1_000.0), Confidence::Likely, Confidence::Confirmed);
    assert_left_open(&world(16e3, 900.0, 300.0));
    assert_found(&world(50e3, 16_384.0, 300.0), Confidence::Likely, Confidence::Confirmed);
    assert_left_open(&world(50e3, 3_200.0, 300.0));
}

#[test]
fn a_slow_http2_is_found_with_any_number_of_connections_and_streams() {
    for ns in [0.5e6, 2e6, 20e6] {
        for (connections, streams) in [(1, 1), (16, 1), (4, 10)] {
            let world = over_http2([good(), slow_http2(ns)], connections, streams);
            assert_found(&world, Confidence::Confirmed, Confidence::Confirmed);
        }
    }
}

#[test]
fn connections_that_are_made_anew_do_not_hide_it() {
    let mut world = over_http2([good(), slow_http2(5e6)], 16, 1);
    world.http().keepalive = false;
    assert_found(&world, Confidence::Likely, Confidence::Confirmed);
}

#[test]
fn a_gap_under_load_is_left_open_where_http_1_takes_it_away() {
    // Work that hardly shows beside a wait, until there is more of it than CPUs.
    let busy = |server: Server| Server { delay: 5e6, cores: 1.0, ..server };
    assert_left_open(&over_http2([busy(good()), busy(slow_http2(0.25e6))], 4, 10));
    // It takes one request at a time of each connection: with HTTP/1.1 each has its own.
    let base = Server { delay: 2e6, cores: 64.0, ..good() };
    assert_left_open(&over_http2([base.clone(), Server { streams_at_a_time: 1.0, ..base }], 4, 10));
}

#[test]
fn a_gap_under_load_that_http_1_leaves_acquits_http2() {
    let busy = |cores| Server { delay: 5e6, fixed: 0.4e6, cores, ..good() };
    assert_ruled_out(&over_http2([busy(2.0), busy(1.0)], 4, 10));
}

#[test]
fn what_is_slow_over_either_version_acquits_http2() {
    assert_ruled_out(&over_http2([good(), Server { delay: 5e6, ..good() }], 16, 1));
}

#[test]
fn a_plan_of_http_1_acquits_http2() {
    let mut world = over_http2([good(), Server { delay: 5e6, ..good() }], 16, 1);
    world.http().http2 = None;
    assert_ruled_out(&world);
}

#[test]
fn a_slow_cpu_is_no_slow_http2_however_dear_that_is() {
    for cpu in [2.0, 5.0, 10.0] {
        for http2 in [40e3, 100e3, 1e6] {
            let base = Server { http2, ..good() };
            over_http2([base.clone(), Server { cpu, ..base }], 1, 1).both_ways_under(8, |explanation, _| {
                assert!(named(explanation).iter().all(|(cause, _)| *cause != "http.version"), "{explanation:#?}");
            });
        }
    }
}

/// Both are equally fast then, and nobody's HTTP/2 was slow.
#[test]
fn an_http_1_that_is_slow_on_the_fast_side_accuses_nobody() {
    let fast = Server { http1_delay: 5e6, ..good() };
    let slow = Server { delay: 5e6, ..good() };
    assert_left_open(&over_http2([fast, slow], 16, 1));
}

#[test]
fn an_http_1_that_is_slow_on_the_slow_side_acquits_nobody() {
    let slow = Server { http1_delay: 5e6, ..slow_http2(1e6) };
    assert_left_open(&over_http2([good(), slow], 16, 1));
}

#[test]
fn connections_that_only_http_1_closes_leave_it_open() {
    for (closes_slow, closes_fast) in [(true, false), (false, true), (true, true)] {
        let fast = Server { closes_http1: closes_fast, ..good() };
        let slow = Server { closes_http1: closes_slow, ..slow_http2(5e6) };
        assert_left_open(&over_http2([fast, slow], 16, 1));
    }
}

#[test]
fn connections_that_are_closed_now_and_then_are_not_its_version() {
    let slow = Server { closes_after: Some(20.0), sign: 2e6, ..good() };
    over_http2([Server { sign: 2e6, ..good() }, slow], 16, 1).both_ways_under(8, |explanation, slow| {
        assert_eq!(named(explanation)[0], ("http.no-keepalive", Some(slow)), "{explanation:#?}");
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "http.version"), "{explanation:#?}");
    });
}

#[test]
fn where_servers_may_wait_for_leave_it_is_left_open() {
    let mut small_window = over_http2([good(), slow_http2(5e6)], 16, 1);
    small_window.http().set(&H2_WINDOW, "1024");
    assert_left_open(&small_window);
    let mut carries_much = over_http2([good(), slow_http2(5e6)], 16, 1);
    carries_much.http().body = Body::Generated(1_000_000);
    assert_left_open(&carries_much);
}

#[test]
fn without_tls_it_is_found_for_small_responses_only() {
    let open = |server: Server| Server { tls: false, ..server };
    let small = over_http2([open(good()), open(slow_http2(5e6))], 16, 1);
    assert_found(&small, Confidence::Confirmed, Confidence::Confirmed);
    assert_left_open(&World { body: 1e6, ..small });
}

#[test]
fn where_another_program_answers_over_http_1_it_is_likely_at_most() {
    let slow = Server { http1_program: Some("other"), ..slow_http2(5e6) };
    let world = over_http2([good(), slow], 16, 1);
    assert_found(&world, Confidence::Likely, Confidence::Likely);
}

#[test]
fn a_server_without_http_1_leaves_it_open() {
    let mut world = over_http2([good(), slow_http2(5e6)], 16, 1);
    world.unavailable = vec!["http-1.1".to_owned(), "http-1.1-loaded".to_owned()];
    assert_left_open(&world);
}

/// What comes beside a body over HTTP/2 are heads of frames as well as those of TLS records.
#[test]
fn heads_of_frames_are_not_counted_as_tls_records() {
    let slow = Server { per_byte: 10.0, record: 64.0, ..good() };
    let world = World { body: 100e3, ..over_http2([good(), slow], 1, 1) };
    world.both_ways_under(8, |explanation, _| {
        assert!(named(explanation).iter().all(|(cause, _)| *cause != "http.no-sendfile"), "{explanation:#?}");
    });
}
