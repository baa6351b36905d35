//! Redirects that each request follows itself: nothing is lost on the way, and nothing goes where it does not belong.

use crate::common::{self, PATIENCE, PATIENCE_NS, Tiny, no_keepalive, ops, plain, read_request};
use duel_http::{FollowingFactory, HttpFactory};
use duel_load::{OpRecord, Session, SlotOrder, SlotRecord};
use duel_model::web::{failure, phase};
use duel_model::{Body, HttpPlan, SECOND_NS, web};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn following(plan: &HttpPlan) -> HttpPlan {
    HttpPlan { max_redirects: 10, follows_each: true, ..plan.clone() }
}

/// One slot, with a record of each op.
fn load(plan: &HttpPlan, url: &str, connections: u32, order: &SlotOrder) -> (SlotRecord, Vec<OpRecord>) {
    let target = HttpFactory::prepare(plan, url, PATIENCE_NS).unwrap();
    let factory = FollowingFactory::new(target, plan, url, PATIENCE_NS).unwrap();
    let mut session = Session::open(factory, connections, 2, Arc::default()).unwrap();
    let records = session.log_ops();
    let slot = session.run_slot(order, &mut |_| ControlFlow::Continue(())).unwrap();
    let records: Vec<OpRecord> = records.try_iter().flatten().collect();
    let tally = &slot.tally;
    assert_eq!(tally.started, tally.ok + tally.failed_total() + tally.in_flight);
    assert_eq!(records.len() as u64, tally.ok + tally.failed_total(), "one record for each op that ended");
    for record in &records {
        let parts = phase::ALL.iter().copied().filter(|&phase| phase != phase::DNS);
        let parts_ns: u64 = parts.filter_map(|phase| record.phases.get(phase)).sum();
        assert!(parts_ns <= record.end_ns - record.start_ns, "{record:?}");
        assert!(record.due_ns <= record.start_ns && record.response_ns() >= parts_ns, "{record:?}");
    }
    (slot, records)
}

fn answer(stream: &mut impl Write, status: &str, location: &str) -> bool {
    let location = if location.is_empty() { String::new() } else { format!("Location: {location}\r\n") };
    stream.write_all(format!("HTTP/1.1 {status}\r\n{location}Content-Length: 2\r\n\r\nok").as_bytes()).is_ok()
}

/// Heads and bodies of requests.
type Heard = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A server that notes what it was asked and redirects everything but `/end`.
fn redirecting(status: &'static str, location: String) -> (Tiny, Heard) {
    redirecting_at("127.0.0.1:0", status, location)
}

fn redirecting_at(address: &str, status: &'static str, location: String) -> (Tiny, Heard) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heard);
    let server = Tiny::start_at(address, move |_, mut stream| {
        while let Some((head, body)) = read_request(&mut stream) {
            let is_end = head.split(' ').nth(1) == Some("/end");
            notes.lock().unwrap().push((head, body));
            if !(if is_end { answer(&mut stream, "200 OK", "") } else { answer(&mut stream, status, &location) }) {
                return;
            }
        }
    });
    (server, heard)
}

#[test]
fn each_request_follows_over_the_connection_it_has() {
    let ruler = plain();
    let url = ruler.url("/redirect/redirect/size/1000");
    let (slot, records) = load(&following(&HttpPlan::default()), &url, 4, &ops(40));
    assert_eq!((slot.tally.ok, slot.tally.connections), (40, 4), "{:?}", slot.tally.failure_examples);
    assert_eq!(slot.tally.statuses, BTreeMap::from([(200, 40)]), "an op has one status");
    assert_eq!(slot.tally.reused, 36, "once for each op that did not begin with a new connection");
    assert!(records.iter().all(|record| record.status == Some(200) && record.body_bytes == 1000));
    let truth = ruler.settled(PATIENCE);
    assert_eq!(truth.responses_by_status, BTreeMap::from([(200, 40), (302, 80)]));
    assert_eq!(truth.connections, 5, "and the one that found the address");
}

#[test]
fn without_keepalive_each_stop_has_its_own_connection() {
    let ruler = plain();
    let (slot, records) = load(&following(&no_keepalive()), &ruler.url("/redirect/size/5"), 3, &ops(12));
    assert_eq!((slot.tally.ok, slot.tally.connections), (12, 24));
    assert!(records.iter().all(|record| record.phases.get(phase::CONNECT).is_some()));
    assert_eq!(ruler.settled(PATIENCE).responses_by_status, BTreeMap::from([(200, 12), (302, 12)]));
}

