//! A run held against thresholds: kept, broken, or not known.
//!
//! A promise such as `p99<200ms` is held against all requests of the run, so it is kept or broken as a matter of fact: this
//! run's requests are counted, and nothing is inferred from them. What may come out otherwise next time by chance alone is
//! told beside it. Whether one target is slower than another is inferred, and rests on the interval of the verdict.

use crate::observe::share;
use crate::search::rate_searches;
use crate::side::MISSING;
use crate::slots::without_spoilt;
use duel_model::{
    Call, Contest, Distribution, Doubt, DoubtId, Metric, PairVerdict, Promise, PromiseMetric, RateSearch, Run,
    SearchEnd, Slot, SlotRole, Standstill, Streamed, Tally, Target, Threshold, Verdict, format_duration_ns,
    format_ratio,
};

/// How a target stands to a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Name of the target, or of the [`CheckSubject`].
    pub target: String,
    /// Kept, broken or not known.
    pub standing: CheckStanding,
    /// The figure that was held against the threshold, in the unit of [`Promise::limit`], or the slowdown.
    pub figure: Option<f64>,
    /// Why it is not known, or what else has to be said; empty where there is nothing.
    pub remark: String,
}

/// Kept, broken or not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStanding {
    /// The threshold is kept.
    Kept,
    /// It is not.
    Broken,
    /// The run does not tell.
    Unknown,
}

/// What promises are held for: a target, and where the run has factors, a target under one treatment. Requests of several
/// treatments are never mixed: the many of a light load would hide the few of a heavy one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSubject {
    /// The target's place in the plan.
    pub target: usize,
    /// The treatment, where there are factors.
    pub treatment: Option<u32>,
    /// Both in words, such as `A at connections 64`. Foreign text: to be made safe before it is shown.
    pub name: String,
}

impl CheckSubject {
    /// All of a run, in the plan's order.
    pub fn all(run: &Run) -> Vec<Self> {
        let plan = &run.plan;
        let targets = plan.targets.iter().enumerate();
        if plan.factors.is_empty() {
            let alone =
                |(place, target): (usize, &Target)| Self { target: place, treatment: None, name: target.name.clone() };
            return targets.map(alone).collect();
        }
        let under = |(place, target): (usize, &Target), treatment: usize| Self {
            target: place,
            treatment: u32::try_from(treatment).ok(),
            name: format!("{} at {}", target.name, plan.treatment_name(treatment)),
        };
        targets.flat_map(|target| (0..plan.treatments()).map(move |treatment| under(target, treatment))).collect()
    }

    fn has(&self, slot: &Slot) -> bool {
        slot.target == self.target && slot.treatment == self.treatment && slot.role == SlotRole::Measured
    }
}

/// What one target did in all its measured slots, or in those under one treatment; where a rate was looked for, in the
/// attempts at the highest one that were kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetFigures {
    tally: Tally,
    elapsed_ns: u128,
    /// How the generator itself stood still meanwhile.
    standstill: Standstill,
}

/// Holds a run against a threshold: a promise for each [`CheckSubject`], a comparison for all targets but the baseline.
///
/// Pure: an archived run can be checked against other thresholds.
pub fn check(run: &Run, verdict: &Verdict, threshold: &Threshold) -> Vec<Checked> {
    let targets = run.plan.targets.iter().enumerate();
    if !verdict.searches.is_empty() {
        return targets
            .filter_map(|(place, target)| Some(searched(run, verdict, threshold, place)?.named(&target.name)))
            .collect();
    }
    match threshold {
        Threshold::Promise(promise) => CheckSubject::all(run)
            .iter()
            .map(|subject| {
                let hampered = is_hampered(verdict, &run.plan.targets[subject.target].name);
                keeps(&TargetFigures::of(run, subject), *promise, hampered).named(&subject.name)
            })
            .collect(),
        Threshold::Slower { metric, by, .. } => run
            .plan
            .targets
            .iter()
            .enumerate()
            .skip(1)
            .map(|(place, target)| {
                let pair = verdict.pairs.iter().find(|pair| {
                    pair.target == target.name && metric.is_none_or(|metric: Metric| pair.metric == metric)
                });
                let judged = match pair {
                    None if run.plan.is_streamed() => Checked::new(CheckStanding::Unknown, None, untimed()),
                    _ => is_slower(pair, *by, is_biased(run, verdict, place)),
                };
                judged.named(&target.name)
            })
            .collect(),
    }
}

