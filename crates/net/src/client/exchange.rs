//! Requests and responses: one at a time on a stream.

use super::Step;
use super::connection::{Connection, closed, failed, lost};
use crate::protocol::WORD_BYTES;
use crate::schema::failure;
use duel_load::{Failure, Interest, Io, LaneId};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A stream of requests.
#[derive(Debug)]
pub(crate) struct Exchange {
    request: usize,
    response: usize,
    number: u64,
    sent: usize,
    came: usize,
    /// What the response has to begin with, as far as it is there.
    begin: [u8; WORD_BYTES],
}

impl Exchange {
    pub(crate) fn new(request: u32, response: u32) -> Self {
        Self {
            request: request as usize,
            response: response as usize,
            number: 0,
            sent: 0,
            came: 0,
            begin: [0; WORD_BYTES],
        }
    }

    /// An op begins: the request is sent, as far as the socket takes it.
    pub(crate) fn begin(
        &mut self,
        connection: &mut Connection,
        lane: LaneId,
        payload: &[u8],
        io: &Io<'_>,
    ) -> Result<Step, Box<Failure>> {
        self.number = self.number.wrapping_add(1);
        // The lowest byte first: a request may be one byte long.
        (self.sent, self.came, self.begin) = (0, 0, self.number.to_le_bytes());
        self.write(connection, lane, payload, io)?;
        Ok(Step::Pending)
    }

    /// Something can be read or written while an op is under way.
    pub(crate) fn ready(
        &mut self,
        connection: &mut Connection,
        lane: LaneId,
        scratch: &mut [u8],
        payload: &[u8],
        io: &Io<'_>,
    ) -> Result<Step, Box<Failure>> {
        if self.sent < self.request {
            self.write(connection, lane, payload, io)?;
        }
        loop {
            // A byte more than there may be: that one is told from a response.
            let room = (self.response - self.came + 1).min(scratch.len());
            match recv(&connection.stream, &mut scratch[..room], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(closed()),
                Ok((_, n)) => self.take(&scratch[..n])?,
                Err(Errno::AGAIN) => return Ok(Step::Pending),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(lost(error)),
            }
            if self.came == self.response {
                return Ok(Step::Done { ops: 1, payload: (self.request + self.response) as u64 });
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Box<Failure>> {
        let echoed = WORD_BYTES.min(self.request).min(self.response);
        let begins_well = (self.came..echoed).zip(bytes).all(|(at, byte)| self.begin[at] == *byte);
        self.came += bytes.len();
        if !begins_well || self.came > self.response || self.sent < self.request {
            return Err(failed(failure::NONSENSE, "the server sent something else than the response to the request"));
        }
        Ok(())
    }

    fn write(
        &mut self,
        connection: &mut Connection,
        lane: LaneId,
        payload: &[u8],
        io: &Io<'_>,
    ) -> Result<(), Box<Failure>> {
        while self.sent < self.request {
            let head = WORD_BYTES.min(self.request);
            let sent = if self.sent == 0 && self.request <= payload.len() {
                // All at once, or the first bytes would be a segment of their own.
                let mut first = [0; 256];
                if self.request <= first.len() {
                    first[..self.request].copy_from_slice(&payload[..self.request]);
                    first[..head].copy_from_slice(&self.begin[..head]);
                    send(&connection.stream, &first[..self.request], SendFlags::NOSIGNAL)
                } else {
                    send(&connection.stream, &self.begin[..head], SendFlags::NOSIGNAL | SendFlags::MORE)
                }
            } else if self.sent < head {
                send(&connection.stream, &self.begin[self.sent..head], SendFlags::NOSIGNAL | SendFlags::MORE)
            } else {
                let at = self.sent % payload.len();
                let part = (self.request - self.sent).min(payload.len() - at);
                send(&connection.stream, &payload[at..at + part], SendFlags::NOSIGNAL)
            };
            match sent {
                Ok(n) => self.sent += n,
                Err(Errno::AGAIN) => return connection.watch(lane, Interest::ReadWrite, io),
                Err(Errno::INTR) => {}
                Err(error) => return Err(lost(error)),
            }
        }
        connection.watch(lane, Interest::Read, io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_to_be_the_one_to_the_request() {
        let fresh = || Exchange { number: 1, sent: 4, begin: 1_u64.to_le_bytes(), ..Exchange::new(4, 6) };
        let mut whole = fresh();
        assert!(whole.take(&[1, 0]).is_ok() && whole.take(&[0, 0, 9, 9]).is_ok());
        assert_eq!(whole.came, 6);
        for wrong in [&[2][..], &[1, 0, 0, 1], &[1, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(fresh().take(wrong).unwrap_err().kind, failure::NONSENSE, "{wrong:?}");
        }
        let mut early = Exchange { sent: 3, ..fresh() };
        assert!(early.take(&[1]).is_err(), "an answer before the question");
    }
}
