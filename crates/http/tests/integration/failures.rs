//! Whatever a server does wrong: each op is counted once, under the right kind, in words that help.

use crate::common::{self, CLOSED, PATIENCE_NS, read_head};
use crate::common::{
    OK, PATIENCE, Tiny, assert_all_failed, assert_all_ok, failed, ops, order, plain, reset, run, run_order,
};
use duel_http::HttpFactory;
use duel_model::web::{failure, phase};
use duel_model::{FailureKind, HttpPlan, MILLISECOND_NS};
use duel_ruler::{Config, KeyKind, Kind, Ruler, Tls, TlsIdentity};
use std::io::Write;
use std::net::Shutdown;

fn plan() -> HttpPlan {
    let mut plan = HttpPlan::default();
    plan.tls.verify = false;
    plan
}

fn both(mut check: impl FnMut(&Ruler)) {
    check(&plain());
    check(&Ruler::start(Config::https(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))).unwrap());
}

/// Every request to this path fails in the same way, and the server knows of exactly as many.
fn fails(path: &str, kind: FailureKind, part: &str) {
    both(|ruler| {
        let record = run(&plan(), &ruler.url(path), 3, 20);
        assert_all_failed(&record, 20, kind, part);
        // No answer, no reuse: each op went over its own connection.
        assert_eq!((record.tally.connections, record.tally.reused), (20, 0));
        assert!(record.tally.service.is_empty(), "a failure is no latency");
        let truth = ruler.settled(PATIENCE);
        assert_eq!((truth.requests, truth.broken, truth.responses), (20, 20, 0));
        assert_eq!(truth.connections, 21);
    });
}

#[test]
fn no_answer() {
    fails("/early-close", failure::CLOSED, "without an answer");
    fails("/reset", failure::RESET, "reset");
}

#[test]
fn a_body_that_ends_too_early() {
    fails("/short-body", failure::SHORT_BODY, "ended after 500 bytes of 1000");
}

#[test]
fn what_breaks_the_protocol() {
    fails("/garbage", failure::PROTOCOL, "not HTTP/1.x");
    fails("/bad-chunk", failure::PROTOCOL, "chunk size");
    fails("/negative-length", failure::PROTOCOL, "Content-Length");
    fails("/two-lengths", failure::PROTOCOL, "contradict");
}