#[test]
fn what_is_no_redirect_is_an_ordinary_response() {
    let ruler = plain();
    for (path, status) in [("/size/7", 200), ("/status/304", 304), ("/status/404", 404)] {
        let plan = HttpPlan { accepts_any_status: true, ..following(&HttpPlan::default()) };
        let (slot, records) = load(&plan, &ruler.url(path), 2, &ops(6));
        assert_eq!(slot.tally.ok, 6);
        assert!(records.iter().all(|record| record.status == Some(status)), "{path}");
    }
}

#[test]
fn endless_redirects_come_to_an_end() {
    let (server, heard) = redirecting("302 Found", "/again".into());
    let (slot, records) = load(&following(&HttpPlan::default()), &server.url("/"), 1, &ops(2));
    assert_eq!(slot.tally.failed, BTreeMap::from([(failure::PROTOCOL.id(), 2)]));
    assert_eq!(slot.tally.failure_examples, ["stopped after 10 redirects"]);
    assert!(records.iter().all(|record| record.status.is_none() && record.failure.is_some()));
    assert_eq!(heard.lock().unwrap().len(), 22, "the request and ten redirects, twice");
}

#[test]
fn redirects_that_each_lead_elsewhere_are_followed() {
    let next = AtomicUsize::new(0);
    let server = Tiny::start(move |_, mut stream| {
        while let Some((head, _)) = read_request(&mut stream) {
            let is_start = head.starts_with("GET / ");
            let token = next.fetch_add(1, Ordering::SeqCst);
            if !(if is_start {
                answer(&mut stream, "307 Go", &format!("/t{token}?a#b"))
            } else {
                answer(&mut stream, "200 OK", "")
            }) {
                return;
            }
        }
    });
    let (slot, _) = load(&following(&HttpPlan::default()), &server.url("/"), 2, &ops(300));
    assert_eq!((slot.tally.ok, slot.tally.connections), (300, 2), "{:?}", slot.tally.failure_examples);
}

#[test]
fn another_host_gets_connections_of_its_own_and_no_credentials() {
    let (there, heard_there) = redirecting("200 OK", String::new());
    // Where the name has one address, nobody connects before the load: this is the connection that is left alone.
    drop(std::net::TcpStream::connect(there.address()).unwrap());
    // The same address by another name is another host.
    let location = format!("http://localhost:{}/end", there.address().port());
    let (here, heard_here) = redirecting("302 Found", location);
    let plan = HttpPlan {
        headers: [("Authorization", "secret"), ("Cookie", "secret"), ("X-Kept", "1")]
            .map(|(a, b)| (a.into(), b.into()))
            .into(),
        host: Some("given.example".into()),
        ..following(&HttpPlan::default())
    };
    let (slot, _) = load(&plan, &here.url("/"), 2, &ops(20));
    assert_eq!(slot.tally.ok, 20, "{:?}", slot.tally.failure_examples);
    assert_eq!(here.connections(), 2);
    let shown = slot.negotiated.as_ref().unwrap();
    assert_eq!(
        (shown.text(web::PEER), shown.count(web::STATUS)),
        (Some(&*here.address().to_string()), Some(200)),
        "the target's connection"
    );
    assert!(
        heard_here.lock().unwrap().iter().all(|(head, _)| head.contains("secret") && head.contains("given.example"))
    );
    let heard = heard_there.lock().unwrap();
    assert_eq!(heard.len(), 20);
    for (head, _) in heard.iter() {
        assert!(head.starts_with("GET /end ") && head.contains("X-Kept: 1\r\n"), "{head}");
        assert!(!head.contains("secret") && head.contains("Host: localhost:"), "{head}");
    }
}

#[test]
fn a_form_becomes_a_get_where_the_server_says_see_other() {
    for (status, method, body) in
        [("303 See Other", "GET", ""), ("307 Temporary", "POST", "a=1"), ("302 Found", "GET", "")]
    {
        let (server, heard) = redirecting(status, "/end".into());
        let plan = HttpPlan {
            method: "POST".into(),
            body: Body::Text("a=1".into()),
            headers: vec![("Content-Type".into(), "x/y".into())],
            ..following(&HttpPlan::default())
        };
        let (slot, _) = load(&plan, &server.url("/"), 1, &ops(3));
        assert_eq!(slot.tally.ok, 3, "{:?}", slot.tally.failure_examples);
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 6);
        for (head, got) in heard.iter().skip(1).step_by(2) {
            assert!(head.starts_with(&format!("{method} /end ")), "{head}");
            assert_eq!(got, body.as_bytes());
            assert_eq!(head.contains("x/y"), !body.is_empty(), "{head}");
        }
    }
}

