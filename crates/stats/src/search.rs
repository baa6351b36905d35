//! The highest rate at which promises are kept: what one attempt at a rate shows, and which rate to try next.
//!
//! Both are functions of the slots alone, so that an archived search is judged again as it was while it ran.

use crate::observe::share;
use crate::side::{ALL_BUSY, Side};
use duel_model::{
    Arrival, Attempt, AttemptOutcome, Bound, Doubt, DoubtId, LoopKind, Nanos, Plan, Promise, PromiseMetric, RateSearch,
    Run, SECOND_NS, SearchEnd, SearchPlan, Slot, SlotRole, Stage, Tally, format_duration_ns,
};

/// Most attempts at one rate: what two of three say holds. If one attempt is wrong with probability p, two of three are
/// with 3 p² - 2 p³: of 10 % there remain 2.8 %.
const MOST_VOTES: u32 = 3;
const VOTES_NEEDED: u32 = 2;

/// A target that left more than this share of what was offered undone is overloaded beyond doubt, and one attempt is
/// enough: a hiccup would have to last as long, and until the attempt's end. The first step beyond a closed loop's rate
/// ([`START_SHARE`] times [`FIRST_STEP`]) leaves a ninth.
const GROSS: f64 = 0.08;

/// First step up or down from where the search begins. Every further step in the same direction is the square of the one
/// before, so that a far goal is reached soon; a near one is not overshot by much.
const FIRST_STEP: f64 = 1.25;
const LONGEST_STEP: f64 = 4.0;

/// Where a closed loop says how many ops the target does at most, the search begins at this part of it: most targets keep
/// their promises up to near their capacity, and the first attempt is to be kept.
pub const START_SHARE: f64 = 0.9;

/// Below this part of the first rate nothing is looked for, unless its attempts hold a third of the ops that are needed
/// to tell: of too few ops all may end well by chance, and the search would follow chance down.
const LOWEST_SHARE: f64 = 1.0 / 16.0;
const FEWEST_OPS: f64 = 1.0 / 3.0;

/// Ops of an attempt that lie beyond a promised quantile: ten of them have a standard error of a third of the number, so
/// that a figure at half or double the limit is told from it.
const OPS_BEYOND: f64 = 10.0;
/// Ops of an attempt at a share of errors below e: without any error among 3 / e ops, it is below e at 95 % (the "rule of
/// three", Hanley and Lippman-Hand 1983).
const RULE_OF_THREE: f64 = 3.0;
/// Ops that a backlog has to grow by to be seen: against the few ops that come and go.
const OPS_OF_BACKLOG: f64 = 10.0;
/// Most ops that are waited for to tell a rare thing.
const MOST_OPS: f64 = 100_000.0;
/// Shortest attempt: a garbage collection or another hiccup of some ms is to be a small part of it.
const SHORTEST_NS: Nanos = SECOND_NS;
/// The time of a search is divided for this many attempts at least; halving a step of 1.25 down to 2 % takes four rates,
/// each of them up to three attempts.
const ATTEMPTS_WANTED: u64 = 12;
/// Where there are several targets, so many more of each, for its part of the pairs
/// head to head.
const ATTEMPTS_HEAD_TO_HEAD: u64 = 8;
/// The first part of an attempt, of which the time in the system is taken as what belongs there.
const FIRST_PART: f64 = 0.2;

/// What to do next in a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchStep {
    /// Offer this rate.
    Try(f64),
    /// It is over.
    End(SearchEnd),
}

/// How long an attempt at a rate lasts, in ns: long enough for what is promised to show, within a twelfth of the search's
/// time.
///
/// It holds the ops that are needed to tell, and is long against every time that is promised: close to saturation a queue
/// that begins empty takes its time to become as long as it is going to be. With the limit as half the precision of the
/// attempt, one that grows by the precision has passed the limit for half of its ops.
pub fn attempt_ns(plan: &Plan, rate_per_s: f64) -> Nanos {
    let Some(search) = &plan.load.shape.search else { return SHORTEST_NS };
    let times = search.promises.iter().filter(|promise| promise.metric.is_time()).map(|promise| promise.limit);
    // Random arrivals make a queue wander: it takes longer to show what it is.
    let wandering = if is_poisson(plan) { 4.0 } else { 1.0 };
    let by_time_ns = wandering * times.fold(0.0, f64::max) / (search.precision / 2.0);
    let wanted_ns = (ops_needed(plan) / rate_per_s * 1e9).max(by_time_ns) as Nanos;
    wanted_ns.clamp(SHORTEST_NS, longest_ns(plan)).next_multiple_of(SERIES_NS)
}

