//! The verdict on slots: calls from intervals, tempered by what is wrong with the numbers.

use crate::contrast::{Contrast, contrast, log_margin};
use crate::courses::stage_contrasts;
use crate::doubts;
use crate::pairing::pair_up;
use crate::plain::plain;
use crate::side::{Bias, Side, biases};
use crate::starts::{contrast_of_starts, fewest, pair_up_starts, starts};
use crate::whole::{Part, Whole, WholeGap};
use duel_model::{Call, ComparePlan, LoopKind, Metric, Nanos, PairVerdict, Plan, Slot, Verdict};

/// Judges any selection of slots, such as those of a probe; `plan` is the plan under which *these* slots ran (for a
/// probe, the varied one). Their order does not matter, and their roles are not looked at.
///
/// Closed loop: rate (ops/s), then median and 99th percentile of the response time; open loop: median, 99th percentile,
/// rate; of streams the rate alone; for each target after the first, the main metric first. Ratios are target over baseline. `ratio`, `low` and
/// `high` are `None` where they are not known, and the call is then `Unknown`; it is so too with fewer pairs than
/// `plan.compare.min_pairs`, though the ratio is given, unless the gap is plain without them. Where the plan has targets started anew, each start is one pair
/// (see `starts`). With one target there are no pairs, only doubts.
///
/// Slots of a target that the plan does not have are not looked at, nor are those in which the generator stood still.
pub fn judge_slots<'a>(slots: impl IntoIterator<Item = &'a Slot>, plan: &Plan) -> Verdict {
    judge_pairs(slots, plan, None, None)
}

/// As [`judge_slots`], of the slots of a probe. `by_whole`: the gaps of the comparison that were called by all of the time. They are
/// told so in probes as well, and all others by the typical pair, or a gap would seem to be another one for being measured otherwise.
pub fn judge_probe<'a>(slots: impl IntoIterator<Item = &'a Slot>, plan: &Plan, by_whole: &[WholeGap]) -> Verdict {
    judge_pairs(slots, plan, None, Some(by_whole))
}

/// As [`judge_slots`]; `would_do` is the load time in which there would have been enough slots for a verdict, `of_probe` the gaps
/// called by all of the time, where the slots are those of a probe.
pub(crate) fn judge_pairs<'a>(
    slots: impl IntoIterator<Item = &'a Slot>,
    plan: &Plan,
    would_do: Option<Nanos>,
    of_probe: Option<&[WholeGap]>,
) -> Verdict {
    let all = in_order(slots);
    let slots = without_spoilt(&all);
    let sides: Vec<Side<'_>> =
        plan.targets.iter().enumerate().map(|(place, target)| Side::new(&slots, place, target, plan)).collect();
    let mut verdict = Verdict::default();
    let mut found = doubts::Found::default();
    for (place, target) in sides.iter().enumerate().skip(1) {
        let baseline = &sides[0];
        for &metric in metrics(plan) {
            let whole = match metric {
                Metric::Rate => Whole::of(slots.iter().map(|slot| Part::of(slot)), place, 0),
                Metric::ResponseP50 | Metric::ResponseP99 => None,
            };
            let (pairs, typical) = match plan.compare.restart {
                Some(_) => {
                    let pairs = pair_up_starts(&slots, 0, place, metric);
                    let contrast = contrast_of_starts(&pairs.pairs, &plan.compare);
                    (pairs, contrast)
                }
                None => {
                    let pairs = pair_up(&slots, 0, place, metric, plan.compare.min_pairs);
                    let contrast = contrast(&pairs.pairs, &plan.compare);
                    (pairs, contrast)
                }
            };
            let by_whole = whole.as_ref().and_then(|whole| match of_probe {
                Some(gaps) => Some(whole.contrast_in_probe(WholeGap::of_target(gaps, place)?, &plan.compare)),
                None => whole.is_verdict(&typical, &plan.compare).then(|| whole.contrast(&plan.compare)),
            });
            let of_plain_gap = match of_probe {
                None => plain(&pairs, target, baseline, metric, (&plan.compare, &plan.load.kind)),
                Some(_) => None,
            };
            let contrast = of_plain_gap.or(by_whole).unwrap_or(typical);
            let (of_target, of_baseline) = biases(target, baseline, metric, &pairs);
            let counted = if of_plain_gap.is_some() { fewest(&plan.compare) } else { pairs.pairs.len() };
            let call_of = |contrast: &Contrast| call(contrast, counted, metric, &plan.compare);
            let seen = call_of(&contrast);
            // What was given up would have taken longer on either side: a call has to hold whatever it would have taken.
            let stands = !is_mostly_spoilt(&all, &slots, place)
                && (metric != Metric::Rate
                    || [-target.unfinished_log(), baseline.unfinished_log()]
                        .into_iter()
                        .all(|by| call_of(&contrast.shifted(by)) == seen));
            if let Some(whole) = &whole {
                found.of_whole([target.name, baseline.name], &typical, whole, by_whole.is_some(), seen, &plan.compare);
            }
            let stands = stands && whole.is_none_or(|whole| whole.lets_stand(seen, &plan.compare));
            let call = if stands { tempered(seen, of_target, of_baseline) } else { Call::Unknown };
            let judged = PairVerdict {
                baseline: baseline.name.to_owned(),
                target: target.name.to_owned(),
                metric,
                call,
                ratio: contrast.estimate.map(f64::exp),
                low: contrast.interval.map(|interval| interval.low.exp()),
                high: contrast.interval.map(|interval| interval.high.exp()),
                confidence: plan.compare.confidence,
                slots: pairs.slots,
                by_whole: by_whole.is_some() && of_plain_gap.is_none(),
            };
            found.of_contrast(&judged, &pairs, &contrast, &plan.compare, would_do);
            verdict.pairs.push(judged);
        }
        found.of_pair(baseline, target);
    }
    found.of_waiting(&sides);
    for (place, side) in sides.iter().enumerate() {
        found.of_side(side, plan, &verdict.pairs);
        found.of_standstill(side.name, &of_target(&all, place), "left out");
    }
    verdict.doubts = found.into_doubts();
    verdict.starts = plan.compare.restart.is_some().then(|| starts(&slots));
    verdict.stages = stage_contrasts(&slots, plan);
    verdict
}

