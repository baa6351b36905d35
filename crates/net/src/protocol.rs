//! What client and server say to each other on a connection. Pure: bytes in, meanings out.
//!
//! A connection begins with a [`Hello`] of the client and a [`Welcome`] of the server, each of [`HELLO_BYTES`]. Both begin with
//! eight bytes that no text protocol, no TLS record and no HTTP/2 preface begins with, and with the version. What follows
//! depends on the [`Op`]:
//!
//! * `bulk`: the client sends blocks, the server says how many came since the connection was made, in eight bytes.
//! * `bulk-reverse`: the client says [`Order::Give`] or [`Order::Stop`]. The server sends blocks, each with a [`Mark`] in its first
//!   eight bytes; after `Stop` a mark alone says that no more comes, and what the sender's TCP knows of the way follows.
//! * `rr`: a request of a set size, and a response of a set size that begins as the request did.
//! * `connect`: nothing; the server closes after its welcome.
//! * `udp`: datagrams with a token; every few milliseconds the server tells on the connection what came, and what its system dropped
//!   because it read too slowly. Those that do not come from the connection's peer do not count.
//! * to watch: datagrams with a token, each of [`DATAGRAM_HEADER`] bytes, which the server sends back as they are: to the
//!   connection's peer and to nobody else, whatever they say of where they come from, and no faster than a watch asks for.
//!
//! All numbers are big-endian. Lengths are never told by the peer while ops go on: they stand in the hello, and are bounded there.

use duel_model::sanitize_line;

/// Begins each hello and each welcome: the first byte is no ASCII, no TLS record type and no SOCKS version, and a line ending
/// that a text-mode transfer would change is seen, too.
pub(crate) const MAGIC: [u8; 8] = *b"\x93duel\r\n\0";
/// Version of the protocol.
pub(crate) const VERSION: u16 = 2;
/// Longest name of a congestion control, as the kernel has it (`TCP_CA_NAME_MAX`, without the zero behind it).
pub(crate) const CONGESTION_BYTES: usize = 15;
/// Length of a hello, and of a welcome.
pub(crate) const HELLO_BYTES: usize = 48;
/// Length of an ack, of an order and of a mark.
pub(crate) const WORD_BYTES: usize = 8;
/// Largest block, request and response.
pub(crate) const MOST_BLOCK: u32 = 16 << 20;
/// Smallest block: a mark has to fit in.
pub(crate) const LEAST_BLOCK: u32 = 16;
/// The header of a datagram: token, number, time.
pub(crate) const DATAGRAM_HEADER: usize = 24;
/// Longest datagram: what fits into one of IPv4.
pub(crate) const MOST_DATAGRAM: u32 = 65_507;
/// Length of what a server tells of datagrams.
pub(crate) const REPORT_BYTES: usize = 64;
/// Length of what a sender's TCP knows, behind the last mark.
pub(crate) const SENDER_BYTES: usize = 64;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Blocks from client to server.
    Bulk = 1,
    /// Blocks from server to client.
    BulkReverse = 2,
    /// Requests and responses.
    Rr = 3,
    /// The connection itself.
    Connect = 4,
    /// Datagrams from client to server.
    Udp = 5,
    /// Datagrams to the server and back.
    Watch = 6,
}

/// The names of ops that make load, as they are typed; their order is that of the protocol's numbers.
pub(crate) const OPS: [&str; 5] = ["bulk", "bulk-reverse", "rr", "connect", "udp"];

impl Op {
    /// The op of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let at = OPS.iter().position(|known| *known == name)?;
        Self::of_number(u8::try_from(at).ok()? + 1)
    }

    fn of_number(number: u8) -> Option<Self> {
        let all = [Self::Bulk, Self::BulkReverse, Self::Rr, Self::Connect, Self::Udp, Self::Watch];
        all.into_iter().find(|op| *op as u8 == number)
    }

    /// Whether datagrams are sent.
    pub(crate) fn has_datagrams(self) -> bool {
        matches!(self, Self::Udp | Self::Watch)
    }
}

/// What the client says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// What the connection is for.
    pub op: Op,
    /// Each block is acknowledged as soon as it is there, not a few at a time.
    pub each_at_once: bool,
    /// Bytes of a block, of a request, or of a datagram.
    pub block: u32,
    /// Bytes of a response.
    pub response: u32,
    /// Size of the server's socket buffers; 0: as the system has it.
    pub window: u32,
    /// Whether the server may hold small segments back (Nagle).
    pub delays: bool,
    /// Of datagrams: what they are told apart by.
    pub token: u64,
    /// The server's congestion control, filled with zeros; empty: as the system has it.
    pub congestion: [u8; CONGESTION_BYTES],
}

