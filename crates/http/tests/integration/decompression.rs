//! Bodies that are decompressed for counting, of servers that mean no good.

use crate::common::{
    Tiny, assert_all_failed, assert_all_ok, failed, open, ops, read_request, run, run_order, sentence, slot,
};
use duel_load::SlotOrder;
use duel_model::web::failure;
use duel_model::{HttpPlan, MILLISECOND_NS, SECOND_NS};
use flate2::write::{GzDecoder, GzEncoder};
use std::io::{Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// 200 lines, of 7,690 bytes.
const PAGE_BR: &[u8] = include_bytes!("../data/page.txt.br");
const PAGE_BYTES: u64 = 7_690;
/// 1,100 MiB of zeros.
const ZEROS_BR: &[u8] = include_bytes!("../data/zeros.br");

fn decompressing(accept_encoding: Option<&str>) -> HttpPlan {
    let mut plan = HttpPlan { accept_encoding: accept_encoding.map(str::to_owned), ..HttpPlan::default() };
    plan.requests.decompress = true;
    plan
}

/// Held by tests that need the CPU, or all that bodies may hold.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server of these bytes, whatever it is asked.
fn serving(coding: &'static str, bytes: &'static [u8]) -> Tiny {
    Tiny::start(move |_, mut stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", bytes.len());
        while read_request(&mut stream).is_some() {
            if stream.write_all(&[head.as_bytes(), bytes].concat()).is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_coding_is_decompressed_if_the_request_asked_for_it() {
    let server = serving("br", PAGE_BR);
    for cookies in [false, true] {
        // As the option says, and as the user's own header field says, which is what is sent.
        let mut own = decompressing(Some("gzip"));
        own.headers.push(("accept-encoding".to_owned(), "gzip, br;q=0.5".to_owned()));
        for mut plan in [decompressing(Some("gzip, br")), decompressing(None), own] {
            plan.requests.cookies = cookies;
            let record = run(&plan, &server.url("/"), 2, 10);
            assert_all_ok(&record, 10);
            assert_eq!(record.tally.inflated_bytes, Some(10 * PAGE_BYTES));
        }
        let mut without = decompressing(Some("br"));
        without.headers.push(("Accept-Encoding".to_owned(), "gzip, br;q=0".to_owned()));
        for mut plan in [decompressing(Some("gzip")), without] {
            plan.requests.cookies = cookies;
            let record = run(&plan, &server.url("/"), 2, 10);
            assert_all_failed(&record, 10, failure::PROTOCOL, "'br', which the request did not ask for");
        }
    }
}

#[test]
fn a_bomb_fails_and_is_counted() {
    let _alone = alone();
    let server = serving("br", ZEROS_BR);
    let record = run(&decompressing(Some("br")), &server.url("/"), 2, 6);
    assert_all_failed(&record, 6, failure::PROTOCOL, "decompression bomb");
}

/// On some connections bombs that never end, on one a server that never answers.
#[test]
fn bombs_do_not_hold_up_the_timeouts_of_others() {
    const BOMBS: u64 = 96;
    let _alone = alone();
    let member = gzip(&vec![0; 16 << 20]);
    let unpacked_64_mib_ns = (0..3)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..4 {
                GzDecoder::new(std::io::sink()).write_all(&member).unwrap();
            }
            begin.elapsed().as_nanos() as u64
        })
        .min()
        .unwrap();
    let server = Tiny::start(move |number, mut stream| {
        while read_request(&mut stream).is_some() {
            if number == 1 {
                let _ = stream.read(&mut [0]);
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
            while stream.write_all(&member).is_ok() {}
        }
    });
    // Shorter than such a turn takes.
    let timeout_ns = 50 * MILLISECOND_NS;
    // The best of them: a machine that is busy otherwise makes most of them late.
    let late_ns = (0..10).map(|_| {
        let order = SlotOrder { op_timeout_ns: timeout_ns, ..ops(BOMBS + 1) };
        let record = slot(&mut open(&decompressing(Some("gzip")), &server.url("/"), BOMBS as u32 + 1, 1), &order);
        assert_eq!(failed(&record.tally, failure::TIMEOUT), BOMBS + 1, "{:?}", record.tally);
        record.tally.service.max_ns().unwrap() - timeout_ns
    });
    // Each of them has some of it in its socket. Unpacked in one turn, that took as long as 3 GiB take; it is as long as 256 MiB
    // take at most, on a machine that was busy otherwise.
    let (late_ns, most_ns) = (late_ns.min().unwrap(), 16 * unpacked_64_mib_ns);
    assert!(late_ns < most_ns, "{late_ns} ns late, where 1 GiB is unpacked in {most_ns} ns");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Each connection would keep a window of 16 MiB.
#[test]
fn bodies_that_stall_hold_so_much_memory_together() {
    let _alone = alone();
    // Enough for the first 16 MiB of the zeros, and too little for the next.
    let begin = &ZEROS_BR[..16];
    let server = Tiny::start(move |_, mut stream| {
        if read_request(&mut stream).is_some() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: {}\r\n\r\n", ZEROS_BR.len());
            let _ = stream.write_all(&[head.as_bytes(), begin].concat());
            let _ = stream.read(&mut [0]);
        }
    });
    let plan = decompressing(Some("br"));
    // Long enough for all of them to come so far.
    let order = SlotOrder { op_timeout_ns: 10 * SECOND_NS, ..ops(24) };
    let record = run_order(&plan, &server.url("/"), 24, &order);
    let (refused, stalled) = (failed(&record.tally, failure::PROTOCOL), failed(&record.tally, failure::TIMEOUT));
    assert_eq!(refused + stalled, 24, "{:?}", record.tally);
    assert!((1..=16).contains(&stalled), "{stalled} windows of 16 MiB");
    assert!(sentence(&record).contains("more than 256 MiB"), "{}", sentence(&record));
    // What those had that were given up is there again.
    assert_all_ok(&run(&plan, &serving("br", PAGE_BR).url("/"), 2, 10), 10);
}
