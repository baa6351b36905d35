//! Where connections go to and come from: local addresses, addresses of names, and the header that tells both.

use crate::common::{self, PATIENCE_NS, Tiny, answer, assert_all_ok, no_keepalive, read_head, read_request, run};
use duel_http::HttpFactory;
use duel_load::{Session, WorkloadFactory};
use duel_model::{AddressChoice, HttpPlan, IpFamily, ProxyProtocol, ReachPlan, TlsPlan, web};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Uses = Arc<Mutex<BTreeMap<(IpAddr, IpAddr), u64>>>;

/// A server at every address of this machine that counts connections by the address they come from and go to.
fn counting() -> (Tiny, Uses) {
    let uses = Uses::default();
    let notes = Arc::clone(&uses);
    let server = Tiny::start_at("0.0.0.0:0", move |_, mut stream| {
        let ends = (stream.peer_addr().unwrap().ip(), stream.local_addr().unwrap().ip());
        let mut requests = 0;
        while answer(&mut stream) {
            requests += 1;
            if requests == 1 {
                *notes.lock().unwrap().entry(ends).or_default() += 1;
            }
        }
    });
    (server, uses)
}

fn reaching(reach: ReachPlan) -> HttpPlan {
    HttpPlan { reach, ..no_keepalive() }
}

fn from(sources: &str) -> ReachPlan {
    ReachPlan { sources: sources.split(',').map(|range| range.parse().unwrap()).collect(), ..ReachPlan::default() }
}

/// A name that leads to these addresses.
fn named(port: u16, addresses: &str, choice: AddressChoice) -> ReachPlan {
    let rule = format!("duel.invalid:{port}:{addresses}").parse().unwrap();
    ReachPlan { overrides: vec![rule], addresses: choice, ..ReachPlan::default() }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Which thread makes how many of the requests is chance, and so would be a part of each share.
fn run_on_one_thread(plan: &HttpPlan, url: &str, connections: u32, count: u64) -> duel_load::SlotRecord {
    common::slot(&mut common::open(plan, url, connections, 1), &common::ops(count))
}

#[track_caller]
fn refused(plan: &HttpPlan, url: &str) -> String {
    HttpFactory::prepare(plan, url, PATIENCE_NS).unwrap_err().to_string()
}

#[test]
fn local_addresses_take_equal_shares_of_the_connections() {
    let (server, uses) = counting();
    let url = format!("http://127.0.0.1:{}/", server.address().port());
    let plan = reaching(from("127.0.0.2-127.0.0.4,127.0.0.9"));
    assert_all_ok(&run_on_one_thread(&plan, &url, 4, 40), 40);
    let expected =
        ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.9"].map(|source| ((ip(source), ip("127.0.0.1")), 10));
    assert_eq!(*uses.lock().unwrap(), BTreeMap::from(expected));
    // Kept connections are spread, too, over all threads.
    uses.lock().unwrap().clear();
    assert_all_ok(&run(&HttpPlan { keepalive: true, ..plan }, &url, 8, 4_000), 4_000);
    assert_eq!(*uses.lock().unwrap(), BTreeMap::from(expected.map(|(ends, _)| (ends, 2))));
}

#[test]
fn local_ports_are_counted_for_each_pair_of_addresses() {
    let (server, _) = counting();
    let url = format!("http://duel.invalid:{}/", server.address().port());
    let mut reach = named(server.address().port(), "127.0.0.1,127.0.0.2,127.0.0.3", AddressChoice::All);
    let ports = |reach: &ReachPlan| {
        let factory = HttpFactory::prepare(&reaching(reach.clone()), &url, PATIENCE_NS).unwrap();
        let pairs = factory.address_pairs();
        let mut session = Session::open(factory, 1, 1, Arc::default()).unwrap();
        (pairs, common::slot(&mut session, &common::ops(1)).audit.local_ports)
    };
    let (one, three) = (ports(&ReachPlan { addresses: AddressChoice::First, ..reach.clone() }), ports(&reach));
    reach.sources = from("127.0.0.1-127.0.0.4").sources;
    let twelve = ports(&reach);
    assert_eq!((one.0, three.0, twelve.0), (1, 3, 12));
    assert_eq!((three.1, twelve.1), (one.1.map(|ports| 3 * ports), one.1.map(|ports| 12 * ports)));
}

#[test]
fn local_addresses_that_cannot_be_used_are_told_before_any_load() {
    let (server, _) = counting();
    let url = format!("http://127.0.0.1:{}/", server.address().port());
    let said = refused(&reaching(from("127.0.0.2,192.0.2.7")), &url);
    assert!(said.contains("192.0.2.7 is not on this machine"), "{said}");
    if TcpListener::bind("[::1]:0").is_ok() {
        let said = refused(&reaching(from("::1")), &url);
        assert!(said.contains("IPv4 addresses only") && said.contains("--source gives IPv6"), "{said}");
    }
}

#[test]
fn all_addresses_of_a_name_take_turns() {
    let (server, uses) = counting();
    let port = server.address().port();
    let url = format!("http://duel.invalid:{port}/");
    let plan = reaching(named(port, "127.0.0.3,127.0.0.1,127.0.0.2", AddressChoice::All));
    let record = run_on_one_thread(&plan, &url, 3, 30);
    assert_all_ok(&record, 30);
    // The server counts once it has answered.
    let is_counted = || uses.lock().unwrap().values().sum::<u64>() == 30;
    let patience = Instant::now();
    while !is_counted() && patience.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let seen: Vec<(IpAddr, u64)> = uses.lock().unwrap().iter().map(|((_, to), times)| (*to, *times)).collect();
    assert_eq!(seen, ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|to| (ip(to), 10)));
    // In an order of their own: a name server may give another one each time.
    let peers = format!("127.0.0.1:{port}, 127.0.0.2:{port}, 127.0.0.3:{port}");
    assert_eq!(record.negotiated.unwrap().text(web::PEER), Some(&*peers));
}