#[test]
fn cuts_within_a_response() {
    for (sent, kind, part) in [
        ("H", failure::SHORT_BODY, "within the response's head"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", failure::SHORT_BODY, "within the response's head"),
        ("HTTP/1.1 100 Continue\r\n\r\n", failure::SHORT_BODY, "within the response's head"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", failure::SHORT_BODY, "after 0 bytes of 5"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", failure::SHORT_BODY, "after 0 bytes without"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n",
            failure::SHORT_BODY,
            "after 4 bytes without its last chunk",
        ),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", failure::PROTOCOL, "switched protocols"),
        ("HTTP/2 200\r\n\r\n", failure::PROTOCOL, "not HTTP/1.x"),
    ] {
        let server = Tiny::start(move |_, mut stream| {
            read_head(&mut stream);
            let _ = stream.write_all(sent.as_bytes());
            common::end_in_order(&mut stream);
        });
        let record = run(&plan(), &server.url("/"), 2, 6);
        assert_all_failed(&record, 6, kind, part);
        assert_eq!(server.connections(), 6, "{sent:?}");
    }
}

#[test]
fn a_server_that_never_answers() {
    const LIMIT_NS: u64 = 150 * MILLISECOND_NS;
    both(|ruler| {
        let order = duel_load::SlotOrder { op_timeout_ns: LIMIT_NS, ..ops(9) };
        let record = run_order(&plan(), &ruler.url("/never"), 3, &order);
        assert_all_failed(&record, 9, failure::TIMEOUT, "no complete answer within 150 ms");
        assert_eq!(record.tally.connections, 9, "a connection that owes an answer is not used again");
        // The time waited is in the distribution, in full.
        assert_eq!(record.tally.response.count(), 9);
        assert!(record.tally.response.min_ns().unwrap() >= LIMIT_NS);
        // All of them waited for the first byte; nothing was received.
        let wait = &record.tally.phases[&phase::WAIT.id()];
        assert_eq!((wait.count(), record.tally.phases.get(&phase::RECEIVE.id())), (9, None));
        assert!(wait.quantile_ns(0.5).unwrap() >= LIMIT_NS / 2, "{wait:?}");
        let truth = ruler.settled(PATIENCE);
        assert_eq!((truth.requests_by_kind[&Kind::Never], truth.broken), (9, 9));
    });
}

#[test]
fn a_slow_answer_times_out_wherever_it_stands() {
    for path in ["/delay/5000000", "/drip/5/1000000", "/slow-head/500000", "/rate/10/100"] {
        let ruler = plain();
        let order = duel_load::SlotOrder { op_timeout_ns: 100 * MILLISECOND_NS, ..ops(4) };
        let record = run_order(&plan(), &ruler.url(path), 2, &order);
        assert_all_failed(&record, 4, failure::TIMEOUT, "no complete answer");
    }
}

#[test]
fn what_is_in_flight_at_the_end_is_counted() {
    let ruler = plain();
    let order =
        duel_load::SlotOrder { grace_ns: 50 * MILLISECOND_NS, ..order(CLOSED, Some(100 * MILLISECOND_NS), None) };
    let record = run_order(&plan(), &ruler.url("/never"), 5, &order);
    assert_eq!((record.tally.started, record.tally.in_flight), (5, 5));
    // Each began before the end, and was given up when the grace was over.
    assert!(record.tally.service.min_ns().unwrap() >= 50 * MILLISECOND_NS);
    assert_eq!(ruler.settled(PATIENCE).requests, 5);
}

#[test]
fn an_op_given_up_leaves_nothing_to_the_next_slot() {
    // The late answer to an abandoned request must not be taken for that of a later one.
    let ruler = plain();
    let mut session = common::open(&plan(), &ruler.url("/delay/200000"), 2, 1);
    let short = duel_load::SlotOrder { grace_ns: 0, ..order(CLOSED, Some(20 * MILLISECOND_NS), None) };
    let record = common::slot(&mut session, &short);
    assert_eq!((record.tally.started, record.tally.in_flight), (2, 2));
    let record = common::slot(&mut session, &ops(4));
    assert_all_ok(&record, 4);
    assert_eq!(record.tally.connections, 2);
    assert!(record.tally.service.min_ns().unwrap() >= 200 * MILLISECOND_NS);
}

#[test]
fn a_server_that_accepts_and_hangs_up() {
    let ruler = Ruler::start(Config { accept_then_close: true, ..Config::default() }).unwrap();
    let record = run(&plan(), &ruler.url("/"), 3, 60);
    let tally = &record.tally;
    // Whether it is an end or a reset depends on which side is quicker.
    assert_eq!(failed(tally, failure::CLOSED) + failed(tally, failure::RESET), 60, "{tally:?}");
    assert_eq!(tally.connections, 60);
    assert_eq!(ruler.truth().connections, 61);
}

#[test]
fn a_tls_server_that_accepts_and_hangs_up() {
    let identity = TlsIdentity::self_signed(KeyKind::P256).unwrap();
    let config = Config { accept_then_close: true, ..Config::https(Tls::new(identity)) };
    let ruler = Ruler::start(config).unwrap();
    let record = run(&plan(), &ruler.url("/"), 3, 30);
    let tally = &record.tally;
    assert_eq!(failed(tally, failure::TLS) + failed(tally, failure::RESET), 30, "{tally:?}");
}

#[test]
fn a_server_that_dies_in_the_middle() {
    both(|ruler| {
        let config = Config { refuse_after: Some(100), ..ruler.config().clone() };
        let ruler = Ruler::start(config).unwrap();
        let record = run(&plan(), &ruler.url("/size/5000"), 4, 300);
        let tally = &record.tally;
        let truth = ruler.stop();
        assert_eq!(tally.started, 300);
        // Answers that the dying server was still writing may have been lost, one on each connection at most.
        assert!(tally.ok <= 100 && tally.ok + 4 >= 100, "{tally:?}");
        assert!(tally.ok <= truth.responses);
        assert!(failed(tally, failure::REFUSED) > 0, "{tally:?}");
        assert_eq!(failed(tally, failure::PROTOCOL) + failed(tally, failure::TIMEOUT), 0, "{tally:?}");
    });
}

#[test]
fn a_reset_within_the_body() {
    let server = Tiny::start(|_, mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
        let _ = stream.flush();
        // The client has read so far, or has not: it is a reset either way.
        reset(&stream);
    });
    let record = run(&plan(), &server.url("/"), 2, 10);
    assert_all_failed(&record, 10, failure::RESET, "reset");
}

