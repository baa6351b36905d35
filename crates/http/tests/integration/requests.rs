//! What is sent: every byte of a body, plain and over TLS, also when the server does not want all of it.

use crate::common::{
    self, PATIENCE, Tiny, assert_agrees, assert_all_failed, assert_all_ok, plain, read_head, run, tls_config,
};
use duel_model::web::{failure, phase};
use duel_model::{Body, HttpPlan, RequestsPlan};
use duel_ruler::{Config, KeyKind, Ruler, Tls, TlsIdentity, payload};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const BIG: usize = 5_000_003;

fn file_of(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("duel-work-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn post(body: Body) -> HttpPlan {
    let mut plan = HttpPlan { method: "POST".into(), body, ..HttpPlan::default() };
    plan.tls.verify = false;
    plan
}

/// Reads requests and compares their bodies byte for byte; answers 200, or 422 for one that is not as it should be.
fn verify_bodies(stream: &mut (impl Read + Write), expected: &[u8]) {
    while let Some((_, body)) = common::read_request(stream) {
        let status = if body == expected { "200 OK" } else { "422 Wrong" };
        let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    }
}

#[test]
fn bodies_arrive_byte_for_byte() {
    let big = payload(0, BIG);
    for (body, expected, count) in [
        (Body::None, Vec::new(), 20),
        (Body::Text("a=1&b=2\r\n\r\n".into()), b"a=1&b=2\r\n\r\n".to_vec(), 20),
        (Body::Text(String::from_utf8(payload(0, 70_000)).unwrap()), payload(0, 70_000), 20),
        (Body::File(file_of("big", &big)), big.clone(), 4),
    ] {
        let expected = Arc::new(expected);
        // The same bytes go out whether they are the one request's or those of one among many.
        for cookies in [false, true] {
            let requests = RequestsPlan { cookies, ..RequestsPlan::default() };
            let plan = HttpPlan { requests, ..post(body.clone()) };
            let verified = Arc::clone(&expected);
            let server = Tiny::start(move |_, mut stream| verify_bodies(&mut stream, &verified));
            let record = run(&plan, &server.url("/"), 2, count);
            assert_all_ok(&record, count);
            assert_eq!((record.tally.connections, record.tally.phases[&phase::SEND.id()].count()), (2, count));
            let (verified, config) = (Arc::clone(&expected), tls_config());
            let server = Tiny::start(move |_, stream| {
                let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                verify_bodies(&mut rustls::StreamOwned::new(session, stream), &verified);
            });
            let record = run(&plan, &server.url("/").replace("http", "https"), 2, count);
            assert_all_ok(&record, count);
            assert!(record.tally.bytes_out > count * expected.len() as u64);
        }
    }
}

#[test]
fn big_bodies_to_a_server_that_counts_them() {
    let plan = post(Body::File(file_of("counted", &payload(0, BIG))));
    for tls in [None, Some(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))] {
        for keepalive in [true, false] {
            let ruler = Ruler::start(Config { tls: tls.clone(), ..Config::default() }).unwrap();
            let plan = HttpPlan { keepalive, ..plan.clone() };
            let record = run(&plan, &ruler.url("/header-echo"), 2, 6);
            assert_all_ok(&record, 6);
            // The body of the answer is the head of the request, and that is all that was sent besides the body.
            let heads = record.tally.body_bytes;
            assert!(record.tally.bytes_out >= 6 * BIG as u64 + heads);
            if tls.is_none() {
                assert_eq!(record.tally.bytes_out, 6 * BIG as u64 + heads);
            }
            assert_agrees(&ruler, &record);
        }
    }
}

/// Answers as soon as the head is there, while the body is still being sent.
fn early(answer: &'static [u8], then: fn(&mut std::net::TcpStream)) -> Tiny {
    Tiny::start(move |_, mut stream| {
        if read_head(&mut stream).is_some() {
            let _ = stream.write_all(answer);
            then(&mut stream);
        }
    })
}

const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig\n";
const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn an_answer_before_the_body_is_sent_counts() {
    let plan = post(Body::File(file_of("early", &payload(0, BIG))));
    // The server reads nothing more and closes in order when the client does.
    let server = early(TOO_LARGE, common::end_in_order);
    let record = run(&plan, &server.url("/"), 2, 6);
    assert_all_failed(&record, 6, failure::STATUS, "413");
    assert_eq!((record.tally.connections, record.tally.body_bytes), (6, 24));
    // A connection over which half a request has gone is not used again, whatever the answer says. The kernel cannot
    // hold all of this body, and the server stays long enough for an answer to be read before the reset.
    let plan = post(Body::File(file_of("half", &payload(0, 4 * BIG))));
    let server = early(FINE, |_| std::thread::sleep(Duration::from_millis(200)));
    let record = run(&plan, &server.url("/"), 2, 6);
    assert_all_ok(&record, 6);
    assert_eq!((record.tally.connections, record.tally.reused), (6, 0));
}

