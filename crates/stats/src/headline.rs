//! What has to be told of a target before any figure: it stopped answering, it fails requests, or it did not reach the rate
//! that was asked for.
//!
//! These are counts of what happened in the run, and no inference: no interval stands behind them.

use crate::side::{ALL_BUSY, MISSING, is_measured, percent, scatter};
use crate::slots::without_spoilt;
use duel_model::{
    Doubt, DoubtId, Headline, HeadlineKind, Id, Interruption, LoopKind, Meaning, Nanos, Plan, Run, RunStatus, Schema,
    Slot, format_duration_ns, format_figure, sanitize_line,
};
use std::collections::BTreeMap;

/// Share of failed requests from which on a target is told to fail, and share of the rate that may be missing: as many ops
/// as the 99th percentile leaves out. Above it the percentiles are those of another, kinder load than the one that was
/// asked for.
const WORTH_A_HEADLINE: f64 = MISSING;

/// What was counted of one target.
#[derive(Debug, Default)]
struct Counts {
    started: u64,
    ended: u64,
    /// Ops due and never started, those that were shed included.
    left_out: u64,
    failed: BTreeMap<Id, u64>,
    statuses: BTreeMap<u16, u64>,
    elapsed_ns: Nanos,
    /// Time that ops were under way, all of them together.
    service_ns: u128,
    slots: u64,
}

impl Counts {
    fn of(run: &Run, place: usize) -> Self {
        let schema = run.plan.schema();
        let mut counts = Self::default();
        // What was under way when the user ended the run might have been answered.
        let is_cut_off = run.status == RunStatus::Interrupted(Interruption::User);
        let measured: Vec<&Slot> = run.slots.iter().filter(|slot| slot.target == place && is_measured(slot)).collect();
        for Slot { tally, elapsed_ns, .. } in without_spoilt(&measured) {
            counts.started += tally.started;
            counts.ended += tally.ok + tally.failed_total();
            if is_cut_off {
                counts.ended += tally.in_flight;
            }
            counts.left_out += tally.unstarted + tally.shed;
            // What we ran out of ourselves is not the target's failure.
            for (&kind, count) in
                tally.failed.iter().filter(|&(&kind, _)| !schema.meaning(kind).is_some_and(Meaning::is_ours))
            {
                *counts.failed.entry(kind).or_default() += count;
            }
            for (&status, count) in tally.statuses.iter().filter(|&(&status, _)| status >= 400) {
                *counts.statuses.entry(status).or_default() += count;
            }
            counts.elapsed_ns = counts.elapsed_ns.saturating_add(*elapsed_ns);
            counts.service_ns += tally.service.sum_ns;
            counts.slots += 1;
        }
        counts
    }

    fn failed_total(&self) -> u64 {
        self.failed.values().sum()
    }

    /// What requests failed with, the most frequent first, in words.
    fn how(&self, schema: &Schema) -> String {
        let statuses = self.statuses.iter().map(|(status, count)| (*count, format!("status {status}")));
        // What says no by a status is told by that.
        let is_told = |kind| !self.statuses.is_empty() && schema.meaning(kind).is_some_and(Meaning::is_rejected);
        let others = self.failed.iter().filter(|&(&kind, _)| !is_told(kind));
        let others = others.map(|(kind, count)| (*count, kind.to_string()));
        let has_statuses = self.failed.keys().any(|&kind| is_told(kind));
        let mut kinds: Vec<(u64, String)> = statuses.filter(|_| has_statuses).chain(others).collect();
        kinds.sort_by(|one, other| other.cmp(one));
        kinds.truncate(MOST_KINDS);
        kinds.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>().join(", ")
    }
}

/// Most kinds of failure that a headline names.
const MOST_KINDS: usize = 3;

/// The headlines of a run, the worst first; `doubts` are those of its verdict.
pub(crate) fn headlines(run: &Run, doubts: &[Doubt]) -> Vec<Headline> {
    let died = match &run.status {
        RunStatus::Interrupted(Interruption::TargetDied { target, at_ns, how }) => {
            Some((target, stopped_answering(target, *at_ns, how)))
        }
        _ => None,
    };
    let mut found: Vec<Headline> = died.iter().map(|(_, headline)| headline.clone()).collect();
    found.extend(run.doubts.iter().filter_map(wrong_content));
    // Where a rate is looked for, attempts beyond it are meant to fail.
    if run.plan.load.shape.search.is_none() {
        for (place, target) in run.plan.targets.iter().enumerate() {
            // What a target failed after its death is told with its death.
            if died.as_ref().is_some_and(|(name, _)| **name == target.name) {
                continue;
            }
            let counts = Counts::of(run, place);
            let stood_still = is_told(DoubtId::GeneratorStoodStill, &target.name, doubts);
            found.extend(failing(run.plan.schema(), &target.name, &counts, stood_still));
            found.extend(rate_not_reached(&run.plan, &target.name, &counts, doubts));
        }
    }
    found.sort_by_key(|headline| headline.kind);
    found
}

