//! Connections: kept, closed, replaced, and made elsewhere than the address says.

use crate::common::{
    self, PATIENCE, Tiny, answer, assert_agrees, assert_all_failed, assert_all_ok, failed, no_keepalive, ops,
};
use crate::common::{open, plain, read_head, run, slot};
use duel_http::HttpFactory;
use duel_model::web::{failure, phase};
use duel_model::{ConnectTo, HttpPlan, MILLISECOND_NS, web};
use duel_ruler::{Config, KeyKind, Listen, Ruler, Tls, TlsIdentity};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::channel;

fn with_method(method: &str) -> HttpPlan {
    HttpPlan { method: method.into(), ..HttpPlan::default() }
}

#[test]
fn kept_connections_carry_all_slots() {
    let ruler = plain();
    let mut session = open(&HttpPlan::default(), &ruler.url("/"), 5, 2);
    let first = slot(&mut session, &ops(40));
    assert_all_ok(&first, 40);
    assert_eq!((first.tally.connections, first.tally.reused), (5, 35));
    assert_eq!(first.tally.phases[&phase::CONNECT.id()].count(), 5);
    for _ in 0..3 {
        let record = slot(&mut session, &ops(40));
        assert_all_ok(&record, 40);
        assert_eq!((record.tally.connections, record.tally.reused), (0, 40));
        assert!(!record.tally.phases.contains_key(&phase::CONNECT.id()));
    }
    let truth = ruler.settled(PATIENCE);
    assert_eq!((truth.requests, truth.connections), (160, 6));
    // That of `prepare` may not have been seen to close yet.
    assert!((5..=6).contains(&truth.connections_open));
}

#[test]
fn one_connection_for_each_request() {
    let ruler = plain();
    let mut session = open(&no_keepalive(), &ruler.url("/"), 5, 2);
    for _ in 0..2 {
        let record = slot(&mut session, &ops(40));
        assert_all_ok(&record, 40);
        assert_eq!((record.tally.connections, record.tally.reused), (40, 0));
        assert_eq!(record.tally.phases[&phase::CONNECT.id()].count(), 40);
    }
    assert_eq!(ruler.settled(PATIENCE).connections, 81);
}

#[test]
fn a_server_that_closes_each_connection() {
    for method in ["GET", "POST"] {
        let ruler = Ruler::start(Config { keepalive: false, ..Config::default() }).unwrap();
        let record = run(&with_method(method), &ruler.url("/"), 5, 100);
        assert_all_ok(&record, 100);
        assert_eq!((record.tally.connections, record.tally.reused), (100, 0));
        assert_agrees(&ruler, &record);
        assert_eq!(record.negotiated.unwrap().is(web::KEEPS_ALIVE), Some(false));
    }
}

#[test]
fn http_1_0_servers_close_or_say_that_they_do_not() {
    for (field, connections) in [("", 10), ("Connection: keep-alive\r\n", 1)] {
        let server = Tiny::start(move |_, mut stream| {
            while read_head(&mut stream).is_some() {
                let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n{field}Content-Length: 2\r\n\r\nok").as_bytes());
                if field.is_empty() {
                    return common::end_in_order(&mut stream);
                }
            }
        });
        let record = run(&HttpPlan::default(), &server.url("/"), 1, 10);
        assert_all_ok(&record, 10);
        assert_eq!((record.tally.connections, server.connections()), (connections, connections));
        assert_eq!(record.negotiated.unwrap().text(web::HTTP_VERSION), Some("HTTP/1.0"));
    }
}