#[test]
fn what_a_dead_address_does_depends_on_the_choice() {
    // Only 127.0.0.2 answers on this port.
    let server = Tiny::start_at("127.0.0.2:0", |_, mut stream| while answer(&mut stream) {});
    let port = server.address().port();
    let url = format!("http://duel.invalid:{port}/");
    let peer = Some(&*format!("127.0.0.2:{port}"));
    for choice in [AddressChoice::Answering, AddressChoice::Race, AddressChoice::All] {
        let record = run(&reaching(named(port, "127.0.0.77,127.0.0.2", choice)), &url, 2, 6);
        assert_all_ok(&record, 6);
        let negotiated = record.negotiated.unwrap();
        assert_eq!(negotiated.text(web::PEER), peer);
        assert_eq!(negotiated.list(web::DEAD_ADDRESSES), [format!("127.0.0.77:{port}: connection refused")]);
    }
    let said = refused(&reaching(named(port, "127.0.0.77,127.0.0.2", AddressChoice::First)), &url);
    assert!(said.contains("cannot connect") && said.contains("127.0.0.77") && !said.contains("127.0.0.2:"), "{said}");
    let record = run(&reaching(named(port, "127.0.0.2,127.0.0.77", AddressChoice::First)), &url, 1, 2);
    assert_eq!(record.negotiated.unwrap().list(web::DEAD_ADDRESSES), Vec::<String>::new(), "others were not tried");
    for choice in [AddressChoice::All, AddressChoice::Race] {
        let said = refused(&reaching(named(port, "127.0.0.77,127.0.0.78", choice)), &url);
        assert!(said.contains("127.0.0.77") && said.contains("127.0.0.78"), "{said}");
    }
}

