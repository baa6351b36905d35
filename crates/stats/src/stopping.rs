//! When more blocks would tell no more.

use crate::contrast::{Contrast, contrast, log_margin};
use crate::lasting::FEWEST_BLOCKS;
use crate::pairing::{Pair, batched, log_ratios, pair_up_values, value_of};
use crate::signed_rank::{Span, Walsh};
use crate::slots::{call, metrics};
use crate::starts::{by_start, contrast_of_starts, fewest as fewest_observations, interval_of_starts};
use crate::whole::{Part, Whole, WholeGap};
use duel_model::{Call, ComparePlan, Metric, Plan, Slot};
use std::collections::BTreeMap;

/// Whether to go on.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// Run the next block.
    Go,
    /// The main metric of every target is known well enough.
    Enough {
        /// Pairs that it rests on, of the target that has fewest.
        pairs: u32,
        /// Why, in one sentence with figures, for who watches.
        reason: String,
    },
}

/// What [`early_stop`] needs of a slot: a few words, so that who asks need not keep its histograms for that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotFigure {
    target: usize,
    block: u32,
    repeat: u32,
    index: u32,
    /// Which start of the targets it belongs to, where any is started anew.
    start: Option<u32>,
    /// The slot's value in the main metric.
    value: Option<f64>,
    /// What it adds to the rates over all of the time; `None` where it shows the generator.
    part: Option<Part>,
}

impl SlotFigure {
    /// Of a slot that ran under this plan (for a probe, the varied one).
    pub fn of(slot: &Slot, plan: &Plan) -> Self {
        let value = value_of(slot, metrics(plan)[0]).filter(|_| !slot.is_spoilt());
        Self {
            target: slot.target,
            block: slot.block,
            repeat: slot.repeat,
            index: slot.index,
            start: slot.start,
            value,
            part: (!slot.is_spoilt()).then(|| Part::of(slot)),
        }
    }
}

/// What the slots are wanted for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted<'a> {
    /// A verdict, which may be that targets are equivalent.
    Verdict,
    /// The share of a gap that a probe takes away: nothing is called equivalent by it.
    Probe {
        /// The gaps that are known, one for each target at most.
        held: &'a [Held],
        /// The gaps that were called by all of the time.
        by_whole: &'a [WholeGap],
    },
}

/// A gap that what a probe shows is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// The target that differs from the baseline.
    pub target: usize,
    /// The log of how many times slower the slow side is, above 0.
    pub log: f64,
    /// To which share of it the rest that a probe leaves need be known.
    pub share: f64,
    /// The fast side: the target, or the baseline.
    pub fast: usize,
    /// Its ops per second without the probe's change, over as many connections as the probe has.
    pub fast_per_s: f64,
}

impl Held {
    /// To which share of a gap need be known what a flip leaves of it: diagnosis calls a cause confirmed at 80 %.
    pub const OF_A_FLIP: f64 = SHARE_OF_GAP;
    /// The same where it need only be seen that the gap is still there: with what machines count meanwhile, or once more.
    pub const TO_BE_SEEN: f64 = 0.2;

    /// The half width of a log ratio that suffices. What is left where a probe makes the fast side k times as dear is read as
    /// 1 + k (r - 1), so that the noise of r counts k times.
    fn half_width(&self, slots: &[SlotFigure]) -> Option<f64> {
        let dearer = self.fast_per_s / rate(slots, self.fast)?;
        let enough = self.share * self.log / dearer.max(1.0);
        (enough > 0.0).then_some(enough)
    }
}

