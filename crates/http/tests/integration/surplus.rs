//! Bytes behind the end of a response: however they are cut, the response stands, the connection goes, and it is told.

use crate::common::{
    self, CLOSED, OK, PATIENCE, Tiny, assert_all_failed, open, ops, order, read_request, sentence, slot, tls_config,
};
use duel_load::SlotRecord;
use duel_model::web::failure;
use duel_model::{HttpPlan, LoopKind, MILLISECOND_NS, Tally};
use proptest::prelude::*;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers with surplus bytes behind a response, in the pieces that a test wants.
#[derive(Debug, Clone)]
struct Careless {
    surplus: Vec<u8>,
    /// Where response and surplus are cut.
    cuts: Vec<usize>,
    pause: Duration,
}

impl Careless {
    /// Answers so many requests so, and all others as it ought to.
    fn serve(&self, stream: &mut (impl std::io::Read + Write), mut times: u64) {
        while read_request(stream).is_some() {
            let bytes = if times > 0 { [OK, &self.surplus].concat() } else { OK.to_vec() };
            times = times.saturating_sub(1);
            let mut at = 0;
            for &cut in self.cuts.iter().chain([&bytes.len()]) {
                let cut = cut.min(bytes.len());
                if cut > at {
                    if at > 0 {
                        std::thread::sleep(self.pause);
                    }
                    if stream.write_all(&bytes[at..cut]).and_then(|()| stream.flush()).is_err() {
                        return;
                    }
                    at = cut;
                }
            }
        }
    }
}

/// Slots until everything was seen that had to come: the last bytes may come after a slot's end.
fn until(url: &str, plan: &HttpPlan, count: u64, is_enough: impl Fn(&Tally) -> bool) -> Tally {
    let mut session = open(plan, url, 1, 1);
    let mut all = slot(&mut session, &ops(count)).tally;
    let since = Instant::now();
    while !is_enough(&all) && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
        all.merge(&slot(&mut session, &ops(1)).tally);
    }
    all
}

proptest! {
    // Where an outcome differs, each smaller case would wait for it in vain.
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default()
    })]

    #[test]
    fn however_surplus_bytes_are_cut_the_outcome_is_the_same(
        surplus in prop::sample::select(vec!["x", "\n", "\r\n", "HTTP", "some more of the body", "\r\nHTTP/1.1 200 OK\r\n\r\n"]),
        cuts in prop::collection::vec(0usize..OK.len() + 30, 0..4),
        at_the_end in any::<bool>(),
        pause_us in prop::sample::select(vec![0u64, 100, 3000]),
        over_tls in any::<bool>(),
    ) {
        const COUNT: u64 = 3;
        let mut cuts = cuts;
        cuts.extend(at_the_end.then_some(OK.len()));
        cuts.sort_unstable();
        let careless = Careless {
            surplus: surplus.into(),
            cuts,
            pause: Duration::from_micros(pause_us),
        };
        // Each of them ends its connection. Who was given up may still be answered there, which nobody sees.
        let (server, plan) =
            start(over_tls, move |number, stream| careless.serve(stream, u64::from(number as u64 <= COUNT)));
        let url = server.url("/").replace("http", if over_tls { "https" } else { "http" });
        let tally = until(&url, &plan, COUNT, |tally| tally.surplus >= COUNT);
        prop_assert_eq!((tally.ok, tally.surplus), (tally.started, COUNT));
        prop_assert!((COUNT..=COUNT + 1).contains(&tally.connections), "{} connections", tally.connections);
    }
}

/// A stream that a closure may serve.
trait Stream: std::io::Read + Write {}
impl<T: std::io::Read + Write> Stream for T {}

fn start(over_tls: bool, serve: impl Fn(usize, &mut &mut dyn Stream) + Send + Sync + 'static) -> (Tiny, HttpPlan) {
    let mut plan = HttpPlan::default();
    plan.tls.verify = false;
    if !over_tls {
        return (Tiny::start(move |number, mut stream| serve(number, &mut (&mut stream as &mut dyn Stream))), plan);
    }
    let config = tls_config();
    let server = Tiny::start(move |number, mut stream| {
        let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        serve(number, &mut (&mut rustls::Stream::new(&mut connection, &mut stream) as &mut dyn Stream));
    });
    (server, plan)
}

#[test]
fn a_server_that_answers_twice_is_found_out() {
    for cut in [OK.len(), 2 * OK.len()] {
        let careless = Careless { surplus: OK.into(), cuts: vec![cut], pause: Duration::from_millis(1) };
        let (server, plan) = start(false, move |_, stream| careless.serve(stream, u64::MAX));
        let tally = until(&server.url("/"), &plan, 6, |tally| tally.surplus > 0);
        assert_eq!(tally.ok, tally.started, "{tally:?}");
        assert!(tally.surplus > 0, "{tally:?}");
    }
}

/// One response with surplus bytes that come when the next request is there, which waits for them.
fn meets_surplus(method: &str) -> SlotRecord {
    let server = Tiny::start(|number, mut stream| {
        if number > 1 {
            while common::answer(&mut stream) {}
            return;
        }
        common::answer(&mut stream);
        if read_request(&mut stream).is_some() {
            let _ = stream.write_all(b"<!-- what");
            std::thread::sleep(Duration::from_millis(20));
            let _ = stream.write_all(b" is left -->");
            common::end_in_order(&mut stream);
        }
    });
    let plan = HttpPlan { method: method.into(), ..HttpPlan::default() };
    let record = slot(&mut open(&plan, &server.url("/"), 1, 1), &ops(2));
    assert_eq!(record.tally.surplus, 1);
    record
}

#[test]
fn the_next_request_is_not_blamed_unless_it_may_not_be_sent_twice() {
    let record = meets_surplus("GET");
    assert_eq!((record.tally.ok, record.tally.resent, record.tally.connections), (2, 1, 2), "{:?}", record.tally);
    let record = meets_surplus("POST");
    assert_eq!((record.tally.ok, record.tally.resent), (1, 0), "{:?}", record.tally);
    assert!(sentence(&record).contains("more bytes than the response before"), "{}", sentence(&record));
}

#[test]
fn garbage_instead_of_the_first_response_is_no_surplus() {
    let server = Tiny::start(|_, mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
        common::end_in_order(&mut stream);
    });
    let record = slot(&mut open(&HttpPlan::default(), &server.url("/"), 1, 1), &ops(3));
    assert_all_failed(&record, 3, failure::PROTOCOL, "not HTTP/1.x");
    assert_eq!(record.tally.surplus, 0);
}

#[test]
fn a_server_that_says_why_it_closes_an_idle_connection_sends_no_surplus() {
    let server = Tiny::start(|_, mut stream| {
        common::answer(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        common::end_in_order(&mut stream);
    });
    let mut session = open(&HttpPlan::default(), &server.url("/"), 1, 1);
    let think = order(LoopKind::Closed { think_ns: 100 * MILLISECOND_NS }, None, Some(3));
    let record = slot(&mut session, &think);
    assert_ne!(think.kind, CLOSED);
    assert_eq!((record.tally.ok + record.tally.failed_total(), record.tally.surplus), (3, 0), "{:?}", record.tally);
}
