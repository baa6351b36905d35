//! What weakens the numbers, in sentences with figures.

use crate::contrast::{Contrast, log_margin};
use crate::pairing::{Pairs, TAIL_OPS_AT_LEAST, batched, log_ratios};
use crate::side::{LATE, MISSING, SATURATED, Side, percent};
use crate::signed_rank::pairs_needed;
use crate::starts::FEWEST_STARTS;
use crate::trend::trend;
use crate::whole::Whole;
use duel_model::{
    Call, ComparePlan, Declaration, Doubt, DoubtId, Facts, LoopKind, Metric, Nanos, PairVerdict, Plan, SECOND_NS,
    Schema, Slot, Standstill, Tally, Value, format_bytes, format_duration_ns, sanitize_line,
};

/// Share of failed or unstarted ops that is worth a doubt on its own: one op of a thousand reaches the last tenth of
/// the 99th percentile's tail.
const WORTH_A_WORD: f64 = 0.001;

/// Ops per connection and slot below which a closed loop's rate is rough. A slot lasts until its last op ended, so each
/// connection idles for half an op on average at its end: with 3 ops this is a seventh of the slot.
const FEWEST_OPS_PER_CONNECTION: f64 = 3.0;

/// Response bodies that differ by more than this are not the same work: half of the default margin, so that the
/// difference alone cannot make a call.
const SAME_BYTES_WITHIN: f64 = 0.01;

/// Probability below which a trend is not chance: three metrics of a few targets in every run are tested, and a false
/// alarm in one run of a hundred would teach people not to read doubts.
const DRIFT_P: f64 = 0.001;

/// Whether what is so of some targets is told once, as a doubt about the run: where it is so of all of them. Of the only target it
/// is told by its name.
pub(crate) fn is_of_all(some: usize, targets: usize) -> bool {
    some > 1 && some == targets
}

/// The doubts found so far.
#[derive(Debug, Default)]
pub(crate) struct Found {
    doubts: Vec<Doubt>,
    /// Doubts that several metrics of one target may share: kind, target, text, metrics.
    shared: Vec<(DoubtId, String, String, Vec<&'static str>)>,
}

impl Found {
    /// All doubts, kinds in the order of [`DoubtId`].
    pub(crate) fn into_doubts(mut self) -> Vec<Doubt> {
        for (id, target, text, metrics) in self.shared {
            self.doubts.push(Doubt { id, target: Some(target), text: format!("{}: {text}", metrics.join(", ")) });
        }
        self.doubts.sort_by_key(|doubt| doubt.id);
        self.doubts
    }

    fn add(&mut self, id: DoubtId, target: &str, text: String) {
        self.doubts.push(Doubt { id, target: Some(target.to_owned()), text });
    }

    fn add_shared(&mut self, id: DoubtId, target: &str, metric: Metric, text: String) {
        let same = |(i, t, x, _): &&mut (DoubtId, String, String, Vec<&str>)| *i == id && t == target && *x == text;
        match self.shared.iter_mut().find(same) {
            Some((_, _, _, metrics)) => metrics.push(metric.name()),
            None => self.shared.push((id, target.to_owned(), text, vec![metric.name()])),
        }
    }

