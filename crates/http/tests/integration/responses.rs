//! Responses of every shape: counted to the byte, and as the server itself counted them.

use crate::common::{self, assert_agrees, assert_all_failed, assert_all_ok, failed, no_keepalive, plain, run};
use duel_model::web::failure;
use duel_model::{HttpPlan, web};
use duel_ruler::{Config, FILE_LEN, KeyKind, PAGE, Ruler, Tls, TlsIdentity};

fn insecure(keepalive: bool) -> HttpPlan {
    let mut plan = HttpPlan { keepalive, ..HttpPlan::default() };
    plan.tls.verify = false;
    plan
}

/// Plain and over TLS, with kept connections and without.
fn four_ways(mut check: impl FnMut(&Ruler, &HttpPlan)) {
    let identity = TlsIdentity::self_signed(KeyKind::P256).unwrap();
    for keepalive in [true, false] {
        check(&plain(), &insecure(keepalive));
        check(&Ruler::start(Config::https(Tls::new(identity.clone()))).unwrap(), &insecure(keepalive));
    }
}

/// Each path on a server of its own, so that its truth is that of this load alone.
fn sizes_are_exact(path: &str, bytes: u64, ops: u64) {
    four_ways(|ruler, plan| {
        let record = run(plan, &ruler.url(path), 3, ops);
        assert_all_ok(&record, ops);
        assert_eq!(record.tally.body_bytes, bytes * ops, "{path}");
        assert_eq!(record.tally.statuses, [(200, ops)].into());
        assert_eq!(record.tally.connections, if plan.keepalive { 3 } else { ops });
        assert_agrees(ruler, &record);
        let negotiated = record.negotiated.unwrap();
        assert_eq!((negotiated.count(web::STATUS), negotiated.count(web::BODY_BYTES)), (Some(200), Some(bytes)));
        assert_eq!(negotiated.is(web::KEEPS_ALIVE), plan.keepalive.then_some(true));
        assert_eq!(negotiated.text(web::SERVER), Some("duel-ruler"));
    });
}

#[test]
fn empty_and_small_bodies() {
    sizes_are_exact("/size/0", 0, 30);
    sizes_are_exact("/size/1", 1, 30);
    sizes_are_exact("/", PAGE.len() as u64, 30);
}

#[test]
fn large_bodies() {
    sizes_are_exact("/size/100000", 100_000, 30);
    sizes_are_exact("/file", FILE_LEN, 6);
}

#[test]
fn sizes_around_those_of_buffers_and_records() {
    let ruler = plain();
    let https = Ruler::start(Config::https(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))).unwrap();
    for edge in [16_384, 65_536, 131_072, 262_144] {
        for size in edge - 90..edge - 70 {
            // The head takes some 80 bytes: one of these fills a buffer to its last byte.
            for server in [&ruler, &https] {
                let record = run(&insecure(true), &server.url(&format!("/size/{size}")), 1, 2);
                assert_all_ok(&record, 2);
                assert_eq!(record.tally.body_bytes, 2 * size);
            }
        }
    }
}

#[test]
fn chunked_bodies_with_extensions_and_a_trailer() {
    sizes_are_exact("/chunked/0", 0, 10);
    sizes_are_exact("/chunked/16384", 16_384, 10);
    sizes_are_exact("/chunked/100000", 100_000, 10);
}

#[test]
fn a_body_that_ends_with_its_connection() {
    four_ways(|ruler, plan| {
        let record = run(plan, &ruler.url("/until-close/50000"), 2, 10);
        assert_all_ok(&record, 10);
        assert_eq!((record.tally.body_bytes, record.tally.connections, record.tally.reused), (500_000, 10, 0));
        assert_agrees(ruler, &record);
        assert_eq!(record.negotiated.unwrap().is(web::KEEPS_ALIVE), plan.keepalive.then_some(false));
    });
}

#[test]
fn what_has_no_body() {
    four_ways(|ruler, plan| {
        let head = HttpPlan { method: "HEAD".into(), ..plan.clone() };
        let record = run(&head, &ruler.url("/size/1000"), 2, 10);
        assert_all_ok(&record, 10);
        assert_eq!(record.tally.body_bytes, 0);
        assert_agrees(ruler, &record);
    });
    for (path, method) in
        [("/status/204", "GET"), ("/status/304", "GET"), ("/status/205", "GET"), ("/chunked/9", "HEAD")]
    {
        let ruler = plain();
        let plan = HttpPlan { method: method.into(), ..HttpPlan::default() };
        let record = run(&plan, &ruler.url(path), 2, 10);
        assert_all_ok(&record, 10);
        assert_eq!((record.tally.body_bytes, record.tally.connections), (0, 2), "{path}");
        assert_agrees(&ruler, &record);
    }
}

#[test]
fn ranges() {
    for (wanted, status, body) in [(1, 206, 1), (100, 206, 100), (5_000, 206, 1_000)] {
        let ruler = plain();
        let plan = HttpPlan { range_bytes: Some(wanted), ..HttpPlan::default() };
        let record = run(&plan, &ruler.url("/size/1000"), 2, 10);
        assert_all_ok(&record, 10);
        assert_eq!((&record.tally.statuses, record.tally.body_bytes), (&[(status, 10)].into(), 10 * body));
        assert_agrees(&ruler, &record);
    }
}

