//! Blocks to the server. What is handed over runs ahead of what is known as received, or a stream would stand still for a round
//! trip after each block; an op ends when the server says that its block is there, so ops count what was received.

use super::Step;
use super::connection::{Connection, closed, failed, lost};
use crate::protocol::WORD_BYTES;
use crate::schema::failure;
use duel_load::{Failure, Interest, Io, LaneId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::time::Instant;

/// Blocks that are written before other streams get their turn.
const BLOCKS_A_TURN: u64 = 8;

/// What a stream needs before it is at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// Something to read.
    Bytes,
    /// Room to write, or something to read.
    Room,
}

/// What a stream has handed over, and what is known as received.
#[derive(Debug)]
pub(crate) struct Bulk {
    block: u64,
    /// Blocks are handed over as the socket takes them, not each when its op begins.
    runs_ahead: bool,
    written: u64,
    /// Whole blocks that the server has.
    received: u64,
    /// Of them: those that ops have ended with.
    counted: u64,
    word: [u8; WORD_BYTES],
    word_bytes: usize,
}

impl Bulk {
    pub(crate) fn new(block: u32, runs_ahead: bool) -> Self {
        Self {
            block: u64::from(block),
            runs_ahead,
            written: 0,
            received: 0,
            counted: 0,
            word: [0; WORD_BYTES],
            word_bytes: 0,
        }
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whole blocks that the server told of.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// An op begins.
    pub(crate) fn begin(
        &mut self,
        connection: &mut Connection,
        lane: LaneId,
        payload: &[u8],
        io: &Io<'_>,
    ) -> Result<Step, Box<Failure>> {
        self.write(connection, lane, payload, io)?;
        Ok(Step::Pending)
    }

    /// Something can be read or written while an op is under way.
    pub(crate) fn ready(
        &mut self,
        connection: &mut Connection,
        lane: LaneId,
        readable: bool,
        payload: &[u8],
        io: &Io<'_>,
    ) -> Result<Step, Box<Failure>> {
        if readable {
            self.hear(connection)?;
        }
        self.write(connection, lane, payload, io)?;
        Ok(self.ended())
    }

    /// What is heard while no op is under way belongs to none.
    pub(crate) fn idle(&mut self, connection: &Connection) -> Result<(), Box<Failure>> {
        self.hear(connection)?;
        self.counted = self.received;
        Ok(())
    }

    /// Ends the block under way, and hears which ones the server has: with all of them it is at rest, and no op counts those.
    pub(crate) fn rests(&mut self, connection: &Connection, payload: &[u8]) -> Result<Need, Box<Failure>> {
        self.hear(connection)?;
        self.counted = self.received;
        while !self.written.is_multiple_of(self.block) {
            if !self.hand_over(connection, payload)? {
                return Ok(Need::Room);
            }
        }
        Ok(if self.received < self.written / self.block { Need::Bytes } else { Need::Nothing })
    }

    fn ended(&mut self) -> Step {
        let blocks = self.received - self.counted;
        if blocks == 0 {
            return Step::Pending;
        }
        self.counted = self.received;
        Step::Done { ops: u32::try_from(blocks).unwrap_or(u32::MAX), payload: blocks * self.block }
    }

    fn write(
        &mut self,
        connection: &mut Connection,
        lane: LaneId,
        payload: &[u8],
        io: &Io<'_>,
    ) -> Result<(), Box<Failure>> {
        let end =
            if self.runs_ahead { self.written + BLOCKS_A_TURN * self.block } else { (self.counted + 1) * self.block };
        while self.written < end {
            if !self.hand_over(connection, payload)? {
                return connection.watch(lane, Interest::ReadWrite, io);
            }
        }
        connection.watch(lane, if self.runs_ahead { Interest::ReadWrite } else { Interest::Read }, io)
    }

    /// Hands over what is left of a block, or a part of it. `false`: the socket takes nothing for now.
    pub(crate) fn hand_over(&mut self, connection: &Connection, payload: &[u8]) -> Result<bool, Box<Failure>> {
        let in_block = self.written % self.block;
        let at = in_block as usize % payload.len();
        let part = ((self.block - in_block) as usize).min(payload.len() - at);
        match send(&connection.stream, &payload[at..at + part], SendFlags::NOSIGNAL) {
            Ok(n) => self.written += n as u64,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(lost(error)),
        }
        Ok(true)
    }

    fn hear(&mut self, connection: &Connection) -> Result<(), Box<Failure>> {
        let mut words = [0; 16 * WORD_BYTES];
        loop {
            let heard = match recv(&connection.stream, &mut words[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(closed()),
                Ok((_, n)) => n,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(lost(error)),
            };
            for byte in &words[..heard] {
                self.word[self.word_bytes] = *byte;
                self.word_bytes += 1;
                if self.word_bytes == WORD_BYTES {
                    self.word_bytes = 0;
                    self.told(u64::from_be_bytes(self.word))?;
                }
            }
            if heard < words.len() {
                return Ok(());
            }
        }
    }

    /// The server has so many whole blocks.
    fn told(&mut self, blocks: u64) -> Result<(), Box<Failure>> {
        if blocks <= self.received || blocks > self.written / self.block {
            return Err(failed(failure::NONSENSE, "the server tells of blocks that it was not sent"));
        }
        self.received = blocks;
        Ok(())
    }
}

/// Whether something can be read before this time.
pub(crate) fn readable_before(connection: &Connection, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let Ok(left) = Timespec::try_from(left) else { return false };
    poll(&mut [PollFd::new(&connection.stream, PollFlags::IN)], Some(&left)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_have_more_than_it_was_sent_nor_less_than_before() {
        let mut bulk = Bulk { written: 350, ..Bulk::new(100, true) };
        assert!(bulk.told(2).is_ok());
        assert!(matches!(bulk.ended(), Step::Done { ops: 2, payload: 200 }));
        assert!(bulk.told(3).is_ok());
        for lie in [0, 2, 3, 4, u64::MAX] {
            assert_eq!(bulk.told(lie).unwrap_err().kind, failure::NONSENSE, "{lie}");
        }
        assert!(matches!(bulk.ended(), Step::Done { ops: 1, payload: 100 }));
        assert!(matches!(bulk.ended(), Step::Pending));
    }
}
