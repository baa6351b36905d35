//! Blocks from the server. It is told to give for as long as ops go on, and to stop when they do not.

use super::Step;
use super::bulk::Need;
use super::connection::{Connection, closed, failed, lost};
use crate::info;
use crate::protocol::{Mark, Order, SENDER_BYTES, WORD_BYTES};
use crate::schema::failure;
use duel_load::{Failure, TcpInfo};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Reads of a stream before others get their turn.
const READS_A_TURN: u32 = 8;

/// A stream that blocks come on.
#[derive(Debug)]
pub(crate) struct Reverse {
    block: u64,
    /// Blocks come without being asked for one by one.
    runs_ahead: bool,
    is_giving: bool,
    /// Blocks that were asked for one by one and have not begun.
    asked: u32,
    expects: Expects,
    number: u32,
    /// Whole blocks that no op has ended with.
    whole: u64,
    came_bytes: u64,
    /// What the sender's TCP knew when it stopped.
    pub(crate) sender: Option<TcpInfo>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    /// A mark, of which so many bytes are there.
    Mark([u8; WORD_BYTES], usize),
    /// So many bytes of a block.
    Block(u64),
    /// What the sender's TCP knows, of which so many bytes are there.
    Sender([u8; SENDER_BYTES], usize),
}

impl Expects {
    const NEXT: Self = Self::Mark([0; WORD_BYTES], 0);
}

impl Reverse {
    pub(crate) fn new(block: u32, runs_ahead: bool) -> Self {
        Self {
            block: u64::from(block),
            runs_ahead,
            is_giving: false,
            asked: 0,
            expects: Expects::NEXT,
            number: 0,
            whole: 0,
            came_bytes: 0,
            sender: None,
        }
    }

    /// Bytes that came so far.
    pub(crate) fn came_bytes(&self) -> u64 {
        self.came_bytes
    }

    /// An op begins.
    pub(crate) fn begin(&mut self, connection: &Connection) -> Result<Step, Box<Failure>> {
        let order = match (self.runs_ahead, self.is_giving) {
            (true, true) => return Ok(Step::Pending),
            (true, false) => Order::Give(Order::FOREVER),
            (false, _) => Order::Give(1),
        };
        self.order(connection, order)?;
        match order {
            Order::Give(Order::FOREVER) => self.is_giving = true,
            _ => self.asked += 1,
        }
        Ok(Step::Pending)
    }

    /// Something can be read while an op is under way.
    pub(crate) fn ready(&mut self, connection: &Connection, scratch: &mut [u8]) -> Result<Step, Box<Failure>> {
        for _ in 0..READS_A_TURN {
            if !self.read(connection, scratch)? {
                break;
            }
        }
        let blocks = std::mem::take(&mut self.whole);
        if blocks == 0 {
            return Ok(Step::Pending);
        }
        Ok(Step::Done { ops: u32::try_from(blocks).unwrap_or(u32::MAX), payload: blocks * self.block })
    }

    /// What comes while no op is under way belongs to none.
    pub(crate) fn idle(&mut self, connection: &Connection, scratch: &mut [u8]) -> Result<(), Box<Failure>> {
        self.read(connection, scratch)?;
        self.whole = 0;
        Ok(())
    }

    /// Tells the server to stop. What its TCP knew before stays until it tells anew.
    pub(crate) fn stop(&mut self, connection: &Connection) -> Result<(), Box<Failure>> {
        // One that gives blocks one by one has given them all; it is asked for what its TCP knows.
        self.order(connection, Order::Stop)?;
        self.is_giving = true;
        Ok(())
    }

    /// Reads what has come since it was told to stop, which belongs to no op.
    pub(crate) fn rests(&mut self, connection: &Connection, scratch: &mut [u8]) -> Result<Need, Box<Failure>> {
        // Others are waited for, too.
        for _ in 0..READS_A_TURN {
            if !self.is_giving || !self.read(connection, scratch)? {
                break;
            }
        }
        self.whole = 0;
        Ok(if self.is_giving { Need::Bytes } else { Need::Nothing })
    }