impl Checked {
    fn new(standing: CheckStanding, figure: Option<f64>, remark: impl Into<String>) -> Self {
        Self { target: String::new(), standing, figure, remark: remark.into() }
    }

    fn named(self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self }
    }
}

impl TargetFigures {
    /// Of one subject of a run.
    pub fn of(run: &Run, subject: &CheckSubject) -> Self {
        let mut figures = Self::default();
        let searches = rate_searches(run);
        let is_of_subject = |slot: &&Slot| match searches.get(subject.target) {
            Some(search) => slot.target == subject.target && search.is_of_answer(slot),
            None => subject.has(slot),
        };
        let slots: Vec<&Slot> = run.slots.iter().filter(is_of_subject).collect();
        for slot in without_spoilt(&slots) {
            figures.tally.merge(&slot.tally);
            figures.standstill.merge(&slot.standstill());
            figures.elapsed_ns += u128::from(slot.elapsed_ns);
        }
        figures
    }

    /// The figure that a promise is made of; `None` where nothing tells.
    pub fn figure(&self, metric: PromiseMetric) -> Option<f64> {
        let (tally, due) = (&self.tally, self.due());
        match metric {
            PromiseMetric::Quantile { .. } => tally.response.quantile_ns(metric.quantile()?).map(|ns| ns as f64),
            PromiseMetric::Mean => tally.response.mean_ns(),
            PromiseMetric::Max => tally.response.max_ns().map(|ns| ns as f64),
            PromiseMetric::Errors => share(due - tally.ok, due),
            PromiseMetric::Done => share(tally.ok, due),
            PromiseMetric::Rate => (self.elapsed_ns > 0).then(|| tally.ok as f64 * 1e9 / self.elapsed_ns as f64),
        }
    }

    /// Ops that became due.
    pub fn due(&self) -> u64 {
        self.tally.due()
    }

    /// Ops that ended well.
    pub fn ok(&self) -> u64 {
        self.tally.ok
    }

    /// What the first failure said, safe to show.
    pub fn failure_example(&self) -> Option<&str> {
        self.tally.failure_examples.first().map(String::as_str)
    }

    /// What a figure may have been, had the generator not stood still: a response met one standstill at most, and the rate is
    /// that of the rest of the time.
    fn without_standstill(&self, metric: PromiseMetric, figure: f64) -> f64 {
        let (still, elapsed_ns) = (self.standstill, self.elapsed_ns as f64);
        match metric {
            PromiseMetric::Errors | PromiseMetric::Done => figure,
            PromiseMetric::Rate => figure * elapsed_ns / (elapsed_ns - still.total_ns as f64).max(1.0),
            _ => (figure - still.longest_ns as f64).max(0.0),
        }
    }

    /// Ops without a response time: they failed at once, and are neither the fast ones nor the slow ones.
    fn timeless(&self) -> u64 {
        self.due().saturating_sub(self.tally.response.count())
    }
}

/// A threshold and a target whose highest rate was looked for; `None` for the baseline, which is compared with nothing.
fn searched(run: &Run, verdict: &Verdict, threshold: &Threshold, place: usize) -> Option<Checked> {
    let search = verdict.searches.get(place)?;
    match threshold {
        Threshold::Promise(promise) if promise.metric == PromiseMetric::Rate => Some(keeps_rate(search, *promise)),
        Threshold::Promise(promise) => {
            let subject = CheckSubject { target: place, treatment: None, name: run.plan.targets[place].name.clone() };
            Some(keeps(&TargetFigures::of(run, &subject), *promise, false))
        }
        Threshold::Slower { metric: None | Some(Metric::Rate), by, .. } => {
            let name = &run.plan.targets[place].name;
            Some(is_slower_at_most(verdict.contests.iter().find(|contest| contest.target == *name)?, *by))
        }
        Threshold::Slower { .. } if place == 0 => None,
        Threshold::Slower { .. } => Some(Checked::new(
            CheckStanding::Unknown,
            None,
            "where a rate is looked for, only the highest rates are compared",
        )),
    }
}