/// Whether the slots so far suffice; to be asked after each block with the figures of all judged slots of the run (or probe) so far.
///
/// Stateless: it looks only when the last whole block brought the number of pairs to or over 6, 8, 12, 16, 24, 32, 48,
/// ..., not below `plan.compare.min_pairs`, and answers `Go` at all other times, with a single target, and when
/// `plan.compare.stop_early` is off. Slots of an unfinished block are not looked at: a block cut short is not balanced.
///
/// With h the half width of the interval in logarithms and m the margin, a target's main metric is known well enough
/// when one of these holds:
///
/// * *sharp*: h <= m / 2. The rule looks at the width and not at where the interval lies, so it does not favour any
///   call (Chow and Robbins 1965); at m / 2 a ratio near 1 has room to be called equivalent. For a verdict not before the 8th
///   block: until then nothing is seen of noise that lasts longer than a block, and with such noise few blocks are alike whatever
///   their mean is.
/// * *sharp for its size*: h <= 5 % of the estimate. Diagnosis attributes shares of the log of a gap, and calls a cause
///   confirmed at 80 %: a 20th of the gap is fine enough for that. Without a true gap this all but never holds: noise
///   that is symmetric about 0 and falls off on both sides has six independent pairs within +-5 % of one value in less
///   than one run of 10,000 (given the first at c, each other one lies within a factor 1.05/0.95 of it with probability
///   below 0.2 c f(c) <= 0.1, because c f(c) <= 1/2 for a density f that falls).
/// * *clear*: the 99.9 % interval lies wholly beyond m, and h <= m. An interim look that only stops for so strong
///   evidence (Haybittle 1971, Peto et al. 1976) adds at most 0.1 % to the error rate; a gap that is known to within
///   the difference that nobody cares for is known well enough. For a verdict not before the 8th block either.
/// * *sharp for the gap*, of a probe whose ratio is held against a gap that is known: h is no more than a share of that gap. What
///   takes all of a gap of 5x away is told from what takes nothing long before it is known to m / 2.
///
/// Where the plan has targets started anew, a verdict is asked for after all blocks of a start, and all of this is about starts in
/// the place of pairs and blocks.
///
/// Looks are spaced geometrically so that there are few, each on half as many more pairs. `error_rates.rs` in the tests
/// measures what the rule does to the error rate.
pub fn early_stop(slots: impl IntoIterator<Item = SlotFigure>, plan: &Plan, wanted: Wanted<'_>) -> Stop {
    if !plan.compare.stop_early || plan.targets.len() < 2 {
        return Stop::Go;
    }
    // By block, repeat and place, so that it never depends on the caller's order.
    let mut slots: Vec<SlotFigure> = slots.into_iter().collect();
    slots.sort_by_key(|slot| (slot.block, slot.repeat, slot.target, slot.index));
    let slots = whole_blocks(&slots, plan.targets.len());
    let over_starts = plan.compare.restart.is_some() && wanted == Wanted::Verdict;
    let placed = || slots.iter().map(|slot| (slot.target, (slot.block, slot.repeat), slot.value));
    let starts: BTreeMap<u32, u32> = slots.iter().filter_map(|slot| Some((slot.block, slot.start?))).collect();
    let start_of = |block: u32| starts.get(&block).copied().unwrap_or(0);
    let of_target = |target: usize| match (pair_up_values(placed(), 0, target).pairs, over_starts) {
        (pairs, true) => by_start(&pairs, start_of),
        (pairs, false) => pairs,
    };
    let of_targets: Vec<Vec<Pair>> = (1..plan.targets.len()).map(of_target).collect();
    let Some(last) = slots.last().map(|slot| if over_starts { start_of(slot.block) } else { slot.block }) else {
        return Stop::Go;
    };
    let main = metrics(plan)[0];
    let fewest = |counted: &dyn Fn(&Pair) -> bool| {
        of_targets.iter().map(|pairs| pairs.iter().filter(|pair| counted(pair)).count()).min().unwrap_or(0)
    };
    let (before, pairs) = (fewest(&|pair| pair.block < last), fewest(&|_| true));
    if !is_look(before, pairs, fewest_observations(&plan.compare)) {
        return Stop::Go;
    }
    let mut reasons = Vec::new();
    for ((place, target), values) in plan.targets.iter().enumerate().skip(1).zip(&of_targets) {
        let (held, whole_gap) = match wanted {
            Wanted::Probe { held, by_whole } => {
                (held.iter().find(|held| held.target == place), WholeGap::of_target(by_whole, place))
            }
            Wanted::Verdict => (None, None),
        };
        let enough = held.and_then(|held| held.half_width(&slots));
        let known = if over_starts {
            known_of_starts(values, &plan.compare)
        } else {
            known(values, &plan.compare, wanted, enough)
        };
        let whole = match main {
            Metric::Rate => Whole::of(slots.iter().filter_map(|slot| slot.part), place, 0),
            Metric::ResponseP50 | Metric::ResponseP99 => None,
        };
        // As the verdict goes by the whole where turns leave out what it has.
        let by_whole = |whole: &Whole, contrast: Contrast| {
            let clear = || whole.interval(CLEAR);
            narrow_enough(contrast, &plan.compare, clear).filter(|_| whole.shows_lasting())
        };
        let known = match (&whole, known, whole_gap) {
            // A probe of such a gap goes on for as long as its pauses may have failed to come by chance.
            (Some(whole), _, Some(gap)) => by_whole(whole, whole.contrast_in_probe(gap, &plan.compare))
                .filter(|_| whole.turns_wanted(&plan.compare).is_none()),
            (Some(whole), Some((_, _, typical)), None)
                if wanted == Wanted::Verdict && whole.is_verdict(&typical, &plan.compare) =>
            {
                by_whole(whole, whole.contrast(&plan.compare))
            }
            (_, known, _) => known,
        };
        let Some((why, half_width, contrast)) = known else { return Stop::Go };
        // Where few slots make a difference that most pairs do not show, more of them tell whether it was chance. A probe is not
        // called equivalent: how far the whole may lie from its estimate is no reason to go on with it.
        let seen = call(&contrast, values.len(), main, &plan.compare);
        let stands = |whole: Whole| match (wanted, seen) {
            (Wanted::Probe { .. }, Call::Equivalent) => whole.is_within(log_margin(&plan.compare)),
            _ => whole.lets_stand(seen, &plan.compare),
        };
        if !whole.is_none_or(stands) {
            return Stop::Go;
        }
        reasons.push(format!(
            "{} of {} known to ±{:.1} % ({why})",
            main.name(),
            target.name,
            half_width.exp_m1() * 100.0
        ));
    }
    let counted = if over_starts { "starts" } else { "pairs" };
    Stop::Enough { pairs: pairs as u32, reason: format!("{} after {pairs} {counted}", reasons.join(", ")) }
}

