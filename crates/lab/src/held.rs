//! The gaps that a probe is held against: how sharp it need be follows from them.

use duel_model::{Call, Metric, PairVerdict, Plan, Probe, ProbeOutcome, TargetObservation, Variation, Verdict};
use duel_stats::{Held, WholeGap};

/// What was seen of the targets so far.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) verdict: &'a Verdict,
    pub(crate) comparison: &'a [TargetObservation],
    pub(crate) outcomes: &'a [ProbeOutcome],
}

impl Known<'_> {
    /// The gaps that were called by all of the time.
    pub(crate) fn by_whole(&self) -> Vec<WholeGap> {
        WholeGap::of(self.verdict, self.comparison)
    }
}

/// The gaps under the probe's number of connections, as the probe that changes nothing else has shown them, or the comparison.
///
/// None, where it changes the number of connections and nothing else: what it shows is what others are held against. None
/// either of what is not known by rates, such as the gap in an open loop.
pub(crate) fn against(plan: &Plan, probe: &Probe, known: Known<'_>) -> Vec<Held> {
    let connections = |probe: &Probe| probe.variation.connections.unwrap_or_else(|| plan.lanes());
    let shows_gap = only_connections(probe);
    if shows_gap && !probe.reads_hosts && connections(probe) != plan.lanes() {
        return Vec::new();
    }
    let as_it_is = known.outcomes.iter().find(|outcome| {
        let same_load = only_connections(&outcome.probe) && connections(&outcome.probe) == connections(probe);
        same_load && !outcome.probe.reads_hosts && !outcome.pairs.is_empty()
    });
    let (pairs, seen) = match as_it_is {
        Some(outcome) => (&outcome.pairs[..], &outcome.targets[..]),
        None if connections(probe) == plan.lanes() => (&known.verdict.pairs[..], known.comparison),
        None => return Vec::new(),
    };
    let share = if shows_gap { Held::TO_BE_SEEN } else { Held::OF_A_FLIP };
    pairs.iter().filter_map(|pair| gap(plan, pair, seen, share)).collect()
}

fn gap(plan: &Plan, pair: &PairVerdict, seen: &[TargetObservation], share: f64) -> Option<Held> {
    let target = plan.targets.iter().position(|target| target.name == pair.target)?;
    let fast = match pair.call {
        Call::Slower => 0,
        Call::Faster => target,
        Call::Equivalent | Call::Unknown => return None,
    };
    let log = pair.ratio.filter(|_| pair.metric == Metric::Rate)?.ln().abs();
    Some(Held { target, log, share, fast, fast_per_s: seen.get(fast)?.rate_per_s? })
}

/// Whether a probe changes nothing, or the number of connections alone.
fn only_connections(probe: &Probe) -> bool {
    Variation { connections: None, ..probe.variation.clone() } == Variation::default()
}