impl Hello {
    /// As it is sent.
    pub(crate) fn bytes(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = self.op as u8;
        bytes[11] = u8::from(self.each_at_once) | u8::from(self.delays) << 1;
        bytes[12..16].copy_from_slice(&self.block.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.response.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.window.to_be_bytes());
        bytes[33..48].copy_from_slice(&self.congestion);
        // The token stands where blocks of datagrams need no response.
        if self.op.has_datagrams() {
            bytes[16..24].copy_from_slice(&self.token.to_be_bytes());
        }
        bytes
    }

    /// What was said, if it is a hello of this version that asks for something that is offered.
    pub(crate) fn read(bytes: &[u8; HELLO_BYTES]) -> Result<Self, Refusal> {
        if bytes[..8] != MAGIC {
            return Err(Refusal::Foreign);
        }
        if bytes[8..10] != VERSION.to_be_bytes() {
            return Err(Refusal::Version);
        }
        let op = Op::of_number(bytes[10]).ok_or(Refusal::Unknown)?;
        let is_udp = op.has_datagrams();
        let hello = Self {
            op,
            each_at_once: bytes[11] & 1 != 0,
            delays: bytes[11] & 2 != 0,
            block: number(&bytes[12..16]),
            response: if is_udp { 0 } else { number(&bytes[16..20]) },
            window: if is_udp { 0 } else { number(&bytes[20..24]) },
            token: if is_udp { long(&bytes[16..24]) } else { 0 },
            congestion: bytes[33..48].try_into().unwrap_or_default(),
        };
        let fits = bytes[11] & !3 == 0
            && bytes[24..33].iter().all(|byte| *byte == 0)
            && match op {
                Op::Bulk | Op::BulkReverse => (LEAST_BLOCK..=MOST_BLOCK).contains(&hello.block),
                Op::Rr => (1..=MOST_BLOCK).contains(&hello.block) && (1..=MOST_BLOCK).contains(&hello.response),
                Op::Connect => true,
                Op::Udp => (DATAGRAM_HEADER as u32..=MOST_DATAGRAM).contains(&hello.block),
                Op::Watch => hello.block == DATAGRAM_HEADER as u32,
            };
        if fits { Ok(hello) } else { Err(Refusal::Unknown) }
    }

    /// The name of the congestion control that is asked for; `None`: none, or no name.
    pub(crate) fn congestion_name(&self) -> Option<&str> {
        name_in(&self.congestion)
    }
}

/// A name that is filled with zeros; `None`: it is empty, or none that the kernel would have.
fn name_in(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let name = str::from_utf8(&bytes[..end]).ok()?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

/// Why a server does not do what a hello asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Refusal {
    /// It speaks another version.
    Version = 1,
    /// It has as many connections as it takes.
    Full = 2,
    /// It does not know what was asked for, or sizes are out of bounds.
    Unknown = 3,
    /// A socket option that was asked for cannot be had there.
    Option = 4,
    /// It has no room for datagrams.
    NoDatagrams = 5,
    /// It was no hello of this protocol. Not told to the peer.
    Foreign = 6,
}

impl Refusal {
    /// In words, with the server as their subject.
    pub(crate) fn words(self, its_version: u16) -> String {
        match self {
            Self::Version => format!(
                "it speaks version {its_version} of the protocol, and this duel version {VERSION}; use the same duel at both ends"
            ),
            Self::Full => "it has as many connections as it takes; see --connections of duel net serve".into(),
            Self::Unknown => "it does not offer what was asked for".into(),
            Self::Option => {
                "it cannot set the congestion control or window that was asked for; of congestion controls it sets those that its /proc/sys/net/ipv4/tcp_allowed_congestion_control names"
                    .into()
            }
            Self::NoDatagrams => "it could not open a socket for datagrams".into(),
            Self::Foreign => "it takes us for another program".into(),
        }
    }
}

/// What the server answers to a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// `Err`: why not.
    pub answer: Result<(), Refusal>,
    /// The version that the server speaks.
    pub version: u16,
    /// Of datagrams: where to send them.
    pub udp_port: u16,
    /// The connection's congestion control at the server, filled with zeros; empty where it is not known.
    pub congestion: [u8; CONGESTION_BYTES],
}

impl Welcome {
    /// As it is sent.
    pub(crate) fn bytes(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_be_bytes());
        bytes[10] = self.answer.err().map_or(0, |refusal| refusal as u8);
        bytes[12..14].copy_from_slice(&self.udp_port.to_be_bytes());
        bytes[14..14 + CONGESTION_BYTES].copy_from_slice(&self.congestion);
        bytes
    }

    /// The name of the congestion control; `None`: it is not known.
    pub(crate) fn congestion_name(&self) -> Option<&str> {
        name_in(&self.congestion)
    }

    /// What was answered; `Err`: a sentence that goes on from the peer's name.
    pub(crate) fn read(bytes: &[u8; HELLO_BYTES]) -> Result<Self, String> {
        if bytes[..8] != MAGIC {
            return Err(foreign(bytes));
        }
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        let answer = match bytes[10] {
            0 if version == VERSION => Ok(()),
            0 => Err(Refusal::Version),
            1 => Err(Refusal::Version),
            2 => Err(Refusal::Full),
            4 => Err(Refusal::Option),
            5 => Err(Refusal::NoDatagrams),
            _ => Err(Refusal::Unknown),
        };
        let congestion = bytes[14..14 + CONGESTION_BYTES].try_into().unwrap_or_default();
        Ok(Self { answer, version, udp_port: u16::from_be_bytes([bytes[12], bytes[13]]), congestion })
    }
}

