//! HTTP/2 against peers that do what a test says: streams refused, reset, given up and left alone.

use crate::common::peer;

use crate::common::{
    self, CLOSED, PATIENCE, PATIENCE_NS, Tiny, assert_all_failed, failed, ops, order, sentence, slot, sum_ns,
};
use duel_http::HttpFactory;
use duel_load::{Session, SlotOrder, SlotRecord};
use duel_model::web::{failure, phase};
use duel_model::{Body, Http2Plan, HttpPlan, MILLISECOND_NS, SECOND_NS};
use peer::{CANCEL, ENHANCE_YOUR_CALM, PROTOCOL_ERROR, REFUSED_STREAM};
use peer::{Heard, INITIAL_WINDOW_SIZE, INTERNAL_ERROR, MAX_CONCURRENT_STREAMS, Peer};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

fn plan(streams: u32) -> HttpPlan {
    HttpPlan { http2: Some(Http2Plan { streams }), ..HttpPlan::default() }
}

/// A plan that posts so many bytes.
fn posting(streams: u32, bytes: u64) -> HttpPlan {
    HttpPlan { method: "POST".into(), body: Body::Generated(bytes), ..plan(streams) }
}

fn open(plan: &HttpPlan, server: &Tiny) -> Session {
    let factory = HttpFactory::prepare(plan, &server.url("/"), PATIENCE_NS).unwrap();
    factory.session(1, 1, Arc::default()).unwrap()
}

/// One slot of so many ops over one connection at a time.
fn run(plan: &HttpPlan, server: &Tiny, count: u64) -> SlotRecord {
    slot(&mut open(plan, server), &ops(count))
}

#[track_caller]
fn assert_all_ok(record: &SlotRecord, count: u64) {
    let tally = &record.tally;
    assert_eq!((tally.started, tally.ok), (count, count), "{tally:?}");
}

/// A server that answers whatever it is asked.
fn answers(peer: &mut Peer) {
    while let Some(id) = peer.request() {
        peer.answer(id);
    }
}

#[test]
fn a_server_that_sends_each_connection_away_before_it_answers_answers_all() {
    // Connections come and go in any order, so that places in a group are given back and taken again.
    let server = Tiny::start(|number, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        let Some(id) = peer.request() else { return };
        peer.goaway(id, 0);
        std::thread::sleep(Duration::from_micros([0, 3000, 500, 1500, 200, 2500, 900][number % 7]));
        peer.answer(id);
        common::end_in_order(peer.stream());
    });
    let order = SlotOrder { op_timeout_ns: 5 * SECOND_NS, ..ops(400) };
    let record = slot(&mut open(&plan(3), &server), &order);
    assert_all_ok(&record, 400);
    assert_eq!(record.tally.connections, server.connections());
}

#[test]
fn who_was_sent_away_goes_first_on_the_next_connection() {
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        let Some(id) = peer.request() else { return };
        // So that all the others are there.
        std::thread::sleep(Duration::from_millis(2));
        peer.goaway(id, 0);
        peer.answer(id);
        common::end_in_order(peer.stream());
    });
    let record = run(&plan(10), &server, 250);
    assert_all_ok(&record, 250);
    // Each waits for nine others at most; where the newest went first, some had waited for a hundred.
    assert!(record.tally.resent <= 9 * 250, "{}", record.tally.resent);
    // That is no time of connecting: who opens a connection at last has been told so after 2 ms, many times.
    let (connect_ns, send_ns) = (sum_ns(&record.tally, phase::CONNECT), sum_ns(&record.tally, phase::SEND));
    assert!(20 * connect_ns < send_ns, "{connect_ns} ns of connecting, {send_ns} ns of sending");
}

