//! Doing exactly what a path says.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::behaviour::{FILE_LEN, Route, fails};
use crate::http::{ByteRange, Request};
use crate::payload::{self, PERIOD};
use crate::server::Shared;
use crate::stall::Stall;
use crate::wire::Wire;

/// The 612 bytes of `/`.
pub const PAGE: &[u8; 612] = include_bytes!("../assets/page.html");
/// The same, compressed once and for all.
const PAGE_GZIP: &[u8] = include_bytes!("../assets/page.html.gz");

/// Bodies up to here are copied behind their head and leave in one `write`; longer ones are sent from where they are.
const SMALL: u64 = 16 * 1024;
/// The data in one chunk of a chunked body.
const CHUNK: u64 = 16 * 1024;
/// What is collected before a long head goes out.
const HEAD_BATCH: usize = 64 * 1024;

const HTML: &[u8] = b"Content-Type: text/html\r\n";
const TEXT: &[u8] = b"Content-Type: text/plain\r\n";
const BYTES: &[u8] = b"Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n";

/// How an answer went.
pub(crate) struct Done {
    /// `None`: broken on purpose.
    pub(crate) status: Option<u16>,
    pub(crate) then: Then,
}

/// What becomes of the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    /// In order: with TLS, the end is announced.
    Close,
    /// Without another byte.
    Drop,
    Reset,
}

/// How the length of a body is told.
enum Length {
    Told(u64),
    Chunked,
    /// By the end of the connection.
    Close,
    /// There is no body.
    None,
}

/// One connection's means of answering; its buffers are reused, so the common answers allocate nothing.
pub(crate) struct Answerer<'s> {
    pub(crate) wire: Wire<'s>,
    shared: &'s Shared,
    out: Vec<u8>,
    /// The last stall asked for, so that its lookup is not paid by each request.
    stall: Option<Arc<Stall>>,
    /// Of the request at hand: what its times count from.
    started: Instant,
    /// Its answer ends the connection; it wants no body; it speaks HTTP/1.0.
    close: bool,
    head_only: bool,
    http10: bool,
}

