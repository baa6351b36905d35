//! One connection from its first byte to its last.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::answer::{Answerer, Then};
use crate::behaviour::Route;
use crate::clock::sharpen_timers;
use crate::http::{LONGEST_HEAD, Parsed, parse};
use crate::server::Shared;
use crate::socket::Socket;
use crate::truth::Ending;
use crate::wire::Wire;

/// Serves the connection until either side ends it. Errors mean no more than that it is gone.
pub(crate) fn serve(shared: &Shared, socket: &Socket) {
    sharpen_timers();
    let Ok(mut wire) = Wire::new(socket, shared.tls.as_ref(), &shared.ledger) else { return };
    if wire.shake(&shared.stop, shared.config.handicap.burn_per_handshake).is_err() {
        shared.ledger.handshakes_failed.fetch_add(1, Relaxed);
        return;
    }
    let mut answerer = Answerer::new(wire, shared);
    let mut input = Input { buffer: vec![0; 8192], start: 0, end: 0 };
    while let Ok(Then::Keep) = one(shared, &mut answerer, &mut input) {}
}

/// The bytes read and not yet used: `buffer[start..end]`.
struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Reads and answers one request.
fn one(shared: &Shared, answerer: &mut Answerer<'_>, input: &mut Input) -> io::Result<Then> {
    let request = loop {
        match parse(&input.buffer[input.start..input.end]) {
            Parsed::Complete(request) => break request,
            Parsed::Partial => {
                if !input.more(&mut answerer.wire)? {
                    answerer.wire.finish();
                    return Ok(Then::Close);
                }
            }
            Parsed::Malformed(status) => {
                shared.ledger.malformed.fetch_add(1, Relaxed);
                answerer.refuse(status)?;
                answerer.wire.finish();
                answerer.wire.linger();
                return Ok(Then::Close);
            }
        }
    };
    let head = input.start;
    input.start = head + request.head_len;
    input.discard(request.body_len, &mut answerer.wire)?;
    let arrived = Instant::now();

    let text = &input.buffer[head..];
    let route = Route::parse(&text[request.path.clone()]);
    let kind = route.kind();
    let number = shared.ledger.request(kind);
    let answered = match shared.config.refuse_after {
        Some(last) if number > last => Err(io::ErrorKind::ConnectionAborted.into()),
        _ => answerer.answer(arrived, route, &request, text),
    };
    let ending = match &answered {
        Ok(done) => done.status.map_or(Ending::Broken, Ending::Sent),
        Err(_) => Ending::Abandoned,
    };
    shared.ledger.end(kind, arrived, arrived.elapsed(), ending);
    if shared.config.refuse_after == Some(number) {
        shared.die();
    }
    let then = answered?.then;
    match then {
        Then::Keep | Then::Drop => {}
        Then::Close => {
            answerer.wire.finish();
            if input.start < input.end {
                answerer.wire.linger();
            }
        }
        Then::Reset => answerer.wire.socket.reset_on_close()?,
    }
    Ok(then)
}

impl Input {
    /// Reads once; false at the client's end.
    fn more(&mut self, wire: &mut Wire<'_>) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.buffer.len() {
                // The parser refuses a head that is longer than its limit, so this ends.
                self.buffer.resize((2 * self.end).min(LONGEST_HEAD + 8192), 0);
            }
        }
        let read = wire.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read > 0)
    }

    /// Skips a request's body. What lies before `start`, the head, stays where it is.
    fn discard(&mut self, body_len: u64, wire: &mut Wire<'_>) -> io::Result<()> {
        let here = (self.end - self.start) as u64;
        if body_len <= here {
            self.start += body_len as usize;
            return Ok(());
        }
        self.end = self.start;
        let mut left = body_len - here;
        let room = left.min(64 * 1024) as usize;
        if self.buffer.len() < self.start + room {
            self.buffer.resize(self.start + room, 0);
        }
        while left > 0 {
            // Never beyond the body: what follows is the next request.
            let most = left.min((self.buffer.len() - self.start) as u64) as usize;
            let read = wire.read(&mut self.buffer[self.start..self.start + most])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= read as u64;
        }
        Ok(())
    }
}
