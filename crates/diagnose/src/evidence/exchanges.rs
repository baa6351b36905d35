//! Exchanges with another program at the ends of the targets' paths (`duel net serve`), held beside the gap of the targets.

use crate::case::Case;
use crate::cause::Standing;
use crate::evidence::below::{measured, nested, told_of};
use crate::evidence::paths::{Sends, sends_of};
use crate::evidence::stall::DATA_SENT_AGAIN_NS;
use crate::gap::{Gap, View};
use crate::path::Path;
use duel_model::{Evidence, Layer, PEER, TargetObservation, format_bytes, format_duration_ns, sanitize_line};
use std::net::SocketAddr;

/// Exchanges of as many bytes as the targets' answers, as many at a time as ops are in flight where the gap is held.
pub(crate) struct Exchanges<'a> {
    paths: &'a Case<'a>,
    sides: [usize; 2],
    slow: &'a TargetObservation,
    fast: &'a TargetObservation,
    at_a_time: u32,
}

/// An op cannot be shorter than the exchange that is a part of it, but for what both scatter: they are measured one after the other.
const MOST_OF_OP: f64 = 1.5;
/// Under load the path is what all ops wait for only if exchanges take nearly all of their time.
const BUSY: f64 = 0.85;

impl<'a> Exchanges<'a> {
    /// Wants the probe that makes them; undecided where they cannot be held against `view`.
    pub(crate) fn of(gap: &Gap<'a>, view: &View<'_>) -> Result<Self, Standing> {
        let paths = measured(gap, Layer::Path)?;
        let sides = [gap.slow, gap.fast];
        let open = |why: String| Standing::Undecided(told_of(paths, sides, Layer::Path, why));
        ensure_same_ends(gap, paths).map_err(open)?;
        let at_a_time = paths.plan.ops_at_a_time();
        if view.connections() != Some(at_a_time) {
            return Err(open(format!("exchanges were made {at_a_time} at a time, and this gap is not held so")));
        }
        match sides.map(|side| paths.comparison.get(side)) {
            [Some(slow), Some(fast)] => Ok(Self { paths, sides, slow, fast, at_a_time }),
            _ => Err(open("how exchanges with `duel net serve` go is not known of both paths".to_owned())),
        }
    }

    /// Evidence from them.
    pub(crate) fn told(&self, text: String) -> Evidence {
        told_of(self.paths, self.sides, Layer::Path, text)
    }

    /// What TCP said of them, on the slow side and on the fast one.
    pub(crate) fn both(&self) -> [Path<'a>; 2] {
        [Path::of(self.slow), Path::of(self.fast)]
    }

    /// Whether the end that sends answers tells what its TCP did. Of short exchanges it is our end that tells, and it sends requests.
    pub(crate) fn sender_tells(&self) -> bool {
        let brings = |sends: Sends| matches!(sends, Sends::Exchange { bytes } if bytes > Sends::ONE_FLIGHT_BYTES);
        sends_of(self.paths).is_some_and(brings)
    }

    /// The share of those of the slow side that take as long as a time-out of TCP, at most; `None`: not known.
    pub(crate) fn timed_out(&self) -> Option<f64> {
        self.slow.service_profile.most_from(DATA_SENT_AGAIN_NS)
    }

    /// The congestion control of the slow side's sender, and of the fast side's.
    pub(crate) fn congestion(&self) -> [Option<&'a str>; 2] {
        self.sides.map(|side| self.paths.text(side, "tcp.peer_congestion"))
    }

    /// How long one takes on the slow side and on the fast one, by all of the time.
    fn each_ns(&self) -> Option<[f64; 2]> {
        Some([each_ns(self.slow, self.at_a_time)?, each_ns(self.fast, self.at_a_time)?])
    }

    /// `an exchange of 60.2 kB with ... takes 1.36 ms on the path to B, and 64.5 µs on that to A`.
    pub(crate) fn tell(&self, gap: &Gap<'_>) -> String {
        let ns = |side: &TargetObservation| each_ns(side, self.at_a_time).map_or("?".to_owned(), format_duration_ns);
        format!(
            "an exchange of {} with `duel net serve` takes {} on the path to {}, and {} on that to {}, {} at a time",
            format_bytes(self.slow.bytes_in_per_op.unwrap_or(0.0)),
            ns(self.slow),
            gap.slow_name(),
            ns(self.fast),
            gap.fast_name(),
            self.at_a_time
        )
    }