impl<'s> Answerer<'s> {
    pub(crate) fn new(wire: Wire<'s>, shared: &'s Shared) -> Answerer<'s> {
        let out = Vec::with_capacity(2048);
        Answerer {
            wire,
            shared,
            out,
            stall: None,
            started: Instant::now(),
            close: false,
            head_only: false,
            http10: false,
        }
    }

    /// Answers a request that arrived then and whose texts lie in `buffer`. An error means that the connection is gone.
    pub(crate) fn answer(
        &mut self,
        arrived: Instant,
        route: Route,
        request: &Request,
        buffer: &[u8],
    ) -> io::Result<Done> {
        self.close = !(request.keepalive && self.shared.config.keepalive);
        self.head_only = request.head_only;
        self.http10 = request.http10;
        self.started = arrived;
        self.handicap()?;
        match route {
            Route::Page => self.text(200, HTML, PAGE),
            Route::Size(bytes) => self.bulk(bytes, request.range),
            Route::File => self.bulk(FILE_LEN, request.range),
            Route::Chunked(bytes) => self.chunked(bytes),
            Route::UntilClose(bytes) => self.until_close(bytes),
            Route::Delay(delay) => {
                self.wait(delay)?;
                self.text(200, HTML, PAGE)
            }
            Route::Serial(service) => {
                let served = self.shared.clerk.take(service);
                self.shared.stop.wait_until(served, self.shared.config.spin)?;
                self.text(200, HTML, PAGE)
            }
            Route::StallOnce { length, after } => self.stall_once(length, after),
            Route::EarlyClose => Ok(Done { status: None, then: Then::Drop }),
            Route::Reset => Ok(Done { status: None, then: Then::Reset }),
            Route::ShortBody => self.short_body(),
            Route::Garbage => self.garbage(),
            Route::Drip { bytes, every } => self.drip(bytes, every),
            Route::SlowHead(every) => self.slow_head(every),
            Route::HugeHeaders { kib } => self.huge_headers(kib),
            Route::Interim(count) => self.interim(count),
            Route::Errors { percent } => self.errors(percent),
            Route::Status(code) => self.status(code),
            Route::Redirect => self.redirect(&buffer[request.path.clone()]),
            Route::Never => self.never(),
            Route::EndlessHeaders => self.endless_headers(),
            Route::BadChunk => {
                self.broken(b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\nzz\r\nworld\r\n0\r\n\r\n")
            }
            Route::NegativeLength => self.broken(b"Content-Length: -1\r\n", b"hello"),
            Route::TwoLengths => self.broken(b"Content-Length: 5\r\nContent-Length: 7\r\n", b"hello77"),
            Route::Escape => self.escape(),
            Route::Gzip(cpu) => self.gzip(cpu, request.accepts_gzip),
            Route::Burn(cpu) => {
                self.burn(cpu)?;
                self.text(200, HTML, PAGE)
            }
            Route::Rate { bytes_per_s, bytes } => self.rate(bytes_per_s, bytes),
            Route::HeaderEcho => self.text(200, TEXT, &buffer[..request.head_len]),
            Route::Truth => {
                let truth = self.shared.ledger.snapshot(false).to_json();
                self.text(200, b"Content-Type: application/json\r\n", truth.as_bytes())
            }
            Route::NotFound => self.text(404, TEXT, b"not found\n"),
        }
    }

    /// Answers what was no request; the connection ends.
    pub(crate) fn refuse(&mut self, status: u16) -> io::Result<()> {
        (self.close, self.head_only, self.http10) = (true, false, false);
        self.text(status, TEXT, b"").map(|_| ())
    }

    fn bulk(&mut self, bytes: u64, range: Option<ByteRange>) -> io::Result<Done> {
        let Some(range) = range.filter(|_| !self.head_only) else {
            self.head(200, BYTES, Length::Told(bytes));
            self.send_payload(0, bytes)?;
            return self.sent(200);
        };
        let Some(part) = range.within(bytes) else {
            let extra = format!("Content-Range: bytes */{bytes}\r\n");
            return self.text(416, extra.as_bytes(), b"");
        };
        let len = part.end - part.start;
        let extra = format!("Accept-Ranges: bytes\r\nContent-Range: bytes {}-{}/{bytes}\r\n", part.start, part.end - 1);
        self.head(206, extra.as_bytes(), Length::Told(len));
        self.send_payload(part.start, len)?;
        self.sent(206)
    }

    fn chunked(&mut self, bytes: u64) -> io::Result<Done> {
        self.head(200, b"Content-Type: application/octet-stream\r\nTrailer: X-Duel-Trailer\r\n", Length::Chunked);
        if self.head_only {
            self.flush()?;
            return self.sent(200);
        }
        let mut at = 0;
        while at < bytes {
            let len = CHUNK.min(bytes - at);
            self.burn_for(len)?;
            push_hex(&mut self.out, len);
            self.out.extend_from_slice(b";duel=\"a;b\"\r\n");
            self.out.extend_from_slice(payload::slice(at, len));
            self.out.extend_from_slice(b"\r\n");
            at += len;
            if self.out.len() >= HEAD_BATCH {
                self.flush()?;
            }
        }
        self.out.extend_from_slice(b"0;last\r\nX-Duel-Trailer: end\r\n\r\n");
        self.flush()?;
        self.sent(200)
    }

    fn until_close(&mut self, bytes: u64) -> io::Result<Done> {
        self.close = true;
        self.head(200, b"Content-Type: application/octet-stream\r\n", Length::Close);
        self.send_payload(0, bytes)?;
        self.sent(200)
    }

    fn stall_once(&mut self, length: Duration, after: u64) -> io::Result<Done> {
        let stall = match self.stall.take() {
            Some(stall) if stall.is(length, after) => stall,
            _ => Stall::of(&self.shared.ledger, length, after),
        };
        let passed = stall.pass(&self.shared.stop);
        self.stall = Some(stall);
        passed?;
        self.text(200, HTML, PAGE)
    }

    fn short_body(&mut self) -> io::Result<Done> {
        self.head(200, b"", Length::Told(1000));
        self.send_payload(0, 500)?;
        Ok(Done { status: None, then: Then::Close })
    }

    fn garbage(&mut self) -> io::Result<Done> {
        self.wire.send(b"\0\xff\x16\x03 this is no HTTP \x80\x81\r\n\r\n220 hello\r\n")?;
        Ok(Done { status: None, then: Then::Close })
    }

    fn drip(&mut self, bytes: u64, every: Duration) -> io::Result<Done> {
        self.head(200, b"Content-Type: application/octet-stream\r\n", Length::Told(bytes));
        self.flush()?;
        if !self.head_only {
            for at in 0..bytes {
                self.wait(times(every, at + 1))?;
                self.wire.send(payload::slice(at, 1))?;
            }
        }
        self.sent(200)
    }

    fn slow_head(&mut self, every: Duration) -> io::Result<Done> {
        self.head(200, TEXT, Length::Told(5));
        for (at, byte) in (1..).zip(&self.out) {
            self.wait(times(every, at))?;
            self.wire.send(std::slice::from_ref(byte))?;
        }
        if !self.head_only {
            self.wire.send(b"slow\n")?;
        }
        self.sent(200)
    }

    fn huge_headers(&mut self, kib: u64) -> io::Result<Done> {
        self.head(200, TEXT, Length::Told(5));
        self.reopen_head();
        for _ in 0..kib {
            self.out.extend_from_slice(&PAD_LINE);
            if self.out.len() >= HEAD_BATCH {
                self.flush()?;
            }
        }
        self.out.extend_from_slice(b"\r\n");
        if !self.head_only {
            self.out.extend_from_slice(b"huge\n");
        }
        self.flush()?;
        self.sent(200)
    }

    fn interim(&mut self, count: u64) -> io::Result<Done> {
        self.out.clear();
        for at in 0..count {
            self.out.extend_from_slice(match at % 2 {
                0 => b"HTTP/1.1 100 Continue\r\n\r\n".as_slice(),
                _ => b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
            });
            if self.out.len() >= HEAD_BATCH {
                self.flush()?;
            }
        }
        self.flush()?;
        self.text(200, HTML, PAGE)
    }

    fn errors(&mut self, percent: u8) -> io::Result<Done> {
        let number = self.shared.asked_for_errors[usize::from(percent)].fetch_add(1, Relaxed);
        if fails(number, percent) { self.text(500, TEXT, b"error\n") } else { self.text(200, TEXT, b"fine\n") }
    }

    fn status(&mut self, code: u16) -> io::Result<Done> {
        match code {
            204 | 304 => {
                self.head(code, b"", Length::None);
                self.flush()?;
                self.sent(code)
            }
            205 => self.text(code, b"", b""),
            _ => self.text(code, TEXT, b"status\n"),
        }
    }

    fn redirect(&mut self, path: &[u8]) -> io::Result<Done> {
        const PREFIX: usize = "/redirect".len();
        self.head(302, TEXT, Length::Told(6));
        self.reopen_head();
        self.out.extend_from_slice(b"Location: ");
        self.out.extend_from_slice(&path[PREFIX..]);
        self.out.extend_from_slice(b"\r\n\r\n");
        if !self.head_only {
            self.out.extend_from_slice(b"moved\n");
        }
        self.flush()?;
        self.sent(302)
    }

    /// Reads until the client gives up: a wait on the clock would not notice that.
    fn never(&mut self) -> io::Result<Done> {
        let mut scratch = [0; 1024];
        while self.wire.read(&mut scratch).is_ok_and(|read| read > 0) {}
        Ok(Done { status: None, then: Then::Drop })
    }

    fn endless_headers(&mut self) -> io::Result<Done> {
        self.head(200, TEXT, Length::Told(5));
        self.reopen_head();
        loop {
            self.out.extend_from_slice(&PAD_LINE);
            if self.out.len() >= HEAD_BATCH && self.flush().is_err() {
                return Ok(Done { status: None, then: Then::Drop });
            }
        }
    }

    /// A head and body that contradict each other or the standard; then the end.
    fn broken(&mut self, framing: &[u8], body: &[u8]) -> io::Result<Done> {
        self.close = true;
        self.head(200, framing, Length::None);
        self.out.extend_from_slice(body);
        self.flush()?;
        Ok(Done { status: None, then: Then::Close })
    }

    fn escape(&mut self) -> io::Result<Done> {
        const REASON: usize = "HTTP/1.1 200 ".len();
        let body = b"\x1b[2J\x1b[31mred body\x07\n";
        self.head(200, b"X-Escape: \x1b]0;owned\x07\x1b[2J\x1b[31mred\r\n", Length::Told(body.len() as u64));
        self.out.splice(REASON..REASON + "OK".len(), *b"\x1b[31mOK\x1b[0m");
        if !self.head_only {
            self.out.extend_from_slice(body);
        }
        self.flush()?;
        self.sent(200)
    }

    fn gzip(&mut self, cpu: Duration, accepted: bool) -> io::Result<Done> {
        if !accepted {
            return self.text(200, b"Content-Type: text/html\r\nVary: Accept-Encoding\r\n", PAGE);
        }
        self.burn(cpu)?;
        let extra = b"Content-Type: text/html\r\nVary: Accept-Encoding\r\nContent-Encoding: gzip\r\n";
        self.text(200, extra, PAGE_GZIP)
    }

    fn rate(&mut self, bytes_per_s: u64, bytes: u64) -> io::Result<Done> {
        self.head(200, b"Content-Type: application/octet-stream\r\n", Length::Told(bytes));
        self.flush()?;
        if self.head_only {
            return self.sent(200);
        }
        // A hundred pieces a second are smooth to a client, and cheap.
        let piece = (bytes_per_s / 100).clamp(1, PERIOD as u64);
        let mut at = 0;
        while at < bytes {
            let len = piece.min(bytes - at);
            // A piece leaves when its last byte is due, so the rate is never exceeded; and the schedule is absolute,
            // so a late piece does not slow the rest.
            let due_ns = u128::from(at + len) * 1_000_000_000 / u128::from(bytes_per_s);
            let due = Duration::from_nanos(due_ns.try_into().unwrap_or(u64::MAX / 2));
            self.shared.stop.wait_until(self.started + due, Duration::ZERO)?;
            self.burn_for(len)?;
            self.wire.send(payload::slice(at, len))?;
            at += len;
        }
        self.sent(200)
    }

    /// A short answer in one piece.
    fn text(&mut self, status: u16, extra: &[u8], body: &[u8]) -> io::Result<Done> {
        self.head(status, extra, Length::Told(body.len() as u64));
        if !self.head_only {
            self.out.extend_from_slice(body);
        }
        self.flush()?;
        self.sent(status)
    }

    fn sent(&self, status: u16) -> io::Result<Done> {
        Ok(Done { status: Some(status), then: if self.close { Then::Close } else { Then::Keep } })
    }

    /// Writes a whole head into `out`. It has no `Date`: the answer to the same request is the same, byte for byte.
    fn head(&mut self, status: u16, extra: &[u8], length: Length) {
        let out = &mut self.out;
        out.clear();
        out.extend_from_slice(b"HTTP/1.1 ");
        push_number(out, u64::from(status));
        out.push(b' ');
        out.extend_from_slice(reason(status));
        out.extend_from_slice(b"\r\nServer: duel-ruler\r\n");
        match length {
            Length::Told(bytes) => {
                out.extend_from_slice(b"Content-Length: ");
                push_number(out, bytes);
                out.extend_from_slice(b"\r\n");
            }
            Length::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Length::Close | Length::None => {}
        }
        if self.close {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if self.http10 {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(extra);
        out.extend_from_slice(b"\r\n");
    }

    /// Takes the empty line away again, so that lines can follow.
    fn reopen_head(&mut self) {
        self.out.truncate(self.out.len() - 2);
    }

    fn flush(&mut self) -> io::Result<()> {
        let sent = self.wire.send(&self.out);
        self.out.clear();
        sent
    }

    /// Sends what is in `out` and `len` bytes of the payload behind it; to HEAD, only the former.
    fn send_payload(&mut self, mut offset: u64, len: u64) -> io::Result<()> {
        /// Slices in one system call: 1 MiB.
        const SLICES: usize = 16;
        let mut left = if self.head_only { 0 } else { len };
        if left <= SMALL {
            self.burn_for(left)?;
            self.out.extend_from_slice(payload::slice(offset, left));
            return self.flush();
        }
        // With the handicap, in small pieces: its cost is then spread over the body as a slow cipher's would be.
        let most = if self.shared.config.handicap.burn_per_kib.is_zero() { SLICES } else { 1 };
        let mut first = true;
        while left > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES + 1];
            let mut used = 0;
            if first {
                slices[0] = IoSlice::new(&self.out);
                used = 1;
                first = false;
            }
            let mut taken = 0;
            for _ in 0..most {
                let slice = payload::slice(offset + taken, left - taken);
                if slice.is_empty() {
                    break;
                }
                slices[used] = IoSlice::new(slice);
                used += 1;
                taken += slice.len() as u64;
            }
            self.burn_for(taken)?;
            self.wire.send_all(&mut slices[..used])?;
            offset += taken;
            left -= taken;
        }
        Ok(())
    }

    /// Waits until so long after the request's start.
    fn wait(&self, since_start: Duration) -> io::Result<()> {
        self.shared.stop.wait_until(self.started + since_start, self.shared.config.spin)
    }

    /// Pays what every request pays; the request's own times count from then on.
    fn handicap(&mut self) -> io::Result<()> {
        let handicap = self.shared.config.handicap;
        if !handicap.sleep_per_request.is_zero() {
            self.wait(handicap.sleep_per_request)?;
            self.started = Instant::now();
        }
        if !handicap.burn_per_request.is_zero() {
            self.burn(handicap.burn_per_request)?;
            self.started = Instant::now();
        }
        Ok(())
    }

    fn burn(&self, cpu: Duration) -> io::Result<()> {
        if !cpu.is_zero() {
            self.shared.stop.burn(cpu)?;
            self.shared.ledger.burnt_ns.fetch_add(cpu.as_nanos() as u64, Relaxed);
        }
        Ok(())
    }

    /// The handicap of so many body bytes.
    fn burn_for(&self, bytes: u64) -> io::Result<()> {
        let per_kib = self.shared.config.handicap.burn_per_kib;
        if per_kib.is_zero() {
            return Ok(());
        }
        let ns = per_kib.as_nanos() * u128::from(bytes) / 1024;
        self.burn(Duration::from_nanos(ns.try_into().unwrap_or(u64::MAX)))
    }
}

