//! Answers whose time is told: never early, and the truth says what it was. How late is the machine's affair.

use crate::common;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::common::{connect, get, plain, read_one, settled};
use duel_ruler::{Config, Handicap, Kind, Ruler, payload};

/// What both the client and the server measured for the last request, which must be at least `told`.
fn never_early(ruler: &Ruler, path: &str, told: Duration) -> common::Answer {
    let asked = Instant::now();
    let answer = get(ruler.addr(), path);
    let seen = asked.elapsed();
    let truth = settled(ruler);
    let last = truth.served.last().unwrap();
    assert!(seen >= told, "{path}: the client had it after {seen:?}");
    assert!(last.service >= told, "{path}: the server says {:?}", last.service);
    assert!(last.service <= seen, "{path}: the client cannot have it in less time than the server took");
    assert!(last.arrived >= asked);
    answer
}

#[test]
fn delay() {
    let ruler = plain();
    for micros in [0, 1, 50, 61, 1000, 30_000, 90_000] {
        let answer = never_early(&ruler, &format!("/delay/{micros}"), Duration::from_micros(micros));
        assert_eq!(answer.body.len(), 612);
    }
    assert_eq!(settled(&ruler).served.len(), 7);
}

#[test]
fn burn() {
    let ruler = plain();
    never_early(&ruler, "/burn/3000", Duration::from_micros(3000));
    assert_eq!(settled(&ruler).burnt, Duration::from_micros(3000));
}

#[test]
fn drip() {
    let ruler = plain();
    let answer = never_early(&ruler, "/drip/20/500", Duration::from_millis(10));
    assert_eq!(answer.body, payload(0, 20));

    // One at a time: no byte comes before its time.
    let mut stream = connect(ruler.addr());
    let asked = Instant::now();
    stream.write_all(b"GET /drip/5/4000 HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    let mut body = 0;
    loop {
        let read = stream.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..read]);
        if let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") {
            body = all.len() - end - 4;
            assert!(asked.elapsed() >= Duration::from_millis(4) * body as u32);
        }
    }
    assert_eq!(body, 5);
}

#[test]
fn slow_head() {
    let ruler = plain();
    let head = get(ruler.addr(), "/slow-head/0").head;
    let answer = never_early(&ruler, "/slow-head/200", Duration::from_micros(200) * head.len() as u32);
    assert_eq!((answer.head, answer.body.as_slice()), (head, b"slow\n".as_slice()));
}

#[test]
fn rate() {
    let ruler = plain();
    let answer = never_early(&ruler, "/rate/1000000/50001", Duration::from_micros(50_001));
    assert!(answer.body == payload(0, 50_001));
    never_early(&ruler, "/rate/100/3", Duration::from_millis(30));
    never_early(&ruler, "/rate/1000000000/5000000", Duration::from_millis(5));
}

#[test]
fn one_stall_for_the_whole_server() {
    const CLIENTS: usize = 6;
    const EACH: usize = 20;
    const AFTER: usize = 61;
    const LENGTH: Duration = Duration::from_millis(150);
    let ruler = plain();
    let addr = ruler.addr();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            std::thread::spawn(move || {
                let mut stream = connect(addr);
                for _ in 0..EACH {
                    stream.write_all(b"GET /stall-once/150/61 HTTP/1.1\r\n\r\n").unwrap();
                    assert_eq!(read_one(&mut stream).status, 200);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());

    let truth = settled(&ruler);
    assert_eq!(truth.responses_by_kind[&Kind::StallOnce], (CLIENTS * EACH) as u64);
    let [stall] = truth.stalls[..] else { panic!("one stall, not {:?}", truth.stalls) };
    assert_eq!(stall.ended - stall.began, LENGTH);
    assert!(stall.held >= 1 && stall.held <= CLIENTS as u64, "a client waits for one answer at a time: {stall:?}");

    // Nobody who came during the stall was answered before its end; those before it, and behind it, were not held.
    let held: Vec<_> = truth
        .served
        .iter()
        .filter(|one| one.arrived + one.service >= stall.ended && one.arrived < stall.ended)
        .collect();
    assert!(held.len() as u64 >= stall.held);
    let longest = truth.served.iter().map(|one| one.service).max().unwrap();
    assert!(longest >= LENGTH, "the request that began it waited for all of it");
    let came_within = truth.served.iter().filter(|one| one.arrived > stall.began && one.arrived < stall.ended);
    for one in came_within {
        assert!(one.arrived + one.service >= stall.ended, "{one:?} slipped through {stall:?}");
    }
    let before = truth.served.iter().filter(|one| one.arrived + one.service < stall.began).count();
    assert!(before < AFTER, "{before}");

    // Once: the same path is quick for ever after, and no second stall is on record.
    assert_eq!(get(addr, "/stall-once/150/61").status, 200);
    assert_eq!(settled(&ruler).stalls.len(), 1);
    // Another path is another stall.
    assert_eq!(get(addr, "/stall-once/5/1").status, 200);
    assert_eq!(settled(&ruler).stalls.len(), 2);
}

#[test]
fn handicaps() {
    let handicap = Handicap {
        burn_per_request: Duration::from_micros(500),
        burn_per_kib: Duration::from_micros(2),
        sleep_per_request: Duration::from_millis(3),
        ..Handicap::default()
    };
    let ruler = Ruler::start(Config { handicap, ..Config::default() }).unwrap();
    never_early(&ruler, "/", Duration::from_micros(3500));
    assert_eq!(settled(&ruler).burnt, Duration::from_micros(500));
    let answer = never_early(&ruler, "/size/1048576", Duration::from_micros(3500 + 2048));
    assert!(answer.body == payload(0, 1_048_576));
    assert_eq!(settled(&ruler).burnt, Duration::from_micros(500 + 500 + 2048));
}

#[test]
fn an_end_does_not_wait_for_what_is_slow() {
    let ruler = plain();
    let mut streams = Vec::new();
    for path in ["/delay/3600000000", "/burn/3600000000", "/drip/10/3600000000", "/never", "/rate/1/100000", "/"] {
        let mut stream = connect(ruler.addr());
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        streams.push(stream);
    }
    while ruler.truth().requests < 6 || ruler.truth().responses < 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let truth = ruler.stop();
    assert_eq!((truth.connections_open, truth.in_flight), (0, 0));
    assert_eq!((truth.responses, truth.broken, truth.abandoned), (1, 1, 4));
    for mut stream in streams {
        // Closed or reset, but no longer held.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}