    /// The rate over all of the time is another one than that of the typical pair of slots.
    pub(crate) fn of_whole(
        &mut self,
        [target, baseline]: [&str; 2],
        typical: &Contrast,
        whole: &Whole,
        by_whole: bool,
        seen: Call,
        compare: &ComparePlan,
    ) {
        let Some(estimate) = typical.estimate else { return };
        if !whole.contradicts(typical, compare) {
            let is_loose = seen == Call::Equivalent && !whole.lets_stand(seen, compare);
            if let Some(wanted) = whole.turns_wanted(compare).filter(|_| is_loose) {
                let more = format_duration_ns(whole.time_ns * (wanted / whole.turns - 1.0));
                self.add(
                    DoubtId::TooFewSlots,
                    target,
                    format!(
                        "{:.0} turns of {target} and of {baseline} are too few to exclude pauses that cost as much as the margin: that \
                         takes {wanted:.0}, for which each has to be loaded for {more} more (-d)",
                        whole.turns
                    ),
                );
            } else if let Some(interval) = whole.interval(compare.confidence).filter(|_| is_loose) {
                self.add(
                    DoubtId::Uneven,
                    target,
                    format!(
                        "{target} serves as much as {baseline} in the typical pair of slots, and {:.3} to {:.3} times as much over all of \
                         the time: some slots differ so much from the others that pauses of a server may be among them; more time (-d), \
                         or a machine that nobody disturbs, tells",
                        interval.low.exp(),
                        interval.high.exp()
                    ),
                );
            }
            return;
        }
        let some = if whole.has_turns() { "some turns" } else { "few slots" };
        let goes_by = if by_whole { "all of the time" } else { "the typical pair" };
        self.add(
            DoubtId::Uneven,
            target,
            format!(
                "{some} make a difference that most do not show: {target} serves {:.3} times as much as {baseline} in the typical \
                 pair of slots, and {:.3} times over all of the time; the verdict goes by {goes_by}; a server that pauses looks so, \
                 and so does a machine that others disturb",
                estimate.exp(),
                whole.log_ratio.exp()
            ),
        );
    }

    /// Doubts about one metric of a target against the baseline, as it was judged.
    pub(crate) fn of_contrast(
        &mut self,
        judged: &PairVerdict,
        pairs: &Pairs,
        contrast: &Contrast,
        compare: &ComparePlan,
        would_do: Option<Nanos>,
    ) {
        let PairVerdict { target, metric, call, .. } = judged;
        let (metric, call) = (*metric, *call);
        let over_starts = compare.restart.is_some();
        let needed = match over_starts {
            true => FEWEST_STARTS,
            false => compare.min_pairs.max(pairs_needed(compare.confidence).unwrap_or(u32::MAX)) as usize,
        };
        let count = pairs.pairs.len();
        if count < needed {
            let text = if metric == Metric::ResponseP99 && count == 0 && over_starts {
                format!(
                    "too few requests for {TAIL_OPS_AT_LEAST} in each start, below which the 99th percentile is the maximum"
                )
            } else if metric == Metric::ResponseP99 && count == 0 {
                format!(
                    "too few requests for {} groups of slots with at least {TAIL_OPS_AT_LEAST} each, below which the 99th \
                     percentile is the maximum",
                    compare.min_pairs
                )
            } else {
                let counted = match (over_starts, count) {
                    (false, 1) => "pair of slots",
                    (false, _) => "pairs of slots",
                    (true, 1) => "start",
                    (true, _) => "starts",
                };
                let would_do = would_do.map(|ns| format!(", for which -d {}s would do", ns.div_ceil(SECOND_NS)));
                let (confidence, would_do) = (percent(compare.confidence), would_do.unwrap_or_default());
                match call {
                    Call::Unknown => format!("{count} {counted}; a verdict at {confidence} takes {needed}{would_do}"),
                    Call::Faster | Call::Slower | Call::Equivalent => format!(
                        "{count} {counted}, where a verdict at {confidence} takes {needed}{would_do}; it is called all the same because \
                         nearly all requests to one side took longer than nearly all to the other, and the interval holds what their \
                         times leave possible"
                    ),
                }
            };
            self.add_shared(DoubtId::TooFewSlots, target, metric, text);
        }
        let (without, baseline_without) = (pairs.target_without, pairs.baseline_without);
        // With no pair left at all, the doubt above says enough.
        if count > 0 && without + baseline_without > 0 {
            let text = format!(
                "pairs of slots without a value are left out: {without} for {target}, {baseline_without} for the \
                 baseline ({count} are left)"
            );
            self.add_shared(DoubtId::NotRecorded, target, metric, text);
        }
        if let Some((rank, bootstrap)) = contrast.disagreement {
            let text = format!(
                "two ways to find the interval differ, ±{} by drawing whole blocks anew, ±{} by ranks of slots; the wider \
                 one is used: the slots are not independent of each other, or some blocks are unlike the others",
                percent(bootstrap.exp_m1()),
                percent(rank.exp_m1())
            );
            self.add_shared(DoubtId::IntervalsDisagree, target, metric, text);
        }
        if let Some(trend) = trend(&log_ratios(&batched(&pairs.pairs)))
            && trend.p < DRIFT_P
            && trend.change.abs() > log_margin(compare)
        {
            let text = format!(
                "the ratio to the baseline moved by a factor of {:.3} while the run went on (p = {:.1e})",
                trend.change.exp(),
                trend.p
            );
            self.add_shared(DoubtId::Drift, target, metric, text);
        }
    }