/// A header line of exactly 1024 bytes.
const PAD_LINE: [u8; 1024] = {
    let mut line = [b'x'; 1024];
    let start = b"X-Pad: ";
    let mut at = 0;
    while at < start.len() {
        line[at] = start[at];
        at += 1;
    }
    line[1022] = b'\r';
    line[1023] = b'\n';
    line
};

fn reason(status: u16) -> &'static [u8] {
    match status {
        200 => b"OK",
        204 => b"No Content",
        206 => b"Partial Content",
        301 => b"Moved Permanently",
        302 => b"Found",
        304 => b"Not Modified",
        400 => b"Bad Request",
        404 => b"Not Found",
        411 => b"Length Required",
        416 => b"Range Not Satisfiable",
        429 => b"Too Many Requests",
        431 => b"Request Header Fields Too Large",
        500 => b"Internal Server Error",
        502 => b"Bad Gateway",
        503 => b"Service Unavailable",
        _ => b"Status",
    }
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    push_digits(out, number, 10);
}

fn push_hex(out: &mut Vec<u8>, number: u64) {
    push_digits(out, number, 16);
}

/// `write!` costs several times as much, and this stands in every head.
fn push_digits(out: &mut Vec<u8>, mut number: u64, base: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(number % base) as usize];
        number /= base;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// `Duration` multiplies by u32 only.
fn times(every: Duration, count: u64) -> Duration {
    Duration::from_nanos((every.as_nanos() * u128::from(count)).try_into().unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        let mut out = Vec::new();
        push_number(&mut out, 0);
        push_number(&mut out, u64::MAX);
        push_hex(&mut out, 0x4000);
        assert_eq!(out, b"0184467440737095516154000");
    }

    #[test]
    fn the_pad_line_is_a_header() {
        assert!(PAD_LINE.starts_with(b"X-Pad: x") && PAD_LINE.ends_with(b"x\r\n"));
    }
}
