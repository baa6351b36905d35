//! What is told of streams beside their ops: what TCP knows of them, and what their bytes took on the wire.

use super::connection::Connection;
use super::counter;
use super::datagrams::Sums;
use crate::link::Link;
use crate::protocol::{Hello, Op};
use crate::schema;
use crate::wire::{Carried, Headers};
use duel_load::{Counters, LaneId, TcpInfo};
use duel_model::{Counter, Facts};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The facts of a target, and sums of what its streams did since they were last taken.
#[derive(Debug, Clone)]
pub(crate) struct Telling {
    op: Op,
    datagram: u64,
    headers: Option<Headers>,
    /// What is known of the target from the beginning.
    known: Facts,
    /// What TCP knew of each stream when it was last asked.
    before: BTreeMap<LaneId, TcpInfo>,
    /// What the senders of `bulk-reverse` last told.
    senders: BTreeMap<LaneId, TcpInfo>,
    /// Of streams that were closed meanwhile.
    sums: Sent,
    /// Bytes of ops that ended well.
    payload: u64,
    /// Bytes that went over connections, those included that no op counts.
    moved: u64,
    /// Those that went before this slot's own, since senders of `bulk-reverse` last told.
    moved_untold: u64,
    /// A sender has told something since it was last asked for.
    has_told: bool,
    /// What is counted began behind a run-up, while streams were under way.
    is_behind_run_up: bool,
    /// The slot is over, and what streams do until they rest is none of its.
    has_ended: bool,
    datagrams: u64,
    jitter_us: Option<u64>,
}

/// What senders did: differences of what TCP knows, summed over streams.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    retransmits: u64,
    segments: u64,
    data_segments: u64,
    busy_us: u64,
    window_limited_us: u64,
    buffer_limited_us: u64,
    has_any: bool,
    longest: u64,
    has_timestamps: bool,
}

impl Sent {
    fn add(&mut self, now: &TcpInfo, before: &TcpInfo) {
        // Counters of the kernel that wrap are of 32 bits.
        let since = |now: u32, before: u32| u64::from(now.wrapping_sub(before));
        self.retransmits += since(now.retransmits, before.retransmits);
        self.segments += since(now.segments, before.segments);
        self.data_segments += since(now.data_segments, before.data_segments);
        self.busy_us += now.busy_us.saturating_sub(before.busy_us);
        self.window_limited_us += now.window_limited_us.saturating_sub(before.window_limited_us);
        self.buffer_limited_us += now.buffer_limited_us.saturating_sub(before.buffer_limited_us);
        self.longest = self.longest.max(u64::from(now.segment));
        self.has_timestamps |= now.has_timestamps;
        self.has_any = true;
    }

    /// Leaves this part of the whole.
    fn scale(&mut self, part: u64, whole: u64) {
        let of = |count: &mut u64| {
            *count =
                u64::try_from(u128::from(*count) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(u64::MAX);
        };
        if part == whole {
            return;
        }
        of(&mut self.retransmits);
        of(&mut self.segments);
        of(&mut self.data_segments);
        of(&mut self.busy_us);
        of(&mut self.window_limited_us);
        of(&mut self.buffer_limited_us);
    }
}

impl Telling {
    /// For streams of this kind between these addresses; `known` is what was found out already.
    pub(crate) fn new(hello: &Hello, local: Option<SocketAddr>, link: Option<&Link>, known: Facts) -> Self {
        Self {
            op: hello.op,
            datagram: u64::from(hello.block),
            headers: local.and_then(|local| Headers::on(local.ip().to_canonical(), link)),
            known,
            before: BTreeMap::new(),
            senders: BTreeMap::new(),
            sums: Sent::default(),
            payload: 0,
            moved: 0,
            moved_untold: 0,
            has_told: false,
            is_behind_run_up: false,
            has_ended: false,
            datagrams: 0,
            jitter_us: None,
        }
    }

    /// A stream begins: what TCP counted until now is none of its ops', unless the op is to connect.
    pub(crate) fn opened(&mut self, lane: LaneId, connection: &Connection) {
        if matches!(self.op, Op::BulkReverse | Op::Connect) {
            self.before.insert(lane, TcpInfo::default());
        } else if let Some(info) = TcpInfo::of(&connection.stream) {
            self.before.insert(lane, info);
        }
    }

    /// A stream ends.
    pub(crate) fn closing(&mut self, lane: LaneId, connection: &Connection, sender: Option<TcpInfo>) {
        let now = if self.op == Op::BulkReverse { sender } else { TcpInfo::of(&connection.stream) };
        if let (Some(now), Some(before)) = (now, self.before.remove(&lane))
            && !self.is_over()
        {
            self.sums.add(&now, &before);
            self.has_told = true;
        }
        self.senders.remove(&lane);
    }

