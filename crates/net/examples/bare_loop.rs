//! A bare loop of requests over blocking sockets, to hold `--op rr` against: what a round trip takes without anything around it.
//!
//! ```text
//! cargo run --release -p duel-net --example bare_loop -- ADDRESS:PORT [SECONDS]     # of a running duel net serve
//! ```
//!
//! The other end is the same server, so that what differs is the client: `send` and `recv` of one byte, and two readings of the
//! clock.
#![expect(clippy::unwrap_used, reason = "an example ends where it cannot go on")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let at = arguments.next().unwrap_or_else(|| "127.0.0.1:3835".to_owned());
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let mut stream = TcpStream::connect(&at).unwrap();
    stream.set_nodelay(true).unwrap();
    // The hello of version 1: op 3 (rr), requests and responses of one byte.
    let mut hello = [0; 48];
    hello[..8].copy_from_slice(b"\x93duel\r\n\0");
    (hello[9], hello[10], hello[15], hello[19]) = (1, 3, 1, 1);
    stream.write_all(&hello).unwrap();
    stream.read_exact(&mut hello).unwrap();
    assert_eq!((&hello[..8], hello[10]), (&b"\x93duel\r\n\0"[..], 0), "no duel net serve");
    let begun = Instant::now();
    let mut times_ns: Vec<u64> = Vec::with_capacity(1 << 20);
    let mut byte = [7];
    while begun.elapsed() < Duration::from_secs_f64(seconds) {
        let sent = Instant::now();
        stream.write_all(&byte).unwrap();
        stream.read_exact(&mut byte).unwrap();
        times_ns.push(sent.elapsed().as_nanos() as u64);
    }
    times_ns.sort_unstable();
    let quantile = |share: f64| times_ns[(share * (times_ns.len() - 1) as f64) as usize] as f64 / 1000.0;
    println!(
        "{} round trips: median {:.1} µs, p10 {:.1} µs, p90 {:.1} µs",
        times_ns.len(),
        quantile(0.5),
        quantile(0.1),
        quantile(0.9)
    );
}