#[test]
fn in_a_race_who_is_silent_loses_and_is_not_waited_for() {
    // Its queue is full: to who comes next it says nothing, as a host that is not there.
    let silent = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let server = Tiny::start_at("127.0.0.2:0", |_, mut stream| while answer(&mut stream) {});
    let port = server.address().port();
    let address: SocketAddr = format!("127.0.0.66:{port}").parse().unwrap();
    silent.bind(&address.into()).unwrap();
    silent.listen(0).unwrap();
    let _waiting: Vec<_> = (0..3)
        .map(|_| {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            let _ = socket.connect_timeout(&address.into(), std::time::Duration::from_millis(100));
            socket
        })
        .collect();
    // Had it been waited for, nobody would have answered within this.
    let plan = reaching(named(port, "127.0.0.66,127.0.0.2", AddressChoice::Race));
    let before = std::time::Instant::now();
    let factory = HttpFactory::prepare(&plan, &format!("http://duel.invalid:{port}/"), 3_600_000_000_000).unwrap();
    assert!(before.elapsed() >= std::time::Duration::from_millis(250), "the first had its time");
    let mut session = Session::open(factory, 1, 1, Arc::default()).unwrap();
    let negotiated = common::slot(&mut session, &common::ops(2)).negotiated.unwrap();
    assert_eq!(negotiated.text(web::PEER), Some(&*format!("127.0.0.2:{port}")));
    assert_eq!(
        negotiated.list(web::DEAD_ADDRESSES),
        Vec::<String>::new(),
        "silent for a quarter of a second is not dead"
    );
}

#[test]
fn the_other_family_of_a_name_is_told_where_it_may_be_used() {
    let (server, _) = counting();
    let port = server.address().port();
    let url = format!("http://duel.invalid:{port}/");
    let other = |reach: ReachPlan| {
        let record = run(&reaching(reach), &url, 1, 2);
        record.negotiated.unwrap().text(web::OTHER_FAMILY).map(str::to_owned)
    };
    let answering = |addresses: &str| named(port, addresses, AddressChoice::Answering);
    let ipv6 = Some(format!("[::2]:{port}"));
    assert_eq!(other(answering("127.0.0.1,127.0.0.2,[::2],[::1]")), ipv6, "the first of them, answering or not");
    assert_eq!(other(answering("127.0.0.1,127.0.0.2")), None);
    // It was tried, and nobody listens there.
    assert_eq!(other(answering("[::2],127.0.0.1")), None);
    assert_eq!(other(answering("[::2],127.0.0.1,[::1]")), Some(format!("[::1]:{port}")));
    let only = ReachPlan { family: Some(IpFamily::V4), ..answering("127.0.0.1,[::2]") };
    assert_eq!(other(only), None, "the plan wants no other");
    // That a name has no other is told only of what was looked up, and of which the plan wants no part.
    let family = |url: &str, reach: ReachPlan| {
        let record = run(&reaching(reach), url, 1, 2);
        record.negotiated.unwrap().text(web::ONLY_FAMILY).map(str::to_owned)
    };
    assert_eq!(family(&url, answering("127.0.0.1,127.0.0.2")), None);
    assert_eq!(family(&format!("http://127.0.0.1:{port}/"), ReachPlan::default()), None);
    let localhost = format!("http://localhost:{port}/");
    let is_of_one = |addresses: &[SocketAddr]| addresses.iter().all(SocketAddr::is_ipv4);
    let found: Vec<SocketAddr> = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", port)).unwrap().collect();
    let expected = is_of_one(&found).then(|| "IPv4".to_owned());
    assert_eq!(family(&localhost, ReachPlan::default()), expected, "{found:?}");
    let wanted = ReachPlan { family: Some(IpFamily::V4), ..ReachPlan::default() };
    assert_eq!(family(&localhost, wanted), None);
}

#[test]
fn a_family_can_be_asked_for() {
    let (server, _) = counting();
    let port = server.address().port();
    let url = format!("http://duel.invalid:{port}/");
    let of = |family, addresses: &str| {
        reaching(ReachPlan { family: Some(family), ..named(port, addresses, AddressChoice::First) })
    };
    let record = run(&of(IpFamily::V4, "[::1],127.0.0.1"), &url, 1, 2);
    assert_eq!(record.negotiated.unwrap().text(web::PEER), Some(&*format!("127.0.0.1:{port}")));
    let said = refused(&of(IpFamily::V6, "127.0.0.1"), &url);
    assert!(said.contains("'duel.invalid' has no IPv6 address"), "{said}");
}

