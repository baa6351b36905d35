//! A server that answers with whatever it likes, in pieces of any size: nothing panics, and every op is accounted.

use crate::common::{self, Tiny, no_keepalive, ops, read_head, run_order};
use duel_model::HttpPlan;
use duel_model::web::failure;
use proptest::prelude::*;
use std::io::Write;
use std::sync::Arc;

/// What may stand in an answer: rules kept, rules bent, and noise.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 404 \r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "Server: \x1b[31m\u{9b}\u{202e}\r\n",
        "Location: \x1b\r\n",
        "\r\n",
        "5\r\nhello\r\n",
        "ffffffffffffffff\r\n",
        "0\r\n\r\n",
        "0\r\nX: y\r\n\r\n",
        "\x15\x03\x03\x00\x02\x02\x28",
        "\x16\x03\x03\x40\x00",
    ]);
    prop_oneof![
        4 => known.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::collection::vec(prop::sample::select(b"\r\n:;0aF ".to_vec()), 0..20),
    ]
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(part(), 0..7).prop_map(|parts| parts.concat())
}

/// Ten ops over two connections against these bytes; what holds for every record is asserted there.
fn survives(plan: &HttpPlan, scheme: &str, answer: &[u8], step: usize, by_reset: bool) {
    let bytes = Arc::new(answer.to_vec());
    let server = Tiny::start(move |_, mut stream| {
        // A client that speaks TLS sends no head; its first bytes are as good.
        let mut first = [0; 1];
        if std::io::Read::read(&mut stream, &mut first).unwrap_or(0) == 0
            || (first == *b"G" && read_head(&mut stream).is_none())
        {
            return;
        }
        for piece in bytes.chunks(step) {
            if stream.write_all(piece).is_err() {
                return;
            }
        }
        if by_reset {
            common::reset(&stream);
        } else {
            common::end_in_order(&mut stream);
        }
    });
    let record = run_order(plan, &server.url("/").replace("http", scheme), 2, &ops(10));
    assert_eq!((record.tally.started, record.tally.in_flight), (10, 0));
    assert_eq!(record.tally.failed.get(&failure::TIMEOUT.id()), None, "the end of the connection ends the op");
    assert_eq!(record.tally.failed.get(&failure::IO.id()), None, "{:?}", record.tally.failure_examples);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_instead_of_http(answer in answers(), step in 1usize..50, by_reset in any::<bool>(), keepalive in any::<bool>()) {
        let plan = if keepalive { HttpPlan::default() } else { no_keepalive() };
        survives(&plan, "http", &answer, step, by_reset);
    }

    #[test]
    fn any_bytes_instead_of_tls(answer in answers(), step in 1usize..50, by_reset in any::<bool>()) {
        let mut plan = HttpPlan::default();
        plan.tls.verify = false;
        survives(&plan, "https", &answer, step, by_reset);
    }
}
