//! Counters that grow more for each op on the slow side than on the fast one, beyond their scatter.

use super::Ranked;
use super::counted::{Counted, calls_by_time};
use crate::evidence::by_hand::LISTEN_QUEUES;
use crate::evidence::counted::per_op as of_machine;
use crate::evidence::listen_queues::ListenQueues;
use crate::evidence::sleepers;
use crate::gap::{DemandLook, Demands, Flip, Gap, Look, View, percent};
use duel_model::{
    Difference, DifferenceKind, HostDemand, Id, TargetObservation, format_bytes, format_duration_ns, format_figure,
};
use duel_stats::{Estimate, Ratio};

/// What is less of the gap is not worth a line.
const LEAST: f64 = 0.05;
/// That no time goes into CPUs tells less than what it goes into.
const ASLEEP_WEIGHT: f64 = 0.75;

/// Counters of both machines, and what the kind of work counts.
pub(super) fn differing(gap: &Gap<'_>) -> Vec<Ranked> {
    let mut ranked = by_machines(gap).unwrap_or_default();
    ranked.extend(by_work(gap));
    ranked
}

/// What the kind of work counts beside, such as what a database's server tells of itself: how long its events take nobody
/// knows, so they rank by how much more there are.
fn by_work(gap: &Gap<'_>) -> Vec<Ranked> {
    let view = &gap.comparison;
    let counters = gap.case.plan.schema().counters;
    let confidence = of_many(counters.len());
    let ratio = |seen: &TargetObservation, id: Id| {
        let (ops, sums) = (seen.ok as f64, seen.scatter.counters.get(&id)?);
        let counted = seen.counted_per_op.get(&id)? * ops;
        let squares = [seen.scatter.ops_squares, sums.products, sums.squares];
        Ratio::of_sums(seen.scatter.slots, [ops, counted], squares)
    };
    let ranked = |counter: &duel_model::Counter| {
        let [slow, fast] = [view.slow, view.fast].map(|seen| ratio(seen, counter.id()));
        let slow = slow?;
        // What did not occur on the fast side is absent there; what the target counts was not read there.
        let fast = match fast {
            None if counter.is_of_server() => return None,
            None => Ratio { mid: 0.0, error: 0.0, slots: slow.slots },
            Some(fast) => fast,
        };
        let beyond = slow.beyond(1.0, fast, confidence).filter(|beyond| beyond.low() > 0.0)?;
        let tell = Tell { gap, key: counter.name, noun: counter.title, slow: slow.mid, fast: fast.mid };
        let command = gap.evidence(view, String::new()).repeat;
        if counter.is_time() {
            tell.time(beyond.mid, view, command)
        } else {
            tell.count(beyond.mid, view, None, command)
        }
    };
    counters.iter().filter_map(ranked).collect()
}

