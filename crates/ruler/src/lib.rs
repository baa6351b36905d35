//! A server whose truth is known: for the demo and for the tests.
//!
//! ```
//! use duel_ruler::{Config, Ruler};
//! use std::{io::{Read, Write}, net::TcpStream, time::Duration};
//!
//! let ruler = Ruler::start(Config::default())?;
//! let mut client = TcpStream::connect(ruler.addr())?;
//! client.write_all(b"GET /delay/2000 HTTP/1.1\r\nHost: ruler\r\nConnection: close\r\n\r\n")?;
//! client.read_to_end(&mut Vec::new())?;
//! let truth = ruler.settled(Duration::from_secs(5));
//! assert_eq!(truth.responses, 1);
//! assert!(truth.served[0].service >= Duration::from_micros(2000));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What each path does
//!
//! Each does exactly what it says, for any method; HEAD gets the same head and no body. A query is ignored. Where a
//! time is told, it counts from the moment at which the request is fully read (and its [`Handicap`] paid), and the server is never
//! early; it is as punctual as the machine lets it be, and [`Truth::served`] holds what it really took. Any path may be
//! asked over HTTP or HTTPS. What is asked for on one connection is answered in order, also if it is pipelined.
//!
//! | path | answer |
//! |---|---|
//! | `/` | 200, the 612 bytes of [`PAGE`] |
//! | `/size/N` | 200, the first N bytes of the payload (see [`payload()`]); `Range: bytes=a-b`, `a-` or `-n` gets 206 or 416 |
//! | `/file` | as `/size/2860007` |
//! | `/chunked/N` | 200, N bytes in chunks of 16 KiB, each with an extension, and a trailer `X-Duel-Trailer: end` |
//! | `/until-close/N` | 200, N bytes without a length; the end of the connection ends the body |
//! | `/delay/US` | the page, after exactly US microseconds |
//! | `/serial/US` | the page, served by a single clerk for all connections, to whom each such request takes exactly US microseconds, in the order of arrival: 1,000,000 / US per second at most, however late threads wake up |
//! | `/stall-once/MS/AFTER` | the page at once; but the AFTER-th request for this very path, over all connections, begins a stall of MS milliseconds: that one and all that follow until its end are answered at its end. Once in the server's life |
//! | `/early-close` | no byte; the connection closes |
//! | `/reset` | no byte; the connection is reset (RST; on a Unix socket it closes) |
//! | `/short-body` | 200, `Content-Length: 1000`, 500 bytes, then the end |
//! | `/garbage` | bytes that are no HTTP, then the end |
//! | `/drip/N/US` | 200, N bytes, the i-th at exactly i * US microseconds |
//! | `/slow-head/US` | 200, the i-th byte of the head at exactly i * US microseconds, then 5 bytes of body |
//! | `/huge-headers/KIB` | 200, with KIB additional header lines of 1024 bytes each |
//! | `/interim/N` | N interim answers, `100 Continue` and `103 Early Hints` by turns, then the page |
//! | `/errors/PERCENT` | of all requests for this very path, the n-th is a 500 if n * PERCENT / 100 reaches a new whole number there: exactly PERCENT in each hundred, spread evenly; else 200 |
//! | `/status/CODE` | the status, 200 to 599; 204 and 304 without body, 205 with an empty one |
//! | `/redirect/PATH` | 302 to `/PATH` |
//! | `/never` | nothing, until the client closes |
//! | `/endless-headers` | 200, and header lines until the client closes |
//! | `/bad-chunk` | 200, chunked: a good chunk, then one whose size is no number, then the end |
//! | `/negative-length` | 200, `Content-Length: -1`, 5 bytes, then the end |
//! | `/two-lengths` | 200, `Content-Length: 5` and `Content-Length: 7`, 7 bytes, then the end |
//! | `/escape` | 200, with terminal escape sequences in reason phrase, header and body |
//! | `/gzip/US` | if gzip is accepted, burns exactly US microseconds of CPU and sends the page compressed; else sends the page at once. `/gzip` is `/gzip/0` |
//! | `/burn/US` | burns exactly US microseconds of its thread's CPU time, then the page |
//! | `/rate/BYTES_PER_S/N` | 200, N bytes, never faster than told and catching up when late |
//! | `/header-echo` | 200, the head of the request as the body |
//! | `/truth` | 200, the counters of [`Truth`] as JSON; this request is in flight then |
//! | anything else | 404 |
//!
//! What is no HTTP is answered 400, a head above 64 KiB 431, and a request whose body is chunked 411; then the
//! connection closes. `Expect` is ignored.
//!
//! # Its own speed
//!
//! One thread for each connection, blocking: a behaviour may simply sleep, burn or block, and does not disturb the
//! others. Answers leave in one system call when small, and in large ones when not; nothing is allocated for a small
//! answer.

mod answer;
mod behaviour;
pub mod child;
mod clerk;
mod clock;
mod config;
mod connection;
pub mod hostile;
mod http;
mod payload;
mod server;
mod socket;
mod stall;
mod tls;
mod truth;
mod wire;

pub use answer::PAGE;
pub use behaviour::{FILE_LEN, Kind};
pub use child::{Child, ChildConfig};
pub use config::{Config, Handicap, Listen};
pub use payload::payload;
pub use server::Ruler;
pub use tls::{Ciphers, KeyKind, Tls, TlsIdentity, Versions};
pub use truth::{Ending, Served, Stalled, Truth};
