//! How many bytes went through at each level, and how much of what is counted as a time: tables of work that threads do.

use super::Part;
use crate::figures::{Lengths, byte_rate, maybe};
use crate::summary::{Amount, counted_per_byte, counted_per_op};
use crate::table::{Align, Row, Table};
use crate::text::clean;
use crate::totals::Totals;
use duel_model::{FactorVerdict, Run, Tally, capitalized};

/// One target at one level.
#[derive(Default)]
struct Sum {
    tally: Tally,
    elapsed_ns: u64,
}

/// A table of bytes per second, and two for each counter of a time; none for work on connections, whose figures have a network
/// in between.
pub(super) fn parts(run: &Run, place: usize, factor: &FactorVerdict, targets: &[Totals<'_>]) -> Vec<Part> {
    let Some(schema) = targets.first().map(|target| target.schema).filter(|schema| schema.lanes_are_threads()) else {
        return Vec::new();
    };
    let sums: Vec<Vec<Sum>> = (0..factor.levels.len())
        .map(|level| targets.iter().map(|target| sum(run, place, level, target)).collect())
        .collect();
    let part = |title: String, of: &dyn Fn(&Sum) -> Option<f64>, show: &dyn Fn(&[Option<f64>]) -> Vec<String>| {
        let values: Vec<Vec<Option<f64>>> = sums.iter().map(|level| level.iter().map(of).collect()).collect();
        let is_known = values.iter().flatten().any(Option::is_some);
        let row = |(level, values): (&duel_model::LevelVerdict, &Vec<Option<f64>>)| {
            Row::new(clean(&level.label), show(values))
        };
        is_known.then(|| Part {
            title: format!("{title} by {}", clean(&factor.name)),
            table: Some(Table {
                corner: clean(&factor.name),
                heads: targets.iter().map(|target| target.name.clone()).collect(),
                rows: factor.levels.iter().zip(&values).map(row).collect(),
                align: Align::Right,
            }),
            notes: Vec::new(),
        })
    };
    let bytes_per_s = |sum: &Sum| {
        let bytes = sum.tally.bytes_in + sum.tally.bytes_out;
        (sum.elapsed_ns > 0 && bytes > 0).then(|| bytes as f64 * 1e9 / sum.elapsed_ns as f64)
    };
    let rates = |values: &[Option<f64>]| values.iter().map(|&value| maybe(value, byte_rate)).collect();
    let mut parts: Vec<Part> = part(capitalized(schema.bytes), &bytes_per_s, &rates).into_iter().collect();
    let times = |values: &[Option<f64>]| {
        let lengths = Lengths::beside(values.iter().flatten().copied());
        values.iter().map(|&value| maybe(value, |ns| lengths.show(ns))).collect()
    };
    for counter in schema.counters.iter().filter(|counter| counter.is_time()) {
        let each: [(&str, Amount); 2] = [(schema.op.one, counted_per_op), ("byte", counted_per_byte)];
        for (each, of) in each {
            let title = format!("{} per {each}", counter.title);
            parts.extend(part(title, &|sum: &Sum| of(&sum.tally, counter.id()), &times));
        }
    }
    parts
}

fn sum(run: &Run, place: usize, level: usize, target: &Totals<'_>) -> Sum {
    let mut sum = Sum::default();
    for slot in &target.slots {
        if slot.treatment.is_some_and(|treatment| run.plan.level_of(treatment as usize, place) == level) {
            sum.tally.merge(&slot.tally);
            sum.elapsed_ns = sum.elapsed_ns.saturating_add(slot.elapsed_ns);
        }
    }
    sum
}