/// What both machines counted; `None` where one of them was not read.
fn by_machines(gap: &Gap<'_>) -> Option<Vec<Ranked>> {
    let (DemandLook::Shown(Demands { slow, fast: Some(fast) }), Look::Shown(view)) =
        (gap.demands(), gap.look(gap.hosts()))
    else {
        return None;
    };
    let both: Vec<(&str, &'static Counted)> = slow
        .scatter
        .counters
        .keys()
        .filter(|key| fast.scatter.counters.contains_key(*key))
        .filter_map(|key| Some((&**key, Counted::of(key)?)))
        .collect();
    let confidence = of_many(both.len());
    let beyond = |key: &str| -> Option<(f64, f64, Estimate)> {
        let (of_slow, of_fast) = (of_machine(slow, key)?, of_machine(fast, key)?);
        Some((of_slow.mid, of_fast.mid, of_slow.beyond(longer(slow, fast, key), of_fast, confidence)?))
    };
    let mut ranked: Vec<Ranked> = queued(gap, slow, fast, &view).into_iter().collect();
    ranked.extend(asleep(gap, slow, fast, &view));
    for (key, counted) in both {
        let Some((of_slow, of_fast, more)) = beyond(key).filter(|(.., more)| more.low() > 0.0) else { continue };
        let (tell, more) = (Tell { gap, key, noun: counted.noun, slow: of_slow, fast: of_fast }, more.mid);
        let look = Some((counted.look)(gap, gap.slow));
        ranked.extend(match counted.event_ns {
            None => tell.time(more, &view, look),
            Some(event_ns) => tell.count(more, &view, Some(event_ns), look),
        });
    }
    Some(ranked)
}

/// So sure of each that one of all is wrong in a twentieth of all cases (Bonferroni).
fn of_many(counters: usize) -> f64 {
    1.0 - 0.05 / counters.max(1) as f64
}

/// How much more of a counter an op of the slow side may have than one of the fast side, only because it takes longer: what
/// a machine does all the time, for whomever, is more for each op where ops are fewer.
fn longer(slow: &HostDemand, fast: &HostDemand, key: &str) -> f64 {
    if Counted::is_of_server(key) {
        return 1.0;
    }
    let time_per_op = |demand: &HostDemand| demand.elapsed_ns as f64 / demand.ops.max(1) as f64;
    (time_per_op(slow) / time_per_op(fast)).max(1.0)
}

/// Connections that wait beside the slow side's server until somebody accepts them: as telling as they are many of all requests.
fn queued(gap: &Gap<'_>, slow: &HostDemand, fast: &HostDemand, view: &View<'_>) -> Option<Ranked> {
    let queues = ListenQueues::of(gap, slow, fast)?;
    queues.where_more_wait()?;
    let connections = f64::from(view.connections().unwrap_or(gap.case.plan.lanes()));
    let weight = ((queues.slow.waiting - queues.fast.waiting) / connections).clamp(0.0, 1.0);
    let difference = Difference {
        name: "listen_queues.waiting".to_owned(),
        kind: DifferenceKind::Queue,
        slow: format_figure(queues.slow.waiting),
        fast: format_figure(queues.fast.waiting),
        text: queues.tell(gap),
        look: Some(LISTEN_QUEUES.to_owned()),
    };
    Some(Ranked { difference, weight })
}

/// Where what the slow side's threads run longer, and wait longer for a CPU, cannot be a noteworthy part of the gap: they sleep.
/// Where nobody counts waiting, they may do that instead, and it is said so.
fn asleep(gap: &Gap<'_>, slow: &HostDemand, fast: &HostDemand, view: &View<'_>) -> Option<Ranked> {
    let both = |key: &str| slow.per_op(key).zip(fast.per_op(key));
    let ran = both("process.cpu_ns")?;
    let waited = both("workers.wait_ns");
    let [slow_ns, fast_ns] = waited.map_or([ran.0, ran.1], |waited| [ran.0 + waited.0, ran.1 + waited.1]);
    let more_ns = (slow_ns - fast_ns).max(0.0);
    let most = more_ns / Worth::of(view)?.together_ns;
    if most >= Flip::NOTEWORTHY {
        return None;
    }
    let told = sleepers::told(slow, fast, &gap.fast_name());
    let (of, instead) = match waited {
        Some(_) => ("CPU time and of waiting for a CPU", "sleep"),
        None => ("CPU time", "wait for a CPU (which was not counted) or sleep"),
    };
    let (slow, fast, op) = (gap.slow_name(), gap.fast_name(), gap.case.plan.schema().op.one);
    // Less than half a per cent of the gap would be told as 0 %.
    let takes = if most >= 0.005 {
        let more = format_duration_ns(more_ns);
        format!("{slow} takes only {more} more of {of} per {op} than {fast}, at most {} of the gap", percent(most))
    } else {
        format!("{slow} takes hardly more of {of} per {op} than {fast}")
    };
    let what_for = told.as_deref().unwrap_or("for a lock, a timer, a disk, another server");
    let text = format!("{takes}: its threads {instead} meanwhile ({what_for}), or the time goes by outside of it");
    let difference = Difference {
        name: "process.asleep".to_owned(),
        kind: DifferenceKind::Asleep,
        slow: format_duration_ns(slow_ns),
        fast: format_duration_ns(fast_ns),
        text,
        look: Some(calls_by_time(gap, gap.slow)),
    };
    Some(Ranked { difference, weight: ASLEEP_WEIGHT * (1.0 - most) })
}

/// The gap in time per op.
struct Worth {
    /// If all ops that are under way wait for the same thing.
    together_ns: f64,
    /// If each waits for itself.
    each_ns: f64,
}

impl Worth {
    fn of(view: &View<'_>) -> Option<Self> {
        let each_ns = view.difference_ns()?.mid;
        let together = view.connections().map_or(1.0, |lanes| f64::from(lanes).max(1.0));
        (each_ns > 0.0).then_some(Self { together_ns: each_ns / together, each_ns })
    }
}

/// A counter of both sides, to be told.
struct Tell<'a, 'b> {
    gap: &'a Gap<'b>,
    key: &'a str,
    noun: &'a str,
    /// Per op.
    slow: f64,
    fast: f64,
}

impl Tell<'_, '_> {
    fn time(&self, more: f64, view: &View<'_>, look: Option<String>) -> Option<Ranked> {
        let most = (more / Worth::of(view)?.together_ns).min(1.0);
        let text = format!("{}: {} of the gap at most", self.both(format_duration_ns), percent(most));
        self.ranked(DifferenceKind::Time, text, look, most, format_duration_ns)
    }

    fn count(&self, more: f64, view: &View<'_>, event_ns: Option<[f64; 2]>, look: Option<String>) -> Option<Ranked> {
        let worth = Worth::of(view)?;
        let needed_ns = [worth.together_ns, worth.each_ns].map(|ns| ns / more);
        let is_bytes = self.key.ends_with("_bytes");
        let figure = if is_bytes { format_bytes } else { format_figure };
        let (each, times) = if is_bytes { ("each KiB", 1024.0) } else { ("each", 1.0) };
        let text = format!(
            "{}; to be the whole gap, {each} would have to take {}",
            self.both(figure),
            format_duration_ns(times * needed_ns[1])
        );
        let weight = more / self.slow * event_ns.map_or(1.0, |usual| plausible(needed_ns, usual));
        self.ranked(DifferenceKind::Count, text, look, weight, figure)
    }

    /// `page faults that read a disk: 1.00 per request on B, 0 on A`.
    fn both(&self, figure: fn(f64) -> String) -> String {
        let (slow, fast) = (figure(self.slow), figure(self.fast));
        let (gap, op) = (self.gap, self.gap.case.plan.schema().op.one);
        format!("{} ({}): {slow} per {op} on {}, {fast} on {}", self.noun, self.key, gap.slow_name(), gap.fast_name())
    }

    fn ranked(
        &self,
        kind: DifferenceKind,
        text: String,
        look: Option<String>,
        weight: f64,
        figure: fn(f64) -> String,
    ) -> Option<Ranked> {
        let (slow, fast) = (figure(self.slow), figure(self.fast));
        let difference = Difference { name: self.key.to_owned(), kind, slow, fast, text, look };
        (weight >= LEAST).then_some(Ranked { difference, weight })
    }
}

/// 1 where one event may take what it would have to; a half where it would have to take ten times as long, or a tenth of it.
fn plausible(needed_ns: [f64; 2], usual_ns: [f64; 2]) -> f64 {
    let too_long = (needed_ns[0] / usual_ns[1]).log10().max(0.0);
    let too_short = (usual_ns[0] / needed_ns[1]).log10().max(0.0);
    1.0 / (1.0 + too_long + too_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_would_have_to_take_what_none_takes_is_less_plausible() {
        let usual = [1e4, 1e8];
        assert_eq!(plausible([1e5, 1e6], usual), 1.0);
        assert_eq!(plausible([1e7, 1e9], usual), 1.0, "the ranges meet");
        assert!((plausible([1e9, 1e10], usual) - 0.5).abs() < 1e-12);
        assert!((plausible([1e2, 1e3], usual) - 0.5).abs() < 1e-12);
        assert!(plausible([1e13, 1e14], usual) < 0.2);
    }
}
