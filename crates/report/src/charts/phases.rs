//! Where the time goes: mean time per op, phase by phase.

use super::{Chart, Subject, sentences};
use crate::phases::{Gap, Times, gone_through};
use crate::plot::{Axis, Bar, Bars, Drawing};
use crate::summary::gap_call;
use crate::table::{Align, Row, Table};
use crate::totals::Totals;
use duel_model::Phase;

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let targets = &subject.targets;
    let phases = gone_through(targets);
    let whole_ns = |target: &Totals<'_>| phases.iter().filter_map(|&phase| target.phase_per_op_ns(phase)).sum::<f64>();
    let largest_ns = targets.iter().map(whole_ns).fold(0.0, f64::max);
    if largest_ns <= 0.0 {
        return None;
    }
    let times = Times::up_to(largest_ns);
    let unit = times.unit();
    let show = |ns: f64| format!("{} {}", times.show(ns), unit.name);
    let bars = targets
        .iter()
        .map(|target| {
            let parts = phases.iter().map(|&phase| target.phase_per_op_ns(phase).unwrap_or(0.0));
            Bar {
                label: target.name.clone(),
                parts: parts.clone().map(|ns| unit.value(ns)).collect(),
                texts: phases.iter().zip(parts).map(|(phase, ns)| format!("{}: {}", phase.name, show(ns))).collect(),
                text: if target.tally.ok == 0 { "not known".to_owned() } else { show(whole_ns(target)) },
            }
        })
        .collect();
    let said = targets.iter().map(|target| {
        let parts: Vec<String> = phases
            .iter()
            .filter_map(|&phase| Some(format!("{} {}", phase.name, show(target.phase_per_op_ns(phase)?))))
            .collect();
        format!("{}: {}", target.name, parts.join(", "))
    });
    let noun = subject.noun;
    Some(Chart {
        id: "phases".into(),
        title: format!("Where the time goes: mean time per {noun} by phase"),
        description: sentences(said),
        drawing: Drawing::Bars(Bars {
            axis: Axis::from_zero(format!("mean time per {noun} ({})", unit.name), unit.value(largest_ns)),
            parts: phases.iter().map(|phase| phase.name.to_owned()).collect(),
            bars,
            note: format!("Only {noun}s that ended well are counted; one that skips a phase spends no time in it."),
        }),
        table: table(subject, &phases, times),
    })
}

/// The means; of two targets also the difference, and what part of the gap it is.
fn table(subject: &Subject<'_>, phases: &[Phase], times: Times) -> Table {
    let targets = &subject.targets;
    let mut heads = subject.names();
    let corner = format!("mean ({})", times.unit().name);
    if let [baseline, target] = targets.as_slice()
        && baseline.tally.ok > 0
        && target.tally.ok > 0
        && let Some(gap) = Gap::between(baseline, target, gap_call(subject.verdict, &subject.run.plan.targets[1].name))
    {
        heads.push("difference".to_owned());
        heads.extend(gap.is_real.then(|| "of gap".to_owned()));
        let rows = gap.shares.iter().chain([&gap.total]).map(|share| {
            let mut cells = vec![
                times.show(share.baseline_ns),
                times.show(share.target_ns),
                times.show_difference(share.difference_ns()),
            ];
            cells.extend(gap.is_real.then(|| gap.part_of(share)));
            Row::new(share.name, cells)
        });
        return Table { corner, heads, rows: rows.collect(), align: Align::Right };
    }
    let rows = phases.iter().map(|&phase| {
        let cells = targets.iter().map(|t| crate::figures::maybe(t.phase_per_op_ns(phase), |ns| times.show(ns)));
        Row::new(phase.name, cells.collect())
    });
    Table { corner, heads, rows: rows.collect(), align: Align::Right }
}