/// A promised rate and the highest one that was kept: it lies above what was kept, and below what was not.
fn keeps_rate(search: &RateSearch, promise: Promise) -> Checked {
    let holds = |per_s: Option<f64>| per_s.map(|per_s| promise.holds(per_s));
    let standing = match (holds(search.kept_per_s), holds(search.broken_per_s)) {
        (Some(true), _) => CheckStanding::Kept,
        (_, Some(false)) if search.end != SearchEnd::Generator => CheckStanding::Broken,
        _ => CheckStanding::Unknown,
    };
    let remark = match standing {
        CheckStanding::Unknown => "the search did not come so far, or the generator was the limit",
        CheckStanding::Kept | CheckStanding::Broken => "",
    };
    Checked::new(standing, search.kept_per_s, remark)
}

/// Whether the highest rate of a target is lower by more than `by`. That it is lower at all is known by what both did head to
/// head, by how much by the brackets.
fn is_slower_at_most(contest: &Contest, by: f64) -> Checked {
    let inverse = |value: Option<f64>| value.map(|value| 1.0 / value);
    let (figure, least, most) = (inverse(contest.ratio), inverse(contest.high), inverse(contest.low));
    let limit = 1.0 + by;
    let shown = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:.3}"));
    let bracket = format!("bracket {} to {}", shown(least), shown(most));
    match contest.call {
        Call::Faster => Checked::new(CheckStanding::Kept, figure, bracket),
        Call::Slower if least.is_some_and(|least| least > limit) => {
            Checked::new(CheckStanding::Broken, figure, bracket)
        }
        Call::Slower if most.is_some_and(|most| most <= limit) => Checked::new(CheckStanding::Kept, figure, bracket),
        Call::Slower => {
            Checked::new(CheckStanding::Unknown, figure, format!("{bracket}: the limit of {limit} is within"))
        }
        Call::Equivalent | Call::Unknown => {
            Checked::new(CheckStanding::Unknown, figure, format!("{bracket}, and not called"))
        }
    }
}

fn keeps(figures: &TargetFigures, promise: Promise, hampered: bool) -> Checked {
    let figure = figures.figure(promise.metric);
    let Some(value) = figure else {
        let is_untimed = promise.metric.is_time() && figures.tally.is_streamed();
        let remark = if is_untimed { untimed() } else { "nothing was measured".to_owned() };
        return Checked::new(CheckStanding::Unknown, None, remark);
    };
    let held = |holds: bool| if holds { CheckStanding::Kept } else { CheckStanding::Broken };
    let timeless = figures.timeless();
    let (standing, remark) = match promise.metric.quantile() {
        Some(q) => of_quantile(&figures.tally.response, timeless, q, promise),
        None if promise.metric.is_time()
            && promise.holds(value)
            && share(timeless, figures.due()).is_some_and(|share| share > MISSING) =>
        {
            (CheckStanding::Unknown, failed_without_a_time(timeless))
        }
        None => (held(promise.holds(value)), String::new()),
    };
    if standing == CheckStanding::Broken && promise.holds(figures.without_standstill(promise.metric, value)) {
        let remark = "the generator itself stood still for a while, so the target may do better";
        return Checked::new(CheckStanding::Unknown, figure, remark);
    }
    let is_ours = hampered && !matches!(promise.metric, PromiseMetric::Errors | PromiseMetric::Done);
    if is_ours && standing == CheckStanding::Broken {
        let remark = "the generator itself was the bottleneck, so the target may do better";
        return Checked::new(CheckStanding::Unknown, figure, remark);
    }
    Checked::new(standing, figure, remark)
}

