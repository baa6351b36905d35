//! A target's own time: its measured slots as short stretches in which ops ended evenly.

use crate::totals::Totals;
use duel_model::{Slot, Turn};

/// A stretch of a target's own time in which ops ended evenly, as far as was recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from_ns: f64,
    pub(crate) to_ns: f64,
    pub(crate) ok: f64,
    pub(crate) failed: bool,
}

impl Span {
    pub(crate) fn rate_per_ns(&self) -> f64 {
        let length = self.to_ns - self.from_ns;
        if length > 0.0 { self.ok / length } else { 0.0 }
    }
}

/// A target's measured slots end to end.
pub(crate) fn spans(target: &Totals<'_>) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut start_ns = 0.0;
    for slot in &target.slots {
        spans.extend(spans_of(slot, start_ns));
        start_ns += slot.elapsed_ns as f64;
    }
    spans
}

/// A slot in turns: each turn. Its series counts what ended within 100 ms, which holds more of one turn here and more of the next there.
fn spans_of_turns(turns: &[Turn], failed: bool, mut start_ns: f64) -> Vec<Span> {
    let span = |turn: &Turn| {
        let from_ns = start_ns;
        start_ns += turn.elapsed_ns as f64;
        Span { from_ns, to_ns: start_ns, ok: turn.ok as f64, failed }
    };
    turns.iter().map(span).collect()
}

/// A slot that begins at `start_ns`.
pub(crate) fn spans_of(slot: &Slot, start_ns: f64) -> Vec<Span> {
    if !slot.turns.is_empty() {
        return spans_of_turns(&slot.turns, slot.tally.failed_total() > 0, start_ns);
    }
    let mut spans: Vec<Span> = Vec::new();
    let (elapsed_ns, step_ns) = (slot.elapsed_ns as f64, slot.series.interval_ns as f64);
    let end_ns = start_ns + elapsed_ns;
    if step_ns > 0.0 && elapsed_ns > 0.0 {
        for (i, interval) in slot.series.intervals.iter().enumerate() {
            let from_ns = start_ns + i as f64 * step_ns;
            let to_ns = (from_ns + step_ns).min(end_ns);
            let (ok, failed) = (interval.ok as f64, interval.failed > 0);
            // The last interval is cut where the slot ended. A short rest has a rate made of few ops, and
            // counts with its neighbour; so does what is noted beyond the end.
            match spans.last_mut() {
                Some(last) if i > 0 && to_ns - from_ns < step_ns / 2.0 => {
                    last.to_ns = last.to_ns.max(to_ns);
                    last.ok += ok;
                    last.failed |= failed;
                }
                _ => spans.push(Span { from_ns, to_ns, ok, failed }),
            }
        }
    }
    match spans.last_mut() {
        // Nothing ended after the last interval: that time counts, too.
        Some(last) if end_ns - last.to_ns > step_ns => {
            let from_ns = last.to_ns;
            spans.push(Span { from_ns, to_ns: end_ns, ok: 0.0, failed: false });
        }
        Some(last) => last.to_ns = end_ns,
        None => {
            let (ok, failed) = (slot.tally.ok as f64, slot.tally.failed_total() > 0);
            spans.push(Span { from_ns: start_ns, to_ns: end_ns, ok, failed });
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_in_turns_is_drawn_turn_by_turn() {
        let turns = [(40, 80), (60, 30)].map(|(ms, ok)| Turn { offset_ns: 0, ok, elapsed_ns: ms * 1_000_000 });
        let drawn = spans_of_turns(&turns, false, 1e9);
        let drawn = drawn.iter().map(|span| (span.from_ns, span.to_ns, span.ok)).collect::<Vec<_>>();
        assert_eq!(drawn, [(1e9, 1.04e9, 80.0), (1.04e9, 1.1e9, 30.0)]);
    }
}