#[test]
fn answers_that_come_before_the_body_has_left_say_nothing_of_later_requests() {
    const EARLY: u64 = 500;
    const PAUSE: Duration = Duration::from_millis(50);
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        let mut answered = 0;
        while let Some(heard) = peer.hear() {
            match heard {
                Heard::Opened(id, _) if answered < EARLY => {
                    peer.answer_bare(id, 413);
                    answered += 1;
                }
                Heard::Opened(id, _) => {
                    std::thread::sleep(PAUSE);
                    peer.open_window(0, 1 << 20);
                    peer.open_window(id, 1 << 20);
                }
                Heard::Body(id, true) => {
                    assert_eq!(peer.body_bytes(id), 200_000);
                    peer.answer(id);
                }
                Heard::Body(..) | Heard::Reset(..) | Heard::GoAway(_) => {}
            }
        }
    });
    let record = run(&posting(1, 200_000), &server, EARLY + 1);
    let tally = &record.tally;
    assert_eq!((tally.ok, tally.statuses.get(&413)), (1, Some(&EARLY)), "{tally:?}");
    assert_eq!(tally.phases[&phase::SEND.id()].count(), 1, "of the others no request has left");
    assert!(sum_ns(tally, phase::SEND) >= PAUSE.as_nanos(), "{:?}", tally.phases);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_connection_that_falls_silent_costs_each_of_its_lanes_one_op() {
    let server = Tiny::start(|number, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        if number == 1 {
            for _ in 0..6 {
                let Some(id) = peer.request() else { return };
                peer.answer(id);
            }
            while peer.hear().is_some() {}
        } else {
            answers(&mut peer);
        }
    });
    let order = SlotOrder { op_timeout_ns: SECOND_NS, ..ops(30) };
    let record = slot(&mut open(&plan(3), &server), &order);
    assert_eq!((record.tally.ok, failed(&record.tally, failure::TIMEOUT)), (27, 3), "{:?}", record.tally);
    assert_eq!(server.connections(), 2);
}

#[test]
fn what_is_given_up_at_a_slots_end_is_taken_back_at_once_and_reaches_no_later_op() {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let server = Tiny::start(move |_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        let Some(given_up) = peer.requests(3) else { return };
        for &id in &given_up {
            peer.head(id, 200);
        }
        // As long as something comes the connection is a good one.
        let mut beside = peer.second();
        std::thread::spawn({
            let given_up = given_up.clone();
            move || {
                while given_up.iter().all(|&id| beside.data(id, b"late")) {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        while let Some(heard) = peer.hear() {
            match heard {
                Heard::Reset(id, why) => tell.lock().unwrap().send((id, why)).unwrap(),
                Heard::Opened(id, true) => {
                    peer.answer(id);
                }
                _ => {}
            }
        }
    });
    let mut session = open(&plan(3), &server);
    let short = SlotOrder { grace_ns: 100 * MILLISECOND_NS, ..order(CLOSED, Some(100 * MILLISECOND_NS), None) };
    let record = slot(&mut session, &short);
    assert_eq!((record.tally.started, record.tally.in_flight), (3, 3));
    let mut taken_back: Vec<(u32, u32)> = (0..3).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    taken_back.sort_unstable();
    assert_eq!(taken_back, [1, 3, 5].map(|id| (id, CANCEL)));
    let record = slot(&mut session, &ops(30));
    assert_all_ok(&record, 30);
    assert_eq!((record.tally.body_bytes, record.tally.connections, server.connections()), (60, 0, 1));
}

#[test]
fn a_request_that_has_left_is_waited_for_while_another_one_is_still_being_sent() {
    const BYTES: u64 = 64 << 20;
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[(INITIAL_WINDOW_SIZE, 0)]) else { return };
        peer.open_window(0, 1 << 30);
        let (mut opened, mut is_second_open) = (0, false);
        while let Some(heard) = peer.hear() {
            match heard {
                Heard::Opened(id, _) => {
                    opened += 1;
                    if opened == 2 {
                        peer.open_window(1, 1 << 30);
                    }
                    assert_eq!(id, 2 * opened - 1);
                }
                Heard::Body(1, false) if !is_second_open && peer.body_bytes(1) > BYTES / 2 => {
                    is_second_open = true;
                    peer.open_window(3, 1 << 30);
                }
                Heard::Body(1, true) => {
                    // The other body is larger than what the kernel keeps of it: sending stands still.
                    std::thread::sleep(Duration::from_millis(100));
                    peer.answer(1);
                    std::thread::sleep(Duration::from_millis(100));
                }
                Heard::Body(id, true) => {
                    peer.answer(id);
                }
                Heard::Body(..) | Heard::Reset(..) | Heard::GoAway(_) => {}
            }
        }
    });
    let record = run(&posting(2, BYTES), &server, 2);
    assert_all_ok(&record, 2);
    assert_eq!(record.tally.phases[&phase::SEND.id()].count(), 2, "{:?}", record.tally.phases);
    assert!(sum_ns(&record.tally, phase::WAIT) >= 100 * u128::from(MILLISECOND_NS));
}

