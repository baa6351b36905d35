//! How streams come to rest after a slot: a path that is still busy would be loaded during the slots of others.
//!
//! All streams of a worker come to rest together. Each is told to stop before any is waited for: one that went on meanwhile would
//! take its share of the path from those that are waited for, and fill its buffers anew.

use super::bulk::{Bulk, Need};
use super::connection::Connection;
use super::reverse::Reverse;
use duel_load::LaneId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// For how long streams are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// While nothing moves on any of them.
    pub(crate) silent: Duration,
    /// In all.
    pub(crate) in_all: Duration,
}

impl Patience {
    /// While bytes come, streams are on their way to rest, and how long that takes follows from what waits in buffers and from how
    /// fast it flows. Linux lets a send buffer grow to 4 MiB by itself (`tcp_wmem`): over a line of 16 Mbit/s four of them take 8.4
    /// seconds. Where nothing moves, the path is quiet already. After the first loss of a packet that the sender hears nothing of, a
    /// connection is silent for 200 ms and a round trip, after the second for 400 ms more: a second has room for both.
    pub(crate) const OF_A_SLOT: Self = Self { silent: Duration::from_secs(1), in_all: Duration::from_secs(10) };
}

/// A stream of blocks that is to come to rest.
pub(crate) struct Resting<'a> {
    pub(crate) lane: LaneId,
    pub(crate) connection: &'a Connection,
    pub(crate) blocks: Blocks<'a>,
}

/// The blocks on it.
pub(crate) enum Blocks<'a> {
    ToServer(&'a mut Bulk),
    FromServer(&'a mut Reverse),
}

impl Resting<'_> {
    /// Tells the other end to stop. `false`: it cannot be told.
    fn stop(&mut self) -> bool {
        match &mut self.blocks {
            // Nobody else gives blocks there.
            Blocks::ToServer(_) => true,
            Blocks::FromServer(reverse) => reverse.stop(self.connection).is_ok(),
        }
    }

    /// What it still needs; `None`: it will not come to rest.
    fn needs(&mut self, payload: &[u8], scratch: &mut [u8]) -> Option<Need> {
        match &mut self.blocks {
            Blocks::ToServer(bulk) => bulk.rests(self.connection, payload).ok(),
            Blocks::FromServer(reverse) => reverse.rests(self.connection, scratch).ok(),
        }
    }

    /// Bytes that have come to its other end, as far as that is known.
    fn moved(&self) -> u64 {
        match &self.blocks {
            // The server tells of whole blocks alone; TCP knows of each byte.
            Blocks::ToServer(bulk) => duel_load::TcpInfo::of(&self.connection.stream)
                .map_or_else(|| bulk.written() + bulk.received(), |info| info.acked_bytes),
            Blocks::FromServer(reverse) => reverse.came_bytes(),
        }
    }
}