/// A quantile, where ops that have no response time may have been as fast or as slow as they like.
fn of_quantile(response: &Distribution, timeless: u64, q: f64, promise: Promise) -> (CheckStanding, String) {
    let (timed, all) = (response.count(), response.count() + timeless);
    // Below that the quantile is the maximum, and says nothing of its own.
    let fewest = (1.0 / (1.0 - q)).round() as u64;
    if all < fewest {
        return (CheckStanding::Unknown, format!("{all} requests are too few: it takes {fewest} at least"));
    }
    let rank = (q * all as f64).ceil();
    // The op of this rank among those with a time, if all others were the fastest, or the slowest.
    let at = |rank: f64| (rank <= timed as f64).then(|| response.quantile_ns(rank / timed as f64)).flatten();
    let least = at((rank - timeless as f64).max(1.0));
    let most = at(rank);
    if most.is_some_and(|most| promise.holds(most as f64)) {
        (CheckStanding::Kept, chance(response, q, promise))
    } else if least.is_some_and(|least| !promise.holds(least as f64)) {
        (CheckStanding::Broken, chance(response, q, promise))
    } else {
        (CheckStanding::Unknown, failed_without_a_time(timeless))
    }
}

/// What to say of a limit so near that other requests might have fallen on its other side.
///
/// The interval holds the quantile of all such requests at 95 %, if they are independent of each other: order statistics
/// 1.96 standard deviations of a binomial count from its mean (David and Nagaraja 2003, 7.1). Requests that share a
/// moment are alike, so it is wider in truth, and it is not used to decide anything.
fn chance(response: &Distribution, q: f64, promise: Promise) -> String {
    let n = response.count() as f64;
    let reach = 1.96 * (n * q * (1.0 - q)).sqrt();
    let (low, high) = (((n * q - reach) / n).max(0.0), ((n * q + reach) / n).min(1.0));
    match (response.quantile_ns(low), response.quantile_ns(high)) {
        (Some(low), Some(high)) if promise.holds(low as f64) != promise.holds(high as f64) => format!(
            "near its limit: by chance alone {} to {}",
            format_duration_ns(low as f64),
            format_duration_ns(high as f64)
        ),
        _ => String::new(),
    }
}

fn untimed() -> String {
    format!("not measured: {}", Streamed::NO_TIMES)
}

fn failed_without_a_time(timeless: u64) -> String {
    format!("{timeless} requests failed and have no response time")
}

/// Whether a target is slower by more than `by`: sure if the whole interval says so.
fn is_slower(pair: Option<&PairVerdict>, by: f64, biased: bool) -> Checked {
    let Some((pair, (slowdown, low, high))) = pair.and_then(|pair| Some((pair, pair.slowdown()?))) else {
        return Checked::new(CheckStanding::Unknown, None, "too few slots to compare");
    };
    let figure = Some(slowdown);
    let interval = format!("{:.0} % interval {} to {}", pair.confidence * 100.0, format_ratio(low), format_ratio(high));
    // A call that was made is one that no bias could have made (see `slots::tempered`).
    let stands = |calls: [Call; 2]| !biased || calls.contains(&pair.call);
    let limit = 1.0 + by;
    if low > limit && stands([Call::Slower, Call::Equivalent]) {
        Checked::new(CheckStanding::Broken, figure, interval)
    } else if high <= limit && stands([Call::Faster, Call::Equivalent]) {
        Checked::new(CheckStanding::Kept, figure, interval)
    } else if low > limit || high <= limit {
        Checked::new(
            CheckStanding::Unknown,
            figure,
            format!("{interval}, but something of ours or failed requests could have made it"),
        )
    } else {
        Checked::new(CheckStanding::Unknown, figure, format!("{interval}: the limit of {limit} is within"))
    }
}