/// That these bytes are not of this protocol, in words that go on from the peer's name.
pub(crate) fn foreign(bytes: &[u8]) -> String {
    let text: String = bytes.iter().take(24).map(|byte| char::from(*byte)).take_while(|c| !c.is_control()).collect();
    let shown = if text.chars().count() >= 3 && text.is_ascii() {
        format!("its answer begins with '{}'", sanitize_line(text.trim_end()))
    } else {
        "its answer is of another protocol".to_owned()
    };
    format!("does not speak duel's protocol ({shown}); start `duel net serve` there, and name its port")
}

/// What a client of `bulk-reverse` orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// So many blocks; [`Order::FOREVER`]: until it is told to stop.
    Give(u32),
    /// No more after the block under way.
    Stop,
}

impl Order {
    /// Blocks until further notice.
    pub(crate) const FOREVER: u32 = u32::MAX;

    /// As it is sent.
    pub(crate) fn bytes(self) -> [u8; WORD_BYTES] {
        let mut bytes = [0; WORD_BYTES];
        match self {
            Self::Give(blocks) => {
                bytes[0] = 1;
                bytes[4..].copy_from_slice(&blocks.to_be_bytes());
            }
            Self::Stop => bytes[0] = 2,
        }
        bytes
    }

    /// What was ordered, if it is an order.
    pub(crate) fn read(bytes: [u8; WORD_BYTES]) -> Option<Self> {
        match (bytes[0], number(&bytes[4..])) {
            (1, 0) => None,
            (1, blocks) => Some(Self::Give(blocks)),
            (2, 0) => Some(Self::Stop),
            _ => None,
        }
    }
}

/// How a block of `bulk-reverse` begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The block with this number, from 0.
    Block(u32),
    /// Nothing more comes until the next order.
    End,
}

impl Mark {
    /// As it is sent.
    pub(crate) fn bytes(self) -> [u8; WORD_BYTES] {
        let mut bytes = [0; WORD_BYTES];
        match self {
            Self::Block(block) => {
                bytes[0] = b'B';
                bytes[4..].copy_from_slice(&block.to_be_bytes());
            }
            Self::End => bytes[0] = b'E',
        }
        bytes
    }

    /// What was sent, if it is a mark.
    pub(crate) fn read(bytes: [u8; WORD_BYTES]) -> Option<Self> {
        match (bytes[0], &bytes[1..4], number(&bytes[4..])) {
            (b'B', [0, 0, 0], block) => Some(Self::Block(block)),
            (b'E', [0, 0, 0], 0) => Some(Self::End),
            _ => None,
        }
    }
}

/// What a server tells of datagrams, all since the connection was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Datagrams that came, each counted once.
    pub came: u64,
    /// One more than the highest number that came.
    pub next: u64,
    /// Of those that came: with a lower number than one before.
    pub late: u64,
    /// Came again.
    pub again: u64,
    /// Interarrival jitter (RFC 3550, 6.4.1).
    pub jitter_ns: u64,
    /// Reached the server and were dropped there before it could read them: its receive buffer was full.
    pub dropped: u64,
}