fn longest_ns(plan: &Plan) -> Nanos {
    match plan.load.bound {
        Bound::Duration(total_ns) => {
            let attempts = match plan.targets.len() as u64 {
                0 | 1 => ATTEMPTS_WANTED,
                several => several * (ATTEMPTS_WANTED + ATTEMPTS_HEAD_TO_HEAD),
            };
            (total_ns / attempts).max(SHORTEST_NS)
        }
        Bound::Ops(_) => Nanos::MAX / 2,
    }
}

/// Ops of an attempt by which all that is promised can be told.
fn ops_needed(plan: &Plan) -> f64 {
    let Some(search) = &plan.load.shape.search else { return 0.0 };
    let backlog = 2.0 * OPS_OF_BACKLOG / search.precision;
    search.promises.iter().map(ops_wanted).fold(backlog, f64::max).min(MOST_OPS)
}

/// Attempts end with an interval of their series, by which ops that ended later are told apart.
const SERIES_NS: Nanos = 100_000_000;

/// Ops that an attempt needs to tell whether a promise is kept.
fn ops_wanted(promise: &Promise) -> f64 {
    match promise.metric {
        PromiseMetric::Quantile { .. } => promise.metric.quantile().map_or(0.0, |q| OPS_BEYOND / (1.0 - q)),
        PromiseMetric::Errors => RULE_OF_THREE / promise.limit.max(RULE_OF_THREE / MOST_OPS),
        PromiseMetric::Done => RULE_OF_THREE / (1.0 - promise.limit).max(RULE_OF_THREE / MOST_OPS),
        PromiseMetric::Mean | PromiseMetric::Max | PromiseMetric::Rate => 0.0,
    }
}

/// The promised figure of a slot, in the unit of the promise's limit; `None` where there is none.
pub fn promised_figure(metric: PromiseMetric, slot: &Slot) -> Option<f64> {
    let tally = &slot.tally;
    match metric {
        PromiseMetric::Quantile { .. } => {
            metric.quantile().and_then(|q| tally.response.quantile_ns(q)).map(|ns| ns as f64)
        }
        PromiseMetric::Mean => tally.response.mean_ns(),
        PromiseMetric::Max => tally.response.max_ns().map(|ns| ns as f64),
        PromiseMetric::Errors => share(tally.due() - tally.ok, tally.due()),
        PromiseMetric::Done => share(tally.ok, tally.due()),
        PromiseMetric::Rate => slot.rate_per_s(),
    }
}

/// What an attempt showed, be it one of the search or head to head; `None` for a slot that is none.
pub fn attempt(slot: &Slot, plan: &Plan) -> Option<Attempt> {
    let (search, rate_per_s) = (plan.load.shape.search.as_ref()?, slot.offered_per_s?);
    if !matches!(slot.role, SlotRole::Search | SlotRole::HeadToHead) {
        return None;
    }
    let figures: Vec<Option<f64>> =
        search.promises.iter().map(|promise| promised_figure(promise.metric, slot)).collect();
    // A figure that is not known keeps nothing: where ops were due, none ended well.
    let broken: Vec<usize> = (0..figures.len())
        .filter(|&place| !figures[place].is_some_and(|figure| search.promises[place].holds(figure)))
        .collect();
    let backlog_growth = backlog_growth(slot, rate_per_s, attempt_ns(plan, rate_per_s) as f64);
    let fell_behind = backlog_growth.is_some_and(|growth| growth > growth_allowed(search, plan, slot));
    let outcome = if broken.is_empty() && !fell_behind {
        AttemptOutcome::Kept
    } else if is_our_fault(slot, plan) {
        AttemptOutcome::Generator
    } else {
        AttemptOutcome::Broken
    };
    Some(Attempt { slot: slot.index, rate_per_s, outcome, figures, broken, backlog_growth, fell_behind })
}

