//! What is known of the paths of network work: how long a round trip is, what TCP says held it back, what was sent again, and how
//! the flow grows with the number of streams.

use crate::cause::Standing;
use crate::evidence::device::setting;
use crate::gap::{Gap, Look, View};
use crate::path::Path;
use crate::probes::{ALONE, Kind, STREAMS};
use duel_model::{WorkloadPlan, format_bytes};

/// The work that causes of paths are for.
pub(crate) const KINDS: &[&str] = &["net"];

/// What an op sends over its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sends {
    /// Blocks, one after the other, from one end to the other: from us, or from the server.
    Blocks { from_us: bool },
    /// A request and its response, of so many bytes together.
    Exchange { bytes: u64 },
    /// What it takes to connect.
    Connection,
    /// Datagrams.
    Datagrams,
}

impl Sends {
    /// Whether all of it is under way at once. What a connection sends when it is new (RFC 6928), in segments of the shortest size
    /// that TCP is sure of: an exchange that is no longer waits for one round trip.
    pub(crate) fn fits_one_flight(self) -> bool {
        const ONE_FLIGHT_BYTES: u64 = 10 * 536;
        match self {
            Self::Blocks { .. } => false,
            Self::Exchange { bytes } => bytes <= ONE_FLIGHT_BYTES,
            Self::Connection | Self::Datagrams => true,
        }
    }
}

/// What the plan's ops send; `None`: they are not of this kind.
pub(crate) fn sends(gap: &Gap<'_>) -> Option<Sends> {
    let WorkloadPlan::Plain(kind) = &gap.case.plan.workload else { return None };
    let value = |name: &str| kind.schema.param(name).map(|param| kind.get(param));
    let bytes = |name: &str| value(name)?.parse::<u64>().ok();
    Some(match value("op")? {
        // Blocks that are waited for one by one are what answers are.
        "bulk" | "bulk-reverse" if value("ahead") == Some("off") => {
            // Zero is the usual one, 128 KiB.
            Sends::Exchange { bytes: bytes("block").map(|bytes| if bytes == 0 { 128 << 10 } else { bytes })? }
        }
        "bulk" => Sends::Blocks { from_us: true },
        "bulk-reverse" => Sends::Blocks { from_us: false },
        "rr" => Sends::Exchange { bytes: bytes("block")?.max(1) + bytes("response")? },
        "connect" => Sends::Connection,
        "udp" => Sends::Datagrams,
        _ => return None,
    })
}

/// The fact that tells the congestion control of who sends blocks: of us, or of the server.
pub(crate) fn congestion_of_sender(gap: &Gap<'_>) -> &'static str {
    match setting(gap, "op") {
        Some("bulk") => "tcp.congestion",
        _ => "tcp.peer_congestion",
    }
}

/// Both sides of a view.
pub(crate) fn both<'a>(view: &View<'a>) -> [Path<'a>; 2] {
    [Path::of(view.slow), Path::of(view.fast)]
}

/// A queue makes round trips at least twice as long as the shortest, and by a millisecond: less than that is what CPUs that are
/// woken up add.
pub(crate) fn queues(path: Path<'_>) -> Option<bool> {
    let (loaded_ns, shortest_ns) = (path.loaded_trip_ns()?, path.shortest_trip_ns()?);
    Some(loaded_ns >= 2.0 * shortest_ns && loaded_ns - shortest_ns >= 1e6)
}

/// Segments are lost on the slow side, and not on the fast one: one in a thousand halves the flow of a stream on any distant path
/// (Mathis et al. 1997: about 40 segments under way), and ten are no chance.
pub(crate) fn loses_more(slow: Path<'_>, fast: Path<'_>) -> Option<bool> {
    const LEAST: f64 = 10.0;
    const LEAST_SHARE: f64 = 1e-3;
    /// As for other counters: four times as many are no chance either.
    const CLEARLY: f64 = 4.0;
    let ((count, share), (_, of_fast)) = (slow.sent_again()?, fast.sent_again()?);
    Some(count >= LEAST && share >= LEAST_SHARE && share >= CLEARLY * of_fast)
}

/// How the slow side's flow grows with streams.
pub(crate) struct Streams<'a> {
    /// Over one stream.
    pub(crate) one: View<'a>,
    /// Over several.
    pub(crate) many: View<'a>,
    /// How many times as much flows, as a power of how many times as many streams there are: 1 where each flows among others
    /// as it does alone, 0 where all together flow as one does.
    grown: f64,
}

/// Streams that show whether they add up, where the plan has one: eight times as much is beyond what scatters.
const SEVERAL: usize = 8;

impl Streams<'_> {
    /// Each stream flows among others about as it does alone. As for long responses, the middle half is left to neither.
    pub(crate) fn add_up(&self) -> bool {
        self.grown >= 0.75
    }

    /// All together hardly flow faster than one.
    pub(crate) fn share_one_flow(&self) -> bool {
        self.grown <= 0.25
    }

    /// `1.2 MB/s over one stream, 9.4 MB/s over 8`; of what carries few bytes, ops.
    pub(crate) fn tell(&self) -> String {
        const FEW_BYTES: f64 = 1024.0;
        let flow = |view: &View<'_>| {
            let per_s = view.slow.rate_per_s.unwrap_or(0.0);
            match view.slow.bytes_in_per_op {
                Some(bytes) if bytes >= FEW_BYTES => format!("{}/s", format_bytes(bytes * per_s)),
                _ => format!("{per_s:.1} ops/s"),
            }
        };
        let count = self.many.connections().unwrap_or(0);
        format!("{} over one stream, {} over {count}", flow(&self.one), flow(&self.many))
    }
}

/// How the slow side's flow grows: one stream against the plan's, or against a few where the plan has one.
pub(crate) fn streams<'a>(gap: &Gap<'a>) -> Result<Streams<'a>, Standing> {
    let open = |why: String| Standing::Undecided(gap.not_measured(why));
    let shown = |kind: Kind| match gap.look(kind) {
        Look::Shown(view) => Ok(view),
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => Err(open(why)),
    };
    let (one, many) = match gap.comparison.connections() {
        Some(1) => (gap.comparison.clone(), shown(STREAMS.of(SEVERAL))?),
        Some(_) => (shown(ALONE)?, gap.comparison.clone()),
        None => (shown(ALONE)?, shown(STREAMS.of(SEVERAL))?),
    };
    let rate = |view: &View<'_>| view.slow.rate_per_s.filter(|&rate| rate > 0.0);
    let (Some(of_one), Some(of_many), Some(count)) = (rate(&one), rate(&many), many.connections()) else {
        return Err(open("how the rate grows with streams is not known".to_owned()));
    };
    Ok(Streams { one, many, grown: (of_many / of_one).ln() / f64::from(count).ln() })
}
