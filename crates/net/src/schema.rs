//! What network work declares of itself.

use crate::protocol::OPS;
use duel_model::{Compared, Declaration, Line, Noun, Param, Reach, Schema, Sort, Streamed, Threads};

/// What ops on a network declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "net",
    targets: "Networks",
    op: Noun { one: "op", many: "ops" },
    lane: Noun { one: "stream", many: "streams" },
    shared_lane: Noun { one: "stream", many: "streams" },
    phases: phase::ALL,
    failures: failure::ALL,
    bytes: "payload carried",
    facts_title: "Paths",
    facts: FACTS,
    params: PARAMS,
    runs_targets: false,
    reaches: &[Reach { begins: "tcp://", holds: "?netns=", what: "enter a network namespace of this machine for" }],
    threads: Threads::Connections,
    depth: None,
    replaces: None,
    counters: counter::ALL,
    parts: None,
    held_back: None,
    streamed: Some(Streamed {
        by: &OP,
        values: &["bulk", "bulk-reverse", "udp"],
        unless: Some((&AHEAD, "off")),
        round_trip_us: MIN_RTT,
    }),
}
.sound();

/// The parts of an op.
pub(crate) mod phase {
    use duel_model::When;

    duel_model::in_order! { Phase:
        /// Until TCP has a connection.
        CONNECT = "connect", When::Connecting;
        /// Until the server has said what it is.
        GREET = "greet", When::Connecting;
    }
}

/// How ops fail.
pub(crate) mod failure {
    use duel_model::Meaning;

    duel_model::in_order! { FailureKind:
        /// Nobody listens there.
        REFUSED = "refused", Meaning::Unconnected;
        /// No way leads there.
        UNREACHABLE = "unreachable", Meaning::Unconnected;
        /// No connection in time.
        CONNECT_TIMEOUT = "connect-timeout", Meaning::UnconnectedInTime;
        /// The peer stopped reading or answering.
        TIMEOUT = "timeout", Meaning::UnansweredInTime;
        /// The connection was lost.
        LOST = "connection-lost", Meaning::Lost;
        /// A datagram that was sent did not come.
        DATAGRAM_LOST = "datagram-lost", Meaning::Broken;
        /// A datagram came, and the server's system had no room for it.
        DATAGRAM_DROPPED = "datagram-dropped", Meaning::Broken;
        /// The peer said what is not of the protocol.
        NONSENSE = "nonsense", Meaning::Broken;
        /// The server does not do what was asked for.
        NOT_OFFERED = "not-offered", Meaning::Rejected;
        /// No local port, descriptor or option was to be had.
        EXHAUSTED = "exhausted", Meaning::Ours;
    }
}

/// What is counted beside ops and bytes.
pub(crate) mod counter {
    duel_model::in_order! { Counter:
        /// Segments sent again, of all streams.
        RETRANSMITS = "retransmits", "segments sent again";
        /// Segments sent, those without data included.
        SEGMENTS = "segments", "segments sent";
        /// Time in which there was something to send, summed over streams.
        BUSY = "busy_us", "TCP busy, µs";
        /// Of it: the receiver's window held the sender back.
        WINDOW_LIMITED = "window_limited_us", "held back by the window, µs";
        /// Of it: the send buffer held the sender back.
        BUFFER_LIMITED = "buffer_limited_us", "held back by the send buffer, µs";
        /// Datagrams sent.
        SENT = "datagrams_sent", "datagrams sent";
        /// Datagrams that did not come.
        MISSING = "datagrams_lost", "datagrams lost";
        /// Datagrams that came, and were dropped by the server's system: it read too slowly.
        DROPPED = "datagrams_dropped", "datagrams dropped at the server";
        /// Datagrams that came after one that was sent later.
        LATE = "datagrams_reordered", "datagrams reordered";
        /// Datagrams that came again.
        AGAIN = "datagrams_duplicated", "datagrams duplicated";
        /// Datagrams that the system did not take when they were due.
        UNSENT = "datagrams_unsent", "datagrams not sent in time";
    }
}

/// The address of the peer.
pub(crate) const PEER: &str = "net.peer";
/// Smoothed round trip, the mean over streams.
pub(crate) const RTT: &str = "tcp.rtt_us";
/// Shortest round trip over all streams.
pub(crate) const MIN_RTT: &str = "tcp.min_rtt_us";
/// The path's MTU.
pub(crate) const MTU: &str = "path.mtu_bytes";
/// Bytes of a segment.
pub(crate) const SEGMENT: &str = "tcp.segment_bytes";
/// Name of the congestion control on this side.
pub(crate) const CONGESTION: &str = "tcp.congestion";
/// The same at the server.
pub(crate) const PEER_CONGESTION: &str = "tcp.peer_congestion";
/// Line rate of the link.
pub(crate) const LINE_RATE: &str = "link.line_rate_mbps";

/// How much of what is on the wire is payload, in per cent.
pub(crate) const PAYLOAD_SHARE: &str = "link.payload_percent";

