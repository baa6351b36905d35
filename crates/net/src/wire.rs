//! What a byte of payload takes on an Ethernet wire. Arithmetic.

use crate::link::Link;
use std::net::IpAddr;

/// Preamble and start of frame.
const PREAMBLE: u64 = 8;
/// Addresses and type.
const ETHERNET: u64 = 14;
/// Frame check sequence.
const CHECK: u64 = 4;
/// Gap between frames.
const GAP: u64 = 12;
/// A VLAN tag (802.1Q).
const TAG: u64 = 4;
/// Shortest frame, check included and a tag not: shorter ones are filled up.
const SHORTEST: u64 = 64;
const TCP: u64 = 20;
/// Time stamps, with the two bytes that align them.
const TIMESTAMPS: u64 = 12;
const UDP: u64 = 8;

/// The headers of a path's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Headers {
    /// Bytes of an IP header.
    ip: u64,
    /// VLAN tags of a frame, as this machine's interface has them.
    tags: u64,
}

/// What was sent, and what it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Bytes of payload, each counted once.
    pub payload: u64,
    /// Bytes on the wire, gaps included.
    pub wire: u64,
}

impl Headers {
    /// Those of packets to or from this address, over an interface with so many VLAN tags.
    pub(crate) fn of(address: IpAddr, tags: u32) -> Self {
        Self { ip: if address.is_ipv4() { 20 } else { 40 }, tags: u64::from(tags) }
    }

    /// Those of packets to or from this address, if the interface has a wire and it is known how many tags are on it.
    pub(crate) fn on(address: IpAddr, link: Option<&Link>) -> Option<Self> {
        let tags = link.map_or(Some(0), |link| link.tags.filter(|_| !link.is_loopback))?;
        Some(Self::of(address, tags))
    }

    /// What an IP packet of this length takes on the wire.
    pub(crate) fn frame(&self, packet: u64) -> u64 {
        (packet + ETHERNET + CHECK).max(SHORTEST) + TAG * self.tags + PREAMBLE + GAP
    }

    /// The wire's bytes of a TCP segment with so many bytes of payload.
    pub(crate) fn segment(&self, payload: u64, has_timestamps: bool) -> u64 {
        self.frame(self.ip + TCP + if has_timestamps { TIMESTAMPS } else { 0 } + payload)
    }

    /// What was carried by so many segments with data, some of which had to be sent again. Segments are as long as their payload
    /// makes them on average: as one frame is added to another, that is exact but for those that are filled up.
    pub(crate) fn stream(
        &self,
        payload: u64,
        sent_again: u64,
        longest: u64,
        segments: u64,
        has_timestamps: bool,
    ) -> Carried {
        let segments = segments.max(payload.div_ceil(longest.max(1)));
        if segments == 0 {
            return Carried::default();
        }
        let sent = payload + sent_again * longest;
        let each = sent / segments;
        let rest = sent - each * segments;
        Carried { payload, wire: self.segment(each, has_timestamps) * segments + rest }
    }

    /// The wire's bytes of a UDP datagram with so many bytes of payload, which is sent in fragments where it is longer than the
    /// path takes.
    pub(crate) fn datagram(&self, payload: u64, mtu: u64) -> u64 {
        let whole = payload + UDP;
        if self.ip + whole <= mtu || mtu <= self.ip + 8 {
            return self.frame(self.ip + whole);
        }
        // Of IPv6 each fragment has a header of its own for that.
        let of_fragment = if self.ip == 40 { 8 } else { 0 };
        let part = (mtu - self.ip - of_fragment) / 8 * 8;
        let (full, rest) = (whole / part, whole % part);
        let fragment = |bytes: u64| self.frame(self.ip + of_fragment + bytes);
        full * fragment(part) + if rest > 0 { fragment(rest) } else { 0 }
    }
}

impl Carried {
    /// Payload in per cent of what was on the wire.
    pub(crate) fn payload_percent(&self) -> Option<f64> {
        (self.wire > 0).then(|| 100.0 * self.payload as f64 / self.wire as f64)
    }
}

impl std::ops::AddAssign for Carried {
    fn add_assign(&mut self, other: Self) {
        self.payload += other.payload;
        self.wire += other.wire;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Headers {
        Headers::of([10, 0, 0, 1].into(), 0)
    }

    #[test]
    fn full_frames_are_as_long_as_the_standards_say() {
        // The figures that textbooks give for an MTU of 1500: 1538 bytes on the wire, 1460 or 1448 of payload.
        assert_eq!((v4().segment(1460, false), v4().segment(1448, true)), (1538, 1538));
        let tagged = Headers::of([10, 0, 0, 1].into(), 1);
        assert_eq!(tagged.segment(1448, true), 1542);
        let v6 = Headers::of(std::net::Ipv6Addr::LOCALHOST.into(), 0);
        assert_eq!(v6.segment(1428, true), 1538);
        assert_eq!(v4().datagram(1472, 1500), 1538);
        assert_eq!(v4().datagram(1, 1500), 84, "the shortest frame: 64 bytes, preamble and gap");
        assert_eq!(v4().segment(0, true), 90);
    }

    #[test]
    fn long_datagrams_are_sent_in_fragments() {
        // 1480 bytes of the datagram in the first fragment, the last one has 20 + 528.
        assert_eq!(v4().datagram(2000, 1500), 1538 + v4().frame(20 + 2008 - 1480));
        assert_eq!(v4().datagram(1480 - 8, 1500), 1538);
    }

    #[test]
    fn streams_are_the_sum_of_their_segments() {
        let carried = v4().stream(1448 * 1000, 0, 1448, 1000, true);
        assert_eq!(carried, Carried { payload: 1_448_000, wire: 1_538_000 });
        assert_eq!(carried.payload_percent().map(|percent| (percent * 100.0).round()), Some(9415.0));
        let with_loss = v4().stream(1448 * 1000, 10, 1448, 1010, true);
        assert_eq!(with_loss.wire, 1538 * 1010);
        assert_eq!(v4().stream(0, 0, 1448, 0, true).payload_percent(), None);
        // Where segments are not counted, they are taken for full.
        assert_eq!(v4().stream(1448 * 3, 0, 1448, 0, true).wire, 3 * 1538);
    }

    #[test]
    fn nothing_is_told_of_a_wire_whose_tags_are_not_known_or_that_there_is_none_of() {
        let on = |tags, is_loopback| {
            let link = Link { name: "eth0".into(), mbps: None, tags, is_loopback };
            Headers::on([10, 0, 0, 1].into(), Some(&link))
        };
        assert_eq!((on(None, false), on(Some(0), true)), (None, None));
        assert_eq!(on(Some(1), false), Some(Headers::of([10, 0, 0, 1].into(), 1)));
    }
}