fn stopped_answering(target: &str, at_ns: Nanos, how: &str) -> Headline {
    Headline {
        kind: HeadlineKind::TargetDied,
        target: target.to_owned(),
        share: None,
        text: format!(
            "Target died: {} stopped answering after {} ({}); what follows was measured until then",
            sanitize_line(target),
            format_duration_ns(at_ns as f64),
            sanitize_line(how)
        ),
    }
}

/// A target whose content does not agree with what was done to it: that was looked at once, and is kept as a doubt.
fn wrong_content(doubt: &Doubt) -> Option<Headline> {
    let target = doubt.target.clone().filter(|_| doubt.id == DoubtId::ContentWrong)?;
    let text = format!("Wrong content: {}", sanitize_line(&doubt.text));
    Some(Headline { kind: HeadlineKind::ContentWrong, target, share: None, text })
}

/// Whether there is a doubt of this kind about a target.
fn is_told(id: DoubtId, target: &str, doubts: &[Doubt]) -> bool {
    doubts.iter().any(|doubt| doubt.id == id && doubt.target.as_deref().is_none_or(|of| of == target))
}

fn failing(schema: &Schema, target: &str, counts: &Counts, stood_still: bool) -> Option<Headline> {
    let failed = counts.failed_total();
    let share = crate::observe::share(failed, counts.started).filter(|&share| share > WORTH_A_HEADLINE)?;
    let name = sanitize_line(target);
    let how = counts.how(schema);
    let part = if failed == counts.started { "all".to_owned() } else { percent(share) };
    // What timed out may have been answered while nobody was there to see it.
    let is_ours = stood_still && schema.failed(&counts.failed, Meaning::is_waiting) > 0;
    let ours = if is_ours { "; the generator itself stood still, which may have made some of them" } else { "" };
    let text = format!("{name} fails {part} of its {} ({how}){ours}", schema.op.many);
    Some(Headline { kind: HeadlineKind::Failing, target: target.to_owned(), share: Some(share), text })
}

fn rate_not_reached(plan: &Plan, target: &str, counts: &Counts, doubts: &[Doubt]) -> Option<Headline> {
    let LoopKind::Open { rate_per_s, arrival } = plan.load.kind else { return None };
    // Whoever varies the rate asks for rates that are not reached.
    if !plan.factors.is_empty() {
        return None;
    }
    let name = sanitize_line(target);
    let is_ours = is_told(DoubtId::GeneratorSaturated, target, doubts);
    // How many were busy on average, by Little's law.
    let busy = counts.service_ns as f64 / counts.elapsed_ns.max(1) as f64;
    let limit = if is_ours {
        "; the generator itself may have been the limit".to_owned()
    } else if plan.load.shape.stages.is_empty() && busy > ALL_BUSY * f64::from(plan.lanes()) {
        format!(": all {} were busy", plan.all_lanes())
    } else {
        String::new()
    };
    let (share, text) = if plan.load.shape.stages.is_empty() {
        let wanted = counts.elapsed_ns as f64 / 1e9 * rate_per_s;
        let missed = wanted - counts.ended as f64 - scatter(arrival, wanted, counts.slots);
        if missed <= WORTH_A_HEADLINE * wanted {
            return None;
        }
        let share = counts.ended as f64 / wanted;
        let reached = format_figure(share * rate_per_s);
        let asked = format_figure(rate_per_s);
        (share, format!("{name} answers {reached}/s of the {asked}/s that were asked for ({})", percent(share)))
    } else {
        let due = counts.started + counts.left_out;
        let share = crate::observe::share(counts.started, due).filter(|&share| 1.0 - share > WORTH_A_HEADLINE)?;
        (share, format!("{name} was sent {} of the requests that were due: no connection was free", percent(share)))
    };
    Some(Headline {
        kind: HeadlineKind::RateNotReached,
        target: target.to_owned(),
        share: Some(share),
        text: format!("{text}{limit}"),
    })
}