#[test]
fn a_redirect_to_nowhere_says_so() {
    for (location, part) in [
        ("http://", "leads nowhere"),
        ("ftp://127.0.0.1/", "not http"),
        ("http://user:password@127.0.0.1/", "password"),
        ("http://127.0.0.1:0/", "port is 0"),
        ("http://nosuch.invalid/", "nosuch.invalid"),
        ("http://127.0.0.1:1/\x1b[2J", "refused"),
    ] {
        let (server, _) = redirecting("302 Found", location.into());
        let (slot, _) = load(&following(&HttpPlan::default()), &server.url("/"), 1, &ops(2));
        assert_eq!(slot.tally.failed_total(), 2);
        let said = &slot.tally.failure_examples[0];
        assert!(said.contains(part) && !said.contains('\x1b'), "{location}: {said}");
    }
}

#[test]
fn a_trip_that_takes_too_long_is_given_up_wherever_it_is() {
    let never = plain();
    let (server, _) = redirecting("302 Found", never.url("/never"));
    let order = SlotOrder { op_timeout_ns: SECOND_NS / 10, ..ops(4) };
    let (slot, records) = load(&following(&HttpPlan::default()), &server.url("/"), 2, &order);
    assert_eq!(slot.tally.failed, BTreeMap::from([(failure::TIMEOUT.id(), 4)]));
    assert!(records.iter().all(|record| record.response_ns() >= SECOND_NS / 10));
    // What was left behind does not reach the next slot: its connections are new.
    assert!(slot.tally.connections >= 6, "{}", slot.tally.connections);
}

/// The first answer comes late, and leads to a server that accepts connections and says nothing.
#[test]
fn a_connection_that_a_redirect_asks_for_has_its_own_time_to_be_made() {
    let (late_ns, limit_ns) = (6 * SECOND_NS / 10, 2 * SECOND_NS / 10);
    let silent = Tiny::start(|_, mut stream| {
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    drop(std::net::TcpStream::connect(silent.address()).unwrap());
    let location = format!("https://{}/", silent.address());
    let late = Tiny::start(move |_, mut stream| {
        while read_request(&mut stream).is_some() {
            std::thread::sleep(std::time::Duration::from_nanos(late_ns));
            if !answer(&mut stream, "302 Found", &location) {
                return;
            }
        }
    });
    let order = SlotOrder { connect_timeout_ns: limit_ns, ..ops(2) };
    let (slot, records) = load(&following(&HttpPlan::default()), &late.url("/"), 2, &order);
    assert_eq!(slot.tally.failed, BTreeMap::from([(failure::CONNECT_TIMEOUT.id(), 2)]));
    assert!(records.iter().all(|record| record.end_ns - record.start_ns >= late_ns + limit_ns), "{records:?}");
}

#[test]
fn a_response_to_head_has_no_body_wherever_a_redirect_led() {
    let there = Tiny::start(|_, mut stream| {
        while read_request(&mut stream).is_some_and(|(head, _)| head.starts_with("HEAD ")) {
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n").is_err() {
                return;
            }
        }
    });
    drop(std::net::TcpStream::connect(there.address()).unwrap());
    let location = format!("http://localhost:{}/", there.address().port());
    let here = Tiny::start(move |_, mut stream| {
        while read_request(&mut stream).is_some() {
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 9\r\n\r\n");
            if stream.write_all(head.as_bytes()).is_err() {
                return;
            }
        }
    });
    for cookies in [false, true] {
        let mut plan = HttpPlan { method: "HEAD".into(), ..following(&HttpPlan::default()) };
        plan.requests.cookies = cookies;
        let (slot, _) = load(&plan, &here.url("/"), 1, &ops(3));
        assert_eq!(slot.tally.ok, 3, "cookies {cookies}: {:?}", slot.tally.failure_examples);
    }
}

/// A port at which 127.0.0.2 neither accepts connections nor refuses them; as long as what is answered beside it lives.
fn silent_port() -> (u16, impl Sized) {
    let silent = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    rustix::net::listen(&silent, 0).unwrap();
    let address = silent.local_addr().unwrap();
    // Until nobody else gets into its queue.
    let mut queued = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_millis(100)) {
        queued.push(stream);
    }
    (address.port(), (silent, queued))
}

