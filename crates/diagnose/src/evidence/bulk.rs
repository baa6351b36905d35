//! How fast long responses of the slow side flow: over one connection, and over several at once.

use crate::cause::Standing;
use crate::evidence::trip::Trip;
use crate::gap::{Gap, Look, View, phase_differences};
use crate::probes::{ALONE, CONNECTIONS, Kind, SMALLEST_SWEEP_BYTES};
use duel_model::web::phase;
use duel_model::{Body, HttpPlan, LoopKind, TargetObservation, format_bytes};

/// Connections that show whether streams add up, where the plan has one only.
const STREAMS: u32 = 4;

/// No socket sends with a smaller buffer than one page on Linux (`tcp_wmem`): a window below that is none.
pub(crate) const LEAST_WINDOW_BYTES: f64 = 4096.0;

/// How the slow side's bytes flow.
pub(crate) struct Bulk<'a> {
    /// Bytes per second over one connection, waiting for responses included.
    pub(crate) alone_bytes_per_s: f64,
    /// Over several.
    pub(crate) many_bytes_per_s: f64,
    pub(crate) connections: u32,
    pub(crate) growth: Growth,
    /// Where a single connection was seen.
    pub(crate) alone: View<'a>,
    /// Where several connections were seen.
    pub(crate) many: View<'a>,
}

/// How throughput grows with the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Each connection flows as fast among others as alone, about.
    Scales,
    /// All of them together hardly flow faster than one.
    Stays,
    /// Neither.
    Between,
}

impl Bulk<'_> {
    /// A flow that is held back evenly takes as long for each response of a size; one that stalls now and then has a
    /// mean far above what is usual. `None` where the times of receiving are not known.
    pub(crate) fn is_even(&self) -> Option<bool> {
        /// Bursts that a cap lets pass make some responses quick, which brings the mean below the median rather.
        const EVEN: f64 = 1.3;
        let profile = self.alone.slow.phase_profile.get(&phase::RECEIVE.id())?;
        let mean_ns = self.alone.slow.phase_mean_ns.get(&phase::RECEIVE.id())?;
        Some(*mean_ns <= EVEN * profile.quantile_ns(0.5)? as f64)
    }

    /// Bytes that a side has under way for each round trip while a response is received over one connection; `None`
    /// where that is not known, and infinite where receiving takes no time.
    pub(crate) fn under_way_bytes(&self, seen: &TargetObservation, trip: Trip) -> Option<f64> {
        let receive_ns = seen.phase_mean_ns.get(&phase::RECEIVE.id())?;
        Some(seen.body_bytes_per_op? / receive_ns * trip.typical.mid).filter(|bytes| !bytes.is_nan())
    }

    /// `12.1 MB/s over one connection, 48.0 MB/s over 4`.
    pub(crate) fn tell(&self) -> String {
        format!(
            "{}/s over one connection, {}/s over {}",
            format_bytes(self.alone_bytes_per_s),
            format_bytes(self.many_bytes_per_s),
            self.connections
        )
    }
}

/// How the slow side's bytes flow over one connection and over several: the plan's, or a few where the plan has one.
pub(crate) fn bulk<'a>(gap: &Gap<'a>) -> Result<Bulk<'a>, Standing> {
    let missing = |why: String| Standing::Undecided(gap.evidence(&gap.comparison, why));
    let shown = |kind: Kind| match gap.look(kind) {
        Look::Shown(view) => Ok(view),
        Look::NotAsked(probe) => Err(Standing::Wants(vec![probe])),
        Look::Missing(why) => Err(missing(why)),
    };
    let (alone, many) = match gap.comparison.connections() {
        Some(1) => (gap.comparison.clone(), shown(CONNECTIONS.of(STREAMS as usize))?),
        Some(_) => (shown(ALONE)?, gap.comparison.clone()),
        // An open loop leaves connections idle: what flows there is what is asked for.
        None => (shown(ALONE)?, shown(CONNECTIONS.of(STREAMS as usize))?),
    };
    let (Some(alone_bytes_per_s), Some(many_bytes_per_s), Some(requests)) =
        (bytes_per_s(gap, &alone), bytes_per_s(gap, &many), many.connections())
    else {
        return Err(missing("how many bytes flow is not known".to_owned()));
    };
    // A window, or a cap for each flow, is that of a connection, however many requests that carries at a time.
    let connections = requests / gap.case.http().map_or(1, HttpPlan::streams);
    if connections < 2 {
        return Err(missing("one connection carries all requests: whether several carry more is not known".to_owned()));
    }
    // The middle between "as one" and "as many as there are" is its root; a quarter to either side is left to neither.
    let grown = (many_bytes_per_s / alone_bytes_per_s).ln() / f64::from(connections).ln();
    let growth = match grown {
        grown if grown >= 0.75 => Growth::Scales,
        grown if grown <= 0.25 => Growth::Stays,
        _ => Growth::Between,
    };
    Ok(Bulk { alone_bytes_per_s, many_bytes_per_s, connections, growth, alone, many })
}

