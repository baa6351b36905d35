//! Requests through a proxy: whole ones for plain HTTP, tunnels for TLS.

use crate::common::{
    self, PATIENCE, Tiny, assert_all_failed, assert_all_ok, no_keepalive, plain, read_head, read_request, run,
};
use duel_model::web::failure;
use duel_model::{HttpPlan, ProxyPlan, TlsPlan};
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
            failure::UNREACHABLE,
            "does not allow tunnels to 127.0.0.1:",
        ),
        ("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", failure::UNREACHABLE, "wants a user"),
        ("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", failure::UNREACHABLE, "cannot reach 127.0.0.1:"),
        ("HTTP/1.1 302 Found\r\nLocation: http://evil/\r\n\r\n", failure::UNREACHABLE, "refused a tunnel"),
        ("", failure::UNREACHABLE, "closed the connection instead of opening a tunnel"),
        ("HTTP/1.1 2", failure::UNREACHABLE, "closed the connection instead of opening a tunnel"),
        ("SSH-2.0-x\r\n", failure::PROTOCOL, "not HTTP"),
        ("HTTP/1.1 200 OK\r\n\r\nearly", failure::PROTOCOL, "more bytes"),
    ] {
        let proxy = Tiny::start(move |_, mut stream| {
            if read_head(&mut stream).is_some() {
                stream.write_all(answer.as_bytes()).unwrap();
                common::end_in_order(&mut stream);
            }
        });
        let record = run(&through(&proxy, HttpPlan::default()), &target, 1, 3);
        assert_all_failed(&record, 3, kind, part);
        let named = format!("the proxy {}", proxy.address());
        assert!(common::sentence(&record).starts_with(&named), "{}", common::sentence(&record));
    }
    // It answers without an end.
    let proxy = Tiny::start(|_, mut stream| {
        if read_head(&mut stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
            while stream
                .write_all(b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
                .is_ok()
            {}
        }
    });
    let record = run(&through(&proxy, HttpPlan::default()), &target, 1, 2);
    assert_all_failed(&record, 2, failure::PROTOCOL, "gave no usable answer");
}

#[test]
fn a_proxy_that_is_not_there_is_told_from_the_target() {
    let proxy = Tiny::start(|_, _| {});
    let plan = through(&proxy, HttpPlan::default());
    drop(proxy);
    let said = |plan: &HttpPlan| {
        duel_http::HttpFactory::prepare(plan, "http://h/", common::PATIENCE_NS).unwrap_err().to_string()
    };
    assert!(said(&plan).contains("cannot connect to the proxy 127.0.0.1 port"), "{}", said(&plan));
    let proxy = Some(ProxyPlan { host: "nosuch.invalid".into(), port: 1 });
    let said = said(&HttpPlan { proxy, ..HttpPlan::default() });
    assert!(said.contains("no such proxy: the name 'nosuch.invalid'"), "{said}");
}

#[test]
fn credentials_for_the_proxy_go_to_the_proxy_and_no_further() {
    let credentials = ("proxy-authorization".to_owned(), "Basic eDp5".to_owned());
    let with_credentials =
        |keepalive| HttpPlan { headers: vec![credentials.clone()], keepalive, ..HttpPlan::default() };
    let ruler = Ruler::start(Config::https(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let proxy = tunnelling(Arc::clone(&asked));
    let record = run(&through(&proxy, with_credentials(false)), &ruler.url("/header-echo"), 1, 3);
    assert_all_ok(&record, 3);
    assert!(asked.lock().unwrap().iter().all(|head| head.contains("\r\nProxy-Authorization: Basic eDp5\r\n")));
    let bare = run(&through(&proxy, no_keepalive()), &ruler.url("/header-echo"), 1, 3);
    assert_eq!(record.tally.body_bytes, bare.tally.body_bytes, "the target saw the same head");

    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heard);
    let proxy = Tiny::start(move |_, mut stream| {
        while let Some((head, _)) = read_request(&mut stream) {
            notes.lock().unwrap().push(head);
            stream.write_all(common::OK).unwrap();
        }
    });
    assert_all_ok(&run(&through(&proxy, with_credentials(true)), "http://nosuch.invalid/", 1, 2), 2);
    assert!(heard.lock().unwrap().iter().all(|head| head.contains("\r\nproxy-authorization: Basic eDp5\r\n")));
}

#[test]
fn a_proxy_that_never_opens_the_tunnel_meets_the_connect_timeout() {
    let proxy = Tiny::start(|_, mut stream| {
        let _ = read_head(&mut stream);
        let _ = stream.read(&mut [0]);
    });
    let order = duel_load::SlotOrder { connect_timeout_ns: 100_000_000, ..common::ops(2) };
    let record = common::run_order(&through(&proxy, HttpPlan::default()), "https://127.0.0.1:1/", 2, &order);
    assert_all_failed(&record, 2, failure::CONNECT_TIMEOUT, "no connection within");
}
