//! Requests through a proxy: whole ones for plain HTTP, tunnels for TLS.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{PATIENCE, Tiny, assert_all_failed, assert_all_ok, no_keepalive, plain, read_head, read_request, run};
use duel_model::{FailureKind, HttpPlan, ProxyPlan, TlsPlan};
use duel_ruler::{Config, KeyKind, Ruler, Tls, TlsIdentity};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

fn through(proxy: &Tiny, plan: HttpPlan) -> HttpPlan {
    let proxy = Some(ProxyPlan { host: "127.0.0.1".into(), port: proxy.address().port() });
    HttpPlan { proxy, tls: TlsPlan { verify: false, ..TlsPlan::default() }, ..plan }
}

/// Copies what comes from one side to the other, until it ends.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A proxy that opens every tunnel, and answers in pieces.
fn tunnelling(asked: Arc<Mutex<Vec<String>>>) -> Tiny {
    Tiny::start(move |_, mut client| {
        let Some(head) = read_head(&mut client) else { return };
        let target = head.split(' ').nth(1).unwrap().to_owned();
        asked.lock().unwrap().push(head);
        let server = TcpStream::connect(target).unwrap();
        for piece in ["HTTP/1.1 200 Conn", "ection established\r\nX: y\r\n", "\r\n"] {
            client.write_all(piece.as_bytes()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let (back, forth) = ((server.try_clone().unwrap(), client.try_clone().unwrap()), (client, server));
        std::thread::spawn(move || copy(back.0, back.1));
        copy(forth.0, forth.1);
    })
}

#[test]
fn plain_requests_tell_the_proxy_where_they_are_to_go() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heard);
    let proxy = Tiny::start(move |_, mut stream| {
        while let Some((head, _)) = read_request(&mut stream) {
            notes.lock().unwrap().push(head);
            stream.write_all(common::OK).unwrap();
        }
    });
    // The name is for the proxy to look up: here it leads nowhere.
    let record = run(&through(&proxy, HttpPlan::default()), "http://nosuch.invalid:81/a?b=c", 2, 10);
    assert_all_ok(&record, 10);
    for head in heard.lock().unwrap().iter() {
        assert!(
            head.starts_with("GET http://nosuch.invalid:81/a?b=c HTTP/1.1\r\nHost: nosuch.invalid:81\r\n"),
            "{head}"
        );
    }
}

#[test]
fn tls_goes_through_a_tunnel_to_the_target() {
    let ruler = Ruler::start(Config::https(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))).unwrap();
    for (plan, connections) in [(HttpPlan::default(), 3), (no_keepalive(), 30)] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let proxy = tunnelling(Arc::clone(&asked));
        let record = run(&through(&proxy, plan), &ruler.url("/size/100000"), 3, 30);
        assert_all_ok(&record, 30);
        assert_eq!((record.tally.connections, record.tally.body_bytes), (connections, 3_000_000));
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len() as u64, connections);
        let expected = format!("CONNECT {} HTTP/1.1\r\nHost: {0}\r\n", ruler.addr());
        assert!(asked.iter().all(|head| head.starts_with(&expected)), "{asked:?}");
    }
    assert_eq!(ruler.settled(PATIENCE).responses, 60);
}

#[test]
fn a_proxy_that_leads_nowhere_says_so() {
    let target = plain().url("/").replace("http:", "https:");
    for (answer, kind, part) in [
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno\r\n",
            FailureKind::Unreachable,
            "refused a tunnel to the target (403)",
        ),
        ("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", FailureKind::Unreachable, "(407)"),
        ("", FailureKind::Unreachable, "closed the connection instead of opening a tunnel"),
        ("SSH-2.0-x\r\n", FailureKind::Protocol, "not HTTP"),
        ("HTTP/1.1 200 OK\r\n\r\nearly", FailureKind::Protocol, "more bytes"),
    ] {
        let proxy = Tiny::start(move |_, mut stream| {
            if read_head(&mut stream).is_some() {
                stream.write_all(answer.as_bytes()).unwrap();
                common::end_in_order(&mut stream);
            }
        });
        let record = run(&through(&proxy, HttpPlan::default()), &target, 1, 3);
        assert_all_failed(&record, 3, kind, part);
    }
}

#[test]
fn a_proxy_that_never_opens_the_tunnel_meets_the_connect_timeout() {
    let proxy = Tiny::start(|_, mut stream| {
        let _ = read_head(&mut stream);
        let _ = stream.read(&mut [0]);
    });
    let order = duel_load::SlotOrder { connect_timeout_ns: 100_000_000, ..common::ops(2) };
    let record = common::run_order(&through(&proxy, HttpPlan::default()), "https://127.0.0.1:1/", 2, &order);
    assert_all_failed(&record, 2, FailureKind::ConnectTimeout, "no connection within");
}
