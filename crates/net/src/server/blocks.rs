//! Blocks, taken and given.

use super::Served;
use crate::info;
use crate::protocol::{Mark, Order, WORD_BYTES};
use duel_load::TcpInfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Blocks that follow each other faster than this are acknowledged together, as soon as one of them is whole: what it costs both
/// ends to acknowledge each of 40,000 a second would be a good part of the CPU time that is measured.
const ACK_EVERY: Duration = Duration::from_millis(1);
/// Bytes that are read at a time.
const READ_BYTES: usize = 128 << 10;

/// Takes what comes, and tells how many whole blocks that were.
pub(super) fn take(served: Served<'_>) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let block = u64::from(served.hello.block);
    let wait = if served.hello.each_at_once { Duration::ZERO } else { ACK_EVERY };
    let (mut bytes, mut acked) = (0_u64, 0_u64);
    let mut last_ack = Instant::now();
    loop {
        let is_owed = bytes / block > acked;
        // No further than to the end of the block, and in one call to there: a client that begins a block ends it. Only an
        // acknowledgement that is still owed is not to wait for that.
        let left = usize::try_from(block - bytes % block).unwrap_or(READ_BYTES).min(READ_BYTES);
        let flags = if is_owed { RecvFlags::DONTWAIT } else { RecvFlags::WAITALL };
        match recv(&served.stream, &mut buffer[..left], flags) {
            Ok((_, 0)) => return Ok(()),
            Ok((_, n)) => bytes += n as u64,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) if is_owed => {
                let left = wait.saturating_sub(last_ack.elapsed());
                let left = Timespec { tv_sec: 0, tv_nsec: left.as_nanos() as _ };
                if poll(&mut [PollFd::new(&served.stream, PollFlags::IN)], Some(&left)).is_ok_and(|ready| ready > 0) {
                    continue;
                }
                // Nothing more came in the time: what is owed is told now.
            }
            // Nothing came for as long as a client may be silent.
            Err(error) => return Err(error.into()),
        }
        let whole = bytes / block;
        let now = Instant::now();
        if whole > acked && now.duration_since(last_ack) >= wait {
            // A client that does not read them is told the sum later; part of a word cannot be sent into a full buffer of bytes.
            match send(&served.stream, &whole.to_be_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(WORD_BYTES) => acked = whole,
                Err(Errno::AGAIN) => {}
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) => return Err(error.into()),
            }
            last_ack = now;
        }
        if now >= served.until {
            return Ok(());
        }
    }
}

/// Gives blocks as it is ordered to.
pub(super) fn give(mut served: Served<'_>) -> io::Result<()> {
    let block = served.hello.block as usize;
    // A block is its mark and payload; longer ones repeat the payload.
    let mut first = served.payload[..block.min(served.payload.len())].to_vec();
    let mut ordered = 0_u32;
    let mut number = 0_u32;
    loop {
        while let Some(order) = heard(&mut served, ordered == 0)? {
            match order {
                Some(Order::Give(blocks)) => ordered = ordered.saturating_add(blocks),
                Some(Order::Stop) => {
                    ordered = 0;
                    let mut end = Mark::End.bytes().to_vec();
                    end.extend(info::bytes(&TcpInfo::of(&served.stream).unwrap_or_default()));
                    if !served.send(&end)? {
                        return Ok(());
                    }
                }
                // It ended, or said what is no order.
                None => return Ok(()),
            }
            if served.is_over() {
                return Ok(());
            }
        }
        first[..WORD_BYTES].copy_from_slice(&Mark::Block(number).bytes());
        if !served.send_block(&first, block)? || served.is_over() {
            return Ok(());
        }
        number = number.wrapping_add(1);
        if ordered != Order::FOREVER {
            ordered -= 1;
        }
    }
}

/// What the client orders next; `None`: nothing for now, where that is not waited for. Within: `None` where it is gone, or orders
/// nothing that there is.
fn heard(served: &mut Served<'_>, waits: bool) -> io::Result<Option<Option<Order>>> {
    let mut word = [0; WORD_BYTES];
    let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    let have = match recv(&served.stream, &mut word[..], flags) {
        Ok((_, have)) => have,
        Err(Errno::AGAIN) if !waits => return Ok(None),
        Err(Errno::INTR) => return Ok(if waits { Some(None) } else { None }),
        Err(error) => return Err(error.into()),
    };
    if have == 0 {
        return Ok(Some(None));
    }
    // A word that was cut on its way is whole soon, or its sender gone.
    served.stream.read_exact(&mut word[have..])?;
    Ok(Some(Order::read(word)))
}