#[test]
fn a_refused_request_is_sent_again_and_counted() {
    let refused = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&refused);
    let server = Tiny::start(move |_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        while let Some(id) = peer.request() {
            if id % 6 == 1 {
                count.fetch_add(1, Ordering::SeqCst);
                peer.reset(id, REFUSED_STREAM);
            } else {
                peer.answer(id);
            }
        }
    });
    let record = run(&HttpPlan { method: "POST".into(), ..plan(3) }, &server, 60);
    assert_all_ok(&record, 60);
    assert_eq!((record.tally.resent, server.connections()), (refused.load(Ordering::SeqCst), 1));
    assert!(record.tally.resent >= 20);
}

#[test]
fn a_server_that_refuses_again_and_again_is_given_time_and_then_up() {
    let refused = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&refused);
    let server = Tiny::start(move |_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        while let Some(id) = peer.request() {
            count.fetch_add(1, Ordering::SeqCst);
            peer.reset(id, REFUSED_STREAM);
        }
    });
    let record = run(&plan(3), &server, 6);
    assert_all_failed(&record, 6, failure::RESET, "refused the request 11 times unread (REFUSED_STREAM)");
    assert_eq!((refused.load(Ordering::SeqCst), record.tally.resent), (66, 60));
    // Each time after the second it waits twice as long.
    assert!(record.elapsed_ns >= 2 * 511 * MILLISECOND_NS, "{} ns", record.elapsed_ns);
}

#[test]
fn a_server_that_sends_all_away_unread_is_quoted() {
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        peer.request();
        peer.goaway(0, ENHANCE_YOUR_CALM);
        common::end_in_order(peer.stream());
    });
    let record = run(&plan(1), &server, 1);
    assert_all_failed(&record, 1, failure::CLOSED, "11 connections in a row");
    assert!(sentence(&record).contains("ENHANCE_YOUR_CALM"), "{}", sentence(&record));
    assert_eq!(record.tally.resent + 1, server.connections());
}

#[test]
fn a_server_that_takes_no_request_is_connected_to_in_pauses_and_no_more_often_than_a_refused_request_is_sent() {
    const OPS: u64 = 4;
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        peer.goaway(0, 0);
        common::end_in_order(peer.stream());
    });
    for streams in [1, 3] {
        let before = server.connections();
        let record = run(&plan(streams), &server, OPS);
        assert_all_failed(&record, OPS, failure::CLOSED, "11 connections in a row");
        assert!(server.connections() - before <= 11 * OPS + 1, "{}", server.connections() - before);
        let rounds = OPS.div_ceil(u64::from(streams));
        assert!(record.elapsed_ns >= rounds * 511 * MILLISECOND_NS, "{} ns", record.elapsed_ns);
    }
}

#[test]
fn who_breaks_the_rules_of_a_connection_is_told_so_before_it_is_closed() {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let server = Tiny::start(move |_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        let Some(id) = peer.request() else { return };
        // A window that is opened by nothing.
        peer.open_window(0, 0);
        while let Some(heard) = peer.hear() {
            tell.lock().unwrap().send((id, heard)).unwrap();
        }
    });
    let record = run(&plan(1), &server, 1);
    assert_all_failed(&record, 1, failure::PROTOCOL, "opened by nothing");
    assert_eq!(told.recv_timeout(PATIENCE), Ok((1, Heard::GoAway(PROTOCOL_ERROR))));
}