#[test]
fn an_answer_that_nobody_asked_for_is_not_taken_for_one() {
    // The server answers each request twice: the second answer must not become that of the next request.
    let server = Tiny::start(|_, mut stream| {
        while read_head(&mut stream).is_some() {
            let _ = stream.write_all(&[OK, OK].concat());
        }
    });
    let record = run(&plan(), &server.url("/"), 1, 6);
    assert_eq!((record.tally.ok, record.tally.connections, record.tally.surplus), (6, 6, 6), "{:?}", record.tally);
    // And if it comes while the connection is idle, that connection is not used again.
    let server = Tiny::start(|_, mut stream| {
        while read_head(&mut stream).is_some() {
            let _ = stream.write_all(OK);
            std::thread::sleep(std::time::Duration::from_millis(20));
            let _ = stream.write_all(OK);
        }
    });
    let think = order(duel_model::LoopKind::Closed { think_ns: 200 * MILLISECOND_NS }, None, Some(4));
    let record = run_order(&plan(), &server.url("/"), 1, &think);
    assert_eq!((record.tally.ok, record.tally.connections), (4, 4), "{:?}", record.tally);
    assert!((3..=4).contains(&record.tally.surplus), "the last one may come too late: {:?}", record.tally);
}

#[test]
fn nobody_listens() {
    let error = HttpFactory::prepare(&plan(), "http://127.0.0.1:1/", PATIENCE_NS).unwrap_err().to_string();
    assert!(error.contains("refused") && error.contains("127.0.0.1 port 1"), "{error}");
    let error = HttpFactory::prepare(&plan(), "http://no-such-host.invalid/", PATIENCE_NS).unwrap_err().to_string();
    assert!(error.starts_with("no such host: the name 'no-such-host.invalid'"), "{error}");
    // A server that is gone once the load begins.
    let ruler = plain();
    let mut session = common::open(&plan(), &ruler.url("/"), 3, 2);
    drop(ruler);
    let record = common::slot(&mut session, &ops(12));
    assert_all_failed(&record, 12, failure::REFUSED, "connection refused");
    assert_eq!(record.tally.connections, 0);
}

#[test]
fn a_listener_that_does_not_accept() {
    // Its queue is full: connecting does not end, and that is neither a refusal nor the op's timeout.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut session = common::open(&plan(), &url, 8, 1);
    let order = duel_load::SlotOrder {
        connect_timeout_ns: 150 * MILLISECOND_NS,
        op_timeout_ns: 400 * MILLISECOND_NS,
        ..ops(8)
    };
    let record = common::slot(&mut session, &order);
    let tally = &record.tally;
    let (connect, op) = (failed(tally, failure::CONNECT_TIMEOUT), failed(tally, failure::TIMEOUT));
    assert_eq!(connect + op, 8, "{tally:?}");
    assert_eq!(op, tally.connections, "who got into the queue waits for an answer");
    assert!(connect > 0 && tally.service.min_ns().unwrap() >= 150 * MILLISECOND_NS);
    // Who did not get in was still connecting when it was given up.
    let spent = &tally.phases[&phase::CONNECT.id()];
    assert_eq!((spent.count(), tally.phases[&phase::WAIT.id()].count()), (8, op), "{tally:?}");
    assert!(spent.max_ns().unwrap() >= 149 * MILLISECOND_NS, "{spent:?}");
    drop(session);
    drop(listener);
}

#[test]
fn a_handshake_that_does_not_end_is_a_connect_timeout() {
    let server = Tiny::start(|_, mut stream| {
        let mut rest = [0; 1024];
        while std::io::Read::read(&mut stream, &mut rest).is_ok_and(|count| count > 0) {}
    });
    let order = duel_load::SlotOrder { connect_timeout_ns: 100 * MILLISECOND_NS, ..ops(4) };
    let url = server.url("/").replace("http", "https");
    let record = run_order(&plan(), &url, 2, &order);
    assert_all_failed(&record, 4, failure::CONNECT_TIMEOUT, "no connection within 100 ms");
    assert_eq!(record.tally.phases[&phase::TLS.id()].count(), 4);
    assert_eq!(record.tally.phases.get(&phase::WAIT.id()), None);
}

#[test]
fn half_closed_by_the_server_is_still_an_answer() {
    let server = Tiny::start(|_, mut stream| {
        while read_head(&mut stream).is_some() {
            let _ = stream.write_all(OK);
            let _ = stream.shutdown(Shutdown::Write);
        }
    });
    let record = run(&plan(), &server.url("/"), 2, 20);
    assert_all_ok(&record, 20);
    assert_eq!(record.tally.connections, 20, "each connection carries one");
}