/// By which share of the offered ops the backlog grew over an attempt.
///
/// Ops that were due and had not ended when the schedule was over, less those that are always on their way: by Little's
/// law the rate times the time in the system, as it was in the first part of the attempt. A queue whose server does a
/// share g less than it is offered has grown by g of all ops, whatever the limit of a promise is; its waits may need
/// minutes to reach that. Within the first fifth of the attempt they grow as well, which hides a tenth of g.
fn backlog_growth(slot: &Slot, rate_per_s: f64, scheduled_ns: f64) -> Option<f64> {
    let due = slot.tally.due();
    if due == 0 || slot.series.interval_ns == 0 {
        return None;
    }
    let until = |ns: f64| (ns / slot.series.interval_ns as f64).round() as usize;
    let (first, in_time) = (until(scheduled_ns * FIRST_PART).max(1), until(scheduled_ns));
    let (mut ended_in_time, mut first_ok, mut first_ns) = (0, 0, 0);
    for (index, interval) in slot.series.intervals.iter().enumerate().take(in_time) {
        ended_in_time += interval.ok + interval.failed;
        if index < first {
            first_ok += interval.ok;
            first_ns += interval.response_sum_ns;
        }
    }
    // What was shed is over when its deadline is; it waits for nobody any more.
    let left = (due - slot.tally.shed).saturating_sub(ended_in_time) as f64;
    let on_their_way = share(first_ns, first_ok).unwrap_or(0.0) / 1e9 * rate_per_s;
    Some((left - on_their_way) / due as f64)
}

/// Half of the precision, so that what is not seen and the width of the bracket together stay within it twice over; with
/// Poisson arrivals besides what their number scatters by (3 standard deviations).
fn growth_allowed(search: &SearchPlan, plan: &Plan, slot: &Slot) -> f64 {
    let due = slot.tally.due().max(1) as f64;
    let scatter = if is_poisson(plan) { 3.0 / due.sqrt() } else { 0.0 };
    // A handful of ops may be on their way at any time.
    (search.precision / 2.0).max(OPS_OF_BACKLOG / due) + scatter
}

fn is_poisson(plan: &Plan) -> bool {
    matches!(plan.load.kind, LoopKind::Open { arrival: Arrival::Poisson, .. })
}

/// Whether the generator held the attempt back: it stood still, had no CPU time left, or was itself late by a tenth of the
/// times.
fn is_our_fault(slot: &Slot, plan: &Plan) -> bool {
    let Some(target) = plan.targets.get(slot.target) else { return false };
    let side = Side::new(&[slot], slot.target, target, plan);
    slot.is_spoilt() || side.saturated() || side.late(0.99, 0.99)
}

/// The searches on all targets as far as they have come; empty where none was planned.
pub fn rate_searches(run: &Run) -> Vec<RateSearch> {
    let of = |search| (0..run.plan.targets.len()).map(move |target| rate_search(run, search, target));
    run.plan.load.shape.search.iter().flat_map(of).collect()
}

fn rate_search(run: &Run, search: &SearchPlan, target: usize) -> RateSearch {
    let own = run.slots.iter().filter(|slot| slot.target == target && slot.role == SlotRole::Search);
    let attempts: Vec<Attempt> = own.filter_map(|slot| attempt(slot, &run.plan)).collect();
    let bracket = Bracket::of(&rates(&attempts, &run.slots));
    // The start is of no account once there is an attempt.
    let end = match next_rate(&run.plan, &attempts, &run.slots, 1.0) {
        SearchStep::End(end) => end,
        SearchStep::Try(_) => SearchEnd::OutOfTime,
    };
    RateSearch {
        target,
        promises: search.promises.clone(),
        kept_per_s: bracket.kept.map(|rate| rate.per_s),
        broken_per_s: bracket.broken.map(|rate| rate.per_s),
        attempts,
        end,
    }
}