#[test]
fn a_connection_closed_between_slots_is_replaced_without_a_failure() {
    for (method, by_reset) in [("GET", false), ("POST", false), ("GET", true), ("POST", true)] {
        let (close, to_close) = channel::<()>();
        let (closed, is_closed) = channel();
        let (to_close, closed) = (Mutex::new(to_close), Mutex::new(closed));
        let server = Tiny::start(move |number, mut stream| {
            for _ in 0..3 {
                answer(&mut stream);
            }
            if number == 1 {
                let _ = to_close.lock().unwrap().recv();
                if by_reset {
                    common::reset(&stream);
                }
                drop(stream);
                closed.lock().unwrap().send(()).unwrap();
            } else {
                answer(&mut stream);
            }
        });
        let mut session = open(&with_method(method), &server.url("/"), 1, 1);
        let record = slot(&mut session, &ops(3));
        assert_all_ok(&record, 3);
        assert_eq!((record.tally.connections, record.tally.reused), (1, 2));
        close.send(()).unwrap();
        is_closed.recv_timeout(PATIENCE).unwrap();
        let record = slot(&mut session, &ops(3));
        assert_all_ok(&record, 3);
        assert_eq!((record.tally.connections, record.tally.reused), (1, 2), "{method} {by_reset}");
        assert_eq!(server.connections(), 2);
    }
}

#[test]
fn a_connection_closed_within_a_slot_while_idle_is_replaced_without_a_failure() {
    for method in ["GET", "POST"] {
        let server = Tiny::start(|_, mut stream| {
            answer(&mut stream);
        });
        let think = duel_model::LoopKind::Closed { think_ns: 250 * MILLISECOND_NS };
        let record = common::run_order(&with_method(method), &server.url("/"), 2, &common::order(think, None, Some(8)));
        assert_all_ok(&record, 8);
        assert_eq!((record.tally.connections, record.tally.reused), (8, 0));
    }
}

/// On each connection the first request is answered, and the end or reset comes exactly when the second is there.
fn closes_at_the_second_request(by_reset: bool) -> Tiny {
    Tiny::start(move |_, mut stream| {
        answer(&mut stream);
        common::read_request(&mut stream);
        if by_reset {
            common::reset(&stream);
        }
    })
}

#[test]
fn a_request_that_met_the_end_of_its_connection_is_sent_once_more_if_that_does_no_harm() {
    for by_reset in [false, true] {
        for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
            let server = closes_at_the_second_request(by_reset);
            let record = run(&with_method(method), &server.url("/"), 1, 10);
            assert_all_ok(&record, 10);
            // Each op but the first met an end and went over a new connection after all.
            assert_eq!((record.tally.connections, record.tally.reused), (10, 0), "{method}");
            assert_eq!(server.connections(), 10);
        }
        for method in ["POST", "PATCH"] {
            let server = closes_at_the_second_request(by_reset);
            let record = run(&with_method(method), &server.url("/"), 1, 10);
            let kind = if by_reset { failure::RESET } else { failure::CLOSED };
            assert_eq!((record.tally.ok, failed(&record.tally, kind)), (5, 5), "{:?}", record.tally);
            assert_eq!((record.tally.connections, record.tally.reused), (5, 5));
        }
    }
}

#[test]
fn it_is_sent_once_more_and_no_oftener() {
    let server = Tiny::start(|number, mut stream| {
        if number == 1 {
            answer(&mut stream);
        }
        read_head(&mut stream);
    });
    let record = run(&HttpPlan::default(), &server.url("/"), 1, 2);
    assert_eq!((record.tally.ok, failed(&record.tally, failure::CLOSED)), (1, 1));
    assert_eq!(server.connections(), 2);
    // An answer that has begun is not asked for again.
    let server = Tiny::start(|_, mut stream| {
        answer(&mut stream);
        read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
    });
    let record = run(&HttpPlan::default(), &server.url("/"), 1, 4);
    assert_eq!((record.tally.ok, failed(&record.tally, failure::SHORT_BODY)), (2, 2), "{:?}", record.tally);
    assert_eq!(server.connections(), 2);
}