    /// Doubts whether a target and the baseline did the same work.
    pub(crate) fn of_pair(&mut self, baseline: &Side<'_>, target: &Side<'_>) {
        if let Some(difference) = different_responses(baseline, target) {
            self.add(DoubtId::DifferentResponses, target.name, difference);
        }
        if let (Some(of_baseline), Some(of_target)) = (baseline.negotiated, target.negotiated) {
            let differences = different_negotiation(of_baseline, of_target);
            if !differences.is_empty() {
                let text = format!(
                    "{} negotiated other parameters than {}: {}",
                    target.name,
                    baseline.name,
                    differences.join(", ")
                );
                self.add(DoubtId::DifferentNegotiation, target.name, text);
            }
        }
        let (Some(of_target), Some(of_baseline)) = (target.failed_share(), baseline.failed_share()) else { return };
        if (of_target - of_baseline).abs() > MISSING {
            let (more, less) = if of_target > of_baseline { (target, baseline) } else { (baseline, target) };
            self.add(
                DoubtId::Errors,
                more.name,
                format!(
                    "{} of ops fail on {}, {} on {}: the rate of ok ops is judged and failed ops have no latency, so \
                     {} is called neither faster nor equivalent",
                    percent(of_target.max(of_baseline)),
                    more.name,
                    percent(of_target.min(of_baseline)),
                    less.name,
                    more.name
                ),
            );
        }
    }

    /// Doubts that come from the generator standing still: which slots of a target are left out, and whether what is left is
    /// enough. `all` are the target's slots, those included; `consequence` is what becomes of such slots,
    /// before their number.
    pub(crate) fn of_standstill(&mut self, target: &str, all: &[&Slot], consequence: &str) {
        let mut still = Standstill::default();
        all.iter().for_each(|slot| still.merge(&slot.standstill()));
        let has_times = !all.iter().any(|slot| slot.tally.is_streamed());
        let times = |slot: &&Slot| if has_times { slot.tally.response.max_ns() } else { slot.tally.service.max_ns() };
        let max_ns = all.iter().filter_map(times).max().unwrap_or(0);
        let spoilt = all.iter().filter(|slot| slot.is_spoilt()).count();
        // A standstill that is short against the slot and against the longest response shows in no figure.
        if spoilt == 0 && (still.is_none() || (still.longest_ns as f64) < LATE * max_ns as f64) {
            return;
        }
        let times = if still.count == 1 { "once".to_owned() } else { format!("{} times", still.count) };
        let what = format!(
            "the generator itself stood still {times}, for {} at the longest, while it loaded {target} (it was stopped, its machine \
             was suspended, or others had the CPU){}",
            format_duration_ns(still.longest_ns as f64),
            if has_times { ": response times of up to that long are its own" } else { "" }
        );
        let text = match (spoilt, all.len()) {
            (0, _) | (_, 1) => what,
            (spoilt, of) => format!("{what}; {consequence}: {spoilt} of {of} slots"),
        };
        self.add(DoubtId::GeneratorStoodStill, target, text);
    }