/// What to do on a target after these attempts at it, beginning at `start_per_s`.
///
/// Steps up until a rate is broken, or down until one is kept; then the bracket between them is halved on a scale of
/// ratios until it is narrow. A rate counts as broken by two attempts of three (by one where the target was plainly
/// overloaded). One kept attempt is enough to go on upwards, since what is tried next tests it as well; the rate that
/// becomes the answer needs two of three.
pub fn next_rate(plan: &Plan, attempts: &[Attempt], slots: &[Slot], start_per_s: f64) -> SearchStep {
    let precision = plan.load.shape.search.as_ref().map_or(SearchPlan::PRECISION, |search| search.precision);
    let first_per_s = attempts.first().map_or(start_per_s, |attempt| attempt.rate_per_s);
    let telling_per_s = FEWEST_OPS * ops_needed(plan) / longest_ns(plan) as f64 * 1e9;
    let lowest_per_s = telling_per_s.min(LOWEST_SHARE * first_per_s);
    let rates = rates(attempts, slots);
    if let Some(open) = rates.iter().find(|rate| rate.verdict() == RateVerdict::Open) {
        return SearchStep::Try(open.per_s);
    }
    let bracket = Bracket::of(&rates);
    match (bracket.kept, bracket.broken) {
        (None, None) => SearchStep::Try(rounded(start_per_s).min(Stage::HIGHEST_RATE_PER_S)),
        (Some(kept), None) if kept.per_s >= Stage::HIGHEST_RATE_PER_S => confirmed(kept, SearchEnd::NothingBroken),
        (Some(kept), None) => SearchStep::Try(rounded(kept.per_s * step(rates.len())).min(Stage::HIGHEST_RATE_PER_S)),
        (None, Some(broken)) if broken.per_s <= rounded(lowest_per_s) => SearchStep::End(SearchEnd::NothingKept),
        (None, Some(broken)) => SearchStep::Try(rounded((broken.per_s / step(rates.len())).max(lowest_per_s))),
        (Some(kept), Some(broken)) if broken.per_s > kept.per_s * (1.0 + precision) => {
            SearchStep::Try(rounded((kept.per_s * broken.per_s).sqrt()))
        }
        (Some(kept), Some(broken)) => {
            confirmed(kept, if broken.generator > 0 { SearchEnd::Generator } else { SearchEnd::Found })
        }
    }
}

/// Ends, once the rate that is the answer has been kept often enough.
fn confirmed(kept: Rate, end: SearchEnd) -> SearchStep {
    if kept.kept >= VOTES_NEEDED { SearchStep::End(end) } else { SearchStep::Try(kept.per_s) }
}

/// The step after so many rates in one direction.
fn step(rates: usize) -> f64 {
    FIRST_STEP.powi(1 << rates.saturating_sub(1).min(4)).min(LONGEST_STEP)
}

/// A rate of four digits: as sharp as any precision asks for, and easy to type again.
fn rounded(rate_per_s: f64) -> f64 {
    format!("{rate_per_s:.3e}").parse().unwrap_or(rate_per_s)
}

/// What weakens the answer.
pub(crate) fn doubts(search: &RateSearch, run: &Run) -> Vec<Doubt> {
    let target = run.plan.targets.get(search.target).map(|target| target.name.clone());
    let mut doubts = Vec::new();
    let mut add = |id, text| doubts.push(Doubt { id, target: target.clone(), text });
    if search.end == SearchEnd::Generator {
        let kept = search.kept_per_s.unwrap_or(0.0);
        add(
            DoubtId::GeneratorSaturated,
            format!("above {kept}/s the generator itself was late or had no CPU time left: the target may do better"),
        );
    }
    if let Some(text) = connections_short(search, run) {
        add(DoubtId::RateNotReached, text);
    }
    let needed = ops_needed(&run.plan);
    let fewest = search
        .attempts
        .iter()
        .filter(|attempt| {
            Some(attempt.rate_per_s) == search.kept_per_s || Some(attempt.rate_per_s) == search.broken_per_s
        })
        .map(|attempt| attempt.rate_per_s * attempt_ns(&run.plan, attempt.rate_per_s) as f64 / 1e9)
        .reduce(f64::min);
    if let Some(fewest) = fewest.filter(|&fewest| fewest < 0.99 * needed) {
        let lasts_ns = needed / fewest * run_length_ns(&run.plan);
        add(
            DoubtId::ShortSlots,
            format!(
                "attempts near the edge hold {fewest:.0} requests, and what is promised takes {needed:.0} to be told: a \
                 search of {} would allow for that",
                format_duration_ns(lasts_ns)
            ),
        );
    }
    doubts
}