    /// The slot's last op has ended, and streams are about to come to rest.
    ///
    /// Behind a run-up it began with as much under way as it ends with: what is sent from now on stands for that, and would count twice.
    /// Without one it began with nothing under way, and all that streams carry is the slot's.
    pub(crate) fn slot_ended<'a>(&mut self, open: impl Iterator<Item = (LaneId, &'a Connection)>) {
        if self.is_behind_run_up && self.op != Op::BulkReverse {
            for (lane, connection) in open {
                let Some(now) = TcpInfo::of(&connection.stream) else { continue };
                self.sums.add(&now, &self.before.insert(lane, now).unwrap_or(now));
            }
        }
        self.has_ended = true;
    }

    /// Whether what this end's TCP counts from now on is none of the slot's.
    fn is_over(&self) -> bool {
        self.has_ended && self.is_behind_run_up && self.op != Op::BulkReverse
    }

    /// What a sender at the other end told.
    pub(crate) fn sender_told(&mut self, lane: LaneId, sender: Option<TcpInfo>) {
        if let Some(sender) = sender {
            self.senders.insert(lane, sender);
            self.has_told = true;
        }
    }

    /// So many bytes of payload came.
    pub(crate) fn carried(&mut self, payload: u64) {
        self.payload += payload;
    }

    /// So many bytes went over a connection.
    pub(crate) fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
    }

    /// What a slot's datagrams came to.
    pub(crate) fn datagrams(&mut self, counters: &mut Counters, sums: Sums, jitter_ns: u64) {
        let Sums { sent, lost, dropped, late, again, unsent } = sums;
        self.datagrams += sent;
        self.jitter_us = Some(jitter_ns / 1000);
        for (counter, count) in [
            (counter::SENT, sent),
            (counter::MISSING, lost),
            (counter::DROPPED, dropped),
            (counter::LATE, late),
            (counter::AGAIN, again),
            (counter::UNSENT, unsent),
        ] {
            *counters.counted.entry(counter.id()).or_default() += count;
        }
    }

    /// Puts all that is to be told into the counters of a slot, and begins anew.
    pub(crate) fn tell<'a>(&mut self, open: impl Iterator<Item = (LaneId, &'a Connection)>, counters: &mut Counters) {
        let mut sent = std::mem::take(&mut self.sums);
        let (mut infos, mut own_trip_us) = (Vec::new(), u64::MAX);
        for (lane, connection) in open {
            let own = TcpInfo::of(&connection.stream);
            own_trip_us =
                own_trip_us.min(own.map(|own| u64::from(own.min_rtt_us)).filter(|&us| us > 0).unwrap_or(u64::MAX));
            let now = match self.op {
                Op::BulkReverse => self.senders.get(&lane).copied(),
                _ => own,
            };
            let Some(now) = now else { continue };
            let before = self.before.insert(lane, now).unwrap_or(now);
            if !self.is_over() {
                sent.add(&now, &before);
            }
            infos.push(now);
        }
        if self.op == Op::BulkReverse && !self.share_out(&mut sent) {
            // What is known of the senders is of an earlier time.
            (sent, infos) = (Sent::default(), Vec::new());
        }
        let facts = self.facts(&infos, own_trip_us, &sent);
        if self.op == Op::BulkReverse && self.is_behind_run_up && self.has_ended {
            // What came while streams came to rest is no op's, and stands for what was under way when the run-up ended.
            sent.scale(self.payload.min(self.moved), self.moved);
        }
        if sent.has_any && self.op != Op::Udp {
            let mut put = |counter: Counter, count| {
                counters.counted.insert(counter.id(), count);
            };
            put(counter::RETRANSMITS, sent.retransmits);
            put(counter::SEGMENTS, sent.segments);
            // Who only connects has nothing to send that could wait.
            if self.op != Op::Connect {
                put(counter::BUSY, sent.busy_us);
                put(counter::WINDOW_LIMITED, sent.window_limited_us);
                put(counter::BUFFER_LIMITED, sent.buffer_limited_us);
            }
        }
        // Between slots nothing is carried: what was told of the last one stays.
        if !facts.0.is_empty() {
            self.known = facts.or(std::mem::take(&mut self.known));
        }
        counters.negotiated = Some(self.known.clone());
        // Something was carried, and no slot has ended: it was a run-up.
        self.is_behind_run_up = self.moved > 0 && !std::mem::take(&mut self.has_ended);
        (self.payload, self.moved, self.datagrams) = (0, 0, 0);
    }

    /// Of what senders at the other end told, leaves this slot's part: they tell when they stop, and what they did in its run-up is in
    /// it, too. It is shared out by bytes, which is exact of what a byte costs all along, and keeps the counters' ratios. Whether any has
    /// told something.
    fn share_out(&mut self, sent: &mut Sent) -> bool {
        if !std::mem::take(&mut self.has_told) {
            self.moved_untold += self.moved;
            return false;
        }
        sent.scale(self.moved, self.moved + std::mem::take(&mut self.moved_untold));
        true
    }

    /// `own_trip_us`: the shortest round trip that was seen at this end; `u64::MAX`: none was. How long a run lasts goes by the shortest
    /// one, so none that the other end tells of is longer.
    fn facts(&self, infos: &[TcpInfo], own_trip_us: u64, sent: &Sent) -> Facts {
        let mut facts = Facts::default();
        if self.payload == 0 {
            return facts;
        }
        if self.op == Op::Udp {
            facts.note("udp.jitter_us", self.jitter_us);
        } else if !infos.is_empty() {
            let mean = |of: fn(&TcpInfo) -> u64| infos.iter().map(of).sum::<u64>() / infos.len() as u64;
            facts.note(schema::RTT, Some(mean(|info| u64::from(info.rtt_us))));
            let least = infos.iter().map(|info| u64::from(info.min_rtt_us)).filter(|&us| us > 0).min();
            facts.note(schema::MIN_RTT, least.map(|us| us.min(own_trip_us)));
            facts.note("tcp.window_segments", Some(mean(|info| u64::from(info.cwnd))));
            facts.note("tcp.delivery_mbps", Some(mean(|info| info.delivery_bytes_per_s / 125_000)));
            facts.note(schema::SEGMENT, Some(sent.longest).filter(|&bytes| bytes > 0));
            facts.note("tcp.timestamps", Some(sent.has_timestamps));
            facts.note(schema::MTU, infos.iter().map(|info| u64::from(info.mtu)).find(|&mtu| mtu > 0));
        }
        if let Some(percent) = self.on_the_wire(sent).and_then(|carried| carried.payload_percent()) {
            facts.note(schema::PAYLOAD_SHARE, Some(format!("{percent:.2}")));
        }
        facts
    }

    /// What the payload of this slot took, where there is a wire and payload goes one way.
    fn on_the_wire(&self, sent: &Sent) -> Option<Carried> {
        let headers = self.headers?;
        match self.op {
            Op::Bulk | Op::BulkReverse if sent.has_any && sent.longest > 0 => Some(headers.stream(
                self.moved,
                sent.retransmits,
                sent.longest,
                sent.data_segments,
                sent.has_timestamps,
            )),
            Op::Udp => {
                let mtu = self.known.count(schema::MTU).unwrap_or(1500);
                Some(Carried { payload: self.payload, wire: headers.datagram(self.datagram, mtu) * self.datagrams })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CONGESTION_BYTES;
    use std::net::{TcpListener, TcpStream};

    /// A stream over loopback, and what is told of it as one of this kind.
    fn stream(op: Op) -> (Telling, Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        let hello = Hello {
            op,
            each_at_once: false,
            block: 1000,
            response: 0,
            window: 0,
            delays: false,
            token: 0,
            congestion: [0; CONGESTION_BYTES],
        };
        let mut telling = Telling::new(&hello, None, None, Facts::default());
        let connection = Connection::made(stream);
        telling.opened(0, &connection);
        (telling, connection, theirs)
    }

    /// Connecting is the op: what TCP did for it is counted, with all of its segments.
    #[test]
    fn what_is_sent_to_connect_counts_where_that_is_the_op() {
        for (op, segments) in [(Op::Connect, true), (Op::Rr, false)] {
            let (mut telling, connection, _theirs) = stream(op);
            let sent = TcpInfo::of(&connection.stream).unwrap().segments;
            telling.closing(0, &connection, None);
            let mut counters = Counters::default();
            telling.tell(std::iter::empty(), &mut counters);
            let counted = counters.counted.get(&counter::SEGMENTS.id());
            assert_eq!(counted, Some(&if segments { u64::from(sent) } else { 0 }), "{op:?}");
            assert_eq!(counters.counted.get(&counter::RETRANSMITS.id()), Some(&0), "{op:?}");
            assert_eq!(counters.counted.contains_key(&counter::WINDOW_LIMITED.id()), op == Op::Rr);
        }
    }

    /// So many bytes come, and counters are taken; the sender has told of so many segments and so long a round trip by then, if of any.
    fn taken(telling: &mut Telling, connection: &Connection, bytes: u64, told: Option<(u32, u32)>) -> Counters {
        telling.carried(bytes);
        telling.moved(bytes);
        let info = |(segments, min_rtt_us)| TcpInfo {
            segments,
            data_segments: segments,
            retransmits: segments / 10,
            busy_us: 2 * u64::from(segments),
            segment: 1000,
            min_rtt_us,
            ..TcpInfo::default()
        };
        if told.is_some() {
            telling.slot_ended([(0, connection)].into_iter());
        }
        telling.sender_told(0, told.map(info));
        let mut counters = Counters::default();
        telling.tell([(0, connection)].into_iter(), &mut counters);
        counters
    }

    fn counted(counters: &Counters, counter: Counter) -> Option<u64> {
        counters.counted.get(&counter.id()).copied()
    }

    /// The sender tells when it stops, at the slot's end.
    #[test]
    fn what_a_sender_did_in_a_run_up_is_not_the_slots() {
        let (mut telling, connection, _theirs) = stream(Op::BulkReverse);
        for round in 1..=2 {
            let in_run_up = taken(&mut telling, &connection, 300_000, None);
            assert_eq!(counted(&in_run_up, counter::SEGMENTS), None, "that it is not known is not zero");
            let slot = taken(&mut telling, &connection, 100_000, Some((400 * round, 50)));
            assert_eq!(counted(&slot, counter::SEGMENTS), Some(100));
            assert_eq!(counted(&slot, counter::RETRANSMITS), Some(10));
            assert_eq!(counted(&slot, counter::BUSY), Some(200));
        }
        // What comes while it comes to rest is in no op.
        let (mut telling, connection, _theirs) = stream(Op::BulkReverse);
        taken(&mut telling, &connection, 300_000, None);
        telling.moved(100_000);
        let slot = taken(&mut telling, &connection, 100_000, Some((500, 50)));
        assert_eq!(counted(&slot, counter::SEGMENTS), Some(100));
        // Without a run-up all of it is the slot's.
        let (mut telling, connection, _theirs) = stream(Op::BulkReverse);
        telling.moved(100_000);
        let slot = taken(&mut telling, &connection, 100_000, Some((800, 50)));
        assert_eq!(counted(&slot, counter::SEGMENTS), Some(800));
    }

    #[test]
    fn no_round_trip_that_a_peer_tells_of_is_longer_than_what_was_seen_here() {
        let trip_us = |told_us: u32| {
            let (mut telling, connection, _theirs) = stream(Op::BulkReverse);
            let slot = taken(&mut telling, &connection, 1000, Some((1, told_us)));
            slot.negotiated.unwrap().count(schema::MIN_RTT).unwrap()
        };
        let seen_us = trip_us(u32::MAX);
        assert!(seen_us < 10_000_000, "{seen_us}");
        assert_eq!(trip_us(1), 1, "less is what it was when the path was quiet");
    }
    /// Carries bytes to the other end, as many of them as ops if they are ops'.
    fn carry(telling: &mut Telling, connection: &Connection, theirs: &mut TcpStream, chunks: usize) {
        use std::io::{Read, Write};
        let mut chunk = vec![0; 10_000];
        for _ in 0..chunks {
            (&connection.stream).write_all(&chunk).unwrap();
            theirs.read_exact(&mut chunk).unwrap();
            telling.carried(10_000);
            telling.moved(10_000);
        }
    }

    #[test]
    fn what_this_end_sends_in_a_run_up_or_before_it_rests_is_not_the_slots() {
        let (mut telling, connection, mut theirs) = stream(Op::Bulk);
        let open = || [(0, &connection)].into_iter();
        let segments = |telling: &mut Telling| {
            let mut counters = Counters::default();
            telling.tell(open(), &mut counters);
            counted(&counters, counter::SEGMENTS).unwrap()
        };
        for _ in 0..2 {
            assert_eq!(segments(&mut telling), 0, "nothing is carried between slots");
            carry(&mut telling, &connection, &mut theirs, 1_000);
            assert!(segments(&mut telling) >= 1_000, "one each at least");
            carry(&mut telling, &connection, &mut theirs, 10);
            telling.slot_ended(open());
            carry(&mut telling, &connection, &mut theirs, 1_000);
            let slot = segments(&mut telling);
            assert!((10..500).contains(&slot), "{slot}");
        }
        // Without a run-up all that it carries is the slot's.
        segments(&mut telling);
        carry(&mut telling, &connection, &mut theirs, 10);
        telling.slot_ended(open());
        carry(&mut telling, &connection, &mut theirs, 1_000);
        assert!(segments(&mut telling) >= 1_000);
    }
}