/// How fast the slow side's bytes flow, all connections together.
///
/// By the time of an op, while one is under way on each connection. At a slot's end connections wait for the last one, on
/// average for half an op; where a slot holds two or three ops for each, the rate is lower by as much, and the more
/// connections there are the lower. It is what there is where connections think, or requests fail.
fn bytes_per_s(gap: &Gap<'_>, view: &View<'_>) -> Option<f64> {
    let seen = view.slow;
    // Probes have no think time.
    let thinks = view.id == gap.comparison.id && gap.case.plan.load.kind != LoopKind::Closed { think_ns: 0 };
    let ops_per_s = match (view.connections(), seen.service_mean_ns) {
        (Some(connections), Some(op_ns)) if !thinks && seen.failed == 0 && op_ns > 0.0 => {
            f64::from(connections) * 1e9 / op_ns
        }
        _ => seen.rate_per_s?,
    };
    Some(ops_per_s * seen.body_bytes_per_op?)
}

/// Bytes that each request carries; `None` where that is not known.
pub(crate) fn sent_bytes(http: &HttpPlan) -> Option<u64> {
    if http.requests.form.is_some() || http.requests.may_write() {
        return None;
    }
    match &http.body {
        Body::None => Some(0),
        Body::Text(text) => Some(text.len() as u64),
        Body::Generated(bytes) => Some(*bytes),
        Body::File(_) => None,
    }
}

/// What is said of responses by themselves acquits nobody where requests may carry enough to flow as well: those may be held up
/// by the same thing the other way.
pub(crate) fn needs_small_requests(gap: &Gap<'_>) -> Result<(), Standing> {
    let Some(http) = gap.case.http() else { return Ok(()) };
    let sent = match sent_bytes(http) {
        Some(bytes) if bytes as f64 <= LEAST_WINDOW_BYTES => return Ok(()),
        Some(bytes) => format_bytes(bytes as f64),
        None => "an unknown number of bytes".to_owned(),
    };
    let text = format!("requests carry {sent}, and only how fast responses flow is looked at");
    Err(Standing::Undecided(gap.at_reference(text)))
}

/// How much longer an op of the slow side takes to receive, ns; the standing where that is not what the gap consists of,
/// or where responses are too short to flow at all.
pub(crate) fn longer_receiving_ns(gap: &Gap<'_>, reference: &View<'_>) -> Result<f64, Standing> {
    if gap.case.smallest_body_bytes().is_none_or(|bytes| bytes < SMALLEST_SWEEP_BYTES) {
        let text = "the responses are too small, or of unknown size, to tell how fast bytes flow".to_owned();
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    }
    let differences = phase_differences(reference);
    let whole_ns: f64 = differences.iter().map(|(_, ns)| ns).sum();
    let receive_ns = differences.iter().find(|(phase, _)| *phase == phase::RECEIVE).map(|(_, ns)| *ns);
    let Some(receive_ns) = receive_ns.filter(|_| whole_ns > 0.0) else {
        let text = "how long receiving takes is not known".to_owned();
        return Err(Standing::Undecided(gap.evidence(reference, text)));
    };
    if receive_ns < 0.5 * whole_ns {
        needs_small_requests(gap)?;
        let text = format!("receiving makes {:.0} % of the difference only", 100.0 * (receive_ns / whole_ns).max(0.0));
        return Err(Standing::RuledOut(gap.evidence(reference, text)));
    }
    Ok(receive_ns)
}

/// The largest send buffer that the kernel gives a connection by itself: the last of three numbers.
pub(crate) fn largest_window_bytes(gap: &Gap<'_>, side: usize) -> Option<f64> {
    let largest = gap.host_fact(side, "tcp.tcp_wmem")?.split_ascii_whitespace().nth(2)?.parse::<f64>().ok()?;
    (largest > 0.0 && largest.is_finite()).then_some(largest)
}