const FACTS: &[Declaration] = &[
    Declaration::listed("path.local", "from"),
    Declaration::listed("path.interface", "interface"),
    Declaration::listed("path.namespace", "network namespace"),
    Declaration { is_doubted: true, ..Declaration::listed(MTU, "path MTU, bytes") },
    Declaration::listed(SEGMENT, "TCP segment, bytes"),
    Declaration::listed("tcp.timestamps", "TCP time stamps"),
    Declaration { is_doubted: true, ..Declaration::listed(CONGESTION, "congestion control") },
    Declaration { is_doubted: true, ..Declaration::listed(PEER_CONGESTION, "congestion control at the server") },
    measured(RTT, "round trip, µs"),
    measured(MIN_RTT, "shortest round trip, µs"),
    measured("tcp.window_segments", "congestion window, segments"),
    measured("tcp.delivery_mbps", "delivery rate, Mbit/s"),
    measured("udp.jitter_us", "jitter, µs"),
    Declaration { line: Some(Line::Rate), ..Declaration::listed(LINE_RATE, "line rate, Mbit/s") },
    Declaration::listed("link.frame_bytes", "full frame on the wire, bytes"),
    Declaration { line: Some(Line::PayloadPercent), ..measured(PAYLOAD_SHARE, "payload on the wire, %") },
];

/// One that is another number each time that it is measured.
const fn measured(name: &'static str, label: &'static str) -> Declaration {
    Declaration { compared: Compared::Never, ..Declaration::listed(name, label) }
}

/// Its settings, in the order in which they are shown.
pub(crate) const PARAMS: &[Param] =
    &[OP, BLOCK, AHEAD, RESPONSE, WINDOW, NODELAY, CONGESTION_CONTROL, MSS, DATAGRAM, BITRATE, LINE];

/// What is done.
pub const OP: Param = Param {
    name: "op",
    value_name: "NAME",
    help: "What is done: bulk (blocks to the server; an op is a block that came), bulk-reverse (from it), rr (request and response), \
           connect (a connection for each op) or udp (datagrams; an op is one that came). A list makes a factor",
    sort: Sort::Choice(&OPS),
    default: "bulk",
};

/// Bytes of a block, or of a request.
pub const BLOCK: Param = Param {
    name: "block",
    value_name: "BYTES",
    help: "Bytes of a block of bulk and bulk-reverse (0: 128 KiB), or of a request of rr (0: 1 byte); a list makes a factor",
    sort: Sort::Bytes { least: 0, most: crate::protocol::MOST_BLOCK as u64, zero: "usual" },
    default: "0",
};

/// Whether blocks follow one another.
pub const AHEAD: Param = Param {
    name: "ahead",
    value_name: "ON|OFF",
    help: "Blocks of bulk and bulk-reverse follow one another without a pause. off: each is acknowledged, or asked for, before the next one \
           of its stream, as answers of a server are; a list makes a factor",
    sort: Sort::Switch,
    default: "on",
};

/// Bytes of a response.
pub const RESPONSE: Param = Param {
    name: "response",
    value_name: "BYTES",
    help: "Bytes of a response of rr; a list makes a factor",
    sort: Sort::Bytes { least: 1, most: crate::protocol::MOST_BLOCK as u64, zero: "" },
    default: "1",
};

/// Socket buffers.
pub(crate) const WINDOW: Param = Param {
    name: "window",
    value_name: "BYTES",
    help: "Size of send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF), which bounds what is under way; a list makes a \
           factor. 0: as the systems have it",
    sort: Sort::Bytes { least: 0, most: 1 << 30, zero: "system's" },
    default: "0",
};

/// Nagle off.
pub(crate) const NODELAY: Param = Param {
    name: "nodelay",
    value_name: "ON|OFF",
    help: "Send small segments at once (TCP_NODELAY), at both ends",
    sort: Sort::Switch,
    default: "on",
};

/// Congestion control.
pub(crate) const CONGESTION_CONTROL: Param = Param {
    name: "congestion",
    value_name: "NAME",
    help: "Congestion control at both ends, such as cubic, bbr or reno; a list makes a factor. system: as the systems have it",
    sort: Sort::Choice(&[
        "system",
        "reno",
        "cubic",
        "bbr",
        "bic",
        "cdg",
        "dctcp",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "nv",
        "scalable",
        "vegas",
        "veno",
        "westwood",
        "yeah",
    ]),
    default: "system",
};

/// Segment size.
pub(crate) const MSS: Param = Param {
    name: "mss",
    value_name: "BYTES",
    help: "Longest TCP segment in both directions (TCP_MAXSEG); a list makes a factor. 0: as the path has it",
    sort: Sort::Count { least: 0, most: 32_767, zero: "path's" },
    default: "0",
};

/// Bytes of a datagram.
pub(crate) const DATAGRAM: Param = Param {
    name: "datagram",
    value_name: "BYTES",
    help: "Bytes of a datagram of udp; a list makes a factor",
    sort: Sort::Bytes { least: 24, most: crate::protocol::MOST_DATAGRAM as u64, zero: "" },
    default: "1400",
};

/// Rate of datagrams.
pub(crate) const BITRATE: Param = Param {
    name: "bitrate",
    value_name: "MBIT/S",
    help: "Rate at which each stream of udp sends, in Mbit/s; a list makes a factor. 0: as fast as the system takes them",
    sort: Sort::Decimal { least: 0.0, most: 1_000_000.0 },
    default: "10",
};

/// Line rate.
pub(crate) const LINE: Param = Param {
    name: "line-rate",
    value_name: "MBIT/S",
    help: "Line rate of the slowest link on the way, in Mbit/s, of which the report tells how much was used. 0: that of this machine's \
           interface, where the system knows it",
    sort: Sort::Decimal { least: 0.0, most: 10_000_000.0 },
    default: "0",
};