impl Report {
    /// As it is sent.
    pub(crate) fn bytes(&self) -> [u8; REPORT_BYTES] {
        let mut bytes = [0; REPORT_BYTES];
        bytes[0] = b'R';
        let Self { came, next, late, again, jitter_ns, dropped } = *self;
        for (at, number) in [came, next, late, again, jitter_ns, dropped].into_iter().enumerate() {
            bytes[8 + 8 * at..16 + 8 * at].copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// What was told, if it can be so: no more came than there are numbers.
    pub(crate) fn read(bytes: &[u8; REPORT_BYTES]) -> Option<Self> {
        let [came, next, late, again, jitter_ns, dropped] =
            std::array::from_fn(|at| long(&bytes[8 + 8 * at..16 + 8 * at]));
        let is_whole = bytes[0] == b'R' && bytes[1..8] == [0; 7] && bytes[56..] == [0; 8];
        (is_whole && came <= next && late <= came).then_some(Self { came, next, late, again, jitter_ns, dropped })
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn long(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(op: Op) -> Hello {
        Hello {
            op,
            each_at_once: true,
            block: if op == Op::Watch { DATAGRAM_HEADER as u32 } else { 1400 },
            response: if op.has_datagrams() { 0 } else { 7 },
            window: if op.has_datagrams() { 0 } else { 65_536 },
            delays: false,
            token: if op.has_datagrams() { u64::MAX - 1 } else { 0 },
            congestion: *b"cubic\0\0\0\0\0\0\0\0\0\0",
        }
    }

    #[test]
    fn what_is_said_is_read_as_it_was_meant() {
        for op in [Op::Bulk, Op::BulkReverse, Op::Rr, Op::Connect, Op::Udp, Op::Watch] {
            assert_eq!(Hello::read(&hello(op).bytes()), Ok(hello(op)));
            let name = OPS.get(op as usize - 1);
            assert_eq!(name.and_then(|name| Op::of_name(name)), name.map(|_| op));
        }
        assert_eq!(hello(Op::Rr).congestion_name(), Some("cubic"));
        for order in [Order::Give(1), Order::Give(Order::FOREVER), Order::Stop] {
            assert_eq!(Order::read(order.bytes()), Some(order));
        }
        for mark in [Mark::Block(0), Mark::Block(u32::MAX), Mark::End] {
            assert_eq!(Mark::read(mark.bytes()), Some(mark));
        }
        let report = Report { came: 3, next: 5, late: 1, again: 2, jitter_ns: u64::MAX, dropped: 1 };
        assert_eq!(Report::read(&report.bytes()), Some(report));
        let congestion = *b"bbr\0\0\0\0\0\0\0\0\0\0\0\0";
        let welcome = Welcome { answer: Err(Refusal::Full), version: VERSION, udp_port: 9, congestion };
        assert_eq!(welcome.congestion_name(), Some("bbr"));
        assert_eq!(Welcome::read(&welcome.bytes()), Ok(welcome));
    }

    #[test]
    fn nothing_longer_than_a_header_is_sent_back() {
        let longer = Hello { block: 1400, ..hello(Op::Watch) };
        assert_eq!(Hello::read(&longer.bytes()), Err(Refusal::Unknown));
    }

    #[test]
    fn another_version_is_told_from_another_protocol() {
        let mut bytes = hello(Op::Bulk).bytes();
        bytes[9] = 7;
        assert_eq!(Hello::read(&bytes), Err(Refusal::Version));
        bytes[0] = b'G';
        assert_eq!(Hello::read(&bytes), Err(Refusal::Foreign));
        let mut welcome =
            Welcome { answer: Ok(()), version: 7, udp_port: 0, congestion: [0; CONGESTION_BYTES] }.bytes();
        assert_eq!(Welcome::read(&welcome).unwrap().answer, Err(Refusal::Version));
        welcome[..8].copy_from_slice(b"HTTP/1.1");
        let said = Welcome::read(&welcome).unwrap_err();
        assert!(said.contains("'HTTP/1.1") && said.contains("duel net serve"), "{said}");
        assert!(!foreign(b"\x1b[2Jabc").contains('\x1b'));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm_and_what_is_taken_is_in_bounds(bytes in proptest::array::uniform32(any::<u8>()), more in proptest::array::uniform16(any::<u8>()), is_ours in any::<bool>()) {
            let mut all = [0_u8; HELLO_BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&more);
            if is_ours {
                all[..8].copy_from_slice(&MAGIC);
                all[8..10].copy_from_slice(&VERSION.to_be_bytes());
                all[10] %= 8;
                all[11] &= 3;
                all[12] = 0;
                all[24..33].fill(0);
            }
            if let Ok(hello) = Hello::read(&all) {
                prop_assert!(hello.block <= MOST_BLOCK || hello.op == Op::Connect);
                prop_assert!(hello.response <= MOST_BLOCK || hello.op != Op::Rr);
                prop_assert_eq!(Hello::read(&hello.bytes()), Ok(hello));
            }
            if let Ok(welcome) = Welcome::read(&all) {
                prop_assert_eq!(welcome.answer.is_ok(), all[10] == 0 && welcome.version == VERSION);
            }
            prop_assert!(foreign(&all).chars().all(|c| !c.is_control()));
            let word: [u8; WORD_BYTES] = all[..8].try_into().unwrap();
            if let Some(mark) = Mark::read(word) { prop_assert_eq!(mark.bytes(), word); }
            if let Some(order) = Order::read(word) { prop_assert_eq!(Order::read(order.bytes()), Some(order)); }
            let mut report = [0_u8; REPORT_BYTES];
            report[..48].copy_from_slice(&all);
            report[0] = b'R';
            report[1..8].fill(0);
            if let Some(told) = Report::read(&report) { prop_assert!(told.came <= told.next); }
        }
    }
}