/// Share of a gap's logarithm to which it need be known.
const SHARE_OF_GAP: f64 = 0.05;
/// Confidence of the interval that must lie beyond the margin for a clear gap.
const CLEAR: f64 = 0.999;

/// Why the ratio is known well enough, the half width of its interval, and what the verdict would go by. `enough` is a half
/// width that suffices in any case.
fn known(
    pairs: &[Pair],
    compare: &ComparePlan,
    wanted: Wanted<'_>,
    enough: Option<f64>,
) -> Option<(&'static str, f64, Contrast)> {
    let shows_lasting = wanted != Wanted::Verdict || pairs.chunk_by(|a, b| a.block == b.block).count() >= FEWEST_BLOCKS;
    let walsh = Walsh::new(&log_ratios(&batched(pairs)));
    let (estimate, margin) = (walsh.median()?, log_margin(compare));
    let narrow_enough = |half_width: f64| {
        if half_width <= margin / 2.0 && shows_lasting {
            Some("sharp")
        } else if half_width <= SHARE_OF_GAP * estimate.abs() {
            Some("sharp for its size")
        } else if enough.is_some_and(|enough| half_width <= enough) {
            Some("sharp for the gap")
        } else if half_width <= margin
            && shows_lasting
            && walsh.interval(CLEAR).is_some_and(|wide| wide.low > margin || wide.high < -margin)
        {
            Some("clear gap")
        } else {
            None
        }
    };
    // The interval that the verdict uses is never narrower than the signed-rank one: most looks need no bootstrap.
    narrow_enough(walsh.interval(compare.confidence)?.half_width())?;
    let contrast = contrast(pairs, compare);
    let half_width = contrast.interval?.half_width();
    Some((narrow_enough(half_width)?, half_width, contrast))
}

