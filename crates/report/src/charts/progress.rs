//! The approach to completion: requests done over the time under load, all targets overlaid.

use super::{Chart, Subject, sentences, thinned};
use crate::figures::{UNKNOWN, count, duration, maybe};
use crate::plot::{Axis, Drawing, Line, Lines};
use crate::spans::spans;
use crate::table::{Align, Row, Table};

/// Points of a curve; a chart is not much more than twice as many pixels wide.
const MOST_POINTS: usize = 240;

/// What one target had done, and when.
struct Approach {
    /// `(time under load in s, requests done)`, both rising, from zero.
    points: Vec<(f64, f64)>,
}

impl Approach {
    /// How long the first `n` took, in s; within a stretch of even rate it is interpolated.
    fn time_of(&self, n: f64) -> Option<f64> {
        let place = self.points.partition_point(|&(_, done)| done < n);
        let &(to_s, to) = self.points.get(place)?;
        let Some(&(from_s, from)) = place.checked_sub(1).and_then(|before| self.points.get(before)) else {
            return Some(to_s);
        };
        if to > from { Some(from_s + (to_s - from_s) * (n - from) / (to - from)) } else { Some(to_s) }
    }

    fn done(&self) -> f64 {
        self.points.last().map_or(0.0, |&(_, done)| done)
    }

    fn end_s(&self) -> f64 {
        self.points.last().map_or(0.0, |&(end_s, _)| end_s)
    }
}

pub(super) fn chart(subject: &Subject<'_>) -> Option<Chart> {
    let noun = subject.noun;
    let approaches: Vec<Approach> = subject
        .targets
        .iter()
        .map(|target| {
            let mut done = 0.0;
            let ends = spans(target).into_iter().map(|span| {
                done += span.ok;
                (span.to_ns / 1e9, done)
            });
            Approach { points: [(0.0, 0.0)].into_iter().chain(ends).collect() }
        })
        .collect();
    let most = approaches.iter().map(Approach::done).fold(0.0, f64::max);
    let longest_s = approaches.iter().map(Approach::end_s).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let names = subject.names();
    let lines = names
        .iter()
        .zip(&approaches)
        .map(|(name, approach)| Line {
            name: name.clone(),
            pieces: vec![thinned(&approach.points, MOST_POINTS)],
            band: Vec::new(),
        })
        .collect();
    let said = names.iter().zip(&approaches).map(|(name, approach)| {
        format!("{name}: {} {noun}s done in {}", count(approach.done() as u64), duration(approach.end_s() * 1e9))
    });
    let note = if names.len() > 1 {
        "Each target's own slots end to end, without the time in which others had their turn. The steeper, the faster."
    } else {
        "Measured slots, end to end."
    };
    Some(Chart {
        id: "progress".into(),
        title: format!("How many {noun}s were done by when"),
        description: sentences(said),
        drawing: Drawing::Lines(Lines {
            x: Axis::from_zero("time under load (s)", longest_s),
            y: Axis::from_zero(format!("{noun}s done"), most).with_headroom(),
            lines,
            crosses: Vec::new(),
            note: note.to_owned(),
        }),
        table: table(&approaches, names, noun),
    })
}

/// How long each target took for as many requests as the slowest has done, in tenths.
fn table(approaches: &[Approach], heads: Vec<String>, noun: &str) -> Table {
    let common = approaches.iter().map(Approach::done).filter(|&done| done > 0.0).fold(f64::INFINITY, f64::min);
    let steps: Vec<f64> = (1..=10).map(|tenth| (common * f64::from(tenth) / 10.0).ceil()).collect();
    let mut rows: Vec<Row> = Vec::new();
    for (i, &n) in steps.iter().enumerate() {
        if i > 0 && steps[i - 1] == n {
            continue;
        }
        let cells = approaches.iter().map(|a| maybe(a.time_of(n), |s| duration(s * 1e9))).collect();
        rows.push(Row::new(format!("first {}", count(n as u64)), cells));
    }
    let all = approaches.iter().map(|a| if a.done() > 0.0 { count(a.done() as u64) } else { UNKNOWN.to_owned() });
    rows.push(Row::new("done in all", all.collect()));
    rows.push(Row::new("time under load", approaches.iter().map(|a| duration(a.end_s() * 1e9)).collect()));
    Table { corner: format!("{noun}s"), heads, rows, align: Align::Right }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_between_points() {
        let approach = Approach { points: vec![(0.0, 0.0), (1.0, 10.0), (2.0, 10.0), (3.0, 30.0)] };
        assert_eq!([5.0, 10.0, 20.0, 30.0].map(|n| approach.time_of(n)), [Some(0.5), Some(1.0), Some(2.5), Some(3.0)]);
        assert_eq!(approach.time_of(31.0), None);
    }
}