/// Whether the generator held a target back.
fn is_hampered(verdict: &Verdict, target: &str) -> bool {
    let concerns = |doubt: &&Doubt| doubt.target.as_deref().is_none_or(|name| name == target);
    verdict
        .doubts
        .iter()
        .filter(concerns)
        .any(|doubt| matches!(doubt.id, DoubtId::GeneratorSaturated | DoubtId::ScheduleLag))
}

/// Whether something could have made a difference between a target and the baseline that is not theirs.
fn is_biased(run: &Run, verdict: &Verdict, place: usize) -> bool {
    let names = [0, place].map(|place| run.plan.targets[place].name.as_str());
    let failed = [0, place].map(|target| {
        let figures = TargetFigures::of(run, &CheckSubject { target, treatment: None, name: String::new() });
        figures.figure(PromiseMetric::Errors).unwrap_or(1.0)
    });
    (failed[0] - failed[1]).abs() > MISSING || names.iter().any(|name| is_hampered(verdict, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(times_ms: impl IntoIterator<Item = u64>, failed: u64) -> TargetFigures {
        let response = Distribution::from_values(times_ms.into_iter().map(|ms| ms * 1_000_000));
        let ok = response.count();
        let failed_kinds = [(duel_model::web::failure::REFUSED.id(), failed)].into();
        let tally = Tally { started: ok + failed, ok, failed: failed_kinds, response, ..Tally::default() };
        TargetFigures { tally, elapsed_ns: 2_000_000_000, standstill: Standstill::default() }
    }

    fn stands(figures: &TargetFigures, promise: &str) -> CheckStanding {
        keeps(figures, promise.parse().unwrap(), false).standing
    }

    #[test]
    fn limits_on_times_that_no_op_has_are_not_measured_and_others_are_held() {
        let mut streamed = figures(1..=1000, 0);
        streamed.tally.response = Distribution::default();
        for promise in ["p99<1s", "mean<1s", "max<1s"] {
            let checked = keeps(&streamed, promise.parse().unwrap(), false);
            let said = (checked.standing, checked.figure, checked.remark.starts_with("not measured: "));
            assert_eq!(said, (CheckStanding::Unknown, None, true), "{promise}: {checked:?}");
        }
        assert_eq!(stands(&streamed, "rate>=500/s"), CheckStanding::Kept);
    }

    #[test]
    fn promises_are_held_against_what_was_counted() {
        let all = figures(1..=1000, 0);
        for (promise, standing) in [
            ("p99<991ms", CheckStanding::Kept),
            ("p99<990ms", CheckStanding::Broken),
            ("p99<=990ms", CheckStanding::Kept),
            ("mean<501ms", CheckStanding::Kept),
            ("max<1s", CheckStanding::Broken),
            ("errors<=0%", CheckStanding::Kept),
            ("rate>=500/s", CheckStanding::Kept),
            ("rate>500/s", CheckStanding::Broken),
            ("rate>99%", CheckStanding::Kept),
            ("p99.99<2s", CheckStanding::Unknown),
        ] {
            assert_eq!(stands(&all, promise), standing, "{promise}");
        }
        assert_eq!(stands(&TargetFigures::default(), "p50<1s"), CheckStanding::Unknown);
        assert_eq!(
            stands(&TargetFigures::default(), "errors<1%"),
            CheckStanding::Unknown,
            "nothing sent, nothing failed"
        );
    }

    #[test]
    fn requests_that_failed_may_have_been_the_slow_ones() {
        // 99 of 100 within 10 ms; 3 of 103 failed at once.
        let some = figures((0..100).map(|n| if n < 99 { 10 } else { 500 }), 3);
        assert_eq!(stands(&some, "p95<20ms"), CheckStanding::Kept, "even if all that failed were slow");
        assert_eq!(stands(&some, "p98<20ms"), CheckStanding::Unknown);
        assert_eq!(stands(&some, "p50<5ms"), CheckStanding::Broken, "even if all that failed were fast");
        assert_eq!(stands(&some, "max<1s"), CheckStanding::Unknown);
        assert_eq!(stands(&some, "max<100ms"), CheckStanding::Broken);
        assert_eq!(stands(&some, "errors<1%"), CheckStanding::Broken);
        let none = figures([], 50);
        assert_eq!(stands(&none, "p50<1s"), CheckStanding::Unknown);
        assert_eq!(stands(&none, "errors<1%"), CheckStanding::Broken);
    }

    #[test]
    fn what_a_standstill_may_have_made_is_not_held_against_the_target() {
        let mut all = figures(1..=1000, 0);
        all.standstill.add(100_000_000);
        for (promise, standing) in [
            ("p99<950ms", CheckStanding::Unknown),
            ("p99<850ms", CheckStanding::Broken),
            ("p99<991ms", CheckStanding::Kept),
            ("rate>510/s", CheckStanding::Unknown),
            ("rate>550/s", CheckStanding::Broken),
        ] {
            assert_eq!(stands(&all, promise), standing, "{promise}");
        }
    }

    #[test]
    fn what_the_generator_may_have_done_itself_is_not_held_against_the_target() {
        let all = figures(1..=1000, 0);
        let of = |promise: &str| keeps(&all, promise.parse().unwrap(), true).standing;
        assert_eq!(of("p99<10ms"), CheckStanding::Unknown);
        assert_eq!(of("rate>900/s"), CheckStanding::Unknown);
        assert_eq!(of("p99<1s"), CheckStanding::Kept, "it can only be better");
        let failing = figures(1..=100, 50);
        assert_eq!(keeps(&failing, "errors<1%".parse().unwrap(), true).standing, CheckStanding::Broken);
    }

    #[test]
    fn a_limit_that_chance_could_cross_is_told() {
        let all = figures(1..=1000, 0);
        let remark = keeps(&all, "p99<991ms".parse().unwrap(), false).remark;
        assert!(remark.contains("near its limit") && remark.contains("984 ms to 997 ms"), "{remark}");
        assert_eq!(keeps(&all, "p99<1200ms".parse().unwrap(), false).remark, "");
    }

    #[test]
    fn slower_is_broken_or_kept_where_the_whole_interval_says_so() {
        let pair = |call, low: f64, high: f64| PairVerdict {
            baseline: "A".into(),
            target: "B".into(),
            metric: Metric::ResponseP50,
            call,
            ratio: Some((low * high).sqrt()),
            low: Some(low),
            high: Some(high),
            confidence: 0.95,
            slots: 24,
            by_whole: false,
        };
        for (call, low, high, biased, standing) in [
            (Call::Slower, 1.06, 1.09, false, CheckStanding::Broken),
            (Call::Slower, 1.06, 1.09, true, CheckStanding::Broken),
            (Call::Unknown, 1.06, 1.09, true, CheckStanding::Unknown),
            (Call::Slower, 1.02, 1.09, false, CheckStanding::Unknown),
            (Call::Slower, 1.02, 1.04, false, CheckStanding::Kept),
            (Call::Slower, 1.02, 1.04, true, CheckStanding::Unknown),
            (Call::Unknown, 0.97, 1.03, false, CheckStanding::Kept),
            (Call::Unknown, 0.97, 1.03, true, CheckStanding::Unknown),
            (Call::Equivalent, 0.99, 1.01, true, CheckStanding::Kept),
            (Call::Faster, 0.5, 0.6, true, CheckStanding::Kept),
        ] {
            assert_eq!(
                is_slower(Some(&pair(call, low, high)), 0.05, biased).standing,
                standing,
                "{call:?} {low} {high}"
            );
        }
        // Of a rate, lower is slower.
        let rate = PairVerdict { metric: Metric::Rate, ..pair(Call::Slower, 0.80, 0.90) };
        assert_eq!(is_slower(Some(&rate), 0.05, false).standing, CheckStanding::Broken);
        let unknown = PairVerdict { low: None, high: None, ..pair(Call::Unknown, 1.0, 1.0) };
        assert_eq!(is_slower(Some(&unknown), 0.05, false).standing, CheckStanding::Unknown);
        assert_eq!(is_slower(None, 0.05, false).standing, CheckStanding::Unknown);
    }
}