    /// The share of what exchanges take longer on the slow side in which their sender had data under way: longer than on the fast side. A
    /// program that waits for a CPU has nothing under way. `None`: not known.
    pub(crate) fn under_way(&self) -> Option<f64> {
        let [slow_ns, fast_ns] = self.each_ns()?;
        let [slow, fast] = self.both().map(|path| path.busy_ns_per_op());
        self.sender_tells().then_some((slow? - fast?) / (slow_ns - fast_ns))
    }

    /// The share of the gap that goes away when an op of the slow side is spared what exchanges take longer there; else why they are not
    /// held against it.
    pub(crate) fn worth(&self, gap: &Gap<'a>, view: &View<'_>) -> Result<f64, Standing> {
        let op = gap.case.plan.schema().op.one;
        // Slower beyond doubt.
        let below = nested(gap, Layer::Path)?;
        let takes = self.tell(gap);
        let open = |text: String| Standing::Undecided(self.told(text));
        let whole = [view.slow, view.fast].map(|side| each_ns(side, self.at_a_time));
        let (Some([slow_ns, fast_ns]), [Some(whole_slow_ns), Some(whole_fast_ns)]) = (self.each_ns(), whole) else {
            return Err(open(format!("how long exchanges and {op}s take is not known")));
        };
        // By what it takes longer at least: losses scatter widely.
        let least_ns = fast_ns * below.comparison.log.low().exp();
        if least_ns > MOST_OF_OP * whole_slow_ns || fast_ns > MOST_OF_OP * whole_fast_ns {
            let wholes = [whole_slow_ns, whole_fast_ns].map(format_duration_ns);
            return Err(open(format!("{takes}; the {op} takes {} and {}: it is done otherwise", wholes[0], wholes[1])));
        }
        if self.at_a_time > 1 && slow_ns < BUSY * whole_slow_ns {
            let whole = format_duration_ns(whole_slow_ns);
            return Err(open(format!("{takes}, and the {op} takes {whole}: the path is not what all wait for")));
        }
        // The gap may be of the typical pair of slots alone.
        if whole_slow_ns <= whole_fast_ns {
            let slow = gap.slow_name();
            return Err(open(format!("{takes}; over all of the time the {op}s of {slow} take no longer")));
        }
        let left_ns = (whole_slow_ns - (slow_ns - fast_ns)).max(whole_fast_ns);
        let share = 1.0 - (left_ns / whole_fast_ns).ln() / (whole_slow_ns / whole_fast_ns).ln();
        if share.is_nan() { Err(open(format!("{takes}: what that is worth is not known"))) } else { Ok(share.max(0.0)) }
    }
}

/// How long an op takes by all of the time, ns: where a few ops take a hundred times as long as the others, the typical pair of slots
/// is far from that.
fn each_ns(seen: &TargetObservation, at_a_time: u32) -> Option<f64> {
    let ns = f64::from(at_a_time) * 1e9 / seen.rate_per_s?;
    (ns.is_finite() && ns > 0.0).then_some(ns)
}

/// The other program answers at the addresses that the targets answer at: else exchanges may have gone another way.
fn ensure_same_ends(gap: &Gap<'_>, paths: &Case<'_>) -> Result<(), String> {
    for side in [gap.slow, gap.fast] {
        let name = gap.name(side);
        let [of_target, of_program] = [&gap.case, paths].map(|case| case.text(side, PEER));
        let address = |peer: Option<&str>| peer.and_then(|peer| peer.parse::<SocketAddr>().ok()).map(|at| at.ip());
        match (address(of_target), address(of_program)) {
            (Some(target), Some(program)) if target == program => {}
            (Some(target), Some(program)) => {
                return Err(format!(
                    "{name} is reached at {target}, and its `duel net serve` at {program}: that may be another path"
                ));
            }
            _ => {
                let told = of_target.map_or_else(|| "an address that is not known".to_owned(), sanitize_line);
                return Err(format!(
                    "{name} is reached at {told}: whether its `duel net serve` is on the same path is not known"
                ));
            }
        }
    }
    Ok(())
}