#[test]
#[cfg(target_os = "linux")]
fn an_answer_counts_also_if_the_server_hangs_up_on_the_body() {
    let plan = post(Body::File(file_of("hang-up", &payload(0, BIG))));
    // Closing with unread bytes is a reset, which meets the sender; the answer before it still waits to be read.
    let server = early(TOO_LARGE, |_| ());
    let record = run(&plan, &server.url("/"), 2, 20);
    assert_all_failed(&record, 20, failure::STATUS, "413");
    assert_eq!(record.tally.connections, 20);
    // Without an answer it is a reset, and a POST is not sent again.
    let server = early(b"", |_| ());
    let record = run(&plan, &server.url("/"), 2, 20);
    assert_all_failed(&record, 20, failure::RESET, "reset");
    assert_eq!(server.connections(), 20);
}

/// Over TLS the last of the request may be encrypted and not yet sent when the answer comes: the connection is then
/// spent, and must not wake the loop for ever by being writable.
#[test]
fn an_early_answer_over_tls_leaves_nothing_behind() {
    let config = tls_config();
    // A Unix socket holds some 200 kB, on which the sizes close in from both sides: with some of them exactly the last
    // batch of records blocks.
    let sizes: Vec<usize> = (3..20).map(|step| step * 16_384).collect();
    std::thread::scope(|scope| {
        for size in sizes {
            let config = Arc::clone(&config);
            scope.spawn(move || answered_early_over_tls(config, size));
        }
    });
}

fn answered_early_over_tls(config: Arc<rustls::ServerConfig>, size: usize) {
    let path = file_of(&format!("early-{size}.sock"), b"");
    std::fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let session = rustls::ServerConnection::new(config).unwrap();
                let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
                stream.sock.set_read_timeout(Some(PATIENCE)).unwrap();
                while read_head(&mut stream).is_some() {
                    let _ = stream.write_all(FINE);
                    std::thread::sleep(Duration::from_millis(100));
                    let _ = stream.read_exact(&mut vec![0; size]);
                }
            });
        }
    });
    let mut plan = post(Body::Text(String::from_utf8(payload(0, size)).unwrap()));
    plan.unix_socket = Some(path);
    let mut session = common::open(&plan, "https://localhost/", 1, 1);
    for _ in 0..3 {
        let record = common::slot(&mut session, &common::ops(1));
        assert_eq!((record.tally.ok, record.tally.started), (1, 1), "{size}: {:?}", record.tally);
        // Now the server reads what is left, and there is room to write again.
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn bodies_that_cannot_be_sent() {
    let url = plain().url("/");
    for (body, part) in [
        (Body::File("/nowhere/at/all".into()), "cannot read the request body from /nowhere/at/all"),
        (Body::File(file_of("empty", b"")), "is empty"),
    ] {
        let error = duel_http::HttpFactory::prepare(&post(body), &url, common::PATIENCE_NS).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_request_is_what_was_planned() {
    let ruler = plain();
    let plan = HttpPlan {
        method: "POST".into(),
        headers: vec![("X-Duel".into(), "1".into()), ("user-agent".into(), "other".into())],
        body: Body::Text("hello".into()),
        host: Some("elsewhere.example".into()),
        accept_encoding: None,
        range_bytes: Some(10),
        ..HttpPlan::default()
    };
    let record = run(&plan, &ruler.url("/header-echo?q=1"), 1, 3);
    assert_all_ok(&record, 3);
    let head = "POST /header-echo?q=1 HTTP/1.1\r\nHost: elsewhere.example\r\nAccept: */*\r\nRange: bytes=0-9\r\n\
                Content-Length: 5\r\nX-Duel: 1\r\nuser-agent: other\r\n\r\n";
    assert_eq!(record.tally.body_bytes, 3 * head.len() as u64);
    assert_eq!(record.tally.bytes_out, 3 * (head.len() as u64 + 5));
    assert_eq!(ruler.settled(PATIENCE).requests, 3);
}