/// What a server got before the request, on each connection, with that connection's real ends: the client's first.
fn prefaces(version: ProxyProtocol, scheme: &str) -> Vec<(Vec<u8>, SocketAddr, SocketAddr)> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heard);
    let is_tls = scheme == "https";
    let server = Tiny::start(move |_, mut stream| {
        let mut preface = Vec::new();
        let mut byte = [0];
        let ends = |preface: &[u8]| match version {
            ProxyProtocol::V1 => preface.ends_with(b"\r\n"),
            ProxyProtocol::V2 => preface.len() == 28,
        };
        while !ends(&preface) {
            stream.read_exact(&mut byte).unwrap();
            preface.push(byte[0]);
        }
        notes.lock().unwrap().push((preface, stream.peer_addr().unwrap(), stream.local_addr().unwrap()));
        if is_tls {
            // A TLS handshake (RFC 8446, 5.1) follows.
            stream.read_exact(&mut byte).unwrap();
            assert_eq!(byte, [22]);
        } else {
            while answer(&mut stream) {}
        }
    });
    let url = server.url("/").replace("http:", &format!("{scheme}:"));
    let reach = ReachPlan { proxy_protocol: Some(version), ..from("127.0.0.2") };
    let plan = HttpPlan { reach, tls: TlsPlan { verify: false, ..TlsPlan::default() }, ..HttpPlan::default() };
    let record = run(&plan, &url, 2, 6);
    if !is_tls {
        assert_all_ok(&record, 6);
        assert_eq!(record.tally.connections, 2, "the header is sent once for each connection");
    }
    drop(server);
    let heard = heard.lock().unwrap().clone();
    assert!(heard.len() >= 2);
    heard
}

#[test]
fn connections_begin_with_who_they_are() {
    for scheme in ["http", "https"] {
        for (line, own, peer) in prefaces(ProxyProtocol::V1, scheme) {
            let expected = format!("PROXY TCP4 127.0.0.2 127.0.0.1 {} {}\r\n", own.port(), peer.port());
            assert_eq!((String::from_utf8(line).unwrap(), own.ip()), (expected, ip("127.0.0.2")));
        }
        for (bytes, own, peer) in prefaces(ProxyProtocol::V2, scheme) {
            assert_eq!(bytes[..12], *b"\r\n\r\n\0\r\nQUIT\n");
            assert_eq!(bytes[12..24], [0x21, 0x11, 0, 12, 127, 0, 0, 2, 127, 0, 0, 1]);
            assert_eq!(bytes[24..], [own.port().to_be_bytes(), peer.port().to_be_bytes()].concat());
        }
    }
}

#[test]
fn on_a_unix_socket_there_are_no_addresses_to_tell() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for (version, header) in [
        (ProxyProtocol::V1, b"PROXY UNKNOWN\r\n".to_vec()),
        (ProxyProtocol::V2, [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[0x20, 0, 0, 0]].concat()),
    ] {
        let path = folder.join(format!("duel-reach-{}-{}.sock", std::process::id(), version.name()));
        let _ = std::fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let expected = header.clone();
        let serving = std::thread::spawn(move || {
            // The first connection looks whether somebody is there.
            listener.accept().unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut header = vec![0; expected.len()];
            stream.read_exact(&mut header).unwrap();
            let (head, _) = read_request(&mut stream).unwrap();
            stream.write_all(common::OK).unwrap();
            let _ = read_head(&mut stream);
            (header, head)
        });
        let reach = ReachPlan { proxy_protocol: Some(version), ..ReachPlan::default() };
        let plan = HttpPlan { unix_socket: Some(path.clone()), reach, ..HttpPlan::default() };
        assert_all_ok(&run(&plan, "http://h/", 1, 1), 1);
        let (got, head) = serving.join().unwrap();
        assert!(got == header && head.starts_with("GET / HTTP/1.1\r\n"), "{got:?} {head}");
        let _ = std::fs::remove_file(&path);
    }
}