/// The first of two addresses does not accept connections, and does not refuse them.
#[test]
fn an_address_that_is_silent_does_not_hold_up_the_load() {
    let (port, _silent) = silent_port();
    let (there, heard) = redirecting_at(&format!("127.0.0.1:{port}"), "200 OK", String::new());
    drop(std::net::TcpStream::connect(there.address()).unwrap());
    let (here, _) = redirecting("302 Found", format!("http://two.example:{port}/end"));
    let mut plan = following(&HttpPlan::default());
    plan.reach.overrides = vec![format!("two.example:{port}:127.0.0.2,127.0.0.1").parse().unwrap()];
    let (slot, _) = load(&plan, &here.url("/"), 2, &ops(6));
    assert_eq!((slot.tally.ok, heard.lock().unwrap().len()), (6, 6), "{:?}", slot.tally.failure_examples);
    // Waiting for it would have taken the connect timeout.
    let longest_ns = slot.tally.response.max_ns().unwrap();
    assert!(longest_ns < PATIENCE_NS / 2, "{longest_ns} ns");
}

/// One worker, and one op of many that is led to a host whose addresses have to be tried, both of which are silent.
#[test]
fn while_one_op_waits_to_know_where_to_go_the_others_go_on() {
    let (port, _silent) = silent_port();
    let location = format!("http://two.example:{port}/");
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let here = Tiny::start(move |_, mut stream| {
        while read_request(&mut stream).is_some() {
            let leads_away = is_first.swap(false, Ordering::SeqCst);
            let (status, location) = if leads_away { ("302 Found", location.as_str()) } else { ("200 OK", "") };
            if !answer(&mut stream, status, location) {
                return;
            }
        }
    });
    let mut plan = following(&HttpPlan::default());
    plan.reach.overrides = vec![format!("two.example:{port}:127.0.0.2,127.0.0.2").parse().unwrap()];
    let target = HttpFactory::prepare(&plan, &here.url("/"), PATIENCE_NS).unwrap();
    let factory = FollowingFactory::new(target, &plan, &here.url("/"), PATIENCE_NS).unwrap();
    let mut session = Session::open(factory, 2, 1, Arc::default()).unwrap();
    let records = session.log_ops();
    let order = SlotOrder {
        duration_ns: Some(SECOND_NS / 2),
        connect_timeout_ns: SECOND_NS / 4,
        ..common::order(common::CLOSED, None, None)
    };
    let slot = session.run_slot(&order, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(slot.tally.failed, BTreeMap::from([(failure::CONNECT_TIMEOUT.id(), 1)]), "{:?}", slot.tally);
    let records: Vec<OpRecord> = records.try_iter().flatten().collect();
    let led_away = records.iter().find(|record| record.failure.is_some()).unwrap();
    let looked_ns = led_away.phases.get(phase::DNS).expect("it was waiting to know where to go");
    assert!(looked_ns >= SECOND_NS / 4 && led_away.phases.get(phase::WAIT).is_some(), "{led_away:?}");
    let since_ns = led_away.end_ns - looked_ns;
    let beside = records.iter().filter(|record| record.start_ns > since_ns && record.end_ns < led_away.end_ns).count();
    assert!(beside > 10, "{beside} ops beside it");
}

/// One rule of where redirects may lead, wherever that is: to the target itself as well.
#[test]
fn a_redirect_to_the_target_itself_may_not_bring_a_password_either() {
    for userinfo in ["user:password@", "user@", ":password@"] {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let server = Tiny::start(move |_, mut stream| {
            while let Some((head, _)) = read_request(&mut stream) {
                counted.fetch_add(1, Ordering::SeqCst);
                let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap();
                if !answer(&mut stream, "302 Found", &format!("http://{userinfo}{host}/end")) {
                    return;
                }
            }
        });
        let (slot, _) = load(&following(&HttpPlan::default()), &server.url("/"), 1, &ops(2));
        assert_eq!(slot.tally.failed, BTreeMap::from([(failure::PROTOCOL.id(), 2)]), "{userinfo}");
        assert!(slot.tally.failure_examples[0].contains("leads nowhere"), "{:?}", slot.tally.failure_examples);
        assert_eq!(asked.load(Ordering::SeqCst), 2, "nothing was sent there");
    }
}

#[test]
fn a_location_in_bytes_that_are_no_text_is_followed_as_bytes() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&heard);
    let server = Tiny::start(move |_, mut stream| {
        while let Some((head, _)) = read_request(&mut stream) {
            let is_start = head.starts_with("GET / ");
            notes.lock().unwrap().push(head);
            let response: &[u8] = if is_start {
                b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9?x=\xff\r\nContent-Length: 0\r\n\r\n"
            } else {
                b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            };
            if stream.write_all(response).is_err() {
                return;
            }
        }
    });
    let (slot, _) = load(&following(&HttpPlan::default()), &server.url("/"), 1, &ops(2));
    assert_eq!(slot.tally.ok, 2, "{:?}", slot.tally.failure_examples);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.iter().filter(|head| head.starts_with("GET /caf%E9?x=%FF ")).count(), 2, "{heard:?}");
}