/// The same by starts of the targets. Each of them has connections and memory of its own, so that they resemble their neighbours less
/// than blocks do; nothing is known from fewer than [`FEWEST_STARTS`](crate::starts::FEWEST_STARTS).
fn known_of_starts(starts: &[Pair], compare: &ComparePlan) -> Option<(&'static str, f64, Contrast)> {
    let clear = || interval_of_starts(starts, CLEAR);
    narrow_enough(contrast_of_starts(starts, compare), compare, clear)
}

/// Why this suffices, as [`known`] has it; `clear` is its interval at [`CLEAR`].
fn narrow_enough(
    contrast: Contrast,
    compare: &ComparePlan,
    clear: impl Fn() -> Option<Span>,
) -> Option<(&'static str, f64, Contrast)> {
    let (estimate, half_width, margin) = (contrast.estimate?, contrast.interval?.half_width(), log_margin(compare));
    let why = if half_width <= margin / 2.0 {
        "sharp"
    } else if half_width <= SHARE_OF_GAP * estimate.abs() {
        "sharp for its size"
    } else if half_width <= margin && clear().is_some_and(|wide| wide.low > margin || wide.high < -margin) {
        "clear gap"
    } else {
        return None;
    };
    Some((why, half_width, contrast))
}

/// Ops of a target per second of all of its time.
fn rate(slots: &[SlotFigure], target: usize) -> Option<f64> {
    let parts = || slots.iter().filter_map(|slot| slot.part).filter(|part| part.target == target);
    let (ok, time_ns) = parts().fold((0.0, 0.0), |(ok, time_ns), part| (ok + part.ok, time_ns + part.time_ns));
    (ok > 0.0 && time_ns > 0.0).then(|| ok * 1e9 / time_ns)
}

/// Slots of blocks in which every target has as many as the fullest block has of any.
fn whole_blocks(slots: &[SlotFigure], targets: usize) -> Vec<SlotFigure> {
    let of = |block: &[SlotFigure], target: usize| block.iter().filter(|slot| slot.target == target).count();
    let blocks: Vec<&[SlotFigure]> = slots.chunk_by(|a, b| a.block == b.block).collect();
    let full = blocks.iter().flat_map(|block| (0..targets).map(|target| of(block, target))).max().unwrap_or(0);
    let whole = |block: &&[SlotFigure]| (0..targets).all(|target| of(block, target) == full);
    blocks.iter().copied().filter(whole).flatten().copied().collect()
}

/// Whether growing from `before` to `now` pairs reached one of 6, 8, 12, 16, 24, 32, 48, ... that is at least `fewest`.
fn is_look(before: usize, now: usize, fewest: usize) -> bool {
    let doubling = |start: usize| std::iter::successors(Some(start), |n| n.checked_mul(2));
    let reached = |look: &usize| before < *look && *look >= fewest;
    doubling(6).take_while(|look| *look <= now).any(|look| reached(&look))
        || doubling(8).take_while(|look| *look <= now).any(|look| reached(&look))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_few_and_none_is_missed() {
        let looks = |step: usize, fewest: usize| -> Vec<usize> {
            (step..=100).step_by(step).filter(|&now| is_look(now - step, now, fewest)).collect()
        };
        assert_eq!(looks(1, 6), [6, 8, 12, 16, 24, 32, 48, 64, 96]);
        assert_eq!(looks(2, 10), [12, 16, 24, 32, 48, 64, 96]);
        assert_eq!(looks(5, 6), [10, 15, 20, 25, 35, 50, 65, 100]);
    }
}
