//! A connection: what is sent and received on it.

use super::super::broken::Broken;
use super::super::h2;
use super::super::link::{Link, Sent};
use super::super::shared::Shared;
use super::lane::Lane;
use crate::requests::cookies::Jar;
use duel_load::{Io, LaneId, monotonic_ns};
use duel_model::{Facts, Nanos, web};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) link: Link,
    pub(super) frames: h2::Connection,
    /// Requests may be sent.
    pub(super) is_open: bool,
    /// Whose op pays for connecting.
    pub(super) opener: LaneId,
    /// Lanes whose requests wait until it is open, or has room for one more stream.
    pub(super) waiting: VecDeque<LaneId>,
    /// It is among those that have something to send.
    pub(super) is_listed: bool,
    /// No further stream goes to it.
    pub(super) is_retired: bool,
    /// Streams that were opened on it, and those of them that were answered.
    pub(super) opened: u64,
    pub(super) answered: u64,
    /// When anything was heard of it last.
    pub(super) heard_ns: Nanos,
    /// Cookies, where they are kept.
    pub(super) jar: Option<Box<Jar>>,
}

impl Connection {
    /// One that is not connected yet, with so many streams.
    pub(super) fn new(shared: &Shared, streams: usize, opener: LaneId) -> Self {
        Self {
            link: Link::default(),
            frames: h2::Connection::new(streams, shared.window(), shared.decompress),
            is_open: false,
            opener,
            waiting: VecDeque::new(),
            is_listed: false,
            is_retired: false,
            opened: 0,
            answered: 0,
            heard_ns: 0,
            jar: shared.cookies.then(Box::default),
        }
    }

    /// Whether a stream may be opened now.
    #[inline]
    pub(super) fn takes_one_more(&self) -> bool {
        self.is_open && !self.is_retired && self.frames.has_room()
    }

    /// Whether the server may have looked at any request that was sent on it.
    pub(super) fn took_any(&self) -> bool {
        self.opened > 0 && !self.frames.refuses_all()
    }

    /// Tells the server why the connection ends, if that is its fault, as far as the socket takes it at once.
    #[cold]
    pub(super) fn part(&mut self, bytes_out: &mut u64) {
        if !self.is_open || !self.frames.has_parted() {
            return;
        }
        let Self { link, frames, .. } = self;
        let plain = frames.outgoing(|_| &[]);
        let is_ready = match &mut link.tls {
            None => {
                link.out.append(plain);
                true
            }
            Some(tls) => tls.encrypt(plain, &mut link.out).is_ok(),
        };
        if is_ready {
            // The connection is closed whether or not it arrives.
            let _ = link.write(bytes_out);
        }
    }

    /// Sends requests and all else that there is, as far as the socket takes it. `lanes` are those of its group.
    #[inline]
    pub(super) fn send(
        &mut self,
        number: usize,
        lanes: &mut [Lane],
        shared: &Shared,
        bytes_out: &mut u64,
        io: &Io<'_>,
    ) -> Result<Sent, Broken> {
        if self.link.watches_writing && self.flush(number, lanes, bytes_out, io)? == Sent::Blocked {
            return Ok(Sent::Blocked);
        }
        loop {
            let Self { link, frames, .. } = self;
            let plain = frames.outgoing(|place| lanes[place].body(shared));
            if plain.is_empty() && !link.has_unsent() {
                return Ok(Sent::All);
            }
            // With what is left of the handshake in one call, and in one segment if it fits.
            match &mut link.tls {
                _ if plain.is_empty() => {}
                None if link.out.is_empty() => std::mem::swap(plain, &mut link.out),
                None => link.out.append(plain),
                Some(tls) => {
                    tls.encrypt(plain, &mut link.out).map_err(Broken::Tls)?;
                    plain.clear();
                }
            }
            if self.flush(number, lanes, bytes_out, io)? == Sent::Blocked {
                return Ok(Sent::Blocked);
            }
        }
    }

    /// Writes what was put together; requests that were in it have left once the socket has taken all.
    #[inline]
    fn flush(&mut self, number: usize, lanes: &mut [Lane], bytes_out: &mut u64, io: &Io<'_>) -> Result<Sent, Broken> {
        let sent = self.link.flush(number, bytes_out, io)?;
        if sent == Sent::All {
            let now = monotonic_ns();
            self.frames.left().for_each(|place| lanes[place].op.left(now));
        }
        Ok(sent)
    }

    /// The first `filled` bytes of `scratch` have arrived; whether the server will send no more.
    #[inline]
    pub(super) fn take(&mut self, scratch: &mut [u8], filled: usize, now: Nanos) -> Result<bool, Broken> {
        let Self { link: Link { tls, out, .. }, frames, .. } = self;
        match tls {
            None => frames.feed(&scratch[..filled], now).map(|()| false).map_err(Broken::Protocol),
            Some(tls) => tls.take(scratch, filled, out, &mut |plain| frames.feed(plain, now)).map_err(Broken::Tls),
        }
    }

    /// What it and its last response show.
    #[cold]
    pub(super) fn describe(&self, shared: &Shared, head: &[u8], status: u16, body_bytes: u64) -> Facts {
        let mut facts = self.link.describe(shared, head);
        facts.note(web::KEEPS_ALIVE, shared.keepalive.then(|| !self.frames.is_spent()));
        facts.note(web::MAX_STREAMS, self.frames.max_streams().map(u64::from));
        facts.note(web::STREAM_WINDOW_BYTES, self.frames.stream_window_bytes());
        facts.with(web::HTTP_VERSION, "HTTP/2").with(web::STATUS, u64::from(status)).with(web::BODY_BYTES, body_bytes)
    }
}