#[test]
fn encodings_are_counted_as_transferred() {
    let ruler = plain();
    let record = run(&HttpPlan::default(), &ruler.url("/gzip"), 1, 4);
    assert_all_ok(&record, 4);
    let negotiated = record.negotiated.unwrap();
    assert_eq!(negotiated.text(web::CONTENT_ENCODING), Some("gzip"));
    assert!(record.tally.body_bytes < 4 * PAGE.len() as u64);
    let plan = HttpPlan { accept_encoding: None, ..HttpPlan::default() };
    let record = run(&plan, &ruler.url("/gzip"), 1, 4);
    assert_eq!(record.tally.body_bytes, 4 * PAGE.len() as u64);
    assert_eq!(record.negotiated.unwrap().text(web::CONTENT_ENCODING), None);
}

#[test]
fn interim_responses_are_read_over_up_to_a_limit() {
    for interim in [1, 2, 100] {
        let ruler = plain();
        let record = run(&HttpPlan::default(), &ruler.url(&format!("/interim/{interim}")), 2, 10);
        assert_all_ok(&record, 10);
        assert_eq!(record.tally.body_bytes, 10 * PAGE.len() as u64);
        assert_eq!(record.tally.connections, 2);
        assert_agrees(&ruler, &record);
    }
    let record = run(&HttpPlan::default(), &plain().url("/interim/101"), 2, 10);
    assert_all_failed(&record, 10, failure::PROTOCOL, "interim");
}

#[test]
fn heads_are_read_up_to_a_limit() {
    for kib in [1, 64, 200, 255] {
        let ruler = plain();
        let record = run(&HttpPlan::default(), &ruler.url(&format!("/huge-headers/{kib}")), 2, 6);
        assert_all_ok(&record, 6);
        assert_eq!((record.tally.body_bytes, record.tally.connections), (30, 2));
        assert_agrees(&ruler, &record);
    }
    for path in ["/huge-headers/256", "/huge-headers/1000", "/endless-headers"] {
        let record = run(&insecure(true), &plain().url(path), 2, 6);
        assert_all_failed(&record, 6, failure::PROTOCOL, "head is longer than");
    }
    let https = Ruler::start(Config::https(Tls::new(TlsIdentity::self_signed(KeyKind::P256).unwrap()))).unwrap();
    assert_all_ok(&run(&insecure(true), &https.url("/huge-headers/255"), 2, 6), 6);
    let record = run(&insecure(true), &https.url("/endless-headers"), 2, 6);
    assert_all_failed(&record, 6, failure::PROTOCOL, "head is longer than");
}

#[test]
fn exactly_the_failing_statuses_fail() {
    four_ways(|ruler, plan| {
        let record = run(plan, &ruler.url("/errors/30"), 4, 200);
        let tally = &record.tally;
        assert_eq!((tally.ok, failed(tally, failure::STATUS)), (140, 60));
        assert_eq!(tally.statuses, [(200, 140), (500, 60)].into());
        // An error is an answer: its connection goes on.
        assert_eq!(tally.connections, if plan.keepalive { 4 } else { 200 });
        assert_eq!(tally.body_bytes, 140 * 5 + 60 * 6);
        assert_agrees(ruler, &record);
    });
    let ruler = plain();
    let record = run(&HttpPlan::default(), &ruler.url("/nowhere"), 2, 10);
    assert_all_failed(&record, 10, failure::STATUS, "404");
    assert_agrees(&ruler, &record);
}

#[test]
fn a_redirect_is_an_ordinary_response() {
    let ruler = plain();
    let record = run(&HttpPlan::default(), &ruler.url("/redirect/size/5"), 2, 10);
    assert_all_ok(&record, 10);
    assert_eq!(record.tally.statuses, [(302, 10)].into());
    assert_agrees(&ruler, &record);
}

#[test]
fn pieces_at_any_pace_are_one_response() {
    for path in ["/drip/20/300", "/slow-head/50", "/rate/200000/20000"] {
        four_ways(|ruler, plan| {
            let record = run(plan, &ruler.url(path), 2, 4);
            assert_all_ok(&record, 4);
            assert_agrees(ruler, &record);
        });
    }
}

#[test]
fn terminal_escapes_do_not_come_through() {
    // That what is shown is safe, is asserted of every record.
    let ruler = plain();
    let record = run(&no_keepalive(), &ruler.url("/escape"), 2, 10);
    assert_all_ok(&record, 10);
    assert_agrees(&ruler, &record);
    let server = common::Tiny::start(|_, mut stream| {
        use std::io::Write;
        common::read_head(&mut stream);
        let _ = stream.write_all(
            b"HTTP/1.1 200 \x1b[31mOK\r\nServer: \x1b]0;owned\x07\xc2\x9b\xe2\x80\xaeevil\xff\r\nVia: \x1b[2J\r\n\
              Content-Type: a\x08b\r\nContent-Encoding: \x7f\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
        common::end_in_order(&mut stream);
    });
    let record = run(&HttpPlan::default(), &server.url("/"), 2, 10);
    assert_all_ok(&record, 10);
    let negotiated = record.negotiated.unwrap();
    assert!(negotiated.text(web::SERVER).unwrap().ends_with("evil\u{fffd}"));
    let server = common::Tiny::start(|_, mut stream| {
        use std::io::Write;
        common::read_head(&mut stream);
        let _ = stream.write_all(b"\x1b]0;owned\x07\xc2\x9b\xe2\x80\xae");
        common::end_in_order(&mut stream);
    });
    let record = run(&HttpPlan::default(), &server.url("/"), 2, 10);
    assert_all_failed(&record, 10, failure::PROTOCOL, "not HTTP/1.x");
}