fn of_target<'a>(slots: &[&'a Slot], place: usize) -> Vec<&'a Slot> {
    slots.iter().copied().filter(|slot| slot.target == place).collect()
}

/// The slots that show their targets, and not the generator. Where a target has only such as do not, it keeps them: a run of
/// one slot has its figures, and a doubt beside them.
pub(crate) fn without_spoilt<'a>(slots: &[&'a Slot]) -> Vec<&'a Slot> {
    let is_left = |target: usize| slots.iter().any(|slot| slot.target == target && !slot.is_spoilt());
    slots.iter().copied().filter(|slot| !slot.is_spoilt() || !is_left(slot.target)).collect()
}

/// Whether more than half of the slots of a target or of the baseline do not count: what is left was picked by what held the
/// generator up, and says too little about the whole.
fn is_mostly_spoilt(all: &[&Slot], left: &[&Slot], place: usize) -> bool {
    [0, place].into_iter().any(|place| {
        let of = |slots: &[&Slot]| slots.iter().filter(|slot| slot.target == place).count();
        let spoilt = left.iter().filter(|slot| slot.target == place && slot.is_spoilt()).count();
        2 * (of(left) - spoilt) < of(all)
    })
}

/// The metrics in which targets are compared, the main one first.
///
/// A closed loop offers as much as is served: its rate is what the target can do, and its latency follows from that
/// (Little's law). An open loop offers the same to all: its rate is what was asked for, and latency tells them apart.
/// Streams have a rate alone.
pub(crate) fn metrics(plan: &Plan) -> &'static [Metric] {
    match plan.load.kind {
        _ if plan.is_streamed() => &[Metric::Rate],
        LoopKind::Closed { .. } => &[Metric::Rate, Metric::ResponseP50, Metric::ResponseP99],
        LoopKind::Open { .. } => &[Metric::ResponseP50, Metric::ResponseP99, Metric::Rate],
    }
}

/// Slots in the order in which blocks ran; by block, repeat and place, so that it never depends on the caller's order.
pub(crate) fn in_order<'a>(slots: impl IntoIterator<Item = &'a Slot>) -> Vec<&'a Slot> {
    let mut slots: Vec<&Slot> = slots.into_iter().collect();
    slots.sort_by_key(|slot| (slot.block, slot.repeat, slot.target, slot.index));
    slots
}

/// What the numbers alone say, with m the margin as a log-ratio, and `pairs` the number of pairs of slots, or of starts where
/// targets are started anew.
///
/// *Equivalent*: the whole interval lies within -m to m. That both ends do is the test of Schuirmann (1987), two
/// one-sided tests; with an interval of confidence 0.95 each of them at 2.5 % rather than the usual 5 %.
///
/// With fewer pairs than are wanted there is none, but for that of a gap which is [`plain`] without them.
///
/// *Faster* and *slower*: the interval that calls rest on (99 % where the one that is shown is of 95 %) excludes 0, and
/// the estimate lies beyond m. Excluding 0 bounds the error of an A/A comparison. That the estimate must exceed the margin
/// as well makes the error much smaller than that bound whenever the measurement is sharp: a hair's breadth of difference
/// (two ports, two memory layouts of one server) is always there and found given enough slots, and nobody cares for it.
/// That the *whole* interval lies beyond m is not asked for: a real gap of 3 % would then need an interval of less than
/// 1 %, and "at least 2 %" is not what is claimed.
pub(crate) fn call(contrast: &Contrast, pairs: usize, metric: Metric, compare: &ComparePlan) -> Call {
    let (Some(estimate), Some(interval), Some(calling)) = (contrast.estimate, contrast.interval, contrast.calling)
    else {
        return Call::Unknown;
    };
    let margin = log_margin(compare);
    if pairs < fewest(compare) {
        Call::Unknown
    } else if -margin <= interval.low && interval.high <= margin {
        Call::Equivalent
    } else if !calling.contains(0.0) && estimate.abs() > margin {
        if (estimate > 0.0) == metric.more_is_better() { Call::Faster } else { Call::Slower }
    } else {
        Call::Unknown
    }
}

/// Withholds a call that the biases of its sides could have made.
///
/// *Slower* survives a hampered baseline and a flattered target: the true gap is then at least as large. It does not
/// survive a hampered target, which may be slow by our own fault, nor a flattered baseline. *Faster* is the mirror
/// image. *Equivalent* survives none of them.
pub(crate) fn tempered(call: Call, target: Bias, baseline: Bias) -> Call {
    let withheld = match call {
        Call::Slower => target.hampered || baseline.flattered,
        Call::Faster => baseline.hampered || target.flattered,
        Call::Equivalent => target != Bias::default() || baseline != Bias::default(),
        Call::Unknown => true,
    };
    if withheld { Call::Unknown } else { call }
}