#[test]
fn a_server_that_goes_away_before_the_first_request_is_given_up() {
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[(MAX_CONCURRENT_STREAMS, 0)]) else { return };
        peer.goaway(0, 0);
        common::end_in_order(peer.stream());
    });
    let record = run(&plan(3), &server, 6);
    assert_all_failed(&record, 6, failure::CLOSED, "unread");
}

#[test]
fn only_a_connection_that_has_answered_before_is_forgiven_its_end() {
    for (answered, resent) in [(0, 0), (1, 3)] {
        let requests = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&requests);
        let server = Tiny::start(move |number, stream| {
            let Some(mut peer) = Peer::meet(stream, &[]) else { return };
            if number > 1 && answered > 0 {
                return answers(&mut peer);
            }
            for _ in 0..answered {
                let Some(id) = peer.request() else { return };
                peer.answer(id);
            }
            let Some(unanswered) = peer.requests(3) else { return };
            count.fetch_add(unanswered.len() as u64, Ordering::SeqCst);
        });
        let mut session = open(&plan(3), &server);
        let before = slot(&mut session, &ops(answered));
        assert_all_ok(&before, answered);
        let record = slot(&mut session, &ops(3));
        assert_eq!((record.tally.resent, record.tally.ok), (resent, resent), "{:?}", record.tally);
        assert_eq!(requests.load(Ordering::SeqCst), 3, "{}", sentence(&record));
    }
}

#[test]
fn a_stream_that_the_server_gives_up_fails_alone_with_its_bytes() {
    let server = Tiny::start(|_, stream| {
        let Some(mut peer) = Peer::meet(stream, &[]) else { return };
        while let Some(id) = peer.request() {
            if id % 4 == 1 {
                peer.head(id, 200);
                peer.data(id, &[b'x'; 1000]);
                peer.reset(id, INTERNAL_ERROR);
            } else {
                peer.answer(id);
            }
        }
    });
    let record = run(&plan(5), &server, 40);
    assert_eq!((record.tally.ok, failed(&record.tally, failure::RESET)), (20, 20), "{:?}", record.tally);
    assert!(sentence(&record).contains("INTERNAL_ERROR"), "{}", sentence(&record));
    assert_eq!((record.tally.connections, record.tally.resent), (1, 0));
    let bytes_in: u64 = record.series.intervals.iter().map(|interval| interval.bytes_in).sum();
    assert!(bytes_in > 20 * 1000, "{bytes_in}");
}

/// The same where the connection is encrypted: what is left of the server's records does not keep ours from leaving.
#[test]
fn over_tls_it_is_told_as_well() {
    let mut config = (*common::tls_config()).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let server = Tiny::start(move |_, mut stream| {
        let mut session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut both = rustls::Stream::new(&mut session, &mut stream);
        let mut preface = [0; 24];
        both.read_exact(&mut preface).unwrap();
        // SETTINGS without any, a window that is opened by nothing, and a PING that nobody answers any more.
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let update = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        both.write_all(&[&settings[..], &update, &ping].concat()).unwrap();
        let mut heard = Vec::new();
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = both.read(&mut piece) {
            heard.extend_from_slice(&piece[..count]);
        }
        tell.lock().unwrap().send(heard).unwrap();
    });
    let mut plan = plan(1);
    plan.tls.verify = false;
    let url = server.url("/").replace("http", "https");
    let factory = HttpFactory::prepare(&plan, &url, PATIENCE_NS).unwrap();
    let record = slot(&mut factory.session(1, 1, Arc::default()).unwrap(), &ops(1));
    assert_all_failed(&record, 1, failure::PROTOCOL, "opened by nothing");
    let heard = told.recv_timeout(PATIENCE).unwrap();
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, PROTOCOL_ERROR as u8];
    assert!(heard.ends_with(&goaway), "{heard:?}");
}