/// Has all of them come to rest, and tells which do not in the time that there is.
pub(crate) fn rest(
    mut streams: Vec<Resting<'_>>,
    payload: &[u8],
    scratch: &mut [u8],
    patience: Patience,
) -> Vec<LaneId> {
    let (mut never, mut waiting) = (Vec::new(), Vec::new());
    for (place, stream) in streams.iter_mut().enumerate() {
        if stream.stop() { waiting.push(place) } else { never.push(stream.lane) }
    }
    let began = Instant::now();
    let (mut moved, mut moved_at) = (None, began);
    loop {
        let mut asks = Vec::with_capacity(waiting.len());
        waiting.retain(|&place| {
            let stream = &mut streams[place];
            match stream.needs(payload, scratch) {
                Some(Need::Nothing) => return false,
                Some(Need::Room) => asks.push(PollFlags::IN | PollFlags::OUT),
                Some(Need::Bytes) => asks.push(PollFlags::IN),
                None => {
                    never.push(stream.lane);
                    return false;
                }
            }
            true
        });
        if waiting.is_empty() {
            break;
        }
        let now = Instant::now();
        let sum: u64 = streams.iter().map(Resting::moved).sum();
        if moved.replace(sum) != Some(sum) {
            moved_at = now;
        }
        let left = (moved_at + patience.silent).min(began + patience.in_all).saturating_duration_since(now);
        if left.is_zero() {
            never.extend(waiting.iter().map(|&place| streams[place].lane));
            break;
        }
        // Bytes that TCP alone knows of as received make nothing readable: it is asked now and then.
        let Ok(pause) = Timespec::try_from(left.min(patience.silent / 4)) else { break };
        let of = |(&place, flags): (&usize, PollFlags)| PollFd::new(&streams[place].connection.stream, flags);
        let mut watched: Vec<PollFd<'_>> = waiting.iter().zip(asks).map(of).collect();
        // Interrupted, it looks again.
        let _ = poll(&mut watched, Some(&pause));
    }
    never
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info;
    use crate::protocol::{Mark, Order, WORD_BYTES};
    use duel_load::TcpInfo;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Nothing that these tests wait for takes nearly as long.
    const LONG: Duration = Duration::from_secs(60);
    const BLOCK: u32 = 4096;

    /// Both ends of so many streams.
    fn streams(count: usize) -> (Vec<Connection>, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = |_| {
            let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            ours.set_nonblocking(true).unwrap();
            let (theirs, _) = listener.accept().unwrap();
            theirs.set_read_timeout(Some(LONG)).unwrap();
            (Connection::made(ours), theirs)
        };
        (0..count).map(pair).unzip()
    }

    fn from_server<'a>(connections: &'a [Connection], blocks: &'a mut [Reverse]) -> Vec<Resting<'a>> {
        let of = |(lane, (connection, reverse))| Resting { lane, connection, blocks: Blocks::FromServer(reverse) };
        connections.iter().zip(blocks).enumerate().map(of).collect()
    }

    fn given(count: usize) -> Vec<Reverse> {
        std::iter::repeat_with(|| Reverse::new(BLOCK, true)).take(count).collect()
    }

    fn stop_is_heard(theirs: &mut TcpStream) {
        let mut word = [0; WORD_BYTES];
        theirs.read_exact(&mut word).unwrap();
        assert_eq!(Order::read(word), Some(Order::Stop));
    }

    fn block(number: u32) -> Vec<u8> {
        let mut block = vec![7; BLOCK as usize];
        block[..WORD_BYTES].copy_from_slice(&Mark::Block(number).bytes());
        block
    }

    fn end() -> Vec<u8> {
        [&Mark::End.bytes()[..], &info::bytes(&TcpInfo { retransmits: 3, ..TcpInfo::default() })].concat()
    }

    #[test]
    fn all_are_told_to_stop_before_any_is_waited_for() {
        let (connections, mut theirs) = streams(4);
        let mut blocks = given(4);
        let server = std::thread::spawn(move || {
            theirs.iter_mut().for_each(stop_is_heard);
            theirs.iter_mut().for_each(|stream| stream.write_all(&end()).unwrap());
            theirs
        });
        let patience = Patience { silent: LONG, in_all: LONG };
        let never = rest(from_server(&connections, &mut blocks), &[0; 100], &mut [0; 100], patience);
        assert_eq!(never, [] as [LaneId; 0]);
        assert!(blocks.iter().all(|blocks| blocks.sender.is_some_and(|sender| sender.retransmits == 3)));
        server.join().unwrap();
    }

    /// What waits in buffers comes bit by bit, for longer than a stream may be silent.
    #[test]
    fn streams_are_waited_for_as_long_as_bytes_come() {
        const PAUSE: Duration = Duration::from_millis(20);
        let (connections, mut theirs) = streams(1);
        let mut blocks = given(1);
        let server = std::thread::spawn(move || {
            stop_is_heard(&mut theirs[0]);
            for bytes in [block(0), block(1), end()].concat().chunks(100) {
                std::thread::sleep(PAUSE);
                theirs[0].write_all(bytes).unwrap();
            }
            theirs
        });
        // Shorter than all of it takes, and far longer than a pause.
        let patience = Patience { silent: 60 * PAUSE, in_all: LONG };
        let began = Instant::now();
        let never = rest(from_server(&connections, &mut blocks), &[0; 100], &mut [0; 1000], patience);
        assert_eq!(never, [] as [LaneId; 0]);
        assert!(began.elapsed() > patience.silent, "it came too fast to show anything: {:?}", began.elapsed());
        server.join().unwrap();
    }

    #[test]
    fn one_that_is_silent_or_goes_on_for_ever_is_given_up_and_others_are_not() {
        let (connections, theirs) = streams(2);
        let mut blocks = given(2);
        let [mut rests, mut silent] = <[TcpStream; 2]>::try_from(theirs).unwrap();
        rests.write_all(&end()).unwrap();
        let patience = Patience { silent: Duration::from_millis(50), in_all: LONG };
        let never = rest(from_server(&connections, &mut blocks), &[0; 100], &mut [0; 1000], patience);
        assert_eq!(never, [1]);
        assert!(blocks[0].sender.is_some() && blocks[1].sender.is_none());

        // The other one never stops.
        stop_is_heard(&mut silent);
        let server = std::thread::spawn(move || {
            for number in 0.. {
                // Until its reader is gone.
                match silent.write_all(&block(number)) {
                    Err(error) if error.kind() != ErrorKind::Interrupted => break,
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let patience = Patience { silent: LONG, in_all: Duration::from_millis(200) };
        let never = rest(from_server(&connections[1..], &mut blocks[1..]), &[0; 100], &mut [0; 1000], patience);
        assert_eq!(never, [0]);
        drop(connections);
        server.join().unwrap();
    }

    /// A block that was begun is ended, and TCP's word that bytes came is a movement where the server has no whole block to tell of.
    #[test]
    fn blocks_to_a_server_are_ended_and_told_of() {
        let (connections, mut theirs) = streams(1);
        let mut bulk = Bulk::new(BLOCK, true);
        let payload = vec![7; 1000];
        assert!(bulk.hand_over(&connections[0], &payload).unwrap() && bulk.written() == 1000);
        let server = std::thread::spawn(move || {
            let mut block = vec![0; BLOCK as usize];
            theirs[0].read_exact(&mut block).unwrap();
            theirs[0].write_all(&1_u64.to_be_bytes()).unwrap();
            theirs
        });
        let patience = Patience { silent: LONG, in_all: LONG };
        let resting = vec![Resting { lane: 5, connection: &connections[0], blocks: Blocks::ToServer(&mut bulk) }];
        assert_eq!(rest(resting, &payload, &mut [0; 10], patience), [] as [LaneId; 0]);
        assert_eq!((bulk.written(), bulk.received()), (u64::from(BLOCK), 1));
        server.join().unwrap();
    }
}