    /// Others had the CPU that the generator wanted.
    pub(crate) fn of_waiting(&mut self, sides: &[Side<'_>]) {
        let share = |side: &Side<'_>| side.waited.filter(|&waited| waited > LATE);
        let all: Vec<(&Side<'_>, f64)> = sides.iter().filter_map(|side| Some((side, share(side)?))).collect();
        let is_of_all = is_of_all(all.len(), sides.len());
        let told = |some: &[(&Side<'_>, f64)], whose: &str, its: &str| {
            let each = some
                .iter()
                .map(|(side, waited)| format!("{} of the time while it loaded {}", percent(*waited), side.name));
            format!(
                "others had the CPU that the generator wanted for {}: {whose} may serve more than was seen, and {its} times hold \
                 ours; leave duel a CPU of its own (taskset), or a quieter machine",
                each.collect::<Vec<_>>().join(", for ")
            )
        };
        if is_of_all {
            let text = told(&all, "each of them", "their");
            self.doubts.push(Doubt { id: DoubtId::GeneratorWaited, target: None, text });
        } else {
            all.iter().for_each(|one| self.add(DoubtId::GeneratorWaited, one.0.name, told(&[*one], one.0.name, "its")));
        }
    }

    /// Doubts about one target's slots; `pairs` are the calls made, the main metric of each target first.
    pub(crate) fn of_side(&mut self, side: &Side<'_>, plan: &Plan, pairs: &[PairVerdict]) {
        let load = &plan.load;
        if side.saturated() {
            self.add(DoubtId::GeneratorSaturated, side.name, saturation(side, pairs));
        } else if side.late(0.99, if matches!(load.kind, LoopKind::Open { .. }) { 0.5 } else { 0.99 }) {
            self.add(DoubtId::ScheduleLag, side.name, lag(side, "99th percentile", side.lag.quantile_ns(0.99)));
        } else if let (Some(late), Some(response)) = (side.lag.mean_ns(), side.tally.response.mean_ns())
            && late > LATE * response
        {
            self.add(DoubtId::ScheduleLag, side.name, lag(side, "mean", Some(late as u64)));
        }
        if let Some(share) = side.unstarted_share().filter(|&share| share > WORTH_A_WORD) {
            let (due, shed) = (side.tally.due(), side.tally.shed);
            let of_them = match load.shape.deadline_ns {
                Some(deadline_ns) if shed > 0 => {
                    format!(", {shed} of them given up at their deadline of {}", format_duration_ns(deadline_ns as f64))
                }
                _ => String::new(),
            };
            self.add(
                DoubtId::RateNotReached,
                side.name,
                format!(
                    "{} of {due} ops ({}) that were due on {} were never started, because no connection was free{of_them}: \
                     latencies are at least those shown",
                    side.tally.unstarted + shed,
                    percent(share),
                    side.name
                ),
            );
        }
        // What was never started has been told; this is what was started too late.
        else if let (Some(missed), LoopKind::Open { rate_per_s, .. }) =
            (side.rate_missed().filter(|&missed| missed > WORTH_A_WORD), load.kind)
        {
            self.add(
                DoubtId::RateNotReached,
                side.name,
                format!(
                    "{} of {rate_per_s}/s were missing on {}: ops waited for a free connection until after the time in \
                     which they were due",
                    percent(missed),
                    side.name
                ),
            );
        }
        if matches!(load.kind, LoopKind::Closed { .. })
            && let Some(ops) = side.ops_per_lane.filter(|&ops| ops < FEWEST_OPS_PER_CONNECTION)
        {
            self.add(
                DoubtId::ShortSlots,
                side.name,
                format!(
                    "each {} to {} ended {ops:.1} {} in a slot; below {FEWEST_OPS_PER_CONNECTION} the rate \
                     is a rough one: a --slot that holds more of them needs a -d that is as many times longer",
                    plan.lane_noun(),
                    side.name,
                    plan.schema().op.many
                ),
            );
        }
        if side.tally.in_flight > 0 {
            self.add(DoubtId::Unfinished, side.name, unfinished(side, plan));
        }
        if side.tally.failed_total() > 0 {
            self.add(DoubtId::Errors, side.name, failures(side, plan.schema()));
        }
        if !side.tally.failed_in_run_up.is_empty() {
            self.add(DoubtId::Errors, side.name, failures_in_run_up(side, plan.schema()));
        }
        let Tally { resent, started, .. } = side.tally;
        if resent as f64 > WORTH_A_WORD * started as f64 {
            let text = format!(
                "requests were sent again {resent} times in {started} ops because {0} had refused them unread, or had \
                 closed the connection: {0} was asked for more than is counted, and their times are those of all tries \
                 together",
                side.name
            );
            self.add(DoubtId::Resent, side.name, text);
        }
        if let Some(others) = others_work(side, plan.schema()) {
            self.add(DoubtId::OthersWork, side.name, others);
        }
        let surplus = side.tally.surplus;
        if surplus > 0 {
            let text = format!(
                "{0} sent more bytes than its responses have, {surplus} times in {started} ops: these connections were \
                 closed, and the next requests went over new ones; compare Content-Length with the body that {0} sends",
                side.name
            );
            self.add(DoubtId::Surplus, side.name, text);
        }
    }
}

/// Work of others from which on it is told: as much as a margin of 2 % leaves out.
const OTHERS: f64 = 0.02;

/// What others did on the target meanwhile, where it tells.
fn others_work(side: &Side<'_>, schema: &Schema) -> Option<String> {
    let counted = |id: duel_model::Id| side.tally.counted.get(&id).copied();
    let of_others = schema.counters.iter().filter(|counter| counter.is_of_others());
    of_others.filter_map(|others| Some((others, counted(others.id())?))).find_map(|(others, count)| {
        // Like is held against like: a transaction has many statements.
        let (ours, many) = match others.beside() {
            None => (side.tally.ok, schema.op.many),
            Some(name) => {
                let same = schema.counters.iter().find(|counter| counter.name == name)?;
                (counted(same.id())?, same.title)
            }
        };
        (count as f64 > OTHERS * ours as f64).then(|| {
            format!(
                "others worked on {0} meanwhile: it counts {count} {many} that were not duel's, beside {ours} of duel's; they take \
                 from what {0} can do, and what it counts for each {1} is an average over theirs, too",
                side.name, schema.op.one
            )
        })
    })
}

/// Ops that were given up at the end of their slots.
fn unfinished(side: &Side<'_>, plan: &Plan) -> String {
    let (name, count) = (side.name, side.tally.in_flight);
    let were = if count == 1 { "request was" } else { "requests were" };
    let starved = match side.silent_lanes.filter(|&lanes| lanes > 0) {
        Some(silent) => format!(
            "; {silent} of {} {}s got no answer at all, so what is shown is what the others got",
            plan.lanes(),
            plan.lane_noun()
        ),
        None => String::new(),
    };
    // The slot of a single target lasts as long as its run.
    let longer = if plan.targets.len() > 1 { "--slot or -d" } else { "-d" };
    format!(
        "{count} {were} given up on {name} because {} not answered when a slot's wait for answers was over: {name} is \
         at least as slow as shown; a longer {longer} waits longer{starved}",
        if count == 1 { "it was" } else { "they were" }
    )
}

fn saturation(side: &Side<'_>, pairs: &[PairVerdict]) -> String {
    let busy = match side.utilisation.filter(|&u| u >= SATURATED) {
        Some(u) => {
            format!("a worker of the generator was busy {} of the time while it loaded {}", percent(u), side.name)
        }
        None => format!(
            "the generator started half of the ops on {} more than {} of the median response late",
            side.name,
            percent(LATE)
        ),
    };
    // Whoever was found slower than this side is so by at least the ratio given.
    let slower: Vec<&str> = pairs
        .iter()
        .filter_map(|pair| match pair.call {
            Call::Slower if pair.baseline == side.name => Some(pair.target.as_str()),
            Call::Faster if pair.target == side.name => Some(pair.baseline.as_str()),
            _ => None,
        })
        .fold(Vec::new(), |mut names, name| {
            if !names.contains(&name) {
                names.push(name);
            }
            names
        });
    if slower.is_empty() {
        format!("{busy}: {} may do better than was seen", side.name)
    } else {
        format!(
            "{busy}: {} may do better than was seen, so {} slower by at least the ratio shown",
            side.name,
            if let [one] = slower[..] { format!("{one} is") } else { format!("{} are", slower.join(" and ")) }
        )
    }
}

fn lag(side: &Side<'_>, which: &str, late: Option<u64>) -> String {
    let shown = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), |ns| format_duration_ns(ns as f64));
    format!(
        "the generator itself started ops on {} late by {} ({which}), with a median response of {}: response times \
         are shown by so much too long, and gaps look smaller than they are",
        side.name,
        shown(late),
        shown(side.tally.response.quantile_ns(0.5))
    )
}

fn failures_in_run_up(side: &Side<'_>, schema: &Schema) -> String {
    let failed = &side.tally.failed_in_run_up;
    let kinds: Vec<String> =
        schema.in_order(failed.keys().copied()).iter().map(|kind| format!("{} {kind}", failed[kind])).collect();
    format!(
        "{} ops failed on {} in the run-up of slots ({}): they are in no figure, and the streams that they were part of had less time to \
         come up to speed",
        failed.values().sum::<u64>(),
        side.name,
        kinds.join(", ")
    )
}

fn failures(side: &Side<'_>, schema: &Schema) -> String {
    let tally = &side.tally;
    let kinds = schema.in_order(tally.failed.keys().copied());
    let kinds: Vec<String> = kinds.iter().map(|kind| format!("{} {kind}", tally.failed[kind])).collect();
    let example = tally.failure_examples.first().map(|text| format!("; first: {}", sanitize_line(text)));
    format!(
        "{} of {} ops failed on {} ({}: {}){}",
        tally.failed_total(),
        tally.started,
        side.name,
        side.failed_share().map_or_else(|| "unknown share".to_owned(), percent),
        kinds.join(", "),
        example.unwrap_or_default()
    )
}

fn different_responses(baseline: &Side<'_>, target: &Side<'_>) -> Option<String> {
    let mut differences = Vec::new();
    let body = |side: &Side<'_>| side.tally.body_bytes_per_ok();
    if let (Some(of_target), Some(of_baseline)) = (body(target), body(baseline))
        && (of_target - of_baseline).abs() > SAME_BYTES_WITHIN * of_target.min(of_baseline)
    {
        differences.push(format!(
            "{} answers with {} of body per op, {} with {}",
            target.name,
            format_bytes(of_target),
            baseline.name,
            format_bytes(of_baseline)
        ));
    }
    let usual = |side: &Side<'_>| side.tally.statuses.iter().max_by_key(|&(_, count)| count).map(|(&status, _)| status);
    if let (Some(of_target), Some(of_baseline)) = (usual(target), usual(baseline))
        && of_target != of_baseline
    {
        differences.push(format!("{} mostly answers {of_target}, {} {of_baseline}", target.name, baseline.name));
    }
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// What makes a doubt where both sides tell it and differ.
fn different_negotiation(baseline: &Facts, target: &Facts) -> Vec<String> {
    Declaration::all()
        .filter(|declared| declared.is_doubted)
        .map(|declared| (declared.noun, baseline.value(declared.name), target.value(declared.name)))
        .filter(|(_, of_baseline, of_target)| of_baseline != of_target)
        .map(|(what, of_baseline, of_target)| {
            let shown = |value: Option<&Value>| {
                value.map_or_else(|| "none".to_owned(), |value| sanitize_line(&value.to_string()))
            };
            format!("{what} {} instead of {}", shown(of_target), shown(of_baseline))
        })
        .collect()
}