#[test]
fn unix_sockets() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("duel-work-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let ruler = Ruler::start(Config { listen: Listen::Unix(path.clone()), ..Config::default() }).unwrap();
    for keepalive in [true, false] {
        let plan = HttpPlan { unix_socket: Some(path.clone()), keepalive, ..HttpPlan::default() };
        let before = ruler.settled(PATIENCE);
        // The address says what to ask for, not where.
        let record = run(&plan, "http://localhost:1/size/100000", 4, 40);
        assert_all_ok(&record, 40);
        assert_eq!(record.tally.body_bytes, 4_000_000);
        assert_eq!(record.tally.connections, if keepalive { 4 } else { 40 });
        let truth = ruler.settled(PATIENCE);
        assert_eq!(truth.responses - before.responses, 40);
        assert_eq!(record.negotiated.unwrap().text(web::PEER).unwrap(), path.to_string_lossy());
    }
    let plan = HttpPlan { unix_socket: Some(path.clone()), ..HttpPlan::default() };
    let mut session = open(&plan, "http://localhost/", 2, 1);
    drop(ruler);
    let record = slot(&mut session, &ops(4));
    assert_all_failed(&record, 4, failure::REFUSED, "refused");
    let error = HttpFactory::prepare(&plan, "http://localhost/", common::PATIENCE_NS).unwrap_err().to_string();
    assert!(error.contains("cannot connect to the Unix socket"), "{error}");
    let plan = HttpPlan { unix_socket: Some("x".repeat(500).into()), ..HttpPlan::default() };
    let error = HttpFactory::prepare(&plan, "http://localhost/", common::PATIENCE_NS).unwrap_err().to_string();
    assert!(error.contains("cannot be a Unix socket"), "{error}");
}

#[test]
fn ipv6() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback address");
        return;
    }
    let listen = Listen::Tcp("[::1]:0".parse().unwrap());
    let identity = TlsIdentity::self_signed(KeyKind::P256).unwrap();
    for tls in [None, Some(Tls::new(identity))] {
        let ruler = Ruler::start(Config { listen: listen.clone(), tls, ..Config::default() }).unwrap();
        let mut plan = HttpPlan::default();
        plan.tls.verify = false;
        assert!(ruler.url("/").contains("://[::1]:"), "{}", ruler.url("/"));
        let record = run(&plan, &ruler.url("/"), 2, 10);
        assert_all_ok(&record, 10);
        assert_agrees(&ruler, &record);
        assert!(record.negotiated.unwrap().text(web::PEER).unwrap().starts_with("[::1]:"));
    }
}

#[test]
fn connecting_elsewhere() {
    let ruler = plain();
    let plan = HttpPlan {
        connect_to: vec![ConnectTo {
            host: "duel.invalid".into(),
            port: Some(80),
            to_host: "127.0.0.1".into(),
            to_port: Some(ruler.addr().port()),
        }],
        ..HttpPlan::default()
    };
    let record = run(&plan, "http://duel.invalid/header-echo", 1, 2);
    assert_all_ok(&record, 2);
    // The request still names the host that was asked for.
    let head = "GET /header-echo HTTP/1.1\r\nHost: duel.invalid\r\nUser-Agent: duel/0.1.0\r\nAccept: */*\r\n\
                Accept-Encoding: gzip\r\n\r\n";
    assert_eq!(record.tally.body_bytes, 2 * head.len() as u64);
    assert_eq!(record.tally.bytes_out, 2 * head.len() as u64);
    assert_agrees(&ruler, &record);
}

#[test]
fn a_name_is_looked_up_once_and_its_time_is_told_once() {
    let server = Tiny::start(|_, mut stream| while answer(&mut stream) {});
    let url = format!("http://localhost:{}/", server.address().port());
    let record = run(&HttpPlan::default(), &url, 4, 40);
    assert_all_ok(&record, 40);
    assert_eq!(record.tally.phases[&phase::DNS.id()].count(), 1);
    assert_eq!(record.tally.body_bytes, 80);
}
