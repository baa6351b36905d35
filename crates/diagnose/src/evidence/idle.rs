//! How long connections carry nothing between two requests, and what TCP makes of that.

use crate::gap::Gap;
use duel_model::{LoopKind, Plan};

/// Linux takes a connection for idle that has sent nothing for as long as its retransmission time-out: a round trip and this at least
/// (`TCP_RTO_MIN`). From one response to the next there is a round trip as well, whatever the pause.
const SHORTEST_IDLE_NS: f64 = 200e6;
/// Of pauses between random arrivals one in 55 is four times as long as their mean (exponential distribution).
const RARELY_LONGER: f64 = 4.0;

/// Algorithms of Linux that say themselves how much is sent: such senders do not begin anew after a pause.
const KEEP_THEIR_RATE: [&str; 3] = ["bbr", "bbr2", "bbr3"];

/// Pauses of the plan's connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    /// Between the end of a request and the beginning of the next one over the same connection, on average.
    pub(crate) mean_ns: f64,
    /// They differ from each other.
    are_random: bool,
}

impl Pauses {
    /// Those of the slow side. `None`: there are none that the plan asks for, or how long they are is not known.
    pub(crate) fn of(gap: &Gap<'_>) -> Option<Self> {
        let load = &gap.case.plan.load;
        match load.kind {
            LoopKind::Closed { think_ns: 0 } => None,
            LoopKind::Closed { think_ns } => Some(Self { mean_ns: think_ns as f64, are_random: false }),
            LoopKind::Open { rate_per_s, .. } if rate_per_s > 0.0 => {
                // Idle connections are used in turn.
                let each_ns = f64::from(load.connections) * 1e9 / rate_per_s;
                let mean_ns = (each_ns - gap.comparison.slow.service_mean_ns?).max(0.0);
                Some(Self { mean_ns, are_random: true })
            }
            LoopKind::Open { .. } => None,
        }
    }

    /// Whether hardly any of them is so long that TCP takes the connection for idle.
    pub(crate) fn are_short(self) -> bool {
        let longest = if self.are_random { RARELY_LONGER } else { 1.0 };
        longest * self.mean_ns < SHORTEST_IDLE_NS
    }
}

/// Whether a plan lets connections rest between requests.
pub(crate) fn has_pauses(plan: &Plan) -> bool {
    plan.load.kind != (LoopKind::Closed { think_ns: 0 })
}

/// Whether a side's sender begins anew with few segments after a pause, by the settings of its machine; `None`: not known, or its routes
/// name an algorithm of their own.
pub(crate) fn begins_anew(gap: &Gap<'_>, side: usize) -> Option<bool> {
    match gap.host_fact(side, "tcp.tcp_slow_start_after_idle")? {
        "0" => return Some(false),
        "1" => {}
        _ => return None,
    }
    if gap.host_fact(side, "route.special").is_some_and(|routes| routes.contains("congctl")) {
        return None;
    }
    let algorithm = gap.host_fact(side, "tcp.tcp_congestion_control")?;
    Some(!KEEP_THEIR_RATE.contains(&algorithm))
}