/// Service times that are longer by less than this share are those of a target that is no slower.
const NO_SLOWER: f64 = 0.25;

/// Whether connections of ours were the limit, in words: at the rate that was too high all of them were busy (by Little's
/// law, the rate times the time that an op takes), and the target took no longer for an op than at the rate that was kept.
fn connections_short(search: &RateSearch, run: &Run) -> Option<String> {
    let at = |per_s: f64| {
        let mut tally = Tally::default();
        let mut elapsed_ns = 0;
        let own = run.slots.iter().filter(|slot| slot.target == search.target && slot.role == SlotRole::Search);
        for slot in own.filter(|slot| slot.offered_per_s == Some(per_s)) {
            tally.merge(&slot.tally);
            elapsed_ns += slot.elapsed_ns;
        }
        let busy = tally.service.sum_ns as f64 / elapsed_ns.max(1) as f64;
        Some((tally.service.mean_ns()?, busy))
    };
    let ((kept_ns, _), (broken_ns, busy)) = (at(search.kept_per_s?)?, at(search.broken_per_s?)?);
    let lanes = run.plan.lanes();
    (busy > ALL_BUSY * f64::from(lanes) && broken_ns < (1.0 + NO_SLOWER) * kept_ns).then(|| {
        format!(
            "at {}/s all {lanes} {}s were busy, and the target took no longer for a request than before: \
             with more connections (-c) it may do better",
            search.broken_per_s.unwrap_or(0.0),
            run.plan.lane_noun()
        )
    })
}

fn run_length_ns(plan: &Plan) -> f64 {
    match plan.load.bound {
        Bound::Duration(ns) => ns as f64,
        Bound::Ops(_) => 0.0,
    }
}

/// All attempts at one rate.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_s: f64,
    kept: u32,
    broken: u32,
    generator: u32,
    is_gross: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateVerdict {
    Kept,
    Broken,
    /// Another attempt is needed.
    Open,
}

impl Rate {
    fn verdict(&self) -> RateVerdict {
        let against = self.broken + self.generator;
        if against >= VOTES_NEEDED || (self.is_gross && self.kept == 0) {
            RateVerdict::Broken
        } else if against == 0 || self.kept >= VOTES_NEEDED {
            RateVerdict::Kept
        } else if self.kept + against >= MOST_VOTES {
            RateVerdict::Broken
        } else {
            RateVerdict::Open
        }
    }
}

/// Attempts by rate, rising.
fn rates(attempts: &[Attempt], slots: &[Slot]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::new();
    for attempt in attempts {
        let at = rates.iter().position(|rate| rate.per_s == attempt.rate_per_s).unwrap_or_else(|| {
            rates.push(Rate { per_s: attempt.rate_per_s, kept: 0, broken: 0, generator: 0, is_gross: false });
            rates.len() - 1
        });
        let rate = &mut rates[at];
        match attempt.outcome {
            AttemptOutcome::Kept => rate.kept += 1,
            AttemptOutcome::Broken => rate.broken += 1,
            AttemptOutcome::Generator => rate.generator += 1,
        }
        let growth = attempt.backlog_growth.unwrap_or(0.0);
        let (due, ok) = slots
            .iter()
            .find(|slot| slot.index == attempt.slot)
            .map_or((0, 0), |slot| (slot.tally.due(), slot.tally.ok));
        let overloaded = growth > GROSS && growth * due as f64 > 2.0 * OPS_OF_BACKLOG;
        rate.is_gross |= attempt.outcome != AttemptOutcome::Kept && (overloaded || (due > 0 && ok == 0));
    }
    rates.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
    rates
}

/// The highest rate that was kept below all that were not, and the lowest that was not.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    kept: Option<Rate>,
    broken: Option<Rate>,
}

impl Bracket {
    fn of(rates: &[Rate]) -> Self {
        let broken = rates.iter().find(|rate| rate.verdict() == RateVerdict::Broken).copied();
        let below = |rate: &&Rate| broken.is_none_or(|broken| rate.per_s < broken.per_s);
        let kept = rates.iter().filter(below).rfind(|rate| rate.verdict() == RateVerdict::Kept).copied();
        Self { kept, broken }
    }
}