    fn order(&self, connection: &Connection, order: Order) -> Result<(), Box<Failure>> {
        match send(&connection.stream, &order.bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(WORD_BYTES) => Ok(()),
            Ok(_) | Err(Errno::AGAIN) => Err(failed(failure::LOST, "the server reads no orders")),
            Err(error) => Err(lost(error)),
        }
    }

    /// Whether there may be more.
    fn read(&mut self, connection: &Connection, scratch: &mut [u8]) -> Result<bool, Box<Failure>> {
        let have = match recv(&connection.stream, &mut *scratch, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(closed()),
            Ok((_, n)) => n,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(lost(error)),
        };
        self.came(&scratch[..have])?;
        Ok(have == scratch.len())
    }

    /// Takes what came.
    fn came(&mut self, mut bytes: &[u8]) -> Result<(), Box<Failure>> {
        self.came_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let used = match &mut self.expects {
                Expects::Block(left) => {
                    let used = (*left).min(bytes.len() as u64);
                    *left -= used;
                    if *left == 0 {
                        self.whole += 1;
                        self.expects = Expects::NEXT;
                    }
                    used as usize
                }
                Expects::Mark(mark, have) => {
                    let used = bytes.len().min(WORD_BYTES - *have);
                    mark[*have..*have + used].copy_from_slice(&bytes[..used]);
                    *have += used;
                    if *have == WORD_BYTES {
                        let mark = Mark::read(*mark);
                        self.begun(mark)?;
                    }
                    used
                }
                Expects::Sender(sender, have) => {
                    let used = bytes.len().min(SENDER_BYTES - *have);
                    sender[*have..*have + used].copy_from_slice(&bytes[..used]);
                    *have += used;
                    if *have == SENDER_BYTES {
                        self.sender = Some(info::read(sender));
                        self.is_giving = false;
                        self.expects = Expects::NEXT;
                    }
                    used
                }
            };
            bytes = &bytes[used..];
        }
        Ok(())
    }

    fn begun(&mut self, mark: Option<Mark>) -> Result<(), Box<Failure>> {
        let is_due = self.is_giving || self.asked > 0;
        match mark {
            Some(Mark::Block(number)) if number == self.number && is_due => {
                self.number = number.wrapping_add(1);
                self.asked = self.asked.saturating_sub(1);
                self.expects = Expects::Block(self.block - WORD_BYTES as u64);
                Ok(())
            }
            Some(Mark::End) if self.is_giving => {
                self.expects = Expects::Sender([0; SENDER_BYTES], 0);
                Ok(())
            }
            _ => Err(failed(failure::NONSENSE, "the server sent something else than the blocks it was asked for")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn giving() -> Reverse {
        Reverse { is_giving: true, ..Reverse::new(20, true) }
    }

    fn blocks(count: u32) -> Vec<u8> {
        (0..count).flat_map(|number| [&Mark::Block(number).bytes()[..], &[7; 12]].concat()).collect()
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_bytes_are_cut(cuts in proptest::collection::vec(1_usize..50, 0..20)) {
            let mut all = blocks(9);
            all.extend(Mark::End.bytes());
            all.extend(info::bytes(&TcpInfo { cwnd: 5, ..TcpInfo::default() }));
            let mut reverse = giving();
            let mut rest = &all[..];
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                reverse.came(now).unwrap();
                rest = later;
            }
            prop_assert_eq!((reverse.whole, reverse.is_giving, reverse.sender.map(|sender| sender.cwnd)), (9, false, Some(5)));
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), good in 0_u32..4) {
            let mut reverse = giving();
            let all = [blocks(good), bytes].concat();
            let _ = reverse.came(&all);
            prop_assert!(reverse.whole >= u64::from(good) && reverse.whole * 20 <= all.len() as u64);
        }
    }

    #[test]
    fn what_was_not_asked_for_is_nonsense() {
        let mut silent = Reverse::new(20, false);
        assert_eq!(silent.came(&blocks(1)).unwrap_err().kind, failure::NONSENSE);
        let mut twice = giving();
        assert!(twice.came(&blocks(1)).is_ok());
        assert_eq!(twice.came(&blocks(1)).unwrap_err().kind, failure::NONSENSE, "the same number again");
    }
}
