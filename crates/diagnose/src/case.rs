//! What diagnosis is asked, and how it answers.

use duel_model::{
    Call, Doubt, DoubtId, Explanation, Facts, HttpPlan, Layer, LoopKind, Metric, Nanos, NotMade, PairVerdict, Plan,
    Probe, ProbeOutcome, TargetObservation, Verdict, WorkloadPlan, web,
};
use std::net::IpAddr;

/// Everything that is known when diagnosis is asked for the next step.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What was measured.
    pub plan: &'a Plan,
    /// What came out.
    pub verdict: &'a Verdict,
    /// What each target's first response told, in the plan's order.
    pub first_contact: &'a [Option<Facts>],
    /// What each target showed in the comparison itself, in the plan's order.
    pub comparison: &'a [TargetObservation],
    /// What each target's machine is, in the plan's order; `None` where it is not read, empty where none is.
    pub hosts: &'a [Option<Facts>],
    /// Of which targets' servers private twins may be started, in the plan's order; empty: of none.
    pub twins: &'a [bool],
    /// Bytes that a private copy of a database may have when it is made; `None`: none may be made.
    pub most_copied_bytes: Option<u64>,
    /// Other addresses of this machine that connections to all targets can be made from; else why there is none.
    pub sources: Result<&'a [IpAddr], &'a str>,
    /// Ops after which each request of a list, and each row of values, was sent as often as any other; `None` where all ops
    /// ask for the same, or draw what they ask for.
    pub round_ops: Option<u64>,
    /// The probes that were made so far, in order.
    pub outcomes: &'a [ProbeOutcome],
    /// Whether a `duel net serve` answers on each target's machine.
    pub has_net_servers: bool,
    /// What lies below the same targets, in the same order, once a probe has measured it: cases of other kinds of work, with probes of
    /// their own.
    pub below: &'a [(Layer, Case<'a>)],
    /// Load time that further probes may take.
    pub budget_left_ns: Nanos,
}

/// What is to be done next.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make this probe on all targets and ask again.
    Probe(Probe),
    /// Nothing is left to be asked: this is the explanation.
    Conclude(Explanation),
}

impl<'a> Case<'a> {
    /// One of targets whose machines are not read, about which nothing was asked yet, and for which no time is left.
    pub fn of(
        plan: &'a Plan,
        verdict: &'a Verdict,
        first_contact: &'a [Option<Facts>],
        comparison: &'a [TargetObservation],
    ) -> Self {
        Self {
            plan,
            verdict,
            first_contact,
            comparison,
            hosts: &[],
            twins: &[],
            most_copied_bytes: None,
            sources: Err("other addresses were not looked for"),
            round_ops: None,
            outcomes: &[],
            has_net_servers: false,
            below: &[],
            budget_left_ns: 0,
        }
    }

    /// What lies below the targets there, once it was measured.
    pub(crate) fn layer(&self, layer: Layer) -> Option<&'a Case<'a>> {
        self.below.iter().find(|(known, _)| *known == layer).map(|(_, case)| case)
    }

    /// A fact that was negotiated with a target: as seen in the comparison, else at the first contact.
    pub(crate) fn fact<T>(&self, target: usize, of: impl Fn(&'a Facts) -> Option<T>) -> Option<T> {
        let seen = self.comparison.get(target).and_then(|seen| seen.negotiated.as_ref());
        let first = self.first_contact.get(target).and_then(Option::as_ref);
        seen.and_then(&of).or_else(|| first.and_then(&of))
    }

    pub(crate) fn http(&self) -> Option<&'a HttpPlan> {
        match &self.plan.workload {
            WorkloadPlan::Http(http) => Some(http),
            WorkloadPlan::Plain(_) => None,
        }
    }

    /// Whether the user ended the search: the last probe was not finished, and none follows.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.unavailable == Some(NotMade::Interrupted))
    }

    pub(crate) fn is_open_loop(&self) -> bool {
        matches!(self.plan.load.kind, LoopKind::Open { .. })
    }

    /// What the comparison is judged by. In an open loop the rate is the schedule's, so the time it is.
    pub(crate) fn main_metric(&self) -> Metric {
        if self.is_open_loop() { Metric::ResponseP50 } else { Metric::Rate }
    }

    /// Each target after the baseline with the judgement that its gap is looked for by, in the plan's order: that in the main metric. Where
    /// the rate leaves open whether there is a gap, and the median calls one, it is the median's: stalls that come to either make
    /// rates scatter, and medians not.
    pub fn main_pairs(&self) -> impl Iterator<Item = (usize, &'a PairVerdict)> {
        let (plan, verdict, metric) = (self.plan, self.verdict, self.main_metric());
        plan.targets.iter().enumerate().skip(1).filter_map(move |(index, target)| {
            let of_target = || verdict.pairs.iter().filter(|pair| pair.target == target.name);
            let by = |metric| of_target().find(|pair| pair.metric == metric);
            let main = by(metric).or_else(|| of_target().next())?;
            let median =
                by(Metric::ResponseP50).filter(|median| is_open_by(main, median) && !is_overloaded(verdict, main));
            Some((index, median.unwrap_or(main)))
        })
    }

    pub(crate) fn margin_log(&self) -> f64 {
        self.plan.compare.margin.max(0.0).ln_1p()
    }

    /// Whether a private twin of this target's server may be started.
    pub(crate) fn may_have_twin(&self, target: usize) -> bool {
        self.twins.get(target).copied().unwrap_or(false)
    }

    pub(crate) fn outcome(&self, id: &str) -> Option<&'a ProbeOutcome> {
        self.outcomes.iter().find(|outcome| outcome.probe.id == id)
    }

    /// Smallest response body over all targets: what a size sweep can ask of each of them.
    pub(crate) fn smallest_body_bytes(&self) -> Option<f64> {
        let mut smallest = None::<f64>;
        for index in 0..self.plan.targets.len() {
            let seen = self.comparison.get(index).and_then(|observation| observation.body_bytes_per_op);
            let first = || self.first_contact.get(index)?.as_ref()?.number(web::BODY_BYTES);
            let bytes = seen.or_else(first)?;
            smallest = Some(smallest.map_or(bytes, |other| other.min(bytes)));
        }
        smallest
    }
}

/// Whether the rate leaves open what the median calls. Probes are judged by rates: they cannot tell of a gap that is for the most part not
/// in the rate.
fn is_open_by(rate: &PairVerdict, median: &PairVerdict) -> bool {
    const LEAST_SHARE: f64 = 0.5;
    let slower = match median.call {
        Call::Slower => 1.0,
        Call::Faster => -1.0,
        Call::Equivalent | Call::Unknown => return false,
    };
    let Some((gap, _, _)) = median.slowdown() else { return false };
    let most_log = rate.slowdown().map(|(_, low, high)| (slower * low.ln()).max(slower * high.ln()));
    rate.metric == Metric::Rate
        && rate.call == Call::Unknown
        && most_log.is_none_or(|most| most >= LEAST_SHARE * slower * gap.ln())
}

/// Whether the generator was what held a pair back. A rate that was not reached is not meant: that is what a slow server looks like in an
/// open loop.
pub(crate) fn is_overloaded(verdict: &Verdict, pair: &PairVerdict) -> bool {
    let is_of_pair =
        |doubt: &&Doubt| doubt.target.as_ref().is_none_or(|name| [&pair.target, &pair.baseline].contains(&name));
    let mut doubts = verdict.doubts.iter().filter(is_of_pair);
    doubts.any(|doubt| matches!(doubt.id, DoubtId::GeneratorSaturated | DoubtId::ScheduleLag))
}
